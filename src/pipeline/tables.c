/* tables.c - the tables taken in: found in the source, published, attached to the lake. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "pipeline/internal.h"

/* --- one table ------------------------------------------------------------------------------- */

StateTable *
tables_state(const Pipeline *pl, const PipeTable *table)
{
    StateTable *known = state_find_oid(&pl->state, table->schema->relid);

    if (known != NULL)
        return known;
    known = state_find_table(&pl->state, table->schema->qualified);
    /* not the one that had this name before and is called otherwise now */
    return known != NULL && source_tables_find(&pl->source, known->oid) != NULL ? NULL : known;
}

/* A lake table keeps the name that its table had when it was taken in; another table has that name
 * in the source now. */
static bool
name_is_free(const Pipeline *pl, const TableSchema *schema, Error *err)
{
    for (size_t i = 0; i < pl->state.table_count; i++) {
        const StateTable *other = &pl->state.tables[i];
        const SourceTable *source = source_tables_find(&pl->source, other->oid);

        if (other->oid != schema->relid && source != NULL &&
            str_eqc(schema->schema_name, other->schema_name) &&
            str_eqc(schema->table_name, other->table_name))
            return FAIL(err, ERR_INPUT,
                        "its name in the lake is that of %s, which was called %s before\n"
                        "hint: rename it, or leave it out in source.tables",
                        source->qualified, schema->qualified);
    }
    return true;
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

/* Whoever put back an older version may put the newer one back again: the slot waits. */
static bool
not_older(const StateTable *known, const SinkTable *table, Error *err)
{
    if (known == NULL || table->position >= known->committed)
        return true;
    return FAIL(err, ERR_INPUT,
                "the lake has the table as of %s, and had it as of %s: somebody put an older "
                "version back\n" HINT_COPY_AGAIN,
                POSITION_TEXT(table->position), POSITION_TEXT(known->committed));
}

static bool
is_continued(Pipeline *pl, PipeTable *table, const SourceTable *source, Error *err)
{
    const StateTable *known = tables_state(pl, table);

    table->gap =
        !same_table(table, known, err) ||
        (known != NULL && !gap_in_table(source, &pl->publication, &known->published, err)) ||
        !no_gap(pl, known, table->sink_table, err);
    return !table->gap && not_older(known, table->sink_table, err);
}

/* A table that was renamed keeps its lake table: it is the same by oid. */
bool
tables_open(Pipeline *pl, PipeTable *table, Error *err)
{
    const TableSchema *schema = table->schema;
    const StateTable *known = tables_state(pl, table);
    SinkAttach want = {.schema = schema, .replace = table->copy_again};

    if (known == NULL) {
        TRY(name_is_free(pl, schema, err));
    } else {
        want.resume = known->copy.count > 0;
        want.schema_name = str_of(known->schema_name);
        want.table_name = str_of(known->table_name);
        if (strcmp(known->source, schema->qualified) != 0)
            log_info("renamed in the source, keeps its name in the lake",
                     LOG_STR("table", schema->qualified), LOG_STR("lake", known->lake));
    }
    return sink_attach(pl->sink, &want, &table->sink_table, err);
}

/* The state calls another table what this one is called now: it gets the name that it has now. */
static void
rename_namesake(Pipeline *pl, const TableSchema *schema)
{
    StateTable *namesake = state_find_table(&pl->state, schema->qualified);
    const SourceTable *source =
        namesake == NULL ? NULL : source_tables_find(&pl->source, namesake->oid);

    if (source != NULL)
        namesake->source = arena_strdup(pl->state_arena, source->qualified);
}

void
tables_remember(Pipeline *pl, const PipeTable *table, const SourceTable *source)
{
    const StateTable *known = tables_state(pl, table);
    const TableSchema *schema = table->schema;
    StateTable entry = {
        .schema_name = arena_str(pl->state_arena, schema->schema_name).ptr,
        .table_name = arena_str(pl->state_arena, schema->table_name).ptr,
        .files_mark = source->files_mark,
        .columns_mark = source->columns_mark,
        .words = words_text(pl->state_arena, source),
    };

    if (known != NULL)
        entry = *known;
    else
        rename_namesake(pl, schema);
    entry.oid = schema->relid;
    entry.source = schema->qualified;
    entry.lake = table->sink_table->lake_name;
    entry.streamed = pl->state.acknowledged;
    entry.committed = pipe_table_needs_copy(table) ? POSITION_NONE : table->sink_table->position;
    entry.copy_again = table->copy_again;
    if (pipe_table_needs_copy(table) && !table->copy_again)
        entry.mended = false; /* somebody removed it from the lake */
    entry.dropped = false;
    entry.published = gap_note(source, &pl->publication);
    state_set_table(pl->state_arena, &pl->state, &entry);
}

static bool
attach(Pipeline *pl, PipeTable *table, const SourceTable *source, Error *err)
{
    const StateTable *known = tables_state(pl, table);

    table->copy_again = known != NULL && known->copy_again;
    resume_check(pl, table, source, &pl->publication);
    TRY(tables_open(pl, table, err));

    bool copied = table->sink_table->position != POSITION_NONE && !table->copy_again;

    if (copied) {
        TRY(is_continued(pl, table, source, err));
        table->ahead = table->sink_table->position;
        atomic_store(&table->state, TABLE_STREAMING);
        resume_shown(pl, table);
    }
    tables_remember(pl, table, source);
    gap_say_wanted(table, source, &pl->publication);
    if (copied && table->sink_table->source == NULL)
        pipe_table_set_schema(table, table->sink_table->schema);
    return true;
}

/* The slot keeps what a table that is parked before it is open will need when its cause is mended.
 */
static void
hold_slot(const Pipeline *pl, PipeTable *table)
{
    if (!table->gap && tables_state(pl, table) != NULL)
        table->hold = pl->state.acknowledged;
}

static void
park_new(const Pipeline *pl, PipeTable *table, const char *reason)
{
    hold_slot(pl, table);
    pipe_table_park(table, reason);
}

/* It fails though the lake as a whole is there: the others shall not wait for it. */
static bool
park_alone(Pipeline *pl, PipeTable *table, const Error *cause)
{
    if (!writer_park_alone(pl, table, "cannot open its lake table", cause))
        return false;
    hold_slot(pl, table);
    return true;
}

static bool
take_in(Pipeline *pl, PipeTable *table, const SourceTable *source, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableRule rule = config_table_rule(pl->config, arena, source->schema_name, source->table_name);
    bool done;

    table->inserts_replace = rule.key.count > 0;
    table->pages = source->pages;
    table->barred = source->problem != NULL;
    if (table->barred) {
        park_new(pl, table, source->problem);
        return true;
    }
    table->gap = !source->published;
    if (source->published)
        done = attach(pl, table, source, err);
    else
        done = gap_in_table(source, &pl->publication, &(StatePublished){0}, err);
    if (done)
        return true;
    if (err->kind != ERR_INPUT)
        return park_alone(pl, table, err);
    park_new(pl, table, err->msg);
    return true;
}

static void
say_limits(const SourceTable *source)
{
    if (source->warning != NULL)
        log_warn("table has limits", LOG_STR("table", source->qualified),
                 LOG_STR("reason", source->warning));
    for (int i = 0; i < source->missing_count; i++)
        log_warn("column will not arrive", LOG_STR("table", source->qualified),
                 LOG_VIEW("column", source->missing[i].name),
                 LOG_STR("reason", source->missing[i].reason));
}

static bool
add_table(Pipeline *pl, const SourceTable *source, Error *err)
{
    PipeTable *table = pipe_table_new(source->schema);

    say_limits(source);
    pl->tables = xrealloc((void *) pl->tables, (pl->table_count + 1) * sizeof(PipeTable *));
    pl->tables[pl->table_count++] = table;
    return take_in(pl, table, source, err);
}

/* The lake was away as a whole when it was taken in. */
static bool
was_interrupted(const PipeTable *table)
{
    return table->sink_table == NULL && atomic_load(&table->state) == TABLE_WAITING &&
           !table->copy_again;
}

/* What the source said against it is mended, or it is time to open its lake table again. */
static bool
is_free_again(const PipeTable *table, const SourceTable *source)
{
    bool again = table->barred || was_interrupted(table) ||
                 (table->sink_table == NULL && writer_is_due(table));

    return again && source->schema != NULL && source->problem == NULL;
}

static bool
take_in_again(Pipeline *pl, PipeTable *table, const SourceTable *source, Error *err)
{
    log_info(table->barred ? "no longer parked" : "a parked table is tried again",
             LOG_STR("table", source->qualified));
    pipe_table_unpark(table);
    table->hold = POSITION_NONE;
    atomic_store(&table->state, TABLE_WAITING);
    pipe_table_set_schema(table, source->schema);
    return take_in(pl, table, source, err);
}

/* While it is copied its schema is not ours to change: then the next start has the name. */
static bool
is_renamed(const PipeTable *table, const SourceTable *source)
{
    TableState state = atomic_load(&table->state);

    return (state == TABLE_STREAMING || state == TABLE_PARKED) && source->schema != NULL &&
           table->schema->relid == source->relid &&
           strcmp(table->schema->qualified, source->qualified) != 0;
}

/* In what people see and say: status, the log, records of rejects, `resync`. */
static void
follow_name(Pipeline *pl, PipeTable *table, const SourceTable *source)
{
    const TableSchema *renamed = schema_renamed(table->schema, source->schema);
    StateTable *known = tables_state(pl, table);

    log_info("renamed in the source, keeps its name in the lake",
             LOG_STR("table", source->qualified), LOG_STR("before", table->schema->qualified));
    if (known != NULL) {
        rename_namesake(pl, renamed);
        known->source = arena_strdup(pl->state_arena, source->qualified);
    }
    pipe_table_set_schema(table, renamed);
    schema_unref(renamed);
}

/* By oid, or parked because it was made again under its name. */
static PipeTable *
find_known(const Pipeline *pl, const SourceTable *source)
{
    PipeTable *followed = NULL;

    for (size_t i = 0; i < pl->table_count; i++) {
        PipeTable *table = pl->tables[i];

        if (table->schema->relid == source->relid)
            return table;
        if (table->gap && strcmp(table->schema->qualified, source->qualified) == 0)
            followed = table;
    }
    return followed;
}

/* The table whose name another one has now. */
static PipeTable *
find_followed(const Pipeline *pl, const SourceTable *source)
{
    for (size_t i = 0; i < pl->table_count; i++)
        if (pl->tables[i]->schema->relid != source->relid && pl->tables[i]->dropped &&
            strcmp(pl->tables[i]->schema->qualified, source->qualified) == 0)
            return pl->tables[i];
    return NULL;
}

/* Whether a table that we have is published as it was; *err says why not. */
static bool
is_published_alike(const Pipeline *pl, const PipeTable *table, const SourceTable *source,
                   const Publication *publication, Error *err)
{
    const StateTable *known = tables_state(pl, table);

    return known == NULL || table->gap || pipe_table_needs_copy(table) ||
           gap_in_table(source, publication, &known->published, err);
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

static void
log_published(const Pipeline *pl, const Publication *publication)
{
    const char *name = pl->config->source_publication;

    if (publication->made)
        log_info("publication made", LOG_STR("publication", name));
    if (publication->altered)
        log_info("publication altered", LOG_STR("publication", name));
    if (publication->unpublished != NULL)
        log_warn("the publication does not publish everything",
                 LOG_STR("missing", publication->unpublished));
    if (publication->missing > 0 && publication->missing_sql != NULL)
        log_warn("tables are not published", LOG_INT("tables", publication->missing),
                 LOG_STR("run", publication->missing_sql));
}

/* ALTER PUBLICATION waits for locks on the tables: better later than holding up the others. A role
 * that only reads by default has to say that it writes. */
static bool
ensure_publication(Pipeline *pl, Arena *arena, SourceTables *tables, Publication *out, Error *err)
{
    PublicationWant want = {.name = pl->config->source_publication,
                            .may_create = true,
                            .may_alter = pl->publication_is_ours};
    bool exists = out->exists;

    TRY(pg_exec(pl->conn, arena, "SET default_transaction_read_only = off", NULL, err));
    if (!exists) /* nobody streams yet who would have to wait */
        TRY(pg_exec(pl->conn, arena, "SET lock_timeout = '50s'", NULL, err));
    if (!source_publication_ensure(pl->conn, arena, &want, tables, out, err)) {
        if (!exists || pl->options->once || strcmp(pg_sqlstate(pl->conn), "55P03") != 0)
            return false;
        log_warn("new tables are locked, trying again later", LOG_STR("error", err->msg));
        pl->relations_seen = STR_NULL;
    }
    return exists || pg_exec(pl->conn, arena, "SET lock_timeout = '2s'", NULL, err);
}

/* Tables, and how they are published, as of now. */
static bool
load_tables(Pipeline *pl, Error *err)
{
    TablesRead read = {.config = pl->config, .publication = pl->config->source_publication};

    source_tables_done(&pl->source);
    arena_reset(pl->source_arena);
    pl->publication = (Publication){0};
    TRY(tables_position(pl, &pl->source_from, err));
    TRY(source_tables_load(pl->conn, pl->source_arena, &read, &pl->source, err));
    TRY(source_publication_load(pl->conn, pl->source_arena, read.publication, &pl->source,
                                &pl->publication, err));
    TRY(tables_position(pl, &pl->source_at, err));
    return gap_in_publication(pl, &pl->publication, err);
}

/* Read and publish. A slot that is older than its publication cannot be read at all (pgoutput looks
 * the publication up as of each change), so this comes before the slot is made. */
bool
tables_publish(Pipeline *pl, Error *err)
{
    Publication publication;

    TRY(FAULT("tables.publish", err));
    TRY(load_tables(pl, err));
    note_unpublished(pl, &pl->source);
    publication = pl->publication;
    TRY(ensure_publication(pl, pl->source_arena, &pl->source, &publication, err));
    log_published(pl, &publication);
    if (publication.made) { /* at once: whether it is ours cannot be seen from it */
        pl->state.publication_made = true;
        TRY(pipeline_write_state(pl, err));
    }
    return !(publication.made || publication.altered) || load_tables(pl, err);
}

/* What changed about tables that we have: of those that nobody published for a while, rows are
 * missing. */
static void
park_gaps(Pipeline *pl)
{
    for (int i = 0; i < pl->source.count; i++) {
        const SourceTable *source = &pl->source.items[i];
        PipeTable *table = find_known(pl, source);
        PipeTable *followed = table == NULL ? find_followed(pl, source) : NULL;
        Error err;

        if (followed != NULL) {
            followed->gap = true;
            followed->dropped = false;
            pipe_table_park(followed, "the table was dropped and made again; the lake has the old "
                                      "one\n" HINT_COPY_AGAIN);
        }

        if (table == NULL || is_published_alike(pl, table, source, &pl->publication, &err))
            continue;
        table->gap = true;
        pipe_table_park(table, err.msg);
    }
}

static bool
was_said(const Pipeline *pl, uint32_t relid)
{
    for (size_t i = 0; i < BUF_COUNT(&pl->absent, uint32_t); i++)
        if (BUF_AT(&pl->absent, uint32_t, i) == relid)
            return true;
    return false;
}

/* Nobody has to ask `check` to learn that a table is not copied. Of views nobody expects it. */
static void
say_absent(Pipeline *pl, const SourceTables *tables)
{
    for (int i = 0; i < tables->count; i++) {
        const SourceTable *source = &tables->items[i];

        if (source->excluded == NULL || source->kind == 'v' || source->kind == 'm' ||
            was_said(pl, source->relid))
            continue;
        log_warn("table will not arrive", LOG_STR("table", source->qualified),
                 LOG_STR("reason", source->excluded));
        BUF_PUSH(&pl->absent, uint32_t, source->relid);
    }
}

/* One that is not published any more, or cannot be by us, is taken in to say so. */
static bool
is_wanted(const Pipeline *pl, const SourceTable *source)
{
    return source->published || (source->problem != NULL && pl->publication_is_ours) ||
           state_find_oid(&pl->state, source->relid) != NULL;
}

/* Take in those that are new. */
bool
tables_attach(Pipeline *pl, Error *err)
{
    size_t before = pl->table_count;
    bool any_renamed = false;
    bool any_dropped;

    TRY(gap_dropped_tables(pl, &pl->source, &any_dropped, err));
    park_gaps(pl);
    say_absent(pl, &pl->source);
    for (int i = 0; i < pl->source.count; i++) {
        const SourceTable *source = &pl->source.items[i];
        PipeTable *table = find_known(pl, source);

        if (table != NULL && is_free_again(table, source))
            TRY(take_in_again(pl, table, source, err));
        else if (table == NULL && source->schema != NULL && is_wanted(pl, source))
            TRY(add_table(pl, source, err));
        if (table != NULL && is_renamed(table, source)) {
            follow_name(pl, table, source);
            any_renamed = true;
        }
    }
    shapes_compare(pl, &pl->source, pl->source_from, pl->source_at);
    if (pl->table_count == 0)
        log_warn("no table to replicate", LOG_STR("hint", "see source.tables and walberg check"));
    return (pl->table_count == before && !any_dropped && !any_renamed) ||
           pipeline_write_state(pl, err);
}

size_t
tables_waiting(const Pipeline *pl)
{
    size_t count = 0;

    for (size_t i = 0; i < pl->table_count; i++)
        count += atomic_load(&pl->tables[i]->state) == TABLE_WAITING;
    return count;
}

/* A cheap question first: did the tables that can be published, their columns, keys, our rights or
 * the publication change at all since we looked? Temporary tables come and go all the time, and
 * leave their traces in the same catalogs.
 */
static bool
something_changed(Pipeline *pl, bool *out_changed, Error *err)
{
    static const char schemas[] = "(SELECT concat(count(*), '/', sum(s.oid::int8))"
                                  " FROM pg_publication_namespace s WHERE s.pnpubid = b.oid)";
    AUTO_ARENA Arena *arena = arena_new();
    PgResult result;
    const char *sql = arena_printf(
        arena,
        "SELECT concat_ws(' ', count(*), max(c.oid::int8), sum(c.xmin::text::int8),"
        " count(*) FILTER (WHERE has_schema_privilege(c.relnamespace, 'USAGE')"
        "  AND has_table_privilege(c.oid, 'SELECT') AND NOT row_security_active(c.oid)),"
        " (SELECT sum(a.xmin::text::int8) FROM pg_class t JOIN pg_attribute a"
        "   ON a.attrelid = t.oid AND a.attnum > 0 WHERE t.relkind IN ('r', 'p', 'c')"
        "   AND t.relpersistence = 'p' AND t.oid >= 16384),"
        " (SELECT sum(e.xmin::text::int8) FROM pg_enum e),"
        " (SELECT sum(i.xmin::text::int8) FROM pg_class t JOIN pg_index i"
        "   ON i.indrelid = t.oid AND (i.indisprimary OR i.indisreplident)"
        "   WHERE t.relpersistence = 'p' AND t.oid >= 16384),"
        " (SELECT concat_ws(' ', b.oid, b.xmin,"
        "   (SELECT concat(count(*), '/', sum(r.oid::int8))"
        "     FROM pg_publication_rel r WHERE r.prpubid = b.oid), %s)"
        "   FROM pg_publication b WHERE b.pubname = $1))"
        " FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'"
        " AND c.oid >= 16384",
        pg_server_version(pl->conn) >= 150000 ? schemas : "''");

    int64_t asked_ms = clock_ms();

    TRY(pg_ask(pl->conn, arena, sql, 1, &pl->config->source_publication, &result, err));
    pl->look_took_ms = clock_ms() - asked_ms;
    *out_changed = !str_eq(pg_value(&result, 0, 0), pl->relations_seen);
    if (*out_changed)
        pl->relations_seen = arena_str(pl->arena, pg_value(&result, 0, 0));
    return true;
}

/* With --once the stream has to get there without anybody writing: what is on disk will be sent. */
bool
tables_position(Pipeline *pl, Position *out_position, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PgResult result;
    const char *sql =
        arena_printf(arena,
                     "SELECT CASE WHEN pg_is_in_recovery()"
                     " THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_%s_lsn() END",
                     pl->options->once ? "flush" : "insert");

    TRY(pg_query(pl->conn, arena, sql, 0, NULL, &result, err));
    TRY(position_parse(pg_value(&result, 0, 0), out_position, err));
    if (pl->options->once && *out_position > pl->stop_at)
        pl->stop_at = *out_position;
    return true;
}

/* Whether there is something to take in or to park. */
static bool
compare(Pipeline *pl, Arena *arena, const SourceTables *tables, Error *err)
{
    Publication publication;
    bool any_dropped;

    TRY(source_publication_load(pl->conn, arena, pl->config->source_publication, tables,
                                &publication, err));
    TRY(gap_in_publication(pl, &publication, err));
    say_absent(pl, tables);
    for (int i = 0; i < tables->count; i++) {
        const SourceTable *source = &tables->items[i];
        const PipeTable *table = find_known(pl, source);
        Error gap;

        if (table == NULL ? source->schema != NULL
                          : is_free_again(table, source) || is_renamed(table, source) ||
                                !is_published_alike(pl, table, source, &publication, &gap))
            pl->new_tables = pl->restart = true;
    }
    TRY(gap_dropped_tables(pl, tables, &any_dropped, err));
    return !any_dropped || pipeline_write_state(pl, err);
}

/* Readers hold pointers to the list of tables, so it grows only between two sessions: here it is
 * only found that there is something to take in. */
static bool
look(Pipeline *pl, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    TablesRead read = {.config = pl->config, .publication = pl->config->source_publication};
    AUTO(source_tables_done) SourceTables tables = {0};
    Position at;
    Position from;
    bool changed;

    TRY(recover_connection(pl, err));
    TRY(something_changed(pl, &changed, err));
    if (!changed)
        return true;
    TRY(tables_position(pl, &from, err));
    TRY(source_tables_load(pl->conn, arena, &read, &tables, err));
    TRY(compare(pl, arena, &tables, err));
    TRY(tables_position(pl, &at, err));
    shapes_compare(pl, &tables, from, at);
    return true;
}

/* The source is away, or somebody holds a lock: what is here goes on meanwhile. */
static bool
look_later(Pipeline *pl, const char *what, const Error *err)
{
    if (err->kind != ERR_TRANSIENT)
        return false;
    log_warn(what, LOG_STR("error", err->msg));
    pl->relations_seen = STR_NULL; /* what changed was not seen yet */
    pg_close(pl->conn);
    pl->conn = NULL;
    return true;
}

/* Of tables of before that are half taken in it is not known whether they go on or are to be
 * copied: no session begins without them. New ones are to be copied, and can wait. */
static bool
any_interrupted(const Pipeline *pl)
{
    for (size_t i = 0; i < pl->table_count; i++)
        if (was_interrupted(pl->tables[i]) &&
            state_find_oid(&pl->state, pl->tables[i]->schema->relid) != NULL)
            return true;
    return false;
}

bool
tables_take_new(Pipeline *pl, Error *err)
{
    pl->new_tables = false;
    if (!recover_connection(pl, err) || !tables_publish(pl, err)) {
        pl->new_tables = any_interrupted(pl);
        return look_later(pl, "cannot take in new tables", err) && !pl->new_tables;
    }
    if (tables_attach(pl, err))
        return true;
    pl->new_tables = true; /* with the next session */
    return false;
}

bool
tables_look_for_new(Pipeline *pl, Error *err)
{
    return look(pl, err) || look_later(pl, "cannot look for new tables", err);
}
