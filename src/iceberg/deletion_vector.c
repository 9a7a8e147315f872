#include "iceberg/deletion_vector.h"
#include "base/bytes.h"

#include <assert.h>

#include <roaring/roaring.h>
#include <zlib.h>

enum {
    LENGTH_BYTES = 4,
    MAGIC_BYTES = 4,
    COUNT_BYTES = 8,
    KEY_BYTES = 4,
    CRC_BYTES = 4,
    BLOB_BYTES_MIN = LENGTH_BYTES + MAGIC_BYTES + COUNT_BYTES + CRC_BYTES,
};

static const char MAGIC[MAGIC_BYTES] = {'\xd1', '\xd3', '\x39', '\x64'};

static uint32_t
checksum(Str bytes)
{
    return (uint32_t) crc32_z(0, (const Bytef *) bytes.ptr, bytes.len);
}

void
deletion_vector_write(const roaring_bitmap_t *rows, Buf *out)
{
    size_t start = out->len;
    roaring_bitmap_t *compact = roaring_bitmap_copy(rows);

    if (compact == NULL)
        abort();
    roaring_bitmap_run_optimize(compact);

    bool empty = roaring_bitmap_is_empty(compact);
    size_t bitmap_bytes = roaring_bitmap_portable_size_in_bytes(compact);
    char *p = buf_push(out, LENGTH_BYTES + MAGIC_BYTES + COUNT_BYTES);

    memcpy(p + LENGTH_BYTES, MAGIC, MAGIC_BYTES);
    store_le64(p + LENGTH_BYTES + MAGIC_BYTES, empty ? 0 : 1);
    if (!empty) {
        store_le32(buf_push(out, KEY_BYTES), 0);
        roaring_bitmap_portable_serialize(compact, buf_push(out, bitmap_bytes));
    }
    roaring_bitmap_free(compact);

    Str checked = {.ptr = out->ptr + start + LENGTH_BYTES, .len = out->len - start - LENGTH_BYTES};

    assert(checked.len <= INT32_MAX); /* 2^32 rows are 512 MiB */
    store_be32(out->ptr + start, (uint32_t) checked.len);

    uint32_t crc = checksum(checked);

    store_be32(buf_push(out, CRC_BYTES), crc);
}

/* --- A bitmap in its portable format ------------------------------------------------------- */

/* Roaring format specification (RoaringFormatSpec), in little-endian:
 *
 *     cookie       12346 and 4 bytes of count, or 12347 with count - 1 in the upper half and a bit
 *                  for each container that says whether it is made of runs
 *     descriptions for each container its key and its cardinality - 1, 2 bytes each
 *     offsets      4 bytes each: where the container begins; not with runs and fewer than 4
 *     containers   sorted 2-byte values (at most 4096), or 8 KiB of bits, or runs: their number,
 * and for each its first value and its length - 1
 *
 * CRoaring stays within the bytes when it reads this, but believes what they say: values out of
 * order or a wrong cardinality would make a bitmap that answers wrongly or writes where it should
 * not. So all of it is checked here first. */
enum {
    COOKIE_NO_RUNS = 12346,
    COOKIE_RUNS = 12347,
    OFFSETS_FROM = 4, /* containers, when some are made of runs */
    CONTAINERS_MAX = 1 << 16,
    ARRAY_MAX = 4096, /* values of an array container */
    BITS_BYTES = 8192,
    VALUE_MAX = 0xffff,
};

typedef struct BitmapHead {
    size_t count;         /* of containers */
    const char *run_bits; /* NULL: none is made of runs */
    const char *descriptions;
    const char *offsets; /* NULL: none */
} BitmapHead;

/* Bytes that have not been looked at yet. */
static const char *
take(Str *rest, size_t size)
{
    const char *p = rest->ptr;

    if (size > rest->len)
        return NULL;
    *rest = (Str){.ptr = rest->ptr + size, .len = rest->len - size};
    return p;
}

static bool
take_head(Str *rest, BitmapHead *out)
{
    const char *cookie = take(rest, 4);
    BitmapHead head = {0};

    if (cookie == NULL)
        return false;
    if (load_le32(cookie) == COOKIE_NO_RUNS) {
        const char *count = take(rest, 4);

        if (count == NULL || load_le32(count) > CONTAINERS_MAX)
            return false;
        head.count = load_le32(count);
    } else if (load_le16(cookie) == COOKIE_RUNS) {
        head.count = (size_t) load_le16(cookie + 2) + 1;
        head.run_bits = take(rest, (head.count + 7) / 8);
        if (head.run_bits == NULL)
            return false;
    } else {
        return false;
    }
    head.descriptions = take(rest, 4 * head.count);
    if (head.descriptions == NULL)
        return false;
    if (head.run_bits == NULL || head.count >= OFFSETS_FROM) {
        head.offsets = take(rest, 4 * head.count);
        if (head.offsets == NULL)
            return false;
    }
    *out = head;
    return true;
}

static bool
array_is_sound(Str *rest, size_t cardinality)
{
    const char *values = take(rest, 2 * cardinality);

    if (values == NULL)
        return false;
    for (size_t i = 1; i < cardinality; i++)
        if (load_le16(values + 2 * i) <= load_le16(values + 2 * (i - 1)))
            return false;
    return true;
}

static bool
bits_are_sound(Str *rest, size_t cardinality)
{
    const char *bits = take(rest, BITS_BYTES);
    size_t set = 0;

    if (bits == NULL)
        return false;
    for (size_t i = 0; i < BITS_BYTES; i += 8)
        set += (size_t) __builtin_popcountll(load_le64(bits + i));
    return set == cardinality;
}

