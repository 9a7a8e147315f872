#include "decode/datetime.h"

#include "base/bytes.h"
#include "decode/cursor.h"

static const int64_t US_PER_SECOND = 1000000;
static const int64_t US_PER_DAY = 86400 * (int64_t) 1000000;

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Exactly two digits. */
static bool
read_pair(Cursor *cursor, int *out)
{
    if (cursor->end - cursor->at < 2 || !is_digit(cursor->at[0]) || !is_digit(cursor->at[1]))
        return false;
    *out = (cursor->at[0] - '0') * 10 + (cursor->at[1] - '0');
    cursor->at += 2;
    return true;
}

/* Eight bytes that are digits but for separators at fixed places: `layout` has '0' and the
 * separators, `separators` has 0xff where those are. *out_digits are the digits' values, the first
 * one lowest. One look at a word instead of at each byte. */
static bool
match_layout(const Cursor *cursor, uint64_t layout, uint64_t separators, uint64_t *out_digits)
{
    if (cursor_left(cursor) < 8)
        return false;

    uint64_t values = load_le64(cursor->at) ^ layout;

    *out_digits = values;
    return ((values | (values + 0x7676767676767676u)) & 0x8080808080808080u) == 0 &&
           (values & separators) == 0;
}

/* The two digits at byte `at` of the word. */
static int
pair_at(uint64_t digits, int at)
{
    return (int) (digits >> (8 * at) & 0xff) * 10 + (int) (digits >> (8 * at + 8) & 0xff);
}

/* Four to seven digits; Postgres ends at 5874897. */
static bool
read_year(Cursor *cursor, int *out)
{
    const char *start = cursor->at;
    int year = 0;

    for (; cursor->at < cursor->end && is_digit(*cursor->at); cursor->at++) {
        if (cursor->at - start == 7)
            return false;
        year = year * 10 + (*cursor->at - '0');
    }
    *out = year;
    return cursor->at - start >= 4;
}

/* --- The calendar ---------------------------------------------------------------------------- */

static int
days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar; year 0 is 1 BC. Counted from a first
 * of March, so that the leap day is the last of its year, and from 4800 years before, so that
 * nothing is negative. */
static int64_t
days_of(int year, int month, int day)
{
    uint32_t y = (uint32_t) (year + 4800 - (month > 2 ? 0 : 1));
    uint32_t months = (uint32_t) (month > 2 ? month - 3 : month + 9); /* since March */
    uint32_t leap_days = y / 4 - y / 100 + y / 400;

    /* 153 days are the five months March to July, and August to December again; 719468
     * days before 1970 is March of year 0, and 1753164 = 12 * 146097 days before that our start */
    return (int64_t) y * 365 + leap_days + (153 * months + 2) / 5 + day - 1 - 719468 - 1753164;
}

/* "2026-11-" and longer years. */
static bool
read_year_and_month(Cursor *cursor, int *out_year, int *out_month)
{
    uint64_t digits;

    if (match_layout(cursor, 0x2d30302d30303030u, 0xff0000ff00000000u, &digits)) {
        *out_year = pair_at(digits, 0) * 100 + pair_at(digits, 2);
        *out_month = pair_at(digits, 5);
        cursor->at += 8;
        return true;
    }
    return read_year(cursor, out_year) && cursor_accept(cursor, '-') &&
           read_pair(cursor, out_month) && cursor_accept(cursor, '-');
}

