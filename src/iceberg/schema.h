/* schema.h - a TableSchema as an Iceberg schema, and back. Iceberg spec, "Schemas and Data Types",
 * "Appendix C: JSON serialization". Pure. */
#ifndef ICEBERG_SCHEMA_H
#define ICEBERG_SCHEMA_H

#include "base/arena.h"
#include "base/json_writer.h"
#include "model/schema.h"

/* One schema of a table's metadata. Field.required is as in the table. */
typedef struct IcebergSchema {
    int schema_id;
    int identifier_count; /* identifier-field-ids */
    int *identifiers;
    int field_count;
    Field *fields;
    const char **docs; /* per field, or NULL */
    Str json; /* as read: kept so that what we do not model (defaults, unknown types) survives */
} IcebergSchema;

/* TableSchema -> IcebergSchema: all fields optional except key columns that are NOT NULL; doc = the
 * Postgres type; identifier fields = the key, unless a key column is nullable, float or nested. */
IcebergSchema *iceberg_schema_from_table(Arena *arena, const TableSchema *schema, int schema_id);

/* Write as a JSON object. */
void iceberg_schema_write(JsonWriter *json, const IcebergSchema *schema);

/* Highest field id anywhere in it. */
int iceberg_schema_last_id(const IcebergSchema *schema);

#endif
