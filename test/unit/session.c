/* Values as text and in binary: what is expected was printed by PostgreSQL 15.20 ("select
 * (...)::text, encode(..._send(...), 'hex')", TimeZone UTC, IntervalStyle postgres) for the same
 * value; the expressions here are DuckDB's spelling of it. */
#include "testing.h"

#include <pthread.h>
#include <unistd.h>

#include "duck/session.h"

typedef struct Fixture {
    Duck *duck;
    DeadTable *dead;
    DuckSession *session;
} Fixture;

static int
set_up(void **state)
{
    static Fixture fixture;
    Error err = {0};

    OK(duck_open(&(DuckOptions){.threads = 2}, &fixture.duck, &err));
    fixture.dead = dead_table_new();
    OK(duck_register_live(fixture.duck, fixture.dead, &err));
    OK(duck_lockdown(fixture.duck, NULL, 0, &err));
    OK(duck_session_open(fixture.duck, &fixture.session, &err));
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

/* The one value of a query. */
static void
ask(DuckSession *session, const char *sql, Buf *text, Buf *binary, uint32_t element)
{
    Error err = {0};
    DuckStatement *statement;
    DuckRows *rows;
    size_t count;

    OK(duck_prepare(session, sql, &statement, &err));
    OK(duck_execute(statement, &rows, &err));
    OK(duck_rows_next(rows, &count, &err));
    assert_int_equal(count, 1);
    assert_false(duck_rows_is_null(rows, 0, 0));
    buf_reset(text);
    duck_rows_text(rows, 0, 0, text);
    buf_reset(binary);
    if (duck_has_binary(&duck_statement_columns(statement)[0].type))
        duck_rows_binary(rows, 0, 0, element, binary);
    OK(duck_rows_next(rows, &count, &err));
    assert_int_equal(count, 0);
    duck_rows_free(rows);
    duck_statement_free(statement);
}

/* clang-format off */
static const struct {
    const char *expression;
    const char *text;
    const char *binary; /* hexadecimal; NULL: none of ours */
    uint32_t element;
} values[] = {
    {"true", "t", "01", 0},
    {"false", "f", "00", 0},
    {"(-32768)::int2", "-32768", "8000", 0},
    {"2147483647::int4", "2147483647", "7fffffff", 0},
    {"(-9223372036854775808)::int8", "-9223372036854775808", "8000000000000000", 0},
    {"170141183460469231731687303715884105727::hugeint", "170141183460469231731687303715884105727", "000a00090000000000aa0583209a01d5090d0c601c871bf620da165f", 0},
    {"(-10000)::hugeint", "-10000", "00010001400000000001", 0},
    {"0::hugeint", "0", "0000000000000000", 0},
    {"12345.678::decimal(10,3)", "12345.678", "0003000100000003000109291a7c", 0},
    {"(-0.05)::decimal(4,2)", "-0.05", "0001ffff4000000201f4", 0},
    {"0::decimal(4,2)", "0.00", "0000000000000002", 0},
    {"0.0001234::decimal(9,7)", "0.0001234", "0002ffff0000000700010924", 0},
    {"0.00000001::decimal(18,8)", "0.00000001", "0001fffe000000080001", 0},
    {"99999999999999999999999999999999999.999::decimal(38,3)", "99999999999999999999999999999999999.999", "000a00080000000303e7270f270f270f270f270f270f270f270f2706", 0},
    {"'-0.99999999999999999999999999999999999999'::decimal(38,38)", "-0.99999999999999999999999999999999999999", "000affff40000026270f270f270f270f270f270f270f270f270f26ac", 0},
    {"10000.0001::decimal(9,4)", "10000.0001", "0003000100000004000100000001", 0},
    {"7::decimal(1,0)", "7", "00010000000000000007", 0},
    {"100000000::decimal(9,0)", "100000000", "00010002000000000001", 0},
    {"'0.1'::float8", "0.1", "3fb999999999999a", 0},
    {"'1e15'::float8", "1e+15", "430c6bf526340000", 0},
    {"'1e14'::float8", "100000000000000", "42d6bcc41e900000", 0},
    {"'123456789012345'::float8", "123456789012345", "42dc12218377de40", 0},
    {"'1234567890123456'::float8", "1.234567890123456e+15", "43118b54f22aeb00", 0},
    {"'0.0001'::float8", "0.0001", "3f1a36e2eb1c432d", 0},
    {"'0.00001'::float8", "1e-05", "3ee4f8b588e368f1", 0},
    {"'1.5'::float8", "1.5", "3ff8000000000000", 0},
    {"'-2.5e-7'::float8", "-2.5e-07", "be90c6f7a0b5ed8d", 0},
    {"'1e100'::float8", "1e+100", "54b249ad2594c37d", 0},
    {"'5e-324'::float8", "5e-324", "0000000000000001", 0},
    {"'1.7976931348623157e308'::float8", "1.7976931348623157e+308", "7fefffffffffffff", 0},
    {"'2.2250738585072014e-308'::float8", "2.2250738585072014e-308", "0010000000000000", 0},
    {"'0.30000000000000004'::float8", "0.30000000000000004", "3fd3333333333334", 0},
    {"'100'::float8", "100", "4059000000000000", 0},
    {"'9007199254740993'::float8", "9.007199254740992e+15", "4340000000000000", 0},
    {"'3.141592653589793'::float8", "3.141592653589793", "400921fb54442d18", 0},
    {"'NaN'::float8", "NaN", "7ff8000000000000", 0},
    {"'Infinity'::float8", "Infinity", "7ff0000000000000", 0},
    {"'-Infinity'::float8", "-Infinity", "fff0000000000000", 0},
    {"'-0'::float8", "-0", "8000000000000000", 0},
    {"'1e22'::float8", "1e+22", "4480f0cf064dd592", 0},
    {"'9.5e-5'::float8", "9.5e-05", "3f18e757928e0c9e", 0},
    {"'123456.789'::float8", "123456.789", "40fe240c9fbe76c9", 0},
    {"'0.1'::float4", "0.1", "3dcccccd", 0},
    {"'1e5'::float4", "100000", "47c35000", 0},
    {"'1e6'::float4", "1e+06", "49742400", 0},
    {"'123456'::float4", "123456", "47f12000", 0},
    {"'1234567'::float4", "1.234567e+06", "4996b438", 0},
    {"'0.0001'::float4", "0.0001", "38d1b717", 0},
    {"'0.00001'::float4", "1e-05", "3727c5ac", 0},
    {"'16777216'::float4", "1.6777216e+07", "4b800000", 0},
    {"'3.4028235e38'::float4", "3.4028235e+38", "7f7fffff", 0},
    {"'1e-45'::float4", "1e-45", "00000001", 0},
    {"'1.1754944e-38'::float4", "1.1754944e-38", "00800000", 0},
    {"'NaN'::float4", "NaN", "7fc00000", 0},
    {"'-Infinity'::float4", "-Infinity", "ff800000", 0},
    {"'3.3333333'::float4", "3.3333333", "40555555", 0},
    {"'8388607.5'::float4", "8.3886075e+06", "4affffff", 0},
    {"'h\303\251llo'::text", "h\303\251llo", "68c3a96c6c6f", 0},
    {"''::text", "", "", 0},
    {"'{\"a\": [1, null]}'::json", "{\"a\": [1, null]}", "7b2261223a205b312c206e756c6c5d7d", 0},
    {"'\\x00\\xff\\x10'::blob", "\\x00ff10", "00ff10", 0},
    {"''::blob", "\\x", "", 0},
    {"'2020-02-29'::date", "2020-02-29", "00001cc4", 0},
    {"'1969-12-31'::date", "1969-12-31", "ffffd532", 0},
    {"'0044-03-15 (BC)'::date", "0044-03-15 BC", "fff49d7b", 0},
    {"'0001-01-01'::date", "0001-01-01", "fff4dbf9", 0},
    {"'10000-12-31'::date", "10000-12-31", "002c9741", 0},
    {"'infinity'::date", "infinity", "7fffffff", 0},
    {"'-infinity'::date", "-infinity", "80000000", 0},
    {"'00:00:00'::time", "00:00:00", "0000000000000000", 0},
    {"'23:59:59.999999'::time", "23:59:59.999999", "000000141dd75fff", 0},
    {"'24:00:00'::time", "24:00:00", "000000141dd76000", 0},
    {"'12:30:00.5'::time", "12:30:00.5", "0000000a7a3d2320", 0},
    {"'12:30:00+05:30'::timetz", "12:30:00+05:30", "0000000a7a358200ffffb2a8", 0},
    {"'12:30:00.25-08'::timetz", "12:30:00.25-08", "0000000a7a39529000007080", 0},
    {"'2020-01-01 00:00:00'::timestamp", "2020-01-01 00:00:00", "00023e0786c26000", 0},
    {"'1969-12-31 23:59:59.999999'::timestamp", "1969-12-31 23:59:59.999999", "fffca2fec4c81fff", 0},
    {"'0044-03-15 (BC) 12:00:00.5'::timestamp", "0044-03-15 12:00:00.5 BC", "ff1af9e8fb4e7120", 0},
    {"'infinity'::timestamp", "infinity", "7fffffffffffffff", 0},
    {"'-infinity'::timestamp", "-infinity", "8000000000000000", 0},
    {"'99999-01-01 00:00:00.1'::timestamp", "99999-01-01 00:00:00.1", "2aeaf19f270686a0", 0},
    {"'2020-06-01 12:00:00.123456+02'::timestamptz", "2020-06-01 10:00:00.123456+00", "00024a01a069aa40", 0},
    {"'0044-03-15 (BC) 12:00:00+00'::timestamptz", "0044-03-15 12:00:00+00 BC", "ff1af9e8fb46d000", 0},
    {"'2020-01-01 00:00:01'::timestamp_s", "2020-01-01 00:00:01", "00023e0786d1a240", 0},
    {"'2020-01-01 00:00:01.25'::timestamp_ms", "2020-01-01 00:00:01.25", "00023e0786d572d0", 0},
    {"'2020-01-01 00:00:01.123456789'::timestamp_ns", "2020-01-01 00:00:01.123456", "00023e0786d38480", 0},
    {"to_months(14) + to_days(3) + to_microseconds(14706789000)", "1 year 2 mons 3 days 04:05:06.789", "000000036c97ca88000000030000000e", 0},
    {"to_months(0) + to_days(0) + to_microseconds(0)", "00:00:00", "00000000000000000000000000000000", 0},
    {"to_months(0) + to_days(-1) + to_microseconds(0)", "-1 days", "0000000000000000ffffffff00000000", 0},
    {"to_months(1) + to_days(-1) + to_microseconds(0)", "1 mon -1 days", "0000000000000000ffffffff00000001", 0},
    {"to_months(-1) + to_days(1) + to_microseconds(7384000000)", "-1 mons +1 day 02:03:04", "00000001b81ee60000000001ffffffff", 0},
    {"to_months(-12) + to_days(0) + to_microseconds(0)", "-1 years", "000000000000000000000000fffffff4", 0},
    {"to_months(0) + to_days(1) + to_microseconds(-1000000)", "1 day -00:00:01", "fffffffffff0bdc00000000100000000", 0},
    {"to_months(0) + to_days(0) + to_microseconds(-500000)", "-00:00:00.5", "fffffffffff85ee00000000000000000", 0},
    {"to_months(0) + to_days(0) + to_microseconds(108000000000)", "30:00:00", "00000019254d38000000000000000000", 0},
    {"to_months(13) + to_days(0) + to_microseconds(0)", "1 year 1 mon", "0000000000000000000000000000000d", 0},
    {"to_months(-13) + to_days(5) + to_microseconds(0)", "-1 years -1 mons +5 days", "000000000000000000000005fffffff3", 0},
    {"to_months(0) + to_days(1) + to_microseconds(43200000000)", "1 day 12:00:00", "0000000a0eebb0000000000100000000", 0},
    {"'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b8109dad11d180b400c04fd430c8", 0},
    {"'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid", "ffffffff-ffff-ffff-ffff-ffffffffffff", "ffffffffffffffffffffffffffffffff", 0},
    {"[1,null,3]", "{1,NULL,3}", "00000001000000010000001700000003000000010000000400000001ffffffff0000000400000003", 23},
    {"['a','','null','a b','q\"\\x','{','\303\274,']", "{a,\"\",\"null\",\"a b\",\"q\\\"\\\\x\",\"{\",\"\303\274,\"}", "0000000100000000000000190000000700000001000000016100000000000000046e756c6c000000036120620000000471225c78000000017b00000003c3bc2c", 25},
    {"[]::integer[]", "{}", "000000000000000000000017", 23},
    {"[[1,2],[3,4]]", "{{1,2},{3,4}}", NULL, 0},
    {"[1.5,'NaN'::double]", "{1.5,NaN}", "0000000100000000000002bd0000000200000001000000083ff8000000000000000000087ff8000000000000", 701},
    {"[timestamp '2020-01-01 10:00:00']", "{\"2020-01-01 10:00:00\"}", "00000001000000000000045a00000001000000010000000800023e0fe886c800", 1114},
    {"array_value(1,2,3)", "{1,2,3}", NULL, 0},
    {"row(1,'x',null,'','a b','q\"\\',1.5::decimal(3,1))", "(1,x,,\"\",\"a b\",\"q\"\"\\\\\",1.5)", NULL, 0},
    {"row([1,2],row(1,null))", "(\"{1,2}\",\"(1,)\")", NULL, 0},
    {"[row(1,'a b')]", "{\"(1,\\\"a b\\\")\"}", NULL, 0},
};

/* clang-format on */

static void
values_look_as_postgres_prints_and_sends_them(void **state)
{
    Fixture *fixture = *state;
    AUTO_BUF Buf sql = {0};
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf binary = {0};
    AUTO_BUF Buf hex = {0};

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        buf_reset(&sql);
        buf_printf(&sql, "select %s", values[i].expression);
        ask(fixture->session, buf_text(&sql), &text, &binary, values[i].element);
        assert_string_equal(buf_text(&text), values[i].text);
        if (values[i].binary == NULL)
            continue;
        buf_reset(&hex);
        for (size_t b = 0; b < binary.len; b++)
            buf_printf(&hex, "%02x", (uint8_t) binary.ptr[b]);
        if (strcmp(buf_text(&hex), values[i].binary) != 0)
            print_error("%s\n", values[i].expression);
        assert_string_equal(buf_text(&hex), values[i].binary);
    }
}

