/* cursor.h - what is left of bytes that are being read. */
#ifndef DECODE_CURSOR_H
#define DECODE_CURSOR_H

#include "base/str.h"

typedef struct Cursor {
    const char *at;
    const char *end;
} Cursor;

static inline Cursor
cursor_of(Str text)
{
    return (Cursor){.at = text.ptr, .end = text.ptr + text.len};
}

static inline bool
cursor_done(const Cursor *cursor)
{
    return cursor->at == cursor->end;
}

static inline size_t
cursor_left(const Cursor *cursor)
{
    return (size_t) (cursor->end - cursor->at);
}

/* Whether the next byte is c. */
static inline bool
cursor_is_at(const Cursor *cursor, char c)
{
    return cursor->at != cursor->end && *cursor->at == c;
}

/* Step over c if it is the next byte. */
static inline bool
cursor_accept(Cursor *cursor, char c)
{
    if (!cursor_is_at(cursor, c))
        return false;
    cursor->at++;
    return true;
}

#endif
