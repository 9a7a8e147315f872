/* wire.h - the Postgres frontend/backend protocol, server side: bytes in, bytes out, no sockets.
 *
 * Protocol 3.0 and 3.2 (PostgreSQL documentation, "Frontend/Backend Protocol", "Message Formats").
 *
 *     startup packet    [length 4][code 4][...]           no type byte
 *     any other         [type 1][length 4][body ...]      length counts itself, not the type
 *
 * Reading: wire_next() cuts one message out of what has arrived, wire_parse_*() takes its body
 * apart; everything parsed is a view into the body, arrays live in the arena. Whatever a client
 * sends, lengths are checked against the message and the message against a maximum, so a parse
 * never reads past its input and never allocates more than a small multiple of it. Errors are
 * ERR_INPUT: a protocol violation, after which the connection cannot go on.
 *
 * Writing: wire_put_*() append whole messages to a Buf. */
#ifndef PG_WIRE_H
#define PG_WIRE_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdint.h>

enum {
    WIRE_STARTUP_MAX = 10000,            /* bytes; Postgres' MAX_STARTUP_PACKET_LENGTH */
    WIRE_MESSAGE_MAX = 64 * 1024 * 1024, /* bytes of one message of a client */
    WIRE_PROTOCOL_3_0 = 3 << 16,
    WIRE_PROTOCOL_3_2 = (3 << 16) | 2, /* longer cancel keys; the newest we speak */
    WIRE_CANCEL_KEY_MAX = 256,         /* bytes, 3.2 */
};

/* --- what a client sends ------------------------------------------------------------------- */

typedef struct WireMessage {
    char type; /* 0: a startup packet */
    Str body;  /* view into the input */
} WireMessage;

/* The first message in `in`. *out_used is its size in bytes, 0 when more bytes are needed (then
 * *out_message is untouched). `started` is false until a startup packet was accepted. */
bool wire_next(Str in, bool started, WireMessage *out_message, size_t *out_used,
               Error *err) WARN_UNUSED;

typedef enum WireHello {
    WIRE_HELLO_START,
    WIRE_HELLO_SSL,    /* answer one byte: 'N' */
    WIRE_HELLO_GSSENC, /* likewise */
    WIRE_HELLO_CANCEL, /* no answer, close */
} WireHello;

typedef struct WireSetting {
    Str name;
    Str value;
} WireSetting;

typedef struct WireStartup {
    WireHello kind;
    int32_t protocol; /* START: as asked for; use wire_protocol() */
    int setting_count;
    WireSetting *settings; /* user, database, application_name, ... without _pq_ ones */
    int unknown_count;
    Str *unknown;        /* _pq_.* options; we know none */
    uint32_t cancel_pid; /* CANCEL */
    Str cancel_key;
} WireStartup;

bool wire_parse_startup(Arena *arena, Str body, WireStartup *out_startup, Error *err) WARN_UNUSED;

/* The version to speak with somebody who asked for `asked`: theirs, or our newest. */
int32_t wire_protocol(int32_t asked);

typedef struct WireParse {
    Str name; /* of the statement; empty: the unnamed one */
    Str query;
    int type_count;
    uint32_t *types; /* OIDs of the first parameters; 0: not said */
} WireParse;

typedef struct WireBind {
    Str portal;
    Str statement;
    int format_count; /* 0: all text; 1: for all; else one per parameter */
    int16_t *formats; /* 0 text, 1 binary */
    int value_count;
    Str *values; /* ptr == NULL: NULL */
    int result_format_count;
    int16_t *result_formats;
} WireBind;

/* Describe and Close: a statement 'S' or a portal 'P'. */
typedef struct WireTarget {
    char kind;
    Str name;
} WireTarget;

typedef struct WireExecute {
    Str portal;
    int32_t rows_max; /* 0: no limit */
} WireExecute;

bool wire_parse_query(Str body, Str *out_query, Error *err) WARN_UNUSED;
bool wire_parse_parse(Arena *arena, Str body, WireParse *out_parse, Error *err) WARN_UNUSED;
bool wire_parse_bind(Arena *arena, Str body, WireBind *out_bind, Error *err) WARN_UNUSED;
bool wire_parse_target(Str body, WireTarget *out_target, Error *err) WARN_UNUSED;
bool wire_parse_execute(Str body, WireExecute *out_execute, Error *err) WARN_UNUSED;

/* The format that applies to parameter or column i, from a list as in Bind. */
static inline int
wire_format(const int16_t *formats, int count, int i)
{
    if (count == 0)
        return 0;
    return count == 1 ? formats[0] : formats[i];
}

/* --- what we send -------------------------------------------------------------------------- */

/* A message without a body. */
enum {
    WIRE_PARSE_COMPLETE = '1',
    WIRE_BIND_COMPLETE = '2',
    WIRE_CLOSE_COMPLETE = '3',
    WIRE_EMPTY_QUERY = 'I',
    WIRE_NO_DATA = 'n',
    WIRE_PORTAL_SUSPENDED = 's',
};

void wire_put_bare(Buf *out, char type);
void wire_put_authentication_ok(Buf *out);
/* NegotiateProtocolVersion: the version we will speak and the options we do not know. */
void wire_put_negotiate(Buf *out, int32_t protocol, const Str *unknown, int unknown_count);
void wire_put_parameter(Buf *out, const char *name, Str value);
void wire_put_backend_key(Buf *out, uint32_t pid, Str key);
/* status: 'I' idle, 'T' in a transaction, 'E' in a failed one. */
void wire_put_ready(Buf *out, char status);
void wire_put_complete(Buf *out, const char *tag);

typedef struct WireColumn {
    Str name;
    uint32_t type_oid;
    int16_t type_size; /* pg_type.typlen */
    int32_t typmod;    /* -1: none */
    int16_t format;
} WireColumn;

void wire_put_columns(Buf *out, const WireColumn *columns, int count);
void wire_put_parameter_types(Buf *out, const uint32_t *types, int count);

/* A DataRow in place: begin, then for each column wire_put_null() or wire_value_begin(), the
 * bytes, wire_value_end(); then wire_row_end(). begin returns what end wants. */
size_t wire_row_begin(Buf *out, int columns);
void wire_put_null(Buf *out);
size_t wire_value_begin(Buf *out);
void wire_value_end(Buf *out, size_t at);
void wire_row_end(Buf *out, size_t at);

typedef struct WireError {
    const char *severity; /* "ERROR", "FATAL", "NOTICE", "WARNING" */
    const char *sqlstate; /* five characters */
    Str message;
    Str detail;   /* STR_NULL: none */
    Str hint;     /* likewise */
    int position; /* 1-based character index into the query; 0: none */
} WireError;

void wire_put_error(Buf *out, const WireError *error);
void wire_put_notice(Buf *out, const WireError *notice);

#endif