static void
maps_are_json_objects(void **state)
{
    Fixture *fixture = *state;
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf binary = {0};

    ask(fixture->session, "select map {'a\"': [1, null], 'b': [2.5]}", &text, &binary, 0);
    assert_string_equal(buf_text(&text), "{\"a\\\"\":[1.0,null],\"b\":[2.5]}");
    ask(fixture->session, "select map {1: {'x': true, 'y': date '2020-01-01', 'z': 'nan'::float}}",
        &text, &binary, 0);
    assert_string_equal(buf_text(&text), "{\"1\":{\"x\":true,\"y\":\"2020-01-01\",\"z\":\"NaN\"}}");
}

static void
settings_mean_what_postgres_means(void **state)
{
    Fixture *fixture = *state;
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf binary = {0};

    ask(fixture->session, "select 7 / 2", &text, &binary, 0);
    assert_string_equal(buf_text(&text), "3");
    ask(fixture->session,
        "select array_agg(x order by x) || array_agg(x order by x desc) from (values (2), (null), "
        "(1)) t(x)",
        &text, &binary, 0);
    assert_string_equal(buf_text(&text), "{1,2,NULL,NULL,2,1}");
}

static void
fails_with(DuckSession *session, const char *sql, DuckErrorClass class, const char *name)
{
    Error err = {0};
    DuckStatement *statement = NULL;
    DuckRows *rows = NULL;
    size_t count = 1;
    bool ok = duck_prepare(session, sql, &statement, &err) && duck_execute(statement, &rows, &err);

    while (ok && count > 0)
        ok = duck_rows_next(rows, &count, &err);
    assert_false(ok);
    if (duck_session_failure(session)->class != class)
        print_error("%s: %s\n", sql, err.msg);
    assert_int_equal(duck_session_failure(session)->class, class);
    assert_true(duck_session_failure(session)->message.len > 0);
    if (name != NULL)
        assert_true(str_eqc(duck_session_failure(session)->name, name));
    duck_rows_free(rows);
    duck_statement_free(statement);
}

