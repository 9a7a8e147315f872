#include "cli/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "cli/connect.h"
#include "iceberg/sort_order.h"
#include "iceberg/spec.h"
#include "source/publication.h"
#include "source/server.h"
#include "source/slot.h"

enum {
    VERSION_MIN = 13, /* the oldest and newest major version that is tested */
    VERSION_MAX = 18,
    CLOCK_SKEW_US_MAX = 5 * 1000 * 1000,
    RETAINED_BYTES_WARN = 1 << 30,
    OPEN_FILES = 100,         /* whatever the tables: connections, DuckDB, files on their way */
    OPEN_FILES_PER_TABLE = 3, /* of its key index: a journal, and a run or two on average */
};

typedef struct SourceCheck {
    Report *report;
    Arena *arena;
    const Config *config;
    PgConn *conn;
    ServerInfo server;
    Slot slot;
    SourceTables tables;
} SourceCheck;

static void
source_check_done(SourceCheck *check)
{
    source_tables_done(&check->tables);
    pg_close(check->conn);
}

/* --- server ---------------------------------------------------------------------------------- */

static void
check_version(const SourceCheck *check)
{
    int major = check->server.version / 10000;

    if (major < VERSION_MIN) {
        report_add(check->report, "server", VERDICT_FAIL, "Postgres %s is too old",
                   check->server.version_text);
        report_hint(check->report, "versions 13 to 18 are supported");
    } else if (major > VERSION_MAX) {
        report_add(check->report, "server", VERDICT_WARN,
                   "Postgres %s is newer than what is tested", check->server.version_text);
        report_hint(check->report, "versions 13 to 18 are supported");
    } else {
        report_add(check->report, "server", VERDICT_OK, "Postgres %s, database %s",
                   check->server.version_text, check->server.database);
    }
    if (strcmp(check->server.encoding, "SQL_ASCII") == 0)
        report_add(check->report, "encoding", VERDICT_WARN,
                   "the database is SQL_ASCII: texts that are not UTF-8 become rejects");
}

/* source_server_check() stops at the first thing that is wrong; here each gets its line. */
static void
check_ability(const SourceCheck *check)
{
    ServerInfo only_level = check->server;
    ServerInfo only_role = check->server;
    ServerInfo only_standby = check->server;
    Error err = {0};

    only_level.replication = true;
    only_level.in_recovery = false;
    if (source_server_check(&only_level, &err))
        report_add(check->report, "wal_level", VERDICT_OK, "%s", check->server.wal_level);
    else
        report_message(check->report, "wal_level", VERDICT_FAIL, err.msg);

    only_role.wal_level = "logical";
    only_role.in_recovery = false;
    if (source_server_check(&only_role, &err))
        report_add(check->report, "role", VERDICT_OK, "%s may replicate%s", check->server.role,
                   check->server.superuser ? " (superuser)" : "");
    else
        report_message(check->report, "role", VERDICT_FAIL, err.msg);

    only_standby.wal_level = "logical";
    only_standby.replication = true;
    if (!source_server_check(&only_standby, &err))
        report_message(check->report, "standby", VERDICT_FAIL, err.msg);
    else if (check->server.in_recovery)
        report_add(check->report, "standby", VERDICT_OK, "the server is a standby");
}

static void
check_clock(const SourceCheck *check)
{
    PgResult result;
    Error err = {0};
    int64_t before = clock_wall_us();

    if (!pg_exec(check->conn, check->arena,
                 "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", &result,
                 &err)) {
        report_message(check->report, "clock", VERDICT_WARN, err.msg);
        return;
    }

    int64_t here = before + (clock_wall_us() - before) / 2;
    int64_t skew = pg_value_int(&result, 0, 0) - here;

    if (llabs(skew) > CLOCK_SKEW_US_MAX) {
        report_add(check->report, "clock", VERDICT_WARN, "the server's clock is %.1f s %s ours",
                   (double) llabs(skew) / 1e6, skew > 0 ? "ahead of" : "behind");
        report_hint(check->report, "lag in seconds will be wrong by as much; run an NTP service on "
                                   "both machines");
    } else {
        report_add(check->report, "clock", VERDICT_OK, "%.3f s from the server's",
                   (double) llabs(skew) / 1e6);
    }
}

/* --- slot ------------------------------------------------------------------------------------ */

