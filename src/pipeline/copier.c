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
 * the coordinator's connection, or the process ends, a later copy goes on under a newer one with
 * the tasks that were not recorded, see resume.c. What cannot be gone on with begins again: among
 * others, alone, a table that was rewritten since the snapshot, which would see it empty. */
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
    RECORD_MS = 5000,
    RECORD_SHARE = 32, /* of the time that the copy took is lost at most, or RECORD_MS */
};

typedef struct CopyTable CopyTable;

/* What a worker tells the main thread. */
typedef struct Finished {
    CopyTable *copy; /* NULL: the coordinator ended */
    Error error;     /* kind ERR_NONE: all tasks of the table are done */
    Batch *refused;  /* owned, may be NULL: with the values that are why it was refused */
} Finished;

/* A table under this copy. */
struct CopyTable {
    PipeTable *table;
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
    Position frozen;
    PgConn *conn;          /* holds the snapshot */
    SlotSnapshot snapshot; /* valid once the first Finished came */
    size_t count;
    CopyTable *tables;
    SourceTables source;
    Buf done_before; /* CopyRange: of all tables, sorted */
    CopyPlan plan;
    atomic_bool *done; /* per task */
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

static void
finished_free(Finished *finished)
{
    batch_free(finished->refused);
    free(finished);
}

static void
put_finished(Copier *copier, Finished *finished)
{
    if (!queue_put(copier->finished, finished))
        finished_free(finished);
}

static void
tell(Copier *copier, CopyTable *copy, const Error *error)
{
    Finished *finished = xcalloc(1, sizeof *finished);

    finished->copy = copy;
    if (error != NULL)
        finished->error = *error;
    put_finished(copier, finished);
}

/* --- workers --------------------------------------------------------------------------------- */

/* One task as the source of a bulk load. */
typedef struct TaskSource {
    BulkSource source;
    Copier *copier;
    const CopyTable *copy;
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
    if (atomic_load(&from->copier->quit) || atomic_load(&from->copy->failed))
        return FAIL(err, ERR_CANCELED, "the copy ends");
    TRY(FAULT("copy.batch", err));
    batch_reset(from->batch);
    TRY(copy_reader_fill(from->reader, from->batch, &from->ended, err));
    *out_batch = from->batch;
    return true;
}

/* The table cannot be copied. The first to find out says why, with the batch where it was. */
static void
refuse(CopyTable *copy, Batch *batch, const Error *err)
{
    if (atomic_exchange(&copy->refused, true)) {
        batch_free(batch);
        return;
    }
    copy->failure = xcalloc(1, sizeof *copy->failure);
    *copy->failure = (Finished){.copy = copy, .error = *err, .refused = batch};
    atomic_store(&copy->failed, true);
}

static bool
run_task(Copier *copier, PgConn *conn, const CopyTask *task, CopyTable *copy, Error *err)
{
    PipeTable *table = copy->table;
    TaskSource source = {
        .source = {.next = next_task_batch, .load = (int) (task - copier->plan.tasks)},
        .copier = copier,
        .copy = copy};
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
    if (!done)
        atomic_fetch_sub(&table->copied_rows, rows);
    if (!done && err->kind == ERR_INPUT)
        refuse(copy, source.batch, err);
    else
        batch_free(source.batch);
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

/* The main thread may do what it wants with the table once it knows of the failure (`resync` loads
 * it anew), so it is told by the last worker that leaves. */
static void
leave_table(Copier *copier, CopyTable *copy)
{
    if (atomic_fetch_sub(&copy->working, 1) == 1 && atomic_load(&copy->failed) &&
        !atomic_exchange(&copy->told, true))
        put_finished(copier, copy->failure);
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
            atomic_store(&copier->done[task - copier->plan.tasks], true);
            atomic_fetch_add(&copy->table->tasks_done, 1);
            if (atomic_fetch_sub(&copy->left, 1) == 1)
                tell(copier, copy, NULL);
            return true;
        }
        pg_close(*conn);
        *conn = NULL;
        /* a refusal, or a relation that the snapshot cannot read any more, concerns the table */
        if (joined && (err->kind == ERR_INPUT || err->kind == ERR_CONFLICT)) {
            refuse(copy, NULL, err);
            return true;
        }
        if (atomic_load(&copy->failed))
            return true;
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
        CopyTable *copy = table_of_task(copier, task);

        atomic_fetch_add(&copy->working, 1);

        bool goes_on = work_at(copier, conn, task, copy, err);

        leave_table(copier, copy);
        TRY(goes_on);
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

/* The same table as before the copy, or as before its first part. */
static bool
is_unchanged(const CopyTable *copy, const SourceTable *now)
{
    const ResumeProgress *before = &copy->before;

    return now != NULL && now->schema != NULL && same_columns(now->schema, copy->table->schema) &&
           (before->newest == POSITION_NONE ||
            (now->files_mark == before->files_mark && now->columns_mark == before->columns_mark));
}

static int64_t
range_bytes(const Copier *copier, int64_t pages)
{
    int64_t bytes = pages * 8192 / (copier->pl->config->copy_workers * 2);

    bytes = bytes > RANGE_BYTES_MAX   ? RANGE_BYTES_MAX
            : bytes < RANGE_BYTES_MIN ? RANGE_BYTES_MIN
                                      : bytes;
    return LIMIT("copy.range_bytes", bytes);
}

/* Under the snapshot already: what is not rewritten now was not when it was taken. */
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

        if (!is_unchanged(copy, table))
            return FAIL(err, ERR_TRANSIENT,
                        "table %s changed its shape, or is gone, while it was to be copied",
                        copy->table->schema->qualified);
        tables[count++] = table;
        pages += table->pages;
    }

