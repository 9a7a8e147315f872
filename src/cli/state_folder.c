#include "cli/state_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "config/value.h"

enum { STATUS_BYTES_MAX = 64 << 20 };

static void
close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

bool
state_folder_is_locked(const Config *config, Arena *arena)
{
    AUTO(close_fd)
    int fd = open(arena_printf(arena, "%s/lock", config->state), O_RDONLY | O_CLOEXEC);

    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool
state_folder_status(const Config *config, Arena *arena, json_t **out_status, Error *err)
{
    const char *path = arena_printf(arena, "%s/status.json", config->state);
    bool found = false;
    json_error_t problem;
    Str text;

    TRY(value_read_file(arena, path, STATUS_BYTES_MAX, &text, &found, err));
    if (!found) {
        *out_status = NULL;
        return true;
    }

    json_t *status = json_loadb(text.ptr, text.len, 0, &problem);

    if (status == NULL)
        return FAIL(err, ERR_INPUT, "%s:%d: %s", path, problem.line, problem.text);
    if (!json_is_object(status) || !json_is_array(json_object_get(status, "tables"))) {
        json_decref(status);
        return FAIL(err, ERR_INPUT, "%s is not a status", path);
    }
    *out_status = status;
    return true;
}

void
json_unref(json_t **json)
{
    json_decref(*json);
}
