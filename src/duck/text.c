/* text.c - values as Postgres' output functions write them, with DateStyle ISO, IntervalStyle
 * postgres, bytea_output hex, extra_float_digits 1 and time zone UTC. */
#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "base/json_writer.h"
#include "duck/value.h"

enum { SECOND_US = 1000000, MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };

static const int64_t day_us = (int64_t) DAY_S * SECOND_US;

/* --- numbers ------------------------------------------------------------------------------- */

static void
put_unsigned(Buf *out, unsigned __int128 n)
{
    char digits[40];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char) ('0' + (int) (n % 10));
        n /= 10;
    } while (n != 0);
    buf_append(out, digits + at, sizeof digits - at);
}

static void
put_integer(Buf *out, __int128 n)
{
    if (n < 0)
        buf_byte(out, '-');
    put_unsigned(out, n < 0 ? -(unsigned __int128) n : (unsigned __int128) n);
}

static void
put_decimal(Buf *out, __int128 n, int scale)
{
    char digits[48];
    size_t at = sizeof digits;
    unsigned __int128 rest = n < 0 ? -(unsigned __int128) n : (unsigned __int128) n;

    for (int i = 0; i < scale || rest != 0 || i == scale; i++) {
        if (i == scale && scale > 0)
            digits[--at] = '.';
        digits[--at] = (char) ('0' + (int) (rest % 10));
        rest /= 10;
    }
    if (n < 0)
        digits[--at] = '-';
    buf_append(out, digits + at, sizeof digits - at);
}

/* The fewest significant digits that read back as the same number: "d.ddde+XX" into out. */
static void
shortest(double number, bool single, char out[40])
{
    bool subnormal = fabs(number) < (single ? (double) FLT_MIN : DBL_MIN);
    int most = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;

    /* Any decimal of FLT_DIG or DBL_DIG digits survives the way there and back, so a shorter one
     * shows as zeros at the end; below the normal range that does not hold. */
    int digits = subnormal ? 1 : (single ? FLT_DIG : DBL_DIG);
    bool same;

    do {
        snprintf(out, 40, "%.*e", digits - 1, number);
        same = single ? strtof(out, NULL) == (float) number : strtod(out, NULL) == number;
    } while (!same && ++digits <= most);
}

/* Plain notation for exponents from -4 up to fixed_max, else scientific (Postgres' d2s.c, f2s.c,
 * "Thresholds for fixed-point output"). */
static void
put_float(Buf *out, double number, bool single)
{
    char text[40];
    char digits[24] = "0";
    int count = 0;

    if (isnan(number)) {
        buf_cstr(out, "NaN");
        return;
    }
    if (isinf(number)) {
        buf_cstr(out, number < 0 ? "-Infinity" : "Infinity");
        return;
    }
    if (signbit(number))
        buf_byte(out, '-');
    shortest(fabs(number), single, text);

    char *mark = strchr(text, 'e');
    int exponent = (int) strtol(mark + 1, NULL, 10);

    for (const char *c = text; c < mark; c++)
        if (*c != '.')
            digits[count++] = *c;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    if (exponent < -4 || exponent >= (single ? FLT_DIG : DBL_DIG)) {
        buf_byte(out, (uint8_t) digits[0]);
        if (count > 1)
            buf_byte(out, '.');
        buf_append(out, digits + 1, (size_t) count - 1);
        buf_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) {
        buf_append(out, "0.000", (size_t) (1 - exponent));
        buf_append(out, digits, (size_t) count);
        return;
    }
    for (int i = 0; i < count || i <= exponent; i++) {
        if (i == exponent + 1)
            buf_byte(out, '.');
        buf_byte(out, i < count ? (uint8_t) digits[i] : '0');
    }
}

/* --- dates and times ----------------------------------------------------------------------- */

/* Days since 1970-01-01 to the proleptic Gregorian calendar; year 0 is 1 BC. The year is counted
 * from March, so that the leap day is its last. */
