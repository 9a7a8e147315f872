/* cleanup_plan.c - what would go: tables of this pipeline, and with --all what belongs to it. */
#include "cli/cleanup.h"

#include <unistd.h>

#include "cli/connect.h"
#include "config/pattern.h"
#include "iceberg/metadata.h"
#include "source/publication.h"
#include "source/slot.h"
#include "source/tables.h"

#define LAKE_PREFIX "lake:" /* of an argument that is a name in the lake */

/* --- the state object ------------------------------------------------------------------------ */

bool
cleanup_load_state(Cleanup *cleanup, Error *err)
{
    TRY(cli_load_state(cleanup->config, cleanup->arena, cleanup->store, &cleanup->state,
                       &cleanup->state_version, err));
    cleanup->has_state = cleanup->state.pipeline != NULL;
    return true;
}

/* The state object has the names of walberg's last start. */
static bool
follow_renames(Cleanup *cleanup, Error *err)
{
    PipelineState *state = &cleanup->state;
    uint32_t *oids = ARENA_ARRAY(cleanup->arena, uint32_t, state->table_count);
    const char **names = ARENA_ARRAY(cleanup->arena, const char *, state->table_count);

    if (!cleanup->same_source || state->table_count == 0)
        return true;
    for (size_t i = 0; i < state->table_count; i++)
        oids[i] = state->tables[i].oid;
    TRY(source_table_names(cleanup->conn, cleanup->arena, oids, (int) state->table_count, names,
                           err));
    for (size_t i = 0; i < state->table_count; i++)
        if (names[i] != NULL)
            state->tables[i].source = names[i];
    return true;
}

/* --- tables ---------------------------------------------------------------------------------- */

static bool
is_rejects(const TableName *name)
{
    return str_eqc(name->space, "_walberg") && str_eqc(name->name, "rejects");
}

static const char *
full_name(Arena *arena, const TableName *name)
{
    return arena_printf(arena, "%.*s.%.*s", STR_ARG(name->space), STR_ARG(name->name));
}

/* The state object has a lake table's name as one text, which may be that of two: "x.y".c, x."y.c".
 * The settings know its parts, unless they were others when it was made; then the text has to do.
 */
bool
cleanup_is_lake_table(const Cleanup *cleanup, const StateTable *known, const TableName *name)
{
    Arena *arena = cleanup->arena;

    if (strcmp(known->lake, full_name(arena, name)) != 0)
        return false;

    Str schema = str_of(known->schema_name);
    TableRule rule = config_table_rule(cleanup->config, arena, schema, str_of(known->table_name));
    TableName made = {
        .space = config_namespace(cleanup->config, arena, cleanup->state.database, schema),
        .name = str_of(rule.name != NULL ? rule.name : known->table_name),
    };

    return strcmp(known->lake, full_name(arena, &made)) != 0 ||
           (str_eq(made.space, name->space) && str_eq(made.name, name->name));
}

/* The source's name of a lake table; NULL: the state does not know it. */
static const char *
known_name(const Cleanup *cleanup, const TableName *name)
{
    for (size_t i = 0; i < cleanup->state.table_count; i++)
        if (cleanup_is_lake_table(cleanup, &cleanup->state.tables[i], name))
            return cleanup->state.tables[i].source;
    return NULL;
}

static bool
is_lake_name(const char *argument, const CleanupItem *item)
{
    return strcmp(argument, item->name) == 0 ||
           pattern_matches(str_of(argument), item->table.space, item->table.name);
}

/* A table may have been renamed, and its old name in the lake be the new name of another. So an
 * argument that is a table's name in the source means this one and nothing else. */
static bool
matches(const Cleanup *cleanup, const char *argument, const CleanupItem *item)
{
    if (strncmp(argument, LAKE_PREFIX, strlen(LAKE_PREFIX)) == 0)
        return is_lake_name(argument + strlen(LAKE_PREFIX), item);
    if (state_find_table(&cleanup->state, argument) != NULL)
        return item->known != NULL && strcmp(argument, item->known) == 0;
    return is_lake_name(argument, item);
}

