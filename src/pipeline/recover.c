/* recover.c - who is at the other end, and is it the one we know.
 *
 * Three things must agree before a row moves: the source (system identifier, timeline), the slot
 * (there, ours, not moved by others) and the state object in the lake. A gap is never silent: each
 * disagreement is refused with what happened and the command that mends it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "pipeline/internal.h"
#include "pipeline/retry.h"
#include "source/slot.h"

#define HINT_SOURCE_LOST                                                                           \
    "hint: the lake may have rows that the source lost, and would miss what it wrote "             \
    "since; " BEGIN_AGAIN

enum { CONNECT_ONCE_MS = 60000, SLOT_WAIT_MS = 20000, LOCK_WAIT_MS = 3000, LOCK_PAUSE_MS = 50 };

/* --- the source ------------------------------------------------------------------------------ */

bool
recover_connection(Pipeline *pl, Error *err)
{
    PgConnect connect = {.conninfo = pl->config->source_postgres,
                         .application_name = "walberg",
                         .cancel = pl->options->leaving,
                         .impatient = true};

    if (pl->conn != NULL)
        return true;
    return pg_connect(&connect, &pl->conn, err);
}

static bool
make_state_folder(const char *folder, Error *err)
{
    Error cause;

    if (folder_make(folder, 0700, &cause))
        return true;
    return FAIL(err, ERR_INPUT, "%s\nhint: set state to a folder that can be written", cause.msg);
}

/* The process that holds the lock, as it wrote there; 0 when it did not say. */
static long
lock_holder(int fd)
{
    char text[24] = "";

    return pread(fd, text, sizeof text - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
}

static void
note_holder(int fd)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%ld\n", (long) getpid());

    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t) length, 0) != length)
        log_debug("cannot write our pid to the lock"); /* only told to those who meet the lock */
}

/* One process per state folder; the slot and the state object keep out those on other machines.
 * Waits a little: one that was told to leave may not be gone yet, and `walberg status` holds the
 * lock for a moment to see whether we run. */
