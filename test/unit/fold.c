/* Folding, by hand and against a naive model: whatever sequence of changes goes into a batch, the
 * lake after "truncate, delete `deletes`, add the live rows with their patches" must be the table
 * after the same changes were applied one by one to a plain list of rows. */
#include "testing.h"

#include <stdlib.h>

#include "batch/fold.h"

/* --- A table (id int, name text, big text) --------------------------------------------------- */

enum { COLUMNS = 3, VALUE_MAX = 48 };

static TableSchema *
new_table(KeyMode mode, int key_count)
{
    static const Type int_type = {.kind = TYPE_INT32};
    static const Type text_type = {.kind = TYPE_STRING};
    static const char *const names[COLUMNS] = {"id", "name", "big"};
    Arena *arena;
    TableSchema *schema = schema_new(&arena);

    schema->qualified = "public.t";
    schema->key_mode = mode;
    schema->key_count = key_count;
    schema->key = ARENA_ARRAY(arena, int, 2);
    schema->key[0] = 0;
    schema->key[1] = 1;
    schema->column_count = COLUMNS;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, COLUMNS);
    for (int c = 0; c < COLUMNS; c++)
        schema->columns[c].field =
            (Field){.name = str_of(names[c]), .type = c == 0 ? &int_type : &text_type};
    return schema;
}

/* The datums come in another order than the columns, with one between that is not in the lake. */
static const int column_map[] = {2, -1, 0, 1};
static const TupleMap map = {.count = 4, .column_map = column_map};
static const ChangeOrigin origin = {.position = 0x100, .commit_time_us = 1234567};

/* A value: NULL, text, or UNSENT. */
static const char *const UNSENT = "(not sent)";

static Datum
datum_of(const char *text)
{
    if (text == UNSENT)
        return (Datum){.kind = DATUM_UNCHANGED};
    if (text == NULL)
        return (Datum){.kind = DATUM_NULL};
    return (Datum){.kind = DATUM_TEXT, .text = str_of(text)};
}

static Tuple
tuple_of(Datum datums[4], const char *id, const char *name, const char *big)
{
    datums[0] = datum_of(big);
    datums[1] = datum_of("elsewhere");
    datums[2] = datum_of(id);
    datums[3] = datum_of(name);
    return (Tuple){.count = 4, .datums = datums};
}

static void
insert(Batch *batch, const char *id, const char *name, const char *big)
{
    Error err = {0};
    Datum after[4];
    Change change = {.op = OP_INSERT, .after = tuple_of(after, id, name, big)};

    OK(batch_apply(batch, &map, &change, &origin, &err));
}

/* old_id NULL: no old tuple. */
static void
update(Batch *batch, const char *old_id, const char *id, const char *name, const char *big)
{
    Error err = {0};
    Datum old[4];
    Datum after[4];
    Change change = {.op = OP_UPDATE,
                     .old_kind = old_id == NULL ? OLD_NONE : OLD_KEY,
                     .old = tuple_of(old, old_id, NULL, NULL),
                     .after = tuple_of(after, id, name, big)};

    OK(batch_apply(batch, &map, &change, &origin, &err));
}

static void
delete_id(Batch *batch, const char *id)
{
    Error err = {0};
    Datum old[4];
    Change change = {.op = OP_DELETE, .old_kind = OLD_KEY, .old = tuple_of(old, id, NULL, NULL)};

    OK(batch_apply(batch, &map, &change, &origin, &err));
}

static void
truncate_table(Batch *batch)
{
    Error err = {0};
    Change change = {.op = OP_TRUNCATE};

    OK(batch_apply(batch, &map, &change, &origin, &err));
}

/* The key hash of an id, by way of a batch of its own. */
static Hash128
key_of(const TableSchema *schema, const char *id)
{
    Error err = {0};
    Datum datums[4];
    Batch *batch = batch_new(schema, false);

    tuple_of(datums, id, NULL, NULL);
    OK(batch_append_row(batch, &map, datums, &origin, &err));

    Hash128 key = BUF_AT(&batch->keys, Hash128, 0);

    batch_free(batch);
    return key;
}

