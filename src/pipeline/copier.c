/* copier.c - the initial copy: waiting tables under one snapshot, by several workers.
 *
 *     coordinator thread   snapshot, plan of tasks, workers, end
 *     worker threads       one connection each: task -> COPY -> batches -> data files
 *     main thread          commits each table whose tasks are all done, at the snapshot's position
 *
 * The first copy reads under the snapshot that the slot exported when it was made; later ones (new
 * tables, a copy that was interrupted) make a temporary slot for theirs. A table starts to stream
 * exactly where its snapshot was, so what the slot is told is held until it does.
 *
 * While the snapshot lives, a task that broke off (its connection was lost, the store is away) is
 * repeated for as long as it takes: a load counts only as a whole. When the snapshot is lost with
 * the coordinator's connection, what is not complete begins again under a newer one. So does,
 * alone, a table that was rewritten since the snapshot, which would see it empty. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/queue.h"
#include "pipeline/internal.h"
#include "pipeline/retry.h"
#include "source/copy.h"

enum {
    BATCH_ROWS = 8192,
    BATCH_BYTES = 4 << 20,
    RANGE_BYTES_MAX = 1 << 30,
    RANGE_BYTES_MIN = 32 << 20,
    PROGRESS_MS = 10000,
    PROGRESS_TERMINAL_MS = 2000,
    COMMIT_ONCE_MS = 120000,
    TASK_ONCE_MS = 120000,
};

/* A table under this copy. */
typedef struct CopyTable {
    PipeTable *table;
    atomic_int left; /* tasks */
    atomic_bool failed;
} CopyTable;

/* What a worker tells the main thread. */
typedef struct Finished {
    CopyTable *copy; /* NULL: the coordinator ended */
    Error error;     /* kind ERR_NONE: all tasks of the table are done */
} Finished;

struct Copier {
    Pipeline *pl;   /* only its config, cancel token and sink are used by the threads */
    Arena *arena;   /* the coordinator's, until it ended */
    Cancel *cancel; /* of the threads' connections */
    Position frozen;
    PgConn *conn;          /* holds the snapshot */
    SlotSnapshot snapshot; /* valid once the first Finished came */
    size_t count;
    CopyTable *tables;
    SourceTables source;
    CopyPlan plan;
    atomic_int next_task;
    atomic_bool quit;
    Queue *finished;
    pthread_t coordinator;
    bool ended;
    int64_t started_ms;
    int64_t progress_ms;
};

static void
tell(Copier *copier, CopyTable *copy, const Error *error)
{
    Finished *finished = xcalloc(1, sizeof *finished);

    finished->copy = copy;
    if (error != NULL)
        finished->error = *error;
    if (!queue_put(copier->finished, finished))
        free(finished);
}

/* --- workers --------------------------------------------------------------------------------- */

/* One task as the source of a bulk load. */
typedef struct TaskSource {
    BulkSource source;
    Copier *copier;
    CopyReader *reader;
    Batch *batch;
    bool ended;
} TaskSource;

static bool
next_task_batch(BulkSource *source, Batch **out_batch, Error *err)
{
    TaskSource *from = (TaskSource *) (void *) source;

    *out_batch = NULL;
    if (from->ended)
        return true;
    if (atomic_load(&from->copier->quit))
        return FAIL(err, ERR_CANCELED, "the copy ends");
    TRY(FAULT("copy.batch", err));
    batch_reset(from->batch);
    TRY(copy_reader_fill(from->reader, from->batch, &from->ended, err));
    *out_batch = from->batch;
    return true;
}

