#include "iceberg/transform.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

#include "base/bytes.h"
#include "iceberg/murmur3.h"

static const int64_t HOUR_US = INT64_C(3600000000);
static const int64_t DAY_US = INT64_C(86400000000);

/* --- Single values --------------------------------------------------------------------------- */

static void
put_int(Buf *out, int32_t value)
{
    store_le32(buf_push(out, 4), (uint32_t) value);
}

static void
put_long(Buf *out, int64_t value)
{
    store_le64(buf_push(out, 8), (uint64_t) value);
}

static void
put_decimal(Buf *out, __int128 unscaled)
{
    uint8_t bytes[16];
    size_t count = store_be_minimal(bytes, unscaled);

    buf_append(out, bytes + 16 - count, count);
}

static __int128
decimal_at(const Column *column, size_t row)
{
    if (column->type->precision <= 18)
        return BUF_AT(&column->values, int64_t, row);
    return BUF_AT(&column->values, __int128, row);
}

/* --- identity -------------------------------------------------------------------------------- */

/* All NaNs are one partition. */
static void
put_real(Buf *out, const Column *column, size_t row)
{
    if (column->type->kind == TYPE_FLOAT32) {
        float value = BUF_AT(&column->values, float, row);

        if (isnan(value))
            value = NAN;
        buf_append(out, &value, sizeof value);
    } else {
        double value = BUF_AT(&column->values, double, row);

        if (isnan(value))
            value = (double) NAN;
        buf_append(out, &value, sizeof value);
    }
}

static void
put_identity(Buf *out, const Column *column, size_t row)
{
    switch (column->type->kind) {
    case TYPE_BOOL:
        buf_byte(out, BUF_AT(&column->values, uint8_t, row) != 0);
        break;
    case TYPE_INT32:
    case TYPE_DATE:
        put_int(out, BUF_AT(&column->values, int32_t, row));
        break;
    case TYPE_INT64:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        put_long(out, BUF_AT(&column->values, int64_t, row));
        break;
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        put_real(out, column, row);
        break;
    case TYPE_DECIMAL:
        put_decimal(out, decimal_at(column, row));
        break;
    case TYPE_STRING:
    case TYPE_JSON:
    case TYPE_BINARY:
        buf_str(out, column_bytes(column, row));
        break;
    case TYPE_UUID:
        buf_append(out, column->values.ptr + row * 16, 16);
        break;
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        assert(false && "nested columns have no transforms");
    }
}

/* --- bucket ---------------------------------------------------------------------------------- */

static uint32_t
hash_long(int64_t value)
{
    char bytes[8];

    store_le64(bytes, (uint64_t) value);
    return murmur3_32(bytes, sizeof bytes);
}

/* An int hashes as the long that it may become; a decimal whatever its precision. */
uint32_t
transform_hash(const Column *column, size_t row)
{
    AUTO_BUF Buf bytes = {0};
    Str text;

    switch (column->type->kind) {
    case TYPE_INT32:
    case TYPE_DATE:
        return hash_long(BUF_AT(&column->values, int32_t, row));
    case TYPE_INT64:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        return hash_long(BUF_AT(&column->values, int64_t, row));
    case TYPE_DECIMAL:
        put_decimal(&bytes, decimal_at(column, row));
        return murmur3_32(bytes.ptr, bytes.len);
    case TYPE_STRING:
    case TYPE_JSON:
    case TYPE_BINARY:
        text = column_bytes(column, row);
        return murmur3_32(text.ptr, text.len);
    case TYPE_UUID:
        return murmur3_32(column->values.ptr + row * 16, 16);
    case TYPE_BOOL:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        break;
    }
    assert(false && "a type that has no buckets");
    return 0;
}

/* --- truncate -------------------------------------------------------------------------------- */

static __int128
floor_to(__int128 value, __int128 width)
{
    __int128 rest = value % width;

    return value - (rest < 0 ? rest + width : rest);
}

/* The first `points` code points; bytes that are no UTF-8 count as points where they start one. */
static Str
first_points(Str text, int points)
{
    size_t at = 0;

    for (; at < text.len; at++)
        if (((uint8_t) text.ptr[at] & 0xC0) != 0x80 && points-- == 0)
            break;
    return (Str){.ptr = text.ptr, .len = at};
}

