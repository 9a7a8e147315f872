#include "store/file_evict.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "store/fs_file.h"

enum {
    STEPS = 10,         /* of the bound: how much comes until the folder is counted again */
    PART_S_MAX = 86400, /* a file that nobody wrote to for so long is litter of a dead process */
};

static void
close_dir(DIR **dir)
{
    if (*dir != NULL)
        closedir(*dir);
}

static void
close_walk(FTS **walk)
{
    if (*walk != NULL)
        fts_close(*walk);
}

/* Waits: nobody has the lock for longer than it takes to remove files. */
static bool
lock_folder(const FileCache *cache, Arena *arena, int operation, int *out_fd, Error *err)
{
    const char *path = arena_printf(arena, "%s.lock", cache->folder);
    int fd = folder_create_file(path, O_RDWR, 0600);

    if (fd < 0 && errno == ENOENT) {
        TRY(folder_make_above(path, 0700, err));
        fd = folder_create_file(path, O_RDWR, 0600);
    }
    if (fd < 0)
        return fs_fail(err, "open", path);
    while (flock(fd, operation) != 0)
        if (errno != EINTR) {
            fs_fail(err, "lock", path);
            close(fd);
            return false;
        }
    *out_fd = fd;
    return true;
}

/* --- holds ----------------------------------------------------------------------------------- */

static const char *
holds_folder(const FileCache *cache, Arena *arena)
{
    return arena_printf(arena, "%s.holds", cache->folder);
}

/* A file's path below the folder, which itself may go by several paths. */
static const char *
name_of(const FileCache *cache, const char *path)
{
    size_t above = strlen(cache->folder) + 1;

    assert(strlen(path) > above && strncmp(path, cache->folder, above - 1) == 0);
    return path + above;
}

static Hash128
hash_of(const char *name)
{
    return hash128(name, strlen(name), 0);
}

static bool
open_hold(FileHold *hold, const char *folder, Error *err)
{
    uint64_t random;
    AUTO_BUF Buf path = {0};

    random_bytes(&random, sizeof random);
    buf_printf(&path, "%s/%016" PRIx64, folder, random);

    int fd = folder_create_file(buf_text(&path), O_WRONLY | O_APPEND, 0600);

    if (fd < 0)
        return fs_fail(err, "open", buf_text(&path));
    hold->fd = fd;
    hold->path = xstrdup(buf_text(&path));
    return flock(fd, LOCK_EX) == 0 || fs_fail(err, "lock", hold->path);
}

bool
file_hold_add(FileHold *hold, const FileCache *cache, const char *path, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO(fs_close_fd) int lock = -1;
    Hash128 hash = hash_of(name_of(cache, path));

    if (hold->path == NULL)
        TRY(folder_make(holds_folder(cache, arena), 0700, err));
    TRY(lock_folder(cache, arena, LOCK_SH, &lock, err));
    if (hold->path == NULL)
        TRY(open_hold(hold, holds_folder(cache, arena), err));
    errno = ENOSPC; /* a short write */
    return write(hold->fd, &hash, sizeof hash) == (ssize_t) sizeof hash ||
           fs_fail(err, "write", hold->path);
}

void
file_hold_done(FileHold *hold)
{
    if (hold->path == NULL)
        return;
    (void) !unlink(hold->path);
    close(hold->fd);
    free(hold->path);
    *hold = (FileHold){0};
}

/* What a hold names; nothing when its owner is gone. Under the lock: it is whole. */
static bool
read_hold(int folder, const char *name, Buf *held)
{
    AUTO(fs_close_fd) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return errno == ENOENT;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        (void) !unlinkat(folder, name, 0);
        return true;
    }
    if (errno != EWOULDBLOCK || fstat(fd, &status) != 0)
        return false;

    size_t size = (size_t) status.st_size / sizeof(Hash128) * sizeof(Hash128);

    return pread(fd, buf_push(held, size), size, 0) == (ssize_t) size;
}

static int
compare_hashes(const void *a, const void *b)
{
    return hash128_cmp(*(const Hash128 *) a, *(const Hash128 *) b);
}

/* What is held by anybody, in order. false: it cannot be told. */
static bool
read_holds(const FileCache *cache, Arena *arena, Buf *held)
{
    AUTO(close_dir) DIR *dir = opendir(holds_folder(cache, arena));

    if (dir == NULL)
        return errno == ENOENT;
    for (;;) {
        errno = 0;

        struct dirent *entry = readdir(dir); /* NOLINT(concurrency-mt-unsafe): dir is ours */

        if (entry == NULL && errno != 0)
            return false;
        if (entry == NULL)
            break;
        if (entry->d_name[0] != '.' && !read_hold(dirfd(dir), entry->d_name, held))
            return false;
    }
    if (held->len > 0)
        qsort(held->ptr, BUF_COUNT(held, Hash128), sizeof(Hash128), compare_hashes);
    return true;
}

/* --- files ----------------------------------------------------------------------------------- */

typedef struct CachedFile {
    const char *name;
    int64_t bytes;
    int64_t used_ns; /* since 1970 */
} CachedFile;

