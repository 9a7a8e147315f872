/* literal.h - a parameter of a client as a literal of SQL.
 *
 * Parameters are put into the statement's text as quoted literals before DuckDB plans it: then
 * filters reach the data files as constants (row groups are skipped), and a parameter whose type
 * the client left open is what an untyped literal is, as in Postgres. The text is guarded after
 * that, see guard.h. */
#ifndef QUERY_LITERAL_H
#define QUERY_LITERAL_H

#include "query/sqlstate.h"

typedef struct Parameter {
    uint32_t type_oid; /* 0: not said */
    int format;        /* 0 text, 1 binary */
    Str value;         /* ptr == NULL: NULL */
} Parameter;

/* What a client may send in binary: see literal_binary.c. */
bool literal_put(Buf *out, const Parameter *parameter, QueryFailure *failure,
                 Error *err) WARN_UNUSED;

#endif
