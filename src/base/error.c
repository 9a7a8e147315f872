#include "base/error.h"

#include <stdarg.h>
#include <string.h>

bool
error_set(Error *err, ErrKind kind, const char *file, int line, const char *fmt, ...)
{
    va_list args;

    err->kind = kind;
    err->file = file;
    err->line = line;
    va_start(args, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);

    /* libpq and friends end their messages with a newline */
    size_t n = strlen(err->msg);

    while (n > 0 && (err->msg[n - 1] == '\n' || err->msg[n - 1] == ' '))
        err->msg[--n] = '\0';
    return false;
}

bool
error_wrap(Error *err, const char *fmt, ...)
{
    char context[sizeof err->msg];
    char msg[sizeof err->msg];
    va_list args;

    va_start(args, fmt);
    vsnprintf(context, sizeof context, fmt, args);
    va_end(args);
    memcpy(msg, err->msg, sizeof msg);
    snprintf(err->msg, sizeof err->msg, "%.480s: %.540s", context, msg);
    return false;
}

bool
error_hint(Error *err, const char *fmt, ...)
{
    char hint[sizeof err->msg];
    char msg[sizeof err->msg];
    va_list args;

    if (strstr(err->msg, "\nhint: ") != NULL)
        return false;
    va_start(args, fmt);
    vsnprintf(hint, sizeof hint, fmt, args);
    va_end(args);
    memcpy(msg, err->msg, sizeof msg);
    snprintf(err->msg, sizeof err->msg, "%.700s\n%.300s", msg, hint);
    return false;
}

const char *
error_kind_name(ErrKind kind)
{
    switch (kind) {
    case ERR_NONE:
        return "none";
    case ERR_TRANSIENT:
        return "transient";
    case ERR_CONFLICT:
        return "conflict";
    case ERR_INPUT:
        return "input";
    case ERR_COPY:
        return "copy";
    case ERR_CANCELED:
        return "canceled";
    case ERR_BUG:
        return "bug";
    }
    return "?";
}

int
error_exit_code(ErrKind kind)
{
    switch (kind) {
    case ERR_NONE:
    case ERR_CANCELED:
        return 0;
    case ERR_INPUT:
    case ERR_COPY:
        return 1;
    case ERR_TRANSIENT:
    case ERR_CONFLICT:
        return 3;
    case ERR_BUG:
        return 4;
    }
    return 4;
}