static int64_t
modified_ns(const struct stat *status)
{
    return (int64_t) status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

static int
compare_use(const void *a, const void *b)
{
    const CachedFile *left = a;
    const CachedFile *right = b;

    if (left->used_ns != right->used_ns)
        return left->used_ns < right->used_ns ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Stamps go with their files; what is being written is nobody's business but the writer's. */
static bool
counts(const FTSENT *entry)
{
    Str name = str_of(entry->fts_name);

    if (entry->fts_info != FTS_F || str_ends(name, STR(".stamp")))
        return false;
    return !str_ends(name, STR(".part")) ||
           time(NULL) - entry->fts_statp->st_mtim.tv_sec > PART_S_MAX;
}

static int64_t
used_ns(const FTSENT *entry)
{
    char stamp[PATH_MAX];
    struct stat status;
    int n = snprintf(stamp, sizeof stamp, "%s.stamp", entry->fts_path);

    return n < (int) sizeof stamp && stat(stamp, &status) == 0 ? modified_ns(&status)
                                                               : modified_ns(entry->fts_statp);
}

/* All files and the sum of their sizes. The folder may be a link, to another disk. What cannot be
 * looked at is left out. */
static int64_t
count_files(const FileCache *cache, Arena *arena, Buf *files)
{
    char *folders[] = {arena_strdup(arena, cache->folder), NULL};
    AUTO(close_walk)
    FTS *walk = fts_open(folders, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    int64_t sum = 0;

    for (;;) {
        const FTSENT *entry = walk == NULL ? NULL : fts_read(walk);

        if (entry == NULL)
            return sum;
        if (!counts(entry))
            continue;
        BUF_PUSH(files, CachedFile,
                 ((CachedFile){.name = arena_strdup(arena, name_of(cache, entry->fts_path)),
                               .bytes = (int64_t) entry->fts_statp->st_size,
                               .used_ns = used_ns(entry)}));
        sum += (int64_t) entry->fts_statp->st_size;
    }
}

static bool
is_held(const Buf *held, const char *name)
{
    Hash128 hash = hash_of(name);

    return held->len > 0 &&
           bsearch(&hash, held->ptr, BUF_COUNT(held, Hash128), sizeof hash, compare_hashes) != NULL;
}

/* Those used the longest ago, until the sum is small enough. Their stamps go first: a file without
 * one is fetched again. *out_errno: of the last one that could not be removed, else 0. */
static int64_t
evict_files(const FileCache *cache, const Buf *files, const Buf *held, int64_t sum, int *out_errno)
{
    AUTO_BUF Buf path = {0};
    int64_t enough = cache->bytes_max - cache->bytes_max / STEPS;

    *out_errno = 0;
    for (size_t i = 0; i < BUF_COUNT(files, CachedFile) && sum > enough; i++) {
        const CachedFile *file = &BUF_AT(files, CachedFile, i);

        if (is_held(held, file->name))
            continue;
        buf_reset(&path);
        buf_printf(&path, "%s/%s.stamp", cache->folder, file->name);
        (void) !unlink(buf_text(&path));
        buf_reset(&path);
        buf_printf(&path, "%s/%s", cache->folder, file->name);
        if (unlink(buf_text(&path)) == 0 || errno == ENOENT)
            sum -= file->bytes;
        else
            *out_errno = errno;
    }
    return sum;
}

static bool
sweep(const FileCache *cache, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf files = {0};
    AUTO_BUF Buf held = {0};
    AUTO(fs_close_fd) int lock = -1;
    int64_t before = count_files(cache, arena, &files);
    int failed;

    if (files.len == 0 || before <= cache->bytes_max - cache->bytes_max / STEPS)
        return true;
    qsort(files.ptr, BUF_COUNT(&files, CachedFile), sizeof(CachedFile), compare_use);
    TRY(lock_folder(cache, arena, LOCK_EX, &lock, err));
    if (!read_holds(cache, arena, &held))
        return fs_fail(err, "read", holds_folder(cache, arena));

    int64_t after = evict_files(cache, &files, &held, before, &failed);

    log_debug("evicted files of the cache", LOG_STR("folder", cache->folder),
              LOG_INT("bytes", before - after), LOG_INT("left", after));
    if (failed != 0 && after > cache->bytes_max) {
        errno = failed;
        return fs_fail(err, "remove files of", cache->folder);
    }
    return true;
}

void
file_evict(FileCache *cache, int64_t bytes)
{
    Error err = {0};
    int64_t left = atomic_fetch_sub(&cache->room, bytes) - bytes;

    if (left >= 0 || left + bytes < 0) /* below: another thread is about it */
        return;
    if (sweep(cache, &err))
        atomic_store(&cache->grows, false);
    else if (!atomic_exchange(&cache->grows, true)) /* the next one may; said once */
        log_warn("cannot evict files of the cache: it grows", LOG_STR("error", err.msg));
    atomic_store(&cache->room, cache->bytes_max / STEPS);
}
