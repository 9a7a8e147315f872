#include "pg/conn_internal.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"

enum { BEAT_MS = 1000 };

void
pg_close(PgConn *conn)
{
    if (conn == NULL)
        return;
    PQfreemem(conn->row);
    PQfinish(conn->pg);
    free(conn);
}

void
pg_closep(PgConn **conn)
{
    pg_close(*conn);
}

int
pg_library_version(void)
{
    return PQlibVersion();
}

int
pg_server_version(const PgConn *conn)
{
    return PQserverVersion(conn->pg);
}

int
pg_backend_pid(const PgConn *conn)
{
    return PQbackendPID(conn->pg);
}

bool
pg_is_replication(const PgConn *conn)
{
    return conn->replication;
}

const char *
pg_database(const PgConn *conn)
{
    return PQdb(conn->pg);
}

const char *
pg_describe(const PgConn *conn)
{
    return conn->describe;
}

const char *
pg_sqlstate(const PgConn *conn)
{
    return conn->sqlstate;
}

int
pg_socket(const PgConn *conn)
{
    return PQsocket(conn->pg);
}

/* --- waiting ------------------------------------------------------------------------------- */

/* Closing the socket does not end a statement that waits inside the server (the creation of a slot
 * waits for old transactions), so say it out loud. */
static void
request_cancel(PgConn *conn)
{
    if (conn->streaming || PQtransactionStatus(conn->pg) != PQTRANS_ACTIVE)
        return;

    char reason[256];
    PGcancel *handle = PQgetCancel(conn->pg);

    if (handle != NULL)
        PQcancel(handle, reason, sizeof reason);
    PQfreeCancel(handle);
}

static bool
wait_without_token(int fd, short events, int64_t ms, bool *out_ready, Error *err)
{
    struct pollfd pollfd = {.fd = fd, .events = events};
    int64_t deadline = clock_ms() + ms;

    for (;;) {
        int64_t left = ms < 0 ? -1 : deadline - clock_ms();
        int n = poll(&pollfd, 1, left < 0 && ms >= 0 ? 0 : (int) left);

        if (n > 0 || (n == 0 && ms >= 0)) {
            *out_ready = n > 0;
            return true;
        }
        if (n < 0 && errno != EINTR)
            return FAIL(err, ERR_TRANSIENT, "poll: %s", strerrordesc_np(errno));
    }
}

void
pg_set_beat(PgConn *conn, void (*beat)(void *arg), void *arg)
{
    assert(conn->answer_ms < 0);
    conn->beat = beat;
    conn->beat_arg = arg;
}

bool
conn_wait(PgConn *conn, short events, int64_t ms, bool *out_ready, Error *err)
{
    int fd = PQsocket(conn->pg);

    if (conn->cancel == NULL)
        return wait_without_token(fd, events, ms, out_ready, err);
    if (cancel_poll(conn->cancel, fd, events, ms, out_ready, err))
        return true;
    if (err->kind == ERR_CANCELED)
        request_cancel(conn);
    return false;
}

bool
conn_next_result(PgConn *conn, PGresult **out_result, Error *err)
{
    while (PQisBusy(conn->pg)) {
        bool ready;

        TRY(conn_wait(conn, POLLIN, conn->beat == NULL ? conn->answer_ms : BEAT_MS, &ready, err));
        if (!ready && conn->beat != NULL) {
            conn->beat(conn->beat_arg);
            continue;
        }
        if (!ready) {
            request_cancel(conn);
            return FAIL(err, ERR_TRANSIENT, "%s: no answer within %lld s", conn->describe,
                        (long long) conn->answer_ms / 1000);
        }
        if (!PQconsumeInput(conn->pg))
            return conn_lost(conn, err);
    }
    *out_result = PQgetResult(conn->pg);
    return true;
}

/* --- errors -------------------------------------------------------------------------------- */

static bool
is_listed(const char *sqlstate, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(sqlstate, list[i], strlen(list[i])) == 0)
            return true;
    return false;
}

ErrKind
conn_error_kind(const char *sqlstate)
{
    static const char *const transient[] = {"08",    "25P03", "25P04", "40",   "53",
                                            "55006", "55P03", "57",    "58030"};

    if (strcmp(sqlstate, "08P01") == 0) /* it will not get better */
        return ERR_INPUT;
    return is_listed(sqlstate, transient, sizeof transient / sizeof transient[0]) ? ERR_TRANSIENT
                                                                                  : ERR_INPUT;
}

ErrKind
conn_ask_error_kind(const char *sqlstate)
{
    static const char *const races[] = {"23505", "3F000", "42703", "42704",
                                        "42710", "42P01", "XX000"};

    if (is_listed(sqlstate, races, sizeof races / sizeof races[0]))
        return ERR_TRANSIENT;
    return conn_error_kind(sqlstate);
}

/* A server's text as part of one line: line ends become blanks, the last full stop goes. */
static void
put_one_line(Buf *out, const char *text)
{
    size_t start = out->len;

    for (; *text != '\0'; text++)
        buf_byte(out, *text == '\n' || *text == '\t' || *text == '\r' ? ' ' : (uint8_t) *text);
    while (out->len > start && (out->ptr[out->len - 1] == ' ' || out->ptr[out->len - 1] == '.'))
        out->len--;
}

