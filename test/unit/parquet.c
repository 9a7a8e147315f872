/* Rows into Parquet and back: every kind, nested, with NULLs and dead rows.
 *
 * Values are compared with what went in. That the files say the same to somebody else is checked by
 * test/golden/check_parquet.py with pyarrow: run this test with WALBERG_KEEP=<folder> first, which
 * leaves its files there with what they should hold as JSON lines. */
#include "random_rows.h"
#include "row_tables.h"
#include "rows_json.h"
#include "testing.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "duck/parquet.h"
#include "duck/parquet_footer.h"

static Duck *duck;
static Arena *arena; /* of the whole run */
static char folder[64];

static const char *
path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s.parquet", folder, name);
    return path;
}

static int
set_up(void **state)
{
    Error err = {0};

    (void) state;
    arena = arena_new();
    snprintf(folder, sizeof folder, "/tmp/walberg-parquet-XXXXXX");
    if (mkdtemp(folder) == NULL || !duck_open(&(DuckOptions){.threads = 1}, &duck, &err))
        return -1;
    return 0;
}

static int
tear_down(void **state)
{
    char command[128];

    (void) state;
    duck_close(duck);
    arena_free(arena);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command); /* NOLINT */
}

/* --- Files for the reader in Python --------------------------------------------------------- */

/* First line: the fields. Then one line a row. */
static void
keep(const char *name, const Field *fields, const Column *columns, int count)
{
    const char *where = getenv("WALBERG_KEEP"); /* NOLINT(concurrency-mt-unsafe) */
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf command = {0};
    JsonWriter json;

    if (where == NULL)
        return;
    jw_begin(&json, &text);
    put_ids(&json, fields, count);
    buf_byte(&text, '\n');
    for (size_t row = 0; row < columns[0].rows; row++) {
        jw_begin(&json, &text);
        jw_array(&json);
        for (int i = 0; i < count; i++)
            put_value(&json, &columns[i], row);
        jw_end(&json);
        buf_byte(&text, '\n');
    }
    buf_printf(&command, "%s/%s.jsonl", where, name);

    FILE *file = fopen(buf_text(&command), "we");

    assert_non_null(file);
    fwrite(text.ptr, 1, text.len, file);
    fclose(file);
    buf_reset(&command);
    buf_printf(&command, "cp '%s' '%s/'", path_of(name), where);
    assert_int_equal(system(buf_text(&command)), 0); /* NOLINT */
}

/* --- Writing and scanning -------------------------------------------------------------------- */

static bool
write_table(const char *name, const Table *table, Pieces *pieces, ParquetWrite options,
            ParquetFile *out_file, Error *err)
{
    pieces->source.next = next_piece;
    pieces->table = table;
    options.path = path_of(name);
    options.fields = table->fields;
    options.field_count = table->count;
    options.rows = &pieces->source;

    bool ok = duck_write_parquet(duck, arena, &options, out_file, err);

    if (pieces->piece.columns != NULL)
        table_done(&pieces->piece);
    return ok;
}

static bool
scan_table(const char *name, const Field *fields, int count, Gather *gather, Error *err)
{
    gather->sink.block = gather_block;
    if (gather->table.columns == NULL)
        table_init(&gather->table, (Field *) (uintptr_t) fields, count);
    return duck_scan_parquet(
        duck,
        &(ParquetScan){
            .path = path_of(name), .fields = fields, .field_count = count, .sink = &gather->sink},
        err);
}

/* --- Tests ----------------------------------------------------------------------------------- */

static void
check_file(const ParquetFile *file, const Table *table, int64_t rows)
{
    struct stat status;
    int64_t compressed = 0;

    assert_int_equal(file->rows, rows);
    assert_true(file->leaf_count >= table->count);
    for (int i = 0; i < file->leaf_count; i++) {
        assert_true(file->leaves[i].field_id > 0);
        compressed += file->leaves[i].compressed_bytes;
    }
    assert_true(compressed < file->bytes && compressed > file->bytes / 2);
    assert_int_equal(file->row_group_offsets[0], 4); /* behind "PAR1" */
    for (int i = 1; i < file->row_group_count; i++)
        assert_true(file->row_group_offsets[i] > file->row_group_offsets[i - 1]);
    (void) status;
}