/* "2026-11-30"; the " BC" that may follow it or the time of day is told by `bc`. */
static bool
read_date(Cursor *cursor, bool bc, int64_t *out_days)
{
    int year;
    int month;
    int day;

    if (!read_year_and_month(cursor, &year, &month) || !read_pair(cursor, &day))
        return false;
    if (bc)
        year = 1 - year;
    if ((bc && year == 1) || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    *out_days = days_of(year, month, day);
    return true;
}

static bool
strip_bc(Str *text)
{
    if (text->len <= 3 || text->ptr[text->len - 1] != 'C' || !str_ends(*text, STR(" BC")))
        return false;
    text->len -= 3;
    return true;
}

static bool
is_infinity(Str text)
{
    return str_eq(text, STR("infinity")) || str_eq(text, STR("-infinity"));
}

/* --- The time of day ------------------------------------------------------------------------- */

static int64_t
seconds_of(int hours, int minutes, int seconds)
{
    return ((int64_t) hours * 60 + minutes) * 60 + seconds;
}

/* ".5" is 500000. */
static bool
read_fraction(Cursor *cursor, int64_t *out_us)
{
    const char *start = cursor->at;
    int64_t us = 0;
    int digits = 0;

    for (; cursor->at < cursor->end && is_digit(*cursor->at) && digits < 6; cursor->at++, digits++)
        us = us * 10 + (*cursor->at - '0');
    for (; digits < 6; digits++)
        us *= 10;
    *out_us = us;
    return cursor->at > start;
}

/* "10:00:00.123456"; hours up to 24, which the callers judge. */
static bool
read_time(Cursor *cursor, int64_t *out_us)
{
    uint64_t digits;
    int64_t us = 0;

    if (!match_layout(cursor, 0x30303a30303a3030u, 0x0000ff0000ff0000u, &digits))
        return false;
    cursor->at += 8;

    int hours = pair_at(digits, 0);
    int minutes = pair_at(digits, 3);
    int seconds = pair_at(digits, 6);

    if (hours > 24 || minutes > 59 || seconds > 59)
        return false;
    if (cursor_accept(cursor, '.') && !read_fraction(cursor, &us))
        return false;
    *out_us = seconds_of(hours, minutes, seconds) * US_PER_SECOND + us;
    return true;
}

/* "+00", "-03:30", "+05:53:28": east is positive. */
static bool
read_offset(Cursor *cursor, int64_t *out_us)
{
    int hours;
    int minutes = 0;
    int seconds = 0;
    bool west = cursor_accept(cursor, '-');

    if (!west && !cursor_accept(cursor, '+'))
        return false;
    if (!read_pair(cursor, &hours) ||
        (cursor_accept(cursor, ':') && !read_pair(cursor, &minutes)) ||
        (cursor_accept(cursor, ':') && !read_pair(cursor, &seconds)))
        return false;
    if (hours > 15 || minutes > 59 || seconds > 59) /* MAX_TZDISP_HOUR */
        return false;

    int64_t us = seconds_of(hours, minutes, seconds) * US_PER_SECOND;

    *out_us = west ? -us : us;
    return true;
}

/* --- The whole ------------------------------------------------------------------------------- */

const char *
datetime_parse_date(Str text, int32_t *out_value)
{
    Str date = text;
    bool bc = strip_bc(&date);
    Cursor cursor = cursor_of(date);
    int64_t days;

    if (!read_date(&cursor, bc, &days) || !cursor_done(&cursor))
        return is_infinity(text) ? "infinity has no date" : "not a date";
    if (days < INT32_MIN || days > INT32_MAX)
        return "out of range for dates";
    *out_value = (int32_t) days;
    return NULL;
}

const char *
datetime_parse_time(Str text, int64_t *out_value)
{
    Cursor cursor = cursor_of(text);
    int64_t us;

    if (!read_time(&cursor, &us) || !cursor_done(&cursor) || us > US_PER_DAY)
        return "not a time of day";
    if (us == US_PER_DAY)
        return "24:00:00 is beyond the end of the day";
    *out_value = us;
    return NULL;
}

static const char *
parse_timestamp(Str text, bool zone, int64_t *out_value)
{
    Str stamp = text;
    bool bc = strip_bc(&stamp);
    Cursor cursor = cursor_of(stamp);
    int64_t days;
    int64_t us;
    int64_t offset = 0;
    int64_t value;

    if (!read_date(&cursor, bc, &days) || !cursor_accept(&cursor, ' ') ||
        !read_time(&cursor, &us) || us >= US_PER_DAY || (zone && !read_offset(&cursor, &offset)) ||
        !cursor_done(&cursor))
        return is_infinity(text) ? "infinity has no timestamp" : "not a timestamp";

    /* The sum is taken from the days' midnight towards zero time, so that a value which fits does
     * not overflow on the way. */
    if (days < 0) {
        days++;
        us -= US_PER_DAY;
    }
    us -= offset;
    if (__builtin_mul_overflow(days, US_PER_DAY, &value) ||
        __builtin_add_overflow(value, us, &value))
        return "out of range for 64-bit microseconds since 1970";
    *out_value = value;
    return NULL;
}

const char *
datetime_parse_timestamp(Str text, int64_t *out_value)
{
    return parse_timestamp(text, false, out_value);
}

const char *
datetime_parse_timestamptz(Str text, int64_t *out_value)
{
    return parse_timestamp(text, true, out_value);
}
