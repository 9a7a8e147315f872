/* value.h - the text of a single setting into a number, and references to secrets into text.
 *
 * Messages are about the value alone ("5 has no unit"); the caller puts place and key in front. */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include "base/arena.h"

#include <stdint.h>

bool value_int(Str text, int64_t *out_number, Error *err) WARN_UNUSED;
/* true false, yes no, on off; any case. */
bool value_bool(Str text, bool *out_bool, Error *err) WARN_UNUSED;
/* Milliseconds from 500ms 10s 5m 1h. */
bool value_duration(Str text, int64_t *out_ms, Error *err) WARN_UNUSED;
/* Bytes from 512B 64kB 128MB 1GB 1TB: Postgres' units, multiples of 1024. */
bool value_size(Str text, int64_t *out_bytes, Error *err) WARN_UNUSED;

/* "env:NAME" is the value of that variable, "file:PATH" the content of that file without the
 * newline at its end; anything else, file:// URIs included, is itself. Messages name the variable
 * or file and never show a value. */
bool value_resolve(Arena *arena, Str text, const char **out_text, Error *err) WARN_UNUSED;

/* The whole file, at most `bytes_max`. *out_found = false when there is none; NULL: that is an
 * error too. */
bool value_read_file(Arena *arena, const char *path, size_t bytes_max, Str *out_text,
                     bool *out_found, Error *err) WARN_UNUSED;

/* A variable's value; NULL when it is unset or empty: `X=` in a service file means "not set". */
const char *value_environment(const char *name);

#endif
