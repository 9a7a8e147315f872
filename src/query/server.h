/* server.h - the query server: a socket, a thread per client, and the tables kept up to date. */
#ifndef QUERY_SERVER_H
#define QUERY_SERVER_H

#include "base/cancel.h"
#include "config/config.h"
#include "query/lake.h"

typedef struct QueryServe {
    const Config *config;
    const char *listen; /* "127.0.0.1:5433", "[::1]:5433", "localhost:5433" */
    const char *state;  /* local folder for cached and spilled data */
    Cancel *cancel;
    /* The read end of a pipe from the process that commits: any byte means "look again now", its
     * end that the server shall leave, too. -1: the catalog is looked at every second. */
    int notify_fd;
} QueryServe;

/* Serve until canceled (returns true), or until something is wrong with address or warehouse. */
bool query_serve(const QueryServe *serve, Error *err) WARN_UNUSED;

/* The tables of the configured warehouse, looked at once: for commands that run one statement.
 * *out_store is the caller's and must outlive the lake. */
bool query_open_lake(const Config *config, const char *state, Cancel *cancel, Store **out_store,
                     Lake **out_lake, Error *err) WARN_UNUSED;

#endif
