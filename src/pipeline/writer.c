/* writer.c - an epoch into the lake: write the pieces, commit every table that was written to, then
 * the state object says so, then the slot may forget. */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "pipeline/internal.h"
#include "pipeline/retry.h"

enum {
    GIVE_UP_ONCE_MS = 120000,
    PATIENCE_MS = 60000, /* with a table that the lake does not take, before it is parked */
    AWAY_MIN_MS = 60000, /* before it is tried again; twice as long each time */
    AWAY_DOUBLINGS_MAX = 4,
};

static Retry
sink_retry(const Pipeline *pl)
{
    return retry_begin(pl->cancel, pl->stop, pl->options->once ? GIVE_UP_ONCE_MS : 0);
}

/* --- one table that the lake does not take ---------------------------------------------------- */

int64_t
writer_patience_ms(void)
{
    return LIMIT("writer.patience_ms", PATIENCE_MS);
}

/* Its folder is full or refused, it needs more memory than there is: the others shall not wait for
 * ever. If the lake does not take our state object either, it is not about the table. */
static bool
is_alone_in_this(Pipeline *pl, const PipeTable *table, const Retry *retry)
{
    Error err;

    return !pl->options->once &&
           (table->away_times > 0 || retry_failing_ms(retry) >= writer_patience_ms()) &&
           pipeline_try_state(pl, &err);
}

void
writer_drop_pending(Pipeline *pl, PipeTable *table)
{
    Error err;

    if (table->sink_table != NULL && !sink_abandon(pl->sink, table->sink_table, &err))
        log_debug("cannot reload a table", LOG_STR("table", table->schema->qualified),
                  LOG_STR("error", err.msg));
}

/* Until it is due; its position holds, and with it the slot. */
static void
park_for_now(Pipeline *pl, PipeTable *table, const char *what, const Error *cause)
{
    AUTO_ARENA Arena *arena = arena_new();

    pipe_table_park(table, arena_printf(arena,
                                        "%s: %.*s\nhint: it is tried again by itself, from "
                                        "time to time",
                                        what, (int) strcspn(cause->msg, "\n"), cause->msg));
    table->away_since_ms = clock_ms();
    table->away_times++;
    writer_drop_pending(pl, table);
}

bool
writer_park_alone(Pipeline *pl, PipeTable *table, const char *what, const Error *cause)
{
    Error err;

    if (cause->kind != ERR_TRANSIENT || pl->options->once || !FAULT("writer.alone", &err) ||
        !pipeline_try_state(pl, &err))
        return false;
    park_for_now(pl, table, what, cause);
    return true;
}

bool
writer_try_again(Pipeline *pl, PipeTable *table, Retry *retry, const char *what, Error *err)
{
    if (err->kind != ERR_TRANSIENT || !is_alone_in_this(pl, table, retry))
        return status_retry(pl, retry, what, err);
    park_for_now(pl, table, what, err);
    return false;
}

static int64_t
away_ms(const PipeTable *table)
{
    int doublings = table->away_times - 1;

    return LIMIT("away.min_ms", AWAY_MIN_MS)
           << (doublings > AWAY_DOUBLINGS_MAX ? AWAY_DOUBLINGS_MAX : doublings);
}

bool
writer_is_due(const PipeTable *table)
{
    return table->away_since_ms != 0 && clock_ms() - table->away_since_ms >= away_ms(table);
}

bool
writer_wants_back(Pipeline *pl)
{
    bool any = false;

    for (size_t i = 0; i < pl->table_count; i++) {
        if (!writer_is_due(pl->tables[i]))
            continue;
        any = true;
        pl->new_tables |= pl->tables[i]->sink_table == NULL; /* it is taken in like a new one */
    }
    return any;
}

TableState
writer_take_back(Pipeline *pl, PipeTable *table)
{
    Error err;

    if (!writer_is_due(table))
        return TABLE_PARKED;
    /* one that is still not open was just tried, and its source was away */
    if (table->sink_table == NULL || !sink_abandon(pl->sink, table->sink_table, &err)) {
        table->away_since_ms = clock_ms();
        table->away_times++;
        return TABLE_PARKED;
    }
    log_info("a parked table is tried again", LOG_STR("table", table->schema->qualified));
    pipe_table_unpark(table);
    pl->relations_seen = STR_NULL; /* what the catalogs said meanwhile was not for it */
    if (pipe_table_needs_copy(table))
        return TABLE_WAITING;
    if (!pipe_table_is_hidden(table))
        resume_shown(pl, table); /* the commit that ended its copy was done after all */
    return TABLE_STREAMING;
}

