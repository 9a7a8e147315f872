#include "query/view_sql.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "avro/json_node.h"
#include "query/types.h"

enum { DECIMAL_DIGITS_MAX = 38 };

bool
view_shows_column(const IcebergSchema *schema, int column)
{
    Str name = schema->fields[column].name;

    for (int i = 0; i < column; i++) {
        Str other = schema->fields[i].name;

        if (other.len == name.len && strncasecmp(other.ptr, name.ptr, name.len) == 0)
            return false;
    }
    return name.len > 0;
}

/* --- columns ------------------------------------------------------------------------------- */

/* Scale of a bare numeric column (text in the lake) whose values all fit a decimal, else -1. The
 * property walberg.numeric.<column> says how wide they are: "12,4". */
static int
numeric_scale(const ViewTable *table, int column)
{
    const Field *field = &table->schema->fields[column];
    AUTO_BUF Buf key = {0};
    char *end;

    if (field->type->kind != TYPE_STRING)
        return -1;
    buf_cstr(&key, "walberg.numeric.");
    buf_str(&key, field->name);

    Str width = property_get(&table->metadata->properties, buf_text(&key));

    if (width.ptr == NULL || width.len > 20)
        return -1;

    char text[24];

    memcpy(text, width.ptr, width.len);
    text[width.len] = '\0';

    long whole = strtol(text, &end, 10);

    if (end == text || *end != ',')
        return -1;

    const char *second = end + 1;
    long scale = strtol(second, &end, 10);

    if (end == second || *end != '\0' || whole < 0 || scale < 0 ||
        whole + scale > DECIMAL_DIGITS_MAX)
        return -1;
    return (int) scale;
}

static void
put_columns(Buf *sql, const ViewTable *table)
{
    bool first = true;

    for (int i = 0; i < table->schema->field_count; i++) {
        const Field *field = &table->schema->fields[i];
        int scale = numeric_scale(table, i);

        if (!view_shows_column(table->schema, i))
            continue;
        buf_cstr(sql, first ? "" : ", ");
        if (scale >= 0)
            buf_printf(sql, "CAST(c%d AS DECIMAL(38,%d)) AS ", field->id, scale);
        else
            buf_printf(sql, "c%d AS ", field->id);
        duck_quote_identifier(sql, field->name);
        first = false;
    }
}

/* initial-default (Iceberg v3) of a primitive field: what rows of files without the column have. */
static const JsonNode *
initial_default(const JsonNode *schema, int field_id)
{
    const JsonNode *fields = node_get(schema, "fields");

    for (size_t i = 0; i < node_count(fields); i++) {
        const JsonNode *field = node_at(fields, i);
        int id;

        if (node_to_int(node_get(field, "id"), &id) && id == field_id)
            return node_get(field, "initial-default");
    }
    return NULL;
}

/* All defaults are given as text: the values of DuckDB's MAP have one type, and it casts them. */
static void
put_default(Buf *sql, Arena *arena, const JsonNode *value)
{
    Str text = STR("");

    if (value == NULL || node_is_object(value) || node_is_array(value))
        buf_cstr(sql, "NULL::VARCHAR");
    else if (node_to_str(value, &text))
        duck_quote_literal(sql, text);
    else
        duck_quote_literal(sql, node_text(arena, value));
}

static void
put_schema(Buf *sql, const IcebergSchema *schema)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_NODE JsonNode *json = NULL;
    Error ignored;

    if (schema->json.ptr != NULL && !node_parse(schema->json, &json, &ignored))
        json = NULL;
    buf_cstr(sql, "schema = MAP {");
    for (int i = 0; i < schema->field_count; i++) {
        const Field *field = &schema->fields[i];
        AUTO_BUF Buf type = {0};

        type_duckdb_name(field->type, &type);
        buf_printf(sql, "%s%d: {name: 'c%d', type: ", i == 0 ? "" : ", ", field->id, field->id);
        duck_quote_literal(sql, buf_view(&type));
        buf_cstr(sql, ", default_value: ");
        put_default(sql, arena, initial_default(json, field->id));
        buf_byte(sql, '}');
    }
    buf_byte(sql, '}');
}

/* --- scans --------------------------------------------------------------------------------- */

static void
put_scan(Buf *sql, const ViewTable *table, const char *const *files, size_t count, bool numbered)
{
    buf_cstr(sql, "SELECT ");
    put_columns(sql, table);
    buf_cstr(sql, " FROM read_parquet([");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(sql, ',');
        duck_quote_literal(sql, str_of(files[i]));
    }
    buf_cstr(sql, "], ");
    put_schema(sql, table->schema);
    /* folders like day=2020-01-01 are Iceberg's business, not columns */
    buf_printf(sql, ", hive_partitioning = false%s)", numbered ? ", file_row_number = true" : "");
}

