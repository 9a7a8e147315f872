#include "base/folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

/* `path` was just made by us, and is open. Where that is not allowed (a network file system may not
 * let root), it stays root's. */
static void
give(int fd, const char *path)
{
    AUTO_BUF Buf above = {0};
    const char *slash = strrchr(path, '/');
    struct stat folder;

    if (fd < 0 || geteuid() != 0)
        return;
    buf_append(&above, path, slash == NULL ? 0 : (size_t) (slash - path));
    buf_cstr(&above, slash == NULL ? "." : "/");
    if (stat(buf_text(&above), &folder) == 0 && folder.st_uid != 0)
        (void) !fchown(fd, folder.st_uid, folder.st_gid);
}

int
folder_mkdir(const char *path, mode_t mode)
{
    if (mkdir(path, mode) != 0)
        return -1;

    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    give(fd, path);
    if (fd >= 0)
        close(fd);
    return 0;
}

int
folder_create_file(const char *path, int flags, mode_t mode)
{
    assert((flags & O_EXCL) == 0);

    int fd = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC, mode);

    if (fd < 0 && errno == EEXIST)
        return open(path, flags | O_CREAT | O_CLOEXEC, mode);
    give(fd, path);
    return fd;
}

/* A parent that cannot be looked into or written to need not matter: the last folder tells. */
bool
folder_make(const char *folder, mode_t mode, Error *err)
{
    AUTO_BUF Buf copy = {0};

    buf_cstr(&copy, folder);

    char *path = buf_text(&copy);

    for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        if (slash == path || slash[-1] == '/')
            continue;
        *slash = '\0';
        (void) folder_mkdir(path, mode);
        *slash = '/';
    }
    if (folder_mkdir(path, mode) != 0 && errno != EEXIST)
        return FAIL(err, ERR_INPUT, "cannot make folder %s: %s", folder, strerrordesc_np(errno));
    return true;
}

bool
folder_make_above(const char *path, mode_t mode, Error *err)
{
    AUTO_BUF Buf folder = {0};
    const char *slash = strrchr(path, '/');

    if (slash == NULL || slash == path)
        return true;
    buf_append(&folder, path, (size_t) (slash - path));
    return folder_make(buf_text(&folder), mode, err);
}
