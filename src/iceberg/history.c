/* How a table's history grows and is thinned: metadata_add_snapshot(). */
#include "iceberg/metadata.h"

#include <assert.h>

enum { HOUR_MS = 3600 * 1000 };

static bool
is_referenced(const TableMetadata *metadata, int64_t snapshot_id)
{
    for (size_t i = 0; i < metadata->ref_count; i++)
        if (metadata->refs[i].snapshot_id == snapshot_id)
            return true;
    return false;
}

/* Drop snapshots of out, oldest first in the list, newest (which stays) last. */
static void
thin_snapshots(TableMetadata *out, const Retention *retention)
{
    size_t count = out->snapshot_count;
    int64_t now_ms = out->snapshots[count - 1].timestamp_ms;
    size_t limit = retention->snapshots_max == 0 ? count : retention->snapshots_max;
    size_t start = count - 1; /* kept ones gather at the end */
    size_t young_count = 1;
    int64_t newer_ms = now_ms; /* the time of the one that followed */

    for (size_t i = count - 1; i-- > 0;) {
        Snapshot snapshot = out->snapshots[i];
        int64_t age_ms = now_ms - snapshot.timestamp_ms;
        bool of_hour = age_ms < retention->keep_hourly_ms &&
                       snapshot.timestamp_ms / HOUR_MS != newer_ms / HOUR_MS;
        bool young = !of_hour && age_ms < retention->keep_all_ms && young_count < limit;
        bool last = count - i <= retention->snapshots_min;

        young_count += young;
        newer_ms = snapshot.timestamp_ms;
        if (of_hour || young || last || is_referenced(out, snapshot.snapshot_id))
            out->snapshots[--start] = snapshot;
    }
    out->snapshots += start;
    out->snapshot_count = count - start;
}

/* Iceberg spec, "Table Metadata Fields", snapshot-log: when a snapshot is expired, all entries
 * before it go, because a gap would make time travel find the wrong one. */
static void
thin_snapshot_log(TableMetadata *out)
{
    size_t start = 0;

    for (size_t i = 0; i < out->snapshot_log_count; i++)
        if (metadata_find_snapshot(out, out->snapshot_log[i].snapshot_id) == NULL)
            start = i + 1;
    out->snapshot_log += start;
    out->snapshot_log_count -= start;
}

/* An array of `rest` whose items belong to a snapshot, without those whose snapshot is gone. */
static void
write_live_items(JsonWriter *json, Arena *arena, const TableMetadata *out, const JsonNode *items)
{
    jw_array(json);
    for (size_t i = 0; i < node_count(items); i++) {
        const JsonNode *item = node_at(items, i);
        int64_t id;

        if (!node_to_int64(node_get(item, "snapshot-id"), &id) ||
            metadata_find_snapshot(out, id) != NULL)
            jw_raw(json, node_text(arena, item));
    }
    jw_end(json);
}

static void
thin_statistics(Arena *arena, TableMetadata *out)
{
    AUTO_NODE JsonNode *root = NULL;
    AUTO_BUF Buf text = {0};
    NodeCursor cursor = {0};
    const JsonNode *value;
    JsonWriter json;
    Error err;
    Str key;

    if (out->rest.ptr == NULL || !node_parse(out->rest, &root, &err))
        return;
    jw_begin(&json, &text);
    jw_object(&json);
    while (node_next(root, &cursor, &key, &value)) {
        jw_key_str(&json, key);
        if (str_eqc(key, "statistics") || str_eqc(key, "partition-statistics"))
            write_live_items(&json, arena, out, value);
        else
            jw_raw(&json, node_text(arena, value));
    }
    jw_end(&json);
    out->rest = arena_str(arena, buf_view(&text));
}

/* The object of a ref, pointing somewhere else; its retention settings stay. */
static Str
move_ref(Arena *arena, Str ref_json, int64_t snapshot_id)
{
    AUTO_NODE JsonNode *root = NULL;
    AUTO_BUF Buf text = {0};
    NodeCursor cursor = {0};
    const JsonNode *value;
    JsonWriter json;
    Error err;
    Str key;
    bool ok = node_parse(ref_json, &root, &err);

    assert(ok);
    jw_begin(&json, &text);
    jw_object(&json);
    while (node_next(root, &cursor, &key, &value)) {
        jw_key_str(&json, key);
        if (str_eqc(key, "snapshot-id"))
            jw_int(&json, snapshot_id);
        else
            jw_raw(&json, node_text(arena, value));
    }
    jw_end(&json);
    return arena_str(arena, buf_view(&text));
}

