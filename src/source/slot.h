/* slot.h - the replication slot: what the server keeps for us.
 *
 * Whatever is wrong with a slot is a gap in the making, so every refusal says what happened and the
 * command that mends it. */
#ifndef SOURCE_SLOT_H
#define SOURCE_SLOT_H

#include "model/position.h"
#include "pg/conn.h"

typedef struct Slot {
    bool exists;
    const char *plugin;
    const char *type;     /* "logical" */
    const char *database; /* "" for a physical one */
    bool temporary;
    int active_pid;           /* 0: nobody reads it */
    Position restart;         /* WAL from here on is kept */
    Position confirmed;       /* changes at or before are forgotten */
    const char *wal_status;   /* reserved, extended, unreserved, lost; "" when unknown */
    const char *invalidation; /* why it was invalidated (16 and newer), or "" */
    int64_t retained_bytes;   /* WAL held back */
    int64_t safe_bytes;       /* may still be written before it is lost; -1 = no limit */
    bool two_phase;
    bool failover;
} Slot;

bool source_slot_load(PgConn *conn, Arena *arena, const char *name, Slot *out_slot,
                      Error *err) WARN_UNUSED;

typedef struct SlotExpect {
    const char *name;
    const char *database;
    Position position; /* everything up to here is in the lake; POSITION_NONE: do not compare */
} SlotExpect;

/* Whether the stream can go on from this slot. ERR_INPUT: missing, lost, another plugin, type or
 * database, advanced past the position by somebody else. ERR_TRANSIENT: another process reads it.
 */
bool source_slot_check(const Slot *slot, const SlotExpect *expect, Error *err) WARN_UNUSED;

typedef struct SlotCreate {
    const char *name;
    bool temporary; /* gone with its connection: a snapshot for a later copy */
    bool failover;  /* 17 and newer; ignored before */
} SlotCreate;

typedef struct SlotSnapshot {
    Position position; /* consistent_point: the snapshot has all before, the stream all after */
    const char *snapshot;
} SlotSnapshot;

/* On a replication connection: a logical slot for pgoutput. Waits for transactions that run at that
 * moment, however long they take. The snapshot lives until the next command on this connection. */
bool source_slot_create(PgConn *conn, Arena *arena, const SlotCreate *create,
                        SlotSnapshot *out_snapshot, Error *err) WARN_UNUSED;

/* On a replication connection, 17 and newer: a slot that nobody reads is kept on standbys from now
 * on. "Logical Replication Failover" in the Postgres manual. */
bool source_slot_set_failover(PgConn *conn, Arena *arena, const char *name, Error *err) WARN_UNUSED;

/* On an ordinary connection. A slot that is not there is dropped already. */
bool source_slot_drop(PgConn *conn, Arena *arena, const char *name, Error *err) WARN_UNUSED;

/* Other logical slots of this database that pgoutput serves, so that may read a publication of it:
 * "a, b" in the arena; NULL: none. Temporary ones do not count. */
bool source_slot_others(PgConn *conn, Arena *arena, const char *name, const char **out_others,
                        Error *err) WARN_UNUSED;

/* Postgres takes lower case letters, digits and underscores, 63 at most. */
bool source_slot_check_name(const char *name, Error *err) WARN_UNUSED;

/* The command of source_slot_create(), for a server version like 150018. */
const char *source_slot_create_sql(Arena *arena, int version, const SlotCreate *create);

#endif
