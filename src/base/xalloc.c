#include "base/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
check(void *p, size_t size)
{
    if (p == NULL) {
        fprintf(stderr, "walberg: out of memory: cannot allocate %zu bytes\n", size);
        abort();
    }
    return p;
}

void *
xcalloc(size_t count, size_t size)
{
    if (count == 0 || size == 0)
        count = size = 1;
    return check(calloc(count, size), count * size);
}

void *
xrealloc(void *old, size_t size)
{
    return check(realloc(old, size == 0 ? 1 : size), size);
}

char *
xstrdup(const char *s)
{
    return check(strdup(s), strlen(s) + 1);
}

void
xfree(void *p)
{
    void *block;

    memcpy(&block, p, sizeof block);
    free(block);
}
