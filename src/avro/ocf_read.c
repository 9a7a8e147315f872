#include "avro/ocf.h"
#include "base/bytes.h"

#include <assert.h>
#include <inttypes.h>

#include <zlib.h>
#include <zstd.h>

/* A block of a manifest is far below this; more is a bomb. */
enum { BLOCK_BYTES_MAX = 256 * 1024 * 1024, META_COUNT_MAX = 1000, SYNC_BYTES = 16 };

typedef enum ReadCodec { READ_NULL, READ_DEFLATE, READ_ZSTANDARD } ReadCodec;

typedef struct MetaEntry {
    Str key;
    Str value;
} MetaEntry;

struct OcfReader {
    const OcfType *type;
    OcfInput file;  /* what is left of the file */
    OcfInput block; /* what is left of the current block */
    int64_t block_left;
    ReadCodec codec;
    Str sync;
    Buf meta; /* MetaEntry */
    Buf unpacked;
};

static size_t
bytes_left(const OcfInput *in)
{
    return (size_t) (in->end - in->at);
}

static bool
read_long(OcfInput *in, int64_t *out, Error *err)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (in->at == in->end)
            return FAIL(err, ERR_INPUT, "avro: a number is cut off");

        uint8_t byte = *in->at++;

        value |= (uint64_t) (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = (int64_t) (value >> 1) ^ -(int64_t) (value & 1);
            return true;
        }
    }
    return FAIL(err, ERR_INPUT, "avro: a number is longer than 64 bits");
}

static bool
take(OcfInput *in, size_t size, Str *out, Error *err)
{
    if (size > bytes_left(in)) {
        FAIL(err, ERR_INPUT, "avro: %zu bytes wanted, %zu left", size, bytes_left(in));
        return false;
    }
    *out = (Str){.ptr = (const char *) in->at, .len = size};
    in->at += size;
    return true;
}

static bool
read_bytes(OcfInput *in, Str *out, Error *err)
{
    int64_t size = 0;

    TRY(read_long(in, &size, err));
    if (size < 0)
        return FAIL(err, ERR_INPUT, "avro: a length of %" PRId64, size);
    return take(in, (size_t) size, out, err);
}

/* --- The file ------------------------------------------------------------------------------ */

static bool
read_meta(OcfReader *reader, Error *err)
{
    for (;;) {
        int64_t count = 0;
        int64_t bytes = 0;

        TRY(read_long(&reader->file, &count, err));
        if (count == 0)
            return true;
        if (count < 0) { /* followed by the size of the block, for skipping */
            TRY(read_long(&reader->file, &bytes, err));
            count = count == INT64_MIN ? INT64_MAX : -count;
        }
        if (count > META_COUNT_MAX)
            return FAIL(err, ERR_INPUT, "avro: %" PRId64 " metadata entries", count);
        for (int64_t i = 0; i < count; i++) {
            MetaEntry entry = {0};

            TRY(read_bytes(&reader->file, &entry.key, err));
            TRY(read_bytes(&reader->file, &entry.value, err));
            BUF_PUSH(&reader->meta, MetaEntry, entry);
        }
    }
}

static bool
read_codec(OcfReader *reader, Error *err)
{
    Str codec = ocf_meta(reader, "avro.codec");

    if (codec.len == 0 || str_eqc(codec, "null"))
        reader->codec = READ_NULL;
    else if (str_eqc(codec, "deflate"))
        reader->codec = READ_DEFLATE;
    else if (str_eqc(codec, "zstandard"))
        reader->codec = READ_ZSTANDARD;
    else
        return FAIL(err, ERR_INPUT,
                    "avro codec %.*s is not supported\nhint: set write.manifest.compression-codec "
                    "to gzip where the table is written, and rewrite its manifests",
                    STR_ARG(codec));
    return true;
}

static bool
read_header(Arena *arena, OcfReader *reader, Error *err)
{
    Str magic = STR_NULL;

    if (!take(&reader->file, 4, &magic, err) || !str_eqc(magic, "Obj\x01"))
        return FAIL(err, ERR_INPUT, "not an avro file");
    TRY(read_meta(reader, err));
    TRY(take(&reader->file, SYNC_BYTES, &reader->sync, err));
    TRY(read_codec(reader, err));
    TRY(ocf_parse_schema(arena, ocf_meta(reader, "avro.schema"), &reader->type, err));
    if (reader->type->kind != OCF_RECORD)
        return FAIL(err, ERR_INPUT, "avro: the file does not hold records");
    return true;
}

bool
ocf_open(Arena *arena, Str bytes, OcfReader **out_reader, Error *err)
{
    AUTO_OCF OcfReader *reader = xcalloc(1, sizeof *reader);
    const uint8_t *start = (const uint8_t *) bytes.ptr;

    reader->file = (OcfInput){.at = start, .end = bytes.len == 0 ? start : start + bytes.len};
    TRY(read_header(arena, reader, err));
    *out_reader = reader;
    reader = NULL;
    return true;
}

