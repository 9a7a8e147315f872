/* The contract of sink/sink.h, against every sink (one so far), in a warehouse of its own. What the
 * lake then holds is read by other programs in the end-to-end tests; here it is what the sink says
 * about itself, also after it was opened anew. */
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>

#include "sink_bench.h"

/* --- the contract ---------------------------------------------------------------------------- */

static void
a_new_table_has_no_position(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    assert_true(table->position == POSITION_NONE);
    assert_string_equal(table->lake_name, "public.t");
    table = reopen(bench);
    assert_true(table->position == POSITION_NONE);
}

static void
rows_and_position_appear_together(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 1000);
    assert_int_equal(table->rows, 1000);
    table = reopen(bench);
    assert_true(table->position == 100);
    assert_int_equal(table->rows, 1000);

    Batch *batch = batch_new(table->schema, true);

    insert_rows(batch, 1000, 1010);
    apply(batch, OP_DELETE, 5, "");
    apply(batch, OP_UPDATE, 6, "changed");
    write_and_free(bench, table, batch);
    assert_true(table->position == 100); /* not before the commit */
    commit(bench, table, 200);
    assert_true(table->position == 200);
    assert_int_equal(table->rows, 1009);
    table = reopen(bench);
    assert_true(table->position == 200);
    assert_int_equal(table->rows, 1009);
}

static void
what_is_not_committed_is_gone(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Error err = {0};

    copy_rows(bench, table, 10);

    Batch *batch = batch_new(table->schema, true);

    insert_rows(batch, 10, 20);
    apply(batch, OP_DELETE, 1, "");
    write_and_free(bench, table, batch);
    OK(sink_abandon(bench->sink, table, &err));
    commit(bench, table, 300); /* nothing was written: nothing changes */
    assert_true(table->position == 100);
    assert_int_equal(table->rows, 10);

    batch = batch_new(table->schema, true);
    apply(batch, OP_DELETE, 1, "");
    write_and_free(bench, table, batch);
    table = reopen(bench);
    assert_true(table->position == 100);
    assert_int_equal(table->rows, 10);
}

typedef struct MissCase {
    Op op;
    int id;
    const char *note;
    bool may_miss, done;
} MissCase;

/* Unless that is the user's wish; a value to be read back has to be there in any case. */
static void
a_row_that_is_not_there_is_told(void **state)
{
    static const MissCase changes[] = {
        {OP_DELETE, 10, "", false, false},  {OP_UPDATE, 10, NULL, false, false},
        {OP_UPDATE, 10, "new", true, true}, {OP_UPDATE, 11, NULL, true, false},
        {OP_DELETE, 9, "", false, true},    {OP_DELETE, 9, "", false, false},
    };
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 10);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        Batch *batch = batch_new(table->schema, true);
        Error err = {0};

        table->may_miss = changes[i].may_miss;
        apply(batch, changes[i].op, changes[i].id, changes[i].note);
        batch_seal(batch);
        assert_int_equal(sink_write(bench->sink, table, batch, &err), changes[i].done);
        assert_true(changes[i].done || err.kind == ERR_COPY);
        batch_free(batch);
    }
    commit(bench, table, 200);
    assert_int_equal(table->rows, 10); /* 9 went, 10 came */
}

static void
a_commit_may_be_repeated(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 10);

    Batch *batch = batch_new(table->schema, true);

    insert_rows(batch, 10, 20);
    write_and_free(bench, table, batch);
    commit(bench, table, 200);
    commit(bench, table, 200);
    assert_int_equal(table->rows, 20);
}

static void
parts_of_an_epoch_find_each_others_rows(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 10);

    Batch *batch = batch_new(table->schema, true);

    insert_rows(batch, 10, 20);
    write_and_free(bench, table, batch);
    batch = batch_new(table->schema, true);
    apply(batch, OP_DELETE, 15, "");
    apply(batch, OP_UPDATE, 16, NULL); /* its note is in the file of the first part */
    apply(batch, OP_DELETE, 3, "");
    write_and_free(bench, table, batch);
    commit(bench, table, 200);
    assert_int_equal(table->rows, 18);
    table = reopen(bench);
    assert_int_equal(table->rows, 18);
}

