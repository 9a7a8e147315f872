#include "source/blocker.h"

#include <inttypes.h>

#include "source/copy.h"

enum { AT_ID, AT_GID, AT_PID, AT_DATABASE, AT_ROLE, AT_PROGRAM, AT_AGE, AT_LOCK };

/* A transaction's own number is locked by it in mode Exclusive; of table locks, those of readers
 * meet only Access Exclusive ones, granted or in the queue before them. One in the queue waits for
 * whoever has locked the table in any mode: that is the cause, unless it is a session of ours. The
 * locks of a prepared transaction are of no process, and that on its number says which one it is. A
 * worker of the copy that reads the table is not the cause: it ends by itself, without waiting. */
static const char blocker_sql[] =
    "SELECT h.virtualtransaction, p.gid, h.pid, coalesce(p.database, a.datname),"
    " coalesce(p.owner, a.usename), coalesce(nullif(a.application_name, ''), a.backend_type),"
    " extract(epoch FROM clock_timestamp() - coalesce(p.prepared, a.xact_start))::bigint,"
    " (SELECT format(CASE WHEN NOT h.granted THEN 'waits to lock %s.%s'"
    "   WHEN h.mode = 'AccessExclusiveLock' THEN 'has %s.%s locked'"
    "   ELSE 'uses %s.%s, which another one waits to lock' END, n.nspname, c.relname)"
    "   FROM pg_class c"
    "   JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = w.relation)"
    " FROM pg_locks w JOIN pg_locks h ON h.locktype = w.locktype"
    "  AND h.pid IS DISTINCT FROM w.pid AND CASE w.locktype"
    "   WHEN 'transactionid' THEN h.transactionid = w.transactionid AND h.mode = 'ExclusiveLock'"
    "   WHEN 'relation' THEN h.database = w.database AND h.relation = w.relation"
    "    AND (h.mode = 'AccessExclusiveLock'"
    "     OR h.granted AND (h.pid = ANY ($1::int[])) IS NOT TRUE) END"
    " LEFT JOIN pg_locks x ON h.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid'"
    "  AND x.mode = 'ExclusiveLock' AND x.virtualtransaction = h.virtualtransaction"
    " LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid"
    " LEFT JOIN pg_stat_activity a ON a.pid = h.pid"
    " WHERE NOT w.granted AND w.pid = ANY ($1::int[]) AND (h.mode <> 'AccessShareLock'"
    "  OR a.application_name IS DISTINCT FROM '" COPY_APPLICATION_NAME "')"
    " ORDER BY NOT h.granted, coalesce(p.prepared, a.xact_start), h.virtualtransaction,"
    "  h.mode <> 'AccessExclusiveLock' LIMIT 1";

/* Postgres before 17 spells it ...WAL. */
static const char primary_sql[] =
    "SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[]) AND pg_is_in_recovery()"
    " AND lower(wait_event) = 'walsenderwaitforwal'";

bool
source_blocker_load(PgConn *conn, Arena *arena, const char *pids, Blocker *out_blocker, Error *err)
{
    PgResult r;
    Blocker blocker = {0};

    if (!pg_ask(conn, arena, blocker_sql, 1, &pids, &r, err))
        return WRAP(err, "read locks");
    if (r.rows == 1)
        blocker = (Blocker){
            .id = pg_value(&r, 0, AT_ID).ptr,
            .gid = pg_value(&r, 0, AT_GID).ptr,
            .pid = (int) pg_value_int(&r, 0, AT_PID),
            .database = pg_value(&r, 0, AT_DATABASE).ptr,
            .role = pg_value(&r, 0, AT_ROLE).ptr,
            .program = pg_value(&r, 0, AT_PROGRAM).ptr,
            .age_s = pg_value(&r, 0, AT_AGE).ptr == NULL ? -1 : pg_value_int(&r, 0, AT_AGE),
            .lock = pg_value(&r, 0, AT_LOCK).ptr,
        };
    else if (!pg_ask(conn, arena, primary_sql, 1, &pids, &r, err))
        return WRAP(err, "read pg_stat_activity");
    else if (r.rows > 0)
        blocker = (Blocker){.id = "the primary", .is_primary = true};
    *out_blocker = blocker;
    return true;
}

static const char *
age_text(Arena *arena, int64_t age_s)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (age_s >= 2 * units[i].seconds)
            return arena_printf(arena, "%" PRId64 " %s", age_s / units[i].seconds, units[i].name);
    return arena_printf(arena, "%" PRId64 " s", age_s);
}

static void
put_fact(Buf *text, const char *name, const char *value)
{
    if (value != NULL)
        buf_printf(text, "%s%s%s", text->len == 0 ? "" : ", ", name, value);
}

const char *
source_blocker_text(Arena *arena, const Blocker *blocker)
{
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf facts = {0};

    if (blocker->is_primary)
        return "the primary to log which transactions are open there, where a slot on its standby "
               "begins";
    put_fact(&facts, "role ", blocker->role);
    put_fact(&facts, "database ", blocker->database);
    put_fact(&facts, "", blocker->program);
    if (blocker->gid != NULL)
        buf_printf(&text, "the end of prepared transaction %s",
                   pg_quote_literal(arena, str_of(blocker->gid)));
    else
        buf_printf(&text, "the end of the transaction of session %d", blocker->pid);
    if (facts.len > 0)
        buf_printf(&text, " (%s)", buf_text(&facts));
    if (blocker->age_s >= 0)
        buf_printf(&text, ", %s old", age_text(arena, blocker->age_s));
    if (blocker->lock != NULL)
        buf_printf(&text, ", which %s", blocker->lock);
    return arena_strdup(arena, buf_text(&text));
}

const char *
source_blocker_hint(Arena *arena, const Blocker *blocker)
{
    if (blocker->is_primary)
        return "SELECT pg_log_standby_snapshot() on the primary";
    if (blocker->gid == NULL)
        return arena_printf(arena, "end it in its session, or SELECT pg_terminate_backend(%d)",
                            blocker->pid);

    const char *gid = pg_quote_literal(arena, str_of(blocker->gid));

    return arena_printf(arena, "in database %s: COMMIT PREPARED %s, or ROLLBACK PREPARED %s",
                        blocker->database == NULL ? "?" : blocker->database, gid, gid);
}
