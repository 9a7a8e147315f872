#include "iceberg/default.h"
#include "avro/json_node.h"
#include "duck/duck.h"

#include <assert.h>

static bool put_value(Buf *sql, const Type *type, const JsonNode *node, Error *err) WARN_UNUSED;

static bool
refuse(const Type *type, Error *err)
{
    AUTO_BUF Buf name = {0};

    type_duckdb_name(type, &name);
    return FAIL(err, ERR_INPUT, "no value of type %s", buf_text(&name));
}

/* Java's years beyond 9999 have a plus sign, which DuckDB does not read. */
static void
put_text(Buf *sql, Str text, bool time)
{
    if (time && text.len > 0 && text.ptr[0] == '+')
        text = (Str){.ptr = text.ptr + 1, .len = text.len - 1};
    duck_quote_literal(sql, text);
}

static bool
is_hex_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Pairs of hexadecimal digits. */
static bool
is_hex(Str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_hex_digit(text.ptr[i]))
            return false;
    return text.len % 2 == 0;
}

static bool
put_binary(Buf *sql, const Type *type, const JsonNode *node, Error *err)
{
    Str text = STR_NULL;

    if (!node_to_str(node, &text) || !is_hex(text))
        return refuse(type, err);
    buf_cstr(sql, "from_hex(");
    duck_quote_literal(sql, text);
    buf_byte(sql, ')');
    return true;
}

/* Kinds that are JSON strings, numbers or booleans: their text, cast. */
static bool
put_scalar(Buf *sql, const Type *type, const JsonNode *node, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    bool time =
        type->kind == TYPE_DATE || type->kind == TYPE_TIMESTAMP || type->kind == TYPE_TIMESTAMPTZ;
    bool quoted = time || type->kind == TYPE_TIME || type->kind == TYPE_DECIMAL ||
                  type->kind == TYPE_UUID || type->kind == TYPE_STRING || type->kind == TYPE_JSON;
    Str text = STR_NULL;
    bool truth;
    int64_t number;

    if (node_to_str(node, &text) != quoted ||
        node_to_bool(node, &truth) != (type->kind == TYPE_BOOL))
        return refuse(type, err);
    /* DuckDB would round */
    if ((type->kind == TYPE_INT32 || type->kind == TYPE_INT64) && !node_to_int64(node, &number))
        return refuse(type, err);
    put_text(sql, quoted ? text : node_text(arena, node), time);
    return true;
}

static bool
put_items(Buf *sql, const Type *type, const JsonNode *array, Error *err)
{
    if (!node_is_array(array))
        return refuse(type, err);
    buf_byte(sql, '[');
    for (size_t i = 0; i < node_count(array); i++) {
        buf_cstr(sql, i == 0 ? "" : ", ");
        TRY(put_value(sql, type, node_at(array, i), err));
    }
    buf_byte(sql, ']');
    return true;
}

static bool
put_map(Buf *sql, const Type *type, const JsonNode *node, Error *err)
{
    const JsonNode *keys = node_get(node, "keys");
    const JsonNode *values = node_get(node, "values");

    if (node_count(keys) != node_count(values))
        return refuse(type, err);
    buf_cstr(sql, "map(");
    TRY(put_items(sql, type->fields[0].type, keys, err));
    buf_cstr(sql, ", ");
    TRY(put_items(sql, type->fields[1].type, values, err));
    buf_byte(sql, ')');
    return true;
}

/* Members by id; those that are not there have their own defaults. */
static bool
put_struct(Buf *sql, const Type *type, const JsonNode *node, Error *err)
{
    if (!node_is_object(node))
        return refuse(type, err);
    buf_cstr(sql, "struct_pack(");
    for (int i = 0; i < type->field_count; i++) {
        const Field *member = &type->fields[i];
        char key[16];

        snprintf(key, sizeof key, "%d", member->id);
        buf_cstr(sql, i == 0 ? "" : ", ");
        duck_quote_identifier(sql, member->name);
        buf_cstr(sql, " := ");
        if (node_get(node, key) == NULL)
            TRY(default_put_sql(sql, member, err));
        else
            TRY(put_value(sql, member->type, node_get(node, key), err));
    }
    buf_byte(sql, ')');
    return true;
}

/* Recursion follows the type, at most TYPE_DEPTH_MAX levels. */
static bool
put_expression(Buf *sql, const Type *type, const JsonNode *node, Error *err)
{
    if (node == NULL) {
        buf_cstr(sql, "NULL");
        return true;
    }
    switch (type->kind) {
    case TYPE_LIST:
        return put_items(sql, type->fields[0].type, node, err);
    case TYPE_MAP:
        return put_map(sql, type, node, err);
    case TYPE_STRUCT:
        return put_struct(sql, type, node, err);
    case TYPE_BINARY:
        return put_binary(sql, type, node, err);
    case TYPE_BOOL:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_STRING:
    case TYPE_JSON:
    case TYPE_UUID:
    default:
        return put_scalar(sql, type, node, err);
    }
}

static bool
put_value(Buf *sql, const Type *type, const JsonNode *node, Error *err)
{
    buf_cstr(sql, "CAST(");
    TRY(put_expression(sql, type, node, err));
    buf_cstr(sql, " AS ");
    type_duckdb_name(type, sql);
    buf_byte(sql, ')');
    return true;
}

bool
default_put_sql(Buf *sql, const Field *field, Error *err)
{
    AUTO_NODE JsonNode *node = NULL;

    if ((field->initial_default.ptr != NULL && !node_parse(field->initial_default, &node, err)) ||
        !put_value(sql, field->type, node, err))
        return WRAP(err, "the default %.*s of column %.*s", STR_ARG(field->initial_default),
                    STR_ARG(field->name));
    return true;
}

bool
default_expressions(Arena *arena, const Field *fields, int count, const char *const **out_defaults,
                    Error *err)
{
    const char **defaults = (const char **) arena_alloc(arena, (size_t) count * sizeof(char *));
    bool any = false;

    for (int i = 0; i < count; i++) {
        AUTO_BUF Buf sql = {0};

        defaults[i] = NULL;
        if (fields[i].initial_default.ptr == NULL)
            continue;
        TRY(default_put_sql(&sql, &fields[i], err));
        defaults[i] = arena_strdup(arena, buf_text(&sql));
        any = true;
    }
    *out_defaults = any ? defaults : NULL;
    return true;
}
