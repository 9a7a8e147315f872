/* sink.h - the Iceberg sink's own nouns, shared by the files of this folder.
 *
 *   sink.c      open, attach, state object
 *   load.c      what the lake has of a table: metadata, live files, deletes, key index
 *   shape.c     its columns, and how they follow the source's
 *   spec.c      its partitions, and how they follow settings and columns
 *   sort.c      the same of the order of rows
 *   write.c     a batch -> deletes by position, a data file
 *   pick.c      rows of a batch in another sequence than its own
 *   partitions.c  the same for a partitioned table: a data file per partition
 *   patch.c     the values of a batch that were not sent, read back from the lake
 *   commit.c    the one atomic step, and what to do when it is contested or its outcome unknown
 *   manifests.c the manifests of the next snapshot; with build.h, deletes.c, position_deletes.c,
 *               vectors.c
 *   bulk.c      the initial copy, on several threads
 *   resume.c    what a copy has so far, for a later process to go on with
 *   catch_up.c  a batch of the stream into rows that are of several moments
 *   discard.c   files that were written in vain
 *   rejects.c   _walberg.rejects
 *
 * A table between two commits:
 *
 *     metadata, manifests      as of the last commit
 *     deletes                  every deleted row of every live file, uncommitted ones included
 *     index                    key -> rows of live files, uncommitted ones included
 *     pending                  data files written and rows deleted since the last commit
 *
 * When a commit fails for good, the table is loaded again from the catalog: nothing uncommitted is
 * worth keeping, the source sends it again. */
#ifndef SINK_ICEBERG_SINK_H
#define SINK_ICEBERG_SINK_H

#include <pthread.h>

#include "catalog/catalog.h"
#include "duck/parquet.h"
#include "iceberg/deletes.h"
#include "iceberg/evolve.h"
#include "iceberg/index.h"
#include "iceberg/live_deletes.h"
#include "iceberg/metrics.h"
#include "iceberg/partition.h"
#include "iceberg/places.h"
#include "iceberg/snapshot.h"
#include "iceberg/sorter.h"
#include "sink/sink.h"
#include "store/file_cache.h"

typedef struct IcebergTable IcebergTable;

typedef struct IcebergSink {
    Sink base;
    const Config *config;
    const char *pipeline;
    const char *database;
    const char *state_folder;
    FileCache files; /* of the store, in the state folder */
    Cancel *cancel;
    Store *store;
    Catalog *catalog;
    Duck *duck;
    Retention retention;
    pthread_mutex_t lock;  /* pending files and key indexes of all tables, for bulk loads */
    pthread_mutex_t large; /* a bulk load that writes a large batch: one at a time. Before lock */
    size_t table_count;
    IcebergTable **tables;
    IcebergTable *rejects;       /* NULL until the first reject */
    PropertyList *rejects_found; /* properties of that table at the start; NULL: not read yet */
    bool rejects_remade;         /* somebody removed it: files written before may be gone */
    StoreVersion state_version;
    int64_t file_number; /* names of data files: unique within run_id */
    char run_id[37];
    Arena *arena; /* process lifetime */
} IcebergSink;

/* A file of the initial copy. */
typedef struct BulkFile {
    DataFile file;
    int load;          /* number of the load; -1: of an earlier process */
    Position position; /* what its rows are as of; POSITION_NONE: the moment of the commit */
} BulkFile;

/* Rows of the rejects table. */
typedef struct RejectCount {
    IcebergTable *of;
    int64_t rows;
} RejectCount;

/* What was written since the last commit. DataFiles live in `arena`. */
typedef struct Pending {
    Arena *arena;
    Buf files;        /* DataFile, data files only */
    Buf loaded;       /* BulkFile: those of them that are of a copy; sorted by path while hidden */
    Buf records;      /* of resume.c: what bulk_record() wrote of them, newest last */
    Buf rejects;      /* RejectCount: of the rejects table: whose rows the files have */
    Deletes *deletes; /* rows to delete with the next commit */
    Buf earlier_fits; /* SchemaFit, before `fit`: pending files were written under them */
    SchemaFit fit;    /* .next: the schema that the table gets with the next commit; NULL: as is */
    int fit_base_id;  /* last-column-id that it was made on */
    Buf specs;        /* PartitionSpec: what new files got since, in this order */
    PartitionSpec *spec;    /* of new files, with ids; NULL: the table's default */
    size_t spec_base_count; /* number of specs that they were made on */
    Buf sort_orders;        /* SortOrder: as specs */
    SortOrder *sort_order;  /* of new files; NULL: the table's default */
    size_t sort_base_count; /* number of sort orders that they were made on */
    Str sort_text;          /* property walberg.sort, as partition_text */
    Str partition_text;     /* property walberg.partition with the next commit; STR_NULL: as is */
    bool truncated;
    bool stale;            /* a commit did not end cleanly: look at the lake before anything else */
    Buf attempts;          /* int64_t: snapshot ids that may have been committed */
    int64_t base_snapshot; /* what the last attempt was built on */
    bool any;
} Pending;

