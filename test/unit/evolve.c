/* The lake's next schema from the source's: ids stay with attnums, and what cannot be read under a
 * field's id is not given it. Rules: Iceberg spec, "Schema Evolution". */
#include "shapes.h"
#include "testing.h"

#include "iceberg/evolve.h"

static TableMetadata *
lake_of(Arena *arena, const TableSchema *schema)
{
    PropertyList properties = {0};

    properties =
        property_set(arena, &properties, STR("walberg.attnums"), iceberg_attnums(arena, schema));
    return metadata_create(arena, &(TableCreate){
                                      .uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1",
                                      .location = "file:///lake/t",
                                      .schema = iceberg_schema_from_table(arena, schema, 0),
                                      .now_ms = 1,
                                      .format_version = 2,
                                      .properties = properties,
                                  });
}

/* "id:1 a:2": names and ids of the schema. */
static const char *
fields_text(Arena *arena, const IcebergSchema *schema)
{
    AUTO_BUF Buf text = {0};

    for (int i = 0; i < schema->field_count; i++)
        buf_printf(&text, "%s%.*s:%d", i > 0 ? " " : "", STR_ARG(schema->fields[i].name),
                   schema->fields[i].id);
    return arena_strdup(arena, buf_text(&text));
}

typedef struct Step {
    const char *shape;
    const char *fields; /* NULL: refused */
} Step;

static TableMetadata *
take_step(Arena *arena, TableMetadata *lake, const Step *step)
{
    TableSchema *next = shape(step->shape);
    FitWant want = {.source = next};
    SchemaFit fit = {0};
    Error err = {0};

    if (step->fields == NULL) {
        FAILS(iceberg_fit_schema(arena, lake, &want, &fit, &err), ERR_COPY);
        schema_unref(next);
        return lake;
    }
    OK(iceberg_fit_schema(arena, lake, &want, &fit, &err));
    if (fit.next != NULL)
        lake = metadata_set_schema(arena, lake, &fit);
    assert_string_equal(fields_text(arena, metadata_current_schema(lake)), step->fields);
    assert_true(lake->last_column_id >= iceberg_schema_last_id(metadata_current_schema(lake)));
    schema_unref(fit.schema);
    schema_unref(next);
    return lake;
}

/* Each step on top of the last that was taken. */
static void
follow(const Step *steps, size_t count)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *first = shape(steps[0].shape);
    TableMetadata *lake = lake_of(arena, first);

    schema_unref(first);
    for (size_t i = 1; i < count; i++)
        lake = take_step(arena, lake, &steps[i]);
}

#define FOLLOW(...)                                                                                \
    do {                                                                                           \
        static const Step steps[] = {__VA_ARGS__};                                                 \
                                                                                                   \
        follow(steps, sizeof steps / sizeof steps[0]);                                             \
    } while (0)

static void
ids_stay_with_attnums(void **state)
{
    (void) state;
    FOLLOW({"1:id:int4* 2:a:text", NULL}, {"1:id:int4* 2:b:text", "id:1 b:2"},
           {"1:id:int4* 2:b:text 3:a:int4", "id:1 b:2 a:3"}, {"1:id:int4* 3:a:int4", "id:1 a:3"},
           {"1:id:int4* 3:a:int4 4:b:text", "id:1 a:3 b:4"},
           {"1:id:int4* 3:b:int4 4:a:text", "id:1 b:3 a:4"});
}

static void
only_promotions_keep_a_field(void **state)
{
    (void) state;
    FOLLOW({"1:a:int4 2:b:float4 3:c:dec8", NULL}, {"1:a:int8 2:b:float8 3:c:dec12", "a:1 b:2 c:3"},
           {"1:a:int4 2:b:float8 3:c:dec12", NULL}, {"1:a:int8 2:b:float4 3:c:dec12", NULL},
           {"1:a:int8 2:b:float8 3:c:dec8", NULL}, {"1:a:text 2:b:float8 3:c:dec12", NULL});
    FOLLOW({"1:a:text", NULL}, {"1:a:jsonb", "a:1"}, {"1:a:text", "a:1"});
}

