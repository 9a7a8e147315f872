/* The base room: text, arena, buffers, JSON, queue, positions. */
#include "testing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json_writer.h"
#include "base/queue.h"
#include "model/position.h"

static void
utf8_is_checked_by_the_letter(void **state)
{
    (void) state;
    assert_true(str_is_utf8(STR("plain ascii, longer than eight bytes")));
    assert_true(str_is_utf8(STR("h\xC3\xA9llo \xE2\x82\xAC \xF0\x9F\x90\x98")));
    assert_false(str_is_utf8(STR("12345678\xC3")));     /* cut */
    assert_false(str_is_utf8(STR("\xC0\x80")));         /* overlong */
    assert_false(str_is_utf8(STR("\xED\xA0\x80")));     /* surrogate */
    assert_false(str_is_utf8(STR("\xF4\x90\x80\x80"))); /* beyond U+10FFFF */
    assert_false(str_is_utf8(STR("\x80")));
    assert_true(str_is_utf8(STR_NULL));
}

static void
arena_gives_zeroed_memory_and_forgets(void **state)
{
    (void) state;

    Arena *arena = arena_new();

    for (int round = 0; round < 3; round++) {
        for (size_t size = 1; size < 100000; size = size * 3 + 1) {
            char *p = arena_alloc(arena, size);

            for (size_t i = 0; i < size; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xAA, size);
        }
        assert_true(arena_bytes(arena) > 0);
        arena_reset(arena);
    }
    assert_string_equal(arena_printf(arena, "%s/%d", "a", 7), "a/7");
    arena_free(arena);
}

static void
error_keeps_the_kind_and_adds_context(void **state)
{
    (void) state;

    Error err = {0};

    assert_false(FAIL(&err, ERR_CONFLICT, "version %d exists\n", 7));
    assert_string_equal(err.msg, "version 7 exists");
    assert_false(WRAP(&err, "commit %s", "orders"));
    assert_string_equal(err.msg, "commit orders: version 7 exists");
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_int_equal(error_exit_code(ERR_INPUT), 1);
}

static void
json_is_written_with_commas_and_escapes(void **state)
{
    (void) state;

    AUTO_BUF Buf out = {0};
    JsonWriter json;

    jw_begin(&json, &out);
    jw_object(&json);
    jw_key(&json, "a\"b");
    jw_array(&json);
    jw_int(&json, INT64_MIN);
    jw_double(&json, 0.1);
    jw_bool(&json, true);
    jw_null(&json);
    jw_end(&json);
    jw_key(&json, "s");
    jw_str(&json, STR("\n\x01\xFF"));
    jw_key(&json, "e");
    jw_object(&json);
    jw_key(&json, "null");
    jw_str(&json, STR_NULL);
    jw_key(&json, "text");
    jw_text(&json, buf_view(&(Buf){0}));
    jw_end(&json);
    jw_end(&json);
    assert_string_equal(buf_text(&out),
                        "{\"a\\\"b\":[-9223372036854775808,0.1,true,null],"
                        "\"s\":\"\\n\\u0001\xEF\xBF\xBD\",\"e\":{\"null\":null,\"text\":\"\"}}");
}

static void
queue_is_bounded_and_drains_after_close(void **state)
{
    (void) state;

    Queue *queue = queue_new(2);
    int items[3];
    bool timeout;

    assert_true(queue_offer(queue, &items[0]));
    assert_true(queue_put(queue, &items[1]));
    assert_false(queue_offer(queue, &items[2]));
    assert_false(queue_wait_room(queue, 1));
    assert_ptr_equal(queue_take(queue), &items[0]);
    assert_true(queue_wait_room(queue, 1));
    queue_close(queue);
    assert_false(queue_offer(queue, &items[2]));
    assert_ptr_equal(queue_take_for(queue, 1, &timeout), &items[1]);
    assert_null(queue_take(queue));
    queue_free(queue);
}

static void
position_has_the_text_of_pg_lsn(void **state)
{
    (void) state;

    Error err = {0};
    Position position = 0;

    OK(position_parse(STR("16/B374D848"), &position, &err));
    assert_true(position == 0x16B374D848u);
    assert_string_equal(POSITION_TEXT(position), "16/B374D848");
    assert_string_equal(POSITION_TEXT(POSITION_NONE), "0/0");
    OK(position_parse(STR("ffffffff/FFFFFFFF"), &position, &err));
    assert_true(position == UINT64_MAX);
    FAILS(position_parse(STR(""), &position, &err), ERR_INPUT);
    FAILS(position_parse(STR("1/"), &position, &err), ERR_INPUT);
    FAILS(position_parse(STR("123456789/0"), &position, &err), ERR_INPUT);
    FAILS(position_parse(STR("1/2 "), &position, &err), ERR_INPUT);
    FAILS(position_parse(STR("1/G"), &position, &err), ERR_INPUT);
}

static void
hashes_and_uuids(void **state)
{
    (void) state;

    char uuid[37];
    char when[32];

    /* XXH3_128bits of the empty input, from the xxHash project's test vectors */
    Hash128 empty = hash128("", 0, 0);

    assert_true(empty.high == 0x99AA06D3014798D8u && empty.low == 0x6001C324468D497Fu);
    random_uuid(uuid);
    assert_int_equal(strlen(uuid), 36);
    assert_int_equal(uuid[14], '4');
    clock_format(1796032800123456, when, sizeof when);
    assert_string_equal(when, "2026-11-30T10:00:00.123Z");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_checked_by_the_letter),
        cmocka_unit_test(arena_gives_zeroed_memory_and_forgets),
        cmocka_unit_test(error_keeps_the_kind_and_adds_context),
        cmocka_unit_test(json_is_written_with_commas_and_escapes),
        cmocka_unit_test(queue_is_bounded_and_drains_after_close),
        cmocka_unit_test(position_has_the_text_of_pg_lsn),
        cmocka_unit_test(hashes_and_uuids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
