#include "source/publication.h"

#include "base/fault.h"

/* A hint longer than this would be cut off by Error. */
enum { HINT_SQL_MAX = 700 };

static const char publication_sql[] =
    "SELECT pg_get_userbyid(pubowner), pg_has_role(pubowner, 'USAGE'), puballtables, pubviaroot,"
    " concat_ws(', ', CASE WHEN NOT pubinsert THEN 'insert' END,"
    "  CASE WHEN NOT pubupdate THEN 'update' END, CASE WHEN NOT pubdelete THEN 'delete' END,"
    "  CASE WHEN NOT pubtruncate THEN 'truncate' END), oid, xmin"
    " FROM pg_publication WHERE pubname = $1";

/* --- SQL ------------------------------------------------------------------------------------- */

static bool
belongs(const SourceTable *table)
{
    return table->excluded == NULL && table->problem == NULL;
}

/* ONLY keeps Postgres from adding the children of an inheritance parent, which are tables of their
 * own; for a partitioned table the word has no meaning. */
static int
put_tables(Arena *arena, Buf *out, const SourceTables *tables, bool only_missing)
{
    int count = 0;

    for (int i = 0; i < tables->count; i++) {
        const SourceTable *table = &tables->items[i];

        if (!belongs(table) || (only_missing && table->published))
            continue;
        buf_printf(out, "%s%s%s", count > 0 ? ", " : "", table->kind == 'p' ? "" : "ONLY ",
                   source_relation_sql(arena, table->schema_name, table->table_name));
        count++;
    }
    return count;
}

const char *
source_publication_create_sql(Arena *arena, const char *name, const SourceTables *tables)
{
    AUTO_BUF Buf list = {0};
    int count = put_tables(arena, &list, tables, false);

    return arena_printf(arena, "CREATE PUBLICATION %s%s%s WITH (publish_via_partition_root = true)",
                        pg_quote_identifier(arena, str_of(name)), count > 0 ? " FOR TABLE " : "",
                        buf_text(&list));
}

const char *
source_publication_add_sql(Arena *arena, const char *name, const SourceTables *tables)
{
    AUTO_BUF Buf list = {0};

    if (put_tables(arena, &list, tables, true) == 0)
        return NULL;
    return arena_printf(arena, "ALTER PUBLICATION %s ADD TABLE %s",
                        pg_quote_identifier(arena, str_of(name)), buf_text(&list));
}

/* --- looking --------------------------------------------------------------------------------- */

static int
count_missing(const SourceTables *tables)
{
    int missing = 0;

    for (int i = 0; i < tables->count; i++)
        missing += belongs(&tables->items[i]) && !tables->items[i].published;
    return missing;
}

bool
source_publication_load(PgConn *conn, Arena *arena, const char *name, const SourceTables *tables,
                        Publication *out_publication, Error *err)
{
    PgResult r;
    Publication publication = {0};

    if (!pg_ask(conn, arena, publication_sql, 1, &name, &r, err))
        return WRAP(err, "read publication %s", name);
    if (r.rows == 1) {
        publication = (Publication){
            .exists = true,
            .oid = (uint32_t) pg_value_int(&r, 0, 5),
            .version = pg_value(&r, 0, 6).ptr,
            .owner = pg_value(&r, 0, 0).ptr,
            .owned = pg_value_bool(&r, 0, 1),
            .all_tables = pg_value_bool(&r, 0, 2),
            .via_root = pg_value_bool(&r, 0, 3),
            .unpublished = pg_value(&r, 0, 4).len > 0 ? pg_value(&r, 0, 4).ptr : NULL,
            .missing = count_missing(tables),
            .missing_sql = source_publication_add_sql(arena, name, tables),
        };
    }
    *out_publication = publication;
    return true;
}

/* --- making ---------------------------------------------------------------------------------- */

static void
mark_published(SourceTables *tables)
{
    for (int i = 0; i < tables->count; i++)
        if (belongs(&tables->items[i]))
            tables->items[i].published = true;
}

/* Why it was refused, and the statement for somebody who may. */
static bool
refuse(const char *name, const char *sql, Error *err)
{
    char reason[256];

    snprintf(reason, sizeof reason, "%.*s", (int) strcspn(err->msg, "\n"), err->msg);
    if (strlen(sql) <= HINT_SQL_MAX)
        return FAIL(err, err->kind, "publication %s: %s\nhint: let the owner of the tables run: %s",
                    name, reason, sql);
    return FAIL(
        err, err->kind,
        "publication %s: %s\nhint: let the owner of the tables run the statement that "
        "\"walberg check\" prints, or a superuser: CREATE PUBLICATION \"%s\" FOR ALL TABLES "
        "WITH (publish_via_partition_root = true)",
        name, reason, name);
}

static bool
create(PgConn *conn, Arena *arena, const PublicationWant *want, SourceTables *tables, Error *err)
{
    const char *sql = source_publication_create_sql(arena, want->name, tables);

    if (!want->may_create) {
        (void) FAIL(err, ERR_INPUT, "does not exist");
        return refuse(want->name, sql, err);
    }
    TRY(FAULT("source.publication.create", err));
    if (!pg_ask(conn, arena, sql, 0, NULL, NULL, err))
        return err->kind == ERR_INPUT ? refuse(want->name, sql, err)
                                      : WRAP(err, "create publication %s", want->name);
    mark_published(tables);
    return true;
}

static bool
check_via_root(const char *name, const Publication *publication, const SourceTables *tables,
               Error *err)
{
    for (int i = 0; i < tables->count && !publication->via_root; i++)
        if (belongs(&tables->items[i]) && tables->items[i].kind == 'p')
            return FAIL(err, ERR_INPUT,
                        "publication %s publishes the partitions of %s under their own names\n"
                        "hint: ALTER PUBLICATION \"%s\" SET (publish_via_partition_root = true)",
                        name, tables->items[i].qualified, name);
    return true;
}

bool
source_publication_ensure(PgConn *conn, Arena *arena, const PublicationWant *want,
                          SourceTables *tables, Publication *out_publication, Error *err)
{
    Publication publication = {0};

    TRY(source_publication_load(conn, arena, want->name, tables, &publication, err));
    if (!publication.exists) {
        TRY(create(conn, arena, want, tables, err));
        TRY(source_publication_load(conn, arena, want->name, tables, &publication, err));
        publication.made = true;
    }
    TRY(check_via_root(want->name, &publication, tables, err));
    if (publication.missing > 0 && want->may_alter && !publication.all_tables) {
        Error refused;

        /* Not allowed is no failure: what is published already arrives, the caller reports the
         * rest. */
        if (pg_ask(conn, arena, publication.missing_sql, 0, NULL, NULL, &refused)) {
            mark_published(tables);
            publication.missing = 0;
            publication.missing_sql = NULL;
            publication.altered = true;
        } else if (refused.kind != ERR_INPUT) {
            *err = refused;
            return WRAP(err, "add tables to publication %s", want->name);
        }
    }
    *out_publication = publication;
    return true;
}
