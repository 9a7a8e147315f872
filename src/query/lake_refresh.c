/* lake_refresh.c - what changed in the warehouse, and the views that show it. */
#include <assert.h>
#include <stdlib.h>

#include "avro/json_node.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "query/lake_internal.h"
#include "query/pg_catalog.h"
#include "query/view_sql.h"

enum {
    PATIENCE_MS = 60000, /* with what a shown table lacks for the moment: the others wait, too */
    RETRY_MS = 10000,
};

/* What one refresh works with. */
typedef struct Refresh {
    Lake *lake;
    Arena *arena;
    Buf pipelines; /* Pipeline, as they were before the tables were looked at */
    bool again;    /* a pipeline turned up that was not among them */
    bool any_change;
} Refresh;

/* --- what changed ----------------------------------------------------------------- */

/* The namespace _walberg is the pipelines' own; only what was rejected is for everybody. */
static bool
is_hidden(const TableName *name)
{
    return str_eqc(name->space, "_walberg") && !str_eqc(name->name, "rejects");
}

static bool
is_rejects(const LakeTable *table)
{
    return strcmp(table->space, "_walberg") == 0; /* of which there is no other: is_hidden() */
}

static void
forget_metadata(LakeTable *table)
{
    arena_free(table->arena);
    free(table->token);
    table->arena = NULL;
    table->metadata = NULL;
    table->token = NULL;
    table->wanted = NULL;
}

static void
leave_out(LakeTable *table, const char *reason)
{
    if (table->reason == NULL || strcmp(table->reason, reason) != 0)
        log_warn("table left out", LOG_STR("schema", table->space), LOG_STR("table", table->name),
                 LOG_STR("reason", reason));
    free(table->next_reason);
    table->next_reason = xstrdup(reason);
}

/* What goes wrong with one table. All tables stay at one epoch, so the others wait with one that is
 * shown for what may pass; for a minute. Else it is left out alone, and looked at again when it may
 * have passed: true. */
static bool
leave_out_alone(LakeTable *table, const Error *err)
{
    int64_t now = clock_ms();

    if (err->kind == ERR_CANCELED)
        return false;
    if (err->kind == ERR_TRANSIENT) {
        if (table->failing_ms == 0)
            table->failing_ms = now;
        if (table->shown && now - table->failing_ms < LIMIT("query.patience_ms", PATIENCE_MS))
            return false;
        table->retry_ms = now + RETRY_MS;
    }
    leave_out(table, err->msg);
    return true;
}

static bool
is_due(const LakeTable *table)
{
    return table->retry_ms != 0 && clock_ms() >= table->retry_ms;
}

/* Metadata that cannot be understood concerns this table only. */
static bool
load_metadata(Refresh *refresh, LakeTable *table, const TableName *name, Error *err)
{
    CatalogTable loaded;
    bool found = false;

    forget_metadata(table);
    table->arena = arena_new();
    TRY(catalog_load(refresh->lake->catalog, table->arena, name, &loaded, &found, err));
    table->listed = found;
    table->changed = true;
    if (!found)
        return true;
    table->token = xstrdup(loaded.token);
    if (metadata_parse(table->arena, loaded.metadata, &table->metadata, err))
        return true;
    table->metadata = NULL;
    leave_out(table, err->msg);
    return err->kind == ERR_INPUT;
}

static bool
is_named(const LakeTable *table, const TableName *name)
{
    return str_eqc(name->space, table->space) && str_eqc(name->name, table->name);
}

/* The one that had it is gone. */
static void
take_name(Lake *lake, LakeTable *table, const TableName *name)
{
    forget_metadata(table);
    pthread_mutex_lock(&lake->lock);
    lake_name_table(table, name->space, name->name);
    pthread_mutex_unlock(&lake->lock);
}

/* DuckDB folds the case of quoted names, too: it has one of the two, and would show its rows under
 * both names. */
static void
set_twin(const Refresh *refresh, LakeTable *table, const TableName *name)
{
    free(table->twin);
    table->twin = xstrdup(
        arena_printf(refresh->arena, "%.*s.%.*s", STR_ARG(name->space), STR_ARG(name->name)));
}

