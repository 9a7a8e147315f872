/* position.h - how far a source has been read.
 *
 * For Postgres: the end LSN of a commit record ("end_lsn" of a pgoutput Commit message). It has an
 * order and a text form ("16/B374D848", as pg_lsn prints it), and nothing more. 0 means "nothing
 * yet". A transaction is at or before a position exactly when its commit record starts before it.
 */
#ifndef MODEL_POSITION_H
#define MODEL_POSITION_H

#include "base/error.h"
#include "base/str.h"

#include <stdint.h>

typedef uint64_t Position;

#define POSITION_NONE      ((Position) 0)
#define POSITION_TEXT_SIZE 20

/* "%X/%X"; out holds POSITION_TEXT_SIZE bytes. Returns out. */
const char *position_format(Position position, char out[POSITION_TEXT_SIZE]);

/* Strict: 1 to 8 hexadecimal digits, a slash, 1 to 8 more. ERR_INPUT otherwise. */
bool position_parse(Str text, Position *out_position, Error *err) WARN_UNUSED;

/* A position as a C string that lives until the end of the enclosing block. */
#define POSITION_TEXT(p) position_format((p), (char[POSITION_TEXT_SIZE]){0})

#endif
