/* The contract of sink/sink.h, against every sink (one so far), in a warehouse of its own. What the
 * lake then holds is read by other programs in the end-to-end tests; here it is what the sink says
 * about itself, also after it was opened anew. */
#include "testing.h"

#include <stdlib.h>

#include "base/cancel.h"
#include "batch/fold.h"
#include "sink/sink.h"

typedef struct Bench {
    Arena *arena;
    Config *config;
    Cancel *cancel;
    char folder[64];
    int format_version;
    Sink *sink;
    const TableSchema *schema;
} Bench;

/* --- a table (id bigint primary key, note text) ---------------------------------------------- */

static const TableSchema *
make_schema(const char *table, KeyMode mode)
{
    Arena *arena;
    TableSchema *schema = schema_new(&arena);
    Type *types = ARENA_ARRAY(arena, Type, 2);

    types[0].kind = TYPE_INT64;
    types[1].kind = TYPE_STRING;
    schema->relid = 16384;
    schema->schema_name = STR("public");
    schema->table_name = str_of(arena_strdup(arena, table));
    schema->qualified = arena_printf(arena, "public.%s", table);
    schema->identity = mode == KEY_FULL_ROW ? IDENTITY_FULL : IDENTITY_DEFAULT;
    schema->key_mode = mode;
    schema->key_count = mode == KEY_COLUMNS;
    schema->key = ARENA_ARRAY(arena, int, 1);
    schema->column_count = 2;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, 2);
    schema->columns[0] = (SchemaColumn){.field = {.name = STR("id"), .type = &types[0]},
                                        .attnum = 1,
                                        .type_oid = 20,
                                        .pg_type = "bigint",
                                        .not_null = true};
    schema->columns[1] = (SchemaColumn){.field = {.name = STR("note"), .type = &types[1]},
                                        .attnum = 2,
                                        .type_oid = 25,
                                        .pg_type = "text"};
    schema_assign_ids(schema);
    return schema;
}

static void
open_sink(Bench *bench)
{
    Error err = {0};
    SinkOptions options = {.config = bench->config, .database = "shop", .cancel = bench->cancel};

    OK(sink_open(&options, &bench->sink, &err));
}

static SinkTable *
attach(Bench *bench)
{
    Error err = {0};
    SinkTable *table = NULL;

    OK(sink_attach(bench->sink, &(SinkAttach){.schema = bench->schema}, &table, &err));
    return table;
}

/* As if the process had ended and begun again. */
static SinkTable *
reopen(Bench *bench)
{
    sink_close(bench->sink);
    open_sink(bench);
    return attach(bench);
}

/* The settings of a table that is partitioned so. */
static void
configure(Bench *bench, const char *partition)
{
    Error err = {0};
    const char *sets[] = {
        "pipeline=test",
        arena_printf(bench->arena, "state=%s/state", bench->folder),
        arena_printf(bench->arena, "sink.iceberg.warehouse=%s/lake", bench->folder),
        arena_printf(bench->arena, "sink.iceberg.format_version=%d", bench->format_version),
        arena_printf(bench->arena, "tables.*.*.partition=%s", partition),
    };

    OK(config_load(bench->arena, &(ConfigLoad){.set_count = 5, .sets = sets}, &bench->config,
                   &err));
    OK(config_resolve(bench->config, bench->arena, "shop", &err));
}

static int
begin(void **state, const char *partition, int format_version)
{
    Bench *bench = xcalloc(1, sizeof *bench);

    strcpy(bench->folder, "/tmp/walberg-sink-XXXXXX");
    assert_non_null(mkdtemp(bench->folder));
    bench->arena = arena_new();
    bench->cancel = cancel_new();

    bench->format_version = format_version;
    configure(bench, partition);
    bench->schema = make_schema("t", KEY_COLUMNS);
    open_sink(bench);
    *state = bench;
    return 0;
}

#define PARTITION "['bucket[4](id)', 'truncate[3](note)']"

static int
setup(void **state)
{
    return begin(state, "[]", 2);
}

static int
setup_partitioned(void **state)
{
    return begin(state, PARTITION, 2);
}

static int
setup_v3(void **state)
{
    return begin(state, "[]", 3);
}

static int
setup_v3_partitioned(void **state)
{
    return begin(state, PARTITION, 3);
}

static int
teardown(void **state)
{
    Bench *bench = *state;
    char command[128];

    sink_close(bench->sink);
    schema_unref(bench->schema);
    cancel_free(bench->cancel);
    snprintf(command, sizeof command, "rm -rf %s", bench->folder);

    int status = system(command);

    arena_free(bench->arena);
    free(bench);
    return status;
}

/* --- changes --------------------------------------------------------------------------------- */

static const int both_columns[] = {0, 1};
static const TupleMap map = {.count = 2, .column_map = both_columns};

static void
apply(Batch *batch, Op op, int id, const char *note)
{
    Error err = {0};
    char text[16];
    ChangeOrigin origin = {.position = 1};

    snprintf(text, sizeof text, "%d", id);

    Datum datums[2] = {{DATUM_TEXT, str_of(text)},
                       {note == NULL ? DATUM_UNCHANGED : DATUM_TEXT, str_of(note)}};
    Tuple tuple = {.count = 2, .datums = datums};
    Change change = {.op = op, .after = tuple};

    if (op == OP_DELETE)
        change = (Change){.op = op, .old_kind = OLD_KEY, .old = tuple};
    OK(batch_apply(batch, &map, &change, &origin, &err));
}

