/* Folding against a naive model: whatever sequence of changes goes into a batch, the lake after
 * "truncate, delete `deletes`, add the live rows with their patches" must be the table after the
 * same changes were applied one by one to a plain list of rows. */
#include "random.h"
#include "small_table.h"

#include <stdlib.h>

enum { VALUE_MAX = 48 };

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
        cmocka_unit_test(model_with_a_key),
        cmocka_unit_test(model_with_a_key_and_full_identity),
        cmocka_unit_test(model_of_whole_rows),
        cmocka_unit_test(model_of_a_replay_over_a_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
