/* row_tables.h - tables of random rows, given to a writer in pieces and gathered from a scan.
 *
 * Included by one test: everything here is static. */
#ifndef ROW_TABLES_H
#define ROW_TABLES_H

#include "random_rows.h"
#include "testing.h"

#include <stdlib.h>

#include "duck/parquet.h"

typedef struct Table {
    Field *fields;
    int count;
    Column *columns;
} Table;

static void
table_init(Table *table, Field *fields, int count)
{
    table->fields = fields;
    table->count = count;
    table->columns = xcalloc((size_t) count, sizeof(Column));
    for (int i = 0; i < count; i++)
        column_init(&table->columns[i], fields[i].type);
}

static void
table_done(Table *table)
{
    for (int i = 0; i < table->count; i++)
        column_done(&table->columns[i]);
    free(table->columns);
}

static void
table_fill(Table *table, size_t rows, int null_in)
{
    AUTO_ARENA Arena *arena = arena_new();

    for (size_t row = 0; row < rows; row++)
        for (int i = 0; i < table->count; i++)
            append_random(arena, &table->columns[i], null_in);
}

static void
assert_rows_equal(const Table *a, size_t a_row, const Table *b, size_t b_row)
{
    AUTO_BUF Buf left = {0};
    AUTO_BUF Buf right = {0};

    for (int i = 0; i < a->count; i++) {
        buf_reset(&left);
        buf_reset(&right);
        column_encode(&a->columns[i], a_row, &left);
        column_encode(&b->columns[i], b_row, &right);
        if (!str_eq(buf_view(&left), buf_view(&right))) {
            print_error("field %d (%.*s), rows %zu and %zu\n", a->fields[i].id,
                        STR_ARG(a->fields[i].name), a_row, b_row);
            fail();
        }
    }
}

/* Gives one table in blocks of `step` rows, of which it moves a copy around, so that a pointer into
 * the last block would be a pointer into garbage. */
typedef struct Pieces {
    RowSource source;
    const Table *table;
    const uint8_t *dead;
    size_t at;
    size_t step;
    size_t fail_at; /* 0 = never */
    Table piece;
} Pieces;

static bool
next_piece(RowSource *source, RowBlock *out_block, Error *err)
{
    Pieces *pieces = (Pieces *) source;
    size_t left = pieces->table->columns[0].rows - pieces->at;
    size_t rows = left < pieces->step ? left : pieces->step;

    if (pieces->fail_at > 0 && pieces->at >= pieces->fail_at)
        return FAIL(err, ERR_CONFLICT, "the sky fell at row %zu", pieces->at);
    if (pieces->piece.columns != NULL)
        table_done(&pieces->piece);
    table_init(&pieces->piece, pieces->table->fields, pieces->table->count);
    for (int i = 0; i < pieces->table->count; i++)
        for (size_t row = 0; row < rows; row++)
            column_append_copy(&pieces->piece.columns[i], &pieces->table->columns[i],
                               pieces->at + row);
    *out_block = (RowBlock){.columns = pieces->piece.columns,
                            .rows = rows,
                            .dead = pieces->dead == NULL ? NULL : pieces->dead + pieces->at};
    pieces->at += rows;
    return true;
}

typedef struct Gather {
    RowSink sink;
    Table table;
    int64_t blocks;
    int64_t fail_at; /* 0 = never */
} Gather;

static bool
gather_block(RowSink *sink, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    Gather *gather = (Gather *) sink;

    if (gather->fail_at > 0 && first_row >= gather->fail_at)
        return FAIL(err, ERR_CANCELED, "enough");
    if (gather->table.count > 0)
        assert_int_equal((int64_t) gather->table.columns[0].rows, first_row);
    for (int i = 0; i < gather->table.count; i++) {
        assert_int_equal(columns[i].rows, rows);
        for (size_t row = 0; row < rows; row++)
            column_append_copy(&gather->table.columns[i], &columns[i], row);
    }
    gather->blocks++;
    return true;
}

#endif
