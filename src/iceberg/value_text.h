/* value_text.h - single values as text: what partition folders and defaults have in common. Pure.
 */
#ifndef ICEBERG_VALUE_TEXT_H
#define ICEBERG_VALUE_TEXT_H

#include "base/buf.h"

#include <stdint.h>

/* Each appends to *out. */

void text_put_date(Buf *out, int64_t days);                    /* 2026-11-30 */
void text_put_time(Buf *out, int64_t us);                      /* 14:05:09, 14:05:09.000001 */
void text_put_instant(Buf *out, int64_t us, const char *zone); /* 2026-11-30T14:05:09<zone> */
void text_put_uuid(Buf *out, Str bytes);                       /* lower case */
void text_put_decimal(Buf *out, __int128 unscaled, int scale); /* -14.20 */

#endif
