#include "avro/ocf.h"
#include "base/bytes.h"
#include "base/hash.h"

#include <assert.h>

#include <zlib.h>

/* Flush a block when it is this large: Avro's own default, 16,000 records of four bytes. */
enum { BLOCK_BYTES = 64 * 1024 };

void
ocf_put_long(Buf *out, int64_t n)
{
    uint64_t rest = ((uint64_t) n << 1) ^ (uint64_t) (n >> 63); /* zig-zag */

    while (rest >= 0x80) {
        buf_byte(out, (uint8_t) (rest | 0x80));
        rest >>= 7;
    }
    buf_byte(out, (uint8_t) rest);
}

void
ocf_put_bytes(Buf *out, Str bytes)
{
    ocf_put_long(out, (int64_t) bytes.len);
    buf_str(out, bytes);
}

void
ocf_put_bool(Buf *out, bool b)
{
    buf_byte(out, b);
}

void
ocf_put_float(Buf *out, float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    store_le32(buf_push(out, sizeof bits), bits);
}

void
ocf_put_double(Buf *out, double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    store_le64(buf_push(out, sizeof bits), bits);
}

static void
put_meta(Buf *out, const char *key, Str value)
{
    ocf_put_bytes(out, str_of(key));
    ocf_put_bytes(out, value);
}

void
ocf_begin(OcfWriter *writer, Buf *out, const OcfHeader *header)
{
    size_t start = out->len;

    *writer = (OcfWriter){.out = out, .codec = header->codec};
    buf_append(out, "Obj\x01", 4);
    ocf_put_long(out, (int64_t) header->meta_count + 2);
    put_meta(out, "avro.schema", header->schema);
    put_meta(out, "avro.codec", header->codec == OCF_CODEC_DEFLATE ? STR("deflate") : STR("null"));
    for (size_t i = 0; i < header->meta_count; i++)
        put_meta(out, header->meta[i].key, header->meta[i].value);
    ocf_put_long(out, 0);

    Hash128 hash = hash128(out->ptr + start, out->len - start, 0);

    store_be64(writer->sync, hash.high);
    store_be64(writer->sync + 8, hash.low);
    buf_append(out, writer->sync, sizeof writer->sync);
}

/* Append `in` to out as a raw deflate stream. */
static void
deflate_block(const Buf *in, Buf *out)
{
    z_stream z = {0};
    int rc = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);

    assert(rc == Z_OK); /* fails only without memory */

    size_t bound = deflateBound(&z, (uLong) in->len);

    assert(in->len <= UINT32_MAX && bound <= UINT32_MAX);
    buf_reserve(out, bound);
    z.next_in = (Bytef *) in->ptr;
    z.avail_in = (uInt) in->len;
    z.next_out = (Bytef *) out->ptr + out->len;
    z.avail_out = (uInt) bound;
    rc = deflate(&z, Z_FINISH);
    assert(rc == Z_STREAM_END);
    out->len += bound - z.avail_out;
    deflateEnd(&z);
}

static void
flush_block(OcfWriter *writer)
{
    if (writer->block_count == 0)
        return;

    AUTO_BUF Buf packed = {0};
    const Buf *body = &writer->block;

    if (writer->codec == OCF_CODEC_DEFLATE) {
        deflate_block(&writer->block, &packed);
        body = &packed;
    }
    ocf_put_long(writer->out, writer->block_count);
    ocf_put_bytes(writer->out, buf_view(body));
    buf_append(writer->out, writer->sync, sizeof writer->sync);
    buf_reset(&writer->block);
    writer->block_count = 0;
}

void
ocf_end_record(OcfWriter *writer)
{
    writer->block_count++;
    if (writer->block.len >= BLOCK_BYTES)
        flush_block(writer);
}

void
ocf_finish(OcfWriter *writer)
{
    flush_block(writer);
    buf_done(&writer->block);
}
