/* table.h - a table on its way from the source to the lake, and the Epoch of all of them.
 *
 *      waiting -> copying -> streaming
 *         \          \           \
 *          +----------+-----------+--> parked (reason in `error`; its position holds)
 *
 * Who owns what: the reader thread fills batches and moves `done`; the main thread owns everything
 * else. `state` is read by both. Tables join and leave only while no reader runs. */
#ifndef PIPELINE_TABLE_H
#define PIPELINE_TABLE_H

#include <stdatomic.h>

#include "batch/fold.h"
#include "sink/sink.h"

typedef enum TableState {
    TABLE_WAITING, /* taken in, not copied yet */
    TABLE_COPYING,
    TABLE_STREAMING,
    TABLE_PARKED,
} TableState;

const char *table_state_name(TableState state); /* as in status --json */

typedef struct PipeTable {
    const TableSchema *schema; /* holds a reference */
    SinkTable *sink_table;     /* NULL: could not be attached (parked) */
    _Atomic TableState state;
    Position hold;        /* parked before it could be attached: the slot stays here */
    bool gap;             /* changes of it are missing: only a new copy mends it */
    char *error;          /* main thread; why it is parked */
    bool inserts_replace; /* a key declared by the user: inserts may meet rows */

    /* reader thread */
    Position done;   /* transactions at or before it are in the lake */
    int *column_map; /* datum of the Relation message -> column of schema, or -1 */
    int column_map_count;
    bool mapped; /* column_map fits the Relation message of this session */
    Batch *filling;

    /* copy progress, any thread */
    atomic_llong copied_rows;
    atomic_llong copied_bytes;
    int64_t pages; /* of the source table */
    atomic_int tasks_total;
    atomic_int tasks_done;
} PipeTable;

PipeTable *pipe_table_new(const TableSchema *schema);
void pipe_table_free(PipeTable *table); /* NULL is fine */
/* The table stops here; `reason` is an error message. Main thread. */
void pipe_table_park(PipeTable *table, const char *reason);

/* The changes of one table in an epoch. */
typedef struct EpochPart {
    PipeTable *table;
    Batch *batch; /* owned by the epoch */
} EpochPart;

/* The changes of all tables between two positions, cut at a transaction end: the unit of commit. A
 * transaction (or an epoch) that outgrows the memory comes in several pieces, of which only the
 * last is final: the others are written to data files that no snapshot names yet. */
typedef struct Epoch {
    Buf parts; /* EpochPart, one per table touched */
    bool final;
    Position position;      /* final: end LSN of its last commit record */
    int64_t commit_time_us; /* of that commit */
    int64_t changes;
    size_t bytes;
    /* A table that the reader had to give up, parked by the main thread when it sees the epoch. */
    Buf parked; /* ParkNote */
} Epoch;

typedef struct ParkNote {
    PipeTable *table;
    char *reason; /* owned */
} ParkNote;

Epoch *epoch_new(void);
void epoch_free(Epoch *epoch); /* NULL is fine */
bool epoch_is_empty(const Epoch *epoch);

#endif