static bool
run_task(Copier *copier, PgConn *conn, const CopyTask *task, CopyTable *copy, Error *err)
{
    PipeTable *table = copy->table;
    TaskSource source = {.source = {.next = next_task_batch}, .copier = copier};
    CopyRun run = {
        .batch_rows = BATCH_ROWS,
        .batch_bytes = BATCH_BYTES,
        .origin = {.position = copier->snapshot.position},
        .progress = &table->copied_rows,
    };

    TRY(copy_reader_open(conn, task, &run, &source.reader, err));
    source.batch = batch_new(table->schema, false);

    bool done = sink_bulk_load(copier->pl->sink, table->sink_table, &source.source, err);
    int64_t rows = copy_reader_rows(source.reader);

    copy_reader_close(source.reader);
    batch_free(source.batch);
    if (!done)
        atomic_fetch_sub(&table->copied_rows, rows);
    return done;
}

static CopyTable *
table_of_task(Copier *copier, const CopyTask *task)
{
    for (size_t i = 0; i < copier->count; i++)
        if (copier->tables[i].table->schema->relid == task->table->relid)
            return &copier->tables[i];
    abort(); /* the plan has tasks of these tables only */
}

static void
note_failure(Copier *copier, CopyTable *copy, const Error *err)
{
    if (!atomic_exchange(&copy->failed, true))
        tell(copier, copy, err);
}

/* A connection of a worker, in a transaction under the snapshot. */
static bool
join_snapshot(Copier *copier, PgConn **conn, Error *err)
{
    PgConnect connect = {.conninfo = copier->pl->config->source_postgres,
                         .application_name = "walberg copy",
                         .cancel = copier->cancel};

    if (*conn != NULL)
        return true;
    TRY(pg_connect(&connect, conn, err));
    return source_copy_begin(*conn, copier->snapshot.snapshot, err);
}

/* A task until it is done; false when the copy as a whole cannot go on. After a failure the
 * connection is in the middle of something, or gone: the next attempt makes a new one. */
static bool
work_at(Copier *copier, PgConn **conn, const CopyTask *task, CopyTable *copy, Error *err)
{
    Retry retry =
        retry_begin(copier->cancel, &copier->quit, copier->pl->options->once ? TASK_ONCE_MS : 0);

    while (!atomic_load(&copy->failed)) {
        bool joined = join_snapshot(copier, conn, err);

        if (joined && run_task(copier, *conn, task, copy, err)) {
            atomic_fetch_add(&copy->table->tasks_done, 1);
            if (atomic_fetch_sub(&copy->left, 1) == 1)
                tell(copier, copy, NULL);
            return true;
        }
        pg_close(*conn);
        *conn = NULL;
        /* a refusal, or a relation that the snapshot cannot read any more, concerns the table */
        if (joined && (err->kind == ERR_INPUT || err->kind == ERR_CONFLICT)) {
            note_failure(copier, copy, err);
            return true;
        }
        if (!retry_again(&retry, "a part of the copy is repeated", err))
            return false;
    }
    return true;
}

static bool
work(Copier *copier, PgConn **conn, Error *err)
{
    while (!atomic_load(&copier->quit)) {
        int i = atomic_fetch_add(&copier->next_task, 1);

        if (i >= copier->plan.count)
            break;

        const CopyTask *task = &copier->plan.tasks[i];

        TRY(work_at(copier, conn, task, table_of_task(copier, task), err));
    }
    if (*conn != NULL && !source_copy_end(*conn, err)) /* it only read, and all of it */
        log_debug("a worker's transaction did not end", LOG_STR("error", err->msg));
    return true;
}

static void *
worker_main(void *arg)
{
    Copier *copier = arg;
    AUTO_PG PgConn *conn = NULL;
    Error err = {0};

    if (!work(copier, &conn, &err)) {
        if (err.kind == ERR_CONFLICT) /* the snapshot is gone: a newer one will do */
            err.kind = ERR_TRANSIENT;
        atomic_store(&copier->quit, true);
        tell(copier, NULL, &err);
    }
    return NULL;
}

/* --- coordinator ----------------------------------------------------------------------------- */

