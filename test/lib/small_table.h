/* small_table.h - a table (id int, name text, big text) and its tuples, for tests of batch/. */
#ifndef SMALL_TABLE_H
#define SMALL_TABLE_H

#include "testing.h"

#include "batch/fold.h"

enum { COLUMNS = 3 };

static inline TableSchema *
new_table(KeyMode mode, int key_count)
{
    static const Type int_type = {.kind = TYPE_INT32};
    static const Type text_type = {.kind = TYPE_STRING};
    static const char *const names[COLUMNS] = {"id", "name", "big"};
    Arena *arena;
    TableSchema *schema = schema_new(&arena);

    schema->qualified = "public.t";
    schema->key_mode = mode;
    schema->key_count = key_count;
    schema->key = ARENA_ARRAY(arena, int, 2);
    schema->key[0] = 0;
    schema->key[1] = 1;
    schema->column_count = COLUMNS;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, COLUMNS);
    for (int c = 0; c < COLUMNS; c++)
        schema->columns[c].field =
            (Field){.name = str_of(names[c]), .type = c == 0 ? &int_type : &text_type};
    return schema;
}

/* The datums come in another order than the columns, with one between that is not in the lake. */
static const int column_map[] = {2, -1, 0, 1};
static const TupleMap map = {.count = 4, .column_map = column_map};
static const ChangeOrigin origin = {.position = 0x100, .commit_time_us = 1234567};

/* A value: NULL, text, or UNSENT. */
static const char *const UNSENT = "(not sent)";

static inline Datum
datum_of(const char *text)
{
    if (text == UNSENT)
        return (Datum){.kind = DATUM_UNCHANGED};
    if (text == NULL)
        return (Datum){.kind = DATUM_NULL};
    return (Datum){.kind = DATUM_TEXT, .text = str_of(text)};
}

static inline Tuple
tuple_of(Datum datums[4], const char *id, const char *name, const char *big)
{
    datums[0] = datum_of(big);
    datums[1] = datum_of("elsewhere");
    datums[2] = datum_of(id);
    datums[3] = datum_of(name);
    return (Tuple){.count = 4, .datums = datums};
}

static inline void
truncate_table(Batch *batch)
{
    Error err = {0};
    Change change = {.op = OP_TRUNCATE};

    OK(batch_apply(batch, &map, &change, &origin, &err));
}

static inline bool
is_dead(const Batch *batch, size_t row)
{
    return BUF_AT(&batch->dead, uint8_t, row) != 0;
}

#endif
