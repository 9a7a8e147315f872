/* The copy and the replication stream against a real Postgres. Rows and values are compared with
 * what Postgres itself answers, under the same snapshot where there is one. */
#include "source_testing.h"

#include "base/clock.h"
#include "source/copy.h"
#include "source/stream.h"

enum { ROWS = 20000, STALL_MS = 8000 };

static ThrowawayPg pg;

static int
group_setup(void **state)
{
    (void) state;
    return throwaway_pg_start(&pg, NULL);
}

static int
group_teardown(void **state)
{
    (void) state;
    throwaway_pg_stop(&pg);
    return 0;
}

/* --- the copy -------------------------------------------------------------------------------- */

/* Takes batches of table (id int, v bigint, ...): counts each id and adds up v. */
typedef struct Tally {
    const TableSchema *schema;
    Batch *batch;
    Cancel *cancel_on_first;
    uint8_t seen[2 * ROWS];
    int64_t sum;
    size_t rows;
    size_t rows_max; /* of one batch */
    int batches;
} Tally;

static void
tally_add(Tally *tally, const Batch *batch)
{
    int id_at = schema_find_column(tally->schema, STR("id"));
    int v_at = schema_find_column(tally->schema, STR("v"));

    assert_int_equal(batch->rejects.len, 0);
    for (size_t row = 0; row < batch->rows; row++) {
        int32_t id = BUF_AT(&batch->columns[id_at].values, int32_t, row);

        assert_true(id >= 0 && id < 2 * ROWS);
        tally->seen[id]++;
        tally->sum += BUF_AT(&batch->columns[v_at].values, int64_t, row);
    }
    tally->rows += batch->rows;
    if (batch->rows > tally->rows_max)
        tally->rows_max = batch->rows;
    tally->batches++;
    if (tally->cancel_on_first != NULL)
        cancel_set(tally->cancel_on_first);
}

static void
tally_start(Tally *tally, const TableSchema *schema)
{
    *tally = (Tally){.schema = schema, .batch = batch_new(schema, false)};
}

/* All batches of a task. */
static bool
tally_task(Tally *tally, PgConn *conn, const CopyTask *task, const CopyRun *run, Error *err)
{
    CopyReader *reader = NULL;
    bool end = false;
    bool done = copy_reader_open(conn, task, run, &reader, err);

    while (done && !end) {
        batch_reset(tally->batch);
        done = copy_reader_fill(reader, tally->batch, &end, err);
        if (done)
            tally_add(tally, tally->batch);
    }
    copy_reader_close(reader);
    return done;
}

static void
tally_done(Tally *tally)
{
    batch_free(tally->batch);
}

static PgConn *
new_slot(const char *name, bool temporary, SlotSnapshot *out_snapshot)
{
    static Arena *arena; /* holds the snapshot's name */
    PgConn *walsender = connect_with(&pg, "", true);
    Error err = {0};

    if (arena == NULL)
        arena = arena_new();
    OK(source_slot_create(walsender, arena, &(SlotCreate){.name = name, .temporary = temporary},
                          out_snapshot, &err));
    return walsender;
}

static void
plan_one(PgConn *conn, Arena *arena, const SourceTable *table, int64_t range_bytes,
         CopyPlan *out_plan)
{
    Error err = {0};

    OK(source_copy_plan(conn, arena,
                        &(CopyWant){.tables = &table, .count = 1, .range_bytes = range_bytes},
                        out_plan, &err));
}

