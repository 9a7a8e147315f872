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
put_copied(JsonWriter *json, const StateCopied *copied)
{
    const SinkLoaded *loaded = &copied->loaded;

    jw_object(json);
    put_position(json, "position", loaded->position);
    put_number(json, "rows", loaded->rows);
    put_number(json, "tasks", copied->tasks);
    put_text(json, "files", loaded->files);
    put_text(json, "rejects", loaded->rejects);
    put_text(json, "shape", loaded->shape);
    put_text(json, "widths", loaded->widths);
    jw_key(json, "ranges");
    jw_array(json);
    for (int i = 0; i < copied->range_count; i++) {
        const CopyRange *range = &copied->ranges[i];

        jw_object(json);
        put_number(json, "oid", range->relid);
        put_number(json, "first_page", range->first_page);
        put_number(json, "end_page", range->end_page);
        jw_end(json);
    }
    jw_end(json);
    jw_end(json);
}

static void
put_copy(JsonWriter *json, const StateCopy *copy)
{
    jw_key(json, "copy");
    jw_object(json);
    put_mark(json, "files_mark", copy->files_mark);
    put_mark(json, "columns_mark", copy->columns_mark);
    put_text(json, "publication_version", copy->publication);
    jw_key(json, "parts");
    jw_array(json);
    for (int i = 0; i < copy->count; i++)
        put_copied(json, &copy->parts[i]);
    jw_end(json);
    jw_end(json);
}

