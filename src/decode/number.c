#include "decode/number.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "decode/powers_of_five.h"

static const char *const NOT_A_NUMBER = "not a number";
static const char *const TOO_FINE = "more fractional digits than the column's scale";
static const char *const TOO_LARGE = "more digits than the column's precision";

enum { FRACTION_MAX = 100000 }; /* digits; numeric itself has at most 16383 */

/* Once per value: as calls these cost a third of all the time of a number. */
#define HOT static inline __attribute__((always_inline))

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* --- Digits ---------------------------------------------------------------------------------- */

enum { DIGITS_MAX = 19 }; /* so many always fit into 64 unsigned bits */

static const uint64_t powers_of_ten[] = {1u,
                                         10u,
                                         100u,
                                         1000u,
                                         10000u,
                                         100000u,
                                         1000000u,
                                         10000000u,
                                         100000000u,
                                         1000000000u,
                                         10000000000u,
                                         100000000000u,
                                         1000000000000u,
                                         10000000000000u,
                                         100000000000000u,
                                         1000000000000000u,
                                         10000000000000000u,
                                         100000000000000000u,
                                         1000000000000000000u,
                                         10000000000000000000u};

/* A decimal number as digits * 10^exponent. */
typedef struct Decimal {
    uint64_t digits;
    int significant; /* how many digits, from the first that is not zero on */
    int exponent;
    bool negative;
    bool cut; /* more than DIGITS_MAX significant digits: `digits` is not all of it */
} Decimal;

/* The eight digits at p as a number, or false when one of them is none. All at once: neighbours
 * join to pairs, pairs to fours, fours to eight. */
static inline bool
read_eight_digits(const char *p, uint64_t *out_value)
{
    uint64_t word = load_le64(p) ^ 0x3030303030303030u; /* '0' to '9' become 0 to 9, others more */

    if (((word | (word + 0x7676767676767676u)) & 0x8080808080808080u) != 0)
        return false;
    word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ffu;
    word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffffu;
    *out_value = (word * 10000 + (word >> 32)) & 0x00000000ffffffffu;
    return true;
}

/* The digits from *at on, behind those that decimal has. Returns how many there were. */
HOT size_t
read_digits(Str text, size_t *at, Decimal *decimal)
{
    const char *p = text.ptr + *at;
    const char *end = text.ptr + text.len;
    uint64_t digits = decimal->digits;
    int significant = decimal->significant;
    uint64_t eight;

    while (digits == 0 && p < end && *p == '0')
        p++;
    while (significant <= DIGITS_MAX - 8 && end - p >= 8 && read_eight_digits(p, &eight)) {
        digits = digits * 100000000 + eight;
        significant += 8;
        p += 8;
    }
    for (; p < end && is_digit(*p) && significant < DIGITS_MAX; p++, significant++)
        digits = digits * 10 + (uint64_t) (*p - '0');
    for (; p < end && is_digit(*p); p++)
        decimal->cut = true;

    size_t count = (size_t) (p - text.ptr) - *at;

    decimal->digits = digits;
    decimal->significant = significant;
    *at += count;
    return count;
}

/* --- Integers -------------------------------------------------------------------------------- */

const char *
number_parse_int64(Str text, int64_t *out_value)
{
    Decimal decimal = {.negative = text.len > 0 && text.ptr[0] == '-'};
    size_t at = decimal.negative ? 1 : 0;

    if (read_digits(text, &at, &decimal) == 0 || at != text.len)
        return "not an integer";
    if (decimal.cut || decimal.digits > (uint64_t) INT64_MAX + (decimal.negative ? 1 : 0))
        return "out of range for 64-bit integers";
    *out_value = (int64_t) (decimal.negative ? 0 - decimal.digits : decimal.digits);
    return NULL;
}

const char *
number_parse_int32(Str text, int32_t *out_value)
{
    int64_t value = 0;
    const char *reason = number_parse_int64(text, &value);

    if (reason != NULL)
        return reason;
    if (value < INT32_MIN || value > INT32_MAX)
        return "out of range for 32-bit integers";
    *out_value = (int32_t) value;
    return NULL;
}

/* --- Floating point -------------------------------------------------------------------------- */

/* "e+20", "e-07". */
static bool
read_exponent(Str text, size_t *at, int *out_exponent)
{
    int exponent = 0;

    (*at)++;

    bool negative = *at < text.len && text.ptr[*at] == '-';

    if (*at < text.len && (text.ptr[*at] == '-' || text.ptr[*at] == '+'))
        (*at)++;

    size_t start = *at;

    for (; *at < text.len && is_digit(text.ptr[*at]) && *at - start < 5; (*at)++)
        exponent = exponent * 10 + (text.ptr[*at] - '0');
    *out_exponent = negative ? -exponent : exponent;
    return *at > start;
}

