#include "query/table_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "model/position.h"

typedef struct CachedManifest {
    char *path;
    Arena *arena;
    ManifestEntry *entries;
    size_t count;
    bool used; /* by the plan being made */
} CachedManifest;

static void
manifest_done(CachedManifest *manifest)
{
    free(manifest->path);
    arena_free(manifest->arena);
}

void
plan_cache_done(PlanCache *cache)
{
    for (size_t i = 0; i < BUF_COUNT(&cache->manifests, CachedManifest); i++)
        manifest_done(&BUF_AT(&cache->manifests, CachedManifest, i));
    buf_done(&cache->manifests);
    deletes_cache_done(&cache->deletes);
    shape_cache_done(&cache->shapes);
}

static void
mark_unused(PlanCache *cache)
{
    for (size_t i = 0; i < BUF_COUNT(&cache->manifests, CachedManifest); i++)
        BUF_AT(&cache->manifests, CachedManifest, i).used = false;
    deletes_cache_mark_unused(&cache->deletes);
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
    deletes_cache_drop_unused(&cache->deletes);
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

/* What the manifest entry of a deletion vector must have. */
static bool
check_vector(const DataFile *file, Error *err)
{
    if (file->referenced_data_file.ptr == NULL || file->content_offset < 0 ||
        file->content_bytes <= 0 || file->content_bytes > INT64_MAX - file->content_offset)
        return FAIL(err, ERR_INPUT,
                    "a deletion vector in %.*s without its data file or its place in there",
                    STR_ARG(file->path));
    return true;
}

static bool
check_entry(const ManifestEntry *entry, Error *err)
{
    const DataFile *file = &entry->file;

    if (file->content == CONTENT_EQUALITY_DELETES)
        return FAIL(err, ERR_INPUT, "it has equality deletes, which are not supported");
    if (plan_is_vector(file))
        return check_vector(file, err);
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

/* --- the plan ------------------------------------------------------------------------------ */

/* A data file on its way into the plan; sorted by path while deletes are matched. */
typedef struct Target {
    const ManifestEntry *entry;
    const ManifestEntry *vector; /* NULL: none */
    const char *path;            /* local */
    size_t group;                /* index among the plan's groups */
    bool touched;                /* it has deleted rows */
    size_t dirty;                /* index among the dirty files, when it has */
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

/* Whether an entry's deletes reach a data file: Iceberg spec, "Scan Planning". Position deletes do
 * not where there is a vector, which has them all. */
static bool
reaches(const ManifestEntry *deletes, const Target *target)
{
    if (target == NULL || target->entry->sequence_number > deletes->sequence_number)
        return false;
    return plan_is_vector(&deletes->file) || target->vector == NULL;
}

/* Each data file gets its vector. A vector whose data file is gone, or was written anew under its
 * name, is nothing. */
static bool
match_vectors(const Live *live, const Buf *targets, Error *err)
{
    for (size_t i = 0; i < BUF_COUNT(&live->deletes, const ManifestEntry *); i++) {
        const ManifestEntry *entry = BUF_AT(&live->deletes, const ManifestEntry *, i);
        Target *target;

        if (!plan_is_vector(&entry->file))
            continue;
        target = find_target(targets, entry->file.referenced_data_file);
        if (!reaches(entry, target))
            continue;
        if (target->vector != NULL)
            return FAIL(err, ERR_INPUT, "it has two deletion vectors for %.*s",
                        STR_ARG(target->entry->file.path));
        target->vector = entry;
    }
    return true;
}

/* Entries that reach a data file, or may: of a position delete file without a referenced data file
 * only its content tells. */
static const ManifestEntry **
choose_deletes(Arena *arena, const Live *live, const Buf *targets, size_t *out_count)
{
    size_t count = BUF_COUNT(&live->deletes, const ManifestEntry *);
    const ManifestEntry **chosen =
        (const ManifestEntry **) arena_alloc(arena, count * sizeof(ManifestEntry *));

    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        const ManifestEntry *entry = BUF_AT(&live->deletes, const ManifestEntry *, i);
        Str data_file = entry->file.referenced_data_file;

        if (data_file.ptr == NULL || reaches(entry, find_target(targets, data_file)))
            chosen[(*out_count)++] = entry;
    }
    return chosen;
}

/* One entry's deletes against the data files. First round (dead == NULL): mark those it touches.
 * Second: add its rows. */
static void
match_deletes(const CachedDeletes *deletes, const ManifestEntry *entry, const Buf *targets,
              DeadRows *dead)
{
    for (size_t i = 0; i < BUF_COUNT(&deletes->files, DeletedIn); i++) {
        const DeletedIn *in = &BUF_AT(&deletes->files, DeletedIn, i);
        Target *target = find_target(targets, in->data_file);

        if (!reaches(entry, target) || in->rows.len == 0)
            continue;
        if (dead == NULL) {
            target->touched = true;
            continue;
        }
        for (size_t r = 0; r < BUF_COUNT(&in->rows, uint32_t); r++)
            dead_rows_add(dead, target->dirty, BUF_AT(&in->rows, uint32_t, r));
    }
}

/* The dirty files of a group follow one another. */
static void
number_dirty(const Buf *targets, TablePlan *plan)
{
    for (size_t group = 0; group < plan->group_count; group++)
        for (size_t i = 0; i < BUF_COUNT(targets, Target); i++) {
            Target *target = &BUF_AT(targets, Target, i);

            if (target->group == group && target->touched)
                target->dirty = plan->dirty_count++;
        }
}

static bool
load_deletes(Arena *arena, const PlanMake *make, const ManifestEntry *const *entries, size_t count,
             Error *err)
{
    const DeletesLoad load = {.arena = arena, .files = make->files, .duck = make->duck};
    const DataFile **files = (const DataFile **) arena_alloc(arena, count * sizeof(DataFile *));

    for (size_t i = 0; i < count; i++)
        files[i] = &entries[i]->file;
    return deletes_cache_load(&make->cache->deletes, &load, files, count, err);
}

static bool
find_dead(Arena *arena, const PlanMake *make, const Live *live, const Buf *targets, TablePlan *plan,
          Error *err)
{
    size_t count = 0;

    TRY(match_vectors(live, targets, err));

    const ManifestEntry **entries = choose_deletes(arena, live, targets, &count);

    TRY(load_deletes(arena, make, entries, count, err));
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < count; i++)
            match_deletes(deletes_cache_find(&make->cache->deletes, &entries[i]->file), entries[i],
                          targets, plan->dead);
        if (round > 0)
            break;
        number_dirty(targets, plan);
        if (plan->dirty_count == 0)
            break;
        plan->dead = dead_rows_new(plan->dirty_count);
    }
    if (plan->dead != NULL)
        dead_rows_seal(plan->dead);
    return true;
}

