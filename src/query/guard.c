#include "query/guard.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include <jansson.h>

#include "query/column_name.h"

enum { NODES_MAX = 1000000 };

/* Everything that makes rows and touches nothing outside the query. */
static const char *const table_functions[] = {
    "generate_series",
    "generate_subscripts",
    "json_array_elements",
    "json_each",
    "json_object_keys",
    "json_tree",
    "jsonb_array_elements",
    "jsonb_each",
    "pg_timezone_names",
    "range",
    "regexp_split_to_table",
    "repeat",
    "repeat_row",
    "string_to_table",
    "unnest",
};

/* Functions of values that tell of, or reach, more than their arguments. */
static const char *const refused_functions[] = {
    "current_setting",
    "currval",
    "getenv",
    "getvariable",
    "nextval",
    "json_execute_serialized_sql",
    "json_deserialize_sql",
    "json_serialize_plan",
    "json_serialize_sql",
    "parse_duckdb_log_message",
    "pg_get_viewdef",
    "query",
    "query_table",
    "setseed",
    "walberg_live",
    "which_secret",
    "write_log",
};

/* Prefixes of the same. */
static const char *const refused_prefixes[] = {
    "duckdb_", "parquet_", "pragma_", "read_", "sniff_", "sqlite_",
};

static bool
is_listed(const char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(list[i], name) == 0)
            return true;
    return false;
}

#define LISTED(list, name) is_listed((list), sizeof(list) / sizeof(list)[0], (name))

static bool
is_refused_prefix(const char *name)
{
    for (size_t i = 0; i < sizeof refused_prefixes / sizeof refused_prefixes[0]; i++)
        if (strncasecmp(name, refused_prefixes[i], strlen(refused_prefixes[i])) == 0)
            return true;
    return false;
}

/* --- the walk ------------------------------------------------------------------------------ */

typedef struct Walk {
    GuardTables *tables;
    Arena *arena;
    Buf pending; /* json_t *, still to be looked at */
    Buf ctes;    /* const char *, names that WITH gave */
    Buf names;   /* Str, of columns; in the arena */
    bool star;
    QueryFailure *failure;
    Error *err;
} Walk;

static const char *
text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? "" : text;
}

static bool
is_null_or_absent(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return value == NULL || json_is_null(value);
}

static int64_t
place_of(const json_t *object)
{
    const json_t *place = json_object_get(object, "query_location");

    return json_is_integer(place) ? json_integer_value(place) : -1;
}

static bool
refuse(Walk *walk, const json_t *object, const char *sqlstate, const char *message)
{
    (void) query_fail(walk->failure, walk->err, sqlstate, "%s", message);
    walk->failure->position = place_of(object);
    return false;
}

static bool
refuse_function(Walk *walk, const json_t *object, const char *name)
{
    return refuse(walk, object, SQLSTATE_DENIED,
                  arena_printf(walk->arena, "permission denied for function %s", name));
}

static bool
check_function(Walk *walk, const json_t *object)
{
    const char *name = text_at(object, "function_name");

    if (LISTED(refused_functions, name) || is_refused_prefix(name))
        return refuse_function(walk, object, name);
    return true;
}

static bool
check_table_function(Walk *walk, const json_t *object)
{
    const json_t *function = json_object_get(object, "function");
    const char *name = text_at(function, "function_name");

    /* schema: "main".read_csv is the same function under another name */
    if (strcmp(text_at(function, "class"), "FUNCTION") == 0 && LISTED(table_functions, name))
        return true;
    return refuse_function(walk, object, name);
}

static bool
is_cte(const Walk *walk, const char *name)
{
    for (size_t i = 0; i < BUF_COUNT(&walk->ctes, const char *); i++)
        if (strcasecmp(BUF_AT(&walk->ctes, const char *, i), name) == 0)
            return true;
    return false;
}

