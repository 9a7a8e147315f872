/* deletes.c - the delete files of the next snapshot, and the manifests that list them.
 *
 * A delete manifest is written again when a file that it lists goes, and those that are not stay as
 * they are. Under version 2 there are only a few delete files, in one manifest per spec, which
 * every commit that deletes writes again. Under version 3 manifests hold at most so many vectors
 * that a commit pays for the data files it touches, and small ones are gathered.
 *
 * In a partitioned table a delete file is of the spec and partition of the data files it points
 * into, whatever the spec of new files is: readers look for it only there. Iceberg spec, "Scan
 * Planning". */
#include <string.h>

#include "sink/iceberg/build.h"

/* --- places ---------------------------------------------------------------------------------- */

bool
iceberg_ever_partitioned(const TableMetadata *metadata)
{
    return metadata->spec_count > 1 || metadata->specs[0].field_count > 0;
}

bool
iceberg_load_places(Builder *builder, Error *err)
{
    IcebergTable *table = builder->table;
    AUTO_BUF Buf live = {0};

    if (table->places == NULL) {
        AUTO_ARENA Arena *arena = arena_new();

        if (!table->pending.truncated) /* else pending files are all */
            TRY(iceberg_live_files(table, arena, &live, err));
        table->places = places_new();
        for (size_t i = 0; i < BUF_COUNT(&live, ManifestEntry); i++) {
            DataFile *file = &BUF_AT(&live, ManifestEntry, i).file;

            iceberg_widen_partition(builder, arena, file);
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

/* --- what is written again ------------------------------------------------------------------- */

static OldDeletes
old_deletes(const Builder *builder)
{
    const LiveDeletes *live = builder->table->live_deletes;
    OldDeletes old = {0};
    size_t count = 0;

    for (size_t m = 0; m < live_deletes_count(live); m++)
        if (builder->rewritten[m])
            count += live_deletes_at(live, m)->count;
    old.entries = ARENA_ARRAY(builder->arena, ManifestEntry, count);
    old.gone = ARENA_ARRAY(builder->arena, bool, count);
    for (size_t m = 0; m < live_deletes_count(live); m++) {
        const LiveManifest *manifest = live_deletes_at(live, m);

        for (size_t i = 0; builder->rewritten[m] && i < manifest->count; i++) {
            ManifestEntry *entry = &old.entries[old.count++];

            *entry = manifest->entries[i];
            iceberg_widen_partition(builder, builder->arena, &entry->file);
        }
    }
    return old;
}

void
iceberg_add_delete_file(Builder *builder, const DataFile *file, Buf *entries)
{
    ManifestEntry entry = {.status = ENTRY_ADDED,
                           .snapshot_id = builder->next->snapshot.snapshot_id,
                           .sequence_number = -1,
                           .file_sequence_number = -1,
                           .file = *file};

    BUF_PUSH(entries, ManifestEntry, entry);
    BUF_PUSH(&builder->added, DataFile, entry.file);
}

/* The old files EXISTING or, when merged, replaced or truncated away, DELETED. */
static void
keep_old_deletes(Builder *builder, const OldDeletes *old, Buf *entries)
{
    for (size_t i = 0; i < old->count; i++) {
        ManifestEntry entry = old->entries[i];

        entry.status = old->gone[i] ? ENTRY_DELETED : ENTRY_EXISTING;
        if (old->gone[i]) {
            entry.snapshot_id = builder->next->snapshot.snapshot_id;
            BUF_PUSH(&builder->removed, DataFile, entry.file);
        }
        BUF_PUSH(entries, ManifestEntry, entry);
    }
}

/* The manifests that the next snapshot no longer lists. */
static void
note_replaced(Builder *builder)
{
    const LiveDeletes *live = builder->table->live_deletes;

    for (size_t m = 0; m < live_deletes_count(live); m++) {
        if (!builder->rewritten[m])
            continue;

        Str path = arena_str(builder->arena, live_deletes_at(live, m)->file.path);

        BUF_PUSH(&builder->next->replaced_deletes, Str, path);
        builder->replaced++;
    }
}

bool
iceberg_add_deletes(Builder *builder, Error *err)
{
    IcebergTable *table = builder->table;
    size_t manifests = live_deletes_count(table->live_deletes);
    bool any = deletes_total(table->pending.deletes) > 0;
    bool vectors = builder->base->format_version >= 3;
    AUTO_BUF Buf entries = {0};
    AUTO_BUF Buf files = {0};

    builder->rewritten = ARENA_ARRAY(builder->arena, bool, manifests);
    if (!any && !(table->pending.truncated && manifests > 0))
        return true;
    memset(builder->rewritten, table->pending.truncated || !vectors, manifests);
    if (vectors)
        TRY(iceberg_choose_vectors(builder, &files, err));

    OldDeletes old = old_deletes(builder);

    memset(old.gone, table->pending.truncated, old.count);
    if (vectors)
        TRY(iceberg_add_vectors(builder, &files, &old, &entries, err));
    else if (any)
        TRY(iceberg_add_position_deletes(builder, &old, &entries, err));
    keep_old_deletes(builder, &old, &entries);
    note_replaced(builder);
    return iceberg_add_manifests(builder, true, (const ManifestEntry *) (const void *) entries.ptr,
                                 BUF_COUNT(&entries, ManifestEntry), err);
}

void
iceberg_carry_deletes(Builder *builder)
{
    const LiveDeletes *live = builder->table->live_deletes;

    for (size_t m = 0; m < live_deletes_count(live); m++) {
        if (builder->rewritten[m])
            continue;
        BUF_PUSH(&builder->manifests, ManifestFile, live_deletes_at(live, m)->file);
        builder->kept++;
    }
}
