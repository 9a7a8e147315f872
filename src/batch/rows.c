#include <assert.h>

#include "base/json_writer.h"
#include "batch/state.h"
#include "decode/value.h"

enum {
    BEGINNING_BYTES = 1000, /* recorded of a value that is too long */
    UTF8_BYTES_MAX = 4,     /* of a character */
};

/* --- Keys ------------------------------------------------------------------------------------ */

/* Part of what is stored in every key index: never change it. */
static const uint64_t KEY_SEED = 0x77616c62657267;

Hash128
key_hash(const TableSchema *schema, const Column *columns, size_t row, Buf *scratch)
{
    assert(schema->key_mode != KEY_NONE);
    buf_reset(scratch);
    if (schema->key_mode == KEY_COLUMNS)
        for (int i = 0; i < schema->key_count; i++)
            column_encode(&columns[schema->key[i]], row, scratch);
    else
        for (int i = 0; i < schema->column_count; i++)
            column_encode(&columns[i], row, scratch);
    return hash128(scratch->ptr, scratch->len, KEY_SEED);
}

/* Rows whose key cannot be held could not be told apart: none of them may get into the lake. */
static bool
refuse_key(const TableSchema *schema, int column, Str reason, Error *err)
{
    const Field *field = &schema->columns[column].field;
    AUTO_BUF Buf cast = {0};

    if (field->type->kind != TYPE_STRING) /* which would hold it */
        buf_printf(&cast, "let it arrive as text (tables.%s.columns: {%.*s: {cast: string}}), ",
                   schema->qualified, STR_ARG(field->name));
    return FAIL(err, ERR_INPUT,
                "table %s: a value of key column %.*s cannot be held (%.*s; see "
                "_walberg.rejects), "
                "and without it rows cannot be told apart\n"
                "hint: %sname another key (tables.%s.key), or leave the table out (source.tables)",
                schema->qualified, STR_ARG(field->name), STR_ARG(reason), buf_text(&cast),
                schema->qualified);
}

static bool
is_too_long(const Batch *batch, Str text)
{
    return text.len > batch->fold->value_bytes_max;
}

static ParseResult
parse(const Batch *batch, Column *column, Str text, const char **out_reason)
{
    if (!is_too_long(batch, text))
        return value_parse(column, text, out_reason);
    *out_reason = "longer than value_limit";
    return PARSE_REJECT;
}

bool
rows_old_key(Batch *batch, const TupleMap *map, const Tuple *old, Hash128 *out_key, Error *err)
{
    const TableSchema *schema = batch->schema;
    struct Fold *fold = batch->fold;
    bool whole = schema->key_mode == KEY_FULL_ROW;
    const char *reason;

    if (old->count != map->count)
        return FAIL(err, ERR_BUG, "table %s: old row of %d values, not %d", schema->qualified,
                    old->count, map->count);
    for (int c = 0; c < schema->column_count; c++)
        if (whole || fold->in_key[c])
            column_reset(&fold->old[c]);
    for (int i = 0; i < old->count; i++) {
        int c = map->column_map[i];
        const Datum *datum = &old->datums[i];

        if (c < 0 || !(whole || fold->in_key[c]))
            continue;
        assert(fold->old[c].rows == 0);
        if (datum->kind == DATUM_UNCHANGED)
            return FAIL(err, ERR_BUG, "table %s: old row without its column %.*s",
                        schema->qualified, STR_ARG(schema->columns[c].field.name));
        if (datum->kind == DATUM_NULL) {
            column_append_null(&fold->old[c]);
        } else if (parse(batch, &fold->old[c], datum->text, &reason) == PARSE_REJECT) {
            if (fold->in_key[c])
                return refuse_key(schema, c, str_of(reason), err);
            /* of a whole row: NULL here as it was when the row was written */
            column_append_null(&fold->old[c]);
        }
    }
    for (int c = 0; c < schema->column_count; c++)
        if ((whole || fold->in_key[c]) && fold->old[c].rows == 0)
            column_append_null(&fold->old[c]);
    *out_key = key_hash(schema, fold->old, 0, &fold->scratch);
    return true;
}

/* --- Rejects --------------------------------------------------------------------------------- */

/* The text with each byte that is not part of UTF-8 as \xHH. */
static void
put_utf8(Buf *out, Str text)
{
    if (str_is_utf8(text)) {
        buf_str(out, text);
        return;
    }
    for (size_t at = 0; at < text.len;) {
        size_t length = 1;

        while (length <= 4 && at + length <= text.len &&
               !str_is_utf8((Str){.ptr = text.ptr + at, .len = length}))
            length++;
        if (length <= 4 && at + length <= text.len) {
            buf_append(out, text.ptr + at, length);
            at += length;
        } else {
            buf_printf(out, "\\x%02x", (unsigned) (uint8_t) text.ptr[at++]);
        }
    }
}

static Span
keep_reject_text(Batch *batch, Str text)
{
    size_t start = batch->reject_bytes.len;

    put_utf8(&batch->reject_bytes, text);
    return (Span){.offset = start, .length = batch->reject_bytes.len - start};
}