static void
civil(int64_t days, int64_t *out_year, int *out_month, int *out_day)
{
    int64_t shifted = days + 719468; /* since 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;

    *out_day = (int) (of_year - (153 * month + 2) / 5 + 1);
    *out_month = (int) (month < 10 ? month + 3 : month - 9);
    *out_year = year + era * 400 + (*out_month <= 2);
}

/* Returns whether the year is before Christ: " BC" then goes to the very end. */
static bool
put_day(Buf *out, int64_t days)
{
    int64_t year;
    int month;
    int day;

    civil(days, &year, &month, &day);
    buf_printf(out, "%04" PRId64 "-%02d-%02d", year > 0 ? year : 1 - year, month, day);
    return year <= 0;
}

static void
put_fraction(Buf *out, int64_t us)
{
    char digits[8];
    int count = 6;

    if (us == 0)
        return;
    snprintf(digits, sizeof digits, "%06d", (int) us);
    while (digits[count - 1] == '0')
        count--;
    buf_byte(out, '.');
    buf_append(out, digits, (size_t) count);
}

/* us is not negative; hours are not wrapped at 24. */
static void
put_clock(Buf *out, int64_t us)
{
    int64_t seconds = us / SECOND_US;

    buf_printf(out, "%02" PRId64 ":%02d:%02d", seconds / HOUR_S,
               (int) (seconds % HOUR_S / MINUTE_S), (int) (seconds % MINUTE_S));
    put_fraction(out, us % SECOND_US);
}

static void
put_date(Buf *out, int32_t days)
{
    if (days == INT32_MAX || days == -INT32_MAX) {
        buf_cstr(out, days < 0 ? "-infinity" : "infinity");
        return;
    }
    if (put_day(out, days))
        buf_cstr(out, " BC");
}

static void
put_timestamp(Buf *out, int64_t us, bool zone)
{
    if (us == INT64_MAX || us == -INT64_MAX) {
        buf_cstr(out, us < 0 ? "-infinity" : "infinity");
        return;
    }

    int64_t days = us / day_us - (us % day_us < 0);
    bool before_christ = put_day(out, days);

    buf_byte(out, ' ');
    put_clock(out, us - days * day_us);
    if (zone)
        buf_cstr(out, "+00");
    if (before_christ)
        buf_cstr(out, " BC");
}

static void
put_timetz(Buf *out, uint64_t bits)
{
    duckdb_time_tz_struct parts = duckdb_from_time_tz((duckdb_time_tz){.bits = bits});
    int offset = abs(parts.offset);

    buf_printf(out, "%02d:%02d:%02d", parts.time.hour, parts.time.min, parts.time.sec);
    put_fraction(out, parts.time.micros);
    buf_printf(out, "%c%02d", parts.offset < 0 ? '-' : '+', offset / HOUR_S);
    if (offset % HOUR_S != 0)
        buf_printf(out, ":%02d", offset % HOUR_S / MINUTE_S);
    if (offset % MINUTE_S != 0)
        buf_printf(out, ":%02d", offset % MINUTE_S);
}

/* "1 year 2 mons -3 days +04:05:06": a part after a negative one says its sign (Postgres'
 * EncodeInterval, INTSTYLE_POSTGRES). */
static void
put_interval(Buf *out, const duckdb_interval *interval)
{
    const struct {
        int count;
        const char *unit;
    } parts[] = {
        {interval->months / 12, "year"}, {interval->months % 12, "mon"}, {interval->days, "day"}};

    bool negative = false;
    bool empty = true;

    for (size_t i = 0; i < 3; i++) {
        if (parts[i].count == 0)
            continue;
        buf_printf(out, "%s%s%d %s%s", empty ? "" : " ", negative && parts[i].count > 0 ? "+" : "",
                   parts[i].count, parts[i].unit, parts[i].count == 1 ? "" : "s");
        negative = parts[i].count < 0;
        empty = false;
    }
    if (interval->micros == 0 && !empty)
        return;
    if (!empty)
        buf_byte(out, ' ');
    if (interval->micros < 0)
        buf_byte(out, '-');
    else if (negative)
        buf_byte(out, '+');
    put_clock(out, interval->micros < 0 ? -interval->micros : interval->micros);
}

/* --- bytes --------------------------------------------------------------------------------- */

static void
put_hex(Buf *out, const uint8_t *bytes, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    char *at = buf_push(out, size * 2);

    for (size_t i = 0; i < size; i++) {
        *at++ = hex[bytes[i] >> 4];
        *at++ = hex[bytes[i] & 15];
    }
}

static void
put_uuid(Buf *out, const ValueVector *values, size_t row)
{
    static const int groups[] = {4, 2, 2, 2, 6};
    uint8_t bytes[16];
    const uint8_t *at = bytes;

    value_uuid(values, row, bytes);
    for (int i = 0; i < 5; i++) {
        if (i > 0)
            buf_byte(out, '-');
        put_hex(out, at, (size_t) groups[i]);
        at += groups[i];
    }
}

/* --- nested values ------------------------------------------------------------------------- */

static bool
is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* Whether an element of an array has to be quoted (Postgres' array_out). */
static bool
element_needs_quotes(Str text)
{
    if (text.len == 0)
        return true;
    if (text.len == 4 && strncasecmp(text.ptr, "null", 4) == 0)
        return true;
    for (size_t i = 0; i < text.len; i++)
        if (is_blank(text.ptr[i]) || is_one_of(text.ptr[i], "\"\\{},"))
            return true;
    return false;
}

static void
put_element(Buf *out, Str text)
{
    if (!element_needs_quotes(text)) {
        buf_str(out, text);
        return;
    }
    buf_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"' || text.ptr[i] == '\\')
            buf_byte(out, '\\');
        buf_byte(out, (uint8_t) text.ptr[i]);
    }
    buf_byte(out, '"');
}

static void
put_array(Buf *out, const ValueVector *values, size_t row)
{
    size_t first;
    size_t count;
    ValueVector elements = value_elements(values, row, &first, &count);
    bool nested = elements.type->kind == DUCK_LIST || elements.type->kind == DUCK_ARRAY;
    AUTO_BUF Buf text = {0};

    buf_byte(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        if (value_is_null(&elements, first + i)) {
            buf_cstr(out, "NULL");
        } else if (nested) {
            put_array(out, &elements, first + i);
        } else {
            buf_reset(&text);
            value_text(&elements, first + i, &text);
            put_element(out, buf_view(&text));
        }
    }
    buf_byte(out, '}');
}

/* A member of a record (Postgres' record_out): quotes and backslashes are doubled. */
static void
put_member(Buf *out, Str text)
{
    bool quotes = text.len == 0;

    for (size_t i = 0; i < text.len && !quotes; i++)
        quotes = is_blank(text.ptr[i]) || is_one_of(text.ptr[i], "\"\\(),");
    if (!quotes) {
        buf_str(out, text);
        return;
    }
    buf_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"' || text.ptr[i] == '\\')
            buf_byte(out, (uint8_t) text.ptr[i]);
        buf_byte(out, (uint8_t) text.ptr[i]);
    }
    buf_byte(out, '"');
}

