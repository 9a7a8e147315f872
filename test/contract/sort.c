/* The rows of data files in the table's sort order: which files have it, that what has its id is
 * sorted, and that rows are found again where they went. Files are read with DuckDB, in the order
 * that they have; e2e/test_sort.py has other readers. */
#include "sink_bench.h"

#include "sink/iceberg/sink.h"

enum { ROWS = 400, NOTE_BYTES = 16 };

/* What the lake should have, by id; "": no such row. */
typedef char Model[ROWS][NOTE_BYTES];

/* --- files ----------------------------------------------------------------------------------- */

typedef struct FileRows {
    RowSink sink;
    Buf ids;   /* int64_t */
    Buf notes; /* char[NOTE_BYTES] */
} FileRows;

static bool
take_rows(RowSink *sink, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    FileRows *file = (FileRows *) (void *) sink;

    (void) err;
    assert_int_equal(first_row, BUF_COUNT(&file->ids, int64_t));
    for (size_t i = 0; i < rows; i++) {
        Str note = column_bytes(&columns[1], i);
        char *to = buf_push(&file->notes, NOTE_BYTES);

        BUF_PUSH(&file->ids, int64_t, BUF_AT(&columns[0].values, int64_t, i));
        snprintf(to, NOTE_BYTES, "%.*s", STR_ARG(note));
    }
    return true;
}

/* Order 1 is note desc, id desc; order 2 is id desc. */
static bool
is_sorted(const FileRows *file, int order_id)
{
    for (size_t row = 1; row < BUF_COUNT(&file->ids, int64_t); row++) {
        int ids = BUF_AT(&file->ids, int64_t, row - 1) < BUF_AT(&file->ids, int64_t, row) ? -1 : 1;
        int notes =
            strcmp(file->notes.ptr + (row - 1) * NOTE_BYTES, file->notes.ptr + row * NOTE_BYTES);

        if (order_id == 1 ? notes < 0 || (notes == 0 && ids < 0) : ids < 0)
            return false;
    }
    return true;
}

typedef struct Seen {
    int sorted;   /* files that say so, and are */
    int unsorted; /* files that say nothing */
} Seen;

static void
look_at_file(IcebergTable *table, Arena *arena, const DataFile *data, Model model, Seen *seen)
{
    FileRows file = {.sink = {.block = take_rows}};
    ParquetScan scan = {.fields = iceberg_table_fields(table, arena), .field_count = 2};
    AUTO_FILE_HOLD FileHold hold = {0};
    Error err = {0};

    scan.sink = &file.sink;
    OK(file_cache_path(&table->sink->files, &hold, arena, data->path, &scan.path, &err));
    OK(duck_scan_parquet(table->sink->duck, &scan, &err));
    assert_int_equal(BUF_COUNT(&file.ids, int64_t), data->record_count);
    if (data->sort_order_id > 0)
        assert_true(is_sorted(&file, data->sort_order_id));
    else
        assert_int_equal(data->sort_order_id, -1);
    seen->sorted += data->sort_order_id > 0;
    seen->unsorted += data->sort_order_id < 0;
    for (size_t row = 0; row < BUF_COUNT(&file.ids, int64_t); row++) {
        int64_t id = BUF_AT(&file.ids, int64_t, row);

        if (deletes_contains(table->deletes, data->path, (uint32_t) row))
            continue;
        assert_string_equal(file.notes.ptr + row * NOTE_BYTES, model[id]);
        model[id][0] = '\0'; /* once */
    }
    buf_done(&file.ids);
    buf_done(&file.notes);
}

/* Every row of the model is in the lake, once, and no other. */
static Seen
look(SinkTable *sink_table, Model model)
{
    IcebergTable *table = (IcebergTable *) (void *) sink_table;
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf files = {0};
    Model left;
    Seen seen = {0};
    Error err = {0};

    memcpy(left, model, sizeof left);
    OK(iceberg_live_files(table, arena, &files, &err));
    for (size_t i = 0; i < BUF_COUNT(&files, ManifestEntry); i++)
        look_at_file(table, arena, &BUF_AT(&files, ManifestEntry, i).file, left, &seen);
    for (int id = 0; id < ROWS; id++)
        assert_string_equal(left[id], "");
    return seen;
}

static int
default_order(SinkTable *table)
{
    return ((IcebergTable *) (void *) table)->metadata->default_sort_order_id;
}

/* --- changes --------------------------------------------------------------------------------- */

static void
put(Batch *batch, Model model, Op op, int id, const char *note)
{
    apply(batch, op, id, note);
    if (op == OP_DELETE)
        model[id][0] = '\0';
    else if (note != NULL)
        snprintf(model[id], NOTE_BYTES, "%s", note);
}

static void
copy(Bench *bench, SinkTable *table, Model model, int count)
{
    copy_rows(bench, table, count);
    for (int id = 0; id < count; id++)
        snprintf(model[id], NOTE_BYTES, "copied");
}

