/* parquet.h - rows out of Columns into a Parquet file, and back.
 *
 * Writing is a COPY from a table function that emits our columns in chunks of 2,048 rows, on the
 * calling thread, so that row n of the input (dead rows left out) is row n of the file: the key
 * index depends on it. (A Duck with more than one thread keeps the order, but may ask the
 * RowSource from a thread of its own while the caller waits.) Field ids are Iceberg's. zstd.
 * Nothing is fsynced here.
 *
 * Column names in the file are those of the fields, except that of two names that differ only in
 * the case of ASCII letters the later one gets a suffix ("a", "A_1"): DuckDB cannot tell them
 * apart. Iceberg's readers go by field id. */
#ifndef DUCK_PARQUET_H
#define DUCK_PARQUET_H

#include "duck/duck.h"
#include "model/column.h"

/* A piece of the input: `rows` rows of `columns` (one per field), without those that are dead. */
typedef struct RowBlock {
    const Column *columns;
    size_t rows;
    const uint8_t *dead; /* one byte a row, or NULL: all live */
} RowBlock;

/* Where the rows come from. Embed it as the first member. The block stays valid until the next
 * call; rows == 0 ends the file. May be called from the thread that writes only. */
typedef struct RowSource RowSource;

struct RowSource {
    bool (*next)(RowSource *source, RowBlock *out_block, Error *err);
};

typedef struct ParquetWrite {
    const char *path;    /* made or overwritten */
    const Field *fields; /* names, ids (nested ones too) and types */
    int field_count;
    RowSource *rows;
    /* No real among the rows is -0, which DuckDB's dictionaries take for 0. Without this promise
     * rows with reals are written without dictionaries: often larger files, slower to query. */
    bool no_negative_zero;
    /* A row group is built in memory, which takes about three and a half times its bytes: 85 MB
     * with these defaults. */
    int64_t row_group_rows;  /* 0 = 122880; rounded to what DuckDB accepts */
    int64_t row_group_bytes; /* 0 = 32 MB; of values in memory: wide rows make shorter groups.
                                Kept by a Duck with one thread only */
} ParquetWrite;

/* What an Iceberg manifest wants to know and only the file can tell. */
typedef struct ParquetLeaf {
    int field_id;
    int64_t compressed_bytes;
} ParquetLeaf;

typedef struct ParquetFile {
    int64_t rows;
    int64_t bytes; /* of the file */
    int leaf_count;
    ParquetLeaf *leaves; /* per leaf column, in file order */
    int row_group_count;
    int64_t *row_group_offsets; /* ascending: Iceberg's split_offsets */
} ParquetFile;

/* *out_file is allocated from arena. On failure the file is removed. An error that rows->next
 * returned is passed on unchanged. */
bool duck_write_parquet(Duck *duck, Arena *arena, const ParquetWrite *write, ParquetFile *out_file,
                        Error *err) WARN_UNUSED;

/* Receives a scan: blocks in row order; first_row is the row number in the file of block row 0.
 * Embed it as the first member. The columns are reused for the next block. Its errors are passed on
 * unchanged. */
typedef struct RowSink RowSink;

struct RowSink {
    bool (*block)(RowSink *sink, const Column *columns, size_t rows, int64_t first_row, Error *err);
};

/* Read the given fields, by field id, of all rows. A field that the file lacks reads as its
 * default, a member of a struct that it lacks as NULL. */
typedef struct ParquetScan {
    const char *path;
    const Field *fields;
    int field_count;
    /* An SQL expression of the field's type for each, or NULL: NULL. iceberg/default.h makes them
     * of the fields. NULL: none has one. */
    const char *const *defaults;
    RowSink *sink;
} ParquetScan;

bool duck_scan_parquet(Duck *duck, const ParquetScan *scan, Error *err) WARN_UNUSED;

/* Read some rows: row_numbers ascending, each once. Rows are appended to columns[field] in that
 * order; columns are initialised by the caller with the fields' types and have equally many rows.
 * Costs a few milliseconds for each row group touched: DuckDB decompresses a column of a row group
 * as a whole. */
typedef struct ParquetPick {
    const char *path;
    const Field *fields;
    int field_count;
    const char *const *defaults; /* as in ParquetScan */
    const int64_t *row_numbers;
    size_t row_count;
} ParquetPick;

bool duck_pick_parquet(Duck *duck, const ParquetPick *pick, Column *columns,
                       Error *err) WARN_UNUSED;

#endif