/* Both are strings in the lake: {1,2} and [1,2]. */
static void
arrays_as_json_are_not_their_text(void **state)
{
    (void) state;
    FOLLOW({"1:id:int4* 2:a:text", NULL}, {"1:id:int4* 2:a:ints", NULL},
           {"1:id:int4* 2:a:text 3:b:ints", "id:1 a:2 b:3"},
           {"1:id:int4* 2:a:text 3:c:ints 5", "id:1 a:2 c:3"},
           {"1:id:int4* 2:a:text 3:c:text 5", NULL}, {"1:id:int4* 2:a:ints 3:c:ints 5", NULL},
           {"1:id:int4* 2:a:text", "id:1 a:2"});

    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *first = shape("1:id:int4* 2:a:text 3:b:ints 7");
    TableSchema *next = shape("1:id:int4* 2:a:ints 3:b:ints 7");
    TableMetadata *lake = lake_of(arena, first);
    SchemaFit fit = {0};
    Error err = {0};

    FAILS(iceberg_fit_schema(arena, lake, &(FitWant){.source = next}, &fit, &err), ERR_COPY);
    assert_non_null(strstr(err.msg, "(string of JSON), and the lake has it as string"));
    OK(iceberg_fit_schema(arena, lake, &(FitWant){.source = next, .fresh = true}, &fit, &err));
    lake = metadata_set_schema(arena, lake, &fit);
    assert_string_equal(fields_text(arena, metadata_current_schema(lake)), "id:1 a:4 b:3");
    assert_true(str_eqc(fit.attnums, "1:1,4:2j,3:3j,0:7"));
    schema_unref(fit.schema);
    schema_unref(first);
    schema_unref(next);
}

static void
a_fresh_copy_gives_new_fields(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *first = shape("1:id:int4* 2:a:int4");
    TableSchema *next = shape("1:id:int4* 2:a:text");
    TableMetadata *lake = lake_of(arena, first);
    SchemaFit fit = {0};
    Error err = {0};

    (void) state;
    OK(iceberg_fit_schema(arena, lake, &(FitWant){.source = next, .fresh = true}, &fit, &err));
    lake = metadata_set_schema(arena, lake, &fit);
    assert_string_equal(fields_text(arena, metadata_current_schema(lake)), "id:1 a:3");
    assert_int_equal(lake->schema_count, 2);
    schema_unref(fit.schema);
    schema_unref(first);
    schema_unref(next);
}

static void
defaults_of_old_rows_need_a_copy(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *first = shape("1:id:int4*");
    TableSchema *next = shape("1:id:int4* 2:a:int4");
    TableMetadata *lake = lake_of(arena, first);
    FitWant want = {.source = next};
    SchemaFit fit = {0};
    Error err = {0};

    (void) state;
    next->columns[1].filled = true;
    FAILS(iceberg_fit_schema(arena, lake, &want, &fit, &err), ERR_COPY);
    want.defaults_are_null = true;
    OK(iceberg_fit_schema(arena, lake, &want, &fit, &err));
    schema_unref(fit.schema);
    schema_unref(first);
    schema_unref(next);
}

/* Fit and take it; the field's defaults, or "none". */
static const char *
defaults_after(Arena *arena, TableMetadata **lake, const TableSchema *source, const char *name)
{
    SchemaFit fit = {0};
    Error err = {0};
    const Field *field = NULL;

    OK(iceberg_fit_schema(arena, *lake, &(FitWant){.source = source}, &fit, &err));
    if (fit.next != NULL)
        *lake = metadata_set_schema(arena, *lake, &fit);

    int column = schema_find_column(fit.schema, str_of(name));

    /* what rows are read by, and what the table's metadata says */
    field =
        iceberg_schema_find(metadata_current_schema(*lake), fit.schema->columns[column].field.id);
    assert_true(str_eq(field->initial_default, fit.schema->columns[column].field.initial_default));
    schema_unref(fit.schema);
    if (field->initial_default.ptr == NULL)
        return "none";
    return arena_printf(arena, "%.*s %.*s", STR_ARG(field->initial_default),
                        STR_ARG(field->write_default));
}

