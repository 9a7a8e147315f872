#include "duck/value.h"

#include <assert.h>

#include "base/bytes.h"

Str
value_bytes(const ValueVector *values, size_t row)
{
    duckdb_string_t *string = &((duckdb_string_t *) (uintptr_t) values->data)[row];

    return (Str){.ptr = duckdb_string_t_data(string), .len = duckdb_string_t_length(*string)};
}

static __int128
decimal_integer(const ValueVector *values, size_t row)
{
    const void *data = values->data;
    int precision = values->type->precision;

    if (precision <= 4)
        return ((const int16_t *) data)[row];
    if (precision <= 9)
        return ((const int32_t *) data)[row];
    if (precision <= 18)
        return ((const int64_t *) data)[row];
    return ((const __int128 *) data)[row];
}

__int128
value_integer(const ValueVector *values, size_t row)
{
    const void *data = values->data;

    switch ((int) values->type->kind) {
    case DUCK_INT8:
        return ((const int8_t *) data)[row];
    case DUCK_INT16:
        return ((const int16_t *) data)[row];
    case DUCK_INT32:
        return ((const int32_t *) data)[row];
    case DUCK_INT64:
        return ((const int64_t *) data)[row];
    case DUCK_UINT8:
        return ((const uint8_t *) data)[row];
    case DUCK_UINT16:
        return ((const uint16_t *) data)[row];
    case DUCK_UINT32:
        return ((const uint32_t *) data)[row];
    case DUCK_UINT64:
        return ((const uint64_t *) data)[row];
    case DUCK_DECIMAL:
        return decimal_integer(values, row);
    default:
        assert(values->type->kind == DUCK_INT128 || values->type->kind == DUCK_UINT128);
        return ((const __int128 *) data)[row];
    }
}

void
value_uuid(const ValueVector *values, size_t row, uint8_t out[16])
{
    const uint64_t *halves = &((const uint64_t *) values->data)[row * 2];

    /* DuckDB keeps a UUID as a hugeint, its top bit flipped so that it sorts. */
    store_be64(out, halves[1] ^ ((uint64_t) 1 << 63));
    store_be64(out + 8, halves[0]);
}

/* n * factor, the infinities staying what they are. */
static int64_t
scale_up(int64_t n, int64_t factor)
{
    int64_t product;

    if (n == INT64_MAX || n == -INT64_MAX)
        return n;
    if (__builtin_mul_overflow(n, factor, &product))
        return n < 0 ? -INT64_MAX : INT64_MAX;
    return product;
}

static int64_t
floor_thousandth(int64_t n)
{
    if (n == INT64_MAX || n == -INT64_MAX)
        return n;
    return n / 1000 - (n % 1000 < 0);
}

int64_t
value_microseconds(const ValueVector *values, size_t row)
{
    int64_t n = ((const int64_t *) values->data)[row];

    switch ((int) values->type->kind) {
    case DUCK_TIMESTAMP_S:
        return scale_up(n, 1000000);
    case DUCK_TIMESTAMP_MS:
        return scale_up(n, 1000);
    case DUCK_TIMESTAMP_NS:
        return floor_thousandth(n);
    default:
        return n;
    }
}

ValueVector
value_elements(const ValueVector *values, size_t row, size_t *out_first, size_t *out_count)
{
    const DuckType *type = values->type;

    if (type->kind == DUCK_ARRAY) {
        *out_first = row * type->size;
        *out_count = type->size;
        return value_vector(&type->children[0], duckdb_array_vector_get_child(values->vector));
    }
    assert(type->kind == DUCK_LIST);

    duckdb_list_entry entry = ((const duckdb_list_entry *) values->data)[row];

    *out_first = entry.offset;
    *out_count = entry.length;
    return value_vector(&type->children[0], duckdb_list_vector_get_child(values->vector));
}
