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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "pipeline/copier.h"
#include "pipeline/retry.h"

enum {
    PROGRESS_MS = 10000,
    PROGRESS_TERMINAL_MS = 2000,
    COMMIT_ONCE_MS = 120000,
    RECORD_MS = 5000,
    RECORD_SHARE = 32, /* of the time that the copy took is lost at most, or RECORD_MS */
};

static void
add_table(Copier *copier, PipeTable *table)
{
    CopyTable *copy = &copier->tables[copier->count++];

    copy->table = table;
    copy->relid = table->schema->relid;
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
    copier->park_on_reject = strcmp(pl->config->on_reject, "park") == 0;
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
    if (pthread_create(&copier->coordinator, NULL, copier_coordinate, copier) != 0)
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
    TRY(resume_record(pl, copy->table, &done, err));
    *out_any = copy->table->copied_from != POSITION_NONE;
    return true;
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
    pl->copy_moved |= any;
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
 * be known. The table may be parked for now. */
static bool
record_whole(Pipeline *pl, CopyTable *copy, Error *err)
{
    Retry retry = retry_begin(pl->cancel, pl->stop, pl->options->once ? COMMIT_ONCE_MS : 0);
    bool any;

    if (copy->before.newest == POSITION_NONE)
        return true;
    while (!record_table(pl, copy, &any, err)) {
        copy->recorded = 0;
        if (err->kind == ERR_INPUT) {
            pipe_table_park(copy->table, err->msg);
            return true;
        }
        if (!writer_try_again(pl, copy->table, &retry,
                              "the progress of its copy cannot be recorded", err))
            return copy->table->away_since_ms != 0;
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
        if (writer_try_again(pl, table, &retry, "cannot commit its copy", err))
            continue;
        if (table->away_since_ms == 0)
            return false;
        /* it may be committed all the same; but until a copy is, the slot waits for none */
        table->copy_again = true;
        return true;
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
    table->away_times = 0;        /* whatever it was is over */
    table->ahead = POSITION_NONE; /* until queries are there they see its rows from before */
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
        if (!status_retry(pl, &retry, "cannot look at a table that was copied", err))
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
    if (!recover_timeline_stands(pl)) /* the snapshot may be of a newer one */
        return FAIL(err, ERR_TRANSIENT, "the source moved on to another timeline");
    if (same) {
        TRY(record_whole(pl, copy, err));
        return atomic_load(&table->state) == TABLE_PARKED ||
               commit_copy(pl, table, last_snapshot(pl->copier, copy), err);
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

/* A part of its copy fails again and again, though the source is there. If only this table's does,
 * its workers leave it for the others; it is parked once they have. */
static void
leave_out(Pipeline *pl, const Finished *finished)
{
    CopyTable *copy = finished->copy;
    Error err;

    /* its last part may be done after all, and committed */
    if (!finished->repeats && is_on_its_way(copy->table))
        (void) !writer_park_alone(pl, copy->table, "cannot copy it", &finished->error);
    else if (finished->repeats && atomic_load(&copy->left) > 0 && pipeline_try_state(pl, &err))
        copier_refuse(copy, NULL, &finished->error);
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
    if (finished->error.kind == ERR_TRANSIENT) {
        leave_out(pl, finished);
        return true;
    }
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

/* Everything that a copy does in the server begins with waiting for others' transactions. */
static void
look_at_waits(Pipeline *pl)
{
    Copier *copier = pl->copier;
    AUTO_BUF Buf pids = {0};
    int waiting = atomic_load(&copier->waiting);

    if (!waits_due(pl))
        return;
    if (waiting != 0)
        BUF_PUSH(&pids, int, waiting);
    for (int i = 0; atomic_load(&copier->planned) && i < copier->plan.count; i++) {
        waiting = atomic_load(&copier->opening[i]);
        if (waiting != 0)
            BUF_PUSH(&pids, int, waiting);
    }
    waits_look(pl, &pids);
}

bool
copier_step(Pipeline *pl, int64_t ms, bool *out_done, Error *err)
{
    Copier *copier = pl->copier;
    bool timeout;
    Finished *finished = queue_take_for(copier->finished, ms, &timeout);

    show_progress(copier);
    look_at_waits(pl);
    if (finished != NULL) {
        bool taken = take_finished(pl, finished, err);

        copier_finished_free(finished);
        TRY(taken);
        pl->copy_moved = true;
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
        copier_finished_free(finished);
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
    waits_forget(pl);
}
