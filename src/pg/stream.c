/* The hot paths: rows of a COPY and frames of the replication stream. libpq hands out each as a
 * malloc'ed piece; asking without waiting (async) lets us drain what one recv() brought before the
 * next system call. */
#include "pg/conn_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>

#include "base/bytes.h"
#include "base/clock.h"

/* The rest of a statement that failed, so that the connection stays usable. */
static void
drain(PgConn *conn)
{
    Error ignored;
    PGresult *rest = NULL;

    do {
        PQclear(rest);
        rest = NULL;
    } while (conn_next_result(conn, &rest, &ignored) && rest != NULL);
}

/* Send a statement that turns the connection into a COPY of the given kind. */
static bool
start_copy(PgConn *conn, const char *sql, ExecStatusType wanted, Error *err)
{
    AUTO_PGRESULT PGresult *result = NULL;

    conn->sqlstate[0] = '\0';
    if (!PQsendQuery(conn->pg, sql))
        return conn_lost(conn, err);
    TRY(conn_next_result(conn, &result, err));
    if (PQresultStatus(result) == wanted)
        return true;
    if (PQresultStatus(result) != PGRES_FATAL_ERROR)
        return FAIL(err, ERR_BUG, "the server did not start a COPY");
    conn_fail(conn, result, err);
    drain(conn);
    return false;
}

/* The server ended the rows: with an error, or because there are no more. */
static bool
end_copy(PgConn *conn, Error *err)
{
    for (;;) {
        AUTO_PGRESULT PGresult *result = NULL;

        TRY(conn_next_result(conn, &result, err));
        if (result == NULL)
            return PQstatus(conn->pg) == CONNECTION_OK ? true : conn_lost(conn, err);
        if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
            conn_fail(conn, result, err);
            drain(conn);
            return false;
        }
    }
}

/* --- COPY TO STDOUT --------------------------------------------------------------------------- */

bool
pg_copy_start(PgConn *conn, const char *sql, Error *err)
{
    return start_copy(conn, sql, PGRES_COPY_OUT, err);
}

void
pg_row_done(PgConn *conn)
{
    PQfreemem(conn->row);
    conn->row = NULL;
}

bool
pg_copy_row(PgConn *conn, char **out_row, size_t *out_size, bool *out_end, Error *err)
{
    pg_row_done(conn);

    int size = PQgetCopyData(conn->pg, &conn->row, 1);

    while (size == 0) {
        if (conn->cancel != NULL && cancel_is_set(conn->cancel))
            return conn_wait(conn, POLLIN, 0, &(bool){false}, err);
        /* Read first and poll only when that brought nothing: half the system calls. */
        if (!PQconsumeInput(conn->pg))
            return conn_lost(conn, err);
        size = PQgetCopyData(conn->pg, &conn->row, 1);
        if (size == 0) {
            bool ready;

            TRY(conn_wait(conn, POLLIN, -1, &ready, err));
        }
    }
    if (size == -2)
        return conn_lost(conn, err);
    *out_end = size == -1;
    if (size == -1)
        return end_copy(conn, err);
    *out_row = conn->row;
    *out_size = (size_t) size;
    return true;
}

/* --- replication ------------------------------------------------------------------------------ */

bool
pg_stream_start(PgConn *conn, const PgStream *stream, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();

    assert(conn->replication);

    const char *sql = arena_printf(
        arena,
        "START_REPLICATION SLOT %s LOGICAL %" PRIX32 "/%" PRIX32
        " (proto_version '1', publication_names %s)",
        pg_quote_identifier(arena, str_of(stream->slot)), (uint32_t) (stream->start_lsn >> 32),
        (uint32_t) stream->start_lsn, pg_quote_literal(arena, str_of(stream->publications)));

    TRY(start_copy(conn, sql, PGRES_COPY_BOTH, err));
    conn->streaming = true;
    /* A status update must never wait for a server that is busy sending. */
    if (PQsetnonblocking(conn->pg, 1) != 0)
        return conn_lost(conn, err);
    return true;
}

/* The server ended the stream: with an error, or because it shuts down, and then it says "done" and
 * is gone without another word. */
