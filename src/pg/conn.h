/* conn.h - connections to Postgres: libpq behind plain functions, with errors that say what to do.
 *
 * Nothing outside pg/ includes libpq-fe.h. Every connection pins the session settings that change
 * how values are written (postgres-notes section 3). All waiting happens in poll(2) together with
 * the cancel token. */
#ifndef PG_CONN_H
#define PG_CONN_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/cancel.h"

#include <stdlib.h>

typedef struct PgConn PgConn;

typedef struct PgConnect {
    const char *conninfo; /* libpq keywords or URI; PG* variables and ~/.pgpass work */
    bool replication;     /* replication=database: a walsender */
    const char *application_name;
    Cancel *cancel;        /* NULL: cannot be interrupted */
    int connect_timeout_s; /* 0 = 10 */
    /* For questions to the catalogs, whose answers are not worth waiting for: a lock is waited for
     * 2 s, any sign of an answer 60 s. ERR_TRANSIENT then; after the latter, close. */
    bool impatient;
} PgConnect;

/* ERR_TRANSIENT: unreachable, starting up, too many connections. ERR_INPUT with a hint: wrong
 * password, no such database or role, pg_hba, a connection pooler in transaction mode. Secrets
 * never appear in messages. */
bool pg_connect(const PgConnect *connect, PgConn **out_conn, Error *err) WARN_UNUSED;
/* Whether the server refuses new connections for now: it shuts down, or starts up. */
bool pg_is_leaving(const PgConnect *connect);
void pg_close(PgConn *conn); /* NULL is fine */
void pg_closep(PgConn **conn);
#define AUTO_PG __attribute__((cleanup(pg_closep)))

int pg_server_version(const PgConn *conn); /* 150018 */
/* Of libpq, e.g. 150018. */
int pg_library_version(void);
int pg_backend_pid(const PgConn *conn); /* the server's process */
bool pg_is_replication(const PgConn *conn);
const char *pg_database(const PgConn *conn);
/* host, port, user for messages, without secrets: "postgres@db.example:5432/shop" */
const char *pg_describe(const PgConn *conn);

/* Result of a query: text values, all in the arena. value(row, col).ptr == NULL is NULL. */
typedef struct PgResult {
    int rows;
    int columns;
    Str *values; /* rows * columns, row by row */
    Str *names;
} PgResult;

static inline Str
pg_value(const PgResult *result, int row, int column)
{
    return result->values[row * result->columns + column];
}

/* As a number; NULL reads 0. For catalog columns, which are what they say. */
static inline int64_t
pg_value_int(const PgResult *result, int row, int column)
{
    Str value = pg_value(result, row, column);

    return value.ptr == NULL ? 0 : strtoll(value.ptr, NULL, 10);
}

static inline bool
pg_value_bool(const PgResult *result, int row, int column)
{
    return str_eq(pg_value(result, row, column), STR("t"));
}

/* One statement with text parameters ($1...); params may be NULL when count is 0 (and on a
 * replication connection there can be none). Server errors map to kinds by SQLSTATE. ERR_TRANSIENT:
 *
 *     08      connection exceptions, but not 08P01 (protocol violation)
 *     25P03   idle in a transaction for too long; 25P04: a transaction that took too long
 *     40      serialization failure, deadlock
 *     53      out of memory, of disk, of connections
 *     55006   object in use: a slot that another walsender still holds
 *     55P03   a lock was not had in time
 *     57      canceled, shutting down, starting up
 *     58030   I/O error
 *
 * and ERR_INPUT for all others: rights, authentication, what is not there, bad data. err->msg holds
 * the server's message, its hint as a "hint:" line. */
bool pg_query(PgConn *conn, Arena *arena, const char *sql, int param_count,
              const char *const *params, PgResult *out_result, Error *err) WARN_UNUSED;
