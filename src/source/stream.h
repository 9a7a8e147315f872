/* stream.h - the replication stream: messages in, positions back.
 *
 * The server gives up on a reader that it has not heard from for wal_sender_timeout, and keeps WAL
 * for one that does not say how far it is. So a status update goes out at least three times within
 * that timeout, every second while there is nothing to read, when the flushed position moved (at
 * most every 200 ms), and at once when the server asks. While the caller cannot take messages it
 * calls stream_service(), which does the same and reads nothing: what is unread stays in the socket
 * and the server waits.
 *
 * A server that shuts down waits until all that it has sent is confirmed. For 5 s, that is, or 10
 * if nothing is read: then ERR_TRANSIENT, and the caller closes the stream.
 *
 * One thread reads; stream_set_flushed() may be called from any thread. */
#ifndef SOURCE_STREAM_H
#define SOURCE_STREAM_H

#include "base/cancel.h"
#include "decode/pgoutput.h"
#include "model/position.h"

typedef struct Stream Stream;

typedef struct StreamOpen {
    const char *conninfo;
    const char *application_name;
    Cancel *cancel;
    const char *slot;
    const char *publication;
    int timeline;   /* ERR_TRANSIENT when the server is on another one: look again; 0: any */
    Position start; /* transactions that end after it; POSITION_NONE: where the slot is */
} StreamOpen;

/* Errors name the slot and say what mends it: in use (ERR_TRANSIENT), invalidated or missing
 * (ERR_INPUT). */
bool stream_open(const StreamOpen *open, Stream **out_stream, Error *err) WARN_UNUSED;
void stream_close(Stream *stream); /* NULL is fine */
void stream_closep(Stream **stream);
#define AUTO_STREAM __attribute__((cleanup(stream_closep)))

typedef enum StreamKind {
    STREAM_IDLE,      /* nothing within the time */
    STREAM_MESSAGE,   /* `message` */
    STREAM_KEEPALIVE, /* `server`: every transaction that ends at or before was sent already */
    STREAM_END,       /* the server shut the stream down in order */
} StreamKind;

typedef struct StreamEvent {
    StreamKind kind;
    Message message; /* views, valid until the next call */
    Position lsn;    /* MESSAGE: where in the WAL; 0 for Relation and Type */
    Position server; /* KEEPALIVE */
} StreamEvent;

/* The next event, waiting at most wait_ms. ERR_CANCELED, ERR_TRANSIENT (connection lost, server
 * silent), ERR_INPUT (slot invalidated meanwhile). */
bool stream_next(Stream *stream, int64_t wait_ms, StreamEvent *out_event, Error *err) WARN_UNUSED;

/* The message of the last event is not needed any more: it may be large. */
void stream_message_done(Stream *stream);

/* Only report, for up to ms (0: once, without waiting). */
bool stream_service(Stream *stream, int64_t ms, Error *err) WARN_UNUSED;

/* Everything up to here is durable in the sinks; the slot may forget it. Never goes back. With
 * nothing pending, the position of the last keepalive may be given, so that an idle database does
 * not hold WAL. */
void stream_set_flushed(Stream *stream, Position position);
Position stream_flushed(const Stream *stream);

/* The farthest position seen: end of commit records and keepalives. */
Position stream_received(const Stream *stream);

/* The last word before stream_close(): say what is flushed, end the stream in order and wait up to
 * 5 s for the server to agree, so that the slot has it when this returns. Works when canceled. */
bool stream_finish(Stream *stream, Error *err) WARN_UNUSED;

/* Milliseconds between updates for a wal_sender_timeout. */
int64_t stream_report_interval(int64_t sender_timeout_ms);

#endif