/* Its beginning, without half a character at the end. */
static Str
beginning(Str text)
{
    size_t length = text.len < BEGINNING_BYTES ? text.len : BEGINNING_BYTES;

    while (length < text.len && length > BEGINNING_BYTES - UTF8_BYTES_MAX &&
           ((uint8_t) text.ptr[length] & 0xc0) == 0x80)
        length--;
    return (Str){.ptr = text.ptr, .len = length};
}

static void
record_reject(Batch *batch, const RowEvent *event, int datum, const char *reason)
{
    Str text = event->tuple->datums[datum].text;
    AUTO_BUF Buf why = {0};

    buf_cstr(&why, reason);
    if (is_too_long(batch, text)) {
        buf_printf(&why, ": %zu bytes", text.len);
        text = beginning(text);
    }

    Reject reject = {
        .position = event->origin->position,
        .commit_time_us = event->origin->commit_time_us,
        .column = event->map->column_map[datum],
        .value = keep_reject_text(batch, text),
        .reason = keep_reject_text(batch, buf_view(&why)),
    };

    BUF_PUSH(&batch->rejects, Reject, reject);
}

/* The datum of a column of the schema: from the old tuple where it was not sent; NULL when there is
 * none. */
static const Datum *
find_datum(const RowEvent *event, int column)
{
    for (int i = 0; i < event->map->count; i++) {
        if (event->map->column_map[i] != column)
            continue;
        if (event->tuple->datums[i].kind == DATUM_UNCHANGED && event->old != NULL)
            return &event->old->datums[i];
        return &event->tuple->datums[i];
    }
    return NULL;
}

static void
put_json_text(JsonWriter *json, Str text)
{
    AUTO_BUF Buf escaped = {0};

    put_utf8(&escaped, text);
    jw_text(json, buf_view(&escaped));
}

/* The key of the row just appended, as a JSON object: numbers and booleans as such, all else as
 * Postgres' text. */
static void
put_key_json(Batch *batch, const RowEvent *event, size_t row)
{
    const TableSchema *schema = batch->schema;
    JsonWriter json;

    jw_begin(&json, &batch->reject_bytes);
    jw_object(&json);
    for (int i = 0; i < schema->key_count; i++) {
        int c = schema->key[i];
        TypeKind kind = schema->columns[c].field.type->kind;
        bool reject = column_is_null(&batch->columns[c], row);
        const Datum *datum = find_datum(event, c);

        jw_key_str(&json, schema->columns[c].field.name);
        if (datum == NULL || datum->kind != DATUM_TEXT)
            jw_null(&json);
        else if (!reject && (kind == TYPE_INT32 || kind == TYPE_INT64))
            jw_raw(&json, datum->text);
        else if (!reject && kind == TYPE_BOOL)
            jw_bool(&json, str_eq(datum->text, STR("t")));
        else
            put_json_text(&json, datum->text);
    }
    jw_end(&json);
}

/* Give the rejects from `first` on, all of this row, their key. */
static void
key_rejects(Batch *batch, const RowEvent *event, size_t row, size_t first)
{
    Span key = {.offset = batch->reject_bytes.len};

    if (batch->schema->key_mode != KEY_COLUMNS || first == BUF_COUNT(&batch->rejects, Reject))
        return;
    put_key_json(batch, event, row);
    key.length = batch->reject_bytes.len - key.offset;
    for (size_t i = first; i < BUF_COUNT(&batch->rejects, Reject); i++)
        BUF_AT(&batch->rejects, Reject, i).key = key;
}

/* --- Rows ------------------------------------------------------------------------------------ */

RowMark
rows_mark(const Batch *batch)
{
    return (RowMark){
        .rows = batch->rows,
        .rejects = batch->rejects.len,
        .reject_bytes = batch->reject_bytes.len,
    };
}

void
rows_take_back(Batch *batch, RowMark mark)
{
    bool keyed = batch->schema->key_mode != KEY_NONE;

    for (int c = 0; c < batch->schema->column_count; c++)
        if (batch->columns[c].rows > mark.rows)
            column_truncate(&batch->columns[c], mark.rows);
    for (size_t row = mark.rows; row < batch->rows; row++)
        rows_kill(batch, row); /* no longer counted */
    batch->rows = mark.rows;
    batch->dead.len = mark.rows;
    batch->keys.len = keyed ? mark.rows * sizeof(Hash128) : 0;
    batch->rejects.len = mark.rejects;
    batch->reject_bytes.len = mark.reject_bytes;
}

/* A value that was not sent: from the old tuple, which under REPLICA IDENTITY FULL has all columns,
 * else those of the key; elsewhere it is NULL there. */