static bool
check_table(Walk *walk, const json_t *object)
{
    const char *space = text_at(object, "schema_name");
    const char *name = text_at(object, "table_name");
    Str reason = STR("");

    if (text_at(object, "catalog_name")[0] != '\0')
        return refuse(walk, object, SQLSTATE_UNSUPPORTED,
                      "cross-database references are not implemented");
    if (!is_null_or_absent(object, "at_clause"))
        return refuse(walk, object, SQLSTATE_UNSUPPORTED,
                      "older versions of a table cannot be asked for");
    if (space[0] == '\0' && is_cte(walk, name))
        return true;
    switch (walk->tables->find(walk->tables, walk->arena, str_of(space), str_of(name), &reason)) {
    case TABLE_READABLE:
        return true;
    case TABLE_LEFT_OUT:
        (void) query_fail(walk->failure, walk->err, SQLSTATE_NOT_READY,
                          "relation \"%s\" cannot be read: %.*s", name, STR_ARG(reason));
        break;
    case TABLE_UNKNOWN:
        (void) query_fail(walk->failure, walk->err, SQLSTATE_UNDEFINED_TABLE,
                          "relation \"%s%s%s\" does not exist", space, space[0] ? "." : "", name);
        break;
    }
    walk->failure->position = place_of(object);
    return false;
}

/* Names of common table expressions, of any level: {"cte_map": {"map": [{"key": ...}]}}. Which
 * level is not looked at, so one that could also name a file does not count: "x.parquet" outside
 * of its WITH would be read. */
static void
collect_ctes(Walk *walk, const json_t *map)
{
    const json_t *pairs = json_object_get(map, "map");
    size_t i;
    json_t *pair;

    json_array_foreach(pairs, i, pair)
    {
        /* names of DuckDB's own tables stay theirs: a WITH somewhere else must not open them */
        if (strchr(text_at(pair, "key"), '.') == NULL && !is_refused_prefix(text_at(pair, "key")))
            BUF_PUSH(&walk->ctes, const char *, text_at(pair, "key"));
    }
}

/* {"type": "COLUMN_REF", "column_names": ["t", "price"]} */
static void
note_column(Walk *walk, const json_t *object)
{
    const json_t *parts = json_object_get(object, "column_names");
    const char *name = json_string_value(json_array_get(parts, json_array_size(parts) - 1));

    if (name != NULL)
        BUF_PUSH(&walk->names, Str, arena_str(walk->arena, str_of(name)));
}

static bool
check_object(Walk *walk, const json_t *object)
{
    const char *type = text_at(object, "type");

    if (strcmp(type, "COLUMN_REF") == 0)
        note_column(walk, object);
    walk->star = walk->star || strcmp(type, "STAR") == 0;
    if (json_object_get(object, "function_name") != NULL)
        TRY(check_function(walk, object));
    if (strcmp(type, "TABLE_FUNCTION") == 0)
        return check_table_function(walk, object);
    if (strcmp(type, "BASE_TABLE") == 0)
        return check_table(walk, object);
    if (strcmp(type, "SHOW_REF") == 0)
        return refuse(walk, object, SQLSTATE_SYNTAX, "SHOW and DESCRIBE cannot be part of a query");
    return true;
}

static void
push_members(Walk *walk, json_t *node)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_object(node))
        json_object_foreach(node, key, member)
        {
            if (json_is_object(member) || json_is_array(member))
                BUF_PUSH(&walk->pending, json_t *, member);
        }
    else
        json_array_foreach(node, i, member)
        {
            if (json_is_object(member) || json_is_array(member))
                BUF_PUSH(&walk->pending, json_t *, member);
        }
}

/* Visit all objects below root, in any order. */
static bool
visit_all(Walk *walk, json_t *root, bool (*visit)(Walk *walk, const json_t *object))
{
    buf_reset(&walk->pending);
    BUF_PUSH(&walk->pending, json_t *, root);
    for (size_t seen = 0; walk->pending.len > 0; seen++) {
        size_t last = BUF_COUNT(&walk->pending, json_t *) - 1;
        json_t *node = BUF_AT(&walk->pending, json_t *, last);

        walk->pending.len -= sizeof(json_t *);
        if (seen > NODES_MAX)
            return query_fail(walk->failure, walk->err, SQLSTATE_TOO_COMPLEX,
                              "statement is too complex");
        if (json_is_object(node))
            TRY(visit(walk, node));
        push_members(walk, node);
    }
    return true;
}

static bool
visit_ctes(Walk *walk, const json_t *object)
{
    const json_t *map = json_object_get(object, "cte_map");

    if (map != NULL)
        collect_ctes(walk, map);
    return true;
}

static void
walk_done(Walk *walk)
{
    buf_done(&walk->pending);
    buf_done(&walk->ctes);
    buf_done(&walk->names);
}