static bool
is_dead(const Batch *batch, size_t row)
{
    return BUF_AT(&batch->dead, uint8_t, row) != 0;
}

static void
assert_counts(const Batch *batch, size_t rows, size_t live, size_t deletes, size_t patches)
{
    assert_int_equal(batch->rows, rows);
    assert_int_equal(batch->live_rows, live);
    assert_int_equal(BUF_COUNT(&batch->deletes, Hash128), deletes);
    assert_int_equal(BUF_COUNT(&batch->patches, Patch), patches);
    assert_int_equal(BUF_COUNT(&batch->keys, Hash128), rows);
    assert_int_equal(batch->dead.len, rows);
}

static void
assert_text(const Batch *batch, int column, size_t row, const char *text)
{
    assert_false(column_is_null(&batch->columns[column], row));
    assert_true(str_eqc(column_bytes(&batch->columns[column], row), text));
}

/* --- By hand --------------------------------------------------------------------------------- */

typedef struct Fixture {
    TableSchema *schema;
    Batch *batch;
} Fixture;

static int
set_up(void **state)
{
    Fixture *fixture = xcalloc(1, sizeof *fixture);

    fixture->schema = new_table(KEY_COLUMNS, 1);
    fixture->batch = batch_new(fixture->schema, true);
    *state = fixture;
    return 0;
}

static int
tear_down(void **state)
{
    Fixture *fixture = *state;

    batch_free(fixture->batch);
    schema_unref(fixture->schema);
    free(fixture);
    return 0;
}

static void
what_came_and_went_leaves_nothing(void **state)
{
    Batch *batch = ((Fixture *) *state)->batch;

    for (int i = 0; i < 1000; i++) {
        insert(batch, "1", "a", "b");
        delete_id(batch, "1");
    }
    batch_seal(batch);
    assert_counts(batch, 1000, 0, 0, 0);
    batch_reset(batch);
    insert(batch, "1", "a", "b");
    assert_counts(batch, 1, 1, 0, 0);
}

static void
a_deleted_key_that_comes_back_is_deleted_once(void **state)
{
    Fixture *fixture = *state;
    Batch *batch = fixture->batch;

    delete_id(batch, "1");
    insert(batch, "1", "a", "b");
    delete_id(batch, "1");
    insert(batch, "1", "c", "d");
    batch_seal(batch);
    assert_counts(batch, 2, 1, 1, 0);
    assert_true(hash128_eq(BUF_AT(&batch->deletes, Hash128, 0), key_of(fixture->schema, "1")));
    assert_true(is_dead(batch, 0));
    assert_text(batch, 1, 1, "c");
}

static void
unsent_values_come_from_the_batch_or_the_lake(void **state)
{
    Fixture *fixture = *state;
    Batch *batch = fixture->batch;

    insert(batch, "1", "a", "long");
    update(batch, NULL, "1", "b", UNSENT);    /* from the row before it */
    update(batch, NULL, "2", "c", UNSENT);    /* from the lake */
    update(batch, NULL, "2", "d", UNSENT);    /* still from the lake */
    update(batch, "2", "3", UNSENT, UNSENT);  /* the name is known, big still is not */
    update(batch, NULL, "4", UNSENT, UNSENT); /* both from the lake ... */
    update(batch, NULL, "4", "e", UNSENT);
    update(batch, NULL, "4", UNSENT, "short"); /* ... then neither */
    batch_seal(batch);
    assert_counts(batch, 8, 3, 2, 1);
    assert_text(batch, 1, 1, "b");
    assert_text(batch, 2, 1, "long");

    Patch patch = BUF_AT(&batch->patches, Patch, 0);

    assert_int_equal(patch.row, 4);
    assert_int_equal(patch.column, 2);
    assert_true(hash128_eq(patch.source, key_of(fixture->schema, "2")));
    assert_text(batch, 1, 4, "d");
    assert_text(batch, 1, 7, "e");
    assert_text(batch, 2, 7, "short");
}

