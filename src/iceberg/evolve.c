#include "iceberg/evolve.h"

#include <assert.h>
#include <stdlib.h>

#include "iceberg/default_json.h"
#include "iceberg/spec.h"

/* --- attnums --------------------------------------------------------------------------------- */

Str
iceberg_attnums(Arena *arena, const TableSchema *schema)
{
    AUTO_BUF Buf text = {0};

    for (int i = 0; i < schema->column_count; i++)
        buf_printf(&text, "%s%d:%d%s", i > 0 ? "," : "", schema->columns[i].field.id,
                   schema->columns[i].attnum,
                   type_is_json_array(schema->columns[i].field.type) ? "j" : "");
    if (schema->attnum_max > 0)
        buf_printf(&text, ",0:%d", schema->attnum_max);
    return arena_str(arena, buf_view(&text));
}

typedef struct Pair {
    int id;
    int attnum;
    bool json;
} Pair;

/* The pair with this id or attnum; zeros: none. */
static Pair
find_entry(const TableMetadata *metadata, int wanted, bool by_id)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str text = property_get(&metadata->properties, "walberg.attnums");
    const char *at = text.ptr == NULL ? "" : arena_str(arena, text).ptr;

    while (*at != '\0') {
        char *end;
        Pair pair = {.id = (int) strtol(at, &end, 10)};

        if (*end == ':')
            pair.attnum = (int) strtol(end + 1, &end, 10);
        pair.json = *end == 'j';
        if ((by_id ? pair.id : pair.attnum) == wanted)
            return pair;
        end += pair.json;
        if (*end != ',')
            break;
        at = end + 1;
    }
    return (Pair){0};
}

/* The number before or after the colon of the pair that has `wanted` on the other side; 0: none. */
static int
find_pair(const TableMetadata *metadata, int wanted, bool by_id)
{
    Pair pair = find_entry(metadata, wanted, by_id);

    return by_id ? pair.attnum : pair.id;
}

static const Field *
find_field(const TableMetadata *metadata, int id)
{
    const IcebergSchema *lake = metadata_current_schema(metadata);

    for (int i = 0; i < lake->field_count; i++)
        if (lake->fields[i].id == id)
            return &lake->fields[i];
    return NULL;
}

static const Field *
find_attnum(const TableMetadata *metadata, int attnum)
{
    return find_field(metadata, find_pair(metadata, attnum, false));
}

/* --- types ----------------------------------------------------------------------------------- */

typedef struct Fitting {
    Arena *arena; /* the new schema's */
    int last_id;
} Fitting;

/* Iceberg knows no JSON: it is a string there. */
static TypeKind
stored_kind(const Type *type)
{
    return type->kind == TYPE_JSON ? TYPE_STRING : type->kind;
}

/* Iceberg spec, "Schema Evolution", valid promotions of version 2. */
static bool
promotes(const Type *from, const Type *to)
{
    if (from->kind == TYPE_DECIMAL && to->kind == TYPE_DECIMAL)
        return from->scale == to->scale && from->precision <= to->precision;
    return stored_kind(from) == stored_kind(to) ||
           (from->kind == TYPE_INT32 && to->kind == TYPE_INT64) ||
           (from->kind == TYPE_FLOAT32 && to->kind == TYPE_FLOAT64);
}

static void
fresh_ids(Fitting *fit, Field *field)
{
    int next = fit->last_id + 1;

    field->id = next++;
    type_assign_ids((Type *) (uintptr_t) field->type, &next);
    fit->last_id = next - 1;
}

static const Field *
find_member(const Type *type, Str name)
{
    for (int i = 0; i < type->field_count; i++)
        if (str_eq(type->fields[i].name, name))
            return &type->fields[i];
    return NULL;
}

static bool fit_type(Fitting *fit, const Type *lake, const Type *source);

/* Members of structs have no attnum: one that vanished while another appeared may be a rename. */
static bool
may_be_renamed(const Type *lake, const Type *source)
{
    bool appeared = false;
    bool vanished = false;

    for (int i = 0; i < source->field_count; i++)
        appeared = appeared || find_member(lake, source->fields[i].name) == NULL;
    for (int i = 0; i < lake->field_count; i++)
        vanished = vanished || find_member(source, lake->fields[i].name) == NULL;
    return appeared && vanished;
}

