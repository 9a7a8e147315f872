/* str.h - a view of bytes that somebody else owns: pointer and length, no terminator promised.
 *
 * Half of our strings are wire data, so the default string has a length. Str never owns; what it
 * points into (an arena, a Buf, a literal) must outlive it. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct Str {
    const char *ptr;
    size_t len;
} Str;

#define STR(literal) ((Str){.ptr = (literal), .len = sizeof(literal) - 1})
#define STR_NULL     ((Str){.ptr = NULL, .len = 0})
/* For printf: ("%.*s", STR_ARG(s)) */
#define STR_ARG(s) (int) (s).len, (s).ptr

static inline Str
str_of(const char *cstr)
{
    return cstr == NULL ? STR_NULL : (Str){.ptr = cstr, .len = strlen(cstr)};
}

static inline bool
str_eq(Str a, Str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool
str_eqc(Str a, const char *b)
{
    return str_eq(a, str_of(b));
}

/* memcmp order, the shorter first on a tie. */
int str_cmp(Str a, Str b);
bool str_starts(Str s, Str prefix);
bool str_ends(Str s, Str suffix);

/* Whether the bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool str_is_utf8(Str s);

#endif
