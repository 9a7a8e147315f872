/* buf.h - a growable byte array that owns its memory. Reused from round to round: buf_reset()
 * keeps the memory, so a steady state allocates nothing. A zeroed Buf is a valid empty one. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/error.h"
#include "base/str.h"
#include "base/xalloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct Buf {
    char *ptr;
    size_t len;
    size_t cap;
} Buf;

void buf_done(Buf *buf); /* free; leaves a valid empty Buf */
#define AUTO_BUF __attribute__((cleanup(buf_done)))

/* Make room for `more` bytes behind len without changing len. */
void buf_grow(Buf *buf, size_t more);

static inline void
buf_reserve(Buf *buf, size_t more)
{
    if (buf->cap - buf->len < more)
        buf_grow(buf, more);
}

static inline void
buf_reset(Buf *buf)
{
    buf->len = 0;
}

/* `size` more bytes, not initialised; the pointer is good until the next growth. */
static inline void *
buf_push(Buf *buf, size_t size)
{
    buf_reserve(buf, size);

    void *p = buf->ptr + buf->len;

    buf->len += size;
    return p;
}

static inline void
buf_append(Buf *buf, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(buf_push(buf, size), bytes, size);
}

static inline void
buf_byte(Buf *buf, uint8_t byte)
{
    *(uint8_t *) buf_push(buf, 1) = byte;
}

void buf_str(Buf *buf, Str s);
void buf_cstr(Buf *buf, const char *s);
void buf_printf(Buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(Buf *buf, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/* NUL-terminate behind len (not counted) and return the text. */
char *buf_text(Buf *buf);

static inline Str
buf_view(const Buf *buf)
{
    return (Str){.ptr = buf->ptr, .len = buf->len};
}

/* Typed arrays in a Buf: BUF_PUSH(&buf, Thing, value), BUF_AT(&buf, Thing, i), BUF_COUNT(...) */
#define BUF_PUSH(buf, Type, value) (*(Type *) buf_push((buf), sizeof(Type)) = (value))
#define BUF_AT(buf, Type, i)       (((Type *) (void *) (buf)->ptr)[i])
#define BUF_COUNT(buf, Type)       ((buf)->len / sizeof(Type))

#endif
