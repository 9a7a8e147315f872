/* The pure parts of source/ and pg/: ranges, keys, statements, types out of catalog rows. */
#include "testing.h"

#include "base/arena.h"
#include "pg/conn_internal.h"
#include "source/copy.h"
#include "source/keys.h"
#include "source/publication.h"
#include "source/server.h"
#include "source/slot.h"
#include "source/stream.h"
#include "source/types.h"

static void
names_and_texts_are_quoted(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();

    assert_string_equal(pg_quote_identifier(arena, STR("orders")), "\"orders\"");
    assert_string_equal(pg_quote_identifier(arena, STR("a\"b\"")), "\"a\"\"b\"\"\"");
    assert_string_equal(pg_quote_literal(arena, STR("it's \\n")), "'it''s \\n'");
    assert_string_equal(pg_quote_literal(arena, STR_NULL), "''");
    assert_string_equal(source_relation_sql(arena, STR("odd.schema"), STR("T")),
                        "\"odd.schema\".\"T\"");
}

static void
check_ranges(int64_t pages, int64_t range_pages)
{
    int count = copy_range_count(pages, range_pages);
    int64_t expected = 0;

    assert_true(count >= 1);
    for (int i = 0; i < count; i++) {
        int64_t first;
        int64_t end;

        copy_range(pages, count, i, &first, &end);
        assert_int_equal(first, expected);
        assert_int_equal(end == -1, i == count - 1);
        if (end == -1)
            end = pages > first ? pages : first + 1;
        assert_true(end > first && end - first <= range_pages);
        expected = end;
    }
}

static void
ranges_cover_every_page_once(void **state)
{
    (void) state;

    static const int64_t pages[] = {0, 1, 9, 10, 11, 20, 999, 1000, 1001, 4294967294};
    static const int64_t sizes[] = {1, 7, 10, 1000, 131072, 5000000000};

    for (size_t p = 0; p < sizeof pages / sizeof pages[0]; p++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            if (pages[p] / sizes[s] <= 100000)
                check_ranges(pages[p], sizes[s]);
}

static void
neighbours_become_one_range(void **state)
{
    (void) state;

    CopyRange ranges[] = {{7, 20, -1}, {5, 10, 20}, {7, 0, 10}, {5, 0, 10},
                          {7, 10, 15}, {5, 30, 31}, {6, 0, -1}};
    static const CopyRange joined[] = {
        {5, 0, 20}, {5, 30, 31}, {6, 0, -1}, {7, 0, 15}, {7, 20, -1}};

    assert_int_equal(copy_ranges_join(NULL, 0), 0);
    assert_int_equal(copy_ranges_join(ranges, 7), 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ranges[i].relid, joined[i].relid);
        assert_int_equal(ranges[i].first_page, joined[i].first_page);
        assert_int_equal(ranges[i].end_page, joined[i].end_page);
    }
}

/* --- keys ------------------------------------------------------------------------------------ */

static Str ab_names[] = {{.ptr = "a", .len = 1}, {.ptr = "b", .len = 1}};
static Str c_names[] = {{.ptr = "c", .len = 1}};
static const StrList ab = {.count = 2, .items = ab_names};
static const StrList a = {.count = 1, .items = ab_names};
static const StrList c = {.count = 1, .items = c_names};

static void
key_follows_the_replica_identity(void **state)
{
    (void) state;

    IndexFacts indexes[] = {{.primary = true, .immediate = true, .columns = ab},
                            {.identity = true, .immediate = true, .columns = c}};
    IdentityFacts facts = {.identity = IDENTITY_DEFAULT, .index_count = 2, .indexes = indexes};
    TableKey key = key_from_identity(&facts);

    assert_int_equal(key.mode, KEY_COLUMNS);
    assert_int_equal(key.columns.count, 2);
    assert_null(key.warning);
    facts.identity = IDENTITY_INDEX;
    key = key_from_identity(&facts);
    assert_int_equal(key.mode, KEY_COLUMNS);
    assert_ptr_equal(key.columns.items, c_names);
    facts.identity = IDENTITY_FULL;
    assert_int_equal(key_from_identity(&facts).mode, KEY_COLUMNS);
    assert_ptr_equal(key_from_identity(&facts).columns.items, ab_names);
    facts.identity = IDENTITY_NOTHING;
    assert_int_equal(key_from_identity(&facts).mode, KEY_NONE);
    assert_non_null(key_from_identity(&facts).warning);
    /* deferrable: Postgres does not take it, and it may be doubled inside a transaction */
    indexes[0].immediate = false;
    facts.identity = IDENTITY_DEFAULT;
    assert_int_equal(key_from_identity(&facts).mode, KEY_NONE);
    facts.identity = IDENTITY_FULL;
    assert_int_equal(key_from_identity(&facts).mode, KEY_FULL_ROW);
    /* the index was dropped: as if there were none */
    facts.identity = IDENTITY_INDEX;
    facts.index_count = 1;
    assert_int_equal(key_from_identity(&facts).mode, KEY_NONE);
}