/* Whether its metadata is another, and that. */
static bool
follow_metadata(Refresh *refresh, LakeTable *table, const TableName *name, Error *err)
{
    const char *token = NULL;

    TRY(catalog_current_token(refresh->lake->catalog, refresh->arena, name, table->token, &token,
                              err));
    if (token == NULL)
        table->listed = false;
    else if (table->token == NULL || strcmp(token, table->token) != 0)
        TRY(load_metadata(refresh, table, name, err));
    return true;
}

static bool
look_at_table(Refresh *refresh, const TableName *name, Error *err)
{
    Lake *lake = refresh->lake;
    LakeTable *table = lake_find_table(lake, name->space, name->name);

    if (is_hidden(name))
        return true;
    if (table == NULL) {
        pthread_mutex_lock(&lake->lock);
        table = lake_add_table(lake, name->space, name->name);
        pthread_mutex_unlock(&lake->lock);
    } else if (!is_named(table, name) && table->listed) {
        set_twin(refresh, table, name);
        return true;
    } else if (!is_named(table, name)) {
        take_name(lake, table, name);
    }
    table->listed = true;
    if (table->metadata == NULL && table->retry_ms != 0 && !is_due(table))
        return true;
    if (follow_metadata(refresh, table, name, err))
        return true;
    if (!leave_out_alone(table, err))
        return WRAP(err, "%s.%s", table->space, table->name);
    forget_metadata(table);
    table->changed = true;
    return true;
}

/* How far all tables of a pipeline are committed, from its state object. */
static bool
read_pipeline(Refresh *refresh, const char *name, Error *err)
{
    AUTO_BUF Buf bytes = {0};
    const char *key = arena_printf(refresh->arena, "_walberg/%s.json", name);
    Pipeline pipeline = {.name = str_of(name)};
    Error ignored;

    TRY(store_get(refresh->lake->options.warehouse, key, &bytes, &pipeline.known, NULL, err));
    if (pipeline.known) {
        AUTO_NODE JsonNode *json = NULL;
        Str committed = STR("");

        /* no word of what is committed: nothing is */
        if (!node_parse(buf_view(&bytes), &json, &ignored) ||
            !node_to_str(node_get(json, "committed"), &committed) ||
            !position_parse(committed, &pipeline.committed, &ignored))
            pipeline.committed = POSITION_NONE;
    }
    BUF_PUSH(&refresh->pipelines, Pipeline, pipeline);
    return true;
}

static bool
read_pipelines(Refresh *refresh, Error *err)
{
    const Buf *names = &refresh->lake->pipelines;

    buf_reset(&refresh->pipelines);
    for (size_t i = 0; i < BUF_COUNT(names, char *); i++)
        TRY(read_pipeline(refresh, BUF_AT(names, char *, i), err));
    return true;
}

/* NULL: it was not known when this refresh began; the next round knows it. */
static const Pipeline *
find_pipeline(Refresh *refresh, Str name)
{
    for (size_t i = 0; i < BUF_COUNT(&refresh->pipelines, Pipeline); i++)
        if (str_eq(BUF_AT(&refresh->pipelines, Pipeline, i).name, name))
            return &BUF_AT(&refresh->pipelines, Pipeline, i);
    BUF_PUSH(&refresh->lake->pipelines, char *, xstrdup(arena_str(refresh->arena, name).ptr));
    BUF_PUSH(&refresh->pipelines, Pipeline, ((Pipeline){.name = arena_str(refresh->arena, name)}));
    refresh->again = true;
    return NULL;
}

/* Which snapshot a table shall show; it changes when that or the metadata does. */
static void
choose_snapshot(Refresh *refresh, LakeTable *table)
{
    const TableMetadata *metadata = table->metadata;
    /* rejects have the name of the pipeline that had the first one, and those of all; they are
     * committed before their rows, so the newest are always shown */
    Str name = is_rejects(table) ? STR_NULL : property_get(&metadata->properties, "cdc.pipeline");
    const Pipeline *pipeline = name.ptr == NULL ? NULL : find_pipeline(refresh, name);
    PlanMoment moment_before = table->moment;
    bool copying_before = table->copying;

    /* a pipeline's table has a position from the moment on when all its rows are there */
    table->copying =
        name.ptr != NULL && property_get(&metadata->properties, "cdc.position").ptr == NULL;
    table->wanted = plan_choose_snapshot(metadata, pipeline != NULL && pipeline->known,
                                         pipeline == NULL ? POSITION_NONE : pipeline->committed,
                                         &table->moment);
    if (!table->settled || is_due(table) || table->moment != moment_before ||
        table->copying != copying_before ||
        table->snapshot_id != (table->wanted == NULL ? 0 : table->wanted->snapshot_id))
        table->changed = true;
    if (!table->changed && table->retry_ms == 0)
        table->failing_ms = 0; /* nothing is left to be read: what failed has passed */
}

