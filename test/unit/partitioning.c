/* Partition transforms and specs. Vectors: Iceberg spec, "Appendix B: 32-bit Hash Requirements" and
 * "Partition Transforms"; those of years and months agree with PyIceberg 0.12 (which checks every
 * partition of the end-to-end tests, too). Murmur3 of short inputs: Appleby's SMHasher. */
#include "testing.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "iceberg/evolve.h"
#include "iceberg/murmur3.h"
#include "iceberg/partitioner.h"
#include "iceberg/places.h"
#include "iceberg/spec.h"
#include "iceberg/transform.h"

typedef struct One {
    Type type;
    Column column;
} One;

static void
one_init(One *one, TypeKind kind)
{
    *one = (One){.type = {.kind = kind}};
    column_init(&one->column, &one->type);
}

static void
one_decimal(One *one, int precision, int64_t unscaled)
{
    __int128 wide = unscaled;

    one->type = (Type){.kind = TYPE_DECIMAL, .precision = precision, .scale = 2};
    column_init(&one->column, &one->type);
    if (precision <= 18)
        column_append_fixed(&one->column, &unscaled);
    else
        column_append_fixed(&one->column, &wide);
}

static void
one_int32(One *one, TypeKind kind, int32_t value)
{
    one_init(one, kind);
    column_append_fixed(&one->column, &value);
}

static void
one_int64(One *one, TypeKind kind, int64_t value)
{
    one_init(one, kind);
    column_append_fixed(&one->column, &value);
}

static void
one_text(One *one, TypeKind kind, Str value)
{
    one_init(one, kind);
    column_append_bytes(&one->column, value);
}

static int32_t
hash_and_free(One *one)
{
    int32_t hash = (int32_t) transform_hash(&one->column, 0);

    column_done(&one->column);
    return hash;
}

static void
apply(const char *transform, One *one, Buf *out)
{
    Transform parsed;
    Error err = {0};

    assert_true(transform_parse(str_of(transform), &parsed));
    OK(transform_apply(parsed, &one->column, 0, out, &err));
    column_done(&one->column);
}

/* The value as hexadecimal digits; valid until the next call. */
static const char *
apply_and_free(const char *transform, One *one)
{
    static char text[256];
    AUTO_BUF Buf out = {0};

    apply(transform, one, &out);
    text[0] = '\0';
    for (size_t i = 0; i < out.len; i++)
        snprintf(text + 2 * i, sizeof text - 2 * i, "%02x", (uint8_t) out.ptr[i]);
    return text;
}

static int32_t
int_of(const char *transform, One *one)
{
    AUTO_BUF Buf out = {0};

    apply(transform, one, &out);
    assert_int_equal(out.len, 4);
    return (int32_t) load_le32(out.ptr);
}

/* --- hashes ---------------------------------------------------------------------------------- */

static void
hashes_are_those_of_the_spec(void **state)
{
    static const char uuid[] = "\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85\xe7";
    static const int64_t at = INT64_C(1510871468000000); /* 2017-11-16T22:31:08 */
    One one;

    (void) state;
    one_int32(&one, TYPE_INT32, 34);
    assert_int_equal(hash_and_free(&one), 2017239379);
    one_int64(&one, TYPE_INT64, 34);
    assert_int_equal(hash_and_free(&one), 2017239379);
    one_decimal(&one, 9, 1420);
    assert_int_equal(hash_and_free(&one), -500754589);
    one_decimal(&one, 38, 1420);
    assert_int_equal(hash_and_free(&one), -500754589);
    one_int32(&one, TYPE_DATE, 17486); /* 2017-11-16 */
    assert_int_equal(hash_and_free(&one), -653330422);
    one_int64(&one, TYPE_TIME, INT64_C(81068000000)); /* 22:31:08 */
    assert_int_equal(hash_and_free(&one), -662762989);
    one_int64(&one, TYPE_TIMESTAMP, at);
    assert_int_equal(hash_and_free(&one), -2047944441);
    one_int64(&one, TYPE_TIMESTAMP, at + 1);
    assert_int_equal(hash_and_free(&one), -1207196810);
    one_int64(&one, TYPE_TIMESTAMPTZ, at);
    assert_int_equal(hash_and_free(&one), -2047944441);
    one_text(&one, TYPE_STRING, STR("iceberg"));
    assert_int_equal(hash_and_free(&one), 1210000089);
    one_text(&one, TYPE_BINARY, STR("\0\1\2\3"));
    assert_int_equal(hash_and_free(&one), -188683207);
    one_init(&one, TYPE_UUID);
    column_append_fixed(&one.column, uuid);
    assert_int_equal(hash_and_free(&one), 1488055340);
}

