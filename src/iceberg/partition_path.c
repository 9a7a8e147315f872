/* partition_path.c - partitions as folders, for people and for tools that go by names. Readers go
 * by the manifest. */
#include "iceberg/partitioner.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/bytes.h"
#include "iceberg/transform.h"
#include "iceberg/value_text.h"

enum { VALUE_BYTES_MAX = 100, PATH_BYTES_MAX = 400 };

/* --- Values as text -------------------------------------------------------------------------- */

static int64_t
load_int(Str value)
{
    return value.len == 4 ? (int32_t) load_le32(value.ptr) : (int64_t) load_le64(value.ptr);
}

static int64_t
floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

static void
put_hex(Buf *out, Str bytes)
{
    for (size_t i = 0; i < bytes.len && i < VALUE_BYTES_MAX; i++)
        buf_printf(out, "%02x", (uint8_t) bytes.ptr[i]);
}

static void
put_decimal(Buf *out, Str bytes, int scale)
{
    unsigned __int128 value = (uint8_t) bytes.ptr[0] & 0x80 ? ~(unsigned __int128) 0 : 0;

    for (size_t i = 0; i < bytes.len; i++)
        value = value << 8 | (uint8_t) bytes.ptr[i];
    text_put_decimal(out, (__int128) value, scale);
}

static void
put_real(Buf *out, Str value)
{
    float narrow;
    double wide;

    if (value.len == sizeof narrow) {
        memcpy(&narrow, value.ptr, sizeof narrow);
        buf_printf(out, "%.9g", (double) narrow);
    } else {
        memcpy(&wide, value.ptr, sizeof wide);
        buf_printf(out, "%.17g", wide);
    }
}

static void
put_value(Buf *out, const ResultType *type, Str value)
{
    switch (type->kind) {
    case RESULT_BOOLEAN:
        buf_cstr(out, value.ptr[0] != 0 ? "true" : "false");
        break;
    case RESULT_DATE:
        text_put_date(out, load_int(value));
        break;
    case RESULT_TIME:
        text_put_time(out, load_int(value));
        break;
    case RESULT_TIMESTAMP:
        text_put_instant(out, load_int(value), "");
        break;
    case RESULT_TIMESTAMPTZ:
        text_put_instant(out, load_int(value), "Z");
        break;
    case RESULT_FLOAT:
    case RESULT_DOUBLE:
        put_real(out, value);
        break;
    case RESULT_DECIMAL:
        put_decimal(out, value, type->scale);
        break;
    case RESULT_STRING:
        buf_str(out, value);
        break;
    case RESULT_UUID:
        text_put_uuid(out, value);
        break;
    case RESULT_FIXED:
    case RESULT_BINARY:
        put_hex(out, value);
        break;
    case RESULT_INT:
    case RESULT_LONG:
    case RESULT_TIMESTAMP_NS:
    case RESULT_TIMESTAMPTZ_NS:
        buf_printf(out, "%" PRId64, load_int(value));
        break;
    }
}

/* Ordinals since 1970 as the dates they begin with: 2026, 2026-11, 2026-11-30-14. */
static void
put_ordinal(Buf *out, Transform transform, const ResultType *type, Str value)
{
    bool ordinal = transform_is_time(transform) && transform.kind != TRANSFORM_DAY;
    int64_t n = ordinal ? load_int(value) : 0;

    if (transform.kind == TRANSFORM_YEAR) {
        buf_printf(out, "%04" PRId64, 1970 + n);
    } else if (transform.kind == TRANSFORM_MONTH) {
        buf_printf(out, "%04" PRId64 "-%02d", 1970 + floor_div(n, 12),
                   (int) (n - 12 * floor_div(n, 12)) + 1);
    } else if (transform.kind == TRANSFORM_HOUR) {
        text_put_date(out, floor_div(n, 24));
        buf_printf(out, "-%02d", (int) (n - 24 * floor_div(n, 24)));
    } else {
        put_value(out, type, value);
    }
}

/* --- The path -------------------------------------------------------------------------------- */

/* As java.net.URLEncoder does, and '*' too, which would be a pattern to some readers. */
static void
put_escaped(Buf *out, Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t) text.ptr[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '.' || c == '-' || c == '_')
            buf_byte(out, c);
        else if (c == ' ')
            buf_byte(out, '+');
        else
            buf_printf(out, "%%%02X", c);
    }
}

static Str
cut(Str text, size_t length_max)
{
    if (text.len <= length_max)
        return text;
    while (length_max > 0 && ((uint8_t) text.ptr[length_max] & 0xC0) == 0x80)
        length_max--;
    return (Str){.ptr = text.ptr, .len = length_max};
}

static Str
escaped_part(Buf *scratch, Str text)
{
    size_t start = scratch->len;

    /* a byte may take three */
    put_escaped(scratch, cut(text, VALUE_BYTES_MAX / 3));
    return (Str){.ptr = scratch->ptr + start, .len = scratch->len - start};
}

void
partition_path(const PartitionSpec *spec, const ResultType *types, Str tuple, Buf *out)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str *values = ARENA_ARRAY(arena, Str, (size_t) spec->field_count);
    size_t start = out->len;
    bool whole = partition_unpack(tuple, values, spec->field_count);

    assert(whole);
    for (int i = 0; i < spec->field_count && out->len - start < PATH_BYTES_MAX; i++) {
        AUTO_BUF Buf name = {0};
        AUTO_BUF Buf value = {0};
        AUTO_BUF Buf text = {0};
        Transform transform = {0};
        bool known = transform_parse(spec->fields[i].transform, &transform);

        assert(known);
        if (values[i].ptr == NULL)
            buf_cstr(&text, "null");
        else
            put_ordinal(&text, transform, &types[i], values[i]);
        if (i > 0)
            buf_byte(out, '/');
        buf_str(out, escaped_part(&name, spec->fields[i].name));
        buf_byte(out, '=');
        buf_str(out, escaped_part(&value, buf_view(&text)));
    }
}