static bool
open_snapshot(Copier *copier, Error *err)
{
    PgConnect connect = {.conninfo = copier->pl->config->source_postgres,
                         .replication = true,
                         .application_name = "walberg copy",
                         .cancel = copier->cancel};
    SlotCreate create = {.temporary = true};
    char name[37];

    if (copier->conn != NULL)
        return true; /* the slot's own */
    random_uuid(name);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '-')
            *c = '_';
    create.name = arena_printf(copier->arena, "walberg_copy_%s", name);
    TRY(FAULT("copy.snapshot", err));
    TRY(pg_connect(&connect, &copier->conn, err));
    return source_slot_create(copier->conn, copier->arena, &create, &copier->snapshot, err);
}

static bool
same_columns(const TableSchema *a, const TableSchema *b)
{
    bool same = a->column_count == b->column_count;

    for (int i = 0; i < a->column_count && same; i++)
        same = a->columns[i].attnum == b->columns[i].attnum &&
               str_eq(a->columns[i].field.name, b->columns[i].field.name) &&
               type_eq(a->columns[i].field.type, b->columns[i].field.type);
    return same;
}

static bool
plan(Copier *copier, Error *err)
{
    AUTO_PG PgConn *conn = NULL;
    const Config *config = copier->pl->config;
    PgConnect connect = {.conninfo = config->source_postgres,
                         .application_name = "walberg copy",
                         .cancel = copier->cancel};
    TablesRead read = {.config = config, .publication = config->source_publication};
    const SourceTable **tables = ARENA_ARRAY(copier->arena, const SourceTable *, copier->count);
    int64_t pages = 0;
    int count = 0;

    TRY(pg_connect(&connect, &conn, err));
    TRY(source_tables_load(conn, copier->arena, &read, &copier->source, err));
    for (size_t i = 0; i < copier->count; i++) {
        CopyTable *copy = &copier->tables[i];
        const SourceTable *table = source_tables_find(&copier->source, copy->table->schema->relid);

        if (table == NULL || table->schema == NULL ||
            !same_columns(table->schema, copy->table->schema)) {
            return FAIL(err, ERR_TRANSIENT,
                        "table %s changed its shape, or is gone, while it was to be copied",
                        copy->table->schema->qualified);
        }
        tables[count++] = table;
        pages += table->pages;
    }

    int64_t range = pages * 8192 / (config->copy_workers * 2);

    range = range > RANGE_BYTES_MAX   ? RANGE_BYTES_MAX
            : range < RANGE_BYTES_MIN ? RANGE_BYTES_MIN
                                      : range;
    return source_copy_plan(conn, copier->arena,
                            &(CopyWant){.tables = tables, .count = count, .range_bytes = range},
                            &copier->plan, err);
}

static void
count_tasks(Copier *copier)
{
    for (int i = 0; i < copier->plan.count; i++) {
        CopyTable *copy = table_of_task(copier, &copier->plan.tasks[i]);

        atomic_fetch_add(&copy->left, 1);
        atomic_fetch_add(&copy->table->tasks_total, 1);
    }
    for (size_t i = 0; i < copier->count; i++)
        if (atomic_load(&copier->tables[i].left) == 0 && !atomic_load(&copier->tables[i].failed))
            tell(copier, &copier->tables[i], NULL); /* a partitioned table without partitions */
}

static void *
coordinator_main(void *arg)
{
    Copier *copier = arg;
    Error err = {0};
    int64_t worker_count = copier->pl->config->copy_workers;
    pthread_t workers[64];

    if (!open_snapshot(copier, &err) || !plan(copier, &err)) {
        tell(copier, NULL, &err);
        return NULL;
    }
    count_tasks(copier);
    if (worker_count > copier->plan.count)
        worker_count = copier->plan.count;
    for (int64_t i = 0; i < worker_count; i++)
        if (pthread_create(&workers[i], NULL, worker_main, copier) != 0)
            abort();
    for (int64_t i = 0; i < worker_count; i++)
        pthread_join(workers[i], NULL);
    tell(copier, NULL, NULL);
    return NULL;
}

/* --- the main thread's side ------------------------------------------------------------------ */

