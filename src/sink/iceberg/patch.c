/* patch.c - unchanged TOAST values, which an update does not send: read back from the lake.
 *
 * The batch is not filled up with them, as they may be far larger than all that was sent: its live
 * rows are given to the file's writer some at a time, as copies with the values put in, so that
 * only so many are held as PATCHED_BYTES_MAX says, or one if it is larger. Nobody knows how large a
 * value is before it was read, so the first time one is, and then more and more. */
#include <assert.h>
#include <stdlib.h>

#include "iceberg/default.h"
#include "sink/iceberg/sink.h"

enum { PATCHED_BYTES_MAX = 12 << 20, FASTER = 8, FEW = 64 };

/* The value of one patch of the batch, in the same order. */
typedef struct PatchPlace {
    size_t patch; /* in the batch */
    int file;     /* ordinal in the index */
    uint32_t row; /* in the file */
} PatchPlace;

struct PatchedRows {
    RowSource source;
    IcebergTable *table;
    const Batch *batch;
    const uint32_t *order; /* NULL: the batch's */
    uint32_t *ranks;       /* with order: where it has each row */
    PatchPlace *places;    /* one a patch: in the order of the rows until their turn comes */
    size_t place;          /* next */
    size_t row;            /* next of the batch, or of the order */
    size_t at_once;        /* values in one block */
    Column *columns;       /* the block */
    Buf rows;              /* size_t: rows of the batch that are in it */
};

/* --- where they are -------------------------------------------------------------------------- */

/* The newest live place of each key; .file is -1 where there is none. */
static bool
find_live(IcebergTable *table, const Hash128 *keys, size_t count, PatchPlace *places, Error *err)
{
    AUTO_BUF Buf hits = {0};

    for (size_t i = 0; i < count; i++)
        places[i] = (PatchPlace){.patch = i, .file = -1};
    TRY(iceberg_look_up(table, keys, count, &hits, err));
    for (size_t i = 0; i < BUF_COUNT(&hits, IndexHit); i++) {
        IndexHit hit = BUF_AT(&hits, IndexHit, i);
        PatchPlace *place = &places[hit.probe];

        if (place->file >= 0 ||
            deletes_contains(table->deletes, index_file_name(table->index, hit.file), hit.row))
            continue;
        place->file = hit.file;
        place->row = hit.row;
    }
    return true;
}

bool
iceberg_find_patches(IcebergTable *table, const Batch *batch, Buf *out_places, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    size_t count = BUF_COUNT(&batch->patches, Patch);

    if (count == 0)
        return true;

    Hash128 *keys = ARENA_ARRAY(arena, Hash128, count);
    PatchPlace *places = buf_push(out_places, count * sizeof *places);

    for (size_t i = 0; i < count; i++)
        keys[i] = BUF_AT(&batch->patches, Patch, i).source;
    TRY(find_live(table, keys, count, places, err));
    for (size_t i = 0; i < count; i++)
        if (places[i].file < 0)
            return FAIL(
                err, ERR_COPY,
                "an update left column %.*s unchanged, but the lake does not have its row",
                STR_ARG(
                    batch->schema->columns[BUF_AT(&batch->patches, Patch, i).column].field.name));
    return true;
}

/* --- reading them ---------------------------------------------------------------------------- */

static const Patch *
patch_of(const PatchedRows *patched, const PatchPlace *place)
{
    return &BUF_AT(&patched->batch->patches, Patch, place->patch);
}

