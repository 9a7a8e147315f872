#include "config/distance.h"

#include <ctype.h>
#include <stdint.h>

enum { NAME_MAX_COMPARED = 96 };

static char
folded(Str s, size_t i)
{
    char c = s.ptr[i];

    if (c == '-')
        return '_';
    return (char) tolower((unsigned char) c);
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t
distance_between(Str a, Str b)
{
    size_t rows[3][NAME_MAX_COMPARED + 1]; /* of the matrix: two back, one back, this one */
    size_t *before = rows[0];
    size_t *last = rows[1];
    size_t *now = rows[2];

    if (a.len > NAME_MAX_COMPARED || b.len > NAME_MAX_COMPARED)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t cost = folded(a, i - 1) == folded(b, j - 1) ? 0 : 1;

            now[j] = least(least(last[j] + 1, now[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && folded(a, i - 1) == folded(b, j - 2) &&
                folded(a, i - 2) == folded(b, j - 1))
                now[j] = least(now[j], before[j - 2] + 1);
        }

        size_t *spare = before;

        before = last;
        last = now;
        now = spare;
    }
    return last[b.len];
}

size_t
distance_limit(Str name)
{
    return name.len < 3 ? 0 : name.len < 6 ? 1 : name.len < 12 ? 2 : 3;
}
