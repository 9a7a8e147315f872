#include "base/json_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

void
jw_begin(JsonWriter *json, Buf *out)
{
    *json = (JsonWriter){.out = out};
}

void
jw_begin_pretty(JsonWriter *json, Buf *out)
{
    *json = (JsonWriter){.out = out, .pretty = true};
}

static void
new_line(JsonWriter *json)
{
    if (!json->pretty)
        return;
    buf_byte(json->out, '\n');
    for (int i = 0; i < json->depth; i++)
        buf_append(json->out, "  ", 2);
}

/* Before any value or key: the comma, unless a key went before. */
static void
separate(JsonWriter *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->depth == 0)
        return;
    if (json->has_item[json->depth - 1])
        buf_byte(json->out, ',');
    json->has_item[json->depth - 1] = true;
    new_line(json);
}

static void
open_scope(JsonWriter *json, char open, char close)
{
    separate(json);
    assert(json->depth < JSON_DEPTH_MAX);
    buf_byte(json->out, (uint8_t) open);
    json->has_item[json->depth] = false;
    json->closer[json->depth++] = close;
}

void
jw_object(JsonWriter *json)
{
    open_scope(json, '{', '}');
}

void
jw_array(JsonWriter *json)
{
    open_scope(json, '[', ']');
}

void
jw_end(JsonWriter *json)
{
    assert(json->depth > 0 && !json->after_key);

    bool had_items = json->has_item[--json->depth];

    if (had_items)
        new_line(json);
    buf_byte(json->out, (uint8_t) json->closer[json->depth]);
}

void
jw_key_str(JsonWriter *json, Str key)
{
    separate(json);
    jw_put_string(json->out, key);
    buf_byte(json->out, ':');
    if (json->pretty)
        buf_byte(json->out, ' ');
    json->after_key = true;
}

void
jw_key(JsonWriter *json, const char *key)
{
    jw_key_str(json, str_of(key));
}

void
jw_str(JsonWriter *json, Str s)
{
    if (s.ptr == NULL) {
        jw_null(json);
        return;
    }
    jw_text(json, s);
}

void
jw_text(JsonWriter *json, Str s)
{
    separate(json);
    jw_put_string(json->out, s);
}

void
jw_cstr(JsonWriter *json, const char *s)
{
    jw_str(json, str_of(s));
}

void
jw_int(JsonWriter *json, int64_t n)
{
    separate(json);
    buf_printf(json->out, "%" PRId64, n);
}

void
jw_double(JsonWriter *json, double d)
{
    char text[40];

    if (!isfinite(d)) { /* JSON has no word for it */
        jw_null(json);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, d);
        if (strtod(text, NULL) == d)
            break;
    }
    jw_raw(json, str_of(text));
}

void
jw_bool(JsonWriter *json, bool b)
{
    jw_raw(json, b ? STR("true") : STR("false"));
}

void
jw_null(JsonWriter *json)
{
    jw_raw(json, STR("null"));
}

void
jw_raw(JsonWriter *json, Str text)
{
    separate(json);
    buf_str(json->out, text);
}

static void
put_escape(Buf *out, unsigned char c)
{
    switch (c) {
    case '"':
        buf_append(out, "\\\"", 2);
        break;
    case '\\':
        buf_append(out, "\\\\", 2);
        break;
    case '\n':
        buf_append(out, "\\n", 2);
        break;
    case '\r':
        buf_append(out, "\\r", 2);
        break;
    case '\t':
        buf_append(out, "\\t", 2);
        break;
    default:
        buf_printf(out, "\\u%04x", c);
    }
}

void
jw_put_string(Buf *out, Str s)
{
    bool utf8 = str_is_utf8(s);
    size_t start = 0;

    buf_byte(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char) s.ptr[i];
        bool broken = !utf8 && c >= 0x80;

        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f && !broken)
            continue;
        buf_append(out, s.ptr + start, i - start);
        start = i + 1;
        if (broken)
            buf_append(out, "\xEF\xBF\xBD", 3);
        else
            put_escape(out, c);
    }
    buf_append(out, s.ptr + start, s.len - start);
    buf_byte(out, '"');
}
