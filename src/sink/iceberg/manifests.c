/* manifests.c - the manifests of the next snapshot.
 *
 * Data: one new manifest per commit, carried ones stay as they are; at MANIFESTS_MERGE_MIN of them
 * the small ones are merged (commit.manifest.min-count-to-merge, .target-size-bytes). Deletes:
 * deletes.c. Of each new manifest there is one per spec. Iceberg spec, "Manifests", "Snapshots".
 *
 * Under version 3 the manifest list gives every data manifest the row ids of its rows: new ones,
 * merged ones, and all that a table brings when it comes from version 2. Everything that depends on
 * the table's state (sequence number, row ids) is taken from `base`, anew in every attempt. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "iceberg/spec.h"
#include "sink/iceberg/build.h"

enum {
    MANIFESTS_MERGE_MIN = 100,
    MANIFEST_BYTES_TARGET = 8 << 20,
};

void
iceberg_next_done(NextSnapshot *next)
{
    buf_done(&next->manifest_list);
    buf_done(&next->delete_manifests);
    buf_done(&next->replaced_deletes);
}

/* --- partitions ------------------------------------------------------------------------------ */

void
iceberg_widen_partition(const Builder *builder, Arena *arena, DataFile *file)
{
    const TableMetadata *base = builder->base;

    for (size_t s = 0; s < base->spec_count; s++)
        if (base->specs[s].spec_id == file->spec_id && base->specs[s].field_count > 0)
            file->partition = partition_widen(arena, builder->types[s], base->specs[s].field_count,
                                              file->partition);
}

static bool
begin_partitions(Builder *builder, Error *err)
{
    IcebergTable *table = builder->table;
    const TableMetadata *base = builder->base;
    const Buf *files = &table->pending.files;

    builder->types = ARENA_ARRAY(builder->arena, ResultType *, base->spec_count);
    for (size_t s = 0; s < base->spec_count; s++)
        TRY(partition_result_types(builder->arena, metadata_spec_schema(base, &base->specs[s]),
                                   &base->specs[s], &builder->types[s], err));
    for (size_t i = 0; i < BUF_COUNT(files, DataFile); i++)
        iceberg_widen_partition(builder, table->pending.arena, &BUF_AT(files, DataFile, i));
    if (table->pending.fit.next != NULL) { /* of the types before */
        places_free(table->places);
        table->places = NULL;
    }
    return true;
}

/* --- manifests ------------------------------------------------------------------------------- */

typedef struct ManifestPut {
    const PartitionSpec *spec;
    bool deletes;
    const ManifestEntry *entries;
    size_t count;
} ManifestPut;

static bool
put_manifest(Builder *builder, const ManifestPut *put, Buf *bytes, ManifestFile *out_file,
             Error *err)
{
    IcebergTable *table = builder->table;
    const TableMetadata *metadata = builder->base;
    ManifestHeader header = {
        .format_version = metadata->format_version,
        .schema = metadata_spec_schema(metadata, put->spec),
        .spec = put->spec,
        .deletes = put->deletes,
        .snapshot_id = builder->next->snapshot.snapshot_id,
        .sequence_number = builder->next->snapshot.sequence_number,
    };
    char uuid[37];

    random_uuid(uuid);

    const char *key = arena_printf(builder->arena, "%s/metadata/%s-m%d.avro", table->prefix, uuid,
                                   builder->written++);

    manifest_write(builder->arena, &header, put->entries, put->count, bytes, out_file);
    out_file->path = str_of(store_uri(table->sink->store, builder->arena, key));
    builder->created++;
    TRY(FAULT("sink.manifest", err));
    return store_put(table->sink->store, key, buf_view(bytes), err);
}

static bool
add_manifest(Builder *builder, const ManifestPut *put, Error *err)
{
    AUTO_BUF Buf bytes = {0};
    ManifestFile file;

    TRY(put_manifest(builder, put, &bytes, &file, err));
    BUF_PUSH(&builder->manifests, ManifestFile, file);
    if (put->deletes) {
        DeleteManifest manifest = {.file = file,
                                   .bytes = arena_str(builder->arena, buf_view(&bytes))};

        BUF_PUSH(&builder->next->delete_manifests, DeleteManifest, manifest);
    }
    return true;
}

/* The entries of one spec: delete manifests hold only so many. */
static bool
add_of_spec(Builder *builder, const ManifestPut *all, Error *err)
{
    size_t most = all->deletes ? DELETE_MANIFEST_ENTRIES_MAX : all->count;

    for (size_t from = 0; from < all->count; from += most) {
        ManifestPut put = *all;

        put.entries += from;
        put.count = all->count - from < most ? all->count - from : most;
        TRY(add_manifest(builder, &put, err));
    }
    return true;
}

