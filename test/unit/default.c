/* Defaults of columns that a file lacks. The JSON of the values is that of the spec's examples
 * ("JSON single-value serialization"). */
#include "testing.h"

#include <unistd.h>

#include "duck/parquet.h"
#include "iceberg/default.h"

static const Type number = {.kind = TYPE_INT32};
static const Type wide = {.kind = TYPE_INT64};
static const Type text = {.kind = TYPE_STRING};
static const Type binary = {.kind = TYPE_BINARY};
static const Type date = {.kind = TYPE_DATE};
static const Type stamp = {.kind = TYPE_TIMESTAMPTZ};
static const Type uuid = {.kind = TYPE_UUID};
static const Type price = {.kind = TYPE_DECIMAL, .precision = 20, .scale = 2};

static Field members[] = {
    {.name = {"x", 1}, .id = 21, .type = &number, .initial_default = {"7", 1}},
    {.name = {"y", 1}, .id = 22, .type = &text},
};
static const Type pair = {.kind = TYPE_STRUCT, .field_count = 2, .fields = members};
static Field element[] = {{.name = {"element", 7}, .id = 24, .type = &date}};
static const Type dates = {.kind = TYPE_LIST, .field_count = 1, .fields = element};

#define WITH_DEFAULT(n, i, t, json)                                                                \
    {                                                                                              \
        .name = STR(n), .id = (i), .type = (t), .initial_default = STR(json)                       \
    }

/* Fields around one that the file has. */
static Field *
make_fields(Arena *arena, int *out_count)
{
    const Field fields[] = {
        WITH_DEFAULT("n", 2, &number, "34"),
        WITH_DEFAULT("t", 3, &text, "\"it's \\\"new\\\"\""),
        {.name = STR("there"), .id = 1, .type = &wide, .initial_default = STR("5")},
        WITH_DEFAULT("raw", 4, &binary, "\"00010203ff\""),
        WITH_DEFAULT("day", 5, &date, "\"2017-11-16\""),
        WITH_DEFAULT("at", 6, &stamp, "\"2017-11-16T22:31:08.000001+00:00\""),
        WITH_DEFAULT("u", 7, &uuid, "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\""),
        WITH_DEFAULT("p", 8, &price, "\"-14.20\""),
        WITH_DEFAULT("pair", 20, &pair, "{}"),
        WITH_DEFAULT("dates", 23, &dates, "[\"2017-11-16\",null]"),
        {.name = STR("none"), .id = 9, .type = &number},
    };
    Field *copy = ARENA_ARRAY(arena, Field, sizeof fields / sizeof fields[0]);

    memcpy(copy, fields, sizeof fields);
    *out_count = (int) (sizeof fields / sizeof fields[0]);
    return copy;
}

/* 17,486 days after 1970-01-01 it was 2017-11-16. */
static void
expect_defaults(const Column *columns, size_t row, int64_t there)
{
    static const uint8_t id[] = {0xf7, 0x9c, 0x3e, 0x09, 0x67, 0x7c, 0x4b, 0xbd,
                                 0xa4, 0x79, 0x3f, 0x34, 0x9c, 0xb7, 0x85, 0xe7};
    Span list = column_span(&columns[9], row);
    const Column *days = &columns[9].children[0];

    assert_int_equal(BUF_AT(&columns[0].values, int32_t, row), 34);
    assert_true(str_eqc(column_bytes(&columns[1], row), "it's \"new\""));
    assert_int_equal(BUF_AT(&columns[2].values, int64_t, row), there);
    assert_true(str_eq(column_bytes(&columns[3], row), STR("\0\1\2\3\xff")));
    assert_int_equal(BUF_AT(&columns[4].values, int32_t, row), 17486);
    assert_int_equal(BUF_AT(&columns[5].values, int64_t, row), INT64_C(1510871468000001));
    assert_memory_equal(columns[6].values.ptr + 16 * row, id, 16);
    assert_true(BUF_AT(&columns[7].values, __int128, row) == -1420);
    assert_false(column_is_null(&columns[8], row));
    assert_int_equal(BUF_AT(&columns[8].children[0].values, int32_t, row), 7);
    assert_true(column_is_null(&columns[8].children[1], row));
    assert_int_equal(list.length, 2);
    assert_int_equal(BUF_AT(&days->values, int32_t, list.offset), 17486);
    assert_true(column_is_null(days, list.offset + 1));
    assert_true(column_is_null(&columns[10], row));
}

enum { ROWS = 5000, FIELDS_MAX = 16 };

/* The numbers of the rows as one block. */
typedef struct Numbers {
    RowSource base; /* first member */
    Column column;
    bool given;
} Numbers;

static bool
give_numbers(RowSource *base, RowBlock *out_block, Error *err)
{
    Numbers *numbers = (Numbers *) base;

    (void) err;
    *out_block = (RowBlock){.columns = &numbers->column, .rows = numbers->given ? 0 : ROWS};
    numbers->given = true;
    return true;
}