static void
check_existing_slot(const SourceCheck *check)
{
    const char *name = check->config->source_slot;
    const SlotExpect expect = {.name = name, .database = check->server.database};
    Error err = {0};

    if (check->slot.active_pid != 0) {
        report_add(check->report, "slot", VERDICT_OK, "%s is in use by process %d", name,
                   check->slot.active_pid);
    } else if (!source_slot_check(&check->slot, &expect, &err)) {
        report_message(check->report, "slot", VERDICT_FAIL, err.msg);
    } else if (check->slot.retained_bytes >= RETAINED_BYTES_WARN) {
        report_add(check->report, "slot", VERDICT_WARN,
                   "%s holds %" PRId64 " MB of WAL on the server and nobody reads it", name,
                   check->slot.retained_bytes >> 20);
        report_hint(check->report, arena_printf(check->arena,
                                                "start walberg run, or drop the slot: SELECT "
                                                "pg_drop_replication_slot('%s')",
                                                name));
    } else {
        report_add(check->report, "slot", VERDICT_OK, "%s is there, at %s", name,
                   POSITION_TEXT(check->slot.confirmed));
    }
}

static void
check_slot(SourceCheck *check)
{
    const char *name = check->config->source_slot;
    const ServerInfo *server = &check->server;
    Error err = {0};

    if (!source_slot_load(check->conn, check->arena, name, &check->slot, &err)) {
        report_message(check->report, "slot", VERDICT_FAIL, err.msg);
        return;
    }
    if (check->config->source_failover && !source_server_check_failover(server, &err))
        report_message(check->report, "slot", VERDICT_FAIL, err.msg);
    if (check->slot.exists) {
        check_existing_slot(check);
    } else if (server->slots_free <= 0) {
        report_add(check->report, "slot", VERDICT_FAIL, "all %d replication slots are taken",
                   server->slots_max);
        report_hint(check->report, "raise max_replication_slots and restart Postgres, or drop a "
                                   "slot that nobody uses: SELECT * FROM pg_replication_slots");
    } else {
        report_add(check->report, "slot", VERDICT_OK, "%s will be made, %d of %d are free", name,
                   server->slots_free, server->slots_max);
    }
}

/* What makes a slot useless while walberg is down. */
static void
check_slot_limits(const SourceCheck *check)
{
    const ServerInfo *server = &check->server;

    if (server->slot_wal_keep_bytes >= 0) {
        report_add(check->report, "max_slot_wal_keep_size", VERDICT_WARN,
                   "a slot that is %" PRId64 " MB of WAL behind is lost",
                   server->slot_wal_keep_bytes >> 20);
        report_hint(check->report, "after that the tables are copied again: make it large enough "
                                   "for the longest pause");
    }
    if (server->slot_idle_timeout_ms > 0) {
        report_add(check->report, "idle_replication_slot_timeout", VERDICT_WARN,
                   "a slot that nobody reads for %" PRId64 " s is lost",
                   server->slot_idle_timeout_ms / 1000);
        report_hint(check->report, "after that the tables are copied again: make it longer than "
                                   "the longest pause");
    }
}

static void
check_senders(const SourceCheck *check)
{
    const ServerInfo *server = &check->server;

    if (server->senders_free > 0 || check->slot.active_pid != 0) {
        report_add(check->report, "wal senders", VERDICT_OK, "%d of %d are free",
                   server->senders_free, server->senders_max);
        return;
    }
    report_add(check->report, "wal senders", VERDICT_FAIL, "all %d are taken", server->senders_max);
    report_hint(check->report, "raise max_wal_senders and restart Postgres");
}

/* --- publication ----------------------------------------------------------------------------- */

/* Postgres lets a role publish a table that it owns. */
static const SourceTable *
first_foreign_table(const SourceCheck *check)
{
    for (int i = 0; i < check->tables.count; i++) {
        const SourceTable *table = &check->tables.items[i];

        if (table->excluded == NULL && table->problem == NULL && !table->owned)
            return table;
    }
    return NULL;
}

static void
check_new_publication(const SourceCheck *check)
{
    const char *name = check->config->source_publication;
    const SourceTable *foreign = first_foreign_table(check);
    const char *sql =
        arena_printf(check->arena, "let the owner of the tables run: %s",
                     source_publication_create_sql(check->arena, name, &check->tables));

    if (!check->server.superuser && !check->server.may_create) {
        report_add(check->report, "publication", VERDICT_FAIL,
                   "%s does not exist, and %s lacks CREATE on database %s", name,
                   check->server.role, check->server.database);
        report_hint(check->report, sql);
    } else if (!check->server.superuser && foreign != NULL) {
        report_add(check->report, "publication", VERDICT_FAIL,
                   "%s does not exist, and %s does not own %s", name, check->server.role,
                   foreign->qualified);
        report_hint(check->report, sql);
    } else {
        report_add(check->report, "publication", VERDICT_OK, "%s will be made", name);
    }
}

