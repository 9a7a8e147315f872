/* Publications and slots against a real Postgres. */
#include "source_testing.h"

#include <pthread.h>

#include "base/clock.h"
#include "source/publication.h"

static ThrowawayPg pg;

static int
group_setup(void **state)
{
    (void) state;
    return throwaway_pg_start(&pg, NULL);
}

static int
group_teardown(void **state)
{
    (void) state;
    throwaway_pg_stop(&pg);
    return 0;
}

/* --- publications ---------------------------------------------------------------------------- */

static void
publication_is_made_once_and_takes_new_tables(void **state)
{
    (void) state;

    static const char listed[] =
        "SELECT string_agg(tablename, ',' ORDER BY tablename) FROM pg_publication_tables"
        " WHERE pubname = 'walberg_pub'";
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};
    AUTO(source_tables_done) SourceTables later = {0};
    TablesRead read = {.config = config_of(arena, "[\"pub.*\"]"), .publication = "walberg_pub"};
    PublicationWant want = {.name = "walberg_pub", .may_create = true};
    Publication publication = {0};
    Error err = {0};

    run_sql(conn, "CREATE SCHEMA pub; CREATE TABLE pub.a (id int PRIMARY KEY);"
                  "CREATE TABLE pub.\"odd \"\"b\"\"\" (id int PRIMARY KEY);"
                  "CREATE TABLE pub.root (id int PRIMARY KEY) PARTITION BY LIST (id);"
                  "CREATE TABLE pub.leaf PARTITION OF pub.root DEFAULT;"
                  "CREATE TABLE pub.child () INHERITS (pub.a); CREATE VIEW pub.v AS SELECT 1;");
    load_tables(conn, arena, &read, &tables);
    OK(source_publication_ensure(conn, arena, &want, &tables, &publication, &err));
    assert_true(publication.made && publication.owned && publication.via_root);
    assert_null(publication.unpublished);
    assert_string_equal(ask(conn, arena, listed), "a,child,odd \"b\",root");
    OK(source_publication_ensure(conn, arena, &want, &tables, &publication, &err));
    assert_true(!publication.made && publication.missing == 0);

    run_sql(conn, "CREATE TABLE pub.later (id int PRIMARY KEY)");
    load_tables(conn, arena, &read, &later);
    assert_true(table_named(&later, "pub.root")->published);
    assert_false(table_named(&later, "pub.later")->published);
    OK(source_publication_ensure(conn, arena, &want, &later, &publication, &err));
    assert_int_equal(publication.missing, 1);
    assert_string_equal(publication.missing_sql,
                        "ALTER PUBLICATION \"walberg_pub\" ADD TABLE ONLY \"pub\".\"later\"");
    want.may_alter = true;
    OK(source_publication_ensure(conn, arena, &want, &later, &publication, &err));
    assert_true(publication.altered && publication.missing == 0);
    assert_string_equal(ask(conn, arena, listed), "a,child,later,odd \"b\",root");
    run_sql(conn, "DROP PUBLICATION walberg_pub; DROP SCHEMA pub CASCADE");
}

/* What is read of a publication, as Postgres' own view says it: "a b/(id > 1)". */
static const char *
published_by(PgConn *conn, Arena *arena, const char *publication)
{
    AUTO_BUF Buf text = {0};
    AUTO(source_tables_done) SourceTables tables = {0};
    TablesRead read = {.config = config_of(arena, "[\"*.*\"]"), .publication = publication};

    load_tables(conn, arena, &read, &tables);
    for (int i = 0; i < tables.count; i++)
        if (tables.items[i].published)
            buf_printf(&text, "%s%s/%s", text.len > 0 ? " " : "", tables.items[i].qualified,
                       tables.items[i].row_filter == NULL ? "" : tables.items[i].row_filter);
    return arena_strdup(arena, buf_text(&text));
}

