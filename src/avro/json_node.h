/* json_node.h - JSON text as a tree to read from. Jansson does the work, because it keeps 64-bit
 * integers exact (snapshot ids need all 63 bits); this is the only file that sees it. Every getter
 * takes NULL for "absent", and a JSON null is as good as absent. */
#ifndef AVRO_JSON_NODE_H
#define AVRO_JSON_NODE_H

#include "base/arena.h"

#include <stdint.h>

typedef struct json_t JsonNode;

/* Any JSON value. ERR_INPUT with line and column. Nesting is bounded by Jansson (2,048 levels). */
bool node_parse(Str text, JsonNode **out_node, Error *err) WARN_UNUSED;
void node_freep(JsonNode **node);
#define AUTO_NODE __attribute__((cleanup(node_freep)))

bool node_is_object(const JsonNode *node);
bool node_is_array(const JsonNode *node);

/* NULL when `object` is none, or has no such key, or has null there. */
const JsonNode *node_get(const JsonNode *object, const char *key);

/* Items of an array, members of an object; 0 for everything else. */
size_t node_count(const JsonNode *node);
const JsonNode *node_at(const JsonNode *array, size_t i);

/* Scalars; false when it is something else (or does not fit), *out is untouched then. */
bool node_to_str(const JsonNode *node, Str *out); /* a view: lives as long as the tree */
bool node_to_int64(const JsonNode *node, int64_t *out);
bool node_to_int(const JsonNode *node, int *out);
bool node_to_double(const JsonNode *node, double *out); /* of an integer, too */
bool node_to_bool(const JsonNode *node, bool *out);

/* Members in the order of the text. Start with a zeroed cursor. */
typedef struct NodeCursor {
    struct NodePlace *place;
    bool started;
} NodeCursor;

bool node_next(const JsonNode *object, NodeCursor *cursor, Str *out_key,
               const JsonNode **out_value);

/* Compact JSON text of a subtree. */
Str node_text(Arena *arena, const JsonNode *node);

/* A required member of an object. ERR_INPUT: "no <key>", "<key> is not a ...". Strings are copied
 * to the arena. */
bool node_need_str(const JsonNode *object, const char *key, Arena *arena, Str *out,
                   Error *err) WARN_UNUSED;
bool node_need_int64(const JsonNode *object, const char *key, int64_t *out, Error *err) WARN_UNUSED;
bool node_need_int(const JsonNode *object, const char *key, int *out, Error *err) WARN_UNUSED;
/* An array or absent (*out = NULL); anything else is an error. */
bool node_need_array(const JsonNode *object, const char *key, const JsonNode **out,
                     Error *err) WARN_UNUSED;

#endif