static bool
end_stream(PgConn *conn, Error *err)
{
    AUTO_PGRESULT PGresult *result = NULL;

    conn->streaming = false;
    TRY(conn_next_result(conn, &result, err));
    if (PQresultStatus(result) != PGRES_FATAL_ERROR)
        return true;
    (void) !conn_fail(conn, result, err);
    /* catalogs changed under it, see pg_ask(): "cache lookup failed for type 0" beside ALTER TABLE
     */
    if (strcmp(conn->sqlstate, "XX000") == 0 &&
        strstr(err->msg, "cache lookup failed for ") != NULL)
        err->kind = ERR_TRANSIENT;
    return false;
}

/* XLogData:   'w' start(8) end(8) time(8) payload       Postgres documentation, "Streaming
 * keepalive:  'k' end(8) time(8) reply(1)               Replication Protocol"                */
static bool
parse_frame(PgConn *conn, size_t size, PgFrame *out_frame, Error *err)
{
    const char *p = conn->row;

    if (p[0] == 'w' && size >= 25) {
        *out_frame = (PgFrame){.kind = PG_FRAME_DATA,
                               .payload = {.ptr = p + 25, .len = size - 25},
                               .wal_start = load_be64(p + 1),
                               .wal_end = load_be64(p + 9)};
        return true;
    }
    if (p[0] == 'k' && size >= 18) {
        *out_frame = (PgFrame){
            .kind = PG_FRAME_KEEPALIVE, .wal_end = load_be64(p + 1), .reply_requested = p[17] != 0};
        return true;
    }
    return FAIL(err, ERR_BUG, "%s: replication frame '%c' of %zu bytes", conn->describe, p[0],
                size);
}

bool
pg_stream_next(PgConn *conn, PgFrame *out_frame, Error *err)
{
    pg_row_done(conn);

    int size = PQgetCopyData(conn->pg, &conn->row, 1);

    if (size == 0) {
        if (!PQconsumeInput(conn->pg)) /* also sends what is left of a status update */
            return conn_lost(conn, err);
        size = PQgetCopyData(conn->pg, &conn->row, 1);
    }
    if (size > 0)
        return parse_frame(conn, (size_t) size, out_frame, err);
    if (size == -2)
        return conn_lost(conn, err);
    *out_frame = (PgFrame){.kind = size == 0 ? PG_FRAME_NONE : PG_FRAME_END};
    return size == 0 ? true : end_stream(conn, err);
}

bool
pg_stream_status(PgConn *conn, uint64_t written, uint64_t flushed, bool request_reply, Error *err)
{
    /* Microseconds between the epochs of Unix and Postgres. */
    static const int64_t postgres_epoch_us = 946684800000000;
    char message[34] = {'r'};

    store_be64(message + 1, written);
    store_be64(message + 9, flushed);
    store_be64(message + 17, flushed);
    store_be64(message + 25, (uint64_t) (clock_wall_us() - postgres_epoch_us));
    message[33] = request_reply ? 1 : 0;
    /* 0: no room in the socket; the next update says the same and more. */
    if (PQputCopyData(conn->pg, message, sizeof message) < 0 || PQflush(conn->pg) < 0)
        return conn_lost(conn, err);
    return true;
}

static bool
finish_until(PgConn *conn, int64_t deadline, Error *err)
{
    PgFrame frame = {.kind = PG_FRAME_NONE};

    if (PQsetnonblocking(conn->pg, 0) != 0 || PQputCopyEnd(conn->pg, NULL) < 0)
        return conn_lost(conn, err);
    while (frame.kind != PG_FRAME_END) {
        int64_t left = deadline - clock_ms();
        bool ready;

        if (left <= 0)
            return FAIL(err, ERR_TRANSIENT, "%s: the server did not end the stream",
                        conn->describe);
        TRY(pg_stream_next(conn, &frame, err));
        if (frame.kind == PG_FRAME_NONE)
            TRY(conn_wait(conn, POLLIN, left, &ready, err));
    }
    return true;
}

bool
pg_stream_finish(PgConn *conn, int64_t ms, Error *err)
{
    Cancel *cancel = conn->cancel;

    if (!conn->streaming)
        return true;
    conn->cancel = NULL;

    bool done = finish_until(conn, clock_ms() + ms, err);

    conn->cancel = cancel;
    return done;
}
