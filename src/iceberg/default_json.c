#include "iceberg/default_json.h"

#include <inttypes.h>
#include <math.h>

#include "base/json_writer.h"
#include "decode/value.h"
#include "iceberg/value_text.h"

/* 0001-01-01 and 9999-12-31: what is outside has no text that all libraries read */
enum { DAYS_MIN = -719162, DAYS_MAX = 2932896 };

static const int64_t DAY_US = INT64_C(86400000000);

static bool
put_quoted_date(Buf *out, int64_t days)
{
    if (days < DAYS_MIN || days > DAYS_MAX)
        return false;
    buf_byte(out, '"');
    text_put_date(out, days);
    buf_byte(out, '"');
    return true;
}

static bool
put_quoted_instant(Buf *out, int64_t us, const char *zone)
{
    if (us < DAYS_MIN * DAY_US || us >= (DAYS_MAX + 1) * DAY_US)
        return false;
    buf_byte(out, '"');
    text_put_instant(out, us, zone);
    buf_byte(out, '"');
    return true;
}

static void
put_quoted_hex(Buf *out, Str bytes)
{
    buf_byte(out, '"');
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(out, "%02x", (uint8_t) bytes.ptr[i]);
    buf_byte(out, '"');
}

static void
put_quoted_decimal(Buf *out, const Column *column, size_t row)
{
    __int128 unscaled;

    if (column->type->precision <= 18)
        unscaled = BUF_AT(&column->values, int64_t, row);
    else
        memcpy(&unscaled, column->values.ptr + row * sizeof unscaled, sizeof unscaled);
    buf_byte(out, '"');
    text_put_decimal(out, unscaled, column->type->scale);
    buf_byte(out, '"');
}

/* As few digits as read the same double again, of a float also, because the column may become one.
 * Java takes no whole number for a real one (SingleValueParser), and -0 has no sign as such. */
static bool
put_real(Buf *out, double value)
{
    char text[32];
    int digits = 15;

    if (!isfinite(value))
        return false;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (strtod(text, NULL) != value && digits++ < 17);
    buf_cstr(out, text);
    if (strpbrk(text, ".e") == NULL)
        buf_cstr(out, ".0");
    return true;
}

/* False: it has no JSON. */
static bool
put_value(Buf *out, const Column *column, size_t row)
{
    const Buf *values = &column->values;

    switch (column->type->kind) {
    case TYPE_BOOL:
        buf_cstr(out, BUF_AT(values, uint8_t, row) != 0 ? "true" : "false");
        return true;
    case TYPE_INT32:
        buf_printf(out, "%" PRId32, BUF_AT(values, int32_t, row));
        return true;
    case TYPE_INT64:
        buf_printf(out, "%" PRId64, BUF_AT(values, int64_t, row));
        return true;
    case TYPE_FLOAT32:
        return put_real(out, (double) BUF_AT(values, float, row));
    case TYPE_FLOAT64:
        return put_real(out, BUF_AT(values, double, row));
    case TYPE_DECIMAL:
        put_quoted_decimal(out, column, row);
        return true;
    case TYPE_DATE:
        return put_quoted_date(out, BUF_AT(values, int32_t, row));
    case TYPE_TIME:
        buf_byte(out, '"');
        text_put_time(out, BUF_AT(values, int64_t, row));
        buf_byte(out, '"');
        return true;
    case TYPE_TIMESTAMP:
        return put_quoted_instant(out, BUF_AT(values, int64_t, row), "");
    case TYPE_TIMESTAMPTZ:
        return put_quoted_instant(out, BUF_AT(values, int64_t, row), "+00:00");
    case TYPE_STRING:
    case TYPE_JSON:
        jw_put_string(out, column_bytes(column, row));
        return true;
    case TYPE_BINARY:
        put_quoted_hex(out, column_bytes(column, row));
        return true;
    case TYPE_UUID:
        buf_byte(out, '"');
        text_put_uuid(out, (Str){.ptr = values->ptr + row * 16, .len = 16});
        buf_byte(out, '"');
        return true;
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        return false;
    }
    return false;
}

Str
default_from_text(Arena *arena, const Type *type, Str text)
{
    AUTO_BUF Buf json = {0};
    Column column;
    const char *reason;
    bool said = false;

    if (type_is_nested(type))
        return STR_NULL;
    column_init(&column, type);
    if (value_parse(&column, text, &reason) == PARSE_OK)
        said = put_value(&json, &column, 0);
    column_done(&column);
    return said ? arena_str(arena, buf_view(&json)) : STR_NULL;
}
