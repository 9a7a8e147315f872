/* yaml.h - YAML text into a small tree that remembers where everything was written.
 *
 * The only room door to libfyaml. What settings do not need is refused with its place instead of
 * being half understood: aliases, anchors, tags, several documents, keys that are not plain text,
 * a key twice in one mapping. The tree is built from events without recursion, so depth and size
 * of the input are bounded here. */
#ifndef CONFIG_YAML_H
#define CONFIG_YAML_H

#include "base/arena.h"

enum { YAML_DEPTH_MAX = 16, YAML_BYTES_MAX = 1 << 20 };

typedef enum YamlKind { YAML_SCALAR, YAML_LIST, YAML_MAP } YamlKind;

typedef struct YamlNode YamlNode;

struct YamlNode {
    YamlKind kind;
    bool plain; /* YAML_SCALAR written without quotes: may mean null */
    int line;   /* from 1 */
    int column; /* from 1 */
    Str text;   /* YAML_SCALAR; NUL-terminated */
    const YamlNode *key;
    YamlNode *first; /* list: items; map: values, each with its key */
    YamlNode *next;
};

/* *out_root is NULL for a text without content. Messages begin with "FILE:LINE:COLUMN: " when file
 * is not NULL. */
bool yaml_parse(Arena *arena, Str text, const char *file, YamlNode **out_root,
                Error *err) WARN_UNUSED;

/* A scalar that stands alone, for values that do not come from YAML. */
YamlNode *yaml_scalar(Arena *arena, const char *text);

/* Nothing was written: "key:" */
bool yaml_is_empty(const YamlNode *node);
/* null or ~ was written. */
bool yaml_is_null(const YamlNode *node);

#endif
