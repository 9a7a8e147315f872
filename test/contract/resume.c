/* The contract of sink/sink.h for copies that are interrupted: bulk_record() and resume(), and what
 * a table does while it is hidden. What a reader then finds is for the end-to-end tests. */
#include "sink_bench.h"

/* Rows [from, to) as of a moment, which outlive the process. */
static SinkLoaded
load_and_record(Bench *bench, SinkTable *table, int from, int to, Position position)
{
    Error err = {0};
    SinkLoaded loaded;

    OK(load_range(bench, table, from, to, false, &err));
    OK(sink_bulk_record(bench->sink, table,
                        &(BulkDone){.position = position, .count = 1, .loads = &from}, bench->arena,
                        &loaded, &err));
    assert_int_equal(loaded.rows, to - from);
    return loaded;
}

static SinkTable *
reopen_to_resume(Bench *bench)
{
    Error err = {0};
    SinkTable *table = NULL;

    sink_close(bench->sink);
    open_sink(bench);
    OK(sink_attach(bench->sink, &(SinkAttach){.schema = bench->schema, .resume = true}, &table,
                   &err));
    return table;
}

static SinkTable *
resume(Bench *bench, size_t count, const SinkLoaded *loaded)
{
    Error err = {0};
    SinkTable *table = reopen_to_resume(bench);

    OK(sink_resume(bench->sink, table,
                   &(SinkResume){.schema = bench->schema, .count = count, .loaded = loaded}, &err));
    return table;
}

static Batch *
replay(const SinkTable *table)
{
    Batch *batch = batch_new(table->schema, true);

    batch_set_inserts_replace(batch, true);
    return batch;
}

static void
a_copy_goes_on_in_another_process(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Error err = {0};
    SinkLoaded loaded[2];

    loaded[0] = load_and_record(bench, table, 0, 500, 100);
    OK(load_range(bench, table, 500, 700, false, &err)); /* not recorded: gone */
    table = resume(bench, 1, loaded);
    OK(load_range(bench, table, 500, 1000, false, &err));
    OK(sink_bulk_commit(bench->sink, table, 100, &err)); /* all of one moment: shown */
    assert_true(table->hidden_until == POSITION_NONE && table->position == 100);
    assert_int_equal(table->rows, 1000);

    Batch *batch = replay(table); /* the index has the rows of both processes */

    for (int id = 0; id < 1000; id += 10)
        apply(batch, OP_DELETE, id, "");
    write_and_free(bench, table, batch);
    commit(bench, table, 200);
    table = reopen(bench);
    assert_int_equal(table->rows, 900);
}

/* Of a table with rows [0, 100) of the first moment and [50, 200) of the second. */
static Batch *
changes_between(const SinkTable *table)
{
    Batch *batch = replay(table);

    for (int id = 50; id < 100; id++)
        apply(batch, OP_UPDATE, id, id % 2 == 0 ? NULL : "moved");
    apply(batch, OP_UPDATE, 7, NULL);      /* of the first moment: its note is there */
    apply(batch, OP_DELETE, 8, "");        /* the same */
    apply(batch, OP_DELETE, 150, "");      /* came again before the second moment */
    apply(batch, OP_INSERT, 151, "a row"); /* it has it already */
    apply(batch, OP_INSERT, 300, "a row"); /* missed by both */
    apply(batch, OP_DELETE, 301, "");      /* never was there */
    return batch;
}

static void
rows_of_two_moments_are_hidden_until_they_are_of_one(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Error err = {0};
    SinkLoaded loaded[2];

    loaded[0] = load_and_record(bench, table, 0, 100, 100);
    table = resume(bench, 1, loaded);
    loaded[1] = load_and_record(bench, table, 50, 200, 200); /* 50 to 99 were moved */
    for (int round = 0; round < 3; round++) {
        if (round > 0)
            table = resume(bench, 2, loaded);
        OK(sink_bulk_commit(bench->sink, table, 200, &err));
        OK(sink_bulk_commit(bench->sink, table, 200, &err)); /* may be repeated */
        assert_true(table->position == POSITION_NONE);
        assert_true(table->replay_from == 100 && table->hidden_until == 200);

        write_and_free(bench, table, changes_between(table));
        commit(bench, table, 150);
        assert_true(table->position == POSITION_NONE);
        if (round == 1) /* dropped, and begun again with what was recorded */
            assert_true(sink_abandon(bench->sink, table, &err));
        assert_true((table->hidden_until == POSITION_NONE) == (round == 1));
    }
    commit(bench, table, 200);
    assert_true(table->position == 200 && table->hidden_until == POSITION_NONE);
    assert_int_equal(table->rows, 200);
    table = reopen(bench);
    assert_int_equal(table->rows, 200);
}