static void
put_no_rows(Buf *sql, const ViewTable *table)
{
    buf_cstr(sql, "SELECT ");
    put_columns(sql, table);
    buf_cstr(sql, " FROM (SELECT ");
    for (int i = 0; i < table->schema->field_count; i++) {
        buf_printf(sql, "%sCAST(NULL AS ", i == 0 ? "" : ", ");
        type_duckdb_name(table->schema->fields[i].type, sql);
        buf_printf(sql, ") AS c%d", table->schema->fields[i].id);
    }
    buf_cstr(sql, ") WHERE false");
}

void
view_put(Buf *sql, const ViewTable *table)
{
    const TablePlan *plan = table->plan;

    buf_cstr(sql, "CREATE OR REPLACE VIEW ");
    duck_quote_identifier(sql, table->space);
    buf_byte(sql, '.');
    duck_quote_identifier(sql, table->name);
    buf_cstr(sql, " AS ");
    if (plan == NULL || plan->clean_count + plan->dirty_count == 0) {
        put_no_rows(sql, table);
        return;
    }
    if (plan->clean_count > 0)
        put_scan(sql, table, plan->clean, plan->clean_count, false);
    if (plan->clean_count > 0 && plan->dirty_count > 0)
        buf_cstr(sql, " UNION ALL ");
    if (plan->dirty_count > 0) {
        put_scan(sql, table, plan->dirty, plan->dirty_count, true);
        buf_printf(sql, " WHERE walberg_live(%" PRIu64 ", file_index, file_row_number)",
                   table->dead_set);
    }
}

/* --- pg_attribute -------------------------------------------------------------------------- */

static uint32_t
oid_of_type(const Type *type)
{
    static const uint32_t oids[TYPE_KIND_COUNT] = {
        [TYPE_BOOL] = OID_BOOL,
        [TYPE_INT32] = OID_INT4,
        [TYPE_INT64] = OID_INT8,
        [TYPE_FLOAT32] = OID_FLOAT4,
        [TYPE_FLOAT64] = OID_FLOAT8,
        [TYPE_DECIMAL] = OID_NUMERIC,
        [TYPE_DATE] = OID_DATE,
        [TYPE_TIME] = OID_TIME,
        [TYPE_TIMESTAMP] = OID_TIMESTAMP,
        [TYPE_TIMESTAMPTZ] = OID_TIMESTAMPTZ,
        [TYPE_STRING] = OID_TEXT,
        [TYPE_JSON] = OID_TEXT,
        [TYPE_BINARY] = OID_BYTEA,
        [TYPE_UUID] = OID_UUID,
        [TYPE_MAP] = OID_JSON,
        [TYPE_STRUCT] = OID_RECORD,
    };
    const Type *inner = type;

    while (inner->kind == TYPE_LIST)
        inner = inner->fields[0].type;

    const PgTypeRow *row = pg_type_of_oid(oids[inner->kind]);

    assert(row != NULL);
    return inner == type ? row->oid : row->array_oid;
}

static int32_t
typmod_of_type(const Type *type)
{
    return type->kind == TYPE_DECIMAL ? ((type->precision << 16) | type->scale) + 4 : -1;
}

void
view_attributes(Arena *arena, const ViewTable *table, PgAttribute **out_attributes,
                size_t *out_count)
{
    const IcebergSchema *schema = table->schema;
    PgAttribute *attributes = ARENA_ARRAY(arena, PgAttribute, (size_t) schema->field_count);
    size_t count = 0;

    for (int i = 0; i < schema->field_count; i++) {
        const Field *field = &schema->fields[i];
        const char *doc = schema->docs == NULL ? NULL : schema->docs[i];
        int scale = numeric_scale(table, i);

        if (!view_shows_column(schema, i))
            continue;
        attributes[count] = (PgAttribute){
            .number = (int) count + 1,
            .name = field->name,
            .type_oid = scale >= 0 ? OID_NUMERIC : oid_of_type(field->type),
            .typmod =
                scale >= 0 ? ((DECIMAL_DIGITS_MAX << 16) | scale) + 4 : typmod_of_type(field->type),
            .not_null = field->required,
            .type_text = doc == NULL ? STR("") : str_of(doc),
        };
        count++;
    }
    *out_attributes = attributes;
    *out_count = count;
}
