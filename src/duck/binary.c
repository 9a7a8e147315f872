/* binary.c - values as Postgres' send functions write them: big-endian numbers, times counted from
 * 2000-01-01, numeric as base-10000 digits. */
#include <assert.h>

#include "base/bytes.h"
#include "duck/value.h"

enum {
    EPOCH_DAYS = 10957, /* 1970-01-01 to 2000-01-01 */
    NUMERIC_NEGATIVE = 0x4000,
};

static const int64_t epoch_us = (int64_t) EPOCH_DAYS * 86400 * 1000000;

static void
put_16(Buf *out, uint16_t n)
{
    store_be16(buf_push(out, 2), n);
}

static void
put_32(Buf *out, uint32_t n)
{
    store_be32(buf_push(out, 4), n);
}

static void
put_64(Buf *out, uint64_t n)
{
    store_be64(buf_push(out, 8), n);
}

/* numeric_send: ndigits, weight, sign, dscale, digits of base 10000. Decimal places are filled up
 * to whole digits, then zero digits are dropped at both ends. */
static void
put_numeric(Buf *out, bool negative, unsigned __int128 n, int scale)
{
    uint16_t digits[14];
    int count = 0;
    int fraction = (scale + 3) / 4; /* digits behind the point */
    unsigned int pad = 1;

    for (int i = scale; i % 4 != 0; i++)
        pad *= 10;
    /* The lowest digit takes what is left of a whole one; padding all of n could overflow. */
    if (pad > 1) {
        unsigned int low = 10000 / pad;

        digits[count++] = (uint16_t) ((unsigned int) (n % low) * pad);
        n /= low;
    }
    for (; n != 0; n /= 10000)
        digits[count++] = (uint16_t) (n % 10000);

    int top = count;
    int bottom = 0;

    while (top > 0 && digits[top - 1] == 0)
        top--;
    while (bottom < top && digits[bottom] == 0)
        bottom++;
    put_16(out, (uint16_t) (top - bottom));
    put_16(out, (uint16_t) (top == bottom ? 0 : top - 1 - fraction));
    put_16(out, negative && top > bottom ? NUMERIC_NEGATIVE : 0);
    put_16(out, (uint16_t) scale);
    for (int i = top - 1; i >= bottom; i--)
        put_16(out, digits[i]);
}

static void
put_signed_numeric(Buf *out, __int128 n, int scale)
{
    put_numeric(out, n < 0, n < 0 ? -(unsigned __int128) n : (unsigned __int128) n, scale);
}

static void
put_timestamp(Buf *out, int64_t us)
{
    int64_t shifted;

    if (us == INT64_MAX)
        put_64(out, INT64_MAX);
    else if (us == -INT64_MAX || __builtin_sub_overflow(us, epoch_us, &shifted))
        put_64(out, (uint64_t) INT64_MIN);
    else
        put_64(out, (uint64_t) shifted);
}

static void
put_date(Buf *out, int32_t days)
{
    if (days == INT32_MAX)
        put_32(out, INT32_MAX);
    else if (days == -INT32_MAX)
        put_32(out, (uint32_t) INT32_MIN);
    else
        put_32(out, (uint32_t) (days - EPOCH_DAYS));
}

static void
put_timetz(Buf *out, uint64_t bits)
{
    duckdb_time_tz_struct parts = duckdb_from_time_tz((duckdb_time_tz){.bits = bits});
    int64_t seconds = parts.time.hour * 3600 + parts.time.min * 60 + parts.time.sec;

    put_64(out, (uint64_t) (seconds * 1000000 + parts.time.micros));
    put_32(out, (uint32_t) -parts.offset); /* Postgres counts west of Greenwich */
}

static void
put_interval(Buf *out, const duckdb_interval *interval)
{
    put_64(out, (uint64_t) interval->micros);
    put_32(out, (uint32_t) interval->days);
    put_32(out, (uint32_t) interval->months);
}

/* array_send, one dimension: dimensions, has-nulls, element type, length, lower bound, values. */
static void
put_array(Buf *out, const ValueVector *values, size_t row, uint32_t element_oid)
{
    size_t first;
    size_t count;
    ValueVector elements = value_elements(values, row, &first, &count);
    bool nulls = false;

    for (size_t i = 0; i < count; i++)
        nulls = nulls || value_is_null(&elements, first + i);
    put_32(out, count > 0 ? 1 : 0);
    put_32(out, nulls);
    put_32(out, element_oid);
    if (count == 0)
        return;
    put_32(out, (uint32_t) count);
    put_32(out, 1);
    for (size_t i = 0; i < count; i++) {
        size_t at = out->len;

        put_32(out, UINT32_MAX);
        if (value_is_null(&elements, first + i))
            continue;
        value_binary(&elements, first + i, 0, out);
        store_be32(out->ptr + at, (uint32_t) (out->len - at - 4));
    }
}

static void
put_number(Buf *out, const ValueVector *values, size_t row)
{
    DuckKind kind = values->type->kind;
    uint32_t single;
    uint64_t twice;

    switch ((int) kind) {
    case DUCK_INT8:
    case DUCK_INT16:
    case DUCK_UINT8:
        put_16(out, (uint16_t) value_integer(values, row));
        return;
    case DUCK_INT32:
    case DUCK_UINT16:
        put_32(out, (uint32_t) value_integer(values, row));
        return;
    case DUCK_INT64:
    case DUCK_UINT32:
        put_64(out, (uint64_t) value_integer(values, row));
        return;
    case DUCK_FLOAT32:
        memcpy(&single, (const float *) values->data + row, sizeof single);
        put_32(out, single);
        return;
    case DUCK_FLOAT64:
        memcpy(&twice, (const double *) values->data + row, sizeof twice);
        put_64(out, twice);
        return;
    case DUCK_UINT128:
        put_numeric(out, false, (unsigned __int128) value_integer(values, row), 0);
        return;
    default:
        put_signed_numeric(out, value_integer(values, row),
                           kind == DUCK_DECIMAL ? values->type->scale : 0);
        return;
    }
}

static void
put_time(Buf *out, const ValueVector *values, size_t row)
{
    const void *data = values->data;

    switch ((int) values->type->kind) {
    case DUCK_DATE:
        put_date(out, ((const int32_t *) data)[row]);
        return;
    case DUCK_TIME:
        put_64(out, ((const uint64_t *) data)[row]);
        return;
    case DUCK_TIMETZ:
        put_timetz(out, ((const uint64_t *) data)[row]);
        return;
    case DUCK_INTERVAL:
        put_interval(out, &((const duckdb_interval *) data)[row]);
        return;
    default:
        put_timestamp(out, value_microseconds(values, row));
        return;
    }
}

void
value_binary(const ValueVector *values, size_t row, uint32_t element_oid, Buf *out)
{
    DuckKind kind = values->type->kind;

    assert(duck_has_binary(values->type));
    if (kind == DUCK_LIST)
        put_array(out, values, row, element_oid);
    else if (kind >= DUCK_DATE && kind <= DUCK_INTERVAL)
        put_time(out, values, row);
    else if (kind == DUCK_TEXT || kind == DUCK_JSON || kind == DUCK_BLOB)
        buf_str(out, value_bytes(values, row));
    else if (kind == DUCK_BOOL)
        buf_byte(out, ((const bool *) values->data)[row]);
    else if (kind == DUCK_UUID)
        value_uuid(values, row, buf_push(out, 16));
    else
        put_number(out, values, row);
}
