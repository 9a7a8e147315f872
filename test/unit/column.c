/* Typed columns: appending, copying, truncating, encoding. */
#include "testing.h"

#include <float.h>

#include "model/column.h"

static const Type string_type = {.kind = TYPE_STRING};
static const Type int_type = {.kind = TYPE_INT32};
static const Type long_type = {.kind = TYPE_INT64};
static const Type float_type = {.kind = TYPE_FLOAT32};
static const Type double_type = {.kind = TYPE_FLOAT64};
static const Type small_decimal = {.kind = TYPE_DECIMAL, .precision = 18, .scale = 2};
static const Type large_decimal = {.kind = TYPE_DECIMAL, .precision = 19, .scale = 2};
static Field element = {.name = {.ptr = "element", .len = 7}, .type = &string_type};
static const Type list_type = {.kind = TYPE_LIST, .field_count = 1, .fields = &element};
static Field members[] = {
    {.name = {.ptr = "n", .len = 1}, .type = &int_type},
    {.name = {.ptr = "tags", .len = 4}, .type = &list_type},
};
static const Type struct_type = {.kind = TYPE_STRUCT, .field_count = 2, .fields = members};

/* A struct (n, tags) with `count` tags named after n; none when n is negative. */
static void
append_thing(Column *column, int n, int count)
{
    size_t start = column->children[1].children[0].rows;
    char text[32];

    column_append_fixed(&column->children[0], &n);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "tag %d of %d", i, n);
        column_append_bytes(&column->children[1].children[0], str_of(text));
    }
    if (count < 0)
        column_append_null(&column->children[1]);
    else
        column_append_span(&column->children[1], start);
    column_append_struct(column);
}

static void
assert_thing(const Column *column, size_t row, int n, int count)
{
    const Column *tags = &column->children[1];
    char text[32];

    assert_false(column_is_null(column, row));
    assert_int_equal(BUF_AT(&column->children[0].values, int32_t, row), n);
    assert_int_equal(column_is_null(tags, row), count < 0);

    Span span = column_span(tags, row);

    assert_int_equal(span.length, count < 0 ? 0 : count);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "tag %d of %d", i, n);
        assert_true(str_eqc(column_bytes(&tags->children[0], span.offset + (size_t) i), text));
    }
}

static void
nulls_reach_into_structs(void **state)
{
    (void) state;

    Column column;

    column_init(&column, &struct_type);
    column_append_null(&column);
    append_thing(&column, 7, 2);
    append_thing(&column, 8, -1);
    append_thing(&column, 9, 0);
    assert_int_equal(column.rows, 4);
    assert_int_equal(column.children[0].rows, 4);
    assert_int_equal(column.children[1].rows, 4);
    assert_true(column_is_null(&column, 0));
    assert_true(column_is_null(&column.children[0], 0));
    assert_true(column_is_null(&column.children[1], 0));
    assert_int_equal(BUF_AT(&column.children[0].values, int32_t, 0), 0);
    assert_thing(&column, 1, 7, 2);
    assert_thing(&column, 2, 8, -1);
    assert_thing(&column, 3, 9, 0);
    column_done(&column);
}

static void
copies_within_and_between_columns(void **state)
{
    (void) state;

    Column column;
    Column other;

    column_init(&column, &struct_type);
    column_init(&other, &struct_type);
    for (int i = 0; i < 10; i++)
        append_thing(&column, i, i - 1);
    column_append_null(&column);
    /* far enough for every buffer to move while it is copied from */
    for (int round = 0; round < 50; round++)
        for (size_t row = 0; row < 11; row++)
            column_append_copy(&column, &column, row);
    for (size_t row = 0; row < column.rows; row++) {
        if (row % 11 == 10)
            assert_true(column_is_null(&column, row));
        else
            assert_thing(&column, row, (int) (row % 11), (int) (row % 11) - 1);
        column_append_copy(&other, &column, row);
    }
    for (size_t row = 0; row < other.rows; row++)
        column_set_copy(&other, row, &other, (row * 7 + 3) % 11 == 10 ? 10 : (row * 7 + 3) % 11);
    /* every row now is that of an original, though the originals changed on the way */
    for (size_t row = 11; row < other.rows; row++)
        if (!column_is_null(&other, row)) {
            int n = BUF_AT(&other.children[0].values, int32_t, row);

            assert_thing(&other, row, n, n - 1);
        }
    assert_true(column_memory(&column) > 0);
    column_reset(&column);
    assert_int_equal(column_memory(&column), 0);
    column_done(&column);
    column_done(&other);
}

static void
truncated_columns_go_on_as_if_nothing_was(void **state)
{
    (void) state;

    Column column;

    column_init(&column, &struct_type);
    append_thing(&column, 1, 3);
    append_thing(&column, 2, 2);

    size_t memory = column_memory(&column);

    append_thing(&column, 3, 3);
    column_append_null(&column);
    column_truncate(&column, 2);
    assert_int_equal(column_memory(&column), memory);
    assert_int_equal(column.children[1].children[0].rows, 5);
    append_thing(&column, 4, 1);
    assert_thing(&column, 1, 2, 2);
    assert_thing(&column, 2, 4, 1);
    /* row 0 gets what lies behind row 2: dropping row 2 must not take it away */
    append_thing(&column, 5, 4);
    column_set_copy(&column, 0, &column, 3);
    column_truncate(&column, 1);
    assert_thing(&column, 0, 5, 4);
    column_done(&column);
}

