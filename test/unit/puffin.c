/* Deletion vectors and the Puffin files they are in. The golden blobs are test resources of the
 * Java implementation (core/src/test/resources/org/apache/iceberg/deletes), whose names say what is
 * in them. That PyIceberg and Java read the same from our files is checked by
 * test/golden/check_puffin.py: run this test with WALBERG_KEEP=<folder> first. */
#include "testing.h"

#include <stdlib.h>

#include <roaring/roaring.h>
#include <zlib.h>

#include "base/bytes.h"
#include "iceberg/deletion_vector.h"
#include "iceberg/puffin.h"

/* Pairs of digits, with blanks between some. */
static void
unhex(const char *hex, Buf *out)
{
    buf_reset(out);
    for (; hex[0] != '\0'; hex += hex[0] == ' ' ? 1 : 2) {
        char digits[3] = {hex[0], hex[1], '\0'};

        if (hex[0] != ' ')
            buf_byte(out, (uint8_t) strtoul(digits, NULL, 16));
    }
}

/* Length and checksum as they must be: faults behind them are found by what they are. */
static void
seal(Buf *blob)
{
    store_be32(blob->ptr, (uint32_t) blob->len - 8);

    uLong crc = crc32_z(0, (const Bytef *) blob->ptr + 4, blob->len - 8);

    store_be32(blob->ptr + blob->len - 4, (uint32_t) crc);
}

/* --- Golden blobs -------------------------------------------------------------------------- */

#define EMPTY "0000000cd1d339640000000000000000bf18480c"
#define SMALL                                                                                      \
    "0000002ad1d339640100000000000000000000003a30000001000000000004001000000001000300050007000900" \
    "b3fb20be"
#define SMALL_AND_LARGE                                                                            \
    "00000030d1d339640100000000000000000000003a300000020000000000010000800100180000001c0000006400" \
    "6"                                                                                            \
    "5006300640015eb1c7c"
#define ALL_CONTAINERS                                                                             \
    "00000056d1d339640200000000000000000000003b30020006000001000100e6030200fdff0500070001000100e6" \
    "0"                                                                                            \
    "301000100fdff010000003b30020006000001000100e9010200fdff0a00140001000a00e90101000100fdffc89be" \
    "3"                                                                                            \
    "97"

static void
java_blobs_are_read_and_written(void **state)
{
    static const struct {
        const char *hex;
        uint32_t rows[6];
        int64_t count;
    } golden[] = {
        {EMPTY, {0}, 0},
        {SMALL, {1, 3, 5, 7, 9}, 5},
        {SMALL_AND_LARGE, {100, 101, 2147483747, 2147483748}, 4},
    };

    (void) state;
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        AUTO(deletes_freep) Deletes *read = deletes_new();
        AUTO(deletes_freep) Deletes *made = deletes_new();
        AUTO_BUF Buf want = {0};
        AUTO_BUF Buf have = {0};
        Error err;

        unhex(golden[i].hex, &want);
        OK(deletes_add_vector(read, STR("f"), buf_view(&want), golden[i].count, &err));
        assert_int_equal(deletes_count(read, STR("f")), golden[i].count);
        for (int64_t row = 0; row < golden[i].count; row++) {
            assert_true(deletes_contains(read, STR("f"), golden[i].rows[row]));
            assert_true(deletes_add(made, STR("f"), golden[i].rows[row]));
        }
        assert_int_equal(deletes_write_vector(made, STR("f"), &have), golden[i].count);
        assert_true(str_eq(buf_view(&want), buf_view(&have)));
    }
}

