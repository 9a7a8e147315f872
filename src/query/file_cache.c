#include "query/file_cache.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/hash.h"

enum { PART_SUFFIX_MAX = 16 }; /* of files that are being written */

static bool
key_of(FileCache *cache, Arena *arena, Str uri, const char **out_key, Error *err)
{
    *out_key = store_key(cache->store, arena, arena_str(arena, uri).ptr);
    if (*out_key == NULL)
        return FAIL(err, ERR_INPUT, "%.*s is not below the warehouse", STR_ARG(uri));
    return true;
}

static bool
is_dots(const char *part, size_t length)
{
    return length <= 2 && strspn(part, ".") >= length;
}

/* The key itself, which is where the stream leaves what it uploads (state/cache/<key>); or a hash
 * of it, when it leads out of the folder or is no path here. */
static const char *
path_of(const FileCache *cache, Arena *arena, const char *key)
{
    for (const char *part = key; part != NULL; part = strchr(part, '/')) {
        part += part == key ? 0 : 1;

        size_t length = strcspn(part, "/");

        if (length == 0 || length > NAME_MAX - PART_SUFFIX_MAX || is_dots(part, length) ||
            strlen(cache->folder) + strlen(key) > PATH_MAX - PART_SUFFIX_MAX) {
            Hash128 hash = hash128(key, strlen(key), 0);

            return arena_printf(arena, "%s/%016" PRIx64 "%016" PRIx64, cache->folder, hash.high,
                                hash.low);
        }
    }
    return arena_printf(arena, "%s/%s", cache->folder, key);
}

static bool
fetch(FileCache *cache, const char *key, const char *path, Error *err)
{
    struct stat status;
    bool found = false;

    if (stat(path, &status) == 0)
        return true;
    TRY(folder_make_above(path, 0700, err));
    TRY(store_fetch(cache->store, key, path, &found, err));
    if (!found)
        return FAIL(err, ERR_INPUT, "%s is not there", key);
    if (stat(path, &status) == 0)
        cache->bytes += (uint64_t) status.st_size;
    cache->files++;
    return true;
}

bool
file_cache_path(FileCache *cache, Arena *arena, Str uri, const char **out_path, Error *err)
{
    const char *key = NULL;

    TRY(key_of(cache, arena, uri, &key, err));

    const char *path = store_local_path(cache->store, arena, key);

    if (path == NULL) {
        path = path_of(cache, arena, key);
        TRY(fetch(cache, key, path, err));
    }
    *out_path = path;
    return true;
}

bool
file_cache_read(FileCache *cache, Arena *arena, Str uri, Buf *out, Error *err)
{
    const char *key = NULL;
    bool found = false;

    TRY(key_of(cache, arena, uri, &key, err));
    TRY(store_get(cache->store, key, out, &found, NULL, err));
    if (!found)
        return FAIL(err, ERR_INPUT, "%.*s is not there", STR_ARG(uri));
    return true;
}

bool
file_cache_read_range(FileCache *cache, Str uri, StoreRange range, Buf *out, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *key = NULL;
    bool found = false;

    TRY(key_of(cache, arena, uri, &key, err));
    TRY(store_get_range(cache->store, key, range, out, &found, err));
    if (!found)
        return FAIL(err, ERR_INPUT, "%.*s is not there", STR_ARG(uri));
    return true;
}
