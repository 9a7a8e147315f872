/* column.h - the values of one field for many rows.
 *
 *   valid   one byte a row, 1 = has a value (patchable, unlike a bitmap)
 *   values  type_width() bytes a row: the number itself, or a Span
 *   bytes   what the Spans of strings and binaries point into
 *   children  list: [0] elements; map: [0] keys, [1] values; struct: one per member
 *
 *     list column        valid 1 1 0      values {0,2} {2,1} {0,0}
 *     children[0]        three rows
 *
 * A NULL row has zero bytes in values (Span {0,0}). Members of a NULL struct are NULL. Buffers are
 * reused from batch to batch. Appending never fails: rows and bytes are bounded by the caller. */
#ifndef MODEL_COLUMN_H
#define MODEL_COLUMN_H

#include "base/hash.h"
#include "model/type.h"

typedef struct Span {
    uint64_t offset;
    uint64_t length;
} Span;

typedef struct Column Column;

struct Column {
    const Type *type;
    size_t rows;
    Buf valid;
    Buf values;
    Buf bytes;
    Column *children; /* type->field_count of them, owned */
};

void column_init(Column *column, const Type *type); /* type must outlive the column */
void column_done(Column *column);
void column_reset(Column *column); /* no rows; memory kept, unless it is a lot */

/* Room for the value of one more row that is not NULL, for the caller to fill: `width` is
 * type_width(), so the fast paths need not look it up. Not for strings, lists, maps, structs. */
static inline void *
column_append_room(Column *column, size_t width)
{
    buf_byte(&column->valid, 1);
    column->rows++;
    return buf_push(&column->values, width);
}

void column_append_null(Column *column);
/* One value of type_width() bytes (not for strings, lists, maps, structs). */
void column_append_fixed(Column *column, const void *value);
/* TYPE_STRING, TYPE_JSON, TYPE_BINARY. The bytes are copied. */
void column_append_bytes(Column *column, Str value);
/* The row from `start` (rows of children[0] at the beginning of this value) to the children's
 * present end becomes one list or map value. */
void column_append_span(Column *column, size_t start);
/* A struct row whose members were just appended. */
void column_append_struct(Column *column);

/* Append row `row` of `from`, which has the same type, to `column`; it may be the same column. */
void column_append_copy(Column *column, const Column *from, size_t row);
/* Overwrite row `row` with row `from_row` of `from`: unchanged TOAST values filled in later. For
 * structs, lists and maps too. */
void column_set_copy(Column *column, size_t row, const Column *from, size_t from_row);
/* Drop rows from the end until `rows` are left (a value that turned out to be a reject). */
void column_truncate(Column *column, size_t rows);

static inline bool
column_is_null(const Column *column, size_t row)
{
    return ((const uint8_t *) column->valid.ptr)[row] == 0;
}

static inline Span
column_span(const Column *column, size_t row)
{
    return BUF_AT(&column->values, Span, row);
}

static inline Str
column_bytes(const Column *column, size_t row)
{
    Span span = column_span(column, row);

    if (span.length == 0)
        return STR("");
    return (Str){.ptr = column->bytes.ptr + span.offset, .len = span.length};
}

/* Bytes in use, children included. What a Buf keeps for the next batch does not count: a batch that
 * was emptied starts from nothing. */
size_t column_memory(const Column *column);
/* Of one row. */
size_t column_row_memory(const Column *column, size_t row);

/* Whether a real in them, or deeper, is -0. Counts what rows no longer point at, too. */
bool columns_have_negative_zero(const Column *columns, int count);

/* Append a canonical encoding of the row's typed value to out: tag, width or length, bytes; nested
 * values in order. Equal values give equal bytes whether they came from COPY, from the stream or
 * back out of a Parquet file: key hashes are made of it. A promoted column (int to long, float to
 * double, more digits for a decimal) encodes its old values as before. JSON encodes as the string
 * it is. -0.0 and 0.0 differ, NaNs are one. */
void column_encode(const Column *column, size_t row, Buf *out);

#endif