static void
every_kind_survives(void **state)
{
    enum { ROWS = 4500 };

    (void) state;
    for (int null_in = 0; null_in <= 4; null_in += 2) {
        Error err = {0};
        Table table = {0};
        Gather gather = {0};
        ParquetFile file;
        int count;
        Field *fields = all_fields(arena, &count);

        seed = 42 + (uint64_t) null_in;
        table_init(&table, fields, count);
        table_fill(&table, ROWS, null_in);
        OK(write_table("kinds", &table, &(Pieces){.step = 1777},
                       (ParquetWrite){.row_group_rows = 2048}, &file, &err));
        check_file(&file, &table, ROWS);
        assert_true(file.row_group_count >= 2);
        OK(scan_table("kinds", fields, count, &gather, &err));
        assert_int_equal(gather.table.columns[0].rows, ROWS);
        for (size_t row = 0; row < ROWS; row++)
            assert_rows_equal(&table, row, &gather.table, row);
        if (null_in == 4)
            keep("kinds", fields, table.columns, count);
        table_done(&table);
        table_done(&gather.table);
    }
}

static void
dead_rows_are_left_out_and_patched_values_written(void **state)
{
    enum { ROWS = 6000 };

    Error err = {0};
    Table table = {0};
    Table live = {0};
    Gather gather = {0};
    ParquetFile file;
    int count;
    Field *fields = all_fields(arena, &count);
    uint8_t *dead = xcalloc(ROWS, 1);

    (void) state;
    seed = 7;
    table_init(&table, fields, count);
    table_init(&live, fields, count);
    table_fill(&table, ROWS, 5);
    for (size_t row = 0; row < ROWS; row++) {
        /* some dead, a long stretch of dead ones, a long one without */
        dead[row] = row < 2500 ? noise() % 3 == 0 : row < 4700;
        if (row % 11 == 0)
            for (int i = 0; i < count; i++)
                column_set_copy(&table.columns[i], row, &table.columns[i], (row * 7) % ROWS);
    }
    for (size_t row = 0; row < ROWS; row++)
        for (int i = 0; i < count && dead[row] == 0; i++)
            column_append_copy(&live.columns[i], &table.columns[i], row);
    OK(write_table("dead", &table, &(Pieces){.step = 2500, .dead = dead}, (ParquetWrite){0}, &file,
                   &err));
    assert_int_equal(file.rows, live.columns[0].rows);
    OK(scan_table("dead", fields, count, &gather, &err));
    assert_int_equal(gather.table.columns[0].rows, live.columns[0].rows);
    for (size_t row = 0; row < live.columns[0].rows; row++)
        assert_rows_equal(&live, row, &gather.table, row);
    keep("dead", fields, live.columns, count);
    table_done(&table);
    table_done(&live);
    table_done(&gather.table);
    free(dead);
}

static void
picks_give_the_rows_asked_for(void **state)
{
    enum { ROWS = 8000 };

    Error err = {0};
    Table table = {0};
    ParquetFile file;
    int count;
    Field *fields = all_fields(arena, &count);
    Buf numbers = {0};

    (void) state;
    seed = 99;
    table_init(&table, fields, count);
    table_fill(&table, ROWS, 6);
    OK(write_table("pick", &table, &(Pieces){.step = ROWS}, (ParquetWrite){.row_group_rows = 2048},
                   &file, &err));
    for (uint64_t one_in = 1; one_in < 100000; one_in *= 40) {
        Table picked = {0};

        buf_reset(&numbers);
        for (int64_t row = 0; row < ROWS; row++)
            if (noise() % one_in == 0)
                BUF_PUSH(&numbers, int64_t, row);
        table_init(&picked, fields, count);

        ParquetPick pick = {.path = path_of("pick"),
                            .fields = fields,
                            .field_count = count,
                            .row_numbers = (const int64_t *) (const void *) numbers.ptr,
                            .row_count = BUF_COUNT(&numbers, int64_t)};

        OK(duck_pick_parquet(duck, &pick, picked.columns, &err));
        assert_int_equal(picked.columns[0].rows, pick.row_count);
        for (size_t i = 0; i < pick.row_count; i++)
            assert_rows_equal(&table, (size_t) pick.row_numbers[i], &picked, i);

        int64_t beyond = ROWS;

        pick.row_numbers = &beyond;
        pick.row_count = 1;
        FAILS(duck_pick_parquet(duck, &pick, picked.columns, &err), ERR_INPUT);
        table_done(&picked);
    }
    buf_done(&numbers);
    table_done(&table);
}

