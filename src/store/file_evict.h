/* file_evict.h - the bound of a cache: which of its files go, and which must stay. For
 * file_cache.c.
 *
 *     <folder>.lock          locked by flock: shared to hold a file, exclusively to remove files
 *     <folder>.holds/<name>  one for each FileHold, locked as long as that is there, also when its
 *                            process is killed: a Hash128 for each file, of its path in the folder
 *
 * Both lie beside the folder, where no key can lead. To hold a file is to write it down under the
 * lock; whoever removes files reads what is held under the lock, and removes the others before it
 * lets go. So a file is held before it is looked at, or gone before it is held. */
#ifndef STORE_FILE_EVICT_H
#define STORE_FILE_EVICT_H

#include "store/file_cache.h"

/* Hold the file, which need not be there yet. ERR_TRANSIENT; ERR_INPUT: not here, by this user. */
bool file_hold_add(FileHold *hold, const FileCache *cache, const char *path,
                   Error *err) WARN_UNUSED;

/* A file of so many bytes came into the folder: count, and evict, when it is time to. */
void file_evict(FileCache *cache, int64_t bytes);

#endif
