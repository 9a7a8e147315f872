#include "query/column_name.h"

enum { DESCENTS_MAX = 1000 };

static const char *
text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? "" : text;
}

/* Postgres' own name of the type of a cast. */
static const char *
cast_name(const json_t *cast)
{
    static const struct {
        const char *duck;
        const char *postgres;
    } names[] = {
        {"BOOLEAN", "bool"},
        {"SMALLINT", "int2"},
        {"INTEGER", "int4"},
        {"BIGINT", "int8"},
        {"FLOAT", "float4"},
        {"DOUBLE", "float8"},
        {"DECIMAL", "numeric"},
        {"VARCHAR", "text"},
        {"BLOB", "bytea"},
        {"DATE", "date"},
        {"TIME", "time"},
        {"TIMESTAMP", "timestamp"},
        {"INTERVAL", "interval"},
        {"UUID", "uuid"},
        {"TIMESTAMP WITH TIME ZONE", "timestamptz"},
        {"TIME WITH TIME ZONE", "timetz"},
    };

    const json_t *type = json_object_get(cast, "cast_type");
    const char *id = text_at(type, "id");

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].duck, id) == 0)
            return names[i].postgres;
    return "?column?";
}

static const char *
function_name(const json_t *expression)
{
    static const struct {
        const char *duck;
        const char *postgres;
    } names[] = {
        {"count_star", "count"},  {"list_value", "array"},           {"row", "row"},
        {"date_part", "extract"}, {"regexp_full_match", "?column?"},
    };

    const char *name = text_at(expression, "function_name");

    if (json_is_true(json_object_get(expression, "is_operator")))
        return "?column?";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].duck, name) == 0)
            return names[i].postgres;
    return name;
}

static const json_t *
first_of_select(const json_t *node)
{
    return json_array_get(json_object_get(node, "select_list"), 0);
}

/* The name that the expression gives by itself, NULL: none. A cast or a CASE takes that of what is
 * inside; *out_next is then what to look at, and the answer is the name if that gives none. */
static const char *
own_name(const json_t *expression, const json_t **out_next)
{
    const char *class = text_at(expression, "class");
    const char *type = text_at(expression, "type");
    const json_t *columns = json_object_get(expression, "column_names");
    const char *subquery = text_at(expression, "subquery_type");

    *out_next = NULL;
    if (strcmp(class, "COLUMN_REF") == 0)
        return json_string_value(json_array_get(columns, json_array_size(columns) - 1));
    if (strcmp(class, "FUNCTION") == 0 || strcmp(class, "WINDOW") == 0)
        return function_name(expression);
    if (strcmp(class, "CAST") == 0) {
        *out_next = json_object_get(expression, "child");
        return cast_name(expression);
    }
    if (strcmp(class, "CASE") == 0) {
        *out_next = json_object_get(expression, "else_expr");
        return "case";
    }
    if (strcmp(type, "OPERATOR_COALESCE") == 0)
        return "coalesce";
    if (strcmp(type, "ARRAY_CONSTRUCTOR") == 0)
        return "array";
    if (strcmp(subquery, "EXISTS") == 0)
        return "exists";
    if (strcmp(subquery, "SCALAR") == 0)
        *out_next =
            first_of_select(json_object_get(json_object_get(expression, "subquery"), "node"));
    return NULL;
}

static Str
name_of(Arena *arena, const json_t *expression)
{
    const char *fallback = "?column?";

    for (int i = 0; expression != NULL && i < DESCENTS_MAX; i++) {
        const json_t *next;
        const char *alias = text_at(expression, "alias");
        const char *name = alias[0] != '\0' ? alias : own_name(expression, &next);

        if (alias[0] != '\0' || (next == NULL && name != NULL))
            return arena_str(arena, str_of(name));
        if (name != NULL && strcmp(fallback, "?column?") == 0)
            fallback = name;
        expression = next;
    }
    return arena_str(arena, str_of(fallback));
}

/* A star, COLUMNS(...) or an unnest that DuckDB may make several columns of. */
static bool
is_star(const json_t *expression)
{
    return strcmp(text_at(expression, "class"), "STAR") == 0;
}

/* The names of a set operation are those of its first query. */
static const json_t *
first_query(const json_t *node)
{
    for (int i = 0; i < DESCENTS_MAX; i++) {
        const char *type = text_at(node, "type");

        if (strcmp(type, "SET_OPERATION_NODE") == 0 || strcmp(type, "RECURSIVE_CTE_NODE") == 0)
            node = json_object_get(node, "left");
        else if (strcmp(type, "CTE_NODE") == 0)
            node = json_object_get(node, "child");
        else
            return node;
    }
    return NULL;
}

/* An expression with an alias keeps it: DuckDB gives the same name. */
static Str
wanted_name(Arena *arena, const json_t *expression)
{
    return text_at(expression, "alias")[0] != '\0' ? STR_NULL : name_of(arena, expression);
}

void
column_names(Arena *arena, const json_t *node, Guarded *out_guarded)
{
    const json_t *list = json_object_get(first_query(node), "select_list");
    size_t count = json_array_size(list);
    Guarded guarded = {
        .head = ARENA_ARRAY(arena, Str, count),
        .tail = ARENA_ARRAY(arena, Str, count),
    };
    size_t head = 0;
    size_t tail = count;

    while (head < count && !is_star(json_array_get(list, head))) {
        guarded.head[head] = wanted_name(arena, json_array_get(list, head));
        head++;
    }
    while (tail > head && !is_star(json_array_get(list, tail - 1)))
        tail--;
    for (size_t i = tail; i < count && head < count; i++)
        guarded.tail[guarded.tail_count++] = wanted_name(arena, json_array_get(list, i));
    guarded.head_count = (int) head;
    *out_guarded = guarded;
}