/* Widest values of a bare numeric column so far. */
typedef struct NumericWidth {
    bool tracked;
    bool not_finite; /* NaN or an infinity was seen: only text can show it */
    int integer_digits;
    int scale;
} NumericWidth;

struct IcebergTable {
    SinkTable base;
    IcebergSink *sink;
    TableName name;
    const TableSchema *settled; /* base.schema and base.source as of the last commit: references */
    const TableSchema *settled_source;
    Arena *arena; /* of what the last load or commit knows; replaced by the next one */
    CatalogTable current;
    const char *prefix; /* store key of the table's folder */
    TableMetadata *metadata;
    size_t manifest_count;
    ManifestFile *manifests; /* of the current snapshot */
    Deletes *deletes;
    LiveDeletes *live_deletes;      /* delete files of the current snapshot */
    Index *index;                   /* NULL under KEY_NONE */
    char *index_identity;           /* of which table and key it is */
    int64_t index_repairs;          /* each gave data files other numbers in it */
    NumericWidth *numerics;         /* per column */
    const PartitionRule *partition; /* the setting; NULL: a table of our own */
    bool partition_told;            /* that the setting has names of before */
    const SortRule *sort;           /* likewise */
    Places *places; /* of live data files, once deletes of a partitioned table were written */
    Pending pending;
    Buf bulk_rejects;     /* BulkFile of the rejects table, written by copying threads */
    Buf rejects_told;     /* int: attnums of the columns of which the log has a line */
    Position replayed;    /* hidden: what write() gets is later than this */
    bool index_unsure;    /* it lost something, and what is not known yet */
    bool keep_index;      /* resume() follows: the index has files that no snapshot names */
    bool rejects_pending; /* values of it wait in the rejects table for a commit */
    bool rejects_adopted; /* those of its copy do */
    bool replacing;       /* all its rows are about to go: they need not be whole */
    bool unlisted;        /* its manifests cannot be read; only while replacing */
    bool format_told;     /* what is to be said of its format version was said */
    bool half_loaded;     /* the last load failed: nothing of it may be used */
    Arena *own;           /* lifetime of the table: name, prefix */
};

extern const SinkOps iceberg_sink_ops;

/* load.c */

/* Metadata, manifests and deletes as the catalog has them now, all or nothing; what is pending
 * stays pending. */
bool iceberg_table_refresh(IcebergTable *table, Error *err) WARN_UNUSED;
/* The index has exactly the rows of live and pending files. */
bool iceberg_sync_index(IcebergTable *table, Error *err) WARN_UNUSED;
/* Everything about the table as the catalog has it now; pending changes are dropped. */
bool iceberg_table_load(IcebergTable *table, Error *err) WARN_UNUSED;
/* After a damage: what the index lost. */
bool iceberg_save_index(IcebergTable *table, Error *err) WARN_UNUSED;
/* A counter of a snapshot's summary; 0 when absent. snapshot may be NULL. */
int64_t iceberg_summary_number(const Snapshot *snapshot, const char *key);
/* After a change of the key: the index is made again if it is of another. */
bool iceberg_rekey_index(IcebergTable *table, Error *err) WARN_UNUSED;
/* No data file counts any more. */
void iceberg_empty_index(IcebergTable *table);
/* Make an empty table in the lake. */
bool iceberg_table_create(IcebergTable *table, const TableSchema *schema, Error *err) WARN_UNUSED;
/* Entries of one manifest. */
bool iceberg_read_manifest(IcebergTable *table, Arena *arena, const ManifestFile *manifest,
                           ManifestEntry **out_entries, size_t *out_count, Error *err) WARN_UNUSED;
/* All live (not DELETED) data files of the current snapshot: ManifestEntry items into *out. */
bool iceberg_live_files(IcebergTable *table, Arena *arena, Buf *out, Error *err) WARN_UNUSED;
/* (file, row) of a position delete file or a deletion vector. */
bool iceberg_read_deletes(IcebergTable *table, Deletes *into, const DataFile *file,
                          Error *err) WARN_UNUSED;