/* --- the tree ------------------------------------------------------------------------------ */

/* DuckDB prints numbers up to 2^64 (an unknown query_location is 2^64 - 1), jansson reads up to
 * 2^63. The numbers of that size mean nothing here: make them null... of the same length. */
static void
tame_numbers(char *json)
{
    bool quoted = false;

    for (char *c = json; *c != '\0'; c++) {
        size_t digits = 0;

        if (*c == '"')
            quoted = !quoted;
        else if (quoted && *c == '\\' && c[1] != '\0')
            c++;
        if (quoted || !isdigit((unsigned char) *c))
            continue;
        while (isdigit((unsigned char) c[digits]))
            digits++;
        if (digits >= 19 && c > json && !isdigit((unsigned char) c[-1])) {
            memcpy(c, "null", 4);
            memset(c + 4, ' ', digits - 4);
            if (c[-1] == '-')
                c[-1] = ' ';
        }
        c += digits - 1;
    }
}

static bool
fail_parse(const json_t *root, QueryFailure *failure, Error *err)
{
    const char *position = text_at(root, "position");
    const char *message = text_at(root, "error_message");

    if (strncmp(message, "Only SELECT statements", 22) == 0)
        return query_fail(failure, err, SQLSTATE_READ_ONLY,
                          "cannot execute this statement in a read-only transaction");
    (void) query_fail(failure, err,
                      strcmp(text_at(root, "error_type"), "not implemented") == 0
                          ? SQLSTATE_UNSUPPORTED
                          : SQLSTATE_SYNTAX,
                      "%s", message);
    if (position[0] != '\0')
        failure->position = strtoll(position, NULL, 10);
    return false;
}

static bool
check_root(Walk *walk, json_t *root, Guarded *out_guarded)
{
    json_t *statements = json_object_get(root, "statements");

    if (!json_is_false(json_object_get(root, "error")))
        return fail_parse(root, walk->failure, walk->err);
    if (json_array_size(statements) != 1)
        return query_fail(walk->failure, walk->err, SQLSTATE_SYNTAX,
                          "cannot insert multiple commands into a prepared statement");
    TRY(visit_all(walk, statements, visit_ctes));
    TRY(visit_all(walk, statements, check_object));
    column_names(walk->arena, json_object_get(json_array_get(statements, 0), "node"), out_guarded);
    out_guarded->star = walk->star;
    out_guarded->name_count = BUF_COUNT(&walk->names, Str);
    out_guarded->names = ARENA_ARRAY(walk->arena, Str, out_guarded->name_count);
    if (walk->names.len > 0)
        memcpy(out_guarded->names, walk->names.ptr, walk->names.len);
    return true;
}

bool
guarded_names(const Guarded *guarded, Str column)
{
    for (size_t i = 0; i < guarded->name_count; i++) {
        Str name = guarded->names[i];

        if (name.len == column.len && strncasecmp(name.ptr, column.ptr, name.len) == 0)
            return true;
    }
    return guarded->star;
}

bool
guard_check_tree(GuardTables *tables, Arena *arena, Str json, Guarded *out_guarded,
                 QueryFailure *failure, Error *err)
{
    char *text = json.ptr == NULL ? NULL : arena_printf(arena, "%.*s", STR_ARG(json));
    AUTO(walk_done)
    Walk walk = {.tables = tables, .arena = arena, .failure = failure, .err = err};

    if (text == NULL)
        return query_fail(failure, err, SQLSTATE_INTERNAL, "the parser gave no answer");
    tame_numbers(text);

    json_t *root = json_loads(text, 0, NULL);

    if (root == NULL)
        return query_fail(failure, err, SQLSTATE_TOO_COMPLEX, "statement is too complex");

    bool ok = check_root(&walk, root, out_guarded);

    json_decref(root);
    return ok;
}

bool
guard_check(const GuardQuery *query, Arena *arena, Guarded *out_guarded, QueryFailure *failure,
            Error *err)
{
    Str json;

    if (!duck_session_ask(query->parser, arena, "SELECT json_serialize_sql($1::VARCHAR)",
                          query->sql, &json, err))
        return query_fail_duck(failure, err, duck_session_failure(query->parser));
    return guard_check_tree(query->tables, arena, json, out_guarded, failure, err);
}
