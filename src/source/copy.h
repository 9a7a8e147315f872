/* copy.h - the initial copy: tables into tasks, a task into Batches.
 *
 * A task is a relation that holds rows (a table, or one partition of a partitioned one) or a range
 * of its pages. Ranges let several connections read one big table, and let a copy that was
 * interrupted go on where it was. Under one snapshot every row is in exactly one range, because a
 * row version does not change its ctid; the last range of a relation is open-ended, so that it does
 * not matter how the table grew since the plan was made. */
#ifndef SOURCE_COPY_H
#define SOURCE_COPY_H

#include "batch/fold.h"
#include "source/tables.h"

#include <stdatomic.h>

/* Of the connections that copy, as pg_stat_activity shows it. */
#define COPY_APPLICATION_NAME "walberg copy"

typedef struct CopyTask {
    const SourceTable *table;
    uint32_t relid; /* the table itself, or one of its partitions */
    Str schema_name;
    Str table_name;
    int64_t first_page;
    int64_t end_page; /* exclusive; -1: to the end. {0, -1} is the whole relation */
} CopyTask;

/* Pages of a relation. */
typedef struct CopyRange {
    uint32_t relid;
    int64_t first_page;
    int64_t end_page; /* exclusive; -1: to the end */
} CopyRange;

typedef struct CopyPlan {
    int count;
    CopyTask *tasks; /* those of one table stand together */
    int64_t bytes;   /* of all relations, without TOAST */
} CopyPlan;

typedef struct CopyWant {
    const SourceTable *const *tables; /* with a schema; they must outlive the plan */
    int count;
    int64_t range_bytes;   /* about this much of a relation for one task, TOAST not counted */
    const CopyRange *done; /* no task has pages of these; sorted by copy_ranges_join() */
    int done_count;
} CopyWant;

/* Servers before 14 read a relation whole: they would scan all of it for each range. */
bool source_copy_plan(PgConn *conn, Arena *arena, const CopyWant *want, CopyPlan *out_plan,
                      Error *err) WARN_UNUSED;

/* Ranges of at most range_pages for `pages` pages: at least one, the last one open-ended. */
int copy_range_count(int64_t pages, int64_t range_pages);
/* The i-th of `count` ranges of about equal size. */
void copy_range(int64_t pages, int count, int i, int64_t *out_first, int64_t *out_end);

/* By relation and page, neighbours made one; the new number of them. They must not overlap. */
int copy_ranges_join(CopyRange *ranges, int count);

/* The COPY statement of a task: columns by name in the schema's order. */
const char *copy_task_sql(Arena *arena, const CopyTask *task);

/* A transaction that sees the exported snapshot. ERR_CONFLICT when the snapshot is gone (with the
 * connection that exported it). */
bool source_copy_begin(PgConn *conn, const char *snapshot, Error *err) WARN_UNUSED;
bool source_copy_end(PgConn *conn, Error *err) WARN_UNUSED;

/* Inside a transaction with a snapshot: take an ACCESS SHARE lock on the task's relation, and make
 * sure that the snapshot sees its rows. ERR_TRANSIENT when it was rewritten since. */
bool copy_task_check(PgConn *conn, Arena *arena, const CopyTask *task, Error *err) WARN_UNUSED;

typedef struct CopyRun {
    size_t batch_rows;  /* a batch is full when it has this many rows */
    size_t batch_bytes; /* or this much memory */
    ChangeOrigin origin;
    atomic_llong *progress; /* rows are added as they come; NULL */
} CopyRun;

/* One task being read. */
typedef struct CopyReader CopyReader;

/* Inside source_copy_begin(). The task must outlive the reader. ERR_CONFLICT when the relation was
 * rewritten since the snapshot (ALTER TABLE, VACUUM FULL, TRUNCATE): an older snapshot would see it
 * empty; or is another one by now than the task says (renamed, dropped, a column gone). */
bool copy_reader_open(PgConn *conn, const CopyTask *task, const CopyRun *run,
                      CopyReader **out_reader, Error *err) WARN_UNUSED;
/* Fill an empty batch of the table's schema and seal it. *out_end: the task has no more rows (the
 * batch may be empty then). */
bool copy_reader_fill(CopyReader *reader, Batch *batch, bool *out_end, Error *err) WARN_UNUSED;
int64_t copy_reader_rows(const CopyReader *reader); /* read so far */
void copy_reader_close(CopyReader *reader);         /* NULL is fine */

#endif
