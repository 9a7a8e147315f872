#include "sink/iceberg/paths.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

const char *
iceberg_cache_path(const IcebergSink *sink, Arena *arena, const char *key)
{
    return arena_printf(arena, "%s/cache/%s", sink->state_folder, key);
}

bool
iceberg_make_folders(Arena *arena, const char *path, Error *err)
{
    char *folder = arena_strdup(arena, path);

    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            return FAIL(err, ERR_INPUT, "cannot make folder %s: %s", folder,
                        strerrordesc_np(errno));
        *slash = '/';
    }
    return true;
}
