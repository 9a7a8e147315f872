#include "iceberg/schema.h"

#include <assert.h>

static bool
is_key_column(const TableSchema *schema, int column)
{
    for (int i = 0; i < schema->key_count; i++)
        if (schema->key[i] == column)
            return true;
    return false;
}

/* Iceberg spec, "Identifier Field IDs": required, primitive, neither float nor double. */
static bool
may_identify(const SchemaColumn *column)
{
    TypeKind kind = column->field.type->kind;

    return column->not_null && kind != TYPE_FLOAT32 && kind != TYPE_FLOAT64 &&
           !type_is_nested(column->field.type);
}

static void
set_identifiers(Arena *arena, const TableSchema *schema, IcebergSchema *out)
{
    if (schema->key_mode != KEY_COLUMNS || schema->key_count == 0)
        return;
    for (int i = 0; i < schema->key_count; i++)
        if (!may_identify(&schema->columns[schema->key[i]]))
            return;
    out->identifier_count = schema->key_count;
    out->identifiers = ARENA_ARRAY(arena, int, (size_t) schema->key_count);
    for (int i = 0; i < schema->key_count; i++)
        out->identifiers[i] = schema->columns[schema->key[i]].field.id;
}

IcebergSchema *
iceberg_schema_from_table(Arena *arena, const TableSchema *schema, int schema_id)
{
    IcebergSchema *out = ARENA_NEW(arena, IcebergSchema);
    size_t count = (size_t) schema->column_count;

    out->schema_id = schema_id;
    out->field_count = schema->column_count;
    out->fields = ARENA_ARRAY(arena, Field, count);
    out->docs = ARENA_ARRAY(arena, const char *, count);
    for (int i = 0; i < schema->column_count; i++) {
        const SchemaColumn *column = &schema->columns[i];

        assert(column->field.id > 0);
        out->fields[i] = field_copy(arena, &column->field);
        out->fields[i].required = column->not_null && is_key_column(schema, i);
        if (column->pg_type != NULL)
            out->docs[i] = arena_strdup(arena, column->pg_type);
    }
    set_identifiers(arena, schema, out);
    return out;
}

/* --- Writing ------------------------------------------------------------------------------- */

static void write_type(JsonWriter *json, const Type *type, int level);

static void
write_default(JsonWriter *json, const char *key, Str value)
{
    if (value.ptr == NULL)
        return;
    jw_key(json, key);
    jw_raw(json, value);
}

static void
write_fields(JsonWriter *json, const Field *fields, int count, const char *const *docs, int level)
{
    jw_key(json, "fields");
    jw_array(json);
    for (int i = 0; i < count; i++) {
        jw_object(json);
        jw_key(json, "id");
        jw_int(json, fields[i].id);
        jw_key(json, "name");
        jw_str(json, fields[i].name);
        jw_key(json, "required");
        jw_bool(json, fields[i].required);
        jw_key(json, "type");
        write_type(json, fields[i].type, level + 1);
        if (docs != NULL && docs[i] != NULL) {
            jw_key(json, "doc");
            jw_cstr(json, docs[i]);
        }
        write_default(json, "initial-default", fields[i].initial_default);
        write_default(json, "write-default", fields[i].write_default);
        jw_end(json);
    }
    jw_end(json);
}

/* "element-id", "element", "element-required"; for a map's key the last is implied. */
static void
write_part(JsonWriter *json, const char *part, const Field *field, int level)
{
    char key[32];

    snprintf(key, sizeof key, "%s-id", part);
    jw_key(json, key);
    jw_int(json, field->id);
    jw_key(json, part);
    write_type(json, field->type, level + 1);
    if (strcmp(part, "key") == 0)
        return;
    snprintf(key, sizeof key, "%s-required", part);
    jw_key(json, key);
    jw_bool(json, field->required);
}

/* Recursion follows a type, at most TYPE_DEPTH_MAX levels. */
static void
write_type(JsonWriter *json, const Type *type, int level)
{
    assert(level <= TYPE_DEPTH_MAX);
    if (!type_is_nested(type)) {
        AUTO_BUF Buf name = {0};

        type_iceberg_name(type, &name);
        jw_str(json, buf_view(&name));
        return;
    }
    jw_object(json);
    jw_key(json, "type");
    if (type->kind == TYPE_LIST) {
        jw_cstr(json, "list");
        write_part(json, "element", &type->fields[0], level);
    } else if (type->kind == TYPE_MAP) {
        jw_cstr(json, "map");
        write_part(json, "key", &type->fields[0], level);
        write_part(json, "value", &type->fields[1], level);
    } else {
        jw_cstr(json, "struct");
        write_fields(json, type->fields, type->field_count, NULL, level);
    }
    jw_end(json);
}

void
iceberg_schema_write(JsonWriter *json, const IcebergSchema *schema)
{
    if (schema->json.ptr != NULL) {
        jw_raw(json, schema->json);
        return;
    }
    jw_object(json);
    jw_key(json, "type");
    jw_cstr(json, "struct");
    jw_key(json, "schema-id");
    jw_int(json, schema->schema_id);
    if (schema->identifier_count > 0) {
        jw_key(json, "identifier-field-ids");
        jw_array(json);
        for (int i = 0; i < schema->identifier_count; i++)
            jw_int(json, schema->identifiers[i]);
        jw_end(json);
    }
    write_fields(json, schema->fields, schema->field_count, schema->docs, 0);
    jw_end(json);
}

/* --- Looking up ---------------------------------------------------------------------------- */

bool
iceberg_schema_understood(const IcebergSchema *schema)
{
    return schema->beyond == NULL;
}

static const Field *
find_field(const Field *fields, int count, int field_id)
{
    for (int i = 0; i < count; i++) {
        const Field *found = &fields[i];

        if (found->id == field_id)
            return found;
        found = find_field(fields[i].type->fields, fields[i].type->field_count, field_id);
        if (found != NULL)
            return found;
    }
    return NULL;
}

const Field *
iceberg_schema_find(const IcebergSchema *schema, int field_id)
{
    return find_field(schema->fields, schema->field_count, field_id);
}

static int
last_id(const Field *fields, int count)
{
    int last = 0;

    for (int i = 0; i < count; i++) {
        int below = last_id(fields[i].type->fields, fields[i].type->field_count);

        last = fields[i].id > last ? fields[i].id : last;
        last = below > last ? below : last;
    }
    return last;
}

int
iceberg_schema_last_id(const IcebergSchema *schema)
{
    return last_id(schema->fields, schema->field_count);
}
