/* file_cache.h - data files as local paths: those of a file system in place, those of a remote
 * store fetched once, or left there by the stream. Data files never change, so neither does what is
 * there. Nothing is evicted yet: the folder grows to the size of what is live and was; it may be
 * emptied while nothing runs. */
#ifndef QUERY_FILE_CACHE_H
#define QUERY_FILE_CACHE_H

#include "store/store.h"

typedef struct FileCache {
    Store *store;
    const char *folder; /* made when first needed */
    uint64_t bytes;     /* fetched by this process */
    uint64_t files;
} FileCache;

/* The local path, in the arena. ERR_INPUT: the file is not below the warehouse, or not there. */
bool file_cache_path(FileCache *cache, Arena *arena, Str uri, const char **out_path,
                     Error *err) WARN_UNUSED;

/* A whole object into out (metadata: manifests and manifest lists). */
bool file_cache_read(FileCache *cache, Arena *arena, Str uri, Buf *out, Error *err) WARN_UNUSED;

/* Some bytes of an object into out (deletion vectors). */
bool file_cache_read_range(FileCache *cache, Str uri, StoreRange range, Buf *out,
                           Error *err) WARN_UNUSED;

#endif