__int128
transform_truncated_number(const Column *column, size_t row, int width)
{
    TypeKind kind = column->type->kind;

    if (kind == TYPE_INT32)
        return (int32_t) (uint32_t) floor_to(BUF_AT(&column->values, int32_t, row), width);
    if (kind == TYPE_INT64)
        return (int64_t) (uint64_t) floor_to(BUF_AT(&column->values, int64_t, row), width);
    assert(kind == TYPE_DECIMAL);
    return floor_to(decimal_at(column, row), width);
}

Str
transform_truncated_bytes(const Column *column, size_t row, int width)
{
    Str bytes = column_bytes(column, row);

    if (column->type->kind != TYPE_BINARY)
        return first_points(bytes, width);
    if (bytes.len > (size_t) width)
        bytes.len = (size_t) width;
    return bytes;
}

/* The manifest has room for as many bytes as the precision of the column needs. */
static bool
put_truncated_decimal(Buf *out, const Column *column, size_t row, int width, Error *err)
{
    size_t start = out->len;
    int precision = column->type->precision;
    __int128 limit = 1;

    for (int i = 0; i < precision; i++)
        limit *= 10;

    __int128 value = transform_truncated_number(column, row, width);

    if (value <= -limit)
        return FAIL(err, ERR_INPUT,
                    "truncate[%d] of a value has more than the %d digits of its column\n"
                    "hint: partition by bucket, or give the column more digits",
                    width, precision);
    put_decimal(out, value);
    assert(out->len > start);
    return true;
}

static bool
put_truncated(Buf *out, const Column *column, size_t row, int width, Error *err)
{
    switch (column->type->kind) {
    case TYPE_INT32:
        put_int(out, (int32_t) transform_truncated_number(column, row, width));
        return true;
    case TYPE_INT64:
        put_long(out, (int64_t) transform_truncated_number(column, row, width));
        return true;
    case TYPE_DECIMAL:
        return put_truncated_decimal(out, column, row, width, err);
    case TYPE_STRING:
    case TYPE_JSON:
    case TYPE_BINARY:
        buf_str(out, transform_truncated_bytes(column, row, width));
        return true;
    case TYPE_BOOL:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_UUID:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        break;
    }
    return FAIL(err, ERR_BUG, "a type that cannot be truncated");
}

/* --- year, month, day, hour ------------------------------------------------------------------ */

static int64_t
floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

/* Months since 1970-01 of a day since 1970-01-01. The calendar begins on 1 March of a year that 400
 * divides, so that a leap day is the last of its year; 719468 days later it is 1970. */
static int64_t
months_of(int64_t days)
{
    int64_t shifted = days + 719468;
    int64_t era = floor_div(shifted, 146097);
    int64_t day = shifted - era * 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t month = (5 * (day - (365 * year + year / 4 - year / 100)) + 2) / 153; /* 0: March */

    return (era * 400 + year - 1970) * 12 + month + 2;
}

static int32_t
narrow(int64_t value)
{
    if (value > INT32_MAX)
        return INT32_MAX;
    return value < INT32_MIN ? INT32_MIN : (int32_t) value;
}

static void
put_time(Buf *out, Transform transform, const Column *column, size_t row)
{
    bool date = column->type->kind == TYPE_DATE;
    int64_t value =
        date ? BUF_AT(&column->values, int32_t, row) : BUF_AT(&column->values, int64_t, row);
    int64_t days = date ? value : floor_div(value, DAY_US);

    if (transform.kind == TRANSFORM_HOUR)
        put_int(out, narrow(floor_div(value, HOUR_US)));
    else if (transform.kind == TRANSFORM_DAY)
        put_int(out, narrow(days));
    else if (transform.kind == TRANSFORM_MONTH)
        put_int(out, narrow(months_of(days)));
    else
        put_int(out, narrow(floor_div(months_of(days), 12)));
}

bool
transform_apply(Transform transform, const Column *column, size_t row, Buf *out, Error *err)
{
    assert(!column_is_null(column, row) && transform_takes(transform, column->type));
    switch (transform.kind) {
    case TRANSFORM_IDENTITY:
        put_identity(out, column, row);
        return true;
    case TRANSFORM_BUCKET:
        put_int(out,
                (int32_t) ((transform_hash(column, row) & INT32_MAX) % (uint32_t) transform.width));
        return true;
    case TRANSFORM_TRUNCATE:
        return put_truncated(out, column, row, transform.width, err);
    case TRANSFORM_YEAR:
    case TRANSFORM_MONTH:
    case TRANSFORM_DAY:
    case TRANSFORM_HOUR:
        put_time(out, transform, column, row);
        return true;
    case TRANSFORM_VOID:
        break;
    }
    return FAIL(err, ERR_BUG, "void has no values");
}