/* Members are matched by name: one that is not there yet is new. The key of a map may not change
 * at all. Recursion follows a type: at most TYPE_DEPTH_MAX levels. */
static bool
fit_members(Fitting *fit, const Type *lake, const Type *source)
{
    if (source->kind == TYPE_STRUCT && may_be_renamed(lake, source))
        return false;
    for (int i = 0; i < source->field_count; i++) {
        Field *member = &source->fields[i];
        const Field *known = find_member(lake, member->name);

        if (known == NULL && source->kind == TYPE_STRUCT) {
            fresh_ids(fit, member);
            continue;
        }
        if (known == NULL || !fit_type(fit, known->type, member->type))
            return false;
        if (source->kind == TYPE_MAP && i == 0 && !type_eq(known->type, member->type))
            return false;
        member->id = known->id;
        member->required = known->required;
        member->initial_default = known->initial_default;
        member->write_default = known->write_default;
    }
    return true;
}

/* Whether values stored as `lake` read right as `source`; gives source's parts their ids. */
static bool
fit_type(Fitting *fit, const Type *lake, const Type *source)
{
    if (!promotes(lake, source))
        return false;
    return !type_is_nested(source) || fit_members(fit, lake, source);
}

/* --- columns --------------------------------------------------------------------------------- */

static TableSchema *
copy_table(const TableSchema *source, Arena **out_arena)
{
    TableSchema *copy = schema_new(out_arena);

    copy->relid = source->relid;
    copy->schema_name = arena_str(*out_arena, source->schema_name);
    copy->table_name = arena_str(*out_arena, source->table_name);
    copy->qualified = arena_strdup(*out_arena, source->qualified);
    copy->attnum_max = source->attnum_max;
    copy->identity = source->identity;
    copy->key_mode = source->key_mode;
    copy->key = ARENA_ARRAY(*out_arena, int, (size_t) source->key_count);
    return copy;
}

/* An initial default never changes: files without the field are read by it for good. */
static void
copy_defaults(const Fitting *fit, const Field *from, Field *to)
{
    if (from->initial_default.ptr != NULL)
        to->initial_default = arena_str(fit->arena, from->initial_default);
    if (from->write_default.ptr != NULL)
        to->write_default = arena_str(fit->arena, from->write_default);
}

/* Old rows have one value that needs no copy to be read. Spec, "Default Values". */
static bool
fill(const Fitting *fit, const TableMetadata *metadata, SchemaColumn *column)
{
    Field *field = &column->field;

    if (metadata->format_version < 3 || column->filled_with.ptr == NULL)
        return false;
    field->initial_default = default_from_text(fit->arena, field->type, column->filled_with);
    field->write_default = field->initial_default;
    return field->initial_default.ptr != NULL;
}

/* Old tuples of the stream have the default: a row that reads NULL would not be found by it. */
static bool
finds_rows(const TableSchema *source, int column)
{
    bool finds = source->key_mode == KEY_FULL_ROW;

    for (int i = 0; i < source->key_count; i++)
        finds = finds || source->key[i] == column;
    return finds;
}

static void
put_type_name(Buf *out, const Type *type)
{
    if (type_is_nested(type))
        type_duckdb_name(type, out);
    else
        type_iceberg_name(type, out);
}