static void
append_unsent(Batch *batch, const RowEvent *event, int datum)
{
    int c = event->map->column_map[datum];
    const Datum *old = event->old == NULL ? NULL : &event->old->datums[datum];
    const char *reason;

    if (old != NULL && old->kind == DATUM_TEXT) {
        if (parse(batch, &batch->columns[c], old->text, &reason) == PARSE_REJECT)
            column_append_null(&batch->columns[c]); /* recorded when it was written */
        return;
    }
    column_append_null(&batch->columns[c]);
    BUF_PUSH(&batch->fold->unsent, int, c);
}

static void
append_datums(Batch *batch, const RowEvent *event)
{
    const Tuple *tuple = event->tuple;
    const char *reason = NULL;

    buf_reset(&batch->fold->unsent);
    for (int i = 0; i < tuple->count; i++) {
        int c = event->map->column_map[i];
        const Datum *datum = &tuple->datums[i];

        if (c < 0)
            continue;
        assert(c < batch->schema->column_count && batch->columns[c].rows == batch->rows);
        if (datum->kind == DATUM_UNCHANGED) {
            append_unsent(batch, event, i);
        } else if (datum->kind == DATUM_NULL) {
            column_append_null(&batch->columns[c]);
        } else if (parse(batch, &batch->columns[c], datum->text, &reason) == PARSE_REJECT) {
            column_append_null(&batch->columns[c]);
            record_reject(batch, event, i, reason);
        }
    }
    for (int c = 0; c < batch->schema->column_count; c++)
        if (batch->columns[c].rows == batch->rows)
            column_append_null(&batch->columns[c]);
}

static bool
check_key_was_sent(const Batch *batch, Error *err)
{
    const TableSchema *schema = batch->schema;
    const Buf *unsent = &batch->fold->unsent;

    for (size_t i = 0; i < BUF_COUNT(unsent, int); i++) {
        int c = BUF_AT(unsent, int, i);

        /* src/backend/access/heap/heapam.c, ExtractReplicaIdentity(): since the minor releases of
         * February 2022 a key stored out of line is always logged */
        if (batch->fold->in_key[c])
            return FAIL(err, ERR_INPUT,
                        "table %s: an update came without the value of key column %.*s\n"
                        "hint: upgrade the source to its newest minor release, or set REPLICA "
                        "IDENTITY FULL",
                        schema->qualified, STR_ARG(schema->columns[c].field.name));
        if (schema->key_mode == KEY_FULL_ROW)
            return FAIL(err, ERR_BUG, "table %s: no old value of column %.*s, which was not sent",
                        schema->qualified, STR_ARG(schema->columns[c].field.name));
    }
    return true;
}

/* The rejects from `first` on, all of one row. */
static bool
check_key_was_held(const Batch *batch, size_t first, Error *err)
{
    for (size_t i = first; i < BUF_COUNT(&batch->rejects, Reject); i++) {
        const Reject *reject = &BUF_AT(&batch->rejects, Reject, i);
        Str reason = {.ptr = batch->reject_bytes.ptr + reject->reason.offset,
                      .len = reject->reason.length};

        if (batch->fold->in_key[reject->column])
            return refuse_key(batch->schema, reject->column, reason, err);
    }
    return true;
}

bool
rows_append(Batch *batch, const RowEvent *event, Error *err)
{
    struct Fold *fold = batch->fold;
    RowMark mark = rows_mark(batch);
    size_t row = batch->rows;

    assert(!fold->sealed && row < ROW_NONE);
    if (event->tuple->count != event->map->count ||
        (event->old != NULL && event->old->count != event->map->count))
        return FAIL(err, ERR_BUG, "table %s: row of %d values, not %d", batch->schema->qualified,
                    event->tuple->count, event->map->count);
    append_datums(batch, event);
    if (!check_key_was_sent(batch, err)) {
        rows_take_back(batch, mark);
        return false;
    }
    key_rejects(batch, event, row, mark.rejects / sizeof(Reject));
    if (!check_key_was_held(batch, mark.rejects / sizeof(Reject), err)) {
        mark.rejects = batch->rejects.len; /* what was wrong is kept */
        mark.reject_bytes = batch->reject_bytes.len;
        rows_take_back(batch, mark);
        return false;
    }
    if (batch->schema->key_mode != KEY_NONE)
        BUF_PUSH(&batch->keys, Hash128,
                 key_hash(batch->schema, batch->columns, row, &fold->scratch));
    buf_byte(&batch->dead, 0);
    batch->rows++;
    batch->live_rows++;
    return true;
}

bool
batch_append_row(Batch *batch, const TupleMap *map, const Datum *datums, const ChangeOrigin *origin,
                 Error *err)
{
    /* only read, but Change's tuples are filled through the same struct */
    Tuple tuple = {.count = map->count, .datums = (Datum *) (uintptr_t) datums};
    RowEvent event = {.map = map, .tuple = &tuple, .origin = origin};
    RowMark mark = rows_mark(batch);

    assert(!batch->fold->folded);
    TRY(rows_append(batch, &event, err));
    if (batch->fold->unsent.len > 0) {
        rows_take_back(batch, mark);
        return FAIL(err, ERR_BUG, "table %s: copied row without a value", batch->schema->qualified);
    }
    return true;
}
