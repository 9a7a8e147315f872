#include "iceberg/bounds.h"
#include "base/bytes.h"

#include <assert.h>
#include <math.h>

void
bounds_init(Bounds *bounds, const Type *type)
{
    *bounds = (Bounds){.type = type};
}

void
bounds_done(Bounds *bounds)
{
    buf_done(&bounds->min_bytes.prefix);
    buf_done(&bounds->max_bytes.prefix);
}

/* --- Numbers ------------------------------------------------------------------------------- */

/* One tight loop per width; Wide is what BoundNumber holds. */
#define DEFINE_SCAN(name, Narrow, Wide, member)                                                    \
    static void name(Bounds *bounds, const Narrow *values, const uint8_t *mask, size_t rows)       \
    {                                                                                              \
        Wide min = bounds->min.member;                                                             \
        Wide max = bounds->max.member;                                                             \
        bool has_value = bounds->has_value;                                                        \
                                                                                                   \
        for (size_t i = 0; i < rows; i++) {                                                        \
            Wide value = values[i];                                                                \
                                                                                                   \
            if (!mask[i])                                                                          \
                continue;                                                                          \
            min = has_value && min < value ? min : value;                                          \
            max = has_value && max > value ? max : value;                                          \
            has_value = true;                                                                      \
        }                                                                                          \
        bounds->min.member = min;                                                                  \
        bounds->max.member = max;                                                                  \
        bounds->has_value = has_value;                                                             \
    }

/* NaNs are counted and never bound anything. */
#define DEFINE_REAL_SCAN(name, Real)                                                               \
    static void name(Bounds *bounds, const Real *values, const uint8_t *mask, size_t rows)         \
    {                                                                                              \
        for (size_t i = 0; i < rows; i++) {                                                        \
            double value = (double) values[i];                                                     \
                                                                                                   \
            if (!mask[i])                                                                          \
                continue;                                                                          \
            if (isnan(value)) {                                                                    \
                bounds->nan_count++;                                                               \
                continue;                                                                          \
            }                                                                                      \
            if (!bounds->has_value || value < bounds->min.f64)                                     \
                bounds->min.f64 = value;                                                           \
            if (!bounds->has_value || value > bounds->max.f64)                                     \
                bounds->max.f64 = value;                                                           \
            bounds->has_value = true;                                                              \
        }                                                                                          \
    }

DEFINE_SCAN(scan_bool, uint8_t, int64_t, i64)
DEFINE_SCAN(scan_int32, int32_t, int64_t, i64)
DEFINE_SCAN(scan_int64, int64_t, int64_t, i64)
DEFINE_SCAN(scan_int128, __int128, __int128, i128)
DEFINE_REAL_SCAN(scan_float, float)
DEFINE_REAL_SCAN(scan_double, double)

/* --- Bytes --------------------------------------------------------------------------------- */

/* Length of what a bound keeps of a value: so many code points, or bytes. */
static size_t
kept_length(const Bounds *bounds, Str value)
{
    size_t at = 0;

    if (bounds->full)
        return value.len;
    if (bounds->type->kind == TYPE_BINARY)
        return value.len < BOUND_LENGTH ? value.len : BOUND_LENGTH;
    for (int points = 0; at < value.len; at++) {
        bool starts_point = ((uint8_t) value.ptr[at] & 0xC0) != 0x80;

        if (starts_point && points++ == BOUND_LENGTH)
            break;
    }
    return at;
}

static void
keep_prefix(const Bounds *bounds, BoundBytes *bound, Str value)
{
    size_t length = kept_length(bounds, value);

    buf_reset(&bound->prefix);
    buf_append(&bound->prefix, value.ptr, length);
    bound->cut = length < value.len;
}

/* Cutting keeps the order, so the smallest of the cut values is the smallest value, cut. A value
 * above the largest prefix may only be a longer one with the same prefix: that is fine too. */
static void
scan_bytes(Bounds *bounds, const Column *column, const uint8_t *mask, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        if (!mask[i])
            continue;

        Str value = column_bytes(column, i);

        if (!bounds->has_value || str_cmp(value, buf_view(&bounds->min_bytes.prefix)) < 0)
            keep_prefix(bounds, &bounds->min_bytes, value);
        if (!bounds->has_value || str_cmp(value, buf_view(&bounds->max_bytes.prefix)) > 0)
            keep_prefix(bounds, &bounds->max_bytes, value);
        bounds->has_value = true;
    }
}