/* Java's blob of arrays, bits and runs has rows beyond 2^32. The part below is taken out of it. */
static void
all_kinds_of_containers(void **state)
{
    AUTO(deletes_freep) Deletes *deletes = deletes_new();
    AUTO_BUF Buf golden = {0};
    AUTO_BUF Buf low = {0};
    AUTO_BUF Buf again = {0};

    enum { HEAD = 16, FIRST = 4 + 33 };

    Error err;

    (void) state;
    unhex(ALL_CONTAINERS, &golden);
    FAILS(deletes_add_vector(deletes, STR("f"), buf_view(&golden), 4, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "rows beyond the first 2^32"));
    assert_int_equal(deletes_total(deletes), 0);

    buf_append(&low, golden.ptr, HEAD + FIRST);
    low.ptr[8] = 1; /* one bitmap */
    buf_append(&low, "crc.", 4);
    seal(&low);

    /* {5, 7}, 65537 to 66535, 131073 to 196606 */
    int64_t count = 2 + 999 + 65534;

    OK(deletes_add_vector(deletes, STR("f"), buf_view(&low), count, &err));
    assert_true(deletes_contains(deletes, STR("f"), 5));
    assert_false(deletes_contains(deletes, STR("f"), 6));
    assert_false(deletes_contains(deletes, STR("f"), 65536));
    assert_true(deletes_contains(deletes, STR("f"), 65537));
    assert_true(deletes_contains(deletes, STR("f"), 66535));
    assert_false(deletes_contains(deletes, STR("f"), 66536));
    assert_true(deletes_contains(deletes, STR("f"), 131073));
    assert_true(deletes_contains(deletes, STR("f"), 196606));
    assert_false(deletes_contains(deletes, STR("f"), 196607));
    assert_int_equal(deletes_write_vector(deletes, STR("f"), &again), count);
    assert_true(str_eq(buf_view(&low), buf_view(&again)));
}

/* --- Round trips --------------------------------------------------------------------------- */

/* Rows 0 to `below`, each with a chance of density in 1000. */
static void
fill(Deletes *deletes, Str file, uint32_t below, unsigned density, unsigned seed)
{
    for (uint32_t row = 0; row < below; row++) {
        seed = seed * 1103515245 + 12345;
        if ((seed >> 16) % 1000 < density)
            deletes_add(deletes, file, row);
    }
}

static void
assert_same_rows(const Deletes *a, const Deletes *b)
{
    DeletesCursor *left = deletes_cursor(a);
    DeletesCursor *right = deletes_cursor(b);
    uint32_t left_row;
    uint32_t right_row;
    Str file;

    while (deletes_next(left, &file, &left_row)) {
        assert_true(deletes_next(right, &file, &right_row));
        assert_int_equal(left_row, right_row);
    }
    assert_false(deletes_next(right, &file, &right_row));
    deletes_cursor_free(left);
    deletes_cursor_free(right);
}

static void
any_rows_make_the_round(void **state)
{
    static const uint32_t sizes[] = {1, 2, 4095, 4096, 4097, 65535, 65536, 65537, 300000};
    static const unsigned densities[] = {1, 30, 62, 63, 500, 999, 1000};

    (void) state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t j = 0; j < sizeof densities / sizeof densities[0]; j++) {
            AUTO(deletes_freep) Deletes *made = deletes_new();
            AUTO(deletes_freep) Deletes *read = deletes_new();
            AUTO_BUF Buf blob = {0};
            Error err;

            fill(made, STR("f"), sizes[i], densities[j], (unsigned) (i * 100 + j));
            deletes_add(made, STR("f"), UINT32_MAX);

            uint64_t count = deletes_write_vector(made, STR("f"), &blob);

            assert_int_equal(count, deletes_total(made));
            OK(deletes_add_vector(read, STR("f"), buf_view(&blob), (int64_t) count, &err));
            assert_int_equal(deletes_total(read), count);
            assert_same_rows(made, read);
        }
}

static void
a_vector_adds_to_what_is_there(void **state)
{
    AUTO(deletes_freep) Deletes *deletes = deletes_new();
    AUTO_BUF Buf blob = {0};
    Error err;

    (void) state;
    unhex(SMALL, &blob);
    deletes_add(deletes, STR("f"), 5);
    deletes_add(deletes, STR("f"), 6);
    deletes_add(deletes, STR("g"), 1);
    OK(deletes_add_vector(deletes, STR("f"), buf_view(&blob), 5, &err));
    assert_int_equal(deletes_count(deletes, STR("f")), 6);
    assert_int_equal(deletes_total(deletes), 7);
}

/* --- Damage -------------------------------------------------------------------------------- */

