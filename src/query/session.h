/* session.h - one client, from its startup packet to its last message.
 *
 *     startup -> [ Query | Parse Bind Describe Execute Close Sync ]* -> Terminate
 *
 * PostgreSQL documentation, "Message Flow". There is no authentication yet, so the server listens
 * on the loopback interface only. A session is one thread; others may interrupt it. */
#ifndef QUERY_SESSION_H
#define QUERY_SESSION_H

#include "query/lake.h"

/* What a session asks of the server. Embed as the first member. */
typedef struct SessionHost SessionHost;

struct SessionHost {
    void (*cancel)(SessionHost *host, uint32_t pid, Str key);
};

typedef struct QuerySession QuerySession;

typedef struct SessionOpen {
    SessionHost *host;
    Lake *lake;
    Cancel *cancel;
    int fd; /* becomes the session's, also when session_new() fails */
    uint32_t pid;
    bool full; /* too many clients: it may only cancel */
} SessionOpen;

bool session_new(const SessionOpen *open, QuerySession **out_session, Error *err) WARN_UNUSED;
void session_free(QuerySession *session);
/* Serve the client until it leaves. */
void session_run(QuerySession *session);

/* From any thread. */
bool session_has_key(const QuerySession *session, uint32_t pid, Str key);
void session_interrupt(QuerySession *session);
/* Timeouts, and clients that went away while their statement runs. */
void session_tick(QuerySession *session, int64_t now_ms);

#endif