static bool
lock_state(Pipeline *pl, Error *err)
{
    const char *path = arena_printf(pl->arena, "%s/lock", pl->config->state);
    int64_t until = clock_ms() + LOCK_WAIT_MS;

    TRY(make_state_folder(pl->config->state, err));
    pl->lock_fd = folder_create_file(path, O_RDWR, 0600);
    if (pl->lock_fd < 0)
        return FAIL(err, ERR_INPUT, "cannot open %s: %s", path, strerrordesc_np(errno));
    while (flock(pl->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (clock_ms() >= until) {
            long holder = lock_holder(pl->lock_fd);

            close(pl->lock_fd);
            pl->lock_fd = -1;
            return FAIL(err, ERR_INPUT,
                        "another walberg process runs pipeline %s (process %ld holds %s)\n"
                        "hint: stop it first, or give this pipeline another name: --set "
                        "pipeline=...",
                        pl->config->pipeline, holder, path);
        }
        TRY(cancel_sleep(pl->cancel, LOCK_PAUSE_MS, err));
    }
    note_holder(pl->lock_fd);
    return true;
}

static bool same_source(const Pipeline *pl, Error *err);

/* Of a standby: its control file learns only later that it follows another timeline, its walsenders
 * know. */
static bool
ask_timeline(Pipeline *pl, int *out_timeline, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PgConnect connect = {.conninfo = pl->config->source_postgres,
                         .replication = true,
                         .application_name = "walberg",
                         .cancel = pl->cancel, /* the last epoch needs it */
                         .impatient = true};
    PgResult r;

    if (pl->standby_conn == NULL)
        TRY(pg_connect(&connect, &pl->standby_conn, err));
    TRY(pg_exec(pl->standby_conn, arena, "IDENTIFY_SYSTEM", &r, err));
    if (r.rows != 1 || r.columns < 2)
        return FAIL(err, ERR_BUG, "identify the server: %d rows, %d columns", r.rows, r.columns);
    *out_timeline = (int) pg_value_int(&r, 0, 1);
    return true;
}

static bool
meet_source(Pipeline *pl, Error *err)
{
    pg_close(pl->conn);
    pg_close(pl->standby_conn);
    pl->conn = pl->standby_conn = NULL;
    TRY(recover_connection(pl, err));
    TRY(source_server_info(pl->conn, pl->arena, &pl->server, err));
    TRY(source_server_check(&pl->server, err));
    return !pl->server.in_recovery || ask_timeline(pl, &pl->server.timeline, err);
}

bool
recover_timeline_stands(Pipeline *pl)
{
    int now = 0;
    Error err = {0};

    if (!pl->server.in_recovery)
        return true;
    if (ask_timeline(pl, &now, &err) && now == pl->server.timeline)
        return true;
    if (err.kind != ERR_NONE)
        log_warn("the standby does not say its timeline", LOG_STR("error", err.msg));
    pl->restart = true;
    return false;
}

/* How far anything in the lake is. */
static Position
lake_position(const Pipeline *pl)
{
    const PipelineState *state = &pl->state;
    Position farthest =
        state->acknowledged > state->committed ? state->acknowledged : state->committed;

    for (size_t i = 0; i < state->table_count; i++)
        if (state->tables[i].committed > farthest)
            farthest = state->tables[i].committed;
    for (size_t i = 0; i < pl->table_count; i++) {
        const SinkTable *table = pl->tables[i]->sink_table;

        if (table != NULL && table->position > farthest)
            farthest = table->position;
    }
    return farthest;
}

/* Less WAL than the lake has seen: the source went back in time. */
static bool
check_not_older(const Pipeline *pl, Error *err)
{
    Position lake = lake_position(pl);

    if (pl->server.flush >= lake)
        return true;
    return FAIL(err, ERR_INPUT,
                "the source's WAL ends at %s, but the lake has transactions up to %s: it was "
                "restored from a backup, or a standby that lagged was promoted\n" HINT_SOURCE_LOST,
                POSITION_TEXT(pl->server.flush), POSITION_TEXT(lake));
}

static bool
load_history(const Pipeline *pl, Arena *arena, Str *out_history, Error *err)
{
    AUTO_PG PgConn *conn = NULL;
    PgConnect connect = {.conninfo = pl->config->source_postgres,
                         .replication = true,
                         .application_name = "walberg",
                         .cancel = pl->cancel};

    *out_history = STR_NULL;
    if (pl->server.timeline == 1)
        return true;
    TRY(pg_connect(&connect, &conn, err));
    return source_timeline_history(conn, arena, pl->server.timeline, out_history, err);
}

/* A standby that lagged, or a backup, may by now have more WAL than the lake has seen, but another:
 * a position means the same transaction only as far as the two pasts are one. Two backups of one
 * server may both have called their timeline the same; then it began elsewhere. */
static bool
check_timeline(const Pipeline *pl, Timeline *out_now, Position *out_shared, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const PipelineState *state = &pl->state;
    Position lake = lake_position(pl);
    Timeline known;
    Str history;
    Error not_there;

    TRY(load_history(pl, arena, &history, err));
    TRY(source_timeline_find(history, pl->server.timeline, pl->server.timeline, out_now, err));
    if (!source_timeline_find(history, pl->server.timeline, state->timeline, &known, &not_there))
        return FAIL(err, ERR_INPUT, "the source was restored from a backup: %s\n" HINT_SOURCE_LOST,
                    not_there.msg);
    if (state->timeline_began != POSITION_NONE && state->timeline_began != known.began)
        known.end = known.began < state->timeline_began ? known.began : state->timeline_began;
    *out_shared = known.end;
    if (lake <= known.end)
        return true;
    return FAIL(err, ERR_INPUT,
                "the source left the timeline %d that the lake was filled from at %s, but the lake "
                "has transactions up to %s: a standby that lagged was promoted, or a backup "
                "restored\n" HINT_SOURCE_LOST,
                state->timeline, POSITION_TEXT(known.end), POSITION_TEXT(lake));
}

/* Ranges of an interrupted copy that are as of later than what the pasts have in common hold rows
 * that the source lost: that copy begins from the beginning. */
static void
forget_lost_copies(Pipeline *pl, Position shared)
{
    for (size_t i = 0; i < pl->table_count; i++) {
        PipeTable *table = pl->tables[i];

        if (resume_progress(pl, table).newest <= shared)
            continue;
        table->begin_anew = true;
        if (atomic_load(&table->state) == TABLE_STREAMING)
            atomic_store(&table->state, TABLE_WAITING);
    }
}

bool
recover_timeline(Pipeline *pl, Error *err)
{
    PipelineState *state = &pl->state;
    Timeline now;
    Position shared = POSITION_NONE;

    TRY(check_timeline(pl, &now, &shared, err));
    if (state->timeline != pl->server.timeline || state->timeline_began != now.began)
        copier_free(pl); /* it reads under a snapshot of the other past */
    forget_lost_copies(pl, shared < pl->server.flush ? shared : pl->server.flush);
    if (state->timeline == pl->server.timeline && state->timeline_began == now.began)
        return true;
    if (state->timeline != pl->server.timeline)
        log_warn("the source goes on with another timeline", LOG_INT("was", state->timeline),
                 LOG_INT("is", pl->server.timeline));
    state->timeline = pl->server.timeline;
    state->timeline_began = now.began;
    return pipeline_write_state(pl, err);
}

bool
recover_source(Pipeline *pl, Error *err)
{
    /* a first connection that fails is more often a typing error than an outage: said at once */
    TRY(meet_source(pl, err));
    random_uuid(pl->writer);
    pl->publication_is_ours = pl->config->source_publication == NULL;
    TRY(config_resolve(pl->options->config, pl->options->arena, pl->server.database, err));
    if (pl->config->source_failover)
        TRY(source_server_check_failover(&pl->server, err));
    log_info("connected", LOG_STR("source", pg_describe(pl->conn)),
             LOG_STR("server", pl->server.version_text), LOG_STR("pipeline", pl->config->pipeline));
    if (pl->options->once)
        pl->stop_at = pl->server.flush;
    TRY(lock_state(pl, err));

    SinkOptions sink = {
        .config = pl->config, .database = pl->server.database, .cancel = pl->cancel};

    return sink_open(&sink, &pl->sink, err);
}

/* --- the state object ------------------------------------------------------------------------ */

/* What the slot is told is held back by every table that is with us, parked ones too. A table that
 * was away meanwhile (left out, unpublished) has a gap, and this is how it is seen when it comes
 * back. */
static void
note_streamed(Pipeline *pl)
{
    for (size_t i = 0; i < pl->table_count; i++) {
        const PipeTable *table = pl->tables[i];
        StateTable *known = tables_state(pl, table);

        if (known == NULL)
            continue;
        known->copy_again = table->copy_again;
        if (table->begin_anew)
            known->copy = (StateCopy){0};
        /* one that could not be opened holds the slot, and may have been away before */
        if (table->gap || table->dropped || table->sink_table == NULL)
            continue;
        known->streamed = pl->state.acknowledged;
        if (!pipe_table_needs_copy(table) && table->sink_table->position > known->committed)
            known->committed = table->sink_table->position;
    }
}

bool
pipeline_try_state(Pipeline *pl, Error *err)
{
    AUTO_BUF Buf text = {0};

    note_streamed(pl);
    pl->state.writer = pl->writer;
    state_write(&pl->state, &text);
    return sink_state_swap(pl->sink, buf_view(&text), err);
}

bool
pipeline_write_state(Pipeline *pl, Error *err)
{
    Retry retry = retry_begin(pl->cancel, pl->stop, pl->options->once ? CONNECT_ONCE_MS : 0);

    pl->state_written_ms = clock_ms();
    while (!pipeline_try_state(pl, err)) {
        if (err->kind == ERR_CONFLICT) {
            err->kind = ERR_INPUT;
            return false;
        }
        if (!status_retry(pl, &retry, "cannot write the pipeline's state", err))
            return false;
    }
    return true;
}

static bool
load_state(Pipeline *pl, bool *out_found, Error *err)
{
    AUTO_BUF Buf text = {0};

    TRY(sink_state_load(pl->sink, &text, out_found, err));
    if (!*out_found)
        return true;
    if (state_parse(pl->state_arena, buf_view(&text), &pl->state, err))
        return true;
    return WRAP(err,
                "%s/_walberg/%s.json, which says which source and slot the lake belongs to, "
                "cannot be read",
                pl->config->warehouse, pl->config->pipeline);
}

static bool
same_source(const Pipeline *pl, Error *err)
{
    const PipelineState *state = &pl->state;

    if (strcmp(state->system_identifier, pl->server.system_identifier) != 0)
        return FAIL(
            err, ERR_INPUT,
            "the lake was filled from another server: system identifier %s, this one has %s\n"
            "hint: connect to the first one, or begin a new pipeline: --set pipeline=...",
            state->system_identifier, pl->server.system_identifier);
    if (strcmp(state->database, pl->server.database) != 0)
        return FAIL(err, ERR_INPUT,
                    "the lake was filled from database %s, this is %s\n"
                    "hint: connect to the first one, or begin a new pipeline: --set pipeline=...",
                    state->database, pl->server.database);
    if (strcmp(state->slot, pl->config->source_slot) != 0)
        return FAIL(err, ERR_INPUT,
                    "the pipeline reads slot %s, the settings say %s\n"
                    "hint: set source.slot to %s; a new slot needs a new copy: another pipeline",
                    state->slot, pl->config->source_slot, state->slot);
    return true;
}

/* --- the slot -------------------------------------------------------------------------------- */

/* Announced before it is made: what a crash leaves behind is then told apart from a slot that we
 * know nothing of. */
static bool
announce_slot(Pipeline *pl, Error *err)
{
    pl->state = (PipelineState){
        .pipeline = pl->config->pipeline,
        .system_identifier = pl->server.system_identifier,
        .timeline = pl->server.timeline,
        .database = pl->server.database,
        .slot = pl->config->source_slot,
        .publication = pl->config->source_publication,
        .publication_made = pl->state.publication_made, /* by a start that was interrupted */
        .phase = SLOT_CREATING,
    };
    return pipeline_write_state(pl, err);
}

/* The slot may take as long as somebody's transaction does. */
static void
beat(void *arg)
{
    Pipeline *pl = arg;
    AUTO_BUF Buf pids = {0};

    BUF_PUSH(&pids, int, pg_backend_pid(pl->snapshot_conn));
    if (waits_due(pl))
        waits_look(pl, &pids);
    status_write(pl, false);
}

/* The connection stays open: the first copy reads under the snapshot that it exports. */
static bool
make_slot(Pipeline *pl, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PgConnect connect = {.conninfo = pl->config->source_postgres,
                         .replication = true,
                         .application_name = "walberg",
                         .cancel = pl->cancel};
    SlotCreate create = {.name = pl->config->source_slot, .failover = pl->config->source_failover};
    SlotSnapshot made;
    Error ignored;

    TRY(pg_connect(&connect, &pl->snapshot_conn, err));
    TRY(FAULT("slot.create", err));
    pg_set_beat(pl->snapshot_conn, beat, pl);
    TRY(source_slot_create(pl->snapshot_conn, arena, &create, &made, err));
    pg_set_beat(pl->snapshot_conn, NULL, NULL);
    waits_forget(pl);
    TRY(FAULT("slot.created", err));
    /* a standby waits for its primary here, and may be promoted meanwhile; nothing was read before
     */
    if (pl->server.in_recovery && ask_timeline(pl, &pl->server.timeline, &ignored))
        pl->state.timeline = pl->server.timeline;
    log_info("slot made", LOG_STR("slot", create.name),
             LOG_STR("position", POSITION_TEXT(made.position)));
    pl->snapshot = (SlotSnapshot){.position = made.position,
                                  .snapshot = arena_strdup(pl->arena, made.snapshot)};
    pl->state.phase = SLOT_READY;
    pl->state.consistent_point = made.position;
    pl->state.acknowledged = made.position;
    pl->state.committed = POSITION_NONE;
    return pipeline_write_state(pl, err);
}

/* Another process may be about to leave. Or it is the server's end of a connection of ours that
 * broke without a word to it: then the slot is in use until wal_sender_timeout is over. */
static bool
check_slot(Pipeline *pl, Error *err)
{
    Retry retry = retry_begin(pl->cancel, pl->stop, SLOT_WAIT_MS + pl->server.sender_timeout_ms);

    for (;;) {
        AUTO_ARENA Arena *arena = arena_new();
        SlotExpect expect = {.name = pl->config->source_slot,
                             .database = pl->server.database,
                             .position = pl->state.acknowledged};
        Slot slot = {0};

        if (source_slot_load(pl->conn, arena, expect.name, &slot, err) &&
            source_slot_check(&slot, &expect, err)) {
            held_note(pl->held, &slot);
            return true;
        }
        if (status_retry(pl, &retry, "waiting for the slot", err))
            continue;
        if (err->kind == ERR_TRANSIENT && slot.active_pid != 0)
            err->kind = ERR_INPUT; /* somebody has it for good: a person has to act */
        return false;
    }
}

bool
recover_state(Pipeline *pl, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    bool found;
    Slot slot;
    Timeline now;
    Position shared;

    TRY(load_state(pl, &found, err));
    if (found && pl->state.phase == SLOT_READY) {
        TRY(same_source(pl, err));
        TRY(check_not_older(pl, err));
        return check_timeline(pl, &now, &shared, err);
    }
    TRY(source_slot_check_name(pl->config->source_slot, err));
    TRY(source_slot_load(pl->conn, arena, pl->config->source_slot, &slot, err));
    if (slot.exists)
        return FAIL(err, ERR_INPUT,
                    "slot %s exists, but %s\n"
                    "hint: if nobody uses it: select pg_drop_replication_slot('%s'); or choose "
                    "another name: --set source.slot=...",
                    pl->config->source_slot,
                    found ? "the lake knows only that one was to be made: it was left behind by an "
                            "earlier start, or is another pipeline's"
                          : "the lake knows nothing of it",
                    pl->config->source_slot);
    return announce_slot(pl, err);
}

/* A slot that was made before it was wished for. */
static bool
keep_on_standbys(Pipeline *pl, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = NULL;
    PgConnect connect = {.conninfo = pl->config->source_postgres,
                         .replication = true,
                         .application_name = "walberg",
                         .cancel = pl->cancel};
    Slot slot;

    TRY(source_slot_load(pl->conn, arena, pl->config->source_slot, &slot, err));
    if (slot.failover)
        return true;
    TRY(pg_connect(&connect, &conn, err));
    TRY(source_slot_set_failover(conn, arena, pl->config->source_slot, err));
    log_info("standbys may keep the slot", LOG_STR("slot", pl->config->source_slot));
    return true;
}

bool
recover_slot(Pipeline *pl, Error *err)
{
    if (pl->state.phase == SLOT_CREATING)
        return make_slot(pl, err);
    TRY(check_slot(pl, err));
    if (pl->config->source_failover)
        TRY(keep_on_standbys(pl, err));
    pl->committed = pl->state.acknowledged; /* a table may lack what was committed for others */
    /* claims the state object: a second process is refused at its next write */
    return pipeline_write_state(pl, err);
}

bool
recover_again(Pipeline *pl, Error *err)
{
    if (!meet_source(pl, err)) {
        if (err->kind == ERR_INPUT && pl->server.in_recovery)
            err->kind = ERR_TRANSIENT; /* about to be promoted, behind the address of the primary */
        return false;
    }
    TRY(same_source(pl, err));
    TRY(check_not_older(pl, err));
    TRY(recover_timeline(pl, err));
    return check_slot(pl, err);
}
