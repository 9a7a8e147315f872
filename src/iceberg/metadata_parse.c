#include "avro/json_node.h"
#include "iceberg/metadata.h"

#include <stdlib.h>
#include <strings.h>

/* Keys that TableMetadata models; everything else goes to `rest`. */
static const char *const modelled_keys[] = {
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "last-column-id",
    "schema",
    "schemas",
    "current-schema-id",
    "partition-spec",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
    "properties",
    "current-snapshot-id",
    "next-row-id",
    "snapshots",
    "snapshot-log",
    "metadata-log",
    "refs",
};

static bool
is_modelled(Str key)
{
    for (size_t i = 0; i < sizeof modelled_keys / sizeof modelled_keys[0]; i++)
        if (str_eqc(key, modelled_keys[i]))
            return true;
    return false;
}

static Str
collect_rest(Arena *arena, const JsonNode *root)
{
    AUTO_BUF Buf out = {0};
    JsonWriter json;
    NodeCursor cursor = {0};
    const JsonNode *value;
    Str key;

    jw_begin(&json, &out);
    jw_object(&json);
    while (node_next(root, &cursor, &key, &value)) {
        if (is_modelled(key))
            continue;
        jw_key_str(&json, key);
        jw_raw(&json, node_text(arena, value));
    }
    jw_end(&json);
    return arena_str(arena, buf_view(&out));
}

static int
compare_properties(const void *a, const void *b)
{
    return str_cmp(((const Property *) a)->key, ((const Property *) b)->key);
}

static bool
parse_properties(Arena *arena, const JsonNode *node, const char *what, PropertyList *out,
                 Error *err)
{
    NodeCursor cursor = {0};
    const JsonNode *value;
    Str key;

    if (node == NULL)
        return true;
    if (!node_is_object(node))
        return FAIL(err, ERR_INPUT, "%s is not an object", what);
    out->items = ARENA_ARRAY(arena, Property, node_count(node));
    while (node_next(node, &cursor, &key, &value)) {
        Str text;

        if (!node_to_str(value, &text))
            return FAIL(err, ERR_INPUT, "%s: %.*s is not a string", what, STR_ARG(key));
        out->items[out->count++] =
            (Property){.key = arena_str(arena, key), .value = arena_str(arena, text)};
    }
    qsort(out->items, out->count, sizeof out->items[0], compare_properties);
    return true;
}

/* --- Schemas and specs --------------------------------------------------------------------- */

static bool
parse_schemas(Arena *arena, const JsonNode *root, TableMetadata *out, Error *err)
{
    const JsonNode *schemas = NULL;

    TRY(node_need_array(root, "schemas", &schemas, err));
    if (schemas == NULL) { /* version 1 may have only the one */
        const JsonNode *schema = node_get(root, "schema");

        if (schema == NULL)
            return FAIL(err, ERR_INPUT, "no schemas");
        out->schema_count = 1;
        out->schemas = ARENA_NEW(arena, IcebergSchema);
        if (!iceberg_schema_parse(arena, schema, &out->schemas[0], err))
            return WRAP(err, "schema");
        out->current_schema_id = out->schemas[0].schema_id;
        return true;
    }
    out->schema_count = node_count(schemas);
    out->schemas = ARENA_ARRAY(arena, IcebergSchema, out->schema_count);
    for (size_t i = 0; i < out->schema_count; i++)
        if (!iceberg_schema_parse(arena, node_at(schemas, i), &out->schemas[i], err))
            return WRAP(err, "schemas[%zu]", i);
    TRY(node_need_int(root, "current-schema-id", &out->current_schema_id, err));
    if (metadata_find_schema(out, out->current_schema_id) == NULL)
        return FAIL(err, ERR_INPUT, "current-schema-id %d is not in schemas",
                    out->current_schema_id);
    return true;
}

