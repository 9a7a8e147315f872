/* ocf.h - Avro object container files, both ways. Avro 1.12 specification, "Object Container
 * Files", "Binary Encoding".
 *
 *   file     "Obj" 1 | metadata map (avro.schema, avro.codec, ours) | sync marker of 16 bytes
 *            then blocks: record count | byte count | records, compressed | sync marker
 *
 * Our own, because manifests need file metadata and field ids in the schema, and libavro writes
 * neither. Writing: the caller encodes its records in the order of its schema. Reading is driven by
 * the *writer's* schema: the caller walks OcfType and picks fields by Iceberg field id, skipping
 * what it does not know, so that any writer's column order, unions and extra fields do.
 *
 * Input is not trusted: every length is checked against what is left, types may not be recursive,
 * and their depth and size are bounded. */
#ifndef AVRO_OCF_H
#define AVRO_OCF_H

#include "base/arena.h"
#include "base/buf.h"

/* --- Writing ------------------------------------------------------------------------------- */

typedef struct OcfMeta {
    const char *key;
    Str value;
} OcfMeta;

typedef enum OcfCodec { OCF_CODEC_NULL, OCF_CODEC_DEFLATE } OcfCodec;

typedef struct OcfHeader {
    Str schema; /* JSON of the record type */
    OcfCodec codec;
    size_t meta_count;
    const OcfMeta *meta; /* besides avro.schema and avro.codec */
} OcfHeader;

typedef struct OcfWriter {
    Buf *out;
    Buf block; /* records go here, encoded with ocf_put_* */
    int64_t block_count;
    OcfCodec codec;
    uint8_t sync[16];
} OcfWriter;

/* Appends the file header to out. The sync marker is a hash of the header: same input, same file.
 */
void ocf_begin(OcfWriter *writer, Buf *out, const OcfHeader *header);
/* The record just encoded into writer->block is complete. */
void ocf_end_record(OcfWriter *writer);
/* Writes what is left and releases the writer. */
void ocf_finish(OcfWriter *writer);

void ocf_put_long(Buf *out, int64_t n);  /* int and long, union branches, counts */
void ocf_put_bytes(Buf *out, Str bytes); /* bytes and string */
void ocf_put_bool(Buf *out, bool b);
void ocf_put_float(Buf *out, float f);
void ocf_put_double(Buf *out, double d);

/* --- Types --------------------------------------------------------------------------------- */

typedef enum OcfKind {
    OCF_NULL,
    OCF_BOOLEAN,
    OCF_INT,
    OCF_LONG,
    OCF_FLOAT,
    OCF_DOUBLE,
    OCF_BYTES,
    OCF_STRING,
    OCF_FIXED,
    OCF_ENUM,
    OCF_RECORD,
    OCF_ARRAY,
    OCF_MAP,
    OCF_UNION,
} OcfKind;

enum { OCF_DEPTH_MAX = 32, OCF_TYPE_NODES_MAX = 10000 };

typedef struct OcfType OcfType;

/* Field of a record; branch of a union, item of an array, value of a map (no name). */
typedef struct OcfField {
    Str name;
    int id; /* "field-id"; -1: none */
    const OcfType *type;
} OcfField;

struct OcfType {
    OcfKind kind;
    bool is_decimal;   /* logicalType decimal, on bytes or fixed */
    size_t fixed_size; /* OCF_FIXED */
    size_t min_bytes;  /* the shortest encoding of a value */
    int depth;         /* levels below, this one included */
    int nodes;         /* types in the tree below when written out, this one included */
    size_t field_count;
    OcfField *fields;
};

/* Parse a schema. ERR_INPUT when it is no schema, or recursive, or too large. */
bool ocf_parse_schema(Arena *arena, Str json, const OcfType **out_type, Error *err) WARN_UNUSED;

/* --- Reading ------------------------------------------------------------------------------- */

/* What is left of a block. */
typedef struct OcfInput {
    const uint8_t *at;
    const uint8_t *end;
} OcfInput;

typedef struct OcfReader OcfReader;

/* `bytes` is the whole file and must outlive the reader. Codecs: null, deflate, zstandard. */
bool ocf_open(Arena *arena, Str bytes, OcfReader **out_reader, Error *err) WARN_UNUSED;
void ocf_close(OcfReader **reader); /* NULL inside is fine */
#define AUTO_OCF __attribute__((cleanup(ocf_close)))

/* The type of the records: always OCF_RECORD. */
const OcfType *ocf_record_type(const OcfReader *reader);
/* A file metadata value; STR_NULL when absent. */
Str ocf_meta(const OcfReader *reader, const char *key);
/* *out_input is at the start of the next record, or NULL at the end of the file. The caller
 * consumes exactly the record. Views into it live until the next call. */
bool ocf_next(OcfReader *reader, OcfInput **out_input, Error *err) WARN_UNUSED;

/* One value that is not a record, array or map. */
typedef struct OcfScalar {
    OcfKind kind;    /* after unions were resolved */
    int64_t integer; /* boolean, int, long, enum */
    double real;     /* float, double */
    Str bytes;       /* bytes, string, fixed: a view */
} OcfScalar;

bool ocf_read_scalar(OcfInput *in, const OcfType *type, OcfScalar *out, Error *err) WARN_UNUSED;

/* A union's branch, or the type itself when it is no union. */
bool ocf_resolve(OcfInput *in, const OcfType *type, const OcfType **out_type,
                 Error *err) WARN_UNUSED;

/* Items of an array or map (for a map, the caller reads the key string first). Start with a zeroed
 * cursor and an array type, after ocf_resolve(). */
typedef struct OcfItems {
    int64_t left;
    bool done;
} OcfItems;

bool ocf_next_item(OcfInput *in, const OcfType *type, OcfItems *items, bool *out_more,
                   Error *err) WARN_UNUSED;

bool ocf_skip(OcfInput *in, const OcfType *type, Error *err) WARN_UNUSED;

#endif