HOT bool
read_decimal(Str text, Decimal *out)
{
    Decimal decimal = {0};
    size_t at = 0;
    size_t fraction = 0;

    if (text.len > 0 && text.ptr[0] == '-') {
        decimal.negative = true;
        at++;
    }

    size_t count = read_digits(text, &at, &decimal);

    if (at < text.len && text.ptr[at] == '.') {
        at++;
        fraction = read_digits(text, &at, &decimal);
    }
    if (count + fraction == 0 || fraction > FRACTION_MAX)
        return false;
    if (at < text.len && text.ptr[at] == 'e' && !read_exponent(text, &at, &decimal.exponent))
        return false;
    decimal.exponent -= (int) fraction;
    *out = decimal;
    return at == text.len;
}

/* digits * 10^exponent as fraction * 2^*out_exponent with fraction < 2^bits, rounded to nearest;
 * false when 128 bits of the power of five do not decide how to round, or the table ends.
 *
 * digits, shifted up to 64 bits, times the table's fraction F of 5^q gives 192 bits. F may be too
 * small by less than 1, so the product is too small by less than 2^64, and its upper 128 bits by
 * less than 2. Below the `bits` that are kept lies a rest of the product; unless the halfway point
 * is less than 2 above the rest, or is the rest, cutting cannot have changed the side.
 * (The idea is Clinger's and Lemire's, see "Number Parsing at a Gigabyte per Second", 2021.) */
HOT bool
scale_by_power(const Decimal *decimal, int bits, uint64_t *out_fraction, int *out_exponent)
{
    int q = decimal->exponent;

    if (q < POWER_MIN || q > POWER_MAX || decimal->cut)
        return false;

    int shift = __builtin_clzll(decimal->digits);
    uint64_t digits = decimal->digits << shift;
    PowerOfFive power = powers_of_five[q - POWER_MIN];
    unsigned __int128 low = (unsigned __int128) digits * power.low;
    unsigned __int128 upper = (unsigned __int128) digits * power.high + (uint64_t) (low >> 64);
    int exponent = ((152170 * q) >> 16) - 127 + q + 64 - shift; /* of the last bit of upper */

    if (upper >> 127 == 0) {
        /* both factors had their top bit set, so the product has it in one of its top two */
        upper = upper << 1 | (uint64_t) low >> 63;
        exponent--;
    }

    int dropped = 128 - bits;
    unsigned __int128 half = (unsigned __int128) 1 << (dropped - 1);
    unsigned __int128 rest = upper & ((half << 1) - 1);
    uint64_t fraction = (uint64_t) (upper >> dropped);

    if (rest <= half && rest + 4 > half) /* 4: the shift by one doubles the doubt */
        return false;
    if (rest > half)
        fraction++;
    *out_fraction = fraction; /* 2^bits after rounding up all ones: a power of two all the same */
    *out_exponent = exponent + dropped;
    return true;
}

/* fraction * 2^exponent, fraction from scale_by_power(). Never near the ends of double's range,
 * since the table of powers is not. */
static double
assemble(uint64_t fraction, int bits, int exponent)
{
    double value;

    fraction <<= 53 - bits;
    exponent -= 53 - bits;

    /* the leading one is not stored; if rounding up made it 2^53, the sum carries into the exponent
     * field, as it should */
    uint64_t word = ((uint64_t) (exponent + 52 + 1023) << 52) + (fraction - ((uint64_t) 1 << 52));

    memcpy(&value, &word, sizeof value);
    return value;
}

/* What the fast way leaves: subnormals, far exponents, more than 19 digits, halfway cases. */
static const char *
parse_slowly(Str text, bool single, double *out_value)
{
    AUTO_BUF Buf copy = {0};
    char *end = NULL;
    double value;

    buf_str(&copy, text);

    const char *start = buf_text(&copy);
    /* No memory behind it in glibc, and nothing global changes. */
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);

    value = single ? (double) strtof_l(start, &end, locale) : strtod_l(start, &end, locale);
    freelocale(locale);
    assert(end == start + text.len); /* read_decimal() accepted it */
    if (isinf(value))
        return "out of range for floating point";
    *out_value = value;
    return NULL;
}

static const char *
parse_special(Str text, double *out_value)
{
    if (str_eq(text, STR("NaN")))
        *out_value = NAN;
    else if (str_eq(text, STR("Infinity")))
        *out_value = INFINITY;
    else if (str_eq(text, STR("-Infinity")))
        *out_value = -INFINITY;
    else
        return NOT_A_NUMBER;
    return NULL;
}

const char *
number_parse_float64(Str text, double *out_value)
{
    /* 10^0 to 10^22 are doubles without error */
    static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    Decimal decimal;
    uint64_t fraction;
    int exponent;
    double value;

    if (!read_decimal(text, &decimal))
        return parse_special(text, out_value);
    if (decimal.digits <= (uint64_t) 1 << 53 && !decimal.cut && decimal.exponent >= -22 &&
        decimal.exponent <= 22) {
        /* two exact doubles, one correctly rounded operation (Clinger 1990) */
        value = decimal.exponent < 0 ? (double) decimal.digits / exact_powers[-decimal.exponent]
                                     : (double) decimal.digits * exact_powers[decimal.exponent];
    } else if (decimal.digits != 0 && scale_by_power(&decimal, 53, &fraction, &exponent)) {
        value = assemble(fraction, 53, exponent);
    } else {
        return parse_slowly(text, false, out_value);
    }
    *out_value = decimal.negative ? -value : value;
    return NULL;
}