static void
copy_sees_the_snapshot_while_rows_change(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};
    SlotSnapshot snapshot = {0};
    CopyPlan plan = {0};
    atomic_llong progress = 0;
    static Tally tally;
    Error err = {0};

    run_sql(conn, "CREATE SCHEMA cp; CREATE TABLE cp.t (id int PRIMARY KEY, v bigint, pad text);"
                  "INSERT INTO cp.t SELECT i, i * 3, repeat('x', 200) FROM"
                  " generate_series(0, 19999) i; DELETE FROM cp.t WHERE id % 7 = 0;"
                  "UPDATE cp.t SET v = v + 1 WHERE id % 5 = 0");

    const char *count = ask(conn, arena, "SELECT count(*) FROM cp.t");
    const char *sum = ask(conn, arena, "SELECT sum(v) FROM cp.t");
    PgConn *walsender = new_slot("walberg_copy", true, &snapshot);

    load_tables(conn, arena, &(TablesRead){.config = config_of(arena, "[\"cp.*\"]")}, &tables);

    const SourceTable *table = table_named(&tables, "cp.t");

    plan_one(conn, arena, table, 65536, &plan);
    if (pg_server_version(conn) >= 140000)
        assert_true(plan.count > 50);
    else
        assert_int_equal(plan.count, 1);
    tally_start(&tally, table->schema);

    PgConn *readers[2] = {connect_with(&pg, "", false), connect_with(&pg, "", false)};

    for (int i = 0; i < 2; i++)
        OK(source_copy_begin(readers[i], snapshot.snapshot, &err));
    for (int i = 0; i < plan.count; i++) {
        /* Rows move to other pages, go and come between the ranges. */
        run_sql(conn, arena_printf(arena,
                                   "UPDATE cp.t SET v = -1 WHERE id %% 100 = %d;"
                                   "DELETE FROM cp.t WHERE id %% 100 = %d;"
                                   "INSERT INTO cp.t VALUES (%d, -1, '')",
                                   i % 50, 50 + i % 50, 30000 + i));
        OK(tally_task(&tally, readers[i % 2], &plan.tasks[i],
                      &(CopyRun){.batch_rows = 300, .batch_bytes = 1 << 20, .progress = &progress},
                      &err));
    }
    for (int i = 0; i < 2; i++)
        OK(source_copy_end(readers[i], &err));
    assert_int_equal(tally.rows, strtoll(count, NULL, 10));
    assert_int_equal(tally.sum, strtoll(sum, NULL, 10));
    assert_int_equal(atomic_load(&progress), tally.rows);
    assert_true(tally.rows_max <= 300 && tally.batches > 50);
    for (int id = 0; id < ROWS; id++)
        assert_int_equal(tally.seen[id], id % 7 != 0);
    tally_done(&tally);
    pg_close(walsender);
    pg_close(readers[0]);
    pg_close(readers[1]);
    run_sql(conn, "DROP SCHEMA cp CASCADE");
}

static void
partitions_and_parents_are_copied_once(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};
    static Tally tally;
    Error err = {0};

    run_sql(conn,
            "CREATE SCHEMA pc; CREATE TABLE pc.root (id int, v bigint, odd text) PARTITION BY"
            " RANGE (id); CREATE TABLE pc.low PARTITION OF pc.root FOR VALUES FROM (0) TO (100);"
            "CREATE TABLE pc.high (odd text, dropped int, v bigint, id int);"
            "ALTER TABLE pc.high DROP COLUMN dropped;"
            "ALTER TABLE pc.root ATTACH PARTITION pc.high FOR VALUES FROM (100) TO (1000);"
            "INSERT INTO pc.root SELECT i, i * 2, 'x' FROM generate_series(0, 499) i;"
            "CREATE TABLE pc.parent (id int, v bigint); CREATE TABLE pc.child (more text)"
            " INHERITS (pc.parent); INSERT INTO pc.parent VALUES (1, 10);"
            "INSERT INTO pc.child VALUES (2, 20, 'y')");
    load_tables(conn, arena, &(TablesRead){.config = config_of(arena, "[\"pc.*\"]")}, &tables);

    static const struct {
        const char *table;
        int tasks;
        size_t rows;
        int64_t sum;
    } cases[] = {{"pc.root", 2, 500, 249500}, {"pc.parent", 1, 1, 10}, {"pc.child", 1, 1, 20}};

    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const SourceTable *table = table_named(&tables, cases[c].table);
        CopyPlan plan = {0};

        plan_one(conn, arena, table, 1 << 20, &plan);
        assert_int_equal(plan.count, cases[c].tasks);
        tally_start(&tally, table->schema);
        for (int i = 0; i < plan.count; i++)
            OK(tally_task(&tally, conn, &plan.tasks[i],
                          &(CopyRun){.batch_rows = 1000000, .batch_bytes = 1 << 30}, &err));
        assert_int_equal(tally.rows, cases[c].rows);
        assert_int_equal(tally.sum, cases[c].sum);
        tally_done(&tally);
    }
    run_sql(conn, "DROP SCHEMA pc CASCADE");
}