static void
murmur3_of_every_tail(void **state)
{
    (void) state;
    assert_int_equal(murmur3_32("", 0), 0);
    assert_int_equal(murmur3_32("\0\0\0\0", 4), 0x2362f9de);
    assert_int_equal(murmur3_32("\x21\x43\x65\x87", 4), 0xf55b516b);
    assert_int_equal(murmur3_32("\x21\x43\x65", 3), 0x7e4a8634);
    assert_int_equal(murmur3_32("\x21\x43", 2), 0xa0f7b07a);
    assert_int_equal(murmur3_32("\x21", 1), 0x72661cf4);
}

/* --- values ---------------------------------------------------------------------------------- */

static void
buckets_are_in_range(void **state)
{
    One one;

    (void) state;
    one_int32(&one, TYPE_INT32, 34);
    assert_int_equal(int_of("bucket[16]", &one), 2017239379 % 16);
    one_int32(&one, TYPE_DATE, 17486); /* a negative hash */
    assert_int_equal(int_of("bucket[100]", &one), (-653330422 & INT32_MAX) % 100);
    one_int32(&one, TYPE_DATE, 17486);
    assert_int_equal(int_of("bucket[1]", &one), 0);
}

static void
numbers_are_truncated_downwards(void **state)
{
    One one;
    AUTO_BUF Buf out = {0};
    Error err = {0};

    (void) state;
    one_int32(&one, TYPE_INT32, 1);
    assert_int_equal(int_of("truncate[10]", &one), 0);
    one_int32(&one, TYPE_INT32, -1);
    assert_int_equal(int_of("truncate[10]", &one), -10);
    one_int64(&one, TYPE_INT64, -1);
    assert_string_equal(apply_and_free("truncate[10]", &one), "f6ffffffffffffff");
    one_decimal(&one, 9, 1065); /* 10.65 -> 10.50 */
    assert_string_equal(apply_and_free("truncate[50]", &one), "041a");
    one_decimal(&one, 20, -1); /* -0.01 -> -0.50 */
    assert_string_equal(apply_and_free("truncate[50]", &one), "ce");
    one_int32(&one, TYPE_INT32, INT32_MIN); /* wraps around, as in Java */
    assert_int_equal(int_of("truncate[10]", &one), INT32_MAX - 1);
    one_decimal(&one, 3, -999); /* -9.99 -> -10.00 has four digits */
    FAILS(transform_apply((Transform){TRANSFORM_TRUNCATE, 10}, &one.column, 0, &out, &err),
          ERR_INPUT);
    assert_int_equal(out.len, 0);
    column_done(&one.column);
}

static void
strings_are_truncated_to_characters(void **state)
{
    One one;

    (void) state;
    one_text(&one, TYPE_STRING, STR("iceberg"));
    assert_string_equal(apply_and_free("truncate[3]", &one), "696365");
    one_text(&one, TYPE_STRING, STR("ic"));
    assert_string_equal(apply_and_free("truncate[3]", &one), "6963");
    one_text(&one, TYPE_STRING, STR("\xc3\xa9\xf0\x9f\x98\x80x")); /* two characters and an x */
    assert_string_equal(apply_and_free("truncate[2]", &one), "c3a9f09f9880");
    one_text(&one, TYPE_BINARY, STR("\1\2\3\4\5"));
    assert_string_equal(apply_and_free("truncate[3]", &one), "010203");
}

