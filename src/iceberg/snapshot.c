#include "iceberg/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>

/* What one side (added or removed) of a delta amounts to. */
typedef struct FileTotals {
    int64_t data_files;
    int64_t delete_files;
    int64_t position_delete_files;
    int64_t equality_delete_files;
    int64_t vectors; /* deletion vectors: position deletes in Puffin files */
    int64_t records;
    int64_t position_deletes;
    int64_t equality_deletes;
    int64_t bytes;
} FileTotals;

static bool
is_vector(const DataFile *file)
{
    return file->format.len == 6 && strncasecmp(file->format.ptr, "puffin", 6) == 0;
}

static FileTotals
count_files(const DataFile *files, size_t count)
{
    FileTotals totals = {0};

    for (size_t i = 0; i < count; i++) {
        const DataFile *file = &files[i];

        /* a vector's size is its part of the Puffin file it shares */
        totals.bytes +=
            is_vector(file) && file->content_bytes > 0 ? file->content_bytes : file->file_bytes;
        switch (file->content) {
        case CONTENT_DATA:
            totals.data_files++;
            totals.records += file->record_count;
            break;
        case CONTENT_POSITION_DELETES:
            totals.delete_files++;
            totals.position_deletes += file->record_count;
            if (is_vector(file))
                totals.vectors++;
            else
                totals.position_delete_files++;
            break;
        case CONTENT_EQUALITY_DELETES:
            totals.delete_files++;
            totals.equality_delete_files++;
            totals.equality_deletes += file->record_count;
            break;
        }
    }
    return totals;
}

/* --- Partitions ---------------------------------------------------------------------------- */

static int
compare_partitions(const void *a, const void *b)
{
    const DataFile *x = *(const DataFile *const *) a;
    const DataFile *y = *(const DataFile *const *) b;

    if (x->spec_id != y->spec_id)
        return x->spec_id < y->spec_id ? -1 : 1;
    return str_cmp(x->partition, y->partition);
}

static int64_t
count_partitions(Arena *arena, const SnapshotDelta *delta)
{
    size_t count = delta->added_count + delta->removed_count;
    const DataFile **files = ARENA_ARRAY(arena, const DataFile *, count);
    int64_t distinct = 0;

    for (size_t i = 0; i < delta->added_count; i++)
        files[i] = &delta->added[i];
    for (size_t i = 0; i < delta->removed_count; i++)
        files[delta->added_count + i] = &delta->removed[i];
    if (count > 0)
        qsort((void *) files, count, sizeof(void *), compare_partitions);
    for (size_t i = 0; i < count; i++)
        distinct += i == 0 || compare_partitions(&files[i], &files[i - 1]) != 0;
    return distinct;
}

/* --- The summary --------------------------------------------------------------------------- */

/* A summary under construction: unsorted, keys are unique because `extra` comes last. */
typedef struct SummaryWriter {
    Arena *arena;
    PropertyList list;
} SummaryWriter;

static void
put(SummaryWriter *summary, const char *key, int64_t n)
{
    summary->list = property_set(summary->arena, &summary->list, str_of(key),
                                 arena_strf(summary->arena, "%" PRId64, n));
}

static void
put_if(SummaryWriter *summary, const char *key, int64_t n)
{
    if (n > 0)
        put(summary, key, n);
}

static void
put_changes(SummaryWriter *summary, const FileTotals *added, const FileTotals *removed)
{
    put_if(summary, "added-data-files", added->data_files);
    put_if(summary, "deleted-data-files", removed->data_files);
    put_if(summary, "added-delete-files", added->delete_files);
    put_if(summary, "removed-delete-files", removed->delete_files);
    put_if(summary, "added-position-delete-files", added->position_delete_files);
    put_if(summary, "removed-position-delete-files", removed->position_delete_files);
    put_if(summary, "added-equality-delete-files", added->equality_delete_files);
    put_if(summary, "removed-equality-delete-files", removed->equality_delete_files);
    put_if(summary, "added-dvs", added->vectors);
    put_if(summary, "removed-dvs", removed->vectors);
    put_if(summary, "added-records", added->records);
    put_if(summary, "deleted-records", removed->records);
    put_if(summary, "added-files-size", added->bytes);
    put_if(summary, "removed-files-size", removed->bytes);
    put_if(summary, "added-position-deletes", added->position_deletes);
    put_if(summary, "removed-position-deletes", removed->position_deletes);
    put_if(summary, "added-equality-deletes", added->equality_deletes);
    put_if(summary, "removed-equality-deletes", removed->equality_deletes);
}

/* A total that the parent does not have, or that is no number there, stays unknown, as in Java. */
static void
put_total(SummaryWriter *summary, const PropertyList *parent, const char *key, int64_t change)
{
    int64_t before = 0;

    if (parent != NULL) {
        Str text = property_get(parent, key); /* NUL-terminated: made by an arena */
        char *end = NULL;

        if (text.len == 0)
            return;
        before = strtoll(text.ptr, &end, 10);
        if (end != text.ptr + text.len)
            return;
    }
    if (before + change >= 0)
        put(summary, key, before + change);
}

static void
put_totals(SummaryWriter *summary, const PropertyList *parent, const FileTotals *added,
           const FileTotals *removed)
{
    put_total(summary, parent, "total-data-files", added->data_files - removed->data_files);
    put_total(summary, parent, "total-delete-files", added->delete_files - removed->delete_files);
    put_total(summary, parent, "total-records", added->records - removed->records);
    put_total(summary, parent, "total-files-size", added->bytes - removed->bytes);
    put_total(summary, parent, "total-position-deletes",
              added->position_deletes - removed->position_deletes);
    put_total(summary, parent, "total-equality-deletes",
              added->equality_deletes - removed->equality_deletes);
}

/* Iceberg spec, "Snapshots", operation. */
static Str
operation_of(const FileTotals *added, const FileTotals *removed, const SnapshotDelta *delta,
             bool is_replace)
{
    bool adds_rows = added->data_files > 0;
    bool removes_rows = removed->data_files > 0 || added->delete_files > 0 || delta->only_added;

    if (is_replace)
        return STR("replace");
    if (adds_rows && removes_rows)
        return STR("overwrite");
    if (removes_rows || removed->delete_files > 0)
        return adds_rows ? STR("overwrite") : STR("delete");
    return STR("append");
}

PropertyList
snapshot_summary(Arena *arena, const SnapshotDelta *delta, bool is_replace,
                 const PropertyList *parent, const PropertyList *extra)
{
    FileTotals added = count_files(delta->added, delta->added_count);
    FileTotals removed = count_files(delta->removed, delta->removed_count);
    SummaryWriter summary = {.arena = arena};

    summary.list = property_set(arena, &summary.list, STR("operation"),
                                operation_of(&added, &removed, delta, is_replace));
    put_changes(&summary, &added, &removed);
    put(&summary, "changed-partition-count", count_partitions(arena, delta));
    put(&summary, "manifests-created", (int64_t) delta->manifests_created);
    put(&summary, "manifests-kept", (int64_t) delta->manifests_kept);
    put(&summary, "manifests-replaced", (int64_t) delta->manifests_replaced);
    if (delta->only_added)
        put_totals(&summary, NULL, &added, &(FileTotals){0});
    else
        put_totals(&summary, parent, &added, &removed);
    for (size_t i = 0; extra != NULL && i < extra->count; i++)
        summary.list =
            property_set(arena, &summary.list, extra->items[i].key, extra->items[i].value);
    return summary.list;
}
