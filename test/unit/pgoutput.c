/* pgoutput messages, COPY lines and values, as four Postgres servers sent them:
 * test/golden/pgoutput (the script `capture` there made the files). The values are compared with
 * what Postgres itself said about the same rows, in integers, the bytes of its send functions, and
 * JSON. */
#include "testing.h"

#include <jansson.h>
#include <stdlib.h>

#include "batch/fold.h"
#include "decode/copy_text.h"
#include "decode/pgoutput.h"

static const int versions[] = {13, 15, 17, 18};

enum { VERSIONS = sizeof versions / sizeof versions[0], COLUMNS_MAX = 100, TYPES_MAX = 100 };

/* --- Golden files ---------------------------------------------------------------------------- */

typedef struct Lines {
    size_t count;
    Str *lines; /* each writable, and in memory of exactly its size */
} Lines;

static Lines
read_lines(Arena *arena, int version, const char *what)
{
    char *path = arena_printf(arena, TEST_DIR "/golden/pgoutput/%d.%s", version, what);
    FILE *file = fopen(path, "r");
    Lines lines = {.lines = ARENA_ARRAY(arena, Str, 2000)};
    char *line = NULL;
    size_t cap = 0;

    assert_non_null(file);
    for (;;) {
        ssize_t size = getline(&line, &cap, file);

        if (size < 0)
            break;
        assert_true(lines.count < 2000 && line[size - 1] == '\n');
        lines.lines[lines.count++] = arena_str(arena, (Str){.ptr = line, .len = (size_t) size - 1});
    }
    free(line);
    fclose(file);
    return lines;
}

static Str
unhex(Arena *arena, Str hex)
{
    char *bytes = arena_alloc(arena, hex.len / 2);

    for (size_t i = 0; i < hex.len / 2; i++) {
        char digits[3] = {hex.ptr[2 * i], hex.ptr[2 * i + 1], '\0'};

        bytes[i] = (char) strtol(digits, NULL, 16);
    }
    return (Str){.ptr = bytes, .len = hex.len / 2};
}

static Datum *
split(Arena *arena, Str line, int count)
{
    Error err = {0};
    Datum *datums = ARENA_ARRAY(arena, Datum, (size_t) count);
    Str copy = arena_str(arena, line);

    OK(copy_text_split((char *) (uintptr_t) copy.ptr, copy.len, datums, count, &err));
    return datums;
}

static long
number_of(Datum datum)
{
    char text[32];

    assert_true(datum.text.len < sizeof text);
    memcpy(text, datum.text.ptr, datum.text.len);
    text[datum.text.len] = '\0';
    return strtol(text, NULL, 10);
}

/* --- The table every_type, as the catalog has it --------------------------------------------- */

typedef struct Catalog {
    int count;
    PgType types[TYPES_MAX];
} Catalog;

static const PgType *
find_type(const Catalog *catalog, long oid)
{
    int i = 0;

    while (catalog->types[i].oid != (uint32_t) oid)
        assert_true(++i < catalog->count);
    return &catalog->types[i];
}

