/* pipeline.c - the whole story, in one function: pipeline_run(). */
#include "pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "pipeline/internal.h"
#include "pipeline/retry.h"

enum {
    STEP_MS = 100,
    CONNECT_ONCE_MS = 60000,
    START_MS = 60000,
    LOOK_FOR_TABLES_MS = 5000,
    LOOK_SHARE = 20,
};

static bool
stopping(const Pipeline *pl)
{
    return atomic_load(pl->stop) || cancel_is_set(pl->cancel);
}

/* Wait and meet the source again, as long as it takes; false with what a person has to mend. */
static bool
reconnect(Pipeline *pl, Retry *retry, const char *what, Error *err)
{
    do {
        if (!status_retry(pl, retry, what, err))
            return false;
    } while (!recover_again(pl, err));
    pl->last_error[0] = '\0';
    return true;
}

/* --- the initial copy ------------------------------------------------------------------------ */

/* Queries may see the tables that are copied: up to the oldest of them, all these have everything.
 * Those without a position are not shown whatever the state object says. */
static bool
show_copied_tables(Pipeline *pl, Error *err)
{
    Position oldest = UINT64_MAX;
    Position before = pl->state.committed;

    for (size_t i = 0; i < pl->table_count; i++) {
        const SinkTable *table = pl->tables[i]->sink_table;

        if (table != NULL && atomic_load(&pl->tables[i]->state) != TABLE_PARKED &&
            !pipe_table_is_hidden(pl->tables[i]) && table->position != POSITION_NONE &&
            table->position < oldest)
            oldest = table->position;
    }
    if (oldest != UINT64_MAX)
        writer_show(pl, oldest);
    if (pl->state.committed == before)
        return true;
    TRY(pipeline_write_state(pl, err));
    child_tell(pl);
    return true;
}

/* All tables that the lake does not have, under one snapshot. When the snapshot is lost (the source
 * went away), what is not complete is copied under a newer one. */
static bool
copy_missing_tables(Pipeline *pl, Error *err)
{
    Retry retry = retry_begin(pl->cancel, pl->stop,
                              pl->options->once ? LIMIT("copy.once_ms", CONNECT_ONCE_MS) : 0);
    bool any = tables_waiting(pl) > 0;
    bool done = false;

    pl->phase = "copying";
    while (!stopping(pl) && (pl->copier != NULL || tables_waiting(pl) > 0)) {
        if (pl->copier == NULL ? copier_start(pl, err)
                               : copier_step(pl, LIMIT("copy.step_ms", STEP_MS), &done, err)) {
            TRY(show_copied_tables(pl, err));
            pl->last_error[0] = '\0';
            status_write(pl, false);
            if (done)
                copier_free(pl);
            done = false; /* the next copy begins */
            child_watch(pl);
            TRY(shapes_take_requests(pl, err));
            continue;
        }
        copier_free(pl);
        if (pl->copy_moved)
            retry_reset(&retry);
        pl->copy_moved = false;
        if (!reconnect(pl, &retry, "the copy was interrupted", err))
            return stopping(pl);
    }
    copier_free(pl);
    if (stopping(pl))
        return true;
    TRY(show_copied_tables(pl, err));
    return !any || pipeline_write_state(pl, err); /* how far each is, for the next start */
}

/* --- the stream ------------------------------------------------------------------------------ */

static int
by_position(const void *a, const void *b)
{
    Position x = *(const Position *) a;
    Position y = *(const Position *) b;

    return x < y ? -1 : x > y;
}

/* Where hidden tables have rows of. */
static void
find_cuts(Pipeline *pl)
{
    buf_reset(&pl->cuts);
    for (size_t i = 0; i < pl->table_count; i++) {
        const StateTable *known = tables_state(pl, pl->tables[i]);

        for (int k = 0;
             known != NULL && pipe_table_is_hidden(pl->tables[i]) && k < known->copy.count; k++)
            BUF_PUSH(&pl->cuts, Position, known->copy.parts[k].loaded.position);
    }
    if (pl->cuts.len > 0)
        qsort(pl->cuts.ptr, BUF_COUNT(&pl->cuts, Position), sizeof(Position), by_position);
}

