#include "source/copy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/fault.h"
#include "decode/copy_text.h"
#include "source/types.h"

/* Rows between two looks at the batch's memory, and two steps of the progress counter. */
enum { LOOK_ROWS = 1024 };

/* --- the plan -------------------------------------------------------------------------------- */

int
copy_range_count(int64_t pages, int64_t range_pages)
{
    assert(range_pages > 0);
    return pages <= range_pages ? 1 : (int) ((pages + range_pages - 1) / range_pages);
}

void
copy_range(int64_t pages, int count, int i, int64_t *out_first, int64_t *out_end)
{
    assert(i >= 0 && i < count);
    *out_first = pages * i / count;
    *out_end = i == count - 1 ? -1 : pages * (i + 1) / count;
}

static int
by_page(const void *a, const void *b)
{
    const CopyRange *x = a;
    const CopyRange *y = b;

    if (x->relid != y->relid)
        return x->relid < y->relid ? -1 : 1;
    return x->first_page < y->first_page ? -1 : x->first_page > y->first_page;
}

int
copy_ranges_join(CopyRange *ranges, int count)
{
    int kept = 0;

    if (count > 1)
        qsort(ranges, (size_t) count, sizeof *ranges, by_page);
    for (int i = 0; i < count; i++) {
        CopyRange *last = kept == 0 ? NULL : &ranges[kept - 1];

        if (last != NULL && last->relid == ranges[i].relid &&
            last->end_page == ranges[i].first_page)
            last->end_page = ranges[i].end_page;
        else
            ranges[kept++] = ranges[i];
    }
    return kept;
}

enum { SIZE_REL, SIZE_PAGES, SIZE_PAGE_BYTES, SIZE_HEAP };

/* Only the heap is known to scan ranges of ctid. */
static const char sizes_sql[] =
    "SELECT c.oid, pg_relation_size(c.oid) / current_setting('block_size')::bigint,"
    " current_setting('block_size'), coalesce(a.amname = 'heap', false)"
    " FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam"
    " WHERE c.oid = ANY ($1::oid[]) ORDER BY c.oid";

