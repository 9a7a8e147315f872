#include "batch/fold.h"

#include <assert.h>
#include <stdlib.h>

#include "batch/state.h"

/* --- The batch ------------------------------------------------------------------------------- */

static bool
differs_in_size(const Type *type)
{
    return type_is_nested(type) || type->kind == TYPE_STRING || type->kind == TYPE_JSON ||
           type->kind == TYPE_BINARY;
}

static struct Fold *
new_fold(const TableSchema *schema, bool folded)
{
    struct Fold *fold = xcalloc(1, sizeof *fold);
    size_t columns = (size_t) schema->column_count;

    fold->folded = folded;
    fold->value_bytes_max = SIZE_MAX;
    fold->in_key = xcalloc(columns + 1, sizeof(bool));
    fold->old = xcalloc(columns + 1, sizeof(Column));
    fold->variable = xcalloc(columns + 1, sizeof(int));
    fold->row_bytes = 1 + (schema->key_mode == KEY_NONE ? 0 : sizeof(Hash128));
    if (folded && schema->key_mode == KEY_FULL_ROW)
        fold->row_bytes += sizeof(uint32_t);
    for (int c = 0; c < schema->column_count; c++) {
        const Type *type = schema->columns[c].field.type;

        column_init(&fold->old[c], type);
        if (differs_in_size(type))
            fold->variable[fold->variable_count++] = c;
        else
            fold->row_bytes += 1 + type_width(type);
    }
    if (schema->key_mode == KEY_COLUMNS)
        for (int i = 0; i < schema->key_count; i++)
            fold->in_key[schema->key[i]] = true;
    return fold;
}

Batch *
batch_new(const TableSchema *schema, bool folded)
{
    Batch *batch = xcalloc(1, sizeof *batch);

    assert(schema->key_mode != KEY_COLUMNS || schema->key_count > 0);
    batch->schema = schema_ref(schema);
    batch->columns = xcalloc((size_t) schema->column_count + 1, sizeof(Column));
    for (int c = 0; c < schema->column_count; c++)
        column_init(&batch->columns[c], schema->columns[c].field.type);
    batch->fold = new_fold(schema, folded);
    return batch;
}

static void
free_fold(struct Fold *fold, int columns)
{
    for (int c = 0; c < columns; c++)
        column_done(&fold->old[c]);
    free(fold->old);
    free(fold->in_key);
    free(fold->variable);
    key_map_done(&fold->map);
    buf_done(&fold->twins);
    buf_done(&fold->unsent);
    buf_done(&fold->scratch);
    free(fold);
}

void
batch_free(Batch *batch)
{
    if (batch == NULL)
        return;
    for (int c = 0; c < batch->schema->column_count; c++)
        column_done(&batch->columns[c]);
    free(batch->columns);
    free_fold(batch->fold, batch->schema->column_count);
    buf_done(&batch->dead);
    buf_done(&batch->keys);
    buf_done(&batch->deletes);
    buf_done(&batch->patches);
    buf_done(&batch->rejects);
    buf_done(&batch->reject_bytes);
    schema_unref(batch->schema);
    free(batch);
}

/* Rows and what happens to older ones; rejects stay. */
static void
forget_rows(Batch *batch)
{
    for (int c = 0; c < batch->schema->column_count; c++)
        column_reset(&batch->columns[c]);
    batch->rows = 0;
    batch->live_rows = 0;
    buf_reset(&batch->dead);
    buf_reset(&batch->keys);
    buf_reset(&batch->deletes);
    buf_reset(&batch->patches);
    buf_reset(&batch->fold->twins);
    key_map_reset(&batch->fold->map);
}

void
batch_reset(Batch *batch)
{
    forget_rows(batch);
    batch->truncated = false;
    batch->fold->sealed = false;
    batch->fold->inserts_replace = false;
    buf_reset(&batch->rejects);
    buf_reset(&batch->reject_bytes);
}

void
batch_set_inserts_replace(Batch *batch, bool on)
{
    batch->fold->inserts_replace = on;
}

void
batch_set_value_limit(Batch *batch, int64_t bytes)
{
    assert(bytes > 0);
    batch->fold->value_bytes_max = (size_t) bytes;
}

static void
forget_patches_of_dead(Batch *batch)
{
    size_t kept = 0;

    for (size_t i = 0; i < BUF_COUNT(&batch->patches, Patch); i++) {
        Patch patch = BUF_AT(&batch->patches, Patch, i);

        if (BUF_AT(&batch->dead, uint8_t, patch.row) == 0)
            BUF_AT(&batch->patches, Patch, kept++) = patch;
    }
    batch->patches.len = kept * sizeof(Patch);
}

void
batch_seal(Batch *batch)
{
    forget_patches_of_dead(batch);
    batch->fold->sealed = true;
}