/* One batch that is refused in a hidden table of rows [0, 10) and, later, [5, 20). */
static void
refused(Bench *bench, Batch *(*make)(const SinkTable *table))
{
    Error err = {0};
    SinkLoaded loaded[1];
    SinkTable *table = attach(bench);

    loaded[0] = load_and_record(bench, table, 0, 10, 100);
    table = resume(bench, 1, loaded);
    OK(load_range(bench, table, 5, 20, false, &err));
    OK(sink_bulk_commit(bench->sink, table, 200, &err));

    Batch *batch = make(table);

    batch_seal(batch);
    FAILS(sink_write(bench->sink, table, batch, &err), ERR_COPY);
    batch_free(batch);
    OK(sink_abandon(bench->sink, table, &err));
    OK(sink_replace(bench->sink, table, bench->schema, &err));
    copy_rows(bench, table, 5);
    assert_int_equal(table->rows, 5);
}

static Batch *
update_of_a_missing_row(const SinkTable *table)
{
    Batch *batch = replay(table);

    apply(batch, OP_UPDATE, 500, NULL);
    return batch;
}

static Batch *
key_change(const SinkTable *table, const char *id)
{
    Error err = {0};
    Batch *batch = replay(table);
    Datum old[2] = {{DATUM_TEXT, str_of(id)}, {DATUM_NULL, STR("")}};
    Datum after[2] = {{DATUM_TEXT, STR("600")}, {DATUM_UNCHANGED, STR("")}};
    Change change = {.op = OP_UPDATE,
                     .old_kind = OLD_KEY,
                     .old = {.count = 2, .datums = old},
                     .after = {.count = 2, .datums = after}};

    OK(batch_apply(batch, &map, &change, &(ChangeOrigin){.position = 1}, &err));
    return batch;
}

static Batch *
key_change_of_a_newer_row(const SinkTable *table)
{
    return key_change(table, "15");
}

static Batch *
key_change_of_a_row_of_both(const SinkTable *table)
{
    return key_change(table, "7");
}

static Batch *
truncate(const SinkTable *table)
{
    Batch *batch = replay(table);

    apply(batch, OP_TRUNCATE, 0, "");
    return batch;
}

static void
a_missing_row_is_never_guessed(void **state)
{
    refused(*state, update_of_a_missing_row);
}

static void
a_newer_row_lends_no_values(void **state)
{
    refused(*state, key_change_of_a_newer_row);
}

static void
a_row_of_both_moments_lends_none_either(void **state)
{
    refused(*state, key_change_of_a_row_of_both);
}

static void
a_truncate_between_two_moments_is_refused(void **state)
{
    refused(*state, truncate);
}

static void
what_was_recorded_must_fit(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Error err = {0};
    SinkLoaded loaded = load_and_record(bench, table, 0, 100, 100);
    SinkLoaded other = loaded;
    SinkResume wish = {.schema = bench->schema, .count = 1, .loaded = &other};
    char command[128];

    other.shape = "another";
    table = reopen_to_resume(bench);
    FAILS(sink_resume(bench->sink, table, &wish, &err), ERR_COPY);
    other = loaded;
    other.files = "public/t/metadata/copy-none.avro";
    FAILS(sink_resume(bench->sink, table, &wish, &err), ERR_COPY);
    other = loaded;
    OK(sink_resume(bench->sink, table, &wish, &err));
    snprintf(command, sizeof command, "find %s/lake -name '*.parquet' | head -1 | xargs rm",
             bench->folder);
    assert_int_equal(system(command), 0);
    FAILS(sink_resume(bench->sink, table, &wish, &err), ERR_COPY);
    OK(sink_replace(bench->sink, table, bench->schema, &err));
    copy_rows(bench, table, 10);
    assert_int_equal(table->rows, 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_copy_goes_on_in_another_process),
        CASE(rows_of_two_moments_are_hidden_until_they_are_of_one),
        CASE(a_missing_row_is_never_guessed),
        CASE(a_newer_row_lends_no_values),
        CASE(a_row_of_both_moments_lends_none_either),
        CASE(a_truncate_between_two_moments_is_refused),
        CASE(what_was_recorded_must_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
