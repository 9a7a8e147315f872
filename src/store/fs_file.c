#include "store/fs_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/folder.h"
#include "base/hash.h"

enum { COPY_BYTES = 1 << 17 };

void
fs_close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

bool
fs_fail(Error *err, const char *step, const char *path)
{
    int number = errno;
    const char *why = strerrordesc_np(number);

    switch (number) {
    case ENOSPC:
    case EDQUOT:
        return FAIL(err, ERR_TRANSIENT, "%s %s: %s\nhint: make room on this file system", step,
                    path, why);
    case EMFILE:
        return FAIL(err, ERR_TRANSIENT,
                    "%s %s: %s\nhint: allow walberg more open files: ulimit -Hn, or LimitNOFILE= "
                    "of its service",
                    step, path, why);
    case EACCES:
    case EPERM:
        return FAIL(err, ERR_INPUT,
                    "%s %s: %s\nhint: the user that walberg runs as must be allowed to read and "
                    "write there",
                    step, path, why);
    case EROFS:
        return FAIL(err, ERR_INPUT, "%s %s: %s\nhint: mount it writable, or choose another folder",
                    step, path, why);
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return FAIL(err, ERR_INPUT, "%s %s: %s", step, path, why);
    default:
        return FAIL(err, ERR_TRANSIENT, "%s %s: %s", step, path, why);
    }
}

bool
fs_join(const char *folder, const char *name, char out[PATH_MAX], Error *err)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);

    if (n < 0 || n >= PATH_MAX)
        return FAIL(err, ERR_INPUT, "path too long: %s/%s", folder, name);
    return true;
}

void
fs_folder_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    assert(slash != NULL);
    snprintf(out, PATH_MAX, "%.*s", (int) (slash - path), path);
}

bool
fs_part_path(const char *path, char out[PATH_MAX], Error *err)
{
    uint64_t random;

    random_bytes(&random, sizeof random);

    int n = snprintf(out, PATH_MAX, "%s.%016" PRIx64 ".part", path, random);

    if (n < 0 || n >= PATH_MAX)
        return FAIL(err, ERR_INPUT, "path too long: %s", path);
    return true;
}

bool
fs_sync_file(int fd, const char *path, Error *err)
{
    TRY(FAULT("store.fsync", err));
    if (fsync(fd) != 0)
        return fs_fail(err, "fsync", path);
    return true;
}

bool
fs_sync_folder(const char *folder, Error *err)
{
    const char *path = folder[0] == '\0' ? "/" : folder;
    AUTO(fs_close_fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    TRY(FAULT("store.fsync_folder", err));
    if (fd < 0)
        return fs_fail(err, "open", path);
    /* EINVAL: some network file systems have no fsync of folders; their server sees to it */
    if (fsync(fd) != 0 && errno != EINVAL)
        return fs_fail(err, "fsync", path);
    return true;
}

void
fs_folders_init(FsFolders *folders, const char *root)
{
    *folders = (FsFolders){.root = root};
    pthread_mutex_init(&folders->lock, NULL);
}

void
fs_folders_done(FsFolders *folders)
{
    pthread_mutex_destroy(&folders->lock);
    buf_done(&folders->known);
}

static bool
is_known(FsFolders *folders, Hash128 folder)
{
    bool known = false;

    pthread_mutex_lock(&folders->lock);
    for (size_t i = 0; i < BUF_COUNT(&folders->known, Hash128) && !known; i++)
        known = hash128_eq(BUF_AT(&folders->known, Hash128, i), folder);
    pthread_mutex_unlock(&folders->lock);
    return known;
}

void
fs_folders_forget(FsFolders *folders)
{
    pthread_mutex_lock(&folders->lock);
    buf_reset(&folders->known);
    pthread_mutex_unlock(&folders->lock);
}

/* Make one folder; no error when it is there. */
static bool
make_one(const char *folder, bool *out_made, Error *err)
{
    struct stat st;

    *out_made = folder_mkdir(folder, 0777) == 0;
    if (*out_made)
        return true;
    if (errno != EEXIST)
        return fs_fail(err, "mkdir", folder);
    if (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return fs_fail(err, "mkdir", folder);
    }
    return true;
}

/* Make every folder of a path, from byte `from` on. always_sync: also the parent of one that was
 * there already, as whoever made it may not have come to syncing yet. */
static bool
make_folders(const char *folder, size_t from, bool always_sync, Error *err)
{
    char path[PATH_MAX];
    char parent[PATH_MAX];
    size_t length = strlen(folder);
    bool made;

    assert(length < sizeof path);
    memcpy(path, folder, length + 1);
    for (size_t i = from; i <= length; i++) {
        if (i == 0 || (folder[i] != '/' && folder[i] != '\0'))
            continue;
        path[i] = '\0';
        TRY(make_one(path, &made, err));
        fs_folder_of(path, parent);
        if (made || always_sync)
            TRY(fs_sync_folder(parent, err));
        path[i] = folder[i];
    }
    return true;
}

bool
fs_make_root(const char *folder, Error *err)
{
    return make_folders(folder, 1, false, err);
}

bool
fs_folders_ensure(FsFolders *folders, const char *folder, Error *err)
{
    Hash128 hash = hash128(folder, strlen(folder), 0);

    if (is_known(folders, hash))
        return true;
    TRY(make_folders(folder, strlen(folders->root) + 1, true, err));
    pthread_mutex_lock(&folders->lock);
    BUF_PUSH(&folders->known, Hash128, hash);
    pthread_mutex_unlock(&folders->lock);
    return true;
}

void
fs_tmp_done(FsTmp *tmp)
{
    fs_close_fd(&tmp->fd);
    if (tmp->path[0] != '\0')
        unlink(tmp->path);
}

bool
fs_tmp_open(FsFolders *folders, const char *target, FsTmp *tmp, Error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX];
    char name[sizeof FS_TMP_PREFIX + 16];
    uint64_t random;

    fs_folder_of(target, folder);
    for (int tries = 0; tries < FS_FOLDER_TRIES_MAX; tries++) {
        TRY(fs_folders_ensure(folders, folder, err));
        random_bytes(&random, sizeof random);
        snprintf(name, sizeof name, FS_TMP_PREFIX "%016" PRIx64, random);
        TRY(fs_join(folder, name, path, err));
        tmp->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (tmp->fd >= 0) {
            memcpy(tmp->path, path, sizeof path);
            return true;
        }
        if (errno != ENOENT)
            break;
        fs_folders_forget(folders);
    }
    return fs_fail(err, "open", path);
}

