#include "query/view_sql.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "iceberg/default.h"
#include "query/types.h"

enum { DECIMAL_DIGITS_MAX = 38 };

/* --- names --------------------------------------------------------------------------------- */

static bool
is_same(Str a, Str b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

/* Another column than `except` has the name, to DuckDB. */
static bool
is_taken(const IcebergSchema *schema, Str name, int except)
{
    for (int i = 0; i < schema->field_count; i++)
        if (i != except && is_same(schema->fields[i].name, name))
            return true;
    return false;
}

/* The id is the column's own, so no two names that end with one are the same. */
static void
put_shown_name(Buf *name, const IcebergSchema *schema, int column)
{
    const Field *field = &schema->fields[column];
    int underscores = 0;

    buf_str(name, field->name);
    while (is_taken(schema, buf_view(name), column)) {
        buf_reset(name);
        buf_str(name, field->name);
        underscores++;
        for (int i = 0; i < underscores; i++)
            buf_byte(name, '_');
        buf_printf(name, "%d", field->id);
    }
}

/* --- columns ------------------------------------------------------------------------------- */

/* The property is of the column that has the name now. */
static bool
is_current(const TableMetadata *metadata, const Field *field)
{
    const IcebergSchema *current = metadata_current_schema(metadata);

    for (int i = 0; i < current->field_count; i++)
        if (current->fields[i].id == field->id)
            return str_eq(current->fields[i].name, field->name);
    return false;
}

/* What the property walberg.numeric.<column> says of a bare numeric column, which is text in the
 * lake: how wide its values are, "12,4", or "text" when one is no number of digits. */
typedef struct NumericNote {
    bool known;
    bool not_finite;
    long whole;
    long scale;
} NumericNote;

static NumericNote
numeric_note(const ViewTable *table, int column)
{
    const Field *field = &table->schema->fields[column];
    AUTO_BUF Buf key = {0};
    NumericNote note = {0};
    char *end;

    if (field->type->kind != TYPE_STRING || !is_current(table->metadata, field))
        return note;
    buf_cstr(&key, "walberg.numeric.");
    buf_str(&key, field->name);

    Str width = property_get(&table->metadata->properties, buf_text(&key));

    if (width.ptr == NULL || width.len > 20)
        return note;

    char text[24];

    memcpy(text, width.ptr, width.len);
    text[width.len] = '\0';
    if (strcmp(text, "text") == 0)
        return (NumericNote){.known = true, .not_finite = true};
    note.whole = strtol(text, &end, 10);
    if (end == text || *end != ',')
        return (NumericNote){0};

    const char *second = end + 1;

    note.scale = strtol(second, &end, 10);
    note.known = end > second && *end == '\0' && note.whole >= 0 && note.scale >= 0;
    return note;
}

/* Scale of the decimal that holds all values of a bare numeric column, else -1. */
static int
numeric_scale(const ViewTable *table, int column)
{
    NumericNote note = numeric_note(table, column);

    if (!note.known || note.not_finite || note.whole + note.scale > DECIMAL_DIGITS_MAX)
        return -1;
    return (int) note.scale;
}

static void
put_columns(Buf *sql, const ViewTable *table, const FileShape *shape)
{
    AUTO_BUF Buf name = {0};
    bool first = true;

    for (int i = 0; i < table->schema->field_count; i++) {
        const Field *field = &table->schema->fields[i];
        int scale = numeric_scale(table, i);

        if (field->name.len == 0)
            continue;
        buf_cstr(sql, first ? "" : ", ");
        if (scale >= 0)
            buf_printf(sql, "CAST(c%d AS DECIMAL(38,%d)) AS ", field->id, scale);
        else if (shape != NULL && shape->columns[i].expression != NULL)
            buf_printf(sql, "%s AS ", shape->columns[i].expression);
        else
            buf_printf(sql, "c%d AS ", field->id);
        buf_reset(&name);
        put_shown_name(&name, table->schema, i);
        duck_quote_identifier(sql, buf_view(&name));
        first = false;
    }
}

/* What rows of files without the column have. All defaults are given as text: the values of
 * DuckDB's MAP have one type, and it casts them. That of a nested column is in the shape of such
 * files. */
static bool
put_default(Buf *sql, const Field *field, Error *err)
{
    if (field->initial_default.ptr == NULL || type_is_nested(field->type)) {
        buf_cstr(sql, "NULL::VARCHAR");
        return true;
    }
    buf_cstr(sql, "CAST(");
    TRY(default_put_sql(sql, field, err));
    buf_cstr(sql, " AS VARCHAR)");
    return true;
}

static void
put_type(Buf *sql, const Field *field, const char *file_type)
{
    AUTO_BUF Buf type = {0};

    if (file_type != NULL)
        buf_cstr(&type, file_type);
    else
        type_duckdb_name(field->type, &type);
    duck_quote_literal(sql, buf_view(&type));
}

static bool
put_schema(Buf *sql, const IcebergSchema *schema, const FileShape *shape, Error *err)
{
    buf_cstr(sql, "schema = MAP {");
    for (int i = 0; i < schema->field_count; i++) {
        const Field *field = &schema->fields[i];

        buf_printf(sql, "%s%d: {name: 'c%d', type: ", i == 0 ? "" : ", ", field->id, field->id);
        put_type(sql, field, shape == NULL ? NULL : shape->columns[i].file_type);
        buf_cstr(sql, ", default_value: ");
        TRY(put_default(sql, field, err));
        buf_byte(sql, '}');
    }
    buf_byte(sql, '}');
    return true;
}

/* --- scans --------------------------------------------------------------------------------- */

typedef struct Scan {
    const FileShape *shape;
    const char *const *files;
    size_t count;
    bool numbered;
} Scan;

static bool
put_scan(Buf *sql, const ViewTable *table, const Scan *scan, Error *err)
{
    buf_cstr(sql, "SELECT ");
    put_columns(sql, table, scan->shape);
    buf_cstr(sql, " FROM read_parquet([");
    for (size_t i = 0; i < scan->count; i++) {
        if (i > 0)
            buf_byte(sql, ',');
        duck_quote_literal(sql, str_of(scan->files[i]));
    }
    buf_cstr(sql, "], ");
    TRY(put_schema(sql, table->schema, scan->shape, err));
    /* folders like day=2020-01-01 are Iceberg's business, not columns */
    buf_printf(sql, ", hive_partitioning = false%s)",
               scan->numbered ? ", file_row_number = true" : "");
    return true;
}

static void
put_no_rows(Buf *sql, const ViewTable *table)
{
    buf_cstr(sql, "SELECT ");
    put_columns(sql, table, NULL);
    buf_cstr(sql, " FROM (SELECT ");
    for (int i = 0; i < table->schema->field_count; i++) {
        buf_printf(sql, "%sCAST(NULL AS ", i == 0 ? "" : ", ");
        type_duckdb_name(table->schema->fields[i].type, sql);
        buf_printf(sql, ") AS c%d", table->schema->fields[i].id);
    }
    buf_cstr(sql, ") WHERE false");
}

/* The scans of one group; the files before it are the plan's first `clean` and `dirty`. */
static bool
put_group(Buf *sql, const ViewTable *table, const PlanGroup *group, size_t clean, size_t dirty,
          Error *err)
{
    const TablePlan *plan = table->plan;

    if (group->clean_count > 0) {
        const Scan scan = {
            .shape = group->shape, .files = plan->clean + clean, .count = group->clean_count};

        TRY(put_scan(sql, table, &scan, err));
    }
    if (group->clean_count > 0 && group->dirty_count > 0)
        buf_cstr(sql, " UNION ALL ");
    if (group->dirty_count > 0) {
        const Scan scan = {.shape = group->shape,
                           .files = plan->dirty + dirty,
                           .count = group->dirty_count,
                           .numbered = true};

        TRY(put_scan(sql, table, &scan, err));
        buf_printf(sql, " WHERE walberg_live(%" PRIu64 ", file_index", table->dead_set);
        if (dirty > 0)
            buf_printf(sql, " + %zu", dirty);
        buf_cstr(sql, ", file_row_number)");
    }
    return true;
}

bool
view_put(Buf *sql, const ViewTable *table, Error *err)
{
    const TablePlan *plan = table->plan;
    size_t clean = 0;
    size_t dirty = 0;

    buf_cstr(sql, "CREATE OR REPLACE VIEW ");
    duck_quote_identifier(sql, table->space);
    buf_byte(sql, '.');
    duck_quote_identifier(sql, table->name);
    buf_cstr(sql, " AS ");
    if (plan == NULL || plan->group_count == 0) {
        put_no_rows(sql, table);
        return true;
    }
    for (size_t i = 0; i < plan->group_count; i++) {
        buf_cstr(sql, i == 0 ? "" : " UNION ALL ");
        TRY(put_group(sql, table, &plan->groups[i], clean, dirty, err));
        clean += plan->groups[i].clean_count;
        dirty += plan->groups[i].dirty_count;
    }
    return true;
}

/* --- numbers as text ----------------------------------------------------------------------- */

static void
add_text_number(TextNumbers *numbers, const ViewTable *table, int column, const NumericNote *note)
{
    AUTO_BUF Buf name = {0};
    size_t columns = (size_t) table->schema->field_count;

    if (numbers->arena == NULL) {
        numbers->arena = arena_new();
        numbers->items = ARENA_ARRAY(numbers->arena, TextNumber, columns);
    }
    put_shown_name(&name, table->schema, column);
    numbers->items[numbers->count++] = (TextNumber){
        .column = arena_str(numbers->arena, buf_view(&name)),
        .why = note->not_finite
                   ? STR("Values were NaN or infinite, which no decimal is.")
                   : arena_strf(numbers->arena,
                                "Its values need %ld digits before the point and %ld behind it, "
                                "and a decimal has %d.",
                                note->whole, note->scale, DECIMAL_DIGITS_MAX),
    };
}

TextNumbers
view_text_numbers(const ViewTable *table)
{
    TextNumbers numbers = {0};

    for (int i = 0; i < table->schema->field_count; i++) {
        NumericNote note = numeric_note(table, i);

        if (note.known && numeric_scale(table, i) < 0 && table->schema->fields[i].name.len > 0)
            add_text_number(&numbers, table, i, &note);
    }
    return numbers;
}

void
text_numbers_done(TextNumbers *numbers)
{
    arena_free(numbers->arena);
    *numbers = (TextNumbers){0};
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
    AUTO_BUF Buf name = {0};
    size_t count = 0;

    for (int i = 0; i < schema->field_count; i++) {
        const Field *field = &schema->fields[i];
        const char *doc = schema->docs == NULL ? NULL : schema->docs[i];
        int scale = numeric_scale(table, i);

        if (field->name.len == 0)
            continue;
        buf_reset(&name);
        put_shown_name(&name, schema, i);
        attributes[count] = (PgAttribute){
            .number = (int) count + 1,
            .name = arena_str(arena, buf_view(&name)),
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