static const SourceTable *
first_partitioned_table(const SourceCheck *check)
{
    for (int i = 0; i < check->tables.count; i++)
        if (check->tables.items[i].excluded == NULL && check->tables.items[i].kind == 'p')
            return &check->tables.items[i];
    return NULL;
}

static void
check_existing_publication(const SourceCheck *check, const Publication *publication)
{
    const char *name = check->config->source_publication;
    const SourceTable *partitioned = first_partitioned_table(check);
    const char *quoted = pg_quote_identifier(check->arena, str_of(name));

    if (!publication->via_root && partitioned != NULL) {
        report_add(check->report, "publication", VERDICT_FAIL,
                   "%s publishes the partitions of %s under their own names", name,
                   partitioned->qualified);
        report_hint(check->report,
                    arena_printf(check->arena,
                                 "ALTER PUBLICATION %s SET (publish_via_partition_root = true)",
                                 quoted));
    } else if (publication->missing > 0) {
        report_add(check->report, "publication", VERDICT_WARN,
                   "%s does not publish %d of the tables", name, publication->missing);
        report_hint(check->report, publication->missing_sql);
    } else {
        report_add(check->report, "publication", VERDICT_OK, "%s is there", name);
    }
    if (publication->unpublished != NULL) {
        report_add(check->report, "publication", VERDICT_WARN, "%s leaves out %s", name,
                   publication->unpublished);
        report_hint(check->report,
                    arena_printf(check->arena,
                                 "the lake will not see them; ALTER PUBLICATION %s SET (publish = "
                                 "'insert, update, delete, truncate')",
                                 quoted));
    }
}

static void
check_publication(const SourceCheck *check)
{
    Publication publication;
    Error err = {0};

    if (!source_publication_load(check->conn, check->arena, check->config->source_publication,
                                 &check->tables, &publication, &err))
        report_message(check->report, "publication", VERDICT_FAIL, err.msg);
    else if (publication.exists)
        check_existing_publication(check, &publication);
    else
        check_new_publication(check);
}

/* --- tables ---------------------------------------------------------------------------------- */

static const char *
key_text(Arena *arena, const TableSchema *schema)
{
    AUTO_BUF Buf text = {0};

    if (schema->key_mode == KEY_NONE)
        return "no key";
    if (schema->key_mode == KEY_FULL_ROW)
        return "no key, whole rows";
    buf_cstr(&text, "key (");
    for (int i = 0; i < schema->key_count; i++)
        buf_printf(&text, "%s%.*s", i == 0 ? "" : ", ",
                   STR_ARG(schema->columns[schema->key[i]].field.name));
    buf_byte(&text, ')');
    return arena_strdup(arena, buf_text(&text));
}

/* "key (id), 12 columns, in the lake by day(at), sorted by identity(id) asc nulls first; as text:
 * took interval, at timetz" */
static const char *
table_text(Arena *arena, const SourceTable *table, const TableRule *rule)
{
    AUTO_BUF Buf text = {0};
    const TableSchema *schema = table->schema;

    buf_printf(&text, "%s, %d column%s", key_text(arena, schema), schema->column_count,
               schema->column_count == 1 ? "" : "s");
    if (schema->identity == IDENTITY_FULL)
        buf_cstr(&text, ", replica identity full");
    if (table->leaf_count > 0)
        buf_printf(&text, ", %d partitions", table->leaf_count);
    if (rule->partition.count > 0)
        buf_printf(&text, ", in the lake by %s", partition_rule_text(arena, &rule->partition).ptr);
    if (rule->sort.count > 0)
        buf_printf(&text, ", sorted by %s", sort_rule_text(arena, &rule->sort).ptr);
    for (int i = 0; i < table->text_count; i++) {
        const SchemaColumn *column = &schema->columns[table->text_columns[i]];

        buf_printf(&text, "%s%.*s %s", i == 0 ? "; as text: " : ", ", STR_ARG(column->field.name),
                   column->pg_type);
    }
    return arena_strdup(arena, buf_text(&text));
}

static void
check_namespace(const SourceCheck *check, const SourceTable *table, const char *item)
{
    Str space =
        config_namespace(check->config, check->arena, check->server.database, table->schema_name);
    Error err = {0};

    if (!config_namespace_is_free(space, &err))
        report_message(check->report, item, VERDICT_FAIL, err.msg);
}

