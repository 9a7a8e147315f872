/* schema.h - a TableSchema as an Iceberg schema, and back. Iceberg spec, "Schemas and Data Types",
 * "Appendix C: JSON serialization". Pure. */
#ifndef ICEBERG_SCHEMA_H
#define ICEBERG_SCHEMA_H

#include "avro/json_node.h"
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
    const char
        *beyond; /* "v: variant", the first field of a type that TypeKind lacks; NULL: none */
    Str json;    /* as read: kept so that what we do not model (unknown types) survives */
} IcebergSchema;

/* TableSchema -> IcebergSchema: all fields optional except key columns that are NOT NULL; doc = the
 * Postgres type; identifier fields = the key, unless a key column is nullable, float or nested. */
IcebergSchema *iceberg_schema_from_table(Arena *arena, const TableSchema *schema, int schema_id);

/* Write as a JSON object: schema->json if it is there. */
void iceberg_schema_write(JsonWriter *json, const IcebergSchema *schema);

/* A schema object of table metadata. Strings and uuids become their kinds, fixed[n] TYPE_BINARY.
 * Types that TypeKind cannot express (timestamp_ns, variant, geometry, whatever comes next, or more
 * than TYPE_DEPTH_MAX levels) stand as TYPE_BINARY and are named in `beyond`: such a schema may be
 * passed on, its rows may not be read or written. A missing schema-id reads 0 (v1). */
bool iceberg_schema_parse(Arena *arena, const JsonNode *node, IcebergSchema *out_schema,
                          Error *err) WARN_UNUSED;

/* Whether rows of this schema can be read and written: every type is one of ours. */
bool iceberg_schema_understood(const IcebergSchema *schema);

/* The field with this id, nested ones included; NULL when there is none. */
const Field *iceberg_schema_find(const IcebergSchema *schema, int field_id);

/* Iceberg's name of the type of a primitive field, as the schema has it ("fixed[16]",
 * "timestamp_ns"), appended to out; false when there is no such field or it is nested. */
bool iceberg_schema_type_name(const IcebergSchema *schema, int field_id, Buf *out);

/* Highest field id anywhere in it. */
int iceberg_schema_last_id(const IcebergSchema *schema);

#endif
