#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

Hash128
hash128(const void *bytes, size_t size, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(bytes, size, seed);

    return (Hash128){.high = h.high64, .low = h.low64};
}

void
random_bytes(void *out, size_t size)
{
    char *p = out;

    while (size > 0) {
        ssize_t n = getrandom(p, size, 0);

        if (n <= 0) {
            perror("walberg: getrandom");
            abort();
        }
        p += n;
        size -= (size_t) n;
    }
}

void
random_uuid(char out[37])
{
    uint8_t b[16];

    random_bytes(b, sizeof b);
    b[6] = (uint8_t) ((b[6] & 0x0f) | 0x40); /* version 4, RFC 9562 section 5.4 */
    b[8] = (uint8_t) ((b[8] & 0x3f) | 0x80);
    snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}
