/* duck.h - an embedded DuckDB: the Parquet engine of the writer, the SQL engine of the queries.
 *
 * Nothing outside this folder includes duckdb.h. A Duck is one in-memory database; its functions
 * may be called from several threads (each call opens its own connection). */
#ifndef DUCK_DUCK_H
#define DUCK_DUCK_H

#include "base/buf.h"
#include "base/cancel.h"
#include "base/error.h"

#include <stdint.h>

typedef struct Duck Duck;

typedef struct DuckOptions {
    int64_t memory_bytes_max;   /* DuckDB's memory_limit; 0 = its default */
    bool reads_once;            /* keep nothing of the files that are read */
    int threads;                /* background threads; 1 = the calling thread does all the work */
    const char *temp_directory; /* where it may spill; NULL = nowhere */
    int64_t temp_bytes_max;     /* and how much; 0 = DuckDB's default */
} DuckOptions;

bool duck_open(const DuckOptions *options, Duck **out_duck, Error *err) WARN_UNUSED;
void duck_close(Duck *duck); /* NULL is fine */

/* DuckDB's own version, e.g. "v1.5.6". */
const char *duck_version(void);

/* Quote an identifier or a string literal for SQL text. */

void duck_quote_identifier(Buf *out, Str name);
void duck_quote_literal(Buf *out, Str text);

#endif