/* "x 23 -1,label 25 -1" */
static void
read_members(Arena *arena, const Catalog *catalog, PgType *type, Str text)
{
    const char *at = arena_str(arena, text).ptr; /* NUL-terminated */

    type->members = ARENA_ARRAY(arena, PgMember, 10);
    while (*at != '\0') {
        PgMember *member = &type->members[type->member_count++];
        char *end;

        member->name = (Str){.ptr = at, .len = strcspn(at, " ")};
        member->type = find_type(catalog, strtol(at + member->name.len, &end, 10));
        member->typmod = (int32_t) strtol(end, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
}

static Catalog *
read_catalog(Arena *arena, int version)
{
    Lines lines = read_lines(arena, version, "types");
    Catalog *catalog = ARENA_NEW(arena, Catalog);

    for (size_t i = 0; i < lines.count; i++) {
        Datum *field = split(arena, lines.lines[i], 8);

        catalog->types[catalog->count++] = (PgType){.oid = (uint32_t) number_of(field[0]),
                                                    .name = field[1].text,
                                                    .typtype = field[2].text.ptr[0],
                                                    .delimiter = field[3].text.ptr[0],
                                                    .is_array = field[4].text.ptr[0] == '1',
                                                    .typmod = (int32_t) number_of(field[6])};
    }
    for (size_t i = 0; i < lines.count; i++) {
        Datum *field = split(arena, lines.lines[i], 8);
        PgType *type = &catalog->types[i];

        if (number_of(field[5]) != 0)
            type->base = find_type(catalog, number_of(field[5]));
        read_members(arena, catalog, type, field[7].text);
    }
    return catalog;
}

static TableSchema *
read_schema(int version)
{
    Arena *arena;
    TableSchema *schema = schema_new(&arena);
    Catalog *catalog = read_catalog(arena, version);
    Lines lines = read_lines(arena, version, "columns");

    schema->qualified = "public.every_type";
    schema->key_mode = KEY_COLUMNS;
    schema->key_count = 1;
    schema->key = ARENA_ARRAY(arena, int, 1);
    schema->column_count = (int) lines.count;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, lines.count);
    for (size_t i = 0; i < lines.count; i++) {
        Datum *field = split(arena, lines.lines[i], 4);
        SchemaColumn *column = &schema->columns[i];
        const PgType *type = find_type(catalog, number_of(field[1]));

        column->type_oid = type->oid;
        column->typmod = (int32_t) number_of(field[2]);
        column->field.name = field[0].text;
        column->field.type =
            type_from_postgres(arena, type, column->typmod, (int) number_of(field[3]));
    }
    return schema;
}

/* --- Values in the form of the view `expected` ----------------------------------------------- */

static void
put_hex(Buf *out, Str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(out, "%02x", (unsigned) (uint8_t) bytes.ptr[i]);
}

static void
put_decimal(Buf *out, __int128 value)
{
    char digits[48];
    int at = sizeof digits;
    unsigned __int128 left = value < 0 ? -(unsigned __int128) value : (unsigned __int128) value;

    do {
        digits[--at] = (char) ('0' + (int) (left % 10));
        left /= 10;
    } while (left > 0);
    if (value < 0)
        buf_byte(out, '-');
    buf_append(out, digits + at, sizeof digits - (size_t) at);
}

static void
put_scalar(Buf *out, const Column *column, size_t row)
{
    const Buf *values = &column->values;
    uint32_t bits;
    uint64_t long_bits;

    switch ((int) column->type->kind) {
    case TYPE_BOOL:
        buf_printf(out, "%d", BUF_AT(values, uint8_t, row));
        break;
    case TYPE_INT32:
    case TYPE_DATE:
        buf_printf(out, "%d", BUF_AT(values, int32_t, row));
        break;
    case TYPE_INT64:
        buf_printf(out, "%lld", (long long) BUF_AT(values, int64_t, row));
        break;
    case TYPE_FLOAT32:
        memcpy(&bits, values->ptr + row * 4, 4);
        buf_printf(out, "%08x", bits);
        break;
    case TYPE_FLOAT64:
        memcpy(&long_bits, values->ptr + row * 8, 8);
        buf_printf(out, "%016llx", (unsigned long long) long_bits);
        break;
    case TYPE_DECIMAL:
        put_decimal(out, type_width(column->type) == 8 ? BUF_AT(values, int64_t, row)
                                                       : BUF_AT(values, __int128, row));
        break;
    case TYPE_TIMESTAMP: /* Postgres sends microseconds since 2000 */
    case TYPE_TIMESTAMPTZ:
        buf_printf(out, "%016llx",
                   (unsigned long long) BUF_AT(values, int64_t, row) - 946684800000000u);
        break;
    case TYPE_BINARY:
        put_hex(out, column_bytes(column, row));
        break;
    case TYPE_UUID:
        put_hex(out, (Str){.ptr = values->ptr + row * 16, .len = 16});
        break;
    default:
        buf_str(out, column_bytes(column, row));
    }
}

static void
put_json_string(Buf *out, Str text)
{
    buf_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c == '"' || c == '\\')
            buf_byte(out, '\\');
        if ((uint8_t) c < 0x20)
            buf_printf(out, "\\u%04x", (unsigned) c);
        else
            buf_byte(out, (uint8_t) c);
    }
    buf_byte(out, '"');
}

