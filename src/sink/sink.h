/* sink.h - where batches go.
 *
 * A sink is a SinkOps table and a struct whose first member is Sink. Adding one means: write
 * sink/<name>/sink.c and add its line to sink_kinds[] in sink.c. Nothing else in the tree changes.
 *
 * Contract, checked by test/contract/sink.c against every sink:
 *   - attach() of a table makes it in the lake when it is missing, or compares it with what is
 *     there; its position is that of its last commit, in any process, ever;
 *   - write() takes a sealed batch; several may come before commit(), also parts of one
 *     transaction; nothing is visible before commit(). A write that failed with ERR_TRANSIENT left
 *     nothing behind and may be repeated with the same batch;
 *   - commit(position) is all or nothing per table, and idempotent: after it returned true every
 *     table written to has at least that position, also in a new process. When it fails with
 *     ERR_TRANSIENT, calling it again with the same arguments finishes the job;
 *   - abandon() drops what a table was sent since its last commit; without a table, the records of
 *     rejected values that wait for one (those of a table that is parked are kept);
 *   - record() makes the rejected values of a batch that will not be written visible, and those
 *     that were written and wait: a table is parked because of them;
 *   - bulk_load() (the initial copy) may run on several threads at once, also for one table, also
 *     while the stream commits other tables; its rows become visible with bulk_commit() of the
 *     table, together with the position. All other calls come from one thread.
 *   - ERR_COPY of write(): a row that the batch takes values from is not in the lake, or one that
 *     it deletes (unless may_miss says that this is no fault): the two differ already;
 *   - bulk_record() makes loads outlive the process, invisibly; resume() in a later one goes on
 * with them. Then the rows of the copy may be of several moments, and bulk_commit() shows nothing
 *     yet: the table is hidden (SinkTable.hidden_until). The sink must be sent every change since
 *     replay_from, inserts with inserts_replace, and commit() at each moment that loads are of
 *     (no batch has changes from both sides of one); commit() at or after hidden_until shows the
 *     table. A row that was loaded at a later moment than a change stays. ERR_COPY of write(): what
 *     the change needs is not in the lake, only a copy from the beginning has it;
 *   - an ERR_INPUT of a call that names a table concerns that table alone: it is parked. */
#ifndef SINK_SINK_H
#define SINK_SINK_H

#include <stdatomic.h>

#include "base/cancel.h"
#include "config/config.h"
#include "model/batch.h"

typedef struct Sink Sink;

/* What a value that is read back (unchanged TOAST) is taken to need until one was: a piece of an
 * epoch is cut by it, because an update that leaves such a value alone is only a few bytes in the
 * stream. */
enum { PATCH_BYTES_UNKNOWN = 64 << 10 };

enum { REJECTS_UNKNOWN = -1 };

/* What a commit brought to a table. Without a TRUNCATE its rows changed by rows - deletes. */
typedef struct SinkCommitted {
    int64_t rows;    /* written; an update writes one and deletes one */
    int64_t deletes; /* rows that are gone, the written ones among them */
    int64_t files;   /* of rows */
} SinkCommitted;

/* What everybody may know about a table of a sink; a sink's own struct embeds it first. */
typedef struct SinkTable {
    const TableSchema *schema; /* with the sink's field ids; holds a reference */
    const TableSchema *source; /* the source's shape that it fits (reference); NULL: the lake has
                                  another shape, schema tells it as well as it can */
    Position position;         /* of the last commit; POSITION_NONE: the copy is not complete */
    int64_t rows;              /* live rows, as of the last commit */
    int64_t last_commit_us;    /* since 1970, 0: never */
    SinkCommitted committed;   /* with the last commit of this process */
    int64_t rejects;           /* values that the lake has recorded; or REJECTS_UNKNOWN */
    Position replay_from;  /* of a hidden table: the oldest moment that rows of its copy are of */
    Position hidden_until; /* and the newest. POSITION_NONE: it is not hidden */
    atomic_llong patch_bytes; /* memory of a value read back, on average; 0: none was. Any thread */
    char *lake_name;          /* "public.orders" */
    bool may_miss;            /* the user's wish: not all rows of the source are in the lake */
} SinkTable;

/* Where the rows of a bulk load come from. Embed it as the first member. *out_batch is sealed, not
 * folded, and valid until the next call; NULL ends the load. */
typedef struct BulkSource BulkSource;

struct BulkSource {
    bool (*next)(BulkSource *source, Batch **out_batch, Error *err);
    int load; /* number of the load, for BulkDone */
};

/* Loads of a table that are complete, all of one moment. */
typedef struct BulkDone {
    Position position;
    size_t count;
    const int *loads; /* ascending */
} BulkDone;

/* The rows of such loads, durable in the lake and visible to nobody. The texts are the sink's own:
 * kept as they are, and given back to resume(). */
typedef struct SinkLoaded {
    Position position;
    int64_t rows;
    const char *files;
    const char *rejects;
    const char *shape;
    const char *widths;
} SinkLoaded;

typedef struct SinkResume {
    const TableSchema *schema;
    size_t count;
    const SinkLoaded *loaded;
} SinkResume;

