/* peer.h - the socket of one client: whole messages in, buffered bytes out. All waiting ends when
 * the cancel token is set. */
#ifndef QUERY_PEER_H
#define QUERY_PEER_H

#include "base/cancel.h"
#include "pg/wire.h"

typedef struct Peer {
    int fd; /* not blocking; owned */
    Cancel *cancel;
    Buf in;         /* what arrived */
    size_t in_used; /* of it, by the message given out last */
    Buf out;        /* what peer_flush() will send */
    bool lost;      /* nothing can be sent any more: gone, or we are leaving */
} Peer;

enum { PEER_FLUSH_BYTES = 64 * 1024 };

void peer_init(Peer *peer, int fd, Cancel *cancel);
void peer_done(Peer *peer); /* closes the socket */

/* The next message; valid until the next call. wait_ms -1: as long as it takes. *out_closed: the
 * client is gone, or said nothing for so long. */
bool peer_read(Peer *peer, bool started, int64_t wait_ms, WireMessage *out_message,
               bool *out_closed, Error *err) WARN_UNUSED;
/* Send all of out. ERR_TRANSIENT: the client is gone. */
bool peer_flush(Peer *peer, Error *err) WARN_UNUSED;
/* The same, when there is enough to be worth it. */
bool peer_flush_some(Peer *peer, Error *err) WARN_UNUSED;
/* Send what can be sent without waiting, a last word on the way out, and hang up: who asked for a
 * cancel waits for that. */
void peer_farewell(Peer *peer);
/* Whether the client has closed its end. Does not wait. */
bool peer_is_gone(int fd);

#endif
