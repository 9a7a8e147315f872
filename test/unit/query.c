/* What the query server makes of statements before they run: tokens, utility statements, the
 * dialect, parameters, the guard (on DuckDB's own parser) and names of columns. Expectations on
 * lexing, names and SQLSTATEs are those of PostgreSQL 15.20. */
#include "testing.h"

#include "query/dialect.h"
#include "query/guard.h"
#include "query/pg_catalog.h"
#include "query/settings.h"
#include "query/token.h"
#include "query/types.h"
#include "query/utility.h"

/* --- tokens -------------------------------------------------------------------------------- */

static void
assert_split(const char *text, int count, const char *first)
{
    Str rest = str_of(text);
    Str statement;
    Error err = {0};

    for (int i = 0; i < count; i++) {
        OK(token_split(&rest, &statement, &err));
        if (i == 0)
            assert_true(str_eqc(statement, first));
    }
    assert_int_equal(rest.len, 0);
}

static void
statements_are_split_where_postgres_splits_them(void **state)
{
    (void) state;

    static const struct {
        const char *text;
        int count;
        const char *first;
    } cases[] = {
        {"select 1", 1, "select 1"},
        {"select 1; select 2;", 2, "select 1"},
        {"select ';'; select 2", 2, "select ';'"},
        {"select 'it''s;' -- ;\n; x", 2, "select 'it''s;' -- ;\n"},
        {"select E'\\';'; x", 2, "select E'\\';'"},
        {"select '\\'; x", 2, "select '\\'"},
        {"select $$;$$; x", 2, "select $$;$$"},
        {"select $a$;$b$;$a$; x", 2, "select $a$;$b$;$a$"},
        {"select \";\"; x", 2, "select \";\""},
        {"select /* ; /* ; */ ; */ 1; x", 2, "select /* ; /* ; */ ; */ 1"},
        {"select a$1;x", 2, "select a$1"},
        {"/* nothing */ ;", 1, ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_split(cases[i].text, cases[i].count, cases[i].first);
}

static void
what_has_no_end_is_an_error(void **state)
{
    (void) state;
    static const char *const cases[] = {"select 'x", "select \"x", "select $a$ x $b$", "/* /* */",
                                        "select E'\\'"};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Str rest = str_of(cases[i]);
        Str statement;
        Error err = {0};

        FAILS(token_split(&rest, &statement, &err), ERR_INPUT);
    }
}

/* --- utility statements -------------------------------------------------------------------- */

static Utility
parse(Arena *arena, const char *sql)
{
    Utility utility;
    QueryFailure failure;
    Error err = {0};

    OK(utility_parse(arena, str_of(sql), &utility, &failure, &err));
    return utility;
}

static void
utility_statements_are_recognised(void **state)
{
    (void) state;
    AUTO_ARENA Arena *arena = arena_new();
    Utility utility;

    assert_int_equal(parse(arena, "SELECT 1").kind, UTILITY_QUERY);
    assert_int_equal(parse(arena, "(select 1)").kind, UTILITY_QUERY);
    assert_int_equal(parse(arena, "-- x\n").kind, UTILITY_EMPTY);
    assert_int_equal(parse(arena, "begin isolation level serializable").kind, UTILITY_BEGIN);
    assert_int_equal(parse(arena, "rollback to savepoint a").kind, UTILITY_ROLLBACK_TO);
    assert_int_equal(parse(arena, "ROLLBACK WORK").kind, UTILITY_ROLLBACK);

    utility = parse(arena, "SET SESSION extra_float_digits = 3");
    assert_true(str_eqc(utility.name, "extra_float_digits") && str_eqc(utility.value, "3"));
    utility = parse(arena, "set DateStyle to ISO, MDY");
    assert_true(str_eqc(utility.name, "datestyle") && str_eqc(utility.value, "ISO, MDY"));
    utility = parse(arena, "set application_name = 'it''s'");
    assert_true(str_eqc(utility.value, "it's"));
    utility = parse(arena, "set time zone 'UTC'");
    assert_true(str_eqc(utility.name, "timezone") && str_eqc(utility.value, "UTC"));
    utility = parse(arena, "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
    assert_int_equal(utility.name.len, 0);
    assert_null(parse(arena, "set jit to default").value.ptr);
    utility = parse(arena, "show transaction isolation level");
    assert_true(str_eqc(utility.name, "transaction_isolation"));
    utility = parse(arena, "explain (analyze, costs off) select 1");
    assert_true(utility.analyze && str_eqc(utility.rest, "select 1"));
    utility = parse(arena, "explain select 1");
    assert_true(!utility.analyze && str_eqc(utility.rest, "select 1"));
    assert_true(str_eqc(parse(arena, "deallocate \"A\"").name, "A"));
}

static void
other_statements_are_refused(void **state)
{
    (void) state;

    static const struct {
        const char *sql;
        const char *sqlstate;
        const char *message;
    } cases[] = {
        {"INSERT INTO t VALUES (1)", "25006", "cannot execute INSERT in a read-only transaction"},
        {"create table t (a int)", "25006",
         "cannot execute CREATE TABLE in a read-only transaction"},
        {"truncate t", "25006", "cannot execute TRUNCATE in a read-only transaction"},
        {"copy t to stdout", "0A000", "COPY is not supported"},
        {"attach 'x' as y", "42601", "syntax error at or near \"attach\""},
        {"pragma database_list", "42601", "syntax error at or near \"pragma\""},
        {"install httpfs", "42601", "syntax error at or near \"install\""},
        {"set session authorization x", "42501", NULL},
        {"set x", "42601", "syntax error at end of input"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO_ARENA Arena *arena = arena_new();
        Utility utility;
        QueryFailure failure;
        Error err = {0};

        FAILS(utility_parse(arena, str_of(cases[i].sql), &utility, &failure, &err), ERR_INPUT);
        assert_string_equal(failure.sqlstate, cases[i].sqlstate);
        if (cases[i].message != NULL)
            assert_string_equal(err.msg, cases[i].message);
    }
}

static void
settings_that_change_results_are_fixed(void **state)
{
    (void) state;
    Settings *settings = settings_new();
    QueryFailure failure;
    Error err = {0};
    bool report;

    OK(settings_set(settings, STR("Application_Name"), STR("x"), &report, &failure, &err));
    assert_true(report);
    assert_string_equal(settings_get(settings, STR("application_name")), "x");
    OK(settings_set(settings, STR("client_encoding"), STR("utf-8"), &report, &failure, &err));
    OK(settings_set(settings, STR("timezone"), STR("Etc/UTC"), &report, &failure, &err));
    FAILS(settings_set(settings, STR("timezone"), STR("CET"), &report, &failure, &err), ERR_INPUT);
    assert_string_equal(failure.sqlstate, "0A000");
    FAILS(settings_set(settings, STR("server_version"), STR("1"), &report, &failure, &err),
          ERR_INPUT);
    FAILS(settings_set(settings, STR("nope"), STR("1"), &report, &failure, &err), ERR_INPUT);
    assert_string_equal(failure.sqlstate, "42704");
    OK(settings_set(settings, STR("my.own"), STR("1"), &report, &failure, &err));
    OK(settings_set(settings, STR("statement_timeout"), STR("2s"), &report, &failure, &err));
    assert_int_equal(settings_timeout_ms(settings), 2000);
    FAILS(settings_set(settings, STR("statement_timeout"), STR("x"), &report, &failure, &err),
          ERR_INPUT);
    settings_reset(settings);
    assert_int_equal(settings_timeout_ms(settings), 0);
    settings_free(settings);
}

/* --- dialect and parameters ---------------------------------------------------------------- */

static void
rewritten(const char *sql, const char *wanted)
{
    AUTO_BUF Buf out = {0};
    AUTO(dialect_map_done) DialectMap map = {0};
    QueryFailure failure;
    Error err = {0};
    int count;

    OK(dialect_rewrite(&(DialectRewrite){.sql = str_of(sql)}, &out, &map, &count, &failure, &err));
    assert_string_equal(buf_text(&out), wanted);
}

static void
spelling_becomes_duckdbs(void **state)
{
    (void) state;

    rewritten("select 1", "select 1");
    rewritten("select pg_catalog.version() from pg_catalog.pg_class",
              "select version() from pg_class");
    rewritten("select 'pg_catalog.x' -- pg_catalog.y", "select 'pg_catalog.x' -- pg_catalog.y");
    rewritten("where a OPERATOR(pg_catalog.~) '^(x)$' COLLATE pg_catalog.default",
              "where a ~ '^(x)$' ");
    rewritten("from information_schema.tables", "from _information_schema.tables");
    rewritten("order by 1 fetch first 5 rows only", "order by 1 LIMIT 5");
    rewritten("fetch next row only", "LIMIT 1");
    rewritten("'a.b'::pg_catalog.regclass", "to_regclass('a.b')");
    rewritten("select x from unnest(a) as x where y", "select x from unnest(a) as x(x) where y");
    rewritten("from generate_series(1, f(2)) g, t", "from generate_series(1, f(2)) g(g), t");
    rewritten("from generate_series(1, 2) g(i)", "from generate_series(1, 2) g(i)");
    rewritten("from generate_series(1, 2) where x", "from generate_series(1, 2) where x");
    rewritten("select unnest(a) x from t", "select unnest(a) x from t");
    rewritten("select at, t.show, map from t", "select \"at\", t.\"show\", \"map\" from t");
    rewritten("select x at time zone 'UTC'", "select x at time zone 'UTC'");
}

static void
places_lead_back_to_the_clients_text(void **state)
{
    (void) state;
    const char *sql = "select pg_catalog.f(), x, 'a'::regclass, y";
    AUTO_BUF Buf out = {0};
    AUTO(dialect_map_done) DialectMap map = {0};
    QueryFailure failure;
    Error err = {0};
    int count;

    OK(dialect_rewrite(&(DialectRewrite){.sql = str_of(sql)}, &out, &map, &count, &failure, &err));
    buf_text(&out);
    for (const char *c = "xy"; *c != '\0'; c++) {
        int64_t place = strchr(out.ptr, *c) - out.ptr;

        assert_int_equal(sql[dialect_place(&map, place)], *c);
    }
    assert_int_equal(dialect_place(&map, -1), -1);
}

static void
substituted(const Parameter *parameter, const char *wanted)
{
    AUTO_BUF Buf out = {0};
    QueryFailure failure;
    Error err = {0};

    OK(literal_put(&out, parameter, &failure, &err));
    assert_string_equal(buf_text(&out), wanted);
}

static void
parameters_become_literals(void **state)
{
    (void) state;

    substituted(&(Parameter){OID_INT8, 0, STR("-5")}, "CAST('-5' AS BIGINT)");
    substituted(&(Parameter){OID_INT4, 1, STR("\377\377\377\376")}, "CAST('-2' AS INTEGER)");
    substituted(&(Parameter){OID_FLOAT8, 1, STR("\077\370\0\0\0\0\0\0")}, "CAST('1.5' AS DOUBLE)");
    substituted(&(Parameter){OID_BOOL, 1, STR("\001")}, "CAST('t' AS BOOLEAN)");
    substituted(&(Parameter){0, 0, STR("it's \\ $1")}, "'it''s \\ $1'");
    substituted(&(Parameter){OID_TEXT, 0, STR("")}, "CAST('' AS VARCHAR)");
    substituted(&(Parameter){OID_NUMERIC, 0, STR("-1.50")}, "(-1.50)");
    substituted(&(Parameter){OID_NUMERIC, 0, STR("NaN")}, "CAST('NaN' AS DOUBLE)");
    substituted(&(Parameter){OID_NUMERIC, 0, STR("1); drop")}, "CAST('1); drop' AS DOUBLE)");
    substituted(&(Parameter){OID_BYTEA, 0, STR("\\x00Ff")}, "CAST('\\x00\\xFf' AS BLOB)");
    substituted(&(Parameter){OID_BYTEA, 1, STR("\0'")}, "CAST('\\x00\\x27' AS BLOB)");
    substituted(&(Parameter){OID_TIMESTAMPTZ, 1, STR("\0\0\0\0\0\0\0\001")},
                "CAST(make_timestamp(946684800000001) AS TIMESTAMP WITH TIME ZONE)");
    substituted(&(Parameter){OID_DATE, 1, STR("\377\377\377\377")}, "(DATE '2000-01-01' + (-1))");
    /* as numeric_send(-12345.678) and numeric_send(0.00001) print them */
    substituted(&(Parameter){OID_NUMERIC, 1, STR("\0\003\0\001\100\0\0\003\0\001\011\051\032\174")},
                "(-12345.678)");
    substituted(&(Parameter){OID_NUMERIC, 1, STR("\0\001\377\376\0\0\0\005\003\350")}, "(0.00001)");
    substituted(&(Parameter){1016, 1,
                             STR("\0\0\0\001\0\0\0\001\0\0\0\024\0\0\0\002\0\0\0\001"
                                 "\0\0\0\010\0\0\0\0\0\0\0\007\377\377\377\377")},
                "CAST([CAST('7' AS BIGINT),CAST(NULL AS BIGINT)] AS BIGINT[])");
    substituted(&(Parameter){1016, 0, STR("{1,NULL,3}")}, "CAST(['1',NULL,'3'] AS BIGINT[])");
    substituted(&(Parameter){1009, 0, STR("{\"a,\\\"b\",'x}")},
                "CAST(['a,\"b','''x'] AS VARCHAR[])");
    substituted(&(Parameter){1007, 0, STR("{}")}, "CAST([] AS INTEGER[])");
    substituted(&(Parameter){1007, 0, STR("{{1},{2}}")}, "CAST([['1'],['2']] AS INTEGER[][])");
    substituted(&(Parameter){OID_DATE, 0, STR_NULL}, "CAST(NULL AS DATE)");
    substituted(&(Parameter){0, 0, STR_NULL}, "NULL");
}

static void
bad_parameters_are_refused(void **state)
{
    (void) state;

    static const struct {
        Parameter parameter;
        const char *sqlstate;
    } cases[] = {
        {{OID_INT8, 1, {"\0\0\0\1", 4}}, "22P03"},
        {{OID_TIMETZ, 1, {"\0\0\0\0\0\0\0\1\0\0\0\0", 12}}, "0A000"},
        {{OID_TIMESTAMP, 1, {"\0\0\0\1", 4}}, "22P03"},
        {{OID_NUMERIC, 1, {"\0\2\0\0\0\0\0\0\0\1", 10}}, "22P03"},
        {{1016, 1, {"\0\0\0\1\0\0\0\0\0\0\0\24\0\0\0\2\0\0\0\1", 20}}, "22P03"},
        {{OID_TEXT, 0, {"a\0b", 3}}, "22021"},
        {{OID_TEXT, 0, {"\377", 1}}, "22021"},
        {{OID_BYTEA, 0, {"abc", 3}}, "22P02"},
        {{OID_BYTEA, 0, {"\\xzz", 4}}, "22P02"},
        {{1007, 0, {"1,2", 3}}, "22P02"},
        {{1007, 0, {"{{1}", 4}}, "22P02"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO_BUF Buf out = {0};
        QueryFailure failure;
        Error err = {0};

        FAILS(literal_put(&out, &cases[i].parameter, &failure, &err), ERR_INPUT);
        assert_string_equal(failure.sqlstate, cases[i].sqlstate);
    }
}

/* --- the guard ----------------------------------------------------------------------------- */

typedef struct Fixture {
    GuardTables tables; /* first member */
    Duck *duck;
    DeadTable *dead;
    DuckSession *session;
} Fixture;

static TableStanding
find_table(GuardTables *tables, Arena *arena, Str space, Str name, Str *out_reason)
{
    (void) tables;
    (void) arena;
    if (str_eqc(name, "broken")) {
        *out_reason = STR("it has equality deletes");
        return TABLE_LEFT_OUT;
    }
    if (pg_catalog_has(space, name))
        return TABLE_READABLE;
    return (space.len == 0 || str_eqc(space, "public")) && str_eqc(name, "orders") ? TABLE_READABLE
                                                                                   : TABLE_UNKNOWN;
}

static int
set_up(void **state)
{
    static Fixture fixture = {.tables = {.find = find_table}};
    Error err = {0};

    OK(duck_open(&(DuckOptions){.threads = 1}, &fixture.duck, &err));
    fixture.dead = dead_table_new();
    OK(duck_register_live(fixture.duck, fixture.dead, &err));
    OK(duck_lockdown(fixture.duck, NULL, 0, &err));
    OK(duck_session_open(fixture.duck, &fixture.session, &err));
    OK(pg_catalog_install(fixture.session, &err));
    OK(duck_session_run(fixture.session,
                        "CREATE VIEW public.orders AS SELECT 1::BIGINT AS id, 'x' AS name", &err));
    *state = &fixture;
    return 0;
}

static int
tear_down(void **state)
{
    Fixture *fixture = *state;

    duck_session_close(fixture->session);
    duck_close(fixture->duck);
    dead_table_free(fixture->dead);
    return 0;
}

static const char *
guard(Fixture *fixture, const char *sql)
{
    AUTO_ARENA Arena *arena = arena_new();
    Guarded guarded;
    static QueryFailure failure;
    Error err = {0};

    return guard_check(&(GuardQuery){str_of(sql), fixture->session, &fixture->tables}, arena,
                       &guarded, &failure, &err)
               ? "ok"
               : failure.sqlstate;
}

static void
queries_on_the_tables_pass(void **state)
{
    static const char *const queries[] = {
        "select * from orders o join public.orders p using (id) where o.id in (select 1)",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) table t",
        "values (1), (2)",
        "select * from generate_series(1, 2) g, unnest([1]) u",
        "select relname from pg_class",
        "select count(*) over (partition by id), sum(id) filter (where id > 0) from orders",
        "select $1, 170141183460469231731687303715884105727, -9223372036854775808",
        "select * from (select 1 union select 2 intersect select 3) x order by 1 limit 1",
        "select [x for x in [1, 2]], {'a': 1}, '{\"a\\\\\": 12345678901234567890}'",
    };

    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        assert_string_equal(guard(*state, queries[i]), "ok");
}

static void
everything_else_does_not(void **state)
{
    static const struct {
        const char *sql;
        const char *sqlstate;
    } cases[] = {
        {"select * from '/etc/passwd'", "42P01"},
        {"select * from \"/lake/x\".parquet", "42P01"},
        {"select * from 'lake/*.parquet'", "42P01"},
        {"select * from read_csv('/etc/passwd')", "42501"},
        {"select * from main.read_parquet('x')", "42501"},
        {"select * from glob('*')", "42501"},
        {"select * from query('select 1')", "42501"},
        {"select * from duckdb_settings()", "42501"},
        {"select * from duckdb_views", "42P01"},
        {"select * from sqlite_master", "42P01"},
        {"select * from pragma_version()", "42501"},
        {"select getvariable('x')", "42501"},
        {"select current_setting('allowed_directories')", "42501"},
        {"select pg_get_viewdef(1)", "42501"},
        {"select walberg_live(1, 0, 0)", "42501"},
        {"select (select walberg_live(1, 0, 0) from orders)", "42501"},
        {"select 1 from orders where exists (select * from read_text('x'))", "42501"},
        {"with x as (select * from read_blob('x')) select 1", "42501"},
        {"with \"x.parquet\" as (select 1) select * from \"x.parquet\"", "42P01"},
        {"select * from (describe orders)", "42601"},
        {"show tables", "42601"},
        {"select * from orders at (version => 1)", "0A000"},
        {"select * from other.public.orders", "0A000"},
        {"select * from broken", "55000"},
        {"copy orders to 'x'", "25006"},
        {"create table x as select 1", "25006"},
        {"attach 'x'", "25006"},
        {"select 1; select 2", "42601"},
        {"selec 1", "42601"},
        {"select * from orders for update", "42601"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = guard(*state, cases[i].sql);

        if (strcmp(got, cases[i].sqlstate) != 0)
            print_error("# %s\n", cases[i].sql);
        assert_string_equal(got, cases[i].sqlstate);
    }
}

/* Which columns a query may read, wherever in it they are named. */
static void
columns_that_a_query_names(void **state)
{
    static const struct {
        const char *sql;
        bool price;
    } cases[] = {
        {"select id from orders", false},
        {"select count(*), max(id) from orders", false},
        {"select price from orders", true},
        {"select sum(\"PRICE\"::decimal(38, 2)) from orders", true},
        {"select o.price from public.orders o", true},
        {"select id from orders order by lower(price)", true},
        {"with x as (select price p from orders) select 1 from x", true},
        {"select id from orders where exists (select 1 where price > '1')", true},
        {"select * from orders", true},
        {"select o.* from orders o", true},
        {"table orders", true},
        {"select 'price' as price from orders", false},
        {"select price.id from orders price", false},
    };

    Fixture *fixture = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO_ARENA Arena *arena = arena_new();
        Guarded guarded;
        QueryFailure failure;
        Error err = {0};

        OK(guard_check(&(GuardQuery){str_of(cases[i].sql), fixture->session, &fixture->tables},
                       arena, &guarded, &failure, &err));
        if (guarded_names(&guarded, STR("price")) != cases[i].price)
            fail_msg("%s", cases[i].sql);
    }
}

static void
columns_are_called_as_postgres_calls_them(void **state)
{
    Fixture *fixture = *state;
    AUTO_ARENA Arena *arena = arena_new();
    Guarded guarded;
    QueryFailure failure;
    Error err = {0};
    static const char *const wanted[] = {
        "count", "sum",      "?column?", "int4",  "id",    "id",       "case",     "id",
        "max",   "coalesce", "exists",   "array", "lower", "?column?", "?column?", NULL,
    };

    OK(guard_check(
        &(GuardQuery){STR("select count(*), sum(id), id + 1, 1::int, id::text, o.id, "
                          "case when true then 1 end, case when true then 1 else id end, "
                          "(select max(id) from orders), coalesce(id, 1), exists (select 1), "
                          "array[1], lower('X'), 'x', name ~ 'x', id as mine from orders o"),
                      fixture->session, &fixture->tables},
        arena, &guarded, &failure, &err));
    assert_int_equal(guarded.head_count, sizeof wanted / sizeof wanted[0]);
    for (int i = 0; i < guarded.head_count; i++) {
        if (wanted[i] == NULL)
            assert_null(guarded.head[i].ptr);
        else
            assert_string_equal(guarded.head[i].ptr, wanted[i]);
    }
    OK(guard_check(&(GuardQuery){STR("select min(id), *, count(*) from orders group by all"),
                                 fixture->session, &fixture->tables},
                   arena, &guarded, &failure, &err));
    assert_int_equal(guarded.head_count, 1);
    assert_int_equal(guarded.tail_count, 1);
    assert_string_equal(guarded.tail[0].ptr, "count");
}

static void
nonsense_trees_are_refused(void **state)
{
    Fixture *fixture = *state;
    static const char *const trees[] = {
        "", "{", "[]", "{}", "{\"error\":false}", "{\"error\":false,\"statements\":[]}", "null"};

    for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++) {
        AUTO_ARENA Arena *arena = arena_new();
        Guarded guarded;
        QueryFailure failure;
        Error err = {0};

        FAILS(guard_check_tree(&fixture->tables, arena, str_of(trees[i]), &guarded, &failure, &err),
              ERR_INPUT);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_are_split_where_postgres_splits_them),
        cmocka_unit_test(what_has_no_end_is_an_error),
        cmocka_unit_test(utility_statements_are_recognised),
        cmocka_unit_test(other_statements_are_refused),
        cmocka_unit_test(settings_that_change_results_are_fixed),
        cmocka_unit_test(spelling_becomes_duckdbs),
        cmocka_unit_test(places_lead_back_to_the_clients_text),
        cmocka_unit_test(parameters_become_literals),
        cmocka_unit_test(bad_parameters_are_refused),
        cmocka_unit_test(queries_on_the_tables_pass),
        cmocka_unit_test(everything_else_does_not),
        cmocka_unit_test(columns_that_a_query_names),
        cmocka_unit_test(columns_are_called_as_postgres_calls_them),
        cmocka_unit_test(nonsense_trees_are_refused),
    };

    return cmocka_run_group_tests_name("query", tests, set_up, tear_down);
}