bool
iceberg_add_manifests(Builder *builder, bool deletes, const ManifestEntry *entries, size_t count,
                      Error *err)
{
    const TableMetadata *base = builder->base;
    size_t added = 0;

    for (size_t s = 0; s < base->spec_count && added < count; s++) {
        ManifestEntry *chosen = ARENA_ARRAY(builder->arena, ManifestEntry, count - added);
        ManifestPut put = {.spec = &base->specs[s], .deletes = deletes, .entries = chosen};

        for (size_t i = 0; i < count; i++)
            if (entries[i].file.spec_id == base->specs[s].spec_id)
                chosen[put.count++] = entries[i];
        TRY(add_of_spec(builder, &put, err));
        added += put.count;
    }
    assert(added == count);
    return true;
}

/* The data files written since the last commit. */
static bool
add_data(Builder *builder, Error *err)
{
    const Buf *files = &builder->table->pending.files;
    size_t count = BUF_COUNT(files, DataFile);
    ManifestEntry *entries = ARENA_ARRAY(builder->arena, ManifestEntry, count);

    for (size_t i = 0; i < count; i++) {
        entries[i] = (ManifestEntry){.status = ENTRY_ADDED,
                                     .snapshot_id = builder->next->snapshot.snapshot_id,
                                     .sequence_number = -1,
                                     .file_sequence_number = -1,
                                     .file = BUF_AT(files, DataFile, i)};
        BUF_PUSH(&builder->added, DataFile, entries[i].file);
    }
    return iceberg_add_manifests(builder, false, entries, count, err);
}

/* --- what was there before ------------------------------------------------------------------- */

/* Truncated: every live data file leaves. Those of a table that is copied again may have gone
 * already, and what lists them. */
static bool
remove_data(Builder *builder, Error *err)
{
    IcebergTable *table = builder->table;
    AUTO_BUF Buf live = {0};

    builder->unlisted = table->replacing && table->unlisted;
    if (!iceberg_live_files(table, builder->arena, &live, err)) {
        if (!table->replacing || err->kind != ERR_INPUT)
            return false;
        log_warn("files that the table had cannot be listed",
                 LOG_STR("table", table->base.lake_name), LOG_STR("error", err->msg));
        builder->unlisted = true;
    }
    for (size_t i = 0; i < BUF_COUNT(&live, ManifestEntry); i++) {
        ManifestEntry *entry = &BUF_AT(&live, ManifestEntry, i);

        iceberg_widen_partition(builder, builder->arena, &entry->file);
        entry->status = ENTRY_DELETED;
        entry->snapshot_id = builder->next->snapshot.snapshot_id;
        BUF_PUSH(&builder->removed, DataFile, entry->file);
    }
    return iceberg_add_manifests(builder, false, (const ManifestEntry *) (const void *) live.ptr,
                                 BUF_COUNT(&live, ManifestEntry), err);
}

static int
by_spec(const void *a, const void *b)
{
    const ManifestFile *x = a;
    const ManifestFile *y = b;

    if (x->spec_id != y->spec_id)
        return x->spec_id < y->spec_id ? -1 : 1;
    return x->sequence_number < y->sequence_number ? -1 : x->sequence_number > y->sequence_number;
}

/* Merge small data manifests, old to new, into ones of about the target size. Entries of files that
 * an older snapshot deleted are dropped. Those of a spec follow each other. */
static bool
merge_manifests(Builder *builder, const ManifestFile *manifests, size_t count, Error *err)
{
    AUTO_BUF Buf entries = {0};
    int64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        ManifestEntry *read;
        size_t read_count;

        TRY(iceberg_read_manifest(builder->table, builder->arena, &manifests[i], &read, &read_count,
                                  err));
        for (size_t e = 0; e < read_count; e++) {
            if (read[e].status == ENTRY_DELETED)
                continue;
            read[e].status = ENTRY_EXISTING;
            BUF_PUSH(&entries, ManifestEntry, read[e]);
        }
        bytes += manifests[i].length;
        builder->replaced++;
        if (bytes >= MANIFEST_BYTES_TARGET || i + 1 == count ||
            manifests[i + 1].spec_id != manifests[i].spec_id) {
            TRY(iceberg_add_manifests(builder, false,
                                      (const ManifestEntry *) (const void *) entries.ptr,
                                      BUF_COUNT(&entries, ManifestEntry), err));
            buf_reset(&entries);
            bytes = 0;
        }
    }
    return true;
}

