/* deletion_vector.h - the rows of one data file that are deleted, as a "deletion-vector-v1" blob of
 * a Puffin file. Puffin spec, "deletion-vector-v1 blob type":
 *
 *     length   4 bytes, big-endian: of magic and vector
 *     magic    D1 D3 39 64
 *     vector   8 bytes, little-endian: how many bitmaps; for each of them, by key:
 *                  key      4 bytes, little-endian: the upper half of the positions
 *                  bitmap   a 32-bit Roaring bitmap in its portable format
 *     crc      4 bytes, big-endian: CRC-32 of magic and vector
 *
 * A row number of ours has 32 bits, so what is written has at most one bitmap, of key 0. Pure. */
#ifndef ICEBERG_DELETION_VECTOR_H
#define ICEBERG_DELETION_VECTOR_H

#include "base/buf.h"

#include <stdint.h>

struct roaring_bitmap_s;

/* Append the blob, byte for byte as Java writes it. */
void deletion_vector_write(const struct roaring_bitmap_s *rows, Buf *out);

/* The rows of a blob, which must have been read as a whole. Everything is checked before it is
 * used, the insides of the bitmaps too. ERR_INPUT. The caller frees the bitmap. */
bool deletion_vector_read(Str blob, struct roaring_bitmap_s **out_rows, Error *err) WARN_UNUSED;

#endif
