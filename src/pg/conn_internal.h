/* conn_internal.h - what the files of pg/ that speak libpq share. Nothing outside pg/ sees it. */
#ifndef PG_CONN_INTERNAL_H
#define PG_CONN_INTERNAL_H

#include <libpq-fe.h>

#include "pg/conn.h"

struct PgConn {
    PGconn *pg;
    Cancel *cancel; /* NULL: cannot be interrupted */
    bool replication;
    int64_t answer_ms;       /* an answer may take; -1: as long as it takes */
    void (*beat)(void *arg); /* NULL: nothing is to be done while an answer is waited for */
    void *beat_arg;
    bool streaming;   /* between pg_stream_start and the end of the stream */
    char *row;        /* last row or frame of PQgetCopyData, ours to free */
    char sqlstate[6]; /* of the last failure, "" when none */
    char describe[320];
};

static inline void
pg_result_clearp(PGresult **result)
{
    PQclear(*result);
}

#define AUTO_PGRESULT __attribute__((cleanup(pg_result_clearp)))

/* Wait for the socket (poll's events) or the token, at most ms (-1: no limit). When canceled while
 * a statement runs, the server is asked to stop it. */
bool conn_wait(PgConn *conn, short events, int64_t ms, bool *out_ready, Error *err) WARN_UNUSED;

/* The next result of what was sent, waiting for it; *out_result NULL when there is no more. */
bool conn_next_result(PgConn *conn, PGresult **out_result, Error *err) WARN_UNUSED;

/* Set err from a failed result: kind by SQLSTATE, message, detail, hint. Returns false. */
bool conn_fail(PgConn *conn, const PGresult *result, Error *err);

/* Set err from libpq's own message: the connection is gone. Returns false. */
bool conn_lost(PgConn *conn, Error *err);

/* The kind of a server error: of any statement, and of one that went through pg_ask(). */
ErrKind conn_error_kind(const char *sqlstate);
ErrKind conn_ask_error_kind(const char *sqlstate);

#endif
