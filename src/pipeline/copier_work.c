/* copier_work.c - the initial copy's own threads: the coordinator has the snapshot and makes the
 * plan, the workers have a connection each and take one task after the other. What becomes of it
 * they tell the main thread through a queue. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "pipeline/copier.h"
#include "pipeline/retry.h"

enum {
    BATCH_ROWS = 8192,
    BATCH_BYTES = 4 << 20,
    RANGE_BYTES_MAX = 1 << 30,
    RANGE_BYTES_MIN = 32 << 20,
    TASK_ONCE_MS = 120000,
};

void
copier_finished_free(Finished *finished)
{
    batch_free(finished->refused);
    free(finished);
}

static void
put_finished(Copier *copier, Finished *finished)
{
    if (!queue_put(copier->finished, finished))
        copier_finished_free(finished);
}

static void
tell(Copier *copier, CopyTable *copy, const Error *error)
{
    Finished *finished = xcalloc(1, sizeof *finished);

    finished->copy = copy;
    if (error != NULL)
        finished->error = *error;
    finished->repeats = copy != NULL && error != NULL;
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
    if (from->copier->park_on_reject && from->batch->rejects.len > 0)
        return FAIL(err, ERR_INPUT, PARKED_BY_REJECT);
    *out_batch = from->batch;
    return true;
}

void
copier_refuse(CopyTable *copy, Batch *batch, const Error *err)
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

    atomic_store(&copier->opening[source.source.load], pg_backend_pid(conn)); /* it takes a lock */

    bool opened = copy_reader_open(conn, task, &run, &source.reader, err);

    atomic_store(&copier->opening[source.source.load], 0);
    TRY(opened);
    source.batch = batch_new(table->schema, false);
    batch_set_value_limit(source.batch, copier->pl->config->value_limit);

    bool done = sink_bulk_load(copier->pl->sink, table->sink_table, &source.source, err);
    int64_t rows = copy_reader_rows(source.reader);

    copy_reader_close(source.reader);
    if (!done)
        atomic_fetch_sub(&table->copied_rows, rows);
    if (!done && err->kind == ERR_INPUT)
        copier_refuse(copy, source.batch, err);
    else
        batch_free(source.batch);
    return done;
}

static CopyTable *
table_of_task(Copier *copier, const CopyTask *task)
{
    for (size_t i = 0; i < copier->count; i++)
        if (copier->tables[i].relid == task->table->relid)
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
                         .application_name = COPY_APPLICATION_NAME,
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
    int64_t failing_ms = 0; /* since when, though the source is there; 0: it does not */

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
            copier_refuse(copy, NULL, err);
            return true;
        }
        if (atomic_load(&copy->failed))
            return true;
        failing_ms = !joined ? 0 : failing_ms == 0 ? clock_ms() : failing_ms;
        if (failing_ms != 0 && !copier->pl->options->once &&
            clock_ms() - failing_ms >= writer_patience_ms())
            tell(copier, copy, err);
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
    atomic_store(&copier->waiting, pg_backend_pid(copier->conn));
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

/* Tables that were altered since the main thread looked wait for the next copy. */
static bool
choose_tables(Copier *copier, const SourceTable **tables, int *out_count, int64_t *out_pages,
              Error *err)
{
    *out_count = 0;
    *out_pages = 0;
    for (size_t i = 0; i < copier->count; i++) {
        CopyTable *copy = &copier->tables[i];
        const SourceTable *now = source_tables_find(&copier->source, copy->table->schema->relid);

        if (is_unchanged(copy, now)) {
            tables[(*out_count)++] = now;
            *out_pages += now->pages;
            continue;
        }
        (void) FAIL(err, ERR_CONFLICT, "it changed its shape, or is gone, before it was copied");
        copier_refuse(copy, NULL, err);
        atomic_store(&copy->told, true);
        put_finished(copier, copy->failure);
    }
    return *out_count > 0 || copier->count == 0 ||
           FAIL(err, ERR_TRANSIENT, "every table that was to be copied was altered meanwhile");
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
    atomic_store(&copier->waiting, pg_backend_pid(conn)); /* functions that tell sizes take locks */
    TRY(source_tables_load(conn, copier->arena, &read, &copier->source, err));
    TRY(choose_tables(copier, tables, &count, &pages, err));

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
    copier->opening = ARENA_ARRAY(copier->arena, atomic_int, (size_t) copier->plan.count);
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

void *
copier_coordinate(void *arg)
{
    Copier *copier = arg;
    Error err = {0};
    int64_t worker_count = copier->pl->config->copy_workers;
    pthread_t workers[64];

    if (!open_snapshot(copier, &err) || !plan(copier, &err)) {
        tell(copier, NULL, &err);
        return NULL;
    }
    atomic_store(&copier->waiting, 0);
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