static void put_json(Buf *out, const Column *column, size_t row);

static void
put_json_rows(Buf *out, const Column *column, Span span)
{
    bool map = column->type->kind == TYPE_MAP;

    buf_byte(out, map ? '{' : '[');
    for (size_t i = 0; i < span.length; i++) {
        if (i > 0)
            buf_byte(out, ',');
        if (map) {
            put_json_string(out, column_bytes(&column->children[0], span.offset + i));
            buf_byte(out, ':');
        }
        put_json(out, &column->children[map ? 1 : 0], span.offset + i);
    }
    buf_byte(out, map ? '}' : ']');
}

static void
put_json(Buf *out, const Column *column, size_t row)
{
    AUTO_BUF Buf text = {0};
    const Type *type = column->type;

    if (column_is_null(column, row)) {
        buf_cstr(out, "null");
    } else if (type->kind == TYPE_STRUCT) {
        for (int i = 0; i < type->field_count; i++) {
            buf_byte(out, i == 0 ? '{' : ',');
            put_json_string(out, type->fields[i].name);
            buf_byte(out, ':');
            put_json(out, &column->children[i], row);
        }
        buf_byte(out, '}');
    } else if (type_is_nested(type)) {
        put_json_rows(out, column, column_span(column, row));
    } else {
        put_scalar(&text, column, row);
        if (type->kind == TYPE_INT32)
            buf_str(out, buf_view(&text));
        else
            put_json_string(out, buf_view(&text));
    }
}

static void
assert_value(const Column *column, size_t row, Str name, Str expected)
{
    AUTO_BUF Buf actual = {0};
    bool same;

    if (type_is_nested(column->type)) {
        put_json(&actual, column, row);

        json_t *a = json_loads(buf_text(&actual), JSON_DECODE_ANY, NULL);
        json_t *b = json_loadb(expected.ptr, expected.len, JSON_DECODE_ANY, NULL);

        same = a != NULL && b != NULL && json_equal(a, b) != 0;
        json_decref(a);
        json_decref(b);
    } else {
        put_scalar(&actual, column, row);
        same = str_eq(buf_view(&actual), expected);
    }
    if (!same)
        fail_msg("row %zu, %.*s: %s, not %.*s", row, STR_ARG(name), buf_text(&actual),
                 STR_ARG(expected));
}

static bool
has_reject(const Batch *batch, size_t row, int column)
{
    char key[32];

    snprintf(key, sizeof key, "{\"id\":%d}", BUF_AT(&batch->columns[0].values, int32_t, row));
    for (size_t i = 0; i < BUF_COUNT(&batch->rejects, Reject); i++) {
        Reject reject = BUF_AT(&batch->rejects, Reject, i);
        Str text = {.ptr = batch->reject_bytes.ptr + reject.key.offset, .len = reject.key.length};

        if (reject.column == column && str_eqc(text, key))
            return true;
    }
    return false;
}

static void
assert_rows(const Batch *batch, Arena *arena, Lines expected)
{
    size_t rejects = 0;

    assert_int_equal(batch->rows, expected.count);
    for (size_t row = 0; row < batch->rows; row++) {
        Datum *fields = split(arena, expected.lines[row], batch->schema->column_count);

        for (int c = 0; c < batch->schema->column_count; c++) {
            const Column *column = &batch->columns[c];
            Str name = batch->schema->columns[c].field.name;
            bool reject = str_eq(fields[c].text, STR("!"));

            rejects += reject ? 1 : 0;
            if (has_reject(batch, row, c) != reject)
                fail_msg("row %zu: %.*s: %s reject", row, STR_ARG(name), reject ? "no" : "a");
            if (column_is_null(column, row) != (reject || fields[c].kind == DATUM_NULL))
                fail_msg("row %zu: %.*s: NULL", row, STR_ARG(name));
            if (!column_is_null(column, row))
                assert_value(column, row, name, fields[c].text);
        }
    }
    assert_int_equal(BUF_COUNT(&batch->rejects, Reject), rejects);
    assert_true(rejects >= 10);
}

