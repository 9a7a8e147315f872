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
 * The sum of the files is bounded. At the first file that it puts here, and after every tenth of
 * the bound, a process counts the folder; if that has more than nine tenths, those files go that
 * were used the longest ago. So one process goes beyond the bound by a file, and each other one by
 * a tenth more; but what is held (FileHold) stays. When a file was used is told by the time of its
 * stamp, which is touched when it is asked for, at most once a minute: a file's own atime depends
 * on how the disk is mounted, and to touch its mtime would change the ctime. (file_evict.h)
 *
 * Any number of processes share a folder, and any thread may call. It may be emptied while nothing
 * runs. */
#ifndef STORE_FILE_CACHE_H
#define STORE_FILE_CACHE_H

#include <stdatomic.h>

#include "store/store.h"

typedef struct FileCache {
    Store *store;
    const char *folder;             /* made when first needed, as are <folder>.lock and .holds */
    int64_t bytes_max;              /* of the files here; 0: only what is held stays */
    _Atomic int64_t room;           /* bytes that may come until the folder is counted */
    _Atomic bool grows;             /* beyond the bound: files could not be evicted */
    _Atomic uint64_t fetched_bytes; /* by this process */
} FileCache;

/* What keeps files here, whatever the bound: those that were asked for with it, until it is done
 * with or the process ends. It costs a descriptor. {0}: none yet. One thread at a time. */
typedef struct FileHold {
    char *path; /* NULL: none */
    int fd;
} FileHold;

void file_hold_done(FileHold *hold); /* it is {0} again */
#define AUTO_FILE_HOLD __attribute__((cleanup(file_hold_done)))

/* The local path, in the arena, of a file by its URI; it is there as long as it is held. ERR_INPUT:
 * it is not below the warehouse, or not there. */
bool file_cache_path(FileCache *cache, FileHold *hold, Arena *arena, Str uri, const char **out_path,
                     Error *err) WARN_UNUSED;

/* Where a file of this key lies, or will: in the store itself or in the folder. Never NULL. */
const char *file_cache_place(const FileCache *cache, Arena *arena, const char *key);

/* Put the content of the local file `path` at `key` in the store, durably, and keep it here: it is
 * renamed, or gone. A file that cannot be kept is no error. */
bool file_cache_put(FileCache *cache, const char *key, const char *path, Error *err) WARN_UNUSED;

/* Remove a file from the store and from here; no error when it is not there. */
bool file_cache_remove(const FileCache *cache, const char *key, Error *err) WARN_UNUSED;

/* A whole object into out (metadata: manifests and manifest lists). */
bool file_cache_read(const FileCache *cache, Arena *arena, Str uri, Buf *out,
                     Error *err) WARN_UNUSED;

/* Some bytes of an object into out (deletion vectors). */
bool file_cache_read_range(const FileCache *cache, Str uri, StoreRange range, Buf *out,
                           Error *err) WARN_UNUSED;

#endif
