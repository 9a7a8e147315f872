/* verify.c - `walberg verify`: is every row of the source in the lake, as it is in the source?
 *
 * A snapshot S of the source has no place in the WAL that one could ask for, and the lake has no
 * state that holds exactly the transactions of S: it goes forward an epoch at a time. So rows are
 * not compared with one lake, but pinned between two.
 *
 *   - S is an ordinary REPEATABLE READ transaction. Its WAL insert position is read after it was
 *     taken. A transaction that S sees had its commit record written before, so it ends at or
 *     before that position p(S).
 *   - The lake is read once it has p(S): then it holds all of S, and perhaps later transactions.
 *     Call that state L. It is fixed by reading its metadata, before the rows are scanned.
 *   - A snapshot taken after L was fixed sees all that L holds, but for transactions that were
 *     just then between their commit record and their end in the server (waiting for a synchronous
 *     standby, say): these hold the lock on their number. They are noted after L was fixed, and
 *     waited for. Without a temporary slot all this needs SELECT only.
 *
 * So snapshots and lake states alternate, each holding all of the one before: S1 L1 S2 L2 S3 ...
 *
 *   equal      A row (that is: the rows of a key; for tables without key, twins are counted) that
 * is the same in S and the L after it is taken as equal. What the source did to it after S is no
 * longer of interest: L holds it, or the next verification finds it missing. different  A row
 * version that is in S1 and in S2 (the same place, written by the same transaction) was there all
 * the time between, L1 included: if L1 does not have it, that is a difference. Likewise a row that
 * stands at the same place of the same file in L1 and L2, and is not in S2. (Versions are pinned,
 * not values: a value may go and come back.) undecided  Everything else changed meanwhile: it is
 * looked at again, with the next S and L, and after some rounds given up on, said so, and called
 * neither.
 *
 * So a row that changes more often than the lake commits stays undecided: each state of the lake
 * has it as of the end of an epoch, which no snapshot of the source need have seen. The place of S
 * in the WAL is not known, only a bound, so the history of the lake's table does not help either.
 * Exact would be the snapshot of a slot of our own, and the row's changes from there to a position
 * of the lake, decoded once more.
 *
 * First both sides are reduced to sums over buckets of keys, in memory that does not grow with the
 * table; only rows of buckets that differ are then looked at one by one. The sides share no code
 * below the typed value: the source's text goes through the parser of the copy, the lake's Parquet
 * through DuckDB.
 *
 * While walberg is stopped the lake stands still at its position. If it equals S, good. If not, the
 * slot is asked, without moving it, whether changes wait there; if none do, the lake is as of S. */
#include "cli/verify.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/json_writer.h"
#include "cli/connect.h"
#include "config/value.h"

enum {
    EXIT_DIFFERENT = 1,
    EXIT_UNDECIDED = 3,
    LIMIT_DEFAULT = 10,
    ROUNDS_MAX = 8,
    UNCLEAR_ROUNDS_MAX = 3,
};

static const int64_t TIMEOUT_MS_DEFAULT = 300000;
/* What one value of 1 GB takes: DuckDB has room for the next power of two, twice. A scan of others
 * takes some megabytes. */
static const int64_t DUCK_BYTES_MAX = INT64_C(8) << 30;

/* --- rounds ---------------------------------------------------------------------------------- */

/* The next snapshot, and the states of the lake's tables after it. */
static bool
begin_round(Verify *verify, bool sums, Error *err)
{
    arena_reset(verify->round_arena);
    TRY(verify_await_running(verify, err));
    TRY(verify_snapshot_begin(verify, err));
    TRY(verify_await_lake(verify, sums, err));
    for (size_t i = 0; i < verify->table_count; i++) {
        VerifyTable *table = &verify->tables[i];

        if (table->reason == NULL && (sums || table->open))
            TRY(verify_plan_lake(verify, table, err));
    }
    verify_leave_standing(verify, sums);
    return verify_note_running(verify, err);
}

static bool
scan(Verify *verify, VerifyTable *table, bool notes, Error *err)
{
    TRY(verify_scan_source(verify, table, notes, err));
    return table->reason != NULL || verify_scan_lake(verify, table, notes, err);
}

static bool
compare_sums(Verify *verify, Error *err)
{
    TRY(begin_round(verify, true, err));
    verify->position = verify->snapshot;
    for (size_t i = 0; i < verify->table_count; i++) {
        VerifyTable *table = &verify->tables[i];

        if (table->reason != NULL)
            continue;
        verify_begin_sums(table);
        TRY(scan(verify, table, false, err));
        verify_end_sums(table);
    }
    TRY(verify_snapshot_end(verify, err));
    return verify_find_records(verify, err);
}

/* Every table that may have more to find gets its next buckets. One that differs is not looked
 * into further: the verdict stands. */
static bool
open_tables(Verify *verify)
{
    bool any = false;

    for (size_t i = 0; i < verify->table_count; i++) {
        VerifyTable *table = &verify->tables[i];

        table->open = false;
        if (table->reason == NULL && table->different == 0 && verify_next_buckets(table))
            any = true;
    }
    return any;
}