static void
copy_refuses_what_would_lose_rows(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    AUTO(source_tables_done) SourceTables tables = {0};
    SlotSnapshot snapshot = {0};
    CopyPlan plan = {0};
    static Tally tally;
    Error err = {0};

    run_sql(conn, "CREATE SCHEMA rw; CREATE TABLE rw.t (id int PRIMARY KEY, v bigint);"
                  "INSERT INTO rw.t SELECT i, i FROM generate_series(0, 19999) i");

    PgConn *walsender = new_slot("walberg_rewrite", true, &snapshot);

    load_tables(conn, arena, &(TablesRead){.config = config_of(arena, "[\"rw.*\"]")}, &tables);
    plan_one(conn, arena, &tables.items[0], 1 << 30, &plan);
    tally_start(&tally, tables.items[0].schema);

    CopyRun run = {.batch_rows = 1000, .batch_bytes = 1 << 20};
    Cancel *cancel = cancel_new();
    PgConn *reader = NULL;

    OK(pg_connect(&(PgConnect){.conninfo = pg.conninfo, .cancel = cancel}, &reader, &err));

    /* An older snapshot sees a rewritten table as empty. */
    OK(source_copy_begin(reader, snapshot.snapshot, &err));
    run_sql(conn, "ALTER TABLE rw.t ALTER COLUMN v TYPE numeric");
    FAILS(tally_task(&tally, reader, &plan.tasks[0], &run, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.msg, "copy rw.t: the table was rewritten"));
    assert_int_equal(tally.rows, 0);
    run_sql(reader, "ROLLBACK");
    run_sql(conn, "ALTER TABLE rw.t ALTER COLUMN v TYPE bigint");

    /* The snapshot ends with the connection that exported it. */
    pg_close(walsender);
    usleep(300000);
    FAILS(source_copy_begin(reader, snapshot.snapshot, &err), ERR_CONFLICT);
    run_sql(reader, "SELECT 1"); /* and the connection is still good */

    /* A column that went away meanwhile */
    run_sql(conn, "ALTER TABLE rw.t RENAME COLUMN v TO w");
    FAILS(tally_task(&tally, reader, &plan.tasks[0], &run, &err), ERR_CONFLICT);
    assert_string_equal(pg_sqlstate(reader), "42703");
    run_sql(conn, "ALTER TABLE rw.t RENAME COLUMN w TO v");

    tally.cancel_on_first = cancel;
    FAILS(tally_task(&tally, reader, &plan.tasks[0], &run, &err), ERR_CANCELED);
    assert_true(tally.rows < ROWS);
    tally_done(&tally);
    pg_close(reader);
    cancel_free(cancel);
    run_sql(conn, "DROP SCHEMA rw CASCADE");
}

/* --- the stream ------------------------------------------------------------------------------ */

typedef struct Feed {
    Cancel *cancel;
    Stream *stream;
    PgConn *conn;
    Arena *arena;
} Feed;

static void
feed_start(Feed *feed, const char *slot, const char *options)
{
    char conninfo[1024];
    Error err = {0};

    feed->cancel = cancel_new();
    feed->arena = arena_new();
    feed->conn = connect_with(&pg, "", false);
    OK(stream_open(&(StreamOpen){.conninfo = conninfo_with(&pg, conninfo, options),
                                 .cancel = feed->cancel,
                                 .slot = slot,
                                 .publication = "walberg \"stream\", odd"},
                   &feed->stream, &err));
}

static void
feed_done(Feed *feed)
{
    stream_close(feed->stream);
    pg_close(feed->conn);
    arena_free(feed->arena);
    cancel_free(feed->cancel);
}

/* The next message; keepalives are passed over. */
static Message
next_message(Feed *feed)
{
    int64_t deadline = clock_ms() + 10000;

    while (clock_ms() < deadline) {
        StreamEvent event;
        Error err = {0};

        OK(stream_next(feed->stream, 1000, &event, &err));
        if (event.kind == STREAM_MESSAGE)
            return event.message;
        assert_int_not_equal(event.kind, STREAM_END);
    }
    print_error("no message within 10 s\n");
    fail();
    return (Message){0};
}

/* Messages up to the next commit as letters: "BRIUDC"; Relation and Type as they come. */
static Position
read_transaction(Feed *feed, char *out_kinds, size_t size)
{
    for (size_t n = 0;; n++) {
        Message message = next_message(feed);

        if (n + 1 < size) {
            out_kinds[n] = message.kind;
            out_kinds[n + 1] = '\0';
        }
        if (message.kind == 'C')
            return message.commit.end_lsn;
    }
}

