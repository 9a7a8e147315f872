/* session_internal.h - what the files of a session share: session.c (the protocol),
 * session_start.c (up to the first ReadyForQuery), session_utility.c (statements that are no
 * queries). */
#ifndef QUERY_SESSION_INTERNAL_H
#define QUERY_SESSION_INTERNAL_H

#include <stdatomic.h>

#include "query/kept.h"
#include "query/session.h"
#include "query/settings.h"

enum { CANCEL_KEY_LONG = 32 }; /* bytes */

struct QuerySession {
    SessionOpen open;
    Peer peer;
    Engine engine;
    Settings *settings;
    Kept kept;
    Arena *arena; /* of the message being handled */
    uint32_t pid;
    char key[CANCEL_KEY_LONG];
    atomic_size_t key_length; /* settled before the client knows the key */
    char status;              /* 'I', 'T', 'E' as in ReadyForQuery */
    bool skip_to_sync;        /* after a failure in the extended protocol */
    bool leaving;
    atomic_bool busy; /* a statement runs */
};

/* An ErrorResponse after which the connection ends. */
void session_say_fatal(QuerySession *session, const char *sqlstate, const char *message);
void session_warn(QuerySession *session, const char *sqlstate, const char *message);

/* From the first packet to the first ReadyForQuery. When it returns true and session->leaving is
 * not set, the client may send statements. */
bool session_start(QuerySession *session, Error *err) WARN_UNUSED;

bool session_set(QuerySession *session, Str name, Str value, Error *err) WARN_UNUSED;

/* Everything that is no query. A statement may free itself by it (DEALLOCATE), so this is a copy.
 */
bool session_run_utility(QuerySession *session, Utility utility, Error *err) WARN_UNUSED;

#endif
