#include "query/sqlstate.h"

#include <stdlib.h>
#include <strings.h>

bool
query_fail(QueryFailure *failure, Error *err, const char *sqlstate, const char *fmt, ...)
{
    va_list args;
    AUTO_BUF Buf text = {0};

    va_start(args, fmt);
    buf_vprintf(&text, fmt, args);
    va_end(args);
    memcpy(failure->sqlstate, sqlstate, sizeof failure->sqlstate);
    failure->position = -1;
    return FAIL(err, ERR_INPUT, "%s", buf_text(&text));
}

static const char *
sqlstate_of_class(DuckErrorClass class)
{
    switch (class) {
    case DUCK_ERROR_SYNTAX:
        return SQLSTATE_SYNTAX;
    case DUCK_ERROR_CATALOG:
        return SQLSTATE_UNDEFINED_OBJECT;
    case DUCK_ERROR_BINDER:
        return SQLSTATE_TYPE_MISMATCH;
    case DUCK_ERROR_CONVERSION:
        return SQLSTATE_INVALID_TEXT;
    case DUCK_ERROR_OUT_OF_RANGE:
        return SQLSTATE_NUMBER_OUT_OF_RANGE;
    case DUCK_ERROR_INVALID_INPUT:
        return SQLSTATE_INVALID_PARAMETER;
    case DUCK_ERROR_DIVISION:
        return SQLSTATE_DIVISION_BY_ZERO;
    case DUCK_ERROR_MEMORY:
        return SQLSTATE_OUT_OF_MEMORY;
    case DUCK_ERROR_IO:
        return SQLSTATE_IO;
    case DUCK_ERROR_PERMISSION:
        return SQLSTATE_DENIED;
    case DUCK_ERROR_UNSUPPORTED:
        return SQLSTATE_UNSUPPORTED;
    case DUCK_ERROR_TRANSACTION:
        return SQLSTATE_NOT_READY;
    case DUCK_ERROR_INTERRUPTED:
        return SQLSTATE_CANCELED;
    case DUCK_ERROR_INTERNAL:
        return SQLSTATE_INTERNAL;
    }
    return SQLSTATE_INTERNAL;
}

static bool
contains(Str text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* "Table with name x does not exist!\nDid you mean y?" */
static bool
fail_missing(QueryFailure *failure, Error *err, const DuckFailure *duck)
{
    if (str_eqc(duck->missing, "Table") || str_eqc(duck->missing, "View"))
        return query_fail(failure, err, SQLSTATE_UNDEFINED_TABLE,
                          "relation \"%.*s\" does not exist", STR_ARG(duck->name));
    if (str_eqc(duck->missing, "Schema"))
        return query_fail(failure, err, "3F000", "schema \"%.*s\" does not exist",
                          STR_ARG(duck->name));
    if (str_eqc(duck->missing, "Type"))
        return query_fail(failure, err, SQLSTATE_UNDEFINED_OBJECT, "type \"%.*s\" does not exist",
                          STR_ARG(duck->name));
    if (str_ends(duck->missing, STR("Function")))
        return query_fail(failure, err, SQLSTATE_UNDEFINED_FUNCTION, "function %.*s does not exist",
                          STR_ARG(duck->name));
    return query_fail(failure, err, SQLSTATE_UNDEFINED_OBJECT, "%.*s", STR_ARG(duck->message));
}

static const char *
binder_sqlstate(const DuckFailure *duck)
{
    if (contains(duck->message, "GROUP BY"))
        return SQLSTATE_GROUPING;
    if (contains(duck->message, "Ambiguous reference"))
        return SQLSTATE_AMBIGUOUS_COLUMN;
    if (str_eqc(duck->subtype, "NO_MATCHING_FUNCTION") ||
        contains(duck->message, "No function matches"))
        return SQLSTATE_UNDEFINED_FUNCTION;
    if (contains(duck->message, "Referenced table"))
        return SQLSTATE_UNDEFINED_TABLE;
    return SQLSTATE_TYPE_MISMATCH;
}

static bool
fail_in_words(QueryFailure *failure, Error *err, const DuckFailure *duck)
{
    if (duck->class == DUCK_ERROR_CATALOG && duck->missing.len > 0)
        return fail_missing(failure, err, duck);
    if (str_eqc(duck->subtype, "COLUMN_NOT_FOUND"))
        return query_fail(failure, err, SQLSTATE_UNDEFINED_COLUMN, "column \"%.*s\" does not exist",
                          STR_ARG(duck->name));
    if (duck->class == DUCK_ERROR_INTERRUPTED)
        return query_fail(failure, err, SQLSTATE_CANCELED,
                          "canceling statement due to user request");
    if (duck->class == DUCK_ERROR_BINDER)
        return query_fail(failure, err, binder_sqlstate(duck), "%.*s", STR_ARG(duck->message));
    return query_fail(failure, err, sqlstate_of_class(duck->class), "%.*s", STR_ARG(duck->message));
}

bool
query_fail_duck(QueryFailure *failure, Error *err, const DuckFailure *duck)
{
    (void) fail_in_words(failure, err, duck);
    failure->position = duck->position;
    return false;
}
