/* Defaults as JSON. The values of `spec_values` are those of the Iceberg spec's table "JSON
 * single-value serialization"; readers that are not ours take all kinds in
 * test/e2e/test_write_v3.py. */
#include "testing.h"

#include "iceberg/default_json.h"

typedef struct Sample {
    Type type;
    const char *text; /* Postgres' */
    const char *json; /* NULL: it cannot be said */
} Sample;

static const Sample spec_values[] = {
    {{.kind = TYPE_BOOL}, "t", "true"},
    {{.kind = TYPE_INT32}, "34", "34"},
    {{.kind = TYPE_INT64}, "34", "34"},
    {{.kind = TYPE_DECIMAL, .precision = 9, .scale = 2}, "14.20", "\"14.20\""},
    {{.kind = TYPE_DATE}, "2017-11-16", "\"2017-11-16\""},
    {{.kind = TYPE_TIME}, "22:31:08.123456", "\"22:31:08.123456\""},
    {{.kind = TYPE_TIMESTAMP}, "2017-11-16 22:31:08.123456", "\"2017-11-16T22:31:08.123456\""},
    {{.kind = TYPE_TIMESTAMPTZ},
     "2017-11-16 22:31:08.123456+00",
     "\"2017-11-16T22:31:08.123456+00:00\""},
    {{.kind = TYPE_STRING}, "iceberg", "\"iceberg\""},
    {{.kind = TYPE_UUID},
     "f79c3e09-677c-4bbd-a479-3f349cb785e7",
     "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\""},
    {{.kind = TYPE_BINARY}, "\\x000102ff", "\"000102ff\""},
};

/* Derived by hand. */
static const Sample other_values[] = {
    {{.kind = TYPE_BOOL}, "f", "false"},
    {{.kind = TYPE_INT32}, "-2147483648", "-2147483648"},
    {{.kind = TYPE_INT64}, "-9223372036854775808", "-9223372036854775808"},
    {{.kind = TYPE_FLOAT32}, "0.1", "0.10000000149011612"},
    {{.kind = TYPE_FLOAT32}, "3.4028235e+38", "3.4028234663852886e+38"},
    {{.kind = TYPE_FLOAT64}, "0.1", "0.1"},
    {{.kind = TYPE_FLOAT64}, "5e-324", "4.94065645841247e-324"},
    {{.kind = TYPE_FLOAT64}, "-0", "-0.0"},
    {{.kind = TYPE_DECIMAL, .precision = 38, .scale = 38},
     "-0.00000000000000000000000000000000000001",
     "\"-0.00000000000000000000000000000000000001\""},
    {{.kind = TYPE_DECIMAL, .precision = 38, .scale = 0},
     "99999999999999999999999999999999999999",
     "\"99999999999999999999999999999999999999\""},
    {{.kind = TYPE_DECIMAL, .form = FORM_MONEY, .precision = 19, .scale = 2},
     "-$1,234.56",
     "\"-1234.56\""},
    /* a locale without digits after the point, whose amounts C prints as if they were cents */
    {{.kind = TYPE_DECIMAL, .form = FORM_MONEY, .precision = 19, .scale = 0},
     "-$1,234.56",
     "\"-123456\""},
    {{.kind = TYPE_DECIMAL, .form = FORM_MONEY, .precision = 19, .scale = 3}, "$0.07", "\"0.007\""},
    {{.kind = TYPE_BINARY, .form = FORM_EWKB}, "0101FF", "\"0101ff\""},
    {{.kind = TYPE_DATE}, "0001-01-01", "\"0001-01-01\""},
    {{.kind = TYPE_DATE}, "9999-12-31", "\"9999-12-31\""},
    {{.kind = TYPE_TIME}, "00:00:00", "\"00:00:00\""},
    {{.kind = TYPE_TIMESTAMP}, "1969-12-31 23:59:59.999999", "\"1969-12-31T23:59:59.999999\""},
    {{.kind = TYPE_STRING}, "", "\"\""},
    {{.kind = TYPE_STRING}, "a\"b\\c\n", "\"a\\\"b\\\\c\\n\""},
    {{.kind = TYPE_JSON}, "{\"a\": 1}", "\"{\\\"a\\\": 1}\""},
    {{.kind = TYPE_BINARY}, "\\x", "\"\""},
    /* no home in the column */
    {{.kind = TYPE_DECIMAL, .precision = 9, .scale = 2}, "NaN", NULL},
    {{.kind = TYPE_DATE}, "infinity", NULL},
    {{.kind = TYPE_STRING}, "\xFF", NULL},
    /* no JSON that every reader takes */
    {{.kind = TYPE_FLOAT64}, "NaN", NULL},
    {{.kind = TYPE_FLOAT32}, "-Infinity", NULL},
    {{.kind = TYPE_DATE}, "10000-01-01", NULL},
    {{.kind = TYPE_DATE}, "0001-12-31 BC", NULL},
    {{.kind = TYPE_TIMESTAMP}, "10000-01-01 00:00:00", NULL},
    {{.kind = TYPE_TIMESTAMPTZ}, "0001-12-31 23:59:59.999999+00 BC", NULL},
};

static void
check(const Sample *sample)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str json = default_from_text(arena, &sample->type, str_of(sample->text));

    if (sample->json == NULL) {
        assert_null(json.ptr);
        return;
    }
    assert_non_null(json.ptr);
    assert_string_equal(arena_str(arena, json).ptr, sample->json);
}

static void
values_of_the_spec(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof spec_values / sizeof spec_values[0]; i++)
        check(&spec_values[i]);
}

static void
other_values_too(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof other_values / sizeof other_values[0]; i++)
        check(&other_values[i]);
}

static void
nested_types_have_none(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    const Type number = {.kind = TYPE_INT32};
    Field element = {.name = STR("element"), .type = &number};
    const Type list = {.kind = TYPE_LIST, .delimiter = ',', .field_count = 1, .fields = &element};

    (void) state;
    assert_null(default_from_text(arena, &list, STR("{1,2}")).ptr);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_the_spec),
        cmocka_unit_test(other_values_too),
        cmocka_unit_test(nested_types_have_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