static void
what_is_published_is_what_the_view_says(void **state)
{
    (void) state;

    static const char *const publications[] = {
        "FOR ALL TABLES WITH (publish_via_partition_root = true)",
        "FOR ALL TABLES",
        "FOR TABLE seen.a, seen.root, side.c WITH (publish_via_partition_root = true)",
        "FOR TABLE ONLY seen.a, seen.root",
        "WITH (publish_via_partition_root = true)",
        /* since 15 */
        ("FOR TABLE seen.a (id) WHERE (id > 1), seen.root WHERE (id < 9)"
         " WITH (publish_via_partition_root = true)"),
        "FOR TABLES IN SCHEMA seen WITH (publish_via_partition_root = true)",
        "FOR TABLES IN SCHEMA seen",
        "FOR TABLES IN SCHEMA side, TABLE seen.a, side.c WHERE (id > 1)",
    };
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    bool since_15 = pg_server_version(conn) >= 150000;
    /* partitions are of their root for us, whoever publishes them */
    const char *view = arena_printf(
        arena,
        "SELECT coalesce(string_agg(format('%%s.%%s/%%s', p.schemaname, p.tablename, %s), ' '"
        "  ORDER BY p.schemaname COLLATE \"C\", p.tablename COLLATE \"C\"), '')"
        " FROM pg_publication_tables p JOIN pg_class c ON c.relname = p.tablename"
        "  AND c.relnamespace = p.schemaname::regnamespace"
        " WHERE pubname = 'walberg_view' AND NOT c.relispartition",
        since_15 ? "p.rowfilter" : "NULL");

    run_sql(conn, "CREATE SCHEMA seen; CREATE SCHEMA side; CREATE TABLE seen.a (id int PRIMARY "
                  "KEY, b int); CREATE TABLE seen.child () INHERITS (seen.a);"
                  "CREATE TABLE seen.root (id int PRIMARY KEY) PARTITION BY LIST (id);"
                  "CREATE TABLE side.leaf PARTITION OF seen.root DEFAULT;"
                  "CREATE UNLOGGED TABLE seen.unlogged (id int PRIMARY KEY);"
                  "CREATE VIEW seen.v AS SELECT 1; CREATE TABLE side.c (id int PRIMARY KEY)");
    for (size_t i = 0; i < (since_15 ? 9 : 5); i++) {
        run_sql(conn, arena_printf(arena, "CREATE PUBLICATION walberg_view %s", publications[i]));
        assert_string_equal(published_by(conn, arena, "walberg_view"), ask(conn, arena, view));
        run_sql(conn, "DROP PUBLICATION walberg_view");
    }
    assert_string_equal(published_by(conn, arena, "walberg_absent"), "");
    run_sql(conn, "DROP SCHEMA seen, side CASCADE");
}

static void
who_may_not_make_it_is_told_what_the_owner_runs(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *admin = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};
    TablesRead read = {.config = config_of(arena, "[\"own.*\"]"), .publication = "walberg_own"};
    PublicationWant want = {.name = "walberg_own", .may_create = true, .may_alter = true};
    Publication publication = {0};
    Error err = {0};

    run_sql(admin, "DROP ROLE IF EXISTS walberg_guest; CREATE ROLE walberg_guest LOGIN REPLICATION;"
                   "CREATE SCHEMA own; CREATE TABLE own.a (id int PRIMARY KEY);"
                   "GRANT USAGE ON SCHEMA own TO walberg_guest;"
                   "GRANT SELECT ON own.a TO walberg_guest");

    AUTO_PG PgConn *guest = connect_with(&pg, "user=walberg_guest", false);

    load_tables(guest, arena, &read, &tables);
    FAILS(source_publication_ensure(guest, arena, &want, &tables, &publication, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "permission denied"));

    const char *hint = strstr(err.msg, "CREATE PUBLICATION");

    assert_non_null(hint);
    run_sql(admin, hint); /* to the letter */
    OK(source_publication_ensure(guest, arena, &want, &tables, &publication, &err));
    assert_true(!publication.made && !publication.owned);

    /* A table that the owner has not added: reported, no failure. */
    AUTO(source_tables_done) SourceTables more = {0};

    run_sql(admin, "CREATE TABLE own.b (id int PRIMARY KEY); GRANT SELECT ON own.b TO "
                   "walberg_guest");
    load_tables(guest, arena, &read, &more);
    OK(source_publication_ensure(guest, arena, &want, &more, &publication, &err));
    assert_int_equal(publication.missing, 1);
    run_sql(admin, publication.missing_sql);

    want = (PublicationWant){.name = "walberg_absent"};
    FAILS(source_publication_ensure(admin, arena, &want, &more, &publication, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "does not exist\nhint: "));
    run_sql(admin, "DROP PUBLICATION walberg_own; DROP SCHEMA own CASCADE;"
                   "DROP ROLE walberg_guest");
}

