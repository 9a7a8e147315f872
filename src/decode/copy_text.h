/* copy_text.h - one line of COPY ... TO STDOUT (text format) into fields.
 *
 * Undoes the backslash escapes (in place, in `line`, which must be writable) and finds \N. Postgres
 * documentation, "COPY", "Text Format". */
#ifndef DECODE_COPY_TEXT_H
#define DECODE_COPY_TEXT_H

#include "base/error.h"
#include "model/change.h"

/* line: one row without its newline (a trailing newline is ignored). Fills `count` datums; another
 * number of fields is ERR_BUG. */
bool copy_text_split(char *line, size_t size, Datum *out_datums, int count, Error *err) WARN_UNUSED;

#endif
