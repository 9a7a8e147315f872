/* Table metadata. Golden files are Java's (golden/iceberg/Golden.java) and PyIceberg's
 * (golden/iceberg/golden.py); that they read what we write is golden/check_written.py. */
#include "golden_files.h"
#include "testing.h"

#include "iceberg/metadata.h"

static TableMetadata *
parse_golden(Arena *arena, const char *path)
{
    TableMetadata *metadata = NULL;
    Error err = {0};

    OK(metadata_parse(arena, golden_file(arena, path), &metadata, &err));
    return metadata;
}

static const char *
written(Arena *arena, const TableMetadata *metadata)
{
    AUTO_BUF Buf out = {0};

    metadata_write(metadata, &out);
    return arena_strdup(arena, buf_text(&out));
}

/* A copy says the same, and needs nothing of the original: its memory is gone. */
static void
expect_copy(Arena *arena, const char *path)
{
    Arena *first = arena_new();
    TableMetadata *copy = NULL;
    TableMetadata *metadata = parse_golden(first, path);
    const char *text = written(arena, metadata);
    Error err = {0};

    OK(metadata_copy(arena, metadata, &copy, &err));
    arena_free(first);
    assert_string_equal(written(arena, copy), text);
}

static void
java_metadata_comes_out_byte_for_byte(void **state)
{
    static const char *const folders[] = {"iceberg/java-v2", "iceberg/java-partitioned",
                                          "iceberg/java-v3", "iceberg/java-sorted"};
    AUTO_ARENA Arena *arena = arena_new();

    (void) state;
    for (size_t i = 0; i < 4; i++) {
        const char *paths[64] = {0};
        size_t count = golden_list(arena, folders[i], ".metadata.json", paths);

        for (size_t j = 0; j < count; j++) {
            assert_string_equal(written(arena, parse_golden(arena, paths[j])),
                                golden_file(arena, paths[j]).ptr);
            expect_copy(arena, paths[j]);
        }
    }
}

/* The orders are understood, not only passed on: made anew of what was read, they are the same. */
static void
java_sort_orders_are_understood(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *paths[64] = {0};
    size_t count = golden_list(arena, "iceberg/java-sorted", ".metadata.json", paths);
    TableMetadata *metadata = parse_golden(arena, paths[0]);

    (void) state;
    for (size_t i = 0; i < count; i++) {
        metadata = parse_golden(arena, paths[i]);
        for (size_t k = 0; k < metadata->sort_order_count; k++)
            metadata->sort_orders[k].json = STR_NULL;
        assert_string_equal(written(arena, metadata), golden_file(arena, paths[i]).ptr);
    }
    assert_int_equal(metadata->default_sort_order_id, 1);
    assert_int_equal(metadata->sort_order_count, 4);

    const SortOrder *order = metadata_find_sort_order(metadata, 2);

    assert_int_equal(order->field_count, 2);
    assert_int_equal(order->fields[1].source_id, 7);
    assert_true(order->fields[1].descending);
    assert_true(order->fields[1].nulls_first);
    order = metadata_find_sort_order(metadata, 3);
    assert_int_equal(order->field_count, 3);
    assert_true(str_eqc(order->fields[0].transform, "day"));
    assert_true(str_eqc(order->fields[2].transform, "truncate[3]"));
    assert_false(order->fields[2].descending);
    assert_false(order->fields[2].nulls_first);
    assert_int_equal(metadata_find_sort_order(metadata, 0)->field_count, 0);
    assert_null(metadata_find_sort_order(metadata, 4));
}

static void
expect_stable(Arena *arena, const char *path)
{
    TableMetadata *first = parse_golden(arena, path);
    const char *text = written(arena, first);
    TableMetadata *again = NULL;
    Error err = {0};

    OK(metadata_parse(arena, str_of(text), &again, &err));
    assert_non_null(again);
    assert_string_equal(written(arena, again), text);
    assert_int_equal(again->format_version, 2);
    assert_true(str_eq(again->table_uuid, first->table_uuid));
    assert_int_equal(again->snapshot_count, first->snapshot_count);
    assert_int_equal(again->snapshot_log_count, first->snapshot_log_count);
    assert_int_equal(again->metadata_log_count, first->metadata_log_count);
    assert_true(again->current_snapshot_id == first->current_snapshot_id);
}

