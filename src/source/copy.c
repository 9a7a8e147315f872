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
    const PgResult *sizes;
    bool ranges;
    int64_t range_bytes;
    int64_t bytes;
    Buf tasks; /* CopyTask */
} Planner;

static void
plan_relation(Planner *planner, CopyTask task)
{
    const PgResult *sizes = planner->sizes;
    int row = size_row(sizes, task.relid);
    int64_t pages = row < 0 ? 0 : pg_value_int(sizes, row, SIZE_PAGES);
    int64_t page_bytes = row < 0 ? 8192 : pg_value_int(sizes, row, SIZE_PAGE_BYTES);
    int count = 1;

    if (planner->ranges && row >= 0 && pg_value_bool(sizes, row, SIZE_HEAP)) {
        int64_t range_pages = planner->range_bytes / page_bytes;

        count = copy_range_count(pages, range_pages < 1 ? 1 : range_pages);
    }
    for (int i = 0; i < count; i++) {
        copy_range(pages, count, i, &task.first_page, &task.end_page);
        BUF_PUSH(&planner->tasks, CopyTask, task);
    }
    planner->bytes += pages * page_bytes;
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

    if (!pg_query(conn, arena, sizes_sql, 1, params, &sizes, err))
        return WRAP(err, "read sizes of tables");

    Planner planner = {.sizes = &sizes,
                       .ranges = pg_server_version(conn) >= 140000,
                       .range_bytes = want->range_bytes};

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
    if (where.len == 0)
        return arena_printf(arena, "COPY %s (%s) TO STDOUT", relation, buf_text(&columns));
    return arena_printf(arena, "COPY (SELECT %s FROM ONLY %s WHERE%s) TO STDOUT",
                        buf_text(&columns), relation, buf_text(&where) + strlen(" AND"));
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
        err->kind = ERR_TRANSIENT; /* it went with its connection: a new one is needed */

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
 * snapshot, the function tells today's file: they must agree, and the lock keeps it so. */
static bool
check_not_rewritten(PgConn *conn, Arena *arena, const CopyTask *task, Error *err)
{
    PgResult r;
    const char *sql =
        arena_printf(arena,
                     "LOCK TABLE ONLY %s IN ACCESS SHARE MODE;"
                     " SELECT relfilenode = pg_relation_filenode(oid) FROM pg_class WHERE oid = %u",
                     source_relation_sql(arena, task->schema_name, task->table_name), task->relid);

    TRY(pg_exec(conn, arena, sql, &r, err));
    if (r.rows != 1 || !pg_value_bool(&r, 0, 0))
        return FAIL(err, ERR_TRANSIENT,
                    "the table was rewritten or made anew since the snapshot was taken");
    return true;
}

/* The batch being filled. */
typedef struct Filling {
    const CopyRun *run;
    TupleMap map;
    Datum *datums;
    Batch *batch;
    size_t rows;
    size_t bytes; /* of text */
    int64_t total;
} Filling;

static bool
give_batch(Filling *filling, Error *err)
{
    CopySink *sink = filling->run->sink;
    Batch *batch = filling->batch;

    if (batch == NULL)
        return true;
    filling->batch = NULL;
    filling->rows = 0;
    filling->bytes = 0;
    batch_seal(batch);
    return sink->give(sink, batch, err);
}

static bool
is_full(const Filling *filling)
{
    const CopyRun *run = filling->run;

    if (filling->rows >= run->batch_rows || filling->bytes >= run->batch_bytes)
        return true;
    return filling->rows % LOOK_ROWS == 0 && batch_memory(filling->batch) >= run->batch_bytes;
}

static bool
add_row(Filling *filling, char *row, size_t size, Error *err)
{
    const CopyRun *run = filling->run;

    if (filling->batch == NULL)
        TRY(run->sink->take(run->sink, &filling->batch, err));
    TRY(copy_text_split(row, size, filling->datums, filling->map.count, err));
    TRY(batch_append_row(filling->batch, &filling->map, filling->datums, &run->origin, err));
    filling->rows++;
    filling->bytes += size;
    filling->total++;
    if (run->progress != NULL && filling->total % LOOK_ROWS == 0)
        atomic_fetch_add(run->progress, LOOK_ROWS);
    return is_full(filling) ? give_batch(filling, err) : true;
}

static bool
read_rows(PgConn *conn, Filling *filling, Error *err)
{
    for (;;) {
        char *row;
        size_t size;
        bool end;

        TRY(pg_copy_row(conn, &row, &size, &end, err));
        if (end)
            return give_batch(filling, err);
        TRY(add_row(filling, row, size, err));
    }
}

bool
source_copy_task(PgConn *conn, const CopyTask *task, const CopyRun *run, int64_t *out_rows,
                 Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    int columns = task->table->schema->column_count;
    int *column_map = ARENA_ARRAY(arena, int, (size_t) columns);
    Filling filling = {.run = run,
                       .map = {.count = columns, .column_map = column_map},
                       .datums = ARENA_ARRAY(arena, Datum, (size_t) columns)};

    TRY(FAULT("source.copy.task", err));
    for (int i = 0; i < columns; i++)
        column_map[i] = i;
    if (!check_not_rewritten(conn, arena, task, err) ||
        !pg_copy_start(conn, copy_task_sql(arena, task), err) || !read_rows(conn, &filling, err))
        return WRAP(err, "copy %s", task->table->qualified);
    if (run->progress != NULL)
        atomic_fetch_add(run->progress, filling.total % LOOK_ROWS);
    *out_rows = filling.total;
    return true;
}