static void
failures_have_a_class(void **state)
{
    DuckSession *session = ((Fixture *) *state)->session;

    fails_with(session, "selec 1", DUCK_ERROR_SYNTAX, NULL);
    fails_with(session, "select 1; select 2", DUCK_ERROR_INVALID_INPUT, NULL);
    fails_with(session, "select nope from (select 1) t", DUCK_ERROR_BINDER, "nope");
    assert_int_equal(duck_session_failure(session)->position, 7);
    fails_with(session, "select * from nope", DUCK_ERROR_CATALOG, "nope");
    fails_with(session, "select nope(1)", DUCK_ERROR_CATALOG, "nope");
    fails_with(session, "select 'x'::int", DUCK_ERROR_CONVERSION, NULL);
    fails_with(session, "select 9223372036854775807 + 1", DUCK_ERROR_OUT_OF_RANGE, NULL);
    fails_with(session,
               "select case when i = 4999999 then error('late') else 'x' end from "
               "range(5000000) t(i)",
               DUCK_ERROR_INVALID_INPUT, NULL);
    fails_with(session, "select * from read_csv('/etc/passwd')", DUCK_ERROR_PERMISSION, NULL);
    fails_with(session, "set threads = 1", DUCK_ERROR_INVALID_INPUT, NULL);
    fails_with(session, "load httpfs", DUCK_ERROR_PERMISSION, NULL);
}