static void
times_are_counted_from_1970_downwards_too(void **state)
{
    static const int64_t hour = INT64_C(3600000000);

    static const struct {
        int32_t day, month, year;
    } days[] = {
        {0, 0, 0},
        {-1, -1, -1},
        {17486, 574, 47},         /* 2017-11-16 */
        {-25509, -839, -70},      /* 1900-02-28: no leap year */
        {-25508, -838, -70},      /* 1900-03-01 */
        {19782, 649, 54},         /* 2024-02-29 */
        {19783, 650, 54},         /* 2024-03-01 */
        {-719162, -23628, -1969}, /* 0001-01-01 */
    };

    One one;

    (void) state;
    for (size_t i = 0; i < sizeof days / sizeof days[0]; i++) {
        one_int32(&one, TYPE_DATE, days[i].day);
        assert_int_equal(int_of("day", &one), days[i].day);
        one_int32(&one, TYPE_DATE, days[i].day);
        assert_int_equal(int_of("month", &one), days[i].month);
        one_int32(&one, TYPE_DATE, days[i].day);
        assert_int_equal(int_of("year", &one), days[i].year);
        one_int64(&one, TYPE_TIMESTAMP, (days[i].day + INT64_C(1)) * 24 * hour - 1);
        assert_int_equal(int_of("month", &one), days[i].month);
        one_int64(&one, TYPE_TIMESTAMP, (days[i].day + INT64_C(1)) * 24 * hour - 1);
        assert_int_equal(int_of("hour", &one), days[i].day * 24 + 23);
    }
    one_int32(&one, TYPE_DATE, 146097 * 14000); /* that many times 400 years */
    assert_int_equal(int_of("year", &one), 400 * 14000);
    one_int32(&one, TYPE_DATE, 146097 * 14000);
    assert_int_equal(int_of("month", &one), 4800 * 14000);
    one_int64(&one, TYPE_TIMESTAMP, -1);
    assert_int_equal(int_of("hour", &one), -1);
    one_int64(&one, TYPE_TIMESTAMPTZ, INT64_MAX);
    assert_int_equal(int_of("hour", &one), INT32_MAX);
}

static void
transforms_are_read_and_refused(void **state)
{
    static const char *const bad[] = {
        "",           "days",       "bucket", "bucket[]",     "bucket[0]",          "bucket[4",
        "bucket[4]x", "bucket[-1]", "day[1]", "truncate[ 3]", "bucket[99999999999]"};
    Transform transform;
    AUTO_BUF Buf text = {0};

    (void) state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(transform_parse(str_of(bad[i]), &transform));
    assert_true(transform_parse(STR("truncate[2147483647]"), &transform));
    transform_text(transform, &text);
    assert_string_equal(buf_text(&text), "truncate[2147483647]");
}

/* --- specs ----------------------------------------------------------------------------------- */

typedef struct Plan {
    Arena *arena;
    TableSchema *schema;
    TableMetadata *metadata;
    PartitionRule rule;
} Plan;

/* id long, at timestamp, region string, at_day date, tags list */
static void
plan_init(Plan *plan)
{
    static const char *const names[] = {"id", "at", "region", "at_day", "tags"};
    static const TypeKind kinds[] = {TYPE_INT64, TYPE_TIMESTAMP, TYPE_STRING, TYPE_DATE, TYPE_LIST};
    Arena *arena;
    TableSchema *schema = schema_new(&arena);
    Type *types = ARENA_ARRAY(arena, Type, 6);

    schema->schema_name = STR("public");
    schema->table_name = STR("t");
    schema->qualified = "public.t";
    schema->column_count = 5;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, 5);
    for (int i = 0; i < 5; i++) {
        types[i].kind = kinds[i];
        schema->columns[i] = (SchemaColumn){.field = {.name = str_of(names[i]), .type = &types[i]},
                                            .attnum = i + 1,
                                            .pg_type = "a type"};
    }
    types[5].kind = TYPE_STRING;
    types[4].field_count = 1;
    types[4].fields = ARENA_NEW(arena, Field);
    types[4].fields[0] = (Field){.name = STR("element"), .type = &types[5]};
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
resolve(Plan *plan, const char *const *texts, PartitionSpec *out_spec, Error *err)
{
    plan->rule = (PartitionRule){.terms = ARENA_ARRAY(plan->arena, PartitionTerm, 3),
                                 .place = "walberg.yaml:7:3: tables.public.t.partition"};
    for (int i = 0; i < 3 && texts[i] != NULL; i++)
        TRY(partition_term_parse(plan->arena, str_of(texts[i]),
                                 &plan->rule.terms[plan->rule.count++], err));
    return partition_spec_resolve(plan->arena, &plan->rule, plan->schema, out_spec, err);
}

static void
set(Plan *plan, const char *a, const char *b)
{
    const char *const texts[3] = {a, b, NULL};
    PartitionSpec spec = {0};
    Error err = {0};

    OK(resolve(plan, texts, &spec, &err));
    plan->metadata = metadata_set_spec(plan->arena, plan->metadata, &spec);
}