static void
keys_can_move_and_swap(void **state)
{
    Fixture *fixture = *state;
    Batch *batch = fixture->batch;

    update(batch, "1", "-1", "one", UNSENT);
    update(batch, "2", "1", "two", UNSENT);
    update(batch, "-1", "2", "one", UNSENT);
    batch_seal(batch);
    assert_counts(batch, 3, 2, 2, 2);
    assert_true(hash128_eq(BUF_AT(&batch->patches, Patch, 0).source, key_of(fixture->schema, "2")));
    assert_int_equal(BUF_AT(&batch->patches, Patch, 0).row, 1);
    assert_true(hash128_eq(BUF_AT(&batch->patches, Patch, 1).source, key_of(fixture->schema, "1")));
    assert_int_equal(BUF_AT(&batch->patches, Patch, 1).row, 2);

    batch_reset(batch);
    update(batch, "1", "2", "moved", "x");
    insert(batch, "1", "new", "y");
    delete_id(batch, "2");
    batch_seal(batch);
    assert_counts(batch, 2, 1, 1, 0);
    assert_text(batch, 1, 1, "new");
}

static void
truncate_forgets_what_was(void **state)
{
    Batch *batch = ((Fixture *) *state)->batch;
    Error err = {0};
    Datum after[4];

    insert(batch, "1", "a", "b");
    update(batch, NULL, "2", "c", UNSENT);
    delete_id(batch, "3");
    truncate_table(batch);
    assert_true(batch->truncated);
    assert_int_equal(batch->live_rows, 0);
    insert(batch, "1", "d", "e");
    update(batch, NULL, "1", "f", UNSENT);
    delete_id(batch, "7");

    /* nothing is left that the value could be taken from */
    Change change = {.op = OP_UPDATE, .after = tuple_of(after, "2", "x", UNSENT)};
    size_t rows = batch->rows;

    FAILS(batch_apply(batch, &map, &change, &origin, &err), ERR_INPUT);
    assert_int_equal(batch->rows, rows);
    batch_seal(batch);
    assert_counts(batch, 2, 1, 0, 0);
    assert_text(batch, 2, 1, "e");
    batch_reset(batch);
    assert_false(batch->truncated);
}

static void
replayed_inserts_replace(void **state)
{
    Batch *batch = ((Fixture *) *state)->batch;

    batch_set_inserts_replace(batch, true);
    insert(batch, "1", "a", "b");
    insert(batch, "1", "c", "d");
    update(batch, "1", "2", "e", UNSENT);
    delete_id(batch, "3");
    insert(batch, "3", "f", "g");
    batch_seal(batch);
    assert_counts(batch, 4, 2, 3, 0); /* 1, 2 and 3, each once */
    assert_text(batch, 2, 2, "d");
}

