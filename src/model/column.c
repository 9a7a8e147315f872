#include "model/column.h"

#include <assert.h>
#include <math.h>

#include "base/bytes.h"

/* More than this is not kept for the next batch: it was an unusual one. */
static const size_t BYTES_KEPT_MAX = 8 << 20;

void
column_init(Column *column, const Type *type)
{
    size_t children = (size_t) type->field_count;

    *column = (Column){.type = type};
    if (children == 0)
        return;
    column->children = xcalloc(children, sizeof(Column));
    for (size_t i = 0; i < children; i++)
        column_init(&column->children[i], type->fields[i].type);
}

void
column_done(Column *column)
{
    if (column->children != NULL)
        for (int i = 0; i < column->type->field_count; i++)
            column_done(&column->children[i]);
    free(column->children);
    buf_done(&column->valid);
    buf_done(&column->values);
    buf_done(&column->bytes);
    *column = (Column){0};
}

void
column_reset(Column *column)
{
    column->rows = 0;
    buf_reset(&column->valid);
    buf_reset(&column->values);
    if (column->bytes.cap > BYTES_KEPT_MAX)
        buf_done(&column->bytes);
    else
        buf_reset(&column->bytes);
    for (int i = 0; i < column->type->field_count; i++)
        column_reset(&column->children[i]);
}

static bool
has_bytes(const Type *type)
{
    return type->kind == TYPE_STRING || type->kind == TYPE_JSON || type->kind == TYPE_BINARY;
}

/* Whether values are Spans of rows in the children. */
static bool
has_span(const Type *type)
{
    return type->kind == TYPE_LIST || type->kind == TYPE_MAP;
}

/* --- Appending ------------------------------------------------------------------------------- */

void
column_append_null(Column *column)
{
    size_t width = type_width(column->type);

    buf_byte(&column->valid, 0);
    if (width > 0)
        memset(buf_push(&column->values, width), 0, width);
    column->rows++;
    if (column->type->kind != TYPE_STRUCT)
        return;
    for (int i = 0; i < column->type->field_count; i++)
        column_append_null(&column->children[i]);
}

void
column_append_fixed(Column *column, const void *value)
{
    size_t width = type_width(column->type);

    assert(!has_bytes(column->type) && !type_is_nested(column->type));
    memcpy(column_append_room(column, width), value, width);
}

void
column_append_bytes(Column *column, Str value)
{
    Span span = {.offset = column->bytes.len, .length = value.len};

    assert(has_bytes(column->type));
    buf_append(&column->bytes, value.ptr, value.len);
    memcpy(column_append_room(column, sizeof span), &span, sizeof span);
}

void
column_append_span(Column *column, size_t start)
{
    Span span = {.offset = start, .length = column->children[0].rows - start};

    assert(has_span(column->type) && start <= column->children[0].rows);
    assert(column->type->kind != TYPE_MAP || column->children[1].rows == column->children[0].rows);
    memcpy(column_append_room(column, sizeof span), &span, sizeof span);
}

void
column_append_struct(Column *column)
{
    assert(column->type->kind == TYPE_STRUCT);
    buf_byte(&column->valid, 1);
    column->rows++;
    for (int i = 0; i < column->type->field_count; i++)
        assert(column->children[i].rows == column->rows);
}

/* --- Copying --------------------------------------------------------------------------------- */

/* The bytes of a Span of another column (or of this one, so room comes first) behind ours. */
static Span
copy_bytes(Column *column, const Column *from, size_t row)
{
    Span span = column_span(from, row);

    buf_reserve(&column->bytes, span.length);

    Span copy = {.offset = column->bytes.len, .length = span.length};

    if (span.length > 0)
        memcpy(buf_push(&column->bytes, span.length), from->bytes.ptr + span.offset, span.length);
    return copy;
}

/* The child rows of a list or map behind ours. */
static Span
copy_children(Column *column, const Column *from, size_t row)
{
    Span span = column_span(from, row);
    Span copy = {.offset = column->children[0].rows, .length = span.length};

    for (int child = 0; child < column->type->field_count; child++)
        for (size_t i = 0; i < span.length; i++)
            column_append_copy(&column->children[child], &from->children[child], span.offset + i);
    return copy;
}

