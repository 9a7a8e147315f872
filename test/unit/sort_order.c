/* Sort orders: the setting, the order of values, and how a table's order follows setting and
 * columns. The sequences of values are written down from the Iceberg spec ("Sort Orders"); that
 * Java has the same defaults and JSON is in unit/metadata.c, that other programs find files sorted
 * is in e2e/test_sort.py. */
#include "testing.h"

#include <math.h>

#include "iceberg/sort_order.h"
#include "iceberg/sorter.h"

/* --- the setting ----------------------------------------------------------------------------- */

static void
terms_are_read(void **state)
{
    static const struct {
        const char *text;
        const char *is;
    } cases[] = {
        {"id", "identity(id) asc nulls first"},
        {" id  DESC ", "identity(id) desc nulls last"},
        {"id asc nulls last", "identity(id) asc nulls last"},
        {"id desc Nulls First", "identity(id) desc nulls first"},
        {"id nulls last", "identity(id) asc nulls last"},
        {"day(at) desc", "day(at) desc nulls last"},
        {"bucket(16, id)", "bucket[16](id) asc nulls first"},
        {"bucket [16] ( id )  desc", "bucket[16](id) desc nulls last"},
        {"truncate[3](\"odd )( desc\") asc", "truncate[3](odd )( desc) asc nulls first"},
        {"\"a \"\"b\"\" desc\" desc", "identity(a \"b\" desc) desc nulls last"},
        {"desc", "identity(desc) asc nulls first"},
        {"nulls", "identity(nulls) asc nulls first"},
    };

    AUTO_ARENA Arena *arena = arena_new();

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SortTerm term;
        Error err = {0};

        OK(sort_term_parse(arena, str_of(cases[i].text), &term, &err));
        assert_string_equal(sort_rule_text(arena, &(SortRule){.count = 1, .terms = &term}).ptr,
                            cases[i].is);
    }
}

static void
terms_that_are_none_say_why(void **state)
{
#define HINT                                                                                       \
    "\nhint: a column or transform, then asc or desc, then nulls first or nulls last: "            \
    "\"created_at desc nulls last\"; an odd column stands in double quotes"

    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"id down", "\"id down\": \"down\" is no direction" HINT},
        {"id desc desc", "\"id desc desc\": \"desc\" is no direction" HINT},
        {"id desc nulls", "\"id desc nulls\": nulls are first or last" HINT},
        {"id nulls high", "\"id nulls high\": nulls are first or last" HINT},
        {"id nulls first desc",
         "\"id nulls first desc\": what is \"desc\" after nulls first?" HINT},
        {"", "\"\": names no column"},
        {"day() desc", "\"day()\": names no column"},
        {"bucket(id) desc", "\"bucket(id)\": bucket wants a number\nhint: bucket[16](id)"},
        {"\"id desc", "\"\"id desc\": a quoted column has no end"},
        {"void(id)", "\"void(id)\": void is NULL for every row, so it orders nothing"},
    };

#undef HINT
    AUTO_ARENA Arena *arena = arena_new();

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SortTerm term;
        Error err = {0};

        FAILS(sort_term_parse(arena, str_of(cases[i].text), &term, &err), ERR_INPUT);
        assert_string_equal(err.msg, cases[i].says);
    }
}

/* --- values ---------------------------------------------------------------------------------- */

/* Rows of the column sorted by one field; the caller frees. */
static uint32_t *
sorted(const Column *column, const char *transform, bool descending, bool nulls_first)
{
    SortField field = {.source_id = 7,
                       .transform = str_of(transform),
                       .descending = descending,
                       .nulls_first = nulls_first};
    SortOrder order = {.order_id = 1, .field_count = 1, .fields = &field};
    Field fields[2] = {{.id = 3, .type = column->type}, {.id = 7, .type = column->type}};
    Column columns[2] = {{0}, *column};
    uint32_t *rows = xcalloc(column->rows, sizeof *rows);
    Sorter *sorter = sorter_new(&order, fields, 2);

    assert_non_null(sorter);
    assert_false(sorter_uses(sorter, 0));
    assert_true(sorter_uses(sorter, 1));
    for (size_t i = 0; i < column->rows; i++)
        rows[i] = (uint32_t) i;
    sorter_begin(sorter, columns, column->rows);
    sorter_sort(sorter, rows, column->rows);
    sorter_free(sorter);
    return rows;
}

/* The rows of `ascending`, which do ascend, come out so whatever their sequence was (with most
 * steps all of them, with others some more than once); a NULL goes to its end. */