/* --- Tests ----------------------------------------------------------------------------------- */

static void
decode(Arena *arena, Str hex, Message *out)
{
    Error err = {0};

    OK(pgoutput_decode(unhex(arena, hex), arena, out, &err));
}

/* The rows of every_type out of the stream are byte for byte those of COPY, and parse to what
 * Postgres says they are. */
static void
check_every_type(int version)
{
    Arena *arena = arena_new();
    Lines messages = read_lines(arena, version, "messages");
    Lines copied = read_lines(arena, version, "copy");
    TableSchema *schema = read_schema(version);
    Batch *streamed = batch_new(schema, true);
    Batch *copy = batch_new(schema, false);
    int identity[COLUMNS_MAX];
    TupleMap map = {.count = schema->column_count, .column_map = identity};
    ChangeOrigin origin = {.position = 1};
    Error err = {0};
    uint32_t relid = 0;

    for (int c = 0; c < schema->column_count; c++)
        identity[c] = c;
    for (size_t i = 0; i < messages.count; i++) {
        Message message;

        decode(arena, messages.lines[i], &message);
        if (message.kind == 'R' && str_eqc(message.relation.table_name, "every_type")) {
            relid = message.relation.relid;
            assert_int_equal(message.relation.column_count, schema->column_count);
            for (int c = 0; c < schema->column_count; c++) {
                const RelationColumn *column = &message.relation.columns[c];

                assert_true(str_eq(column->name, schema->columns[c].field.name));
                assert_int_equal(column->type_oid, schema->columns[c].type_oid);
                assert_int_equal(column->typmod, schema->columns[c].typmod);
                assert_int_equal(column->is_key, c == 0);
            }
        }
        if (message.kind != 'I' || message.change.relid != relid)
            continue;
        assert_true(streamed->rows < copied.count);

        Datum *datums = split(arena, copied.lines[streamed->rows], schema->column_count);

        assert_int_equal(message.change.after.count, schema->column_count);
        for (int c = 0; c < schema->column_count; c++) {
            assert_int_equal(message.change.after.datums[c].kind, datums[c].kind);
            assert_true(str_eq(message.change.after.datums[c].text, datums[c].text));
        }
        OK(batch_apply(streamed, &map, &message.change, &origin, &err));
        OK(batch_append_row(copy, &map, datums, &origin, &err));
    }
    assert_rows(streamed, arena, read_lines(arena, version, "expected"));
    assert_rows(copy, arena, read_lines(arena, version, "expected"));
    assert_memory_equal(streamed->keys.ptr, copy->keys.ptr, streamed->keys.len);
    batch_free(streamed);
    batch_free(copy);
    schema_unref(schema);
    arena_free(arena);
}

static void
every_type_arrives_as_it_is(void **state)
{
    (void) state;
    for (int v = 0; v < VERSIONS; v++)
        check_every_type(versions[v]);
}

/* What follows every_type in capture.sql, message by message. */
typedef struct Story {
    Arena *arena;
    Lines messages;
    size_t at;
    uint32_t things; /* relids */
    uint32_t wholes;
} Story;

static Message
next(Story *story, char kind)
{
    Message message;

    do { /* types come wherever a relation needs them */
        assert_true(story->at < story->messages.count);
        if (story->at + 1 < story->messages.count &&
            str_starts(story->messages.lines[story->at], STR("42")) &&
            str_starts(story->messages.lines[story->at + 1], STR("43"))) {
            story->at += 2; /* before 15 empty transactions are sent, too */
            message.kind = 'Y';
            continue;
        }
        decode(story->arena, story->messages.lines[story->at++], &message);
    } while (message.kind == 'Y');
    if (message.kind != kind)
        fail_msg("message %zu is '%c', not '%c'", story->at, message.kind, kind);
    return message;
}

