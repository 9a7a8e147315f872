#include "pipeline/table.h"

#include <stdlib.h>

#include "base/log.h"

const char *
table_state_name(TableState state)
{
    switch (state) {
    case TABLE_WAITING:
    case TABLE_COPYING:
        return "copying";
    case TABLE_STREAMING:
        return "streaming";
    case TABLE_PARKED:
        return "parked";
    }
    return "?";
}

PipeTable *
pipe_table_new(const TableSchema *schema)
{
    PipeTable *table = xcalloc(1, sizeof *table);

    table->schema = schema_ref(schema);
    table->reading = schema_ref(schema);
    atomic_init(&table->state, TABLE_WAITING);
    return table;
}

void
pipe_table_free(PipeTable *table)
{
    if (table == NULL)
        return;
    batch_free(table->filling);
    schema_unref(table->schema);
    schema_unref(table->reading);
    schema_unref(table->due);
    arena_free(table->relation_arena);
    free(table->column_map);
    free(table->error);
    free(table->note);
    free(table);
}

void
pipe_table_note(PipeTable *table, const char *note)
{
    free(table->note);
    table->note = note == NULL ? NULL : xstrdup(note);
}

void
pipe_table_park(PipeTable *table, const char *reason)
{
    free(table->error);
    table->error = xstrdup(reason);
    table->away_since_ms = 0;
    atomic_store(&table->state, TABLE_PARKED);
    log_error("parked", LOG_STR("table", table->schema->qualified), LOG_STR("reason", reason));
}

bool
pipe_table_leave(PipeTable *table)
{
    TableState streaming = TABLE_STREAMING;

    return atomic_compare_exchange_strong(&table->state, &streaming, TABLE_PARKED);
}

/* It parks with an error; who only left has none yet. */
bool
park_note_stands(const ParkNote *note)
{
    return !note->table->copy_again && note->table->error == NULL;
}

void
pipe_table_unpark(PipeTable *table)
{
    free(table->error);
    table->error = NULL;
    table->away_since_ms = 0;
}

void
pipe_table_copy_again(PipeTable *table, const char *reason)
{
    pipe_table_unpark(table);
    table->copy_again = table->begin_anew = true;
    table->gap = false;
    table->hold = POSITION_NONE;
    atomic_store(&table->state, TABLE_WAITING);
    log_warn("to be copied again", LOG_STR("table", table->schema->qualified),
             LOG_STR("reason", reason));
}

bool
pipe_table_needs_copy(const PipeTable *table)
{
    return table->copy_again || table->sink_table == NULL ||
           table->sink_table->position == POSITION_NONE;
}

bool
pipe_table_is_hidden(const PipeTable *table)
{
    return table->sink_table != NULL && table->sink_table->hidden_until != POSITION_NONE;
}

void
pipe_table_set_schema(PipeTable *table, const TableSchema *schema)
{
    const TableSchema *old = table->schema;

    table->schema = schema_ref(schema);
    schema_unref(old);
}

void
pipe_table_set_due(PipeTable *table, const TableSchema *now, Position at)
{
    const TableSchema *old = table->due;

    table->due = now == NULL ? NULL : schema_ref(now);
    table->due_at = at;
    schema_unref(old);
}

Epoch *
epoch_new(void)
{
    return xcalloc(1, sizeof(Epoch));
}

void
epoch_free(Epoch *epoch)
{
    if (epoch == NULL)
        return;
    for (size_t i = 0; i < BUF_COUNT(&epoch->parts, EpochPart); i++)
        batch_free(BUF_AT(&epoch->parts, EpochPart, i).batch);
    for (size_t i = 0; i < BUF_COUNT(&epoch->parked, ParkNote); i++)
        free(BUF_AT(&epoch->parked, ParkNote, i).reason);
    buf_done(&epoch->parts);
    buf_done(&epoch->parked);
    free(epoch);
}

bool
epoch_is_empty(const Epoch *epoch)
{
    return epoch->parts.len == 0 && epoch->parked.len == 0;
}
