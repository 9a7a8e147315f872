/* verify_source.c - snapshots of the source, and the rows they see. */
#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/verify.h"
#include "decode/copy_text.h"
#include "source/copy.h"
#include "source/slot.h"

enum {
    BATCH_ROWS = 4096,
    BATCH_BYTES = 8 << 20,
    RUNNING_WAIT_MS = 5000,
    RUNNING_PAUSE_MS = 100,
    FLUSH_WAIT_MS = 2000,
    PAGE_HEADER_BYTES = 24,      /* SizeOfXLogShortPHD */
    PAGE_HEADER_LONG_BYTES = 40, /* SizeOfXLogLongPHD: the first page of a segment */
};

/* --- snapshots ------------------------------------------------------------------------------- */

/* Where the next record would be put. At the beginning of a page that is behind its header, where
 * no record ends and nothing that reads the WAL ever stands. */
static bool
insert_position(Verify *verify, Position *out_position, Error *err)
{
    PgResult result;

    TRY(pg_exec(verify->conn, verify->round_arena,
                "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
                " ELSE pg_current_wal_insert_lsn() END, current_setting('wal_block_size')",
                &result, err));
    TRY(position_parse(pg_value(&result, 0, 0), out_position, err));

    uint64_t page = (uint64_t) pg_value_int(&result, 0, 1);
    uint64_t into_page = page == 0 ? 0 : *out_position % page;

    if (into_page == PAGE_HEADER_BYTES || into_page == PAGE_HEADER_LONG_BYTES)
        *out_position -= into_page;
    return true;
}

bool
verify_snapshot_begin(Verify *verify, Error *err)
{
    /* we wait inside of the transaction, and read for as long as it takes */
    static const char sql[] = "SET statement_timeout = 0;"
                              " SET idle_in_transaction_session_timeout = 0;"
                              " SET lock_timeout = '10s'";

    TRY(pg_exec(verify->conn, NULL, sql, NULL, err));
    TRY(pg_exec(verify->conn, NULL, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, err));
    /* the first query takes the snapshot; the position is read after it */
    TRY(pg_exec(verify->conn, NULL, "SELECT 1", NULL, err));
    return insert_position(verify, &verify->snapshot, err);
}

bool
verify_snapshot_end(Verify *verify, Error *err)
{
    return pg_exec(verify->conn, NULL, "COMMIT", NULL, err);
}

/* Every transaction that writes holds a lock on its own number until snapshots see its end, which
 * is after its commit record is written. One that waits for its client's next statement has not
 * written it. (States of other roles' sessions are hidden from a plain role: then it counts.) */
bool
verify_note_running(Verify *verify, Error *err)
{
    PgResult result;

    TRY(pg_exec(verify->conn, verify->arena,
                "SELECT coalesce(array_agg(DISTINCT l.transactionid::text)::text, '{}')"
                " FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid"
                " WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted"
                " AND (a.datname IS NULL OR a.datname = current_database())"
                " AND a.state IS DISTINCT FROM 'idle in transaction'",
                &result, err));
    verify->running = pg_value(&result, 0, 0).ptr;
    return true;
}

bool
verify_await_running(Verify *verify, Error *err)
{
    int64_t until = clock_ms() + RUNNING_WAIT_MS;

    verify->clear = false;
    if (verify->running == NULL)
        return true;
    for (;;) {
        AUTO_ARENA Arena *arena = arena_new();
        PgResult result;

        TRY(pg_query(verify->conn, arena,
                     "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'transactionid'"
                     " AND mode = 'ExclusiveLock' AND granted"
                     " AND transactionid::text = ANY ($1::text[]))",
                     1, &verify->running, &result, err));
        verify->clear = pg_value_bool(&result, 0, 0);
        if (verify->clear || clock_ms() > until)
            return true;
        usleep(1000 * RUNNING_PAUSE_MS);
    }
}

/* --- the slot -------------------------------------------------------------------------------- */

bool
verify_slot_is_read(Verify *verify, bool *out_read, Error *err)
{
    Slot slot;

    TRY(source_slot_load(verify->conn, verify->round_arena, verify->config->source_slot, &slot,
                         err));
    *out_read = slot.exists && slot.active_pid != 0;
    return true;
}