/* It took it: whatever it was is over. */
static void
note_taken(PipeTable *table)
{
    if (table->away_times == 0)
        return;
    log_info("no longer parked", LOG_STR("table", table->schema->qualified));
    table->away_times = 0;
}

/* A table that cannot go on is parked alone. */
void
writer_park(Pipeline *pl, PipeTable *table, const char *reason)
{
    pipe_table_park(table, reason);
    writer_drop_pending(pl, table);
}

/* What goes wrong with one table: false when it is not about the table. */
static bool
gave_up(Pipeline *pl, PipeTable *table, Error *err)
{
    if (table->away_since_ms != 0)
        return true;
    if (err->kind == ERR_INPUT)
        writer_park(pl, table, err->msg);
    return err->kind == ERR_INPUT;
}

/* Its copy begins with the next session of the stream. */
void
writer_copy_again(Pipeline *pl, PipeTable *table, const char *reason)
{
    pipe_table_copy_again(table, reason);
    pl->restart = true;
    writer_drop_pending(pl, table);
}

bool
writer_evolve(Pipeline *pl, PipeTable *table, const TableSchema *shape, Error *err)
{
    Retry retry = sink_retry(pl);

    if (pipe_table_is_hidden(table) && !schema_same_shape(shape, table->schema)) {
        writer_copy_again(pl, table,
                          "its columns or its key changed while its copy was interrupted");
        return true;
    }
    while (!sink_evolve(pl->sink, table->sink_table, shape, err)) {
        if (err->kind == ERR_COPY) {
            writer_copy_again(pl, table, err->msg);
            return true;
        }
        if (writer_try_again(pl, table, &retry, "cannot change columns", err))
            continue;
        return gave_up(pl, table, err);
    }
    return true;
}

/* The lake is not what the source had, and only a copy mends that. Once: when it comes again though
 * nobody altered the table, copies do not help. */
static void
mend_table(Pipeline *pl, PipeTable *table, const char *reason)
{
    AUTO_ARENA Arena *arena = arena_new();
    StateTable *known = tables_state(pl, table);

    if (known != NULL && !known->mended && !table->sink_table->may_miss) {
        known->mended = true;
        writer_copy_again(pl, table, reason);
        return;
    }
    writer_park(pl, table,
                arena_printf(arena, "%s%s\n" HINT_COPY_AGAIN, reason,
                             known != NULL && known->mended
                                 ? ", and it was copied again for that before"
                                 : ""));
}

/* Records of rejected values name the table as it is called now: `verify` has to know all names
 * that it had. Noted before them: a replay does not bring them again. */
static bool
note_name(Pipeline *pl, const PipeTable *table, const Batch *batch, Error *err)
{
    StateTable *known = tables_state(pl, table);
    const TableSchema *schema = batch->schema;

    if (known == NULL || batch->rejects.len == 0 ||
        state_has_name(known, schema->schema_name, schema->table_name))
        return true;
    state_add_name(pl->state_arena, known, schema->schema_name, schema->table_name);
    return pipeline_write_state(pl, err);
}

static bool
write_part(Pipeline *pl, const EpochPart *part, Error *err)
{
    Retry retry = sink_retry(pl);
    PipeTable *table = part->table;

    TRY(writer_evolve(pl, table, part->batch->schema, err));
    if (atomic_load(&table->state) != TABLE_STREAMING)
        return true;
    TRY(note_name(pl, table, part->batch, err));
    while (!sink_write(pl->sink, table->sink_table, part->batch, err)) {
        if (err->kind == ERR_COPY && pipe_table_is_hidden(table))
            writer_copy_again(pl, table, err->msg);
        else if (err->kind == ERR_COPY)
            mend_table(pl, table, err->msg);
        if (err->kind == ERR_COPY)
            return true;
        if (writer_try_again(pl, table, &retry, "cannot write", err))
            continue;
        return gave_up(pl, table, err);
    }
    return true;
}

/* One that came and went is news, too; one that only has the name from before a rename is not. */
static bool
is_another_shape(const TableSchema *shape, const TableSchema *known)
{
    return shape != NULL && shape != known &&
           (strcmp(shape->qualified, known->qualified) == 0 || !schema_same_shape(shape, known));
}

/* The stream brought another shape. What the catalog said before then may be older than that: it is
 * asked again. */
static void
follow_shape(Pipeline *pl, PipeTable *table, Position position)
{
    pipe_table_set_schema(table, table->sink_table->source);
    if (table->due == NULL || position <= table->due_from)
        return;
    pipe_table_set_due(table, NULL, POSITION_NONE);
    pl->relations_seen = STR_NULL;
}

