/* shapes.c - schema changes that the stream does not tell, and tables that are copied again.
 *
 * A Relation message comes with the next row of a table, so a table without traffic would keep its
 * old columns. What the catalog says is therefore noted as due, and applied once the stream has
 * passed the position at which it was read: from then on no row of the old shape can come.
 *
 * Values that ALTER TABLE writes into old rows are not in the stream at all; see files_mark and
 * columns_mark in source/tables.h. Such a table is copied again. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "pipeline/internal.h"

/* --- noticed --------------------------------------------------------------------------------- */

/* Only one of the marks: VACUUM FULL, TRUNCATE; or a change of columns that leaves rows alone. */
static bool
was_rewritten(const StateTable *known, const SourceTable *now)
{
    return known->files_mark != now->files_mark && known->columns_mark != now->columns_mark;
}

static void
note_marks(const Pipeline *pl, StateTable *known, const SourceTable *now)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *words = words_text(arena, now);
    bool same_words = known->words != NULL && strcmp(known->words, words) == 0;

    if (known->columns_mark != now->columns_mark || !same_words)
        known->mended = false;
    known->files_mark = now->files_mark;
    known->columns_mark = now->columns_mark;
    if (!same_words)
        known->words = arena_strdup(pl->state_arena, words);
}

/* Why the rows of the table read otherwise than those of the lake; NULL: they do not. */
static const char *
why_other_rows(Arena *arena, const StateTable *known, const SourceTable *now)
{
    const PgType *type = words_changed(known->words, now);

    if (was_rewritten(known, now))
        return "ALTER TABLE wrote new values into its rows";
    if (type == NULL)
        return NULL;
    return arena_printf(arena, "ALTER TYPE %.*s changed what its rows say", STR_ARG(type->name));
}

static void
compare(Pipeline *pl, PipeTable *table, const SourceTable *now, Position from, Position at)
{
    AUTO_ARENA Arena *arena = arena_new();
    StateTable *known = tables_state(pl, table);
    const char *reason;

    if (atomic_load(&table->state) != TABLE_STREAMING || now->schema == NULL || known == NULL)
        return;
    reason = why_other_rows(arena, known, now);
    note_marks(pl, known, now);
    if (reason != NULL) {
        pipe_table_copy_again(table, reason);
        return;
    }
    leaves_follow(pl, table, now);
    if (now->problem != NULL && now->schema->key_mode == KEY_NONE &&
        table->schema->key_mode != KEY_NONE)
        return; /* no shape to follow: the next row parks it, with the reason */
    /* The shape of now is noted, too: what is on its way may be of another one, and not the last */
    if (table->due == NULL || schema_same_shape(table->schema, now->schema) ||
        !schema_same_shape(table->due, now->schema)) {
        pipe_table_set_due(table, now->schema, at);
        table->due_from = from;
    }
}

void
shapes_compare(Pipeline *pl, const SourceTables *now, Position from, Position at)
{
    for (size_t i = 0; i < pl->table_count; i++) {
        const SourceTable *source = source_tables_find(now, pl->tables[i]->schema->relid);

        if (source != NULL)
            compare(pl, pl->tables[i], source, from, at);
    }
}

static bool
is_due(const Pipeline *pl, const PipeTable *table)
{
    return table->due != NULL && !pipe_table_is_hidden(table) &&
           atomic_load(&table->state) == TABLE_STREAMING && pl->committed >= table->due_at &&
           !schema_same_shape(table->schema, table->due);
}

bool
shapes_waiting(const Pipeline *pl)
{
    for (size_t i = 0; i < pl->table_count; i++)
        if (is_due(pl, pl->tables[i]) ||
            (pl->copier == NULL && atomic_load(&pl->tables[i]->state) == TABLE_WAITING))
            return true;
    return false;
}

/* --- applied --------------------------------------------------------------------------------- */

