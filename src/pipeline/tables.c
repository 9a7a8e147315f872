/* tables.c - the tables taken in: found in the source, published, attached to the lake. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pipeline/internal.h"
#include "source/publication.h"

/* --- one table ------------------------------------------------------------------------------- */

StateTable *
tables_state(const Pipeline *pl, const PipeTable *table)
{
    StateTable *known = state_find_oid(&pl->state, table->schema->relid);

    return known != NULL ? known : state_find_table(&pl->state, table->schema->qualified);
}

/* The same name under another oid is another table: the lake's rows are not its past. */
static bool
same_table(const PipeTable *table, const StateTable *known, Error *err)
{
    if (known == NULL || known->oid == table->schema->relid)
        return true;
    return FAIL(err, ERR_INPUT,
                "the table was dropped and made again (oid %u is now %u); the lake has the old "
                "one\n" HINT_COPY_AGAIN,
                known->oid, table->schema->relid);
}

/* Rows from before the slot began: what happened between the two is unknown. */
static bool
no_gap(const Pipeline *pl, const StateTable *known, const SinkTable *table, Error *err)
{
    if (known != NULL && known->streamed == POSITION_NONE)
        return FAIL(err, ERR_INPUT,
                    "the table was not published for a while: changes of that time are "
                    "missing\n" HINT_COPY_AGAIN);
    if (known != NULL && known->streamed < pl->state.acknowledged)
        return FAIL(err, ERR_INPUT,
                    "the table was away while the slot moved from %s to %s: changes between are "
                    "missing\n" HINT_COPY_AGAIN,
                    POSITION_TEXT(known->streamed), POSITION_TEXT(pl->state.acknowledged));
    if (table->position >= pl->state.consistent_point)
        return true;
    return FAIL(err, ERR_INPUT,
                "the lake has the table as of %s, but the slot began at %s: changes between are "
                "missing\n" HINT_COPY_AGAIN,
                POSITION_TEXT(table->position), POSITION_TEXT(pl->state.consistent_point));
}

/* A table that was renamed keeps its lake table: it is the same by oid. */
bool
tables_open(Pipeline *pl, PipeTable *table, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const TableSchema *schema = table->schema;
    const StateTable *known = tables_state(pl, table);
    SourceName name = {.schema_name = schema->schema_name, .table_name = schema->table_name};
    TableRule rule = config_table_rule(pl->config, arena, name.schema_name, name.table_name);

    if (known != NULL) {
        name.schema_name = str_of(known->schema_name);
        name.table_name = str_of(known->table_name);
        if (strcmp(known->source, schema->qualified) != 0)
            log_info("renamed in the source, keeps its name in the lake",
                     LOG_STR("table", schema->qualified), LOG_STR("lake", known->lake));
    }
    table->inserts_replace = rule.key.count > 0;
    return sink_attach(pl->sink, schema, &name, &table->sink_table, err);
}

/* The state's entry, with what is not known yet. */
static void
remember(Pipeline *pl, const PipeTable *table, const SourceTable *source)
{
    const StateTable *known = tables_state(pl, table);
    const TableSchema *schema = table->schema;
    StateTable entry = {
        .schema_name = arena_str(pl->state_arena, schema->schema_name).ptr,
        .table_name = arena_str(pl->state_arena, schema->table_name).ptr,
        .files_mark = source->files_mark,
        .columns_mark = source->columns_mark,
    };

    if (known != NULL)
        entry = *known;
    entry.oid = schema->relid;
    entry.source = schema->qualified;
    entry.lake = table->sink_table->lake_name;
    entry.streamed = pl->state.acknowledged;
    entry.copy_again = table->copy_again;
    state_set_table(pl->state_arena, &pl->state, &entry);
}

