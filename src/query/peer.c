#include "query/peer.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 16 * 1024, KEEP_BYTES_MAX = 1024 * 1024 };

void
peer_init(Peer *peer, int fd, Cancel *cancel)
{
    *peer = (Peer){.fd = fd, .cancel = cancel};
}

void
peer_done(Peer *peer)
{
    close(peer->fd);
    buf_done(&peer->in);
    buf_done(&peer->out);
}

/* Drop the message given out last; memory of a huge one is given back. */
static void
forget_used(Peer *peer)
{
    size_t left = peer->in.len - peer->in_used;

    if (peer->in_used == 0)
        return;
    memmove(peer->in.ptr, peer->in.ptr + peer->in_used, left);
    peer->in.len = left;
    peer->in_used = 0;
    if (left == 0 && peer->in.cap > KEEP_BYTES_MAX)
        buf_done(&peer->in);
}

/* More bytes; *out_closed on the end of the stream. */
static bool
receive(Peer *peer, int64_t wait_ms, bool *out_closed, Error *err)
{
    bool ready = false;

    *out_closed = false;
    buf_reserve(&peer->in, READ_BYTES);
    for (;;) {
        ssize_t got = recv(peer->fd, peer->in.ptr + peer->in.len, READ_BYTES, MSG_DONTWAIT);

        if (got > 0) {
            peer->in.len += (size_t) got;
            return true;
        }
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            *out_closed = true;
            return true;
        }
        TRY(cancel_poll(peer->cancel, peer->fd, POLLIN, wait_ms, &ready, err));
        if (!ready) {
            *out_closed = true;
            return true;
        }
    }
}

bool
peer_read(Peer *peer, bool started, int64_t wait_ms, WireMessage *out_message, bool *out_closed,
          Error *err)
{
    forget_used(peer);
    *out_closed = false;
    for (;;) {
        size_t used = 0;

        TRY(wire_next(buf_view(&peer->in), started, out_message, &used, err));
        if (used > 0) {
            peer->in_used = used;
            return true;
        }
        TRY(receive(peer, wait_ms, out_closed, err));
        if (*out_closed)
            return true;
    }
}

bool
peer_flush(Peer *peer, Error *err)
{
    size_t sent = 0;

    while (sent < peer->out.len) {
        ssize_t put =
            send(peer->fd, peer->out.ptr + sent, peer->out.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        bool ready;

        if (put >= 0) {
            sent += (size_t) put;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) {
            peer->lost = true;
            return FAIL(err, ERR_TRANSIENT, "client is gone");
        }
        if (!cancel_poll(peer->cancel, peer->fd, POLLOUT, -1, &ready, err)) {
            peer->lost = true;
            return false;
        }
    }
    buf_reset(&peer->out);
    return true;
}

bool
peer_flush_some(Peer *peer, Error *err)
{
    return peer->out.len < PEER_FLUSH_BYTES || peer_flush(peer, err);
}

void
peer_farewell(Peer *peer)
{
    if (peer->out.len > 0)
        (void) !send(peer->fd, peer->out.ptr, peer->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    buf_reset(&peer->out);
    shutdown(peer->fd, SHUT_RDWR);
}

bool
peer_is_gone(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLRDHUP};

    return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}
