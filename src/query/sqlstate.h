/* sqlstate.h - a failed statement, as its client will be told. */
#ifndef QUERY_SQLSTATE_H
#define QUERY_SQLSTATE_H

#include "duck/session.h"

/* PostgreSQL documentation, "PostgreSQL Error Codes". */
#define SQLSTATE_SUCCESS               "00000"
#define SQLSTATE_PROTOCOL_VIOLATION    "08P01"
#define SQLSTATE_UNSUPPORTED           "0A000"
#define SQLSTATE_NUMBER_OUT_OF_RANGE   "22003"
#define SQLSTATE_DIVISION_BY_ZERO      "22012"
#define SQLSTATE_INVALID_PARAMETER     "22023"
#define SQLSTATE_INVALID_TEXT          "22P02"
#define SQLSTATE_INVALID_BINARY        "22P03"
#define SQLSTATE_ACTIVE_TRANSACTION    "25001"
#define SQLSTATE_READ_ONLY             "25006"
#define SQLSTATE_NO_TRANSACTION        "25P01"
#define SQLSTATE_FAILED_TRANSACTION    "25P02"
#define SQLSTATE_NO_STATEMENT          "26000"
#define SQLSTATE_INVALID_AUTHORIZATION "28000"
#define SQLSTATE_NO_PORTAL             "34000"
#define SQLSTATE_DENIED                "42501"
#define SQLSTATE_SYNTAX                "42601"
#define SQLSTATE_UNDEFINED_COLUMN      "42703"
#define SQLSTATE_UNDEFINED_OBJECT      "42704"
#define SQLSTATE_AMBIGUOUS_COLUMN      "42702"
#define SQLSTATE_GROUPING              "42803"
#define SQLSTATE_TYPE_MISMATCH         "42804"
#define SQLSTATE_UNDEFINED_FUNCTION    "42883"
#define SQLSTATE_UNDEFINED_TABLE       "42P01"
#define SQLSTATE_UNDEFINED_PARAMETER   "42P02"
#define SQLSTATE_DUPLICATE_STATEMENT   "42P05"
#define SQLSTATE_DUPLICATE_PORTAL      "42P03"
#define SQLSTATE_TOO_MANY_CONNECTIONS  "53300"
#define SQLSTATE_OUT_OF_MEMORY         "53200"
#define SQLSTATE_TOO_COMPLEX           "54001"
#define SQLSTATE_NOT_READY             "55000"
#define SQLSTATE_CANCELED              "57014"
#define SQLSTATE_SHUTDOWN              "57P01"
#define SQLSTATE_IO                    "58030"
#define SQLSTATE_INTERNAL              "XX000"

/* What goes into an ErrorResponse. The Error carries the message (and "hint:" line). */
typedef struct QueryFailure {
    char sqlstate[6];
    int64_t position; /* byte offset in the statement; -1: not known */
} QueryFailure;

/* Set both; returns false. */
bool query_fail(QueryFailure *failure, Error *err, const char *sqlstate, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* What DuckDB said, in Postgres' words where it has some for it. Returns false. */
bool query_fail_duck(QueryFailure *failure, Error *err, const DuckFailure *duck);

#endif
