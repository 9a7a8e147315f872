#include "source/server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Column numbers of the query below. */
enum {
    AT_VERSION,
    AT_SYSTEM,
    AT_TIMELINE,
    AT_DATABASE,
    AT_ENCODING,
    AT_WAL_LEVEL,
    AT_RECOVERY,
    AT_FLUSH,
    AT_SLOTS_MAX,
    AT_SLOTS_USED,
    AT_SENDERS_MAX,
    AT_SENDERS_USED,
    AT_SENDER_TIMEOUT,
    AT_WAL_KEEP,
    AT_IDLE_TIMEOUT,
    AT_ROLE,
    AT_SUPERUSER,
    AT_REPLICATION,
    AT_CREATE,
    AT_COUNT,
};

/* pg_control_system() is open to every role, so that no replication connection is needed. The
 * timeline of a primary is the first part of its current WAL file's name: the control file learns
 * of a promotion only at the next checkpoint. */
static const char info_sql[] =
    "SELECT current_setting('server_version'),"
    " (SELECT system_identifier FROM pg_control_system()),"
    " CASE WHEN pg_is_in_recovery() THEN"
    "   (SELECT GREATEST(timeline_id, min_recovery_end_timeline)"
    "     FROM pg_control_checkpoint(), pg_control_recovery())"
    "      ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END,"
    " current_database(),"
    " getdatabaseencoding(),"
    " current_setting('wal_level'),"
    " pg_is_in_recovery(),"
    " CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
    "      ELSE pg_current_wal_flush_lsn() END,"
    " current_setting('max_replication_slots'),"
    " (SELECT count(*) FROM pg_replication_slots),"
    " current_setting('max_wal_senders'),"
    " (SELECT count(*) FROM pg_stat_replication),"
    " (SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout'),"
    /* megabytes */
    " (SELECT setting FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),"
    /* seconds */
    " (SELECT setting::bigint * CASE unit WHEN 'min' THEN 60 ELSE 1 END FROM pg_settings"
    "   WHERE name = 'idle_replication_slot_timeout'),"
    " r.rolname,"
    " r.rolsuper,"
    " r.rolsuper OR r.rolreplication OR EXISTS (SELECT FROM pg_roles m"
    "   WHERE m.rolname = 'rds_replication' AND pg_has_role(m.oid, 'MEMBER')),"
    " has_database_privilege(current_database(), 'CREATE')"
    " FROM pg_roles r WHERE r.rolname = current_user";

static const char *
text(const PgResult *result, int column)
{
    const char *value = pg_value(result, 0, column).ptr;

    return value == NULL ? "" : value;
}

bool
source_server_info(PgConn *conn, Arena *arena, ServerInfo *out_server, Error *err)
{
    PgResult r;
    Position flush = POSITION_NONE;

    if (!pg_exec(conn, arena, info_sql, &r, err))
        return WRAP(err, "read server facts");
    if (r.rows != 1 || r.columns != AT_COUNT)
        return FAIL(err, ERR_BUG, "server facts: %d rows, %d columns", r.rows, r.columns);
    if (pg_value(&r, 0, AT_FLUSH).ptr != NULL)
        TRY(position_parse(pg_value(&r, 0, AT_FLUSH), &flush, err));

    int64_t keep_mb = pg_value_int(&r, 0, AT_WAL_KEEP);

    *out_server = (ServerInfo){
        .version = pg_server_version(conn),
        .version_text = text(&r, AT_VERSION),
        .system_identifier = text(&r, AT_SYSTEM),
        .timeline = (int) pg_value_int(&r, 0, AT_TIMELINE),
        .database = text(&r, AT_DATABASE),
        .encoding = text(&r, AT_ENCODING),
        .wal_level = text(&r, AT_WAL_LEVEL),
        .in_recovery = pg_value_bool(&r, 0, AT_RECOVERY),
        .flush = flush,
        .slots_max = (int) pg_value_int(&r, 0, AT_SLOTS_MAX),
        .slots_free =
            (int) (pg_value_int(&r, 0, AT_SLOTS_MAX) - pg_value_int(&r, 0, AT_SLOTS_USED)),
        .senders_max = (int) pg_value_int(&r, 0, AT_SENDERS_MAX),
        .senders_free =
            (int) (pg_value_int(&r, 0, AT_SENDERS_MAX) - pg_value_int(&r, 0, AT_SENDERS_USED)),
        .sender_timeout_ms = pg_value_int(&r, 0, AT_SENDER_TIMEOUT),
        .slot_wal_keep_bytes = keep_mb < 0 ? -1 : keep_mb * 1024 * 1024,
        .slot_idle_timeout_ms = pg_value_int(&r, 0, AT_IDLE_TIMEOUT) * 1000,
        .role = text(&r, AT_ROLE),
        .superuser = pg_value_bool(&r, 0, AT_SUPERUSER),
        .replication = pg_value_bool(&r, 0, AT_REPLICATION),
        .may_create = pg_value_bool(&r, 0, AT_CREATE),
    };
    return true;
}