/* Row of a relation, or -1: dropped since the tables were read. */
static int
size_row(const PgResult *sizes, uint32_t relid)
{
    int low = 0;
    int high = sizes->rows - 1;

    while (low <= high) {
        int middle = low + (high - low) / 2;
        uint32_t oid = (uint32_t) pg_value_int(sizes, middle, SIZE_REL);

        if (oid == relid)
            return middle;
        if (oid < relid)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

typedef struct Planner {
    const CopyWant *want;
    const PgResult *sizes;
    bool ranges;
    int64_t bytes;
    Buf tasks; /* CopyTask */
} Planner;

/* Pages [first, end) of a relation of `pages`; end -1: to the end. */
static void
plan_pages(Planner *planner, CopyTask task, int64_t pages, int64_t range_pages)
{
    int64_t first = task.first_page;
    int64_t end = task.end_page;
    int64_t size = end >= 0 ? end - first : pages > first ? pages - first : 0;
    int count = range_pages == 0 ? 1 : copy_range_count(size, range_pages);

    for (int i = 0; i < count; i++) {
        copy_range(size, count, i, &task.first_page, &task.end_page);
        task.first_page += first;
        task.end_page = task.end_page < 0 ? end : task.end_page + first;
        BUF_PUSH(&planner->tasks, CopyTask, task);
    }
}

static void
plan_relation(Planner *planner, CopyTask task)
{
    const CopyWant *want = planner->want;
    const PgResult *sizes = planner->sizes;
    int row = size_row(sizes, task.relid);
    int64_t pages = row < 0 ? 0 : pg_value_int(sizes, row, SIZE_PAGES);
    int64_t page_bytes = row < 0 ? 8192 : pg_value_int(sizes, row, SIZE_PAGE_BYTES);
    int64_t range_pages = 0; /* all in one */

    planner->bytes += pages * page_bytes;
    if (planner->ranges && row >= 0 && pg_value_bool(sizes, row, SIZE_HEAP))
        range_pages = want->range_bytes < page_bytes ? 1 : want->range_bytes / page_bytes;
    task.first_page = 0;
    for (int i = 0; i < want->done_count; i++) {
        const CopyRange *done = &want->done[i];

        if (done->relid != task.relid)
            continue;
        task.end_page = done->first_page;
        if (task.end_page > task.first_page)
            plan_pages(planner, task, pages, range_pages);
        if (done->end_page < 0)
            return;
        task.first_page = done->end_page;
    }
    task.end_page = -1;
    plan_pages(planner, task, pages, range_pages);
}

static void
plan_table(Planner *planner, const SourceTable *table)
{
    if (table->kind != 'p') {
        plan_relation(planner, (CopyTask){.table = table,
                                          .relid = table->relid,
                                          .schema_name = table->schema_name,
                                          .table_name = table->table_name});
        return;
    }
    for (int i = 0; i < table->leaf_count; i++)
        if (table->leaves[i].kind == 'r')
            plan_relation(planner, (CopyTask){.table = table,
                                              .relid = table->leaves[i].relid,
                                              .schema_name = table->leaves[i].schema_name,
                                              .table_name = table->leaves[i].table_name});
}

bool
source_copy_plan(PgConn *conn, Arena *arena, const CopyWant *want, CopyPlan *out_plan, Error *err)
{
    AUTO_BUF Buf oids = {0};
    PgResult sizes;

    for (int i = 0; i < want->count; i++) {
        const SourceTable *table = want->tables[i];

        assert(table->schema != NULL);
        BUF_PUSH(&oids, uint32_t, table->relid);
        for (int leaf = 0; leaf < table->leaf_count; leaf++)
            BUF_PUSH(&oids, uint32_t, table->leaves[leaf].relid);
    }

    const char *params[] = {source_oid_array(arena, (const uint32_t *) (void *) oids.ptr,
                                             (int) BUF_COUNT(&oids, uint32_t))};

    if (!pg_ask(conn, arena, sizes_sql, 1, params, &sizes, err))
        return WRAP(err, "read sizes of tables");

    Planner planner = {.want = want, .sizes = &sizes, .ranges = pg_server_version(conn) >= 140000};

    for (int i = 0; i < want->count; i++)
        plan_table(&planner, want->tables[i]);
    *out_plan =
        (CopyPlan){.count = (int) BUF_COUNT(&planner.tasks, CopyTask), .bytes = planner.bytes};
    out_plan->tasks = ARENA_ARRAY(arena, CopyTask, (size_t) out_plan->count);
    if (planner.tasks.ptr != NULL)
        memcpy(out_plan->tasks, planner.tasks.ptr, planner.tasks.len);
    buf_done(&planner.tasks);
    return true;
}

const char *
copy_task_sql(Arena *arena, const CopyTask *task)
{
    AUTO_BUF Buf columns = {0};
    AUTO_BUF Buf where = {0};
    const TableSchema *schema = task->table->schema;
    const char *relation = source_relation_sql(arena, task->schema_name, task->table_name);

    for (int i = 0; i < schema->column_count; i++)
        buf_printf(&columns, "%s%s", i > 0 ? ", " : "",
                   pg_quote_identifier(arena, schema->columns[i].field.name));
    if (task->first_page > 0)
        buf_printf(&where, " AND ctid >= '(%" PRId64 ",0)'::tid", task->first_page);
    if (task->end_page >= 0)
        buf_printf(&where, " AND ctid < '(%" PRId64 ",0)'::tid", task->end_page);
    if (task->table->row_filter != NULL)
        buf_printf(&where, " AND (%s)", task->table->row_filter);
    /* COPY of a table itself reads no children, and spares the executor. */
    if (where.len == 0 && !task->table->computed)
        return arena_printf(arena, "COPY %s (%s) TO STDOUT", relation, buf_text(&columns));
    return arena_printf(arena, "COPY (SELECT %s FROM ONLY %s%s%s) TO STDOUT", buf_text(&columns),
                        relation, where.len == 0 ? "" : " WHERE",
                        where.len == 0 ? "" : buf_text(&where) + strlen(" AND"));
}

/* --- running --------------------------------------------------------------------------------- */

bool
source_copy_begin(PgConn *conn, const char *snapshot, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *sql = arena_printf(
        arena, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT %s",
        pg_quote_literal(arena, str_of(snapshot)));

    if (pg_exec(conn, arena, sql, NULL, err))
        return true;
    WRAP(err, "open snapshot %s", snapshot);
    if (err->kind == ERR_INPUT)
        err->kind = ERR_CONFLICT; /* it went with its connection: a new one is needed */

    Error ignored;

    (void) !pg_exec(conn, arena, "ROLLBACK", NULL, &ignored);
    return false;
}

bool
source_copy_end(PgConn *conn, Error *err)
{
    return pg_exec(conn, NULL, "COMMIT", NULL, err);
}

/* A rewrite that committed after the snapshot was taken leaves a relation that the snapshot sees as
 * empty (Postgres documentation, "Caveats" of MVCC). The catalog read with SQL is as of the
 * snapshot, the function tells today's file: they must agree, and the lock keeps it so. Names are
 * today's, too (regclass): another table may have taken this one's meanwhile. */
bool
copy_task_check(PgConn *conn, Arena *arena, const CopyTask *task, Error *err)
{
    PgResult r;
    const char *name = source_relation_sql(arena, task->schema_name, task->table_name);
    const char *sql =
        arena_printf(arena,
                     "LOCK TABLE ONLY %s IN ACCESS SHARE MODE;"
                     " SELECT relfilenode = pg_relation_filenode(oid) AND oid = %s::regclass"
                     " FROM pg_class WHERE oid = %u",
                     name, pg_quote_literal(arena, str_of(name)), task->relid);

    TRY(pg_exec(conn, arena, sql, &r, err));
    if (r.rows != 1 || !pg_value_bool(&r, 0, 0))
        return FAIL(err, ERR_CONFLICT,
                    "the table was rewritten or made anew since the snapshot was taken");
    return true;
}

/* It was renamed, moved or dropped, or lost a column, since the catalog was read, or is altered at
 * this moment: that has to be read again. SQLSTATE undefined_table, undefined_column,
 * invalid_schema_name, undefined_object ("type with OID 0"); internal errors have no state of their
 * own, and their text is never translated. */
static bool
is_out_of_date(PgConn *conn, const Error *err)
{
    const char *state = pg_sqlstate(conn);

    if (strcmp(state, "XX000") == 0)
        return strstr(err->msg, "cache lookup failed for ") != NULL ||
               strstr(err->msg, "could not open relation with OID ") != NULL;
    return strcmp(state, "42P01") == 0 || strcmp(state, "42703") == 0 ||
           strcmp(state, "3F000") == 0 || strcmp(state, "42704") == 0;
}

struct CopyReader {
    Arena *arena;
    PgConn *conn;
    const CopyTask *task;
    CopyRun run;
    TupleMap map;
    Datum *datums;
    int64_t total;
};

bool
copy_reader_open(PgConn *conn, const CopyTask *task, const CopyRun *run, CopyReader **out_reader,
                 Error *err)
{
    Arena *arena = arena_new();
    CopyReader *reader = ARENA_NEW(arena, CopyReader);
    int columns = task->table->schema->column_count;
    int *column_map = ARENA_ARRAY(arena, int, (size_t) columns);

    for (int i = 0; i < columns; i++)
        column_map[i] = i;
    *reader = (CopyReader){.arena = arena,
                           .conn = conn,
                           .task = task,
                           .run = *run,
                           .map = {.count = columns, .column_map = column_map},
                           .datums = ARENA_ARRAY(arena, Datum, (size_t) columns)};
    if (!FAULT("source.copy.task", err) || !copy_task_check(conn, arena, task, err) ||
        !pg_copy_start(conn, copy_task_sql(arena, task), err)) {
        arena_free(arena);
        if (err->kind == ERR_INPUT && is_out_of_date(conn, err))
            err->kind = ERR_CONFLICT;
        return WRAP(err, "copy %s", task->table->qualified);
    }
    *out_reader = reader;
    return true;
}

int64_t
copy_reader_rows(const CopyReader *reader)
{
    return reader->total;
}

void
copy_reader_close(CopyReader *reader)
{
    if (reader == NULL)
        return;
    if (reader->run.progress != NULL)
        atomic_fetch_add(reader->run.progress, reader->total % LOOK_ROWS);
    arena_free(reader->arena);
}

static bool
add_row(CopyReader *reader, Batch *batch, char *row, size_t size, Error *err)
{
    TRY(copy_text_split(row, size, reader->datums, reader->map.count, err));
    TRY(batch_append_row(batch, &reader->map, reader->datums, &reader->run.origin, err));
    reader->total++;
    if (reader->run.progress != NULL && reader->total % LOOK_ROWS == 0)
        atomic_fetch_add(reader->run.progress, LOOK_ROWS);
    return true;
}

static bool
fill(CopyReader *reader, Batch *batch, bool *out_end, Error *err)
{
    size_t bytes = 0;

    *out_end = false;
    for (;;) {
        char *row;
        size_t size;
        bool full =
            batch->rows >= reader->run.batch_rows || bytes >= reader->run.batch_bytes ||
            (batch->rows % LOOK_ROWS == 0 && batch_memory(batch) >= reader->run.batch_bytes);

        if (full && batch->rows > 0) {
            pg_row_done(reader->conn); /* it may be large, and what follows takes its time */
            return true;
        }
        TRY(pg_copy_row(reader->conn, &row, &size, out_end, err));
        if (*out_end)
            return true;
        TRY(add_row(reader, batch, row, size, err));
        bytes += size;
    }
}

bool
copy_reader_fill(CopyReader *reader, Batch *batch, bool *out_end, Error *err)
{
    if (!fill(reader, batch, out_end, err))
        return WRAP(err, "copy %s", reader->task->table->qualified);
    batch_seal(batch);
    return true;
}
