/* ack.c - what the slot may be told.
 *
 * Never more than every table has: a parked table and a table being copied hold the slot at their
 * position, also while the copy is interrupted. The state object learns a position before the slot
 * does, so that a slot that is further than the state was moved by somebody else. */
#include "base/clock.h"
#include "base/fault.h"
#include "pipeline/internal.h"

enum { IDLE_ACK_MS = 10000 };

Position
ack_limit(const Pipeline *pl)
{
    Position limit = UINT64_MAX;
    Position copying = copier_position(pl);

    if (copying != POSITION_NONE)
        limit = copying;
    for (size_t i = 0; i < pl->table_count; i++) {
        const PipeTable *table = pl->tables[i];
        bool parked = atomic_load(&table->state) == TABLE_PARKED;

        /* what a copy alone can mend, or nothing, needs no WAL */
        if (table->gap || table->dropped)
            continue;
        if (table->copied_from != POSITION_NONE && !table->begin_anew && table->copied_from < limit)
            limit = table->copied_from;
        /* a table to be copied reads under a newer snapshot: it needs nothing from here */
        if (parked && !pipe_table_needs_copy(table) && table->sink_table->position < limit)
            limit = table->sink_table->position;
        if (parked && table->hold != POSITION_NONE && table->hold < limit)
            limit = table->hold;
    }
    return limit;
}

bool
ack_advance(Pipeline *pl, Position position, Error *err)
{
    Position limit = ack_limit(pl);

    if (position > limit)
        position = limit;
    if (position <= pl->state.acknowledged)
        return true;
    pl->state.acknowledged = position;
    TRY(pipeline_write_state(pl, err));
    TRY(FAULT("ack", err));
    if (pl->reader != NULL)
        reader_set_flushed(pl->reader, position);
    return true;
}

bool
ack_idle(Pipeline *pl, bool now, Error *err)
{
    Position idle = reader_idle_position(pl->reader);

    if (idle == POSITION_NONE || idle <= pl->committed)
        return true;
    if (!now && !pl->idle_due && clock_ms() - pl->state_written_ms < IDLE_ACK_MS)
        return true;
    if (!recover_timeline_stands(pl))
        return true;
    pl->idle_due = false;
    pl->committed = idle;
    writer_show(pl, idle);
    TRY(ack_advance(pl, idle, err));
    child_tell(pl);
    return true;
}