/* A question of our own about the catalogs, or what we do upon its answer. What it is about may be
 * altered at the same moment, and server functions look at the catalogs of now, not of the
 * snapshot; so these are ERR_TRANSIENT, too, and it is asked again later:
 *
 *     23505, 42710          somebody else made the same just now
 *     3F000, 42P01, 42703   a schema, relation or column that is gone
 *     42704                 "type with OID 0 does not exist"
 *     XX000                 "cache lookup failed for ...", "could not open relation with OID ..."
 */
bool pg_ask(PgConn *conn, Arena *arena, const char *sql, int param_count, const char *const *params,
            PgResult *out_result, Error *err) WARN_UNUSED;
/* Statement without interesting result; simple protocol (several statements, replication
 * commands). The result of the last one, or NULL. */
bool pg_exec(PgConn *conn, Arena *arena, const char *sql, PgResult *out_result,
             Error *err) WARN_UNUSED;
/* A statement may wait in the server for a long time: then this is called every second, by the
 * thread that waits. Not on an impatient connection. NULL: no more. */
void pg_set_beat(PgConn *conn, void (*beat)(void *arg), void *arg);
/* How many digits after the point an amount of money has under lc_monetary = `locale`; NULL: under
 * the source's own, which the role, the database or the server gives this session. Inside of a
 * transaction or not, lc_monetary is C again afterwards. */
bool pg_money_digits(PgConn *conn, const char *locale, int *out_digits, Error *err) WARN_UNUSED;
/* The SQLSTATE of the last failure on this connection, "" when none: "42501". */
const char *pg_sqlstate(const PgConn *conn);

/* COPY ... TO STDOUT: start, then rows until *out_end. A row is valid (and writable) until the next
 * call. */
bool pg_copy_start(PgConn *conn, const char *sql, Error *err) WARN_UNUSED;
bool pg_copy_row(PgConn *conn, char **out_row, size_t *out_size, bool *out_end,
                 Error *err) WARN_UNUSED;
/* Give the last row (or frame of the stream) back before the next call. */
void pg_row_done(PgConn *conn);

/* Quote for SQL text. */
const char *pg_quote_identifier(Arena *arena, Str name);
const char *pg_quote_literal(Arena *arena, Str text);

/* --- the replication stream, on a connection opened with replication = true ------------------ */

typedef struct PgStream {
    const char *slot;
    uint64_t start_lsn;       /* 0: from the slot's confirmed position */
    const char *publications; /* comma separated, quoted identifiers */
} PgStream;

bool pg_stream_start(PgConn *conn, const PgStream *stream, Error *err) WARN_UNUSED;

typedef struct PgFrame {
    enum { PG_FRAME_NONE, PG_FRAME_DATA, PG_FRAME_KEEPALIVE, PG_FRAME_END } kind;

    Str payload;          /* DATA: one pgoutput message, valid until the next call */
    uint64_t wal_start;   /* DATA */
    uint64_t wal_end;     /* server's position */
    bool reply_requested; /* KEEPALIVE */
} PgFrame;

/* Next frame, without waiting: PG_FRAME_NONE when nothing is buffered. END: the server ended the
 * stream. Errors: ERR_TRANSIENT (connection lost, slot in use: 55006), ERR_INPUT (slot invalidated,
 * publication missing). */
bool pg_stream_next(PgConn *conn, PgFrame *out_frame, Error *err) WARN_UNUSED;
/* For poll(2). */
int pg_socket(const PgConn *conn);
/* Standby status update: written, flushed (what the slot may forget), applied are all `flushed`
 * except written. */
bool pg_stream_status(PgConn *conn, uint64_t written, uint64_t flushed, bool request_reply,
                      Error *err) WARN_UNUSED;
/* End the stream in order: what is still coming is thrown away, until the server has ended it too
 * or ms are over (ERR_TRANSIENT). Does not look at the cancel token: it is how one leaves. */
bool pg_stream_finish(PgConn *conn, int64_t ms, Error *err) WARN_UNUSED;

#endif
