/* server.h - what the source server is and allows: for `check`, and to notice that it is another
 * one than yesterday. */
#ifndef SOURCE_SERVER_H
#define SOURCE_SERVER_H

#include "model/position.h"
#include "pg/conn.h"

typedef struct ServerInfo {
    int version;                   /* 150018 */
    const char *version_text;      /* "15.18 (Debian ...)" */
    const char *system_identifier; /* decimal; with the timeline it is part of what an LSN means */
    int timeline;
    const char *database;
    const char *encoding; /* "UTF8"; values of a "SQL_ASCII" database may be invalid UTF-8 */
    const char *wal_level;
    bool in_recovery; /* a standby */
    Position flush;   /* WAL on disk; on a standby, replayed */
    int slots_max;    /* max_replication_slots */
    int slots_free;
    int senders_max; /* max_wal_senders */
    int senders_free;
    int64_t sender_timeout_ms;    /* wal_sender_timeout, 0 = none */
    int64_t slot_wal_keep_bytes;  /* max_slot_wal_keep_size, -1 = unlimited */
    int64_t slot_idle_timeout_ms; /* idle_replication_slot_timeout (18), 0 = none */
    const char *role;
    bool superuser;
    bool replication; /* REPLICATION, superuser, or member of rds_replication */
    bool may_create;  /* CREATE on the database: can make a publication */
} ServerInfo;

/* Any role can ask. On a replication connection (database mode) or an ordinary one. */
bool source_server_info(PgConn *conn, Arena *arena, ServerInfo *out_server, Error *err) WARN_UNUSED;

/* A part of the server's past: between the two, its WAL was that of the timeline. */
typedef struct Timeline {
    Position began; /* POSITION_NONE: with the cluster */
    Position end;   /* UINT64_MAX: it goes on */
} Timeline;

/* On a replication connection: the history file of a timeline; the first has none. */
bool source_timeline_history(PgConn *conn, Arena *arena, int timeline, Str *out_history,
                             Error *err) WARN_UNUSED;

/* The timeline `which` in the history of the timeline `now`. ERR_INPUT: it is not there. */
bool source_timeline_find(Str history, int now, int which, Timeline *out_timeline,
                          Error *err) WARN_UNUSED;

/* Whether logical decoding can work at all: wal_level and the role's right. ERR_INPUT with a hint.
 * That a slot and a walsender are free is told by the server when they are asked for. */
bool source_server_check(const ServerInfo *server, Error *err) WARN_UNUSED;

/* Whether slots of this server can be kept on its standbys. ERR_INPUT: it is older than 17, or a
 * standby itself. */
bool source_server_check_failover(const ServerInfo *server, Error *err) WARN_UNUSED;

#endif