static void
key_of_the_settings_needs_its_old_values(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    IndexFacts primary = {.primary = true, .immediate = true, .columns = ab};
    IdentityFacts facts = {.identity = IDENTITY_DEFAULT, .index_count = 1, .indexes = &primary};

    assert_null(key_from_rule(arena, &facts, &a).problem); /* part of the primary key */
    assert_non_null(key_from_rule(arena, &facts, &c).problem);
    facts.identity = IDENTITY_FULL;
    assert_null(key_from_rule(arena, &facts, &c).problem);
    facts.identity = IDENTITY_NOTHING; /* only inserts can come */
    assert_null(key_from_rule(arena, &facts, &c).problem);
    assert_non_null(key_from_rule(arena, &facts, &c).warning);
}

static void
partitions_must_send_the_key_of_their_root(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    IndexFacts index = {.primary = true, .immediate = true, .columns = ab};
    IdentityFacts leaf = {.identity = IDENTITY_DEFAULT, .index_count = 1, .indexes = &index};
    TableKey by_columns = {.mode = KEY_COLUMNS, .columns = ab};
    TableKey by_row = {.mode = KEY_FULL_ROW};
    TableKey none = {.mode = KEY_NONE};

    assert_null(key_partition_problem(arena, &by_columns, &leaf, "p1"));
    assert_non_null(key_partition_problem(arena, &by_row, &leaf, "p1"));
    assert_non_null(key_partition_problem(arena, &none, &leaf, "p1"));
    leaf.identity = IDENTITY_FULL;
    assert_null(key_partition_problem(arena, &by_columns, &leaf, "p1"));
    assert_null(key_partition_problem(arena, &by_row, &leaf, "p1"));
    leaf.identity = IDENTITY_NOTHING;
    assert_non_null(key_partition_problem(arena, &by_columns, &leaf, "p1"));
    assert_null(key_partition_problem(arena, &none, &leaf, "p1"));
}

/* --- statements ------------------------------------------------------------------------------ */

static void
publication_statements_name_every_table(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    SourceTable items[] = {
        {.schema_name = STR("s"), .table_name = STR("a"), .kind = 'r', .published = true},
        {.schema_name = STR("s"), .table_name = STR("b\""), .kind = 'p'},
        {.schema_name = STR("s"), .table_name = STR("v"), .kind = 'v', .excluded = "a view"},
        {.schema_name = STR("s"), .table_name = STR("x"), .kind = 'r', .problem = "unreadable"},
    };
    SourceTables tables = {.count = 4, .items = items};

    assert_string_equal(source_publication_create_sql(arena, "p", &tables),
                        "CREATE PUBLICATION \"p\" FOR TABLE ONLY \"s\".\"a\", \"s\".\"b\"\"\""
                        " WITH (publish_via_partition_root = true)");
    assert_string_equal(source_publication_add_sql(arena, "p", &tables),
                        "ALTER PUBLICATION \"p\" ADD TABLE \"s\".\"b\"\"\"");
    items[1].published = true;
    assert_null(source_publication_add_sql(arena, "p", &tables));
    tables.count = 0;
    assert_string_equal(source_publication_create_sql(arena, "p", &tables),
                        "CREATE PUBLICATION \"p\" WITH (publish_via_partition_root = true)");
}