static Reader *
start_reader(Pipeline *pl)
{
    find_cuts(pl);

    ReaderOptions options = {
        .config = pl->config,
        .conninfo = pl->config->source_postgres,
        .slot = pl->config->source_slot,
        .publication = pl->config->source_publication,
        .table_count = pl->table_count,
        .tables = pl->tables,
        /* a standby follows others to theirs: what it has replayed is never taken back */
        .timeline = pl->server.in_recovery ? 0 : pl->server.timeline,
        .start = pl->state.acknowledged,
        .cut_count = BUF_COUNT(&pl->cuts, Position),
        .cuts = (const Position *) (void *) pl->cuts.ptr,
        .stop_at = pl->stop_at,
        .commit_interval_ms = pl->config->commit_interval_ms,
        .commit_rows = pl->config->commit_rows,
        .commit_bytes = pl->config->commit_bytes,
        .memory_bytes_max = (size_t) pl->config->memory / 5,
        .value_bytes_max = pl->config->value_limit,
        .park_on_reject = strcmp(pl->config->on_reject, "park") == 0,
        .cancel = pl->cancel,
        .leaving = pl->options->leaving,
        .stop = pl->stop,
    };

    pl->restart = false;
    return reader_start(&options);
}

/* Tables that came later are copied while the others stream. When they are there, the session
 * begins again at what was acknowledged, which was held before their snapshot. */
static bool
copy_beside(Pipeline *pl, int64_t ms, Error *err)
{
    bool done = false;

    if (copier_step(pl, ms, &done, err)) {
        pl->copied |= done;
        pl->restart |= done;
        return true;
    }
    if (err->kind != ERR_TRANSIENT)
        return false;
    log_warn("the copy was interrupted", LOG_STR("error", err->msg));
    pl->copied = pl->restart = true; /* and is started again with the next session */
    return true;
}

/* Every five seconds, but for at most a twentieth of the time. */
static bool
look_is_due(const Pipeline *pl)
{
    int64_t pause = LOOK_SHARE * pl->look_took_ms;

    if (pause < LOOK_FOR_TABLES_MS)
        pause = LOOK_FOR_TABLES_MS;
    return !pl->options->once && !stopping(pl) && clock_ms() - pl->looked_for_tables_ms >= pause;
}

static bool
do_chores(Pipeline *pl, Error *err)
{
    TRY(ack_idle(pl, false, err));
    child_watch(pl);
    if (pl->copier != NULL) {
        TRY(copy_beside(pl, 0, err));
    } else if (look_is_due(pl)) {
        pl->looked_for_tables_ms = clock_ms();
        TRY(tables_look_for_new(pl, err));
    }
    TRY(shapes_take_requests(pl, err));
    pl->restart |= shapes_waiting(pl) || writer_wants_back(pl);
    pl->last_error[0] = '\0'; /* nothing is being tried again */
    status_write(pl, false);
    return true;
}

/* A session that began again would begin with the hidden tables' oldest rows again. */
static bool
any_hidden(const Pipeline *pl)
{
    for (size_t i = 0; i < pl->table_count; i++)
        if (atomic_load(&pl->tables[i]->state) == TABLE_STREAMING &&
            pipe_table_is_hidden(pl->tables[i]))
            return true;
    return false;
}

/* What goes on beside the stream: tables found and copied, status. Asked to leave in the middle of
 * it, what the reader has is still written. */
static bool
keep_house(Pipeline *pl, Error *err)
{
    return do_chores(pl, err) || (err->kind == ERR_CANCELED && stopping(pl));
}

/* One session: epochs from the reader into the lake until it ends or a table joins. */
static bool
stream_session(Pipeline *pl, Error *err)
{
    while ((!pl->restart || any_hidden(pl)) && !reader_ended(pl->reader)) {
        Epoch *epoch = reader_take(pl->reader, STEP_MS);

        if (epoch != NULL) {
            bool stands = recover_timeline_stands(pl);
            bool written = !stands || writer_epoch(pl, epoch, err);

            reader_recycle(pl->reader, epoch);
            TRY(written);
            if (!stands)
                return true;
        }
        TRY(keep_house(pl, err));
    }
    return pl->restart || ack_idle(pl, true, err);
}

/* The stream comes again from where the oldest rows of the copy are of. */
static bool
hide_again(Pipeline *pl, PipeTable *table, Error *err)
{
    if (resume_hide(pl, table, err))
        return true;
    if (err->kind == ERR_COPY)
        pipe_table_copy_again(table, err->msg);
    else if (err->kind == ERR_INPUT)
        pipe_table_park(table, err->msg);
    else
        atomic_store(&table->state, TABLE_WAITING); /* no longer hidden: its copy goes on first */
    return err->kind == ERR_COPY || err->kind == ERR_INPUT;
}

