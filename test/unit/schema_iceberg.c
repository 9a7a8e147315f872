/* Iceberg schemas: from our tables, to and from JSON. The schemas of others are Java's
 * (golden/iceberg/Golden.java). */
#include "golden_files.h"
#include "testing.h"

#include "iceberg/metadata.h"

static void
add_column(TableSchema *schema, const char *name, const Type *type, bool not_null)
{
    SchemaColumn *column = &schema->columns[schema->column_count++];

    column->field.name = str_of(name);
    column->field.type = type;
    column->not_null = not_null;
    column->pg_type = "some \"type\"";
}

/* (id int8 not null, m map<text, list<int4>>, price numeric(12,2) not null) */
static TableSchema *
make_table(const Type *key_type, bool key_not_null)
{
    static const Type text = {.kind = TYPE_STRING};
    static const Type number = {.kind = TYPE_INT32};
    static const Type price = {.kind = TYPE_DECIMAL, .precision = 12, .scale = 2};
    Arena *arena;
    TableSchema *schema = schema_new(&arena);
    Type *list = ARENA_NEW(arena, Type);
    Type *map = ARENA_NEW(arena, Type);

    *list = (Type){.kind = TYPE_LIST, .field_count = 1, .fields = ARENA_NEW(arena, Field)};
    list->fields[0] = (Field){.name = STR("element"), .type = &number};
    *map = (Type){.kind = TYPE_MAP, .field_count = 2, .fields = ARENA_ARRAY(arena, Field, 2)};
    map->fields[0] = (Field){.name = STR("key"), .required = true, .type = &text};
    map->fields[1] = (Field){.name = STR("value"), .type = list};
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, 3);
    add_column(schema, "id", key_type, key_not_null);
    add_column(schema, "m", map, false);
    add_column(schema, "price", &price, true);
    schema->key_mode = KEY_COLUMNS;
    schema->key_count = 1;
    schema->key = ARENA_NEW(arena, int);
    schema_assign_ids(schema);
    return schema;
}

static const char *
schema_text(Arena *arena, const IcebergSchema *schema)
{
    AUTO_BUF Buf out = {0};
    JsonWriter json;

    jw_begin(&json, &out);
    iceberg_schema_write(&json, schema);
    return arena_strdup(arena, buf_text(&out));
}

static void
a_table_becomes_a_schema(void **state)
{
    static const Type key = {.kind = TYPE_INT64};
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *table = make_table(&key, true);
    IcebergSchema *schema = iceberg_schema_from_table(arena, table, 4);
    AUTO_NODE JsonNode *node = NULL;
    IcebergSchema parsed;
    Error err = {0};

    (void) state;
    schema_unref(table); /* the schema lives in its own arena */
    /* Iceberg spec, "Appendix C: JSON serialization"; ids level by level, as Java assigns them */
    assert_string_equal(
        schema_text(arena, schema),
        "{\"type\":\"struct\",\"schema-id\":4,\"identifier-field-ids\":[1],\"fields\":["
        "{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\","
        "\"doc\":\"some \\\"type\\\"\"},"
        "{\"id\":2,\"name\":\"m\",\"required\":false,\"type\":{\"type\":\"map\",\"key-id\":4,"
        "\"key\":\"string\",\"value-id\":5,\"value\":{\"type\":\"list\",\"element-id\":6,"
        "\"element\":\"int\",\"element-required\":false},\"value-required\":false},"
        "\"doc\":\"some \\\"type\\\"\"},"
        "{\"id\":3,\"name\":\"price\",\"required\":false,\"type\":\"decimal(12,2)\","
        "\"doc\":\"some \\\"type\\\"\"}]}");
    assert_int_equal(iceberg_schema_last_id(schema), 6);

    OK(node_parse(str_of(schema_text(arena, schema)), &node, &err));
    OK(iceberg_schema_parse(arena, node, &parsed, &err));
    assert_int_equal(parsed.field_count, 3);
    assert_true(iceberg_schema_understood(&parsed));
    assert_int_equal(parsed.identifiers[0], 1);
    assert_string_equal(parsed.docs[1], "some \"type\"");
    for (int i = 0; i < 3; i++) {
        assert_true(type_eq(parsed.fields[i].type, schema->fields[i].type));
        assert_int_equal(parsed.fields[i].required, schema->fields[i].required);
    }
    assert_int_equal(iceberg_schema_find(&parsed, 6)->type->kind, TYPE_INT32);
    assert_true(iceberg_schema_find(&parsed, 4)->required);
    assert_null(iceberg_schema_find(&parsed, 7));
}

