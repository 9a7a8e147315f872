/* blocker.h - what sessions of ours wait for: whose open transaction, or the primary.
 *
 * A slot is made when the transactions that were open have ended: the server's process waits for a
 * lock on the number of each. And one that altered a table keeps it locked until it ends; as long
 * as it waits for others that use the table, all that come later wait for them, too. Both are seen
 * in pg_locks, by any role; how old another role's session is only by some. A slot on a standby
 * waits for WAL instead, until the primary has logged which transactions are open: it does so after
 * something was written, or when it is told to. */
#ifndef SOURCE_BLOCKER_H
#define SOURCE_BLOCKER_H

#include "pg/conn.h"

typedef struct Blocker {
    const char *id;  /* tells it from others; NULL: nobody is waited for */
    const char *gid; /* of a prepared transaction, which has no session any more; else NULL */
    int pid;         /* of a session */
    const char *database;
    const char *role;
    const char *program; /* its application_name, or the kind of server process */
    int64_t age_s;       /* -1: not for us to know */
    const char *lock;    /* "has public.t locked"; NULL: the transaction's end is waited for */
    bool is_primary;     /* what it logs is waited for; nothing else but id is set */
} Blocker;

/* The oldest one that any of our sessions waits for at this moment, or the primary. `pids` are
 * their processes: "{123,124}". */
bool source_blocker_load(PgConn *conn, Arena *arena, const char *pids, Blocker *out_blocker,
                         Error *err) WARN_UNUSED;

/* "the end of prepared transaction 'x' (role app, database shop), 3 h old" */
const char *source_blocker_text(Arena *arena, const Blocker *blocker);
/* How to end it. */
const char *source_blocker_hint(Arena *arena, const Blocker *blocker);

#endif