static Message
next_relation(Story *story, const char *table, char identity, int columns)
{
    Message message = next(story, 'R');

    assert_true(str_eqc(message.relation.schema_name, "public"));
    assert_true(str_eqc(message.relation.table_name, table));
    assert_int_equal(message.relation.identity, identity);
    assert_int_equal(message.relation.column_count, columns);
    return message;
}

/* Each datum: NULL, "u" for not sent, or its text; "..." for a long one. */
static void
assert_tuple(const Tuple *tuple, int count, const char *const *texts)
{
    assert_int_equal(tuple->count, count);
    for (int i = 0; i < count; i++) {
        const Datum *datum = &tuple->datums[i];

        if (texts[i] == NULL)
            assert_int_equal(datum->kind, DATUM_NULL);
        else if (strcmp(texts[i], "u") == 0)
            assert_int_equal(datum->kind, DATUM_UNCHANGED);
        else if (strcmp(texts[i], "...") == 0)
            assert_int_equal(datum->text.len, 3000);
        else
            assert_true(str_eqc(datum->text, texts[i]));
    }
}

#define TUPLE(tuple, ...)                                                                          \
    do {                                                                                           \
        const char *const texts[] = {__VA_ARGS__};                                                 \
        const Tuple actual = (tuple);                                                              \
                                                                                                   \
        assert_tuple(&actual, sizeof texts / sizeof texts[0], texts);                              \
    } while (0)

static void
check_things(Story *story)
{
    Message begin = next(story, 'B');

    assert_true(begin.begin.xid > 0);
    assert_true(begin.begin.commit_time_us > 1700000000000000);
    story->things = next_relation(story, "things", 'd', 3).relation.relid;
    TUPLE(next(story, 'I').change.after, "1", "one", "...");
    TUPLE(next(story, 'I').change.after, "2", "two", "short");

    Message message = next(story, 'U');

    assert_int_equal(message.change.old_kind, OLD_NONE);
    TUPLE(message.change.after, "1", "uno", "u");
    message = next(story, 'U');
    assert_int_equal(message.change.old_kind, OLD_KEY);
    TUPLE(message.change.old, "1", NULL, NULL);
    TUPLE(message.change.after, "3", "uno", "u");
    message = next(story, 'U');
    assert_int_equal(message.change.old_kind, OLD_NONE);
    TUPLE(message.change.after, "3", "uno", NULL);
    message = next(story, 'D');
    assert_int_equal(message.change.op, OP_DELETE);
    assert_int_equal(message.change.old_kind, OLD_KEY);
    TUPLE(message.change.old, "2", NULL, NULL);
    message = next(story, 'C');
    assert_true(message.commit.commit_lsn == begin.begin.final_lsn);
    assert_true(message.commit.end_lsn > message.commit.commit_lsn);
    assert_true(message.commit.commit_time_us == begin.begin.commit_time_us);
}

static void
check_other_identities(Story *story)
{
    next(story, 'B');
    story->wholes = next_relation(story, "wholes", 'f', 2).relation.relid;
    TUPLE(next(story, 'I').change.after, "1", "...");

    Message message = next(story, 'U');

    assert_int_equal(message.change.old_kind, OLD_ROW);
    TUPLE(message.change.old, "1", "...");
    TUPLE(message.change.after, "2", "u");
    message = next(story, 'D');
    assert_int_equal(message.change.old_kind, OLD_ROW);
    TUPLE(message.change.old, "2", "...");
    next(story, 'C');

    next(story, 'B');
    message = next_relation(story, "Odd \"names\"", 'i', 2);
    assert_true(str_eqc(message.relation.columns[0].name, "a b"));
    assert_true(str_eqc(message.relation.columns[1].name, "\xC3\xBC"));
    assert_true(message.relation.columns[0].is_key);
    assert_false(message.relation.columns[1].is_key);
    TUPLE(next(story, 'I').change.after, "1", "\xC3\xA4");
    message = next(story, 'U');
    assert_int_equal(message.change.old_kind, OLD_KEY);
    TUPLE(message.change.after, "2", "\xC3\xA4");
    TUPLE(next(story, 'D').change.old, "2", NULL);
    next(story, 'C');
}