static void
existing_publications_are_taken_as_they_are(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};
    TablesRead read = {.config = config_of(arena, "[\"as_is.*\"]"), .publication = "walberg_all"};
    PublicationWant want = {.name = "walberg_all"};
    Publication publication = {0};
    Error err = {0};

    run_sql(conn, "CREATE SCHEMA as_is; CREATE TABLE as_is.a (id int PRIMARY KEY, b int, c int);"
                  "CREATE TABLE as_is.root (id int PRIMARY KEY) PARTITION BY LIST (id);"
                  "CREATE TABLE as_is.leaf PARTITION OF as_is.root DEFAULT;"
                  "CREATE PUBLICATION walberg_all FOR ALL TABLES WITH (publish = 'insert')");
    load_tables(conn, arena, &read, &tables);
    FAILS(source_publication_ensure(conn, arena, &want, &tables, &publication, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "SET (publish_via_partition_root = true)"));
    run_sql(conn, strstr(err.msg, "ALTER PUBLICATION"));
    source_tables_done(&tables);
    load_tables(conn, arena, &read, &tables);
    OK(source_publication_ensure(conn, arena, &want, &tables, &publication, &err));
    assert_true(publication.all_tables && publication.missing == 0);
    assert_string_equal(publication.unpublished, "update, delete, truncate");

    if (pg_server_version(conn) >= 150000) {
        AUTO(source_tables_done) SourceTables part = {0};

        run_sql(conn, "CREATE PUBLICATION walberg_part FOR TABLE as_is.a (id, c) WHERE (id > 5)");
        read.publication = "walberg_part";
        load_tables(conn, arena, &read, &part);

        const SourceTable *table = table_named(&part, "as_is.a");

        assert_true(table->published);
        assert_string_equal(table->row_filter, "(id > 5)");
        assert_int_equal(table->schema->column_count, 2);
        assert_int_equal(table->missing_count, 1);
        assert_true(str_eqc(table->missing[0].name, "b"));
        run_sql(conn, "DROP PUBLICATION walberg_part");
    }
    run_sql(conn, "DROP PUBLICATION walberg_all; DROP SCHEMA as_is CASCADE");
}

/* What a gap is recognised by (pipeline/gaps.c): Postgres' own catalogs, on every version. */
static void
whoever_comes_back_has_another_entry(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    TablesRead read = {.config = config_of(arena, "[\"back.*\"]"), .publication = "walberg_back"};

    static const struct {
        const char *sql;
        bool same_entry, same_version, same_publication;
        int version_min;
    } steps[] = {
        {"ALTER PUBLICATION walberg_back ADD TABLE back.b", true, true, true, 0},
        {"ALTER PUBLICATION walberg_back SET TABLE back.a, back.b", true, true, true, 0},
        {"ALTER PUBLICATION walberg_back DROP TABLE back.a;"
         "ALTER PUBLICATION walberg_back ADD TABLE back.a",
         false, true, true, 0},
        {"ALTER PUBLICATION walberg_back SET TABLE back.a WHERE (id > 5)", false, true, true,
         150000},
        {"ALTER TABLE back.a RENAME id TO key", true, true, true, 0},
        {"ALTER PUBLICATION walberg_back SET TABLE back.a (key)", false, true, true, 150000},
        {"ALTER PUBLICATION walberg_back SET (publish = 'insert');"
         "ALTER PUBLICATION walberg_back SET (publish = 'insert, update, delete, truncate')",
         true, false, true, 0},
        {"DROP PUBLICATION walberg_back; CREATE PUBLICATION walberg_back FOR TABLE back.a", false,
         false, false, 0},
    };

    uint32_t entry = 0;
    Publication before = {0};

    run_sql(conn, "CREATE SCHEMA back; CREATE TABLE back.a (id int PRIMARY KEY);"
                  "CREATE TABLE back.b (id int PRIMARY KEY);"
                  "CREATE PUBLICATION walberg_back FOR TABLE back.a");
    for (size_t i = 0; i <= sizeof steps / sizeof steps[0]; i++) {
        AUTO(source_tables_done) SourceTables tables = {0};
        Publication now = {0};
        Error err = {0};

        if (i > 0 && pg_server_version(conn) < steps[i - 1].version_min)
            continue;
        if (i > 0)
            run_sql(conn, steps[i - 1].sql);
        load_tables(conn, arena, &read, &tables);
        OK(source_publication_load(conn, arena, read.publication, &tables, &now, &err));

        const SourceTable *table = table_named(&tables, "back.a");

        assert_true(table->publication_entry != 0 && table->schema_entry == 0);
        if (i > 0) {
            assert_int_equal(table->publication_entry == entry, steps[i - 1].same_entry);
            assert_int_equal(strcmp(now.version, before.version) == 0, steps[i - 1].same_version);
            assert_int_equal(now.oid == before.oid, steps[i - 1].same_publication);
        }
        entry = table->publication_entry;
        before = now;
    }
    run_sql(conn, "DROP PUBLICATION walberg_back; DROP SCHEMA back CASCADE");
}

