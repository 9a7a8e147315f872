/* The bytes here are spelled out from the PostgreSQL documentation, "Message Formats"; the fuzz
 * corpus holds what psql and pgjdbc sent. That real clients read what we write is shown by
 * test/e2e/test_query.py. */
#include "testing.h"

#include "base/bytes.h"
#include "pg/wire.h"

#define BYTES(literal) STR(literal)

static void
whole_messages_are_cut_out_of_what_arrived(void **state)
{
    (void) state;
    Error err = {0};
    WireMessage message;
    size_t used = 99;
    Str in = BYTES("Q\0\0\0\015select 1\0S\0\0\0\004");

    for (size_t have = 0; have < 14; have++) {
        OK(wire_next((Str){in.ptr, have}, true, &message, &used, &err));
        assert_int_equal(used, 0);
    }
    OK(wire_next(in, true, &message, &used, &err));
    assert_int_equal(used, 14);
    assert_int_equal(message.type, 'Q');

    Str query;

    OK(wire_parse_query(message.body, &query, &err));
    assert_true(str_eqc(query, "select 1"));
    OK(wire_next((Str){in.ptr + 14, in.len - 14}, true, &message, &used, &err));
    assert_int_equal(message.type, 'S');
    assert_int_equal(message.body.len, 0);
}

static void
absurd_lengths_are_refused_before_they_are_waited_for(void **state)
{
    (void) state;
    Error err = {0};
    WireMessage message;
    size_t used;

    FAILS(wire_next(BYTES("Q\0\0\0\003"), true, &message, &used, &err), ERR_INPUT);
    FAILS(wire_next(BYTES("Q\177\377\377\377"), true, &message, &used, &err), ERR_INPUT);
    FAILS(wire_next(BYTES("\0\0\0\007"), false, &message, &used, &err), ERR_INPUT);
    FAILS(wire_next(BYTES("\0\0\047\021"), false, &message, &used, &err), ERR_INPUT);
    /* HTTP on our port: "GET " as a length. */
    FAILS(wire_next(BYTES("GET / HTTP/1.1\r\n"), false, &message, &used, &err), ERR_INPUT);
}

static void
startup_packets(void **state)
{
    (void) state;
    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};
    WireStartup startup;

    OK(wire_parse_startup(arena, BYTES("\0\003\0\0user\0ann\0database\0shop\0\0"), &startup, &err));
    assert_int_equal(startup.kind, WIRE_HELLO_START);
    assert_int_equal(startup.setting_count, 2);
    assert_true(str_eqc(startup.settings[1].name, "database"));
    assert_true(str_eqc(startup.settings[1].value, "shop"));
    assert_int_equal(wire_protocol(startup.protocol), WIRE_PROTOCOL_3_0);

    OK(wire_parse_startup(arena, BYTES("\0\003\0\011user\0ann\0_pq_.x\0on\0\0"), &startup, &err));
    assert_int_equal(wire_protocol(startup.protocol), WIRE_PROTOCOL_3_2);
    assert_int_equal(startup.setting_count, 1);
    assert_int_equal(startup.unknown_count, 1);

    OK(wire_parse_startup(arena, BYTES("\004\322\026\057"), &startup, &err));
    assert_int_equal(startup.kind, WIRE_HELLO_SSL);
    OK(wire_parse_startup(arena, BYTES("\004\322\026\060"), &startup, &err));
    assert_int_equal(startup.kind, WIRE_HELLO_GSSENC);
    OK(wire_parse_startup(arena, BYTES("\004\322\026\056\0\0\0\007abcd"), &startup, &err));
    assert_int_equal(startup.kind, WIRE_HELLO_CANCEL);
    assert_int_equal(startup.cancel_pid, 7);
    assert_true(str_eqc(startup.cancel_key, "abcd"));

    FAILS(wire_parse_startup(arena, BYTES("\004\322\026\056\0\0\0\007"), &startup, &err),
          ERR_INPUT);
    FAILS(wire_parse_startup(arena, BYTES("\0\002\0\0"), &startup, &err), ERR_INPUT);
    FAILS(wire_parse_startup(arena, BYTES("\0\003\0\0user\0ann\0"), &startup, &err), ERR_INPUT);
    FAILS(wire_parse_startup(arena, BYTES("\0\003\0\0user\0ann\0\0x"), &startup, &err), ERR_INPUT);
}

