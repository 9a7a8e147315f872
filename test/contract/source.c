/* Connections and the catalog against a real Postgres. What is asserted comes from
 * Postgres' documentation and from Postgres itself, asked in another way. */
#include "testing.h"

#include "source_testing.h"

#include "base/clock.h"
#include "source/server.h"

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

/* --- connections ----------------------------------------------------------------------------- */

static void
refusals_name_the_place_and_never_a_secret(void **state)
{
    (void) state;

    static const struct {
        const char *conninfo; /* behind the server's own */
        bool replication;
        ErrKind kind;
        const char *says;
        const char *hint;
    } cases[] = {
        {"dbname=nowhere password=sesame", false, ERR_INPUT, "\"nowhere\" does not exist",
         "database's name"},
        {"user=nobody_here password=sesame", false, ERR_INPUT, "\"nobody_here\" does not exist",
         "role's name"},
        {"port=1 password=sesame", false, ERR_TRANSIENT, "refused", NULL},
        {"sslmode=odd password=sesame", false, ERR_INPUT, "odd", NULL},
        {"host=/nonexistent password=sesame", false, ERR_TRANSIENT, "/nonexistent", NULL},
        {"sslmode=verify-full sslrootcert=/nonexistent password=sesame", false, ERR_INPUT, "SSL",
         NULL},
        {"user=walberg_plain password=sesame", true, ERR_INPUT, "walberg_plain",
         "ALTER ROLE ... REPLICATION"},
        {"options='-c no_such_setting=1' password=sesame", false, ERR_INPUT, "no_such_setting",
         NULL},
        {"colour=sesame", false, ERR_INPUT, "colour", NULL},
        {"password=open sesame", false, ERR_INPUT, "connection string", NULL},
    };

    AUTO_PG PgConn *admin = connect_with(&pg, "", false);

    run_sql(admin, "DROP ROLE IF EXISTS walberg_plain; CREATE ROLE walberg_plain LOGIN");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char conninfo[1024];
        Error err = {0};
        PgConn *conn = NULL;

        FAILS(pg_connect(&(PgConnect){.conninfo = conninfo_with(&pg, conninfo, cases[i].conninfo),
                                      .replication = cases[i].replication},
                         &conn, &err),
              cases[i].kind);
        assert_null(conn);
        if (strstr(err.msg, cases[i].says) == NULL ||
            (cases[i].hint != NULL && strstr(err.msg, cases[i].hint) == NULL)) {
            print_error("%s: %s\n", cases[i].conninfo, err.msg);
            fail();
        }
        assert_null(strstr(err.msg, "sesame"));
        assert_null(strstr(err.msg, "LOCATION"));

        const char *line_end = strchr(err.msg, '\n');

        assert_true(line_end == NULL || strncmp(line_end, "\nhint: ", 7) == 0);
    }
    run_sql(admin, "DROP ROLE walberg_plain");
}

static void
passwords_with_odd_letters_do_not_leak(void **state)
{
    (void) state;

    static const char *const uris[] = {
        "postgres://u:se@same@127.0.0.1:1/d", "postgres://u:se/same@127.0.0.1:1/d",
        "postgres://u:se:same@127.0.0.1:1/d", "postgres://u:se#same@127.0.0.1:port/d",
        "postgres://u:se%same@127.0.0.1:1/d", "host=h port='1' password=se'same"};

    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++) {
        Error err = {0};
        PgConn *conn = NULL;

        assert_false(pg_connect(&(PgConnect){.conninfo = uris[i]}, &conn, &err));
        if (strstr(err.msg, "same") != NULL) {
            print_error("%s: %s\n", uris[i], err.msg);
            fail();
        }
    }
}

