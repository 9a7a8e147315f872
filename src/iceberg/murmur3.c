#include "iceberg/murmur3.h"

#include "base/bytes.h"

static uint32_t
rotate(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static uint32_t
scramble(uint32_t k)
{
    return rotate(k * 0xcc9e2d51U, 15) * 0x1b873593U;
}

uint32_t
murmur3_32(const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    uint32_t hash = 0;
    uint32_t tail = 0;

    for (size_t i = 0; i < size / 4; i++)
        hash = rotate(hash ^ scramble(load_le32(p + 4 * i)), 13) * 5 + 0xe6546b64U;
    for (size_t i = size; i > size / 4 * 4; i--)
        tail = tail << 8 | p[i - 1];
    hash ^= scramble(tail);
    hash ^= (uint32_t) size;
    hash = (hash ^ hash >> 16) * 0x85ebca6bU;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35U;
    return hash ^ hash >> 16;
}
