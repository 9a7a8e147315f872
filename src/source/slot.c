#include "source/slot.h"

#include <assert.h>

#include "base/fault.h"

enum { SLOT_NAME_MAX = 63 };

/* --- looking --------------------------------------------------------------------------------- */

enum {
    AT_PLUGIN,
    AT_TYPE,
    AT_DATABASE,
    AT_TEMPORARY,
    AT_PID,
    AT_RESTART,
    AT_CONFIRMED,
    AT_WAL_STATUS,
    AT_SAFE,
    AT_RETAINED,
    AT_TWO_PHASE,
    AT_INVALIDATION,
    AT_FAILOVER,
};

static const char *
slot_sql(Arena *arena, int version)
{
    const char *two_phase = version >= 140000 ? "s.two_phase" : "false";
    const char *failover = version >= 170000 ? "s.failover" : "false";
    const char *invalidation = "NULL";

    if (version >= 170000)
        invalidation = "s.invalidation_reason";
    else if (version >= 160000)
        invalidation = "CASE WHEN s.conflicting THEN 'conflict with recovery' END";
    return arena_printf(
        arena,
        "SELECT s.plugin, s.slot_type, s.database, s.temporary, s.active_pid, s.restart_lsn,"
        " s.confirmed_flush_lsn, s.wal_status, s.safe_wal_size,"
        " pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
        "  ELSE pg_current_wal_lsn() END, s.restart_lsn)::bigint, %s, %s, %s"
        " FROM pg_replication_slots s WHERE s.slot_name = $1",
        two_phase, invalidation, failover);
}

static const char *
text_at(const PgResult *r, int column)
{
    const char *value = pg_value(r, 0, column).ptr;

    return value == NULL ? "" : value;
}

static bool
position_at(const PgResult *r, int column, Position *out_position, Error *err)
{
    *out_position = POSITION_NONE;
    return pg_value(r, 0, column).ptr == NULL ||
           position_parse(pg_value(r, 0, column), out_position, err);
}

bool
source_slot_load(PgConn *conn, Arena *arena, const char *name, Slot *out_slot, Error *err)
{
    PgResult r;
    Slot slot = {0};

    if (!pg_ask(conn, arena, slot_sql(arena, pg_server_version(conn)), 1, &name, &r, err))
        return WRAP(err, "read slot %s", name);
    if (r.rows == 1) {
        bool limited = pg_value(&r, 0, AT_SAFE).ptr != NULL;

        slot = (Slot){
            .exists = true,
            .plugin = text_at(&r, AT_PLUGIN),
            .type = text_at(&r, AT_TYPE),
            .database = text_at(&r, AT_DATABASE),
            .temporary = pg_value_bool(&r, 0, AT_TEMPORARY),
            .active_pid = (int) pg_value_int(&r, 0, AT_PID),
            .wal_status = text_at(&r, AT_WAL_STATUS),
            .safe_bytes = limited ? pg_value_int(&r, 0, AT_SAFE) : -1,
            .retained_bytes = pg_value_int(&r, 0, AT_RETAINED),
            .two_phase = pg_value_bool(&r, 0, AT_TWO_PHASE),
            .invalidation = text_at(&r, AT_INVALIDATION),
            .failover = pg_value_bool(&r, 0, AT_FAILOVER),
        };
        TRY(position_at(&r, AT_RESTART, &slot.restart, err));
        TRY(position_at(&r, AT_CONFIRMED, &slot.confirmed, err));
    }
    *out_slot = slot;
    return true;
}

/* --- judging --------------------------------------------------------------------------------- */

static bool
check_kind(const Slot *slot, const SlotExpect *expect, Error *err)
{
    if (strcmp(slot->type, "logical") != 0)
        return FAIL(err, ERR_INPUT,
                    "slot %s is a %s slot, not a logical one\nhint: choose another name with "
                    "source.slot",
                    expect->name, slot->type);
    if (strcmp(slot->plugin, "pgoutput") != 0)
        return FAIL(err, ERR_INPUT,
                    "slot %s uses the plugin %s, not pgoutput: it belongs to another program\n"
                    "hint: choose another name with source.slot",
                    expect->name, slot->plugin);
    if (strcmp(slot->database, expect->database) != 0)
        return FAIL(err, ERR_INPUT,
                    "slot %s reads the database %s, not %s\nhint: choose another name with "
                    "source.slot",
                    expect->name, slot->database, expect->database);
    return true;
}

bool
source_slot_check(const Slot *slot, const SlotExpect *expect, Error *err)
{
    if (!slot->exists)
        return FAIL(err, ERR_INPUT,
                    "slot %s does not exist: it was dropped, or this is another server or a "
                    "promoted standby; changes since then cannot be had\n" HINT_BEGIN_AGAIN,
                    expect->name);
    TRY(check_kind(slot, expect, err));
    if (strcmp(slot->wal_status, "lost") == 0 || slot->invalidation[0] != '\0')
        return FAIL(err, ERR_INPUT,
                    "slot %s was invalidated by the server (%s): the WAL it needs is "
                    "gone\n" HINT_BEGIN_AGAIN "; a larger max_slot_wal_keep_size prevents it",
                    expect->name,
                    slot->invalidation[0] != '\0' ? slot->invalidation : "max_slot_wal_keep_size");
    if (slot->active_pid != 0)
        return FAIL(err, ERR_TRANSIENT,
                    "slot %s is in use by server process %d\nhint: is another walberg running? "
                    "Otherwise SELECT pg_terminate_backend(%d)",
                    expect->name, slot->active_pid, slot->active_pid);
    if (expect->position != POSITION_NONE && slot->confirmed > expect->position)
        return FAIL(err, ERR_INPUT,
                    "slot %s was advanced to %s by somebody else, past %s: changes between are "
                    "lost\n" HINT_BEGIN_AGAIN,
                    expect->name, POSITION_TEXT(slot->confirmed), POSITION_TEXT(expect->position));
    return true;
}

