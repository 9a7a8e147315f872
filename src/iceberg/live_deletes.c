#include "iceberg/live_deletes.h"
#include "base/xalloc.h"

#include <stdlib.h>
#include <strings.h>

#define uthash_fatal(msg) abort() /* out of memory, as xalloc.h does */
#include <uthash.h>

typedef struct LiveVector {
    UT_hash_handle hh; /* by referenced_data_file */
    LiveManifest *manifest;
} LiveVector;

struct LiveDeletes {
    Buf manifests; /* LiveManifest * */
    LiveVector *vectors;
};

bool
file_is_vector(const DataFile *file)
{
    return file->content == CONTENT_POSITION_DELETES && file->format.len == 6 &&
           strncasecmp(file->format.ptr, "puffin", 6) == 0;
}

LiveDeletes *
live_deletes_new(void)
{
    return xcalloc(1, sizeof(LiveDeletes));
}

/* --- vectors --------------------------------------------------------------------------------- */

/* NOLINTBEGIN(readability-function-size): the macros of uthash nest */
static LiveVector *
find_vector(const LiveDeletes *live, Str data_file)
{
    LiveVector *vector = NULL;

    HASH_FIND(hh, live->vectors, data_file.ptr, data_file.len, vector);
    return vector;
}

static void
hash_vector(LiveDeletes *live, LiveVector *vector, Str data_file)
{
    HASH_ADD_KEYPTR(hh, live->vectors, data_file.ptr, data_file.len, vector);
}

static void
forget_vectors(LiveDeletes *live, LiveManifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++)
        if (manifest->vectors[i].manifest != NULL)
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): only in the macro */
            HASH_DEL(live->vectors, &manifest->vectors[i]);
}

/* NOLINTEND(readability-function-size) */

static bool
note_vectors(LiveDeletes *live, LiveManifest *manifest, Error *err)
{
    for (size_t i = 0; i < manifest->count; i++) {
        const DataFile *file = &manifest->entries[i].file;

        if (!file_is_vector(file))
            continue;
        if (file->referenced_data_file.len == 0)
            return FAIL(err, ERR_INPUT, "deletion vector in %.*s: no referenced_data_file",
                        STR_ARG(file->path));
        if (find_vector(live, file->referenced_data_file) != NULL)
            return FAIL(err, ERR_INPUT, "%.*s has two deletion vectors",
                        STR_ARG(file->referenced_data_file));
        manifest->vectors[i].manifest = manifest;
        hash_vector(live, &manifest->vectors[i], file->referenced_data_file);
    }
    return true;
}

const LiveManifest *
live_deletes_find(const LiveDeletes *live, Str data_file)
{
    const LiveVector *vector = find_vector(live, data_file);

    return vector == NULL ? NULL : vector->manifest;
}

/* --- manifests ------------------------------------------------------------------------------- */

static ManifestFile
copy_manifest_file(Arena *arena, const ManifestFile *file)
{
    ManifestFile copy = *file;

    copy.path = arena_str(arena, file->path);
    copy.partitions = ARENA_ARRAY(arena, FieldSummary, file->partition_count);
    for (size_t i = 0; i < file->partition_count; i++) {
        copy.partitions[i] = file->partitions[i];
        if (file->partitions[i].lower.ptr != NULL)
            copy.partitions[i].lower = arena_str(arena, file->partitions[i].lower);
        if (file->partitions[i].upper.ptr != NULL)
            copy.partitions[i].upper = arena_str(arena, file->partitions[i].upper);
    }
    return copy;
}

static void
drop_manifest(LiveDeletes *live, LiveManifest *manifest)
{
    forget_vectors(live, manifest);
    arena_free(manifest->arena);
}

static bool
read_manifest(LiveManifest *manifest, Str bytes, Error *err)
{
    size_t count;
    size_t kept = 0;

    TRY(manifest_read(manifest->arena, bytes, &manifest->file, &manifest->entries, &count, err));
    for (size_t i = 0; i < count; i++)
        if (manifest->entries[i].status != ENTRY_DELETED)
            manifest->entries[kept++] = manifest->entries[i];
    manifest->vectors = ARENA_ARRAY(manifest->arena, LiveVector, kept);
    manifest->count = kept;
    return true;
}

bool
live_deletes_add(LiveDeletes *live, Str bytes, const ManifestFile *file, Error *err)
{
    Arena *arena = arena_new();
    LiveManifest *manifest = ARENA_NEW(arena, LiveManifest);

    manifest->arena = arena;
    manifest->file = copy_manifest_file(arena, file);
    if (!read_manifest(manifest, bytes, err) || !note_vectors(live, manifest, err)) {
        drop_manifest(live, manifest);
        return false;
    }
    if (manifest->count == 0) {
        drop_manifest(live, manifest);
        return true;
    }
    manifest->number = live_deletes_count(live);
    BUF_PUSH(&live->manifests, LiveManifest *, manifest);
    return true;
}

size_t
live_deletes_count(const LiveDeletes *live)
{
    return BUF_COUNT(&live->manifests, LiveManifest *);
}

LiveManifest *
live_deletes_at(const LiveDeletes *live, size_t number)
{
    return BUF_AT(&live->manifests, LiveManifest *, number);
}

void
live_deletes_remove(LiveDeletes *live, Str manifest_path)
{
    size_t count = live_deletes_count(live);

    for (size_t i = 0; i < count; i++) {
        LiveManifest *manifest = live_deletes_at(live, i);
        LiveManifest *last = live_deletes_at(live, count - 1);

        if (!str_eq(manifest->file.path, manifest_path))
            continue;
        BUF_AT(&live->manifests, LiveManifest *, i) = last;
        last->number = i;
        live->manifests.len -= sizeof(LiveManifest *);
        drop_manifest(live, manifest);
        return;
    }
}

void
live_deletes_free(LiveDeletes *live)
{
    if (live == NULL)
        return;
    for (size_t i = 0; i < live_deletes_count(live); i++)
        drop_manifest(live, live_deletes_at(live, i));
    buf_done(&live->manifests);
    free(live);
}
