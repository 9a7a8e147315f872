/* utility.h - statements that are not queries: transactions, settings, and what is refused.
 *
 * They are recognised by their first words and never reach DuckDB. */
#ifndef QUERY_UTILITY_H
#define QUERY_UTILITY_H

#include "query/sqlstate.h"

typedef enum UtilityKind {
    UTILITY_QUERY,   /* none: SELECT, WITH, VALUES, TABLE */
    UTILITY_EXPLAIN, /* `rest` is the query; `analyze` */
    UTILITY_EMPTY,
    UTILITY_BEGIN,
    UTILITY_COMMIT,
    UTILITY_ROLLBACK,
    UTILITY_SAVEPOINT,   /* nothing to do: nothing is ever changed */
    UTILITY_ROLLBACK_TO, /* ends the failure of a transaction */
    UTILITY_SET,         /* `name`, `value`; value.ptr == NULL: DEFAULT; name empty: of no effect */
    UTILITY_RESET_ALL,
    UTILITY_SHOW,       /* `name`; empty: ALL */
    UTILITY_DEALLOCATE, /* `name`; empty: ALL */
    UTILITY_DISCARD,
    UTILITY_NOTHING, /* accepted, of no effect: UNLISTEN * ... */
} UtilityKind;

typedef struct Utility {
    UtilityKind kind;
    const char *tag; /* of CommandComplete */
    Str name;
    Str value;
    Str rest;
    bool analyze;
} Utility;

/* sql is one statement. Failures: what writes (25006), what is not supported (0A000), what is none
 * (42601). Names are lower case, values without their quotes; both in the arena. */
bool utility_parse(Arena *arena, Str sql, Utility *out_utility, QueryFailure *failure,
                   Error *err) WARN_UNUSED;

#endif