    CopyWant want = {
        .tables = tables,
        .count = count,
        .range_bytes = range_bytes(copier, pages),
        .done = (const CopyRange *) (void *) copier->done_before.ptr,
        .done_count = (int) BUF_COUNT(&copier->done_before, CopyRange),
    };

    return source_copy_plan(conn, copier->arena, &want, &copier->plan, err);
}

static void
count_tasks(Copier *copier)
{
    copier->done = ARENA_ARRAY(copier->arena, atomic_bool, (size_t) copier->plan.count);
    for (int i = 0; i < copier->plan.count; i++) {
        CopyTable *copy = table_of_task(copier, &copier->plan.tasks[i]);

        if (copy->task_count++ == 0)
            copy->first_task = i;
        atomic_fetch_add(&copy->left, 1);
        atomic_fetch_add(&copy->table->tasks_total, 1);
    }
    for (size_t i = 0; i < copier->count; i++)
        if (atomic_load(&copier->tables[i].left) == 0 && !atomic_load(&copier->tables[i].failed))
            tell(copier, &copier->tables[i], NULL); /* no partitions, or nothing is left */
    atomic_store(&copier->planned, true);
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

static void
add_table(Copier *copier, PipeTable *table)
{
    CopyTable *copy = &copier->tables[copier->count++];

    copy->table = table;
    copy->before = resume_progress(copier->pl, table);
    resume_ranges(copier->pl, table, &copier->done_before);
    atomic_store(&table->state, TABLE_COPYING);
    atomic_store(&table->copied_rows, copy->before.rows);
    atomic_store(&table->tasks_done, copy->before.tasks);
    atomic_store(&table->tasks_total, copy->before.tasks);
}

static void
sort_done_before(Copier *copier)
{
    Buf *done = &copier->done_before;
    int count =
        copy_ranges_join((CopyRange *) (void *) done->ptr, (int) BUF_COUNT(done, CopyRange));

    done->len = (size_t) count * sizeof(CopyRange);
}

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
    copier->started_ms = copier->progress_ms = copier->recorded_ms = clock_ms();
    copier->conn = pl->snapshot_conn;
    copier->snapshot = pl->snapshot;
    pl->snapshot_conn = NULL;
    copier->tables = xcalloc(pl->table_count, sizeof *copier->tables);
    for (size_t i = 0; i < pl->table_count; i++) {
        PipeTable *table = pl->tables[i];

        if (atomic_load(&table->state) != TABLE_WAITING)
            continue;
        add_table(copier, table);
    }
    sort_done_before(copier);
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
 * rows of the columns are not those from before the copy, values may be in wrong columns, and under
 * other labels. */
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
    *out_same = source == NULL || known == NULL ||
                (source->columns_mark == known->columns_mark &&
                 words_changed(known->words, source) == NULL);
    return true;
}