bool
conn_lost(PgConn *conn, Error *err)
{
    AUTO_BUF Buf text = {0};
    const char *msg = PQerrorMessage(conn->pg);

    /* The lines after the first are libpq's advice ("This probably means ..."). */
    buf_append(&text, msg, strcspn(msg, "\n"));
    conn->sqlstate[0] = '\0';
    return FAIL(err, ERR_TRANSIENT, "%s: %s", conn->describe,
                text.len == 0 ? "connection lost" : buf_text(&text));
}

bool
conn_fail(PgConn *conn, const PGresult *result, Error *err)
{
    AUTO_BUF Buf text = {0};
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);

    if (sqlstate == NULL || primary == NULL)
        return conn_lost(conn, err);
    snprintf(conn->sqlstate, sizeof conn->sqlstate, "%s", sqlstate);
    put_one_line(&text, primary);
    if (detail != NULL) {
        buf_cstr(&text, " (");
        put_one_line(&text, detail);
        buf_byte(&text, ')');
    }
    if (hint != NULL) {
        buf_cstr(&text, "\nhint: ");
        put_one_line(&text, hint);
    }
    return FAIL(err, conn_error_kind(sqlstate), "%s", buf_text(&text));
}

/* --- statements ---------------------------------------------------------------------------- */

static bool
is_failure(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE;
}

/* All results of what was sent: the last one, or the first failure. */
static bool
collect(PgConn *conn, PGresult **out_last, Error *err)
{
    AUTO_PGRESULT PGresult *last = NULL;
    bool failed = false;

    for (;;) {
        PGresult *result = NULL;

        TRY(conn_next_result(conn, &result, err));
        if (result == NULL)
            break;
        if (failed) { /* drained, so that the connection stays usable */
            PQclear(result);
            continue;
        }
        PQclear(last);
        last = result;
        failed = is_failure(result);

        ExecStatusType status = PQresultStatus(result);

        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH)
            return FAIL(err, ERR_BUG, "a COPY where a plain statement was expected");
    }
    if (failed)
        return conn_fail(conn, last, err);
    if (PQstatus(conn->pg) != CONNECTION_OK)
        return conn_lost(conn, err);
    *out_last = last;
    last = NULL;
    return true;
}

static void
keep_result(Arena *arena, const PGresult *from, PgResult *out_result)
{
    int rows = from == NULL ? 0 : PQntuples(from);
    int columns = from == NULL ? 0 : PQnfields(from);
    PgResult result = {.rows = rows, .columns = columns};

    result.names = ARENA_ARRAY(arena, Str, (size_t) columns);
    result.values = ARENA_ARRAY(arena, Str, (size_t) rows * (size_t) columns);
    for (int column = 0; column < columns; column++)
        result.names[column] = arena_str(arena, str_of(PQfname(from, column)));
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column < columns; column++) {
            Str value = {.ptr = PQgetvalue(from, row, column),
                         .len = (size_t) PQgetlength(from, row, column)};

            if (!PQgetisnull(from, row, column))
                result.values[row * columns + column] = arena_str(arena, value);
        }
    }
    *out_result = result;
}

static bool
finish(PgConn *conn, Arena *arena, PgResult *out_result, Error *err)
{
    AUTO_PGRESULT PGresult *last = NULL;

    TRY(collect(conn, &last, err));
    if (out_result != NULL)
        keep_result(arena, last, out_result);
    return true;
}

/* NOLINTBEGIN(readability-function-size): seven parameters, as PQexecParams */
bool
pg_query(PgConn *conn, Arena *arena, const char *sql, int param_count, const char *const *params,
         PgResult *out_result, Error *err)
{
    /* A walsender speaks the simple protocol only. */
    if (param_count == 0)
        return pg_exec(conn, arena, sql, out_result, err);
    conn->sqlstate[0] = '\0';
    if (!PQsendQueryParams(conn->pg, sql, param_count, NULL, params, NULL, NULL, 0))
        return conn_lost(conn, err);
    return finish(conn, arena, out_result, err);
}

bool
pg_ask(PgConn *conn, Arena *arena, const char *sql, int param_count, const char *const *params,
       PgResult *out_result, Error *err)
{
    if (pg_query(conn, arena, sql, param_count, params, out_result, err))
        return true;
    if (conn->sqlstate[0] != '\0')
        err->kind = conn_ask_error_kind(conn->sqlstate);
    return false;
}

/* NOLINTEND(readability-function-size) */

bool
pg_exec(PgConn *conn, Arena *arena, const char *sql, PgResult *out_result, Error *err)
{
    conn->sqlstate[0] = '\0';
    if (!PQsendQuery(conn->pg, sql))
        return conn_lost(conn, err);
    return finish(conn, arena, out_result, err);
}

/* --- quoting ------------------------------------------------------------------------------- */

static const char *
quote(Arena *arena, Str text, char mark)
{
    char *out = arena_alloc(arena, 2 * text.len + 3);
    char *p = out;

    *p++ = mark;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == mark)
            *p++ = mark;
        *p++ = text.ptr[i];
    }
    *p++ = mark;
    *p = '\0';
    return out;
}

const char *
pg_quote_identifier(Arena *arena, Str name)
{
    return quote(arena, name, '"');
}

const char *
pg_quote_literal(Arena *arena, Str text)
{
    /* standard_conforming_strings is pinned, so a backslash is a backslash; replication commands
     * know no other form. */
    return quote(arena, text, '\'');
}
