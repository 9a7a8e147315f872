#include "query/types.h"

static const PgTypeRow rows[] = {
    {OID_BOOL, 1000, 1, "bool", "BOOLEAN"},
    {OID_BYTEA, 1001, -1, "bytea", "BLOB"},
    {OID_NAME, 1003, 64, "name", "VARCHAR"},
    {OID_INT8, 1016, 8, "int8", "BIGINT"},
    {OID_INT2, 1005, 2, "int2", "SMALLINT"},
    {OID_INT4, 1007, 4, "int4", "INTEGER"},
    {OID_TEXT, 1009, -1, "text", "VARCHAR"},
    {OID_JSON, 199, -1, "json", "JSON"},
    {OID_FLOAT4, 1021, 4, "float4", "FLOAT"},
    {OID_FLOAT8, 1022, 8, "float8", "DOUBLE"},
    {OID_BPCHAR, 1014, -1, "bpchar", "VARCHAR"},
    {OID_VARCHAR, 1015, -1, "varchar", "VARCHAR"},
    {OID_DATE, 1182, 4, "date", "DATE"},
    {OID_TIME, 1183, 8, "time", "TIME"},
    {OID_TIMESTAMP, 1115, 8, "timestamp", "TIMESTAMP"},
    {OID_TIMESTAMPTZ, 1185, 8, "timestamptz", "TIMESTAMP WITH TIME ZONE"},
    {OID_INTERVAL, 1187, 16, "interval", "INTERVAL"},
    {OID_TIMETZ, 1270, 12, "timetz", "TIME WITH TIME ZONE"},
    {OID_NUMERIC, 1231, -1, "numeric", NULL /* needs a width, see literal.c */},
    {OID_RECORD, 2287, -1, "record", NULL},
    {OID_UUID, 2951, 16, "uuid", "UUID"},
    {OID_JSONB, 3807, -1, "jsonb", "JSON"},
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0], NUMERIC_HEADER = 4 };

/* What has no equal in Postgres goes to the next larger type. */
static const uint32_t kind_oids[DUCK_KIND_COUNT] = {
    [DUCK_BOOL] = OID_BOOL,
    [DUCK_INT8] = OID_INT2,
    [DUCK_INT16] = OID_INT2,
    [DUCK_INT32] = OID_INT4,
    [DUCK_INT64] = OID_INT8,
    [DUCK_INT128] = OID_NUMERIC,
    [DUCK_UINT8] = OID_INT2,
    [DUCK_UINT16] = OID_INT4,
    [DUCK_UINT32] = OID_INT8,
    [DUCK_UINT64] = OID_NUMERIC,
    [DUCK_UINT128] = OID_NUMERIC,
    [DUCK_FLOAT32] = OID_FLOAT4,
    [DUCK_FLOAT64] = OID_FLOAT8,
    [DUCK_DECIMAL] = OID_NUMERIC,
    [DUCK_TEXT] = OID_TEXT,
    [DUCK_JSON] = OID_JSON,
    [DUCK_BLOB] = OID_BYTEA,
    [DUCK_DATE] = OID_DATE,
    [DUCK_TIME] = OID_TIME,
    [DUCK_TIMETZ] = OID_TIMETZ,
    [DUCK_TIMESTAMP] = OID_TIMESTAMP,
    [DUCK_TIMESTAMP_S] = OID_TIMESTAMP,
    [DUCK_TIMESTAMP_MS] = OID_TIMESTAMP,
    [DUCK_TIMESTAMP_NS] = OID_TIMESTAMP,
    [DUCK_TIMESTAMPTZ] = OID_TIMESTAMPTZ,
    [DUCK_INTERVAL] = OID_INTERVAL,
    [DUCK_UUID] = OID_UUID,
    [DUCK_STRUCT] = OID_RECORD,
    [DUCK_MAP] = OID_JSON,
};

size_t
pg_type_count(void)
{
    return ROW_COUNT;
}

const PgTypeRow *
pg_type_at(size_t i)
{
    return &rows[i];
}

const PgTypeRow *
pg_type_of_oid(uint32_t oid)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].oid == oid)
            return &rows[i];
    return NULL;
}

const PgTypeRow *
pg_type_of_array(uint32_t array_oid)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].array_oid == array_oid)
            return &rows[i];
    return NULL;
}

const PgTypeRow *
pg_type_of_kind(DuckKind kind)
{
    return kind_oids[kind] == 0 ? NULL : pg_type_of_oid(kind_oids[kind]);
}

/* The innermost elements: all dimensions of an array are one type in Postgres. */
static const DuckType *
innermost(const DuckType *type)
{
    while (type->kind == DUCK_LIST || type->kind == DUCK_ARRAY)
        type = &type->children[0];
    return type;
}

uint32_t
element_oid(const DuckType *type)
{
    const PgTypeRow *row = pg_type_of_kind(innermost(type)->kind);

    return innermost(type) == type || row == NULL ? 0 : row->oid;
}

bool
wire_column_type(const DuckType *type, WireColumn *column)
{
    const DuckType *inner = innermost(type);
    const PgTypeRow *row = pg_type_of_kind(inner->kind);

    if (type->kind == DUCK_OTHER || row == NULL)
        return false;
    column->type_oid = inner == type ? row->oid : row->array_oid;
    column->type_size = (int16_t) (inner == type ? row->size : -1);
    column->typmod = -1;
    if (inner->kind == DUCK_DECIMAL) /* numeric.c, make_numeric_typmod */
        column->typmod = ((inner->precision << 16) | inner->scale) + NUMERIC_HEADER;
    return true;
}
