/* hash.h - 128-bit hashes (XXH3) and random identifiers. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/str.h"

#include <stdint.h>

typedef struct Hash128 {
    uint64_t high;
    uint64_t low;
} Hash128;

Hash128 hash128(const void *bytes, size_t size, uint64_t seed);

/* Of the whole content of an open file; its offset stays. false: it cannot be read, errno says why.
 */
bool hash128_file(int fd, Hash128 *out);

static inline bool
hash128_eq(Hash128 a, Hash128 b)
{
    return a.high == b.high && a.low == b.low;
}

/* Order by high, then low. */
static inline int
hash128_cmp(Hash128 a, Hash128 b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    return a.low < b.low ? -1 : a.low > b.low;
}

/* Random bytes from the kernel; aborts when there are none. */
void random_bytes(void *out, size_t size);

/* A random (version 4) UUID as 36 characters and a NUL. */
void random_uuid(char out[37]);

#endif