/* Rules of pg_hba.conf, on a server of our own. */
static void
passwords_are_asked_for_and_checked(void **state)
{
    (void) state;

    static const struct {
        const char *conninfo;
        ErrKind kind;
        const char *says;
    } cases[] = {
        {"user=walberg_scram password=sesame", ERR_NONE, ""},
        {"user=walberg_scram password=samese", ERR_INPUT, "\nhint: check user and password"},
        {"user=walberg_scram", ERR_INPUT, "\nhint: give the password in"},
        {"user=walberg_out password=samese", ERR_INPUT, "pg_hba.conf rejects connection"},
    };

    AUTO_PG PgConn *admin = connect_with(&pg, "", false);
    AUTO_ARENA Arena *arena = arena_new();

    if (pg.dir[0] == '\0')
        skip();
    run_sql(admin, "SET password_encryption = 'scram-sha-256';"
                   "CREATE ROLE walberg_scram LOGIN PASSWORD 'sesame'; CREATE ROLE walberg_out");
    run_sql(admin, arena_printf(arena,
                                "COPY (VALUES ('host all walberg_scram all scram-sha-256'),"
                                " ('host all walberg_out all reject'), ('host all all all trust'),"
                                " ('host replication all all trust'))"
                                " TO '%s/data/pg_hba.conf'; SELECT pg_reload_conf()",
                                pg.dir));
    setenv("PGPASSFILE", "/nonexistent", 1); /* NOLINT(concurrency-mt-unsafe) */
    usleep(500000);                          /* until the rules are read again */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char conninfo[1024];
        PgConnect connect = {.conninfo = conninfo_with(&pg, conninfo, cases[i].conninfo)};
        AUTO_PG PgConn *conn = NULL;
        Error err = {0};

        assert_int_equal(pg_connect(&connect, &conn, &err), cases[i].kind == ERR_NONE);
        assert_int_equal(err.kind, cases[i].kind);
        assert_non_null(strstr(err.msg, cases[i].says));
        assert_null(strstr(err.msg, "samese"));
    }
}

/* Whatever happens, lc_monetary is C again; RESET finds that of the role. */
static void
money_is_asked_of_the_source(PgConn *conn, Arena *arena)
{
    static const char now[] = "SELECT current_setting('lc_monetary')";
    Error err = {0};
    int digits = 0;

    assert_string_equal(ask(conn, arena, now), "C");
    OK(pg_money_digits(conn, NULL, &digits, &err));
    assert_int_equal(digits, 2);
    OK(pg_money_digits(conn, "C.UTF-8", &digits, &err));
    FAILS(pg_money_digits(conn, "no'where", &digits, &err), ERR_INPUT);
    assert_string_equal(ask(conn, arena, now), "C");
    run_sql(conn, "BEGIN");
    OK(pg_money_digits(conn, NULL, &digits, &err));
    assert_string_equal(ask(conn, arena, now), "C");
    FAILS(pg_money_digits(conn, "nowhere", &digits, &err), ERR_INPUT);
    run_sql(conn, "ROLLBACK");
    assert_string_equal(ask(conn, arena, now), "C");
    assert_string_equal(ask(conn, arena,
                            "RESET lc_monetary; SELECT"
                            " current_setting('lc_monetary')"),
                        "C.UTF-8");
}

static void
settings_are_pinned_over_role_and_database(void **state)
{
    (void) state;

    static const char *const settings[] = {
        "datestyle = 'SQL, DMY'",  "intervalstyle = iso_8601",  "timezone = 'Asia/Kolkata'",
        "extra_float_digits = 0",  "bytea_output = escape",     "search_path = public",
        "statement_timeout = 1",   "xmloption = document",      "quote_all_identifiers = on",
        "row_security = on",       "client_encoding = LATIN1",  "standard_conforming_strings = off",
        "lock_timeout = 1",        "synchronize_seqscans = on", "jit = on",
        "lc_monetary = 'C.UTF-8'",
    };
    static const char values[] =
        "SELECT concat_ws('|', timestamptz '2026-11-30 10:00+00', interval '1 day 2 hours',"
        " 0.1::float8 + 0.2::float8, '\\x00ff'::bytea, 'public.pinned'::regclass, E'\\u00e9')"
        " FROM pg_sleep(0.01)";
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *admin = connect_with(&pg, "", false);

    run_sql(admin, "DROP ROLE IF EXISTS walberg_odd; CREATE ROLE walberg_odd LOGIN REPLICATION;"
                   "CREATE TABLE public.pinned ()");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        run_sql(admin, arena_printf(arena, "ALTER ROLE walberg_odd SET %s", settings[i]));
    for (int replication = 0; replication <= 1; replication++) {
        AUTO_PG PgConn *conn = connect_with(&pg, "user=walberg_odd", replication != 0);

        assert_string_equal(ask(conn, arena, values),
                            "2026-11-30 10:00:00+00|1 day 02:00:00|0.30000000000000004|\\x00ff|"
                            "public.pinned|\xC3\xA9");
        assert_string_equal(ask(conn, arena,
                                "SELECT setting FROM pg_settings"
                                " WHERE name = 'statement_timeout'"),
                            "0");
        money_is_asked_of_the_source(conn, arena);
    }
    /* options of the user stay */
    AUTO_PG PgConn *conn = connect_with(&pg, "options='-c work_mem=7MB'", false);

    assert_string_equal(ask(conn, arena, "SELECT current_setting('work_mem')"), "7MB");
    run_sql(admin, "DROP TABLE public.pinned; DROP ROLE walberg_odd");
}