/* Its rows are not all copied. */
static bool
is_on_its_way(const PipeTable *table)
{
    return atomic_load(&table->state) == TABLE_COPYING && pipe_table_needs_copy(table) &&
           !pipe_table_is_hidden(table);
}

/* What of the table is done under this snapshot; *out_any: more than was recorded already. */
static bool
record_table(Pipeline *pl, CopyTable *copy, bool *out_any, Error *err)
{
    Copier *copier = pl->copier;
    AUTO_BUF Buf loads = {0};
    AUTO_BUF Buf ranges = {0};

    *out_any = false;
    for (int i = copy->first_task; i < copy->first_task + copy->task_count; i++) {
        const CopyTask *task = &copier->plan.tasks[i];
        CopyRange range = {task->relid, task->first_page, task->end_page};

        if (!atomic_load(&copier->done[i]))
            continue;
        BUF_PUSH(&loads, int, i);
        BUF_PUSH(&ranges, CopyRange, range);
    }
    if ((int) BUF_COUNT(&loads, int) == copy->recorded)
        return true;
    TRY(FAULT("copy.record", err));

    ResumeDone done = {.position = copier->snapshot.position, .loads = &loads, .ranges = &ranges};

    copy->recorded = (int) BUF_COUNT(&loads, int);
    *out_any = true;
    return resume_record(pl, copy->table, &done, err);
}

/* Tables that are on their way. What cannot be recorded now is the next time. */
static bool
record(Pipeline *pl, Error *err)
{
    Copier *copier = pl->copier;
    bool any = false;

    for (size_t i = 0; atomic_load(&copier->planned) && i < copier->count; i++) {
        CopyTable *copy = &copier->tables[i];
        bool recorded;

        if (!is_on_its_way(copy->table) || atomic_load(&copy->failed))
            continue;
        if (!record_table(pl, copy, &recorded, err)) {
            copy->recorded = 0;
            log_warn("the progress of a copy cannot be recorded",
                     LOG_STR("table", copy->table->schema->qualified), LOG_STR("error", err->msg));
        }
        any |= recorded;
    }
    copier->recorded_ms = clock_ms();
    return !any || pipeline_write_state(pl, err);
}

static bool
record_when_due(Pipeline *pl, Error *err)
{
    const Copier *copier = pl->copier;
    int64_t now = clock_ms();
    int64_t pause = (now - copier->started_ms) / RECORD_SHARE;

    if (pause < LIMIT("copy.record_ms", RECORD_MS))
        pause = LIMIT("copy.record_ms", RECORD_MS);
    return now - copier->recorded_ms < pause || record(pl, err);
}

/* A table with rows from before is not shown yet: if the process dies until then, all of it has to
 * be known. */
