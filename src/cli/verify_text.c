/* verify_text.c - the key of a row, for people: a JSON object in which numbers and booleans are
 * themselves and everything else is text. */
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "cli/verify.h"

enum { TEXT_BYTES_MAX = 120, COLUMNS_MAX = 16 };

static const int64_t DAY_US = 86400000000;

/* No more than TEXT_BYTES_MAX, and no character cut in two. */
static void
put_text(JsonWriter *json, Str text)
{
    AUTO_BUF Buf cut = {0};

    if (text.len <= TEXT_BYTES_MAX) {
        jw_text(json, text);
        return;
    }
    text.len = TEXT_BYTES_MAX;
    while (text.len > 0 && ((uint8_t) text.ptr[text.len] & 0xc0) == 0x80)
        text.len--;
    buf_str(&cut, text);
    buf_cstr(&cut, "...");
    jw_text(json, buf_view(&cut));
}

static void
put_hex(JsonWriter *json, Str bytes, const char *prefix)
{
    AUTO_BUF Buf text = {0};

    buf_cstr(&text, prefix);
    for (size_t i = 0; i < bytes.len && i < TEXT_BYTES_MAX; i++)
        buf_printf(&text, "%02x", (unsigned) (uint8_t) bytes.ptr[i]);
    if (bytes.len > TEXT_BYTES_MAX)
        buf_cstr(&text, "...");
    jw_text(json, buf_view(&text));
}

static void
put_uuid(JsonWriter *json, const char *bytes)
{
    AUTO_BUF Buf text = {0};

    for (int i = 0; i < 16; i++)
        buf_printf(&text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                   (unsigned) (uint8_t) bytes[i]);
    jw_text(json, buf_view(&text));
}

static void
put_decimal(JsonWriter *json, const Column *column, size_t row)
{
    AUTO_BUF Buf text = {0};
    char digits[48];
    int count = 0;
    int scale = column->type->scale;
    bool narrow = type_width(column->type) == sizeof(int64_t);
    __int128 value =
        narrow ? BUF_AT(&column->values, int64_t, row) : BUF_AT(&column->values, __int128, row);
    unsigned __int128 rest = value < 0 ? -(unsigned __int128) value : (unsigned __int128) value;

    for (; rest > 0 || count <= scale; rest /= 10)
        digits[count++] = (char) ('0' + (int) (rest % 10));
    if (value < 0)
        buf_byte(&text, '-');
    for (int i = count - 1; i >= 0; i--) {
        buf_byte(&text, (uint8_t) digits[i]);
        if (i == scale && scale > 0)
            buf_byte(&text, '.');
    }
    jw_raw(json, buf_view(&text));
}

static void
put_time(JsonWriter *json, TypeKind kind, int64_t us)
{
    char text[64];

    if (kind == TYPE_TIME) {
        snprintf(text, sizeof text, "%02" PRId64 ":%02" PRId64 ":%02" PRId64 ".%06" PRId64,
                 us / 3600000000, us / 60000000 % 60, us / 1000000 % 60, us % 1000000);
    } else {
        clock_format(us, text, sizeof text);
        if (kind == TYPE_DATE)
            text[strcspn(text, "T")] = '\0';
        else if (kind == TYPE_TIMESTAMP)
            text[strcspn(text, "Z")] = '\0';
    }
    jw_cstr(json, text);
}

static void
put_float(JsonWriter *json, double value)
{
    if (isfinite(value))
        jw_double(json, value);
    else
        jw_cstr(json, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static void
put_value(JsonWriter *json, const Column *column, size_t row)
{
    TypeKind kind = column->type->kind;

    if (column_is_null(column, row)) {
        jw_null(json);
        return;
    }
    switch (kind) {
    case TYPE_BOOL:
        jw_bool(json, BUF_AT(&column->values, uint8_t, row) != 0);
        return;
    case TYPE_INT32:
        jw_int(json, BUF_AT(&column->values, int32_t, row));
        return;
    case TYPE_INT64:
        jw_int(json, BUF_AT(&column->values, int64_t, row));
        return;
    case TYPE_FLOAT32:
        put_float(json, (double) BUF_AT(&column->values, float, row));
        return;
    case TYPE_FLOAT64:
        put_float(json, BUF_AT(&column->values, double, row));
        return;
    case TYPE_DECIMAL:
        put_decimal(json, column, row);
        return;
    case TYPE_DATE:
        put_time(json, kind, BUF_AT(&column->values, int32_t, row) * DAY_US);
        return;
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        put_time(json, kind, BUF_AT(&column->values, int64_t, row));
        return;
    case TYPE_STRING:
    case TYPE_JSON:
        put_text(json, column_bytes(column, row));
        return;
    case TYPE_BINARY:
        put_hex(json, column_bytes(column, row), "\\x");
        return;
    case TYPE_UUID:
        put_uuid(json, column->values.ptr + 16 * row);
        return;
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        jw_cstr(json, "...");
        return;
    }
}

void
verify_put_key(Buf *out, const TableSchema *schema, const Column *columns, size_t row)
{
    bool keyed = schema->key_mode == KEY_COLUMNS;
    int count = keyed ? schema->key_count : schema->column_count;
    JsonWriter json;

    jw_begin(&json, out);
    jw_object(&json);
    for (int i = 0; i < count && i < COLUMNS_MAX; i++) {
        int c = keyed ? schema->key[i] : i;

        jw_key_str(&json, schema->columns[c].field.name);
        put_value(&json, &columns[c], row);
    }
    jw_end(&json);
}
