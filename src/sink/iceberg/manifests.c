/* manifests.c - the manifests of the next snapshot.
 *
 * Data: one new manifest per commit, carried ones stay as they are; at MANIFESTS_MERGE_MIN of them
 * the small ones are merged (commit.manifest.min-count-to-merge, .target-size-bytes). Deletes:
 * exactly one manifest, rewritten by each commit that deletes, because there are only a few delete
 * files: they are merged in tiers, so that a table has O(log n) of them and each deleted row is
 * rewritten O(log n) times. Iceberg spec, "Manifests", "Snapshots".
 *
 * In a partitioned table a delete file is of the spec and partition of the data files it points
 * into, whatever the spec of new files is: readers look for it only there ("Scan Planning"). Tiers
 * are then per partition, and of each manifest there is one per spec. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/hash.h"
#include "iceberg/spec.h"
#include "sink/iceberg/sink.h"

enum {
    MANIFESTS_MERGE_MIN = 100,
    MANIFEST_BYTES_TARGET = 8 << 20,
    DELETE_FILES_MERGE_MIN = 8,
    PARTITION_DELETE_FILES_MERGE_MIN = 3, /* there are many partitions */
    DELETE_BLOCK_ROWS = 8192,
};

/* One build: what it adds, removes, carries. */
typedef struct Builder {
    IcebergTable *table;
    const TableMetadata *base;
    Arena *arena;
    NextSnapshot *next;
    Buf manifests; /* ManifestFile, newest first */
    Buf added;     /* DataFile */
    Buf removed;   /* DataFile */
    size_t created, kept, replaced;
    int written;        /* manifests written, for their names */
    ResultType **types; /* of base->specs */
} Builder;

void
iceberg_next_done(NextSnapshot *next)
{
    buf_done(&next->manifest_list);
    buf_done(&next->delete_manifests);
}

/* --- partitions ------------------------------------------------------------------------------ */

/* A file may have been written before a column that it is partitioned by was widened. */
static void
widen_partition(const Builder *builder, Arena *arena, DataFile *file)
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
        widen_partition(builder, table->pending.arena, &BUF_AT(files, DataFile, i));
    for (size_t i = 0; i < table->live_delete_count; i++)
        widen_partition(builder, table->delete_arena, &table->live_deletes[i].file);
    if (table->pending.fit.next != NULL) { /* of the types before */
        places_free(table->places);
        table->places = NULL;
    }
    return true;
}

/* --- position delete files ------------------------------------------------------------------- */

typedef struct DeleteSource {
    RowSource source;
    DeletesCursor *cursor;
    Column columns[2];
    Str first; /* smallest and largest file_path so far */
    Str last;
    uint32_t row_min, row_max;
} DeleteSource;

static bool
next_deletes(RowSource *source, RowBlock *out_block, Error *err)
{
    DeleteSource *from = (DeleteSource *) (void *) source;
    Str file;
    uint32_t row;

    (void) err;
    column_reset(&from->columns[0]);
    column_reset(&from->columns[1]);
    while (from->columns[0].rows < DELETE_BLOCK_ROWS && deletes_next(from->cursor, &file, &row)) {
        int64_t pos = row;

        if (from->first.ptr == NULL)
            from->first = file;
        from->last = file;
        if (row < from->row_min)
            from->row_min = row;
        if (row > from->row_max)
            from->row_max = row;
        column_append_bytes(&from->columns[0], file);
        column_append_fixed(&from->columns[1], &pos);
    }
    *out_block = (RowBlock){.columns = from->columns, .rows = from->columns[0].rows};
    return true;
}

/* Bounds of file_path are not truncated: equal ones are how older readers see that a delete file
 * concerns one data file only. Spec, "Position Delete Files". */