void
ocf_close(OcfReader **reader)
{
    if (*reader == NULL)
        return;
    buf_done(&(*reader)->meta);
    buf_done(&(*reader)->unpacked);
    free(*reader);
    *reader = NULL;
}

const OcfType *
ocf_record_type(const OcfReader *reader)
{
    return reader->type;
}

Str
ocf_meta(const OcfReader *reader, const char *key)
{
    for (size_t i = 0; i < BUF_COUNT(&reader->meta, MetaEntry); i++) {
        const MetaEntry *entry = &BUF_AT(&reader->meta, MetaEntry, i);

        if (str_eqc(entry->key, key))
            return entry->value;
    }
    return STR_NULL;
}

static bool
unpack_deflate(Str packed, Buf *out, Error *err)
{
    z_stream z = {0};
    int rc = inflateInit2(&z, -MAX_WBITS);

    assert(rc == Z_OK);
    z.next_in = (Bytef *) (uintptr_t) packed.ptr;
    z.avail_in = (uInt) packed.len;
    do {
        buf_reserve(out, packed.len * 2 + 1024);

        size_t room = out->cap - out->len;

        room = room > BLOCK_BYTES_MAX ? BLOCK_BYTES_MAX : room;
        z.next_out = (Bytef *) out->ptr + out->len;
        z.avail_out = (uInt) room;
        rc = inflate(&z, Z_NO_FLUSH);
        out->len += room - z.avail_out;
    } while (rc == Z_OK && out->len <= BLOCK_BYTES_MAX && (z.avail_in > 0 || z.avail_out == 0));
    inflateEnd(&z);
    if (rc != Z_STREAM_END)
        return FAIL(err, ERR_INPUT, "avro: a deflated block is broken or too large");
    return true;
}

static bool
unpack_zstandard(Str packed, Buf *out, Error *err)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {.src = packed.ptr, .size = packed.len};
    bool moved;
    size_t rc;

    assert(stream != NULL);
    do {
        buf_reserve(out, ZSTD_DStreamOutSize());

        ZSTD_outBuffer piece = {.dst = out->ptr + out->len, .size = out->cap - out->len};
        size_t from = in.pos;

        rc = ZSTD_decompressStream(stream, &piece, &in);
        out->len += piece.pos;
        moved = in.pos > from || piece.pos > 0;
    } while (rc != 0 && !ZSTD_isError(rc) && moved && out->len <= BLOCK_BYTES_MAX);
    ZSTD_freeDStream(stream);
    if (rc != 0)
        return FAIL(err, ERR_INPUT, "avro: a zstandard block is broken or too large");
    return true;
}

/* The next block with records in it; block_left stays 0 at the end of the file. */
static bool
next_block(OcfReader *reader, Error *err)
{
    while (reader->block_left == 0 && reader->file.at < reader->file.end) {
        int64_t count = 0;
        Str body = STR_NULL;
        Str sync = STR_NULL;

        TRY(read_long(&reader->file, &count, err));
        TRY(read_bytes(&reader->file, &body, err));
        TRY(take(&reader->file, SYNC_BYTES, &sync, err));
        if (!str_eq(sync, reader->sync))
            return FAIL(err, ERR_INPUT, "avro: a block does not end with the sync marker");
        if (body.len > BLOCK_BYTES_MAX)
            return FAIL(err, ERR_INPUT, "avro: a block of %zu bytes", body.len);
        buf_reset(&reader->unpacked);
        if (reader->codec == READ_DEFLATE) {
            TRY(unpack_deflate(body, &reader->unpacked, err));
            body = buf_view(&reader->unpacked);
        } else if (reader->codec == READ_ZSTANDARD) {
            TRY(unpack_zstandard(body, &reader->unpacked, err));
            body = buf_view(&reader->unpacked);
        }
        if (count < 0 || (uint64_t) count > body.len)
            return FAIL(err, ERR_INPUT, "avro: %" PRId64 " records in %zu bytes", count, body.len);
        reader->block_left = count;
        reader->block.at = (const uint8_t *) body.ptr;
        reader->block.end = body.len == 0 ? reader->block.at : reader->block.at + body.len;
    }
    return true;
}

bool
ocf_next(OcfReader *reader, OcfInput **out_input, Error *err)
{
    if (reader->block_left == 0) {
        if (reader->block.at != reader->block.end)
            return FAIL(err, ERR_INPUT, "avro: %zu bytes left behind the records of a block",
                        bytes_left(&reader->block));
        TRY(next_block(reader, err));
    }
    if (reader->block_left == 0) {
        *out_input = NULL;
        return true;
    }
    reader->block_left--;
    *out_input = &reader->block;
    return true;
}