/* What Java writes as version 1, and PyIceberg with other keys and order: written once it is ours,
 * and stays the same from then on. */
static void
other_metadata_is_stable(void **state)
{
    static const char *const folders[] = {"iceberg/java-v1", "iceberg/python-v2"};
    AUTO_ARENA Arena *arena = arena_new();

    (void) state;
    for (size_t i = 0; i < 2; i++) {
        const char *paths[64] = {0};
        size_t count = golden_list(arena, folders[i], ".metadata.json", paths);

        for (size_t j = 0; j < count; j++) {
            expect_stable(arena, paths[j]);
            expect_copy(arena, paths[j]);
        }
    }
}

/* The values are those in the file, read with one's eyes. */
static void
fields_are_where_java_put_them(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *paths[64] = {0};
    TableMetadata *metadata = parse_golden(arena, "iceberg/java-v2/v7.metadata.json");
    const Snapshot *snapshot = metadata_current_snapshot(metadata);

    (void) state;
    assert_int_equal(metadata->format_version, 2);
    assert_true(str_eqc(metadata->location, "/tmp/iceberg-golden/java-v2"));
    assert_int_equal(metadata->last_sequence_number, 4);
    assert_int_equal(metadata->last_column_id, 15);
    assert_int_equal(metadata->schema_count, 2);
    assert_int_equal(metadata->current_schema_id, 1);
    assert_int_equal(metadata_current_schema(metadata)->field_count, 11);
    assert_int_equal(metadata->last_partition_id, 999);
    assert_true(str_eqc(property_get(&metadata->properties, "owner"), "golden"));
    assert_int_equal(metadata->snapshot_count, 4);
    assert_int_equal(snapshot->sequence_number, 4);
    assert_int_equal(snapshot->schema_id, 1);
    assert_true(snapshot->parent_id == metadata->snapshots[2].snapshot_id);
    assert_true(str_eqc(property_get(&snapshot->summary, "operation"), "replace"));
    assert_true(str_eqc(property_get(&snapshot->summary, "total-records"), "40"));
    assert_null(property_get(&snapshot->summary, "missing").ptr);
    assert_int_equal(metadata->ref_count, 2);
    assert_true(metadata->refs[1].is_tag);
    assert_true(metadata->refs[1].snapshot_id == metadata->snapshots[0].snapshot_id);
    assert_int_equal(metadata->metadata_log_count, 6);

    metadata = parse_golden(arena, "iceberg/java-v2/v1.metadata.json");
    assert_null(metadata_current_snapshot(metadata)); /* current-snapshot-id -1 */
    assert_int_equal(metadata->ref_count, 0);

    metadata = parse_golden(arena, "iceberg/java-partitioned/v6.metadata.json");
    assert_int_equal(metadata->spec_count, 2);
    assert_int_equal(metadata->default_spec_id, 1);
    assert_true(str_eqc(metadata_find_spec(metadata, 0)->fields[0].transform, "bucket[16]"));
    assert_int_equal(metadata_find_spec(metadata, 0)->fields[7].field_id, 1007);
    assert_null(metadata_find_spec(metadata, 7));

    assert_true(golden_list(arena, "iceberg/java-v1", ".metadata.json", paths) == 7);
    metadata = parse_golden(arena, paths[6]);
    assert_int_equal(metadata->format_version, 1);
    assert_int_equal(metadata->last_sequence_number, 0);
    assert_int_equal(metadata->ref_count, 2);
}

/* --- New tables and history ---------------------------------------------------------------- */