/* DuckDB tells now and then of the interruption with which one thread that fails stops the others:
 * nobody asked for it, so it is no reason. */
static void
an_interrupt_that_nobody_asked_for_is_no_reason(void **state)
{
    DuckSession *session = ((Fixture *) *state)->session;
    Error err = {0};

    for (int i = 0; i < 400; i++) {
        if (i % 2 == 0)
            OK(duck_session_run(session, "BEGIN TRANSACTION READ ONLY", &err));
        fails_with(session,
                   "select case when i % 200000 = 199999 then error('late') else 'x' end from "
                   "range(1000000) t(i)",
                   DUCK_ERROR_INVALID_INPUT, NULL);
        if (i % 2 == 0)
            OK(duck_session_run(session, "ROLLBACK", &err));
    }
}

static void *
interrupt_soon(void *session)
{
    usleep(200 * 1000);
    duck_session_interrupt(session);
    return NULL;
}

static void
a_statement_can_be_interrupted(void **state)
{
    DuckSession *session = ((Fixture *) *state)->session;
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf binary = {0};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, session), 0);
    fails_with(session, "select sum(a.i * b.i % 7) from range(1000000) a(i), range(1000000) b(i)",
               DUCK_ERROR_INTERRUPTED, NULL);
    pthread_join(thread, NULL);
    ask(session, "select 1", &text, &binary, 0);
    assert_string_equal(buf_text(&text), "1");
}