/* Runs ascend and do not overlap. */
static bool
runs_are_sound(Str *rest, size_t cardinality)
{
    const char *number = take(rest, 2);
    const char *runs = number == NULL ? NULL : take(rest, 4 * (size_t) load_le16(number));
    size_t next = 0; /* the smallest value that may come */
    size_t set = 0;

    if (runs == NULL)
        return false;
    for (size_t i = 0; i < load_le16(number); i++) {
        size_t first = load_le16(runs + 4 * i);
        size_t last = first + load_le16(runs + 4 * i + 2);

        if (first < next || last > VALUE_MAX)
            return false;
        next = last + 1;
        set += last - first + 1;
    }
    return set == cardinality;
}

static bool
container_is_sound(const BitmapHead *head, size_t i, Str *rest)
{
    size_t cardinality = (size_t) load_le16(head->descriptions + 4 * i + 2) + 1;

    if (head->run_bits != NULL && ((uint8_t) head->run_bits[i / 8] >> (i % 8) & 1) != 0)
        return runs_are_sound(rest, cardinality);
    if (cardinality > ARRAY_MAX)
        return bits_are_sound(rest, cardinality);
    return array_is_sound(rest, cardinality);
}

/* Take one bitmap from the front of *rest. */
static bool
take_bitmap(Str *rest, Str *out_bitmap)
{
    Str whole = *rest;
    BitmapHead head;

    if (!take_head(rest, &head))
        return false;
    for (size_t i = 0; i < head.count; i++) {
        const char *key = head.descriptions + 4 * i;

        if (i > 0 && load_le16(key) <= load_le16(key - 4))
            return false;
        if (head.offsets != NULL &&
            load_le32(head.offsets + 4 * i) != (size_t) (rest->ptr - whole.ptr))
            return false;
        if (!container_is_sound(&head, i, rest))
            return false;
    }
    *out_bitmap = (Str){.ptr = whole.ptr, .len = whole.len - rest->len};
    return true;
}

/* --- The blob ------------------------------------------------------------------------------ */

/* Length, magic and checksum; what is between is the vector. */
static bool
unwrap(Str blob, Str *out_vector, Error *err)
{
    if (blob.len < BLOB_BYTES_MIN)
        return FAIL(err, ERR_INPUT, "deletion vector: %zu bytes are too few", blob.len);

    uint32_t length = load_be32(blob.ptr);
    Str checked = {.ptr = blob.ptr + LENGTH_BYTES, .len = blob.len - LENGTH_BYTES - CRC_BYTES};

    if (length != checked.len)
        return FAIL(err, ERR_INPUT, "deletion vector: its length is %u in a blob of %zu bytes",
                    length, blob.len);
    if (memcmp(checked.ptr, MAGIC, MAGIC_BYTES) != 0)
        return FAIL(err, ERR_INPUT, "deletion vector: the magic bytes are wrong");
    if (load_be32(checked.ptr + checked.len) != checksum(checked))
        return FAIL(err, ERR_INPUT, "deletion vector: the checksum is wrong");
    *out_vector = (Str){.ptr = checked.ptr + MAGIC_BYTES, .len = checked.len - MAGIC_BYTES};
    return true;
}

/* Add the bitmap of one key to the rows. A key without rows is nothing: Java writes those below its
 * highest. */
static bool
add_bitmap(roaring_bitmap_t *rows, uint32_t key, Str bytes, Error *err)
{
    roaring_bitmap_t *bitmap = roaring_bitmap_portable_deserialize_safe(bytes.ptr, bytes.len);

    if (bitmap == NULL)
        return FAIL(err, ERR_INPUT, "deletion vector: a damaged bitmap");
    if (key > 0 && !roaring_bitmap_is_empty(bitmap)) {
        roaring_bitmap_free(bitmap);
        return FAIL(err, ERR_INPUT, "deletion vector: rows beyond the first 2^32");
    }
    roaring_bitmap_or_inplace(rows, bitmap);
    roaring_bitmap_free(bitmap);
    return true;
}

static bool
read_vector(Str vector, roaring_bitmap_t *rows, Error *err)
{
    assert(vector.ptr != NULL && vector.len >= COUNT_BYTES); /* by BLOB_BYTES_MIN */

    uint64_t count = load_le64(vector.ptr);
    Str rest = {.ptr = vector.ptr + COUNT_BYTES, .len = vector.len - COUNT_BYTES};
    int64_t last = -1;

    for (uint64_t i = 0; i < count; i++) {
        const char *key = take(&rest, KEY_BYTES);
        Str bitmap;

        if (key == NULL || !take_bitmap(&rest, &bitmap))
            return FAIL(err, ERR_INPUT, "deletion vector: a damaged bitmap");
        if (load_le32(key) <= last)
            return FAIL(err, ERR_INPUT, "deletion vector: keys out of order");
        last = load_le32(key);
        TRY(add_bitmap(rows, load_le32(key), bitmap, err));
    }
    if (rest.len > 0)
        return FAIL(err, ERR_INPUT, "deletion vector: %zu bytes behind its bitmaps", rest.len);
    return true;
}

bool
deletion_vector_read(Str blob, roaring_bitmap_t **out_rows, Error *err)
{
    Str vector = STR_NULL;

    TRY(unwrap(blob, &vector, err));

    roaring_bitmap_t *rows = roaring_bitmap_create();

    if (rows == NULL)
        abort();
    if (!read_vector(vector, rows, err)) {
        roaring_bitmap_free(rows);
        return false;
    }
    *out_rows = rows;
    return true;
}
