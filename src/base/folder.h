/* folder.h - folders of the local disk that hold what can be rebuilt. Nothing is synced.
 *
 * What root makes in a folder of another user is given to that user: somebody may run a command as
 * root beside a service, which could not write there any more. What was there already stays whose
 * it is, as it may be a link to anything. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include <sys/types.h>

#include "base/error.h"

/* Make the folder and those around it that are missing, as far as the umask lets. ERR_INPUT. */
bool folder_make(const char *folder, mode_t mode, Error *err) WARN_UNUSED;
/* Those above a file. */
bool folder_make_above(const char *path, mode_t mode, Error *err) WARN_UNUSED;
/* mkdir(2) and, with O_CREAT, open(2): errno says why not. */
int folder_mkdir(const char *path, mode_t mode);
int folder_create_file(const char *path, int flags, mode_t mode);

#endif
