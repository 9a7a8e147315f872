#include "decode/pgoutput.h"

#include "base/bytes.h"
#include "decode/cursor.h"

/* Postgres counts from 2000-01-01. */
static const int64_t POSTGRES_EPOCH_US = 946684800 * (int64_t) 1000000;

/* A message being read. The first failure stays: reads after it give zeros and go no further, so
 * that a message reads as a list of its parts and is judged once, at the end. */
typedef struct Reader {
    Cursor cursor;
    const char *start;
    const char *wrong; /* what was wrong, or NULL */
    size_t wrong_at;
} Reader;

static void
fail_read(Reader *reader, const char *wrong)
{
    if (reader->wrong != NULL)
        return;
    reader->wrong = wrong;
    reader->wrong_at = (size_t) (reader->cursor.at - reader->start);
}

static const char *
read_bytes(Reader *reader, size_t size)
{
    const char *at = reader->cursor.at;

    if (reader->wrong != NULL || cursor_left(&reader->cursor) < size) {
        fail_read(reader, "ends too early");
        return NULL;
    }
    reader->cursor.at += size;
    return at;
}

static uint8_t
read_u8(Reader *reader)
{
    const char *p = read_bytes(reader, 1);

    return p == NULL ? 0 : (uint8_t) *p;
}

static uint16_t
read_u16(Reader *reader)
{
    const char *p = read_bytes(reader, 2);

    return p == NULL ? 0 : load_be16(p);
}

static uint32_t
read_u32(Reader *reader)
{
    const char *p = read_bytes(reader, 4);

    return p == NULL ? 0 : load_be32(p);
}

static uint64_t
read_u64(Reader *reader)
{
    const char *p = read_bytes(reader, 8);

    return p == NULL ? 0 : load_be64(p);
}

static int64_t
read_timestamp(Reader *reader)
{
    int64_t since_2000 = (int64_t) read_u64(reader);
    int64_t since_1970;

    if (__builtin_add_overflow(since_2000, POSTGRES_EPOCH_US, &since_1970)) {
        fail_read(reader, "has an impossible time");
        return 0;
    }
    return since_1970;
}

/* A length in four bytes, then so many bytes. */
static Str
read_sized(Reader *reader)
{
    size_t size = read_u32(reader);
    const char *bytes = read_bytes(reader, size);

    return bytes == NULL ? STR("") : (Str){.ptr = bytes, .len = size};
}

/* Bytes up to a NUL. */
static Str
read_cstring(Reader *reader)
{
    size_t left = cursor_left(&reader->cursor);
    const char *start = reader->cursor.at;
    const char *end = left == 0 || reader->wrong != NULL ? NULL : memchr(start, '\0', left);

    if (end == NULL) {
        fail_read(reader, "has a text without an end");
        return STR("");
    }
    reader->cursor.at = end + 1;
    return (Str){.ptr = start, .len = (size_t) (end - start)};
}

/* The plugin writes an empty name for pg_catalog (logicalrep_write_namespace() in proto.c). */
static Str
read_namespace(Reader *reader)
{
    Str name = read_cstring(reader);

    return name.len == 0 ? STR("pg_catalog") : name;
}

/* A count in front of items of at least `item_size` bytes each: a lie about it must not make us
 * allocate. */
static int
read_count(Reader *reader, uint32_t count, size_t item_size)
{
    if (count > cursor_left(&reader->cursor) / item_size) {
        fail_read(reader, "has more parts than bytes");
        return 0;
    }
    return (int) count;
}

/* --- Messages -------------------------------------------------------------------------------- */

static Datum
read_datum(Reader *reader)
{
    uint8_t kind = read_u8(reader);

    switch (kind) {
    case DATUM_NULL:
    case DATUM_UNCHANGED:
        return (Datum){.kind = (DatumKind) kind};
    case DATUM_TEXT:
        return (Datum){.kind = DATUM_TEXT, .text = read_sized(reader)};
    default: /* 'b', binary, comes only when it is asked for */
        fail_read(reader, "has a value of unknown kind");
        return (Datum){.kind = DATUM_NULL};
    }
}

static void
read_tuple(Reader *reader, Arena *arena, Tuple *out)
{
    int count = read_count(reader, read_u16(reader), 1);

    out->count = count;
    out->datums = count == 0 ? NULL : ARENA_ARRAY(arena, Datum, (size_t) count);
    for (int i = 0; i < count; i++)
        out->datums[i] = read_datum(reader);
}

static void
read_insert(Reader *reader, Arena *arena, Change *out)
{
    *out = (Change){.op = OP_INSERT, .relid = read_u32(reader)};
    if (read_u8(reader) != 'N')
        fail_read(reader, "has no new row");
    read_tuple(reader, arena, &out->after);
}

static OldTuple
old_kind(uint8_t tag)
{
    return tag == 'K' ? OLD_KEY : tag == 'O' ? OLD_ROW : OLD_NONE;
}

