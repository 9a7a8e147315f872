/* random.h - numbers from a seed, the same on every machine. */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>

typedef struct Random {
    uint64_t state;
} Random;

/* splitmix64; below: at least 1 */
static inline uint32_t
draw(Random *random, uint32_t below)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t) ((z ^ (z >> 31)) % below);
}

#endif