static void
truncate_takes_its_place_in_the_epoch(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 50);

    Batch *batch = batch_new(table->schema, true);

    insert_rows(batch, 50, 60);
    apply(batch, OP_DELETE, 1, "");
    write_and_free(bench, table, batch);
    batch = batch_new(table->schema, true);
    insert_rows(batch, 60, 70);
    apply(batch, OP_TRUNCATE, 0, "");
    insert_rows(batch, 1, 4);
    write_and_free(bench, table, batch);
    commit(bench, table, 200);
    assert_int_equal(table->rows, 3);

    batch = batch_new(table->schema, true);
    apply(batch, OP_DELETE, 1, "");
    write_and_free(bench, table, batch);
    commit(bench, table, 300);
    assert_int_equal(table->rows, 2);
    table = reopen(bench);
    assert_int_equal(table->rows, 2);
}

static void
a_load_that_failed_can_be_repeated(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Error err = {0};

    OK(load_range(bench, table, 0, 500, false, &err));
    FAILS(load_range(bench, table, 500, 900, true, &err), ERR_TRANSIENT);
    OK(load_range(bench, table, 500, 1000, false, &err));
    OK(sink_bulk_commit(bench->sink, table, 100, &err));
    assert_int_equal(table->rows, 1000);
    table = reopen(bench);
    assert_int_equal(table->rows, 1000);
}

/* Data files in the lake. */
static int
data_files(const Bench *bench)
{
    char command[128];
    char count[16];

    snprintf(command, sizeof command, "find %s/lake -name '*.parquet' | wc -l", bench->folder);

    FILE *found = popen(command, "r");

    assert_non_null(found);
    assert_non_null(fgets(count, sizeof count, found));
    pclose(found);
    return (int) strtol(count, NULL, 10);
}

static void
nothing_is_left_of_a_load_that_failed(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Error err = {0};
    RangeSource range = {.source = {.next = next_range},
                         .batch = batch_new(table->schema, false),
                         .to = 300,
                         .fails = true,
                         .odd = true};

    FAILS(sink_bulk_load(bench->sink, table, &range.source, &err), ERR_TRANSIENT);
    batch_free(range.batch);
    assert_int_equal(data_files(bench), 0);
    OK(load_range(bench, table, 0, 300, false, &err));
    assert_true(data_files(bench) > 0);
    OK(sink_abandon(bench->sink, table, &err));
    assert_int_equal(data_files(bench), 0);
    copy_rows(bench, table, 10);
    table = reopen(bench);
    assert_int_equal(table->rows, 10);
}

static void
nothing_is_left_of_what_was_written_in_vain(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 10);

    int before = data_files(bench);
    Batch *batch = batch_new(table->schema, true);

    insert_rows(batch, 10, 20);
    write_and_free(bench, table, batch);
    assert_true(data_files(bench) > before);
    batch = batch_new(table->schema, true);
    apply(batch, OP_TRUNCATE, 0, "");
    write_and_free(bench, table, batch);
    assert_int_equal(data_files(bench), before);
    commit(bench, table, 200);
    assert_int_equal(table->rows, 0);
}

static void
an_empty_table_is_complete_too(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 0);
    assert_true(table->position == 100);
    table = reopen(bench);
    assert_true(table->position == 100);
    assert_int_equal(table->rows, 0);
}

static void
many_commits_keep_history_bounded(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 10);
    for (int i = 0; i < 110; i++) { /* manifests are merged at 100 */
        Batch *batch = batch_new(table->schema, true);

        apply(batch, OP_UPDATE, i % 10, NULL);
        apply(batch, OP_INSERT, 1000 + i, "new");
        write_and_free(bench, table, batch);
        commit(bench, table, (Position) 200 + (Position) i);
    }
    assert_int_equal(table->rows, 120);
    table = reopen(bench);
    assert_int_equal(table->rows, 120);
    assert_true(table->position == 309);
}

static void
a_lost_state_folder_costs_only_time(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    char command[128];

    copy_rows(bench, table, 1000);
    sink_close(bench->sink);
    bench->sink = NULL;
    snprintf(command, sizeof command, "rm -rf %s/state", bench->folder);
    assert_int_equal(system(command), 0);
    open_sink(bench);
    table = attach(bench);

    Batch *batch = batch_new(table->schema, true);

    for (int id = 0; id < 1000; id += 2)
        apply(batch, OP_DELETE, id, "");
    apply(batch, OP_UPDATE, 1, NULL);
    write_and_free(bench, table, batch);
    commit(bench, table, 200);
    assert_int_equal(table->rows, 500);
}

static Hash128
key_of(const TableSchema *schema, int id)
{
    Batch *batch = batch_new(schema, true);

    apply(batch, OP_INSERT, id, "");

    Hash128 key = BUF_AT(&batch->keys, Hash128, 0);

    batch_free(batch);
    return key;
}