/* --- Values -------------------------------------------------------------------------------- */

bool
ocf_resolve(OcfInput *in, const OcfType *type, const OcfType **out_type, Error *err)
{
    int64_t branch = 0;

    if (type->kind != OCF_UNION) {
        *out_type = type;
        return true;
    }
    TRY(read_long(in, &branch, err));
    if (branch < 0 || (uint64_t) branch >= type->field_count)
        return FAIL(err, ERR_INPUT, "avro: branch %" PRId64 " of a union of %zu", branch,
                    type->field_count);
    *out_type = type->fields[branch].type;
    if ((*out_type)->kind == OCF_UNION)
        return FAIL(err, ERR_INPUT, "avro: a union in a union");
    return true;
}

bool
ocf_read_scalar(OcfInput *in, const OcfType *type, OcfScalar *out, Error *err)
{
    TRY(ocf_resolve(in, type, &type, err));

    OcfScalar value = {.kind = type->kind};

    switch (type->kind) {
    case OCF_NULL:
        break;
    case OCF_BOOLEAN:
        TRY(take(in, 1, &value.bytes, err));
        value.integer = value.bytes.ptr[0] != 0;
        break;
    case OCF_INT:
    case OCF_LONG:
    case OCF_ENUM:
        TRY(read_long(in, &value.integer, err));
        if (type->kind != OCF_LONG && value.integer != (int32_t) value.integer)
            return FAIL(err, ERR_INPUT, "avro: an int is longer than 32 bits");
        break;
    case OCF_FLOAT: {
        float f;

        TRY(take(in, sizeof f, &value.bytes, err));
        memcpy(&f, value.bytes.ptr, sizeof f);
        value.real = (double) f;
        break;
    }
    case OCF_DOUBLE:
        TRY(take(in, sizeof value.real, &value.bytes, err));
        memcpy(&value.real, value.bytes.ptr, sizeof value.real);
        break;
    case OCF_BYTES:
    case OCF_STRING:
        TRY(read_bytes(in, &value.bytes, err));
        break;
    case OCF_FIXED:
        TRY(take(in, type->fixed_size, &value.bytes, err));
        break;
    case OCF_RECORD:
    case OCF_ARRAY:
    case OCF_MAP:
    case OCF_UNION:
        return FAIL(err, ERR_INPUT, "avro: a record, array or map where a single value belongs");
    }
    *out = value;
    return true;
}

bool
ocf_next_item(OcfInput *in, const OcfType *type, OcfItems *items, bool *out_more, Error *err)
{
    int64_t bytes = 0;

    if (type->kind != OCF_ARRAY && type->kind != OCF_MAP)
        return FAIL(err, ERR_INPUT, "avro: no array or map where one belongs");
    if (items->left == 0 && !items->done) {
        TRY(read_long(in, &items->left, err));
        if (items->left < 0) { /* followed by the size of the block, for skipping */
            TRY(read_long(in, &bytes, err));
            items->left = items->left == INT64_MIN ? INT64_MAX : -items->left;
        }
        if ((uint64_t) items->left > bytes_left(in))
            return FAIL(err, ERR_INPUT, "avro: %" PRId64 " items in %zu bytes", items->left,
                        bytes_left(in));
        /* a file of a few bytes must not keep us busy for hours */
        if (items->left > 0 && type->kind == OCF_ARRAY && type->fields[0].type->min_bytes == 0)
            return FAIL(err, ERR_INPUT, "avro: array items without bytes");
        items->done = items->left == 0;
    }
    *out_more = items->left > 0;
    if (*out_more)
        items->left--;
    return true;
}

static bool
skip_items(OcfInput *in, const OcfType *type, Error *err)
{
    OcfItems items = {0};

    for (;;) {
        bool more = false;
        Str key;

        TRY(ocf_next_item(in, type, &items, &more, err));
        if (!more)
            return true;
        if (type->kind == OCF_MAP)
            TRY(read_bytes(in, &key, err));
        TRY(ocf_skip(in, type->fields[0].type, err));
    }
}

/* Recursion follows the type, whose depth is bounded when it is parsed. */
bool
ocf_skip(OcfInput *in, const OcfType *type, Error *err)
{
    OcfScalar ignored;

    TRY(ocf_resolve(in, type, &type, err));
    if (type->kind == OCF_ARRAY || type->kind == OCF_MAP)
        return skip_items(in, type, err);
    if (type->kind != OCF_RECORD)
        return ocf_read_scalar(in, type, &ignored, err);
    for (size_t i = 0; i < type->field_count; i++)
        TRY(ocf_skip(in, type->fields[i].type, err));
    return true;
}