static Position
confirmed(Feed *feed, const char *slot)
{
    return position_of(ask(feed->conn, feed->arena,
                           arena_printf(feed->arena,
                                        "SELECT confirmed_flush_lsn FROM pg_replication_slots"
                                        " WHERE slot_name = '%s'",
                                        slot)));
}

static void
make_slot(const char *name)
{
    SlotSnapshot snapshot = {0};

    pg_close(new_slot(name, false, &snapshot));
}

static void
prepare_stream(PgConn *conn)
{
    run_sql(conn, "CREATE SCHEMA st; CREATE TABLE st.t (id int PRIMARY KEY, v text);"
                  "CREATE TABLE st.other (id int PRIMARY KEY);"
                  "CREATE PUBLICATION \"walberg \"\"stream\"\", odd\" FOR TABLE st.t");
    make_slot("walberg_stream");
}

/* A walsender whose client is gone may need a moment to let go of the slot. */
static void
drop_slot_soon(PgConn *conn, const char *name)
{
    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};

    for (int i = 0; i < 200; i++) {
        if (source_slot_drop(conn, arena, name, &err))
            return;
        usleep(50000);
    }
    print_error("%s\n", err.msg);
    fail();
}

static void
clean_stream(PgConn *conn)
{
    drop_slot_soon(conn, "walberg_stream");
    run_sql(conn, "DROP PUBLICATION \"walberg \"\"stream\"\", odd\"; DROP SCHEMA st CASCADE");
}

static void
messages_arrive_and_positions_go_back(void **state)
{
    (void) state;

    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    char kinds[64];
    Feed feed;
    Error err = {0};

    prepare_stream(conn);
    feed_start(&feed, "walberg_stream", "");
    run_sql(conn, "BEGIN; INSERT INTO st.t VALUES (1, 'one'), (2, NULL); UPDATE st.t SET v = 'zwei'"
                  " WHERE id = 2; DELETE FROM st.t WHERE id = 1; INSERT INTO st.other VALUES (1);"
                  "COMMIT");
    assert_int_equal(next_message(&feed).kind, 'B');

    Message relation = next_message(&feed);

    assert_int_equal(relation.kind, 'R');
    assert_true(str_eqc(relation.relation.schema_name, "st"));
    assert_int_equal(relation.relation.column_count, 2);

    Change insert = next_message(&feed).change;

    assert_int_equal(insert.op, OP_INSERT);
    assert_true(str_eqc(insert.after.datums[1].text, "one"));
    assert_int_equal(next_message(&feed).change.after.datums[1].kind, DATUM_NULL);

    Position first = read_transaction(&feed, kinds, sizeof kinds);

    assert_string_equal(kinds, "UDC");
    assert_true(stream_received(feed.stream) >= first);
    assert_true(confirmed(&feed, "walberg_stream") < first);
    stream_set_flushed(feed.stream, first);
    stream_set_flushed(feed.stream, first - 1); /* never back */
    assert_true(stream_flushed(feed.stream) == first);
    OK(stream_service(feed.stream, 500, &err)); /* sent without being asked */
    for (int i = 0; i < 40 && confirmed(&feed, "walberg_stream") != first; i++)
        usleep(50000);
    assert_true(confirmed(&feed, "walberg_stream") == first);

    run_sql(conn, "INSERT INTO st.t VALUES (3, 'three'); TRUNCATE st.t");

    Position second = read_transaction(&feed, kinds, sizeof kinds);

    assert_non_null(strchr(kinds, 'T'));
    stream_set_flushed(feed.stream, second);
    cancel_set(feed.cancel); /* one leaves because of the token */
    OK(stream_finish(feed.stream, &err));
    assert_true(confirmed(&feed, "walberg_stream") == second); /* when it returns, not later */
    feed_done(&feed);

    /* After a restart nothing of it comes again. */
    feed_start(&feed, "walberg_stream", "");
    run_sql(conn, "INSERT INTO st.t VALUES (4, 'four')");
    assert_true(read_transaction(&feed, kinds, sizeof kinds) > second);
    assert_string_equal(kinds, "BRIC");
    OK(stream_finish(feed.stream, &err));
    feed_done(&feed);
    clean_stream(conn);
}

