#include "config/yaml.h"

#include <assert.h>
#include <stdlib.h>

#include <libfyaml.h>

#include "base/buf.h"

typedef struct Level {
    YamlNode *node;
    YamlNode **tail;
    YamlNode *key; /* a map's key that waits for its value */
} Level;

typedef struct Builder {
    Arena *arena;
    const char *file;
    YamlNode *root;
    int documents;
    int depth;
    Level levels[YAML_DEPTH_MAX];
} Builder;

static bool
fail_at(const char *file, int line, int column, const char *message, Error *err)
{
    if (file == NULL)
        return FAIL(err, ERR_INPUT, "%s", message);
    return FAIL(err, ERR_INPUT, "%s:%d:%d: %s", file, line, column, message);
}

static void
free_parser(struct fy_parser **parser)
{
    if (*parser != NULL)
        fy_parser_destroy(*parser);
}

static void
free_diag(struct fy_diag **diag)
{
    if (*diag != NULL)
        fy_diag_destroy(*diag);
}

/* libfyaml prints by default; its messages are collected instead and one of them becomes ours. */
static void
ignore_output(struct fy_diag *diag, void *user, const char *text, size_t size)
{
    (void) diag;
    (void) user;
    (void) text;
    (void) size;
}

static bool
fail_with_diagnosis(struct fy_diag *diag, const char *file, Error *err)
{
    void *iterator = NULL;
    const struct fy_diag_error *found = fy_diag_errors_iterate(diag, &iterator);

    if (found == NULL)
        return fail_at(file, 1, 1, "invalid YAML", err);

    char message[256];

    snprintf(message, sizeof message, "invalid YAML: %s", found->msg);
    return fail_at(file, found->line, found->column, message, err);
}

static int
compare_keys(const void *a, const void *b)
{
    const YamlNode *left = *(YamlNode *const *) a;
    const YamlNode *right = *(YamlNode *const *) b;
    int order = str_cmp(left->key->text, right->key->text);

    if (order != 0)
        return order;
    if (left->key->line != right->key->line)
        return left->key->line < right->key->line ? -1 : 1;
    return left->key->column < right->key->column ? -1 : left->key->column > right->key->column;
}

static bool
check_keys_differ(const Builder *builder, const YamlNode *map, Error *err)
{
    AUTO_BUF Buf pairs = {0};

    for (YamlNode *value = map->first; value != NULL; value = value->next)
        BUF_PUSH(&pairs, YamlNode *, value);

    size_t count = BUF_COUNT(&pairs, YamlNode *);

    if (count > 1)
        qsort(pairs.ptr, count, sizeof(YamlNode *), compare_keys);
    for (size_t i = 1; i < count; i++) {
        const YamlNode *first = BUF_AT(&pairs, YamlNode *, i - 1)->key;
        const YamlNode *again = BUF_AT(&pairs, YamlNode *, i)->key;
        char message[256];

        if (!str_eq(first->text, again->text))
            continue;
        snprintf(message, sizeof message, "\"%.*s\" is set twice, first on line %d",
                 again->text.len < 128 ? (int) again->text.len : 128, again->text.ptr, first->line);
        return fail_at(builder->file, again->line, again->column, message, err);
    }
    return true;
}

/* Put a finished or just opened node where it belongs: root, list item, map key or map value. */
static bool
place_node(Builder *builder, YamlNode *node, Error *err)
{
    if (builder->depth == 0) {
        builder->root = node;
        return true;
    }

    Level *level = &builder->levels[builder->depth - 1];

    assert(level->node != NULL);

    if (level->node->kind == YAML_MAP && level->key == NULL) {
        if (node->kind != YAML_SCALAR)
            return fail_at(builder->file, node->line, node->column, "a key must be plain text",
                           err);
        level->key = node;
        return true;
    }
    node->key = level->key;
    level->key = NULL;
    *level->tail = node;
    level->tail = &node->next;
    return true;
}

static bool
open_level(Builder *builder, YamlNode *node, Error *err)
{
    TRY(place_node(builder, node, err));
    if (builder->depth == YAML_DEPTH_MAX)
        return fail_at(builder->file, node->line, node->column, "nested too deeply", err);
    builder->levels[builder->depth++] = (Level){.node = node, .tail = &node->first};
    return true;
}

static YamlNode *
new_node(const Builder *builder, YamlKind kind, struct fy_event *event)
{
    YamlNode *node = ARENA_NEW(builder->arena, YamlNode);
    const struct fy_mark *mark = fy_event_start_mark(event);

    node->kind = kind;
    node->line = mark == NULL ? 1 : mark->line + 1;
    node->column = mark == NULL ? 1 : mark->column + 1;
    return node;
}

static bool
add_scalar(Builder *builder, struct fy_event *event, Error *err)
{
    YamlNode *node = new_node(builder, YAML_SCALAR, event);
    struct fy_token *token = fy_event_get_token(event);
    size_t size = 0;
    const char *text = token == NULL ? NULL : fy_token_get_text(token, &size);

    node->plain = token == NULL || fy_token_scalar_style(token) == FYSS_PLAIN;
    if (token != NULL && node->column > 1 &&
        (fy_token_scalar_style(token) == FYSS_SINGLE_QUOTED ||
         fy_token_scalar_style(token) == FYSS_DOUBLE_QUOTED))
        node->column--; /* the mark stands behind the quote */
    node->text = arena_str(builder->arena, (Str){.ptr = text, .len = text == NULL ? 0 : size});
    if (memchr(node->text.ptr, '\0', node->text.len) != NULL)
        return fail_at(builder->file, node->line, node->column, "text with a zero byte", err);
    return place_node(builder, node, err);
}