static bool
has_open_table(const Verify *verify)
{
    for (size_t i = 0; i < verify->table_count; i++)
        if (verify->tables[i].open)
            return true;
    return false;
}

static bool
compare_rows(Verify *verify, Error *err)
{
    TRY(begin_round(verify, false, err));
    for (size_t i = 0; i < verify->table_count; i++) {
        VerifyTable *table = &verify->tables[i];

        if (!table->open)
            continue;
        verify_begin_notes(table);
        TRY(table->reason != NULL || scan(verify, table, true, err));
        if (table->reason == NULL)
            verify_settle(verify, table);
        else
            table->open = false;
    }
    return verify_snapshot_end(verify, err);
}

/* A transaction that stays open keeps every round from proving a difference. */
static bool
look_into_buckets(Verify *verify, Error *err)
{
    int unclear = 0;

    for (int round = 0;
         round < ROUNDS_MAX && unclear < UNCLEAR_ROUNDS_MAX && has_open_table(verify); round++) {
        TRY(compare_rows(verify, err));
        unclear += !verify->clear;
    }
    for (size_t i = 0; i < verify->table_count; i++) {
        VerifyTable *table = &verify->tables[i];

        table->undecided += BUF_COUNT(&table->pending, Hash128);
        buf_reset(&table->pending);
    }
    return true;
}

static bool
compare(Verify *verify, Error *err)
{
    TRY(compare_sums(verify, err));
    while (open_tables(verify))
        TRY(look_into_buckets(verify, err));
    for (size_t i = 0; i < verify->table_count; i++)
        verify->tables[i].at_least =
            verify->tables[i].different > 0 && verify_next_buckets(&verify->tables[i]);
    return true;
}

/* --- what is printed ------------------------------------------------------------------------- */

static const char *
result_of(const VerifyTable *table)
{
    if (table->different > 0 || table->without_record > 0)
        return "different";
    if (table->reason != NULL)
        return "not compared";
    return table->undecided > 0 ? "undecided" : "equal";
}

static const char *
kind_of(const Difference *difference)
{
    if (!difference->in_lake)
        return "missing in the lake";
    return difference->in_source ? "not the same" : "not in the source";
}

static int
exit_code(const Verify *verify)
{
    int code = 0;

    for (size_t i = 0; i < verify->table_count; i++) {
        const VerifyTable *table = &verify->tables[i];

        if (table->different > 0 || table->reason != NULL || table->without_record > 0)
            return EXIT_DIFFERENT;
        if (table->undecided > 0)
            code = EXIT_UNDECIDED;
    }
    return code;
}

static void
put_rows(Buf *out, const VerifyTable *table)
{
    int64_t source = table->rows[SIDE_SOURCE];
    int64_t lake = table->rows[SIDE_LAKE];

    if (source == lake)
        buf_printf(out, ", %" PRId64 " rows", source);
    else
        buf_printf(out, ", %" PRId64 " rows in the source, %" PRId64 " in the lake", source, lake);
    if (table->rejected > 0)
        buf_printf(out, ", %" PRId64 " rejected values", table->rejected);
    if (table->without_record > 0)
        buf_printf(out, ", %" PRId64 " of them without a record in _walberg.rejects",
                   table->without_record);
}

static void
put_table(Buf *out, const VerifyTable *table)
{
    buf_printf(out, "%s: %s", table->name, result_of(table));
    if (table->reason != NULL) {
        /* the hint of a reason is the pipeline's: walberg status shows it */
        buf_printf(out, ": %.*s\n", (int) strcspn(table->reason, "\n"), table->reason);
        return;
    }
    if (table->different > 0)
        buf_printf(out, " in %s%" PRIu64 " rows", table->at_least ? "at least " : "",
                   table->different);
    put_rows(out, table);
    if (table->undecided > 0)
        buf_printf(out, "; changed while comparing: %" PRIu64 " rows, not decided",
                   table->undecided);
    buf_byte(out, '\n');
    for (size_t i = 0; i < BUF_COUNT(&table->shown, Difference); i++) {
        const Difference *difference = &BUF_AT(&table->shown, Difference, i);

        buf_printf(out, "  %s: %s\n", kind_of(difference), difference->key);
    }
    if (table->different > BUF_COUNT(&table->shown, Difference))
        buf_printf(out, "  and %" PRIu64 " more\n",
                   table->different - BUF_COUNT(&table->shown, Difference));
}

static void
put_int(JsonWriter *json, const char *key, int64_t value)
{
    jw_key(json, key);
    jw_int(json, value);
}

static void
put_text(JsonWriter *json, const char *key, const char *value)
{
    jw_key(json, key);
    jw_str(json, str_of(value));
}