/* WAL of tables that nobody publishes must not be held. */
static void
an_idle_stream_confirms_foreign_wal(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    StreamEvent event = {0};
    Position target;
    Position safe = 0;
    Feed feed;
    Error err = {0};

    prepare_stream(conn);
    feed_start(&feed, "walberg_stream", "");
    run_sql(conn, "INSERT INTO st.other SELECT generate_series(1, 1000)");
    target = position_of(ask(conn, arena, "SELECT pg_current_wal_lsn()"));

    int64_t deadline = clock_ms() + 10000;

    while (confirmed(&feed, "walberg_stream") < target) {
        assert_true(clock_ms() < deadline);
        OK(stream_next(feed.stream, 100, &event, &err));
        if (event.kind == STREAM_KEEPALIVE)
            safe = event.server;
        if (safe > 0)
            stream_set_flushed(feed.stream, safe); /* nothing is pending */
    }
    assert_true(stream_received(feed.stream) >= target);
    feed_done(&feed);
    clean_stream(conn);
}

static void
streams_that_cannot_start_say_why(void **state)
{
    (void) state;

    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    StreamOpen open = {.conninfo = pg.conninfo, .publication = "walberg_absent"};
    StreamEvent event = {0};
    Stream *other = NULL;
    Feed feed;
    Error err = {0};

    prepare_stream(conn);
    feed_start(&feed, "walberg_stream", "");
    open.cancel = feed.cancel;
    open.slot = "walberg_stream";
    FAILS(stream_open(&open, &other, &err), ERR_TRANSIENT);
    assert_non_null(strstr(err.msg, "read slot walberg_stream: "));
    assert_non_null(strstr(err.msg, "active for PID"));
    open.slot = "walberg_no_such_slot";
    FAILS(stream_open(&open, &other, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "\nhint: "));

    /* The server goes away */
    run_sql(conn, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
                  " WHERE slot_name = 'walberg_stream'");
    for (int i = 0; i < 50; i++) {
        if (!stream_next(feed.stream, 100, &event, &err))
            break;
    }
    assert_int_equal(err.kind, ERR_TRANSIENT);
    drop_slot_soon(conn, "walberg_stream");
    make_slot("walberg_stream");

    /* Postgres looks for the publication when there is a change; 18 only warns. */
    open.slot = "walberg_stream";
    OK(stream_open(&open, &other, &err));
    run_sql(conn, "INSERT INTO st.t VALUES (1)");
    if (pg_server_version(conn) < 180000) {
        err = (Error){0};
        for (int i = 0; i < 100 && err.kind == ERR_NONE; i++)
            if (!stream_next(other, 100, &event, &err))
                break;
        assert_int_equal(err.kind, ERR_INPUT);
        assert_non_null(strstr(err.msg, "walberg_absent"));
    }
    stream_close(other);
    feed_done(&feed);
    clean_stream(conn);
}

/* The server gives up on a silent reader after 5 s here. Two streams stand still for 8 s before a
 * transaction that fits into no socket buffer: one reports meanwhile, the other does not. */
static void
a_stalled_reader_is_kept_when_it_reports(void **state)
{
    (void) state;

    static const char impatient[] = "options='-c wal_sender_timeout=5s'";
    AUTO_PG PgConn *conn = connect_with(&pg, "", false);
    StreamEvent event = {0};
    size_t inserts = 0;
    Feed attended;
    Feed neglected;
    Error err = {0};

    prepare_stream(conn);
    make_slot("walberg_neglected");
    feed_start(&attended, "walberg_stream", impatient);
    feed_start(&neglected, "walberg_neglected", impatient);
    run_sql(conn, "INSERT INTO st.t SELECT i, repeat('y', 400) FROM generate_series(1, 50000) i");
    assert_int_equal(next_message(&attended).kind, 'B');
    assert_int_equal(next_message(&neglected).kind, 'B');

    int64_t start = clock_ms();

    OK(stream_service(attended.stream, STALL_MS / 2, &err));
    while (clock_ms() - start < STALL_MS) { /* as one that polls a queue for room */
        usleep(20000);
        OK(stream_service(attended.stream, 0, &err));
    }
    for (Message message = {0}; message.kind != 'C'; message = next_message(&attended))
        inserts += message.kind != 0 && message.kind != 'R';
    assert_int_equal(inserts, 50000);
    while (stream_next(neglected.stream, 1000, &event, &err)) {
        assert_int_not_equal(event.kind, STREAM_IDLE);
        assert_false(event.kind == STREAM_MESSAGE && event.message.kind == 'C');
    }
    assert_int_equal(err.kind, ERR_TRANSIENT);
    feed_done(&attended);
    feed_done(&neglected);
    drop_slot_soon(conn, "walberg_neglected");
    clean_stream(conn);
}