/* The last page of the table's only run: that of the largest keys. */
static void
damage_index(const Bench *bench)
{
    char pattern[128];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/state/index/*/run-*", bench->folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);

    FILE *run = fopen(found.gl_pathv[0], "r+");

    assert_non_null(run);
    assert_int_equal(fseek(run, -1000, SEEK_END), 0);
    assert_true(fwrite("damage", 6, 1, run) == 1);
    fclose(run);
    globfree(&found);
}

/* Rows to take unchanged values from are looked up first. When the look-up of rows to delete then
 * meets a damage, the data file gets another number, and where the first ones are is not true any
 * more. */
static void
damage_between_two_look_ups(void **state)
{
    enum { ROWS = 70000 };

    Bench *bench = *state;
    SinkTable *table = attach(bench);
    int first = 0;
    int last = 0;

    copy_rows(bench, table, ROWS);
    for (int id = 1; id < ROWS; id++) {
        Hash128 key = key_of(table->schema, id);

        if (hash128_cmp(key, key_of(table->schema, first)) < 0)
            first = id;
        if (hash128_cmp(key, key_of(table->schema, last)) > 0)
            last = id;
    }
    damage_index(bench);

    Batch *batch = batch_new(table->schema, true);

    apply(batch, OP_UPDATE, first, NULL);
    apply(batch, OP_DELETE, last, "");
    write_and_free(bench, table, batch);
    commit(bench, table, 200);
    assert_int_equal(table->rows, ROWS - 1);
}

static void
twins_go_one_by_one(void **state)
{
    Bench *bench = *state;
    Error err = {0};

    schema_unref(bench->schema);
    bench->schema = make_schema("twins", KEY_FULL_ROW);

    SinkTable *table = attach(bench);
    Batch *batch = batch_new(table->schema, true);

    copy_rows(bench, table, 0);
    for (int i = 0; i < 5; i++)
        apply(batch, OP_INSERT, 7, "twin");
    write_and_free(bench, table, batch);
    commit(bench, table, 200);

    Datum datums[2] = {{DATUM_TEXT, STR("7")}, {DATUM_TEXT, STR("twin")}};
    Change change = {.op = OP_DELETE, .old_kind = OLD_ROW, .old = {.count = 2, .datums = datums}};
    ChangeOrigin origin = {.position = 250};

    for (int i = 0; i < 3; i++) {
        batch = batch_new(table->schema, true);
        OK(batch_apply(batch, &map, &change, &origin, &err));
        write_and_free(bench, table, batch);
        commit(bench, table, (Position) 300 + (Position) i);
        assert_int_equal(table->rows, 4 - i);
    }
}

static void
only_one_process_may_write(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Bench other = *bench;
    Error err = {0};
    char state_folder[128];

    copy_rows(bench, table, 10);
    other.config = arena_alloc(bench->arena, sizeof(Config));
    *other.config = *bench->config;
    snprintf(state_folder, sizeof state_folder, "%s/other", bench->folder);
    other.config->state = state_folder;
    open_sink(&other);

    SinkTable *theirs = attach(&other);
    Batch *batch = batch_new(table->schema, true);

    insert_rows(batch, 10, 20);
    write_and_free(&other, theirs, batch);
    commit(&other, theirs, 200);

    batch = batch_new(table->schema, true);
    insert_rows(batch, 10, 20);
    write_and_free(bench, table, batch);
    FAILS(sink_commit(bench->sink, table, 200, 0, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "another walberg process"));

    int written = data_files(bench);

    OK(sink_abandon(bench->sink, table, &err));
    assert_int_equal(data_files(bench), written); /* a commit had its chance to name them */
    sink_close(other.sink);
    table = reopen(bench);
    assert_int_equal(table->rows, 20);
}

typedef struct Maker {
    Sink *sink;
    const TableSchema *const *schemas;
    pthread_barrier_t *together;
    Error err;
} Maker;

enum { MADE_AT_ONCE = 50 };

static void *
make_tables(void *arg)
{
    Maker *maker = arg;

    for (int i = 0; i < MADE_AT_ONCE; i++) {
        SinkTable *table;
        Error err = {0};

        pthread_barrier_wait(maker->together);
        if (!sink_attach(maker->sink, &(SinkAttach){.schema = maker->schemas[i]}, &table, &err))
            maker->err = err;
    }
    return NULL;
}

/* As two pipelines do with _walberg.rejects: neither finds it, one makes it. */
static void
a_table_may_be_made_by_two_at_once(void **state)
{
    Bench *bench = *state;
    Bench other = *bench;
    const TableSchema *schemas[MADE_AT_ONCE];
    pthread_barrier_t together;
    pthread_t thread;

    for (int i = 0; i < MADE_AT_ONCE; i++)
        schemas[i] = make_schema(arena_printf(bench->arena, "made%d", i), KEY_NONE);
    open_sink(&other);
    pthread_barrier_init(&together, NULL, 2);

    Maker mine = {.sink = bench->sink, .schemas = schemas, .together = &together};
    Maker theirs = {.sink = other.sink, .schemas = schemas, .together = &together};

    assert_int_equal(pthread_create(&thread, NULL, make_tables, &theirs), 0);
    make_tables(&mine);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&together);
    assert_string_equal(mine.err.msg, "");
    assert_string_equal(theirs.err.msg, "");
    sink_close(other.sink);
    for (int i = 0; i < MADE_AT_ONCE; i++)
        schema_unref(schemas[i]);
}

