#include "base/fault.h"

#ifdef WALBERG_FAULT_POINTS

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

static atomic_long reached;

bool
fault_point(const char *name, Error *err)
{
    const char *spec = getenv("WALBERG_FAULT"); /* NOLINT(concurrency-mt-unsafe): never set here */

    if (spec == NULL)
        return true;

    const char *number = strchr(spec, ':');
    const char *prefix = number == NULL ? NULL : strchr(number + 1, ':');

    if (prefix != NULL && !str_starts(str_of(name), str_of(prefix + 1)))
        return true;
    if (strncmp(spec, "list", 4) == 0) {
        fprintf(stderr, "fault point %s\n", name);
        return true;
    }

    long nth = number == NULL ? 1 : strtol(number + 1, NULL, 10);

    if (atomic_fetch_add(&reached, 1) + 1 != nth)
        return true;
    if (strncmp(spec, "crash", 5) == 0)
        _exit(137);
    return FAIL(err, ERR_TRANSIENT, "fault point %s", name);
}

#else

/* ISO C wants something in a translation unit. */
extern int fault_points_are_compiled_out;

#endif
