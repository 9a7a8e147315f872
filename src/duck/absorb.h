/* absorb.h - DuckDB's vectors into Columns. */
#ifndef DUCK_ABSORB_H
#define DUCK_ABSORB_H

#include "duck/emit.h"

/* Which part of a vector a wanted type is read from: files keep the names and the order that
 * nested types had when they were written, so parts are found by field id. */
typedef struct Part Part;

struct Part {
    const Type *type; /* wanted */
    int child;        /* index among the members around it in the file; -1: the file lacks it */
    Part *parts;      /* type->field_count of them */
};

/* Append the given rows of the vector to column. `part` says how, for nested types; for others it
 * may be NULL. Iceberg's promotions (int to long, float to double, more digits for a decimal) are
 * made; any other difference between the file and the wanted type is ERR_INPUT. */
bool absorb_vector(Column *column, duckdb_vector vector, const Part *part, Rows rows,
                   Error *err) WARN_UNUSED;

/* Append `count` NULLs. */
void absorb_nulls(Column *column, size_t count);

#endif
