#include "query/table_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "duck/parquet.h"
#include "model/position.h"

/* Iceberg spec, "Reserved Field IDs". */
enum { FIELD_ID_DELETE_FILE_PATH = 2147483546, FIELD_ID_DELETE_POS = 2147483545 };

typedef struct CachedManifest {
    char *path;
    Arena *arena;
    ManifestEntry *entries;
    size_t count;
    bool used; /* by the plan being made */
} CachedManifest;

/* The deletes of one data file in a position delete file. */
typedef struct DeletedIn {
    Str data_file;
    Buf rows; /* uint32_t */
} DeletedIn;

typedef struct CachedDeletes {
    char *path;
    Arena *arena; /* of the names */
    Buf files;    /* DeletedIn */
    bool used;
} CachedDeletes;

static void
manifest_done(CachedManifest *manifest)
{
    free(manifest->path);
    arena_free(manifest->arena);
}

static void
deletes_done(CachedDeletes *deletes)
{
    for (size_t i = 0; i < BUF_COUNT(&deletes->files, DeletedIn); i++)
        buf_done(&BUF_AT(&deletes->files, DeletedIn, i).rows);
    buf_done(&deletes->files);
    free(deletes->path);
    arena_free(deletes->arena);
}

void
plan_cache_done(PlanCache *cache)
{
    for (size_t i = 0; i < BUF_COUNT(&cache->manifests, CachedManifest); i++)
        manifest_done(&BUF_AT(&cache->manifests, CachedManifest, i));
    for (size_t i = 0; i < BUF_COUNT(&cache->deletes, CachedDeletes); i++)
        deletes_done(&BUF_AT(&cache->deletes, CachedDeletes, i));
    buf_done(&cache->manifests);
    buf_done(&cache->deletes);
}

static void
mark_unused(PlanCache *cache)
{
    for (size_t i = 0; i < BUF_COUNT(&cache->manifests, CachedManifest); i++)
        BUF_AT(&cache->manifests, CachedManifest, i).used = false;
    for (size_t i = 0; i < BUF_COUNT(&cache->deletes, CachedDeletes); i++)
        BUF_AT(&cache->deletes, CachedDeletes, i).used = false;
}

static void
drop_unused(PlanCache *cache)
{
    size_t kept = 0;

    for (size_t i = 0; i < BUF_COUNT(&cache->manifests, CachedManifest); i++) {
        CachedManifest *manifest = &BUF_AT(&cache->manifests, CachedManifest, i);

        if (manifest->used)
            BUF_AT(&cache->manifests, CachedManifest, kept++) = *manifest;
        else
            manifest_done(manifest);
    }
    cache->manifests.len = kept * sizeof(CachedManifest);
    kept = 0;
    for (size_t i = 0; i < BUF_COUNT(&cache->deletes, CachedDeletes); i++) {
        CachedDeletes *deletes = &BUF_AT(&cache->deletes, CachedDeletes, i);

        if (deletes->used)
            BUF_AT(&cache->deletes, CachedDeletes, kept++) = *deletes;
        else
            deletes_done(deletes);
    }
    cache->deletes.len = kept * sizeof(CachedDeletes);
}

/* --- manifests ----------------------------------------------------------------------------- */

static bool
load_manifest(const PlanMake *make, const ManifestFile *file, CachedManifest *out_manifest,
              Error *err)
{
    AUTO_BUF Buf bytes = {0};
    Arena *arena = arena_new();
    CachedManifest manifest = {.arena = arena, .used = true};

    if (!file_cache_read(make->files, arena, file->path, &bytes, err) ||
        !manifest_read(arena, buf_view(&bytes), file, &manifest.entries, &manifest.count, err)) {
        arena_free(arena);
        return WRAP(err, "%.*s", STR_ARG(file->path));
    }
    manifest.path = xstrdup(arena_str(arena, file->path).ptr);
    *out_manifest = manifest;
    return true;
}