static bool
is_named(const Cleanup *cleanup, const CleanupItem *item)
{
    for (int i = 0; i < cleanup->cli->arg_count; i++)
        if (matches(cleanup, cleanup->cli->args[i], item))
            return true;
    return false;
}

static bool
measure(Cleanup *cleanup, CleanupItem *item, Error *err)
{
    const char *location = catalog_location(cleanup->catalog, cleanup->arena, &item->table);
    const char *prefix =
        arena_printf(cleanup->arena, "%s/", store_key(cleanup->store, cleanup->arena, location));
    StoreObject *objects;

    TRY(store_list(cleanup->store, prefix, cleanup->arena, &objects, &item->objects, err));
    for (size_t i = 0; i < item->objects; i++)
        item->bytes += objects[i].bytes;
    return true;
}

static bool
add_table(Cleanup *cleanup, CleanupItem item, Error *err)
{
    TRY(measure(cleanup, &item, err));
    BUF_PUSH(&cleanup->items, CleanupItem, item);
    return true;
}

/* Whose table is it? *out_ours; a foreign one that was named is ERR_INPUT. Damaged metadata says
 * nothing: then the state object does. */
static bool
is_ours(Cleanup *cleanup, CleanupItem *item, bool *out_ours, Error *err)
{
    CatalogTable loaded;
    TableMetadata *metadata;
    bool found = true;
    bool parsed = false;

    if (catalog_load(cleanup->catalog, cleanup->arena, &item->table, &loaded, &found, err))
        parsed = found && metadata_parse(cleanup->arena, loaded.metadata, &metadata, err);
    else if (err->kind != ERR_INPUT)
        return false;
    *out_ours = !parsed && found && item->known != NULL;
    if (!found || *out_ours)
        return true;

    Str pipeline = parsed ? property_get(&metadata->properties, "cdc.pipeline")
                          : STR("metadata that cannot be read");

    *out_ours = parsed && str_eqc(pipeline, cleanup->config->pipeline);
    if (parsed)
        item->uuid = metadata->table_uuid.ptr;
    if (!parsed && cleanup->cli->all)
        BUF_PUSH(&cleanup->notes, const char *,
                 arena_printf(cleanup->arena,
                              "table %s stays: its metadata cannot be read, and nothing else says "
                              "that it is ours",
                              item->name));
    if (*out_ours || !is_named(cleanup, item))
        return true;
    return FAIL(err, ERR_INPUT,
                "%s is not a table of pipeline %s: it belongs to %s%.*s\n"
                "hint: remove it with what made it",
                item->name, cleanup->config->pipeline,
                pipeline.ptr == NULL ? "somebody else"
                : parsed             ? "pipeline "
                                     : "",
                STR_ARG(pipeline));
}

static bool
plan_listed(Cleanup *cleanup, const TableName *names, size_t count, Error *err)
{
    for (size_t i = 0; i < count; i++) {
        CleanupItem item = {
            .kind = CLEANUP_TABLE, .name = full_name(cleanup->arena, &names[i]), .table = names[i]};
        bool ours = false;

        if (is_rejects(&names[i]))
            continue;
        item.known = known_name(cleanup, &names[i]);
        if (cleanup->cli->arg_count > 0 && !is_named(cleanup, &item))
            continue;
        TRY(is_ours(cleanup, &item, &ours, err));
        if (ours)
            TRY(add_table(cleanup, item, err));
    }
    return true;
}

static bool
is_listed(const Cleanup *cleanup, const TableName *names, size_t count, const StateTable *known)
{
    for (size_t i = 0; i < count; i++)
        if (cleanup_is_lake_table(cleanup, known, &names[i]))
            return true;
    return false;
}

/* Tables that the state knows and the catalog does not: an earlier cleanup dropped them and died
 * before their files were gone. Either part of a name may have dots: the one with files is it. */
