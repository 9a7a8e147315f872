#include "base/str.h"

#include <stdint.h>

int
str_cmp(Str a, Str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);

    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

bool
str_starts(Str s, Str prefix)
{
    return s.len >= prefix.len && memcmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

bool
str_ends(Str s, Str suffix)
{
    return s.len >= suffix.len && memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0;
}

/* Length of the well-formed sequence at p, or 0. RFC 3629, section 4. */
static size_t
sequence_length(const uint8_t *p, size_t left)
{
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    size_t need;

    if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        need = 2;
    } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        need = 3;
        low = p[0] == 0xE0 ? 0xA0 : 0x80;
        high = p[0] == 0xED ? 0x9F : 0xBF;
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        need = 4;
        low = p[0] == 0xF0 ? 0x90 : 0x80;
        high = p[0] == 0xF4 ? 0x8F : 0xBF;
    } else {
        return 0;
    }
    if (left < need || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return need;
}

bool
str_is_utf8(Str s)
{
    const uint8_t *p = (const uint8_t *) s.ptr;
    size_t i = 0;

    while (i < s.len) {
        uint64_t word;

        if (s.len - i >= sizeof word) {
            memcpy(&word, p + i, sizeof word);
            if ((word & 0x8080808080808080u) == 0) { /* eight ASCII bytes at once */
                i += sizeof word;
                continue;
            }
        }
        if (p[i] < 0x80) {
            i++;
            continue;
        }

        size_t n = sequence_length(p + i, s.len - i);

        if (n == 0)
            return false;
        i += n;
    }
    return true;
}