/* Rows of _walberg.rejects, as its metadata says; 0 when there is no such table. */
static int
rejects_recorded(const Bench *bench)
{
    char path[160];
    char version[16] = "";
    static char metadata[1 << 16];
    int records = 0;

    snprintf(path, sizeof path, "%s/lake/_walberg/rejects/metadata/version-hint.text",
             bench->folder);

    FILE *hint = fopen(path, "r");

    if (hint == NULL)
        return 0;
    assert_non_null(fgets(version, sizeof version, hint));
    fclose(hint);
    snprintf(path, sizeof path, "%s/lake/_walberg/rejects/metadata/v%s.metadata.json",
             bench->folder, version);

    FILE *file = fopen(path, "r");

    assert_non_null(file);
    metadata[fread(metadata, 1, sizeof metadata - 1, file)] = '\0';
    fclose(file);
    for (const char *at = metadata; (at = strstr(at, "\"total-records\":\"")) != NULL; at += 17)
        records = (int) strtol(at + 17, NULL, 10); /* snapshots stand oldest first */
    return records;
}

static void
rejects_of_the_stream_are_recorded_once(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 10);
    for (int round = 0; round < 2; round++) { /* the second is a replay of the first */
        Batch *batch = batch_new(table->schema, true);

        apply(batch, OP_INSERT, 100 + round, "not UTF-8: \xFF");
        write_and_free(bench, table, batch);
        assert_int_equal(rejects_recorded(bench), round);
        commit(bench, table, (Position) 200 + (Position) round);
        assert_int_equal(rejects_recorded(bench), 1);
        table = reopen(bench);
    }
    assert_int_equal(table->rows, 12);
}

/* Why it is parked: although nothing of its rows is written, now or later. */
static void
rejects_of_a_parked_table_are_recorded(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Batch *batch = batch_new(table->schema, true);
    Error err = {0};

    OK(sink_record(bench->sink, table, batch, &err)); /* nothing to say */
    assert_int_equal(rejects_recorded(bench), 0);
    copy_rows(bench, table, 10);
    apply(batch, OP_INSERT, 100, "not UTF-8: \xFF");
    batch_seal(batch);
    OK(sink_abandon(bench->sink, table, &err));
    OK(sink_record(bench->sink, table, batch, &err));
    assert_int_equal(rejects_recorded(bench), 1);
    OK(sink_record(bench->sink, table, batch, &err));
    assert_int_equal(rejects_recorded(bench), 1);
    batch_free(batch);
    table = reopen(bench);
    assert_int_equal(table->rows, 10);
    assert_true(table->position == 100);
}

/* The commit took effect and its answer did not arrive: the snapshot is found by its id, nothing is
 * written twice. */
static void
a_lost_answer_is_found_again(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Error err = {0};

    copy_rows(bench, table, 10);

    Batch *batch = batch_new(table->schema, true);

    insert_rows(batch, 10, 20);
    apply(batch, OP_DELETE, 3, "");
    write_and_free(bench, table, batch);
    setenv("WALBERG_FAULT", "fail:1:sink.committed", 1);

    OK(sink_commit(bench->sink, table, 200, 0, &err));
    unsetenv("WALBERG_FAULT");
    assert_int_equal(table->rows, 19);
    commit(bench, table, 200);
    table = reopen(bench);
    assert_int_equal(table->rows, 19);
    assert_true(table->position == 200);
}

/* What the table is partitioned by is part of its rows, so a row may move. */
static void
rows_move_between_partitions(void **state)
{
    static const char *const notes[] = {"copied", "one", "two", "one again"};
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 40);
    for (int round = 0; round < 4; round++) {
        Batch *batch = batch_new(table->schema, true);

        for (int id = 0; id < 36; id += round + 1)
            apply(batch, OP_UPDATE, id, notes[round]);
        apply(batch, OP_DELETE, 36 + round, "");
        write_and_free(bench, table, batch);
        commit(bench, table, (Position) 200 + (Position) round);
        assert_int_equal(table->rows, 39 - round);
        if (round % 2 == 1)
            table = reopen(bench);
        assert_int_equal(table->rows, 39 - round);
    }
}