static bool
attach(Pipeline *pl, PipeTable *table, const SourceTable *source, Error *err)
{
    const StateTable *known = tables_state(pl, table);

    table->copy_again = known != NULL && known->copy_again;
    TRY(tables_open(pl, table, err));

    bool copied = table->sink_table->position != POSITION_NONE && !table->copy_again;

    if (copied) {
        TRY(same_table(table, known, err));
        table->gap = !no_gap(pl, known, table->sink_table, err);
        if (table->gap)
            return false;
        atomic_store(&table->state, TABLE_STREAMING);
    }
    remember(pl, table, source);
    if (copied && table->sink_table->source == NULL)
        pipe_table_set_schema(table, table->sink_table->schema);
    return true;
}

static bool
add_table(Pipeline *pl, const SourceTable *source, Error *err)
{
    PipeTable *table = pipe_table_new(source->schema);

    table->pages = source->pages;
    pl->tables = xrealloc((void *) pl->tables, (pl->table_count + 1) * sizeof(PipeTable *));
    pl->tables[pl->table_count++] = table;
    if (source->problem != NULL) {
        pipe_table_park(table, source->problem);
        return true;
    }
    if (attach(pl, table, source, err))
        return true;
    if (err->kind != ERR_INPUT)
        return false;
    /* alone; the others go on, and the slot keeps what it will need when its cause is mended */
    if (tables_state(pl, table) != NULL)
        table->hold = pl->state.acknowledged;
    pipe_table_park(table, err->msg);
    return true;
}

static bool
is_known(const Pipeline *pl, uint32_t relid)
{
    for (size_t i = 0; i < pl->table_count; i++)
        if (pl->tables[i]->schema->relid == relid)
            return true;
    return false;
}

/* --- all of them ----------------------------------------------------------------------------- */

/* Tables that we stream and that are not published (any more): whoever puts them back, what
 * happened meanwhile is missing. no_gap() sees it by the position that is forgotten here. */
static void
note_unpublished(Pipeline *pl, const SourceTables *tables)
{
    for (int i = 0; i < tables->count; i++) {
        StateTable *known = state_find_oid(&pl->state, tables->items[i].relid);

        if (known != NULL && tables->items[i].schema != NULL && !tables->items[i].published)
            known->streamed = POSITION_NONE;
    }
}

static bool
publish(Pipeline *pl, Arena *arena, SourceTables *tables, Error *err)
{
    PublicationWant want = {.name = pl->config->source_publication,
                            .may_create = true,
                            .may_alter = pl->publication_is_ours};
    Publication publication;

    note_unpublished(pl, tables);
    /* ALTER PUBLICATION waits for locks on the tables: better later than holding up the others */
    TRY(pg_exec(pl->conn, arena, "SET lock_timeout = '2s'", NULL, err));
    TRY(source_publication_ensure(pl->conn, arena, &want, tables, &publication, err));
    TRY(pg_exec(pl->conn, arena, "SET lock_timeout = 0", NULL, err));
    if (publication.made)
        log_info("publication made", LOG_STR("publication", want.name));
    if (publication.altered)
        log_info("publication altered", LOG_STR("publication", want.name));
    if (publication.unpublished != NULL)
        log_warn("the publication does not publish everything",
                 LOG_STR("missing", publication.unpublished));
    if (publication.missing > 0 && publication.missing_sql != NULL)
        log_warn("tables are not published", LOG_INT("tables", publication.missing),
                 LOG_STR("run", publication.missing_sql));
    return true;
}

/* Read and publish. A slot that is older than its publication cannot be read at all (pgoutput looks
 * the publication up as of each change), so this comes before the slot is made. */
bool
tables_publish(Pipeline *pl, Error *err)
{
    TablesRead read = {.config = pl->config, .publication = pl->config->source_publication};

    source_tables_done(&pl->source);
    arena_reset(pl->source_arena);
    pl->source = (SourceTables){0};
    TRY(source_tables_load(pl->conn, pl->source_arena, &read, &pl->source, err));
    TRY(tables_position(pl, &pl->source_at, err));
    if (pl->options->once) /* it does not read on to where the catalog was read */
        pl->source_at = pl->stop_at;
    return publish(pl, pl->source_arena, &pl->source, err);
}

