/* Iceberg schemas from JSON: Iceberg spec, "Appendix C: Schemas". */
#include "iceberg/schema.h"

typedef struct SchemaParser {
    Arena *arena;
    const char *beyond;
} SchemaParser;

static bool parse_type(SchemaParser *parser, const JsonNode *node, Str name, int level,
                       const Type **out_type, Error *err) WARN_UNUSED;

/* A number of at most two digits with blanks around it, and the character behind. */
static bool
take_number(Str *rest, char behind, int *out)
{
    size_t at = 0;
    int digits = 0;
    int number = 0;

    while (at < rest->len && rest->ptr[at] == ' ')
        at++;
    for (; at < rest->len && rest->ptr[at] >= '0' && rest->ptr[at] <= '9' && digits < 3; digits++)
        number = number * 10 + (rest->ptr[at++] - '0');
    while (at < rest->len && rest->ptr[at] == ' ')
        at++;
    if (digits < 1 || digits > 2 || at == rest->len || rest->ptr[at] != behind)
        return false;
    *rest = (Str){.ptr = rest->ptr + at + 1, .len = rest->len - at - 1};
    *out = number;
    return true;
}

/* "decimal(9,2)", or with a blank behind the comma, as Java and Python write it. */
static bool
parse_decimal(Str name, Type *out)
{
    Str start = STR("decimal(");
    int precision;
    int scale;

    if (!str_starts(name, start))
        return false;

    Str rest = {.ptr = name.ptr + start.len, .len = name.len - start.len};

    if (!take_number(&rest, ',', &precision) || !take_number(&rest, ')', &scale) || rest.len > 0)
        return false;
    if (precision < 1 || precision > 38 || scale > precision)
        return false;
    out->kind = TYPE_DECIMAL;
    out->precision = precision;
    out->scale = scale;
    return true;
}

/* The kind that writes this name; TYPE_STRING comes before TYPE_JSON, which shares its name. */
static bool
parse_plain_name(Str name, Type *out)
{
    for (int kind = 0; kind < TYPE_KIND_COUNT; kind++) {
        AUTO_BUF Buf own = {0};
        Type type = {.kind = (TypeKind) kind};

        if (kind == TYPE_DECIMAL || type_is_nested(&type))
            continue;
        type_iceberg_name(&type, &own);
        if (str_eq(buf_view(&own), name)) {
            out->kind = type.kind;
            return true;
        }
    }
    return false;
}

static const Type *
beyond_us(SchemaParser *parser, Str field_name, Str type_name)
{
    Type *type = ARENA_NEW(parser->arena, Type);

    type->kind = TYPE_BINARY;
    if (parser->beyond == NULL)
        parser->beyond =
            arena_printf(parser->arena, "%.*s: %.*s", STR_ARG(field_name), STR_ARG(type_name));
    return type;
}

static bool
parse_primitive(SchemaParser *parser, Str type_name, Str field_name, const Type **out_type,
                Error *err)
{
    Type *type = ARENA_NEW(parser->arena, Type);

    if (type_name.len == 0)
        return FAIL(err, ERR_INPUT, "field %.*s: empty type", STR_ARG(field_name));
    *out_type = type;
    if (parse_plain_name(type_name, type) || parse_decimal(type_name, type))
        return true;
    if (str_starts(type_name, STR("fixed[")))
        type->kind = TYPE_BINARY;
    else
        *out_type = beyond_us(parser, field_name, type_name);
    return true;
}

static Str
parse_default(SchemaParser *parser, const JsonNode *node)
{
    return node == NULL ? STR_NULL : node_text(parser->arena, node);
}

static bool
parse_field(SchemaParser *parser, const JsonNode *node, int level, Field *out, Error *err)
{
    TRY(node_need_str(node, "name", parser->arena, &out->name, err));
    if (!node_need_int(node, "id", &out->id, err))
        return WRAP(err, "field %.*s", STR_ARG(out->name));
    node_to_bool(node_get(node, "required"), &out->required);
    out->initial_default = parse_default(parser, node_get(node, "initial-default"));
    out->write_default = parse_default(parser, node_get(node, "write-default"));
    return parse_type(parser, node_get(node, "type"), out->name, level, &out->type, err);
}

static bool
parse_fields(SchemaParser *parser, const JsonNode *node, int level, Field **out, int *out_count,
             Error *err)
{
    const JsonNode *fields = NULL;

    TRY(node_need_array(node, "fields", &fields, err));
    if (fields == NULL)
        return FAIL(err, ERR_INPUT, "no fields");
    *out_count = (int) node_count(fields);
    *out = ARENA_ARRAY(parser->arena, Field, node_count(fields));
    for (size_t i = 0; i < node_count(fields); i++)
        TRY(parse_field(parser, node_at(fields, i), level, &(*out)[i], err));
    return true;
}

/* element, key or value of a list or map. */
static bool
parse_part(SchemaParser *parser, const JsonNode *node, const char *part, int level, Field *out,
           Error *err)
{
    char key[32];

    out->name = str_of(part);
    snprintf(key, sizeof key, "%s-id", part);
    TRY(node_need_int(node, key, &out->id, err));
    snprintf(key, sizeof key, "%s-required", part);
    out->required = strcmp(part, "key") == 0;
    node_to_bool(node_get(node, key), &out->required);
    return parse_type(parser, node_get(node, part), out->name, level + 1, &out->type, err);
}

