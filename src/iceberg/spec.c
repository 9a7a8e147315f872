#include "iceberg/spec.h"

#include <assert.h>

/* --- From settings --------------------------------------------------------------------------- */

/* "at_day", "id_bucket_16": the names that Java gives when it changes a spec. */
static Str
field_name(Arena *arena, Transform transform, Str column)
{
    switch (transform.kind) {
    case TRANSFORM_IDENTITY:
        return arena_str(arena, column);
    case TRANSFORM_BUCKET:
        return arena_strf(arena, "%.*s_bucket_%d", STR_ARG(column), transform.width);
    case TRANSFORM_TRUNCATE:
        return arena_strf(arena, "%.*s_trunc_%d", STR_ARG(column), transform.width);
    case TRANSFORM_YEAR:
        return arena_strf(arena, "%.*s_year", STR_ARG(column));
    case TRANSFORM_MONTH:
        return arena_strf(arena, "%.*s_month", STR_ARG(column));
    case TRANSFORM_DAY:
        return arena_strf(arena, "%.*s_day", STR_ARG(column));
    case TRANSFORM_HOUR:
        return arena_strf(arena, "%.*s_hour", STR_ARG(column));
    case TRANSFORM_VOID:
        break;
    }
    return arena_strf(arena, "%.*s_null", STR_ARG(column));
}

static PartitionField
make_field(Arena *arena, const PartitionTerm *term, const SchemaColumn *column)
{
    AUTO_BUF Buf text = {0};

    transform_text(term->transform, &text);
    return (PartitionField){
        .source_id = column->field.id,
        .name = field_name(arena, term->transform, column->field.name),
        .transform = arena_str(arena, buf_view(&text)),
    };
}

static bool
unknown_column(Arena *arena, const PartitionTerm *term, const TableSchema *schema, Error *err)
{
    const char *dot = memchr(term->column.ptr, '.', term->column.len);
    AUTO_BUF Buf names = {0};

    (void) arena;
    if (dot != NULL) {
        Str top = {.ptr = term->column.ptr, .len = (size_t) (dot - term->column.ptr)};
        int at = schema_find_column(schema, top);

        if (at >= 0 && type_is_nested(schema->columns[at].field.type))
            return FAIL(err, ERR_INPUT,
                        "\"%.*s\": parts of column %.*s cannot be partitioned by\n"
                        "hint: partition by a column of a plain type",
                        STR_ARG(term->text), STR_ARG(top));
    }
    for (int i = 0; i < schema->column_count && names.len < 200; i++)
        buf_printf(&names, "%s%.*s", i > 0 ? ", " : "", STR_ARG(schema->columns[i].field.name));
    return FAIL(err, ERR_INPUT, "\"%.*s\": %s has no column %.*s\nhint: its columns are %s",
                STR_ARG(term->text), schema->qualified, STR_ARG(term->column), buf_text(&names));
}

static bool
check_type(const PartitionTerm *term, const SchemaColumn *column, Error *err)
{
    AUTO_BUF Buf type = {0};

    if (transform_takes(term->transform, column->field.type))
        return true;
    if (type_is_nested(column->field.type))
        return FAIL(err, ERR_INPUT,
                    "\"%.*s\": column %.*s (%s) is nested, and partitions are by plain columns",
                    STR_ARG(term->text), STR_ARG(column->field.name), column->pg_type);
    type_iceberg_name(column->field.type, &type);
    return FAIL(err, ERR_INPUT,
                "\"%.*s\": column %.*s (%s) is of type %s in the lake\n"
                "hint: this transform takes %s",
                STR_ARG(term->text), STR_ARG(column->field.name), column->pg_type, buf_text(&type),
                transform_takes_text(term->transform));
}

/* Java allows one field per source and transform, and one time transform per source: two of them
 * say what the finer one says alone. */