static void
move_main(Arena *arena, const TableMetadata *metadata, TableMetadata *out, int64_t snapshot_id)
{
    SnapshotRef *main_ref = NULL;

    out->refs = ARENA_ARRAY(arena, SnapshotRef, metadata->ref_count + 1);
    for (size_t i = 0; i < metadata->ref_count; i++) {
        out->refs[i] = metadata->refs[i];
        if (str_eqc(out->refs[i].name, "main"))
            main_ref = &out->refs[i];
    }
    if (main_ref == NULL) {
        main_ref = &out->refs[out->ref_count++];
        main_ref->name = STR("main");
        main_ref->json = STR("{\"snapshot-id\":0,\"type\":\"branch\"}");
    }
    main_ref->snapshot_id = snapshot_id;
    main_ref->json = move_ref(arena, main_ref->json, snapshot_id);
}

static void
log_previous_file(Arena *arena, const TableMetadata *metadata, TableMetadata *out,
                  const char *previous_file, const Retention *retention)
{
    size_t count = metadata->metadata_log_count;
    MetadataLogEntry *log = ARENA_ARRAY(arena, MetadataLogEntry, count + 1);

    for (size_t i = 0; i < count; i++)
        log[i] = metadata->metadata_log[i];
    if (previous_file != NULL)
        log[count++] = (MetadataLogEntry){
            .file = arena_str(arena, str_of(previous_file)),
            .timestamp_ms = metadata->last_updated_ms,
        };
    if (retention != NULL && count > retention->metadata_log_max) {
        log += count - retention->metadata_log_max;
        count = retention->metadata_log_max;
    }
    out->metadata_log = log;
    out->metadata_log_count = count;
}

TableMetadata *
metadata_add_snapshot(Arena *arena, const TableMetadata *metadata, const Snapshot *snapshot,
                      const char *previous_file, const Retention *retention)
{
    TableMetadata *out = ARENA_NEW(arena, TableMetadata);

    assert(snapshot->snapshot_id > 0 && snapshot->sequence_number > metadata->last_sequence_number);
    assert(metadata_find_snapshot(metadata, snapshot->snapshot_id) == NULL);
    *out = *metadata;
    if (metadata->format_version >= 3) {
        assert(snapshot->first_row_id == metadata->next_row_id && snapshot->added_rows >= 0);
        out->next_row_id += snapshot->added_rows;
    }
    out->last_sequence_number = snapshot->sequence_number;
    if (out->last_updated_ms < snapshot->timestamp_ms)
        out->last_updated_ms = snapshot->timestamp_ms;
    out->current_snapshot_id = snapshot->snapshot_id;
    move_main(arena, metadata, out, snapshot->snapshot_id);

    out->snapshots = ARENA_ARRAY(arena, Snapshot, metadata->snapshot_count + 1);
    for (size_t i = 0; i < metadata->snapshot_count; i++)
        out->snapshots[i] = metadata->snapshots[i];
    out->snapshots[out->snapshot_count++] = *snapshot;

    out->snapshot_log = ARENA_ARRAY(arena, SnapshotLogEntry, metadata->snapshot_log_count + 1);
    for (size_t i = 0; i < metadata->snapshot_log_count; i++)
        out->snapshot_log[i] = metadata->snapshot_log[i];
    out->snapshot_log[out->snapshot_log_count++] = (SnapshotLogEntry){
        .snapshot_id = snapshot->snapshot_id,
        .timestamp_ms = snapshot->timestamp_ms,
    };

    log_previous_file(arena, metadata, out, previous_file, retention);
    if (retention != NULL) {
        thin_snapshots(out, retention);
        if (out->snapshot_count <= metadata->snapshot_count) {
            thin_snapshot_log(out);
            thin_statistics(arena, out);
        }
    }
    return out;
}

TableMetadata *
metadata_set_properties(Arena *arena, const TableMetadata *metadata, const PropertyList *properties,
                        const char *previous_file, int64_t now_ms)
{
    TableMetadata *out = ARENA_NEW(arena, TableMetadata);

    *out = *metadata;
    out->properties = *properties;
    if (out->last_updated_ms < now_ms)
        out->last_updated_ms = now_ms;
    log_previous_file(arena, metadata, out, previous_file, NULL);
    return out;
}
