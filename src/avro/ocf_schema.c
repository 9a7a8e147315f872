/* Avro schemas from JSON: Avro 1.12 specification, "Schema Declaration". Names are compared as
 * written, namespace included: Iceberg's writers use none. */
#include "avro/json_node.h"
#include "avro/ocf.h"

typedef struct NamedType {
    Str name;
    const OcfType *type; /* NULL while it is being parsed: a reference to it would be recursive */
} NamedType;

typedef struct SchemaParser {
    Arena *arena;
    Buf named; /* NamedType */
} SchemaParser;

static bool parse_type(SchemaParser *parser, const JsonNode *node, int level,
                       const OcfType **out_type, Error *err) WARN_UNUSED;

typedef struct PrimitiveName {
    const char *name;
    OcfKind kind;
    size_t min_bytes;
} PrimitiveName;

static const PrimitiveName primitive_names[] = {
    {"null", OCF_NULL, 0},   {"boolean", OCF_BOOLEAN, 1}, {"int", OCF_INT, 1},
    {"long", OCF_LONG, 1},   {"float", OCF_FLOAT, 4},     {"double", OCF_DOUBLE, 8},
    {"bytes", OCF_BYTES, 1}, {"string", OCF_STRING, 1},
};

/* Depth and size of the tree, from those of its parts. */
static bool
measure(OcfType *type, Error *err)
{
    int depth = 0;
    int nodes = 1;

    for (size_t i = 0; i < type->field_count; i++) {
        const OcfType *part = type->fields[i].type;

        depth = part->depth > depth ? part->depth : depth;
        nodes += part->nodes;
        if (nodes > OCF_TYPE_NODES_MAX)
            return FAIL(err, ERR_INPUT, "avro schema has more than %d types", OCF_TYPE_NODES_MAX);
    }
    type->depth = depth + 1;
    type->nodes = nodes;
    return true;
}

static bool
parse_reference(SchemaParser *parser, Str name, const OcfType **out_type, Error *err)
{
    for (size_t i = 0; i < sizeof primitive_names / sizeof primitive_names[0]; i++) {
        if (!str_eqc(name, primitive_names[i].name))
            continue;

        OcfType *type = ARENA_NEW(parser->arena, OcfType);

        type->kind = primitive_names[i].kind;
        type->min_bytes = primitive_names[i].min_bytes;
        *out_type = type;
        return measure(type, err);
    }
    for (size_t i = 0; i < BUF_COUNT(&parser->named, NamedType); i++) {
        const NamedType *named = &BUF_AT(&parser->named, NamedType, i);

        if (!str_eq(name, named->name))
            continue;
        if (named->type == NULL)
            return FAIL(err, ERR_INPUT, "avro type %.*s is recursive", STR_ARG(name));
        *out_type = named->type;
        return true;
    }
    return FAIL(err, ERR_INPUT, "unknown avro type %.*s", STR_ARG(name));
}

static bool
parse_union(SchemaParser *parser, const JsonNode *node, int level, const OcfType **out_type,
            Error *err)
{
    OcfType *type = ARENA_NEW(parser->arena, OcfType);

    type->kind = OCF_UNION;
    type->min_bytes = 1;
    type->field_count = node_count(node);
    if (type->field_count == 0)
        return FAIL(err, ERR_INPUT, "avro union without branches");
    type->fields = ARENA_ARRAY(parser->arena, OcfField, type->field_count);
    for (size_t i = 0; i < type->field_count; i++) {
        type->fields[i].id = -1;
        TRY(parse_type(parser, node_at(node, i), level + 1, &type->fields[i].type, err));
    }
    *out_type = type;
    return measure(type, err);
}

static bool
parse_fields(SchemaParser *parser, const JsonNode *node, int level, OcfType *type, Error *err)
{
    const JsonNode *fields = node_get(node, "fields");

    if (!node_is_array(fields))
        return FAIL(err, ERR_INPUT, "avro record without fields");
    type->field_count = node_count(fields);
    type->fields = ARENA_ARRAY(parser->arena, OcfField, type->field_count);
    for (size_t i = 0; i < type->field_count; i++) {
        const JsonNode *from = node_at(fields, i);
        OcfField *field = &type->fields[i];

        TRY(node_need_str(from, "name", parser->arena, &field->name, err));
        field->id = -1;
        if (node_get(from, "field-id") != NULL)
            TRY(node_need_int(from, "field-id", &field->id, err));
        TRY(parse_type(parser, node_get(from, "type"), level + 1, &field->type, err));
        type->min_bytes += field->type->min_bytes;
    }
    return true;
}