static bool
write_all(const FsTmp *tmp, const char *bytes, size_t size, Error *err)
{
    while (size > 0) {
        ssize_t n = write(tmp->fd, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fs_fail(err, "write", tmp->path);
        bytes += n;
        size -= (size_t) n;
    }
    return true;
}

bool
fs_tmp_write(FsFolders *folders, const char *target, Str bytes, FsTmp *tmp, Error *err)
{
    TRY(fs_tmp_open(folders, target, tmp, err));
    TRY(write_all(tmp, bytes.ptr, bytes.len, err));
    return fs_sync_file(tmp->fd, tmp->path, err);
}

bool
fs_tmp_copy(FsTmp *tmp, int from, const char *from_path, Error *err)
{
    AUTO_FREE char *block = xrealloc(NULL, COPY_BYTES);

    for (;;) {
        ssize_t n = read(from, block, COPY_BYTES);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fs_fail(err, "read", from_path);
        if (n == 0)
            return fs_sync_file(tmp->fd, tmp->path, err);
        TRY(write_all(tmp, block, (size_t) n, err));
    }
}

bool
fs_tmp_rename(FsTmp *tmp, const char *target, Error *err)
{
    char folder[PATH_MAX];

    TRY(FAULT("store.rename", err));
    if (rename(tmp->path, target) != 0)
        return fs_fail(err, "rename to", target);
    tmp->path[0] = '\0';
    fs_folder_of(target, folder);
    return fs_sync_folder(folder, err);
}

/* Where there are no hard links (FAT, some network file systems). */
static bool
rename_exclusive(FsTmp *tmp, const char *target, bool *out_created, Error *err)
{
    *out_created = renameat2(AT_FDCWD, tmp->path, AT_FDCWD, target, RENAME_NOREPLACE) == 0;
    if (*out_created)
        tmp->path[0] = '\0';
    else if (errno != EEXIST)
        return fs_fail(err, "exclusive rename to", target);
    return true;
}

bool
fs_tmp_link(FsTmp *tmp, const char *target, bool *out_created, Error *err)
{
    char folder[PATH_MAX];
    struct stat st;
    bool created = true;

    TRY(FAULT("store.link", err));
    if (link(tmp->path, target) != 0) {
        if (errno == EEXIST)
            /* two names: over NFS the answer to our own link(2) was lost, and the repeated call
             * met its own work (open(2), O_EXCL) */
            created = fstat(tmp->fd, &st) == 0 && st.st_nlink == 2;
        else if (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK)
            TRY(rename_exclusive(tmp, target, &created, err));
        else
            return fs_fail(err, "link to", target);
    }
    fs_folder_of(target, folder);
    if (created)
        TRY(fs_sync_folder(folder, err));
    *out_created = created;
    return true;
}
