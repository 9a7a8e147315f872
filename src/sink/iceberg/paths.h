/* paths.h - where this sink keeps files on the local disk. */
#ifndef SINK_ICEBERG_PATHS_H
#define SINK_ICEBERG_PATHS_H

#include "sink/iceberg/sink.h"

/* <state>/cache/<key>: the local copy of a remote object. */
const char *iceberg_cache_path(const IcebergSink *sink, Arena *arena, const char *key);

#endif
