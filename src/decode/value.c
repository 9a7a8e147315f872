#include "decode/value.h"

#include "decode/datetime.h"
#include "decode/nested.h"
#include "decode/number.h"

/* The value of a hexadecimal digit, with HEX_IS_DIGIT; 0 for other bytes. */
enum { HEX_IS_DIGIT = 0x10, HEX_VALUE = 0x0f };

static const uint8_t hex_digits[256] = {
    ['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13, ['4'] = 0x14, ['5'] = 0x15,
    ['6'] = 0x16, ['7'] = 0x17, ['8'] = 0x18, ['9'] = 0x19, ['a'] = 0x1a, ['b'] = 0x1b,
    ['c'] = 0x1c, ['d'] = 0x1d, ['e'] = 0x1e, ['f'] = 0x1f, ['A'] = 0x1a, ['B'] = 0x1b,
    ['C'] = 0x1c, ['D'] = 0x1d, ['E'] = 0x1e, ['F'] = 0x1f,
};

static bool
read_hex_byte(const char *p, uint8_t *out)
{
    uint8_t high = hex_digits[(uint8_t) p[0]];
    uint8_t low = hex_digits[(uint8_t) p[1]];

    *out = (uint8_t) (high << 4 | (low & HEX_VALUE));
    return (high & low & HEX_IS_DIGIT) != 0;
}

static void
put_8(Column *column, uint8_t value)
{
    *(uint8_t *) column_append_room(column, sizeof value) = value;
}

static void
put_32(Column *column, int32_t value)
{
    memcpy(column_append_room(column, sizeof value), &value, sizeof value);
}

static void
put_64(Column *column, int64_t value)
{
    memcpy(column_append_room(column, sizeof value), &value, sizeof value);
}

/* --- One function per kind: NULL, or the reason why nothing was appended --------------------- */

static const char *
append_bool(Column *column, Str text)
{
    if (text.len != 1 || (text.ptr[0] != 't' && text.ptr[0] != 'f'))
        return "not a boolean";
    put_8(column, text.ptr[0] == 't');
    return NULL;
}

static const char *
append_int32(Column *column, Str text)
{
    int32_t value = 0;
    const char *reason = number_parse_int32(text, &value);

    if (reason == NULL)
        put_32(column, value);
    return reason;
}

static const char *
append_int64(Column *column, Str text)
{
    int64_t value = 0;
    const char *reason = number_parse_int64(text, &value);

    if (reason == NULL)
        put_64(column, value);
    return reason;
}

static const char *
append_float32(Column *column, Str text)
{
    float value = 0;
    const char *reason = number_parse_float32(text, &value);

    if (reason == NULL)
        memcpy(column_append_room(column, sizeof value), &value, sizeof value);
    return reason;
}

static const char *
append_float64(Column *column, Str text)
{
    double value = 0;
    const char *reason = number_parse_float64(text, &value);

    if (reason == NULL)
        memcpy(column_append_room(column, sizeof value), &value, sizeof value);
    return reason;
}

static const char *
append_decimal(Column *column, Str text)
{
    const Type *type = column->type;
    __int128 value = 0;
    const char *reason = type->form == FORM_MONEY
                             ? number_parse_money(text, &value)
                             : number_parse_decimal(text, type->precision, type->scale, &value);

    if (reason != NULL)
        return reason;
    if (type->precision <= 18)
        put_64(column, (int64_t) value);
    else
        memcpy(column_append_room(column, sizeof value), &value, sizeof value);
    return NULL;
}

static const char *
append_date(Column *column, Str text)
{
    int32_t value = 0;
    const char *reason = datetime_parse_date(text, &value);

    if (reason == NULL)
        put_32(column, value);
    return reason;
}

static const char *
append_time(Column *column, Str text)
{
    int64_t value = 0;
    const char *reason = datetime_parse_time(text, &value);

    if (reason == NULL)
        put_64(column, value);
    return reason;
}

static const char *
append_timestamp(Column *column, Str text)
{
    int64_t value = 0;
    const char *reason = column->type->kind == TYPE_TIMESTAMPTZ
                             ? datetime_parse_timestamptz(text, &value)
                             : datetime_parse_timestamp(text, &value);

    if (reason == NULL)
        put_64(column, value);
    return reason;
}

static const char *
append_string(Column *column, Str text)
{
    if (!str_is_utf8(text))
        return "not valid UTF-8";
    column_append_bytes(column, text);
    return NULL;
}

static const char *
append_uuid(Column *column, Str text)
{
    uint8_t uuid[16];
    size_t at = 0;

    if (text.len != 36)
        return "not a UUID";
    for (size_t i = 0; i < sizeof uuid; i++) {
        if ((i == 4 || i == 6 || i == 8 || i == 10) && text.ptr[at++] != '-')
            return "not a UUID";
        if (!read_hex_byte(text.ptr + at, &uuid[i]))
            return "not a UUID";
        at += 2;
    }
    memcpy(column_append_room(column, sizeof uuid), uuid, sizeof uuid);
    return NULL;
}

/* bytea is "\x" and digits (bytea_output = hex), PostGIS' EWKB the digits alone. */
static const char *
append_binary(Column *column, Str text)
{
    Buf *bytes = &column->bytes;
    size_t start = bytes->len;
    Str digits = text;

    if (column->type->form != FORM_EWKB) {
        if (!str_starts(text, STR("\\x")))
            return "not binary in hexadecimal";
        digits = (Str){.ptr = text.ptr + 2, .len = text.len - 2};
    }
    if (digits.len % 2 != 0)
        return "not binary in hexadecimal";

    Span span = {.offset = start, .length = digits.len / 2};

    buf_reserve(bytes, span.length);
    for (size_t i = 0; i < digits.len; i += 2) {
        uint8_t byte;

        if (!read_hex_byte(digits.ptr + i, &byte)) {
            bytes->len = start;
            return "not binary in hexadecimal";
        }
        bytes->ptr[bytes->len++] = (char) byte;
    }
    memcpy(column_append_room(column, sizeof span), &span, sizeof span);
    return NULL;
}

static const char *
append_value(Column *column, Str text)
{
    switch (column->type->kind) {
    case TYPE_BOOL:
        return append_bool(column, text);
    case TYPE_INT32:
        return append_int32(column, text);
    case TYPE_INT64:
        return append_int64(column, text);
    case TYPE_FLOAT32:
        return append_float32(column, text);
    case TYPE_FLOAT64:
        return append_float64(column, text);
    case TYPE_DECIMAL:
        return append_decimal(column, text);
    case TYPE_DATE:
        return append_date(column, text);
    case TYPE_TIME:
        return append_time(column, text);
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        return append_timestamp(column, text);
    case TYPE_STRING:
        return append_string(column, text);
    case TYPE_JSON:
        return type_is_json_array(column->type) ? nested_parse_json_array(column, text)
                                                : append_string(column, text);
    case TYPE_BINARY:
        return append_binary(column, text);
    case TYPE_UUID:
        return append_uuid(column, text);
    case TYPE_LIST:
        return column->type->form == FORM_BRACKETS ? nested_parse_vector(column, text)
                                                   : nested_parse_array(column, text);
    case TYPE_MAP:
        return nested_parse_hstore(column, text);
    case TYPE_STRUCT:
        return nested_parse_record(column, text);
    }
    return "no such type";
}

ParseResult
value_parse(Column *column, Str text, const char **out_reason)
{
    const char *reason = append_value(column, text);

    if (reason == NULL)
        return PARSE_OK;
    *out_reason = reason;
    return PARSE_REJECT;
}