/* One row early in the file and many later: DuckDB lets the larger chunk overtake the smaller one.
 * It is what an update of scattered rows with unchanged TOAST values asks for. */
static void
a_few_rows_and_then_many_come_in_order(void **state)
{
    enum { ROWS = 10000, WIDTH = 2500, EARLY = 4, FIRST = 5000, MANY = 100 };

    static const Type text = {.kind = TYPE_STRING};
    static char value[WIDTH];
    Error err = {0};
    Field field = {.name = STR("big"), .id = 3, .type = &text};
    Table table = {0};
    Column picked;
    ParquetFile file;
    int64_t numbers[1 + MANY] = {EARLY};

    (void) state;
    table_init(&table, &field, 1);
    for (int row = 0; row < ROWS; row++) {
        memset(value, 'x', sizeof value);
        value[snprintf(value, sizeof value, "%d", row)] = ' ';
        column_append_bytes(&table.columns[0], (Str){value, sizeof value});
    }
    for (int i = 0; i < MANY; i++)
        numbers[1 + i] = FIRST + i;
    OK(write_table("order", &table, &(Pieces){.step = ROWS}, (ParquetWrite){0}, &file, &err));
    column_init(&picked, &text);

    ParquetPick pick = {.path = path_of("order"),
                        .fields = &field,
                        .field_count = 1,
                        .row_numbers = numbers,
                        .row_count = 1 + MANY};

    OK(duck_pick_parquet(duck, &pick, &picked, &err));
    assert_int_equal(picked.rows, 1 + MANY);
    for (size_t i = 0; i <= MANY; i++)
        assert_int_equal(strtol(column_bytes(&picked, i).ptr, NULL, 10), numbers[i]);
    column_done(&picked);
    table_done(&table);
}

#define FIELD_ID(n, i, t)                                                                          \
    {                                                                                              \
        .name = STR(n), .id = (i), .type = (t)                                                     \
    }

/* A list of structs, before and after its type changed. */
static void
expect_same_elements(const Column *old_list, const Column *new_list, size_t row)
{
    const Column *was = &old_list->children[0];
    const Column *now = &new_list->children[0];
    Span from = column_span(old_list, row);
    Span to = column_span(new_list, row);

    assert_int_equal(from.length, to.length);
    for (uint64_t i = from.offset, k = to.offset; k < to.offset + to.length; i++, k++) {
        assert_int_equal(column_is_null(was, i), column_is_null(now, k));
        assert_true(str_eq(column_bytes(&was->children[2], i), column_bytes(&now->children[0], k)));
        assert_int_equal(BUF_AT(&was->children[1].values, int32_t, i),
                         BUF_AT(&now->children[1].values, int64_t, k));
        assert_true(column_is_null(&now->children[2], k));
    }
}

static void
expect_same_row(const Table *old_table, const Table *new_table, size_t row)
{
    const Column *was = old_table->columns;
    const Column *now = new_table->columns;

    assert_true(column_is_null(&now[0], row) && column_is_null(&now[4], row));
    assert_int_equal(column_is_null(&now[3], row), column_is_null(&was[0], row));
    assert_int_equal(BUF_AT(&now[3].values, int64_t, row), BUF_AT(&was[0].values, int32_t, row));
    assert_true(BUF_AT(&now[1].values, double, row) == BUF_AT(&was[2].values, float, row) ||
                isnan(BUF_AT(&was[2].values, float, row)));
    assert_true((int64_t) BUF_AT(&now[5].values, __int128, row) ==
                BUF_AT(&was[3].values, int64_t, row));
    expect_same_elements(&was[1], &now[2], row);
}

/* A file of before the table changed: names and order of the members differ, some fields are new,
 * some were promoted. */