static bool
look_at_tables(Refresh *refresh, Error *err)
{
    Lake *lake = refresh->lake;
    TableName *names = NULL;
    size_t count = 0;

    TRY(catalog_list(lake->catalog, refresh->arena, &names, &count, err));
    for (size_t i = 0; i < lake_table_count(lake); i++) {
        lake_table(lake, i)->listed = false;
        free(lake_table(lake, i)->twin);
        lake_table(lake, i)->twin = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        LakeTable *table = lake_find_table(lake, names[i].space, names[i].name);

        if (table != NULL && is_named(table, &names[i]))
            table->listed = true;
    }
    for (size_t i = 0; i < count; i++)
        TRY(look_at_table(refresh, &names[i], err));
    for (size_t i = 0; i < lake_table_count(lake); i++)
        if ((lake_table(lake, i)->twin != NULL) != lake_table(lake, i)->had_twin)
            lake_table(lake, i)->changed = true;
    for (size_t i = 0; i < lake_table_count(lake); i++)
        if (lake_table(lake, i)->listed && lake_table(lake, i)->metadata != NULL)
            choose_snapshot(refresh, lake_table(lake, i));
    return true;
}

/* The committed position is read before the tables: they may be ahead of it, never behind. */
static bool
look_at_catalog(Refresh *refresh, Error *err)
{
    Lake *lake = refresh->lake;

    do {
        refresh->again = false;
        TRY(read_pipelines(refresh, err));
        TRY(look_at_tables(refresh, err));
    } while (refresh->again);
    for (size_t i = 0; i < lake_table_count(lake); i++)
        if (lake_table(lake, i)->changed || !lake_table(lake, i)->listed)
            refresh->any_change = true;
    return true;
}

/* --- the new views ---------------------------------------------------------------- */

static const IcebergSchema *
wanted_schema(const LakeTable *table)
{
    const TableMetadata *metadata = table->metadata;
    const IcebergSchema *schema = NULL;

    /* The schema of an older snapshot is the one it was written with. */
    if (table->wanted != NULL && table->wanted->snapshot_id != metadata->current_snapshot_id)
        schema = metadata_find_schema(metadata, table->wanted->schema_id);
    return schema == NULL ? metadata_current_schema(metadata) : schema;
}

/* Why it cannot be shown whatever its files are, or NULL. */
static const char *
flaw(Arena *arena, const LakeTable *table, const IcebergSchema *schema)
{
    Str space = str_of(table->space);

    if (pg_catalog_owns_schema(space))
        return "the name of its schema is taken";
    if (table->moment == MOMENT_LOST)
        return "its history does not reach back to the moment that is shown of the others";
    if (table->twin != NULL)
        return arena_printf(arena,
                            "table %s has its name but for the case of letters, which cannot "
                            "be told apart here",
                            table->twin);
    if (schema->field_count == 0)
        return "it has no columns";
    if (!iceberg_schema_understood(schema))
        return arena_printf(arena, "it has a column of a type that is not supported (%s)",
                            schema->beyond);
    return NULL;
}

/* Why it has no rows to show yet, or NULL. */
static const char *
wait_reason(const LakeTable *table)
{
    if (table->copying)
        return "its copy is not complete yet";
    if (table->moment == MOMENT_AHEAD)
        return "its rows are of a later moment than what is shown of other tables, and wait for "
               "these";
    return NULL;
}

/* What will be run for one table. */
typedef struct Change {
    LakeTable *table;
    const char *sql;
    bool shows; /* else it takes away what there is */
} Change;

/* *out_planned false: it is left out. */
static bool
plan_files(Refresh *refresh, LakeTable *table, TablePlan *plan, bool *out_planned, Error *err)
{
    Lake *lake = refresh->lake;
    const PlanMake make = {.files = &lake->files,
                           .duck = lake->duck,
                           .cache = &table->cache,
                           .snapshot = table->wanted,
                           .schema = wanted_schema(table)};

    *out_planned = table->wanted == NULL || table_plan_make(refresh->arena, &make, plan, err);
    if (!*out_planned && !leave_out_alone(table, err))
        return WRAP(err, "%s.%s", table->space, table->name);
    return true;
}

