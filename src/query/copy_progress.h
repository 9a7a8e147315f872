/* copy_progress.h - how far the first copy of a table is, from <state>/status.json: the pipeline
 * that runs with this state folder writes it every second. */
#ifndef QUERY_COPY_PROGRESS_H
#define QUERY_COPY_PROGRESS_H

#include "base/arena.h"

/* What follows "its copy is not complete yet" for the table of this name in the lake: ": 42 %",
 * that it is parked, or "" when it is not known. In the arena. */
const char *copy_progress(Arena *arena, const char *folder, const char *lake_name);

#endif
