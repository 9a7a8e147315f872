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

static void
put_number(JsonWriter *json, const char *key, int64_t number)
{
    jw_key(json, key);
    jw_int(json, number);
}

static void
put_table(JsonWriter *json, const StateTable *table)
{
    const StatePublished *published = &table->published;

    jw_object(json);
    put_number(json, "oid", table->oid);
    put_text(json, "source", table->source);
    put_text(json, "lake", table->lake);
    put_text(json, "schema", table->schema_name);
    put_text(json, "table", table->table_name);
    put_position(json, "streamed", table->streamed);
    put_position(json, "committed", table->committed);
    put_mark(json, "files_mark", table->files_mark);
    put_mark(json, "columns_mark", table->columns_mark);
    if (table->leaves != NULL)
        put_text(json, "leaves", table->leaves);
    jw_key(json, "copy_again");
    jw_bool(json, table->copy_again);
    if (table->dropped) {
        jw_key(json, "dropped");
        jw_bool(json, true);
    }
    if (published->noted) {
        jw_key(json, "published");
        jw_object(json);
        put_number(json, "entry", published->entry);
        put_number(json, "schema_entry", published->schema_entry);
        put_text(json, "missing", published->missing);
        put_text(json, "filter", published->filter);
        put_text(json, "columns", published->columns);
        jw_end(json);
    }
    jw_end(json);
}

void
state_write(const PipelineState *state, Buf *out)
{
    JsonWriter json;

    jw_begin_pretty(&json, out);
    jw_object(&json);
    put_number(&json, "version", 2);
    put_text(&json, "pipeline", state->pipeline);
    put_text(&json, "writer", state->writer);
    put_text(&json, "system_identifier", state->system_identifier);
    put_number(&json, "timeline", state->timeline);
    put_text(&json, "database", state->database);
    put_text(&json, "slot", state->slot);
    put_text(&json, "publication", state->publication);
    put_number(&json, "publication_oid", state->publication_oid);
    put_text(&json, "publication_version",
             state->publication_version == NULL ? "" : state->publication_version);
    put_text(&json, "phase", state->phase == SLOT_CREATING ? "creating" : "ready");
    put_position(&json, "consistent_point", state->consistent_point);
    put_position(&json, "committed", state->committed);
    put_position(&json, "acknowledged", state->acknowledged);
    jw_key(&json, "tables");
    jw_array(&json);
    for (size_t i = 0; i < state->table_count; i++)
        put_table(&json, &state->tables[i]);
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

static uint32_t
get_oid(json_t *object, const char *key)
{
    return (uint32_t) json_integer_value(json_object_get(object, key));
}

/* A state of before they were written has none of them: what is not known is not compared. */
static bool
get_table(Arena *arena, json_t *object, StateTable *out_table, Error *err)
{
    StateTable table = {.oid = get_oid(object, "oid"),
                        .files_mark = get_mark(object, "files_mark"),
                        .columns_mark = get_mark(object, "columns_mark"),
                        .copy_again = json_is_true(json_object_get(object, "copy_again")),
                        .dropped = json_is_true(json_object_get(object, "dropped"))};
    json_t *published = json_object_get(object, "published");

    TRY(get_text(arena, object, "source", &table.source, err));
    TRY(get_text(arena, object, "lake", &table.lake, err));
    TRY(get_text(arena, object, "schema", &table.schema_name, err));
    TRY(get_text(arena, object, "table", &table.table_name, err));
    TRY(get_position(object, "streamed", &table.streamed, err));
    if (json_object_get(object, "committed") != NULL)
        TRY(get_position(object, "committed", &table.committed, err));
    if (json_object_get(object, "leaves") != NULL)
        TRY(get_text(arena, object, "leaves", &table.leaves, err));
    if (published != NULL) {
        table.published.noted = true;
        table.published.entry = get_oid(published, "entry");
        table.published.schema_entry = get_oid(published, "schema_entry");
        TRY(get_text(arena, published, "missing", &table.published.missing, err));
        TRY(get_text(arena, published, "filter", &table.published.filter, err));
        TRY(get_text(arena, published, "columns", &table.published.columns, err));
    }
    *out_table = table;
    return true;
}

static bool
get_tables(Arena *arena, json_t *root, PipelineState *state, Error *err)
{
    json_t *tables = json_object_get(root, "tables");

    state->table_count = json_array_size(tables);
    state->tables = ARENA_ARRAY(arena, StateTable, state->table_count);
    for (size_t i = 0; i < state->table_count; i++)
        TRY(get_table(arena, json_array_get(tables, i), &state->tables[i], err));
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
    state.publication_oid = get_oid(root, "publication_oid");
    state.publication_version = "";
    if (json_object_get(root, "publication_version") != NULL)
        TRY(get_text(arena, root, "publication_version", &state.publication_version, err));
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
    if (copy.published.noted) {
        copy.published.missing = arena_strdup(arena, table->published.missing);
        copy.published.filter = arena_strdup(arena, table->published.filter);
        copy.published.columns = arena_strdup(arena, table->published.columns);
    }
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