/* Array items and map values. */
static bool
parse_items(SchemaParser *parser, const JsonNode *node, int level, OcfType *type, Error *err)
{
    const char *key = type->kind == OCF_ARRAY ? "items" : "values";

    type->min_bytes = 1; /* the final zero count */
    type->field_count = 1;
    type->fields = ARENA_NEW(parser->arena, OcfField);
    type->fields[0].id = -1;
    return parse_type(parser, node_get(node, key), level + 1, &type->fields[0].type, err);
}

static bool
parse_fixed(const JsonNode *node, OcfType *type, Error *err)
{
    int size = 0;

    TRY(node_need_int(node, "size", &size, err));
    if (size < 0)
        return FAIL(err, ERR_INPUT, "avro fixed of size %d", size);
    type->fixed_size = (size_t) size;
    type->min_bytes = (size_t) size;
    return true;
}

/* record, fixed, enum: may be referred to by name afterwards. */
static bool
parse_named(SchemaParser *parser, const JsonNode *node, int level, OcfType *type, Error *err)
{
    NamedType named = {.type = NULL};
    size_t slot = BUF_COUNT(&parser->named, NamedType);

    TRY(node_need_str(node, "name", parser->arena, &named.name, err));
    BUF_PUSH(&parser->named, NamedType, named);
    if (type->kind == OCF_RECORD)
        TRY(parse_fields(parser, node, level, type, err));
    else if (type->kind == OCF_FIXED)
        TRY(parse_fixed(node, type, err));
    else
        type->min_bytes = 1;
    TRY(measure(type, err));
    BUF_AT(&parser->named, NamedType, slot).type = type;
    return true;
}

static bool
parse_object(SchemaParser *parser, const JsonNode *node, int level, const OcfType **out_type,
             Error *err)
{
    const JsonNode *inner = node_get(node, "type");
    Str name;
    Str logical;
    bool is_decimal =
        node_to_str(node_get(node, "logicalType"), &logical) && str_eqc(logical, "decimal");

    if (!node_to_str(inner, &name)) /* {"type": {...}}: a level that says nothing */
        return parse_type(parser, inner, level + 1, out_type, err);

    OcfType *type = ARENA_NEW(parser->arena, OcfType);

    if (str_eqc(name, "record") || str_eqc(name, "fixed") || str_eqc(name, "enum")) {
        type->kind = name.ptr[0] == 'r' ? OCF_RECORD : name.ptr[0] == 'f' ? OCF_FIXED : OCF_ENUM;
        TRY(parse_named(parser, node, level, type, err));
    } else if (str_eqc(name, "array") || str_eqc(name, "map")) {
        type->kind = name.ptr[0] == 'a' ? OCF_ARRAY : OCF_MAP;
        TRY(parse_items(parser, node, level, type, err));
        TRY(measure(type, err));
    } else {
        const OcfType *known = NULL;

        TRY(parse_reference(parser, name, &known, err));
        *type = *known;
    }
    type->is_decimal = is_decimal;
    *out_type = type;
    return true;
}

/* Depth-first; bounded by OCF_DEPTH_MAX levels of JSON. */
static bool
parse_type(SchemaParser *parser, const JsonNode *node, int level, const OcfType **out_type,
           Error *err)
{
    Str name;

    if (level > OCF_DEPTH_MAX)
        return FAIL(err, ERR_INPUT, "avro schema is deeper than %d levels", OCF_DEPTH_MAX);
    if (node_to_str(node, &name))
        return parse_reference(parser, name, out_type, err);
    if (node_is_array(node))
        return parse_union(parser, node, level, out_type, err);
    if (node_is_object(node))
        return parse_object(parser, node, level, out_type, err);
    return FAIL(err, ERR_INPUT, "avro schema has a type that is no name, object or array");
}

bool
ocf_parse_schema(Arena *arena, Str json, const OcfType **out_type, Error *err)
{
    AUTO_NODE JsonNode *root = NULL;

    if (!node_parse(json, &root, err))
        return WRAP(err, "avro.schema");

    SchemaParser parser = {.arena = arena};
    bool ok = parse_type(&parser, root, 1, out_type, err);

    buf_done(&parser.named);
    return ok;
}
