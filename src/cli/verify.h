/* verify.h - what the files of `walberg verify` share.
 *
 *   verify.c         the command: the rounds, what is printed, the exit code
 *   verify_tables.c  which tables, and why one cannot be compared
 *   verify_source.c  snapshots of the source and the rows they see
 *   verify_lake.c    how far the lake is, and the rows it has
 *   verify_rejects.c the records of rejected values
 *   verify_rows.c    rows into sums and notes, and what these prove
 *   verify_text.c    the key of a row, for people
 */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include "batch/fold.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "pipeline/state.h"
#include "query/table_plan.h"
#include "source/server.h"
#include "source/tables.h"

typedef enum Side { SIDE_SOURCE, SIDE_LAKE } Side;

enum { SIDE_COUNT = SIDE_LAKE + 1 };

/* What all rows of one side whose keys fall into the same bucket add up to. */
typedef struct Bucket {
    uint64_t rows;
    uint64_t low; /* sum of the row hashes, modulo 2^128 */
    uint64_t high;
} Bucket;

/* One row, as far as it has to be remembered. */
typedef struct RowNote {
    Hash128 key; /* of the key columns; of all columns when the table has no key */
    Hash128 row;
    uint64_t version; /* source: where the row version is and who wrote it; lake: file and row */
    Span text;        /* of Notes.texts: the key, as JSON */
} RowNote;

typedef struct Notes {
    Buf rows; /* RowNote, sorted once the scan is over */
    Buf texts;
} Notes;

typedef struct Difference {
    bool in_source;
    bool in_lake;
    const char *key; /* JSON object */
} Difference;

typedef struct VerifyTable {
    const char *name;          /* "public.orders" */
    const SourceTable *source; /* NULL: not in the source */
    TableName lake;
    const char *reason; /* why it is not compared; NULL: it is */

    /* the state of the lake's table that is being read; lives in Verify.round_arena */
    TableSchema *fit;            /* the source's schema with the lake's field ids; a reference */
    Field *fields;               /* one for each column of the source, in its order */
    const char *const *defaults; /* of those, as ParquetScan wants them */
    TablePlan plan;
    PlanCache cache;

    int64_t rows[SIDE_COUNT];
    int64_t rejected;    /* values of the source that no column of the lake can hold */
    int32_t *unrecorded; /* see verify_rejects.c; NULL: none were rejected */
    int64_t without_record;
    Bucket *buckets[SIDE_COUNT];
    uint8_t *unequal;    /* one bit a bucket */
    size_t unequal_from; /* buckets before it have been looked into */
    unsigned bucket_bits;

    /* while rows are looked at one by one */
    bool open;
    bool narrowed; /* only `pending` are wanted */
    bool have_before;
    bool at_least;   /* different: not all buckets were looked into */
    uint8_t *wanted; /* one bit a bucket */
    Buf pending;     /* Hash128, sorted: keys that are neither equal nor proven different */
    Notes before[SIDE_COUNT];
    Notes now[SIDE_COUNT];

    uint64_t different;
    uint64_t undecided;
    Buf shown; /* Difference, at most Verify.limit */
} VerifyTable;

/* A table that has no part in the stream now. In the arena of the state. */
typedef struct StandingTable {
    const char *name;
    const char *reason;
    bool parked; /* else it is copied, or waits for that */
} StandingTable;

typedef struct Verify {
    const Cli *cli;
    Config *config;
    Arena *arena;
    Progress progress;
    int64_t limit;
    int64_t timeout_ms;

    PgConn *conn;
    ServerInfo server;
    SourceTables source;

    Store *store;
    Catalog *catalog;
    Duck *duck;
    FileCache files;
    Arena *state_arena; /* of state */
    PipelineState state;
    Position streamed; /* as the running pipeline says: what all tables that stream have */
    Buf standing;      /* StandingTable: those that do not */
    bool copying;

    size_t table_count;
    VerifyTable *tables;

    Arena *round_arena;
    Position position;   /* of the first round: everything compared is at least as of it */
    Position snapshot;   /* of this round */
    bool stopped;        /* nobody streams, and the lake is behind the snapshot */
    const char *running; /* oid array of transactions that may be in the lake and in no snapshot */
    bool clear;          /* the snapshot sees all that the lake of the round before held */
} Verify;

