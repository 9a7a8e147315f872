/* table.h - a table on its way from the source to the lake, and the Epoch of all of them.
 *
 *      waiting -> copying -> streaming
 *         \          \           \
 *          +----------+-----------+--> parked (reason in `error`; its position holds)
 *
 * A table whose copy was interrupted streams before it is shown, until its rows are all of one
 * moment (pipe_table_is_hidden()).
 *
 * A table whose rows must be copied again goes from streaming (or parked) to waiting; the lake
 * shows its old rows until the copy is complete.
 *
 * Who owns what: the reader thread fills batches, follows the shape of the stream (`reading`, never
 * `schema`) and moves `done`; the main thread owns everything else. `state` is read by both. Tables
 * join and leave only while no reader runs. */
#ifndef PIPELINE_TABLE_H
#define PIPELINE_TABLE_H

#include <stdatomic.h>

#include "batch/fold.h"
#include "decode/pgoutput.h"
#include "sink/sink.h"

typedef enum TableState {
    TABLE_WAITING, /* taken in, not copied yet */
    TABLE_COPYING,
    TABLE_STREAMING,
    TABLE_PARKED,
} TableState;

const char *table_state_name(TableState state); /* as in status --json */

typedef struct PipeTable {
    const TableSchema *schema; /* of what was committed last; holds a reference */
    SinkTable *sink_table;     /* NULL: could not be attached (parked) */
    const TableSchema *due;    /* what the catalog said last; holds a reference */
    Position due_from;         /* it was read after this */
    Position due_at;           /* the stream has to be here to know that it holds */
    Position ahead;            /* the stream committed it up to here: queries see as much of all */
    Position copied_from;      /* oldest snapshot of a recorded copy: the slot stays here */
    Position hold;             /* parked before it could be attached: the slot stays here */
    int64_t away_since_ms;     /* parked because the lake did not take it, for now; 0: not so */
    char *error;               /* main thread; why it is parked */
    char *note; /* main thread; what status says of it when it is not parked, or NULL */
    _Atomic TableState state;
    int away_times;       /* in a row */
    bool copy_again;      /* its rows are to be replaced by a new copy */
    bool begin_anew;      /* and nothing of one that was interrupted is of use */
    bool gap;             /* changes of it are missing: only a new copy mends it */
    bool barred;          /* parked because of what the source says: until it says otherwise */
    bool dropped;         /* gone from the source; what the stream still has of it arrives */
    bool inserts_replace; /* a key declared by the user: inserts may meet rows */

    /* reader thread */
    const TableSchema *reading; /* as of the stream; holds a reference */
    Position done;              /* transactions at or before it are in the lake */
    Position replay_until; /* inserts of transactions at or before it may meet rows of the copy */
    Arena *relation_arena;
    Message *relation; /* the last one of this session, in relation_arena; NULL: none yet */
    Batch *filling;
    int *column_map; /* datum of the Relation message -> column of schema, or -1 */
    int column_map_count;
    int misfits; /* Relation messages in a row that a new copy was wanted for, without a change */
    bool members_checked; /* of composite types, in this session */
    bool mapped;          /* column_map fits `relation` */

    /* copy progress, any thread */
    atomic_llong copied_rows;
    atomic_llong copied_bytes;
    int64_t pages; /* of the source table */
    atomic_int tasks_total;
    atomic_int tasks_done;
} PipeTable;

/* Why a table is parked that would go on with on_reject: record. */
#define PARKED_BY_REJECT                                                                           \
    "a value does not fit its column, and on_reject is park\n"                                     \
    "hint: see the log; change the column, or set on_reject: record"

PipeTable *pipe_table_new(const TableSchema *schema);
void pipe_table_free(PipeTable *table); /* NULL is fine */
/* The table stops here; `reason` is an error message. Main thread. */
void pipe_table_park(PipeTable *table, const char *reason);
/* What parked it is over; the caller says what it is now. Main thread. */
void pipe_table_unpark(PipeTable *table);
/* The reader gives the table up, with a ParkNote to follow; false when the main thread took it out
 * of the stream meanwhile: that stands. Reader thread. */
bool pipe_table_leave(PipeTable *table);
/* The table waits for a new copy of its rows, which will replace those of the lake. Main thread. */
void pipe_table_copy_again(PipeTable *table, const char *reason);
/* Its rows in the lake are not all there, or are to be replaced. */
bool pipe_table_needs_copy(const PipeTable *table);
/* Its rows are in the lake, of several moments: shown when the stream has brought them to one. */
bool pipe_table_is_hidden(const PipeTable *table);
/* schema := the shape. Main thread. */
void pipe_table_set_schema(PipeTable *table, const TableSchema *schema);
/* The catalog has this shape as of the position; NULL: not known. Main thread. */
void pipe_table_set_due(PipeTable *table, const TableSchema *now, Position at);
/* Something to say of it that does not stop it; NULL: nothing (any more). Main thread. */
void pipe_table_note(PipeTable *table, const char *note);

/* The changes of one table, under one schema, in an epoch. In the order of the stream. */
typedef struct EpochPart {
    PipeTable *table;
    Batch *batch; /* owned by the epoch */
} EpochPart;

/* The changes of all tables between two positions, cut at a transaction end: the unit of commit. A
 * transaction (or an epoch) that outgrows the memory comes in several pieces, of which only the
 * last is final: the others are written to data files that no snapshot names yet. */
typedef struct Epoch {
    Buf parts; /* EpochPart, one per table touched, more when its shape changed */
    bool final;
    Position position;      /* final: end LSN of its last commit record */
    int64_t commit_time_us; /* of that commit */
    int64_t changes;
    size_t bytes;
    /* Tables that the reader had to give up, dealt with by the main thread when it sees the epoch.
     */
    Buf parked; /* ParkNote */
} Epoch;

typedef struct ParkNote {
    PipeTable *table;
    bool copy_again; /* not parked: its rows have to be copied again */
    char *reason;    /* owned */
} ParkNote;

/* False when the main thread decided otherwise before it saw the note. Main thread. */
bool park_note_stands(const ParkNote *note);

Epoch *epoch_new(void);
void epoch_free(Epoch *epoch); /* NULL is fine */
bool epoch_is_empty(const Epoch *epoch);

#endif