/* The bytes stand alone in memory, so that one read too many is found. */
static void
assert_refused(Str bytes, size_t size)
{
    AUTO(deletes_freep) Deletes *deletes = deletes_new();
    char *copy = malloc(size + 1);
    Error err;

    assert_non_null(copy);
    memcpy(copy + 1, bytes.ptr, size);
    FAILS(deletes_add_vector(deletes, STR("f"), (Str){.ptr = copy + 1, .len = size}, 5, &err),
          ERR_INPUT);
    assert_null(strstr(err.msg, "the manifest says")); /* it was not read to its end */
    assert_int_equal(deletes_total(deletes), 0);
    free(copy);
}

static void
every_cut_and_every_flipped_bit_is_found(void **state)
{
    static const char *const golden[] = {EMPTY, SMALL, SMALL_AND_LARGE, ALL_CONTAINERS};

    (void) state;
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        AUTO_BUF Buf blob = {0};

        unhex(golden[i], &blob);
        for (size_t size = 0; size < blob.len; size++)
            assert_refused(buf_view(&blob), size);
        for (size_t bit = 0; bit < blob.len * 8; bit++) {
            blob.ptr[bit / 8] = (char) (blob.ptr[bit / 8] ^ (1 << (bit % 8)));
            assert_refused(buf_view(&blob), blob.len);
            blob.ptr[bit / 8] = (char) (blob.ptr[bit / 8] ^ (1 << (bit % 8)));
        }
        buf_byte(&blob, 0);
        assert_refused(buf_view(&blob), blob.len);
    }
}

static void
the_count_must_be_the_manifests(void **state)
{
    AUTO(deletes_freep) Deletes *deletes = deletes_new();
    AUTO_BUF Buf blob = {0};
    Error err;

    (void) state;
    unhex(SMALL, &blob);
    FAILS(deletes_add_vector(deletes, STR("s3://f"), buf_view(&blob), 4, &err), ERR_INPUT);
    assert_string_equal(err.msg, "s3://f: deletion vector: 5 rows where the manifest says 4");
    assert_int_equal(deletes_total(deletes), 0);
}

/* What is behind the count of bitmaps: a key and a bitmap. */
static const char *const damaged[] = {
    "",                                                       /* only a count */
    "00000000",                                               /* a key, no bitmap */
    "00000000 3a300000",                                      /* no number of containers */
    "00000000 3a300000 ffffffff",                             /* four billion of them */
    "00000000 39300000 00000000",                             /* another cookie */
    "00000000 3a300000 01000000 0000 0100",                   /* no offset */
    "00000000 3a300000 01000000 0000 0100 11000000 01000300", /* a wrong offset */
    "00000000 3a300000 01000000 0000 0100 10000000 0300",     /* a value lacks */
    "00000000 3a300000 01000000 0000 0100 10000000 03000300", /* twice the same value */
    "00000000 3a300000 01000000 0000 0100 10000000 03000100", /* values not in order */
    /* two containers of one key, and not in order */
    "00000000 3a300000 02000000 0000 0000 0000 0000 18000000 1a000000 0100 0200",
    "00000000 3a300000 02000000 0100 0000 0000 0000 18000000 1a000000 0100 0200",
    "00000000 3b300000 01 0000 0100",                        /* no number of runs */
    "00000000 3b300000 01 0000 0100 0000",                   /* no runs, but rows */
    "00000000 3b300000 01 0000 0100 0100 0000",              /* half a run */
    "00000000 3b300000 01 0000 0200 0100 00000100",          /* a wrong cardinality */
    "00000000 3b300000 01 0000 0100 0100 ffff0100",          /* beyond the last value */
    "00000000 3b300000 01 0000 0300 0200 00000100 01000100", /* overlapping runs */
    "00000000 3b300000 01 0000 0300 0200 05000100 01000100", /* runs not in order */
    "00000000 3a300000 00000000 00",                         /* a byte too many */
};

/* Checksum and length are right, what is inside is not. */
static void
a_bitmap_is_not_believed(void **state)
{
    AUTO_BUF Buf inside = {0};

    (void) state;
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        AUTO_BUF Buf blob = {0};

        unhex(damaged[i], &inside);
        buf_append(&blob, "len.\xd1\xd3\x39\x64\1\0\0\0\0\0\0\0", 16);
        buf_str(&blob, buf_view(&inside));
        buf_append(&blob, "crc.", 4);
        seal(&blob);
        assert_refused(buf_view(&blob), blob.len);
    }
}