bool
copier_start(Pipeline *pl, Error *err)
{
    if (!shapes_refresh(pl, err)) {
        pg_close(pl->conn); /* it may be why: the next attempt makes a new one */
        pl->conn = NULL;
        return false;
    }

    Copier *copier = xcalloc(1, sizeof *copier);

    copier->pl = pl;
    copier->arena = arena_new();
    copier->cancel = cancel_new();
    copier->frozen = pl->state.acknowledged;
    copier->finished = queue_new(4096);
    copier->started_ms = copier->progress_ms = clock_ms();
    copier->conn = pl->snapshot_conn;
    copier->snapshot = pl->snapshot;
    pl->snapshot_conn = NULL;
    copier->tables = xcalloc(pl->table_count, sizeof *copier->tables);
    for (size_t i = 0; i < pl->table_count; i++) {
        PipeTable *table = pl->tables[i];

        if (atomic_load(&table->state) != TABLE_WAITING)
            continue;
        atomic_store(&table->state, TABLE_COPYING);
        atomic_store(&table->copied_rows, 0);
        atomic_store(&table->tasks_done, 0);
        atomic_store(&table->tasks_total, 0);
        copier->tables[copier->count++].table = table;
    }
    log_info("copying", LOG_INT("tables", copier->count),
             LOG_INT("workers", pl->config->copy_workers));
    pl->copier = copier;
    if (pthread_create(&copier->coordinator, NULL, coordinator_main, copier) != 0)
        abort();
    return true;
}

Position
copier_position(const Pipeline *pl)
{
    return pl->copier == NULL ? POSITION_NONE : pl->copier->frozen;
}

/* COPY finds columns by the names of its own moment, and a rename rewrites nothing: if the catalog
 * rows of the columns are not those from before the copy, values may be in wrong columns. */
static bool
columns_stood_still(Pipeline *pl, const PipeTable *table, bool *out_same, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO(source_tables_done) SourceTables now = {0};
    TablesRead read = {.config = pl->config, .publication = pl->config->source_publication};
    const StateTable *known = tables_state(pl, table);
    const SourceTable *source;

    TRY(recover_connection(pl, err));
    TRY(source_table_by_oid(pl->conn, arena, &read, table->schema->relid, &now, err));
    source = source_tables_find(&now, table->schema->relid);
    *out_same = source == NULL || known == NULL || source->columns_mark == known->columns_mark;
    return true;
}

static bool
commit_copy(Pipeline *pl, PipeTable *table, Position position, Error *err)
{
    Retry retry = retry_begin(pl->cancel, pl->stop, pl->options->once ? COMMIT_ONCE_MS : 0);

    TRY(FAULT("copy.commit", err));
    while (!sink_bulk_commit(pl->sink, table->sink_table, position, err)) {
        if (err->kind == ERR_INPUT) {
            pipe_table_park(table, err->msg);
            return true;
        }
        if (!retry_again(&retry, "cannot commit", err))
            return false;
    }
    log_info("copied", LOG_STR("table", table->schema->qualified),
             LOG_INT("rows", table->sink_table->rows),
             LOG_STR("position", POSITION_TEXT(position)));
    if (pl->options->once && position > pl->stop_at)
        pl->stop_at = position; /* all tables have to get there for its rows to be shown */
    if (table->copy_again) {
        table->copy_again = false;
        TRY(pipeline_write_state(pl, err));
    }
    child_tell(pl);
    return true;
}

static bool
end_table(Pipeline *pl, PipeTable *table, Position position, Error *err)
{
    bool same;

    if (!columns_stood_still(pl, table, &same, err)) {
        pg_close(pl->conn);
        pl->conn = NULL;
        return false;
    }
    if (same)
        return commit_copy(pl, table, position, err);
    log_warn("a table is copied again, under a newer snapshot",
             LOG_STR("table", table->schema->qualified),
             LOG_STR("error", "its columns changed while it was copied"));
    return true; /* it waits: release_tables() */
}

/* The copy as a whole was refused (no free slot, a right is missing): its tables wait for a person,
 * those that stream go on. */