/* What it was sent of a transaction that is not complete comes again. */
static bool
begin_again(Pipeline *pl, PipeTable *table, Error *err)
{
    if (sink_abandon(pl->sink, table->sink_table, err))
        return true;
    if (err->kind != ERR_INPUT)
        return writer_park_alone(pl, table, "cannot reload its lake table", err);
    pipe_table_park(table, err->msg);
    return true;
}

/* From where on the table takes what the stream brings; false: it is not with us (yet). */
static bool
join_session(Pipeline *pl, PipeTable *table, bool *out_joins, Error *err)
{
    TableState state = atomic_load(&table->state);

    *out_joins = false;
    if (state == TABLE_PARKED && table->away_since_ms != 0) {
        state = writer_take_back(pl, table);
        atomic_store(&table->state, state);
    } else if (state == TABLE_PARKED) {
        writer_drop_pending(pl, table);
    }
    if (state == TABLE_STREAMING && pipe_table_is_hidden(table))
        TRY(hide_again(pl, table, err));
    else if (state == TABLE_STREAMING)
        TRY(begin_again(pl, table, err));
    state = atomic_load(&table->state);
    *out_joins =
        state == TABLE_STREAMING ||
        (state == TABLE_COPYING && (!pipe_table_needs_copy(table) || pipe_table_is_hidden(table)));
    return true;
}

/* Whether the user wishes that rows which the stream changes are not all in the lake. */
static bool
may_miss(const Pipeline *pl, const PipeTable *table)
{
    const StateTable *known = tables_state(pl, table);
    bool unpublished =
        known != NULL && known->published.noted && known->published.missing[0] != '\0';
    bool leaves_stay = known != NULL && known->leaves != NULL && known->leaves[0] != '\0' &&
                       strcmp(pl->config->on_partition_change, "ignore") == 0;

    return table->inserts_replace || leaves_stay || unpublished;
}

/* Between two sessions no reader holds the tables: nothing half done may be left in them, new ones
 * are taken in, and those that were copied meanwhile join. Each goes on at its own position:
 * between that and what was committed for all there was nothing of it. */
static bool
prepare_session(Pipeline *pl, Error *err)
{
    pl->idle_due = true;
    TRY(sink_abandon(pl->sink, NULL, err));
    if (pl->new_tables)
        TRY(tables_take_new(pl, err));
    TRY(shapes_apply(pl, err));
    pl->committed = pl->state.acknowledged; /* a table that joins may lack what others have */
    for (size_t i = 0; i < pl->table_count; i++) {
        PipeTable *table = pl->tables[i];
        bool joins;

        TRY(join_session(pl, table, &joins, err));
        if (!joins)
            continue;
        atomic_store(&table->state, TABLE_STREAMING);
        table->sink_table->may_miss = may_miss(pl, table);
        table->replay_until = table->sink_table->hidden_until;
        table->done = pipe_table_is_hidden(table) ? table->sink_table->replay_from
                                                  : table->sink_table->position;
    }
    if (pl->copier == NULL && tables_waiting(pl) > 0)
        TRY(copier_start(pl, err));
    return true;
}

typedef enum SessionEnd {
    SESSION_DONE,        /* the source was read up to where we wanted */
    SESSION_AGAIN,       /* something joins, or changed its shape */
    SESSION_INTERRUPTED, /* the error says by what; the source or the lake is away */
} SessionEnd;

/* From what is prepared to the last epoch. False: no further session can mend it. */
static bool
run_session(Pipeline *pl, SessionEnd *out_end, Error *err)
{
    Error reader_error = {0};

    if (!prepare_session(pl, err)) {
        *out_end = SESSION_INTERRUPTED;
        return err->kind == ERR_TRANSIENT;
    }
    pl->reader = start_reader(pl);

    bool written = stream_session(pl, err);
    bool read = reader_stop(pl->reader, &reader_error);

    pl->reader = NULL;
    /* with once, nobody comes later to see the copy through */
    while (written && read && pl->options->once && pl->copier != NULL && !pl->copied &&
           !stopping(pl))
        written = copy_beside(pl, STEP_MS, err);
    if (pl->copied)
        copier_free(pl);
    pl->copied = false;
    if (!written)
        return false;
    if (!read)
        *err = reader_error;
    *out_end = !read                               ? SESSION_INTERRUPTED
               : pl->restart || shapes_waiting(pl) ? SESSION_AGAIN
                                                   : SESSION_DONE;
    return true;
}