void iceberg_pending_reset(Pending *pending);

/* shape.c */

/* After a load: the shape of the last commit; of a table just opened, the one that the lake has. */
bool iceberg_load_shape(IcebergTable *table, Error *err) WARN_UNUSED;
void iceberg_settle_shape(IcebergTable *table); /* a commit has it */
void iceberg_free_shape(IcebergTable *table);
bool iceberg_evolve(Sink *sink, SinkTable *table, const TableSchema *schema,
                    Error *err) WARN_UNUSED;
bool iceberg_replace(Sink *sink, SinkTable *table, const TableSchema *schema,
                     Error *err) WARN_UNUSED;
/* Nothing of the table counts any more, and what is written from now on has this shape. The index
 * is as it was. */
bool iceberg_begin_anew(IcebergTable *table, const TableSchema *schema, Error *err) WARN_UNUSED;

/* spec.c */

/* Of files that are written now. */
const PartitionSpec *iceberg_spec(const IcebergTable *table);
bool iceberg_is_partitioned(const IcebergTable *table);
/* After a load, and after the columns changed: what the setting and the columns ask for. */
bool iceberg_follow_spec(IcebergTable *table, bool columns_changed, Error *err) WARN_UNUSED;
/* ERR_INPUT: rows cannot be partitioned so. */
bool iceberg_check_spec(const IcebergTable *table, Arena *arena, ResultType **out_types,
                        Error *err) WARN_UNUSED;
/* table->metadata with the pending schema, specs and sort orders, under the format version of the
 * setting. */
const TableMetadata *iceberg_shaped_metadata(const IcebergTable *table, Arena *arena);

/* sort.c */

/* Of files that are written now. */
const SortOrder *iceberg_sort_order(const IcebergTable *table);
/* As iceberg_follow_spec(). */
bool iceberg_follow_sort(IcebergTable *table, bool columns_changed, Error *err) WARN_UNUSED;
/* Rows of files that are written now, with these fields; NULL: they are not sorted. */
Sorter *iceberg_sorter(const IcebergTable *table, const Field *fields, int field_count);
/* The live rows of the batch in the order of the table, in `arena`; NULL: they stay in theirs. */
const uint32_t *iceberg_sorted_rows(const IcebergTable *table, const Batch *batch, Arena *arena);

/* pick.c */

/* Rows of columns in any sequence, copied a piece at a time: starts with a RowSource. */
typedef struct PickedRows PickedRows;

/* columns: as many as fields, and types as theirs; row_bytes: on average. All must outlive it. */
PickedRows *iceberg_picked_rows(const Column *columns, int column_count, size_t row_bytes);
void iceberg_picked_free(PickedRows **picked); /* NULL is fine */
#define AUTO_PICKED __attribute__((cleanup(iceberg_picked_free)))
/* Give these rows next, and then no more. */
void iceberg_pick(PickedRows *picked, const uint32_t *rows, size_t count);

/* write.c */

/* A row that is to be deleted: ordinal of its file in the index, and number. */
typedef struct DeletedRow {
    int file;
    uint32_t row;
} DeletedRow;

bool iceberg_write(Sink *sink, SinkTable *table, Batch *batch, Error *err) WARN_UNUSED;

/* Write rows as a new file of the table, durable in the store but in no snapshot yet. *out_file
 * lives in `arena`. A file without rows is not kept: out_file->record_count is 0. */
typedef struct FileWrite {
    const char *key; /* in the store, from iceberg_data_key() */
    const Field *fields;
    int field_count;
    RowSource *rows;
    size_t row_bytes;        /* average, to size row groups; 0: small */
    int64_t row_group_bytes; /* in memory, about; 0: the limit of the format's readers */
    FileContent content;
    bool no_negative_zero;     /* see ParquetWrite */
    int sort_order_id;         /* of the order that the rows are in; 0: none */
    const PartitionSpec *spec; /* NULL: that of new files, which then has no fields */
    Str partition;             /* packed tuple, lives as long as the file's arena */
} FileWrite;

bool iceberg_write_file(IcebergTable *table, Arena *arena, const FileWrite *write,
                        DataFile *out_file, Error *err) WARN_UNUSED;