static void
rejects_are_recorded_once(void **state)
{
    Batch *batch = ((Fixture *) *state)->batch;
    Error err = {0};
    Datum old[4];
    Datum after[4];
    Change change;

    insert(batch, "7", "bad \xff utf8 \xC3\xA9", "fine");
    update(batch, NULL, "7", UNSENT, "\xC3");
    assert_int_equal(BUF_COUNT(&batch->rejects, Reject), 2);
    assert_true(column_is_null(&batch->columns[1], 1));
    assert_true(column_is_null(&batch->columns[2], 1));

    Reject reject = BUF_AT(&batch->rejects, Reject, 0);
    const char *bytes = batch->reject_bytes.ptr;

    assert_int_equal(reject.column, 1);
    assert_int_equal(reject.position, 0x100);
    assert_int_equal(reject.commit_time_us, 1234567);
    assert_memory_equal(bytes + reject.value.offset, "bad \\xff utf8 \xC3\xA9",
                        reject.value.length);
    assert_int_equal(reject.value.length, strlen("bad \\xff utf8 \xC3\xA9"));
    assert_memory_equal(bytes + reject.key.offset, "{\"id\":7}", reject.key.length);
    assert_int_equal(reject.key.length, 8);
    assert_memory_equal(bytes + reject.reason.offset, "not valid UTF-8", reject.reason.length);
    reject = BUF_AT(&batch->rejects, Reject, 1);
    assert_memory_equal(bytes + reject.value.offset, "\\xc3", 4);
    assert_int_equal(reject.value.length, 4);

    /* a key that is itself a reject, and an old tuple with one */
    insert(batch, "99999999999", "a", "b");
    reject = BUF_AT(&batch->rejects, Reject, 2);
    assert_memory_equal(batch->reject_bytes.ptr + reject.key.offset, "{\"id\":\"99999999999\"}",
                        reject.key.length);
    change = (Change){.op = OP_UPDATE,
                      .old_kind = OLD_ROW,
                      .old = tuple_of(old, "99999999999", "a", "\xff"),
                      .after = tuple_of(after, "1", "b", UNSENT)};
    OK(batch_apply(batch, &map, &change, &origin, &err));
    assert_int_equal(BUF_COUNT(&batch->rejects, Reject), 3);
    batch_seal(batch);
    assert_int_equal(batch->live_rows, 2);
    assert_true(column_is_null(&batch->columns[2], 3));
}

static void
what_cannot_be_folded_is_refused(void **state)
{
    Batch *batch = ((Fixture *) *state)->batch;
    Error err = {0};
    Datum old[4];
    Datum after[4];
    Change change = {.op = OP_INSERT, .after = tuple_of(after, "1", "a", UNSENT)};

    FAILS(batch_apply(batch, &map, &change, &origin, &err), ERR_BUG);
    change = (Change){.op = OP_INSERT, .after = {.count = 3, .datums = after}};
    FAILS(batch_apply(batch, &map, &change, &origin, &err), ERR_BUG);
    change = (Change){.op = OP_UPDATE, .after = tuple_of(after, UNSENT, "a", "b")};
    FAILS(batch_apply(batch, &map, &change, &origin, &err), ERR_INPUT);
    change = (Change){.op = OP_DELETE};
    FAILS(batch_apply(batch, &map, &change, &origin, &err), ERR_BUG);
    change =
        (Change){.op = OP_DELETE, .old_kind = OLD_KEY, .old = tuple_of(old, UNSENT, NULL, NULL)};
    FAILS(batch_apply(batch, &map, &change, &origin, &err), ERR_BUG);
    assert_counts(batch, 0, 0, 0, 0);

    TableSchema *schema = new_table(KEY_NONE, 0);
    Batch *keyless = batch_new(schema, true);

    insert(keyless, "1", "a", "b");
    insert(keyless, "1", "a", "b");
    change = (Change){.op = OP_DELETE, .old_kind = OLD_KEY, .old = tuple_of(old, "1", NULL, NULL)};
    FAILS(batch_apply(keyless, &map, &change, &origin, &err), ERR_INPUT);
    assert_int_equal(keyless->live_rows, 2);
    assert_int_equal(keyless->keys.len, 0);
    truncate_table(keyless);
    assert_int_equal(keyless->live_rows, 0);
    batch_free(keyless);
    schema_unref(schema);

    schema = new_table(KEY_FULL_ROW, 0);
    keyless = batch_new(schema, true);
    FAILS(batch_apply(keyless, &map, &change, &origin, &err), ERR_INPUT);
    batch_free(keyless);
    schema_unref(schema);
}

static void
memory_is_counted_as_it_is_used(void **state)
{
    Batch *batch = ((Fixture *) *state)->batch;
    size_t before = batch_memory(batch);
    char id[16];
    char big[1000];

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_true(before < 1000);
    for (int i = 0; i < 10000; i++) {
        snprintf(id, sizeof id, "%d", i);
        insert(batch, id, "name", big);
    }

    size_t held = batch->columns[0].valid.len + batch->columns[0].values.len + batch->dead.len +
                  batch->keys.len + column_memory(&batch->columns[1]) +
                  column_memory(&batch->columns[2]);

    assert_in_range(batch_memory(batch), held, held + held / 10);
    batch_reset(batch);
    assert_int_equal(batch_memory(batch), before);
}

