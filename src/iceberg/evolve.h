/* evolve.h - the next schema of a table, from the source's shape. Iceberg spec, "Schema Evolution".
 *
 * Columns of the source are matched to fields of the lake by attnum (table property
 * `walberg.attnums`), so that a rename is a rename, and a column that was dropped and added again
 * under its old name is a new field. Ids are never reused. Pure. */
#ifndef ICEBERG_EVOLVE_H
#define ICEBERG_EVOLVE_H

#include "iceberg/metadata.h"

typedef struct SchemaFit {
    TableSchema *schema;       /* the source's, with the lake's field ids; one reference, yours */
    const IcebergSchema *next; /* what the table's schema has to become; NULL: it is that already */
    int last_column_id;        /* with next */
    Str attnums;               /* the property, with next */
} SchemaFit;

/* Fit the source's shape to the table. ERR_COPY: the rows that the lake has cannot be read under it
 * (the message says which column and why); with `fresh`, when all rows are written anew, a column
 * of another type gets a field of its own instead and this does not happen.
 *
 * A change of type that is a promotion of the spec (int to long, float to double, a decimal of the
 * same scale widened) keeps the field; members of structs are matched by name. A column that is new
 * and `filled` gets the value of its old rows as default, from version 3 on and where Iceberg can
 * say it; else it needs a copy, unless defaults_are_null and rows are not found by it. */
typedef struct FitWant {
    const TableSchema *source;
    bool fresh;
    bool defaults_are_null;
} FitWant;

bool iceberg_fit_schema(Arena *arena, const TableMetadata *metadata, const FitWant *want,
                        SchemaFit *out_fit, Error *err) WARN_UNUSED;

/* The lake's present shape as far as it can be said in the source's terms: names, attnums and types
 * of the lake's fields, and the key if the lake has its columns. Type OIDs are 0: rows cannot be
 * parsed by it, because the lake does not say how Postgres spells values. A reference is the
 * caller's. */
TableSchema *iceberg_lake_shape(const TableMetadata *metadata, const TableSchema *source);

/* "1:1,2:3j,0:4": field id and attnum of each column; behind 0 the schema's attnum_max. The j: it
 * is an array as JSON, which the field's type, a string, does not say. */
Str iceberg_attnums(Arena *arena, const TableSchema *schema);

/* A copy of metadata with this schema as its current one: an equal one that it had before is used
 * again, as Java does. Partition fields whose name it takes are called otherwise
 * (metadata_free_spec_names()). What did not change is shared. */
TableMetadata *metadata_set_schema(Arena *arena, const TableMetadata *metadata,
                                   const SchemaFit *fit);

#endif