/* --- slots ----------------------------------------------------------------------------------- */

static void
slot_lives_from_creation_to_drop(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO_PG PgConn *walsender = connect_with(&pg, "", true);
    SlotExpect expect = {.name = "walberg_slot", .database = pg_database(conn)};
    SlotSnapshot snapshot = {0};
    Slot slot = {0};
    Error err = {0};

    drop_slot(conn, "walberg_slot");
    OK(source_slot_load(conn, arena, "walberg_slot", &slot, &err));
    assert_false(slot.exists);
    FAILS(source_slot_check(&slot, &expect, &err), ERR_INPUT);
    OK(source_slot_create(walsender, arena, &(SlotCreate){.name = "walberg_slot", .failover = true},
                          &snapshot, &err));
    assert_true(snapshot.position > 0);
    OK(source_slot_load(conn, arena, "walberg_slot", &slot, &err));
    OK(source_slot_check(&slot, &expect, &err));
    assert_true(slot.confirmed == snapshot.position);
    assert_true(slot.restart <= slot.confirmed && slot.retained_bytes >= 0);
    assert_string_equal(slot.plugin, "pgoutput");
    assert_true(!slot.temporary && !slot.two_phase);
    assert_int_equal(slot.failover, pg_server_version(conn) >= 170000);
    assert_string_equal(slot.wal_status, "reserved");
    assert_int_equal(slot.safe_bytes, -1);

    /* Postgres' own way of moving it: what a second consumer would do */
    run_sql(conn, "CREATE TABLE IF NOT EXISTS public.slot_noise (a int); INSERT INTO "
                  "public.slot_noise VALUES (1);"
                  "DROP TABLE public.slot_noise");
    run_sql(conn, "SELECT pg_replication_slot_advance('walberg_slot', pg_current_wal_lsn())");
    expect.position = snapshot.position;
    OK(source_slot_load(conn, arena, "walberg_slot", &slot, &err));
    FAILS(source_slot_check(&slot, &expect, &err), ERR_INPUT);

    FAILS(source_slot_create(walsender, arena, &(SlotCreate){.name = "walberg_slot"}, &snapshot,
                             &err),
          ERR_INPUT);
    assert_non_null(strstr(err.msg, "already exists\nhint: "));
    FAILS(source_slot_create(walsender, arena, &(SlotCreate){.name = "Bad Name"}, &snapshot, &err),
          ERR_INPUT);
    drop_slot(conn, "walberg_slot");
    OK(source_slot_load(conn, arena, "walberg_slot", &slot, &err));
    assert_false(slot.exists);
}

static void
temporary_slot_goes_with_its_connection(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    PgConn *walsender = connect_with(&pg, "", true);
    SlotExpect expect = {.name = "walberg_temp", .database = pg_database(conn)};
    SlotSnapshot snapshot = {0};
    Slot slot = {0};
    Error err = {0};

    OK(source_slot_create(walsender, arena,
                          &(SlotCreate){.name = "walberg_temp", .temporary = true}, &snapshot,
                          &err));
    OK(source_slot_load(conn, arena, "walberg_temp", &slot, &err));
    assert_true(slot.temporary && slot.active_pid > 0);
    FAILS(source_slot_check(&slot, &expect, &err), ERR_TRANSIENT);
    FAILS(source_slot_drop(conn, arena, "walberg_temp", &err), ERR_TRANSIENT);
    pg_close(walsender);
    for (int i = 0; i < 100 && slot.exists; i++) {
        usleep(50000);
        OK(source_slot_load(conn, arena, "walberg_temp", &slot, &err));
    }
    assert_false(slot.exists);
}