/* "*.*" and "!public.x" without quotes are an alias and a tag: likely slips in table patterns. */
static bool
refuse_references(const Builder *builder, struct fy_event *event, Error *err)
{
    struct fy_token *token = NULL;
    const char *what = NULL;

    if (event->type == FYET_ALIAS) {
        token = fy_event_get_token(event);
        what = "YAML aliases (*name) are not understood";
    } else if (fy_event_get_anchor_token(event) != NULL) {
        token = fy_event_get_anchor_token(event);
        what = "YAML anchors (&name) are not understood";
    } else if (fy_event_get_tag_token(event) != NULL) {
        token = fy_event_get_tag_token(event);
        what = "YAML tags (!name) are not understood";
    }
    if (what == NULL)
        return true;

    const struct fy_mark *mark = fy_token_start_mark(token);
    int line = mark == NULL ? 1 : mark->line + 1;
    int column = mark == NULL ? 1 : mark->column + 1;

    if (column > 1 && fy_token_get_type(token) != FYTT_TAG)
        column--; /* the mark stands behind the * or & */
    fail_at(builder->file, line, column, what, err);
    snprintf(err->msg + strlen(err->msg), sizeof err->msg - strlen(err->msg),
             "\nhint: quote a text that begins with *, ! or &: \"*.*\"");
    return false;
}

static bool
handle_event(Builder *builder, struct fy_event *event, Error *err)
{
    switch ((int) event->type) {
    case FYET_DOCUMENT_START:
        builder->documents++;
        if (builder->documents > 1) {
            const YamlNode *at = new_node(builder, YAML_SCALAR, event);

            return fail_at(builder->file, at->line, at->column, "a second YAML document", err);
        }
        return true;
    case FYET_ALIAS:
        return refuse_references(builder, event, err);
    case FYET_SCALAR:
        TRY(refuse_references(builder, event, err));
        return add_scalar(builder, event, err);
    case FYET_SEQUENCE_START:
        TRY(refuse_references(builder, event, err));
        return open_level(builder, new_node(builder, YAML_LIST, event), err);
    case FYET_MAPPING_START:
        TRY(refuse_references(builder, event, err));
        return open_level(builder, new_node(builder, YAML_MAP, event), err);
    case FYET_SEQUENCE_END:
        assert(builder->depth > 0);
        builder->depth--;
        return true;
    case FYET_MAPPING_END:
        assert(builder->depth > 0 && builder->levels[builder->depth - 1].node != NULL);
        builder->depth--;
        return check_keys_differ(builder, builder->levels[builder->depth].node, err);
    default:
        return true;
    }
}

static bool
check_text(Str text, const char *file, Error *err)
{
    if (text.len > YAML_BYTES_MAX)
        return fail_at(file, 1, 1, "larger than 1MB", err);
    if (!str_is_utf8(text))
        return fail_at(file, 1, 1, "not UTF-8", err);
    /* libfyaml 0.7.12 takes a NUL for the end of its input */
    if (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL)
        return fail_at(file, 1, 1, "a zero byte in the text", err);
    return true;
}

bool
yaml_parse(Arena *arena, Str text, const char *file, YamlNode **out_root, Error *err)
{
    Builder builder = {.arena = arena, .file = file};
    const struct fy_diag_cfg diag_cfg = {.output_fn = ignore_output, .level = FYET_ERROR};
    AUTO(free_diag) struct fy_diag *diag = fy_diag_create(&diag_cfg);

    TRY(check_text(text, file, err));
    if (diag == NULL)
        return FAIL(err, ERR_BUG, "fy_diag_create failed");
    fy_diag_set_collect_errors(diag, true);

    const struct fy_parse_cfg cfg = {.flags = FYPCF_DEFAULT_PARSE, .diag = diag};
    AUTO(free_parser) struct fy_parser *parser = fy_parser_create(&cfg);

    if (parser == NULL ||
        fy_parser_set_string(parser, text.len == 0 ? "" : text.ptr, text.len) != 0)
        return FAIL(err, ERR_BUG, "fy_parser_create failed");
    for (;;) {
        struct fy_event *event = fy_parser_parse(parser);

        if (event == NULL)
            break;

        bool ok = handle_event(&builder, event, err);

        fy_parser_event_free(parser, event);
        TRY(ok);
    }
    if (fy_parser_get_stream_error(parser))
        return fail_with_diagnosis(diag, file, err);
    *out_root = builder.root;
    return true;
}

YamlNode *
yaml_scalar(Arena *arena, const char *text)
{
    YamlNode *node = ARENA_NEW(arena, YamlNode);

    node->kind = YAML_SCALAR;
    node->line = 1;
    node->column = 1;
    node->text = str_of(text);
    return node;
}

bool
yaml_is_empty(const YamlNode *node)
{
    return node->kind == YAML_SCALAR && node->plain && node->text.len == 0;
}

bool
yaml_is_null(const YamlNode *node)
{
    return node->kind == YAML_SCALAR && node->plain &&
           (str_eqc(node->text, "null") || str_eqc(node->text, "~"));
}