static void
fields_are_found_by_id(void **state)
{
    enum { ROWS = 3000 };

    Error err = {0};
    Table table = {0};
    ParquetFile file;
    Type *old_row = NESTED(TYPE_STRUCT, 3, FIELD_ID("gone", 11, &INT32),
                           FIELD_ID("number", 12, &INT32), FIELD_ID("name", 13, &STRING));
    Type *new_row = NESTED(TYPE_STRUCT, 3, FIELD_ID("label", 13, &STRING),
                           FIELD_ID("number", 12, &INT64), FIELD_ID("added", 14, PLAIN(TYPE_DATE)));
    Field old_fields[] = {
        FIELD_ID("a", 1, &INT32),
        FIELD_ID("r", 2, NESTED(TYPE_LIST, 1, FIELD_ID("element", 10, old_row))),
        FIELD_ID("f", 3, PLAIN(TYPE_FLOAT32)),
        FIELD_ID("d", 4, DECIMAL(9, 2)),
    };
    Field new_fields[] = {
        FIELD_ID("none", 20, NESTED(TYPE_LIST, 1, FIELD_ID("element", 21, &INT32))),
        FIELD_ID("f", 3, PLAIN(TYPE_FLOAT64)),
        FIELD_ID("renamed", 2, NESTED(TYPE_LIST, 1, FIELD_ID("element", 10, new_row))),
        FIELD_ID("a", 1, &INT64),
        FIELD_ID("new", 22, PLAIN(TYPE_UUID)),
        FIELD_ID("d", 4, DECIMAL(20, 2)),
    };
    Field wrong_field =
        FIELD_ID("r", 2, NESTED(TYPE_LIST, 1, FIELD_ID("element", 10, PLAIN(TYPE_DATE))));
    Gather gather = {0};
    Gather nothing = {0};
    Gather wrong = {0};

    (void) state;
    seed = 5;
    table_init(&table, old_fields, 4);
    table_fill(&table, ROWS, 4);
    OK(write_table("evolved", &table, &(Pieces){.step = ROWS}, (ParquetWrite){0}, &file, &err));
    OK(scan_table("evolved", new_fields, 6, &gather, &err));
    for (size_t row = 0; row < ROWS; row++)
        expect_same_row(&table, &gather.table, row);
    OK(scan_table("evolved", new_fields, 1, &nothing, &err)); /* none that the file has */
    assert_int_equal(nothing.table.columns[0].rows, ROWS);
    FAILS(scan_table("evolved", &wrong_field, 1, &wrong, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "evolved.parquet"));
    table_done(&gather.table);
    table_done(&nothing.table);
    table_done(&wrong.table);
    table_done(&table);
}

/* Few values, many times, as dictionaries are made for: which take 0 and -0 for one in DuckDB. */
static void
zeros_keep_their_sign(void **state)
{
    enum { ROWS = 4000 };

    Error err = {0};
    Table table = {0};
    Gather gather = {0};
    ParquetFile file;
    Field fields[] = {
        FIELD_ID("f", 1, PLAIN(TYPE_FLOAT32)),
        FIELD_ID("l", 2, NESTED(TYPE_LIST, 1, FIELD_ID("element", 3, PLAIN(TYPE_FLOAT64)))),
    };

    (void) state;
    table_init(&table, fields, 2);
    table_fill(&table, ROWS, 0);

    Column *elements = &table.columns[1].children[0];

    for (size_t row = 0; row < ROWS; row++)
        BUF_AT(&table.columns[0].values, float, row) = row % 3 == 0 ? -0.0F : 0.0F;
    for (size_t i = 0; i < elements->rows; i++)
        BUF_AT(&elements->values, double, i) = i % 2 == 0 ? 0.0 : -0.0;
    OK(write_table("zeros", &table, &(Pieces){.step = 1000}, (ParquetWrite){0}, &file, &err));
    OK(scan_table("zeros", fields, 2, &gather, &err));
    for (size_t row = 0; row < ROWS; row++)
        assert_int_equal(!signbit(BUF_AT(&gather.table.columns[0].values, float, row)),
                         row % 3 > 0);
    for (size_t i = 0; i < elements->rows; i++)
        assert_int_equal(!signbit(BUF_AT(&gather.table.columns[1].children[0].values, double, i)),
                         i % 2 == 0);
    table_done(&table);
    table_done(&gather.table);
}