static void
bits_and_keys_are_not_believed(void **state)
{
    AUTO(deletes_freep) Deletes *deletes = deletes_new();
    AUTO_BUF Buf blob = {0};
    Error err;

    (void) state;
    for (uint32_t row = 0; row < 10000; row += 2)
        deletes_add(deletes, STR("f"), row);
    assert_int_equal(deletes_write_vector(deletes, STR("f"), &blob), 5000);
    deletes_clear(deletes);
    blob.ptr[blob.len - 5] ^= 1; /* one bit more than its cardinality */
    seal(&blob);
    FAILS(deletes_add_vector(deletes, STR("f"), buf_view(&blob), 5001, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "damaged bitmap"));

    /* twice the key 0, each with an empty bitmap */
    unhex("00000000 d1d33964 0200000000000000 00000000 3a30000000000000 00000000 3a30000000000000"
          "00000000",
          &blob);
    seal(&blob);
    FAILS(deletes_add_vector(deletes, STR("f"), buf_view(&blob), 0, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "keys out of order"));

    /* a higher key without rows is nothing */
    blob.ptr[28] = 1;
    seal(&blob);
    OK(deletes_add_vector(deletes, STR("f"), buf_view(&blob), 0, &err));
}

/* --- Puffin files -------------------------------------------------------------------------- */

/* Puffin spec, "Footer Payload", and Java's core/src/test/resources/org/apache/iceberg/puffin. */
#define EMPTY_PUFFIN "50464131504641317b22626c6f6273223a5b5d7d0c0000000000000050464131"

static void
write_file(const Deletes *deletes, Buf *out, PuffinBlob blobs[3])
{
    PuffinWriter writer;

    puffin_begin(&writer, out);
    blobs[0] = puffin_add_vector(&writer, deletes, STR("s3://b/a \"quoted\".parquet"));
    blobs[1] = puffin_add_vector(&writer, deletes, STR("s3://b/m.parquet"));
    blobs[2] = puffin_add_vector(&writer, deletes, STR("s3://b/z.parquet"));
    puffin_end(&writer);
}

static Deletes *
some_deletes(void)
{
    Deletes *deletes = deletes_new();

    fill(deletes, STR("s3://b/a \"quoted\".parquet"), 100000, 300, 1);
    fill(deletes, STR("s3://b/m.parquet"), 70000, 1000, 3);
    fill(deletes, STR("s3://b/z.parquet"), 10, 500, 2);
    return deletes;
}

static void
a_file_makes_the_round(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO(deletes_freep) Deletes *made = some_deletes();
    AUTO(deletes_freep) Deletes *read = deletes_new();
    AUTO_BUF Buf file = {0};
    PuffinBlob blobs[3];
    PuffinBlob *found;
    size_t count;
    Error err;

    (void) state;
    write_file(made, &file, blobs);
    OK(puffin_parse(arena, buf_view(&file), &found, &count, &err));
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_true(str_eqc(found[i].type, "deletion-vector-v1"));
        assert_true(str_eq(found[i].data_file, blobs[i].data_file));
        assert_int_equal(found[i].cardinality, blobs[i].cardinality);
        assert_int_equal(found[i].cardinality, deletes_count(made, blobs[i].data_file));
        assert_int_equal(found[i].offset, blobs[i].offset);
        assert_int_equal(found[i].length, blobs[i].length);
        OK(deletes_add_vector(read, found[i].data_file,
                              puffin_blob_bytes(buf_view(&file), &found[i]), found[i].cardinality,
                              &err));
    }
    assert_int_equal(found[0].offset, 4);
    assert_same_rows(made, read);
}