static TableMetadata *
new_table(Arena *arena)
{
    static const Type number = {.kind = TYPE_INT64};
    static Field field = {.name = {"id", 2}, .id = 1, .type = &number};
    IcebergSchema schema = {.field_count = 1, .fields = &field};
    TableCreate create = {
        .uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        .location = "s3://lake/t",
        .schema = &schema,
        .now_ms = 1000,
        .format_version = 2,
    };

    create.properties = property_set(arena, &create.properties, STR("z"), STR("1"));
    create.properties = property_set(arena, &create.properties, STR("a"), STR("2"));
    return metadata_create(arena, &create);
}

static void
a_new_table_is_what_java_would_make(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();

    (void) state;
    /* keys and values as in java-v2/v1.metadata.json */
    assert_string_equal(
        written(arena, new_table(arena)),
        "{\"format-version\":2,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
        "\"location\":\"s3://lake/t\",\"last-sequence-number\":0,\"last-updated-ms\":1000,"
        "\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\","
        "\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\",\"required\":false,"
        "\"type\":\"long\"}]}],\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,"
        "\"fields\":[]}],\"last-partition-id\":999,\"default-sort-order-id\":0,"
        "\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":{\"a\":\"2\",\"z\":\"1\"},"
        "\"current-snapshot-id\":-1,\"refs\":{},\"snapshots\":[],\"snapshot-log\":[],"
        "\"metadata-log\":[]}");
}

static TableMetadata *
add_at(Arena *arena, const TableMetadata *metadata, int64_t at_ms, const Retention *retention)
{
    int64_t number = metadata->last_sequence_number + 1;
    Snapshot snapshot = {
        .snapshot_id = 100 + number,
        .parent_id = metadata->current_snapshot_id,
        .sequence_number = number,
        .timestamp_ms = at_ms,
        .manifest_list = STR("s3://lake/t/list.avro"),
        .schema_id = 0,
    };

    return metadata_add_snapshot(arena, metadata, &snapshot,
                                 arena_printf(arena, "v%d.metadata.json", (int) number), retention);
}

static void
a_snapshot_becomes_the_current_one(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableMetadata *before = new_table(arena);
    TableMetadata *metadata = add_at(arena, before, 5000, NULL);
    TableMetadata *again = NULL;
    Error err = {0};

    (void) state;
    metadata = add_at(arena, metadata, 4000, NULL); /* a clock that goes back */
    OK(metadata_parse(arena, str_of(written(arena, metadata)), &again, &err));
    assert_int_equal(before->snapshot_count, 0);
    assert_int_equal(again->current_snapshot_id, 102);
    assert_int_equal(again->last_sequence_number, 2);
    assert_int_equal(again->last_updated_ms, 5000);
    assert_int_equal(again->snapshot_count, 2);
    assert_int_equal(again->snapshots[1].parent_id, 101);
    assert_int_equal(again->ref_count, 1);
    assert_true(str_eqc(again->refs[0].json, "{\"snapshot-id\":102,\"type\":\"branch\"}"));
    assert_int_equal(again->snapshot_log_count, 2);
    assert_int_equal(again->metadata_log_count, 2);
    assert_true(str_eqc(again->metadata_log[0].file, "v1.metadata.json"));
    assert_int_equal(again->metadata_log[0].timestamp_ms, 1000);
    assert_int_equal(again->metadata_log[1].timestamp_ms, 5000);
}

static const int64_t MINUTE = 60000;
static const int64_t HOUR = 3600000;
static const int64_t DAY = 86400000;

static bool
has_snapshot_at(const TableMetadata *metadata, int64_t at_ms)
{
    for (size_t i = 0; i < metadata->snapshot_count; i++)
        if (metadata->snapshots[i].timestamp_ms == at_ms)
            return true;
    return false;
}

static void
properties_change_and_nothing_else(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableMetadata *before = add_at(arena, new_table(arena), 5000, NULL);
    PropertyList more = property_set(arena, &before->properties, STR("k"), STR("v"));
    TableMetadata *after = metadata_set_properties(arena, before, &more, "v7.metadata.json", 6000);
    TableMetadata *back =
        metadata_set_properties(arena, after, &before->properties, NULL, after->last_updated_ms);

    (void) state;
    assert_true(str_eqc(property_get(&after->properties, "k"), "v"));
    assert_int_equal(after->last_updated_ms, 6000);
    assert_int_equal(after->metadata_log_count, before->metadata_log_count + 1);
    assert_true(str_eqc(after->metadata_log[before->metadata_log_count].file, "v7.metadata.json"));
    assert_int_equal(after->metadata_log[before->metadata_log_count].timestamp_ms, 5000);
    back->metadata_log_count--;
    back->last_updated_ms = before->last_updated_ms;
    assert_string_equal(written(arena, back), written(arena, before));
}

static void
history_is_thinned_by_age(void **state)
{
    const Retention retention = {.keep_all_ms = HOUR, .keep_hourly_ms = DAY, .metadata_log_max = 3};
    AUTO_ARENA Arena *arena = arena_new();
    TableMetadata *metadata = new_table(arena);
    int64_t start = 20000 * DAY;
    int64_t end = start + 3 * DAY;
    int64_t now = start;

    (void) state;
    for (; now <= end; now += 10 * MINUTE)
        metadata = add_at(arena, metadata, now, &retention);
    now = end;
    /* the last hour whole, then 22 full hours and the piece of the first one by its last snapshot
     */
    for (int i = 0; i < 6; i++)
        assert_true(has_snapshot_at(metadata, now - MINUTE * 10 * i));
    for (int hour = 1; hour < 24; hour++) {
        assert_true(has_snapshot_at(metadata, now - hour * HOUR + 50 * MINUTE));
        assert_int_equal(has_snapshot_at(metadata, now - hour * HOUR + 40 * MINUTE), hour == 1);
    }
    assert_false(has_snapshot_at(metadata, now - DAY));
    assert_false(has_snapshot_at(metadata, now - DAY - 10 * MINUTE));
    for (size_t i = 1; i < metadata->snapshot_count; i++)
        assert_true(metadata->snapshots[i - 1].timestamp_ms < metadata->snapshots[i].timestamp_ms);
    assert_int_equal(metadata->metadata_log_count, 3);
    assert_true(metadata->metadata_log[2].timestamp_ms == end - 10 * MINUTE);
    /* the log holds what is younger than the youngest removed one */
    assert_true(metadata->snapshot_log_count >= 6 && metadata->snapshot_log_count <= 8);
    for (size_t i = 0; i < metadata->snapshot_log_count; i++)
        assert_non_null(metadata_find_snapshot(metadata, metadata->snapshot_log[i].snapshot_id));
}

static void
the_youngest_and_the_tagged_stay(void **state)
{
    const Retention keep_two = {.keep_all_ms = DAY, .snapshots_max = 2, .metadata_log_max = 100};
    const Retention keep_none = {0};
    AUTO_ARENA Arena *arena = arena_new();
    const TableMetadata *java = parse_golden(arena, "iceberg/java-v2/v7.metadata.json");
    TableMetadata start = *java;
    int64_t now = java->last_updated_ms;
    TableMetadata *metadata;

    (void) state;
    start.rest = STR("{\"statistics\":["
                     "{\"snapshot-id\":1093687936396686630,\"statistics-path\":\"a\"},"
                     "{\"snapshot-id\":5020573828382864398,\"statistics-path\":\"b\"}]}");
    start.snapshots[0].timestamp_ms -= DAY;
    metadata = add_at(arena, &start, now + 1, &keep_two);
    assert_int_equal(metadata->snapshot_count, 3); /* two, and the tag "first" */
    assert_true(metadata->snapshots[0].snapshot_id == start.refs[1].snapshot_id);
    assert_true(metadata->snapshots[1].snapshot_id == start.current_snapshot_id);
    /* entries before a removed snapshot go, even of one that is still there */
    assert_int_equal(metadata->snapshot_log_count, 2);
    assert_string_equal(metadata->rest.ptr,
                        "{\"statistics\":["
                        "{\"snapshot-id\":1093687936396686630,\"statistics-path\":\"a\"}]}");

    metadata = add_at(arena, &start, now + 1, &keep_none);
    assert_int_equal(metadata->snapshot_count, 2);
    assert_int_equal(metadata->metadata_log_count, 0);
    assert_true(metadata->snapshots[1].snapshot_id == metadata->current_snapshot_id);
}

/* --- Format version 3 ---------------------------------------------------------------------- */

/* Java's table after each of its commits, from the one before and what the snapshot says. */
static void
row_ids_go_on_as_in_java(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *paths[64] = {0};
    size_t count = golden_list(arena, "iceberg/java-v3", ".metadata.json", paths);
    TableMetadata *before = parse_golden(arena, paths[0]);

    (void) state;
    assert_int_equal(count, 4);
    assert_int_equal(before->next_row_id, 0);
    for (size_t i = 1; i < count; i++) {
        TableMetadata *java = parse_golden(arena, paths[i]);
        Snapshot snapshot = *metadata_current_snapshot(java);
        TableMetadata *ours = metadata_add_snapshot(arena, before, &snapshot, NULL, NULL);

        assert_true(snapshot.first_row_id == before->next_row_id);
        assert_true(ours->next_row_id == java->next_row_id);
        snapshot.json = STR_NULL; /* written by us */
        ours = metadata_add_snapshot(arena, before, &snapshot, NULL, NULL);
        assert_non_null(
            strstr(written(arena, ours),
                   arena_printf(arena,
                                ",\"schema-id\":0,\"first-row-id\":%d,"
                                "\"added-rows\":%d}",
                                (int) snapshot.first_row_id, (int) snapshot.added_rows)));
        before = java;
    }
}

static void
an_upgrade_begins_row_ids(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    const TableMetadata *old = parse_golden(arena, "iceberg/java-v2/v7.metadata.json");
    TableMetadata *metadata = metadata_upgrade(arena, old);
    Snapshot snapshot = {
        .snapshot_id = 1,
        .parent_id = old->current_snapshot_id,
        .sequence_number = old->last_sequence_number + 1,
        .timestamp_ms = old->last_updated_ms + 1,
        .manifest_list = STR("s3://lake/t/list.avro"),
        .first_row_id = 0,
        .added_rows = 40,
    };
    TableMetadata *again = NULL;
    Error err = {0};

    (void) state;
    assert_int_equal(old->format_version, 2);
    metadata = metadata_add_snapshot(arena, metadata, &snapshot, "v7.metadata.json", NULL);
    OK(metadata_parse(arena, str_of(written(arena, metadata)), &again, &err));
    assert_int_equal(again->format_version, 3);
    assert_true(again->next_row_id == 40);
    assert_true(again->snapshots[0].first_row_id == -1); /* old snapshots stay as they are */
    assert_true(str_eq(again->snapshots[0].json, old->snapshots[0].json));
    assert_true(again->snapshots[4].first_row_id == 0);
    assert_true(again->snapshots[4].added_rows == 40);
    assert_true(str_eq(again->table_uuid, old->table_uuid));
}

static void
properties_are_a_sorted_map(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    PropertyList list = {0};

    (void) state;
    list = property_set(arena, &list, STR("m"), STR("1"));
    list = property_set(arena, &list, STR("z"), STR("2"));
    list = property_set(arena, &list, STR("a"), STR("3"));
    list = property_set(arena, &list, STR("m"), STR("4"));
    assert_int_equal(list.count, 3);
    assert_true(str_eqc(list.items[0].key, "a") && str_eqc(list.items[2].key, "z"));
    assert_true(str_eqc(property_get(&list, "m"), "4"));
    list = property_set(arena, &list, STR("m"), STR_NULL);
    list = property_set(arena, &list, STR("not there"), STR_NULL);
    assert_int_equal(list.count, 2);
    assert_null(property_get(&list, "m").ptr);
}

/* --- What is refused ----------------------------------------------------------------------- */

static void
refuse(const char *from, const char *to, const char *message)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str text = golden_file(arena, "iceberg/java-v2/v7.metadata.json");
    const char *at = strstr(text.ptr, from);
    TableMetadata *metadata;
    Error err = {0};

    assert_non_null(at);

    const char *changed =
        arena_printf(arena, "%.*s%s%s", (int) (at - text.ptr), text.ptr, to, at + strlen(from));

    FAILS(metadata_parse(arena, str_of(changed), &metadata, &err), ERR_INPUT);
    assert_string_equal(err.msg, message);
}

