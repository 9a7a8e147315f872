#include "store/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "store/file_evict.h"
#include "store/fs_file.h"

enum {
    SUFFIX_MAX = 32, /* of stamps and of files that are being written */
    TOUCH_S = 60,    /* a stamp's time is so exact */
};

static bool
key_of(const FileCache *cache, Arena *arena, Str uri, const char **out_key, Error *err)
{
    *out_key = store_key(cache->store, arena, arena_str(arena, uri).ptr);
    if (*out_key == NULL)
        return FAIL(err, ERR_INPUT, "%.*s is not below the warehouse %s", STR_ARG(uri),
                    cache->store->base_uri);
    return true;
}

static bool
missing(Str uri, Error *err)
{
    return FAIL(err, ERR_INPUT,
                "file %.*s is missing: the table's metadata names it, so somebody removed "
                "it\n" HINT_COPY_AGAIN,
                STR_ARG(uri));
}

/* The key itself, whose parts are names (store.h); or a hash of it, when it is too long for a path
 * here. */
static const char *
path_of(const FileCache *cache, Arena *arena, const char *key)
{
    size_t longest = 0;

    for (const char *part = key; *part != '\0'; part += *part == '/') {
        size_t length = strcspn(part, "/");

        longest = length > longest ? length : longest;
        part += length;
    }
    if (longest <= NAME_MAX - SUFFIX_MAX &&
        strlen(cache->folder) + strlen(key) <= PATH_MAX - SUFFIX_MAX)
        return arena_printf(arena, "%s/%s", cache->folder, key);

    Hash128 hash = hash128(key, strlen(key), 0);

    return arena_printf(arena, "%s/%016" PRIx64 "%016" PRIx64, cache->folder, hash.high, hash.low);
}

const char *
file_cache_place(const FileCache *cache, Arena *arena, const char *key)
{
    const char *local = store_local_path(cache->store, arena, key);

    return local != NULL ? local : path_of(cache, arena, key);
}

/* --- stamps ---------------------------------------------------------------------------------- */

/* The content of a stamp file, of this machine only. */
typedef struct Stamp {
    uint64_t magic;
    int64_t bytes;
    uint64_t inode;
    int64_t ctime_s;
    int64_t ctime_ns;
    Hash128 hash;
} Stamp;

static const uint64_t STAMP_MAGIC = 0x31706d6174736277; /* "wbstamp1" */

/* A clock that was set back leaves times in the future. */
static void
touch(int fd)
{
    struct stat status;

    if (fstat(fd, &status) == 0 && llabs(time(NULL) - status.st_mtim.tv_sec) >= TOUCH_S)
        (void) !futimens(fd, NULL);
}

/* The file is being used. */
static bool
stamp_read(const char *path, Arena *arena, Stamp *out)
{
    const char *stamp_path = arena_printf(arena, "%s.stamp", path);
    int fd = open(stamp_path, O_RDONLY | O_CLOEXEC);
    bool whole = fd >= 0 && read(fd, out, sizeof *out) == (ssize_t) sizeof *out;

    if (fd >= 0) {
        touch(fd);
        close(fd);
    }
    return whole && out->magic == STAMP_MAGIC;
}

/* A stamp that cannot be written, or that a power cut takes, costs a download. */
static void
stamp_write(const char *path, Arena *arena, const Stamp *stamp)
{
    uint64_t random;

    random_bytes(&random, sizeof random);

    const char *part = arena_printf(arena, "%s.%016" PRIx64 ".part", path, random);
    const char *stamp_path = arena_printf(arena, "%s.stamp", path);
    int fd = folder_create_file(part, O_WRONLY, 0600);

    if (fd < 0)
        return;

    bool done = write(fd, stamp, sizeof *stamp) == (ssize_t) sizeof *stamp;

    if (close(fd) != 0 || !done || rename(part, stamp_path) != 0)
        (void) !unlink(part);
}

/* What the stamp of an open file has to be; the hash is left out. */
static bool
stamp_of(int fd, Stamp *out)
{
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0)
        return false;
    *out = (Stamp){
        .magic = STAMP_MAGIC,
        .bytes = (int64_t) status.st_size,
        .inode = (uint64_t) status.st_ino,
        .ctime_s = (int64_t) status.st_ctim.tv_sec,
        .ctime_ns = (int64_t) status.st_ctim.tv_nsec,
    };
    return true;
}