/* A new key below the table's data folder; kind ("data", "deletes") is part of the name. */
const char *iceberg_data_key(IcebergTable *table, Arena *arena, const char *kind);
/* A new key there for the deletion vectors of a commit. */
const char *iceberg_vectors_key(IcebergTable *table, Arena *arena);
/* The same in a folder below it ("at_day=2026-11-30/", "" for none). */
const char *iceberg_data_key_in(IcebergTable *table, Arena *arena, const char *folder,
                                const char *kind);
/* Deep copy. */
DataFile iceberg_copy_file(Arena *arena, const DataFile *file);
const Field *iceberg_table_fields(const IcebergTable *table, Arena *arena);
void iceberg_track_numerics(IcebergTable *table, const Batch *batch);
/* What one value of a bare numeric column adds. */
void iceberg_widen_numeric(NumericWidth *width, Str text);
/* The columns of a position delete file: file_path and pos with their reserved ids. */
extern const Field position_delete_fields[2];

/* Look keys up; an index that turns out to be damaged forgets the files concerned, gets their keys
 * again from the data files, and is asked once more. */
bool iceberg_look_up(IcebergTable *table, const Hash128 *keys, size_t count, Buf *out_hits,
                     Error *err) WARN_UNUSED;

/* patch.c */

/* Where the batch's patches are in the lake, one opaque item each into *out_places; none when
 * there are none. ERR_INPUT: the lake does not have a row. */
bool iceberg_find_patches(IcebergTable *table, const Batch *batch, Buf *out_places,
                          Error *err) WARN_UNUSED;
/* Whether the batch's patches are likely to be read at once. When they are not, rows that were next
 * to each other should stay so: a file's row group is read as a whole for each block of patches. */
bool iceberg_patches_fit(const IcebergTable *table, const Batch *batch);
/* The live rows of the batch with their patches, some at a time: starts with a RowSource. The batch
 * is only read. order: the live rows in the sequence in which they are wanted, NULL: their own. */
typedef struct PatchedRows PatchedRows;

PatchedRows *iceberg_patched_rows(IcebergTable *table, const Batch *batch, Buf *places,
                                  const uint32_t *order);
void iceberg_patched_free(PatchedRows **patched); /* NULL is fine */
#define AUTO_PATCHED __attribute__((cleanup(iceberg_patched_free)))

/* partitions.c */

/* The live rows of a batch as files of their partitions, in the index and pending. `like` says what
 * is the same for all files; patched: the rows, where the batch lacks values, else NULL. */
bool iceberg_write_partitions(IcebergTable *table, const Batch *batch, const FileWrite *like,
                              RowSource *patched, Error *err) WARN_UNUSED;

/* Where files go that are written and in the index: DataFile, living in arena. */
typedef struct PartitionTarget {
    Arena *arena;
    Buf *files;
} PartitionTarget;

/* Rows that come a batch at a time, waiting to become files of their partitions. The fields of
 * `like` must outlive it; NULL on failure. */
typedef struct PartitionBuffers PartitionBuffers;

PartitionBuffers *iceberg_buffers_new(IcebergTable *table, const FileWrite *like,
                                      const PartitionTarget *target, size_t budget,
                                      Error *err) WARN_UNUSED;
void iceberg_buffers_free(PartitionBuffers *buffers); /* NULL is fine */
/* All rows of a block, none of them dead; keys[i] is of row i, NULL under KEY_NONE. row_bytes: on
 * average. */
bool iceberg_buffers_add(PartitionBuffers *buffers, const RowBlock *block, const Hash128 *keys,
                         size_t row_bytes, Error *err) WARN_UNUSED;
bool iceberg_buffers_finish(PartitionBuffers *buffers, Error *err) WARN_UNUSED;

/* manifests.c */

/* A delete manifest has at most so many entries, so that what it costs to replace one is bounded.
 */
enum { DELETE_MANIFEST_ENTRIES_MAX = 500 };

typedef struct DeleteManifest {
    ManifestFile file;
    Str bytes; /* Avro */
} DeleteManifest;

typedef struct NextSnapshot {
    Snapshot snapshot;
    Buf manifest_list;    /* Avro bytes */
    Buf delete_manifests; /* DeleteManifest, new ones; in the arena of the build */
    Buf replaced_deletes; /* Str: paths of the delete manifests that go */
} NextSnapshot;

void iceberg_next_done(NextSnapshot *next);
/* The pending data files join table->places, if that is kept. */
void iceberg_keep_places(IcebergTable *table);
/* Write manifests and manifest list for what is pending, on top of `base`: the table's metadata
 * with the pending schema. */