/* Reading Iceberg's type of this name throws in Spark: it has none itself. */
static void
check_times(const SourceCheck *check, const TableSchema *schema, const char *item)
{
    for (int i = 0; i < schema->column_count; i++) {
        const Field *field = &schema->columns[i].field;

        if (field->type->kind == TYPE_TIME)
            report_add(check->report, item, VERDICT_OK,
                       "column %.*s is a time in the lake, and Spark opens no table with one",
                       STR_ARG(field->name));
    }
}

/* Several lines for one table are several things to know. */
static void
check_table(const SourceCheck *check, const SourceTable *table)
{
    const char *item = arena_printf(check->arena, "table %s", table->qualified);
    TableRule rule =
        config_table_rule(check->config, check->arena, table->schema_name, table->table_name);
    const PartitionCheck lake = {check->report, check->arena, check->config,
                                 check->server.database};

    if (table->excluded != NULL) {
        report_add(check->report, item, VERDICT_WARN, "will not arrive: %s", table->excluded);
        return;
    }
    if (table->problem != NULL)
        report_message(check->report, item, VERDICT_FAIL, table->problem);
    else if (table->warning != NULL)
        report_message(check->report, item, VERDICT_WARN, table->warning);
    if (table->problem == NULL && table->schema != NULL)
        report_message(check->report, item, VERDICT_OK, table_text(check->arena, table, &rule));
    if (table->schema != NULL) {
        check_partition(&lake, table, &rule.partition, item);
        check_sort(&lake, table, &rule.sort, item);
        check_times(check, table->schema, item);
    }
    check_namespace(check, table, item);
    if (table->kind == 'p') {
        bool rewrite = strcmp(check->config->on_partition_change, "rewrite") == 0;

        report_add(
            check->report, item, rewrite ? VERDICT_OK : VERDICT_WARN,
            "a partition that is dropped, detached, attached with rows or truncated alone %s",
            rewrite ? "has the whole table copied again" : "leaves the lake's rows as they were");
        report_hint(check->report, "Postgres does not send these; see on_partition_change");
    }
    for (int i = 0; i < table->missing_count; i++)
        report_add(check->report, item, VERDICT_WARN, "column %.*s will not arrive: %s",
                   STR_ARG(table->missing[i].name), table->missing[i].reason);
    if (table->readable && table->schema != NULL)
        check_numerics(&(NumericCheck){check->report, check->arena, check->conn}, table, &rule);
    if (table->row_filter != NULL)
        report_add(check->report, item, VERDICT_WARN,
                   "the publication sends only rows with %s; others, and rows that leave the "
                   "filter, are gone from the lake",
                   table->row_filter);
}

/* The limit is ours, and that of a service may be another. */
static void
check_open_files(const SourceCheck *check)
{
    rlim_t wanted = OPEN_FILES + (rlim_t) check->tables.count * OPEN_FILES_PER_TABLE;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= wanted)
        return;
    report_add(check->report, "open files", VERDICT_WARN,
               "%d tables may need %" PRIu64 ", and the limit is %" PRIu64, check->tables.count,
               (uint64_t) wanted, (uint64_t) limit.rlim_max);
    report_hint(check->report, "raise ulimit -Hn, or LimitNOFILE= of walberg's service");
}

static void
check_tables(const SourceCheck *check)
{
    if (check->tables.count == 0) {
        report_add(check->report, "tables", VERDICT_WARN, "source.tables matches no table");
        report_hint(check->report, "patterns are schema.table: \"public.*\"");
    }
    for (int i = 0; i < check->tables.count; i++)
        check_table(check, &check->tables.items[i]);
}

/* --- all of it ------------------------------------------------------------------------------- */

static bool
load_source(SourceCheck *check, Config *config, Error *err)
{
    TRY(cli_connect_source(config, &check->conn, err));
    TRY(source_server_info(check->conn, check->arena, &check->server, err));
    return config_resolve(config, check->arena, check->server.database, err);
}

void
check_source(Report *report, Config *config)
{
    AUTO(source_check_done)
    SourceCheck check = {.report = report, .arena = report->arena, .config = config};
    Error err = {0};

    if (!load_source(&check, config, &err)) {
        report_message(report, "source", VERDICT_FAIL, err.msg);
        return;
    }
    check_version(&check);
    check_ability(&check);
    check_clock(&check);
    check_slot(&check);
    check_slot_limits(&check);
    check_senders(&check);
    if (!source_tables_load(
            check.conn, check.arena,
            &(TablesRead){.config = config, .publication = config->source_publication},
            &check.tables, &err)) {
        report_message(report, "tables", VERDICT_FAIL, err.msg);
        return;
    }
    check_publication(&check);
    check_open_files(&check);
    check_money(report, check.conn, &check.tables);
    check_tables(&check);
}