/* verify_tables.c */

/* The tables of the source and of the lake, those that were named or all. ERR_INPUT: no such. */
bool verify_choose_tables(Verify *verify, Error *err) WARN_UNUSED;

/* verify_source.c */

/* Begin a transaction; *out_position: every transaction that it sees ends at or before. */
bool verify_snapshot_begin(Verify *verify, Error *err) WARN_UNUSED;
bool verify_snapshot_end(Verify *verify, Error *err) WARN_UNUSED;
/* Transactions that may have their commit record written although no snapshot shows them yet. */
bool verify_note_running(Verify *verify, Error *err) WARN_UNUSED;
/* Wait a while for those to be over; verify->clear says whether they are. */
bool verify_await_running(Verify *verify, Error *err) WARN_UNUSED;
/* How many changes wait in the slot that the lake at `from` does not have. ERR_INPUT: the role may
 * not ask, or there is no such slot. */
bool verify_waiting_changes(Verify *verify, Position from, int64_t *out_changes,
                            Error *err) WARN_UNUSED;
bool verify_slot_is_read(Verify *verify, bool *out_read, Error *err) WARN_UNUSED;
/* All rows that the snapshot sees. A failure of this table alone is its `reason`. */
bool verify_scan_source(Verify *verify, VerifyTable *table, bool notes, Error *err) WARN_UNUSED;

/* verify_lake.c */

/* The state object. ERR_INPUT: there is none. */
bool verify_load_state(Verify *verify, Error *err) WARN_UNUSED;
/* Until the lake has all that the snapshot sees. ERR_TRANSIENT: not in time, or nobody streams;
 * with `lenient` a pipeline that is stopped is no error: verify->stopped is set. */
bool verify_await_lake(Verify *verify, bool lenient, Error *err) WARN_UNUSED;
/* Then tables that stand still are behind, and those that this round would compare (of sums: all
 * that have no `reason` yet) get that as their reason. */
void verify_leave_standing(Verify *verify, bool sums);
/* Fix the state of the table that verify_scan_lake() reads. */
bool verify_plan_lake(Verify *verify, VerifyTable *table, Error *err) WARN_UNUSED;
void verify_drop_plan(VerifyTable *table);
bool verify_scan_lake(Verify *verify, VerifyTable *table, bool notes, Error *err) WARN_UNUSED;

/* verify_rejects.c */

/* The rejected values of rows of the source. */
void verify_count_rejects(VerifyTable *table, const Batch *batch);
/* How many of them have no record, in every table, once the lake has the rows. */
bool verify_find_records(Verify *verify, Error *err) WARN_UNUSED;

/* verify_rows.c */

typedef struct RowTaker {
    Verify *verify;
    VerifyTable *table;
    Side side;
    bool notes; /* else sums */
    Buf scratch;
    int64_t rows;
} RowTaker;

/* One row of columns laid out like the source's; key: NULL = to be computed. ERR_INPUT: there are
 * too many. */
bool verify_take_row(RowTaker *taker, const Column *columns, size_t row, const Hash128 *key,
                     uint64_t version, Error *err) WARN_UNUSED;
void verify_taker_done(RowTaker *taker);

void verify_begin_sums(VerifyTable *table);
/* Buckets that differ; the sums are freed. */
void verify_end_sums(VerifyTable *table);
/* Choose the next buckets to look into; false: there are none. */
bool verify_next_buckets(VerifyTable *table);
/* The notes of this round become those of the round before. */
void verify_begin_notes(VerifyTable *table);
/* What this round and the one before prove. */
void verify_settle(Verify *verify, VerifyTable *table);
void verify_table_done(VerifyTable *table);

/* verify_text.c */

/* The key (all columns when there is none) as a JSON object; long values are cut. */
void verify_put_key(Buf *out, const TableSchema *schema, const Column *columns, size_t row);

#endif