static int
identifiers_with_key(const Type *key, bool not_null)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *table = make_table(key, not_null);
    int count = iceberg_schema_from_table(arena, table, 0)->identifier_count;

    schema_unref(table);
    return count;
}

/* Iceberg spec, "Identifier Field IDs" */
static void
identifiers_are_required_and_exact(void **state)
{
    static const Type text = {.kind = TYPE_STRING};
    static const Type real = {.kind = TYPE_FLOAT64};
    static const Type single = {.kind = TYPE_FLOAT32};

    (void) state;
    assert_int_equal(identifiers_with_key(&text, true), 1);
    assert_int_equal(identifiers_with_key(&text, false), 0);
    assert_int_equal(identifiers_with_key(&real, true), 0);
    assert_int_equal(identifiers_with_key(&single, true), 0);
}

static void
schemas_of_others_are_understood_or_said_not_to_be(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf name = {0};
    TableMetadata *metadata;
    const IcebergSchema *schema;
    Error err = {0};

    (void) state;
    OK(metadata_parse(arena, golden_file(arena, "iceberg/java-v2/v1.metadata.json"), &metadata,
                      &err));
    schema = metadata_current_schema(metadata);
    assert_true(iceberg_schema_understood(schema));
    assert_int_equal(iceberg_schema_find(schema, 3)->type->kind, TYPE_DECIMAL); /* decimal(9, 2) */
    assert_int_equal(iceberg_schema_find(schema, 3)->type->precision, 9);
    assert_int_equal(iceberg_schema_find(schema, 6)->type->kind, TYPE_BINARY); /* fixed[4] */
    assert_int_equal(iceberg_schema_find(schema, 14)->type->kind, TYPE_FLOAT64);
    assert_true(iceberg_schema_type_name(schema, 6, &name));
    assert_string_equal(buf_text(&name), "fixed[4]");
    buf_reset(&name);
    assert_true(iceberg_schema_type_name(schema, 14, &name));
    assert_string_equal(buf_text(&name), "double");
    assert_false(iceberg_schema_type_name(schema, 9, &name)); /* a list */
    assert_false(iceberg_schema_type_name(schema, 99, &name));

    OK(metadata_parse(arena, golden_file(arena, "iceberg/java-v3/v1.metadata.json"), &metadata,
                      &err));
    schema = metadata_current_schema(metadata);
    assert_false(iceberg_schema_understood(schema));
    assert_string_equal(schema->beyond, "v: variant");
}

static bool
parse_text(Arena *arena, const char *text, IcebergSchema *out, Error *err)
{
    AUTO_NODE JsonNode *node = NULL;

    TRY(node_parse(str_of(text), &node, err));
    return iceberg_schema_parse(arena, node, out, err);
}

#define ONE_FIELD(type)                                                                            \
    "{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":" type   \
    "}]}"

