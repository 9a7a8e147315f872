/* powers_of_five.h - 5^q as 128-bit fractions, for reading decimal floating point numbers.
 *
 *     5^q ~ (high * 2^64 + low) * 2^e      the fraction's top bit is set; e = floor(q log2 5) - 127
 *
 * Cut, not rounded: exact for 0 <= q <= 55, else too small by less than one unit of the last place.
 * Made by tools/gen-powers-of-five; only decode/number.c includes it. */
#ifndef DECODE_POWERS_OF_FIVE_H
#define DECODE_POWERS_OF_FIVE_H

#include <stdint.h>

enum { POWER_MIN = -48, POWER_MAX = 48 };

typedef struct PowerOfFive {
    uint64_t high;
    uint64_t low;
} PowerOfFive;

/* clang-format off */
static const PowerOfFive powers_of_five[POWER_MAX - POWER_MIN + 1] = {
    {0xbb127c53b17ec159, 0x5560c018580d5d52}, /* -48 */
    {0xe9d71b689dde71af, 0xaab8f01e6e10b4a6}, /* -47 */
    {0x9226712162ab070d, 0xcab3961304ca70e8}, /* -46 */
    {0xb6b00d69bb55c8d1, 0x3d607b97c5fd0d22}, /* -45 */
    {0xe45c10c42a2b3b05, 0x8cb89a7db77c506a}, /* -44 */
    {0x8eb98a7a9a5b04e3, 0x77f3608e92adb242}, /* -43 */
    {0xb267ed1940f1c61c, 0x55f038b237591ed3}, /* -42 */
    {0xdf01e85f912e37a3, 0x6b6c46dec52f6688}, /* -41 */
    {0x8b61313bbabce2c6, 0x2323ac4b3b3da015}, /* -40 */
    {0xae397d8aa96c1b77, 0xabec975e0a0d081a}, /* -39 */
    {0xd9c7dced53c72255, 0x96e7bd358c904a21}, /* -38 */
    {0x881cea14545c7575, 0x7e50d64177da2e54}, /* -37 */
    {0xaa242499697392d2, 0xdde50bd1d5d0b9e9}, /* -36 */
    {0xd4ad2dbfc3d07787, 0x955e4ec64b44e864}, /* -35 */
    {0x84ec3c97da624ab4, 0xbd5af13bef0b113e}, /* -34 */
    {0xa6274bbdd0fadd61, 0xecb1ad8aeacdd58e}, /* -33 */
    {0xcfb11ead453994ba, 0x67de18eda5814af2}, /* -32 */
    {0x81ceb32c4b43fcf4, 0x80eacf948770ced7}, /* -31 */
    {0xa2425ff75e14fc31, 0xa1258379a94d028d}, /* -30 */
    {0xcad2f7f5359a3b3e, 0x096ee45813a04330}, /* -29 */
    {0xfd87b5f28300ca0d, 0x8bca9d6e188853fc}, /* -28 */
    {0x9e74d1b791e07e48, 0x775ea264cf55347d}, /* -27 */
    {0xc612062576589dda, 0x95364afe032a819d}, /* -26 */
    {0xf79687aed3eec551, 0x3a83ddbd83f52204}, /* -25 */
    {0x9abe14cd44753b52, 0xc4926a9672793542}, /* -24 */
    {0xc16d9a0095928a27, 0x75b7053c0f178293}, /* -23 */
    {0xf1c90080baf72cb1, 0x5324c68b12dd6338}, /* -22 */
    {0x971da05074da7bee, 0xd3f6fc16ebca5e03}, /* -21 */
    {0xbce5086492111aea, 0x88f4bb1ca6bcf584}, /* -20 */
    {0xec1e4a7db69561a5, 0x2b31e9e3d06c32e5}, /* -19 */
    {0x9392ee8e921d5d07, 0x3aff322e62439fcf}, /* -18 */
    {0xb877aa3236a4b449, 0x09befeb9fad487c2}, /* -17 */
    {0xe69594bec44de15b, 0x4c2ebe687989a9b3}, /* -16 */
    {0x901d7cf73ab0acd9, 0x0f9d37014bf60a10}, /* -15 */
    {0xb424dc35095cd80f, 0x538484c19ef38c94}, /* -14 */
    {0xe12e13424bb40e13, 0x2865a5f206b06fb9}, /* -13 */
    {0x8cbccc096f5088cb, 0xf93f87b7442e45d3}, /* -12 */
    {0xafebff0bcb24aafe, 0xf78f69a51539d748}, /* -11 */
    {0xdbe6fecebdedd5be, 0xb573440e5a884d1b}, /* -10 */
    {0x89705f4136b4a597, 0x31680a88f8953030}, /* -9 */
    {0xabcc77118461cefc, 0xfdc20d2b36ba7c3d}, /* -8 */
    {0xd6bf94d5e57a42bc, 0x3d32907604691b4c}, /* -7 */
    {0x8637bd05af6c69b5, 0xa63f9a49c2c1b10f}, /* -6 */
    {0xa7c5ac471b478423, 0x0fcf80dc33721d53}, /* -5 */
    {0xd1b71758e219652b, 0xd3c36113404ea4a8}, /* -4 */
    {0x83126e978d4fdf3b, 0x645a1cac083126e9}, /* -3 */
    {0xa3d70a3d70a3d70a, 0x3d70a3d70a3d70a3}, /* -2 */
    {0xcccccccccccccccc, 0xcccccccccccccccc}, /* -1 */
    {0x8000000000000000, 0x0000000000000000}, /* 0 */
    {0xa000000000000000, 0x0000000000000000}, /* 1 */
    {0xc800000000000000, 0x0000000000000000}, /* 2 */
    {0xfa00000000000000, 0x0000000000000000}, /* 3 */
    {0x9c40000000000000, 0x0000000000000000}, /* 4 */
    {0xc350000000000000, 0x0000000000000000}, /* 5 */
    {0xf424000000000000, 0x0000000000000000}, /* 6 */
    {0x9896800000000000, 0x0000000000000000}, /* 7 */
    {0xbebc200000000000, 0x0000000000000000}, /* 8 */
    {0xee6b280000000000, 0x0000000000000000}, /* 9 */
    {0x9502f90000000000, 0x0000000000000000}, /* 10 */
    {0xba43b74000000000, 0x0000000000000000}, /* 11 */
    {0xe8d4a51000000000, 0x0000000000000000}, /* 12 */
    {0x9184e72a00000000, 0x0000000000000000}, /* 13 */
    {0xb5e620f480000000, 0x0000000000000000}, /* 14 */
    {0xe35fa931a0000000, 0x0000000000000000}, /* 15 */
    {0x8e1bc9bf04000000, 0x0000000000000000}, /* 16 */
    {0xb1a2bc2ec5000000, 0x0000000000000000}, /* 17 */
    {0xde0b6b3a76400000, 0x0000000000000000}, /* 18 */
    {0x8ac7230489e80000, 0x0000000000000000}, /* 19 */
    {0xad78ebc5ac620000, 0x0000000000000000}, /* 20 */
    {0xd8d726b7177a8000, 0x0000000000000000}, /* 21 */
    {0x878678326eac9000, 0x0000000000000000}, /* 22 */
    {0xa968163f0a57b400, 0x0000000000000000}, /* 23 */
    {0xd3c21bcecceda100, 0x0000000000000000}, /* 24 */
    {0x84595161401484a0, 0x0000000000000000}, /* 25 */
    {0xa56fa5b99019a5c8, 0x0000000000000000}, /* 26 */
    {0xcecb8f27f4200f3a, 0x0000000000000000}, /* 27 */
    {0x813f3978f8940984, 0x4000000000000000}, /* 28 */
    {0xa18f07d736b90be5, 0x5000000000000000}, /* 29 */
    {0xc9f2c9cd04674ede, 0xa400000000000000}, /* 30 */
    {0xfc6f7c4045812296, 0x4d00000000000000}, /* 31 */
    {0x9dc5ada82b70b59d, 0xf020000000000000}, /* 32 */
    {0xc5371912364ce305, 0x6c28000000000000}, /* 33 */
    {0xf684df56c3e01bc6, 0xc732000000000000}, /* 34 */
    {0x9a130b963a6c115c, 0x3c7f400000000000}, /* 35 */
    {0xc097ce7bc90715b3, 0x4b9f100000000000}, /* 36 */
    {0xf0bdc21abb48db20, 0x1e86d40000000000}, /* 37 */
    {0x96769950b50d88f4, 0x1314448000000000}, /* 38 */
    {0xbc143fa4e250eb31, 0x17d955a000000000}, /* 39 */
    {0xeb194f8e1ae525fd, 0x5dcfab0800000000}, /* 40 */
    {0x92efd1b8d0cf37be, 0x5aa1cae500000000}, /* 41 */
    {0xb7abc627050305ad, 0xf14a3d9e40000000}, /* 42 */
    {0xe596b7b0c643c719, 0x6d9ccd05d0000000}, /* 43 */
    {0x8f7e32ce7bea5c6f, 0xe4820023a2000000}, /* 44 */
    {0xb35dbf821ae4f38b, 0xdda2802c8a800000}, /* 45 */
    {0xe0352f62a19e306e, 0xd50b2037ad200000}, /* 46 */
    {0x8c213d9da502de45, 0x4526f422cc340000}, /* 47 */
    {0xaf298d050e4395d6, 0x9670b12b7f410000}, /* 48 */
};
/* clang-format on */

#endif