static bool
stream(Pipeline *pl, Error *err)
{
    Retry retry = retry_begin(pl->cancel, pl->stop, pl->options->once ? CONNECT_ONCE_MS : 0);

    pl->phase = "streaming";
    atomic_store(pl->options->graceful, true);
    /* the copy may have taken hours: somebody may have moved the slot meanwhile */
    if (!recover_again(pl, err) && !reconnect(pl, &retry, "the stream was interrupted", err))
        return stopping(pl);
    for (;;) {
        Position before = pl->committed;
        SessionEnd end;

        TRY(run_session(pl, &end, err));
        if (end == SESSION_DONE || stopping(pl))
            return true;
        if (pl->committed != before || end == SESSION_AGAIN)
            retry_reset(&retry);
        if (end == SESSION_AGAIN && recover_again(pl, err))
            continue;
        if (!reconnect(pl, &retry, "the stream was interrupted", err))
            return stopping(pl);
    }
}

/* What the source says of its tables, and the publication. DDL at the same moment, or a lock, is no
 * reason to give up: the questions are asked again. */
static bool
publish(Pipeline *pl, Error *err)
{
    Retry retry = retry_begin(pl->cancel, pl->stop, START_MS);

    while (!tables_publish(pl, err)) {
        do {
            if (!status_retry(pl, &retry, "cannot read the tables of the source", err))
                return false;
            pg_close(pl->conn); /* it may be why */
            pl->conn = NULL;
        } while (!recover_connection(pl, err));
    }
    pl->last_error[0] = '\0';
    return true;
}

/* --- the story ------------------------------------------------------------------------------- */

static bool
run(Pipeline *pl, Error *err)
{
    TRY(recover_source(pl, err)); /* who is there */
    pl->held = held_start(pl->config);
    TRY(recover_state(pl, err)); /* is it the one the lake knows */
    if (!publish(pl, err))       /* before the slot: it cannot see an older publication */
        return stopping(pl);
    TRY(recover_slot(pl, err));     /* state object and slot agree, or are made */
    TRY(tables_attach(pl, err));    /* the lake says how far each table is */
    TRY(recover_timeline(pl, err)); /* and whether the source has that in its past */
    TRY(shapes_take_requests(pl, err));
    TRY(child_start(pl, err));         /* queries from now on */
    TRY(copy_missing_tables(pl, err)); /* under one snapshot */
    if (stopping(pl))
        return true;
    return stream(pl, err);
}

static void
pipeline_done(Pipeline *pl)
{
    child_stop(pl);
    held_stop(pl->held);
    copier_free(pl);
    for (size_t i = 0; i < pl->table_count; i++)
        pipe_table_free(pl->tables[i]);
    free((void *) pl->tables);
    buf_done(&pl->cuts);
    buf_done(&pl->absent);
    sink_close(pl->sink);
    pg_close(pl->conn);
    pg_close(pl->standby_conn);
    pg_close(pl->snapshot_conn);
    source_tables_done(&pl->source);
    arena_free(pl->source_arena);
    arena_free(pl->state_arena);
    arena_free(pl->arena);
    if (pl->lock_fd >= 0)
        close(pl->lock_fd);
}

static bool
check_parked(const Pipeline *pl, Error *err)
{
    size_t parked = 0;
    const char *first = NULL;

    for (size_t i = 0; i < pl->table_count; i++) {
        if (atomic_load(&pl->tables[i]->state) == TABLE_PARKED && !pl->tables[i]->dropped) {
            parked++;
            if (first == NULL)
                first = pl->tables[i]->schema->qualified;
        }
    }
    if (parked == 0 || !pl->options->once)
        return true;
    return FAIL(err, ERR_INPUT,
                "%zu of %zu tables are parked, %s first\nhint: walberg status says why", parked,
                pl->table_count, first);
}

bool
pipeline_run(const PipelineOptions *options, Error *err)
{
    Pipeline pl = {
        .options = options,
        .config = options->config,
        .cancel = options->cancel,
        .stop = options->stop,
        .arena = arena_new(),
        .state_arena = arena_new(),
        .source_arena = arena_new(),
        .lock_fd = -1,
        .phase = "copying",
    };
    bool done = run(&pl, err) && check_parked(&pl, err);

    if (!done && err->kind == ERR_CANCELED && stopping(&pl))
        done = true; /* as wished */

    pl.phase = done ? "stopped" : "failed";
    if (!done)
        snprintf(pl.last_error, sizeof pl.last_error, "%s", err->msg);
    if (pl.lock_fd >= 0)
        status_write(&pl, true);
    log_info(done ? "stopped" : "failed",
             LOG_STR("position", POSITION_TEXT(pl.state.acknowledged)));
    pipeline_done(&pl);
    return done;
}