static void
expect_ascending(const Column *ascending)
{
    size_t count = ascending->rows;

    assert_true(count >= 2 && count < 32);
    for (size_t step = 1; step < 32; step++) {
        Column mixed;
        size_t origin[33];
        bool descending = step & 2;
        bool nulls_first = step & 4;
        uint32_t *rows;

        column_init(&mixed, ascending->type);
        column_append_null(&mixed);
        origin[0] = SIZE_MAX;
        for (size_t i = 0; i < count; i++) {
            origin[mixed.rows] = (i * step + step) % count;
            column_append_copy(&mixed, ascending, origin[mixed.rows]);
        }
        rows = sorted(&mixed, "identity", descending, nulls_first);
        assert_int_equal(rows[nulls_first ? 0 : mixed.rows - 1], 0);
        for (size_t i = 1; i + 1 < mixed.rows; i++) {
            size_t at = nulls_first ? i : i - 1;
            size_t a = origin[rows[at]];
            size_t b = origin[rows[at + 1]];

            assert_true(descending ? a >= b : a <= b);
        }
        free(rows);
        column_done(&mixed);
    }
}

static void
expect_fixed(Type type, const void *values, size_t count)
{
    Column column;

    column_init(&column, &type);
    for (size_t i = 0; i < count; i++)
        column_append_fixed(&column, (const char *) values + i * type_width(&type));
    expect_ascending(&column);
    column_done(&column);
}

#define ASCENDING(ctype, type, ...)                                                                \
    do {                                                                                           \
        const ctype values[] = {__VA_ARGS__};                                                      \
                                                                                                   \
        expect_fixed((Type) type, values, sizeof values / sizeof values[0]);                       \
    } while (0)

#define KIND(name)                                                                                 \
    {                                                                                              \
        .kind = (name)                                                                             \
    }
#define DECIMAL_TYPE(p, s)                                                                         \
    {                                                                                              \
        .kind = TYPE_DECIMAL, .precision = (p), .scale = (s)                                       \
    }

static void
numbers_have_the_order_of_the_spec(void **state)
{
    double minus_nan = -(double) NAN;
    __int128 wide = (__int128) INT64_MAX * 4;

    (void) state;
    ASCENDING(uint8_t, KIND(TYPE_BOOL), 0, 1);
    ASCENDING(int32_t, KIND(TYPE_INT32), INT32_MIN, -2, -1, 0, 1, 300, INT32_MAX);
    ASCENDING(int32_t, KIND(TYPE_DATE), INT32_MIN, -1, 0, INT32_MAX);
    ASCENDING(int64_t, KIND(TYPE_INT64), INT64_MIN, INT32_MIN, -1, 0, 1, INT64_MAX);
    ASCENDING(int64_t, KIND(TYPE_TIME), 0, 1, 86399999999);
    ASCENDING(int64_t, KIND(TYPE_TIMESTAMP), INT64_MIN, -1, 0, INT64_MAX);
    ASCENDING(int64_t, KIND(TYPE_TIMESTAMPTZ), INT64_MIN, -1, 0, INT64_MAX);
    ASCENDING(float, KIND(TYPE_FLOAT32), (float) minus_nan, -INFINITY, -1e30F, -1.5F, -1e-40F,
              -0.0F, 0.0F, 1e-40F, 1.5F, 1e30F, INFINITY, NAN);
    ASCENDING(double, KIND(TYPE_FLOAT64), minus_nan, -(double) INFINITY, -1e300, -1.5, -5e-324,
              -0.0, 0.0, 5e-324, 1.5, 1e300, (double) INFINITY, (double) NAN);
    ASCENDING(int64_t, DECIMAL_TYPE(18, 2), -999999999999999999, -100, -1, 0, 1, 99,
              999999999999999999);
    ASCENDING(__int128, DECIMAL_TYPE(38, 4), -wide * 1000, -wide, -1, 0, 1, INT64_MAX, wide,
              wide * 1000);
}

