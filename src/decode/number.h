/* number.h - numbers in Postgres' text output, exactly or not at all. */
#ifndef DECODE_NUMBER_H
#define DECODE_NUMBER_H

#include "base/str.h"

#include <stdint.h>

/* Each returns NULL and sets *out_value, or says why the text is no such number (static text). No
 * locale is looked at. */

/* Also oid and xid, which are unsigned 32 bits. */
const char *number_parse_int64(Str text, int64_t *out_value);
const char *number_parse_int32(Str text, int32_t *out_value);

/* Rounded to nearest, ties to even, as Postgres reads its own output back. */
const char *number_parse_float64(Str text, double *out_value);
const char *number_parse_float32(Str text, float *out_value);

/* Unscaled, at most 38 digits. Never rounded: fractional digits beyond `scale` must be zeros. */
const char *number_parse_decimal(Str text, int precision, int scale, __int128 *out_value);

/* money under lc_monetary = C: "-$1,234.56", into the smallest unit, which is whatever the locale
 * that it was written under says: C prints 1234 of it as $12.34. */
const char *number_parse_money(Str text, __int128 *out_value);

#endif