/* Files of the old spec stay, and their rows can go. */
static void
a_spec_that_changes_keeps_the_rows(void **state)
{
    static const char *const specs[] = {"[]", "[id]", "['truncate[1](note)', 'bucket[2](id)']"};
    Bench *bench = *state;
    SinkTable *table = attach(bench);

    copy_rows(bench, table, 30);
    for (int round = 0; round < 3; round++) {
        configure(bench, specs[round]);
        table = reopen(bench);

        Batch *batch = batch_new(table->schema, true);

        apply(batch, OP_INSERT, 100 + round, "new");
        apply(batch, OP_UPDATE, 3 * round, "changed");
        apply(batch, OP_DELETE, 3 * round + 1, "");
        write_and_free(bench, table, batch);
        commit(bench, table, (Position) 200 + (Position) round);
        assert_int_equal(table->rows, 30);
    }
    table = reopen(bench);
    assert_int_equal(table->rows, 30);
}

/* Somebody took the newest version of a table away while we hold it. */
static void
a_table_that_went_back_is_not_used(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach(bench);
    Error err = {0};

    copy_rows(bench, table, 10);

    Batch *batch = batch_new(table->schema, true);

    insert_rows(batch, 10, 20);
    write_and_free(bench, table, batch);
    commit(bench, table, 200);

    const char *metadata = arena_printf(bench->arena, "%s/lake/public/t/metadata", bench->folder);
    FILE *hint = fopen(arena_printf(bench->arena, "%s/version-hint.text", metadata), "w");

    assert_non_null(hint);
    assert_true(fputs("2", hint) > 0);
    assert_int_equal(fclose(hint), 0);
    assert_int_equal(remove(arena_printf(bench->arena, "%s/v3.metadata.json", metadata)), 0);
    batch = batch_new(table->schema, true);
    insert_rows(batch, 20, 30);
    write_and_free(bench, table, batch);
    FAILS(sink_abandon(bench->sink, table, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "went back from 0/C8 to 0/64"));
    assert_true(table->position == 200);
}

static void
state_is_swapped_by_comparison(void **state)
{
    Bench *bench = *state;
    Bench other = *bench;
    AUTO_BUF Buf text = {0};
    Error err = {0};
    bool found = true;

    OK(sink_state_load(bench->sink, &text, &found, &err));
    assert_false(found);
    OK(sink_state_swap(bench->sink, STR("{\"n\": 1}"), &err));
    OK(sink_state_swap(bench->sink, STR("{\"n\": 2}"), &err));
    open_sink(&other);
    OK(sink_state_load(other.sink, &text, &found, &err));
    assert_true(found);
    assert_string_equal(buf_text(&text), "{\"n\": 2}");
    OK(sink_state_swap(other.sink, STR("{\"n\": 3}"), &err));
    FAILS(sink_state_swap(bench->sink, STR("{\"n\": 4}"), &err), ERR_CONFLICT);
    sink_close(other.sink);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_new_table_has_no_position),
        CASE(rows_and_position_appear_together),
        CASE(what_is_not_committed_is_gone),
        CASE(a_row_that_is_not_there_is_told),
        CASE(a_commit_may_be_repeated),
        CASE(parts_of_an_epoch_find_each_others_rows),
        CASE(truncate_takes_its_place_in_the_epoch),
        CASE(a_load_that_failed_can_be_repeated),
        CASE(nothing_is_left_of_a_load_that_failed),
        CASE(nothing_is_left_of_what_was_written_in_vain),
        CASE(an_empty_table_is_complete_too),
        CASE(many_commits_keep_history_bounded),
        CASE(a_lost_state_folder_costs_only_time),
        cmocka_unit_test_setup_teardown(damage_between_two_look_ups, setup, teardown),
        CASE(twins_go_one_by_one),
        CASE(rejects_of_the_stream_are_recorded_once),
        CASE(rejects_of_a_parked_table_are_recorded),
        CASE(a_lost_answer_is_found_again),
        CASE(only_one_process_may_write),
        CASE(a_table_may_be_made_by_two_at_once),
        CASE(a_table_that_went_back_is_not_used),
        CASE(rows_move_between_partitions),
        CASE(a_spec_that_changes_keeps_the_rows),
        CASE(state_is_swapped_by_comparison),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