static bool
parse_partition_field(Arena *arena, const JsonNode *node, int position, PartitionField *out,
                      Error *err)
{
    const JsonNode *sources = node_get(node, "source-ids");

    TRY(node_need_str(node, "name", arena, &out->name, err));
    TRY(node_need_str(node, "transform", arena, &out->transform, err));
    /* version 3 lists the sources of a transform of several; such transforms are only passed on */
    if (!node_to_int(node_at(sources, 0), &out->source_id))
        TRY(node_need_int(node, "source-id", &out->source_id, err));
    out->field_id = 1000 + position; /* version 1 numbers them like this when it gives no ids */
    if (node_get(node, "field-id") != NULL)
        TRY(node_need_int(node, "field-id", &out->field_id, err));
    return true;
}

static bool
parse_partition_fields(Arena *arena, const JsonNode *fields, PartitionSpec *spec, Error *err)
{
    spec->field_count = (int) node_count(fields);
    spec->fields = ARENA_ARRAY(arena, PartitionField, node_count(fields));
    for (size_t i = 0; i < node_count(fields); i++)
        if (!parse_partition_field(arena, node_at(fields, i), (int) i, &spec->fields[i], err))
            return WRAP(err, "fields[%zu]", i);
    return true;
}

static bool
parse_spec(Arena *arena, const JsonNode *node, PartitionSpec *spec, Error *err)
{
    const JsonNode *fields = NULL;

    TRY(node_need_int(node, "spec-id", &spec->spec_id, err));
    TRY(node_need_array(node, "fields", &fields, err));
    spec->json = node_text(arena, node);
    return parse_partition_fields(arena, fields, spec, err);
}

static bool
parse_specs(Arena *arena, const JsonNode *root, TableMetadata *out, Error *err)
{
    const JsonNode *specs = NULL;

    TRY(node_need_array(root, "partition-specs", &specs, err));
    if (specs == NULL) { /* version 1 may have only the one, without an id */
        out->spec_count = 1;
        out->specs = ARENA_NEW(arena, PartitionSpec);
        TRY(node_need_array(root, "partition-spec", &specs, err));
        if (!parse_partition_fields(arena, specs, &out->specs[0], err))
            return WRAP(err, "partition-spec");
        return true;
    }
    out->spec_count = node_count(specs);
    out->specs = ARENA_ARRAY(arena, PartitionSpec, out->spec_count);
    for (size_t i = 0; i < out->spec_count; i++)
        if (!parse_spec(arena, node_at(specs, i), &out->specs[i], err))
            return WRAP(err, "partition-specs[%zu]", i);
    TRY(node_need_int(root, "default-spec-id", &out->default_spec_id, err));
    if (metadata_find_spec(out, out->default_spec_id) == NULL)
        return FAIL(err, ERR_INPUT, "default-spec-id %d is not in partition-specs",
                    out->default_spec_id);
    return true;
}

static bool
parse_last_partition_id(const JsonNode *root, TableMetadata *out, Error *err)
{
    if (node_get(root, "last-partition-id") != NULL)
        return node_need_int(root, "last-partition-id", &out->last_partition_id, err);
    out->last_partition_id = 999; /* Iceberg spec, "Partition Evolution": ids start at 1000 */
    for (size_t i = 0; i < out->spec_count; i++)
        for (int j = 0; j < out->specs[i].field_count; j++)
            if (out->specs[i].fields[j].field_id > out->last_partition_id)
                out->last_partition_id = out->specs[i].fields[j].field_id;
    return true;
}

/* --- Sort orders ----------------------------------------------------------------------------- */

/* Java reads these words in any case. */
static bool
parse_choice(const JsonNode *node, const char *key, const char *const words[2], bool *out_second,
             Error *err)
{
    Str text = STR("");

    (void) !node_to_str(node_get(node, key), &text);
    for (int i = 0; i < 2; i++) {
        if (text.len != strlen(words[i]) || strncasecmp(text.ptr, words[i], text.len) != 0)
            continue;
        *out_second = i == 1;
        return true;
    }
    return FAIL(err, ERR_INPUT, "%s is neither %s nor %s", key, words[0], words[1]);
}