static ValueVector
struct_member(const ValueVector *values, int i)
{
    return value_vector(&values->type->children[i],
                        duckdb_struct_vector_get_child(values->vector, (idx_t) i));
}

static void
put_record(Buf *out, const ValueVector *values, size_t row)
{
    AUTO_BUF Buf text = {0};

    buf_byte(out, '(');
    for (int i = 0; i < values->type->child_count; i++) {
        ValueVector member = struct_member(values, i);

        if (i > 0)
            buf_byte(out, ',');
        if (value_is_null(&member, row))
            continue;
        buf_reset(&text);
        value_text(&member, row, &text);
        put_member(out, buf_view(&text));
    }
    buf_byte(out, ')');
}

static void put_json(JsonWriter *json, const ValueVector *values, size_t row);

static void
put_json_text(JsonWriter *json, const ValueVector *values, size_t row)
{
    AUTO_BUF Buf text = {0};
    DuckKind kind = values->type->kind;
    bool is_finite = kind == DUCK_FLOAT32   ? isfinite(((const float *) values->data)[row])
                     : kind == DUCK_FLOAT64 ? isfinite(((const double *) values->data)[row])
                                            : true;

    value_text(values, row, &text);
    if (kind == DUCK_BOOL)
        jw_bool(json, ((const bool *) values->data)[row]);
    else if (kind == DUCK_JSON || (kind >= DUCK_INT8 && kind <= DUCK_DECIMAL && is_finite))
        jw_raw(json, buf_view(&text));
    else
        jw_text(json, buf_view(&text));
}