static bool
carry_data(Builder *builder, Error *err)
{
    IcebergTable *table = builder->table;
    ManifestFile *small = ARENA_ARRAY(builder->arena, ManifestFile, table->manifest_count);
    size_t small_count = 0;
    bool merge;

    for (size_t i = 0; i < table->manifest_count; i++)
        small_count +=
            !table->manifests[i].deletes && table->manifests[i].length < MANIFEST_BYTES_TARGET;
    merge = small_count >= MANIFESTS_MERGE_MIN;
    small_count = 0;
    for (size_t i = 0; i < table->manifest_count; i++) {
        const ManifestFile *manifest = &table->manifests[i];

        if (manifest->deletes || manifest->added_files + manifest->existing_files == 0)
            continue;
        if (merge && manifest->length < MANIFEST_BYTES_TARGET) {
            small[small_count++] = *manifest;
        } else {
            BUF_PUSH(&builder->manifests, ManifestFile, *manifest);
            builder->kept++;
        }
    }
    if (small_count > 0)
        qsort(small, small_count, sizeof *small, by_spec);
    return merge_manifests(builder, small, small_count, err);
}

/* --- the snapshot ---------------------------------------------------------------------------- */

static void
begin_snapshot(const TableMetadata *metadata, Snapshot *snapshot)
{
    int64_t now = clock_wall_us() / 1000;
    uint64_t id;

    do {
        random_bytes(&id, sizeof id);
        id &= INT64_MAX;
    } while (id == 0 || metadata_find_snapshot(metadata, (int64_t) id) != NULL);
    *snapshot = (Snapshot){
        .snapshot_id = (int64_t) id,
        .parent_id = metadata->current_snapshot_id,
        .sequence_number = metadata->last_sequence_number + 1,
        .timestamp_ms = now > metadata->last_updated_ms ? now : metadata->last_updated_ms + 1,
        .schema_id = metadata->current_schema_id,
        .first_row_id = metadata->format_version >= 3 ? metadata->next_row_id : -1,
        .added_rows = -1,
    };
}

static bool
put_manifest_list(Builder *builder, Error *err)
{
    Snapshot *snapshot = &builder->next->snapshot;
    Store *store = builder->table->sink->store;
    ManifestListHeader header = {
        .format_version = builder->base->format_version,
        .snapshot_id = snapshot->snapshot_id,
        .parent_id = snapshot->parent_id,
        .sequence_number = snapshot->sequence_number,
        .first_row_id = snapshot->first_row_id,
    };
    ManifestFile *manifests = (ManifestFile *) (void *) builder->manifests.ptr;
    size_t count = BUF_COUNT(&builder->manifests, ManifestFile);
    char uuid[37];

    random_uuid(uuid);
    if (header.format_version >= 3)
        snapshot->added_rows = manifest_assign_row_ids(manifests, count, snapshot->first_row_id);

    const char *key = arena_printf(builder->arena, "%s/metadata/snap-%" PRId64 "-1-%s.avro",
                                   builder->table->prefix, snapshot->snapshot_id, uuid);

    manifest_list_write(&header, manifests, count, &builder->next->manifest_list);
    snapshot->manifest_list = str_of(store_uri(store, builder->arena, key));
    TRY(FAULT("sink.manifest_list", err));
    return store_put(store, key, buf_view(&builder->next->manifest_list), err);
}

static bool
build(Builder *builder, const PropertyList *extra, Error *err)
{
    IcebergTable *table = builder->table;
    const Snapshot *parent = metadata_current_snapshot(builder->base);

    begin_snapshot(builder->base, &builder->next->snapshot);
    TRY(begin_partitions(builder, err));
    TRY(add_data(builder, err));
    TRY(iceberg_add_deletes(builder, err));
    if (table->pending.truncated)
        TRY(remove_data(builder, err));
    else
        TRY(carry_data(builder, err));
    iceberg_carry_deletes(builder);

    SnapshotDelta delta = {
        .added_count = BUF_COUNT(&builder->added, DataFile),
        .added = (const DataFile *) (const void *) builder->added.ptr,
        .removed_count = BUF_COUNT(&builder->removed, DataFile),
        .removed = (const DataFile *) (const void *) builder->removed.ptr,
        .manifests_created = builder->created,
        .manifests_kept = builder->kept,
        .manifests_replaced = builder->replaced,
        .only_added = builder->unlisted,
    };

    builder->next->snapshot.summary = snapshot_summary(
        builder->arena, &delta, false, parent == NULL ? NULL : &parent->summary, extra);
    return put_manifest_list(builder, err);
}

bool
iceberg_build_snapshot(IcebergTable *table, const TableMetadata *base, Arena *arena,
                       const PropertyList *extra, NextSnapshot *next, Error *err)
{
    Builder builder = {.table = table, .base = base, .arena = arena, .next = next};
    bool done = build(&builder, extra, err);

    buf_done(&builder.manifests);
    buf_done(&builder.added);
    buf_done(&builder.removed);
    return done;
}