static bool
parse_sort_field(Arena *arena, const JsonNode *node, SortField *out, Error *err)
{
    static const char *const directions[] = {"asc", "desc"};
    static const char *const nulls[] = {"nulls-last", "nulls-first"};
    const JsonNode *sources = node_get(node, "source-ids");

    TRY(node_need_str(node, "transform", arena, &out->transform, err));
    if (!node_to_int(node_at(sources, 0), &out->source_id)) /* as of partition fields */
        TRY(node_need_int(node, "source-id", &out->source_id, err));
    TRY(parse_choice(node, "direction", directions, &out->descending, err));
    return parse_choice(node, "null-order", nulls, &out->nulls_first, err);
}

static bool
parse_sort_order(Arena *arena, const JsonNode *node, SortOrder *order, Error *err)
{
    const JsonNode *fields = NULL;

    TRY(node_need_int(node, "order-id", &order->order_id, err));
    TRY(node_need_array(node, "fields", &fields, err));
    order->field_count = (int) node_count(fields);
    order->fields = ARENA_ARRAY(arena, SortField, node_count(fields));
    for (size_t i = 0; i < node_count(fields); i++)
        if (!parse_sort_field(arena, node_at(fields, i), &order->fields[i], err))
            return WRAP(err, "fields[%zu]", i);
    order->json = node_text(arena, node);
    return true;
}

/* Version 1 may have none: then the table is unsorted. */
static bool
parse_sort_orders(Arena *arena, const JsonNode *root, TableMetadata *out, Error *err)
{
    const JsonNode *orders = NULL;

    TRY(node_need_array(root, "sort-orders", &orders, err));
    if (orders == NULL) {
        out->sort_order_count = 1;
        out->sort_orders = ARENA_NEW(arena, SortOrder);
        return true;
    }
    out->sort_order_count = node_count(orders);
    out->sort_orders = ARENA_ARRAY(arena, SortOrder, out->sort_order_count);
    for (size_t i = 0; i < out->sort_order_count; i++)
        if (!parse_sort_order(arena, node_at(orders, i), &out->sort_orders[i], err))
            return WRAP(err, "sort-orders[%zu]", i);
    if (node_get(root, "default-sort-order-id") != NULL)
        TRY(node_need_int(root, "default-sort-order-id", &out->default_sort_order_id, err));
    if (out->default_sort_order_id != 0 &&
        metadata_find_sort_order(out, out->default_sort_order_id) == NULL)
        return FAIL(err, ERR_INPUT, "default-sort-order-id %d is not in sort-orders",
                    out->default_sort_order_id);
    return true;
}

/* --- Snapshots ----------------------------------------------------------------------------- */

static bool
parse_snapshot(Arena *arena, const JsonNode *node, Snapshot *out, Error *err)
{
    TRY(node_need_int64(node, "snapshot-id", &out->snapshot_id, err));
    node_to_int64(node_get(node, "parent-snapshot-id"), &out->parent_id);
    if (node_get(node, "sequence-number") != NULL) /* version 1 has none: 0 */
        TRY(node_need_int64(node, "sequence-number", &out->sequence_number, err));
    TRY(node_need_int64(node, "timestamp-ms", &out->timestamp_ms, err));
    TRY(node_need_str(node, "manifest-list", arena, &out->manifest_list, err));
    TRY(parse_properties(arena, node_get(node, "summary"), "summary", &out->summary, err));
    out->schema_id = -1;
    if (node_get(node, "schema-id") != NULL)
        TRY(node_need_int(node, "schema-id", &out->schema_id, err));
    out->first_row_id = out->added_rows = -1;
    if (node_get(node, "first-row-id") != NULL)
        TRY(node_need_int64(node, "first-row-id", &out->first_row_id, err));
    if (node_get(node, "added-rows") != NULL)
        TRY(node_need_int64(node, "added-rows", &out->added_rows, err));
    out->json = node_text(arena, node);
    return true;
}