void
column_append_copy(Column *column, const Column *from, size_t row)
{
    assert(row < from->rows && column->type->kind == from->type->kind);
    if (column_is_null(from, row)) {
        column_append_null(column);
        return;
    }
    if (column->type->kind == TYPE_STRUCT) {
        for (int i = 0; i < column->type->field_count; i++)
            column_append_copy(&column->children[i], &from->children[i], row);
        column_append_struct(column);
    } else if (has_bytes(column->type)) {
        Span span = copy_bytes(column, from, row);

        memcpy(column_append_room(column, sizeof span), &span, sizeof span);
    } else if (has_span(column->type)) {
        Span span = copy_children(column, from, row);

        memcpy(column_append_room(column, sizeof span), &span, sizeof span);
    } else {
        size_t width = type_width(column->type);
        void *room = column_append_room(column, width);

        assert(width == type_width(from->type));
        memcpy(room, from->values.ptr + row * width, width);
    }
}

void
column_set_copy(Column *column, size_t row, const Column *from, size_t from_row)
{
    size_t width = type_width(column->type);

    assert(row < column->rows && from_row < from->rows);
    assert(column->type->kind == from->type->kind && width == type_width(from->type));
    if (column->type->kind == TYPE_STRUCT)
        for (int i = 0; i < column->type->field_count; i++)
            column_set_copy(&column->children[i], row, &from->children[i], from_row);
    /* What the row pointed at before stays behind unused until the column is reset. */
    if (has_bytes(column->type))
        BUF_AT(&column->values, Span, row) = copy_bytes(column, from, from_row);
    else if (has_span(column->type))
        BUF_AT(&column->values, Span, row) = copy_children(column, from, from_row);
    else if (width > 0)
        memmove(column->values.ptr + row * width, from->values.ptr + from_row * width, width);
    column->valid.ptr[row] = from->valid.ptr[from_row];
}

void
column_truncate(Column *column, size_t rows)
{
    assert(rows <= column->rows);
    /* Spans need not be in row order after column_set_copy(): give back only what is surely the
     * dropped row's own, at the very end. */
    for (size_t row = column->rows; row > rows && has_bytes(column->type); row--) {
        Span span = column_span(column, row - 1);

        if (span.length > 0 && span.offset + span.length == column->bytes.len)
            column->bytes.len = span.offset;
    }
    for (size_t row = column->rows; row > rows && has_span(column->type); row--) {
        Span span = column_span(column, row - 1);

        if (span.length > 0 && span.offset + span.length == column->children[0].rows)
            for (int i = 0; i < column->type->field_count; i++)
                column_truncate(&column->children[i], span.offset);
    }
    if (column->type->kind == TYPE_STRUCT)
        for (int i = 0; i < column->type->field_count; i++)
            column_truncate(&column->children[i], rows);
    column->valid.len = rows;
    column->values.len = rows * type_width(column->type);
    column->rows = rows;
}

size_t
column_memory(const Column *column)
{
    size_t bytes = column->valid.len + column->values.len + column->bytes.len;

    for (int i = 0; i < column->type->field_count; i++)
        bytes += column_memory(&column->children[i]);
    return bytes;
}

size_t
column_row_memory(const Column *column, size_t row)
{
    size_t bytes = 1 + type_width(column->type);
    Span span;

    if (column_is_null(column, row))
        return bytes;
    if (column->type->kind == TYPE_STRUCT) {
        for (int i = 0; i < column->type->field_count; i++)
            bytes += column_row_memory(&column->children[i], row);
        return bytes;
    }
    if (has_bytes(column->type))
        return bytes + column_span(column, row).length;
    if (!has_span(column->type))
        return bytes;
    span = column_span(column, row);
    for (int child = 0; child < column->type->field_count; child++)
        for (size_t i = 0; i < span.length; i++)
            bytes += column_row_memory(&column->children[child], span.offset + i);
    return bytes;
}

/* By their bits: in arithmetic both zeros are equal. */
static bool
has_negative_zero(const Column *column)
{
    bool found = false;

    if (column->type->kind == TYPE_FLOAT32)
        for (size_t row = 0; row < column->rows; row++)
            found |= BUF_AT(&column->values, uint32_t, row) == UINT32_C(1) << 31;
    if (column->type->kind == TYPE_FLOAT64)
        for (size_t row = 0; row < column->rows; row++)
            found |= BUF_AT(&column->values, uint64_t, row) == UINT64_C(1) << 63;
    return found || columns_have_negative_zero(column->children, column->type->field_count);
}

bool
columns_have_negative_zero(const Column *columns, int count)
{
    for (int i = 0; i < count; i++)
        if (has_negative_zero(&columns[i]))
            return true;
    return false;
}

