/* file_cache.h - data files as local paths: those of a file system in place, those of a remote
 * store fetched once, or left here by the stream that uploaded them. Data files never change, so
 * neither does what is here.
 *
 * A disk bends what it holds, a backup brings half of it back, and a power cut ends a write in the
 * middle. So each file has a stamp beside it, <file>.stamp: size and XXH3 of the content, and inode
 * and ctime as of then. A file that the stamp does not vouch for is fetched again. The content is
 * hashed only when inode or ctime are others, which nobody can set back; what changes below the
 * file system is not noticed. (docs/design.md, "The state folder")
 *
 * Any number of processes share a folder, and any thread may call. Nothing is evicted yet: the
 * folder grows to the size of what is live and was; it may be emptied while nothing runs. */
#ifndef STORE_FILE_CACHE_H
#define STORE_FILE_CACHE_H

#include <stdatomic.h>

#include "store/store.h"

typedef struct FileCache {
    Store *store;
    const char *folder;             /* made when first needed */
    _Atomic uint64_t fetched_bytes; /* by this process */
} FileCache;

/* The local path, in the arena, of a file by its URI. ERR_INPUT: it is not below the warehouse, or
 * not there. */
bool file_cache_path(FileCache *cache, Arena *arena, Str uri, const char **out_path,
                     Error *err) WARN_UNUSED;

/* Where a file of this key lies, or will: in the store itself or in the folder. Never NULL. */
const char *file_cache_place(const FileCache *cache, Arena *arena, const char *key);

/* Put the content of the local file `path` at `key` in the store, durably, and keep it here: it is
 * renamed, or gone. A file that cannot be kept is no error. */
bool file_cache_put(const FileCache *cache, const char *key, const char *path,
                    Error *err) WARN_UNUSED;

/* Remove a file from the store and from here; no error when it is not there. */
bool file_cache_remove(const FileCache *cache, const char *key, Error *err) WARN_UNUSED;

/* A whole object into out (metadata: manifests and manifest lists). */
bool file_cache_read(const FileCache *cache, Arena *arena, Str uri, Buf *out,
                     Error *err) WARN_UNUSED;

/* Some bytes of an object into out (deletion vectors). */
bool file_cache_read_range(const FileCache *cache, Str uri, StoreRange range, Buf *out,
                           Error *err) WARN_UNUSED;

#endif
