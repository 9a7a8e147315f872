/* How many rows a second go from COPY lines, or from changes, into a Batch: a row of 29 columns
 * like that of a table of taxi rides (8 floats of 17 digits, 4 timestamps, 2 dates, 5 decimals, 6
 * integers, 4 strings). Not a test. Prints CPU nanoseconds a row:
 *
 *     ninja -C build && cc -O2 -D_GNU_SOURCE -Isrc test/bench/decode.c build/src/libwalberg.a \
 *         -lxxhash -lpthread -o build/bench && build/bench */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "batch/fold.h"
#include "decode/copy_text.h"

enum { COLUMNS = 29, LINES = 1000, ROUNDS = 300 };

static const TypeKind kinds[COLUMNS] = {
    TYPE_INT64,   TYPE_INT32,   TYPE_TIMESTAMP, TYPE_TIMESTAMP,   TYPE_INT32,       TYPE_FLOAT64,
    TYPE_FLOAT64, TYPE_FLOAT64, TYPE_FLOAT64,   TYPE_FLOAT64,     TYPE_FLOAT64,     TYPE_FLOAT64,
    TYPE_FLOAT64, TYPE_DECIMAL, TYPE_DECIMAL,   TYPE_DECIMAL,     TYPE_DECIMAL,     TYPE_DECIMAL,
    TYPE_STRING,  TYPE_STRING,  TYPE_STRING,    TYPE_STRING,      TYPE_INT32,       TYPE_INT32,
    TYPE_INT64,   TYPE_DATE,    TYPE_DATE,      TYPE_TIMESTAMPTZ, TYPE_TIMESTAMPTZ,
};

static double
cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static TableSchema *
new_schema(KeyMode mode)
{
    Arena *arena;
    TableSchema *schema = schema_new(&arena);

    schema->qualified = "public.trips";
    schema->key_mode = mode;
    schema->key_count = mode == KEY_COLUMNS ? 1 : 0;
    schema->key = ARENA_ARRAY(arena, int, 1);
    schema->column_count = COLUMNS;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, COLUMNS);
    for (int c = 0; c < COLUMNS; c++) {
        Type *type = ARENA_NEW(arena, Type);

        type->kind = kinds[c];
        type->precision = type->kind == TYPE_DECIMAL ? 10 : 0;
        type->scale = type->kind == TYPE_DECIMAL ? 2 : 0;
        schema->columns[c].field = (Field){.name = STR("c"), .type = type};
    }
    return schema;
}

static void
put_value(Buf *line, TypeKind kind, int row, int column)
{
    switch ((int) kind) {
    case TYPE_FLOAT64:
        buf_printf(line, "%.17g", (drand48() - 0.5) * 200);
        break;
    case TYPE_DECIMAL:
        buf_printf(line, "%d.%02d", row % 90 + 1, column + 10);
        break;
    case TYPE_DATE:
        buf_printf(line, "2026-%02d-%02d", row % 12 + 1, row % 28 + 1);
        break;
    case TYPE_TIMESTAMP:
        buf_printf(line, "2026-11-%02d 10:%02d:59", row % 28 + 1, row % 60);
        break;
    case TYPE_TIMESTAMPTZ:
        buf_printf(line, "2026-11-%02d 10:%02d:59.123456+00", row % 28 + 1, row % 60);
        break;
    case TYPE_STRING:
        if (row % 10 == 0)
            buf_cstr(line, "\\N");
        else
            buf_printf(line, "zone %d of the city", column);
        break;
    default:
        buf_printf(line, "%d", row * 37 % 100000);
    }
}

/* Fill the batch `ROUNDS` times from the lines, which are copied first as a socket would. */
static void
measure(const char *what, KeyMode mode, bool folded, const Buf *lines)
{
    static const int columns[COLUMNS] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                         15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28};
    TableSchema *schema = new_schema(mode);
    Batch *batch = batch_new(schema, folded);
    TupleMap map = {.count = COLUMNS, .column_map = columns};
    ChangeOrigin origin = {0};
    AUTO_BUF Buf copy = {0};
    Datum datums[COLUMNS];
    Error err = {0};
    double start = cpu_ns();
    size_t memory = 0;

    for (int round = 0; round < ROUNDS; round++) {
        buf_reset(&copy);
        buf_append(&copy, lines->ptr, lines->len);
        batch_reset(batch);
        for (char *at = copy.ptr; at < copy.ptr + copy.len;) {
            char *end = memchr(at, '\n', (size_t) (copy.ptr + copy.len - at));
            Change change = {.after = {.count = COLUMNS, .datums = datums}};

            if (!copy_text_split(at, (size_t) (end - at), datums, COLUMNS, &err) ||
                !(folded ? batch_apply(batch, &map, &change, &origin, &err)
                         : batch_append_row(batch, &map, datums, &origin, &err))) {
                fprintf(stderr, "%s\n", err.msg);
                exit(1);
            }
            memory += batch_memory(batch);
            at = end + 1;
        }
    }
    printf("%-28s %6.0f ns a row, %zu bytes a line, %zu bytes a row in memory\n", what,
           (cpu_ns() - start) / ROUNDS / LINES, lines->len / LINES, batch_memory(batch) / LINES);
    if (memory == 0 || batch->rejects.len > 0)
        exit(1);
    batch_free(batch);
    schema_unref(schema);
}

int
main(void)
{
    AUTO_BUF Buf lines = {0};

    for (int row = 0; row < LINES; row++) {
        for (int c = 0; c < COLUMNS; c++) {
            buf_cstr(&lines, c == 0 ? "" : "\t");
            if (c == 0)
                buf_printf(&lines, "%d", row);
            else
                put_value(&lines, kinds[c], row, c);
        }
        buf_byte(&lines, '\n');
    }
    measure("copy, no key", KEY_NONE, false, &lines);
    measure("copy, primary key", KEY_COLUMNS, false, &lines);
    measure("inserts, primary key", KEY_COLUMNS, true, &lines);
    measure("inserts, whole rows", KEY_FULL_ROW, true, &lines);
    return 0;
}