static void
read_update(Reader *reader, Arena *arena, Change *out)
{
    *out = (Change){.op = OP_UPDATE, .relid = read_u32(reader)};

    uint8_t tag = read_u8(reader);

    out->old_kind = old_kind(tag);
    if (out->old_kind != OLD_NONE) {
        read_tuple(reader, arena, &out->old);
        tag = read_u8(reader);
    }
    if (tag != 'N')
        fail_read(reader, "has no new row");
    read_tuple(reader, arena, &out->after);
}

static void
read_delete(Reader *reader, Arena *arena, Change *out)
{
    *out = (Change){.op = OP_DELETE, .relid = read_u32(reader)};
    out->old_kind = old_kind(read_u8(reader));
    if (out->old_kind == OLD_NONE)
        fail_read(reader, "has no old row");
    read_tuple(reader, arena, &out->old);
}

static void
read_truncate(Reader *reader, Arena *arena, Message *out)
{
    uint32_t count = read_u32(reader);
    uint8_t flags = read_u8(reader);

    out->truncate.cascade = (flags & 1) != 0;
    out->truncate.restart_identity = (flags & 2) != 0;
    out->truncate.relid_count = read_count(reader, count, 4);
    out->truncate.relids = ARENA_ARRAY(arena, uint32_t, (size_t) out->truncate.relid_count);
    for (int i = 0; i < out->truncate.relid_count; i++)
        out->truncate.relids[i] = read_u32(reader);
}

static bool
is_identity(char c)
{
    return c == 'd' || c == 'n' || c == 'f' || c == 'i';
}

static void
read_relation(Reader *reader, Arena *arena, Message *out)
{
    out->relation.relid = read_u32(reader);
    out->relation.schema_name = read_namespace(reader);
    out->relation.table_name = read_cstring(reader);
    out->relation.identity = (char) read_u8(reader);
    if (reader->wrong == NULL && !is_identity(out->relation.identity))
        fail_read(reader, "has an unknown replica identity");

    /* flags, an empty name, type, typmod */
    int count = read_count(reader, read_u16(reader), 1 + 1 + 4 + 4);

    out->relation.column_count = count;
    out->relation.columns = ARENA_ARRAY(arena, RelationColumn, (size_t) count);
    for (int i = 0; i < count; i++) {
        RelationColumn *column = &out->relation.columns[i];

        column->is_key = (read_u8(reader) & 1) != 0;
        column->name = read_cstring(reader);
        column->type_oid = read_u32(reader);
        column->typmod = (int32_t) read_u32(reader);
    }
}

static void
read_type(Reader *reader, Message *out)
{
    out->type.oid = read_u32(reader);
    out->type.schema_name = read_namespace(reader);
    out->type.type_name = read_cstring(reader);
}

static void
read_begin(Reader *reader, Message *out)
{
    out->begin.final_lsn = read_u64(reader);
    out->begin.commit_time_us = read_timestamp(reader);
    out->begin.xid = read_u32(reader);
}

static void
read_commit(Reader *reader, Message *out)
{
    read_u8(reader); /* flags, none defined */
    out->commit.commit_lsn = read_u64(reader);
    out->commit.end_lsn = read_u64(reader);
    out->commit.commit_time_us = read_timestamp(reader);
}

static void
read_logical(Reader *reader, Message *out)
{
    out->logical.transactional = (read_u8(reader) & 1) != 0;
    out->logical.lsn = read_u64(reader);
    out->logical.prefix = read_cstring(reader);
    out->logical.content = read_sized(reader);
}

static void
read_origin(Reader *reader, Message *out)
{
    out->origin.commit_lsn = read_u64(reader);
    out->origin.name = read_cstring(reader);
}

static void
read_message(Reader *reader, Arena *arena, Message *out)
{
    out->kind = (char) read_u8(reader);
    switch (out->kind) {
    case 'B':
        read_begin(reader, out);
        break;
    case 'C':
        read_commit(reader, out);
        break;
    case 'O':
        read_origin(reader, out);
        break;
    case 'R':
        read_relation(reader, arena, out);
        break;
    case 'Y':
        read_type(reader, out);
        break;
    case 'I':
        read_insert(reader, arena, &out->change);
        break;
    case 'U':
        read_update(reader, arena, &out->change);
        break;
    case 'D':
        read_delete(reader, arena, &out->change);
        break;
    case 'T':
        read_truncate(reader, arena, out);
        break;
    case 'M':
        read_logical(reader, out);
        break;
    default:
        fail_read(reader, "is of an unknown kind");
    }
}

bool
pgoutput_decode(Str bytes, Arena *arena, Message *out_message, Error *err)
{
    Reader reader = {.cursor = cursor_of(bytes), .start = bytes.ptr};
    Message message = {0};

    if (bytes.len == 0)
        return FAIL(err, ERR_BUG, "pgoutput: empty message");
    read_message(&reader, arena, &message);
    if (reader.wrong == NULL && !cursor_done(&reader.cursor))
        fail_read(&reader, "goes on behind its end");
    if (reader.wrong != NULL)
        return FAIL(err, ERR_BUG, "pgoutput: message 0x%02x of %zu bytes %s (byte %zu)",
                    (unsigned) (uint8_t) bytes.ptr[0], bytes.len, reader.wrong, reader.wrong_at);
    *out_message = message;
    return true;
}
