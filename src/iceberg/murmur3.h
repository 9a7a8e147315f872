/* murmur3.h - the hash of the bucket transform: 32-bit Murmur3, x86 variant, seed 0. Iceberg spec,
 * "Appendix B: 32-bit Hash Requirements". */
#ifndef ICEBERG_MURMUR3_H
#define ICEBERG_MURMUR3_H

#include <stddef.h>
#include <stdint.h>

uint32_t murmur3_32(const void *bytes, size_t size);

#endif
