/* writer.c - an epoch into the lake: write the pieces, commit every table that was written to, then
 * the state object says so, then the slot may forget. */
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "pipeline/internal.h"
#include "pipeline/retry.h"

enum { GIVE_UP_ONCE_MS = 120000 };

static Retry
sink_retry(const Pipeline *pl)
{
    return retry_begin(pl->cancel, pl->stop, pl->options->once ? GIVE_UP_ONCE_MS : 0);
}

/* What the table was sent since its last commit is dropped; its position holds. */
static bool
drop_pending(Pipeline *pl, PipeTable *table, Error *err)
{
    Retry retry = sink_retry(pl);

    while (!sink_abandon(pl->sink, table->sink_table, err)) {
        if (err->kind == ERR_INPUT) /* its lake table is broken: nothing can be committed to it */
            return true;
        if (!retry_again(&retry, "cannot reload a table", err))
            return false;
    }
    return true;
}

/* A table that cannot go on is parked alone. */
static bool
park_table(Pipeline *pl, PipeTable *table, const char *reason, Error *err)
{
    pipe_table_park(table, reason);
    return drop_pending(pl, table, err);
}

/* Its copy begins with the next session of the stream. */
bool
writer_copy_again(Pipeline *pl, PipeTable *table, const char *reason, Error *err)
{
    pipe_table_copy_again(table, reason);
    pl->restart = true;
    return table->sink_table == NULL || drop_pending(pl, table, err);
}

bool
writer_evolve(Pipeline *pl, PipeTable *table, const TableSchema *shape, Error *err)
{
    Retry retry = sink_retry(pl);

    if (pipe_table_is_hidden(table) && !schema_same_shape(shape, table->schema))
        return writer_copy_again(
            pl, table, "its columns or its key changed while its copy was interrupted", err);
    while (!sink_evolve(pl->sink, table->sink_table, shape, err)) {
        if (err->kind == ERR_COPY)
            return writer_copy_again(pl, table, err->msg, err);
        if (err->kind == ERR_INPUT)
            return park_table(pl, table, err->msg, err);
        if (!retry_again(&retry, "cannot change columns", err))
            return false;
    }
    return true;
}

static bool
write_part(Pipeline *pl, const EpochPart *part, Error *err)
{
    Retry retry = sink_retry(pl);
    PipeTable *table = part->table;

    TRY(writer_evolve(pl, table, part->batch->schema, err));
    if (atomic_load(&table->state) != TABLE_STREAMING)
        return true;
    while (!sink_write(pl->sink, table->sink_table, part->batch, err)) {
        if (err->kind == ERR_COPY)
            return writer_copy_again(pl, table, err->msg, err);
        if (err->kind == ERR_INPUT)
            return park_table(pl, table, err->msg, err);
        if (!retry_again(&retry, "cannot write", err))
            return false;
    }
    return true;
}

/* The stream brought another shape. What the catalog said before then may be older than that: it is
 * asked again. */
static void
follow_shape(Pipeline *pl, PipeTable *table, Position position)
{
    pipe_table_set_schema(table, table->sink_table->source);
    if (table->due == NULL || position <= table->due_at)
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
    int64_t started = clock_ms();

    while (!sink_commit(pl->sink, table->sink_table, epoch->position, epoch->commit_time_us, err)) {
        if (err->kind == ERR_INPUT)
            return park_table(pl, table, err->msg, err);
        if (!retry_again(&retry, "cannot commit", err))
            return false;
    }
    if (hidden && !pipe_table_is_hidden(table))
        end_copy(pl, table, epoch->position);
    if (table->sink_table->source != NULL && table->sink_table->source != table->schema)
        follow_shape(pl, table, epoch->position);
    if (table->sink_table->position != before)
        log_info("committed", LOG_STR("table", table->schema->qualified),
                 LOG_STR("position", POSITION_TEXT(epoch->position)),
                 LOG_INT("rows", table->sink_table->rows), LOG_MS("took", clock_ms() - started));
    return true;
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
    if (epoch->position > pl->state.committed)
        pl->state.committed = epoch->position;
    TRY(FAULT("writer.committed", err));
    if (ack_limit(pl) <= pl->state.acknowledged)
        TRY(pipeline_write_state(pl, err));
    TRY(ack_advance(pl, epoch->position, err));
    child_tell(pl);
    return true;
}

bool
writer_epoch(Pipeline *pl, Epoch *epoch, Error *err)
{
    for (size_t i = 0; i < BUF_COUNT(&epoch->parked, ParkNote); i++) {
        ParkNote *note = &BUF_AT(&epoch->parked, ParkNote, i);

        if (note->table->copy_again) /* asked for meanwhile: that mends it, too */
            continue;
        TRY(note->copy_again ? writer_copy_again(pl, note->table, note->reason, err)
                             : park_table(pl, note->table, note->reason, err));
    }
    for (size_t i = 0; i < BUF_COUNT(&epoch->parts, EpochPart); i++) {
        const EpochPart *part = &BUF_AT(&epoch->parts, EpochPart, i);

        if (atomic_load(&part->table->state) == TABLE_STREAMING)
            TRY(write_part(pl, part, err));
    }
    return !epoch->final || commit_epoch(pl, epoch, err);
}
