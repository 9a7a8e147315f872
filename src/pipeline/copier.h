/* copier.h - what the two halves of the initial copy share: copier.c, the main thread's, and
 * copier_work.c, its coordinator and workers. */
#ifndef PIPELINE_COPIER_H
#define PIPELINE_COPIER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/queue.h"
#include "pipeline/internal.h"
#include "source/copy.h"

typedef struct CopyTable CopyTable;

/* What a worker tells the main thread. */
typedef struct Finished {
    CopyTable *copy; /* NULL: the coordinator ended */
    Error error;     /* kind ERR_NONE: all tasks of the table are done */
    Batch *refused;  /* owned, may be NULL: with the values that are why it was refused */
    bool repeats;    /* the error does not end the table's copy: it comes again and again */
} Finished;

/* A table under this copy. */
struct CopyTable {
    PipeTable *table;
    uint32_t relid;        /* workers do not look at the schemas of others' tables */
    atomic_int left;       /* tasks */
    atomic_int working;    /* workers that are at it */
    atomic_bool refused;   /* a worker has the error and is about to say so: */
    atomic_bool failed;    /* no task of it begins any more, and those under way end */
    Finished *failure;     /* with failed; the queue owns it once told */
    atomic_bool told;      /* to the main thread */
    ResumeProgress before; /* what of it was copied under earlier snapshots */
    int first_task;        /* of its own ones, which stand together in the plan */
    int task_count;
    int recorded; /* of them; main thread */
};

struct Copier {
    Pipeline *pl;   /* only its config, cancel token and sink are used by the threads */
    Arena *arena;   /* the coordinator's, until it ended */
    Cancel *cancel; /* of the threads' connections */
    bool park_on_reject;
    Position frozen;
    PgConn *conn;          /* holds the snapshot */
    atomic_int waiting;    /* server process that makes the snapshot, or the plan; else 0 */
    SlotSnapshot snapshot; /* valid once the first Finished came */
    size_t count;
    CopyTable *tables;
    SourceTables source;
    Buf done_before; /* CopyRange: of all tables, sorted */
    CopyPlan plan;
    atomic_bool *done;   /* per task */
    atomic_int *opening; /* per task: the server process that is about to begin it, or 0 */
    atomic_bool planned;
    atomic_int next_task;
    atomic_bool quit;
    Queue *finished;
    pthread_t coordinator;
    bool ended;
    int64_t started_ms;
    int64_t progress_ms;
    int64_t recorded_ms;
};

void copier_finished_free(Finished *finished);
/* Any thread: the table cannot be copied. The first to find out says why, with the batch (owned by
 * this call, may be NULL) where it was; the main thread is told when the last worker has left. */
void copier_refuse(CopyTable *copy, Batch *batch, const Error *err);
/* The coordinator thread, of a Copier: it ends when its workers did, and says so in `finished`. */
void *copier_coordinate(void *arg);

#endif