static void
statements_fail_with_kind_and_sqlstate_and_go_on(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    Error err = {0};
    PgResult r;
    const char *params[] = {"7", NULL};

    OK(pg_query(conn, arena, "SELECT $1::int + 1 AS next, $2::text", 2, params, &r, &err));
    assert_int_equal(pg_value_int(&r, 0, 0), 8);
    assert_null(pg_value(&r, 0, 1).ptr);
    assert_true(str_eqc(r.names[0], "next"));
    FAILS(pg_exec(conn, arena, "SELECT 1/0; SELECT 2", &r, &err), ERR_INPUT);
    assert_string_equal(pg_sqlstate(conn), "22012");
    assert_string_equal(err.msg, "division by zero");
    FAILS(pg_exec(conn, arena, "SELECT nothing_like_it()", &r, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "\nhint: "));
    FAILS(pg_exec(conn, NULL, "COPY (SELECT 1) TO STDOUT", NULL, &err), ERR_BUG);

    AUTO_PG PgConn *other = connect_with(&pg, "", false);
    AUTO_PG PgConn *victim = connect_with(&pg, "", false);
    const char *pid = ask(victim, arena, "SELECT pg_backend_pid()");

    run_sql(other, arena_printf(arena, "SELECT pg_terminate_backend(%s)", pid));
    FAILS(pg_exec(victim, arena, "SELECT 1", &r, &err), ERR_TRANSIENT);
}

/* What a catalog function says when the object goes away between the rows and its own look. */
static void
a_question_that_met_ddl_may_be_asked_again(void **state)
{
    (void) state;

    static const struct {
        const char *sql;
        const char *sqlstate;
    } races[] = {
        {"SELECT array_in('{}', 0, -1)", "XX000"},
        {"SELECT 'no_such_table'::regclass", "42P01"},
        {"SELECT 'no_such_type'::regtype", "42704"},
        {"SELECT 'no_such_schema'::regnamespace", "3F000"},
    };

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    Error err = {0};
    PgResult r;

    for (size_t i = 0; i < sizeof races / sizeof races[0]; i++) {
        FAILS(pg_ask(conn, arena, races[i].sql, 0, NULL, &r, &err), ERR_TRANSIENT);
        assert_string_equal(pg_sqlstate(conn), races[i].sqlstate);
        FAILS(pg_query(conn, arena, races[i].sql, 0, NULL, &r, &err), ERR_INPUT);
    }
    FAILS(pg_ask(conn, arena, "SELECT 1/0", 0, NULL, &r, &err), ERR_INPUT);
    OK(pg_ask(conn, arena, "SELECT 1", 0, NULL, &r, &err));
}

/* --- the server ------------------------------------------------------------------------------ */

static void
check_facts(PgConn *conn, Arena *arena, bool replication)
{
    ServerInfo server = {0};
    Error err = {0};

    OK(source_server_info(conn, arena, &server, &err));
    if (replication) { /* the same facts by the protocol's own command */
        PgResult r;

        OK(pg_exec(conn, arena, "IDENTIFY_SYSTEM", &r, &err));
        assert_string_equal(server.system_identifier, pg_value(&r, 0, 0).ptr);
        assert_int_equal(server.timeline, pg_value_int(&r, 0, 1));
        assert_string_equal(server.database, pg_value(&r, 0, 3).ptr);
    }
    assert_string_equal(server.role, "walberg_repl");
    assert_true(server.replication && !server.superuser && !server.in_recovery);
    assert_string_equal(server.wal_level, "logical");
    assert_string_equal(server.encoding, "UTF8");
    assert_true(server.slots_free <= server.slots_max && server.slots_free > 0);
    assert_true(server.senders_free > 0 && server.flush > 0);
    assert_true(server.sender_timeout_ms > 0);
    OK(source_server_check(&server, &err));
    server.replication = false;
    FAILS(source_server_check(&server, &err), ERR_INPUT);
    server.wal_level = "replica";
    FAILS(source_server_check(&server, &err), ERR_INPUT);
}

