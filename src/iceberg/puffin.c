#include "iceberg/puffin.h"
#include "avro/json_node.h"
#include "base/bytes.h"
#include "base/json_writer.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

enum {
    MAGIC_BYTES = 4,
    TAIL_BYTES = 4 + 4 + MAGIC_BYTES, /* size of the payload, flags, magic */
    FOOTER_BYTES_MIN = MAGIC_BYTES + TAIL_BYTES,
    FLAG_COMPRESSED = 1,                /* bit 0 of the first byte: the payload is LZ4 */
    FIELD_ID_ROW_POSITION = 2147483645, /* Iceberg spec, "Reserved Field IDs": _pos */
};

static const char MAGIC[] = "PFA1";
static const char VECTOR[] = "deletion-vector-v1";

/* --- Writing ------------------------------------------------------------------------------- */

void
puffin_begin(PuffinWriter *writer, Buf *out)
{
    *writer = (PuffinWriter){.out = out, .start = out->len};
    buf_append(out, MAGIC, MAGIC_BYTES);
}

PuffinBlob
puffin_add_vector(PuffinWriter *writer, const Deletes *deletes, Str data_file)
{
    size_t start = writer->out->len;
    PuffinBlob blob = {
        .type = STR(VECTOR),
        .data_file = data_file,
        .offset = (int64_t) (start - writer->start),
        .cardinality = (int64_t) deletes_write_vector(deletes, data_file, writer->out),
    };

    assert(blob.cardinality > 0);
    blob.length = (int64_t) (writer->out->len - start);
    BUF_PUSH(&writer->blobs, PuffinBlob, blob);
    return blob;
}

/* Puffin spec, "deletion-vector-v1": both numbers are -1, since the snapshot is not known when the
 * file is written, and the blob is not compressed. */
static void
write_blob(JsonWriter *json, const PuffinBlob *blob)
{
    char cardinality[24];

    snprintf(cardinality, sizeof cardinality, "%" PRId64, blob->cardinality);
    jw_object(json);
    jw_key(json, "type");
    jw_str(json, blob->type);
    jw_key(json, "fields");
    jw_array(json);
    jw_int(json, FIELD_ID_ROW_POSITION);
    jw_end(json);
    jw_key(json, "snapshot-id");
    jw_int(json, -1);
    jw_key(json, "sequence-number");
    jw_int(json, -1);
    jw_key(json, "offset");
    jw_int(json, blob->offset);
    jw_key(json, "length");
    jw_int(json, blob->length);
    jw_key(json, "properties");
    jw_object(json);
    jw_key(json, "referenced-data-file");
    jw_str(json, blob->data_file);
    jw_key(json, "cardinality");
    jw_cstr(json, cardinality);
    jw_end(json);
    jw_end(json);
}

static void
write_payload(const PuffinWriter *writer)
{
    JsonWriter json;

    jw_begin(&json, writer->out);
    jw_object(&json);
    jw_key(&json, "blobs");
    jw_array(&json);
    for (size_t i = 0; i < BUF_COUNT(&writer->blobs, PuffinBlob); i++)
        write_blob(&json, &BUF_AT(&writer->blobs, PuffinBlob, i));
    jw_end(&json);
    jw_key(&json, "properties");
    jw_object(&json);
    jw_key(&json, "created-by");
    jw_cstr(&json, "walberg " WALBERG_VERSION);
    jw_end(&json);
    jw_end(&json);
}

void
puffin_end(PuffinWriter *writer)
{
    Buf *out = writer->out;

    buf_append(out, MAGIC, MAGIC_BYTES);

    size_t start = out->len;

    write_payload(writer);

    size_t size = out->len - start;

    assert(size <= INT32_MAX);
    store_le32(buf_push(out, 4), (uint32_t) size);
    store_le32(buf_push(out, 4), 0); /* no flags */
    buf_append(out, MAGIC, MAGIC_BYTES);
    buf_done(&writer->blobs);
}

/* --- Reading ------------------------------------------------------------------------------- */

