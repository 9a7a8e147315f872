/* Any bytes as a Puffin file and its vectors, and as the inside of a vector: what is accepted must
 * survive being written. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <roaring/roaring.h>
#include <zlib.h>

#include "base/bytes.h"
#include "iceberg/deletion_vector.h"
#include "iceberg/puffin.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
read_as_vector(Str blob)
{
    AUTO_BUF Buf written = {0};
    roaring_bitmap_t *rows = NULL;
    roaring_bitmap_t *again = NULL;
    Error err;

    if (!deletion_vector_read(blob, &rows, &err))
        return;
    deletion_vector_write(rows, &written);
    if (!deletion_vector_read(buf_view(&written), &again, &err) ||
        !roaring_bitmap_equals(rows, again))
        abort();
    roaring_bitmap_free(rows);
    roaring_bitmap_free(again);
}

/* With a length and a checksum that are right, so that what is behind them is reached. */
static void
read_as_inside(Str bytes)
{
    AUTO_BUF Buf blob = {0};

    store_be32(buf_push(&blob, 4), (uint32_t) bytes.len + 4);
    buf_append(&blob, "\xd1\xd3\x39\x64", 4);
    buf_str(&blob, bytes);

    uLong crc = crc32_z(0, (const Bytef *) blob.ptr + 4, blob.len - 4);

    store_be32(buf_push(&blob, 4), (uint32_t) crc);
    read_as_vector(buf_view(&blob));
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str text = {.ptr = (const char *) bytes, .len = size};
    PuffinBlob *blobs;
    size_t count;
    Error err;

    read_as_vector(text);
    read_as_inside(text);
    if (!puffin_parse(arena, text, &blobs, &count, &err))
        return 0;
    for (size_t i = 0; i < count; i++)
        read_as_vector(puffin_blob_bytes(text, &blobs[i]));
    return 0;
}