static void
check_logical_messages(Story *story)
{
    next(story, 'B');

    Message message = next(story, 'M');

    assert_true(message.logical.transactional);
    assert_true(str_eqc(message.logical.prefix, "walberg"));
    assert_true(str_eqc(message.logical.content, "hello"));
    next(story, 'C');
    message = next(story, 'M');
    assert_false(message.logical.transactional);
    assert_int_equal(message.logical.content.len, 0);
    assert_true(message.logical.lsn > 0);
}

static void
check_the_rest(Story *story)
{
    next(story, 'B');

    /* a TRUNCATE invalidates what the server knows of them, so both come again */
    assert_int_equal(next_relation(story, "things", 'd', 3).relation.relid, story->things);
    assert_int_equal(next_relation(story, "wholes", 'f', 2).relation.relid, story->wholes);

    Message message = next(story, 'T');

    assert_int_equal(message.truncate.relid_count, 2);
    assert_int_equal(message.truncate.relids[0], story->things);
    assert_int_equal(message.truncate.relids[1], story->wholes);
    assert_true(message.truncate.cascade);
    assert_true(message.truncate.restart_identity);
    next(story, 'C');

    next(story, 'B');
    message = next_relation(story, "things", 'd', 3);
    assert_true(str_eqc(message.relation.columns[2].name, "large"));
    TUPLE(next(story, 'I').change.after, "9", "nine", "n");
    next(story, 'C');

    next(story, 'B');
    message = next(story, 'O');
    assert_true(message.origin.commit_lsn == 0xABCD);
    assert_true(str_eqc(message.origin.name, "capture-origin"));
    TUPLE(next(story, 'I').change.after, "10", "ten", "t");
    message = next(story, 'C');
    assert_true(message.commit.commit_time_us == 1796032800000000); /* as the origin set it */
}

static void
every_message_is_understood(void **state)
{
    (void) state;
    for (int v = 0; v < VERSIONS; v++) {
        Arena *arena = arena_new();
        Story story = {.arena = arena, .messages = read_lines(arena, versions[v], "messages")};
        int types = 0;
        Message message = {0};

        /* every_type: two transactions, with enums and domains described before the relation */
        for (int commits = 0; commits < 2; commits += message.kind == 'C' ? 1 : 0) {
            decode(arena, story.messages.lines[story.at++], &message);
            if (message.kind == 'Y')
                types += str_eqc(message.type.schema_name, "public") ? 1 : 0;
        }
        assert_true(types >= 8);
        check_things(&story);
        check_other_identities(&story);
        if (versions[v] >= 14)
            check_logical_messages(&story);
        check_the_rest(&story);
        arena_free(arena);
    }
}

/* The first `size` bytes of the message are refused. They are in memory of exactly their size, so
 * that the sanitizers see a byte read too many. */
static void
assert_cut_is_refused(Str whole, size_t size, Arena *arena)
{
    char *bytes = malloc(size + (size == 0 ? 1 : 0));
    Message message;
    Error err = {0};

    memcpy(bytes, whole.ptr, size);
    FAILS(pgoutput_decode((Str){.ptr = bytes, .len = size}, arena, &message, &err), ERR_BUG);
    free(bytes);
}

