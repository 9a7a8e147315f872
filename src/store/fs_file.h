/* fs_file.h - files that are whole and on disk, or not there: the steps under store/fs.c.
 *
 * Bytes go into a temporary file of the target's folder, are fsynced, and get their name by one
 * atomic call; then the folder is fsynced, because a name is data of the folder. New folders are
 * names in their parents, so those are fsynced, too. */
#ifndef STORE_FS_FILE_H
#define STORE_FS_FILE_H

#include <limits.h>
#include <pthread.h>

#include "store/store.h"

#define FS_TMP_PREFIX STORE_RESERVED_PREFIX "tmp."
#define FS_LOCK_NAME  STORE_RESERVED_PREFIX "lock"

/* Somebody may remove an empty folder between making and using it. */
enum { FS_FOLDER_TRIES_MAX = 5 };

/* The folders below a root that are known to be on disk, with all above them. Thread safe. */
typedef struct FsFolders {
    const char *root; /* absolute, no slash at the end; "" is the file system's root */
    pthread_mutex_t lock;
    Buf known; /* of Hash128 */
} FsFolders;

void fs_folders_init(FsFolders *folders, const char *root);
void fs_folders_done(FsFolders *folders);

/* Make a folder below the root and see to it that a crash does not lose it. */
bool fs_folders_ensure(FsFolders *folders, const char *folder, Error *err) WARN_UNUSED;
/* A folder turned out to be gone: look again next time. */
void fs_folders_forget(FsFolders *folders);

/* Make `folder` and what is missing above it, for a start. */
bool fs_make_root(const char *folder, Error *err) WARN_UNUSED;

typedef struct FsTmp {
    char path[PATH_MAX]; /* empty: nothing to remove */
    int fd;              /* -1: none */
} FsTmp;

void fs_tmp_done(FsTmp *tmp); /* closes, and removes what did not get its name */
#define AUTO_FS_TMP __attribute__((cleanup(fs_tmp_done)))

/* A new, empty file in the folder that `target` will be in. */
bool fs_tmp_open(FsFolders *folders, const char *target, FsTmp *tmp, Error *err) WARN_UNUSED;
/* A new file with these bytes, on disk. */
bool fs_tmp_write(FsFolders *folders, const char *target, Str bytes, FsTmp *tmp,
                  Error *err) WARN_UNUSED;
/* The rest of `from` into the file, on disk. */
bool fs_tmp_copy(FsTmp *tmp, int from, const char *from_path, Error *err) WARN_UNUSED;
/* Give the file its name, in place of whatever had it. */
bool fs_tmp_rename(FsTmp *tmp, const char *target, Error *err) WARN_UNUSED;
/* Give the file its name if nobody has it. */
bool fs_tmp_link(FsTmp *tmp, const char *target, bool *out_created, Error *err) WARN_UNUSED;

bool fs_sync_file(int fd, const char *path, Error *err) WARN_UNUSED;
bool fs_sync_folder(const char *folder, Error *err) WARN_UNUSED;

/* "folder/name"; ERR_INPUT when it does not fit. */
bool fs_join(const char *folder, const char *name, char out[PATH_MAX], Error *err) WARN_UNUSED;
/* What is before the last slash. */
void fs_folder_of(const char *path, char out[PATH_MAX]);

/* "<step> <path>: <errno in words>", with the kind that tells the caller what to do. False. */
bool fs_fail(Error *err, const char *step, const char *path);

/* A name beside `path` for a download that is under way; no two calls give the same. */
bool fs_part_path(const char *path, char out[PATH_MAX], Error *err) WARN_UNUSED;

/* For AUTO(). */
void fs_close_fd(const int *fd);

#endif
