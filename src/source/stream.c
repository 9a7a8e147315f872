#include "source/stream.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "pg/conn.h"

enum {
    REPORT_MAX_MS = 10000, /* between two status updates, moved or not */
    REPORT_MIN_MS = 100,
    REPORT_FLUSHED_MS = 200, /* after the flushed position moved */
    REPORT_IDLE_MS = 1000,   /* while there is nothing to read */
    FINISH_MS = 5000,        /* for the server to hear our last words */
    SILENCE_MIN_MS = 60000,  /* before the server is asked for a sign of life */
    LEAVE_MS = 5000,         /* that a server which shuts down waits for us, at most */
    ASK_MS = 10000,          /* between two questions whether it does, while nothing is read */
    ASK_CONNECT_S = 2,
};

struct Stream {
    PgConn *conn;
    Cancel *cancel;
    const char *conninfo; /* the caller's */
    Arena *arena;         /* of the decoded message */
    int64_t report_interval_ms;
    int64_t silence_ms;  /* ask for a reply after this, give up after this much more */
    int64_t reported_ms; /* clock of the last status update */
    int64_t heard_ms;    /* clock of the last sign of life */
    int64_t asked_ms;    /* clock of the question, when `asked` */
    bool asked;
    int64_t requested_ms; /* clock of the server's last request for a status update */
    int64_t hurried_ms;   /* and of the first one of those that come without a pause */
    int64_t looked_ms;    /* while nothing is read: clock of the last question; 0: it is read */
    bool ended;           /* by the server */
    Position reported;    /* flushed position in the last status update */
    Position received;
    _Atomic Position flushed;
};

/* --- opening --------------------------------------------------------------------------------- */

int64_t
stream_report_interval(int64_t sender_timeout_ms)
{
    int64_t interval = sender_timeout_ms / 4;

    if (sender_timeout_ms == 0 || interval > REPORT_MAX_MS)
        return REPORT_MAX_MS;
    return interval < REPORT_MIN_MS ? REPORT_MIN_MS : interval;
}

static bool
learn_timeout(Stream *stream, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PgResult r;

    if (!pg_exec(stream->conn, arena,
                 "SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout'", &r, err))
        return WRAP(err, "read wal_sender_timeout");

    int64_t timeout_ms = r.rows == 1 ? pg_value_int(&r, 0, 0) : 0;

    stream->report_interval_ms = stream_report_interval(timeout_ms);
    stream->silence_ms = timeout_ms > SILENCE_MIN_MS ? timeout_ms : SILENCE_MIN_MS;
    return true;
}

/* Behind one address there may be another server than a moment ago. */
static bool
check_timeline(const Stream *stream, int expected, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PgResult r;

    if (expected == 0)
        return true;
    if (!pg_exec(stream->conn, arena, "IDENTIFY_SYSTEM", &r, err))
        return WRAP(err, "identify the server");
    if (r.rows == 1 && pg_value_int(&r, 0, 1) == expected)
        return true;
    return FAIL(err, ERR_TRANSIENT, "the source is not on timeline %d any more", expected);
}

static bool
start(Stream *stream, const StreamOpen *open, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();

    if (pg_stream_start(
            stream->conn,
            &(PgStream){.slot = open->slot,
                        .start_lsn = open->start,
                        .publications = pg_quote_identifier(arena, str_of(open->publication))},
            err))
        return true;
    if (strcmp(pg_sqlstate(stream->conn), "42704") == 0 && strstr(err->msg, "hint: ") == NULL)
        return FAIL(err, ERR_INPUT,
                    "slot %s does not exist: changes since it was read last cannot be "
                    "had\n" HINT_BEGIN_AGAIN,
                    open->slot);
    WRAP(err, "read slot %s", open->slot);
    if (err->kind == ERR_INPUT && strstr(err->msg, "hint: ") == NULL) {
        size_t n = strlen(err->msg);

        snprintf(err->msg + n, sizeof err->msg - n,
                 "\nhint: when the server invalidated it, " BEGIN_AGAIN);
    }
    return false;
}

bool
stream_open(const StreamOpen *open, Stream **out_stream, Error *err)
{
    AUTO_STREAM Stream *stream = xcalloc(1, sizeof *stream);

    stream->cancel = open->cancel;
    stream->conninfo = open->conninfo;
    stream->arena = arena_new();
    atomic_init(&stream->flushed, open->start);
    TRY(pg_connect(&(PgConnect){.conninfo = open->conninfo,
                                .replication = true,
                                .application_name = open->application_name,
                                .cancel = open->cancel},
                   &stream->conn, err));
    TRY(FAULT("source.stream.open", err));
    TRY(check_timeline(stream, open->timeline, err));
    TRY(learn_timeout(stream, err));
    TRY(start(stream, open, err));
    stream->reported_ms = stream->heard_ms = clock_ms();
    *out_stream = stream;
    stream = NULL;
    return true;
}