static bool
apply(Pipeline *pl, PipeTable *table, Error *err)
{
    const TableSchema *due = schema_ref(table->due);
    SinkTable *lake = table->sink_table;
    Position position = pl->committed > lake->position ? pl->committed : lake->position;
    bool done = writer_evolve(pl, table, due, err);

    if (done && atomic_load(&table->state) == TABLE_STREAMING) {
        done = sink_commit(pl->sink, lake, position, pl->last_commit_time_us, err);
        if (done)
            pipe_table_set_schema(table, due);
    }
    if (done)
        pipe_table_set_due(table, NULL, POSITION_NONE);
    schema_unref(due);
    return done;
}

bool
shapes_apply(Pipeline *pl, Error *err)
{
    for (size_t i = 0; i < pl->table_count; i++) {
        PipeTable *table = pl->tables[i];

        if (!is_due(pl, table) || apply(pl, table, err))
            continue;
        if (err->kind == ERR_INPUT)
            writer_park(pl, table, err->msg);
        else if (!writer_park_alone(pl, table, "cannot change columns", err))
            return false;
    }
    return true;
}

/* --- copied again ---------------------------------------------------------------------------- */

static bool
is_known(const Pipeline *pl, uint32_t relid)
{
    for (size_t i = 0; i < pl->table_count; i++)
        if (pl->tables[i]->schema->relid == relid)
            return true;
    return false;
}

/* The table as the catalog has it: by oid, or the one that was made again under its name; not
 * another one of ours that got its name when it was dropped. */
static const SourceTable *
find_source(const Pipeline *pl, const SourceTables *now, const PipeTable *table)
{
    const SourceTable *found = source_tables_find(now, table->schema->relid);

    for (int i = 0; i < now->count && found == NULL; i++)
        if (strcmp(now->items[i].qualified, table->schema->qualified) == 0 &&
            !is_known(pl, now->items[i].relid))
            found = &now->items[i];
    return found;
}

/* The slot's own snapshot is older than what was read now. If the table changed meanwhile, the
 * stream from there is of a shape, of partitions, of labels that we know nothing of. */
static void
check_snapshot(Pipeline *pl, const StateTable *known, const SourceTable *now)
{
    if (pl->snapshot_conn == NULL || known == NULL ||
        (known->files_mark == now->files_mark && known->columns_mark == now->columns_mark &&
         words_changed(known->words, now) == NULL))
        return;
    pg_close(pl->snapshot_conn);
    pl->snapshot_conn = NULL;
}

static bool
refresh(Pipeline *pl, PipeTable *table, const SourceTable *now, const Publication *publication,
        Error *err)
{
    const StateTable *known;

    if (now == NULL || now->schema == NULL || !now->published)
        return FAIL(err, ERR_INPUT, "the table is gone from the source, or not published any more");
    if (now->problem != NULL)
        return FAIL(err, ERR_INPUT, "%s", now->problem);
    pipe_table_set_schema(table, now->schema);
    pipe_table_set_due(table, NULL, POSITION_NONE);
    table->pages = now->pages;
    if (table->sink_table == NULL) {
        TRY(tables_open(pl, table, err));
        /* until all of it is copied it has no part in the stream, wherever its rows were */
        table->copy_again |= table->sink_table->position != POSITION_NONE;
    }
    if (tables_state(pl, table) == NULL) /* parked when it was new */
        tables_remember(pl, table, now);
    check_snapshot(pl, tables_state(pl, table), now);
    TRY(resume_copy(pl, table, now, publication, err));
    known = tables_state(pl, table);
    table->dropped = false;
    gap_say_wanted(table, now, publication);
    if (known != NULL) {
        StateTable entry = *known;

        entry.oid = now->relid;
        entry.copy_again = table->copy_again;
        entry.committed = POSITION_NONE;
        entry.dropped = false;
        entry.published = gap_note(now, publication);
        state_add_name(pl->state_arena, &entry, now->schema_name, now->table_name);
        note_marks(pl, &entry, now);
        entry.leaves = leaves_text(pl->state_arena, now);
        if (known->leaves == NULL || strcmp(known->leaves, entry.leaves) != 0)
            entry.mended = false;
        state_set_table(pl->state_arena, &pl->state, &entry);
    }
    return true;
}