typedef struct SinkOptions {
    const Config *config; /* resolved: pipeline and state are set */
    const char *database; /* the source's, for names */
    Cancel *cancel;
} SinkOptions;

typedef struct SinkAttach {
    const TableSchema *schema;
    /* The names that the table had in the source when it was taken in: they name it in the lake.
     * STR_NULL: those of the schema. */
    Str schema_name;
    Str table_name;
    bool replace; /* sink_replace() follows: what the lake has need not be whole */
    bool resume;  /* sink_resume() follows: what it needs is kept */
} SinkAttach;

typedef struct SinkOps {
    const char *name;
    bool (*open)(const SinkOptions *options, Sink **out_sink, Error *err);
    bool (*attach)(Sink *sink, const SinkAttach *attach, SinkTable **out_table, Error *err);
    bool (*evolve)(Sink *sink, SinkTable *table, const TableSchema *schema, Error *err);
    bool (*replace)(Sink *sink, SinkTable *table, const TableSchema *schema, Error *err);
    bool (*write)(Sink *sink, SinkTable *table, Batch *batch, Error *err);
    bool (*commit)(Sink *sink, SinkTable *table, Position position, int64_t commit_time_us,
                   Error *err);
    bool (*abandon)(Sink *sink, SinkTable *table, Error *err);
    bool (*record)(Sink *sink, SinkTable *table, Batch *batch, Error *err);
    bool (*bulk_load)(Sink *sink, SinkTable *table, BulkSource *source, Error *err);
    bool (*bulk_commit)(Sink *sink, SinkTable *table, Position position, Error *err);
    bool (*bulk_record)(Sink *sink, SinkTable *table, const BulkDone *done, Arena *arena,
                        SinkLoaded *out_loaded, Error *err);
    bool (*resume)(Sink *sink, SinkTable *table, const SinkResume *resume, Error *err);
    bool (*state_load)(Sink *sink, Buf *out, bool *out_found, Error *err);
    bool (*state_swap)(Sink *sink, Str state, Error *err);
    void (*close)(Sink *sink);
} SinkOps;

struct Sink {
    const SinkOps *ops;
};

bool sink_open(const SinkOptions *options, Sink **out_sink, Error *err) WARN_UNUSED;
void sink_close(Sink *sink); /* NULL is fine; frees the tables too */

/* Make or find the table. The sink owns *out_table. ERR_INPUT: the lake table is somebody else's.
 * Another shape than the source's is no error: see SinkTable.source, sink_evolve(). */
bool sink_attach(Sink *sink, const SinkAttach *attach, SinkTable **out_table,
                 Error *err) WARN_UNUSED;
/* What is written from now on has this shape; visible with the next commit, together with what was
 * written before in the old one. ERR_COPY: the lake's rows cannot take it. Does nothing when the
 * table has it already. */
bool sink_evolve(Sink *sink, SinkTable *table, const TableSchema *schema, Error *err) WARN_UNUSED;
/* All rows are about to be bulk-loaded anew, in this shape: bulk_commit() replaces what the table
 * had, and until then it stays visible. abandon() takes it back. */
bool sink_replace(Sink *sink, SinkTable *table, const TableSchema *schema, Error *err) WARN_UNUSED;
/* The same, but rows that were loaded and recorded before count, as if they were loaded now. With
 * none it is sink_replace(). ERR_COPY: they do not fit the table any more, or are gone. */
bool sink_resume(Sink *sink, SinkTable *table, const SinkResume *resume, Error *err) WARN_UNUSED;
bool sink_write(Sink *sink, SinkTable *table, Batch *batch, Error *err) WARN_UNUSED;
/* Make what the table was sent visible. Without anything written it does nothing. */
bool sink_commit(Sink *sink, SinkTable *table, Position position, int64_t commit_time_us,
                 Error *err) WARN_UNUSED;
bool sink_abandon(Sink *sink, SinkTable *table_or_null, Error *err) WARN_UNUSED;
/* Only the rejects of the batch, which it has no more afterwards; also after they were written. */
bool sink_record(Sink *sink, SinkTable *table, Batch *batch, Error *err) WARN_UNUSED;
bool sink_bulk_load(Sink *sink, SinkTable *table, BulkSource *source, Error *err) WARN_UNUSED;
bool sink_bulk_commit(Sink *sink, SinkTable *table, Position position, Error *err) WARN_UNUSED;
/* Other loads of the table may run meanwhile. The texts of *out_loaded live in the arena. */
bool sink_bulk_record(Sink *sink, SinkTable *table, const BulkDone *done, Arena *arena,
                      SinkLoaded *out_loaded, Error *err) WARN_UNUSED;

/* The pipeline's state object (JSON), by compare-and-swap on what state_load or the last swap saw;
 * ERR_CONFLICT: another process wrote it meanwhile. */
bool sink_state_load(Sink *sink, Buf *out, bool *out_found, Error *err) WARN_UNUSED;
bool sink_state_swap(Sink *sink, Str state, Error *err) WARN_UNUSED;

#endif
