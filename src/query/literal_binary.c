#include "query/literal_binary.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "query/types.h"

enum {
    EPOCH_DAYS = 10957, /* 1970-01-01 to 2000-01-01 */
    NUMERIC_HEADER = 8,
    ARRAY_HEADER = 12,
    ARRAY_DIMENSION = 8,
};

static const int64_t epoch_us = (int64_t) EPOCH_DAYS * 86400 * 1000000;

static bool
wrong(const Parameter *parameter, QueryFailure *failure, Error *err)
{
    return query_fail(failure, err, SQLSTATE_INVALID_BINARY,
                      "incorrect binary data format in parameter of type %u (%zu bytes)",
                      parameter->type_oid, parameter->value.len);
}

/* --- numbers ------------------------------------------------------------------------------- */

static void
float4_text(Buf *out, uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof number);
    buf_printf(out, "%.9g", (double) number);
}

static void
float8_text(Buf *out, uint64_t bits)
{
    double number;

    memcpy(&number, &bits, sizeof number);
    buf_printf(out, "%.17g", number);
}

/* The i-th digit of base 10000; those before the first and behind the last are zero. */
static int
numeric_digit(const char *bytes, size_t count, int i)
{
    size_t index = (size_t) i;

    return i < 0 || index >= count ? 0 : load_be16(bytes + NUMERIC_HEADER + index * 2);
}

/* ndigits, weight, sign, dscale, digits of base 10000, the first of which counts 10000^weight. */
static bool
numeric_text(Buf *out, const Parameter *parameter, QueryFailure *failure, Error *err)
{
    const char *bytes = parameter->value.ptr;

    if (parameter->value.len < NUMERIC_HEADER)
        return wrong(parameter, failure, err);

    size_t count = load_be16(bytes);
    int weight = (int16_t) load_be16(bytes + 2);
    uint16_t sign = load_be16(bytes + 4);
    int scale = load_be16(bytes + 6);

    if (parameter->value.len != NUMERIC_HEADER + count * 2 || weight > 2000 || weight < -5000 ||
        scale > 16383)
        return wrong(parameter, failure, err);
    if (sign >= 0xc000) {
        buf_cstr(out, sign == 0xd000 ? "Infinity" : sign == 0xf000 ? "-Infinity" : "NaN");
        return true;
    }
    if (sign == 0x4000)
        buf_byte(out, '-');
    if (weight < 0)
        buf_byte(out, '0');
    for (int i = 0; i <= weight; i++)
        buf_printf(out, i == 0 ? "%d" : "%04d", numeric_digit(bytes, count, i));
    if (scale == 0)
        return true;
    buf_byte(out, '.');

    size_t start = out->len;

    for (int i = weight + 1; out->len - start < (size_t) scale; i++)
        buf_printf(out, "%04d", numeric_digit(bytes, count, i));
    out->len = start + (size_t) scale;
    return true;
}

static void
hex_text(Buf *out, Str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(out, "%02x", (uint8_t) bytes.ptr[i]);
}

/* --- times --------------------------------------------------------------------------------- */

static void
put_timestamp(Buf *out, int64_t us, const char *type)
{
    int64_t since_1970;

    if (us == INT64_MAX || us == INT64_MIN)
        buf_printf(out, "CAST('%sinfinity' AS %s)", us < 0 ? "-" : "", type);
    else if (__builtin_add_overflow(us, epoch_us, &since_1970))
        buf_printf(out, "CAST('infinity' AS %s)", type);
    else
        buf_printf(out, "CAST(make_timestamp(%" PRId64 ") AS %s)", since_1970, type);
}

static void
put_date(Buf *out, int32_t days)
{
    if (days == INT32_MAX || days == INT32_MIN)
        buf_printf(out, "CAST('%sinfinity' AS DATE)", days < 0 ? "-" : "");
    else
        buf_printf(out, "(DATE '2000-01-01' + (%" PRId32 "))", days);
}

static bool
put_time(Buf *out, const Parameter *parameter, bool *out_done)
{
    const char *bytes = parameter->value.ptr;

    *out_done = true;
    switch (parameter->type_oid) {
    case OID_DATE:
        put_date(out, (int32_t) load_be32(bytes));
        break;
    case OID_TIME:
        buf_printf(out, "(TIME '00:00:00' + to_microseconds(%" PRId64 "))",
                   (int64_t) load_be64(bytes));
        break;
    case OID_TIMESTAMP:
        put_timestamp(out, (int64_t) load_be64(bytes), "TIMESTAMP");
        break;
    case OID_TIMESTAMPTZ:
        put_timestamp(out, (int64_t) load_be64(bytes), "TIMESTAMP WITH TIME ZONE");
        break;
    case OID_INTERVAL:
        buf_printf(out,
                   "(to_months(%" PRId32 ") + to_days(%" PRId32 ") + to_microseconds(%" PRId64 "))",
                   (int32_t) load_be32(bytes + 12), (int32_t) load_be32(bytes + 8),
                   (int64_t) load_be64(bytes));
        break;
    default:
        *out_done = false;
        break;
    }
    return true;
}

