#include "config/template.h"

#include <assert.h>

#include "base/buf.h"

static const struct {
    Str name;
    size_t offset;
} placeholders[] = {
    {{.ptr = "schema", .len = 6}, offsetof(TemplateValues, schema)},
    {{.ptr = "database", .len = 8}, offsetof(TemplateValues, database)},
    {{.ptr = "pipeline", .len = 8}, offsetof(TemplateValues, pipeline)},
};

/* The value of a placeholder; NULL when there is none of this name. */
static const Str *
find_value(Str name, const TemplateValues *values)
{
    for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; i++)
        if (str_eq(name, placeholders[i].name))
            return (const Str *) (const void *) ((const char *) values + placeholders[i].offset);
    return NULL;
}

static bool
expand(const char *text, const TemplateValues *values, Buf *out, Error *err)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '}')
            return FAIL(err, ERR_INPUT, "\"%.100s\" has a } without its {", text);
        if (*p != '{') {
            buf_byte(out, (uint8_t) *p);
            continue;
        }

        const char *end = strchr(p, '}');

        if (end == NULL)
            return FAIL(err, ERR_INPUT, "\"%.100s\" has a { without its }", text);

        Str name = {.ptr = p + 1, .len = (size_t) (end - p - 1)};
        const Str *value = find_value(name, values);

        if (value == NULL)
            return FAIL(err, ERR_INPUT,
                        "\"%.100s\" has an unknown placeholder\n"
                        "hint: there are {schema}, {database} and {pipeline}",
                        text);
        buf_str(out, *value);
        p = end;
    }
    return true;
}

bool
template_check(const char *text, Error *err)
{
    AUTO_BUF Buf ignored = {0};

    return expand(text, &(TemplateValues){0}, &ignored, err);
}

Str
template_expand(Arena *arena, const char *text, const TemplateValues *values)
{
    AUTO_BUF Buf out = {0};
    Error err = {0};
    bool ok = expand(text, values, &out, &err);

    assert(ok);
    (void) ok;
    return arena_str(arena, buf_view(&out));
}