static bool
parse_nested(SchemaParser *parser, const JsonNode *node, Str kind, int level, Type *type,
             Error *err)
{
    if (str_eqc(kind, "struct")) {
        type->kind = TYPE_STRUCT;
        return parse_fields(parser, node, level + 1, &type->fields, &type->field_count, err);
    }
    type->fields = ARENA_ARRAY(parser->arena, Field, 2);
    if (str_eqc(kind, "list")) {
        type->kind = TYPE_LIST;
        type->delimiter = ',';
        type->field_count = 1;
        return parse_part(parser, node, "element", level, &type->fields[0], err);
    }
    type->kind = TYPE_MAP;
    type->field_count = 2;
    TRY(parse_part(parser, node, "key", level, &type->fields[0], err));
    return parse_part(parser, node, "value", level, &type->fields[1], err);
}

/* Recursion stops at TYPE_DEPTH_MAX. `name` is the field's, for messages. */
static bool
parse_type(SchemaParser *parser, const JsonNode *node, Str name, int level, const Type **out_type,
           Error *err)
{
    Str kind;

    if (node_to_str(node, &kind))
        return parse_primitive(parser, kind, name, out_type, err);
    if (!node_to_str(node_get(node, "type"), &kind))
        return FAIL(err, ERR_INPUT, "field %.*s: no type", STR_ARG(name));
    if (level >= TYPE_DEPTH_MAX) {
        *out_type = beyond_us(parser, name, STR("too many levels"));
        return true;
    }
    if (!str_eqc(kind, "struct") && !str_eqc(kind, "list") && !str_eqc(kind, "map")) {
        *out_type = beyond_us(parser, name, kind);
        return true;
    }

    Type *type = ARENA_NEW(parser->arena, Type);

    *out_type = type;
    if (!parse_nested(parser, node, kind, level, type, err))
        return WRAP(err, "field %.*s", STR_ARG(name));
    return true;
}

static bool
parse_identifiers(Arena *arena, const JsonNode *node, IcebergSchema *schema, Error *err)
{
    const JsonNode *ids = NULL;

    TRY(node_need_array(node, "identifier-field-ids", &ids, err));
    schema->identifier_count = (int) node_count(ids);
    schema->identifiers = ARENA_ARRAY(arena, int, node_count(ids));
    for (size_t i = 0; i < node_count(ids); i++)
        if (!node_to_int(node_at(ids, i), &schema->identifiers[i]))
            return FAIL(err, ERR_INPUT, "identifier-field-ids[%zu] is not an integer", i);
    return true;
}

bool
iceberg_schema_parse(Arena *arena, const JsonNode *node, IcebergSchema *out_schema, Error *err)
{
    SchemaParser parser = {.arena = arena};
    IcebergSchema schema = {.schema_id = 0};
    const JsonNode *fields = node_get(node, "fields");

    if (node_get(node, "schema-id") != NULL)
        TRY(node_need_int(node, "schema-id", &schema.schema_id, err));
    TRY(parse_identifiers(arena, node, &schema, err));
    TRY(parse_fields(&parser, node, 0, &schema.fields, &schema.field_count, err));
    schema.docs = ARENA_ARRAY(arena, const char *, (size_t) schema.field_count);
    for (int i = 0; i < schema.field_count; i++) {
        Str doc;

        if (node_to_str(node_get(node_at(fields, (size_t) i), "doc"), &doc))
            schema.docs[i] = arena_str(arena, doc).ptr;
    }
    schema.beyond = parser.beyond;
    schema.json = node_text(arena, node);
    *out_schema = schema;
    return true;
}

/* --- Type names ---------------------------------------------------------------------------- */

/* The JSON of the primitive type of the field with this id, somewhere below a type or schema. */
static const JsonNode *
find_type_node(const JsonNode *type, int field_id, int level)
{
    static const char *const parts[] = {"element", "key", "value"};
    const JsonNode *found = NULL;
    int id;

    if (level > TYPE_DEPTH_MAX || !node_is_object(type))
        return NULL;
    for (size_t i = 0; i < node_count(node_get(type, "fields")) && found == NULL; i++) {
        const JsonNode *field = node_at(node_get(type, "fields"), i);

        if (node_to_int(node_get(field, "id"), &id) && id == field_id)
            return node_get(field, "type");
        found = find_type_node(node_get(field, "type"), field_id, level + 1);
    }
    for (size_t i = 0; i < 3 && found == NULL; i++) {
        char key[16];

        snprintf(key, sizeof key, "%s-id", parts[i]);
        if (node_to_int(node_get(type, key), &id) && id == field_id)
            return node_get(type, parts[i]);
        found = find_type_node(node_get(type, parts[i]), field_id, level + 1);
    }
    return found;
}

bool
iceberg_schema_type_name(const IcebergSchema *schema, int field_id, Buf *out)
{
    const Field *field = iceberg_schema_find(schema, field_id);
    AUTO_NODE JsonNode *root = NULL;
    Error ignored;
    Str name;

    if (field == NULL || type_is_nested(field->type))
        return false;
    if (schema->json.ptr == NULL) {
        type_iceberg_name(field->type, out);
        return true;
    }
    if (!node_parse(schema->json, &root, &ignored) ||
        !node_to_str(find_type_node(root, field_id, 0), &name))
        return false;
    buf_str(out, name);
    return true;
}