static int
compare_snapshots(const void *a, const void *b)
{
    const Snapshot *x = a;
    const Snapshot *y = b;

    if (x->sequence_number != y->sequence_number)
        return x->sequence_number < y->sequence_number ? -1 : 1;
    if (x->timestamp_ms != y->timestamp_ms)
        return x->timestamp_ms < y->timestamp_ms ? -1 : 1;
    return x->snapshot_id < y->snapshot_id ? -1 : x->snapshot_id > y->snapshot_id;
}

static bool
parse_snapshots(Arena *arena, const JsonNode *root, TableMetadata *out, Error *err)
{
    const JsonNode *snapshots = NULL;

    TRY(node_need_array(root, "snapshots", &snapshots, err));
    out->snapshot_count = node_count(snapshots);
    out->snapshots = ARENA_ARRAY(arena, Snapshot, out->snapshot_count);
    for (size_t i = 0; i < out->snapshot_count; i++)
        if (!parse_snapshot(arena, node_at(snapshots, i), &out->snapshots[i], err))
            return WRAP(err, "snapshots[%zu]", i);
    qsort(out->snapshots, out->snapshot_count, sizeof out->snapshots[0], compare_snapshots);

    /* Java writes -1 for "none" up to version 2, null or nothing after */
    if (node_get(root, "current-snapshot-id") != NULL)
        TRY(node_need_int64(root, "current-snapshot-id", &out->current_snapshot_id, err));
    if (out->current_snapshot_id == -1)
        out->current_snapshot_id = 0;
    if (out->current_snapshot_id != 0 && metadata_current_snapshot(out) == NULL)
        return FAIL(err, ERR_INPUT, "current-snapshot-id %lld is not in snapshots",
                    (long long) out->current_snapshot_id);
    return true;
}

static bool
parse_ref(Arena *arena, const JsonNode *node, SnapshotRef *out, Error *err)
{
    Str type;

    TRY(node_need_int64(node, "snapshot-id", &out->snapshot_id, err));
    TRY(node_need_str(node, "type", arena, &type, err));
    out->is_tag = str_eqc(type, "tag");
    out->json = node_text(arena, node);
    return true;
}

/* refs.main must be the current snapshot; where there are no refs (version 1) it is made. */
static bool
check_main(Arena *arena, TableMetadata *out, Error *err)
{
    for (size_t i = 0; i < out->ref_count; i++) {
        if (!str_eqc(out->refs[i].name, "main"))
            continue;
        if (out->refs[i].snapshot_id != out->current_snapshot_id)
            return FAIL(err, ERR_INPUT, "refs.main %lld is not current-snapshot-id %lld",
                        (long long) out->refs[i].snapshot_id, (long long) out->current_snapshot_id);
        return true;
    }
    if (out->current_snapshot_id != 0)
        out->refs[out->ref_count++] = (SnapshotRef){
            .name = STR("main"),
            .snapshot_id = out->current_snapshot_id,
            .json = arena_strf(arena, "{\"snapshot-id\":%lld,\"type\":\"branch\"}",
                               (long long) out->current_snapshot_id),
        };
    return true;
}

static bool
parse_refs(Arena *arena, const JsonNode *root, TableMetadata *out, Error *err)
{
    const JsonNode *refs = node_get(root, "refs");
    NodeCursor cursor = {0};
    const JsonNode *value;
    Str name;

    if (refs != NULL && !node_is_object(refs))
        return FAIL(err, ERR_INPUT, "refs is not an object");
    out->refs = ARENA_ARRAY(arena, SnapshotRef, node_count(refs) + 1);
    while (refs != NULL && node_next(refs, &cursor, &name, &value)) {
        SnapshotRef *ref = &out->refs[out->ref_count++];

        ref->name = arena_str(arena, name);
        if (!parse_ref(arena, value, ref, err))
            return WRAP(err, "refs.%.*s", STR_ARG(name));
    }
    return check_main(arena, out, err);
}