static bool
check_twice(const PartitionSpec *spec, const PartitionField *field, const PartitionTerm *term,
            Error *err)
{
    Transform other = {0};

    for (int i = 0; i < spec->field_count; i++) {
        if (spec->fields[i].source_id != field->source_id)
            continue;
        if (str_eq(spec->fields[i].transform, field->transform))
            return FAIL(err, ERR_INPUT, "\"%.*s\" is there twice", STR_ARG(term->text));
        if (transform_is_time(term->transform) &&
            transform_parse(spec->fields[i].transform, &other) && transform_is_time(other))
            return FAIL(err, ERR_INPUT,
                        "\"%.*s\": column %.*s is partitioned by %.*s already\n"
                        "hint: keep the finer one, it serves both",
                        STR_ARG(term->text), STR_ARG(term->column),
                        STR_ARG(spec->fields[i].transform));
    }
    return true;
}

static bool
resolve_term(Arena *arena, const PartitionTerm *term, const TableSchema *schema,
             PartitionSpec *spec, Error *err)
{
    int at = schema_find_column(schema, term->column);

    if (at < 0)
        return unknown_column(arena, term, schema, err);
    TRY(check_type(term, &schema->columns[at], err));

    PartitionField field = make_field(arena, term, &schema->columns[at]);

    TRY(check_twice(spec, &field, term, err));
    spec->fields[spec->field_count++] = field;
    return true;
}

bool
partition_spec_resolve(Arena *arena, const PartitionRule *rule, const TableSchema *schema,
                       PartitionSpec *out_spec, Error *err)
{
    PartitionSpec spec = {.fields = ARENA_ARRAY(arena, PartitionField, rule->count + 1),
                          .json = STR_NULL};

    for (size_t i = 0; i < rule->count; i++)
        if (!resolve_term(arena, &rule->terms[i], schema, &spec, err))
            return WRAP(err, "%s", rule->place);
    *out_spec = spec;
    return true;
}

Str
partition_rule_text(Arena *arena, const PartitionRule *rule)
{
    AUTO_BUF Buf text = {0};

    for (size_t i = 0; i < rule->count; i++) {
        if (i > 0)
            buf_cstr(&text, ", ");
        transform_text(rule->terms[i].transform, &text);
        buf_printf(&text, "(%.*s)", STR_ARG(rule->terms[i].column));
    }
    return arena_str(arena, buf_view(&text));
}

Str
partition_spec_text(Arena *arena, const PartitionSpec *spec, const TableSchema *schema)
{
    AUTO_BUF Buf text = {0};

    for (int i = 0; i < spec->field_count; i++) {
        const PartitionField *field = &spec->fields[i];
        Str column = field->name;

        for (int c = 0; c < schema->column_count; c++)
            if (schema->columns[c].field.id == field->source_id)
                column = schema->columns[c].field.name;
        buf_printf(&text, "%s%.*s(%.*s)", i > 0 ? ", " : "", STR_ARG(field->transform),
                   STR_ARG(column));
    }
    return arena_str(arena, buf_view(&text));
}

/* --- From one to the next -------------------------------------------------------------------- */

/* Whether the field's column is there, of a type that its transform takes. */
static bool
lives(const PartitionField *field, const TableSchema *schema)
{
    Transform transform = {0};

    if (!transform_parse(field->transform, &transform))
        return false;
    for (int i = 0; i < schema->column_count; i++)
        if (schema->columns[i].field.id == field->source_id)
            return transform_takes(transform, schema->columns[i].field.type);
    return false;
}

void
partition_spec_follow(Arena *arena, const PartitionSpec *spec, const PartitionRule *rule,
                      const TableSchema *schema, PartitionSpec *out_spec, int *out_lost)
{
    PartitionSpec next = {
        .fields = ARENA_ARRAY(arena, PartitionField, (size_t) spec->field_count + rule->count + 1)};
    Error ignored;

    *out_lost = 0;
    for (int i = 0; i < spec->field_count; i++) {
        if (lives(&spec->fields[i], schema))
            next.fields[next.field_count++] = spec->fields[i];
        else
            ++*out_lost;
    }
    for (size_t i = 0; i < rule->count && next.field_count < (int) rule->count; i++)
        (void) !resolve_term(arena, &rule->terms[i], schema, &next, &ignored);
    *out_spec = next;
}