static void
bad_schemas_are_named(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf deep = {0};
    IcebergSchema schema = {0};
    Error err = {0};

    (void) state;
    FAILS(parse_text(arena, "{}", &schema, &err), ERR_INPUT);
    FAILS(parse_text(arena, "[]", &schema, &err), ERR_INPUT);
    FAILS(parse_text(arena, ONE_FIELD("7"), &schema, &err), ERR_INPUT);
    FAILS(parse_text(arena, ONE_FIELD("\"\""), &schema, &err), ERR_INPUT);
    FAILS(parse_text(arena, ONE_FIELD("{\"type\":\"list\",\"element\":\"int\"}"), &schema, &err),
          ERR_INPUT);
    assert_string_equal(err.msg, "field a: no element-id");
    FAILS(parse_text(arena, "{\"fields\":[{\"name\":\"a\",\"type\":\"int\"}]}", &schema, &err),
          ERR_INPUT);
    /* decimals that Iceberg does not have are passed on, like any type we do not know */
    OK(parse_text(arena, ONE_FIELD("\"decimal(39,2)\""), &schema, &err));
    assert_string_equal(schema.beyond, "a: decimal(39,2)");
    OK(parse_text(arena, ONE_FIELD("\"decimal( 5 , 5 )\""), &schema, &err));
    assert_null(schema.beyond);
    for (int i = 0; i < 40; i++)
        buf_cstr(&deep, "{\"type\":\"list\",\"element-id\":2,\"element\":");
    buf_cstr(&deep, "\"int\"");
    for (int i = 0; i < 40; i++)
        buf_byte(&deep, '}');
    OK(parse_text(arena,
                  arena_printf(arena, "{\"fields\":[{\"id\":1,\"name\":\"a\",\"type\":%s}]}",
                               buf_text(&deep)),
                  &schema, &err));
    assert_string_equal(schema.beyond, "element: too many levels");
}

/* The spec's examples of single values ("JSON single-value serialization"). */
static void
defaults_are_kept(void **state)
{
    static const char text[] =
        "{\"type\":\"struct\",\"schema-id\":3,\"fields\":["
        "{\"id\":1,\"name\":\"n\",\"required\":true,\"type\":\"int\",\"initial-default\":34,"
        "\"write-default\":-5},"
        "{\"id\":2,\"name\":\"d\",\"required\":false,\"type\":\"date\",\"doc\":\"date\","
        "\"initial-default\":\"2017-11-16\"},"
        "{\"id\":3,\"name\":\"s\",\"required\":false,\"type\":{\"type\":\"struct\",\"fields\":["
        "{\"id\":4,\"name\":\"x\",\"required\":false,\"type\":\"string\","
        "\"write-default\":\"a \\\"b\\\"\"}]}},"
        "{\"id\":5,\"name\":\"none\",\"required\":false,\"type\":\"int\",\"initial-default\":null}]"
        "}";
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_NODE JsonNode *node = NULL;
    IcebergSchema schema;
    Error err;

    (void) state;
    OK(node_parse(STR(text), &node, &err));
    OK(iceberg_schema_parse(arena, node, &schema, &err));

    const Field *nested = iceberg_schema_find(&schema, 4);

    assert_true(str_eqc(schema.fields[0].initial_default, "34"));
    assert_true(str_eqc(schema.fields[0].write_default, "-5"));
    assert_true(str_eqc(schema.fields[1].initial_default, "\"2017-11-16\""));
    assert_null(schema.fields[1].write_default.ptr);
    assert_true(str_eqc(nested->write_default, "\"a \\\"b\\\"\""));
    assert_null(schema.fields[3].initial_default.ptr);

    /* written by us, not passed on as it was read: the null goes, the rest stays */
    schema.json = STR_NULL;
    for (int i = 0; i < schema.field_count; i++)
        schema.fields[i] = field_copy(arena, &schema.fields[i]);

    const char *written = schema_text(arena, &schema);
    size_t end = sizeof text - sizeof ",\"initial-default\":null}]}";

    assert_int_equal(strlen(written), end + strlen("}]}"));
    assert_memory_equal(written, text, end);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_kept),
        cmocka_unit_test(a_table_becomes_a_schema),
        cmocka_unit_test(identifiers_are_required_and_exact),
        cmocka_unit_test(schemas_of_others_are_understood_or_said_not_to_be),
        cmocka_unit_test(bad_schemas_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