/* Take in those that are new. */
bool
tables_attach(Pipeline *pl, Error *err)
{
    size_t before = pl->table_count;

    for (int i = 0; i < pl->source.count; i++) {
        const SourceTable *table = &pl->source.items[i];

        if (table->schema != NULL && table->published && !is_known(pl, table->relid))
            TRY(add_table(pl, table, err));
    }
    shapes_compare(pl, &pl->source, pl->source_at);
    if (pl->table_count == 0)
        log_warn("no table to replicate", LOG_STR("hint", "see source.tables and walberg check"));
    return pl->table_count == before || pipeline_write_state(pl, err);
}

size_t
tables_waiting(const Pipeline *pl)
{
    size_t count = 0;

    for (size_t i = 0; i < pl->table_count; i++)
        count += atomic_load(&pl->tables[i]->state) == TABLE_WAITING;
    return count;
}

/* A cheap question first: did pg_class change at all since we looked? */
static bool
something_changed(Pipeline *pl, bool *out_changed, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PgResult result;

    TRY(pg_query(pl->conn, arena,
                 "SELECT count(*) || ' ' || coalesce(max(oid::int8), 0) || ' ' ||"
                 " coalesce(sum(relfilenode::int8), 0) || ' ' ||"
                 " (SELECT sum(xmin::text::int8) FROM pg_catalog.pg_attribute"
                 "  WHERE attrelid >= 16384)"
                 " FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p') AND relpersistence = 'p'",
                 0, NULL, &result, err));
    *out_changed = !str_eq(pg_value(&result, 0, 0), pl->relations_seen);
    if (*out_changed)
        pl->relations_seen = arena_str(pl->arena, pg_value(&result, 0, 0));
    return true;
}

bool
tables_position(Pipeline *pl, Position *out_position, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PgResult result;

    TRY(pg_query(pl->conn, arena,
                 "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
                 " ELSE pg_current_wal_insert_lsn() END",
                 0, NULL, &result, err));
    return position_parse(pg_value(&result, 0, 0), out_position, err);
}

/* Readers hold pointers to the list of tables, so it grows only between two sessions: here it is
 * only found that there is something to take in. */
static bool
look(Pipeline *pl, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    TablesRead read = {.config = pl->config, .publication = pl->config->source_publication};
    SourceTables tables = {0};
    Position at;
    bool changed;

    TRY(recover_connection(pl, err));
    TRY(something_changed(pl, &changed, err));
    if (!changed)
        return true;
    TRY(source_tables_load(pl->conn, arena, &read, &tables, err));
    for (int i = 0; i < tables.count; i++)
        if (tables.items[i].schema != NULL && !is_known(pl, tables.items[i].relid))
            pl->new_tables = pl->restart = true;

    bool done = tables_position(pl, &at, err);

    if (done)
        shapes_compare(pl, &tables, at);
    source_tables_done(&tables);
    return done;
}

bool
tables_take_new(Pipeline *pl, Error *err)
{
    pl->new_tables = false;
    TRY(recover_connection(pl, err));
    if (!tables_publish(pl, err)) {
        if (strcmp(pg_sqlstate(pl->conn), "55P03") != 0) /* lock_not_available */
            return false;
        log_warn("new tables are locked, trying again later", LOG_STR("error", err->msg));
        pl->relations_seen = STR_NULL;
        return true;
    }
    return tables_attach(pl, err);
}

bool
tables_look_for_new(Pipeline *pl, Error *err)
{
    if (look(pl, err))
        return true;
    if (err->kind != ERR_TRANSIENT)
        return false;
    log_warn("cannot look for new tables", LOG_STR("error", err->msg));
    pg_close(pl->conn);
    pl->conn = NULL;
    return true;
}
