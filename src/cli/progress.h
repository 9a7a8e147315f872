/* progress.h - how far a long command is, on stderr: one live line on a terminal, else a line
 * every 10 s; nothing with --quiet. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "base/error.h"

#include <stdint.h>

typedef struct Progress {
    bool silent;
    bool terminal;
    bool shown; /* a live line stands there */
    bool noted;
    int64_t said_ms;
} Progress;

void progress_begin(Progress *progress, bool quiet);
/* Whether it is time to say something: asking costs a clock reading. */
bool progress_due(const Progress *progress);
void progress_say(Progress *progress, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A line that stays: what walberg run says is in the way, which a command that waits for it passes
 * on. NULL: nothing is. Said once for as long as there is something. */
void progress_note(Progress *progress, const char *error);
/* The live line goes, so that results stand alone. */
void progress_end(Progress *progress);

#endif
