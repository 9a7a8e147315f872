#include "pipeline/state.h"

#include <string.h>

#include "base/json_writer.h"

static void
put_position(JsonWriter *json, const char *key, Position position)
{
    jw_key(json, key);
    jw_cstr(json, POSITION_TEXT(position));
}

static void
put_text(JsonWriter *json, const char *key, const char *text)
{
    jw_key(json, key);
    jw_cstr(json, text);
}

void
state_write(const PipelineState *state, Buf *out)
{
    JsonWriter json;

    jw_begin_pretty(&json, out);
    jw_object(&json);
    jw_key(&json, "version");
    jw_int(&json, 1);
    put_text(&json, "pipeline", state->pipeline);
    put_text(&json, "system_identifier", state->system_identifier);
    jw_key(&json, "timeline");
    jw_int(&json, state->timeline);
    put_text(&json, "database", state->database);
    put_text(&json, "slot", state->slot);
    put_text(&json, "publication", state->publication);
    put_text(&json, "phase", state->phase == SLOT_CREATING ? "creating" : "ready");
    put_position(&json, "consistent_point", state->consistent_point);
    put_position(&json, "committed", state->committed);
    put_position(&json, "acknowledged", state->acknowledged);
    jw_key(&json, "tables");
    jw_array(&json);
    for (size_t i = 0; i < state->table_count; i++) {
        jw_object(&json);
        jw_key(&json, "oid");
        jw_int(&json, state->tables[i].oid);
        put_text(&json, "source", state->tables[i].source);
        put_text(&json, "lake", state->tables[i].lake);
        jw_end(&json);
    }
    jw_end(&json);
    jw_end(&json);
    buf_byte(out, '\n');
}

const StateTable *
state_find_table(const PipelineState *state, const char *source)
{
    for (size_t i = 0; i < state->table_count; i++)
        if (strcmp(state->tables[i].source, source) == 0)
            return &state->tables[i];
    return NULL;
}

void
state_set_table(Arena *arena, PipelineState *state, const StateTable *table)
{
    StateTable copy = {.oid = table->oid,
                       .source = arena_strdup(arena, table->source),
                       .lake = arena_strdup(arena, table->lake)};

    for (size_t i = 0; i < state->table_count; i++) {
        if (strcmp(state->tables[i].source, table->source) == 0) {
            state->tables[i] = copy;
            return;
        }
    }

    StateTable *tables = ARENA_ARRAY(arena, StateTable, state->table_count + 1);

    if (state->table_count > 0)
        memcpy(tables, state->tables, state->table_count * sizeof *tables);
    tables[state->table_count++] = copy;
    state->tables = tables;
}
