/* Made-up messages of pgoutput, put into bytes by the letter of the Postgres documentation
 * ("Logical Replication Message Formats") and read back: each part is what it was, and no shorter
 * or longer text is taken for a message. Real servers' bytes are in test/unit/pgoutput.c. */
#include "random.h"
#include "testing.h"

#include <stdlib.h>

#include "base/buf.h"
#include "decode/pgoutput.h"

enum { MESSAGES = 200000, COLUMNS_MAX = 12, TEXT_MAX = 40 };

/* Any bytes but NUL. */
static Str
draw_text(Random *random, Arena *arena)
{
    size_t length = draw(random, TEXT_MAX);
    char *text = arena_alloc(arena, length + 1);

    for (size_t i = 0; i < length; i++)
        text[i] = (char) (1 + draw(random, 255));
    return (Str){.ptr = text, .len = length};
}

/* --- into bytes ------------------------------------------------------------------------------ */

static void
put_be(Buf *out, uint64_t value, int bytes)
{
    for (int i = bytes; i-- > 0;)
        buf_byte(out, (uint8_t) (value >> (8 * i)));
}

static void
put_name(Buf *out, Str name)
{
    buf_str(out, name);
    buf_byte(out, 0);
}

static void
put_tuple(Buf *out, const Tuple *tuple)
{
    put_be(out, (uint64_t) tuple->count, 2);
    for (int i = 0; i < tuple->count; i++) {
        const Datum *datum = &tuple->datums[i];

        buf_byte(out, (uint8_t) datum->kind);
        if (datum->kind == DATUM_TEXT) {
            put_be(out, datum->text.len, 4);
            buf_str(out, datum->text);
        }
    }
}

static void
put_change(Buf *out, const Change *change)
{
    put_be(out, change->relid, 4);
    if (change->old_kind != OLD_NONE) {
        buf_byte(out, change->old_kind == OLD_KEY ? 'K' : 'O');
        put_tuple(out, &change->old);
    }
    if (change->op != OP_DELETE) {
        buf_byte(out, 'N');
        put_tuple(out, &change->after);
    }
}

static void
put_relation(Buf *out, const Message *message)
{
    put_be(out, message->relation.relid, 4);
    put_name(out, str_eqc(message->relation.schema_name, "pg_catalog")
                      ? STR("") /* by the documentation */
                      : message->relation.schema_name);
    put_name(out, message->relation.table_name);
    buf_byte(out, (uint8_t) message->relation.identity);
    put_be(out, (uint64_t) message->relation.column_count, 2);
    for (int i = 0; i < message->relation.column_count; i++) {
        const RelationColumn *column = &message->relation.columns[i];

        buf_byte(out, column->is_key);
        put_name(out, column->name);
        put_be(out, column->type_oid, 4);
        put_be(out, (uint32_t) column->typmod, 4);
    }
}

static void
put_truncate(Buf *out, const Message *message)
{
    put_be(out, (uint64_t) message->truncate.relid_count, 4);
    buf_byte(out, (uint8_t) (message->truncate.cascade | message->truncate.restart_identity << 1));
    for (int i = 0; i < message->truncate.relid_count; i++)
        put_be(out, message->truncate.relids[i], 4);
}

static void
put_message(Buf *out, const Message *message)
{
    buf_byte(out, (uint8_t) message->kind);
    if (message->kind == 'R')
        put_relation(out, message);
    else if (message->kind == 'T')
        put_truncate(out, message);
    else
        put_change(out, &message->change);
}

/* --- made up --------------------------------------------------------------------------------- */

static Tuple
draw_tuple(Random *random, Arena *arena, bool old)
{
    Tuple tuple = {.count = (int) draw(random, COLUMNS_MAX)};

    tuple.datums = ARENA_ARRAY(arena, Datum, (size_t) tuple.count);
    for (int i = 0; i < tuple.count; i++) {
        uint32_t kind = draw(random, old ? 2 : 3);

        tuple.datums[i].kind = kind == 0 ? DATUM_NULL : kind == 1 ? DATUM_TEXT : DATUM_UNCHANGED;
        if (kind == 1)
            tuple.datums[i].text = draw_text(random, arena);
    }
    return tuple;
}