/* --- Against the model ----------------------------------------------------------------------- */

/* A row of the model; values of the text columns may be NULL. */
typedef struct Row {
    int id;
    bool name_null;
    char name[VALUE_MAX];
    char big[VALUE_MAX];
} Row;

typedef struct Rows {
    size_t count;
    Row rows[512];
} Rows;

typedef struct Random {
    uint64_t state;
} Random;

/* splitmix64 */
static uint32_t
draw(Random *random, uint32_t below)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t) ((z ^ (z >> 31)) % below);
}

static Row *
find_row(Rows *rows, int id)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->rows[i].id == id)
            return &rows->rows[i];
    return NULL;
}

static void
drop_row(Rows *rows, Row *row)
{
    *row = rows->rows[--rows->count];
}

static void
add_row(Rows *rows, const Row *row)
{
    assert_true(rows->count < 512);
    rows->rows[rows->count++] = *row;
}

static int
compare_rows(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(Row));
}

static void
assert_same_rows(Rows *lake, Rows *model)
{
    assert_int_equal(lake->count, model->count);
    qsort(lake->rows, lake->count, sizeof(Row), compare_rows);
    qsort(model->rows, model->count, sizeof(Row), compare_rows);
    assert_memory_equal(lake->rows, model->rows, model->count * sizeof(Row));
}

static Row
random_row(Random *random, int id)
{
    Row row;

    memset(&row, 0, sizeof row); /* padding is compared too */
    row.id = id;
    row.name_null = draw(random, 5) == 0;
    if (!row.name_null)
        snprintf(row.name, sizeof row.name, "name %u", draw(random, 3));
    snprintf(row.big, sizeof row.big, "big %u", draw(random, 3));
    return row;
}

static Tuple
tuple_of_row(Datum datums[4], const Row *row, char id[16], bool send_big)
{
    snprintf(id, 16, "%d", row->id);
    return tuple_of(datums, id, row->name_null ? NULL : row->name, send_big ? row->big : UNSENT);
}

static Row
row_of_batch(const Batch *batch, size_t row)
{
    Row out;

    memset(&out, 0, sizeof out);
    out.id = BUF_AT(&batch->columns[0].values, int32_t, row);
    out.name_null = column_is_null(&batch->columns[1], row);
    if (!out.name_null)
        snprintf(out.name, sizeof out.name, "%.*s", STR_ARG(column_bytes(&batch->columns[1], row)));
    if (!column_is_null(&batch->columns[2], row))
        snprintf(out.big, sizeof out.big, "%.*s", STR_ARG(column_bytes(&batch->columns[2], row)));
    return out;
}

/* The hash under which the batch's deletes name a row of the lake, from typed values. */
static Hash128
key_of_row(const TableSchema *schema, const Row *row)
{
    Column columns[COLUMNS];
    AUTO_BUF Buf scratch = {0};

    for (int c = 0; c < COLUMNS; c++)
        column_init(&columns[c], schema->columns[c].field.type);
    column_append_fixed(&columns[0], &row->id);
    if (row->name_null)
        column_append_null(&columns[1]);
    else
        column_append_bytes(&columns[1], str_of(row->name));
    column_append_bytes(&columns[2], str_of(row->big));

    Hash128 key = key_hash(schema, columns, 0, &scratch);

    for (int c = 0; c < COLUMNS; c++)
        column_done(&columns[c]);
    return key;
}

static Row *
find_key(const TableSchema *schema, Rows *lake, Hash128 key)
{
    for (size_t i = 0; i < lake->count; i++)
        if (hash128_eq(key_of_row(schema, &lake->rows[i]), key))
            return &lake->rows[i];
    return NULL;
}