static void
bytes_have_the_order_of_the_spec(void **state)
{
    /* of code points, which UTF-16 would have the other way: U+FFFD after U+1F600 */
    static const char *const texts[] = {
        "", "A", "Z", "a", "a ", "ab", "b", "\xc3\xa9", "\xef\xbf\xbd", "\xf0\x9f\x98\x80"};
    static const char uuids[] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
                                "\0\0\0\0\0\0\0\0\x80\0\0\0\0\0\0\0"
                                "\x7f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                "\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                "\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0";
    static const TypeKind kinds[] = {TYPE_STRING, TYPE_JSON, TYPE_BINARY};

    (void) state;
    for (size_t k = 0; k < 3; k++) {
        Type type = {.kind = kinds[k]};
        Column column;

        column_init(&column, &type);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            column_append_bytes(&column, str_of(texts[i]));
        expect_ascending(&column);
        column_done(&column);
    }

    Type binary = {.kind = TYPE_BINARY};
    Column column;

    column_init(&column, &binary);
    column_append_bytes(&column, STR("\0"));
    column_append_bytes(&column, STR("\0\0"));
    column_append_bytes(&column, STR("\0\1"));
    column_append_bytes(&column, STR("\x7f"));
    column_append_bytes(&column, STR("\x80"));
    column_append_bytes(&column, STR("\xff\0"));
    expect_ascending(&column);
    column_done(&column);
    expect_fixed((Type){.kind = TYPE_UUID}, uuids, 5);
}

static void
expect_rows(const Column *column, const char *transform, bool descending, const char *wanted)
{
    uint32_t *rows = sorted(column, transform, descending, !descending);
    AUTO_BUF Buf text = {0};

    for (size_t i = 0; i < column->rows; i++)
        buf_printf(&text, "%s%u", i > 0 ? " " : "", rows[i]);
    assert_string_equal(buf_text(&text), wanted);
    free(rows);
}

/* Rows that a transform makes equal keep their sequence. */
static void
transforms_sort_by_what_they_give(void **state)
{
    static const int64_t instants[] = {-1, INT64_C(86400000000), 1, 0, INT64_C(86399999999)};
    static const char *const texts[] = {"\xf0\x9f\x98\x80yz", "abd", "abc", "ab", "abx", "aa"};
    static const int64_t unscaled[] = {1065, 1050, -1, 1049};
    Type instant = {.kind = TYPE_TIMESTAMP};
    Type string = {.kind = TYPE_STRING};
    Type decimal = {.kind = TYPE_DECIMAL, .precision = 9, .scale = 2};
    Type number = {.kind = TYPE_INT64};
    Column column;

    (void) state;
    column_init(&column, &instant);
    for (size_t i = 0; i < 5; i++)
        column_append_fixed(&column, &instants[i]);
    column_append_null(&column);
    expect_rows(&column, "day", false, "5 0 2 3 4 1");
    expect_rows(&column, "day", true, "1 2 3 4 0 5");
    expect_rows(&column, "hour", false, "5 0 2 3 4 1");
    expect_rows(&column, "year", false, "5 0 1 2 3 4");
    column_done(&column);

    column_init(&column, &string);
    for (size_t i = 0; i < 6; i++)
        column_append_bytes(&column, str_of(texts[i]));
    expect_rows(&column, "truncate[2]", false, "5 1 2 3 4 0");
    expect_rows(&column, "truncate[2]", true, "0 1 2 3 4 5");
    column_done(&column);

    column_init(&column, &decimal); /* 10.50 10.50 -0.50 10.00 */
    for (size_t i = 0; i < 4; i++)
        column_append_fixed(&column, &unscaled[i]);
    expect_rows(&column, "truncate[50]", false, "2 3 0 1");
    column_done(&column);

    column_init(&column, &number); /* spec, Appendix B: 34 hashes to 2017239379 */
    for (int64_t i = 33; i < 36; i++)
        column_append_fixed(&column, &i);
    expect_rows(&column, "bucket[1]", false, "0 1 2");
    column_done(&column);
}

static void
what_cannot_be_sorted_by_is_said(void **state)
{
    Type string = {.kind = TYPE_STRING};
    Field column = {.id = 7, .type = &string};
    SortField fields[2] = {{.source_id = 7, .transform = STR("identity")}};
    SortOrder order = {.order_id = 1, .fields = fields};

    (void) state;
    assert_null(sorter_new(&order, &column, 1)); /* no fields */
    order.field_count = 2;
    fields[1] = (SortField){.source_id = 8, .transform = STR("identity")}; /* of a struct, say */
    assert_null(sorter_new(&order, &column, 1));
    fields[1] = (SortField){.source_id = 7, .transform = STR("zorder[2]")};
    assert_null(sorter_new(&order, &column, 1));
    fields[1] = (SortField){.source_id = 7, .transform = STR("day")};
    assert_null(sorter_new(&order, &column, 1));
}

/* --- tables ---------------------------------------------------------------------------------- */