static void
odd_names_are_kept_where_duckdb_lets_them(void **state)
{
    static const char *const wanted[] = {"a",
                                         "A",
                                         "A_1",
                                         "file_row_number",
                                         "__duckdb_field_id",
                                         "se\"l.ect, {x: 1}",
                                         "it's; --",
                                         "\xC3\xA4\xE6\x97\xA5\xF0\x9F\x90\x98",
                                         "\xC3\x84",
                                         " ",
                                         "element"};
    static const char *const kept[] = {"a",
                                       "A_1",
                                       "A_1_1",
                                       "file_row_number",
                                       "__duckdb_field_id_1",
                                       "se\"l.ect, {x: 1}",
                                       "it's; --",
                                       "\xC3\xA4\xE6\x97\xA5\xF0\x9F\x90\x98",
                                       "\xC3\x84",
                                       " ",
                                       "element"};

    enum { COUNT = sizeof wanted / sizeof wanted[0] };

    Error err = {0};
    Table table = {0};
    Gather gather = {0};
    ParquetFile file;
    ParquetFooter footer;
    Field members[COUNT];
    Field fields[COUNT + 1];

    (void) state;
    for (int i = 0; i < COUNT; i++)
        members[i] = fields[i] = (Field){.name = str_of(wanted[i]), .type = &INT32};
    fields[COUNT] = (Field) FIELD(
        "row", (&(Type){.kind = TYPE_STRUCT, .field_count = COUNT, .fields = members}));
    assign_ids(arena, fields, COUNT + 1);
    seed = 3;
    table_init(&table, fields, COUNT + 1);
    table_fill(&table, 100, 3);
    OK(write_table("names", &table, &(Pieces){.step = 100}, (ParquetWrite){0}, &file, &err));
    assert_int_equal(file.leaf_count, 2 * COUNT);
    OK(parquet_footer_read(arena, path_of("names"), &footer, &err));
    for (int i = 0; i < COUNT; i++) {
        const ParquetNode *top = &footer.nodes[1 + i];
        const ParquetNode *member = &footer.nodes[1 + COUNT + 1 + i];

        assert_string_equal(top->name.ptr, kept[i]);
        assert_int_equal(top->field_id, i + 1);
        assert_string_equal(member->name.ptr, kept[i]);
        assert_int_equal(member->field_id, COUNT + 2 + i);
    }
    OK(scan_table("names", fields, COUNT + 1, &gather, &err));
    for (size_t row = 0; row < 100; row++)
        assert_rows_equal(&table, row, &gather.table, row);
    table_done(&table);
    table_done(&gather.table);
}

static void
a_wide_table_works(void **state)
{
    enum { WIDTH = 1600 };

    Error err = {0};
    Table table = {0};
    Gather gather = {0};
    ParquetFile file;
    Field *fields = ARENA_ARRAY(arena, Field, WIDTH);

    (void) state;
    for (int i = 0; i < WIDTH; i++)
        fields[i] = (Field){.name = arena_strf(arena, "column %d", i),
                            .type = i % 2 == 0 ? &INT64 : &STRING};
    assign_ids(arena, fields, WIDTH);
    seed = 11;
    table_init(&table, fields, WIDTH);
    table_fill(&table, 50, 3);
    OK(write_table("wide", &table, &(Pieces){.step = 50}, (ParquetWrite){0}, &file, &err));
    assert_int_equal(file.leaf_count, WIDTH);
    assert_int_equal(file.leaves[WIDTH - 1].field_id, WIDTH);
    OK(scan_table("wide", fields, WIDTH, &gather, &err));
    for (size_t row = 0; row < 50; row++)
        assert_rows_equal(&table, row, &gather.table, row);
    table_done(&table);
    table_done(&gather.table);
}