static void
server_facts_need_no_superuser(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *admin = connect_with(&pg, "", false);

    run_sql(admin, "DROP ROLE IF EXISTS walberg_repl; CREATE ROLE walberg_repl LOGIN REPLICATION");
    for (int replication = 0; replication <= 1; replication++) {
        AUTO_PG PgConn *conn = connect_with(&pg, "user=walberg_repl", replication != 0);

        check_facts(conn, arena, replication != 0);
    }
    run_sql(admin, "DROP ROLE walberg_repl");
}

/* --- tables ---------------------------------------------------------------------------------- */

static const struct {
    const char *type;
    const char *duckdb; /* the logical type in DuckDB's words */
} type_cases[] = {
    {"boolean", "BOOLEAN"},
    {"int2", "INTEGER"},
    {"int8", "BIGINT"},
    {"oid", "BIGINT"},
    {"float4", "FLOAT"},
    {"numeric(12,2)", "DECIMAL(12,2)"},
    {"numeric", "VARCHAR"},
    {"numeric(50,2)", "VARCHAR"},
    {"money", "DECIMAL(19,2)"},
    {"char(5)", "VARCHAR"},
    {"jsonb", "VARCHAR"},
    {"bytea", "BLOB"},
    {"uuid", "UUID"},
    {"date", "DATE"},
    {"timetz", "VARCHAR"},
    {"timestamp(3)", "TIMESTAMP"},
    {"timestamptz", "TIMESTAMP WITH TIME ZONE"},
    {"interval", "VARCHAR"},
    {"int4[]", "INTEGER[]"},
    {"numeric(6,2)[][]", "DECIMAL(6,2)[][]"},
    {"box[]", "VARCHAR[]"},
    {"int2vector", "VARCHAR"},
    {"types.mood", "VARCHAR"},
    {"types.mood[]", "VARCHAR[]"},
    {"types.price", "DECIMAL(10,3)"},
    {"types.prices", "DECIMAL(10,3)[]"},
    {"types.place", "STRUCT(\"x\" INTEGER, \"tags\" VARCHAR[], \"price\" DECIMAL(10,3))"},
    {"types.place[]", "STRUCT(\"x\" INTEGER, \"tags\" VARCHAR[], \"price\" DECIMAL(10,3))[]"},
    {"types.outer_place",
     "STRUCT(\"inner\" STRUCT(\"x\" INTEGER, \"tags\" VARCHAR[], \"price\" DECIMAL(10,3)))"},
    {"int4range", "VARCHAR"},
    {"tsvector", "VARCHAR"},
    {"types.rowtype", "STRUCT(\"id\" INTEGER, \"t\" VARCHAR)"},
};

static void
columns_get_their_types(void **state)
{
    (void) state;

    enum { CASES = sizeof type_cases / sizeof type_cases[0] };

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};
    AUTO_BUF Buf sql = {0};

    run_sql(conn, "CREATE SCHEMA types; CREATE TYPE types.mood AS ENUM ('sad', 'ok');"
                  "CREATE DOMAIN types.price AS numeric(10,3) CHECK (VALUE > 0);"
                  "CREATE DOMAIN types.prices AS types.price[];"
                  "CREATE TYPE types.place AS (x int, tags text[], price types.price);"
                  "CREATE TYPE types.outer_place AS (\"inner\" types.place);"
                  "CREATE TABLE types.rowtype (id int PRIMARY KEY, gone int, t text);"
                  "ALTER TABLE types.rowtype DROP COLUMN gone");
    buf_cstr(&sql, "CREATE TABLE types.all_of_them (id int PRIMARY KEY");
    for (int i = 0; i < CASES; i++)
        buf_printf(&sql, ", c%d %s", i, type_cases[i].type);
    buf_byte(&sql, ')');
    run_sql(conn, buf_text(&sql));
    load_tables(conn, arena, &(TablesRead){.config = config_of(arena, "[\"types.*\"]")}, &tables);

    const SourceTable *table = table_named(&tables, "types.all_of_them");

    assert_int_equal(table->schema->column_count, CASES + 1);
    for (int i = 0; i < CASES; i++) {
        const SchemaColumn *column = &table->schema->columns[i + 1];
        AUTO_BUF Buf name = {0};

        type_duckdb_name(column->field.type, &name);
        if (strcmp(buf_text(&name), type_cases[i].duckdb) != 0)
            print_error("%s\n", type_cases[i].type);
        assert_string_equal(buf_text(&name), type_cases[i].duckdb);
        assert_int_equal(column->attnum, i + 2);
        assert_int_equal(column->field.id, i + 2);
    }
    assert_string_equal(table->schema->columns[6].pg_type, "numeric(12,2)");
    assert_int_equal(table->schema->last_field_id > CASES, 1);
    assert_true(table->schema->columns[0].not_null && !table->schema->columns[1].not_null);
    /* attnum 2 of the row type was dropped */
    assert_int_equal(table_named(&tables, "types.rowtype")->schema->columns[1].attnum, 3);
    assert_true(table->text_count > 0);
    run_sql(conn, "DROP SCHEMA types CASCADE");
}

