#include "base/buf.h"

#include <stdio.h>

void
buf_done(Buf *buf)
{
    free(buf->ptr);
    *buf = (Buf){0};
}

void
buf_grow(Buf *buf, size_t more)
{
    size_t cap = buf->cap < 64 ? 64 : buf->cap + buf->cap / 2;

    if (cap < buf->len + more)
        cap = buf->len + more;
    buf->ptr = xrealloc(buf->ptr, cap);
    buf->cap = cap;
}

void
buf_str(Buf *buf, Str s)
{
    buf_append(buf, s.ptr, s.len);
}

void
buf_cstr(Buf *buf, const char *s)
{
    buf_append(buf, s, strlen(s));
}

void
buf_vprintf(Buf *buf, const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);

    int n = vsnprintf(NULL, 0, fmt, args);

    buf_reserve(buf, (size_t) n + 1);
    vsnprintf(buf->ptr + buf->len, (size_t) n + 1, fmt, again);
    buf->len += (size_t) n;
    va_end(again);
}

void
buf_printf(Buf *buf, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    buf_vprintf(buf, fmt, args);
    va_end(args);
}

char *
buf_text(Buf *buf)
{
    buf_reserve(buf, 1);
    buf->ptr[buf->len] = '\0';
    return buf->ptr;
}