static void
put_json_table(JsonWriter *json, const VerifyTable *table)
{
    jw_object(json);
    put_text(json, "name", table->name);
    put_text(json, "result", result_of(table));
    put_text(json, "reason", table->reason);
    put_int(json, "source_rows", table->rows[SIDE_SOURCE]);
    put_int(json, "lake_rows", table->rows[SIDE_LAKE]);
    put_int(json, "different", (int64_t) table->different);
    jw_key(json, "at_least");
    jw_bool(json, table->at_least);
    put_int(json, "undecided", (int64_t) table->undecided);
    put_int(json, "rejected_values", table->rejected);
    put_int(json, "without_record", table->without_record);
    jw_key(json, "differences");
    jw_array(json);
    for (size_t i = 0; i < BUF_COUNT(&table->shown, Difference); i++) {
        const Difference *difference = &BUF_AT(&table->shown, Difference, i);

        jw_object(json);
        put_text(json, "difference", kind_of(difference));
        jw_key(json, "key");
        jw_raw(json, str_of(difference->key));
        jw_end(json);
    }
    jw_end(json);
    jw_end(json);
}

static void
put_json(Buf *out, const Verify *verify)
{
    static const char *const results[] = {
        [0] = "equal", [EXIT_DIFFERENT] = "different", [EXIT_UNDECIDED] = "undecided"};
    JsonWriter json;

    jw_begin(&json, out);
    jw_object(&json);
    put_text(&json, "pipeline", verify->config->pipeline);
    put_text(&json, "position", POSITION_TEXT(verify->position));
    put_text(&json, "result", results[exit_code(verify)]);
    jw_key(&json, "tables");
    jw_array(&json);
    for (size_t i = 0; i < verify->table_count; i++)
        put_json_table(&json, &verify->tables[i]);
    jw_end(&json);
    jw_end(&json);
    buf_byte(out, '\n');
}

/* --- the command ----------------------------------------------------------------------------- */

static void
verify_done(Verify *verify)
{
    progress_end(&verify->progress);
    for (size_t i = 0; i < verify->table_count; i++)
        verify_table_done(&verify->tables[i]);
    source_tables_done(&verify->source);
    duck_close(verify->duck);
    catalog_close(verify->catalog);
    store_close(verify->store);
    pg_close(verify->conn);
    buf_done(&verify->standing);
    arena_free(verify->round_arena);
    arena_free(verify->state_arena);
}

static bool
take_options(Verify *verify, Error *err)
{
    const Cli *cli = verify->cli;

    verify->limit = LIMIT_DEFAULT;
    verify->timeout_ms = TIMEOUT_MS_DEFAULT;
    if (cli->limit != NULL && !value_int(str_of(cli->limit), &verify->limit, err))
        return WRAP(err, "--limit");
    if (cli->timeout != NULL && !value_duration(str_of(cli->timeout), &verify->timeout_ms, err))
        return WRAP(err, "--timeout");
    if (verify->limit < 0)
        return FAIL(err, ERR_INPUT, "--limit: %" PRId64 " is negative", verify->limit);
    TRY(cli_need_source(cli, err));
    TRY(cli_need_warehouse(cli, err));
    return cli_resolve(verify->config, verify->arena, &verify->conn, err);
}

/* The same server and database that the lake was filled from? */
static bool
check_source(const Verify *verify, Error *err)
{
    if (strcmp(verify->state.system_identifier, verify->server.system_identifier) == 0 &&
        strcmp(verify->state.database, verify->server.database) == 0)
        return true;
    return FAIL(err, ERR_INPUT,
                "the lake was filled from another server or database: system identifier %s, "
                "database %s; this is %s, %s",
                verify->state.system_identifier, verify->state.database,
                verify->server.system_identifier, verify->server.database);
}

static bool
open_ends(Verify *verify, Error *err)
{
    const Config *config = verify->config;

    if (verify->conn == NULL)
        TRY(cli_connect_source(config, &verify->conn, err));
    TRY(source_server_info(verify->conn, verify->arena, &verify->server, err));
    TRY(cli_open_warehouse(config, 0, &verify->store, err));
    TRY(catalog_open(config->catalog_type, verify->store, &verify->catalog, err));
    TRY(duck_open(
        &(DuckOptions){.memory_bytes_max = DUCK_BYTES_MAX, .threads = 1, .reads_once = true},
        &verify->duck, err));
    verify->files = (FileCache){.store = verify->store,
                                .folder = arena_printf(verify->arena, "%s/cache", config->state),
                                .bytes_max = config->cache};
    TRY(verify_load_state(verify, err));
    TRY(check_source(verify, err));
    return verify_choose_tables(verify, err);
}

int
cmd_verify(const Cli *cli)
{
    AUTO(verify_done)
    Verify verify = {.cli = cli,
                     .config = cli->config,
                     .arena = cli->arena,
                     .round_arena = arena_new(),
                     .state_arena = arena_new()};
    AUTO_BUF Buf out = {0};
    Error err = {0};

    progress_begin(&verify.progress, cli->quiet);
    if (!take_options(&verify, &err))
        return cli_fail_settings(&err);
    if (!open_ends(&verify, &err) || !compare(&verify, &err)) {
        progress_end(&verify.progress);
        return cli_fail(&err);
    }
    progress_end(&verify.progress);
    if (cli->json)
        put_json(&out, &verify);
    else
        for (size_t i = 0; i < verify.table_count; i++)
            put_table(&out, &verify.tables[i]);
    cli_put(&out);
    return exit_code(&verify);
}
