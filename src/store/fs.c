/* fs.c - a store in a folder of a file system.
 *
 * An object is a file and its key the path below the root. Nothing is ever written in place: the
 * bytes go into a temporary file of the same folder, are fsynced, and appear under their name by
 * one atomic step - rename(2), or link(2) where only one may win - and then the folder is fsynced,
 * because a name is data of the folder.
 *
 * put_match has no single system call: it holds flock(2) on a lock file of the folder while it
 * compares and renames. */
#include "store/kinds.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/folder.h"
#include "base/hash.h"
#include "store/fs_file.h"

/* Deeper than any lake; a link that points upward ends here. */
enum { FOLDER_DEPTH_MAX = 64 };

#define LITTER_AGE_US ((int64_t) 24 * 3600 * 1000000)

typedef struct FsStore {
    Store store;
    char *root;
    FsFolders folders;
} FsStore;

static FsStore *
fs_of(Store *store)
{
    assert(store->ops == &fs_store_ops);
    return (FsStore *) store;
}

static void
close_dir(DIR **dir)
{
    if (*dir != NULL)
        closedir(*dir);
}

/* ---- reading ---- */

/* *out_fd = -1: there is no such object. */
static bool
open_object(const char *path, int *out_fd, struct stat *st, Error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        *out_fd = -1;
        return true;
    }
    if (fd < 0)
        return fs_fail(err, "open", path);
    if (fstat(fd, st) != 0) {
        fs_fail(err, "stat", path);
        close(fd);
        return false;
    }
    if (S_ISDIR(st->st_mode)) {
        close(fd);
        fd = -1;
    }
    *out_fd = fd;
    return true;
}