static void
put_names(JsonWriter *json, const StateTable *table)
{
    jw_key(json, "names");
    jw_array(json);
    for (int i = 0; i < table->name_count; i++) {
        jw_object(json);
        put_text(json, "schema", table->names[i].schema_name);
        put_text(json, "table", table->names[i].table_name);
        jw_end(json);
    }
    jw_end(json);
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
    if (table->words != NULL)
        put_text(json, "words", table->words);
    jw_key(json, "copy_again");
    jw_bool(json, table->copy_again);
    if (table->mended) {
        jw_key(json, "mended");
        jw_bool(json, true);
    }
    if (table->dropped) {
        jw_key(json, "dropped");
        jw_bool(json, true);
    }
    if (table->name_count > 0)
        put_names(json, table);
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
    if (table->copy.count > 0)
        put_copy(json, &table->copy);
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
    put_position(&json, "timeline_began", state->timeline_began);
    put_text(&json, "database", state->database);
    put_text(&json, "slot", state->slot);
    put_text(&json, "publication", state->publication);
    put_number(&json, "publication_oid", state->publication_oid);
    put_text(&json, "publication_version",
             state->publication_version == NULL ? "" : state->publication_version);
    jw_key(&json, "publication_made");
    jw_bool(&json, state->publication_made);
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

static int64_t
get_number(json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static bool
get_copied(Arena *arena, json_t *object, StateCopied *out_copied, Error *err)
{
    json_t *ranges = json_object_get(object, "ranges");
    StateCopied copied = {.loaded.rows = get_number(object, "rows"),
                          .tasks = (int) get_number(object, "tasks"),
                          .range_count = (int) json_array_size(ranges)};

    TRY(get_position(object, "position", &copied.loaded.position, err));
    TRY(get_text(arena, object, "files", &copied.loaded.files, err));
    TRY(get_text(arena, object, "rejects", &copied.loaded.rejects, err));
    TRY(get_text(arena, object, "shape", &copied.loaded.shape, err));
    TRY(get_text(arena, object, "widths", &copied.loaded.widths, err));
    copied.ranges = ARENA_ARRAY(arena, CopyRange, (size_t) copied.range_count);
    for (int i = 0; i < copied.range_count; i++) {
        json_t *range = json_array_get(ranges, (size_t) i);

        if (json_object_get(range, "end_page") == NULL)
            return FAIL(err, ERR_INPUT, "a range of pages without an end");
        copied.ranges[i] = (CopyRange){.relid = get_oid(range, "oid"),
                                       .first_page = get_number(range, "first_page"),
                                       .end_page = get_number(range, "end_page")};
    }
    *out_copied = copied;
    return true;
}

static bool
get_copy(Arena *arena, json_t *object, StateCopy *out_copy, Error *err)
{
    json_t *parts = json_object_get(object, "parts");
    StateCopy copy = {.files_mark = get_mark(object, "files_mark"),
                      .columns_mark = get_mark(object, "columns_mark"),
                      .count = (int) json_array_size(parts)};

    TRY(get_text(arena, object, "publication_version", &copy.publication, err));
    copy.parts = ARENA_ARRAY(arena, StateCopied, (size_t) copy.count);
    for (int i = 0; i < copy.count; i++)
        TRY(get_copied(arena, json_array_get(parts, (size_t) i), &copy.parts[i], err));
    *out_copy = copy;
    return true;
}

static bool
get_names(Arena *arena, json_t *object, StateTable *table, Error *err)
{
    json_t *names = json_object_get(object, "names");

    table->name_count = (int) json_array_size(names);
    table->names = ARENA_ARRAY(arena, StateName, (size_t) table->name_count);
    for (int i = 0; i < table->name_count; i++) {
        json_t *name = json_array_get(names, (size_t) i);

        TRY(get_text(arena, name, "schema", &table->names[i].schema_name, err));
        TRY(get_text(arena, name, "table", &table->names[i].table_name, err));
    }
    return true;
}

/* A state of before they were written has none of them: what is not known is not compared. */
static bool
get_table(Arena *arena, json_t *object, StateTable *out_table, Error *err)
{
    StateTable table = {.oid = get_oid(object, "oid"),
                        .files_mark = get_mark(object, "files_mark"),
                        .columns_mark = get_mark(object, "columns_mark"),
                        .copy_again = json_is_true(json_object_get(object, "copy_again")),
                        .mended = json_is_true(json_object_get(object, "mended")),
                        .dropped = json_is_true(json_object_get(object, "dropped"))};
    json_t *published = json_object_get(object, "published");
    json_t *copy = json_object_get(object, "copy");

    TRY(get_text(arena, object, "source", &table.source, err));
    TRY(get_text(arena, object, "lake", &table.lake, err));
    TRY(get_text(arena, object, "schema", &table.schema_name, err));
    TRY(get_text(arena, object, "table", &table.table_name, err));
    TRY(get_position(object, "streamed", &table.streamed, err));
    if (json_object_get(object, "committed") != NULL)
        TRY(get_position(object, "committed", &table.committed, err));
    if (json_object_get(object, "leaves") != NULL)
        TRY(get_text(arena, object, "leaves", &table.leaves, err));
    if (json_object_get(object, "words") != NULL)
        TRY(get_text(arena, object, "words", &table.words, err));
    if (published != NULL) {
        table.published.noted = true;
        table.published.entry = get_oid(published, "entry");
        table.published.schema_entry = get_oid(published, "schema_entry");
        TRY(get_text(arena, published, "missing", &table.published.missing, err));
        TRY(get_text(arena, published, "filter", &table.published.filter, err));
        TRY(get_text(arena, published, "columns", &table.published.columns, err));
    }
    TRY(get_names(arena, object, &table, err));
    if (copy != NULL)
        TRY(get_copy(arena, copy, &table.copy, err));
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

static bool
parse(Arena *arena, Str json, PipelineState *out_state, Error *err)
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
    /* older versions did not say, and dropped one of the default name as theirs */
    state.publication_made = !json_is_false(json_object_get(root, "publication_made"));
    TRY(get_text(arena, root, "phase", &phase, err));
    state.phase = strcmp(phase, "creating") == 0 ? SLOT_CREATING : SLOT_READY;
    if (json_object_get(root, "timeline_began") != NULL)
        TRY(get_position(root, "timeline_began", &state.timeline_began, err));
    TRY(get_position(root, "consistent_point", &state.consistent_point, err));
    TRY(get_position(root, "committed", &state.committed, err));
    TRY(get_position(root, "acknowledged", &state.acknowledged, err));
    TRY(get_tables(arena, root, &state, err));
    *out_state = state;
    return true;
}

bool
state_parse(Arena *arena, Str json, PipelineState *out_state, Error *err)
{
    return parse(arena, json, out_state, err) ||
           error_hint(err, "hint: put it back from a backup of the lake; if there is none, remove "
                           "it, then " BEGIN_AGAIN);
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

bool
state_has_name(const StateTable *table, Str schema_name, Str table_name)
{
    if (str_eqc(schema_name, table->schema_name) && str_eqc(table_name, table->table_name))
        return true;
    for (int i = 0; i < table->name_count; i++)
        if (str_eqc(schema_name, table->names[i].schema_name) &&
            str_eqc(table_name, table->names[i].table_name))
            return true;
    return false;
}

static StateName *
copy_names(Arena *arena, const StateTable *table, int room)
{
    StateName *names = ARENA_ARRAY(arena, StateName, (size_t) (table->name_count + room));

    for (int i = 0; i < table->name_count; i++)
        names[i] = (StateName){arena_strdup(arena, table->names[i].schema_name),
                               arena_strdup(arena, table->names[i].table_name)};
    return names;
}

void
state_add_name(Arena *arena, StateTable *table, Str schema_name, Str table_name)
{
    if (state_has_name(table, schema_name, table_name))
        return;
    table->names = copy_names(arena, table, 1);
    table->names[table->name_count++] =
        (StateName){arena_str(arena, schema_name).ptr, arena_str(arena, table_name).ptr};
}

StateCopy
state_copy_copy(Arena *arena, const StateCopy *copy)
{
    StateCopy made = *copy;

    if (copy->publication != NULL)
        made.publication = arena_strdup(arena, copy->publication);
    made.parts = ARENA_ARRAY(arena, StateCopied, (size_t) copy->count);
    for (int i = 0; i < copy->count; i++) {
        StateCopied *part = &made.parts[i];
        size_t ranges = (size_t) copy->parts[i].range_count;

        *part = copy->parts[i];
        part->loaded.files = arena_strdup(arena, part->loaded.files);
        part->loaded.rejects = arena_strdup(arena, part->loaded.rejects);
        part->loaded.shape = arena_strdup(arena, part->loaded.shape);
        part->loaded.widths = arena_strdup(arena, part->loaded.widths);
        part->ranges = ARENA_ARRAY(arena, CopyRange, ranges);
        if (ranges > 0)
            memcpy(part->ranges, copy->parts[i].ranges, ranges * sizeof *part->ranges);
    }
    return made;
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
    copy.names = copy_names(arena, table, 0);
    copy.copy = state_copy_copy(arena, &table->copy);
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