static void
dead_rows_are_filtered(void **state)
{
    Fixture *fixture = *state;
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf binary = {0};
    DeadRows *dead = dead_rows_new(3);

    for (uint32_t row = 0; row < 10000; row += 100)
        dead_rows_add(dead, 1, row);
    dead_rows_add(dead, 1, 500);
    dead_rows_add(dead, 2, 4294967295U);
    dead_rows_seal(dead);
    assert_int_equal(dead_rows_count(dead, 1), 100);

    uint64_t set = dead_table_publish(fixture->dead, dead);
    char sql[200];

    snprintf(sql, sizeof sql,
             "select count(*) from range(3) f(f), range(10000) t(i) where "
             "walberg_live(%d, f::ubigint, i)",
             (int) set);
    ask(fixture->session, sql, &text, &binary, 0);
    assert_string_equal(buf_text(&text), "29900");
    /* in order, as a scan has them */
    snprintf(sql, sizeof sql,
             "select array_agg(i) from range(120) t(i) where i not in (5, 100) and not "
             "walberg_live(%d, 1::ubigint, i + 50)",
             (int) set);
    ask(fixture->session, sql, &text, &binary, 0);
    assert_string_equal(buf_text(&text), "{50}");
    snprintf(sql, sizeof sql, "select walberg_live(%d, 7::ubigint, 1)", (int) set);
    fails_with(fixture->session, sql, DUCK_ERROR_INVALID_INPUT, NULL);
    dead_table_retire(fixture->dead, set);
    snprintf(sql, sizeof sql, "select walberg_live(%d, 1::ubigint, 1)", (int) set);
    fails_with(fixture->session, sql, DUCK_ERROR_INVALID_INPUT, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_look_as_postgres_prints_and_sends_them),
        cmocka_unit_test(maps_are_json_objects),
        cmocka_unit_test(settings_mean_what_postgres_means),
        cmocka_unit_test(failures_have_a_class),
        cmocka_unit_test(an_interrupt_that_nobody_asked_for_is_no_reason),
        cmocka_unit_test(a_statement_can_be_interrupted),
        cmocka_unit_test(dead_rows_are_filtered),
    };

    return cmocka_run_group_tests_name("session", tests, set_up, tear_down);
}