/* Whether the file is what was put there. */
static bool
is_whole(const char *path, Arena *arena)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Stamp wanted, now;
    bool whole =
        stamp_of(fd, &now) && stamp_read(path, arena, &wanted) && now.bytes == wanted.bytes;

    if (whole && (now.inode != wanted.inode || now.ctime_s != wanted.ctime_s ||
                  now.ctime_ns != wanted.ctime_ns)) {
        whole = hash128_file(fd, &now.hash) && hash128_eq(now.hash, wanted.hash);
        if (whole)
            stamp_write(path, arena, &now);
    }
    if (fd >= 0)
        close(fd);
    return whole;
}

/* Vouch for a file that was just put there: its content is on the disk from now on. */
static bool
vouch(const char *path, Arena *arena, int64_t *out_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Stamp stamp;
    bool done =
        fd >= 0 && fdatasync(fd) == 0 && stamp_of(fd, &stamp) && hash128_file(fd, &stamp.hash);

    if (fd >= 0)
        close(fd);
    if (done) {
        stamp_write(path, arena, &stamp);
        *out_bytes = stamp.bytes;
    }
    return done;
}

/* --- files ----------------------------------------------------------------------------------- */

static bool
fetch(FileCache *cache, Arena *arena, const char *key, const char *path, bool *out_found,
      Error *err)
{
    int64_t bytes = 0;

    if (access(path, F_OK) == 0)
        log_debug("a file of the cache is not what was put there: fetched again",
                  LOG_STR("file", key));
    TRY(folder_make_above(path, 0700, err));
    TRY(store_fetch(cache->store, key, path, out_found, err));
    if (*out_found && !vouch(path, arena, &bytes))
        return FAIL(err, ERR_TRANSIENT, "keep %s: %m", path);
    cache->fetched_bytes += (uint64_t) bytes;
    file_evict(cache, bytes);
    return true;
}

bool
file_cache_path(FileCache *cache, FileHold *hold, Arena *arena, Str uri, const char **out_path,
                Error *err)
{
    const char *key = NULL;
    bool found = true;

    TRY(key_of(cache, arena, uri, &key, err));

    const char *path = file_cache_place(cache, arena, key);

    if (store_local_path(cache->store, arena, key) != NULL) {
        found = access(path, R_OK) == 0;
        if (!found && errno != ENOENT && errno != ENOTDIR)
            return fs_fail(err, "open", path);
    } else {
        TRY(file_hold_add(hold, cache, path, err));
        if (!is_whole(path, arena))
            TRY(fetch(cache, arena, key, path, &found, err));
    }
    if (!found)
        return missing(uri, err);
    *out_path = path;
    return true;
}

bool
file_cache_put(FileCache *cache, const char *key, const char *path, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    int64_t bytes;

    TRY(store_put_file(cache->store, key, path, err));
    if (store_local_path(cache->store, arena, key) != NULL)
        return true;

    const char *kept = path_of(cache, arena, key);

    if (!folder_make_above(kept, 0700, err)) {
        err->kind = ERR_NONE;
        (void) !unlink(path);
    } else if (rename(path, kept) != 0 || !vouch(kept, arena, &bytes)) {
        (void) !unlink(path);
    } else {
        file_evict(cache, bytes);
    }
    return true;
}

bool
file_cache_remove(const FileCache *cache, const char *key, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();

    TRY(store_remove(cache->store, key, err));
    if (store_local_path(cache->store, arena, key) == NULL) {
        const char *path = path_of(cache, arena, key);

        (void) !unlink(path);
        (void) !unlink(arena_printf(arena, "%s.stamp", path));
    }
    return true;
}

/* --- objects that are not kept --------------------------------------------------------------- */

bool
file_cache_read(const FileCache *cache, Arena *arena, Str uri, Buf *out, Error *err)
{
    const char *key = NULL;
    bool found = false;

    TRY(key_of(cache, arena, uri, &key, err));
    TRY(store_get(cache->store, key, out, &found, NULL, err));
    if (!found)
        return missing(uri, err);
    return true;
}

bool
file_cache_read_range(const FileCache *cache, Str uri, StoreRange range, Buf *out, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *key = NULL;
    bool found = false;

    TRY(key_of(cache, arena, uri, &key, err));
    TRY(store_get_range(cache->store, key, range, out, &found, err));
    if (!found)
        return missing(uri, err);
    return true;
}