static void
keys_follow_the_catalog(void **state)
{
    (void) state;

    static const struct {
        const char *table;
        KeyMode mode;
        const char *key; /* names in the order of the key */
    } cases[] = {
        {"keys.pk", KEY_COLUMNS, "b,a"},     {"keys.none", KEY_NONE, ""},
        {"keys.by_index", KEY_COLUMNS, "b"}, {"keys.full_pk", KEY_COLUMNS, "a"},
        {"keys.full_row", KEY_FULL_ROW, ""}, {"keys.nothing", KEY_NONE, ""},
        {"keys.deferrable", KEY_NONE, ""},   {"keys.full_deferrable", KEY_FULL_ROW, ""},
        {"keys.included", KEY_COLUMNS, "a"}, {"keys.\"odd.one\"", KEY_COLUMNS, "A b"},
        {"keys.index_gone", KEY_NONE, ""},
    };

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};

    run_sql(conn,
            "CREATE SCHEMA keys;"
            "CREATE TABLE keys.pk (a int, b int, v text, PRIMARY KEY (b, a));"
            "CREATE TABLE keys.none (a int);"
            "CREATE TABLE keys.by_index (a int PRIMARY KEY, b int NOT NULL UNIQUE);"
            "ALTER TABLE keys.by_index REPLICA IDENTITY USING INDEX by_index_b_key;"
            "CREATE TABLE keys.full_pk (a int PRIMARY KEY, b int);"
            "ALTER TABLE keys.full_pk REPLICA IDENTITY FULL;"
            "CREATE TABLE keys.full_row (a int); ALTER TABLE keys.full_row REPLICA IDENTITY FULL;"
            "CREATE TABLE keys.nothing (a int PRIMARY KEY);"
            "ALTER TABLE keys.nothing REPLICA IDENTITY NOTHING;"
            "CREATE TABLE keys.deferrable (a int PRIMARY KEY DEFERRABLE);"
            "CREATE TABLE keys.full_deferrable (a int PRIMARY KEY DEFERRABLE);"
            "ALTER TABLE keys.full_deferrable REPLICA IDENTITY FULL;"
            "CREATE TABLE keys.included (a int, b int, PRIMARY KEY (a) INCLUDE (b));"
            "CREATE TABLE keys.\"odd.one\" (\"A b\" int PRIMARY KEY);"
            "CREATE TABLE keys.index_gone (a int NOT NULL UNIQUE);"
            "ALTER TABLE keys.index_gone REPLICA IDENTITY USING INDEX index_gone_a_key;"
            "ALTER TABLE keys.index_gone DROP CONSTRAINT index_gone_a_key");
    load_tables(conn, arena, &(TablesRead){.config = config_of(arena, "[\"keys.*\"]")}, &tables);
    assert_int_equal(tables.count, sizeof cases / sizeof cases[0]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const SourceTable *table = table_named(&tables, cases[i].table);
        AUTO_BUF Buf key = {0};

        for (int k = 0; k < table->schema->key_count; k++)
            buf_printf(&key, "%s%.*s", k > 0 ? "," : "",
                       STR_ARG(table->schema->columns[table->schema->key[k]].field.name));
        if (table->schema->key_mode != cases[i].mode)
            print_error("%s\n", cases[i].table);
        assert_int_equal(table->schema->key_mode, cases[i].mode);
        assert_string_equal(buf_text(&key), cases[i].key);
        assert_int_equal(table->warning != NULL, cases[i].mode == KEY_NONE);
        assert_null(table->problem);
    }
    run_sql(conn, "DROP SCHEMA keys CASCADE");
}