static bool
record_whole(Pipeline *pl, CopyTable *copy, Error *err)
{
    Retry retry = retry_begin(pl->cancel, pl->stop, pl->options->once ? COMMIT_ONCE_MS : 0);
    bool any;

    if (copy->before.newest == POSITION_NONE)
        return true;
    while (!record_table(pl, copy, &any, err)) {
        copy->recorded = 0;
        if (!retry_again(&retry, "the progress of a copy cannot be recorded", err))
            return false;
    }
    return !any || pipeline_write_state(pl, err);
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
        if (!status_retry(pl, &retry, "cannot commit", err))
            return false;
    }
    if (pl->options->once && position > pl->stop_at)
        pl->stop_at = position; /* all tables have to get there for its rows to be shown */
    if (pipe_table_is_hidden(table)) {
        log_info("copied, but for what changed meanwhile",
                 LOG_STR("table", table->schema->qualified),
                 LOG_STR("from", POSITION_TEXT(table->sink_table->replay_from)),
                 LOG_STR("to", POSITION_TEXT(position)));
        return true;
    }
    log_info("copied", LOG_STR("table", table->schema->qualified),
             LOG_INT("rows", table->sink_table->rows),
             LOG_STR("position", POSITION_TEXT(position)));
    if (table->copy_again || table->copied_from != POSITION_NONE) {
        table->copy_again = false;
        resume_shown(pl, table);
        TRY(pipeline_write_state(pl, err));
    }
    child_tell(pl);
    return true;
}

/* The newest one that has rows of the table. */
static Position
last_snapshot(const Copier *copier, const CopyTable *copy)
{
    return copy->task_count == 0 && copy->before.newest != POSITION_NONE
               ? copy->before.newest
               : copier->snapshot.position;
}

/* The connection for it was idle all the while, and may have been cut. */
static bool
ask_for_columns(Pipeline *pl, const PipeTable *table, bool *out_same, Error *err)
{
    Retry retry = retry_begin(pl->cancel, pl->stop, pl->options->once ? COMMIT_ONCE_MS : 0);

    while (!columns_stood_still(pl, table, out_same, err)) {
        pg_close(pl->conn);
        pl->conn = NULL;
        if (!retry_again(&retry, "cannot look at a table that was copied", err))
            return false;
    }
    return true;
}

static bool
end_table(Pipeline *pl, CopyTable *copy, Error *err)
{
    PipeTable *table = copy->table;
    bool same;

    TRY(ask_for_columns(pl, table, &same, err));
    if (same) {
        TRY(record_whole(pl, copy, err));
        return commit_copy(pl, table, last_snapshot(pl->copier, copy), err);
    }
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

        if (is_on_its_way(table))
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
        return end_table(pl, finished->copy, err);
    if (finished->error.kind == ERR_CONFLICT) /* it waits, for the next copy: release_tables() */
        log_warn("a table is copied again, under a newer snapshot",
                 LOG_STR("table", finished->copy->table->schema->qualified),
                 LOG_STR("error", finished->error.msg));
    else
        pipe_table_park(finished->copy->table, finished->error.msg);
    return finished->refused == NULL ||
           writer_record(pl, finished->copy->table, finished->refused, err);
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

        finished_free(finished);
        TRY(taken);
    }
    TRY(record_when_due(pl, err));
    *out_done = copier->ended;
    return true;
}

/* What is not complete waits again; of it, what is recorded is left. */
static void
release_tables(Pipeline *pl, Copier *copier)
{
    for (size_t i = 0; i < copier->count; i++) {
        PipeTable *table = copier->tables[i].table;
        Error err;

        if (!is_on_its_way(table))
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
    Error err;

    if (copier == NULL)
        return;
    atomic_store(&copier->quit, true);
    cancel_set(copier->cancel);
    queue_close(copier->finished);
    pthread_join(copier->coordinator, NULL);
    for (Finished *finished = queue_take(copier->finished); finished != NULL;
         finished = queue_take(copier->finished))
        finished_free(finished);
    queue_free(copier->finished);
    if (!record(pl, &err))
        log_debug("the progress of the copy is not in the state", LOG_STR("error", err.msg));
    release_tables(pl, copier);
    pg_close(copier->conn);
    source_tables_done(&copier->source);
    cancel_free(copier->cancel);
    buf_done(&copier->done_before);
    arena_free(copier->arena);
    free(copier->tables);
    free(copier);
    pl->copier = NULL;
}