static bool
same_encoding(const Column *a, size_t row_a, const Column *b, size_t row_b)
{
    AUTO_BUF Buf bytes_a = {0};
    AUTO_BUF Buf bytes_b = {0};

    column_encode(a, row_a, &bytes_a);
    column_encode(b, row_b, &bytes_b);
    return str_eq(buf_view(&bytes_a), buf_view(&bytes_b));
}

static void
encoding_outlives_promotion(void **state)
{
    (void) state;

    Column narrow;
    Column wide;
    int32_t small = -5;
    int64_t large = -5;
    float f = 1.5F;
    double d = 1.5;
    __int128 cents = -1234;
    int64_t small_cents = -1234;

    column_init(&narrow, &int_type);
    column_init(&wide, &long_type);
    column_append_fixed(&narrow, &small);
    column_append_fixed(&wide, &large);
    assert_true(same_encoding(&narrow, 0, &wide, 0));
    column_done(&narrow);
    column_done(&wide);

    column_init(&narrow, &float_type);
    column_init(&wide, &double_type);
    column_append_fixed(&narrow, &f);
    column_append_fixed(&wide, &d);
    assert_true(same_encoding(&narrow, 0, &wide, 0));
    column_done(&narrow);
    column_done(&wide);

    column_init(&narrow, &small_decimal);
    column_init(&wide, &large_decimal);
    column_append_fixed(&narrow, &small_cents);
    column_append_fixed(&wide, &cents);
    assert_true(same_encoding(&narrow, 0, &wide, 0));
    column_done(&narrow);
    column_done(&wide);
}

static void
encoding_tells_values_apart(void **state)
{
    (void) state;

    Column doubles;
    uint64_t nan_bits = 0xfff8000000000123u;
    double values[] = {0.0, -0.0, __builtin_nan(""), 0, 1e300};

    memcpy(&values[3], &nan_bits, sizeof nan_bits);
    column_init(&doubles, &double_type);
    for (size_t i = 0; i < 5; i++)
        column_append_fixed(&doubles, &values[i]);
    column_append_null(&doubles);
    assert_false(same_encoding(&doubles, 0, &doubles, 1));
    assert_true(same_encoding(&doubles, 2, &doubles, 3)); /* NaNs are one */
    assert_false(same_encoding(&doubles, 0, &doubles, 5));
    column_done(&doubles);

    /* {"ab"} and {"a","b"}, {} and NULL */
    Column lists;

    column_init(&lists, &list_type);
    column_append_bytes(&lists.children[0], STR("ab"));
    column_append_span(&lists, 0);
    column_append_bytes(&lists.children[0], STR("a"));
    column_append_bytes(&lists.children[0], STR("b"));
    column_append_span(&lists, 1);
    column_append_span(&lists, 3);
    column_append_null(&lists);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++)
            assert_int_equal(same_encoding(&lists, i, &lists, j), i == j);
    column_done(&lists);
}

/* At any depth; neither 0 nor the least number, nor a NULL. */
static void
negative_zeros_are_seen(void **state)
{
    static const Type *const kinds[] = {&float_type, &double_type};
    static Field top = {.name = {.ptr = "element", .len = 7}};
    static const Type list = {.kind = TYPE_LIST, .field_count = 1, .fields = &top};
    static Field middle = {.name = {.ptr = "m", .len = 1}, .type = &list};
    static const Type outer = {.kind = TYPE_STRUCT, .field_count = 1, .fields = &middle};
    static const double values[] = {0.0, 1.5, -1.5, -0.0};

    (void) state;
    for (int kind = 0; kind < 2; kind++) {
        Column column;

        top.type = kinds[kind];
        column_init(&column, &outer);

        Column *reals = &column.children[0].children[0];

        column_append_null(reals);
        column_append_fixed(reals, kind == 0 ? (void *) &(float){-FLT_TRUE_MIN}
                                             : (void *) &(double){-DBL_TRUE_MIN});
        for (size_t i = 0; i < 4; i++) {
            assert_false(columns_have_negative_zero(&column, 1));
            column_append_fixed(reals, kind == 0 ? (void *) &(float){(float) values[i]}
                                                 : (void *) &(double){values[i]});
        }
        assert_true(columns_have_negative_zero(&column, 1));
        column_done(&column);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nulls_reach_into_structs),
        cmocka_unit_test(copies_within_and_between_columns),
        cmocka_unit_test(truncated_columns_go_on_as_if_nothing_was),
        cmocka_unit_test(encoding_outlives_promotion),
        cmocka_unit_test(encoding_tells_values_apart),
        cmocka_unit_test(negative_zeros_are_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