static void
describe_deletes(Arena *arena, const DeleteSource *source, DataFile *file)
{
    int64_t range[2] = {source->row_min, source->row_max};
    BoundByField *lower = ARENA_ARRAY(arena, BoundByField, 2);
    BoundByField *upper = ARENA_ARRAY(arena, BoundByField, 2);

    for (int i = 0; i < 2; i++) {
        lower[i].field_id = upper[i].field_id = position_delete_fields[1 - i].id;
    }
    lower[0].value = arena_str(arena, (Str){.ptr = (const char *) &range[0], .len = 8});
    upper[0].value = arena_str(arena, (Str){.ptr = (const char *) &range[1], .len = 8});
    lower[1].value = arena_str(arena, source->first);
    upper[1].value = arena_str(arena, source->last);
    file->lower_bounds.items = lower;
    file->upper_bounds.items = upper;
    file->lower_bounds.count = file->upper_bounds.count = 2;
    if (str_eq(source->first, source->last))
        file->referenced_data_file = arena_str(arena, source->first);
}

static bool
write_delete_file(Builder *builder, const Deletes *deletes, const Place *place, DataFile *out_file,
                  Error *err)
{
    DeleteSource source = {
        .source = {.next = next_deletes}, .cursor = deletes_cursor(deletes), .row_min = UINT32_MAX};
    FileWrite write = {.key = iceberg_data_key(builder->table, builder->arena, "deletes"),
                       .fields = position_delete_fields,
                       .field_count = 2,
                       .rows = &source.source,
                       .content = CONTENT_POSITION_DELETES,
                       .spec = metadata_find_spec(builder->base, place->spec_id),
                       .partition = arena_str(builder->arena, place->partition)};

    column_init(&source.columns[0], position_delete_fields[0].type);
    column_init(&source.columns[1], position_delete_fields[1].type);

    bool done = iceberg_write_file(builder->table, builder->arena, &write, out_file, err);

    if (done)
        describe_deletes(builder->arena, &source, out_file);
    column_done(&source.columns[0]);
    column_done(&source.columns[1]);
    deletes_cursor_free(source.cursor);
    return done;
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

/* The entries of one spec as a manifest; nothing when there are none. */
static bool
add_manifest(Builder *builder, const ManifestPut *put, Error *err)
{
    AUTO_BUF Buf bytes = {0};
    ManifestFile file;

    if (put->count == 0)
        return true;
    TRY(put_manifest(builder, put, &bytes, &file, err));
    BUF_PUSH(&builder->manifests, ManifestFile, file);
    if (put->deletes) {
        DeleteManifest manifest = {.file = file,
                                   .bytes = arena_str(builder->arena, buf_view(&bytes))};

        BUF_PUSH(&builder->next->delete_manifests, DeleteManifest, manifest);
    }
    return true;
}

/* One manifest per spec. */
static bool
add_manifests(Builder *builder, bool deletes, const ManifestEntry *entries, size_t count,
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
        TRY(add_manifest(builder, &put, err));
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
    return add_manifests(builder, false, entries, count, err);
}

/* --- deletes --------------------------------------------------------------------------------- */

static int
by_records(const void *a, const void *b)
{
    int64_t x = (*(const ManifestEntry *const *) a)->file.record_count;
    int64_t y = (*(const ManifestEntry *const *) b)->file.record_count;

    return x < y ? -1 : x > y;
}

static bool
ever_partitioned(const TableMetadata *metadata)
{
    return metadata->spec_count > 1 || metadata->specs[0].field_count > 0;
}

/* Where every data file is that deletes may point into. */
static bool
load_places(Builder *builder, Error *err)
{
    IcebergTable *table = builder->table;
    AUTO_BUF Buf live = {0};

    if (table->places == NULL) {
        AUTO_ARENA Arena *arena = arena_new();

        TRY(iceberg_live_files(table, arena, false, &live, err));
        table->places = places_new();
        for (size_t i = 0; i < BUF_COUNT(&live, ManifestEntry); i++) {
            DataFile *file = &BUF_AT(&live, ManifestEntry, i).file;

            widen_partition(builder, arena, file);
            places_add(table->places, file->path, file->spec_id, file->partition);
        }
    }
    iceberg_keep_places(table);
    return true;
}

void
iceberg_keep_places(IcebergTable *table)
{
    const Buf *files = &table->pending.files;

    for (size_t i = 0; table->places != NULL && i < BUF_COUNT(files, DataFile); i++) {
        const DataFile *file = &BUF_AT(files, DataFile, i);

        places_add(table->places, file->path, file->spec_id, file->partition);
    }
}

/* Rows to delete by the number of the partition that their file is in; NULL: none there. */
typedef struct DeleteGroups {
    size_t count;
    Deletes **rows;
} DeleteGroups;

static void
groups_free(DeleteGroups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        deletes_free(groups->rows[i]);
    free((void *) groups->rows);
}

static bool
group_deletes(IcebergTable *table, DeleteGroups *groups, Error *err)
{
    DeletesCursor *cursor = deletes_cursor(table->pending.deletes);
    Str last = STR_NULL;
    uint32_t number = 0;
    Str file;
    uint32_t row;
    bool found = true;

    groups->count = places_count(table->places);
    groups->rows = xcalloc(groups->count + 1, sizeof(Deletes *));
    while (found && deletes_next(cursor, &file, &row)) {
        if (last.ptr == NULL || !str_eq(file, last)) {
            found = places_find(table->places, file, &number);
            last = file;
        }
        if (!found)
            break;
        if (groups->rows[number] == NULL)
            groups->rows[number] = deletes_new();
        deletes_add(groups->rows[number], file, row);
    }
    if (!found)
        (void) FAIL(err, ERR_BUG, "deleted rows of %.*s, which is no live file", STR_ARG(file));
    deletes_cursor_free(cursor);
    return found;
}

static bool
is_at(const DataFile *file, const Place *place)
{
    return file->spec_id == place->spec_id && str_eq(file->partition, place->partition);
}

/* Which live delete files of the partition the new one takes in: from the smallest up, as long as
 * the next is at most twice what is gathered. So sizes stay geometric. Rows of the chosen ones join
 * `rows`. */
static bool
choose_merged(Builder *builder, const Place *place, Deletes *rows, bool *merged, Error *err)
{
    IcebergTable *table = builder->table;
    size_t least =
        ever_partitioned(builder->base) ? PARTITION_DELETE_FILES_MERGE_MIN : DELETE_FILES_MERGE_MIN;
    const ManifestEntry **sorted =
        ARENA_ARRAY(builder->arena, const ManifestEntry *, table->live_delete_count);
    int64_t gathered = (int64_t) deletes_total(rows);
    size_t count = 0;

    for (size_t i = 0; i < table->live_delete_count; i++)
        if (is_at(&table->live_deletes[i].file, place))
            sorted[count++] = &table->live_deletes[i];
    if (count < least)
        return true;
    qsort((void *) sorted, count, sizeof(void *), by_records);
    for (size_t i = 0; i < count && sorted[i]->file.record_count <= 2 * gathered; i++) {
        gathered += sorted[i]->file.record_count;
        merged[sorted[i] - table->live_deletes] = true;
        TRY(iceberg_read_deletes(table, rows, &sorted[i]->file, err));
    }
    return true;
}

/* The new delete file of a partition, with what it takes in. */
static bool
add_delete_file(Builder *builder, const Place *place, Deletes *rows, bool *gone, Buf *entries,
                Error *err)
{
    ManifestEntry entry = {.status = ENTRY_ADDED,
                           .snapshot_id = builder->next->snapshot.snapshot_id,
                           .sequence_number = -1,
                           .file_sequence_number = -1};

    if (!builder->table->pending.truncated)
        TRY(choose_merged(builder, place, rows, gone, err));
    TRY(write_delete_file(builder, rows, place, &entry.file, err));
    BUF_PUSH(entries, ManifestEntry, entry);
    BUF_PUSH(&builder->added, DataFile, entry.file);
    return true;
}

static bool
add_delete_files(Builder *builder, bool *gone, Buf *entries, Error *err)
{
    IcebergTable *table = builder->table;

    if (deletes_total(table->pending.deletes) == 0)
        return true;
    if (!ever_partitioned(builder->base)) {
        Place whole = {.spec_id = builder->base->specs[0].spec_id, .partition = STR("")};
        AUTO(deletes_freep) Deletes *rows = deletes_new();

        deletes_merge(rows, table->pending.deletes);
        return add_delete_file(builder, &whole, rows, gone, entries, err);
    }

    AUTO(groups_free) DeleteGroups groups = {0};

    TRY(load_places(builder, err));
    TRY(group_deletes(table, &groups, err));
    for (size_t i = 0; i < groups.count; i++) {
        Place place = places_at(table->places, (uint32_t) i);

        if (groups.rows[i] != NULL)
            TRY(add_delete_file(builder, &place, groups.rows[i], gone, entries, err));
    }
    return true;
}

/* The delete manifests: old files EXISTING or, when merged or truncated away, DELETED; the new
 * ones ADDED. */
static bool
add_deletes(Builder *builder, Error *err)
{
    IcebergTable *table = builder->table;
    size_t old = table->live_delete_count;
    AUTO_BUF Buf entries = {0};
    bool *gone = ARENA_ARRAY(builder->arena, bool, old + 1);

    if (deletes_total(table->pending.deletes) == 0 && !(table->pending.truncated && old > 0))
        return true;
    builder->next->new_deletes = true;
    memset(gone, table->pending.truncated, old);
    TRY(add_delete_files(builder, gone, &entries, err));
    for (size_t i = 0; i < old; i++) {
        ManifestEntry entry = table->live_deletes[i];

        entry.status = gone[i] ? ENTRY_DELETED : ENTRY_EXISTING;
        if (gone[i]) {
            entry.snapshot_id = builder->next->snapshot.snapshot_id;
            BUF_PUSH(&builder->removed, DataFile, entry.file);
        }
        BUF_PUSH(&entries, ManifestEntry, entry);
    }
    return add_manifests(builder, true, (const ManifestEntry *) (const void *) entries.ptr,
                         BUF_COUNT(&entries, ManifestEntry), err);
}

/* --- what was there before ------------------------------------------------------------------- */

/* Truncated: every live data file leaves. */
static bool
remove_data(Builder *builder, Error *err)
{
    AUTO_BUF Buf live = {0};

    TRY(iceberg_live_files(builder->table, builder->arena, false, &live, err));
    for (size_t i = 0; i < BUF_COUNT(&live, ManifestEntry); i++) {
        ManifestEntry *entry = &BUF_AT(&live, ManifestEntry, i);

        widen_partition(builder, builder->arena, &entry->file);
        entry->status = ENTRY_DELETED;
        entry->snapshot_id = builder->next->snapshot.snapshot_id;
        BUF_PUSH(&builder->removed, DataFile, entry->file);
    }
    return add_manifests(builder, false, (const ManifestEntry *) (const void *) live.ptr,
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
            TRY(add_manifests(builder, false, (const ManifestEntry *) (const void *) entries.ptr,
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

static void
carry_deletes(Builder *builder)
{
    IcebergTable *table = builder->table;

    for (size_t i = 0; i < table->manifest_count && !builder->next->new_deletes; i++) {
        const ManifestFile *manifest = &table->manifests[i];

        if (!manifest->deletes || manifest->added_files + manifest->existing_files == 0)
            continue;
        BUF_PUSH(&builder->manifests, ManifestFile, *manifest);
        builder->kept++;
    }
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
    };
    char uuid[37];

    random_uuid(uuid);

    const char *key = arena_printf(builder->arena, "%s/metadata/snap-%" PRId64 "-1-%s.avro",
                                   builder->table->prefix, snapshot->snapshot_id, uuid);

    manifest_list_write(&header, (const ManifestFile *) (const void *) builder->manifests.ptr,
                        BUF_COUNT(&builder->manifests, ManifestFile),
                        &builder->next->manifest_list);
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
    TRY(add_deletes(builder, err));
    if (table->pending.truncated)
        TRY(remove_data(builder, err));
    else
        TRY(carry_data(builder, err));
    carry_deletes(builder);

    SnapshotDelta delta = {
        .added_count = BUF_COUNT(&builder->added, DataFile),
        .added = (const DataFile *) (const void *) builder->added.ptr,
        .removed_count = BUF_COUNT(&builder->removed, DataFile),
        .removed = (const DataFile *) (const void *) builder->removed.ptr,
        .manifests_created = builder->created,
        .manifests_kept = builder->kept,
        .manifests_replaced = builder->replaced,
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