static void
write_file(Duck *duck, Arena *arena, const char *path)
{
    static const Field field = {.name = {"there", 5}, .id = 1, .type = &wide};
    Numbers numbers = {.base = {.next = give_numbers}};
    ParquetWrite write = {.path = path, .fields = &field, .field_count = 1, .rows = &numbers.base};
    ParquetFile file;
    Error err;

    column_init(&numbers.column, &wide);
    for (int64_t row = 0; row < ROWS; row++)
        column_append_fixed(&numbers.column, &row);
    OK(duck_write_parquet(duck, arena, &write, &file, &err));
    column_done(&numbers.column);
}

/* Checks every row of a scan. */
typedef struct Checker {
    RowSink base; /* first member */
    bool only_first;
    size_t rows;
} Checker;

static bool
check_block(RowSink *base, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    Checker *checker = (Checker *) base;

    (void) err;
    for (size_t row = 0; row < rows; row++)
        if (checker->only_first)
            assert_int_equal(BUF_AT(&columns[0].values, int32_t, row), 34);
        else
            expect_defaults(columns, row, first_row + (int64_t) row);
    checker->rows += rows;
    return true;
}

static void
expect_picked(Duck *duck, ParquetPick pick)
{
    static const int64_t rows[] = {3, 2500, ROWS - 1};
    Column columns[FIELDS_MAX];
    Error err;

    pick.row_numbers = rows;
    pick.row_count = 3;
    for (int i = 0; i < pick.field_count; i++)
        column_init(&columns[i], pick.fields[i].type);
    OK(duck_pick_parquet(duck, &pick, columns, &err));
    for (size_t row = 0; row < 3; row++)
        expect_defaults(columns, row, rows[row]);
    for (int i = 0; i < pick.field_count; i++)
        column_done(&columns[i]);
}

static void
files_without_the_columns_are_read(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    char path[] = "/tmp/walberg-default-XXXXXX.parquet";
    int count;
    Field *fields = make_fields(arena, &count);
    const char *const *defaults;
    Checker checker = {.base = {.block = check_block}};
    Checker alone = {.base = {.block = check_block}, .only_first = true};
    ParquetScan scan = {
        .path = path, .fields = fields, .field_count = count, .sink = &checker.base};
    Duck *duck;
    Error err;

    (void) state;
    close(mkstemps(path, (int) strlen(".parquet")));
    OK(duck_open(&(DuckOptions){.threads = 1}, &duck, &err));
    write_file(duck, arena, path);
    OK(default_expressions(arena, fields, count, &defaults, &err));
    scan.defaults = defaults;
    OK(duck_scan_parquet(duck, &scan, &err));
    assert_int_equal(checker.rows, ROWS);
    expect_picked(
        duck,
        (ParquetPick){.path = path, .fields = fields, .field_count = count, .defaults = defaults});

    /* nothing of the file itself */
    scan.field_count = 1;
    scan.sink = &alone.base;
    OK(duck_scan_parquet(duck, &scan, &err));
    assert_int_equal(alone.rows, ROWS);
    duck_close(duck);
    unlink(path);
}

static void
no_defaults_no_expressions(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    const Field fields[] = {{.name = STR("a"), .id = 1, .type = &number},
                            {.name = STR("b"), .id = 2, .type = &text}};
    const char *const *defaults = (const char *const *) (uintptr_t) fields;
    Error err;

    (void) state;
    OK(default_expressions(arena, fields, 2, &defaults, &err));
    assert_null(defaults);
}

static void
what_is_no_value_is_refused(void **state)
{
    const Field bad[] = {
        WITH_DEFAULT("c", 1, &number, "\"5\""),    WITH_DEFAULT("c", 1, &number, "1.5"),
        WITH_DEFAULT("c", 1, &number, "true"),     WITH_DEFAULT("c", 1, &number, "[1"),
        WITH_DEFAULT("c", 1, &text, "5"),          WITH_DEFAULT("c", 1, &binary, "\"0\""),
        WITH_DEFAULT("c", 1, &binary, "\"0g\""),   WITH_DEFAULT("c", 1, &dates, "\"2017-11-16\""),
        WITH_DEFAULT("c", 1, &dates, "[5]"),       WITH_DEFAULT("c", 1, &pair, "[]"),
        WITH_DEFAULT("c", 1, &pair, "{\"22\":5}"),
    };
    AUTO_ARENA Arena *arena = arena_new();
    const char *const *defaults;
    Error err;

    (void) state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        FAILS(default_expressions(arena, &bad[i], 1, &defaults, &err), ERR_INPUT);
        assert_true(str_starts(str_of(err.msg), STR("the default ")));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_without_the_columns_are_read),
        cmocka_unit_test(no_defaults_no_expressions),
        cmocka_unit_test(what_is_no_value_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