bool
shapes_refresh(Pipeline *pl, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    TablesRead read = {.config = pl->config, .publication = pl->config->source_publication};
    AUTO(source_tables_done) SourceTables now = {0};
    Publication publication;
    bool done = true;

    TRY(recover_connection(pl, err));
    TRY(source_tables_load(pl->conn, arena, &read, &now, err));
    TRY(source_publication_load(pl->conn, arena, read.publication, &now, &publication, err));
    for (size_t i = 0; i < pl->table_count && done; i++) {
        PipeTable *table = pl->tables[i];

        if (atomic_load(&table->state) != TABLE_WAITING ||
            refresh(pl, table, find_source(pl, &now, table), &publication, err))
            continue;
        if (err->kind == ERR_INPUT)
            pipe_table_park(table, err->msg);
        else
            done = writer_park_alone(pl, table, "cannot begin its copy", err);
    }
    /* known before anything is acknowledged beyond what the lake has of them */
    return done && pipeline_write_state(pl, err);
}

/* --- asked for ------------------------------------------------------------------------------- */

static bool
is_on_its_way(const PipeTable *table)
{
    TableState state = atomic_load(&table->state);

    /* one that is copied may only wait for others to be */
    return state == TABLE_WAITING || (state == TABLE_COPYING && (pipe_table_needs_copy(table) ||
                                                                 pipe_table_is_hidden(table)));
}

/* One that was dropped has its name still; then another may have it, too. */
static PipeTable *
find_named(const Pipeline *pl, const char *name)
{
    PipeTable *found = NULL;

    for (size_t i = 0; i < pl->table_count; i++) {
        PipeTable *table = pl->tables[i];

        if (strcmp(table->schema->qualified, name) == 0 && (found == NULL || found->dropped))
            found = table;
    }
    return found;
}

static void
copy_again(Pipeline *pl, const char *name)
{
    PipeTable *table = find_named(pl, name);
    StateTable *known;

    if (table == NULL) {
        log_warn("resync of an unknown table", LOG_STR("table", name));
        return;
    }
    if (is_on_its_way(table))
        return;
    known = tables_state(pl, table);
    if (known != NULL)
        known->mended = false;
    writer_copy_again(pl, table, "asked for by walberg resync");
}

static void
read_request(Pipeline *pl, FILE *file)
{
    char line[512];

    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '\0')
            copy_again(pl, line);
    }
}

/* Another user put it there. Nothing else has to stop for that, now or at a later start. */
static void
refuse_request(const Pipeline *pl, Arena *arena, const char *taken)
{
    const char *reason = strerrordesc_np(errno);
    const char *refused = arena_printf(arena, "%s/resync.refused", pl->config->state);

    if (rename(taken, refused) != 0)
        unlink(taken);
    log_error("a request to copy tables again cannot be read", LOG_STR("file", refused),
              LOG_STR("error", reason),
              LOG_STR("hint", "run walberg resync as the user of walberg run, or as root"));
}

/* <state>/resync has one table a line and may be appended to; taken by a rename, so that a line is
 * taken once, and removed when the state object has it, so that a crash forgets none. */
bool
shapes_take_requests(Pipeline *pl, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *asked = arena_printf(arena, "%s/resync", pl->config->state);
    const char *taken = arena_printf(arena, "%s/resync.taken", pl->config->state);

    if (access(taken, F_OK) != 0 && rename(asked, taken) != 0)
        return true; /* nothing is asked */

    FILE *file = fopen(taken, "re");

    if (file == NULL) {
        refuse_request(pl, arena, taken);
        return true;
    }

    (void) !flock(fileno(file), LOCK_EX); /* who asks writes under it */

    read_request(pl, file);
    fclose(file);
    TRY(pipeline_write_state(pl, err));
    unlink(taken);
    return true;
}
