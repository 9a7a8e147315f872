#include "iceberg/value_text.h"

#include <inttypes.h>

static const int64_t DAY_US = INT64_C(86400000000);

void
text_put_date(Buf *out, int64_t days)
{
    /* the calendar of transform.c: years begin on 1 March */
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day = shifted - era * 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t of_year = day - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;

    buf_printf(out, "%04" PRId64 "-%02d-%02d", era * 400 + year + (month >= 10),
               (int) (month < 10 ? month + 3 : month - 9),
               (int) (of_year - (153 * month + 2) / 5 + 1));
}

void
text_put_time(Buf *out, int64_t us)
{
    int seconds = (int) (us / 1000000);

    buf_printf(out, "%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if (us % 1000000 != 0)
        buf_printf(out, ".%06d", (int) (us % 1000000));
}

void
text_put_instant(Buf *out, int64_t us, const char *zone)
{
    int64_t days = us / DAY_US - (us % DAY_US < 0);

    text_put_date(out, days);
    buf_byte(out, 'T');
    text_put_time(out, us - days * DAY_US);
    buf_cstr(out, zone);
}

void
text_put_uuid(Buf *out, Str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                   (uint8_t) bytes.ptr[i]);
}

void
text_put_decimal(Buf *out, __int128 unscaled, int scale)
{
    unsigned __int128 value = (unsigned __int128) unscaled;
    bool negative = unscaled < 0;
    char digits[48];
    int at = sizeof digits;

    if (negative)
        value = ~value + 1;
    for (int i = 0; value != 0 || i <= scale; i++) {
        if (i == scale && scale > 0)
            digits[--at] = '.';
        digits[--at] = (char) ('0' + (int) (value % 10));
        value /= 10;
    }
    if (negative)
        digits[--at] = '-';
    buf_append(out, digits + at, sizeof digits - (size_t) at);
}