bool
partition_spec_same(const PartitionSpec *a, const PartitionSpec *b)
{
    bool same = a->field_count == b->field_count;

    for (int i = 0; same && i < a->field_count; i++)
        same = a->fields[i].source_id == b->fields[i].source_id &&
               str_eq(a->fields[i].transform, b->fields[i].transform);
    return same;
}

PartitionSpec
partition_spec_copy(Arena *arena, const PartitionSpec *spec)
{
    PartitionSpec copy = {.spec_id = spec->spec_id,
                          .field_count = spec->field_count,
                          .fields = ARENA_ARRAY(arena, PartitionField, (size_t) spec->field_count)};

    for (int i = 0; i < spec->field_count; i++) {
        copy.fields[i] = spec->fields[i];
        copy.fields[i].name = arena_str(arena, spec->fields[i].name);
        copy.fields[i].transform = arena_str(arena, spec->fields[i].transform);
    }
    return copy;
}

/* The field of the same source and transform in any spec of the table, newest first. */
static const PartitionField *
find_used(const TableMetadata *metadata, const PartitionField *wanted)
{
    for (size_t s = metadata->spec_count; s-- > 0;) {
        const PartitionSpec *spec = &metadata->specs[s];

        for (int i = 0; i < spec->field_count; i++)
            if (spec->fields[i].source_id == wanted->source_id &&
                str_eq(spec->fields[i].transform, wanted->transform))
                return &spec->fields[i];
    }
    return NULL;
}

/* Whether a schema of the table has a column of this name that the field is not made of. Not only
 * the current one: Java binds every spec to the schema that it reads by, also an old snapshot's. */
static bool
is_another_column(const TableMetadata *metadata, const PartitionField *field, Str name)
{
    for (size_t s = 0; s < metadata->schema_count; s++) {
        const IcebergSchema *schema = &metadata->schemas[s];

        for (int i = 0; i < schema->field_count; i++)
            if (str_eq(schema->fields[i].name, name) && schema->fields[i].id != field->source_id)
                return true;
    }
    return false;
}

static bool
is_own_column(const TableMetadata *metadata, const PartitionField *field, Str name)
{
    const Field *source = iceberg_schema_find(metadata_current_schema(metadata), field->source_id);

    return source != NULL && str_eq(source->name, name);
}

/* Readers make one struct of the fields of all specs. */
static bool
is_another_field(const PartitionSpec *spec, const PartitionField *field, Str name)
{
    for (int i = 0; i < spec->field_count; i++)
        if (spec->fields[i].field_id != field->field_id && str_eq(spec->fields[i].name, name))
            return true;
    return false;
}

/* Java refuses a table where a partition field is called like a column that it is not made of, or
 * like another field, and a new one that is called like its column without being it. `spec`: one
 * that is not among the table's yet, or NULL. */
static bool
name_is_free(const TableMetadata *metadata, const PartitionSpec *spec, const PartitionField *field,
             Str name)
{
    if (spec != NULL && is_another_field(spec, field, name))
        return false;
    for (size_t s = 0; s < metadata->spec_count; s++)
        if (is_another_field(&metadata->specs[s], field, name))
            return false;
    if (!str_eqc(field->transform, "identity") && is_own_column(metadata, field, name))
        return false;
    return !is_another_column(metadata, field, name);
}

static Str
free_name(Arena *arena, const TableMetadata *metadata, const PartitionSpec *spec,
          const PartitionField *field)
{
    Str name = field->name;

    for (int n = 2; !name_is_free(metadata, spec, field, name); n++)
        name = arena_strf(arena, "%.*s_%d", STR_ARG(field->name), n);
    return name;
}