/* Spec, "Default Values": an initial default is set when the field is added and never changes. */
static void
version_3_says_the_default_of_old_rows(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *first = shape("1:id:int4*");
    TableSchema *next = shape("1:id:int4* 2:a:int4 3:b:text");
    TableSchema *later = shape("1:id:int4* 2:c:int8 3:b:text 4:d:int4");
    TableMetadata *lake = metadata_upgrade(arena, lake_of(arena, first));

    (void) state;
    next->columns[1].filled = true;
    next->columns[1].filled_with = STR("7");
    assert_string_equal(defaults_after(arena, &lake, next, "a"), "7 7");
    assert_string_equal(defaults_after(arena, &lake, next, "b"), "none");
    /* renamed, widened, and its default in the source another one by now */
    later->columns[1].filled = true;
    later->columns[1].filled_with = STR("8");
    assert_string_equal(defaults_after(arena, &lake, later, "c"), "7 7");
    assert_string_equal(defaults_after(arena, &lake, later, "d"), "none");
    assert_int_equal(lake->schema_count, 3);
    schema_unref(first);
    schema_unref(next);
    schema_unref(later);
}

static void
a_default_that_cannot_be_said_needs_a_copy(void **state)
{
    static const Str texts[] = {{0}, {"NaN", 3}};
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *first = shape("1:id:int4*");
    TableSchema *next = shape("1:id:int4* 2:a:dec8");
    TableMetadata *lake = metadata_upgrade(arena, lake_of(arena, first));
    SchemaFit fit = {0};
    Error err = {0};

    (void) state;
    next->columns[1].filled = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        next->columns[1].filled_with = texts[i];
        FAILS(iceberg_fit_schema(arena, lake, &(FitWant){.source = next}, &fit, &err), ERR_COPY);
    }
    OK(iceberg_fit_schema(arena, lake, &(FitWant){.source = next, .fresh = true}, &fit, &err));
    assert_null(fit.next->fields[1].initial_default.ptr);
    schema_unref(fit.schema);
    schema_unref(first);
    schema_unref(next);
}

/* A schema that the table had before is used again, with its id (Java: reuseOrCreateNewSchemaId).
 */
static void
an_old_schema_is_used_again(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *first = shape("1:id:int4* 2:a:text");
    TableSchema *other = shape("1:id:int4* 2:b:text");
    TableMetadata *lake = lake_of(arena, first);
    SchemaFit fit = {0};
    Error err = {0};

    (void) state;
    OK(iceberg_fit_schema(arena, lake, &(FitWant){.source = other}, &fit, &err));
    schema_unref(fit.schema);
    lake = metadata_set_schema(arena, lake, &fit);
    assert_int_equal(lake->current_schema_id, 1);
    OK(iceberg_fit_schema(arena, lake, &(FitWant){.source = first}, &fit, &err));
    schema_unref(fit.schema);
    lake = metadata_set_schema(arena, lake, &fit);
    assert_int_equal(lake->current_schema_id, 0);
    assert_int_equal(lake->schema_count, 2);
    schema_unref(first);
    schema_unref(other);
}

/* What the lake has, in the words of a source that went on: a dropped column is still there. */
static void
the_lake_tells_its_shape(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *first = shape("1:id:int4* 2:a:text 3:b:int4");
    TableSchema *now = shape("1:key:int4* 3:b:int8 4:c:text");
    TableMetadata *lake = lake_of(arena, first);
    TableSchema *told = iceberg_lake_shape(lake, now);

    (void) state;
    assert_int_equal(told->column_count, 3);
    assert_int_equal(told->columns[1].attnum, 2);
    assert_true(str_eqc(told->columns[0].field.name, "id"));
    assert_int_equal(told->columns[0].type_oid, 0); /* its rows are parsed by another shape */
    assert_int_equal(told->key_count, 1);
    schema_unref(told);
    schema_unref(first);
    schema_unref(now);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_stay_with_attnums),
        cmocka_unit_test(only_promotions_keep_a_field),
        cmocka_unit_test(arrays_as_json_are_not_their_text),
        cmocka_unit_test(a_fresh_copy_gives_new_fields),
        cmocka_unit_test(defaults_of_old_rows_need_a_copy),
        cmocka_unit_test(version_3_says_the_default_of_old_rows),
        cmocka_unit_test(a_default_that_cannot_be_said_needs_a_copy),
        cmocka_unit_test(an_old_schema_is_used_again),
        cmocka_unit_test(the_lake_tells_its_shape),
    };

    return cmocka_run_group_tests_name("evolve", tests, NULL, NULL);
}
