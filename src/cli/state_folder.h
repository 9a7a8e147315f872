/* state_folder.h - what a running pipeline leaves in its local state folder. */
#ifndef CLI_STATE_FOLDER_H
#define CLI_STATE_FOLDER_H

#include <jansson.h>

#include "config/config.h"

/* Whether a process runs this pipeline on this machine: it holds a lock that ends with it, however
 * it ends. */
bool state_folder_is_locked(const Config *config, Arena *arena);

/* <state>/status.json; NULL when there is none. */
bool state_folder_status(const Config *config, Arena *arena, json_t **out_status,
                         Error *err) WARN_UNUSED;

void json_unref(json_t **json); /* for AUTO() */

#endif