/* Each a server of its own, because it is shut down or loses WAL. */
static void
a_lost_slot_is_refused(void **state)
{
    (void) state;

    ThrowawayPg own;
    AUTO_ARENA Arena *arena = arena_new();
    SlotExpect expect = {.name = "walberg_lost", .database = "postgres"};
    SlotSnapshot snapshot = {0};
    Slot slot = {0};
    Stream *stream = NULL;
    Cancel *cancel = cancel_new();
    Error err = {0};

    if (throwaway_pg_start(&own, "max_slot_wal_keep_size = 16MB\n"
                                 "min_wal_size = 32MB\nmax_wal_size = 32MB") != 0)
        skip();

    PgConn *walsender = connect_with(&own, "", true);
    PgConn *conn = connect_with(&own, "", false);

    OK(source_slot_create(walsender, arena, &(SlotCreate){.name = "walberg_lost"}, &snapshot,
                          &err));
    pg_close(walsender);
    for (int i = 0; i < 20; i++) {
        run_sql(conn, "SELECT pg_logical_emit_message(false, '', ''); SELECT pg_switch_wal()");
        OK(source_slot_load(conn, arena, "walberg_lost", &slot, &err));
        if (i == 0)
            assert_true(slot.safe_bytes >= 0);
    }
    run_sql(conn, "CHECKPOINT");
    OK(source_slot_load(conn, arena, "walberg_lost", &slot, &err));
    assert_string_equal(slot.wal_status, "lost");
    FAILS(source_slot_check(&slot, &expect, &err), ERR_INPUT);
    FAILS(stream_open(&(StreamOpen){.conninfo = own.conninfo,
                                    .cancel = cancel,
                                    .slot = "walberg_lost",
                                    .publication = "p"},
                      &stream, &err),
          ERR_INPUT);
    assert_non_null(strstr(err.msg, "walberg cleanup --all"));
    pg_close(conn);
    cancel_free(cancel);
    throwaway_pg_stop(&own);
}

/* A server that shuts down waits for readers to confirm what it has sent. */
static void
a_reader_does_not_hold_up_a_shutdown(void **state)
{
    (void) state;

    ThrowawayPg own;
    AUTO_ARENA Arena *arena = arena_new();
    SlotSnapshot snapshot = {0};
    StreamEvent event = {0};
    Stream *stream = NULL;
    Cancel *cancel = cancel_new();
    Error err = {0};
    int status = -1;

    if (throwaway_pg_start(&own, "# default") != 0)
        skip();

    PgConn *conn = connect_with(&own, "", true);

    OK(source_slot_create(conn, arena, &(SlotCreate){.name = "walberg_stop"}, &snapshot, &err));
    run_sql(conn, "CREATE TABLE public.t (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE"
                  " public.t");
    OK(stream_open(
        &(StreamOpen){
            .conninfo = own.conninfo, .cancel = cancel, .slot = "walberg_stop", .publication = "p"},
        &stream, &err));
    run_sql(conn, "INSERT INTO public.t VALUES (1)");
    pg_close(conn);

    int64_t start = clock_ms();
    pid_t pid = fork();

    if (pid == 0)
        _exit(run_script("stop", own.dir, "fast"));
    while (stream_next(stream, 100, &event, &err) && event.kind != STREAM_END)
        if (event.kind == STREAM_KEEPALIVE)
            stream_set_flushed(stream, event.server);
    assert_int_equal(event.kind, STREAM_END);
    OK(stream_finish(stream, &err));
    stream_close(stream);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(clock_ms() - start < 10000);
    cancel_free(cancel);
    throwaway_pg_stop(&own);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_sees_the_snapshot_while_rows_change),
        cmocka_unit_test(partitions_and_parents_are_copied_once),
        cmocka_unit_test(copy_refuses_what_would_lose_rows),
        cmocka_unit_test(messages_arrive_and_positions_go_back),
        cmocka_unit_test(an_idle_stream_confirms_foreign_wal),
        cmocka_unit_test(streams_that_cannot_start_say_why),
        cmocka_unit_test(a_stalled_reader_is_kept_when_it_reports),
        cmocka_unit_test(a_lost_slot_is_refused),
        cmocka_unit_test(a_reader_does_not_hold_up_a_shutdown),
    };

    if (throwaway_pg_missing())
        return 0;
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