/* For the readers in Python: the file, and a line for each vector with its place and its rows. */
static void
a_file_is_left_for_others(void **state)
{
    AUTO(deletes_freep) Deletes *made = some_deletes();
    const char *where = getenv("WALBERG_KEEP"); /* NOLINT(concurrency-mt-unsafe) */
    AUTO_BUF Buf file = {0};
    AUTO_BUF Buf path = {0};
    DeletesCursor *cursor;
    PuffinBlob blobs[3];
    uint32_t row;
    Str name;

    (void) state;
    if (where == NULL)
        return;
    write_file(made, &file, blobs);
    buf_printf(&path, "%s/vectors.puffin", where);

    FILE *out = fopen(buf_text(&path), "we");

    assert_non_null(out);
    assert_int_equal(fwrite(file.ptr, 1, file.len, out), file.len);
    fclose(out);
    buf_cstr(&path, ".txt");
    out = fopen(buf_text(&path), "we");
    assert_non_null(out);
    for (size_t i = 0; i < 3; i++)
        fprintf(out, "vector %lld %lld %lld %.*s\n", (long long) blobs[i].offset,
                (long long) blobs[i].length, (long long) blobs[i].cardinality,
                STR_ARG(blobs[i].data_file));
    cursor = deletes_cursor(made);
    while (deletes_next(cursor, &name, &row))
        fprintf(out, "row %u %.*s\n", row, STR_ARG(name));
    deletes_cursor_free(cursor);
    fclose(out);
}

static void
a_file_may_stand_behind_another(void **state)
{
    AUTO(deletes_freep) Deletes *made = some_deletes();
    AUTO_BUF Buf bytes = {0};
    AUTO_BUF Buf alone = {0};
    PuffinBlob blobs[3];

    (void) state;
    write_file(made, &alone, blobs);
    buf_cstr(&bytes, "something before");
    write_file(made, &bytes, blobs);
    assert_int_equal(blobs[0].offset, 4);
    assert_true(str_ends(buf_view(&bytes), buf_view(&alone)));
}

static void
java_files_are_read(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf file = {0};
    PuffinBlob *blobs;
    size_t count = 1;
    Error err;

    (void) state;
    unhex(EMPTY_PUFFIN, &file);
    OK(puffin_parse(arena, buf_view(&file), &blobs, &count, &err));
    assert_int_equal(count, 0);

    file.ptr[file.len - 8] = 1;
    FAILS(puffin_parse(arena, buf_view(&file), &blobs, &count, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "is compressed (LZ4)"));
    file.ptr[file.len - 8] = 2;
    FAILS(puffin_parse(arena, buf_view(&file), &blobs, &count, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "unknown flags"));
}

/* What is read of a file with a wrong bit is one of its vectors, if it is read at all: a bit of a
 * name or a place may be the wrong one. */
static void
expect_whole_vectors(Str file, const PuffinBlob blobs[3])
{
    AUTO_ARENA Arena *arena = arena_new();
    PuffinBlob *found;
    size_t count;
    Error err;

    if (!puffin_parse(arena, file, &found, &count, &err))
        return;
    for (size_t i = 0; i < count; i++) {
        AUTO(deletes_freep) Deletes *read = deletes_new();
        int64_t rows = found[i].cardinality;

        if (deletes_add_vector(read, STR("f"), puffin_blob_bytes(file, &found[i]), rows, &err))
            assert_true(rows == blobs[0].cardinality || rows == blobs[1].cardinality ||
                        rows == blobs[2].cardinality);
    }
}

static void
a_damaged_file_is_refused_or_its_vectors_are(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO(deletes_freep) Deletes *made = some_deletes();
    AUTO_BUF Buf file = {0};
    PuffinBlob blobs[3];
    PuffinBlob *found;
    size_t count;
    Error err;

    (void) state;
    deletes_remove_file(made, STR("s3://b/a \"quoted\".parquet"));
    deletes_add(made, STR("s3://b/a \"quoted\".parquet"), 7);
    write_file(made, &file, blobs);
    for (size_t size = 0; size < file.len; size++) {
        char *copy = malloc(size + 1);

        assert_non_null(copy);
        memcpy(copy + 1, file.ptr, size);
        FAILS(puffin_parse(arena, (Str){.ptr = copy + 1, .len = size}, &found, &count, &err),
              ERR_INPUT);
        free(copy);
    }
    for (size_t bit = 0; bit < file.len * 8; bit++) {
        file.ptr[bit / 8] = (char) (file.ptr[bit / 8] ^ (1 << (bit % 8)));
        expect_whole_vectors(buf_view(&file), blobs);
        file.ptr[bit / 8] = (char) (file.ptr[bit / 8] ^ (1 << (bit % 8)));
    }
}

