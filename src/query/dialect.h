/* dialect.h - from Postgres' spelling to DuckDB's, token by token.
 *
 * Most of the dialect is settings (duck_lockdown) and macros (pg_catalog.c): ~ is made a macro
 * because DuckDB's own means a full match. What is left is spelling that DuckDB's parser does not
 * take or takes for something else:
 *
 *     pg_catalog.x                 -> x           our macros and views live in main
 *     information_schema.x         -> _information_schema.x
 *     OPERATOR(pg_catalog.~)       -> ~           DuckDB would lose the operator
 *     COLLATE pg_catalog.default   ->
 *     FETCH FIRST n ROWS ONLY      -> LIMIT n
 *     'x'::regclass                -> to_regclass('x')
 *     FROM unnest(x) u             -> FROM unnest(x) u(u)    the column has the alias' name
 *     at, show, pivot, ...         -> "at", ...              names there, keywords here
 *     $1                           -> a literal
 *     SIMILAR TO                   refused: DuckDB reads it as ~ */
#ifndef QUERY_DIALECT_H
#define QUERY_DIALECT_H

#include "query/literal.h"

/* Where pieces of the result came from, to show an error's place in the client's text. */
typedef struct DialectMap {
    Buf pieces; /* DialectPiece, ascending */
} DialectMap;

typedef struct DialectPiece {
    size_t out;
    size_t in;
} DialectPiece;

void dialect_map_done(DialectMap *map);
int64_t dialect_place(const DialectMap *map, int64_t out);

typedef struct DialectRewrite {
    Str sql; /* one statement, as the client wrote it */
    /* Replace $1 ... by these; NULL: leave them as they are. */
    const Parameter *parameters;
    int parameter_count;
} DialectRewrite;

/* out and map are emptied first. *out_parameter_max: the highest n of $n. */
bool dialect_rewrite(const DialectRewrite *rewrite, Buf *out, DialectMap *map,
                     int *out_parameter_max, QueryFailure *failure, Error *err) WARN_UNUSED;

#endif
