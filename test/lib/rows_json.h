/* rows_json.h - what a column holds, as JSON, for readers that are not ours. Numbers that JSON has
 * no exact word for are text: floats in hexadecimal, decimals in digits; bytes are hexadecimal.
 *
 * Included by one test: everything here is static. */
#ifndef ROWS_JSON_H
#define ROWS_JSON_H

#include "base/json_writer.h"
#include "model/column.h"

static void
put_decimal(JsonWriter *json, const Column *column, size_t row)
{
    __int128 value = column->type->precision <= 18 ? BUF_AT(&column->values, int64_t, row)
                                                   : BUF_AT(&column->values, __int128, row);
    bool negative = value < 0;
    char digits[48];
    size_t at = sizeof digits;

    value = negative ? -value : value;
    digits[--at] = '\0';
    for (int i = 0; i <= column->type->scale || value > 0; i++) {
        if (i > 0 && i == column->type->scale)
            digits[--at] = '.';
        digits[--at] = (char) ('0' + (int) (value % 10));
        value /= 10;
    }
    if (negative)
        digits[--at] = '-';
    jw_cstr(json, digits + at);
}

static void
put_hex(JsonWriter *json, const char *bytes, size_t count)
{
    AUTO_BUF Buf hex = {0};

    for (size_t i = 0; i < count; i++)
        buf_printf(&hex, "%02x", (unsigned char) bytes[i]);
    jw_str(json, (Str){.ptr = buf_text(&hex), .len = hex.len});
}

static void put_value(JsonWriter *json, const Column *column, size_t row);

static void
put_nested(JsonWriter *json, const Column *column, size_t row)
{
    int parts = column->type->field_count;

    jw_array(json);
    if (column->type->kind == TYPE_STRUCT) {
        for (int i = 0; i < parts; i++)
            put_value(json, &column->children[i], row);
    } else {
        Span span = column_span(column, row);

        for (uint64_t i = span.offset; i < span.offset + span.length; i++) {
            if (parts == 2)
                jw_array(json);
            for (int part = 0; part < parts; part++)
                put_value(json, &column->children[part], i);
            if (parts == 2)
                jw_end(json);
        }
    }
    jw_end(json);
}

static void
put_value(JsonWriter *json, const Column *column, size_t row)
{
    const Buf *values = &column->values;
    char text[64];

    if (column_is_null(column, row)) {
        jw_null(json);
        return;
    }
    switch (column->type->kind) {
    case TYPE_BOOL:
        jw_bool(json, BUF_AT(values, uint8_t, row) != 0);
        break;
    case TYPE_INT32:
    case TYPE_DATE:
        jw_int(json, BUF_AT(values, int32_t, row));
        break;
    case TYPE_INT64:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        jw_int(json, BUF_AT(values, int64_t, row));
        break;
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        snprintf(text, sizeof text, "%a",
                 column->type->kind == TYPE_FLOAT32 ? (double) BUF_AT(values, float, row)
                                                    : BUF_AT(values, double, row));
        jw_cstr(json, text);
        break;
    case TYPE_DECIMAL:
        put_decimal(json, column, row);
        break;
    case TYPE_STRING:
    case TYPE_JSON:
        jw_str(json, column_bytes(column, row));
        break;
    case TYPE_BINARY:
        put_hex(json, column_bytes(column, row).ptr, column_bytes(column, row).len);
        break;
    case TYPE_UUID:
        put_hex(json, values->ptr + row * 16, 16);
        break;
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        put_nested(json, column, row);
        break;
    }
}

static void
put_ids(JsonWriter *json, const Field *fields, int count)
{
    jw_array(json);
    for (int i = 0; i < count; i++) {
        jw_array(json);
        jw_str(json, fields[i].name);
        jw_int(json, fields[i].id);
        jw_int(json, (int) fields[i].type->kind);
        put_ids(json, fields[i].type->fields, fields[i].type->field_count);
        jw_end(json);
    }
    jw_end(json);
}

#endif
