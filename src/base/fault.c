#include "base/fault.h"

#ifdef WALBERG_FAULT_POINTS

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

enum { FAULTS_MAX = 4 };

/* What comes true at the point, of one <mode>:<n>[:<prefix>]. */
static bool
meet(Str spec, atomic_long *passed, const char *name, Error *err)
{
    const char *end = spec.ptr + spec.len;
    const char *number = memchr(spec.ptr, ':', spec.len);
    const char *prefix =
        number == NULL ? NULL : memchr(number + 1, ':', (size_t) (end - number - 1));
    Str wanted =
        prefix == NULL ? STR("") : (Str){.ptr = prefix + 1, .len = (size_t) (end - prefix - 1)};

    if (!str_starts(str_of(name), wanted))
        return true;
    if (str_starts(spec, STR("list"))) {
        fprintf(stderr, "fault point %s\n", name);
        return true;
    }

    long nth = number == NULL ? 1 : strtol(number + 1, NULL, 10);

    if (atomic_fetch_add(passed, 1) + 1 != nth)
        return true;
    fprintf(stderr, "fault at %s: %.*s\n", name, STR_ARG(spec));
    if (str_starts(spec, STR("crash")))
        _exit(137);
    return FAIL(err, ERR_TRANSIENT, "fault point %s", name);
}

bool
fault_point(const char *name, Error *err)
{
    static atomic_long passed[FAULTS_MAX];
    const char *spec = getenv("WALBERG_FAULT"); /* NOLINT(concurrency-mt-unsafe): never set here */
    bool ok = true;

    for (int i = 0; spec != NULL && i < FAULTS_MAX; i++) {
        size_t length = strcspn(spec, ",");

        ok = meet((Str){.ptr = spec, .len = length}, &passed[i], name, err) && ok;
        spec = spec[length] == ',' ? spec + length + 1 : NULL;
    }
    return ok;
}

int64_t
fault_limit(const char *name, int64_t usual)
{
    const char *spec = getenv("WALBERG_LIMITS"); /* NOLINT(concurrency-mt-unsafe): never set here */
    size_t length = strlen(name);

    while (spec != NULL) {
        if (strncmp(spec, name, length) == 0 && spec[length] == '=')
            return strtoll(spec + length + 1, NULL, 10);
        spec = strchr(spec, ',');
        spec = spec == NULL ? NULL : spec + 1;
    }
    return usual;
}

#else

/* ISO C wants something in a translation unit. */
extern int fault_points_are_compiled_out;

#endif
