/* fold.h - changes into a Batch. The rules of folding are stated at batch_apply(). */
#ifndef BATCH_FOLD_H
#define BATCH_FOLD_H

#include "base/error.h"
#include "model/batch.h"
#include "model/change.h"

/* Where a row comes from: for reject records. */
typedef struct ChangeOrigin {
    Position position;
    int64_t commit_time_us;
} ChangeOrigin;

/* column_map[i] = index into schema->columns of the i-th datum of a tuple, or -1: not in the lake.
 * Columns of the schema that no datum maps to read NULL. */
typedef struct TupleMap {
    int count;
    const int *column_map;
} TupleMap;

/* folded: keep a map from key to last row (the stream); false: append only (the initial copy). */
Batch *batch_new(const TableSchema *schema, bool folded);
void batch_free(Batch *batch); /* NULL is fine */
/* Forget rows and fold, keep memory, for reuse with the same schema. */
void batch_reset(Batch *batch);

/* Apply one change; on failure the batch is as before, but for the rejects of a key.
 *
 * Under KEY_COLUMNS, where a key is unique at every moment (an immediate constraint):
 *
 *     insert k       a live row of k in the batch (an upsert replay) dies; else, with
 *                    inserts_replace, k joins deletes
 *     update k       the row of k dies if it is in the batch, else k joins deletes; unchanged
 *                    values are copied from that row, or become patches with source k
 *     update k -> j  delete k, insert j, unchanged values from k's row
 *     delete k       the row of k dies; k joins deletes unless its first row in this batch was a
 *                    plain insert (then the lake never had it)
 *
 * Under KEY_FULL_ROW delete and update kill one live twin of the batch, else the hash joins
 * deletes; inserts_replace means nothing. Under KEY_NONE only inserts and truncate are possible;
 * others are ERR_INPUT.
 *
 * truncate: all rows go, deletes, patches and fold are forgotten, truncated is set; from then on
 * the lake has nothing to delete or to patch from.
 *
 * Parse failures of `after` become NULL and a Reject; those of old tuples do not count again. In a
 * key column they are ERR_INPUT, and the Reject is there: what is NULL instead could not be told
 * from other rows. Under KEY_FULL_ROW rows that differ in nothing else are twins, because the lake
 * has them alike. An unchanged value that the old tuple has (all of them under REPLICA IDENTITY
 * FULL) is taken from there. */
bool batch_apply(Batch *batch, const TupleMap *map, const Change *change,
                 const ChangeOrigin *origin, Error *err) WARN_UNUSED;

/* An earlier insert that may be in the lake already (user-declared keys, replay over a copy). */
void batch_set_inserts_replace(Batch *batch, bool on);

/* A value whose text is longer is a Reject, recorded by its first 1000 bytes. Without: no limit. */
void batch_set_value_limit(Batch *batch, int64_t bytes);

/* Append one row of the initial copy: no fold, keys are computed. Fails as batch_apply() does. */
bool batch_append_row(Batch *batch, const TupleMap *map, const Datum *datums,
                      const ChangeOrigin *origin, Error *err) WARN_UNUSED;

/* End of input: drops patches of dead rows (live_rows is kept as rows come). After it only reading
 * is allowed. */
void batch_seal(Batch *batch);

/* After batch_seal(): rows that have one of these keys (ascending, each once) die, and with them
 * their patches. For a sink that has newer rows of these keys. */
void batch_kill_keys(Batch *batch, const Hash128 *keys, size_t count);

/* Bytes held by the batch: what `memory` bounds. */
size_t batch_memory(const Batch *batch);

/* Hash of the key columns (KEY_COLUMNS) or of all columns (KEY_FULL_ROW) of row `row` of columns
 * laid out like schema->columns. Also for rows read back from Parquet: the seed is fixed. */
Hash128 key_hash(const TableSchema *schema, const Column *columns, size_t row, Buf *scratch);

#endif