static void
no_free_slot_says_what_to_do(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO_PG PgConn *walsender = connect_with(&pg, "", true);
    SlotSnapshot snapshot = {0};
    Error err = {0};

    run_sql(conn, "SELECT pg_create_physical_replication_slot('walberg_fill_' || i) FROM"
                  " generate_series(1, current_setting('max_replication_slots')::int -"
                  " (SELECT count(*)::int FROM pg_replication_slots)) i");
    FAILS(source_slot_create(walsender, arena, &(SlotCreate){.name = "walberg_slot"}, &snapshot,
                             &err),
          ERR_INPUT);
    assert_non_null(strstr(err.msg, "raise max_replication_slots"));
    run_sql(conn, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                  " WHERE slot_name LIKE 'walberg_fill_%'");
}

static void
wal_level_says_what_to_do(void **state)
{
    (void) state;

    ThrowawayPg replica;

    if (throwaway_pg_start(&replica, "wal_level = replica") != 0)
        skip();

    AUTO_ARENA Arena *arena = arena_new();
    PgConn *walsender = connect_with(&replica, "", true);
    SlotSnapshot snapshot = {0};
    Error err = {0};

    FAILS(source_slot_create(walsender, arena, &(SlotCreate){.name = "walberg_slot"}, &snapshot,
                             &err),
          ERR_INPUT);
    assert_non_null(strstr(err.msg, "\nhint: ALTER SYSTEM SET wal_level = logical"));
    pg_close(walsender);
    throwaway_pg_stop(&replica);
}

static void *
set_later(void *token)
{
    usleep(300000);
    cancel_set(token);
    return NULL;
}

/* The creation of a slot waits for transactions that write; leaving must end it, on the server
 * too. */
static void
waiting_for_a_slot_can_be_canceled(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO_PG PgConn *writer = connect_with(&pg, "", false);
    Cancel *cancel = cancel_new();
    PgConn *walsender = NULL;
    SlotSnapshot snapshot = {0};
    Slot slot = {.exists = true};
    pthread_t thread;
    Error err = {0};

    OK(pg_connect(&(PgConnect){.conninfo = pg.conninfo, .replication = true, .cancel = cancel},
                  &walsender, &err));
    run_sql(writer, "BEGIN; SELECT txid_current()");
    assert_int_equal(pthread_create(&thread, NULL, set_later, cancel), 0);

    int64_t start = clock_ms();

    FAILS(source_slot_create(walsender, arena, &(SlotCreate){.name = "walberg_wait"}, &snapshot,
                             &err),
          ERR_CANCELED);
    assert_true(clock_ms() - start < 5000);
    pthread_join(thread, NULL);
    pg_close(walsender);
    cancel_free(cancel);
    for (int i = 0; i < 100 && slot.exists; i++) {
        usleep(50000);
        OK(source_slot_load(conn, arena, "walberg_wait", &slot, &err));
    }
    assert_false(slot.exists);
    run_sql(writer, "ROLLBACK");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(publication_is_made_once_and_takes_new_tables),
        cmocka_unit_test(what_is_published_is_what_the_view_says),
        cmocka_unit_test(who_may_not_make_it_is_told_what_the_owner_runs),
        cmocka_unit_test(existing_publications_are_taken_as_they_are),
        cmocka_unit_test(whoever_comes_back_has_another_entry),
        cmocka_unit_test(slot_lives_from_creation_to_drop),
        cmocka_unit_test(temporary_slot_goes_with_its_connection),
        cmocka_unit_test(no_free_slot_says_what_to_do),
        cmocka_unit_test(wal_level_says_what_to_do),
        cmocka_unit_test(waiting_for_a_slot_can_be_canceled),
    };

    if (throwaway_pg_missing())
        return 0;
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