static bool
get_manifest(const PlanMake *make, const ManifestFile *file, size_t *out_index, Error *err)
{
    Buf *manifests = &make->cache->manifests;
    size_t count = BUF_COUNT(manifests, CachedManifest);
    CachedManifest loaded;

    for (size_t i = 0; i < count; i++) {
        CachedManifest *manifest = &BUF_AT(manifests, CachedManifest, i);

        if (!str_eqc(file->path, manifest->path))
            continue;
        manifest->used = true;
        *out_index = i;
        return true;
    }
    TRY(load_manifest(make, file, &loaded, err));
    BUF_PUSH(manifests, CachedManifest, loaded);
    *out_index = count;
    return true;
}

/* What a plan is made of: live entries, in the order of the manifests. */
typedef struct Live {
    Buf data;    /* const ManifestEntry * */
    Buf deletes; /* likewise */
} Live;

static void
live_done(Live *live)
{
    buf_done(&live->data);
    buf_done(&live->deletes);
}

static bool
check_entry(const ManifestEntry *entry, Error *err)
{
    const DataFile *file = &entry->file;

    if (file->content == CONTENT_EQUALITY_DELETES)
        return FAIL(err, ERR_INPUT, "it has equality deletes, which are not supported");
    if (file->content_offset >= 0 ||
        (file->format.len == 6 && strncasecmp(file->format.ptr, "puffin", 6) == 0))
        return FAIL(err, ERR_INPUT, "it has deletion vectors, which are not supported yet");
    if (file->format.len != 7 || strncasecmp(file->format.ptr, "parquet", 7) != 0)
        return FAIL(err, ERR_INPUT, "it has %.*s files; only Parquet is supported",
                    STR_ARG(file->format));
    return true;
}

static bool
collect_entries(const CachedManifest *manifest, Live *live, Error *err)
{
    for (size_t i = 0; i < manifest->count; i++) {
        const ManifestEntry *entry = &manifest->entries[i];

        if (entry->status == ENTRY_DELETED)
            continue;
        TRY(check_entry(entry, err));
        BUF_PUSH(entry->file.content == CONTENT_DATA ? &live->data : &live->deletes,
                 const ManifestEntry *, entry);
    }
    return true;
}

static bool
collect_live(Arena *arena, const PlanMake *make, Live *live, Error *err)
{
    AUTO_BUF Buf bytes = {0};
    ManifestFile *files = NULL;
    size_t count = 0;

    TRY(file_cache_read(make->files, arena, make->snapshot->manifest_list, &bytes, err));
    if (!manifest_list_read(arena, buf_view(&bytes), &files, &count, err))
        return WRAP(err, "%.*s", STR_ARG(make->snapshot->manifest_list));
    for (size_t i = 0; i < count; i++) {
        size_t index = 0;

        TRY(get_manifest(make, &files[i], &index, err));
        TRY(collect_entries(&BUF_AT(&make->cache->manifests, CachedManifest, index), live, err));
    }
    return true;
}

/* --- delete files -------------------------------------------------------------------------- */

typedef struct DeleteSink {
    RowSink base; /* first member */
    CachedDeletes *deletes;
    size_t last; /* index of the data file of the row before: the file is sorted by it */
} DeleteSink;

static DeletedIn *
find_deleted_in(DeleteSink *sink, Str data_file)
{
    Buf *files = &sink->deletes->files;
    size_t count = BUF_COUNT(files, DeletedIn);

    if (sink->last < count && str_eq(BUF_AT(files, DeletedIn, sink->last).data_file, data_file))
        return &BUF_AT(files, DeletedIn, sink->last);
    for (size_t i = 0; i < count; i++)
        if (str_eq(BUF_AT(files, DeletedIn, i).data_file, data_file)) {
            sink->last = i;
            return &BUF_AT(files, DeletedIn, i);
        }
    sink->last = count;
    BUF_PUSH(files, DeletedIn,
             ((DeletedIn){.data_file = arena_str(sink->deletes->arena, data_file)}));
    return &BUF_AT(files, DeletedIn, count);
}