/* What commits without waiting for the disk is there a moment later. */
static bool
await_flush(Verify *verify, Error *err)
{
    for (int64_t until = clock_ms() + FLUSH_WAIT_MS; clock_ms() < until;) {
        ServerInfo server;

        TRY(source_server_info(verify->conn, verify->round_arena, &server, err));
        if (server.flush >= verify->snapshot)
            return true;
        usleep(1000 * RUNNING_PAUSE_MS);
    }
    return true;
}

/* pgoutput messages: 'B' Begin has the commit record's position in its first eight bytes; 'I', 'U',
 * 'D' and 'T' are changes. (Postgres documentation, "Logical Replication Message Formats") */
static bool
count_changes(Verify *verify, const char *sql, Position from, int64_t *out_changes, Error *err)
{
    uint64_t commit = 0;
    int64_t changes = 0;

    TRY(pg_copy_start(verify->conn, sql, err));
    for (;;) {
        char *row;
        size_t size;
        bool end;

        TRY(pg_copy_row(verify->conn, &row, &size, &end, err));
        if (end)
            break;
        if (row[0] == 'B')
            commit = strtoull(row + 1, NULL, 16);
        else
            changes += commit >= from;
    }
    *out_changes = changes;
    return true;
}

bool
verify_waiting_changes(Verify *verify, Position from, int64_t *out_changes, Error *err)
{
    Arena *arena = verify->round_arena;
    const char *publication =
        pg_quote_identifier(arena, str_of(verify->config->source_publication));
    const char *sql = arena_printf(
        arena,
        "COPY (SELECT chr(get_byte(data, 0)) || CASE get_byte(data, 0) WHEN 66 THEN"
        " encode(substring(data FROM 2 FOR 8), 'hex') ELSE '' END"
        " FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, 'proto_version', '1',"
        " 'publication_names', %s) WHERE get_byte(data, 0) IN (66, 68, 73, 84, 85)) TO STDOUT",
        pg_quote_literal(arena, str_of(verify->config->source_slot)),
        pg_quote_literal(arena, str_of(publication)));

    TRY(await_flush(verify, err));
    TRY(pg_exec(verify->conn, NULL, "SAVEPOINT peek", NULL, err));
    if (count_changes(verify, sql, from, out_changes, err))
        return true;

    Error ignored;

    (void) !pg_exec(verify->conn, NULL, "ROLLBACK TO peek", NULL, &ignored);
    return false;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* A COPY being read into rows. */
typedef struct SourceScan {
    RowTaker taker;
    const CopyTask *task;
    Batch *batch;
    TupleMap map;
    Datum *datums;
    Buf versions; /* uint64_t, one a row of the batch; notes only */
} SourceScan;

static void
scan_done(SourceScan *scan)
{
    verify_taker_done(&scan->taker);
    batch_free(scan->batch);
    buf_done(&scan->versions);
}

/* The columns of the lake, and with notes which row version it is in front: where it is and the
 * transaction that wrote it. Freezing leaves both as they are. */
static const char *
scan_sql(Arena *arena, const CopyTask *task, bool notes)
{
    AUTO_BUF Buf sql = {0};
    const TableSchema *schema = task->table->schema;

    if (!notes)
        return copy_task_sql(arena, task);
    buf_cstr(&sql, "COPY (SELECT concat(tableoid, ctid, xmin)");
    for (int i = 0; i < schema->column_count; i++)
        buf_printf(&sql, ", %s", pg_quote_identifier(arena, schema->columns[i].field.name));
    buf_printf(&sql, " FROM ONLY %s",
               source_relation_sql(arena, task->schema_name, task->table_name));
    if (task->table->row_filter != NULL)
        buf_printf(&sql, " WHERE (%s)", task->table->row_filter);
    buf_cstr(&sql, ") TO STDOUT");
    return arena_strdup(arena, buf_text(&sql));
}

static bool
take_batch(SourceScan *scan, Error *err)
{
    VerifyTable *table = scan->taker.table;
    Batch *batch = scan->batch;
    bool keyed = batch->schema->key_mode == KEY_COLUMNS;

    for (size_t i = 0; i < batch->rows; i++) {
        const Hash128 *key = keyed ? &BUF_AT(&batch->keys, Hash128, i) : NULL;
        uint64_t version = scan->taker.notes ? BUF_AT(&scan->versions, uint64_t, i) : 0;

        TRY(verify_take_row(&scan->taker, batch->columns, i, key, version, err));
    }
    if (!scan->taker.notes)
        verify_count_rejects(table, batch);
    batch_reset(batch);
    buf_reset(&scan->versions);
    if (progress_due(&scan->taker.verify->progress))
        progress_say(&scan->taker.verify->progress, "%s: %" PRId64 " rows of the source read",
                     table->name, scan->taker.rows);
    return true;
}

static bool
read_rows(SourceScan *scan, Error *err)
{
    const ChangeOrigin origin = {0};
    size_t bytes = 0;

    for (;;) {
        char *row;
        size_t size;
        bool end;

        TRY(pg_copy_row(scan->taker.verify->conn, &row, &size, &end, err));
        if (end)
            return take_batch(scan, err);
        TRY(copy_text_split(row, size, scan->datums, scan->map.count, err));
        if (scan->taker.notes)
            BUF_PUSH(&scan->versions, uint64_t,
                     hash128(scan->datums[0].text.ptr, scan->datums[0].text.len, 0).low);
        TRY(batch_append_row(scan->batch, &scan->map, scan->datums, &origin, err));
        bytes += size;
        if (scan->batch->rows < BATCH_ROWS && bytes < BATCH_BYTES)
            continue;
        TRY(take_batch(scan, err));
        bytes = 0;
    }
}

/* The server goes on sending what nobody wants any more: then the connection can be used again. */
static void
skip_rows(PgConn *conn)
{
    Error ignored;
    char *row;
    size_t size;
    bool end = false;

    while (!end && pg_copy_row(conn, &row, &size, &end, &ignored))
        ;
}

static bool
scan_task(SourceScan *scan, const CopyTask *task, Error *err)
{
    PgConn *conn = scan->taker.verify->conn;
    AUTO_ARENA Arena *arena = arena_new();

    TRY(copy_task_check(conn, arena, task, err));
    TRY(pg_copy_start(conn, scan_sql(arena, task, scan->taker.notes), err));
    if (read_rows(scan, err))
        return true;
    if (err->kind == ERR_INPUT) /* a key that cannot be held */
        skip_rows(conn);
    return false;
}

/* The version's datum maps to no column. */
static TupleMap
map_columns(Arena *arena, const TableSchema *schema, bool notes)
{
    int extra = notes ? 1 : 0;
    int *columns = ARENA_ARRAY(arena, int, (size_t) (schema->column_count + extra));

    columns[0] = -1;
    for (int i = 0; i < schema->column_count; i++)
        columns[i + extra] = i;
    return (TupleMap){.count = schema->column_count + extra, .column_map = columns};
}

static bool
scan_table(Verify *verify, VerifyTable *table, bool notes, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    CopyPlan plan;
    AUTO(scan_done)
    SourceScan scan = {
        .taker = {.verify = verify, .table = table, .side = SIDE_SOURCE, .notes = notes},
        .batch = batch_new(table->source->schema, false),
        .map = map_columns(arena, table->source->schema, notes)};

    batch_set_value_limit(scan.batch, verify->config->value_limit);
    scan.datums = ARENA_ARRAY(arena, Datum, (size_t) scan.map.count);
    TRY(source_copy_plan(
        verify->conn, arena,
        &(CopyWant){.tables = &table->source, .count = 1, .range_bytes = INT64_MAX}, &plan, err));
    for (int i = 0; i < plan.count; i++)
        TRY(scan_task(&scan, &plan.tasks[i], err));
    if (!notes)
        table->rows[SIDE_SOURCE] = scan.taker.rows;
    return true;
}

bool
verify_scan_source(Verify *verify, VerifyTable *table, bool notes, Error *err)
{
    Error ignored;

    TRY(pg_exec(verify->conn, NULL, "SAVEPOINT scan", NULL, err));
    if (scan_table(verify, table, notes, err))
        return pg_exec(verify->conn, NULL, "RELEASE scan", NULL, err);
    /* the others go on if the connection does */
    if (!pg_exec(verify->conn, NULL, "ROLLBACK TO scan", NULL, &ignored))
        return WRAP(err, "%s", table->name);
    table->reason = arena_strdup(verify->arena, err->msg);
    return true;
}
