/* xalloc.h - allocation that aborts instead of failing. What we bound is demand, not malloc. */
#ifndef BASE_XALLOC_H
#define BASE_XALLOC_H

#include <stddef.h>

/* Zeroed memory; aborts with a message when there is none. Free with free(). */
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *old, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));

/* For AUTO(): frees *p, p pointing at a pointer. */
void xfree(void *p);

#define AUTO_FREE __attribute__((cleanup(xfree)))

#endif