/* A map as an object; duckdb's maps are lists of structs (key, value). */
static void
put_json_map(JsonWriter *json, const ValueVector *values, size_t row)
{
    duckdb_list_entry entry = ((const duckdb_list_entry *) values->data)[row];
    duckdb_vector pairs = duckdb_list_vector_get_child(values->vector);
    ValueVector keys =
        value_vector(&values->type->children[0], duckdb_struct_vector_get_child(pairs, 0));
    ValueVector items =
        value_vector(&values->type->children[1], duckdb_struct_vector_get_child(pairs, 1));
    AUTO_BUF Buf key = {0};

    jw_object(json);
    for (size_t i = entry.offset; i < entry.offset + entry.length; i++) {
        buf_reset(&key);
        value_text(&keys, i, &key);
        jw_key_str(json, buf_view(&key));
        put_json(json, &items, i);
    }
    jw_end(json);
}

static void
put_json_list(JsonWriter *json, const ValueVector *values, size_t row)
{
    size_t first;
    size_t count;
    ValueVector elements = value_elements(values, row, &first, &count);

    jw_array(json);
    for (size_t i = 0; i < count; i++)
        put_json(json, &elements, first + i);
    jw_end(json);
}

static void
put_json_struct(JsonWriter *json, const ValueVector *values, size_t row)
{
    jw_object(json);
    for (int i = 0; i < values->type->child_count; i++) {
        ValueVector member = struct_member(values, i);

        jw_key_str(json, values->type->names[i]);
        put_json(json, &member, row);
    }
    jw_end(json);
}

static void
put_json(JsonWriter *json, const ValueVector *values, size_t row)
{
    DuckKind kind = values->type->kind;

    if (value_is_null(values, row))
        jw_null(json);
    else if (kind == DUCK_MAP)
        put_json_map(json, values, row);
    else if (kind == DUCK_LIST || kind == DUCK_ARRAY)
        put_json_list(json, values, row);
    else if (kind == DUCK_STRUCT)
        put_json_struct(json, values, row);
    else
        put_json_text(json, values, row);
}

/* --- all of them --------------------------------------------------------------------------- */

static void
put_nested(Buf *out, const ValueVector *values, size_t row)
{
    JsonWriter json;

    switch ((int) values->type->kind) {
    case DUCK_STRUCT:
        put_record(out, values, row);
        return;
    case DUCK_MAP:
        jw_begin(&json, out);
        put_json_map(&json, values, row);
        return;
    default:
        put_array(out, values, row);
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
        put_clock(out, ((const int64_t *) data)[row]);
        return;
    case DUCK_TIMETZ:
        put_timetz(out, ((const uint64_t *) data)[row]);
        return;
    case DUCK_INTERVAL:
        put_interval(out, &((const duckdb_interval *) data)[row]);
        return;
    default:
        put_timestamp(out, value_microseconds(values, row), values->type->kind == DUCK_TIMESTAMPTZ);
        return;
    }
}

void
value_text(const ValueVector *values, size_t row, Buf *out)
{
    const void *data = values->data;
    DuckKind kind = values->type->kind;
    Str bytes;

    assert(kind != DUCK_OTHER);
    if (kind >= DUCK_LIST) {
        put_nested(out, values, row);
    } else if (kind >= DUCK_DATE && kind <= DUCK_INTERVAL) {
        put_time(out, values, row);
    } else if (kind == DUCK_TEXT || kind == DUCK_JSON) {
        buf_str(out, value_bytes(values, row));
    } else if (kind == DUCK_BOOL) {
        buf_byte(out, ((const bool *) data)[row] ? 't' : 'f');
    } else if (kind == DUCK_FLOAT32) {
        put_float(out, (double) ((const float *) data)[row], true);
    } else if (kind == DUCK_FLOAT64) {
        put_float(out, ((const double *) data)[row], false);
    } else if (kind == DUCK_DECIMAL) {
        put_decimal(out, value_integer(values, row), values->type->scale);
    } else if (kind == DUCK_UUID) {
        put_uuid(out, values, row);
    } else if (kind == DUCK_BLOB) {
        bytes = value_bytes(values, row);
        buf_cstr(out, "\\x");
        put_hex(out, (const uint8_t *) bytes.ptr, bytes.len);
    } else if (kind == DUCK_UINT128) {
        put_unsigned(out, (unsigned __int128) value_integer(values, row));
    } else {
        put_integer(out, value_integer(values, row));
    }
}