static void
put_payload(Buf *file, const char *payload)
{
    buf_reset(file);
    buf_cstr(file, "PFA1 8 bytes PFA1");
    buf_cstr(file, payload);
    store_le32(buf_push(file, 4), (uint32_t) strlen(payload));
    buf_append(file, "\0\0\0\0PFA1", 8);
}

static void
footers_are_not_believed(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"blobs\":7}",
        "{\"blobs\":[7]}",
        "{\"blobs\":[{\"type\":\"t\"}]}",
        "{\"blobs\":[{\"type\":\"t\",\"offset\":4}]}",
        "{\"blobs\":[{\"type\":\"t\",\"offset\":3,\"length\":1}]}",
        "{\"blobs\":[{\"type\":\"t\",\"offset\":4,\"length\":10}]}",
        "{\"blobs\":[{\"type\":\"t\",\"offset\":4,\"length\":-1}]}",
        "{\"blobs\":[{\"type\":\"t\",\"offset\":9223372036854775807,\"length\":1}]}",
        "{\"blobs\":[{\"type\":\"t\",\"offset\":4,\"length\":9223372036854775807}]}",
        "{\"blobs\":[{\"type\":\"deletion-vector-v1\",\"offset\":4,\"length\":9}]}",
        "{\"blobs\":[{\"type\":\"deletion-vector-v1\",\"offset\":4,\"length\":9,"
        "\"properties\":{\"cardinality\":\"1\"}}]}",
        "{\"blobs\":[{\"type\":\"deletion-vector-v1\",\"offset\":4,\"length\":9,"
        "\"properties\":{\"cardinality\":\"-1\",\"referenced-data-file\":\"f\"}}]}",
        "{\"blobs\":[{\"type\":\"deletion-vector-v1\",\"offset\":4,\"length\":9,"
        "\"properties\":{\"cardinality\":\"99999999999999999999\",\"referenced-data-file\":\"f\"}}]"
        "}",
        "{\"blobs\":[{\"type\":\"deletion-vector-v1\",\"offset\":4,\"length\":9,"
        "\"compression-codec\":\"zstd\","
        "\"properties\":{\"cardinality\":\"1\",\"referenced-data-file\":\"f\"}}]}",
    };
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf file = {0};
    PuffinBlob *blobs;
    size_t count;
    Error err;

    (void) state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put_payload(&file, bad[i]);
        FAILS(puffin_parse(arena, buf_view(&file), &blobs, &count, &err), ERR_INPUT);
    }
    put_payload(&file, "{\"blobs\":[{\"type\":\"apache-datasketches-theta-v1\",\"fields\":[1],"
                       "\"snapshot-id\":3,\"sequence-number\":1,\"offset\":4,\"length\":9,"
                       "\"compression-codec\":\"zstd\",\"properties\":{\"ndv\":\"3\"}}]}");
    OK(puffin_parse(arena, buf_view(&file), &blobs, &count, &err));
    assert_int_equal(count, 1);
    assert_int_equal(blobs[0].cardinality, -1);
    assert_null(blobs[0].data_file.ptr);
    assert_true(str_eq(puffin_blob_bytes(buf_view(&file), &blobs[0]), STR(" 8 bytes ")));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(java_blobs_are_read_and_written),
        cmocka_unit_test(all_kinds_of_containers),
        cmocka_unit_test(any_rows_make_the_round),
        cmocka_unit_test(a_vector_adds_to_what_is_there),
        cmocka_unit_test(every_cut_and_every_flipped_bit_is_found),
        cmocka_unit_test(the_count_must_be_the_manifests),
        cmocka_unit_test(a_bitmap_is_not_believed),
        cmocka_unit_test(bits_and_keys_are_not_believed),
        cmocka_unit_test(a_file_makes_the_round),
        cmocka_unit_test(a_file_is_left_for_others),
        cmocka_unit_test(a_file_may_stand_behind_another),
        cmocka_unit_test(java_files_are_read),
        cmocka_unit_test(a_damaged_file_is_refused_or_its_vectors_are),
        cmocka_unit_test(footers_are_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