static void
bad_metadata_is_named(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableMetadata *metadata;
    Error err = {0};

    (void) state;
    FAILS(metadata_parse(arena, STR("{\"a\":"), &metadata, &err), ERR_INPUT);
    FAILS(metadata_parse(arena, STR("[]"), &metadata, &err), ERR_INPUT);
    assert_string_equal(err.msg, "metadata: not a JSON object");
    refuse("\"format-version\":2", "\"format-version\":4",
           "metadata: format-version 4 is not supported");
    refuse("\"table-uuid\"", "\"x\"", "metadata: no table-uuid");
    refuse("\"location\":\"", "\"location\":7,\"x\":\"", "metadata: location is not a string");
    refuse("\"current-schema-id\":1", "\"current-schema-id\":9",
           "metadata: current-schema-id 9 is not in schemas");
    refuse("\"default-spec-id\":0", "\"default-spec-id\":1",
           "metadata: default-spec-id 1 is not in partition-specs");
    refuse("\"default-sort-order-id\":0", "\"default-sort-order-id\":1",
           "metadata: default-sort-order-id 1 is not in sort-orders");
    refuse("\"sort-orders\":[", "\"sort-orders\":[{\"fields\":[]},",
           "metadata: sort-orders[0]: no order-id");
    refuse("\"sort-orders\":[",
           "\"sort-orders\":[{\"order-id\":1,\"fields\":[{\"transform\":\"identity\","
           "\"source-id\":1,\"direction\":\"up\"}]},",
           "metadata: sort-orders[0]: fields[0]: direction is neither asc nor desc");
    refuse("\"current-snapshot-id\":1603246707452995722", "\"current-snapshot-id\":5",
           "metadata: current-snapshot-id 5 is not in snapshots");
    refuse("\"main\":{\"snapshot-id\":1603246707452995722", "\"main\":{\"snapshot-id\":5",
           "metadata: refs.main 5 is not current-snapshot-id 1603246707452995722");
    refuse("\"manifest-list\"", "\"x\"", "metadata: snapshots[0]: no manifest-list");
    refuse("\"operation\":\"append\"", "\"operation\":7",
           "metadata: snapshots[0]: summary: operation is not a string");
    refuse("\"snapshot-log\":[", "\"snapshot-log\":[7,",
           "metadata: snapshot-log[0]: no snapshot-id");
    refuse("{\"id\":15,", "{", "metadata: schemas[1]: field extra: no id");
    refuse("\"last-column-id\":15", "\"last-column-id\":99999999999",
           "metadata: last-column-id is not a 32-bit integer");
    refuse("\"format-version\":2", "\"format-version\":3", "metadata: no next-row-id");
    refuse("\"format-version\":2", "\"next-row-id\":-1,\"format-version\":3",
           "metadata: next-row-id is negative");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(java_metadata_comes_out_byte_for_byte),
        cmocka_unit_test(java_sort_orders_are_understood),
        cmocka_unit_test(other_metadata_is_stable),
        cmocka_unit_test(fields_are_where_java_put_them),
        cmocka_unit_test(a_new_table_is_what_java_would_make),
        cmocka_unit_test(a_snapshot_becomes_the_current_one),
        cmocka_unit_test(properties_change_and_nothing_else),
        cmocka_unit_test(history_is_thinned_by_age),
        cmocka_unit_test(the_youngest_and_the_tagged_stay),
        cmocka_unit_test(row_ids_go_on_as_in_java),
        cmocka_unit_test(an_upgrade_begins_row_ids),
        cmocka_unit_test(properties_are_a_sorted_map),
        cmocka_unit_test(bad_metadata_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
