/* check_numeric.c - columns that are `numeric` without a precision: which decimal would hold them.
 *
 * In the lake such a column is exact text, since numeric has up to 131,072 digits before the point
 * and Iceberg's decimal has 38 in all. The values say which decimal would do: all of them are
 * looked at in a table of moderate size, a sample of blocks in a larger one. min_scale() is NULL
 * for NaN and the infinities (Postgres, src/backend/utils/adt/numeric.c). */
#include "cli/check.h"

#include <inttypes.h>

#include "base/json_writer.h"

enum {
    NUMERIC_OID = 1700,
    DIGITS_MAX = 38,         /* Iceberg spec, "Primitive Types": decimal(P,S) */
    DIGITS_COMMON = 18,      /* what eight bytes hold */
    DIGITS_SPARE = 3,        /* for values larger than today's */
    PAGES_WHOLE_MAX = 65536, /* 512 MB: a few seconds */
};

/* What the values of a column need. */
typedef struct NumericWidth {
    int64_t values;
    int64_t specials; /* NaN, infinities */
    int64_t whole;    /* digits before the point */
    int64_t scale;    /* digits behind it, trailing zeros aside */
} NumericWidth;

/* Those that are asked about. */
typedef struct NumericColumns {
    int count;
    int *items; /* indexes */
    int64_t pages;
} NumericColumns;

static bool
is_open_numeric(const SourceTable *table, const TableRule *rule, int column)
{
    const SchemaColumn *c = &table->schema->columns[column];

    if (c->type_oid != NUMERIC_OID || c->field.type->kind != TYPE_STRING)
        return false;
    for (size_t i = 0; i < rule->cast_count; i++)
        if (str_eq(rule->casts[i].column, c->field.name))
            return false;
    return true;
}

/* Pages as they are: those of pg_class are 0 until somebody has counted them. */
static bool
count_pages(NumericCheck *check, const SourceTable *table, int64_t *out_pages, Error *err)
{
    PgResult result;
    const char *sql =
        arena_printf(check->arena,
                     "SELECT (pg_relation_size(%u) + coalesce((SELECT sum(pg_relation_size(relid))"
                     " FROM pg_partition_tree(%u)), 0))::int8 / current_setting('block_size')::int",
                     table->relid, table->relid);

    TRY(pg_exec(check->conn, check->arena, sql, &result, err));
    *out_pages = pg_value_int(&result, 0, 0);
    return true;
}

/* The values of a table without its children: those are tables of their own. */
static void
put_from(Buf *sql, Arena *arena, const SourceTable *table, int64_t pages)
{
    buf_printf(sql, " FROM %s%s", table->kind == 'p' ? "" : "ONLY ",
               source_relation_sql(arena, table->schema_name, table->table_name));
    if (pages > PAGES_WHOLE_MAX)
        buf_printf(sql, " TABLESAMPLE SYSTEM (%.6f)", 100.0 * PAGES_WHOLE_MAX / (double) pages);
}

static bool
measure(NumericCheck *check, const SourceTable *table, const NumericColumns *columns,
        NumericWidth *out_widths, Error *err)
{
    AUTO_BUF Buf sql = {0};
    PgResult result;

    buf_cstr(&sql, "SELECT ");
    for (int i = 0; i < columns->count; i++) {
        const char *name =
            pg_quote_identifier(check->arena, table->schema->columns[columns->items[i]].field.name);

        buf_printf(&sql,
                   "%scount(%s), count(*) FILTER (WHERE %s IS NOT NULL AND min_scale(%s) IS NULL),"
                   " coalesce(max(length(trunc(abs(%s))::text)) FILTER (WHERE abs(%s) >= 1 AND"
                   " min_scale(%s) IS NOT NULL), 0), coalesce(max(min_scale(%s)), 0)",
                   i == 0 ? "" : ", ", name, name, name, name, name, name, name);
    }
    put_from(&sql, check->arena, table, columns->pages);
    TRY(pg_exec(check->conn, check->arena, buf_text(&sql), &result, err));
    for (int i = 0; i < columns->count; i++)
        out_widths[i] = (NumericWidth){
            .values = pg_value_int(&result, 0, 4 * i),
            .specials = pg_value_int(&result, 0, 4 * i + 1),
            .whole = pg_value_int(&result, 0, 4 * i + 2),
            .scale = pg_value_int(&result, 0, 4 * i + 3),
        };
    return true;
}

/* The lines of walberg.yaml: a JSON string is a YAML string. */
static const char *
cast_hint(Arena *arena, const char *table, Str column, const NumericWidth *width)
{
    AUTO_BUF Buf hint = {0};
    int64_t digits = width->whole + width->scale;

    buf_cstr(&hint, "as a decimal: tables: {");
    jw_put_string(&hint, str_of(table));
    buf_cstr(&hint, ": {columns: {");
    jw_put_string(&hint, column);
    buf_printf(&hint, ": {cast: \"decimal(%d,%" PRId64 ")\"}}}}",
               digits + DIGITS_SPARE <= DIGITS_COMMON ? DIGITS_COMMON : DIGITS_MAX, width->scale);
    return arena_strdup(arena, buf_text(&hint));
}

static void
propose(NumericCheck *check, const SourceTable *table, int column, const NumericWidth *width,
        bool sampled)
{
    Arena *arena = check->arena;
    Str name = table->schema->columns[column].field.name;
    const char *item = arena_printf(arena, "table %s", table->qualified);
    const char *looked_at = sampled ? "values of a sample" : "values";
    int64_t digits = width->whole + width->scale;

    if (width->values == width->specials)
        return; /* nothing to tell from */
    if (digits > DIGITS_MAX) {
        report_add(check->report, item, VERDICT_OK,
                   "column %.*s arrives as text: its %s need %" PRId64 " digits before the point "
                   "and %" PRId64 " behind it, more than the 38 of a decimal",
                   STR_ARG(name), looked_at, width->whole, width->scale);
        return;
    }
    report_add(check->report, item, VERDICT_OK,
               "column %.*s arrives as text: its %s need %" PRId64 " digits before the point and "
               "%" PRId64 " behind it%s",
               STR_ARG(name), looked_at, width->whole, width->scale,
               width->specials > 0 ? "; NaN and the infinities would be rejects of a decimal" : "");
    report_hint(check->report, cast_hint(arena, table->qualified, name, width));
}

void
check_numerics(NumericCheck *check, const SourceTable *table, const TableRule *rule)
{
    NumericColumns columns = {
        .items = ARENA_ARRAY(check->arena, int, (size_t) table->schema->column_count)};
    Error err = {0};

    for (int i = 0; i < table->schema->column_count; i++)
        if (is_open_numeric(table, rule, i))
            columns.items[columns.count++] = i;
    if (columns.count == 0)
        return;

    NumericWidth *widths = ARENA_ARRAY(check->arena, NumericWidth, (size_t) columns.count);

    /* others have to wait neither for us nor for those who hold the table locked */
    if (!pg_exec(check->conn, check->arena, "SET statement_timeout = '30s'", NULL, &err) ||
        !count_pages(check, table, &columns.pages, &err) ||
        !measure(check, table, &columns, widths, &err) ||
        !pg_exec(check->conn, check->arena, "SET statement_timeout = 0", NULL, &err)) {
        report_message(check->report, arena_printf(check->arena, "table %s", table->qualified),
                       VERDICT_WARN, err.msg);
        return;
    }
    for (int i = 0; i < columns.count; i++)
        propose(check, table, columns.items[i], &widths[i], columns.pages > PAGES_WHOLE_MAX);
}
