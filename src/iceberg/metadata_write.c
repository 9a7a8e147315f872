#include "iceberg/metadata.h"

#include <assert.h>

static void
put_int(JsonWriter *json, const char *key, int64_t n)
{
    jw_key(json, key);
    jw_int(json, n);
}

static void
put_str(JsonWriter *json, const char *key, Str s)
{
    jw_key(json, key);
    jw_str(json, s);
}

static void
put_properties(JsonWriter *json, const char *key, const PropertyList *list)
{
    jw_key(json, key);
    jw_object(json);
    for (size_t i = 0; i < list->count; i++) {
        jw_key_str(json, list->items[i].key);
        jw_str(json, list->items[i].value);
    }
    jw_end(json);
}

static void
put_schemas(JsonWriter *json, const TableMetadata *metadata)
{
    put_int(json, "current-schema-id", metadata->current_schema_id);
    jw_key(json, "schemas");
    jw_array(json);
    for (size_t i = 0; i < metadata->schema_count; i++)
        iceberg_schema_write(json, &metadata->schemas[i]);
    jw_end(json);
}

static void
put_specs(JsonWriter *json, const TableMetadata *metadata)
{
    put_int(json, "default-spec-id", metadata->default_spec_id);
    jw_key(json, "partition-specs");
    jw_array(json);
    for (size_t i = 0; i < metadata->spec_count; i++) {
        const PartitionSpec *spec = &metadata->specs[i];

        if (spec->json.ptr != NULL) {
            jw_raw(json, spec->json);
            continue;
        }
        jw_object(json);
        put_int(json, "spec-id", spec->spec_id);
        jw_key(json, "fields");
        partition_fields_write(json, spec);
        jw_end(json);
    }
    jw_end(json);
    put_int(json, "last-partition-id", metadata->last_partition_id);
}

void
partition_fields_write(JsonWriter *json, const PartitionSpec *spec)
{
    jw_array(json);
    for (int i = 0; i < spec->field_count; i++) {
        const PartitionField *field = &spec->fields[i];

        jw_object(json);
        put_str(json, "name", field->name);
        put_str(json, "transform", field->transform);
        put_int(json, "source-id", field->source_id);
        put_int(json, "field-id", field->field_id);
        jw_end(json);
    }
    jw_end(json);
}

void
sort_fields_write(JsonWriter *json, const SortOrder *order)
{
    jw_array(json);
    for (int i = 0; i < order->field_count; i++) {
        const SortField *field = &order->fields[i];

        jw_object(json);
        put_str(json, "transform", field->transform);
        put_int(json, "source-id", field->source_id);
        put_str(json, "direction", field->descending ? STR("desc") : STR("asc"));
        put_str(json, "null-order", field->nulls_first ? STR("nulls-first") : STR("nulls-last"));
        jw_end(json);
    }
    jw_end(json);
}

static void
put_sort_orders(JsonWriter *json, const TableMetadata *metadata)
{
    put_int(json, "default-sort-order-id", metadata->default_sort_order_id);
    jw_key(json, "sort-orders");
    jw_array(json);
    for (size_t i = 0; i < metadata->sort_order_count; i++) {
        const SortOrder *order = &metadata->sort_orders[i];

        if (order->json.ptr != NULL) {
            jw_raw(json, order->json);
            continue;
        }
        jw_object(json);
        put_int(json, "order-id", order->order_id);
        jw_key(json, "fields");
        sort_fields_write(json, order);
        jw_end(json);
    }
    jw_end(json);
}

static void
put_snapshot(JsonWriter *json, const Snapshot *snapshot)
{
    if (snapshot->json.ptr != NULL) {
        jw_raw(json, snapshot->json);
        return;
    }
    jw_object(json);
    put_int(json, "sequence-number", snapshot->sequence_number);
    put_int(json, "snapshot-id", snapshot->snapshot_id);
    if (snapshot->parent_id != 0)
        put_int(json, "parent-snapshot-id", snapshot->parent_id);
    put_int(json, "timestamp-ms", snapshot->timestamp_ms);
    put_properties(json, "summary", &snapshot->summary);
    put_str(json, "manifest-list", snapshot->manifest_list);
    if (snapshot->schema_id >= 0)
        put_int(json, "schema-id", snapshot->schema_id);
    if (snapshot->first_row_id >= 0) {
        put_int(json, "first-row-id", snapshot->first_row_id);
        put_int(json, "added-rows", snapshot->added_rows);
    }
    jw_end(json);
}