void
stream_close(Stream *stream)
{
    if (stream == NULL)
        return;
    pg_close(stream->conn);
    arena_free(stream->arena);
    free(stream);
}

void
stream_closep(Stream **stream)
{
    stream_close(*stream);
}

/* --- positions ------------------------------------------------------------------------------- */

void
stream_set_flushed(Stream *stream, Position position)
{
    Position now = atomic_load(&stream->flushed);

    while (now < position && !atomic_compare_exchange_weak(&stream->flushed, &now, position)) {
    }
}

Position
stream_flushed(const Stream *stream)
{
    return atomic_load(&stream->flushed);
}

Position
stream_received(const Stream *stream)
{
    return stream->received;
}

static void
see_position(Stream *stream, Position position)
{
    if (position > stream->received)
        stream->received = position;
}

/* --- status updates -------------------------------------------------------------------------- */

static bool
report(Stream *stream, bool request_reply, Error *err)
{
    Position flushed = stream_flushed(stream);
    Position written = flushed > stream->received ? flushed : stream->received;

    TRY(pg_stream_status(stream->conn, written, flushed, request_reply, err));
    stream->reported_ms = clock_ms();
    stream->reported = flushed;
    return true;
}

bool
stream_finish(Stream *stream, Error *err)
{
    if (stream->ended)
        return true;
    TRY(report(stream, false, err));
    return pg_stream_finish(stream->conn, FINISH_MS, err);
}

/* Milliseconds until an update is due; 0 or less: now. A walsender that looks for new WAL just
 * before it is flushed can miss its wakeup (16 and newer wait on a condition variable that they
 * join after looking); any word from us makes it look again, so an idle stream says one a second.
 */
static int64_t
report_due_in(const Stream *stream, int64_t now, bool idle)
{
    bool moved = stream_flushed(stream) != stream->reported;
    int64_t interval = stream->report_interval_ms;

    if (idle && interval > REPORT_IDLE_MS)
        interval = REPORT_IDLE_MS;
    if (moved && interval > REPORT_FLUSHED_MS)
        interval = REPORT_FLUSHED_MS;
    return stream->reported_ms + interval - now;
}

static bool
report_if_due(Stream *stream, bool idle, Error *err)
{
    return report_due_in(stream, clock_ms(), idle) > 0 ? true : report(stream, false, err);
}

/* TCP notices a dead peer late or, behind some proxies, never: after a long silence ask for a
 * reply, and give up when there is none. Called when nothing is left to read, so that a pause of
 * our own is not taken for the server's. */
static bool
check_silence(Stream *stream, Error *err)
{
    int64_t now = clock_ms();

    if (stream->asked && now - stream->asked_ms > stream->silence_ms)
        return FAIL(err, ERR_TRANSIENT, "%s: no sign of life for %lld s", pg_describe(stream->conn),
                    (long long) (now - stream->heard_ms) / 1000);
    if (stream->asked || now - stream->heard_ms <= stream->silence_ms)
        return true;
    stream->asked = true;
    stream->asked_ms = now;
    return report(stream, true, err);
}

/* --- a server that shuts down ---------------------------------------------------------------- */

/* Its walsender stays until we have confirmed all that it sent, and asks for that again and again;
 * no timeout ends this, because we answer. So does the whole server, although a parked table may
 * hold the slot back for days. Else it asks once in half of wal_sender_timeout at most.
 * src/backend/replication/walsender.c, WalSndDone(). */
static bool
note_request(Stream *stream, Error *err)
{
    int64_t now = clock_ms();

    if (now - stream->requested_ms > stream->report_interval_ms)
        stream->hurried_ms = now;
    stream->requested_ms = now;
    return now - stream->hurried_ms < LEAVE_MS ||
           FAIL(err, ERR_TRANSIENT, "%s: the server shuts down", pg_describe(stream->conn));
}

/* What it asks is not read while its messages cannot be taken. But it tells whoever connects. */
static bool
look_whether_it_leaves(Stream *stream, Error *err)
{
    int64_t now = clock_ms();

    if (stream->looked_ms == 0)
        stream->looked_ms = now;
    if (now - stream->looked_ms < ASK_MS)
        return true;
    stream->looked_ms = now;
    return !pg_is_leaving(&(PgConnect){.conninfo = stream->conninfo,
                                       .application_name = "walberg",
                                       .cancel = stream->cancel,
                                       .connect_timeout_s = ASK_CONNECT_S}) ||
           FAIL(err, ERR_TRANSIENT, "%s: the server shuts down", pg_describe(stream->conn));
}