/* --- timelines ------------------------------------------------------------------------------- */

/* A line for each timeline before this one: its number, where it was left, and why (timeline.c in
 * Postgres; lines of '#' are comments). */
bool
source_timeline_find(Str history, int now, int which, Timeline *out_timeline, Error *err)
{
    Timeline timeline = {.began = POSITION_NONE, .end = UINT64_MAX};

    while (history.len > 0) {
        const char *newline = memchr(history.ptr, '\n', history.len);
        size_t length = newline == NULL ? history.len : (size_t) (newline - history.ptr);
        char line[64];
        char *at;

        snprintf(line, sizeof line, "%.*s", (int) (length < sizeof line ? length : sizeof line - 1),
                 history.ptr);
        length += newline != NULL;
        history = (Str){.ptr = history.ptr + length, .len = history.len - length};

        long id = strtol(line, &at, 10);

        if (at == line)
            continue;
        at += strspn(at, " \t");

        Str position = {.ptr = at, .len = strcspn(at, " \t\r\n")};

        TRY(position_parse(position, &timeline.end, err));
        if (id == which) {
            *out_timeline = timeline;
            return true;
        }
        timeline = (Timeline){.began = timeline.end, .end = UINT64_MAX};
    }
    if (which != now)
        return FAIL(err, ERR_INPUT, "timeline %d does not come from timeline %d", now, which);
    *out_timeline = timeline;
    return true;
}

bool
source_timeline_history(PgConn *conn, Arena *arena, int timeline, Str *out_history, Error *err)
{
    PgResult r;

    assert(pg_is_replication(conn));
    if (!pg_exec(conn, arena, arena_printf(arena, "TIMELINE_HISTORY %d", timeline), &r, err))
        return WRAP(err, "read the history of timeline %d", timeline);
    if (r.rows != 1 || r.columns != 2)
        return FAIL(err, ERR_BUG, "history of timeline %d: %d rows, %d columns", timeline, r.rows,
                    r.columns);
    *out_history = pg_value(&r, 0, 1);
    return true;
}

/* --- judging --------------------------------------------------------------------------------- */

bool
source_server_check(const ServerInfo *server, Error *err)
{
    if (strcmp(server->wal_level, "logical") != 0)
        return FAIL(err, ERR_INPUT,
                    "wal_level is %s\nhint: ALTER SYSTEM SET wal_level = logical, then restart "
                    "Postgres (managed services have a switch for logical replication)",
                    server->wal_level);
    if (!server->replication)
        return FAIL(err, ERR_INPUT,
                    "role \"%s\" lacks the replication right\nhint: ALTER ROLE \"%s\" REPLICATION "
                    "(on Amazon RDS: GRANT rds_replication TO \"%s\")",
                    server->role, server->role, server->role);
    if (server->in_recovery && server->version < 160000)
        return FAIL(err, ERR_INPUT,
                    "the server is a standby, and Postgres %d cannot decode there\nhint: connect "
                    "to the primary, or use Postgres 16 or newer",
                    server->version / 10000);
    return true;
}

bool
source_server_check_failover(const ServerInfo *server, Error *err)
{
    if (server->version < 170000)
        return FAIL(err, ERR_INPUT,
                    "source.failover: this is Postgres %d, and standbys keep slots since 17\n"
                    "hint: leave it out; tools that fail over may keep the slot",
                    server->version / 10000);
    if (server->in_recovery)
        return FAIL(err, ERR_INPUT,
                    "source.failover: the server is a standby, whose slots no other one keeps\n"
                    "hint: connect to the primary, or leave it out");
    return true;
}
