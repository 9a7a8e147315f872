/* help_types.c - what the types of Postgres become: `walberg help types` and docs/types.md.
 *
 * Nothing here says what a type becomes: each line asks type_from_postgres() and cast_choices(). */
#include "cli/cli.h"

#include "model/cast.h"

/* numeric(12,2) as Postgres keeps it: make_numeric_typmod() in src/backend/utils/adt/numeric.c. */
#define NUMERIC_TYPMOD(precision, scale) ((((precision) << 16) | ((scale) &0x7ff)) + 4)

typedef struct Line {
    const char *postgres;
    PgType type;
    int32_t typmod;
    int dimensions;
    const char *note;
} Line;

static const PgType int4 = {.oid = 23, .name = {.ptr = "int4", .len = 4}, .typtype = 'b'};
static const PgType text = {.oid = 25, .name = {.ptr = "text", .len = 4}, .typtype = 'b'};

static const PgMember pair[] = {
    {.name = {.ptr = "a", .len = 1}, .typmod = -1, .type = &int4},
    {.name = {.ptr = "b", .len = 1}, .typmod = -1, .type = &text},
};

#define NUMERIC                                                                                    \
    {                                                                                              \
        .oid = 1700, .name = {.ptr = "numeric", .len = 7}, .typtype = 'b'                          \
    }
#define OTHER(kind)                                                                                \
    {                                                                                              \
        .oid = 16384, .name = {.ptr = "other", .len = 5}, .typtype = (kind)                        \
    }

/* What has no row of its own in the table: made of others, or not in it. */
static const Line lines[] = {
    {"numeric(12,2)", NUMERIC, NUMERIC_TYPMOD(12, 2), 0, "NaN and infinities are rejects"},
    {"numeric(40,2)", NUMERIC, NUMERIC_TYPMOD(40, 2), 0, "Iceberg has 38 digits"},
    {"numeric(6,-2)", NUMERIC, NUMERIC_TYPMOD(6, -2), 0, "Iceberg has no negative scale"},
    {"time",
     {.oid = 1083, .name = {.ptr = "time", .len = 4}, .typtype = 'b'},
     -1,
     0,
     "its text, because Spark opens no table that has Iceberg's time; in that 24:00:00 is a "
     "reject"},
    {"integer[]",
     {.oid = 16384, .typtype = 'b', .is_array = true, .base = &int4},
     -1,
     1,
     "a value with other dimensions or lower bounds than declared is a reject; as JSON none is: "
     "numbers, booleans and JSON are themselves, all else is text, lower bounds are left out"},
    {"integer[][]", {.oid = 16384, .typtype = 'b', .is_array = true, .base = &int4}, -1, 2, ""},
    {"a domain over integer", {.oid = 16384, .typtype = 'd', .base = &int4}, -1, 0, "its base"},
    {"a composite (a integer, b text)",
     {.oid = 16384, .typtype = 'c', .members = (PgMember *) (uintptr_t) pair, .member_count = 2},
     -1,
     0,
     "members have field ids of their own"},
    {"an enum", OTHER('e'), -1, 0, "its label"},
    {"a range or multirange", OTHER('r'), -1, 0, "its text"},
    {"any other, like interval, inet, bit, tsvector, point, ltree", OTHER('b'), -1, 0, "its text"},
};

/* As Iceberg's Java library prints types, with the names of a struct's members. */
static void
put_type(Buf *out, const Type *type)
{
    if (!type_is_nested(type)) {
        type_iceberg_name(type, out);
        return;
    }
    buf_cstr(out, type->kind == TYPE_LIST ? "list<" : type->kind == TYPE_MAP ? "map<" : "struct<");
    for (int i = 0; i < type->field_count; i++) {
        buf_cstr(out, i == 0 ? "" : ", ");
        if (type->kind == TYPE_STRUCT)
            buf_printf(out, "%.*s: ", STR_ARG(type->fields[i].name));
        put_type(out, type->fields[i].type);
    }
    buf_byte(out, '>');
}

static void
put_line(Buf *out, const Line *line, bool markdown)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf lake = {0};
    const Type *type = type_from_postgres(arena, &line->type, line->typmod, line->dimensions);
    const char *casts = cast_choices(&line->type, type);

    put_type(&lake, type);
    if (strcmp(buf_text(&lake), "string") == 0) /* no cast at all */
        casts += strncmp(casts, "string or ", 10) == 0 ? 10 : strlen("string");
    if (markdown)
        buf_printf(out, "| %s | `%s` | %s | %s |\n", line->postgres, buf_text(&lake), casts,
                   line->note);
    else
        buf_printf(out, "  %-32s %s%s%s\n", line->postgres, buf_text(&lake),
                   casts[0] == '\0' ? "" : ", or by cast ", casts);
}

static void
put_lines(Buf *out, bool markdown)
{
    Line line = {.typmod = -1};

    for (size_t i = 0; (line.note = type_row(i, &line.type)) != NULL; i++) {
        line.postgres = line.type.name.ptr;
        put_line(out, &line, markdown);
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        put_line(out, &lines[i], markdown);
}

void
cli_print_types(Buf *out)
{
    buf_cstr(out, "What the types of Postgres become in the lake:\n\n");
    put_lines(out, false);
}

void
cli_print_types_markdown(Buf *out)
{
    buf_cstr(out,
             "# Types\n"
             "\n"
             "<!-- made by tools/gen-docs from src/model/type.c; do not edit -->\n"
             "\n"
             "What a column of a Postgres type is in the lake, from the initial copy and from the "
             "stream alike.\n"
             "A value that its column cannot hold is a *reject*: recorded with its text in "
             "`_walberg.rejects`,\n"
             "and NULL in its row (in a key it parks the table). By `tables.PATTERN.columns` "
             "every column may\n"
             "arrive as `string`, its Postgres text, and as what else the third column says; "
             "nothing is ever\n"
             "rounded.\n"
             "\n"
             "| Postgres | in the lake | by cast | |\n"
             "|---|---|---|---|\n");
    put_lines(out, true);
}