/* The JSON text, and where the footer begins. */
static bool
find_payload(Str file, Str *out_payload, size_t *out_footer, Error *err)
{
    if (file.len < MAGIC_BYTES + FOOTER_BYTES_MIN)
        return FAIL(err, ERR_INPUT, "%zu bytes are too few for a Puffin file", file.len);

    const char *tail = file.ptr + file.len - TAIL_BYTES;
    size_t size = load_le32(tail);
    uint32_t flags = load_le32(tail + 4);

    if (memcmp(file.ptr, MAGIC, MAGIC_BYTES) != 0 || memcmp(tail + 8, MAGIC, MAGIC_BYTES) != 0)
        return FAIL(err, ERR_INPUT, "not a Puffin file, or it is cut");
    if (flags == FLAG_COMPRESSED)
        return FAIL(err, ERR_INPUT,
                    "the footer of the Puffin file is compressed (LZ4), "
                    "which is not supported");
    if (flags != 0)
        return FAIL(err, ERR_INPUT, "the footer of the Puffin file has unknown flags 0x%08x",
                    flags);
    if (size > file.len - MAGIC_BYTES - FOOTER_BYTES_MIN)
        return FAIL(err, ERR_INPUT, "the footer of the Puffin file is larger than the file");

    Str payload = {.ptr = tail - size, .len = size};

    if (memcmp(payload.ptr - MAGIC_BYTES, MAGIC, MAGIC_BYTES) != 0)
        return FAIL(err, ERR_INPUT, "the footer of the Puffin file does not begin where it says");
    *out_payload = payload;
    *out_footer = (size_t) (payload.ptr - MAGIC_BYTES - file.ptr);
    return true;
}

/* A count as decimal digits: properties are strings. */
static bool
parse_count(Str text, int64_t *out)
{
    char digits[24];
    char *end;

    if (text.len == 0 || text.len >= sizeof digits || text.ptr[0] < '0' || text.ptr[0] > '9')
        return false;
    memcpy(digits, text.ptr, text.len);
    digits[text.len] = '\0';
    errno = 0;
    *out = strtoll(digits, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool
parse_vector(Arena *arena, const JsonNode *node, PuffinBlob *blob, Error *err)
{
    const JsonNode *properties = node_get(node, "properties");
    Str cardinality = STR_NULL;

    if (node_get(node, "compression-codec") != NULL)
        return FAIL(err, ERR_INPUT, "a deletion vector is compressed");
    TRY(node_need_str(properties, "referenced-data-file", arena, &blob->data_file, err));
    TRY(node_need_str(properties, "cardinality", arena, &cardinality, err));
    if (!parse_count(cardinality, &blob->cardinality))
        return FAIL(err, ERR_INPUT, "cardinality is not a number: %.*s", STR_ARG(cardinality));
    return true;
}

static bool
parse_blob(Arena *arena, const JsonNode *node, size_t footer, PuffinBlob *out_blob, Error *err)
{
    PuffinBlob blob = {.cardinality = -1};

    TRY(node_need_str(node, "type", arena, &blob.type, err));
    TRY(node_need_int64(node, "offset", &blob.offset, err));
    TRY(node_need_int64(node, "length", &blob.length, err));
    if (blob.offset < MAGIC_BYTES || blob.length < 0 || blob.offset > (int64_t) footer ||
        blob.length > (int64_t) footer - blob.offset)
        return FAIL(err, ERR_INPUT, "%" PRId64 " bytes at %" PRId64 " are not among the blobs",
                    blob.length, blob.offset);
    if (str_eqc(blob.type, VECTOR))
        TRY(parse_vector(arena, node, &blob, err));
    *out_blob = blob;
    return true;
}

bool
puffin_parse(Arena *arena, Str file, PuffinBlob **out_blobs, size_t *out_count, Error *err)
{
    AUTO_NODE JsonNode *root = NULL;
    const JsonNode *nodes = NULL;
    Str payload = STR_NULL;
    size_t footer = 0;

    TRY(find_payload(file, &payload, &footer, err));
    if (!node_parse(payload, &root, err) || !node_need_array(root, "blobs", &nodes, err))
        return WRAP(err, "footer of the Puffin file");
    if (nodes == NULL)
        return FAIL(err, ERR_INPUT, "footer of the Puffin file: no blobs");

    size_t count = node_count(nodes);
    PuffinBlob *blobs = ARENA_ARRAY(arena, PuffinBlob, count);

    for (size_t i = 0; i < count; i++)
        if (!parse_blob(arena, node_at(nodes, i), footer, &blobs[i], err))
            return WRAP(err, "footer of the Puffin file: blob %zu", i);
    *out_blobs = blobs;
    *out_count = count;
    return true;
}

Str
puffin_blob_bytes(Str file, const PuffinBlob *blob)
{
    return (Str){.ptr = file.ptr + blob->offset, .len = (size_t) blob->length};
}