static void
broken_messages_are_refused(void **state)
{
    (void) state;

    Arena *arena = arena_new();
    Arena *scratch = arena_new();
    Lines messages = read_lines(arena, 18, "messages");

    for (size_t i = 0; i < messages.count; i++) {
        Str whole = unhex(arena, messages.lines[i]);
        char *longer = arena_alloc(arena, whole.len + 1);

        for (size_t size = 0; size < whole.len; size++) {
            if (size < 300 || size + 50 > whole.len)
                assert_cut_is_refused(whole, size, scratch);
            arena_reset(scratch);
        }
        memcpy(longer, whole.ptr, whole.len);
        assert_cut_is_refused((Str){.ptr = longer, .len = whole.len + 1}, whole.len + 1, scratch);
    }
    arena_free(scratch);
    arena_free(arena);
}

static void
nonsense_is_refused(void **state)
{
    (void) state;

    static const struct {
        const char *bytes;
        size_t size;
        const char *wrong;
    } cases[] = {
        {"X", 1, "message 0x58 of 1 bytes is of an unknown kind (byte 1)"},
        {"I\0\0\0\1X\0\0", 8, "message 0x49 of 8 bytes has no new row (byte 6)"},
        {"D\0\0\0\1N\0\0", 8, "message 0x44 of 8 bytes has no old row (byte 6)"},
        {"U\0\0\0\1O\0\0K\0\0", 11, "message 0x55 of 11 bytes has no new row (byte 9)"},
        {"I\0\0\0\1N\0\1b\0\0\0\0", 13, "has a value of unknown kind (byte 9)"},
        {"I\0\0\0\1N\377\377n", 9, "has more parts than bytes (byte 8)"},
        {"I\0\0\0\1N\0\1t\377\377\377\377", 13, "ends too early (byte 13)"},
        {"T\177\377\377\377\0", 6, "has more parts than bytes (byte 6)"},
        {"R\0\0\0\1a\0b\0z\0\0", 12, "has an unknown replica identity (byte 10)"},
        {"Y\0\0\0\1abc", 8, "has a text without an end (byte 5)"},
        {"B\0\0\0\0\0\0\0\0\177\377\377\377\377\377\377\377\0\0\0\0", 21, "impossible time"},
    };

    Arena *arena = arena_new();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Message message;
        Error err = {0};
        Str bytes = {.ptr = cases[i].bytes, .len = cases[i].size};

        FAILS(pgoutput_decode(bytes, arena, &message, &err), ERR_BUG);
        if (strstr(err.msg, cases[i].wrong) == NULL)
            fail_msg("%s, not %s", err.msg, cases[i].wrong);
    }
    arena_free(arena);
}

/* Documentation, COPY, "Text Format". */
static void
copy_lines_are_split(void **state)
{
    (void) state;

    Error err = {0};
    Datum datums[6];
    char line[] = "a\t\\N\t\t\\\\N\tx\\ty\\n\\\\\\b\\f\\r\\v\t\\101\\x41\\x4a7\\q\n";

    OK(copy_text_split(line, sizeof line - 1, datums, 6, &err));
    assert_true(str_eqc(datums[0].text, "a"));
    assert_int_equal(datums[1].kind, DATUM_NULL);
    assert_int_equal(datums[2].kind, DATUM_TEXT);
    assert_int_equal(datums[2].text.len, 0);
    assert_true(str_eqc(datums[3].text, "\\N"));
    assert_true(str_eqc(datums[4].text, "x\ty\n\\\b\f\r\v"));
    assert_true(str_eqc(datums[5].text, "AAJ7q"));

    char few[] = "a\tb";
    char many[] = "a\tb\tc";
    char broken[] = "a\\";
    char empty[] = "";

    FAILS(copy_text_split(few, 3, datums, 3, &err), ERR_BUG);
    FAILS(copy_text_split(many, 5, datums, 2, &err), ERR_BUG);
    FAILS(copy_text_split(broken, 2, datums, 1, &err), ERR_BUG);
    OK(copy_text_split(empty, 0, datums, 1, &err));
    assert_int_equal(datums[0].text.len, 0);
    OK(copy_text_split(empty, 0, datums, 0, &err));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_arrives_as_it_is),
        cmocka_unit_test(every_message_is_understood),
        cmocka_unit_test(broken_messages_are_refused),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(copy_lines_are_split),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