static void
slot_statement_follows_the_version(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    SlotCreate create = {.name = "w", .failover = true};

    assert_string_equal(source_slot_create_sql(arena, 130000, &create),
                        "CREATE_REPLICATION_SLOT \"w\" LOGICAL pgoutput EXPORT_SNAPSHOT");
    assert_string_equal(source_slot_create_sql(arena, 150018, &create),
                        "CREATE_REPLICATION_SLOT \"w\" LOGICAL pgoutput (SNAPSHOT 'export')");
    assert_string_equal(
        source_slot_create_sql(arena, 170010, &create),
        "CREATE_REPLICATION_SLOT \"w\" LOGICAL pgoutput (SNAPSHOT 'export', FAILOVER)");
    create.temporary = true; /* which cannot fail over */
    assert_string_equal(
        source_slot_create_sql(arena, 170010, &create),
        "CREATE_REPLICATION_SLOT \"w\" TEMPORARY LOGICAL pgoutput (SNAPSHOT 'export')");
}

static void
slot_names_are_postgres_own(void **state)
{
    (void) state;

    Error err = {0};

    OK(source_slot_check_name("walberg_shop_2", &err));
    FAILS(source_slot_check_name("", &err), ERR_INPUT);
    FAILS(source_slot_check_name("Shop", &err), ERR_INPUT);
    FAILS(source_slot_check_name("a-b", &err), ERR_INPUT);
    FAILS(source_slot_check_name("a123456789012345678901234567890123456789012345678901234567890123",
                                 &err),
          ERR_INPUT);
}

static void
slots_are_judged(void **state)
{
    (void) state;

    Error err = {0};
    SlotExpect expect = {.name = "w", .database = "shop", .position = 100};
    Slot good = {.exists = true,
                 .plugin = "pgoutput",
                 .type = "logical",
                 .database = "shop",
                 .wal_status = "reserved",
                 .invalidation = "",
                 .confirmed = 90};
    Slot slot = good;

    OK(source_slot_check(&slot, &expect, &err));
    slot.confirmed = 101;
    FAILS(source_slot_check(&slot, &expect, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "advanced to 0/65"));
    slot = good;
    slot.wal_status = "lost";
    FAILS(source_slot_check(&slot, &expect, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "walberg cleanup --all"));
    slot = good;
    slot.invalidation = "idle_timeout";
    FAILS(source_slot_check(&slot, &expect, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "idle_timeout"));
    slot = good;
    slot.active_pid = 4711;
    FAILS(source_slot_check(&slot, &expect, &err), ERR_TRANSIENT);
    assert_non_null(strstr(err.msg, "4711"));
    slot = good;
    slot.plugin = "wal2json";
    FAILS(source_slot_check(&slot, &expect, &err), ERR_INPUT);
    slot = good;
    slot.database = "other";
    FAILS(source_slot_check(&slot, &expect, &err), ERR_INPUT);
    slot = good;
    slot.type = "physical";
    FAILS(source_slot_check(&slot, &expect, &err), ERR_INPUT);
    FAILS(source_slot_check(&(Slot){0}, &expect, &err), ERR_INPUT);
}

/* As Postgres 17 wrote it after three promotions, the last of them to a named restore point. */
static const char history[] = "1\t0/3000148\tno recovery target specified\n"
                              "\n"
                              "# a comment\n"
                              "2\t0/5000000\tno recovery target specified\n"
                              "\n"
                              "4\t1A/60000D8\tat restore point \"before 2\t0/9\"";

static void
timelines_are_found_in_a_history(void **state)
{
    static const struct {
        int which;
        Position began;
        Position end;
    } expected[] = {
        {1, POSITION_NONE, 0x3000148},
        {2, 0x3000148, 0x5000000},
        {4, 0x5000000, 0x1A060000D8},
        {7, 0x1A060000D8, UINT64_MAX},
    };

    Timeline timeline;
    Error err;

    (void) state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        OK(source_timeline_find(str_of(history), 7, expected[i].which, &timeline, &err));
        assert_true(timeline.began == expected[i].began && timeline.end == expected[i].end);
    }
    FAILS(source_timeline_find(str_of(history), 7, 3, &timeline, &err), ERR_INPUT);
    FAILS(source_timeline_find(STR("1\tx\n"), 2, 1, &timeline, &err), ERR_INPUT);
    OK(source_timeline_find(STR_NULL, 1, 1, &timeline, &err));
    assert_true(timeline.began == POSITION_NONE && timeline.end == UINT64_MAX);
}

