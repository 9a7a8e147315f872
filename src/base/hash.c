#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/xalloc.h"

Hash128
hash128(const void *bytes, size_t size, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(bytes, size, seed);

    return (Hash128){.high = h.high64, .low = h.low64};
}

bool
hash128_file(int fd, Hash128 *out)
{
    enum { CHUNK = 1 << 18 };

    XXH3_state_t *state = XXH3_createState();
    char *chunk = xcalloc(1, CHUNK);
    off_t offset = 0;
    ssize_t size;

    XXH3_128bits_reset(state);
    while ((size = pread(fd, chunk, CHUNK, offset)) > 0) {
        XXH3_128bits_update(state, chunk, (size_t) size);
        offset += size;
    }

    XXH128_hash_t h = XXH3_128bits_digest(state);

    *out = (Hash128){.high = h.high64, .low = h.low64};
    free(chunk);
    XXH3_freeState(state);
    return size == 0;
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
