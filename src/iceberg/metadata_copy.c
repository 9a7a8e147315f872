/* metadata_copy.c - metadata in an arena of its own. */
#include "iceberg/metadata.h"

PropertyList
property_list_copy(Arena *arena, const PropertyList *list)
{
    PropertyList out = {.count = list->count, .items = ARENA_ARRAY(arena, Property, list->count)};

    for (size_t i = 0; i < list->count; i++)
        out.items[i] = (Property){.key = arena_str(arena, list->items[i].key),
                                  .value = arena_str(arena, list->items[i].value)};
    return out;
}

/* Everything that grows with the number of commits. */
static void
copy_history(Arena *arena, const TableMetadata *from, TableMetadata *to)
{
    to->snapshot_count = from->snapshot_count;
    to->snapshots = ARENA_ARRAY(arena, Snapshot, from->snapshot_count);
    for (size_t i = 0; i < from->snapshot_count; i++) {
        Snapshot *snapshot = &to->snapshots[i];

        *snapshot = from->snapshots[i];
        snapshot->manifest_list = arena_str(arena, snapshot->manifest_list);
        snapshot->summary = property_list_copy(arena, &snapshot->summary);
        if (snapshot->json.ptr != NULL)
            snapshot->json = arena_str(arena, snapshot->json);
    }
    to->snapshot_log_count = from->snapshot_log_count;
    to->snapshot_log = ARENA_ARRAY(arena, SnapshotLogEntry, from->snapshot_log_count);
    for (size_t i = 0; i < from->snapshot_log_count; i++)
        to->snapshot_log[i] = from->snapshot_log[i];
    to->metadata_log_count = from->metadata_log_count;
    to->metadata_log = ARENA_ARRAY(arena, MetadataLogEntry, from->metadata_log_count);
    for (size_t i = 0; i < from->metadata_log_count; i++)
        to->metadata_log[i] = (MetadataLogEntry){
            .file = arena_str(arena, from->metadata_log[i].file),
            .timestamp_ms = from->metadata_log[i].timestamp_ms,
        };
}

bool
metadata_copy(Arena *arena, const TableMetadata *metadata, TableMetadata **out_metadata, Error *err)
{
    AUTO_ARENA Arena *scratch = arena_new();
    AUTO_BUF Buf text = {0};
    TableMetadata thin = *metadata;
    const Snapshot *current = metadata_current_snapshot(metadata);
    TableMetadata *copy = NULL;

    thin.snapshot_log_count = thin.metadata_log_count = 0;
    thin.snapshot_count = current != NULL;
    thin.snapshots = ARENA_NEW(scratch, Snapshot);
    if (current != NULL)
        thin.snapshots[0] = *current;
    metadata_write(&thin, &text);
    TRY(metadata_parse(arena, buf_view(&text), &copy, err));
    copy_history(arena, metadata, copy);
    *out_metadata = copy;
    return true;
}