static void
bind_with_formats_and_nulls(void **state)
{
    (void) state;
    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};
    WireBind bind;
    Str body = BYTES("p\0s\0"
                     "\0\002\0\0\0\001"                   /* formats: text, binary */
                     "\0\002\0\0\0\00212\377\377\377\377" /* "12", NULL */
                     "\0\001\0\001");                     /* results: all binary */

    OK(wire_parse_bind(arena, body, &bind, &err));
    assert_true(str_eqc(bind.portal, "p"));
    assert_true(str_eqc(bind.statement, "s"));
    assert_int_equal(bind.value_count, 2);
    assert_true(str_eqc(bind.values[0], "12"));
    assert_null(bind.values[1].ptr);
    assert_int_equal(wire_format(bind.formats, bind.format_count, 1), 1);
    assert_int_equal(wire_format(bind.result_formats, bind.result_format_count, 5), 1);

    for (size_t len = 0; len < body.len; len++)
        FAILS(wire_parse_bind(arena, (Str){body.ptr, len}, &bind, &err), ERR_INPUT);
    /* three formats for one value; a format that does not exist */
    FAILS(wire_parse_bind(arena, BYTES("\0\0\0\003\0\0\0\0\0\0\0\001\0\0\0\0\0\0"), &bind, &err),
          ERR_INPUT);
    FAILS(wire_parse_bind(arena, BYTES("\0\0\0\001\0\002\0\0\0\0"), &bind, &err), ERR_INPUT);
}

static void
the_other_messages(void **state)
{
    (void) state;
    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};
    WireParse parse;
    WireTarget target;
    WireExecute execute;

    OK(wire_parse_parse(arena, BYTES("s\0select $1\0\0\001\0\0\0\027"), &parse, &err));
    assert_int_equal(parse.type_count, 1);
    assert_int_equal(parse.types[0], 23);
    FAILS(wire_parse_parse(arena, BYTES("s\0select $1\0\377\377\0\0\0\027"), &parse, &err),
          ERR_INPUT);
    OK(wire_parse_target(BYTES("Ps\0"), &target, &err));
    assert_int_equal(target.kind, 'P');
    FAILS(wire_parse_target(BYTES("Xs\0"), &target, &err), ERR_INPUT);
    OK(wire_parse_execute(BYTES("\0\0\0\0\005"), &execute, &err));
    assert_int_equal(execute.rows_max, 5);
    OK(wire_parse_execute(BYTES("\0\377\377\377\377"), &execute, &err));
    assert_int_equal(execute.rows_max, 0);
}

static void
assert_bytes(const Buf *out, Str wanted)
{
    assert_int_equal(out->len, wanted.len);
    assert_memory_equal(out->ptr, wanted.ptr, wanted.len);
}

static void
what_we_send(void **state)
{
    (void) state;
    AUTO_BUF Buf out = {0};
    WireColumn column = {STR("id"), 20, 8, -1, 0};

    wire_put_columns(&out, &column, 1);
    assert_bytes(&out,
                 BYTES("T\0\0\0\033\0\001id\0\0\0\0\0\0\0\0\0\0\024\0\010\377\377\377\377\0\0"));
    buf_reset(&out);

    size_t row = wire_row_begin(&out, 2);
    size_t value = wire_value_begin(&out);

    buf_cstr(&out, "42");
    wire_value_end(&out, value);
    wire_put_null(&out);
    wire_row_end(&out, row);
    assert_bytes(&out, BYTES("D\0\0\0\020\0\002\0\0\0\00242\377\377\377\377"));
    buf_reset(&out);

    wire_put_error(
        &out, &(WireError){
                  .severity = "ERROR", .sqlstate = "42P01", .message = STR("no"), .position = 15});
    assert_bytes(&out, BYTES("E\0\0\0\042SERROR\0VERROR\0C42P01\0Mno\0P15\0\0"));
    buf_reset(&out);

    wire_put_authentication_ok(&out);
    wire_put_ready(&out, 'T');
    wire_put_complete(&out, "SELECT 1");
    wire_put_bare(&out, WIRE_NO_DATA);
    assert_bytes(&out, BYTES("R\0\0\0\010\0\0\0\0Z\0\0\0\005TC\0\0\0\015SELECT 1\0n\0\0\0\004"));
    buf_reset(&out);

    Str unknown = STR("_pq_.x");

    wire_put_negotiate(&out, WIRE_PROTOCOL_3_2, &unknown, 1);
    assert_bytes(&out, BYTES("v\0\0\0\023\0\003\0\002\0\0\0\001_pq_.x\0"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_messages_are_cut_out_of_what_arrived),
        cmocka_unit_test(absurd_lengths_are_refused_before_they_are_waited_for),
        cmocka_unit_test(startup_packets),
        cmocka_unit_test(bind_with_formats_and_nulls),
        cmocka_unit_test(the_other_messages),
        cmocka_unit_test(what_we_send),
    };

    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