static bool
take_deletes(RowSink *base, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    DeleteSink *sink = (DeleteSink *) base;

    (void) first_row;
    for (size_t i = 0; i < rows; i++) {
        if (column_is_null(&columns[0], i) || column_is_null(&columns[1], i))
            return FAIL(err, ERR_INPUT, "a position delete without file or row");

        int64_t row = BUF_AT(&columns[1].values, int64_t, i);

        if (row < 0 || row > UINT32_MAX)
            return FAIL(err, ERR_INPUT, "a position delete of row %lld", (long long) row);
        BUF_PUSH(&find_deleted_in(sink, column_bytes(&columns[0], i))->rows, uint32_t,
                 (uint32_t) row);
    }
    return true;
}

static bool
scan_deletes(const PlanMake *make, const char *path, CachedDeletes *deletes, Error *err)
{
    static const Type text = {.kind = TYPE_STRING};
    static const Type number = {.kind = TYPE_INT64};
    const Field fields[] = {
        {.name = STR("file_path"), .id = FIELD_ID_DELETE_FILE_PATH, .type = &text},
        {.name = STR("pos"), .id = FIELD_ID_DELETE_POS, .type = &number},
    };
    DeleteSink sink = {.base = {.block = take_deletes}, .deletes = deletes};

    return duck_scan_parquet(
        make->duck,
        &(ParquetScan){.path = path, .fields = fields, .field_count = 2, .sink = &sink.base}, err);
}

static bool
get_deletes(Arena *arena, const PlanMake *make, const DataFile *file, size_t *out_index, Error *err)
{
    Buf *cached = &make->cache->deletes;
    size_t count = BUF_COUNT(cached, CachedDeletes);
    const char *path = NULL;

    for (size_t i = 0; i < count; i++) {
        CachedDeletes *deletes = &BUF_AT(cached, CachedDeletes, i);

        if (!str_eqc(file->path, deletes->path))
            continue;
        deletes->used = true;
        *out_index = i;
        return true;
    }
    TRY(file_cache_path(make->files, arena, file->path, &path, err));

    CachedDeletes deletes = {
        .path = xstrdup(arena_str(arena, file->path).ptr), .arena = arena_new(), .used = true};

    if (!scan_deletes(make, path, &deletes, err)) {
        deletes_done(&deletes);
        return WRAP(err, "%.*s", STR_ARG(file->path));
    }
    BUF_PUSH(cached, CachedDeletes, deletes);
    *out_index = count;
    return true;
}

/* --- the plan ------------------------------------------------------------------------------ */

/* A data file on its way into the plan; sorted by path while deletes are matched. */
typedef struct Target {
    const ManifestEntry *entry;
    size_t dirty; /* index among the dirty files + 1, 0: clean */
} Target;

static int
compare_targets(const void *a, const void *b)
{
    return str_cmp(((const Target *) a)->entry->file.path, ((const Target *) b)->entry->file.path);
}

static Target *
find_target(const Buf *targets, Str path)
{
    size_t low = 0;
    size_t high = BUF_COUNT(targets, Target);

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = str_cmp(BUF_AT(targets, Target, mid).entry->file.path, path);

        if (order == 0)
            return &BUF_AT(targets, Target, mid);
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* One delete file against the data files. First round (dead == NULL): number those it touches.
 * Second: add its rows. */
static void
match_deletes(const CachedDeletes *deletes, int64_t sequence_number, const Buf *targets,
              size_t *dirty_count, DeadRows *dead)
{
    for (size_t i = 0; i < BUF_COUNT(&deletes->files, DeletedIn); i++) {
        const DeletedIn *in = &BUF_AT(&deletes->files, DeletedIn, i);
        Target *target = find_target(targets, in->data_file);

        if (target == NULL || target->entry->sequence_number > sequence_number)
            continue;
        if (dead == NULL) {
            if (target->dirty == 0)
                target->dirty = ++*dirty_count;
            continue;
        }
        for (size_t r = 0; r < BUF_COUNT(&in->rows, uint32_t); r++)
            dead_rows_add(dead, target->dirty - 1, BUF_AT(&in->rows, uint32_t, r));
    }
}

static bool
find_dead(Arena *arena, const PlanMake *make, const Live *live, const Buf *targets, TablePlan *plan,
          Error *err)
{
    size_t count = BUF_COUNT(&live->deletes, const ManifestEntry *);
    size_t *indexes = ARENA_ARRAY(arena, size_t, count);

    for (size_t i = 0; i < count; i++) {
        const ManifestEntry *entry = BUF_AT(&live->deletes, const ManifestEntry *, i);

        TRY(get_deletes(arena, make, &entry->file, &indexes[i], err));
    }
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < count; i++) {
            const ManifestEntry *entry = BUF_AT(&live->deletes, const ManifestEntry *, i);

            match_deletes(&BUF_AT(&make->cache->deletes, CachedDeletes, indexes[i]),
                          entry->sequence_number, targets, &plan->dirty_count, plan->dead);
        }
        if (plan->dirty_count == 0)
            break;
        if (round == 0)
            plan->dead = dead_rows_new(plan->dirty_count);
    }
    if (plan->dead != NULL)
        dead_rows_seal(plan->dead);
    return true;
}