static void
insert_rows(Batch *batch, int from, int to)
{
    for (int id = from; id < to; id++)
        apply(batch, OP_INSERT, id, "a row");
}

static void
write_and_free(Bench *bench, SinkTable *table, Batch *batch)
{
    Error err = {0};

    batch_seal(batch);
    OK(sink_write(bench->sink, table, batch, &err));
    batch_free(batch);
}

static void
commit(Bench *bench, SinkTable *table, Position position)
{
    Error err = {0};

    OK(sink_commit(bench->sink, table, position, 1796032800000000, &err));
}

/* The initial copy of rows [from, to) in batches of 100, and an empty one at the end. */
typedef struct RangeSource {
    BulkSource source;
    Batch *batch;
    int next, to;
    bool fails;
    bool ended;
} RangeSource;

static bool
next_range(BulkSource *source, Batch **out_batch, Error *err)
{
    RangeSource *range = (RangeSource *) source;
    ChangeOrigin origin = {.position = 100};

    *out_batch = NULL;
    if (range->ended)
        return true;
    if (range->next == range->to && range->fails)
        return FAIL(err, ERR_TRANSIENT, "the connection broke");
    range->ended = range->next == range->to;
    batch_reset(range->batch);
    for (int i = 0; i < 100 && range->next < range->to; i++, range->next++) {
        char text[16];

        snprintf(text, sizeof text, "%d", range->next);

        Datum datums[2] = {{DATUM_TEXT, str_of(text)}, {DATUM_TEXT, STR("copied")}};

        TRY(batch_append_row(range->batch, &map, datums, &origin, err));
    }
    batch_seal(range->batch);
    *out_batch = range->batch;
    return true;
}

static bool
load_range(Bench *bench, SinkTable *table, int from, int to, bool fails, Error *err)
{
    RangeSource range = {.source = {.next = next_range, .load = from},
                         .batch = batch_new(table->schema, false),
                         .next = from,
                         .to = to,
                         .fails = fails};
    bool done = sink_bulk_load(bench->sink, table, &range.source, err);

    batch_free(range.batch);
    return done;
}

static void
copy_rows(Bench *bench, SinkTable *table, int count)
{
    Error err = {0};

    OK(load_range(bench, table, 0, count, false, &err));
    OK(sink_bulk_commit(bench->sink, table, 100, &err));
}

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

/* --- a copy that is interrupted -------------------------------------------------------------- */

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

        Batch *batch = replay(table);

        for (int id = 50; id < 100; id++)
            apply(batch, OP_UPDATE, id, id % 2 == 0 ? NULL : "moved");
        apply(batch, OP_UPDATE, 7, NULL);      /* of the first moment: its note is there */
        apply(batch, OP_DELETE, 8, "");        /* the same */
        apply(batch, OP_DELETE, 150, "");      /* came again before the second moment */
        apply(batch, OP_INSERT, 151, "a row"); /* it has it already */
        apply(batch, OP_INSERT, 300, "a row"); /* missed by both */
        apply(batch, OP_DELETE, 301, "");      /* never was there */
        write_and_free(bench, table, batch);
        commit(bench, table, 150);
        assert_true(table->position == POSITION_NONE);
        if (round == 1) { /* dropped, and begun again with what was recorded */
            OK(sink_abandon(bench->sink, table, &err));
            assert_true(table->hidden_until == POSITION_NONE);
        }
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
    sink_close(other.sink);
    table = reopen(bench);
    assert_int_equal(table->rows, 20);
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

/* Each of them also of a partitioned table, and under format version 3. */
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, setup, teardown),                                        \
        {#name " (partitioned)", name, setup_partitioned, teardown, NULL},                         \
        {#name " (v3)", name, setup_v3, teardown, NULL},                                           \
    {                                                                                              \
#name " (v3, partitioned)", name, setup_v3_partitioned, teardown, NULL                     \
    }

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_new_table_has_no_position),
        CASE(rows_and_position_appear_together),
        CASE(what_is_not_committed_is_gone),
        CASE(a_commit_may_be_repeated),
        CASE(parts_of_an_epoch_find_each_others_rows),
        CASE(truncate_takes_its_place_in_the_epoch),
        CASE(a_load_that_failed_can_be_repeated),
        CASE(an_empty_table_is_complete_too),
        CASE(a_copy_goes_on_in_another_process),
        CASE(rows_of_two_moments_are_hidden_until_they_are_of_one),
        CASE(a_missing_row_is_never_guessed),
        CASE(a_newer_row_lends_no_values),
        CASE(a_row_of_both_moments_lends_none_either),
        CASE(a_truncate_between_two_moments_is_refused),
        CASE(what_was_recorded_must_fit),
        CASE(many_commits_keep_history_bounded),
        CASE(a_lost_state_folder_costs_only_time),
        CASE(twins_go_one_by_one),
        CASE(rejects_of_the_stream_are_recorded_once),
        CASE(a_lost_answer_is_found_again),
        CASE(only_one_process_may_write),
        CASE(a_table_that_went_back_is_not_used),
        CASE(rows_move_between_partitions),
        CASE(a_spec_that_changes_keeps_the_rows),
        CASE(state_is_swapped_by_comparison),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