static int
by_place(const void *a, const void *b)
{
    const PatchPlace *x = a;
    const PatchPlace *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* A number that ascends in the sequence in which rows are given. */
static size_t
rank_of(const PatchedRows *patched, size_t row)
{
    return patched->order == NULL ? row : patched->ranks[row];
}

static int
by_rank(const void *a, const void *b, void *context)
{
    const PatchedRows *patched = context;
    const PatchPlace *x = a;
    const PatchPlace *y = b;
    size_t p = rank_of(patched, patch_of(patched, x)->row);
    size_t q = rank_of(patched, patch_of(patched, y)->row);

    if (p != q)
        return p < q ? -1 : 1;
    return x->patch < y->patch ? -1 : x->patch > y->patch;
}

/* Where a row of the batch is in the block. */
static size_t
row_in_block(const PatchedRows *patched, size_t row)
{
    size_t low = 0;
    size_t high = BUF_COUNT(&patched->rows, size_t);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (rank_of(patched, BUF_AT(&patched->rows, size_t, middle)) < rank_of(patched, row))
            low = middle + 1;
        else
            high = middle;
    }
    assert(BUF_AT(&patched->rows, size_t, low) == row);
    return low;
}

/* Values of the picked rows into the block. */
static void
put_values(PatchedRows *patched, const PatchPlace *places, size_t count, const int64_t *rows,
           const int *slot, const Column *values)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        const Patch *patch = patch_of(patched, &places[i]);

        while (rows[at] != places[i].row)
            at++;
        column_set_copy(&patched->columns[patch->column], row_in_block(patched, patch->row),
                        &values[slot[patch->column] - 1], at);
    }
}

/* Read the rows of places[0..count), all of one file and ordered, and put their values into the
 * block; *out_bytes is what they took. */