/* The top bits of the two 64-bit halves of a uuid, as two bits. */
static uint8_t
uuid_signs(const char *uuid)
{
    return (uint8_t) (((uint8_t) uuid[0] >> 7) << 1 | (uint8_t) uuid[8] >> 7);
}

static void
scan_uuids(Bounds *bounds, const Column *column, const uint8_t *mask, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        Str value = {.ptr = column->values.ptr + i * 16, .len = 16};

        if (!mask[i])
            continue;
        bounds->uuid_ones |= uuid_signs(value.ptr);
        bounds->uuid_zeros |= (uint8_t) (uuid_signs(value.ptr) ^ 3);
        if (!bounds->has_value || str_cmp(value, buf_view(&bounds->min_bytes.prefix)) < 0) {
            buf_reset(&bounds->min_bytes.prefix);
            buf_str(&bounds->min_bytes.prefix, value);
        }
        if (!bounds->has_value || str_cmp(value, buf_view(&bounds->max_bytes.prefix)) > 0) {
            buf_reset(&bounds->max_bytes.prefix);
            buf_str(&bounds->max_bytes.prefix, value);
        }
        bounds->has_value = true;
    }
}

void
bounds_add(Bounds *bounds, const Column *column, const uint8_t *mask, size_t rows)
{
    const void *values = column->values.ptr;

    if (rows == 0)
        return;
    switch (bounds->type->kind) {
    case TYPE_BOOL:
        scan_bool(bounds, values, mask, rows);
        break;
    case TYPE_INT32:
    case TYPE_DATE:
        scan_int32(bounds, values, mask, rows);
        break;
    case TYPE_INT64:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        scan_int64(bounds, values, mask, rows);
        break;
    case TYPE_FLOAT32:
        scan_float(bounds, values, mask, rows);
        break;
    case TYPE_FLOAT64:
        scan_double(bounds, values, mask, rows);
        break;
    case TYPE_DECIMAL:
        if (bounds->type->precision <= 18)
            scan_int64(bounds, values, mask, rows);
        else
            scan_int128(bounds, values, mask, rows);
        break;
    case TYPE_STRING:
    case TYPE_JSON:
    case TYPE_BINARY:
        scan_bytes(bounds, column, mask, rows);
        break;
    case TYPE_UUID:
        scan_uuids(bounds, column, mask, rows);
        break;
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        assert(false && "only leaves have bounds");
    }
}

/* --- Single values ------------------------------------------------------------------------- */

static Str
encode_decimal(Arena *arena, __int128 unscaled)
{
    uint8_t bytes[16];
    size_t count = store_be_minimal(bytes, unscaled);

    return arena_str(arena, (Str){.ptr = (const char *) bytes + 16 - count, .len = count});
}

static Str
encode_real(Arena *arena, const Type *type, double value)
{
    float narrow = (float) value;

    if (type->kind == TYPE_FLOAT32)
        return arena_str(arena, (Str){.ptr = (const char *) &narrow, .len = sizeof narrow});
    return arena_str(arena, (Str){.ptr = (const char *) &value, .len = sizeof value});
}

static Str
encode_number(Arena *arena, const Type *type, BoundNumber number)
{
    char bytes[8];

    switch (type->kind) {
    case TYPE_BOOL:
        bytes[0] = (char) (number.i64 != 0);
        return arena_str(arena, (Str){.ptr = bytes, .len = 1});
    case TYPE_INT32:
    case TYPE_DATE:
        store_le32(bytes, (uint32_t) number.i64);
        return arena_str(arena, (Str){.ptr = bytes, .len = 4});
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return encode_real(arena, type, number.f64);
    case TYPE_DECIMAL:
        return encode_decimal(arena, type->precision <= 18 ? number.i64 : number.i128);
    case TYPE_INT64:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        store_le64(bytes, (uint64_t) number.i64);
        return arena_str(arena, (Str){.ptr = bytes, .len = 8});
    case TYPE_STRING:
    case TYPE_JSON:
    case TYPE_BINARY:
    case TYPE_UUID:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        break;
    }
    assert(false && "not a number");
    return STR_NULL;
}

static bool
is_text(const Type *type)
{
    return type->kind == TYPE_STRING || type->kind == TYPE_JSON;
}

