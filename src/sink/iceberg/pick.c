/* pick.c - rows of columns in another sequence, without a copy of all of them: taken out a few
 * thousand at a time. */
#include <stdlib.h>

#include "sink/iceberg/sink.h"

enum { PIECE_ROWS_MAX = 2048, PIECE_BYTES = 4 << 20 };

struct PickedRows {
    RowSource source;
    const Column *from;
    int column_count;
    const uint32_t *rows;
    size_t count;
    size_t at;
    size_t piece; /* rows */
    Column *columns;
};

static bool
next_picked(RowSource *source, RowBlock *out_block, Error *err)
{
    PickedRows *picked = (PickedRows *) (void *) source;
    size_t left = picked->count - picked->at;
    size_t rows = left < picked->piece ? left : picked->piece;

    (void) err;
    for (int c = 0; c < picked->column_count; c++) {
        column_reset(&picked->columns[c]);
        for (size_t i = 0; i < rows; i++)
            column_append_copy(&picked->columns[c], &picked->from[c], picked->rows[picked->at + i]);
    }
    picked->at += rows;
    *out_block = (RowBlock){.columns = picked->columns, .rows = rows};
    return true;
}

PickedRows *
iceberg_picked_rows(const Column *columns, int column_count, size_t row_bytes)
{
    PickedRows *picked = xcalloc(1, sizeof *picked);
    size_t fit = PIECE_BYTES / (row_bytes + 1);

    *picked = (PickedRows){
        .source = {.next = next_picked},
        .from = columns,
        .column_count = column_count,
        .piece = fit < PIECE_ROWS_MAX ? fit + 1 : PIECE_ROWS_MAX,
        .columns = xcalloc((size_t) column_count, sizeof(Column)),
    };
    for (int c = 0; c < column_count; c++)
        column_init(&picked->columns[c], columns[c].type);
    return picked;
}

void
iceberg_pick(PickedRows *picked, const uint32_t *rows, size_t count)
{
    picked->rows = rows;
    picked->count = count;
    picked->at = 0;
}

void
iceberg_picked_free(PickedRows **picked)
{
    if (*picked == NULL)
        return;
    for (int c = 0; c < (*picked)->column_count; c++)
        column_done(&(*picked)->columns[c]);
    free((*picked)->columns);
    free(*picked);
}