bool
stream_service(Stream *stream, int64_t ms, Error *err)
{
    int64_t deadline = clock_ms() + ms;

    TRY(look_whether_it_leaves(stream, err));
    for (;;) {
        int64_t now = clock_ms();
        int64_t due = report_due_in(stream, now, false);
        int64_t left = deadline - now;

        if (due <= 0)
            TRY(report(stream, false, err));
        if (left <= 0)
            return true;
        if (due <= 0 || due > REPORT_FLUSHED_MS)
            due = REPORT_FLUSHED_MS; /* flushed may move meanwhile */
        TRY(cancel_sleep(stream->cancel, due < left ? due : left, err));
    }
}

/* --- reading --------------------------------------------------------------------------------- */

static bool
take_data(Stream *stream, const PgFrame *frame, StreamEvent *out_event, Error *err)
{
    arena_reset(stream->arena);
    out_event->kind = STREAM_MESSAGE;
    out_event->lsn = frame->wal_start;
    TRY(pgoutput_decode(frame->payload, stream->arena, &out_event->message, err));
    if (out_event->message.kind == 'C')
        see_position(stream, out_event->message.commit.end_lsn);
    return true;
}

/* The server looks the publication up as of the change that it decodes: one that was made again is
 * of no use for what happened before. */
static bool
explain_end(const Stream *stream, Error *err)
{
    char reason[512];

    if (strcmp(pg_sqlstate(stream->conn), "42704") != 0 || strstr(err->msg, "publication") == NULL)
        return false;
    snprintf(reason, sizeof reason, "%.*s", (int) strcspn(err->msg, "\n"), err->msg);
    return FAIL(err, ERR_INPUT,
                "%s: it was dropped, perhaps made again, and the slot cannot be read past "
                "that\n" HINT_BEGIN_AGAIN,
                reason);
}

/* *out_event is filled unless nothing is buffered (*out_none). */
static bool
take_frame(Stream *stream, StreamEvent *out_event, bool *out_none, Error *err)
{
    PgFrame frame;

    if (!pg_stream_next(stream->conn, &frame, err))
        return explain_end(stream, err);
    *out_none = frame.kind == PG_FRAME_NONE;
    if (*out_none)
        return true;
    stream->heard_ms = clock_ms();
    stream->looked_ms = 0;
    stream->asked = false;
    switch (frame.kind) {
    case PG_FRAME_DATA:
        TRY(take_data(stream, &frame, out_event, err));
        break;
    case PG_FRAME_KEEPALIVE:
        see_position(stream, frame.wal_end);
        *out_event = (StreamEvent){.kind = STREAM_KEEPALIVE, .server = frame.wal_end};
        if (frame.reply_requested)
            return note_request(stream, err) && report(stream, false, err);
        break;
    case PG_FRAME_END:
        stream->ended = true;
        *out_event = (StreamEvent){.kind = STREAM_END};
        return true;
    case PG_FRAME_NONE:
        break;
    }
    return report_if_due(stream, false, err);
}

/* Until the socket has something, the next report is due or the time is over. */
static bool
wait_for_socket(Stream *stream, int64_t deadline, Error *err)
{
    int64_t now = clock_ms();
    int64_t wait = deadline - now;
    int64_t due = report_due_in(stream, now, true);
    bool ready;

    if (due < wait)
        wait = due;
    if (wait > REPORT_FLUSHED_MS)
        wait = REPORT_FLUSHED_MS; /* another thread may move flushed */
    return cancel_poll(stream->cancel, pg_socket(stream->conn), POLLIN, wait < 0 ? 0 : wait, &ready,
                       err);
}

bool
stream_next(Stream *stream, int64_t wait_ms, StreamEvent *out_event, Error *err)
{
    int64_t deadline = -1;

    if (cancel_is_set(stream->cancel))
        return FAIL(err, ERR_CANCELED, "canceled");
    for (;;) {
        bool none = true;

        TRY(take_frame(stream, out_event, &none, err));
        if (!none)
            return true;
        TRY(report_if_due(stream, true, err));
        TRY(check_silence(stream, err));

        int64_t now = clock_ms();

        if (deadline < 0)
            deadline = now + wait_ms;
        if (now >= deadline) {
            *out_event = (StreamEvent){.kind = STREAM_IDLE};
            return true;
        }
        TRY(wait_for_socket(stream, deadline, err));
    }
}

void
stream_message_done(Stream *stream)
{
    pg_row_done(stream->conn);
}