/* A copy that was interrupted is complete at last. */
static void
end_copy(Pipeline *pl, PipeTable *table, Position position)
{
    resume_shown(pl, table);
    table->copy_again = false;
    table->ahead = POSITION_NONE; /* its rows from before are shown until then */
    log_info("copied", LOG_STR("table", table->schema->qualified),
             LOG_INT("rows", table->sink_table->rows),
             LOG_STR("position", POSITION_TEXT(position)));
}

static bool
commit_table(Pipeline *pl, PipeTable *table, const Epoch *epoch, Error *err)
{
    Retry retry = sink_retry(pl);
    bool hidden = pipe_table_is_hidden(table);
    Position before = table->sink_table->position;
    const SinkCommitted *committed = &table->sink_table->committed;
    int64_t started = clock_ms();

    while (!sink_commit(pl->sink, table->sink_table, epoch->position, epoch->commit_time_us, err)) {
        if (writer_try_again(pl, table, &retry, "cannot commit", err))
            continue;
        return gave_up(pl, table, err);
    }
    if (table->sink_table->position != before)
        table->ahead = table->sink_table->position;
    if (hidden && !pipe_table_is_hidden(table))
        end_copy(pl, table, epoch->position);
    if (is_another_shape(table->sink_table->source, table->schema))
        follow_shape(pl, table, epoch->position);
    if (table->sink_table->position != before)
        note_taken(table);
    if (table->sink_table->position != before)
        log_info("committed", LOG_STR("table", table->schema->qualified),
                 LOG_STR("position", POSITION_TEXT(epoch->position)),
                 LOG_INT("rows", committed->rows), LOG_INT("deletes", committed->deletes),
                 LOG_INT("files", committed->files), LOG_MS("took", clock_ms() - started));
    return true;
}

void
writer_show(Pipeline *pl, Position position)
{
    for (size_t i = 0; i < pl->table_count; i++)
        if (atomic_load(&pl->tables[i]->state) == TABLE_STREAMING &&
            pl->tables[i]->ahead > position)
            return;
    if (position > pl->state.committed)
        pl->state.committed = position;
}

/* Every table is asked: earlier pieces of the epoch may have gone to others than this one's. A
 * table without anything written does nothing. */
static bool
commit_epoch(Pipeline *pl, const Epoch *epoch, Error *err)
{
    for (size_t i = 0; i < pl->table_count; i++) {
        PipeTable *table = pl->tables[i];

        if (atomic_load(&table->state) != TABLE_STREAMING)
            continue;
        TRY(FAULT("writer.commit_table", err));
        TRY(commit_table(pl, table, epoch, err));
    }
    if (epoch->position > pl->committed)
        pl->committed = epoch->position;
    pl->last_commit_time_us = epoch->commit_time_us;
    writer_show(pl, epoch->position);
    TRY(FAULT("writer.committed", err));
    if (ack_limit(pl) <= pl->state.acknowledged)
        TRY(pipeline_write_state(pl, err));
    TRY(ack_advance(pl, epoch->position, err));
    child_tell(pl);
    return true;
}

bool
writer_record(Pipeline *pl, PipeTable *table, Batch *batch, Error *err)
{
    Retry retry = sink_retry(pl);

    if (table->away_since_ms != 0) /* all of it comes again */
        return true;
    TRY(note_name(pl, table, batch, err));
    while (!sink_record(pl->sink, table->sink_table, batch, err)) {
        /* the table of rejects is not usable: the log has to do */
        if (err->kind == ERR_INPUT ||
            (err->kind == ERR_TRANSIENT && is_alone_in_this(pl, table, &retry))) {
            log_warn("rejected values are not recorded", LOG_STR("table", table->schema->qualified),
                     LOG_STR("error", err->msg));
            return true;
        }
        if (!status_retry(pl, &retry, "cannot record rejected values", err))
            return false;
    }
    return true;
}

bool
writer_epoch(Pipeline *pl, Epoch *epoch, Error *err)
{
    for (size_t i = 0; i < BUF_COUNT(&epoch->parked, ParkNote); i++) {
        ParkNote *note = &BUF_AT(&epoch->parked, ParkNote, i);

        if (!park_note_stands(note))
            continue;
        if (note->copy_again)
            writer_copy_again(pl, note->table, note->reason);
        else
            writer_park(pl, note->table, note->reason);
    }
    for (size_t i = 0; i < BUF_COUNT(&epoch->parts, EpochPart); i++) {
        const EpochPart *part = &BUF_AT(&epoch->parts, EpochPart, i);

        if (atomic_load(&part->table->state) == TABLE_STREAMING)
            TRY(write_part(pl, part, err));
        if (atomic_load(&part->table->state) == TABLE_PARKED) /* a value may be why */
            TRY(writer_record(pl, part->table, part->batch, err));
    }
    return !epoch->final || commit_epoch(pl, epoch, err);
}
