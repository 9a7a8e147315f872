#include "model/transform.h"

#include <assert.h>
#include <limits.h>

typedef struct TransformRow {
    const char *name;
    bool has_width;
    const char *takes; /* for messages */
} TransformRow;

/* In the order of TransformKind. */
static const TransformRow transform_rows[] = {
    {"identity", false, "every type but lists, maps and structs"},
    {"bucket", true,
     "int, long, decimal, date, time, timestamp, timestamptz, string, uuid and binary"},
    {"truncate", true, "int, long, decimal, string and binary"},
    {"year", false, "date, timestamp and timestamptz"},
    {"month", false, "date, timestamp and timestamptz"},
    {"day", false, "date, timestamp and timestamptz"},
    {"hour", false, "timestamp and timestamptz"},
    {"void", false, "every type but lists, maps and structs"},
};

enum { TRANSFORM_COUNT = sizeof transform_rows / sizeof transform_rows[0] };

_Static_assert(TRANSFORM_COUNT == TRANSFORM_VOID + 1, "one row per transform");

static bool
find_name(Str name, TransformKind *out_kind)
{
    for (int i = 0; i < TRANSFORM_COUNT; i++) {
        if (str_eqc(name, transform_rows[i].name)) {
            *out_kind = (TransformKind) i;
            return true;
        }
    }
    return false;
}

/* 1 to INT_MAX, as Java takes it. */
static bool
parse_width(Str text, int *out_width)
{
    int64_t width = 0;

    if (text.len == 0 || text.len > 10)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        width = width * 10 + (text.ptr[i] - '0');
    }
    *out_width = (int) width;
    return width >= 1 && width <= INT_MAX;
}

bool
transform_parse(Str text, Transform *out_transform)
{
    const char *bracket = text.len == 0 ? NULL : memchr(text.ptr, '[', text.len);
    Str name = text;
    Transform transform = {0};

    if (bracket != NULL)
        name.len = (size_t) (bracket - text.ptr);
    if (!find_name(name, &transform.kind) ||
        transform_rows[transform.kind].has_width != (bracket != NULL))
        return false;
    if (bracket != NULL) {
        Str width = {.ptr = bracket + 1, .len = text.len - name.len - 1};

        if (width.len == 0 || width.ptr[width.len - 1] != ']')
            return false;
        width.len--;
        if (!parse_width(width, &transform.width))
            return false;
    }
    *out_transform = transform;
    return true;
}

void
transform_text(Transform transform, Buf *out)
{
    buf_cstr(out, transform_rows[transform.kind].name);
    if (transform_rows[transform.kind].has_width)
        buf_printf(out, "[%d]", transform.width);
}

bool
transform_eq(Transform a, Transform b)
{
    return a.kind == b.kind && a.width == b.width;
}

static bool
truncates(TypeKind kind)
{
    return kind == TYPE_INT32 || kind == TYPE_INT64 || kind == TYPE_DECIMAL ||
           kind == TYPE_STRING || kind == TYPE_JSON || kind == TYPE_BINARY;
}

bool
transform_takes(Transform transform, const Type *type)
{
    bool instant = type->kind == TYPE_TIMESTAMP || type->kind == TYPE_TIMESTAMPTZ;

    if (type_is_nested(type))
        return false;
    switch (transform.kind) {
    case TRANSFORM_IDENTITY:
    case TRANSFORM_VOID:
        return true;
    case TRANSFORM_BUCKET:
        return type->kind != TYPE_BOOL && type->kind != TYPE_FLOAT32 && type->kind != TYPE_FLOAT64;
    case TRANSFORM_TRUNCATE:
        return truncates(type->kind);
    case TRANSFORM_YEAR:
    case TRANSFORM_MONTH:
    case TRANSFORM_DAY:
        return instant || type->kind == TYPE_DATE;
    case TRANSFORM_HOUR:
        return instant;
    }
    return false;
}

const char *
transform_takes_text(Transform transform)
{
    return transform_rows[transform.kind].takes;
}

bool
transform_is_time(Transform transform)
{
    return transform.kind == TRANSFORM_YEAR || transform.kind == TRANSFORM_MONTH ||
           transform.kind == TRANSFORM_DAY || transform.kind == TRANSFORM_HOUR;
}

/* --- The setting --------------------------------------------------------------------------- */

static Str
trim(Str text)
{
    while (text.len > 0 && text.ptr[0] == ' ')
        text = (Str){.ptr = text.ptr + 1, .len = text.len - 1};
    while (text.len > 0 && text.ptr[text.len - 1] == ' ')
        text.len--;
    return text;
}

