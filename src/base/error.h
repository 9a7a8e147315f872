/* error.h - what went wrong, where, and what the caller may do about it.
 *
 * A fallible function returns bool and takes an Error last. The kind is an instruction to the
 * caller, the message is for a person: lower case, no full stop, names the object; a second line
 * "hint: ..." says what to do. Four words cover every use:
 *
 *     return FAIL(err, ERR_INPUT, "no such sink: %s", kind);   set it, return false
 *     return WRAP(err, "commit %s", table);                    put context in front, return false
 *     TRY(step(err));                                          leave this function on failure
 *     AUTO(fn) T *x = ...;                                     call fn(&x) on every way out
 *
 * Out of memory aborts (see xalloc.h): the replication slot replays, so there is nothing to save.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>
#include <stdio.h>

#define WARN_UNUSED         __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, a) __attribute__((format(printf, fmt, a)))
#define AUTO(fn)            __attribute__((cleanup(fn)))

typedef enum ErrKind {
    ERR_NONE = 0,
    ERR_TRANSIENT, /* network, 5xx, lock timeout: retry the same call later */
    ERR_CONFLICT,  /* somebody else committed first: reload, rebuild, retry */
    ERR_INPUT,     /* bad configuration or data: a person has to act */
    ERR_COPY,      /* the table's rows must be copied from the source again */
    ERR_CANCELED,  /* we are shutting down */
    ERR_BUG,       /* cannot happen; report it */
} ErrKind;

typedef struct Error {
    ErrKind kind;
    int line;
    const char *file;
    char msg[1024];
} Error;

/* Set kind, place and message; returns false so that it can be returned. A hint already in the
 * text stays on its own last line. */
bool error_set(Error *err, ErrKind kind, const char *file, int line, const char *fmt, ...)
    PRINTF_LIKE(5, 6);

/* Put "context: " in front of the message; the hint line, if any, stays last. Returns false. */
bool error_wrap(Error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A hint line ("hint: ...") at the end, unless there is one already. Returns false. */
bool error_hint(Error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Name of a kind for logs: "transient", "conflict", ... */
const char *error_kind_name(ErrKind kind);

/* The process exit code for a kind, as `walberg help` documents it: 1 a person has to act,
 * 3 may pass later, 4 a bug. */
int error_exit_code(ErrKind kind);

/* The ways out that the README explains, as hint lines. */
#define HINT_COPY_AGAIN "hint: copy it again: walberg resync"
#define BEGIN_AGAIN                                                                                \
    "begin again: walberg cleanup --all, then walberg run (\"Beginning again\" in the README)"
#define HINT_BEGIN_AGAIN "hint: " BEGIN_AGAIN

#define FAIL(err, kind, ...) error_set((err), (kind), __FILE__, __LINE__, __VA_ARGS__)
#define WRAP(err, ...)       error_wrap((err), __VA_ARGS__)
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if (!(call))                                                                               \
            return false;                                                                          \
    } while (0)

#endif