static void
park_unfinished(Copier *copier, const char *reason)
{
    for (size_t i = 0; i < copier->count; i++) {
        PipeTable *table = copier->tables[i].table;

        if (atomic_load(&table->state) == TABLE_COPYING && pipe_table_needs_copy(table))
            pipe_table_park(table, reason);
    }
}

static bool
take_finished(Pipeline *pl, const Finished *finished, Error *err)
{
    Copier *copier = pl->copier;

    if (finished->copy == NULL) {
        copier->ended = true;
        if (finished->error.kind == ERR_NONE || finished->error.kind == ERR_CANCELED)
            return true;
        *err = finished->error;
        if (err->kind != ERR_INPUT)
            return false;
        park_unfinished(copier, err->msg);
        return true;
    }
    if (finished->error.kind == ERR_NONE)
        return end_table(pl, finished->copy->table, copier->snapshot.position, err);
    if (finished->error.kind == ERR_CONFLICT) /* it waits, for the next copy: release_tables() */
        log_warn("a table is copied again, under a newer snapshot",
                 LOG_STR("table", finished->copy->table->schema->qualified),
                 LOG_STR("error", finished->error.msg));
    else
        pipe_table_park(finished->copy->table, finished->error.msg);
    return true;
}

static void
show_progress(Copier *copier)
{
    int64_t now = clock_ms();
    int64_t rows = 0;
    int done = 0;
    int total = 0;

    if (now - copier->progress_ms < (isatty(STDERR_FILENO) ? PROGRESS_TERMINAL_MS : PROGRESS_MS))
        return;
    copier->progress_ms = now;
    for (size_t i = 0; i < copier->count; i++) {
        rows += atomic_load(&copier->tables[i].table->copied_rows);
        done += atomic_load(&copier->tables[i].table->tasks_done);
        total += atomic_load(&copier->tables[i].table->tasks_total);
    }
    log_info("copying", LOG_INT("rows", rows), LOG_INT("tasks_done", done), LOG_INT("tasks", total),
             LOG_INT("rows_per_second", rows * 1000 / (now - copier->started_ms + 1)));
}

bool
copier_step(Pipeline *pl, int64_t ms, bool *out_done, Error *err)
{
    Copier *copier = pl->copier;
    bool timeout;
    Finished *finished = queue_take_for(copier->finished, ms, &timeout);

    show_progress(copier);
    if (finished != NULL) {
        bool taken = take_finished(pl, finished, err);

        free(finished);
        TRY(taken);
    }
    *out_done = copier->ended;
    return true;
}

/* What is not complete waits again, with nothing of it left. */
static void
release_tables(Pipeline *pl, Copier *copier)
{
    for (size_t i = 0; i < copier->count; i++) {
        PipeTable *table = copier->tables[i].table;
        Error err;

        if (atomic_load(&table->state) != TABLE_COPYING || !pipe_table_needs_copy(table))
            continue;
        atomic_store(&table->state, TABLE_WAITING);
        if (!sink_abandon(pl->sink, table->sink_table, &err))
            log_warn("cannot reload a table", LOG_STR("table", table->schema->qualified),
                     LOG_STR("error", err.msg)); /* it is tried again before the next copy */
    }
}

void
copier_free(Pipeline *pl)
{
    Copier *copier = pl->copier;

    if (copier == NULL)
        return;
    atomic_store(&copier->quit, true);
    cancel_set(copier->cancel);
    queue_close(copier->finished);
    pthread_join(copier->coordinator, NULL);
    for (Finished *finished = queue_take(copier->finished); finished != NULL;
         finished = queue_take(copier->finished))
        free(finished);
    queue_free(copier->finished);
    release_tables(pl, copier);
    pg_close(copier->conn);
    source_tables_done(&copier->source);
    cancel_free(copier->cancel);
    arena_free(copier->arena);
    free(copier->tables);
    free(copier);
    pl->copier = NULL;
}