/* "a ""b""" -> a "b" */
static bool
parse_column(Arena *arena, Str text, Str *out_column, Error *err)
{
    AUTO_BUF Buf name = {0};

    text = trim(text);
    if (text.len == 0)
        return FAIL(err, ERR_INPUT, "names no column");
    if (text.ptr[0] != '"') {
        *out_column = arena_str(arena, text);
        return true;
    }
    for (size_t i = 1; i + 1 < text.len; i++) {
        if (text.ptr[i] == '"') {
            if (text.ptr[++i] != '"' || i + 1 == text.len)
                return FAIL(err, ERR_INPUT, "a quote in a quoted column is doubled");
        }
        buf_byte(&name, (uint8_t) text.ptr[i]);
    }
    if (text.len < 3 || text.ptr[text.len - 1] != '"')
        return FAIL(err, ERR_INPUT, "a quoted column has no end");
    *out_column = arena_str(arena, buf_view(&name));
    return true;
}

/* bucket(16, id): the width comes first in the argument. */
static bool
split_width(Str *argument, Str *out_width)
{
    const char *comma = memchr(argument->ptr, ',', argument->len);

    if (comma == NULL || argument->ptr[0] == '"')
        return false;
    *out_width = trim((Str){.ptr = argument->ptr, .len = (size_t) (comma - argument->ptr)});
    *argument =
        (Str){.ptr = comma + 1, .len = argument->len - (size_t) (comma + 1 - argument->ptr)};
    return true;
}

#define TRANSFORM_NAMES                                                                            \
    "\nhint: transforms are identity, bucket[N], truncate[N], year, month, day, hour and void: "   \
    "\"day(created_at)\", \"bucket[16](id)\", or a column alone"

static bool
parse_call(Arena *arena, Str head, Str argument, PartitionTerm *term, Error *err)
{
    const char *bracket = memchr(head.ptr, '[', head.len);
    Str name =
        trim(bracket == NULL ? head : (Str){.ptr = head.ptr, .len = (size_t) (bracket - head.ptr)});
    Str width = STR_NULL;

    if (!find_name(name, &term->transform.kind))
        return FAIL(err, ERR_INPUT, "\"%.*s\" is no partition transform" TRANSFORM_NAMES,
                    STR_ARG(name));

    const TransformRow *row = &transform_rows[term->transform.kind];

    if (bracket != NULL) {
        width = (Str){.ptr = bracket + 1, .len = (size_t) (head.ptr + head.len - bracket) - 1};
        width = trim(width);
        if (width.len == 0 || width.ptr[width.len - 1] != ']')
            return FAIL(err, ERR_INPUT, "%s[ has no ]", row->name);
        width.len--;
        width = trim(width);
    } else if (row->has_width && !split_width(&argument, &width)) {
        return FAIL(err, ERR_INPUT, "%s wants a number\nhint: %s[16](%.*s)", row->name, row->name,
                    STR_ARG(trim(argument)));
    }
    if (!row->has_width && bracket != NULL)
        return FAIL(err, ERR_INPUT, "%s takes no number", row->name);
    if (row->has_width && !parse_width(width, &term->transform.width))
        return FAIL(err, ERR_INPUT, "%s[%.*s]: the number is from 1 to %d", row->name,
                    STR_ARG(width), INT_MAX);
    return parse_column(arena, argument, &term->column, err);
}

static bool
parse_term(Arena *arena, Str text, PartitionTerm *term, Error *err)
{
    const char *open = text.len == 0 || text.ptr[0] == '"' ? NULL : memchr(text.ptr, '(', text.len);

    if (open == NULL)
        return parse_column(arena, text, &term->column, err);
    if (text.ptr[text.len - 1] != ')')
        return FAIL(err, ERR_INPUT, "has no closing parenthesis");

    Str head = {.ptr = text.ptr, .len = (size_t) (open - text.ptr)};
    Str argument = {.ptr = open + 1, .len = text.len - head.len - 2};

    return parse_call(arena, head, argument, term, err);
}

bool
partition_term_parse(Arena *arena, Str text, PartitionTerm *out_term, Error *err)
{
    PartitionTerm term = {.text = arena_str(arena, trim(text))};

    if (!parse_term(arena, term.text, &term, err))
        return WRAP(err, "\"%.*s\"", (int) (text.len < 100 ? text.len : 100), text.ptr);
    *out_term = term;
    return true;
}
