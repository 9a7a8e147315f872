#include "cli/progress.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/clock.h"

enum { LIVE_EVERY_MS = 200, LINE_EVERY_MS = 10000 };

void
progress_begin(Progress *progress, bool quiet)
{
    *progress =
        (Progress){.silent = quiet, .terminal = isatty(STDERR_FILENO) == 1, .said_ms = clock_ms()};
}

bool
progress_due(const Progress *progress)
{
    return !progress->silent &&
           clock_ms() - progress->said_ms >= (progress->terminal ? LIVE_EVERY_MS : LINE_EVERY_MS);
}

void
progress_say(Progress *progress, const char *fmt, ...)
{
    va_list args;

    progress->said_ms = clock_ms();
    if (progress->terminal)
        fputs("\r\033[K", stderr); /* ECMA-48: erase to the end of the line */
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    if (!progress->terminal)
        fputc('\n', stderr);
    progress->shown = progress->terminal;
}

void
progress_note(Progress *progress, const char *error)
{
    if (error != NULL && !progress->noted && !progress->silent) {
        progress_end(progress);
        fprintf(stderr, "walberg run: %s\n", error);
    }
    progress->noted = error != NULL;
}

void
progress_end(Progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