static int
by_hash(const void *a, const void *b)
{
    return hash128_cmp(*(const Hash128 *) a, *(const Hash128 *) b);
}

void
batch_kill_keys(Batch *batch, const Hash128 *keys, size_t count)
{
    assert(batch->fold->sealed && batch->schema->key_mode == KEY_COLUMNS);
    if (count == 0)
        return;
    for (size_t row = 0; row < batch->rows; row++)
        if (!BUF_AT(&batch->dead, uint8_t, row) &&
            bsearch(&BUF_AT(&batch->keys, Hash128, row), keys, count, sizeof *keys, by_hash) !=
                NULL)
            rows_kill(batch, row);
    forget_patches_of_dead(batch);
}

size_t
batch_memory(const Batch *batch)
{
    const struct Fold *fold = batch->fold;
    size_t bytes = batch->rows * fold->row_bytes + batch->deletes.len + batch->patches.len +
                   batch->rejects.len + batch->reject_bytes.len + key_map_memory(&fold->map);

    for (int i = 0; i < fold->variable_count; i++)
        bytes += column_memory(&batch->columns[fold->variable[i]]);
    return bytes;
}

/* --- Folding by key columns ------------------------------------------------------------------ */

/* A row of the lake goes, unless all of them go anyway. */
static void
delete_from_lake(Batch *batch, Hash128 key)
{
    if (!batch->truncated)
        BUF_PUSH(&batch->deletes, Hash128, key);
}

/* Nothing has the key any more. That it has an entry says that the lake has been seen to: its row
 * is in deletes, or it never had one. */
static void
remove_key(Batch *batch, Hash128 key)
{
    KeyEntry *entry = key_map_find(&batch->fold->map, key);

    if (entry == NULL) {
        delete_from_lake(batch, key);
        entry = key_map_put(&batch->fold->map, key);
    } else if (entry->row != ROW_NONE) {
        rows_kill(batch, entry->row);
    }
    entry->row = ROW_NONE;
}

/* The last row is the one with its key now. */
static void
place_row(Batch *batch)
{
    size_t row = batch->rows - 1;
    Hash128 key = BUF_AT(&batch->keys, Hash128, row);
    KeyEntry *entry = key_map_find(&batch->fold->map, key);

    if (entry == NULL) {
        if (batch->fold->inserts_replace)
            delete_from_lake(batch, key);
        entry = key_map_put(&batch->fold->map, key);
    } else if (entry->row != ROW_NONE) {
        rows_kill(batch, entry->row);
    }
    entry->row = (uint32_t) row;
}

