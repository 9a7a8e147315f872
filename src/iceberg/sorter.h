/* sorter.h - rows of columns in a sort order. Iceberg spec, "Sort Orders".
 *
 * Values compare as the spec says: reals -NaN < -Infinity < ... < -0 < 0 < ... < Infinity < NaN,
 * strings and binaries by unsigned bytes (of UTF-8: by code point), decimals by value, false before
 * true. Of UUIDs the spec says nothing; they compare by unsigned bytes, as RFC 9562, Parquet and
 * DuckDB have it (Java's library compared signed halves before apache/iceberg #14500). Rows that
 * are equal keep their sequence. Pure. */
#ifndef ICEBERG_SORTER_H
#define ICEBERG_SORTER_H

#include "iceberg/metadata.h"
#include "model/column.h"

typedef struct Sorter Sorter;

/* For columns laid out like `fields`. NULL: rows cannot be sorted so, because there is nothing to
 * sort by, or a field is made by a transform that we do not know, or of a member of a struct. */
Sorter *sorter_new(const SortOrder *order, const Field *fields, int field_count);
void sorter_free(Sorter *sorter); /* NULL is fine */

/* Whether the order depends on a column. */
bool sorter_uses(const Sorter *sorter, int column);

/* What sorter_sort() sorts from now on: `rows` rows of columns, which stay as they are. Some bytes
 * a row are kept until the next call where transforms are in the order. */
void sorter_begin(Sorter *sorter, const Column *columns, size_t rows);
/* Bring the numbers of some rows, which ascend, into the order. Four more bytes a row meanwhile. */
void sorter_sort(const Sorter *sorter, uint32_t *rows, size_t count);

#endif