static void
partitions_are_their_root(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};
    AUTO(source_tables_done) SourceTables one = {0};
    AUTO(source_tables_done) SourceTables gone = {0};
    TablesRead read = {.config = config_of(arena, "[\"parts.*\"]")};
    Error err = {0};

    run_sql(conn,
            "CREATE SCHEMA parts;"
            "CREATE TABLE parts.root (id int, day int, v text, PRIMARY KEY (id, day))"
            " PARTITION BY RANGE (day);"
            "CREATE TABLE parts.low PARTITION OF parts.root FOR VALUES FROM (0) TO (10);"
            "CREATE TABLE parts.middle PARTITION OF parts.root FOR VALUES FROM (10) TO (20)"
            " PARTITION BY LIST (id);"
            "CREATE TABLE parts.deep PARTITION OF parts.middle DEFAULT;"
            /* another column order */
            "CREATE TABLE parts.attached (v text, x int, day int NOT NULL, id int NOT NULL);"
            "ALTER TABLE parts.attached DROP COLUMN x;"
            "ALTER TABLE parts.root ATTACH PARTITION parts.attached FOR VALUES FROM (20) TO (30);"
            "CREATE TABLE parts.parent (a int PRIMARY KEY);"
            "CREATE TABLE parts.child (b int) INHERITS (parts.parent);"
            "CREATE TABLE parts.uneven (a int) PARTITION BY LIST (a);"
            "CREATE TABLE parts.uneven_1 PARTITION OF parts.uneven FOR VALUES IN (1);"
            "ALTER TABLE parts.uneven REPLICA IDENTITY FULL");
    load_tables(conn, arena, &read, &tables);
    assert_int_equal(tables.count, 4);

    const SourceTable *root = table_named(&tables, "parts.root");

    assert_int_equal(root->kind, 'p');
    assert_int_equal(root->leaf_count, 3);
    assert_int_equal(root->schema->key_mode, KEY_COLUMNS);
    assert_null(root->problem);
    /* a partition that does not log whole rows cannot serve a root that is known by whole rows */
    assert_non_null(strstr(table_named(&tables, "parts.uneven")->problem, "parts.uneven_1"));
    OK(source_table_by_oid(conn, arena, &read, root->relid, &one, &err));
    assert_int_equal(one.count, 1);
    assert_int_equal(one.items[0].leaf_count, 3);
    assert_string_equal(one.items[0].qualified, "parts.root");
    run_sql(conn, "DROP SCHEMA parts CASCADE");
    OK(source_table_by_oid(conn, arena, &read, root->relid, &gone, &err));
    assert_int_equal(gone.count, 0);
}