/* --- Logs ---------------------------------------------------------------------------------- */

static bool
parse_logs(Arena *arena, const JsonNode *root, TableMetadata *out, Error *err)
{
    const JsonNode *snapshots = NULL;
    const JsonNode *files = NULL;

    TRY(node_need_array(root, "snapshot-log", &snapshots, err));
    TRY(node_need_array(root, "metadata-log", &files, err));
    out->snapshot_log_count = node_count(snapshots);
    out->snapshot_log = ARENA_ARRAY(arena, SnapshotLogEntry, node_count(snapshots));
    for (size_t i = 0; i < node_count(snapshots); i++) {
        const JsonNode *entry = node_at(snapshots, i);

        if (!node_need_int64(entry, "snapshot-id", &out->snapshot_log[i].snapshot_id, err) ||
            !node_need_int64(entry, "timestamp-ms", &out->snapshot_log[i].timestamp_ms, err))
            return WRAP(err, "snapshot-log[%zu]", i);
    }
    out->metadata_log_count = node_count(files);
    out->metadata_log = ARENA_ARRAY(arena, MetadataLogEntry, node_count(files));
    for (size_t i = 0; i < node_count(files); i++) {
        const JsonNode *entry = node_at(files, i);

        if (!node_need_str(entry, "metadata-file", arena, &out->metadata_log[i].file, err) ||
            !node_need_int64(entry, "timestamp-ms", &out->metadata_log[i].timestamp_ms, err))
            return WRAP(err, "metadata-log[%zu]", i);
    }
    return true;
}

static bool
parse_numbers(Arena *arena, const JsonNode *root, TableMetadata *out, Error *err)
{
    TRY(node_need_int(root, "format-version", &out->format_version, err));
    if (out->format_version < 1 || out->format_version > 3)
        return FAIL(err, ERR_INPUT, "format-version %d is not supported", out->format_version);
    TRY(node_need_str(root, "table-uuid", arena, &out->table_uuid, err));
    TRY(node_need_str(root, "location", arena, &out->location, err));
    if (out->format_version > 1)
        TRY(node_need_int64(root, "last-sequence-number", &out->last_sequence_number, err));
    if (out->format_version > 2) {
        TRY(node_need_int64(root, "next-row-id", &out->next_row_id, err));
        if (out->next_row_id < 0)
            return FAIL(err, ERR_INPUT, "next-row-id is negative");
    }
    TRY(node_need_int64(root, "last-updated-ms", &out->last_updated_ms, err));
    return node_need_int(root, "last-column-id", &out->last_column_id, err);
}

static bool
parse_all(Arena *arena, const JsonNode *root, TableMetadata *out, Error *err)
{
    if (!node_is_object(root))
        return FAIL(err, ERR_INPUT, "not a JSON object");
    TRY(parse_numbers(arena, root, out, err));
    TRY(parse_schemas(arena, root, out, err));
    TRY(parse_specs(arena, root, out, err));
    TRY(parse_last_partition_id(root, out, err));
    TRY(parse_sort_orders(arena, root, out, err));
    TRY(parse_properties(arena, node_get(root, "properties"), "properties", &out->properties, err));
    TRY(parse_snapshots(arena, root, out, err));
    TRY(parse_refs(arena, root, out, err));
    TRY(parse_logs(arena, root, out, err));
    out->rest = collect_rest(arena, root);
    return true;
}

bool
metadata_parse(Arena *arena, Str json, TableMetadata **out_metadata, Error *err)
{
    AUTO_NODE JsonNode *root = NULL;
    TableMetadata *metadata = ARENA_NEW(arena, TableMetadata);

    if (!node_parse(json, &root, err) || !parse_all(arena, root, metadata, err))
        return WRAP(err, "metadata");
    *out_metadata = metadata;
    return true;
}