static void
put_schema(const ViewTable *view, Buf *sql)
{
    buf_cstr(sql, "CREATE SCHEMA IF NOT EXISTS ");
    duck_quote_identifier(sql, view->space);
    buf_byte(sql, ';');
}

static void
put_drop_view(const LakeTable *table, Buf *sql)
{
    buf_cstr(sql, "DROP VIEW IF EXISTS ");
    duck_quote_identifier(sql, str_of(table->space));
    buf_byte(sql, '.');
    duck_quote_identifier(sql, str_of(table->name));
    buf_byte(sql, ';');
}

static void
put_relation(const Refresh *refresh, const LakeTable *table, const ViewTable *view, int64_t rows,
             Buf *sql)
{
    const PgRelation relation = {
        .oid = table->oid, .space = view->space, .name = view->name, .rows = rows};
    PgAttribute *attributes;
    size_t count;

    view_attributes(refresh->arena, view, &attributes, &count);
    pg_catalog_put_relation(sql, &relation, attributes, count);
}

/* Who asks what there is finds the table and its columns. There is no view, which would have no
 * rows: a transaction that is open when the copy gets complete goes on with what it saw. */
static void
put_waiting(const Refresh *refresh, Change *change, const ViewTable *view, const char *reason,
            Buf *sql)
{
    change->table->next_reason = xstrdup(reason);
    put_schema(view, sql);
    put_drop_view(change->table, sql);
    put_relation(refresh, change->table, view, -1, sql);
    change->shows = true;
}

/* The statements that show a table's wanted state; none when it is left out. */
static bool
put_table(Refresh *refresh, Change *change, Buf *sql, Error *err)
{
    LakeTable *table = change->table;
    ViewTable view = {.space = str_of(table->space),
                      .name = str_of(table->name),
                      .metadata = table->metadata,
                      .schema = wanted_schema(table)};
    const char *reason = flaw(refresh->arena, table, view.schema);
    const char *wait = wait_reason(table);
    TablePlan plan = {0};
    bool planned = false;

    if (reason != NULL) {
        leave_out(table, reason);
        return true;
    }
    if (wait != NULL) {
        put_waiting(refresh, change, &view, wait, sql);
        return true;
    }
    TRY(plan_files(refresh, table, &plan, &planned, err));
    if (!planned)
        return true;
    table->next_dead_set =
        plan.dead == NULL ? 0 : dead_table_publish(refresh->lake->dead, plan.dead);
    table->next_hold = plan.hold;
    view.plan = table->wanted == NULL ? NULL : &plan;
    view.dead_set = table->next_dead_set;
    table->next_numbers = view_text_numbers(&view);
    put_schema(&view, sql);
    if (!view_put(sql, &view, err)) {
        leave_out(table, err->msg);
        buf_reset(sql);
        return true;
    }
    buf_byte(sql, ';');
    put_relation(refresh, table, &view, plan.rows, sql);
    change->shows = true;
    return true;
}

static void
put_drop(const LakeTable *table, Buf *sql)
{
    put_drop_view(table, sql);
    pg_catalog_drop_relation(sql, table->oid);
}

static bool
plan_change(Refresh *refresh, LakeTable *table, Buf *changes, Error *err)
{
    AUTO_BUF Buf sql = {0};
    Change change = {.table = table};

    if (table->listed && table->metadata != NULL) {
        free(table->next_reason);
        table->next_reason = NULL;
        table->retry_ms = 0;
        text_numbers_done(&table->next_numbers);
        TRY(put_table(refresh, &change, &sql, err));
    }
    if (!change.shows && table->shown)
        put_drop(table, &sql);
    change.sql = arena_strdup(refresh->arena, buf_text(&sql));
    BUF_PUSH(changes, Change, change);
    return true;
}

static bool
run_change(Lake *lake, Change *change, Arena *arena)
{
    AUTO_BUF Buf sql = {0};
    Error err = {0};

    if (change->sql[0] == '\0' || duck_session_run(lake->session, change->sql, &err))
        return true;
    if (!change->shows) /* taking a view away does not fail */
        log_error("cannot drop a view", LOG_STR("error", err.msg));
    leave_out(change->table, err.msg);
    if (change->table->shown)
        put_drop(change->table, &sql);
    change->sql = arena_strdup(arena, buf_text(&sql));
    change->shows = false;
    return false;
}