/* What a sink does, in the order that model/batch.h gives. */
static void
apply_to_lake(Batch *batch, Rows *lake, bool lenient)
{
    for (size_t i = 0; i < BUF_COUNT(&batch->patches, Patch); i++) {
        Patch patch = BUF_AT(&batch->patches, Patch, i);
        Row *source = find_key(batch->schema, lake, patch.source);
        Column values;

        assert_int_equal(patch.column, 2);
        assert_false(is_dead(batch, patch.row));
        assert_false(batch->truncated);
        if (source == NULL && lenient)
            continue;
        assert_non_null(source);
        column_init(&values, batch->schema->columns[2].field.type);
        column_append_bytes(&values, str_of(source->big));
        column_set_copy(&batch->columns[2], patch.row, &values, 0);
        column_done(&values);
    }
    if (batch->truncated)
        lake->count = 0;
    for (size_t i = 0; i < BUF_COUNT(&batch->deletes, Hash128); i++) {
        Row *row = find_key(batch->schema, lake, BUF_AT(&batch->deletes, Hash128, i));

        /* once each, and only what is there */
        if (row == NULL && lenient)
            continue;
        assert_non_null(row);
        drop_row(lake, row);
    }

    size_t live = 0;

    for (size_t row = 0; row < batch->rows; row++) {
        if (is_dead(batch, row))
            continue;
        live++;

        Row added = row_of_batch(batch, row);

        assert_true(
            hash128_eq(BUF_AT(&batch->keys, Hash128, row), key_of_row(batch->schema, &added)));
        if (batch->schema->key_mode == KEY_COLUMNS)
            assert_null(find_row(lake, added.id));
        add_row(lake, &added);
    }
    assert_int_equal(live, batch->live_rows);
}

typedef struct Play {
    Random *random;
    Batch *batch;
    Rows *model;
    int ids;    /* ids are 0 .. ids-1 */
    bool full;  /* REPLICA IDENTITY FULL */
    bool twins; /* ids need not be unique */
} Play;

static void
play_insert(Play *play)
{
    Error err = {0};
    Datum after[4];
    char id[16];
    Row row = random_row(play->random, (int) draw(play->random, (uint32_t) play->ids));

    if (!play->twins && find_row(play->model, row.id) != NULL)
        return;
    if (play->model->count > 400)
        return;

    Change change = {.op = OP_INSERT, .after = tuple_of_row(after, &row, id, true)};

    OK(batch_apply(play->batch, &map, &change, &origin, &err));
    add_row(play->model, &row);
}

static Row *
pick_row(Play *play)
{
    if (play->model->count == 0)
        return NULL;
    return &play->model->rows[draw(play->random, (uint32_t) play->model->count)];
}

static void
set_old(const Play *play, Change *change, Datum old[4], const Row *row, char id[16])
{
    change->old = tuple_of_row(old, row, id, true);
    change->old_kind = OLD_ROW;
    if (play->full)
        return;
    change->old_kind = OLD_KEY;
    old[0] = datum_of(NULL);
    old[3] = datum_of(NULL);
}

static void
play_update(Play *play)
{
    Error err = {0};
    Datum old[4];
    Datum after[4];
    char old_id[16];
    char id[16];
    Row *row = pick_row(play);
    bool move = draw(play->random, 4) == 0;
    bool send_big = draw(play->random, 2) == 0;

    if (row == NULL)
        return;

    Row now =
        random_row(play->random, move ? (int) draw(play->random, (uint32_t) play->ids) : row->id);

    if (!play->twins && now.id != row->id && find_row(play->model, now.id) != NULL)
        return;
    if (!send_big)
        memcpy(now.big, row->big, sizeof now.big);

    Change change = {.op = OP_UPDATE, .after = tuple_of_row(after, &now, id, send_big)};

    /* a server may send the old key even when it did not change */
    if (play->full || now.id != row->id || draw(play->random, 4) == 0)
        set_old(play, &change, old, row, old_id);
    OK(batch_apply(play->batch, &map, &change, &origin, &err));
    *row = now;
}