static void
draw_change(Random *random, Arena *arena, char kind, Change *change)
{
    change->op = kind == 'I' ? OP_INSERT : kind == 'U' ? OP_UPDATE : OP_DELETE;
    change->relid = draw(random, UINT32_MAX);
    if (kind == 'D')
        change->old_kind = draw(random, 2) ? OLD_KEY : OLD_ROW;
    else if (kind == 'U')
        change->old_kind = (OldTuple[]){OLD_NONE, OLD_KEY, OLD_ROW}[draw(random, 3)];
    if (change->old_kind != OLD_NONE)
        change->old = draw_tuple(random, arena, true);
    if (kind != 'D')
        change->after = draw_tuple(random, arena, false);
}

static void
draw_relation(Random *random, Arena *arena, Message *message)
{
    message->relation.relid = draw(random, UINT32_MAX);
    message->relation.schema_name = draw_text(random, arena);
    message->relation.table_name = draw_text(random, arena);
    message->relation.identity = "dnfi"[draw(random, 4)];
    message->relation.column_count = (int) draw(random, COLUMNS_MAX);
    message->relation.columns =
        ARENA_ARRAY(arena, RelationColumn, (size_t) message->relation.column_count);
    for (int i = 0; i < message->relation.column_count; i++)
        message->relation.columns[i] = (RelationColumn){
            .is_key = draw(random, 2) == 0,
            .name = draw_text(random, arena),
            .type_oid = draw(random, UINT32_MAX),
            .typmod = (int32_t) draw(random, 1000) - 1,
        };
}

static Message
draw_message(Random *random, Arena *arena)
{
    Message message = {.kind = "RTIUD"[draw(random, 5)]};

    if (message.kind == 'R') {
        draw_relation(random, arena, &message);
    } else if (message.kind == 'T') {
        message.truncate.cascade = draw(random, 2) == 0;
        message.truncate.restart_identity = draw(random, 2) == 0;
        message.truncate.relid_count = (int) draw(random, 5);
        message.truncate.relids =
            ARENA_ARRAY(arena, uint32_t, (size_t) message.truncate.relid_count);
        for (int i = 0; i < message.truncate.relid_count; i++)
            message.truncate.relids[i] = draw(random, UINT32_MAX);
    } else {
        draw_change(random, arena, message.kind, &message.change);
    }
    return message;
}

/* --- compared -------------------------------------------------------------------------------- */

/* What was read, put into bytes again. All that put_message() puts there was compared by this, and
 * the views point into the bytes that were read. */
static void
expect_message(Str bytes, const Message *message)
{
    AUTO_BUF Buf again = {0};

    put_message(&again, message);
    assert_int_equal(again.len, bytes.len);
    assert_memory_equal(buf_text(&again), bytes.ptr, bytes.len);
}

/* No message, in memory of exactly its size, so that a sanitizer sees what reads beyond. */
static void
expect_refused(Str bytes, Arena *arena)
{
    char *copy = malloc(bytes.len + (bytes.len == 0));
    Message message;
    Error err = {0};

    assert_non_null(copy);
    memcpy(copy, bytes.ptr, bytes.len);
    FAILS(pgoutput_decode((Str){.ptr = copy, .len = bytes.len}, arena, &message, &err), ERR_BUG);
    free(copy);
}

static void
messages_are_what_they_were(void **state)
{
    Random random = {1};

    (void) state;
    for (int round = 0; round < MESSAGES; round++) {
        AUTO_ARENA Arena *arena = arena_new();
        AUTO_BUF Buf bytes = {0};
        Message message = draw_message(&random, arena);
        Message read;
        Error err = {0};

        put_message(&bytes, &message);
        OK(pgoutput_decode(buf_view(&bytes), arena, &read, &err));
        assert_int_equal(read.kind, message.kind);
        expect_message(buf_view(&bytes), &read);

        size_t cut = draw(&random, (uint32_t) bytes.len);

        expect_refused((Str){.ptr = buf_text(&bytes), .len = cut}, arena);
        buf_byte(&bytes, (uint8_t) draw(&random, 256));
        expect_refused(buf_view(&bytes), arena);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_what_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