static void
no_rows_make_an_empty_file(void **state)
{
    Error err = {0};
    Table table = {0};
    Gather gather = {0};
    ParquetFile file;
    int count;
    Field *fields = all_fields(arena, &count);
    uint8_t dead[10];

    (void) state;
    memset(dead, 1, sizeof dead);
    table_init(&table, fields, count);
    OK(write_table("empty", &table, &(Pieces){.step = 1}, (ParquetWrite){0}, &file, &err));
    assert_int_equal(file.rows, 0);
    assert_int_equal(file.row_group_count, 0);
    OK(scan_table("empty", fields, count, &gather, &err));
    assert_int_equal(gather.blocks, 0);

    /* rows, all of them dead */
    table_fill(&table, sizeof dead, 2);
    OK(write_table("empty", &table, &(Pieces){.step = 3, .dead = dead}, (ParquetWrite){0}, &file,
                   &err));
    assert_int_equal(file.rows, 0);
    table_done(&table);
    table_done(&gather.table);
}

/* Rows of 64 kB: a row group of 122,880 of them would be 8 GB. */
static void
wide_rows_make_short_row_groups(void **state)
{
    Error err = {0};
    Table table = {0};
    Gather gather = {0};
    ParquetFile file;
    Field field = FIELD("doc", PLAIN(TYPE_STRING));
    char *text = xcalloc(65536, 1);

    (void) state;
    field.id = 1;
    seed = 23;
    table_init(&table, &field, 1);
    for (int row = 0; row < 5000; row++) {
        for (int i = 0; i < 65536; i += 8)
            memset(text + i, 'a' + (int) (noise() % 26), 8);
        column_append_bytes(&table.columns[0], (Str){.ptr = text, .len = 65536});
    }
    OK(write_table("rows", &table, &(Pieces){.step = 5000}, (ParquetWrite){.row_group_bytes = 1000},
                   &file, &err));
    assert_int_equal(file.row_group_count, 157); /* a chunk is the least: 2 MB, so 32 rows */
    OK(scan_table("rows", &field, 1, &gather, &err));
    for (size_t row = 0; row < 5000; row++)
        assert_rows_equal(&table, row, &gather.table, row);
    free(text);
    table_done(&table);
    table_done(&gather.table);
}

static void
errors_of_the_callers_pass_unchanged(void **state)
{
    Error err = {0};
    Table table = {0};
    Gather gather = {.fail_at = 2048};
    ParquetFile file;
    Field field = FIELD("i", PLAIN(TYPE_INT32));

    (void) state;
    field.id = 1;
    table_init(&table, &field, 1);
    table_fill(&table, 10000, 0);
    FAILS(write_table("broken", &table, &(Pieces){.step = 1000, .fail_at = 5000}, (ParquetWrite){0},
                      &file, &err),
          ERR_CONFLICT);
    assert_string_equal(err.msg, "the sky fell at row 5000");
    assert_int_equal(access(path_of("broken"), F_OK), -1);

    OK(write_table("broken", &table, &(Pieces){.step = 1000}, (ParquetWrite){0}, &file, &err));
    FAILS(scan_table("broken", &field, 1, &gather, &err), ERR_CANCELED);
    assert_string_equal(err.msg, "enough");
    table_done(&gather.table);
    table_done(&table);
}

static void
flip(const char *path, off_t at)
{
    FILE *file = fopen(path, "r+e");
    char bytes[64];

    assert_non_null(file);
    fseeko(file, at, SEEK_SET);
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char) ~bytes[i];
    fseeko(file, at, SEEK_SET);
    fwrite(bytes, 1, sizeof bytes, file);
    fclose(file);
}

static void
broken_files_are_errors(void **state)
{
    Error err = {0};
    Table table = {0};
    ParquetFile file;
    Field field = FIELD("l", PLAIN(TYPE_INT64));

    (void) state;
    field.id = 1;
    table_init(&table, &field, 1);
    table_fill(&table, 20000, 0);
    OK(write_table("flip", &table, &(Pieces){.step = 5000}, (ParquetWrite){.row_group_rows = 2048},
                   &file, &err));

    Gather gather = {0};

    flip(path_of("flip"), (off_t) file.row_group_offsets[5] + 5); /* a page header */
    assert_false(scan_table("flip", &field, 1, &gather, &err));
    assert_non_null(strstr(err.msg, "flip.parquet"));
    table_done(&gather.table);

    Gather cut = {0};

    assert_int_equal(truncate(path_of("flip"), 1000), 0);
    FAILS(scan_table("flip", &field, 1, &cut, &err), ERR_INPUT);
    FAILS(scan_table("missing", &field, 1, &cut, &err), ERR_TRANSIENT);
    table_done(&cut.table);

    /* a folder that is not there */
    snprintf(folder + strlen(folder), 4, "/no");
    FAILS(write_table("x", &table, &(Pieces){.step = 5000}, (ParquetWrite){0}, &file, &err),
          ERR_TRANSIENT);
    folder[strlen(folder) - 3] = '\0';
    table_done(&table);
}

