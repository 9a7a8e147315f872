/* folder.h - folders of the local disk that hold what can be rebuilt. Nothing is synced. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include <sys/types.h>

#include "base/error.h"

/* Make the folder and those around it that are missing, as far as the umask lets. ERR_INPUT. */
bool folder_make(const char *folder, mode_t mode, Error *err) WARN_UNUSED;
/* Those above a file. */
bool folder_make_above(const char *path, mode_t mode, Error *err) WARN_UNUSED;

#endif
