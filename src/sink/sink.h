/* sink.h - where batches go.
 *
 * A sink is a SinkOps table and a struct whose first member is Sink. Adding one means: write
 * sink/<name>/sink.c and add its line to sink_kinds[] in sink.c. Nothing else in the tree changes.
 *
 * Contract, checked by test/contract/sink.c against every sink:
 *   - attach() of a table makes it in the lake when it is missing, or compares it with what is
 *     there; the position it returns is that of the last commit, in any process, ever;
 *   - write() takes a sealed batch; it may be called several times before commit(), also with parts
 *     of one transaction; nothing is visible before commit();
 *   - commit(position) is all or nothing per table, and idempotent: after it returned true every
 *     table written to has at least that position, also in a new process. When it fails with
 *     ERR_TRANSIENT, calling commit() again with the same argument finishes the job;
 *   - abandon() drops what was written since the last commit;
 *   - bulk loads (the initial copy) may run on several threads, one SinkBulk per thread; their rows
 *     become visible with bulk_commit() of their table, together with the position;
 *   - all other calls come from one thread. */
#ifndef SINK_SINK_H
#define SINK_SINK_H

#include "base/cancel.h"
#include "config/config.h"
#include "model/batch.h"

typedef struct Sink Sink;
typedef struct SinkTable SinkTable;
typedef struct SinkBulk SinkBulk;

typedef struct SinkOps {
    const char *name;
    bool (*open)(const Config *config, Cancel *cancel, Sink **out_sink, Error *err);
    bool (*attach)(Sink *sink, const TableSchema *schema, SinkTable **out_table, Error *err);
    bool (*write)(Sink *sink, SinkTable *table, Batch *batch, Error *err);
    bool (*commit)(Sink *sink, Position position, int64_t commit_time_us, Error *err);
    void (*abandon)(Sink *sink);
    bool (*bulk_open)(Sink *sink, SinkTable *table, SinkBulk **out_bulk, Error *err);
    bool (*bulk_write)(SinkBulk *bulk, Batch *batch, Error *err);
    bool (*bulk_close)(SinkBulk *bulk, bool keep, Error *err);
    bool (*bulk_commit)(Sink *sink, SinkTable *table, Position position, Error *err);
    bool (*state_load)(Sink *sink, Buf *out, bool *out_found, Error *err);
    bool (*state_swap)(Sink *sink, Str state, bool *out_swapped, Error *err);
    void (*close)(Sink *sink);
} SinkOps;

struct Sink {
    const SinkOps *ops;
};

/* What everybody may know about a table of a sink; a sink's own struct embeds it first. */
struct SinkTable {
    const TableSchema *schema; /* with the sink's field ids; holds a reference */
    Position position;         /* of the last commit; POSITION_NONE: the copy is not complete */
    int64_t rows;              /* live rows, as of the last commit */
    int64_t last_commit_us;    /* since 1970, 0: never */
    const char *lake_name;     /* "public.orders" */
};

#endif
