#include "base/folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"

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
        (void) mkdir(path, mode);
        *slash = '/';
    }
    if (mkdir(path, mode) != 0 && errno != EEXIST)
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