/* Whether a bound can be given at all. Java (1.12 too) orders uuids as two signed numbers, others
 * as bytes; the two agree where the top bits of each half are the same in all values, as with the
 * time-ordered uuids that bounds are good for. Text that is not UTF-8 has no order for readers. */
static bool
has_bounds(const Bounds *bounds)
{
    if (!bounds->has_value)
        return false;
    if (bounds->type->kind == TYPE_UUID)
        return (bounds->uuid_ones & bounds->uuid_zeros) == 0;
    if (is_text(bounds->type))
        return str_is_utf8(buf_view(&bounds->min_bytes.prefix)) &&
               str_is_utf8(buf_view(&bounds->max_bytes.prefix));
    return true;
}

static bool
is_bytes(const Type *type)
{
    return is_text(type) || type->kind == TYPE_BINARY || type->kind == TYPE_UUID;
}

Str
bounds_lower(const Bounds *bounds, Arena *arena)
{
    BoundNumber min = bounds->min;

    if (!has_bounds(bounds))
        return STR_NULL;
    if (is_bytes(bounds->type))
        return arena_str(arena, buf_view(&bounds->min_bytes.prefix));
    /* which zero came first is chance: the spec's order wants the lower one */
    if ((bounds->type->kind == TYPE_FLOAT32 || bounds->type->kind == TYPE_FLOAT64) && min.f64 == 0)
        min.f64 = -0.0;
    return encode_number(arena, bounds->type, min);
}

/* --- Rounding up --------------------------------------------------------------------------- */

/* The code point that starts at text[at]; the text is UTF-8. */
static uint32_t
decode_point(const uint8_t *p, size_t length)
{
    static const uint8_t lead_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = p[0] & lead_mask[length];

    for (size_t i = 1; i < length; i++)
        point = point << 6 | (p[i] & 0x3f);
    return point;
}

static size_t
encode_point(uint32_t point, char *out)
{
    if (point < 0x80) {
        out[0] = (char) point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char) (0xC0 | point >> 6);
        out[1] = (char) (0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char) (0xE0 | point >> 12);
        out[1] = (char) (0x80 | (point >> 6 & 0x3f));
        out[2] = (char) (0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char) (0xF0 | point >> 18);
    out[1] = (char) (0x80 | (point >> 12 & 0x3f));
    out[2] = (char) (0x80 | (point >> 6 & 0x3f));
    out[3] = (char) (0x80 | (point & 0x3f));
    return 4;
}

/* The shortest text above everything that starts with `text`; STR_NULL when there is none. */
static Str
round_up_text(Arena *arena, Str text)
{
    size_t end = text.len;

    while (end > 0) {
        size_t start = end - 1;
        char next[4];

        while (start > 0 && ((uint8_t) text.ptr[start] & 0xC0) == 0x80)
            start--;

        uint32_t point = decode_point((const uint8_t *) text.ptr + start, end - start) + 1;

        if (point == 0xD800) /* surrogates are no characters */
            point = 0xE000;
        if (point <= 0x10FFFF) {
            size_t length = encode_point(point, next);
            AUTO_BUF Buf out = {0};

            buf_append(&out, text.ptr, start);
            buf_append(&out, next, length);
            return arena_str(arena, buf_view(&out));
        }
        end = start;
    }
    return STR_NULL;
}

static Str
round_up_bytes(Arena *arena, Str bytes)
{
    while (bytes.len > 0 && (uint8_t) bytes.ptr[bytes.len - 1] == 0xff)
        bytes.len--;
    if (bytes.len == 0)
        return STR_NULL;

    AUTO_BUF Buf out = {0};

    buf_str(&out, bytes);
    out.ptr[out.len - 1]++;
    return arena_str(arena, buf_view(&out));
}

Str
bounds_upper(const Bounds *bounds, Arena *arena)
{
    BoundNumber max = bounds->max;
    Str prefix = buf_view(&bounds->max_bytes.prefix);

    if (!has_bounds(bounds))
        return STR_NULL;
    if (is_bytes(bounds->type) && !bounds->max_bytes.cut)
        return arena_str(arena, prefix);
    if (is_text(bounds->type))
        return round_up_text(arena, prefix);
    if (is_bytes(bounds->type))
        return round_up_bytes(arena, prefix);
    if ((bounds->type->kind == TYPE_FLOAT32 || bounds->type->kind == TYPE_FLOAT64) && max.f64 == 0)
        max.f64 = 0.0;
    return encode_number(arena, bounds->type, max);
}
