/* Folding, case by case. The same against a model is in fold_model.c. */
#include "small_table.h"

#include <stdlib.h>

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

/* A sink that has newer rows of some keys. */
static void
rows_of_a_key_can_be_killed(void **state)
{
    Fixture *fixture = *state;
    Batch *batch = fixture->batch;
    Hash128 keys[2];

    batch_set_inserts_replace(batch, true);
    insert(batch, "1", "a", "b");
    update(batch, NULL, "2", "c", UNSENT);
    update(batch, "3", "4", "d", UNSENT);
    delete_id(batch, "5");
    insert(batch, "6", "e", "f");
    batch_seal(batch);
    assert_counts(batch, 4, 4, 6, 2);
    batch_kill_keys(batch, NULL, 0);
    assert_counts(batch, 4, 4, 6, 2);

    keys[0] = key_of(fixture->schema, "2");
    keys[1] = key_of(fixture->schema, "6");
    if (hash128_cmp(keys[0], keys[1]) > 0) {
        keys[1] = keys[0];
        keys[0] = key_of(fixture->schema, "6");
    }
    for (int i = 0; i < 2; i++) { /* again changes nothing */
        batch_kill_keys(batch, keys, 2);
        assert_counts(batch, 4, 2, 6, 1);
        assert_true(!is_dead(batch, 0) && is_dead(batch, 1));
        assert_true(!is_dead(batch, 2) && is_dead(batch, 3));
        assert_int_equal(BUF_AT(&batch->patches, Patch, 0).row, 2);
    }
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

    /* an old tuple with one */
    change = (Change){.op = OP_UPDATE,
                      .old_kind = OLD_ROW,
                      .old = tuple_of(old, "7", "a", "\xff"),
                      .after = tuple_of(after, "1", "b", UNSENT)};
    OK(batch_apply(batch, &map, &change, &origin, &err));
    assert_int_equal(BUF_COUNT(&batch->rejects, Reject), 2);
    batch_seal(batch);
    assert_int_equal(batch->live_rows, 1);
    assert_true(column_is_null(&batch->columns[2], 2));
}

/* What is longer is NULL, and recorded by its beginning, which ends with a whole character. */
static void
a_value_beyond_the_limit_is_a_reject(void **state)
{
    Batch *batch = ((Fixture *) *state)->batch;
    AUTO_BUF Buf big = {0};

    batch_set_value_limit(batch, 1499);
    buf_byte(&big, 'a');
    for (int i = 0; i < 749; i++)
        buf_cstr(&big, "\xC3\xA9");
    insert(batch, "1", "fits", buf_text(&big));
    buf_byte(&big, 'z');
    insert(batch, "2", "fits", buf_text(&big));
    assert_false(column_is_null(&batch->columns[2], 0));
    assert_true(column_is_null(&batch->columns[2], 1));
    assert_text(batch, 1, 1, "fits");
    assert_int_equal(BUF_COUNT(&batch->rejects, Reject), 1);

    Reject reject = BUF_AT(&batch->rejects, Reject, 0);
    const char *why = "longer than value_limit: 1500 bytes";

    assert_int_equal(reject.value.length, 999);
    assert_memory_equal(batch->reject_bytes.ptr + reject.value.offset, big.ptr, 999);
    assert_int_equal(reject.reason.length, strlen(why));
    assert_memory_equal(batch->reject_bytes.ptr + reject.reason.offset, why, strlen(why));
}

/* Of such a row there is nothing in the batch but what was wrong with it. */
static void
a_key_that_cannot_be_held_is_refused(void **state)
{
    Batch *batch = ((Fixture *) *state)->batch;
    Error err = {0};
    Datum old[4];
    Datum after[4];
    Change change = {.op = OP_INSERT, .after = tuple_of(after, "99999999999", "a", "b")};

    insert(batch, "1", "a", "b");
    FAILS(batch_apply(batch, &map, &change, &origin, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "key column id"));
    assert_non_null(strstr(err.msg, "{id: {cast: string}}"));
    assert_int_equal(BUF_COUNT(&batch->rejects, Reject), 1);

    Reject reject = BUF_AT(&batch->rejects, Reject, 0);

    assert_memory_equal(batch->reject_bytes.ptr + reject.key.offset, "{\"id\":\"99999999999\"}",
                        reject.key.length);
    change = (Change){.op = OP_UPDATE,
                      .old_kind = OLD_KEY,
                      .old = tuple_of(old, "1", NULL, NULL),
                      .after = tuple_of(after, "88888888888", "c", "d")};
    FAILS(batch_apply(batch, &map, &change, &origin, &err), ERR_INPUT);
    assert_int_equal(BUF_COUNT(&batch->rejects, Reject), 2);
    change = (Change){
        .op = OP_DELETE, .old_kind = OLD_KEY, .old = tuple_of(old, "99999999999", NULL, NULL)};
    FAILS(batch_apply(batch, &map, &change, &origin, &err), ERR_INPUT);
    assert_int_equal(BUF_COUNT(&batch->rejects, Reject), 2); /* recorded when it came */
    assert_counts(batch, 1, 1, 0, 0);
    assert_text(batch, 1, 0, "a");
}

static void
a_copied_key_that_cannot_be_held_is_refused(void **state)
{
    Batch *batch = batch_new(((Fixture *) *state)->batch->schema, false);
    Error err = {0};
    Datum datums[4];

    tuple_of(datums, "99999999999", "a", "b");
    FAILS(batch_append_row(batch, &map, datums, &origin, &err), ERR_INPUT);
    assert_int_equal(BUF_COUNT(&batch->rejects, Reject), 1);
    assert_int_equal(batch->rows, 0);
    batch_free(batch);
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
        cmocka_unit_test_setup_teardown(rows_of_a_key_can_be_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rejects_are_recorded_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_value_beyond_the_limit_is_a_reject, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_that_cannot_be_held_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_copied_key_that_cannot_be_held_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_folded_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_is_counted_as_it_is_used, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
