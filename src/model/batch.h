/* batch.h - the changes of one table under one TableSchema, as typed columns, folded by key.
 *
 * Rows are appended in stream order. Folding does not move rows: a row that a later change replaced
 * or deleted is only marked dead, and what has to happen to rows that are already in the lake is
 * kept beside the columns:
 *
 *     columns    rows 0..n-1, dead ones included
 *     dead       one byte a row
 *     keys       one Hash128 a row (none under KEY_NONE)
 *     deletes    Hash128 of lake rows to delete, in stream order; under KEY_COLUMNS each once,
 *                under KEY_FULL_ROW one entry per deleted twin
 *     patches    values not sent (unchanged TOAST) that must be read from the lake row with key
 *                `source` before anything of this batch is deleted there
 *     truncated  all rows of the table from before this batch go, in the lake and in earlier
 *                batches of the epoch; then deletes and patches only concern nothing older
 *
 * So a sink does, in this order: resolve patches; truncate; delete `deletes`; add live rows. */
#ifndef MODEL_BATCH_H
#define MODEL_BATCH_H

#include "model/column.h"
#include "model/position.h"
#include "model/schema.h"

typedef struct Patch {
    size_t row;
    int column; /* index into schema->columns */
    Hash128 source;
} Patch;

/* A value that its column cannot hold: NULL in its row, recorded here. Bytes in reject_bytes. */
typedef struct Reject {
    Position position; /* start of its transaction's commit record; copy: the copy's position */
    int64_t commit_time_us; /* since 1970 */
    int column;
    Span key;   /* JSON object of the key columns, or empty */
    Span value; /* the text as Postgres sent it; bytes that are not UTF-8 escaped as \xHH */
    Span reason;
} Reject;

typedef struct Batch Batch;

struct Batch {
    const TableSchema *schema; /* holds a reference */
    Column *columns;           /* schema->column_count */
    size_t rows;
    size_t live_rows;
    bool truncated;
    Buf dead;    /* uint8_t */
    Buf keys;    /* Hash128 */
    Buf deletes; /* Hash128 */
    Buf patches; /* Patch; those of dead rows are removed by batch_seal() */
    Buf rejects; /* Reject */
    Buf reject_bytes;
    struct Fold *fold; /* private to batch/fold.c: key -> last row */
};

#endif
