/* puffin.h - Puffin files: the container of deletion vectors. Puffin spec, "File structure":
 *
 *     "PFA1"   blob   blob ...   "PFA1"   JSON   its size, 4 bytes   flags, 4 bytes   "PFA1"
 *
 * The JSON says what each blob is and where. A reader of a table does not need it: the manifest
 * entry of a vector has its offset and length. Pure. */
#ifndef ICEBERG_PUFFIN_H
#define ICEBERG_PUFFIN_H

#include "base/arena.h"
#include "iceberg/deletes.h"

typedef struct PuffinBlob {
    Str type;            /* "deletion-vector-v1", or something else, e.g. a statistic */
    Str data_file;       /* of a vector: property referenced-data-file; else STR_NULL */
    int64_t cardinality; /* of a vector: rows in it; else -1 */
    int64_t offset;      /* in the file: what content_offset (144) of the manifest entry is */
    int64_t length;      /* content_size_in_bytes (145), with its length and checksum */
} PuffinBlob;

/* One file being written. puffin_begin, puffin_add_vector for each data file, puffin_end. */
typedef struct PuffinWriter {
    Buf *out;
    size_t start; /* of the file, in out */
    Buf blobs;    /* PuffinBlob */
} PuffinWriter;

/* Append a file to *out. */
void puffin_begin(PuffinWriter *writer, Buf *out);

/* Append the vector of data_file (a view that must live until the end) and return where it is. A
 * data file may be added once, and must have deleted rows: of a file with an empty vector PyIceberg
 * 0.12 cannot read the others either. */
PuffinBlob puffin_add_vector(PuffinWriter *writer, const Deletes *deletes, Str data_file);

/* Write the footer; frees the writer's memory, but not the buffer. */
void puffin_end(PuffinWriter *writer);

/* What is in a file, given all its bytes. ERR_INPUT: damaged, or its footer is compressed or of a
 * later kind. Every blob lies within the file; a vector has its data file and cardinality. Strings
 * are copied into the arena. */
bool puffin_parse(Arena *arena, Str file, PuffinBlob **out_blobs, size_t *out_count,
                  Error *err) WARN_UNUSED;

/* The bytes of a blob of this file. */
Str puffin_blob_bytes(Str file, const PuffinBlob *blob);

#endif