typedef struct Plan {
    Arena *arena;
    TableSchema *schema;
    TableMetadata *metadata;
    SortRule rule;
} Plan;

/* id long, at timestamp, region string, tags list */
static void
plan_init(Plan *plan)
{
    static const char *const names[] = {"id", "at", "region", "tags"};
    static const TypeKind kinds[] = {TYPE_INT64, TYPE_TIMESTAMP, TYPE_STRING, TYPE_LIST};
    Arena *arena;
    TableSchema *schema = schema_new(&arena);
    Type *types = ARENA_ARRAY(arena, Type, 5);

    schema->schema_name = STR("public");
    schema->table_name = STR("t");
    schema->qualified = "public.t";
    schema->column_count = 4;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, 4);
    for (int i = 0; i < 4; i++) {
        types[i].kind = kinds[i];
        schema->columns[i] = (SchemaColumn){.field = {.name = str_of(names[i]), .type = &types[i]},
                                            .attnum = i + 1,
                                            .pg_type = "a type"};
    }
    types[4].kind = TYPE_STRING;
    types[3].field_count = 1;
    types[3].fields = ARENA_NEW(arena, Field);
    types[3].fields[0] = (Field){.name = STR("element"), .type = &types[4]};
    schema_assign_ids(schema);
    *plan = (Plan){.arena = arena_new(), .schema = schema};
    plan->metadata = metadata_create(
        plan->arena, &(TableCreate){.uuid = "u",
                                    .location = "/t",
                                    .format_version = 2,
                                    .schema = iceberg_schema_from_table(plan->arena, schema, 0)});
}

static void
plan_done(Plan *plan)
{
    arena_free(plan->arena);
    schema_unref(plan->schema);
}

/* Up to three terms, NULL for fewer. */
static bool
resolve(Plan *plan, const char *const *texts, SortOrder *out_order, Error *err)
{
    plan->rule = (SortRule){.terms = ARENA_ARRAY(plan->arena, SortTerm, 3),
                            .place = "walberg.yaml:7:3: tables.public.t.sort"};
    for (int i = 0; i < 3 && texts[i] != NULL; i++)
        TRY(sort_term_parse(plan->arena, str_of(texts[i]), &plan->rule.terms[plan->rule.count++],
                            err));
    return sort_order_resolve(plan->arena, &plan->rule, plan->schema, out_order, err);
}

static void
set(Plan *plan, const char *a, const char *b, const char *c)
{
    const char *const texts[3] = {a, b, c};
    SortOrder order = {0};
    Error err = {0};

    OK(resolve(plan, texts, &order, &err));
    plan->metadata = metadata_set_sort_order(plan->arena, plan->metadata, &order);
}

static void
expect_fields(const SortOrder *order, const char *wanted)
{
    AUTO_BUF Buf text = {0};

    buf_printf(&text, "%d:", order->order_id);
    for (int i = 0; i < order->field_count; i++)
        buf_printf(&text, " %.*s(%d)%s%s", STR_ARG(order->fields[i].transform),
                   order->fields[i].source_id, order->fields[i].descending ? "-" : "+",
                   order->fields[i].nulls_first ? "0" : "9");
    assert_string_equal(buf_text(&text), wanted);
}

static void
orders_are_used_again(void **state)
{
    Plan plan;

    (void) state;
    plan_init(&plan);
    expect_fields(metadata_default_sort_order(plan.metadata), "0:");
    set(&plan, "at desc", "id", NULL);
    expect_fields(metadata_default_sort_order(plan.metadata), "1: identity(2)-9 identity(1)+0");
    set(&plan, "at desc nulls first", "id", NULL);
    expect_fields(metadata_default_sort_order(plan.metadata), "2: identity(2)-0 identity(1)+0");
    set(&plan, NULL, NULL, NULL);
    expect_fields(metadata_default_sort_order(plan.metadata), "0:");
    set(&plan, "identity(at) desc", "id asc", NULL);
    expect_fields(metadata_default_sort_order(plan.metadata), "1: identity(2)-9 identity(1)+0");
    set(&plan, "day(at)", "at", NULL);
    expect_fields(metadata_default_sort_order(plan.metadata), "3: day(2)+0 identity(2)+0");
    assert_int_equal(plan.metadata->sort_order_count, 4);

    plan.metadata->sort_order_count = 0; /* some writers list no unsorted one */
    plan.metadata->default_sort_order_id = 0;
    expect_fields(metadata_default_sort_order(plan.metadata), "0:");
    set(&plan, NULL, NULL, NULL);
    assert_int_equal(plan.metadata->sort_order_count, 1);
    assert_non_null(metadata_find_sort_order(plan.metadata, 0));
    plan_done(&plan);
}