static void
expect_spec_of(const Plan *plan, int spec_id, const char *wanted)
{
    const PartitionSpec *spec = metadata_find_spec(plan->metadata, spec_id);
    AUTO_BUF Buf text = {0};

    assert_non_null(spec);
    buf_printf(&text, "%d:", spec->spec_id);
    for (int i = 0; i < spec->field_count; i++)
        buf_printf(&text, " %d %.*s %.*s(%d)", spec->fields[i].field_id,
                   STR_ARG(spec->fields[i].name), STR_ARG(spec->fields[i].transform),
                   spec->fields[i].source_id);
    assert_string_equal(buf_text(&text), wanted);
}

static void
expect_spec(const Plan *plan, const char *wanted)
{
    expect_spec_of(plan, plan->metadata->default_spec_id, wanted);
}

static void
specs_and_fields_are_used_again(void **state)
{
    Plan plan;

    (void) state;
    plan_init(&plan);
    expect_spec(&plan, "0:");
    set(&plan, "month(at)", NULL);
    expect_spec(&plan, "1: 1000 at_month month(2)");
    set(&plan, "bucket(16, id)", "month(at)");
    expect_spec(&plan, "2: 1001 id_bucket_16 bucket[16](1) 1000 at_month month(2)");
    set(&plan, NULL, NULL);
    expect_spec(&plan, "0:");
    set(&plan, " month( at ) ", NULL);
    expect_spec(&plan, "1: 1000 at_month month(2)");
    set(&plan, "bucket[8](id)", "truncate[3](\"region\")");
    expect_spec(&plan, "3: 1002 id_bucket_8 bucket[8](1) 1003 region_trunc_3 truncate[3](3)");
    assert_int_equal(plan.metadata->last_partition_id, 1003);
    plan_done(&plan);
}

static void
names_do_not_meet_those_of_columns(void **state)
{
    Plan plan;

    (void) state;
    plan_init(&plan);
    set(&plan, "day(at)", "at_day");
    expect_spec(&plan, "1: 1000 at_day_2 day(2) 1001 at_day identity(4)");
    plan_done(&plan);
}

/* The table with other column names, and ids where they are given. */
static void
change(Plan *plan, const char *const *names, const int *ids)
{
    IcebergSchema *next = ARENA_NEW(plan->arena, IcebergSchema);
    const IcebergSchema *now = metadata_current_schema(plan->metadata);

    *next = *now;
    next->fields = ARENA_ARRAY(plan->arena, Field, (size_t) now->field_count);
    for (int i = 0; i < now->field_count; i++) {
        next->fields[i] = now->fields[i];
        next->fields[i].name = str_of(names[i]);
        next->fields[i].id = ids[i];
    }
    plan->metadata = metadata_set_schema(
        plan->arena, plan->metadata,
        &(SchemaFit){.next = next, .attnums = STR(""), .last_column_id = ids[0]});
}

static void
names_give_way_to_columns(void **state)
{
    Plan plan;

    (void) state;
    plan_init(&plan);
    set(&plan, "month(at)", "region");
    expect_spec(&plan, "1: 1000 at_month month(2) 1001 region identity(3)");
    set(&plan, "region", NULL); /* the default; the one above is an old spec from here on */
    change(&plan, (const char *const[]){"id", "at", "area", "at_month", "region"},
           (const int[]){1, 2, 3, 4, 9});
    expect_spec(&plan, "2: 1001 region_2 identity(3)");
    expect_spec_of(&plan, 1, "1: 1000 at_month_2 month(2) 1001 region_2 identity(3)");
    change(&plan, (const char *const[]){"id", "at", "region_2", "at_month_2", "x"},
           (const int[]){1, 2, 3, 4, 9});
    expect_spec(&plan, "2: 1001 region_2 identity(3)"); /* its own column */
    expect_spec_of(&plan, 1, "1: 1000 at_month_2_2 month(2) 1001 region_2 identity(3)");
    plan_done(&plan);
}

static void
rules_that_do_not_fit_say_why(void **state)
{
    static const struct {
        const char *texts[3];
        const char *says;
    } cases[] = {
        {{"day(nothing)"},
         "walberg.yaml:7:3: tables.public.t.partition: \"day(nothing)\": public.t has no column "
         "nothing\nhint: its columns are id, at, region, at_day, tags"},
        {{"tags"},
         "walberg.yaml:7:3: tables.public.t.partition: \"tags\": column tags (a type) is nested, "
         "and partitions are by plain columns"},
        {{"tags.element"},
         "walberg.yaml:7:3: tables.public.t.partition: \"tags.element\": parts of column tags "
         "cannot be partitioned by\nhint: partition by a column of a plain type"},
        {{"hour(at_day)"},
         "walberg.yaml:7:3: tables.public.t.partition: \"hour(at_day)\": column at_day (a type) is "
         "of type date in the lake\nhint: this transform takes timestamp and timestamptz"},
        {{"region", "identity(region)"},
         "walberg.yaml:7:3: tables.public.t.partition: \"identity(region)\" is there twice"},
        {{"day(at)", "id", "year(at)"},
         "walberg.yaml:7:3: tables.public.t.partition: \"year(at)\": column at is partitioned by "
         "day already\nhint: keep the finer one, it serves both"},
    };

    Plan plan;

    (void) state;
    plan_init(&plan);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        PartitionSpec spec;
        Error err = {0};

        FAILS(resolve(&plan, cases[i].texts, &spec, &err), ERR_INPUT);
        assert_string_equal(err.msg, cases[i].says);
    }
    plan_done(&plan);
}