/* The group of a shape, begun when there is none. There are as many as there were versions of the
 * schema at most. */
static size_t
find_group(Buf *groups, const FileShape *shape)
{
    size_t count = BUF_COUNT(groups, PlanGroup);

    for (size_t i = 0; i < count; i++)
        if (BUF_AT(groups, PlanGroup, i).shape == shape)
            return i;
    BUF_PUSH(groups, PlanGroup, ((PlanGroup){.shape = shape}));
    return count;
}

/* Where each file is and what it looks like. */
static bool
look_at_files(Arena *arena, const PlanMake *make, const Buf *targets, Buf *groups, FileHold *hold,
              Error *err)
{
    ShapeCache *shapes = &make->cache->shapes;
    bool shaped = make->schema != NULL && schema_needs_shapes(make->schema);

    if (shaped)
        shape_cache_begin(shapes, make->schema);
    for (size_t i = 0; i < BUF_COUNT(targets, Target); i++) {
        Target *target = &BUF_AT(targets, Target, i);
        const FileShape *shape = NULL;

        TRY(file_cache_path(make->files, hold, arena, target->entry->file.path, &target->path,
                            err));
        if (shaped)
            TRY(shape_cache_get(shapes, make->schema, target->path, &shape, err));
        target->group = find_group(groups, shape);
    }
    if (shaped)
        shape_cache_end(shapes);
    return true;
}

static void
place_files(Arena *arena, const Buf *targets, TablePlan *plan)
{
    size_t count = BUF_COUNT(targets, Target);

    plan->clean = (const char **) arena_alloc(arena, count * sizeof(char *));
    plan->dirty = (const char **) arena_alloc(arena, plan->dirty_count * sizeof(char *));
    for (size_t group = 0; group < plan->group_count; group++)
        for (size_t i = 0; i < count; i++) {
            const Target *target = &BUF_AT(targets, Target, i);

            if (target->group != group)
                continue;
            plan->rows += target->entry->file.record_count;
            if (!target->touched) {
                plan->clean[plan->clean_count++] = target->path;
                plan->groups[group].clean_count++;
                continue;
            }
            plan->dirty[target->dirty] = target->path;
            plan->groups[group].dirty_count++;
            plan->rows -= (int64_t) dead_rows_count(plan->dead, target->dirty);
        }
}

static bool
make_plan(Arena *arena, const PlanMake *make, Live *live, TablePlan *plan, Error *err)
{
    AUTO_BUF Buf targets = {0};
    AUTO_BUF Buf groups = {0}; /* PlanGroup */

    TRY(collect_live(arena, make, live, err));
    for (size_t i = 0; i < BUF_COUNT(&live->data, const ManifestEntry *); i++)
        BUF_PUSH(&targets, Target,
                 ((Target){.entry = BUF_AT(&live->data, const ManifestEntry *, i)}));
    if (targets.len > 0)
        qsort(targets.ptr, BUF_COUNT(&targets, Target), sizeof(Target), compare_targets);
    TRY(look_at_files(arena, make, &targets, &groups, &plan->hold, err));
    plan->group_count = BUF_COUNT(&groups, PlanGroup);
    plan->groups = ARENA_ARRAY(arena, PlanGroup, plan->group_count);
    if (groups.len > 0)
        memcpy(plan->groups, groups.ptr, groups.len);
    TRY(find_dead(arena, make, live, &targets, plan, err));
    place_files(arena, &targets, plan);
    return true;
}

bool
table_plan_make(Arena *arena, const PlanMake *make, TablePlan *out_plan, Error *err)
{
    AUTO(live_done) Live live = {0};
    TablePlan plan = {0};

    mark_unused(make->cache);
    if (!make_plan(arena, make, &live, &plan, err)) {
        dead_rows_free(plan.dead);
        file_hold_done(&plan.hold);
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
plan_choose_snapshot(const TableMetadata *metadata, bool has_limit, uint64_t committed,
                     PlanMoment *out_moment)
{
    const Snapshot *snapshot = metadata_current_snapshot(metadata);
    bool any = snapshot != NULL;
    int64_t parent_id = 0;

    *out_moment = MOMENT_THERE;
    for (size_t i = 0; snapshot != NULL && i <= metadata->snapshot_count; i++) {
        if (!has_limit || position_of(metadata, snapshot) <= committed)
            return snapshot;
        parent_id = snapshot->parent_id;
        snapshot = metadata_find_snapshot(metadata, parent_id);
    }
    if (any)
        *out_moment = parent_id != 0 ? MOMENT_LOST : MOMENT_AHEAD;
    return NULL;
}