/* --- arrays -------------------------------------------------------------------------------- */

static bool
put_elements(Buf *out, const Parameter *array, QueryFailure *failure, Error *err)
{
    Str rest = {.ptr = array->value.ptr + ARRAY_HEADER + ARRAY_DIMENSION,
                .len = array->value.len - ARRAY_HEADER - ARRAY_DIMENSION};
    uint32_t count = load_be32(array->value.ptr + ARRAY_HEADER);

    for (uint32_t i = 0; i < count; i++) {
        Parameter element = {.type_oid = load_be32(array->value.ptr + 8), .format = 1};
        uint32_t length;

        if (rest.len < 4)
            return wrong(array, failure, err);
        length = load_be32(rest.ptr);
        rest = (Str){.ptr = rest.ptr + 4, .len = rest.len - 4};
        if (length != UINT32_MAX && length > rest.len)
            return wrong(array, failure, err);
        if (length != UINT32_MAX) {
            element.value = (Str){.ptr = rest.ptr, .len = length};
            rest = (Str){.ptr = rest.ptr + length, .len = rest.len - length};
        }
        buf_cstr(out, i == 0 ? "" : ",");
        TRY(literal_put(out, &element, failure, err));
    }
    return rest.len == 0 || wrong(array, failure, err);
}

static bool
put_array(Buf *out, const Parameter *parameter, QueryFailure *failure, Error *err)
{
    const PgTypeRow *element = pg_type_of_array(parameter->type_oid);
    uint32_t dimensions;

    if (parameter->value.len < ARRAY_HEADER)
        return wrong(parameter, failure, err);
    dimensions = load_be32(parameter->value.ptr);
    if (dimensions > 1)
        return query_fail(failure, err, SQLSTATE_UNSUPPORTED,
                          "arrays of several dimensions are not supported in binary format");
    /* an array of arrays would nest as deep as a client likes */
    if (pg_type_of_oid(load_be32(parameter->value.ptr + 8)) == NULL ||
        (dimensions == 1 && parameter->value.len < ARRAY_HEADER + ARRAY_DIMENSION))
        return wrong(parameter, failure, err);
    buf_cstr(out, "CAST([");
    if (dimensions == 1)
        TRY(put_elements(out, parameter, failure, err));
    buf_printf(out, "] AS %s[])", element->duckdb == NULL ? "DOUBLE" : element->duckdb);
    return true;
}

/* --- all of them --------------------------------------------------------------------------- */

static void
fixed_text(Buf *text, const Parameter *parameter)
{
    const char *bytes = parameter->value.ptr;

    switch (parameter->type_oid) {
    case OID_BOOL:
        buf_byte(text, bytes[0] != 0 ? 't' : 'f');
        break;
    case OID_INT2:
        buf_printf(text, "%d", (int16_t) load_be16(bytes));
        break;
    case OID_INT4:
        buf_printf(text, "%" PRId32, (int32_t) load_be32(bytes));
        break;
    case OID_INT8:
        buf_printf(text, "%" PRId64, (int64_t) load_be64(bytes));
        break;
    case OID_FLOAT4:
        float4_text(text, load_be32(bytes));
        break;
    case OID_FLOAT8:
        float8_text(text, load_be64(bytes));
        break;
    default:
        hex_text(text, parameter->value); /* uuid: DuckDB reads it without hyphens, too */
        break;
    }
}

bool
literal_put_binary(Buf *out, Buf *text, const Parameter *parameter, bool *out_done,
                   QueryFailure *failure, Error *err)
{
    const PgTypeRow *row = pg_type_of_oid(parameter->type_oid);

    *out_done = false;
    if (pg_type_of_array(parameter->type_oid) != NULL) {
        *out_done = true;
        return put_array(out, parameter, failure, err);
    }
    switch (parameter->type_oid) {
    case 0:
    case OID_TEXT:
    case OID_VARCHAR:
    case OID_BPCHAR:
    case OID_NAME:
    case OID_UNKNOWN:
    case OID_JSON:
        buf_str(text, parameter->value);
        return true;
    case OID_BYTEA:
        buf_cstr(text, "\\x");
        hex_text(text, parameter->value);
        return true;
    case OID_NUMERIC:
        return numeric_text(text, parameter, failure, err);
    case OID_JSONB: /* a version byte first */
        if (parameter->value.len < 1 || parameter->value.ptr[0] != 1)
            return wrong(parameter, failure, err);
        buf_append(text, parameter->value.ptr + 1, parameter->value.len - 1);
        return true;
    default:
        break;
    }
    if (row == NULL || row->size <= 0 || parameter->type_oid == OID_TIMETZ)
        return query_fail(failure, err, SQLSTATE_UNSUPPORTED,
                          "binary format of parameters of type %u is not supported\n"
                          "hint: send the parameter as text",
                          parameter->type_oid);
    if (parameter->value.len != (size_t) row->size)
        return wrong(parameter, failure, err);
    TRY(put_time(out, parameter, out_done));
    if (!*out_done)
        fixed_text(text, parameter);
    return true;
}
