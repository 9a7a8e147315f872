/* datetime.h - dates and times in Postgres' ISO text output (datestyle ISO, timezone UTC). */
#ifndef DECODE_DATETIME_H
#define DECODE_DATETIME_H

#include "base/str.h"

#include <stdint.h>

/* Each returns NULL and sets *out_value, or says why there is no such value (static text): infinity
 * and what lies beyond 64 bits have no home. BC and years of more than four digits are exact. */

/* Days since 1970-01-01. */
const char *datetime_parse_date(Str text, int32_t *out_value);

/* Microseconds since midnight. */
const char *datetime_parse_time(Str text, int64_t *out_value);

/* Microseconds since 1970-01-01 00:00:00, no zone. */
const char *datetime_parse_timestamp(Str text, int64_t *out_value);

/* The same in UTC; the text has an offset: +00, -03:30, +05:53:28. */
const char *datetime_parse_timestamptz(Str text, int64_t *out_value);

#endif
