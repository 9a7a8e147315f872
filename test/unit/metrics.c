/* Column metrics. Vectors: Iceberg spec, "Appendix D: Single-value serialization"; the rounding of
 * strings as in Java's UnicodeUtil. golden/check_written.py compares the bounds of a whole file
 * with pyarrow's idea of its smallest and largest values. */
#include "golden_files.h"
#include "testing.h"

#include <math.h>

#include "iceberg/metrics.h"

typedef struct Case {
    Arena *arena;
    Type type;
    Field field;
    Column column;
    FileMetrics *metrics;
    DataFile file;
} Case;

static void
begin(Case *test, TypeKind kind)
{
    *test = (Case){.arena = arena_new(), .type = {.kind = kind}};
    test->field = (Field){.name = STR("c"), .id = 5, .type = &test->type};
    column_init(&test->column, &test->type);
    test->metrics = file_metrics_new(&test->field, 1);
}

static void
finish(Case *test, const uint8_t *dead)
{
    file_metrics_add(test->metrics, &test->column, test->column.rows, dead);
    file_metrics_finish(test->metrics, test->arena, &test->file);
}

static void
end(Case *test)
{
    file_metrics_free(test->metrics);
    column_done(&test->column);
    arena_free(test->arena);
}

static const char *
hex(const Case *test, Str bytes)
{
    AUTO_BUF Buf out = {0};

    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(&out, "%02x", (uint8_t) bytes.ptr[i]);
    return arena_strdup(test->arena, buf_text(&out));
}

static void
expect_bounds(const Case *test, const char *lower, const char *upper)
{
    assert_int_equal(test->file.lower_bounds.count, lower == NULL ? 0 : 1);
    assert_int_equal(test->file.upper_bounds.count, upper == NULL ? 0 : 1);
    if (lower != NULL)
        assert_string_equal(hex(test, test->file.lower_bounds.items[0].value), lower);
    if (upper != NULL)
        assert_string_equal(hex(test, test->file.upper_bounds.items[0].value), upper);
}

static void
expect_counts(const Case *test, int values, int nulls)
{
    assert_int_equal(test->file.value_counts.count, 1);
    assert_int_equal(test->file.value_counts.items[0].field_id, 5);
    assert_int_equal(test->file.value_counts.items[0].count, values);
    assert_int_equal(test->file.null_counts.items[0].count, nulls);
}

#define APPEND(test, Type, ...)                                                                    \
    do {                                                                                           \
        const Type appended[] = {__VA_ARGS__};                                                     \
                                                                                                   \
        for (size_t i_ = 0; i_ < sizeof appended / sizeof appended[0]; i_++)                       \
            column_append_fixed(&(test)->column, &appended[i_]);                                   \
    } while (0)

static void
numbers_are_little_endian(void **state)
{
    Case test;

    (void) state;
    begin(&test, TYPE_INT32);
    APPEND(&test, int32_t, 7, -2, 300);
    column_append_null(&test.column);
    finish(&test, NULL);
    expect_bounds(&test, "feffffff", "2c010000");
    expect_counts(&test, 4, 1);
    assert_int_equal(test.file.nan_counts.count, 0);
    end(&test);

    begin(&test, TYPE_INT64);
    APPEND(&test, int64_t, INT64_MIN, INT64_MAX);
    finish(&test, NULL);
    expect_bounds(&test, "0000000000000080", "ffffffffffffff7f");
    end(&test);

    begin(&test, TYPE_BOOL);
    APPEND(&test, uint8_t, 1, 1);
    finish(&test, NULL);
    expect_bounds(&test, "01", "01");
    end(&test);

    begin(&test, TYPE_DATE);
    APPEND(&test, int32_t, -1);
    finish(&test, NULL);
    expect_bounds(&test, "ffffffff", "ffffffff");
    end(&test);
}

static void
nothing_has_no_bounds(void **state)
{
    Case test;

    (void) state;
    begin(&test, TYPE_STRING);
    finish(&test, NULL);
    expect_bounds(&test, NULL, NULL);
    expect_counts(&test, 0, 0);
    end(&test);

    begin(&test, TYPE_INT64);
    column_append_null(&test.column);
    finish(&test, NULL);
    expect_bounds(&test, NULL, NULL);
    expect_counts(&test, 1, 1);
    end(&test);
}