/* --- Encoding -------------------------------------------------------------------------------- */

/* Part of every key hash that is stored anywhere: never renumber. */
enum {
    TAG_NULL = 0,
    TAG_BOOL = 1,
    TAG_INTEGER = 2,
    TAG_FLOAT = 3,
    TAG_DECIMAL = 4,
    TAG_DATE = 5,
    TAG_TIME = 6,
    TAG_TIMESTAMP = 7,
    TAG_TIMESTAMPTZ = 8,
    TAG_STRING = 9,
    TAG_BINARY = 10,
    TAG_UUID = 11,
    TAG_LIST = 12,
    TAG_MAP = 13,
    TAG_STRUCT = 14,
};

static void
put_tag(Buf *out, uint8_t tag)
{
    buf_byte(out, tag);
}

static void
put_64(Buf *out, uint8_t tag, int64_t value)
{
    put_tag(out, tag);
    store_le64(buf_push(out, 8), (uint64_t) value);
}

static void
put_float(Buf *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        bits = 0x7ff8000000000000u;
    put_64(out, TAG_FLOAT, (int64_t) bits);
}

static void
put_decimal(Buf *out, __int128 value)
{
    put_64(out, TAG_DECIMAL, (int64_t) value);
    store_le64(buf_push(out, 8), (uint64_t) ((unsigned __int128) value >> 64));
}

static void
put_bytes(Buf *out, uint8_t tag, Str bytes)
{
    put_64(out, tag, (int64_t) bytes.len);
    buf_str(out, bytes);
}

static void
put_nested(const Column *column, size_t row, Buf *out)
{
    if (column->type->kind == TYPE_STRUCT) {
        put_tag(out, TAG_STRUCT);
        for (int i = 0; i < column->type->field_count; i++)
            column_encode(&column->children[i], row, out);
        return;
    }

    Span span = column_span(column, row);

    put_64(out, column->type->kind == TYPE_LIST ? TAG_LIST : TAG_MAP, (int64_t) span.length);
    for (size_t i = 0; i < span.length; i++)
        for (int child = 0; child < column->type->field_count; child++)
            column_encode(&column->children[child], span.offset + i, out);
}

void
column_encode(const Column *column, size_t row, Buf *out)
{
    assert(row < column->rows);
    if (column_is_null(column, row)) {
        put_tag(out, TAG_NULL);
        return;
    }
    switch (column->type->kind) {
    case TYPE_BOOL:
        put_tag(out, TAG_BOOL);
        buf_byte(out, BUF_AT(&column->values, uint8_t, row));
        break;
    case TYPE_INT32:
        put_64(out, TAG_INTEGER, BUF_AT(&column->values, int32_t, row));
        break;
    case TYPE_INT64:
        put_64(out, TAG_INTEGER, BUF_AT(&column->values, int64_t, row));
        break;
    case TYPE_FLOAT32:
        put_float(out, (double) BUF_AT(&column->values, float, row));
        break;
    case TYPE_FLOAT64:
        put_float(out, BUF_AT(&column->values, double, row));
        break;
    case TYPE_DECIMAL:
        if (type_width(column->type) == sizeof(int64_t))
            put_decimal(out, BUF_AT(&column->values, int64_t, row));
        else
            put_decimal(out, BUF_AT(&column->values, __int128, row));
        break;
    case TYPE_DATE:
        put_64(out, TAG_DATE, BUF_AT(&column->values, int32_t, row));
        break;
    case TYPE_TIME:
        put_64(out, TAG_TIME, BUF_AT(&column->values, int64_t, row));
        break;
    case TYPE_TIMESTAMP:
        put_64(out, TAG_TIMESTAMP, BUF_AT(&column->values, int64_t, row));
        break;
    case TYPE_TIMESTAMPTZ:
        put_64(out, TAG_TIMESTAMPTZ, BUF_AT(&column->values, int64_t, row));
        break;
    case TYPE_STRING:
    case TYPE_JSON:
        put_bytes(out, TAG_STRING, column_bytes(column, row));
        break;
    case TYPE_BINARY:
        put_bytes(out, TAG_BINARY, column_bytes(column, row));
        break;
    case TYPE_UUID:
        put_tag(out, TAG_UUID);
        buf_append(out, column->values.ptr + row * 16, 16);
        break;
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        put_nested(column, row, out);
        break;
    }
}