/* Inserts in no order, rows that change and go within the batch, and rows of the lake that do. */
static void
write_some(Bench *bench, SinkTable *table, Model model, int round)
{
    Batch *batch = batch_new(table->schema, true);
    char note[NOTE_BYTES];

    for (int i = 0; i < 60; i++) {
        int id = 200 + (i * 37 + round) % 60 + 60 * round;

        snprintf(note, sizeof note, "n%d", (i * 31 + round) % 23);
        put(batch, model, OP_INSERT, id, note);
        if (i % 7 == 0)
            put(batch, model, OP_UPDATE, id, "again");
        if (i % 11 == 0)
            put(batch, model, OP_DELETE, id, "");
    }
    for (int id = round; id < 200 + 60 * round; id += 9)
        if (model[id][0] != '\0')
            put(batch, model, id % 2 == 0 ? OP_DELETE : OP_UPDATE, id, id % 2 == 0 ? "" : "moved");
    write_and_free(bench, table, batch);
    commit(bench, table, 200 + (Position) round);
}

static bool
is_partitioned(SinkTable *table)
{
    return iceberg_is_partitioned((IcebergTable *) (void *) table);
}

static SinkTable *
attach_sorted(Bench *bench, const char *partition, const char *sort)
{
    bench->sort = sort;
    configure(bench, partition);
    return reopen(bench);
}

static const char *
partition_of(const Bench *bench)
{
    return bench->config->rules[0].partition.count > 0 ? PARTITION : "[]";
}

/* --- tests ----------------------------------------------------------------------------------- */

static void
rows_are_sorted_and_found_again(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach_sorted(bench, partition_of(bench), "['note desc', 'id desc']");
    Model model = {{0}};
    Seen seen;

    assert_int_equal(default_order(table), 1);
    copy(bench, table, model, 150);
    seen = look(table, model);
    if (is_partitioned(table)) {
        assert_int_equal(seen.unsorted, 0);
        assert_int_equal(seen.sorted, 4); /* buckets */
    } else {
        assert_int_equal(seen.unsorted, 1); /* of a copy whose rows are not all in memory */
        assert_int_equal(seen.sorted, 0);
    }
    for (int round = 0; round < 3; round++) {
        write_some(bench, table, model, round);
        if (round == 1)
            table = reopen(bench);
        (void) look(table, model);
    }
    seen = look(table, model);
    assert_int_equal(seen.unsorted, is_partitioned(table) ? 0 : 1);
    assert_true(seen.sorted >= 3);
}

/* A value that is read back from the lake while the file is written cannot be sorted by, but other
 * columns can. */
static void
unchanged_values_come_to_their_rows(void **state)
{
    Bench *bench = *state;
    SinkTable *table = attach_sorted(bench, partition_of(bench), "['note desc', 'id desc']");
    Model model = {{0}};
    Seen before;
    Seen after;

    write_some(bench, table, model, 0);
    before = look(table, model);
    for (int round = 0; round < 2; round++) {
        Batch *batch = batch_new(table->schema, true);

        for (int i = 0; i < 40; i++) {
            int id = 200 + i * 23 % 60;

            if (model[id][0] != '\0')
                put(batch, model, OP_UPDATE, id, i % 3 == 0 ? "new" : NULL);
        }
        write_and_free(bench, table, batch);
        commit(bench, table, 300 + (Position) round);
        after = look(table, model);
        if (is_partitioned(table)) {
            assert_int_equal(after.unsorted, 0);
        } else {
            assert_int_equal(after.unsorted, 1);
            assert_int_equal(after.sorted, before.sorted + round);
        }
        if (round == 0)
            table = attach_sorted(bench, partition_of(bench), "[id desc]");
    }
}

static void
a_sort_order_that_changes_is_that_of_new_files(void **state)
{
    static const struct {
        const char *sort;
        int order;
    } rounds[] = {{"['note desc', 'id desc']", 1},
                  {NULL, 0},
                  {"['note DESC nulls last', 'identity(id) desc']", 1},
                  {"[]", 0}};

    Bench *bench = *state;
    SinkTable *table = attach_sorted(bench, partition_of(bench), NULL);
    Model model = {{0}};
    int unsorted = 0;
    int sorted = 0;

    write_some(bench, table, model, 0);
    unsorted = look(table, model).unsorted;
    assert_int_equal(default_order(table), 0);
    for (int round = 0; round < 4; round++) {
        Batch *batch;
        Seen seen;

        table = attach_sorted(bench, partition_of(bench), rounds[round].sort);
        batch = batch_new(table->schema, true);
        for (int id = round; id < 60; id += 4)
            put(batch, model, OP_INSERT, id, id % 8 < 4 ? "b" : "d");
        put(batch, model, OP_UPDATE, 201 + round, "c");
        write_and_free(bench, table, batch);
        commit(bench, table, 300 + (Position) round);
        seen = look(table, model);
        assert_int_equal(default_order(table), rounds[round].order);
        assert_true(rounds[round].order > 0 ? seen.sorted > sorted && seen.unsorted == unsorted
                                            : seen.sorted == sorted && seen.unsorted > unsorted);
        sorted = seen.sorted;
        unsorted = seen.unsorted;
    }
    table = attach_sorted(bench, partition_of(bench), "[id desc]");
    write_some(bench, table, model, 1);
    assert_int_equal(default_order(table), 2);
    assert_true(look(table, model).sorted > sorted);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rows_are_sorted_and_found_again),
        CASE(unchanged_values_come_to_their_rows),
        CASE(a_sort_order_that_changes_is_that_of_new_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