static bool
fit_column(Fitting *fit, const TableMetadata *metadata, const FitWant *want, SchemaColumn *column,
           Error *err)
{
    bool null_is_fine = want->defaults_are_null &&
                        !finds_rows(want->source, schema_find_attnum(want->source, column->attnum));
    const Pair pair = find_entry(metadata, column->attnum, false);
    const Field *known = find_field(metadata, pair.id);
    AUTO_BUF Buf is = {0};
    AUTO_BUF Buf was = {0};

    if (known != NULL && pair.json == type_is_json_array(column->field.type) &&
        fit_type(fit, known->type, column->field.type)) {
        column->field.id = known->id;
        copy_defaults(fit, known, &column->field);
        return true;
    }
    if (known == NULL && !want->fresh && pair.id != 0)
        return FAIL(err, ERR_COPY, "column %.*s is gone from the lake: another writer dropped it",
                    STR_ARG(column->field.name));
    if (known == NULL && !want->fresh && column->attnum <= find_pair(metadata, 0, true))
        return FAIL(err, ERR_COPY, "column %.*s had values before it arrived: it was generated",
                    STR_ARG(column->field.name));
    if (known == NULL && column->filled && !want->fresh && !fill(fit, metadata, column) &&
        !null_is_fine)
        return FAIL(err, ERR_COPY, "column %.*s was added with a default that old rows have, too",
                    STR_ARG(column->field.name));
    if (known != NULL && !want->fresh) {
        put_type_name(&is, column->field.type);
        put_type_name(&was, known->type);
        if (pair.json != type_is_json_array(column->field.type))
            buf_cstr(pair.json ? &was : &is, " of JSON");
        return FAIL(err, ERR_COPY,
                    "column %.*s changed its type to %s (%s), and the lake has it as %s",
                    STR_ARG(column->field.name), column->pg_type, buf_text(&is), buf_text(&was));
    }
    fresh_ids(fit, &column->field);
    return true;
}

static bool
fit_columns(Fitting *fit, const TableMetadata *metadata, const FitWant *want, TableSchema *schema,
            Error *err)
{
    const TableSchema *source = want->source;

    schema->columns = ARENA_ARRAY(fit->arena, SchemaColumn, (size_t) source->column_count);
    for (int i = 0; i < source->column_count; i++) {
        schema->columns[i] = schema_copy_column(fit->arena, &source->columns[i]);
        TRY(fit_column(fit, metadata, want, &schema->columns[i], err));
    }
    schema->column_count = source->column_count;
    schema->key_count = source->key_count;
    for (int i = 0; i < source->key_count; i++)
        schema->key[i] = source->key[i];
    schema->last_field_id = fit->last_id;
    return true;
}

/* --- schemas --------------------------------------------------------------------------------- */

/* A field never becomes required later; one that is stays so as long as the source's key says it.
 * Then the identifier fields are only those if they are all required. */
static void
keep_optional(const TableMetadata *metadata, const TableSchema *schema, IcebergSchema *next)
{
    bool identify = true;

    for (int i = 0; i < next->field_count; i++) {
        const Field *known = find_attnum(metadata, schema->columns[i].attnum);

        if (known == NULL || known->id != next->fields[i].id || !known->required)
            next->fields[i].required = false;
    }
    for (int i = 0; i < next->identifier_count; i++)
        identify = identify && iceberg_schema_find(next, next->identifiers[i])->required;
    if (!identify)
        next->identifier_count = 0;
}

static bool
same_type(const Type *a, const Type *b)
{
    bool same = stored_kind(a) == stored_kind(b) && a->precision == b->precision &&
                a->scale == b->scale && a->field_count == b->field_count;

    for (int i = 0; i < a->field_count && same; i++)
        same = str_eq(a->fields[i].name, b->fields[i].name) && a->fields[i].id == b->fields[i].id &&
               a->fields[i].required == b->fields[i].required &&
               same_type(a->fields[i].type, b->fields[i].type);
    return same;
}

static bool
same_doc(const IcebergSchema *a, const IcebergSchema *b, int field)
{
    const char *x = a->docs == NULL || a->docs[field] == NULL ? "" : a->docs[field];
    const char *y = b->docs == NULL || b->docs[field] == NULL ? "" : b->docs[field];

    return strcmp(x, y) == 0;
}

static bool
same_schema(const IcebergSchema *a, const IcebergSchema *b)
{
    bool same = a->field_count == b->field_count && a->identifier_count == b->identifier_count;

    for (int i = 0; i < a->identifier_count && same; i++)
        same = a->identifiers[i] == b->identifiers[i];
    for (int i = 0; i < a->field_count && same; i++)
        same = a->fields[i].id == b->fields[i].id && str_eq(a->fields[i].name, b->fields[i].name) &&
               a->fields[i].required == b->fields[i].required && same_doc(a, b, i) &&
               str_eq(a->fields[i].initial_default, b->fields[i].initial_default) &&
               str_eq(a->fields[i].write_default, b->fields[i].write_default) &&
               same_type(a->fields[i].type, b->fields[i].type);
    return same;
}