/* A field is called the same in every spec that has it. */
static void
rename_field(Arena *arena, TableMetadata *metadata, int field_id, Str name)
{
    for (size_t s = 0; s < metadata->spec_count; s++) {
        PartitionSpec *spec = &metadata->specs[s];
        bool copied = false;

        for (int i = 0; i < spec->field_count; i++) {
            if (spec->fields[i].field_id != field_id)
                continue;
            if (!copied)
                *spec = partition_spec_copy(arena, spec);
            copied = true;
            spec->fields[i].name = name;
        }
    }
}

void
metadata_free_spec_names(Arena *arena, TableMetadata *metadata)
{
    PartitionSpec *specs = ARENA_ARRAY(arena, PartitionSpec, metadata->spec_count);

    for (size_t s = 0; s < metadata->spec_count; s++)
        specs[s] = metadata->specs[s];
    metadata->specs = specs;
    for (size_t s = 0; s < metadata->spec_count; s++)
        for (int i = 0; i < specs[s].field_count; i++) {
            PartitionField field = specs[s].fields[i];

            if (is_another_column(metadata, &field, field.name))
                rename_field(arena, metadata, field.field_id,
                             free_name(arena, metadata, NULL, &field));
        }
}

static void
add_field(Arena *arena, TableMetadata *out, PartitionSpec *spec, const PartitionField *wanted)
{
    const PartitionField *used = find_used(out, wanted);
    PartitionField field = *wanted;

    if (used != NULL) {
        field.field_id = used->field_id;
        field.name = used->name;
    } else {
        field.field_id = ++out->last_partition_id;
    }
    field.name = free_name(arena, out, spec, &field);
    spec->fields[spec->field_count++] = field;
}

TableMetadata *
metadata_set_spec(Arena *arena, const TableMetadata *metadata, const PartitionSpec *wanted)
{
    TableMetadata *out = ARENA_NEW(arena, TableMetadata);
    PartitionSpec spec = {.fields =
                              ARENA_ARRAY(arena, PartitionField, (size_t) wanted->field_count + 1)};

    *out = *metadata;
    for (size_t i = 0; i < metadata->spec_count; i++) {
        if (partition_spec_same(&metadata->specs[i], wanted)) {
            out->default_spec_id = metadata->specs[i].spec_id;
            return out;
        }
        if (metadata->specs[i].spec_id >= spec.spec_id)
            spec.spec_id = metadata->specs[i].spec_id + 1;
    }
    for (int i = 0; i < wanted->field_count; i++)
        add_field(arena, out, &spec, &wanted->fields[i]);
    out->specs = ARENA_ARRAY(arena, PartitionSpec, metadata->spec_count + 1);
    for (size_t i = 0; i < metadata->spec_count; i++)
        out->specs[i] = metadata->specs[i];
    out->specs[out->spec_count++] = spec;
    out->default_spec_id = spec.spec_id;
    return out;
}

const PartitionSpec *
metadata_default_spec(const TableMetadata *metadata)
{
    const PartitionSpec *spec = metadata_find_spec(metadata, metadata->default_spec_id);

    assert(spec != NULL); /* metadata_parse() checks it */
    return spec;
}

static bool
has_sources(const IcebergSchema *schema, const PartitionSpec *spec)
{
    for (int i = 0; i < spec->field_count; i++)
        if (iceberg_schema_find(schema, spec->fields[i].source_id) == NULL)
            return false;
    return true;
}

const IcebergSchema *
metadata_spec_schema(const TableMetadata *metadata, const PartitionSpec *spec)
{
    const IcebergSchema *current = metadata_current_schema(metadata);

    if (has_sources(current, spec))
        return current;
    for (size_t i = metadata->schema_count; i-- > 0;)
        if (has_sources(&metadata->schemas[i], spec))
            return &metadata->schemas[i];
    return current;
}