static bool
plan_half_dropped(Cleanup *cleanup, const TableName *names, size_t count, Error *err)
{
    for (size_t i = 0; i < cleanup->state.table_count; i++) {
        const StateTable *known = &cleanup->state.tables[i];
        CleanupItem best = {.kind = CLEANUP_TABLE, .name = known->lake, .known = known->source};

        if (is_listed(cleanup, names, count, known))
            continue;
        for (const char *dot = strchr(known->lake, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
            CleanupItem item = best;

            item.table = (TableName){.space = {known->lake, (size_t) (dot - known->lake)},
                                     .name = str_of(dot + 1)};
            item.objects = 0;
            if (item.table.space.len == 0 || item.table.name.len == 0 ||
                !cleanup_is_lake_table(cleanup, known, &item.table))
                continue;
            TRY(measure(cleanup, &item, err));
            if (best.table.name.ptr == NULL || item.objects > best.objects)
                best = item;
        }
        if (best.table.name.ptr != NULL &&
            (cleanup->cli->arg_count == 0 || is_named(cleanup, &best)))
            BUF_PUSH(&cleanup->items, CleanupItem, best);
    }
    return true;
}

/* Whether it may mean several tables: a wildcard that is not in quotes. */
static bool
is_pattern(const char *argument)
{
    bool quoted = false;

    for (; *argument != '\0'; argument++) {
        quoted ^= *argument == '"';
        if (!quoted && (*argument == '*' || *argument == '?'))
            return true;
    }
    return false;
}

static bool
fail_ambiguous(const Cleanup *cleanup, const char *argument, const CleanupItem *const two[2],
               Error *err)
{
    const char *ways[2];

    for (int i = 0; i < 2; i++)
        ways[i] = arena_printf(cleanup->arena, LAKE_PREFIX "%s.%s",
                               pg_quote_identifier(cleanup->arena, two[i]->table.space),
                               pg_quote_identifier(cleanup->arena, two[i]->table.name));
    return FAIL(err, ERR_INPUT,
                "%.100s may mean either of two tables\n"
                "hint: say which one: '%s' or '%s'",
                argument, ways[0], ways[1]);
}

static bool
check_arguments(const Cleanup *cleanup, Error *err)
{
    for (int i = 0; i < cleanup->cli->arg_count; i++) {
        const char *argument = cleanup->cli->args[i];
        const CleanupItem *found[2] = {NULL, NULL};

        for (size_t k = 0; k < BUF_COUNT(&cleanup->items, CleanupItem); k++) {
            const CleanupItem *item = &BUF_AT(&cleanup->items, CleanupItem, k);

            if (matches(cleanup, argument, item) && found[1] == NULL)
                found[found[0] != NULL] = item;
        }
        if (found[0] == NULL)
            return FAIL(err, ERR_INPUT,
                        "the lake has no table %.200s of pipeline %s\n"
                        "hint: tables are named schema.table; walberg cleanup --dry-run lists them",
                        argument, cleanup->config->pipeline);
        if (found[1] != NULL && !is_pattern(argument))
            return fail_ambiguous(cleanup, argument, found, err);
    }
    return true;
}

/* --- everything else ------------------------------------------------------------------------- */

static void
note(Cleanup *cleanup, const char *text)
{
    BUF_PUSH(&cleanup->notes, const char *, text);
}

static void
add(Cleanup *cleanup, CleanupKind kind, const char *name)
{
    BUF_PUSH(&cleanup->items, CleanupItem, ((CleanupItem){.kind = kind, .name = name}));
}

/* Rejects of all pipelines of a warehouse go to one table: the last one takes it along. */
static bool
plan_rejects(Cleanup *cleanup, Error *err)
{
    CleanupItem item = {.kind = CLEANUP_TABLE,
                        .name = "_walberg.rejects",
                        .table = {.space = STR("_walberg"), .name = STR("rejects")}};
    StoreObject *objects;
    size_t count;

    TRY(store_list(cleanup->store, "_walberg/", cleanup->arena, &objects, &count, err));
    for (size_t i = 0; i < count; i++) {
        Str key = objects[i].key;

        if (str_ends(key, STR(".json")) && memchr(key.ptr + 9, '/', key.len - 9) == NULL &&
            !str_eqc(key, cli_state_key(cleanup->config, cleanup->arena))) {
            note(cleanup, "table _walberg.rejects stays: other pipelines use it");
            return true;
        }
    }
    TRY(measure(cleanup, &item, err));
    if (item.objects > 0)
        BUF_PUSH(&cleanup->items, CleanupItem, item);
    return true;
}

/* Why it is left; NULL: it is ours, and nobody else reads it. */
static const char *
why_publication_stays(const Cleanup *cleanup, const Publication *publication, const char *others)
{
    if (!cleanup->default_publication)
        return "it is named in the settings";
    if (!publication->owned)
        return "another role owns it";
    if (publication->all_tables)
        return "it is for all tables, so not ours";
    if (!cleanup->state.publication_made)
        return arena_printf(
            cleanup->arena,
            "this pipeline did not make it\n"
            "hint: when nobody reads it: drop publication %s",
            pg_quote_identifier(cleanup->arena, str_of(cleanup->state.publication)));
    return others == NULL ? NULL : arena_printf(cleanup->arena, "slot %s may read it", others);
}

static bool
plan_publication(Cleanup *cleanup, Error *err)
{
    const char *name = cleanup->config->source_publication;
    const SourceTables none = {0};
    const char *others;
    Publication publication;

    TRY(source_publication_load(cleanup->conn, cleanup->arena, name, &none, &publication, err));
    TRY(source_slot_others(cleanup->conn, cleanup->arena, cleanup->state.slot, &others, err));
    if (!publication.exists)
        return true;

    const char *reason = why_publication_stays(cleanup, &publication, others);

    if (reason == NULL)
        add(cleanup, CLEANUP_PUBLICATION, name);
    else
        note(cleanup, arena_printf(cleanup->arena, "publication %s stays: %s", name, reason));
    return true;
}

static bool
plan_slot(Cleanup *cleanup, Error *err)
{
    const char *name = cleanup->config->source_slot;
    Slot slot;

    TRY(source_slot_load(cleanup->conn, cleanup->arena, name, &slot, err));
    if (!slot.exists)
        return true;
    if (strcmp(cleanup->state.slot, name) == 0)
        add(cleanup, CLEANUP_SLOT, name);
    else
        note(cleanup, arena_printf(cleanup->arena, "slot %s stays: the pipeline reads slot %s",
                                   name, cleanup->state.slot));
    return true;
}

/* The state object goes after what it says is ours. */
static bool
plan_all(Cleanup *cleanup, Error *err)
{
    TRY(plan_rejects(cleanup, err));
    if (cleanup->has_state && cleanup->state.phase == SLOT_CREATING) {
        note(cleanup, "slot and publication stay, if there are any: the pipeline was interrupted "
                      "before it had its slot, and another one may have made them since");
    } else if (cleanup->has_state && cleanup->same_source) {
        TRY(plan_publication(cleanup, err));
        TRY(plan_slot(cleanup, err));
    } else if (cleanup->has_state) {
        note(cleanup, "slot and publication stay: the lake was filled from another server");
    } else {
        note(cleanup, "slot and publication stay, if there are any: the lake has no state that "
                      "says they are ours");
    }
    if (cleanup->has_state)
        add(cleanup, CLEANUP_STATE, cli_state_key(cleanup->config, cleanup->arena));
    if (access(cleanup->config->state, F_OK) == 0)
        add(cleanup, CLEANUP_FOLDER, cleanup->config->state);
    return true;
}

bool
cleanup_plan(Cleanup *cleanup, Error *err)
{
    TableName *names;
    size_t count;

    TRY(follow_renames(cleanup, err));
    TRY(catalog_list(cleanup->catalog, cleanup->arena, &names, &count, err));
    TRY(plan_listed(cleanup, names, count, err));
    TRY(plan_half_dropped(cleanup, names, count, err));
    TRY(check_arguments(cleanup, err));
    return !cleanup->cli->all || plan_all(cleanup, err);
}