static void
what_does_not_arrive_has_a_reason(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *admin = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};

    run_sql(admin, "DROP ROLE IF EXISTS walberg_reader; CREATE ROLE walberg_reader LOGIN;"
                   "CREATE SCHEMA facts; GRANT USAGE ON SCHEMA facts TO walberg_reader;"
                   "CREATE TABLE facts.plain (id int PRIMARY KEY, g int GENERATED ALWAYS AS"
                   " (id * 2) STORED, p point);"
                   "CREATE TABLE facts.generated_key (id int, g int GENERATED ALWAYS AS (id * 2)"
                   " STORED PRIMARY KEY);"
                   "CREATE VIEW facts.view AS SELECT 1 AS a;"
                   "CREATE MATERIALIZED VIEW facts.matview AS SELECT 1 AS a;"
                   "CREATE UNLOGGED TABLE facts.unlogged (a int);"
                   "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
                   "CREATE FOREIGN TABLE facts.away (a int) SERVER s;"
                   "CREATE TABLE facts.no_columns ();"
                   "CREATE TABLE facts.secured (id int PRIMARY KEY);"
                   "ALTER TABLE facts.secured ENABLE ROW LEVEL SECURITY;"
                   "CREATE TEMPORARY TABLE facts_temporary (a int);"
                   "GRANT SELECT ON ALL TABLES IN SCHEMA facts TO walberg_reader;"
                   "CREATE TABLE facts.secret (id int PRIMARY KEY)");

    AUTO_PG PgConn *conn = connect_with(&pg, "user=walberg_reader", false);

    load_tables(conn, arena, &(TablesRead){.config = config_of(arena, "[\"facts.*\", \"pg_*.*\"]")},
                &tables);
    assert_int_equal(tables.count, 9);
    assert_non_null(strstr(table_named(&tables, "facts.view")->excluded, "view"));
    assert_non_null(strstr(table_named(&tables, "facts.matview")->excluded, "materialized"));
    assert_non_null(strstr(table_named(&tables, "facts.unlogged")->excluded, "unlogged"));
    assert_non_null(strstr(table_named(&tables, "facts.away")->excluded, "foreign"));
    assert_non_null(table_named(&tables, "facts.no_columns")->excluded);
    assert_null(table_named(&tables, "facts.no_columns")->schema);
    assert_non_null(strstr(table_named(&tables, "facts.secured")->problem, "row security"));
    assert_non_null(strstr(table_named(&tables, "facts.secret")->problem, "may not read"));
    assert_non_null(strstr(table_named(&tables, "facts.generated_key")->problem, "key column g"));

    const SourceTable *plain = table_named(&tables, "facts.plain");

    assert_null(plain->problem);
    assert_true(plain->readable && !plain->owned);
    assert_int_equal(plain->missing_count, 1);
    assert_true(str_eqc(plain->missing[0].name, "g"));
    assert_non_null(strstr(plain->missing[0].reason, "generated"));
    assert_int_equal(plain->text_count, 1); /* point */
    assert_int_equal(plain->schema->columns[plain->text_columns[0]].attnum, 3);

    /* the owner of the database sees through row security */
    AUTO(source_tables_done) SourceTables all = {0};

    load_tables(admin, arena, &(TablesRead){.config = config_of(arena, "[\"facts.*\"]")}, &all);
    assert_null(table_named(&all, "facts.secured")->problem);
    run_sql(admin, "DROP SCHEMA facts CASCADE; DROP FOREIGN DATA WRAPPER w CASCADE;"
                   "DROP ROLE walberg_reader");
}

static void
a_thousand_tables_load_within_a_second(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};

    run_sql(conn, "CREATE SCHEMA many; DO $$ BEGIN FOR i IN 1..1000 LOOP EXECUTE format("
                  "'CREATE TABLE many.t%s (id int PRIMARY KEY, a text, b timestamptz[],"
                  " c numeric(10,2), d jsonb, e uuid, f bool, g date)', i); END LOOP; END $$");

    int64_t start = clock_ms();

    load_tables(conn, arena, &(TablesRead){.config = config_of(arena, "[\"many.*\"]")}, &tables);

    int64_t took = clock_ms() - start;

    assert_int_equal(tables.count, 1000);
    print_message("# 1000 tables in %d ms\n", (int) took);
    assert_true(took < 1000);
    /* by hundreds, or the locks do not fit into the server's table */
    for (int i = 0; i < 10; i++)
        run_sql(conn, arena_printf(arena,
                                   "DO $$ BEGIN FOR i IN %d..%d LOOP EXECUTE format("
                                   "'DROP TABLE many.t%%s', i); END LOOP; END $$",
                                   i * 100 + 1, i * 100 + 100));
    run_sql(conn, "DROP SCHEMA many");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_name_the_place_and_never_a_secret),
        cmocka_unit_test(passwords_with_odd_letters_do_not_leak),
        cmocka_unit_test(passwords_are_asked_for_and_checked),
        cmocka_unit_test(settings_are_pinned_over_role_and_database),
        cmocka_unit_test(statements_fail_with_kind_and_sqlstate_and_go_on),
        cmocka_unit_test(a_question_that_met_ddl_may_be_asked_again),
        cmocka_unit_test(server_facts_need_no_superuser),
        cmocka_unit_test(columns_get_their_types),
        cmocka_unit_test(keys_follow_the_catalog),
        cmocka_unit_test(partitions_are_their_root),
        cmocka_unit_test(what_does_not_arrive_has_a_reason),
        cmocka_unit_test(a_thousand_tables_load_within_a_second),
    };

    if (throwaway_pg_missing())
        return 0;
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
