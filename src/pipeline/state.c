#include "pipeline/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

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

static void
put_mark(JsonWriter *json, const char *key, uint64_t mark)
{
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, mark);
    put_text(json, key, text);
}

void
state_write(const PipelineState *state, Buf *out)
{
    JsonWriter json;

    jw_begin_pretty(&json, out);
    jw_object(&json);
    jw_key(&json, "version");
    jw_int(&json, 2);
    put_text(&json, "pipeline", state->pipeline);
    put_text(&json, "writer", state->writer);
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
        put_text(&json, "schema", state->tables[i].schema_name);
        put_text(&json, "table", state->tables[i].table_name);
        put_position(&json, "streamed", state->tables[i].streamed);
        put_mark(&json, "files_mark", state->tables[i].files_mark);
        put_mark(&json, "columns_mark", state->tables[i].columns_mark);
        jw_key(&json, "copy_again");
        jw_bool(&json, state->tables[i].copy_again);
        jw_end(&json);
    }
    jw_end(&json);
    jw_end(&json);
    buf_byte(out, '\n');
}

static void
json_unref(json_t **json)
{
    json_decref(*json);
}

static bool
get_text(Arena *arena, json_t *object, const char *key, const char **out_text, Error *err)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (text == NULL)
        return FAIL(err, ERR_INPUT, "no text \"%s\"", key);
    *out_text = arena_strdup(arena, text);
    return true;
}

static bool
get_position(json_t *object, const char *key, Position *out_position, Error *err)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (text == NULL)
        return FAIL(err, ERR_INPUT, "no position \"%s\"", key);
    if (!position_parse(str_of(text), out_position, err))
        return WRAP(err, "\"%s\"", key);
    return true;
}

static uint64_t
get_mark(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? 0 : strtoull(text, NULL, 16);
}

static bool
get_tables(Arena *arena, json_t *root, PipelineState *state, Error *err)
{
    json_t *tables = json_object_get(root, "tables");

    state->table_count = json_array_size(tables);
    state->tables = ARENA_ARRAY(arena, StateTable, state->table_count);
    for (size_t i = 0; i < state->table_count; i++) {
        json_t *table = json_array_get(tables, i);

        state->tables[i].oid = (uint32_t) json_integer_value(json_object_get(table, "oid"));
        TRY(get_text(arena, table, "source", &state->tables[i].source, err));
        TRY(get_text(arena, table, "lake", &state->tables[i].lake, err));
        TRY(get_text(arena, table, "schema", &state->tables[i].schema_name, err));
        TRY(get_text(arena, table, "table", &state->tables[i].table_name, err));
        TRY(get_position(table, "streamed", &state->tables[i].streamed, err));
        state->tables[i].files_mark = get_mark(table, "files_mark");
        state->tables[i].columns_mark = get_mark(table, "columns_mark");
        state->tables[i].copy_again = json_is_true(json_object_get(table, "copy_again"));
    }
    return true;
}

bool
state_parse(Arena *arena, Str json, PipelineState *out_state, Error *err)
{
    json_error_t problem;
    __attribute__((cleanup(json_unref))) json_t *root = json_loadb(json.ptr, json.len, 0, &problem);
    PipelineState state = {0};
    const char *phase = "";

    if (root == NULL)
        return FAIL(err, ERR_INPUT, "line %d: %s", problem.line, problem.text);
    if (json_integer_value(json_object_get(root, "version")) != 2)
        return FAIL(
            err, ERR_INPUT,
            "written by another version of walberg\nhint: use that version, or a newer one");
    state.timeline = (int) json_integer_value(json_object_get(root, "timeline"));
    TRY(get_text(arena, root, "pipeline", &state.pipeline, err));
    TRY(get_text(arena, root, "system_identifier", &state.system_identifier, err));
    TRY(get_text(arena, root, "database", &state.database, err));
    TRY(get_text(arena, root, "slot", &state.slot, err));
    TRY(get_text(arena, root, "publication", &state.publication, err));
    TRY(get_text(arena, root, "phase", &phase, err));
    state.phase = strcmp(phase, "creating") == 0 ? SLOT_CREATING : SLOT_READY;
    TRY(get_position(root, "consistent_point", &state.consistent_point, err));
    TRY(get_position(root, "committed", &state.committed, err));
    TRY(get_position(root, "acknowledged", &state.acknowledged, err));
    TRY(get_tables(arena, root, &state, err));
    *out_state = state;
    return true;
}

StateTable *
state_find_table(const PipelineState *state, const char *source)
{
    for (size_t i = 0; i < state->table_count; i++)
        if (strcmp(state->tables[i].source, source) == 0)
            return &state->tables[i];
    return NULL;
}

StateTable *
state_find_oid(const PipelineState *state, uint32_t oid)
{
    for (size_t i = 0; i < state->table_count; i++)
        if (state->tables[i].oid == oid)
            return &state->tables[i];
    return NULL;
}

void
state_set_table(Arena *arena, PipelineState *state, const StateTable *table)
{
    StateTable copy = *table;
    StateTable *place = state_find_oid(state, table->oid);

    copy.source = arena_strdup(arena, table->source);
    copy.lake = arena_strdup(arena, table->lake);
    copy.schema_name = arena_strdup(arena, table->schema_name);
    copy.table_name = arena_strdup(arena, table->table_name);
    if (place == NULL)
        place = state_find_table(state, table->source);
    if (place != NULL) {
        *place = copy;
        return;
    }

    StateTable *tables = ARENA_ARRAY(arena, StateTable, state->table_count + 1);

    if (state->table_count > 0)
        memcpy(tables, state->tables, state->table_count * sizeof *tables);
    tables[state->table_count++] = copy;
    state->tables = tables;
}
