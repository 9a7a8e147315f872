#include "query/file_cache.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/hash.h"

static bool
key_of(FileCache *cache, Arena *arena, Str uri, const char **out_key, Error *err)
{
    *out_key = store_key(cache->store, arena, arena_str(arena, uri).ptr);
    if (*out_key == NULL)
        return FAIL(err, ERR_INPUT, "%.*s is not below the warehouse", STR_ARG(uri));
    return true;
}

static bool
fetch(FileCache *cache, const char *key, const char *path, Error *err)
{
    struct stat status;
    bool found = false;

    if (stat(path, &status) == 0)
        return true;
    TRY(folder_make(cache->folder, 0700, err));
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
        Hash128 hash = hash128(uri.ptr, uri.len, 0);

        path = arena_printf(arena, "%s/%016" PRIx64 "%016" PRIx64 ".parquet", cache->folder,
                            hash.high, hash.low);
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
