#include "model/cast.h"

#include <stdlib.h>

static const Type type_string = {.kind = TYPE_STRING};
static const Type type_long = {.kind = TYPE_INT64};
static const Type type_double = {.kind = TYPE_FLOAT64};
static const Type type_time = {.kind = TYPE_TIME};
static const Type type_json = {.kind = TYPE_JSON};

/* "(12,4)" or "(12)". */
static bool
parse_precision(const char *text, int *out_precision, int *out_scale)
{
    char *end;
    long precision = strtol(text + 1, &end, 10);
    long scale = 0;

    if (text[0] != '(' || end == text + 1)
        return false;
    if (*end == ',') {
        const char *start = end + 1;

        scale = strtol(start, &end, 10);
        if (end == start)
            return false;
    }
    if (strcmp(end, ")") != 0 || precision < 1 || precision > 38 || scale < 0 || scale > precision)
        return false;
    *out_precision = (int) precision;
    *out_scale = (int) scale;
    return true;
}

static bool
parse_decimal(Arena *arena, const char *text, const Type **out_type, Error *err)
{
    Type *type = ARENA_NEW(arena, Type);

    type->kind = TYPE_DECIMAL;
    if (!parse_precision(text, &type->precision, &type->scale))
        return FAIL(err, ERR_INPUT,
                    "wants decimal(p,s) with 1 <= p <= 38 and 0 <= s <= p\n"
                    "hint: decimal(18,4)");
    *out_type = type;
    return true;
}

bool
cast_parse(Arena *arena, Str text, const Type **out_type, Error *err)
{
    static const struct {
        const char *name;
        const Type *type;
    } names[] = {
        {"string", &type_string}, {"text", &type_string},   {"long", &type_long},
        {"bigint", &type_long},   {"double", &type_double}, {"double precision", &type_double},
        {"time", &type_time},     {"json", &type_json},
    };

    AUTO_BUF Buf squeezed = {0};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (str_eqc(text, names[i].name)) {
            *out_type = names[i].type;
            return true;
        }
    }
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != ' ')
            buf_byte(&squeezed, (uint8_t) text.ptr[i]);

    const char *word = arena_strdup(arena, buf_text(&squeezed));

    if (strncmp(word, "decimal", 7) == 0 || strncmp(word, "numeric", 7) == 0)
        return parse_decimal(arena, word + 7, out_type, err);
    return FAIL(err, ERR_INPUT,
                "\"%.*s\" is no type to cast to\nhint: string, long, double, "
                "decimal(p,s), time or json",
                STR_ARG(text));
}

static bool
is_numeric(const PgType *pg)
{
    while (pg->typtype == 'd' && pg->base != NULL)
        pg = pg->base;
    return str_eqc(pg->name, "numeric") && !pg->is_array;
}

static bool
allows(const PgType *pg, const Type *from, const Type *to)
{
    if (to->kind == TYPE_STRING)
        return true;
    if (to->kind == TYPE_TIME)
        return type_is_time(pg);
    if (from->form != FORM_PLAIN)
        return false;
    if (to->kind == TYPE_DECIMAL)
        return is_numeric(pg) || from->kind == TYPE_INT32 || from->kind == TYPE_INT64;
    if (to->kind == TYPE_FLOAT64)
        return from->kind == TYPE_INT32 || from->kind == TYPE_FLOAT32;
    return to->kind == TYPE_INT64 && from->kind == TYPE_INT32;
}

const Type *
cast_apply(Arena *arena, const PgType *pg, const Type *from, const Type *to)
{
    if (to->kind == TYPE_JSON)
        return type_is_array(pg) ? type_json_of_array(arena, pg) : NULL;
    return allows(pg, from, to) ? to : NULL;
}

const char *
cast_choices(const PgType *pg, const Type *from)
{
    if (type_is_time(pg))
        return "string or time";
    if (type_is_array(pg))
        return "string or json";
    if (is_numeric(pg) || from->kind == TYPE_INT64)
        return "string or decimal(p,s)";
    if (from->kind == TYPE_INT32)
        return "string, long, double or decimal(p,s)";
    if (from->kind == TYPE_FLOAT32)
        return "string or double";
    return "string";
}
