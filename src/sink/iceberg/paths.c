#include "sink/iceberg/paths.h"

const char *
iceberg_cache_path(const IcebergSink *sink, Arena *arena, const char *key)
{
    return arena_printf(arena, "%s/cache/%s", sink->state_folder, key);
}