static void
copy_statement_has_columns_in_order_and_its_range(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    SchemaColumn columns[] = {{.field.name = STR("id")}, {.field.name = STR("odd \"one\"")}};
    TableSchema schema = {.column_count = 2, .columns = columns};
    SourceTable table = {.schema = &schema};
    CopyTask task = {
        .table = &table, .schema_name = STR("s"), .table_name = STR("t"), .end_page = -1};

    assert_string_equal(copy_task_sql(arena, &task),
                        "COPY \"s\".\"t\" (\"id\", \"odd \"\"one\"\"\") TO STDOUT");
    task.end_page = 10;
    assert_string_equal(copy_task_sql(arena, &task),
                        "COPY (SELECT \"id\", \"odd \"\"one\"\"\" FROM ONLY \"s\".\"t\""
                        " WHERE ctid < '(10,0)'::tid) TO STDOUT");
    task.first_page = 10;
    task.end_page = -1;
    table.row_filter = "(id > 5)";
    assert_string_equal(copy_task_sql(arena, &task),
                        "COPY (SELECT \"id\", \"odd \"\"one\"\"\" FROM ONLY \"s\".\"t\""
                        " WHERE ctid >= '(10,0)'::tid AND ((id > 5))) TO STDOUT");
}

static void
reports_come_three_times_within_the_timeout(void **state)
{
    (void) state;
    assert_int_equal(stream_report_interval(0), 10000); /* switched off */
    assert_int_equal(stream_report_interval(60000), 10000);
    for (int64_t timeout = 500; timeout <= 60000; timeout += 100)
        assert_true(3 * stream_report_interval(timeout) < timeout);
}

/* --- types ----------------------------------------------------------------------------------- */

static PgResult
result(Arena *arena, int columns, const char *const *cells, int count)
{
    PgResult r = {.rows = count / columns, .columns = columns};

    r.values = ARENA_ARRAY(arena, Str, (size_t) count);
    for (int i = 0; i < count; i++)
        r.values[i] = str_of(cells[i]);
    return r;
}

static void
types_are_linked_by_oid(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};
    TypeSet types;
    /* oid, name, typtype, delimiter, is_array, typmod, element or base */
    static const char *const rows[] = {
        "23",    "int4",  "b", ",", "f", "-1", "0",     /* */
        "603",   "box",   "b", ";", "f", "-1", "0",     /* */
        "1020",  "_box",  "b", ";", "t", "-1", "603",   /* */
        "16400", "point", "c", ",", "f", "-1", "0",     /* */
        "16401", "posi",  "d", ",", "f", "-1", "23",    /* */
        "16402", "_posi", "b", ",", "t", "-1", "16401", /* */
        "16403", "lost",  "d", ",", "f", "-1", "99999", /* base was dropped meanwhile */
    };
    static const char *const members[] = {
        "16400", "x", "23",    "-1", /* */
        "16400", "y", "16402", "-1",
    };
    PgResult type_rows = result(arena, 7, rows, sizeof rows / sizeof rows[0]);
    PgResult member_rows = result(arena, 4, members, sizeof members / sizeof members[0]);

    OK(source_types_build(arena, &type_rows, &member_rows, &types, &err));
    assert_int_equal(types.count, 7);

    const PgType *array = source_types_find(&types, 16402);

    assert_true(array->is_array);
    assert_int_equal(array->base->typtype, 'd');
    assert_ptr_equal(array->base->base, source_types_find(&types, 23));
    assert_int_equal(source_types_find(&types, 1020)->base->delimiter, ';');

    const PgType *composite = source_types_find(&types, 16400);

    assert_int_equal(composite->member_count, 2);
    assert_true(str_eqc(composite->members[1].name, "y"));
    assert_ptr_equal(composite->members[1].type, array);
    assert_non_null(source_types_find(&types, 16403)->base);
    assert_null(source_types_find(&types, 1));
    type_rows.values[0] = STR("999999"); /* not sorted */
    FAILS(source_types_build(arena, &type_rows, &member_rows, &types, &err), ERR_BUG);
}

/* Codes and what they mean: Postgres documentation, appendix A. Only what a person has to act on
 * may be ERR_INPUT when the catalogs are asked. */