/* Straight to 24 bits: by way of a rounded double it would be rounded twice. */
static const char *
parse_single(Str text, double *out_value)
{
    Decimal decimal;
    uint64_t fraction;
    int exponent;

    if (!read_decimal(text, &decimal))
        return parse_special(text, out_value);
    if (decimal.digits == 0) {
        *out_value = decimal.negative ? -0.0 : 0.0;
        return NULL;
    }
    /* well inside the normal range, 10^-37 to 10^38, nothing is rounded again */
    if (decimal.exponent < -37 || decimal.exponent > 18 ||
        !scale_by_power(&decimal, 24, &fraction, &exponent))
        return parse_slowly(text, true, out_value);

    double value = assemble(fraction, 24, exponent);

    *out_value = decimal.negative ? -value : value;
    return NULL;
}

const char *
number_parse_float32(Str text, float *out_value)
{
    double value = 0;
    const char *reason = parse_single(text, &value);

    if (reason == NULL)
        *out_value = (float) value; /* exactly */
    return reason;
}

/* --- Decimals -------------------------------------------------------------------------------- */

static unsigned __int128
power_of_ten(int n)
{
    assert(n >= 0 && n <= 38);
    return n <= 19 ? powers_of_ten[n]
                   : (unsigned __int128) powers_of_ten[19] * powers_of_ten[n - 19];
}

static const char *
why_not_decimal(Str text)
{
    if (str_eq(text, STR("NaN")))
        return "NaN has no decimal";
    if (str_eq(text, STR("Infinity")) || str_eq(text, STR("-Infinity")))
        return "infinity has no decimal";
    return NOT_A_NUMBER;
}

/* Digit by digit: for more digits than 64 bits hold. */
static const char *
parse_long_decimal(Str text, int precision, int scale, unsigned __int128 *out_value)
{
    unsigned __int128 value = 0;
    int digits = 0;    /* significant ones */
    int fraction = -1; /* digits behind the point, -1: no point yet */

    for (size_t at = 0; at < text.len; at++) {
        char c = text.ptr[at];

        if (c == '.') {
            fraction = 0;
            continue;
        }
        if (fraction >= scale) {
            if (c != '0')
                return TOO_FINE;
            continue;
        }
        if (fraction >= 0)
            fraction++;
        value = value * 10 + (unsigned) (c - '0');
        if (value != 0 && ++digits > 38)
            return TOO_LARGE;
    }

    int missing = scale - (fraction < 0 ? 0 : fraction);

    if (digits + missing > precision)
        return TOO_LARGE;
    *out_value = value * power_of_ten(missing);
    return NULL;
}

/* digits * 10^-fraction in units of 10^-scale. */
static const char *
rescale(const Decimal *decimal, int fraction, int precision, int scale,
        unsigned __int128 *out_value)
{
    uint64_t digits = decimal->digits;

    if (digits == 0) {
        *out_value = 0;
        return NULL;
    }
    for (; fraction > scale; fraction--, digits /= 10)
        if (digits % 10 != 0)
            return TOO_FINE;

    int missing = scale - fraction;

    if (missing > precision || digits >= power_of_ten(precision - missing))
        return TOO_LARGE;
    *out_value = digits * power_of_ten(missing);
    return NULL;
}

const char *
number_parse_decimal(Str text, int precision, int scale, __int128 *out_value)
{
    Decimal decimal = {.negative = text.len > 0 && text.ptr[0] == '-'};
    size_t at = decimal.negative ? 1 : 0;
    size_t start = at;
    unsigned __int128 value = 0;
    size_t count = read_digits(text, &at, &decimal);
    size_t fraction = 0;

    if (at < text.len && text.ptr[at] == '.') {
        at++;
        fraction = read_digits(text, &at, &decimal);
    }
    if (at != text.len || count + fraction == 0 || fraction > FRACTION_MAX)
        return why_not_decimal(text);

    const char *reason =
        decimal.cut ? parse_long_decimal((Str){.ptr = text.ptr + start, .len = text.len - start},
                                         precision, scale, &value)
                    : rescale(&decimal, (int) fraction, precision, scale, &value);

    if (reason != NULL)
        return reason;
    *out_value = decimal.negative ? -(__int128) value : (__int128) value;
    return NULL;
}

/* src/backend/utils/adt/cash.c, cash_out(): in the C locale sign, dollar, digits in threes. */
const char *
number_parse_money(Str text, __int128 *out_value)
{
    char plain[32];
    size_t size = 0;
    size_t at = 0;

    if (at < text.len && text.ptr[at] == '-')
        plain[size++] = text.ptr[at++];
    if (at == text.len || text.ptr[at] != '$')
        return "not an amount of money";
    for (at++; at < text.len; at++) {
        if (text.ptr[at] == ',')
            continue;
        if (size == sizeof plain)
            return "not an amount of money";
        plain[size++] = text.ptr[at];
    }

    const char *reason = number_parse_decimal((Str){.ptr = plain, .len = size}, 19, 2, out_value);

    return reason == NOT_A_NUMBER ? "not an amount of money" : reason;
}