static void
rules_that_do_not_fit_say_why(void **state)
{
    static const struct {
        const char *texts[3];
        const char *says;
    } cases[] = {
        {{"nothing desc"},
         "walberg.yaml:7:3: tables.public.t.sort: \"nothing desc\": public.t has no column "
         "nothing\n"
         "hint: its columns are id, at, region, tags"},
        {{"tags"},
         "walberg.yaml:7:3: tables.public.t.sort: \"tags\": column tags (a type) is nested, and "
         "has no order"},
        {{"hour(region)"},
         "walberg.yaml:7:3: tables.public.t.sort: \"hour(region)\": column region (a type) is of "
         "type string in the lake\nhint: this transform takes timestamp and timestamptz"},
        {{"id", "region", "id desc"},
         "walberg.yaml:7:3: tables.public.t.sort: \"id desc\": id is there twice"},
        {{"id", "bucket[4](id)"},
         "walberg.yaml:7:3: tables.public.t.sort: \"bucket[4](id)\": column id is sorted by "
         "already, so this adds nothing"},
    };

    Plan plan;

    (void) state;
    plan_init(&plan);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SortOrder order;
        Error err = {0};

        FAILS(resolve(&plan, cases[i].texts, &order, &err), ERR_INPUT);
        assert_string_equal(err.msg, cases[i].says);
    }
    plan_done(&plan);
}

static void
expect_followed(Plan *plan, const SortOrder *order, int lost, const char *wanted,
                SortOrder *out_next)
{
    int went;

    sort_order_follow(plan->arena, order, &plan->rule, plan->schema, out_next, &went);
    assert_int_equal(went, lost);
    expect_fields(out_next, wanted);
}

/* By id: a new name changes nothing. What goes takes its fields with it, and what comes back, with
 * a new id, has the place that the setting gives it. */
static void
an_order_follows_the_columns(void **state)
{
    Plan plan;
    SortOrder none = {0};
    SortOrder next;

    (void) state;
    plan_init(&plan);
    set(&plan, "at desc", "region", "id");

    SortOrder all = *metadata_default_sort_order(plan.metadata);
    SchemaColumn *columns = plan.schema->columns;

    columns[0].field.name = STR("number");
    columns[1].field.name = STR("moment");
    expect_followed(&plan, &all, 0, "0: identity(2)-9 identity(3)+0 identity(1)+0", &next);
    columns[0].field.name = STR("id");
    columns[1].field = (Field){.name = STR("other"), .id = 9, .type = columns[1].field.type};
    expect_followed(&plan, &all, 1, "0: identity(3)+0 identity(1)+0", &next);
    columns[2].field = (Field){.name = STR("other2"), .id = 10, .type = columns[2].field.type};
    expect_followed(&plan, &next, 1, "0: identity(1)+0", &next);
    columns[2].field.name = STR("region");
    expect_followed(&plan, &next, 0, "0: identity(10)+0 identity(1)+0", &next);
    columns[1].field.name = STR("at");
    expect_followed(&plan, &next, 0, "0: identity(9)-9 identity(10)+0 identity(1)+0", &next);

    /* somebody else's: of a member, and of a transform that only they know */
    SortField theirs[2] = {{.source_id = 5, .transform = STR("identity")},
                           {.source_id = 10, .transform = STR("zorder")}};
    SortOrder foreign = {.order_id = 4, .field_count = 2, .fields = theirs};

    plan.rule = (SortRule){0};
    expect_followed(&plan, &foreign, 0, "0: identity(5)+9 zorder(10)+9", &next);
    columns[3].field = (Field){.name = STR("tags"), .id = 11, .type = columns[0].field.type};
    expect_followed(&plan, &foreign, 1, "0: zorder(10)+9", &next);
    expect_followed(&plan, &none, 0, "0:", &next);
    plan_done(&plan);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_are_read),
        cmocka_unit_test(terms_that_are_none_say_why),
        cmocka_unit_test(numbers_have_the_order_of_the_spec),
        cmocka_unit_test(bytes_have_the_order_of_the_spec),
        cmocka_unit_test(transforms_sort_by_what_they_give),
        cmocka_unit_test(what_cannot_be_sorted_by_is_said),
        cmocka_unit_test(orders_are_used_again),
        cmocka_unit_test(rules_that_do_not_fit_say_why),
        cmocka_unit_test(an_order_follows_the_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