bool iceberg_build_snapshot(IcebergTable *table, const TableMetadata *base, Arena *arena,
                            const PropertyList *extra, NextSnapshot *next, Error *err) WARN_UNUSED;

/* commit.c */
bool iceberg_commit(Sink *sink, SinkTable *table, Position position, int64_t commit_time_us,
                    Error *err) WARN_UNUSED;
bool iceberg_commit_pending(IcebergTable *table, Position position, int64_t commit_time_us,
                            Error *err) WARN_UNUSED;

/* resume.c */
bool iceberg_bulk_record(Sink *sink, SinkTable *table, const BulkDone *done, Arena *arena,
                         SinkLoaded *out_loaded, Error *err) WARN_UNUSED;
bool iceberg_resume(Sink *sink, SinkTable *table, const SinkResume *resume, Error *err) WARN_UNUSED;
/* Rejects of a copy are in files of their own. ERR_COPY: one is gone. */
bool iceberg_check_rejects(IcebergTable *table, Error *err) WARN_UNUSED;
/* The rows are visible: nobody needs the records of them any more. */
void iceberg_remove_records(IcebergTable *table);

/* catch_up.c */

/* All rows of a copy are pending. When they are not all of one moment, the table is hidden until
 * the changes up to `position` are written. */
void iceberg_hide(IcebergTable *table, Position position);
void iceberg_unhide(IcebergTable *table); /* whatever becomes of it */

static inline bool
iceberg_is_hidden(const IcebergTable *table)
{
    return table->base.hidden_until != POSITION_NONE;
}

/* Which rows the batch deletes in a hidden table, as DeletedRow into *out; rows of the batch that
 * the table has already as of later die. ERR_COPY: a row is missing. */
bool iceberg_catch_up(IcebergTable *table, Batch *batch, Buf *out, Error *err) WARN_UNUSED;

/* discard.c */

/* Remove data files (DataFile) that nothing names or will name. Any thread; failures are logged. */
void iceberg_discard_files(const IcebergSink *sink, const Buf *files);
/* The pending data files, which are about to be forgotten; not when a commit may have them, or a
 * record of resume.c has. */
void iceberg_discard_pending(IcebergTable *table);

/* bulk.c */
bool iceberg_bulk_load(Sink *sink, SinkTable *table, BulkSource *source, Error *err) WARN_UNUSED;
bool iceberg_bulk_commit(Sink *sink, SinkTable *table, Position position, Error *err) WARN_UNUSED;

/* rejects.c */

/* The rejects of a batch of the stream: written, visible with iceberg_rejects_commit(). */
bool iceberg_rejects_write(IcebergTable *table, const Batch *batch, Error *err) WARN_UNUSED;
bool iceberg_rejects_commit(IcebergSink *sink, Position position, int64_t commit_time_us,
                            Error *err) WARN_UNUSED;
bool iceberg_record(Sink *sink, SinkTable *table, Batch *batch, Error *err) WARN_UNUSED;
/* Those of a batch of the initial copy, on any thread: a DataFile in `arena`, added to *files. When
 * its load is complete it waits in table->bulk_rejects until iceberg_rejects_adopt() commits it. */
bool iceberg_bulk_rejects(IcebergTable *table, Arena *arena, const Batch *batch, Buf *files,
                          Error *err) WARN_UNUSED;
bool iceberg_rejects_adopt(IcebergSink *sink, IcebergTable *table, Error *err) WARN_UNUSED;
/* A table is attached: how many of its values are recorded. */
void iceberg_rejects_attach(IcebergTable *table);
/* Table properties of the rejects table: how far the rejects of each source table are recorded, and
 * how many. */
PropertyList iceberg_rejects_properties(IcebergSink *sink, Arena *arena, const PropertyList *base,
                                        Position position);

/* sink.c */

typedef struct TableOpen {
    const TableSchema *schema;
    TableName name;
    const PartitionRule *partition; /* lives as long as the sink; NULL: a table of our own */
    const SortRule *sort;           /* likewise */
    bool replace;                   /* all rows are about to be copied anew */
    bool resume;                    /* resume() follows */
} TableOpen;

bool iceberg_open_table(IcebergSink *sink, const TableOpen *open, IcebergTable **out_table,
                        Error *err) WARN_UNUSED;
void iceberg_table_free(IcebergTable *table); /* NULL is fine */

#endif
