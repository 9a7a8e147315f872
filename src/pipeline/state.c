#include "pipeline/state.h"

#include <string.h>

#include "base/json_writer.h"

static void
put_position(JsonWriter *json, const char *key, Position position)
{
    json_key(json, key);
    json_cstr(json, POSITION_TEXT(position));
}

static void
put_text(JsonWriter *json, const char *key, const char *text)
{
    json_key(json, key);
    json_cstr(json, text);
}

void
state_write(const PipelineState *state, Buf *out)
{
    JsonWriter json;

    json_begin_pretty(&json, out);
    json_object(&json);
    json_key(&json, "version");
    json_int(&json, 1);
    put_text(&json, "pipeline", state->pipeline);
    put_text(&json, "system_identifier", state->system_identifier);
    json_key(&json, "timeline");
    json_int(&json, state->timeline);
    put_text(&json, "database", state->database);
    put_text(&json, "slot", state->slot);
    put_text(&json, "publication", state->publication);
    put_text(&json, "phase", state->phase == SLOT_CREATING ? "creating" : "ready");
    put_position(&json, "consistent_point", state->consistent_point);
    put_position(&json, "committed", state->committed);
    put_position(&json, "acknowledged", state->acknowledged);
    json_key(&json, "tables");
    json_array(&json);
    for (size_t i = 0; i < state->table_count; i++) {
        json_object(&json);
        json_key(&json, "oid");
        json_int(&json, state->tables[i].oid);
        put_text(&json, "source", state->tables[i].source);
        put_text(&json, "lake", state->tables[i].lake);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
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