bool
source_slot_check_name(const char *name, Error *err)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    if (length == 0 || length > SLOT_NAME_MAX || name[length] != '\0')
        return FAIL(err, ERR_INPUT,
                    "not a slot name: \"%.80s\"\nhint: Postgres takes lower case letters, digits "
                    "and underscores, %d at most",
                    name, SLOT_NAME_MAX);
    return true;
}

/* --- making and dropping --------------------------------------------------------------------- */

const char *
source_slot_create_sql(Arena *arena, int version, const SlotCreate *create)
{
    const char *name = pg_quote_identifier(arena, str_of(create->name));
    const char *temporary = create->temporary ? " TEMPORARY" : "";

    if (version < 150000)
        return arena_printf(arena, "CREATE_REPLICATION_SLOT %s%s LOGICAL pgoutput EXPORT_SNAPSHOT",
                            name, temporary);
    return arena_printf(
        arena, "CREATE_REPLICATION_SLOT %s%s LOGICAL pgoutput (SNAPSHOT 'export'%s)", name,
        temporary, create->failover && !create->temporary && version >= 170000 ? ", FAILOVER" : "");
}

/* Replace the hint, if any, by ours. */
static bool
fail_with_hint(Error *err, ErrKind kind, const char *name, const char *hint)
{
    char reason[512];

    snprintf(reason, sizeof reason, "%.*s", (int) strcspn(err->msg, "\n"), err->msg);
    return FAIL(err, kind, "create slot %s: %s\nhint: %s", name, reason, hint);
}

static bool
explain_refusal(const PgConn *conn, const char *name, Error *err)
{
    const char *sqlstate = pg_sqlstate(conn);

    if (strcmp(sqlstate, "53400") == 0)
        return fail_with_hint(err, ERR_INPUT, name,
                              "drop a slot that nobody reads (SELECT * FROM pg_replication_slots), "
                              "or raise max_replication_slots and restart Postgres");
    if (strcmp(sqlstate, "55000") == 0 && strstr(err->msg, "wal_level") != NULL)
        return fail_with_hint(err, ERR_INPUT, name,
                              "ALTER SYSTEM SET wal_level = logical, then restart Postgres");
    if (strcmp(sqlstate, "42501") == 0)
        return fail_with_hint(err, ERR_INPUT, name,
                              "ALTER ROLE ... REPLICATION (on Amazon RDS: GRANT rds_replication)");
    if (strcmp(sqlstate, "42710") == 0)
        return fail_with_hint(err, ERR_INPUT, name,
                              "another pipeline may use it: choose another name with source.slot");
    return WRAP(err, "create slot %s", name);
}

bool
source_slot_create(PgConn *conn, Arena *arena, const SlotCreate *create, SlotSnapshot *out_snapshot,
                   Error *err)
{
    PgResult r;
    SlotSnapshot snapshot;

    assert(pg_is_replication(conn));
    TRY(source_slot_check_name(create->name, err));
    if (!pg_exec(conn, arena, source_slot_create_sql(arena, pg_server_version(conn), create), &r,
                 err))
        return explain_refusal(conn, create->name, err);
    TRY(FAULT("source.slot.created", err));
    if (r.rows != 1 || r.columns < 3 || pg_value(&r, 0, 2).ptr == NULL)
        return FAIL(err, ERR_BUG, "create slot %s: no snapshot in the answer", create->name);
    TRY(position_parse(pg_value(&r, 0, 1), &snapshot.position, err));
    snapshot.snapshot = pg_value(&r, 0, 2).ptr;
    *out_snapshot = snapshot;
    return true;
}

bool
source_slot_set_failover(PgConn *conn, Arena *arena, const char *name, Error *err)
{
    const char *sql = arena_printf(arena, "ALTER_REPLICATION_SLOT %s (FAILOVER)",
                                   pg_quote_identifier(arena, str_of(name)));

    assert(pg_is_replication(conn));
    return pg_exec(conn, arena, sql, NULL, err) || WRAP(err, "alter slot %s", name);
}

bool
source_slot_drop(PgConn *conn, Arena *arena, const char *name, Error *err)
{
    static const char sql[] = "SELECT pg_drop_replication_slot(slot_name)"
                              " FROM pg_replication_slots WHERE slot_name = $1";
    PgResult r;

    if (pg_query(conn, arena, sql, 1, &name, &r, err))
        return true;
    if (strcmp(pg_sqlstate(conn), "42704") == 0) /* gone between the two */
        return true;
    return WRAP(err, "drop slot %s", name);
}

bool
source_slot_others(PgConn *conn, Arena *arena, const char *name, const char **out_others,
                   Error *err)
{
    static const char sql[] =
        "SELECT string_agg(slot_name, ', ' ORDER BY slot_name) FROM pg_replication_slots"
        " WHERE plugin = 'pgoutput' AND database = current_database() AND NOT temporary"
        " AND slot_name <> $1";
    PgResult r;

    if (!pg_ask(conn, arena, sql, 1, &name, &r, err))
        return WRAP(err, "read slots");
    *out_others = pg_value(&r, 0, 0).ptr;
    return true;
}