static bool
read_object(const char *path, Buf *out, bool *out_found, Error *err)
{
    struct stat st;
    AUTO(fs_close_fd) int fd = -1;

    TRY(open_object(path, &fd, &st, err));
    *out_found = fd >= 0;
    if (fd < 0)
        return true;
    buf_reset(out);
    buf_reserve(out, (size_t) st.st_size + 1);
    for (;;) {
        buf_reserve(out, 1);

        ssize_t n = read(fd, out->ptr + out->len, out->cap - out->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fs_fail(err, "read", path);
        if (n == 0)
            return true;
        out->len += (size_t) n;
    }
}

/* Short when the file is. */
static bool
fs_get_range(Store *store, const char *key, StoreRange range, Buf *out, bool *out_found, Error *err)
{
    AUTO(fs_close_fd) int fd = -1;
    char path[PATH_MAX];
    struct stat st;

    TRY(fs_join(fs_of(store)->root, key, path, err));
    TRY(open_object(path, &fd, &st, err));
    *out_found = fd >= 0;
    if (fd < 0 || range.length > st.st_size) /* whatever somebody claims, no such buffer is made */
        return true;
    buf_reserve(out, (size_t) range.length);
    while ((int64_t) out->len < range.length) {
        ssize_t n = pread(fd, out->ptr + out->len, (size_t) range.length - out->len,
                          range.offset + (int64_t) out->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fs_fail(err, "read", path);
        if (n == 0)
            break;
        out->len += (size_t) n;
    }
    return true;
}

static void
version_of(Str bytes, StoreVersion *out)
{
    Hash128 hash = hash128(bytes.ptr, bytes.len, 0);

    snprintf(out->text, sizeof out->text, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

static bool
fs_get(Store *store, const char *key, Buf *out, bool *out_found, StoreVersion *out_version,
       Error *err)
{
    char path[PATH_MAX];

    TRY(fs_join(fs_of(store)->root, key, path, err));
    TRY(read_object(path, out, out_found, err));
    if (*out_found)
        version_of(buf_view(out), out_version);
    return true;
}

static bool
fs_stat(Store *store, const char *key, bool *out_found, int64_t *out_bytes, Error *err)
{
    char path[PATH_MAX];
    struct stat st;

    TRY(fs_join(fs_of(store)->root, key, path, err));
    if (stat(path, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return fs_fail(err, "stat", path);
        *out_found = false;
        return true;
    }
    *out_found = !S_ISDIR(st.st_mode);
    *out_bytes = st.st_size;
    return true;
}

static bool
fs_fetch(Store *store, const char *key, const char *path, bool *out_found, Error *err)
{
    AUTO_FS_TMP FsTmp tmp = {.fd = -1};
    AUTO(fs_close_fd) int from = -1;
    char from_path[PATH_MAX];
    struct stat st;

    TRY(fs_join(fs_of(store)->root, key, from_path, err));
    TRY(open_object(from_path, &from, &st, err));
    *out_found = from >= 0;
    if (from < 0)
        return true;
    TRY(fs_part_path(path, tmp.path, err));
    tmp.fd = open(tmp.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (tmp.fd < 0)
        return fs_fail(err, "open", tmp.path);
    TRY(fs_tmp_copy(&tmp, from, from_path, err));
    if (rename(tmp.path, path) != 0)
        return fs_fail(err, "rename to", path);
    tmp.path[0] = '\0';
    return true;
}

/* ---- writing ---- */

static bool
fs_put(Store *store, const char *key, Str bytes, Error *err)
{
    AUTO_FS_TMP FsTmp tmp = {.fd = -1};
    FsStore *fs = fs_of(store);
    char path[PATH_MAX];

    TRY(fs_join(fs->root, key, path, err));
    TRY(fs_tmp_write(&fs->folders, path, bytes, &tmp, err));
    return fs_tmp_rename(&tmp, path, err);
}

static bool
fs_put_absent(Store *store, const char *key, Str bytes, bool *out_created, Error *err)
{
    AUTO_FS_TMP FsTmp tmp = {.fd = -1};
    FsStore *fs = fs_of(store);
    char path[PATH_MAX];

    TRY(fs_join(fs->root, key, path, err));
    TRY(fs_tmp_write(&fs->folders, path, bytes, &tmp, err));
    return fs_tmp_link(&tmp, path, out_created, err);
}

/* Move a file of ours into the store. *out_moved = false: it is on another file system. */
static bool
move_file(FsStore *fs, const char *path, const char *target, bool *out_moved, Error *err)
{
    char folder[PATH_MAX];

    fs_folder_of(target, folder);
    TRY(FAULT("store.rename", err));
    for (int tries = 0; tries < FS_FOLDER_TRIES_MAX; tries++) {
        TRY(fs_folders_ensure(&fs->folders, folder, err));
        if (rename(path, target) == 0) {
            *out_moved = true;
            return fs_sync_folder(folder, err);
        }
        if (errno == EXDEV) {
            *out_moved = false;
            return true;
        }
        if (errno != ENOENT)
            break;
        fs_folders_forget(&fs->folders);
    }
    return fs_fail(err, "rename to", target);
}

static bool
fs_put_file(Store *store, const char *key, const char *path, Error *err)
{
    AUTO_FS_TMP FsTmp tmp = {.fd = -1};
    AUTO(fs_close_fd) int from = open(path, O_RDONLY | O_CLOEXEC);
    FsStore *fs = fs_of(store);
    char target[PATH_MAX];
    bool moved = false;

    TRY(fs_join(fs->root, key, target, err));
    if (from < 0)
        return fs_fail(err, "open", path);
    TRY(fs_sync_file(from, path, err));
    TRY(move_file(fs, path, target, &moved, err));
    if (moved)
        return true;
    TRY(fs_tmp_open(&fs->folders, target, &tmp, err));
    TRY(fs_tmp_copy(&tmp, from, path, err));
    return fs_tmp_rename(&tmp, target, err);
}

/* Whoever emptied the folder may have removed the file while we waited: another one of its name is
 * another lock. */
static bool
is_still_there(int fd, const char *path)
{
    struct stat ours;
    struct stat now;

    return fstat(fd, &ours) == 0 && stat(path, &now) == 0 && ours.st_ino == now.st_ino &&
           ours.st_dev == now.st_dev;
}

/* Closing the descriptor gives the lock back. The file stays for as long as the folder has anything
 * else. */
static bool
lock_folder(FsStore *fs, const char *target, int *out_fd, Error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX];

    fs_folder_of(target, folder);
    TRY(fs_join(folder, FS_LOCK_NAME, path, err));
    for (int tries = 0; tries < FS_FOLDER_TRIES_MAX; tries++) {
        TRY(fs_folders_ensure(&fs->folders, folder, err));
        *out_fd = folder_create_file(path, O_RDWR, 0666);
        if (*out_fd < 0 && errno != ENOENT)
            return fs_fail(err, "open", path);
        while (*out_fd >= 0 && flock(*out_fd, LOCK_EX) != 0)
            if (errno != EINTR)
                return fs_fail(err, "lock", path);
        if (*out_fd >= 0 && is_still_there(*out_fd, path))
            return true;
        if (*out_fd >= 0)
            close(*out_fd);
        *out_fd = -1;
        fs_folders_forget(&fs->folders);
    }
    return FAIL(err, ERR_TRANSIENT, "folder %s is removed again and again", folder);
}

static bool
has_only_lock(const char *folder)
{
    AUTO(close_dir) DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool only = dir != NULL;

    while (only) {
        entry = readdir(dir); /* NOLINT(concurrency-mt-unsafe): dir is ours */
        if (entry == NULL)
            break;
        only = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
               strcmp(entry->d_name, FS_LOCK_NAME) == 0;
    }
    return only;
}

/* A folder without objects keeps no lock file. Nobody has it locked then, or it stays. */
static void
remove_idle_lock(const char *folder)
{
    AUTO(fs_close_fd) int fd = -1;
    char path[PATH_MAX];
    Error ignored;

    if (!has_only_lock(folder) || !fs_join(folder, FS_LOCK_NAME, path, &ignored))
        return;
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_still_there(fd, path) &&
        has_only_lock(folder))
        (void) !unlink(path);
}

static bool
fs_put_match(/* NOLINT(readability-function-size): as in store.h */
             Store *store, const char *key, const StoreVersion *expected, Str bytes,
             bool *out_swapped, StoreVersion *out_version, Error *err)
{
    AUTO_FS_TMP FsTmp tmp = {.fd = -1};
    AUTO(fs_close_fd) int lock = -1;
    AUTO_BUF Buf present = {0};
    FsStore *fs = fs_of(store);
    StoreVersion version = {0};
    char path[PATH_MAX];
    bool found;

    version_of(bytes, out_version);
    if (expected->text[0] == '\0')
        return fs_put_absent(store, key, bytes, out_swapped, err);
    TRY(fs_join(fs->root, key, path, err));
    TRY(lock_folder(fs, path, &lock, err));
    TRY(read_object(path, &present, &found, err));
    if (found)
        version_of(buf_view(&present), &version);
    if (!found || strcmp(version.text, expected->text) != 0) {
        *out_swapped = false;
        return true;
    }
    TRY(fs_tmp_write(&fs->folders, path, bytes, &tmp, err));
    TRY(fs_tmp_rename(&tmp, path, err));
    *out_swapped = true;
    return true;
}

/* Folders that have become empty go too, as they do in an object store. */
static bool
fs_remove(Store *store, const char *key, Error *err)
{
    FsStore *fs = fs_of(store);
    char path[PATH_MAX];
    char folder[PATH_MAX];

    TRY(fs_join(fs->root, key, path, err));
    if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)
        return fs_fail(err, "unlink", path);
    for (;;) {
        fs_folder_of(path, folder);
        if (strlen(folder) <= strlen(fs->root))
            return true;
        remove_idle_lock(folder);
        if (rmdir(folder) != 0)
            return true;
        memcpy(path, folder, sizeof path);
    }
}

/* ---- listing ---- */

/* A walk over the tree: folders still to be read, without recursion. */
typedef struct Walk {
    FsStore *fs;
    Arena *arena;
    Str prefix;
    Buf folders; /* of Str, relative to the root, "" or with a slash at the end */
    Buf objects; /* of StoreObject */
} Walk;

static void
walk_done(Walk *walk)
{
    buf_done(&walk->folders);
    buf_done(&walk->objects);
}

/* Whether a key, or a folder's keys, can have the prefix: one must be the beginning of the other.
 */
static bool
may_match(Str path, Str prefix)
{
    size_t n = path.len < prefix.len ? path.len : prefix.len;

    return n == 0 || memcmp(path.ptr, prefix.ptr, n) == 0;
}

static bool
is_young(const struct stat *st)
{
    return clock_wall_us() - (int64_t) st->st_mtim.tv_sec * 1000000 < LITTER_AGE_US;
}

static size_t
depth_of(Str folder)
{
    size_t depth = 0;

    for (size_t i = 0; i < folder.len; i++)
        depth += folder.ptr[i] == '/';
    return depth;
}

static bool
walk_entry(Walk *walk, int folder_fd, Str folder, const char *name, Error *err)
{
    struct stat st;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || !str_is_utf8(str_of(name)) ||
        fstatat(folder_fd, name, &st, 0) != 0) /* gone meanwhile, or a link to nothing */
        return true;

    Str path =
        arena_strf(walk->arena, "%.*s%s%s", STR_ARG(folder), name, S_ISDIR(st.st_mode) ? "/" : "");

    if (S_ISDIR(st.st_mode)) {
        if (!may_match(path, walk->prefix))
            return true;
        if (depth_of(path) > FOLDER_DEPTH_MAX)
            return FAIL(err, ERR_INPUT, "%s/%s: more than %d folders deep", walk->fs->root,
                        path.ptr, FOLDER_DEPTH_MAX);
        BUF_PUSH(&walk->folders, Str, path);
        return true;
    }
    if (!str_starts(path, walk->prefix) || strcmp(name, FS_LOCK_NAME) == 0 ||
        (str_starts(str_of(name), STR(FS_TMP_PREFIX)) && is_young(&st)))
        return true;

    StoreObject object = {.key = path,
                          .bytes = st.st_size,
                          .modified_us =
                              (int64_t) st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000};

    BUF_PUSH(&walk->objects, StoreObject, object);
    return true;
}

static bool
walk_folder(Walk *walk, Str folder, Error *err)
{
    char path[PATH_MAX];

    TRY(fs_join(walk->fs->root, folder.len == 0 ? "." : folder.ptr, path, err));

    AUTO(close_dir) DIR *dir = opendir(path);

    if (dir == NULL)
        return errno == ENOENT || errno == ENOTDIR || fs_fail(err, "open", path);
    for (;;) {
        errno = 0;

        struct dirent *entry = readdir(dir); /* NOLINT(concurrency-mt-unsafe): dir is ours */

        if (entry == NULL)
            return errno == 0 || fs_fail(err, "read", path);
        TRY(walk_entry(walk, dirfd(dir), folder, entry->d_name, err));
    }
}

static bool
fs_list(Store *store, const char *prefix, Arena *arena, StoreObject **out_objects,
        size_t *out_count, Error *err)
{
    AUTO(walk_done) Walk walk = {.fs = fs_of(store), .arena = arena, .prefix = str_of(prefix)};
    const char *slash = strrchr(prefix, '/');
    Str start = {prefix, slash == NULL ? 0 : (size_t) (slash + 1 - prefix)};

    BUF_PUSH(&walk.folders, Str, arena_str(arena, start));
    while (walk.folders.len > 0) {
        walk.folders.len -= sizeof(Str);

        Str folder = BUF_AT(&walk.folders, Str, BUF_COUNT(&walk.folders, Str));

        TRY(walk_folder(&walk, folder, err));
    }

    size_t count = BUF_COUNT(&walk.objects, StoreObject);
    StoreObject *objects = ARENA_ARRAY(arena, StoreObject, count);

    if (count > 0)
        memcpy(objects, walk.objects.ptr, walk.objects.len);
    *out_objects = objects;
    *out_count = count;
    return true;
}

static bool
fs_list_folders(Store *store, const char *prefix, Arena *arena, Str **out_names, size_t *out_count,
                Error *err)
{
    AUTO(walk_done) Walk walk = {.fs = fs_of(store), .arena = arena, .prefix = str_of(prefix)};

    TRY(walk_folder(&walk, str_of(prefix), err));

    size_t count = BUF_COUNT(&walk.folders, Str);
    Str *names = ARENA_ARRAY(arena, Str, count);

    for (size_t i = 0; i < count; i++) {
        Str path = BUF_AT(&walk.folders, Str, i);

        names[i] = (Str){path.ptr + walk.prefix.len, path.len - walk.prefix.len - 1};
    }
    *out_names = names;
    *out_count = count;
    return true;
}

/* ---- opening ---- */

/* The path that a location names, absolute, without "." and empty parts and without a slash at the
 * end. Links stay as they are: what the user calls the lake goes into the tables' metadata. */
static bool
root_of(Str location, char out[PATH_MAX], Error *err)
{
    char path[PATH_MAX] = "";
    size_t length = 0;
    Str rest = location;

    if (str_starts(rest, STR("file:")))
        rest = (Str){rest.ptr + 5, rest.len - 5};
    if (str_starts(rest, STR("//localhost/")))
        rest = (Str){rest.ptr + 11, rest.len - 11};
    if (str_starts(rest, STR("///")))
        rest = (Str){rest.ptr + 2, rest.len - 2};
    if (rest.len != location.len && str_starts(rest, STR("//")))
        return FAIL(err, ERR_INPUT, "a file URI names no host\nhint: write file:///path");
    if (rest.len == 0)
        return FAIL(err, ERR_INPUT, "an empty path");
    if (rest.ptr[0] != '/' && getcwd(path, sizeof path) == NULL)
        return fs_fail(err, "find", "the current folder");
    snprintf(out, PATH_MAX, "%s", path);
    length = strlen(out);
    while (rest.len > 0) {
        const char *slash = memchr(rest.ptr, '/', rest.len);
        Str part = {rest.ptr, slash == NULL ? rest.len : (size_t) (slash - rest.ptr)};

        rest = slash == NULL ? STR_NULL : (Str){slash + 1, rest.len - part.len - 1};
        if (part.len == 0 || str_eq(part, STR(".")))
            continue;
        if (length + 1 + part.len >= PATH_MAX)
            return FAIL(err, ERR_INPUT, "path too long");
        length += (size_t) snprintf(out + length, PATH_MAX - length, "/%.*s", STR_ARG(part));
    }
    return true;
}

/* What ".." means depends on links, so only the kernel can say. */
static bool
resolve_dots(char root[PATH_MAX], Error *err)
{
    char resolved[PATH_MAX];

    if (strstr(root, "/..") == NULL)
        return true;
    if (realpath(root, resolved) == NULL)
        return fs_fail(err, "resolve", root);
    memcpy(root, resolved, sizeof resolved);
    return true;
}

static bool
fs_open(Str location, const StoreOptions *options, Store **out_store, Error *err)
{
    char root[PATH_MAX] = "";
    struct stat st = {0};

    (void) options;
    TRY(root_of(location, root, err));
    if (stat(root[0] == '\0' ? "/" : root, &st) != 0)
        TRY(fs_make_root(root, err));
    else if (!S_ISDIR(st.st_mode))
        return FAIL(err, ERR_INPUT, "not a folder");
    TRY(resolve_dots(root, err));

    FsStore *fs = xcalloc(1, sizeof *fs);
    AUTO_BUF Buf uri = {0};

    buf_printf(&uri, "file://%s", root);
    fs->store.ops = &fs_store_ops;
    fs->store.base_uri = xstrdup(buf_text(&uri));
    fs->root = xstrdup(root);
    fs_folders_init(&fs->folders, fs->root);
    *out_store = &fs->store;
    return true;
}

static void
fs_close(Store *store)
{
    FsStore *fs = fs_of(store);

    fs_folders_done(&fs->folders);
    free(fs->root);
    free(fs->store.base_uri);
    free(fs);
}

const StoreOps fs_store_ops = {
    .scheme = "file",
    .open = fs_open,
    .get = fs_get,
    .get_range = fs_get_range,
    .put = fs_put,
    .put_file = fs_put_file,
    .put_absent = fs_put_absent,
    .put_match = fs_put_match,
    .fetch = fs_fetch,
    .stat = fs_stat,
    .list = fs_list,
    .list_folders = fs_list_folders,
    .remove = fs_remove,
    .close = fs_close,
};