static void
play_delete(Play *play)
{
    Error err = {0};
    Datum old[4];
    char id[16];
    Row *row = pick_row(play);
    Change change = {.op = OP_DELETE};

    if (row == NULL)
        return;
    set_old(play, &change, old, row, id);
    OK(batch_apply(play->batch, &map, &change, &origin, &err));
    drop_row(play->model, row);
}

static void
play_some(Play *play)
{
    uint32_t changes = draw(play->random, 40);
    bool truncates = draw(play->random, 20) == 0;

    for (uint32_t i = 0; i < changes; i++) {
        uint32_t what = draw(play->random, 100);

        if (what < 35) {
            play_insert(play);
        } else if (what < 75) {
            play_update(play);
        } else if (what < 97 || !truncates) {
            play_delete(play);
        } else {
            truncate_table(play->batch);
            play->model->count = 0;
        }
    }
}

static void
play_tables(KeyMode mode, bool full, int tables)
{
    Rows *lake = xcalloc(1, sizeof *lake);
    Rows *model = xcalloc(1, sizeof *model);
    TableSchema *schema = new_table(mode, mode == KEY_COLUMNS ? 1 : 0);
    Batch *batch = batch_new(schema, true);

    for (int table = 0; table < tables; table++) {
        Random random = {.state = (uint64_t) table};
        Play play = {.random = &random,
                     .batch = batch,
                     .model = model,
                     .ids = 1 + (int) draw(&random, 30),
                     .full = full,
                     .twins = mode == KEY_FULL_ROW};

        lake->count = 0;
        model->count = 0;
        for (int round = 0; round < 4; round++) {
            batch_reset(batch);
            play_some(&play);
            batch_seal(batch);
            apply_to_lake(batch, lake, false);
            assert_same_rows(lake, model);
        }
    }
    batch_free(batch);
    schema_unref(schema);
    free(lake);
    free(model);
}

static void
model_with_a_key(void **state)
{
    (void) state;
    play_tables(KEY_COLUMNS, false, 10000);
}

static void
model_with_a_key_and_full_identity(void **state)
{
    (void) state;
    play_tables(KEY_COLUMNS, true, 5000);
}

static void
model_of_whole_rows(void **state)
{
    (void) state;
    play_tables(KEY_FULL_ROW, true, 10000);
}

/* The copy was taken later than where the stream starts: the changes between are replayed over what
 * they already did, and the end is the same. */
static void
model_of_a_replay_over_a_copy(void **state)
{
    (void) state;

    Rows *lake = xcalloc(1, sizeof *lake);
    Rows *model = xcalloc(1, sizeof *model);
    TableSchema *schema = new_table(KEY_COLUMNS, 1);
    Batch *before = batch_new(schema, true);
    Batch *batch = batch_new(schema, true);

    for (int table = 0; table < 3000; table++) {
        Random random = {.state = 77777u + (uint64_t) table};
        Play play = {
            .random = &random, .batch = before, .model = model, .ids = 1 + (int) draw(&random, 30)};

        lake->count = 0;
        model->count = 0;
        batch_reset(before);
        play_some(&play); /* before the stream starts */
        batch_reset(batch);
        batch_set_inserts_replace(batch, true);
        play.batch = batch;
        play.full = true; /* so that no value is missing in the middle of the replay */
        play_some(&play);
        *lake = *model; /* the copy */
        play_some(&play);
        batch_seal(batch);
        apply_to_lake(batch, lake, true);
        assert_same_rows(lake, model);
    }
    batch_free(before);
    batch_free(batch);
    schema_unref(schema);
    free(lake);
    free(model);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_came_and_went_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_deleted_key_that_comes_back_is_deleted_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(unsent_values_come_from_the_batch_or_the_lake, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(keys_can_move_and_swap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(truncate_forgets_what_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(replayed_inserts_replace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rejects_are_recorded_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_folded_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_is_counted_as_it_is_used, set_up, tear_down),
        cmocka_unit_test(model_with_a_key),
        cmocka_unit_test(model_with_a_key_and_full_identity),
        cmocka_unit_test(model_of_whole_rows),
        cmocka_unit_test(model_of_a_replay_over_a_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
