/* bytes.h - integers from and to bytes, in a stated order. Never by casting. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdint.h>
#include <string.h>

#define DEFINE_LOAD(bits, order, swap)                                                             \
    static inline uint##bits##_t load_##order##bits(const void *p)                                 \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
                                                                                                   \
        memcpy(&v, p, sizeof v);                                                                   \
        return swap;                                                                               \
    }                                                                                              \
    static inline void store_##order##bits(void *p, uint##bits##_t v)                              \
    {                                                                                              \
        v = swap;                                                                                  \
        memcpy(p, &v, sizeof v);                                                                   \
    }

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
DEFINE_LOAD(16, be, __builtin_bswap16(v))
DEFINE_LOAD(32, be, __builtin_bswap32(v))
DEFINE_LOAD(64, be, __builtin_bswap64(v))
DEFINE_LOAD(16, le, v)
DEFINE_LOAD(32, le, v)
DEFINE_LOAD(64, le, v)
#else
#error "walberg is written for little-endian machines (x86_64, aarch64)"
#endif
#undef DEFINE_LOAD

/* Minimal big-endian two's complement, at the end of out: how many of its bytes count (1 to 16). */
static inline size_t
store_be_minimal(uint8_t out[16], __int128 value)
{
    size_t start = 0;

    for (size_t i = 0; i < 16; i++)
        out[15 - i] = (uint8_t) ((unsigned __int128) value >> (8 * i));
    while (start < 15 && out[start] == (out[start + 1] & 0x80 ? 0xff : 0))
        start++;
    return 16 - start;
}

#endif
