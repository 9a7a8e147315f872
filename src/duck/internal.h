/* internal.h - what the files of this folder share and nobody else sees: DuckDB's handles.
 *
 * The only headers that include duckdb.h are this one and those that include it; none of them is
 * included from outside src/duck. */
#ifndef DUCK_INTERNAL_H
#define DUCK_INTERNAL_H

#include <duckdb.h>
#include <pthread.h>

#include "duck/duck.h"

/* A running duck_write_parquet(), private to parquet.c. */
typedef struct Feed Feed;

struct Duck {
    duckdb_database database;
    int threads;
    pthread_mutex_t lock; /* of what follows */
    Feed *feeds;          /* the writes that are running, found by number */
    int64_t next_feed;
    bool has_feed_function;
};

/* A connection of its own for one call. */
bool duck_connect(Duck *duck, duckdb_connection *out_connection, Error *err) WARN_UNUSED;

/* Run one statement whose result does not matter. */
bool duck_run(duckdb_connection connection, const char *sql, Error *err) WARN_UNUSED;

/* Turn a failed result into an Error: out of memory and I/O are transient, an interrupt is a
 * cancel, data that cannot be read is input, the rest is a bug of ours. Returns false. */
bool duck_result_error(duckdb_result *result, Error *err);

/* Start a query whose result is fetched chunk by chunk and never held as a whole. */
bool duck_stream(duckdb_connection connection, const char *sql, duckdb_result *out_result,
                 Error *err) WARN_UNUSED;

/* The next chunk, NULL at the end. */
bool duck_fetch(duckdb_result *result, duckdb_data_chunk *out_chunk, Error *err) WARN_UNUSED;

#define AUTO_CONNECTION __attribute__((cleanup(duckdb_disconnect)))
#define AUTO_RESULT     __attribute__((cleanup(duckdb_destroy_result)))
#define AUTO_PREPARED   __attribute__((cleanup(duckdb_destroy_prepare)))
#define AUTO_PENDING    __attribute__((cleanup(duckdb_destroy_pending)))
#define AUTO_TYPE       __attribute__((cleanup(duckdb_destroy_logical_type)))
#define AUTO_CHUNK      __attribute__((cleanup(duckdb_destroy_data_chunk)))

#endif