/* All changes in one transaction; a table that DuckDB does not take is left out and all begins
 * again. */
static bool
run_changes(Refresh *refresh, Buf *changes, Error *err)
{
    Lake *lake = refresh->lake;
    size_t count = BUF_COUNT(changes, Change);

    for (size_t restart = 0; restart <= count; restart++) {
        size_t done = 0;

        TRY(duck_session_run(lake->session, "BEGIN TRANSACTION", err));
        while (done < count && run_change(lake, &BUF_AT(changes, Change, done), refresh->arena))
            done++;
        if (done == count)
            return duck_session_run(lake->session, "COMMIT", err);
        TRY(duck_session_run(lake->session, "ROLLBACK", err));
    }
    return FAIL(err, ERR_BUG, "the views cannot be replaced");
}

static void
retire(Lake *lake, uint64_t *set, FileHold *hold)
{
    if (*set != 0 || hold->path != NULL)
        BUF_PUSH(&lake->retired, Retired,
                 ((Retired){.epoch = lake->epoch, .set = *set, .hold = *hold}));
    *set = 0;
    *hold = (FileHold){0};
}

/* Under the lock: what sessions see follows what DuckDB has. */
static void
settle(Lake *lake, const Change *change)
{
    LakeTable *table = change->table;

    table->changed = false;
    retire(lake, &table->dead_set, &table->hold);
    if (!change->shows)
        retire(lake, &table->next_dead_set, &table->next_hold);
    table->dead_set = table->next_dead_set;
    table->hold = table->next_hold;
    table->next_dead_set = 0;
    table->next_hold = (FileHold){0};
    table->settled = true;
    table->had_twin = table->twin != NULL;
    table->shown = change->shows;
    table->snapshot_id = table->wanted == NULL ? 0 : table->wanted->snapshot_id;
    text_numbers_done(&table->numbers);
    table->numbers = table->next_numbers;
    table->next_numbers = (TextNumbers){0};
    free(table->reason);
    table->reason = table->next_reason;
    table->next_reason = NULL;
    if (table->retry_ms == 0)
        table->failing_ms = 0;
    table->tells_progress = change->shows && table->copying;
    if (!table->listed)
        lake_remove_table(lake, table);
}

/* Nothing was replaced: the tables stay marked as changed, what was made for them goes. */
static void
abandon(Lake *lake)
{
    for (size_t i = 0; i < lake_table_count(lake); i++) {
        LakeTable *table = lake_table(lake, i);

        if (table->next_dead_set != 0)
            dead_table_retire(lake->dead, table->next_dead_set);
        table->next_dead_set = 0;
        file_hold_done(&table->next_hold);
    }
}

static bool
make_changes(Refresh *refresh, Buf *changes, Error *err)
{
    Lake *lake = refresh->lake;

    for (size_t i = 0; i < lake_table_count(lake); i++) {
        LakeTable *table = lake_table(lake, i);

        if (table->changed || !table->listed)
            TRY(plan_change(refresh, table, changes, err));
    }
    return run_changes(refresh, changes, err);
}

static bool
replace_views(Refresh *refresh, Error *err)
{
    Lake *lake = refresh->lake;
    AUTO_BUF Buf changes = {0};

    if (!make_changes(refresh, &changes, err)) {
        abandon(lake);
        return false;
    }
    pthread_mutex_lock(&lake->lock);
    lake->epoch++;
    for (size_t i = 0; i < BUF_COUNT(&changes, Change); i++)
        settle(lake, &BUF_AT(&changes, Change, i));
    lake_sweep(lake);
    pthread_mutex_unlock(&lake->lock);
    return true;
}

static void
refresh_done(Refresh *refresh)
{
    buf_done(&refresh->pipelines);
    arena_free(refresh->arena);
}

bool
lake_refresh(Lake *lake, bool *out_changed, Error *err)
{
    AUTO(refresh_done) Refresh refresh = {.lake = lake, .arena = arena_new()};

    *out_changed = false;
    TRY(look_at_catalog(&refresh, err));
    if (!refresh.any_change)
        return true;
    TRY(replace_views(&refresh, err));
    *out_changed = true;
    return true;
}