bool
iceberg_fit_schema(Arena *arena, const TableMetadata *metadata, const FitWant *want,
                   SchemaFit *out_fit, Error *err)
{
    Fitting fitting = {.last_id = metadata->last_column_id};
    TableSchema *schema = copy_table(want->source, &fitting.arena);

    if (!fit_columns(&fitting, metadata, want, schema, err)) {
        schema_unref(schema);
        return false;
    }

    IcebergSchema *next = iceberg_schema_from_table(arena, schema, 0);
    Str attnums = iceberg_attnums(arena, schema);

    keep_optional(metadata, schema, next);
    for (int i = 0; i < next->field_count; i++)
        schema->columns[i].field.required = next->fields[i].required;
    *out_fit = (SchemaFit){
        .schema = schema,
        .next = next,
        .last_column_id = fitting.last_id,
        .attnums = attnums,
    };
    if (same_schema(next, metadata_current_schema(metadata)) &&
        str_eq(attnums, property_get(&metadata->properties, "walberg.attnums")))
        out_fit->next = NULL;
    return true;
}

/* type_oid stays 0: the lake does not tell how Postgres spells the values (money, delimiters of
 * arrays), so no row may be parsed by this type. */
static SchemaColumn
lake_column(Arena *arena, const TableMetadata *metadata, int field)
{
    const IcebergSchema *lake = metadata_current_schema(metadata);
    SchemaColumn column = {
        .field = field_copy(arena, &lake->fields[field]),
        .attnum = find_pair(metadata, lake->fields[field].id, true),
        .pg_type = arena_strdup(
            arena, lake->docs == NULL || lake->docs[field] == NULL ? "" : lake->docs[field]),
    };

    return column;
}

TableSchema *
iceberg_lake_shape(const TableMetadata *metadata, const TableSchema *source)
{
    const IcebergSchema *lake = metadata_current_schema(metadata);
    Arena *arena;
    TableSchema *shape = copy_table(source, &arena);

    shape->attnum_max = find_pair(metadata, 0, true);
    shape->columns = ARENA_ARRAY(arena, SchemaColumn, (size_t) lake->field_count);
    shape->column_count = lake->field_count;
    for (int i = 0; i < lake->field_count; i++)
        shape->columns[i] = lake_column(arena, metadata, i);
    for (int i = 0; i < source->key_count; i++) {
        int at = schema_find_attnum(shape, source->columns[source->key[i]].attnum);

        if (at >= 0)
            shape->key[shape->key_count++] = at;
    }
    if (shape->key_count != source->key_count) {
        shape->key_mode = KEY_NONE; /* until the stream says what its key is */
        shape->key_count = 0;
    }
    shape->last_field_id = metadata->last_column_id;
    return shape;
}

/* The id of an equal schema that the table has, else a new one of it. */
static int
add_schema(Arena *arena, TableMetadata *out, const IcebergSchema *next)
{
    IcebergSchema *schemas = ARENA_ARRAY(arena, IcebergSchema, out->schema_count + 1);
    int id = 0;

    for (size_t i = 0; i < out->schema_count; i++) {
        if (same_schema(&out->schemas[i], next))
            return out->schemas[i].schema_id;
        if (out->schemas[i].schema_id >= id)
            id = out->schemas[i].schema_id + 1;
        schemas[i] = out->schemas[i];
    }
    schemas[out->schema_count] = *next;
    schemas[out->schema_count++].schema_id = id;
    out->schemas = schemas;
    return id;
}

TableMetadata *
metadata_set_schema(Arena *arena, const TableMetadata *metadata, const SchemaFit *fit)
{
    TableMetadata *out = ARENA_NEW(arena, TableMetadata);

    *out = *metadata;
    out->properties =
        property_set(arena, &metadata->properties, STR("walberg.attnums"), fit->attnums);
    if (out->last_column_id < fit->last_column_id)
        out->last_column_id = fit->last_column_id;
    out->current_schema_id = add_schema(arena, out, fit->next);
    metadata_free_spec_names(arena, out);
    return out;
}