static void
nans_and_zeros(void **state)
{
    Case test;

    (void) state;
    begin(&test, TYPE_FLOAT64);
    APPEND(&test, double, (double) NAN, 0.0, (double) NAN);
    finish(&test, NULL);
    /* "lower of -0.0/+0.0 must be -0.0" */
    expect_bounds(&test, "0000000000000080", "0000000000000000");
    expect_counts(&test, 3, 0);
    assert_int_equal(test.file.nan_counts.items[0].count, 2);
    end(&test);

    begin(&test, TYPE_FLOAT64);
    APPEND(&test, double, -0.0);
    finish(&test, NULL);
    expect_bounds(&test, "0000000000000080", "0000000000000000");
    end(&test);

    begin(&test, TYPE_FLOAT32);
    APPEND(&test, float, NAN);
    finish(&test, NULL);
    expect_bounds(&test, NULL, NULL);
    assert_int_equal(test.file.nan_counts.items[0].count, 1);
    end(&test);

    begin(&test, TYPE_FLOAT32);
    APPEND(&test, float, 1.5F, -INFINITY);
    finish(&test, NULL);
    expect_bounds(&test, "000080ff", "0000c03f");
    end(&test);
}

/* Minimal big-endian two's complement */
static void
decimals_are_minimal(void **state)
{
    static const struct {
        int64_t unscaled;
        const char *bytes;
    } vectors[] = {
        {0, "00"},     {1420, "058c"},    {-1420, "fa74"},  {127, "7f"},
        {128, "0080"}, {-128, "80"},      {-129, "ff7f"},   {-1, "ff"},
        {255, "00ff"}, {32768, "008000"}, {-32768, "8000"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        Case test;
        __int128 wide = vectors[i].unscaled;

        begin(&test, TYPE_DECIMAL);
        test.type.precision = 18;
        APPEND(&test, int64_t, vectors[i].unscaled);
        finish(&test, NULL);
        expect_bounds(&test, vectors[i].bytes, vectors[i].bytes);
        end(&test);

        begin(&test, TYPE_DECIMAL);
        test.type.precision = 38;
        column_append_fixed(&test.column, &wide);
        finish(&test, NULL);
        expect_bounds(&test, vectors[i].bytes, vectors[i].bytes);
        end(&test);
    }

    Case test;
    __int128 big = (__int128) 1 << 126;
    __int128 small = -big;

    begin(&test, TYPE_DECIMAL);
    test.type.precision = 38;
    column_append_fixed(&test.column, &big);
    column_append_fixed(&test.column, &small);
    finish(&test, NULL);
    expect_bounds(&test, "c0000000000000000000000000000000", "40000000000000000000000000000000");
    end(&test);
}

static void
expect_strings(TypeKind kind, const char *const *values, Str lower, Str upper)
{
    Case test;

    begin(&test, kind);
    for (size_t i = 0; values[i] != NULL; i++)
        column_append_bytes(&test.column, str_of(values[i]));
    finish(&test, NULL);
    expect_bounds(&test, lower.ptr == NULL ? NULL : hex(&test, lower),
                  upper.ptr == NULL ? NULL : hex(&test, upper));
    end(&test);
}

#define VALUES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define FIFTEEN     "aaaaaaaaaaaaaaa"

static void
strings_are_cut_and_rounded_up(void **state)
{
    (void) state;
    expect_strings(TYPE_STRING, VALUES("b", "a", ""), STR(""), STR("b"));
    expect_strings(TYPE_STRING, VALUES(FIFTEEN "b"), STR(FIFTEEN "b"), STR(FIFTEEN "b"));
    expect_strings(TYPE_STRING, VALUES(FIFTEEN "bc"), STR(FIFTEEN "b"), STR(FIFTEEN "c"));
    /* a whole value equal to a longer one's prefix: the longer one decides */
    expect_strings(TYPE_STRING, VALUES(FIFTEEN "bc", FIFTEEN "b"), STR(FIFTEEN "b"),
                   STR(FIFTEEN "c"));
    expect_strings(TYPE_STRING, VALUES(FIFTEEN "b", FIFTEEN "bc"), STR(FIFTEEN "b"),
                   STR(FIFTEEN "c"));
    /* 16 characters, not bytes */
    expect_strings(TYPE_STRING,
                   VALUES(FIFTEEN "\xE2\x82\xAC"
                                  "x"),
                   STR(FIFTEEN "\xE2\x82\xAC"), STR(FIFTEEN "\xE2\x82\xAD"));
    /* U+007F + 1 is two bytes, U+FFFF + 1 four */
    expect_strings(TYPE_JSON,
                   VALUES(FIFTEEN "\x7F"
                                  "x"),
                   STR(FIFTEEN "\x7F"), STR(FIFTEEN "\xC2\x80"));
    expect_strings(TYPE_STRING,
                   VALUES(FIFTEEN "\xEF\xBF\xBF"
                                  "x"),
                   STR(FIFTEEN "\xEF\xBF\xBF"), STR(FIFTEEN "\xF0\x90\x80\x80"));
    /* U+D7FF + 1 is a surrogate: U+E000 */
    expect_strings(TYPE_STRING,
                   VALUES(FIFTEEN "\xED\x9F\xBF"
                                  "x"),
                   STR(FIFTEEN "\xED\x9F\xBF"), STR(FIFTEEN "\xEE\x80\x80"));
    /* U+10FFFF has nothing above: carry to the left */
    expect_strings(TYPE_STRING,
                   VALUES(FIFTEEN "\xF4\x8F\xBF\xBF"
                                  "x"),
                   STR(FIFTEEN "\xF4\x8F\xBF\xBF"), STR("aaaaaaaaaaaaaab"));
}

#define LAST     "\xF4\x8F\xBF\xBF"
#define FOUR(x)  x x x x
#define LASTS_16 FOUR(FOUR(LAST))

static void
no_bound_is_better_than_a_wrong_one(void **state)
{
    (void) state;
    expect_strings(TYPE_STRING, VALUES(LASTS_16 "x"), STR(LASTS_16), STR_NULL);
    expect_strings(TYPE_STRING, VALUES(LASTS_16), STR(LASTS_16), STR(LASTS_16));
    expect_strings(TYPE_STRING, VALUES("\xFF\xFE broken"), STR_NULL, STR_NULL);
    expect_strings(TYPE_BINARY, VALUES(FOUR(FOUR("\xFF")) "x"), STR(FOUR(FOUR("\xFF"))), STR_NULL);
    expect_strings(TYPE_BINARY,
                   VALUES(FIFTEEN "\xFF"
                                  "x"),
                   STR(FIFTEEN "\xFF"), STR("aaaaaaaaaaaaaab"));
    expect_strings(TYPE_BINARY, VALUES("\xFF\x01", "\x01"), STR("\x01"), STR("\xFF\x01"));
}

static void
whole_strings_when_asked(void **state)
{
    Case test;

    (void) state;
    begin(&test, TYPE_STRING);
    file_metrics_keep_full(test.metrics, 5);
    column_append_bytes(&test.column, STR("s3://bucket/a/very/long/path.parquet"));
    finish(&test, NULL);
    assert_true(
        str_eqc(test.file.lower_bounds.items[0].value, "s3://bucket/a/very/long/path.parquet"));
    assert_true(
        str_eqc(test.file.upper_bounds.items[0].value, "s3://bucket/a/very/long/path.parquet"));
    end(&test);
}

static void
uuids_only_where_all_readers_agree(void **state)
{
    static const uint8_t low[16] = {0x01, [8] = 0x80};
    static const uint8_t middle[16] = {0x7f, [8] = 0xbf, [15] = 1};
    static const uint8_t high[16] = {0x80, [8] = 0x80};
    Case test;

    (void) state;
    begin(&test, TYPE_UUID);
    column_append_fixed(&test.column, middle);
    column_append_fixed(&test.column, low);
    finish(&test, NULL);
    expect_bounds(&test, "01000000000000008000000000000000", "7f00000000000000bf00000000000001");
    column_append_fixed(&test.column, high);
    finish(&test, NULL);
    expect_bounds(&test, NULL, NULL);
    end(&test);
}

static void
dead_rows_do_not_count(void **state)
{
    const uint8_t dead[] = {1, 0, 0, 1, 0};
    Case test;

    (void) state;
    begin(&test, TYPE_INT64);
    APPEND(&test, int64_t, -100, 5);
    column_append_null(&test.column);
    APPEND(&test, int64_t, 100, 6);
    finish(&test, dead);
    expect_bounds(&test, "0500000000000000", "0600000000000000");
    expect_counts(&test, 3, 1);
    end(&test);
}

/* --- Nested columns ------------------------------------------------------------------------ */

static int64_t
count_of(const CountByField *items, size_t count, int field_id)
{
    for (size_t i = 0; i < count; i++)
        if (items[i].field_id == field_id)
            return items[i].count;
    return -1;
}

/* struct<x int, l list<double>>, with a NULL struct and a NULL list among them */
static void
structs_and_lists(void **state)
{
    static const Type number = {.kind = TYPE_INT32};
    static const Type real = {.kind = TYPE_FLOAT64};
    Field element = {.name = STR("element"), .id = 13, .type = &real};
    const Type list = {.kind = TYPE_LIST, .field_count = 1, .fields = &element};
    Field members[] = {{.name = STR("x"), .id = 12, .type = &number},
                       {.name = STR("l"), .id = 11, .type = &list}};
    const Type record = {.kind = TYPE_STRUCT, .field_count = 2, .fields = members};
    const Field field = {.name = STR("s"), .id = 1, .type = &record};
    const uint8_t dead[] = {0, 0, 0, 1};
    const double values[] = {1, (double) NAN, 2};
    AUTO_ARENA Arena *arena = arena_new();
    FileMetrics *metrics = file_metrics_new(&field, 1);
    DataFile file = {0};
    Column column;

    (void) state;
    column_init(&column, &record);
    for (int32_t row = 0; row < 4; row++) {
        if (row == 1) {
            column_append_null(&column);
            continue;
        }

        size_t start = column.children[1].children[0].rows;

        column_append_fixed(&column.children[0], &row);
        for (int i = 0; i < 3; i++)
            column_append_fixed(&column.children[1].children[0], &values[i]);
        if (row == 2)
            column_append_null(&column.children[1].children[0]);
        column_append_span(&column.children[1], start);
        column_append_struct(&column);
    }
    file_metrics_add(metrics, &column, 4, dead);
    file_metrics_finish(metrics, arena, &file);
    assert_int_equal(file.value_counts.count, 2);
    assert_int_equal(count_of(file.value_counts.items, 2, 12), 3);
    assert_int_equal(count_of(file.null_counts.items, 2, 12), 1);
    assert_int_equal(count_of(file.value_counts.items, 2, 13), 7); /* 3 + 4 */
    assert_int_equal(count_of(file.null_counts.items, 2, 13), 1);
    assert_int_equal(file.nan_counts.count, 1);
    assert_int_equal(count_of(file.nan_counts.items, 1, 13), 2);
    assert_int_equal(file.lower_bounds.count, 1); /* x only */
    assert_int_equal(file.lower_bounds.items[0].field_id, 12);
    assert_memory_equal(file.lower_bounds.items[0].value.ptr, "\0\0\0\0", 4);
    assert_memory_equal(file.upper_bounds.items[0].value.ptr, "\2\0\0\0", 4);
    file_metrics_free(metrics);
    column_done(&column);
}

/* An element that no row refers to any more. */
static void
overwritten_elements_do_not_count(void **state)
{
    static const Type number = {.kind = TYPE_INT32};
    Field element = {.name = STR("element"), .id = 2, .type = &number};
    const Type list = {.kind = TYPE_LIST, .field_count = 1, .fields = &element};
    const Field field = {.name = STR("l"), .id = 1, .type = &list};
    AUTO_ARENA Arena *arena = arena_new();
    FileMetrics *metrics = file_metrics_new(&field, 1);
    DataFile file = {0};
    int32_t value = 7;
    Column column;
    Column other;

    (void) state;
    column_init(&column, &list);
    column_init(&other, &list);
    column_append_fixed(&column.children[0], &value);
    column_append_fixed(&column.children[0], &value);
    column_append_span(&column, 0);
    column_append_fixed(&other.children[0], &value);
    column_append_span(&other, 0);
    column_set_copy(&column, 0, &other, 0);
    file_metrics_add(metrics, &column, 1, NULL);
    file_metrics_finish(metrics, arena, &file);
    assert_int_equal(file.value_counts.items[0].count, 1);
    file_metrics_free(metrics);
    column_done(&column);
    column_done(&other);
}

static void
a_hundred_leaves_at_most(void **state)
{
    static const Type number = {.kind = TYPE_INT32};
    Field fields[120];
    Column columns[120];
    AUTO_ARENA Arena *arena = arena_new();
    DataFile file = {0};
    FileMetrics *metrics;

    (void) state;
    for (int32_t i = 0; i < 120; i++) {
        fields[i] = (Field){.name = STR("c"), .id = 200 - i, .type = &number};
        column_init(&columns[i], &number);
        column_append_fixed(&columns[i], &i);
    }
    metrics = file_metrics_new(fields, 120);
    file_metrics_add(metrics, columns, 1, NULL);
    file_metrics_finish(metrics, arena, &file);
    assert_int_equal(file.value_counts.count, 100);
    assert_int_equal(file.lower_bounds.count, 100);
    assert_int_equal(file.value_counts.items[0].field_id, 101); /* sorted */
    assert_int_equal(file.lower_bounds.items[99].field_id, 200);
    file_metrics_free(metrics);
    for (int i = 0; i < 120; i++)
        column_done(&columns[i]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(nothing_has_no_bounds),
        cmocka_unit_test(nans_and_zeros),
        cmocka_unit_test(decimals_are_minimal),
        cmocka_unit_test(strings_are_cut_and_rounded_up),
        cmocka_unit_test(no_bound_is_better_than_a_wrong_one),
        cmocka_unit_test(whole_strings_when_asked),
        cmocka_unit_test(uuids_only_where_all_readers_agree),
        cmocka_unit_test(dead_rows_do_not_count),
        cmocka_unit_test(structs_and_lists),
        cmocka_unit_test(overwritten_elements_do_not_count),
        cmocka_unit_test(a_hundred_leaves_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