static bool
patch_from_file(PatchedRows *patched, const PatchPlace *places, size_t count, size_t *out_bytes,
                Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    IcebergTable *table = patched->table;
    const TableSchema *schema = table->base.schema; /* with the lake's field ids */
    int *slot = ARENA_ARRAY(arena, int, (size_t) schema->column_count); /* column -> field + 1 */
    Field *fields = ARENA_ARRAY(arena, Field, (size_t) schema->column_count);
    int64_t *rows = ARENA_ARRAY(arena, int64_t, count);
    ParquetPick pick = {.fields = fields, .row_numbers = rows};
    AUTO_FILE_HOLD FileHold hold = {0};

    for (size_t i = 0; i < count; i++) {
        int column = patch_of(patched, &places[i])->column;

        if (pick.row_count == 0 || rows[pick.row_count - 1] != places[i].row)
            rows[pick.row_count++] = places[i].row;
        if (slot[column] == 0) {
            fields[pick.field_count++] = schema->columns[column].field;
            slot[column] = pick.field_count;
        }
    }
    TRY(file_cache_path(&table->sink->files, &hold, arena,
                        index_file_name(table->index, places[0].file), &pick.path, err));
    TRY(default_expressions(arena, fields, pick.field_count, &pick.defaults, err));

    Column *values = ARENA_ARRAY(arena, Column, (size_t) pick.field_count);

    for (int f = 0; f < pick.field_count; f++)
        column_init(&values[f], fields[f].type);

    bool read = duck_pick_parquet(table->sink->duck, &pick, values, err);

    if (read)
        put_values(patched, places, count, rows, slot, values);
    *out_bytes = 0;
    for (int f = 0; f < pick.field_count; f++) {
        *out_bytes += column_memory(&values[f]);
        column_done(&values[f]);
    }
    return read;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static size_t
values_that_fit(size_t each)
{
    return each > PATCHED_BYTES_MAX ? 1 : PATCHED_BYTES_MAX / each;
}

bool
iceberg_patches_fit(const IcebergTable *table, const Batch *batch)
{
    size_t count = BUF_COUNT(&batch->patches, Patch);
    long long each = atomic_load(&table->base.patch_bytes);

    return count <= FEW || (each > 0 && count <= values_that_fit((size_t) each));
}

/* How many values to read the next time, from what one took. */
static void
learn(PatchedRows *patched, size_t count, size_t bytes)
{
    size_t each = bytes / count + 1;
    size_t most = values_that_fit(each);

    atomic_store(&patched->table->base.patch_bytes, (long long) each);
    patched->at_once = most / FASTER > patched->at_once ? patched->at_once * FASTER : most;
}

static bool
read_values(PatchedRows *patched, PatchPlace *places, size_t count, Error *err)
{
    size_t bytes = 0;

    if (count == 0)
        return true;
    qsort(places, count, sizeof *places, by_place);
    for (size_t from = 0, to; from < count; from = to) {
        size_t more;

        for (to = from + 1; to < count && places[to].file == places[from].file;)
            to++;
        TRY(patch_from_file(patched, &places[from], to - from, &more, err));
        bytes += more;
    }
    learn(patched, count, bytes);
    return true;
}

static size_t
block_bytes(const PatchedRows *patched)
{
    size_t bytes = 0;

    for (int c = 0; c < patched->batch->schema->column_count; c++)
        bytes += column_memory(&patched->columns[c]);
    return bytes;
}

static bool
next_patched(RowSource *source, RowBlock *out_block, Error *err)
{
    PatchedRows *patched = (PatchedRows *) (void *) source;
    const Batch *batch = patched->batch;
    size_t count = BUF_COUNT(&batch->patches, Patch);
    size_t first = patched->place;
    size_t end = patched->order == NULL ? batch->rows : batch->live_rows;
    int columns = batch->schema->column_count;

    buf_reset(&patched->rows);
    for (int c = 0; c < columns; c++)
        column_reset(&patched->columns[c]);
    while (patched->row < end && patched->place - first < patched->at_once) {
        size_t at = patched->row++;
        size_t row = patched->order == NULL ? at : patched->order[at];
        size_t rows = BUF_COUNT(&patched->rows, size_t);

        if (BUF_AT(&batch->dead, uint8_t, row))
            continue;
        for (int c = 0; c < columns; c++)
            column_append_copy(&patched->columns[c], &batch->columns[c], row);
        BUF_PUSH(&patched->rows, size_t, row);
        while (patched->place < count &&
               patch_of(patched, &patched->places[patched->place])->row == row)
            patched->place++;
        if (rows % 64 == 0 && block_bytes(patched) > PATCHED_BYTES_MAX)
            break;
    }
    TRY(read_values(patched, &patched->places[first], patched->place - first, err));
    *out_block = (RowBlock){.columns = patched->columns, .rows = BUF_COUNT(&patched->rows, size_t)};
    return true;
}

static void
follow_order(PatchedRows *patched)
{
    const Batch *batch = patched->batch;

    patched->ranks = xcalloc(batch->rows, sizeof *patched->ranks);
    for (size_t i = 0; i < batch->live_rows; i++)
        patched->ranks[patched->order[i]] = (uint32_t) i;
    qsort_r(patched->places, BUF_COUNT(&batch->patches, Patch), sizeof *patched->places, by_rank,
            patched);
}

PatchedRows *
iceberg_patched_rows(IcebergTable *table, const Batch *batch, Buf *places, const uint32_t *order)
{
    PatchedRows *patched = xcalloc(1, sizeof *patched);
    int columns = batch->schema->column_count;
    long long each = atomic_load(&table->base.patch_bytes);

    assert(BUF_COUNT(places, PatchPlace) == BUF_COUNT(&batch->patches, Patch));
    *patched = (PatchedRows){
        .source = {.next = next_patched},
        .table = table,
        .batch = batch,
        .order = order,
        .places = (PatchPlace *) (void *) places->ptr,
        .at_once = each == 0 ? 1 : values_that_fit((size_t) each),
        .columns = xcalloc((size_t) columns, sizeof(Column)),
    };
    for (int c = 0; c < columns; c++)
        column_init(&patched->columns[c], batch->schema->columns[c].field.type);
    if (order != NULL)
        follow_order(patched);
    return patched;
}

void
iceberg_patched_free(PatchedRows **patched)
{
    if (*patched == NULL)
        return;
    for (int c = 0; c < (*patched)->batch->schema->column_count; c++)
        column_done(&(*patched)->columns[c]);
    free((*patched)->columns);
    buf_done(&(*patched)->rows);
    free((*patched)->ranks);
    free(*patched);
}