static bool
place_files(Arena *arena, const PlanMake *make, const Buf *targets, TablePlan *plan, Error *err)
{
    size_t count = BUF_COUNT(targets, Target);

    plan->clean = (const char **) arena_alloc(arena, count * sizeof(char *));
    plan->dirty = (const char **) arena_alloc(arena, plan->dirty_count * sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        const Target *target = &BUF_AT(targets, Target, i);
        const char *path = NULL;

        TRY(file_cache_path(make->files, arena, target->entry->file.path, &path, err));
        plan->rows += target->entry->file.record_count;
        if (target->dirty == 0) {
            plan->clean[plan->clean_count++] = path;
            continue;
        }
        plan->dirty[target->dirty - 1] = path;
        plan->rows -= (int64_t) dead_rows_count(plan->dead, target->dirty - 1);
    }
    return true;
}

static bool
make_plan(Arena *arena, const PlanMake *make, Live *live, TablePlan *plan, Error *err)
{
    AUTO_BUF Buf targets = {0};

    TRY(collect_live(arena, make, live, err));
    for (size_t i = 0; i < BUF_COUNT(&live->data, const ManifestEntry *); i++)
        BUF_PUSH(&targets, Target,
                 ((Target){.entry = BUF_AT(&live->data, const ManifestEntry *, i)}));
    if (targets.len > 0)
        qsort(targets.ptr, BUF_COUNT(&targets, Target), sizeof(Target), compare_targets);
    TRY(find_dead(arena, make, live, &targets, plan, err));
    return place_files(arena, make, &targets, plan, err);
}

bool
table_plan_make(Arena *arena, const PlanMake *make, TablePlan *out_plan, Error *err)
{
    AUTO(live_done) Live live = {0};
    TablePlan plan = {0};

    mark_unused(make->cache);
    if (!make_plan(arena, make, &live, &plan, err)) {
        dead_rows_free(plan.dead);
        return false;
    }
    drop_unused(make->cache);
    *out_plan = plan;
    return true;
}

/* --- snapshots ----------------------------------------------------------------------------- */

/* A snapshot that another engine made (a compaction) stands where the one before it does. */
static uint64_t
position_of(const TableMetadata *metadata, const Snapshot *snapshot)
{
    for (size_t i = 0; snapshot != NULL && i <= metadata->snapshot_count; i++) {
        Position position;
        Error ignored;

        if (position_parse(property_get(&snapshot->summary, "cdc.position"), &position, &ignored))
            return position;
        snapshot = metadata_find_snapshot(metadata, snapshot->parent_id);
    }
    return POSITION_NONE;
}

const Snapshot *
plan_choose_snapshot(const TableMetadata *metadata, bool has_limit, uint64_t committed)
{
    const Snapshot *snapshot = metadata_current_snapshot(metadata);

    for (size_t i = 0; snapshot != NULL && i <= metadata->snapshot_count; i++) {
        if (!has_limit || position_of(metadata, snapshot) <= committed)
            return snapshot;
        snapshot = metadata_find_snapshot(metadata, snapshot->parent_id);
    }
    return NULL;
}
