#include "avro/json_node.h"

#include <limits.h>

#include <jansson.h>

bool
node_parse(Str text, JsonNode **out_node, Error *err)
{
    json_error_t why;
    json_t *root = json_loadb(text.ptr == NULL ? "" : text.ptr, text.len,
                              JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);

    if (root == NULL)
        return FAIL(err, ERR_INPUT, "not JSON: line %d, column %d: %s", why.line, why.column,
                    why.text);
    *out_node = root;
    return true;
}

void
node_freep(JsonNode **node)
{
    json_decref(*node);
    *node = NULL;
}

bool
node_is_object(const JsonNode *node)
{
    return json_is_object(node);
}

bool
node_is_array(const JsonNode *node)
{
    return json_is_array(node);
}

const JsonNode *
node_get(const JsonNode *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

size_t
node_count(const JsonNode *node)
{
    return json_is_array(node) ? json_array_size(node) : json_object_size(node);
}

const JsonNode *
node_at(const JsonNode *array, size_t i)
{
    const json_t *value = json_array_get(array, i);

    return json_is_null(value) ? NULL : value;
}

bool
node_to_str(const JsonNode *node, Str *out)
{
    if (!json_is_string(node))
        return false;
    *out = (Str){.ptr = json_string_value(node), .len = json_string_length(node)};
    return true;
}

bool
node_to_int64(const JsonNode *node, int64_t *out)
{
    if (!json_is_integer(node))
        return false;
    *out = json_integer_value(node);
    return true;
}

bool
node_to_int(const JsonNode *node, int *out)
{
    int64_t value;

    if (!node_to_int64(node, &value) || value < INT_MIN || value > INT_MAX)
        return false;
    *out = (int) value;
    return true;
}

bool
node_to_double(const JsonNode *node, double *out)
{
    if (!json_is_number(node))
        return false;
    *out = json_number_value(node);
    return true;
}

bool
node_to_bool(const JsonNode *node, bool *out)
{
    if (!json_is_boolean(node))
        return false;
    *out = json_is_true(node);
    return true;
}

bool
node_next(const JsonNode *object, NodeCursor *cursor, Str *out_key, const JsonNode **out_value)
{
    json_t *whole = (json_t *) (uintptr_t) object; /* the iterator never writes to it */
    void *place =
        cursor->started ? json_object_iter_next(whole, cursor->place) : json_object_iter(whole);

    cursor->started = true;
    cursor->place = place;
    if (place == NULL)
        return false;
    *out_key = (Str){.ptr = json_object_iter_key(place), .len = json_object_iter_key_len(place)};
    *out_value = json_object_iter_value(place);
    return true;
}

Str
node_text(Arena *arena, const JsonNode *node)
{
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
    size_t size = json_dumpb(node, NULL, 0, flags);
    char *text = arena_alloc(arena, size + 1);

    json_dumpb(node, text, size, flags);
    return (Str){.ptr = text, .len = size};
}

bool
node_need_str(const JsonNode *object, const char *key, Arena *arena, Str *out, Error *err)
{
    const JsonNode *value = node_get(object, key);
    Str text;

    if (value == NULL)
        return FAIL(err, ERR_INPUT, "no %s", key);
    if (!node_to_str(value, &text))
        return FAIL(err, ERR_INPUT, "%s is not a string", key);
    *out = arena_str(arena, text);
    return true;
}

bool
node_need_int64(const JsonNode *object, const char *key, int64_t *out, Error *err)
{
    const JsonNode *value = node_get(object, key);

    if (value == NULL)
        return FAIL(err, ERR_INPUT, "no %s", key);
    if (!node_to_int64(value, out))
        return FAIL(err, ERR_INPUT, "%s is not an integer", key);
    return true;
}

bool
node_need_int(const JsonNode *object, const char *key, int *out, Error *err)
{
    const JsonNode *value = node_get(object, key);

    if (value == NULL)
        return FAIL(err, ERR_INPUT, "no %s", key);
    if (!node_to_int(value, out))
        return FAIL(err, ERR_INPUT, "%s is not a 32-bit integer", key);
    return true;
}

bool
node_need_array(const JsonNode *object, const char *key, const JsonNode **out, Error *err)
{
    const JsonNode *value = node_get(object, key);

    if (value != NULL && !node_is_array(value))
        return FAIL(err, ERR_INPUT, "%s is not an array", key);
    *out = value;
    return true;
}