static void
memory_has_a_limit(void **state)
{
    Error err = {0};
    Table table = {0};
    ParquetFile file;
    Field field = FIELD("s", PLAIN(TYPE_STRING));
    Duck *normal = duck;

    (void) state;
    field.id = 1;
    table_init(&table, &field, 1);
    for (int i = 0; i < 200000; i++)
        column_append_bytes(&table.columns[0], STR("0123456789012345678901234567890123456789"));
    OK(duck_open(&(DuckOptions){.threads = 1, .memory_bytes_max = 3000000}, &duck, &err));
    FAILS(write_table("limit", &table, &(Pieces){.step = 200000}, (ParquetWrite){0}, &file, &err),
          ERR_TRANSIENT);
    assert_non_null(strstr(err.msg, "Memory"));
    assert_null(strchr(err.msg, '\n'));
    duck_close(duck);
    duck = normal;
    table_done(&table);
}

typedef struct Worker {
    pthread_t thread;
    ParquetWrite write;
    char path[128];
    Pieces pieces;
    int64_t rows; /* out */
} Worker;

static void *
work(void *argument)
{
    Worker *worker = argument;
    AUTO_ARENA Arena *own = arena_new();
    ParquetFile file = {.rows = -1};
    Error err = {0};

    worker->rows = duck_write_parquet(duck, own, &worker->write, &file, &err) ? file.rows : -1;
    return NULL;
}

static void
several_write_at_once(void **state)
{
    enum { WORKERS = 4, ROWS = 30000 };

    Worker workers[WORKERS] = {0};
    Table table = {0};
    Field field = FIELD_ID("s", 1, &STRING);

    (void) state;
    table_init(&table, &field, 1);
    table_fill(&table, ROWS, 3);
    for (int i = 0; i < WORKERS; i++) {
        Worker *worker = &workers[i];

        snprintf(worker->path, sizeof worker->path, "%s/worker-%d.parquet", folder, i);
        worker->pieces = (Pieces){.source.next = next_piece, .table = &table, .step = 1000};
        worker->write = (ParquetWrite){.path = worker->path,
                                       .fields = &field,
                                       .field_count = 1,
                                       .rows = &worker->pieces.source};
        assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        Error err = {0};
        Gather gather = {0};
        char name[16];

        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].rows, ROWS);
        table_done(&workers[i].pieces.piece);
        snprintf(name, sizeof name, "worker-%d", i);
        OK(scan_table(name, &field, 1, &gather, &err));
        for (size_t row = 0; row < ROWS; row++)
            assert_rows_equal(&table, row, &gather.table, row);
        table_done(&gather.table);
    }
    table_done(&table);
}

static void
quoting_cannot_be_left(void **state)
{
    Buf out = {0};

    (void) state;
    duck_quote_identifier(&out, STR("a\"b"));
    duck_quote_literal(&out, STR("it's"));
    assert_string_equal(buf_text(&out), "\"a\"\"b\"'it''s'");
    assert_int_equal(duck_version()[0], 'v');
    buf_done(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_survives),
        cmocka_unit_test(zeros_keep_their_sign),
        cmocka_unit_test(dead_rows_are_left_out_and_patched_values_written),
        cmocka_unit_test(picks_give_the_rows_asked_for),
        cmocka_unit_test(a_few_rows_and_then_many_come_in_order),
        cmocka_unit_test(fields_are_found_by_id),
        cmocka_unit_test(odd_names_are_kept_where_duckdb_lets_them),
        cmocka_unit_test(a_wide_table_works),
        cmocka_unit_test(no_rows_make_an_empty_file),
        cmocka_unit_test(wide_rows_make_short_row_groups),
        cmocka_unit_test(errors_of_the_callers_pass_unchanged),
        cmocka_unit_test(broken_files_are_errors),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(several_write_at_once),
        cmocka_unit_test(quoting_cannot_be_left),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