/* Without a snapshot Java writes -1 up to version 2 and null after; every reader takes both. */
static void
put_current_snapshot(JsonWriter *json, const TableMetadata *metadata)
{
    jw_key(json, "current-snapshot-id");
    if (metadata->current_snapshot_id != 0)
        jw_int(json, metadata->current_snapshot_id);
    else if (metadata->format_version < 3)
        jw_int(json, -1);
    else
        jw_null(json);
}

static void
put_snapshots(JsonWriter *json, const TableMetadata *metadata)
{
    jw_key(json, "refs");
    jw_object(json);
    for (size_t i = 0; i < metadata->ref_count; i++) {
        jw_key_str(json, metadata->refs[i].name);
        jw_raw(json, metadata->refs[i].json);
    }
    jw_end(json);
    jw_key(json, "snapshots");
    jw_array(json);
    for (size_t i = 0; i < metadata->snapshot_count; i++)
        put_snapshot(json, &metadata->snapshots[i]);
    jw_end(json);
}

static void
put_logs(JsonWriter *json, const TableMetadata *metadata)
{
    jw_key(json, "snapshot-log");
    jw_array(json);
    for (size_t i = 0; i < metadata->snapshot_log_count; i++) {
        jw_object(json);
        put_int(json, "timestamp-ms", metadata->snapshot_log[i].timestamp_ms);
        put_int(json, "snapshot-id", metadata->snapshot_log[i].snapshot_id);
        jw_end(json);
    }
    jw_end(json);
    jw_key(json, "metadata-log");
    jw_array(json);
    for (size_t i = 0; i < metadata->metadata_log_count; i++) {
        jw_object(json);
        put_int(json, "timestamp-ms", metadata->metadata_log[i].timestamp_ms);
        put_str(json, "metadata-file", metadata->metadata_log[i].file);
        jw_end(json);
    }
    jw_end(json);
}

static void
put_rest(JsonWriter *json, const JsonNode *rest)
{
    AUTO_ARENA Arena *arena = arena_new();
    NodeCursor cursor = {0};
    const JsonNode *value;
    Str key;

    while (node_next(rest, &cursor, &key, &value)) {
        jw_key_str(json, key);
        jw_raw(json, node_text(arena, value));
    }
}

void
metadata_write(const TableMetadata *metadata, Buf *out)
{
    AUTO_NODE JsonNode *rest = NULL;
    JsonWriter json;
    Error err;
    bool ok = node_parse(metadata->rest.ptr == NULL ? STR("{}") : metadata->rest, &rest, &err);

    assert(ok); /* made by metadata_create or metadata_parse */
    jw_begin(&json, out);
    jw_object(&json);
    put_int(&json, "format-version", metadata->format_version < 2 ? 2 : metadata->format_version);
    put_str(&json, "table-uuid", metadata->table_uuid);
    put_str(&json, "location", metadata->location);
    put_int(&json, "last-sequence-number", metadata->last_sequence_number);
    put_int(&json, "last-updated-ms", metadata->last_updated_ms);
    put_int(&json, "last-column-id", metadata->last_column_id);
    put_schemas(&json, metadata);
    put_specs(&json, metadata);
    put_sort_orders(&json, metadata);
    put_properties(&json, "properties", &metadata->properties);
    put_current_snapshot(&json, metadata);
    if (metadata->format_version >= 3)
        put_int(&json, "next-row-id", metadata->next_row_id);
    put_snapshots(&json, metadata);
    put_rest(&json, rest);
    put_logs(&json, metadata);
    jw_end(&json);
}