/* --- tuples ---------------------------------------------------------------------------------- */

static void
paths_are_escaped_as_java_does(void **state)
{
    Plan plan;
    ResultType *types;
    char day[4];
    Str values[3] = {{.ptr = day, .len = 4}, STR("a/b=c d*\xc3\xa9"), STR_NULL};
    AUTO_BUF Buf path = {0};
    Error err = {0};

    (void) state;
    plan_init(&plan);

    const char *const texts[3] = {"day(at)", "region", "bucket[4](id)"};
    PartitionSpec spec;

    OK(resolve(&plan, texts, &spec, &err));
    plan.metadata = metadata_set_spec(plan.arena, plan.metadata, &spec);

    const PartitionSpec *made = metadata_default_spec(plan.metadata);

    OK(partition_result_types(plan.arena, metadata_spec_schema(plan.metadata, made), made, &types,
                              &err));
    store_le32(day, (uint32_t) -1);
    partition_path(made, types, partition_pack(plan.arena, values, 3), &path);
    assert_string_equal(buf_text(&path),
                        "at_day_2=1969-12-31/region=a%2Fb%3Dc+d%2A%C3%A9/id_bucket_4=null");
    plan_done(&plan);
}

static void
widened_columns_keep_their_partitions(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    const ResultType types[2] = {{.kind = RESULT_LONG}, {.kind = RESULT_STRING}};
    char narrow[4];
    char wide[8];
    Str before[2] = {{.ptr = narrow, .len = 4}, STR("text")};
    Str after[2] = {{.ptr = wide, .len = 8}, STR("text")};
    Str tuple;
    Str wanted;

    (void) state;
    store_le32(narrow, (uint32_t) -5);
    store_le64(wide, (uint64_t) -5);
    tuple = partition_pack(arena, before, 2);
    wanted = partition_pack(arena, after, 2);
    assert_true(str_eq(partition_widen(arena, types, 2, tuple), wanted));
    assert_true(partition_widen(arena, types, 2, wanted).ptr == wanted.ptr);
}

static void
places_are_found_by_file(void **state)
{
    Places *places = places_new();
    uint32_t number = 9;

    (void) state;
    places_add(places, STR("a"), 0, STR(""));
    places_add(places, STR("b"), 1, STR("xy"));
    places_add(places, STR("c"), 0, STR("xy"));
    places_add(places, STR("d"), 1, STR("xy"));
    assert_int_equal(places_count(places), 3);
    assert_true(places_find(places, STR("d"), &number));
    assert_int_equal(places_at(places, number).spec_id, 1);
    assert_true(str_eqc(places_at(places, number).partition, "xy"));
    assert_false(places_find(places, STR("e"), &number));
    places_free(places);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_the_spec),
        cmocka_unit_test(murmur3_of_every_tail),
        cmocka_unit_test(buckets_are_in_range),
        cmocka_unit_test(numbers_are_truncated_downwards),
        cmocka_unit_test(strings_are_truncated_to_characters),
        cmocka_unit_test(times_are_counted_from_1970_downwards_too),
        cmocka_unit_test(transforms_are_read_and_refused),
        cmocka_unit_test(specs_and_fields_are_used_again),
        cmocka_unit_test(names_do_not_meet_those_of_columns),
        cmocka_unit_test(names_give_way_to_columns),
        cmocka_unit_test(rules_that_do_not_fit_say_why),
        cmocka_unit_test(paths_are_escaped_as_java_does),
        cmocka_unit_test(widened_columns_keep_their_partitions),
        cmocka_unit_test(places_are_found_by_file),
    };

    return cmocka_run_group_tests_name("partitioning", tests, NULL, NULL);
}