static void
server_errors_are_told_apart(void **state)
{
    (void) state;

    static const struct {
        const char *sqlstate;
        ErrKind kind;  /* of any statement */
        ErrKind asked; /* of a question about the catalogs */
    } cases[] = {
        {"08006", ERR_TRANSIENT, ERR_TRANSIENT}, /* connection failure */
        {"08P01", ERR_INPUT, ERR_INPUT},         /* protocol violation */
        {"0A000", ERR_INPUT, ERR_INPUT},         /* not supported */
        {"22012", ERR_INPUT, ERR_INPUT},         /* division by zero */
        {"23505", ERR_INPUT, ERR_TRANSIENT},     /* unique violation */
        {"25006", ERR_INPUT, ERR_INPUT},         /* read only */
        {"25P03", ERR_TRANSIENT, ERR_TRANSIENT}, /* idle in transaction timeout */
        {"25P04", ERR_TRANSIENT, ERR_TRANSIENT}, /* transaction timeout */
        {"28P01", ERR_INPUT, ERR_INPUT},         /* invalid password */
        {"3D000", ERR_INPUT, ERR_INPUT},         /* no such database */
        {"3F000", ERR_INPUT, ERR_TRANSIENT},     /* no such schema */
        {"40001", ERR_TRANSIENT, ERR_TRANSIENT}, /* serialization failure */
        {"40P01", ERR_TRANSIENT, ERR_TRANSIENT}, /* deadlock */
        {"42501", ERR_INPUT, ERR_INPUT},         /* insufficient privilege */
        {"42601", ERR_INPUT, ERR_INPUT},         /* syntax error */
        {"42703", ERR_INPUT, ERR_TRANSIENT},     /* undefined column */
        {"42704", ERR_INPUT, ERR_TRANSIENT},     /* undefined object */
        {"42710", ERR_INPUT, ERR_TRANSIENT},     /* duplicate object */
        {"42883", ERR_INPUT, ERR_INPUT},         /* undefined function: another kind of server */
        {"42P01", ERR_INPUT, ERR_TRANSIENT},     /* undefined table */
        {"53300", ERR_TRANSIENT, ERR_TRANSIENT}, /* too many connections */
        {"55000", ERR_INPUT, ERR_INPUT},         /* not in prerequisite state */
        {"55006", ERR_TRANSIENT, ERR_TRANSIENT}, /* object in use */
        {"55P03", ERR_TRANSIENT, ERR_TRANSIENT}, /* lock not available */
        {"57014", ERR_TRANSIENT, ERR_TRANSIENT}, /* query canceled */
        {"57P01", ERR_TRANSIENT, ERR_TRANSIENT}, /* admin shutdown */
        {"57P03", ERR_TRANSIENT, ERR_TRANSIENT}, /* cannot connect now */
        {"58030", ERR_TRANSIENT, ERR_TRANSIENT}, /* I/O error */
        {"58P01", ERR_INPUT, ERR_INPUT},         /* undefined file: WAL that was removed */
        {"XX000", ERR_INPUT, ERR_TRANSIENT},     /* internal: "cache lookup failed" */
        {"XX001", ERR_INPUT, ERR_INPUT},         /* data corrupted */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (conn_error_kind(cases[i].sqlstate) != cases[i].kind ||
            conn_ask_error_kind(cases[i].sqlstate) != cases[i].asked)
            fail_msg("%s is of another kind", cases[i].sqlstate);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_texts_are_quoted),
        cmocka_unit_test(ranges_cover_every_page_once),
        cmocka_unit_test(neighbours_become_one_range),
        cmocka_unit_test(key_follows_the_replica_identity),
        cmocka_unit_test(key_of_the_settings_needs_its_old_values),
        cmocka_unit_test(partitions_must_send_the_key_of_their_root),
        cmocka_unit_test(publication_statements_name_every_table),
        cmocka_unit_test(slot_statement_follows_the_version),
        cmocka_unit_test(slot_names_are_postgres_own),
        cmocka_unit_test(slots_are_judged),
        cmocka_unit_test(timelines_are_found_in_a_history),
        cmocka_unit_test(copy_statement_has_columns_in_order_and_its_range),
        cmocka_unit_test(reports_come_three_times_within_the_timeout),
        cmocka_unit_test(types_are_linked_by_oid),
        cmocka_unit_test(server_errors_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
