/* state.h - what a Batch keeps to itself while it is filled. Private to batch/. */
#ifndef BATCH_STATE_H
#define BATCH_STATE_H

#include "batch/fold.h"
#include "batch/key_map.h"

struct Fold {
    bool folded;
    bool inserts_replace;
    bool sealed;
    size_t value_bytes_max;
    bool *in_key;  /* per column of the schema: part of the key under KEY_COLUMNS */
    Column *old;   /* one row: an old tuple, laid out like schema->columns */
    KeyMap map;    /* key -> last row */
    Buf twins;     /* KEY_FULL_ROW: uint32_t, per row the live row before it with the same hash */
    Buf unsent;    /* int: columns of the last appended row whose values were not sent */
    Buf scratch;   /* key encodings */
    int *variable; /* columns whose rows differ in size: strings and nested ones */
    int variable_count;
    size_t row_bytes; /* of everything else in a row */
};

/* A row on its way into the batch. */
typedef struct RowEvent {
    const TupleMap *map;
    const Tuple *tuple;
    const Tuple *old; /* where values that were not sent may be, or NULL */
    const ChangeOrigin *origin;
} RowEvent;

/* How long the lists were before a row, to take the row back. */
typedef struct RowMark {
    size_t rows;
    size_t rejects;
    size_t reject_bytes;
} RowMark;

RowMark rows_mark(const Batch *batch);
void rows_take_back(Batch *batch, RowMark mark);

/* Append the row. Values that were neither sent nor are in the old tuple are NULL and in
 * fold->unsent. Its key is the last of batch->keys. On failure nothing was appended but the rejects
 * of a row whose key cannot be held (ERR_INPUT). */
bool rows_append(Batch *batch, const RowEvent *event, Error *err) WARN_UNUSED;

/* Key hash of an old tuple. ERR_INPUT: a key column cannot hold its value. */
bool rows_old_key(Batch *batch, const TupleMap *map, const Tuple *old, Hash128 *out_key,
                  Error *err) WARN_UNUSED;

static inline void
rows_kill(Batch *batch, size_t row)
{
    uint8_t *dead = &BUF_AT(&batch->dead, uint8_t, row);

    batch->live_rows -= *dead == 0 ? 1 : 0;
    *dead = 1;
}

#endif