/* First patch of the row: patches are in row order. */
static size_t
first_patch(const Batch *batch, size_t row)
{
    size_t low = 0;
    size_t high = BUF_COUNT(&batch->patches, Patch);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (BUF_AT(&batch->patches, Patch, middle).row < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The value of an unsent column from the row that the update replaces: copied, or, when that row is
 * itself waiting for it, waited for at the same place. */
static void
take_from_row(Batch *batch, size_t row, int column, size_t from)
{
    for (size_t i = first_patch(batch, from); i < BUF_COUNT(&batch->patches, Patch); i++) {
        Patch patch = BUF_AT(&batch->patches, Patch, i);

        if (patch.row != from)
            break;
        if (patch.column == column) {
            patch.row = row;
            BUF_PUSH(&batch->patches, Patch, patch);
            return;
        }
    }
    column_set_copy(&batch->columns[column], row, &batch->columns[column], from);
}

/* Find the values that the update of `key`, the last row, did not send. */
static bool
fill_unsent(Batch *batch, Hash128 key, Error *err)
{
    const Buf *unsent = &batch->fold->unsent;
    const KeyEntry *entry = key_map_find(&batch->fold->map, key);
    bool in_batch = entry != NULL && entry->row != ROW_NONE;
    size_t row = batch->rows - 1;

    if (unsent->len > 0 && !in_batch && (entry != NULL || batch->truncated))
        return FAIL(err, ERR_INPUT,
                    "table %s: update of a row that was deleted before in the same transactions\n"
                    "hint: is its key in walberg's settings really unique?",
                    batch->schema->qualified);
    for (size_t i = 0; i < BUF_COUNT(unsent, int); i++) {
        int column = BUF_AT(unsent, int, i);

        if (in_batch)
            take_from_row(batch, row, column, entry->row);
        else
            BUF_PUSH(&batch->patches, Patch,
                     ((Patch){.row = row, .column = column, .source = key}));
    }
    return true;
}

static bool
update_by_key(Batch *batch, const RowEvent *event, Error *err)
{
    RowMark mark = rows_mark(batch);
    Hash128 key = {0};

    if (event->old != NULL)
        TRY(rows_old_key(batch, event->map, event->old, &key, err));
    TRY(rows_append(batch, event, err));
    if (event->old == NULL) /* the key did not change */
        key = BUF_AT(&batch->keys, Hash128, batch->rows - 1);
    if (!fill_unsent(batch, key, err)) {
        rows_take_back(batch, mark);
        return false;
    }
    remove_key(batch, key);
    place_row(batch);
    return true;
}

static bool
delete_by_key(Batch *batch, const RowEvent *event, Error *err)
{
    Hash128 key;

    TRY(rows_old_key(batch, event->map, event->old, &key, err));
    remove_key(batch, key);
    return true;
}

/* --- Folding by whole rows ------------------------------------------------------------------- */

/* Of rows that are equal in everything it does not matter which one goes. */
static void
remove_twin(Batch *batch, Hash128 key)
{
    KeyEntry *entry = key_map_find(&batch->fold->map, key);

    if (entry == NULL || entry->row == ROW_NONE) {
        delete_from_lake(batch, key);
        return;
    }
    rows_kill(batch, entry->row);
    entry->row = BUF_AT(&batch->fold->twins, uint32_t, entry->row);
}

/* The last row joins its twins. */
static void
place_twin(Batch *batch)
{
    size_t row = batch->rows - 1;
    KeyEntry *entry = key_map_put(&batch->fold->map, BUF_AT(&batch->keys, Hash128, row));

    assert(BUF_COUNT(&batch->fold->twins, uint32_t) == row);
    BUF_PUSH(&batch->fold->twins, uint32_t, entry->row);
    entry->row = (uint32_t) row;
}

static bool
update_whole_row(Batch *batch, const RowEvent *event, Error *err)
{
    Hash128 key;

    TRY(rows_old_key(batch, event->map, event->old, &key, err));
    TRY(rows_append(batch, event, err));
    remove_twin(batch, key);
    place_twin(batch);
    return true;
}

static bool
delete_whole_row(Batch *batch, const RowEvent *event, Error *err)
{
    Hash128 key;

    TRY(rows_old_key(batch, event->map, event->old, &key, err));
    remove_twin(batch, key);
    return true;
}

/* --- Changes --------------------------------------------------------------------------------- */

static bool
apply_insert(Batch *batch, const RowEvent *event, Error *err)
{
    RowMark mark = rows_mark(batch);

    TRY(rows_append(batch, event, err));
    if (batch->fold->unsent.len > 0) {
        rows_take_back(batch, mark);
        return FAIL(err, ERR_BUG, "table %s: inserted row without a value",
                    batch->schema->qualified);
    }
    if (batch->schema->key_mode == KEY_COLUMNS)
        place_row(batch);
    else if (batch->schema->key_mode == KEY_FULL_ROW)
        place_twin(batch);
    return true;
}

/* What an update or delete must bring along under the table's key mode. */
static bool
check_old(const Batch *batch, const Change *change, Error *err)
{
    const char *table = batch->schema->qualified;

    if (batch->schema->key_mode == KEY_NONE)
        return FAIL(err, ERR_INPUT,
                    "table %s has no key, so an update or delete cannot be followed\n"
                    "hint: add a primary key, or set REPLICA IDENTITY FULL",
                    table);
    if (batch->schema->key_mode == KEY_FULL_ROW && change->old_kind != OLD_ROW)
        return FAIL(err, ERR_INPUT,
                    "table %s: an update or delete came without the whole old row\n"
                    "hint: set REPLICA IDENTITY FULL, and copy the table again",
                    table);
    if (change->op == OP_DELETE && change->old_kind == OLD_NONE)
        return FAIL(err, ERR_BUG, "table %s: delete without an old row", table);
    return true;
}

static void
truncate_table(Batch *batch)
{
    forget_rows(batch);
    batch->truncated = true;
}

bool
batch_apply(Batch *batch, const TupleMap *map, const Change *change, const ChangeOrigin *origin,
            Error *err)
{
    bool whole = batch->schema->key_mode == KEY_FULL_ROW;
    RowEvent event = {
        .map = map,
        .tuple = &change->after,
        .old = change->old_kind == OLD_NONE ? NULL : &change->old,
        .origin = origin,
    };

    assert(batch->fold->folded && !batch->fold->sealed);
    if (change->op == OP_INSERT)
        return apply_insert(batch, &event, err);
    if (change->op == OP_TRUNCATE) {
        truncate_table(batch);
        return true;
    }
    TRY(check_old(batch, change, err));
    if (change->op == OP_UPDATE)
        return whole ? update_whole_row(batch, &event, err) : update_by_key(batch, &event, err);
    return whole ? delete_whole_row(batch, &event, err) : delete_by_key(batch, &event, err);
}
