/* gaps.c - changes that the stream cannot bring, because of what somebody did in the source.
 *
 * The server decodes a change with the publication as it was at that change. What was not published
 * then never comes, without a word. So the state object keeps how each table was published when it
 * was copied, and a table that is published in another way now is parked: rows of the time between
 * may be missing. Compared when a table is attached and whenever the catalogs changed. */
#include <string.h>

#include "base/log.h"
#include "pipeline/internal.h"

static const char *
or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

/* --- the publication ------------------------------------------------------------------------- */

static bool
same_publication(const Pipeline *pl, const Publication *publication, Error *err)
{
    const char *name = pl->config->source_publication;

    if (publication->exists && publication->oid == pl->state.publication_oid)
        return true;
    if (strcmp(pl->state.publication, name) != 0)
        return FAIL(err, ERR_INPUT,
                    "the pipeline reads publication %s, the settings say %s\n"
                    "hint: set source.publication to %s; what another one published meanwhile is "
                    "not known: it needs a new copy, as another pipeline",
                    pl->state.publication, name, pl->state.publication);
    return FAIL(err, ERR_INPUT,
                "publication %s was dropped%s: changes of that time cannot be had, and the slot "
                "cannot be read past them\n" HINT_BEGIN_AGAIN,
                name, publication->exists ? " and made again" : "");
}

bool
gap_in_publication(Pipeline *pl, const Publication *publication, Error *err)
{
    const char *version = or_empty(publication->version);

    if (pl->state.phase == SLOT_READY && pl->state.publication_oid != 0)
        TRY(same_publication(pl, publication, err));
    if (!publication->exists)
        return true;
    if (pl->state.phase == SLOT_READY && pl->state.publication_version[0] != '\0' &&
        strcmp(pl->state.publication_version, version) != 0)
        log_warn("the publication was altered",
                 LOG_STR("publication", pl->config->source_publication),
                 LOG_STR("hint", "if it published less for a while, copy the tables again"));
    pl->state.publication_oid = publication->oid;
    pl->state.publication = pl->config->source_publication;
    if (pl->state.publication_version == NULL ||
        strcmp(pl->state.publication_version, version) != 0)
        pl->state.publication_version = arena_strdup(pl->state_arena, version);
    return true;
}

/* --- a table --------------------------------------------------------------------------------- */

StatePublished
gap_note(const SourceTable *source, const Publication *publication)
{
    return (StatePublished){
        .noted = true,
        .entry = source->publication_entry,
        .schema_entry = source->schema_entry,
        .missing = or_empty(publication->unpublished),
        .filter = or_empty(source->row_filter),
        .columns = or_empty(source->column_list),
    };
}

/* Put there by name, by its schema, or by FOR ALL TABLES, without a break by one of them. Postgres
 * makes a new entry for another row filter or column list. */
static bool
same_entry(const StatePublished *was, const StatePublished *is)
{
    if (was->entry == 0 && was->schema_entry == 0)
        return is->entry == 0 && is->schema_entry == 0;
    return (was->entry != 0 && was->entry == is->entry) ||
           (was->schema_entry != 0 && was->schema_entry == is->schema_entry);
}

static const char *
or_none(const char *text)
{
    return text[0] == '\0' ? "none" : text;
}

bool
gap_in_table(const SourceTable *source, const Publication *publication, const StatePublished *was,
             Error *err)
{
    StatePublished is = gap_note(source, publication);

    if (!source->published)
        return FAIL(err, ERR_INPUT,
                    "the publication does not publish it any more: changes are missing\n"
                    "hint: put it back and copy it again (\"Copying a table again\" in the "
                    "README), or leave it out in source.tables");
    if (!was->noted)
        return true;
    if (strcmp(was->missing, is.missing) != 0)
        return FAIL(err, ERR_INPUT,
                    "the publication leaves out other operations (%s) than when the table was "
                    "copied (%s): changes are missing\n" HINT_COPY_AGAIN,
                    or_none(is.missing), or_none(was->missing));
    if (same_entry(was, &is))
        return true;
    if (strcmp(was->filter, is.filter) != 0)
        return FAIL(err, ERR_INPUT,
                    "its row filter in the publication is another one (%.200s) than when the table "
                    "was copied (%.200s): changes are missing\n" HINT_COPY_AGAIN,
                    or_none(is.filter), or_none(was->filter));
    if (strcmp(was->columns, is.columns) != 0)
        return FAIL(err, ERR_INPUT,
                    "its column list in the publication is another one than when the table was "
                    "copied: values are missing\n" HINT_COPY_AGAIN);
    return FAIL(err, ERR_INPUT,
                "it was taken out of the publication and put back: changes of that time are "
                "missing\n" HINT_COPY_AGAIN);
}

void
gap_say_wanted(PipeTable *table, const SourceTable *source, const Publication *publication)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *missing = publication->unpublished;

    if (missing == NULL && source->row_filter == NULL)
        pipe_table_note(table, NULL);
    else
        pipe_table_note(table,
                        arena_printf(arena, "as the publication says, the lake gets %s%s%s%s%s",
                                     source->row_filter == NULL ? "" : "only rows with ",
                                     or_empty(source->row_filter),
                                     missing != NULL && source->row_filter != NULL ? ", and " : "",
                                     missing == NULL ? "" : "no ", or_empty(missing)));
}

/* --- tables that are gone -------------------------------------------------------------------- */

static const char *
oids_not_listed(const Pipeline *pl, Arena *arena, const SourceTables *tables)
{
    AUTO_BUF Buf list = {0};

    for (size_t i = 0; i < pl->state.table_count; i++) {
        const StateTable *known = &pl->state.tables[i];

        if (!known->dropped && source_tables_find(tables, known->oid) == NULL)
            buf_printf(&list, "%s%u", list.len == 0 ? "" : ",", known->oid);
    }
    for (size_t i = 0; i < pl->table_count; i++) {
        const PipeTable *table = pl->tables[i];

        /* one with a gap is in the state, too, or its name is another table's by now */
        if (!table->dropped && !table->gap &&
            source_tables_find(tables, table->schema->relid) == NULL)
            buf_printf(&list, "%s%u", list.len == 0 ? "" : ",", table->schema->relid);
    }
    return list.len == 0 ? NULL : arena_printf(arena, "{%s}", buf_text(&list));
}

static void
note_dropped(Pipeline *pl, uint32_t oid)
{
    const char *name = NULL;

    for (size_t i = 0; i < pl->state.table_count; i++) {
        if (pl->state.tables[i].oid == oid) {
            pl->state.tables[i].dropped = true;
            name = pl->state.tables[i].source;
        }
    }
    for (size_t i = 0; i < pl->table_count; i++) {
        if (pl->tables[i]->schema->relid == oid) {
            pl->tables[i]->dropped = true;
            name = pl->tables[i]->schema->qualified;
        }
    }
    log_warn("the table was dropped in the source", LOG_STR("table", or_empty(name)),
             LOG_STR("hint", "its rows stay in the lake"));
}

bool
gap_dropped_tables(Pipeline *pl, const SourceTables *tables, bool *out_any, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *oids = oids_not_listed(pl, arena, tables);
    PgResult gone;

    *out_any = false;
    if (oids == NULL)
        return true;
    TRY(pg_ask(pl->conn, arena,
               "SELECT DISTINCT o FROM unnest($1::oid[]) o"
               " WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = o)",
               1, &oids, &gone, err));
    for (int row = 0; row < gone.rows; row++)
        note_dropped(pl, (uint32_t) pg_value_int(&gone, row, 0));
    *out_any = gone.rows > 0;
    return true;
}
