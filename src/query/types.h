/* types.h - Postgres' types as the wire shows them: OIDs, sizes, modifiers (pg_type.dat). */
#ifndef QUERY_TYPES_H
#define QUERY_TYPES_H

#include "duck/session.h"
#include "pg/wire.h"

enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_NAME = 19,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_JSON = 114,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_UNKNOWN = 705,
    OID_BPCHAR = 1042,
    OID_VARCHAR = 1043,
    OID_DATE = 1082,
    OID_TIME = 1083,
    OID_TIMESTAMP = 1114,
    OID_TIMESTAMPTZ = 1184,
    OID_INTERVAL = 1186,
    OID_TIMETZ = 1266,
    OID_NUMERIC = 1700,
    OID_RECORD = 2249,
    OID_UUID = 2950,
    OID_JSONB = 3802,
};

/* One row per type that a result or a parameter may have. */
typedef struct PgTypeRow {
    uint32_t oid;
    uint32_t array_oid;
    int16_t size;     /* pg_type.typlen */
    const char *name; /* pg_type.typname */
    const char *duckdb;
} PgTypeRow;

size_t pg_type_count(void);
const PgTypeRow *pg_type_at(size_t i);
/* NULL when it is not in the table. */
const PgTypeRow *pg_type_of_oid(uint32_t oid);
/* The element type of an array type, or NULL. */
const PgTypeRow *pg_type_of_array(uint32_t array_oid);
/* The type that DuckDB's has on the wire; NULL for what has none (DUCK_OTHER). */
const PgTypeRow *pg_type_of_kind(DuckKind kind);

/* Fill type OID, size and modifier. False: the type has no form on the wire. */
bool wire_column_type(const DuckType *type, WireColumn *column);
/* OID of the innermost elements of a list, for duck_rows_binary(); 0 for other types. */
uint32_t element_oid(const DuckType *type);

#endif
