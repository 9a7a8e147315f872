/* How fast rows become Parquet: 29 columns (8 doubles of 17 digits, 3 timestamps, 6 strings, 4
 * decimals, 8 integers), given in blocks of 100,000 rows. Not a test: nothing passes or fails.
 *
 *     parquet_write [rows [row group rows [row group bytes [dead row in n]]]]
 *
 * Prints rows a second, bytes a row, and the peak of the process' memory before and after. With
 * NEGATIVE_ZERO=1 as if one might come: without dictionaries. Built by: cc -O2 -D_GNU_SOURCE
 * -I../../src parquet_write.c libwalberg.a and the libraries of the program. */
#include "duck/parquet.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/xalloc.h"

enum { COLUMNS = 29, BLOCK_ROWS = 100000 };

typedef struct Blocks {
    RowSource source;
    const Column *columns;
    const uint8_t *dead;
    int64_t left;
} Blocks;

static bool
next_block(RowSource *source, RowBlock *out_block, Error *err)
{
    Blocks *blocks = (Blocks *) source;
    int64_t rows = blocks->left < BLOCK_ROWS ? blocks->left : BLOCK_ROWS;

    (void) err;
    blocks->left -= rows;
    *out_block =
        (RowBlock){.columns = blocks->columns, .rows = (size_t) rows, .dead = blocks->dead};
    return true;
}

static uint64_t
noise(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 16;
}

static void
fill_string(Column *column, size_t row, uint64_t random, int which)
{
    static const char *const words[] = {"new", "paid", "shipped", "returned", "cancelled"};
    char text[128];

    if (which % 3 == 0)
        snprintf(text, sizeof text, "%s", words[random % 5]);
    else if (which % 3 == 1)
        snprintf(text, sizeof text, "customer-%" PRIu64 "@example.com", random % 100000);
    else
        snprintf(text, sizeof text, "note %zu: %016" PRIx64 " and some words", row, random);
    column_append_bytes(column, str_of(text));
}

static void
fill(Column *column, int index, size_t row, uint64_t *state)
{
    uint64_t random = noise(state);
    double number = (double) random * 1.1102230246251565e-16 * 12345.6789;
    int64_t small = (int64_t) (random % 1000000);

    switch ((int) column->type->kind) {
    case TYPE_FLOAT64:
        column_append_fixed(column, &number);
        break;
    case TYPE_TIMESTAMP:
        small += (int64_t) row * 1000000 + INT64_C(1700000000000000);
        column_append_fixed(column, &small);
        break;
    case TYPE_INT32:
        column_append_fixed(column, &(int32_t){(int32_t) small});
        break;
    case TYPE_INT64:
        small = index == 0 ? (int64_t) row : small;
        column_append_fixed(column, &small);
        break;
    case TYPE_DECIMAL:
        column_append_fixed(column, &small);
        break;
    default:
        fill_string(column, row, random, index);
    }
}

static TypeKind
kind_of(int index)
{
    static const TypeKind kinds[COLUMNS] = {
        TYPE_INT64,   TYPE_INT64,   TYPE_INT64,     TYPE_INT64,     TYPE_INT32,     TYPE_INT32,
        TYPE_INT32,   TYPE_INT32,   TYPE_FLOAT64,   TYPE_FLOAT64,   TYPE_FLOAT64,   TYPE_FLOAT64,
        TYPE_FLOAT64, TYPE_FLOAT64, TYPE_FLOAT64,   TYPE_FLOAT64,   TYPE_DECIMAL,   TYPE_DECIMAL,
        TYPE_DECIMAL, TYPE_DECIMAL, TYPE_TIMESTAMP, TYPE_TIMESTAMP, TYPE_TIMESTAMP, TYPE_STRING,
        TYPE_STRING,  TYPE_STRING,  TYPE_STRING,    TYPE_STRING,    TYPE_STRING};

    return kinds[index];
}

static long
peak_mb(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static int64_t
argument(int argc, char **argv, int i, int64_t otherwise)
{
    return argc > i ? atoll(argv[i]) : otherwise;
}

static bool
run(const ParquetWrite *write, int64_t rows, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    Duck *duck = NULL;
    ParquetFile file;
    const char *limit = getenv("MEMORY");

    TRY(duck_open(
        &(DuckOptions){.threads = 1, .memory_bytes_max = limit == NULL ? 0 : atoll(limit)}, &duck,
        err));

    long before = peak_mb();
    int64_t start = clock_ms();
    bool ok = duck_write_parquet(duck, arena, write, &file, err);
    int64_t took = clock_ms() - start;

    if (ok)
        printf("%.2f s, %.0f rows/s, %.1f bytes/row, %d row groups, peak %ld MB before, %ld MB "
               "after\n",
               (double) took / 1e3, (double) rows * 1e3 / (double) took,
               (double) file.bytes / (double) rows, file.row_group_count, before, peak_mb());
    duck_close(duck);
    return ok;
}

int
main(int argc, char **argv)
{
    int64_t rows = argument(argc, argv, 1, 2000000);
    int64_t dead_every = argument(argc, argv, 4, 0);
    Type types[COLUMNS];
    Field fields[COLUMNS];
    Column columns[COLUMNS];
    uint8_t *dead = xcalloc(BLOCK_ROWS, 1);
    uint64_t state = 1;
    Error err = {0};

    for (int i = 0; i < COLUMNS; i++) {
        char *name = xcalloc(8, 1);

        snprintf(name, 8, "c%d", i);
        types[i] = (Type){.kind = kind_of(i), .precision = i < 18 ? 9 : 12, .scale = 2};
        fields[i] = (Field){.name = str_of(name), .id = i + 1, .type = &types[i]};
        column_init(&columns[i], &types[i]);
        for (size_t row = 0; row < BLOCK_ROWS; row++)
            fill(&columns[i], i, row, &state);
    }
    for (int64_t row = 0; dead_every > 0 && row < BLOCK_ROWS; row += dead_every)
        dead[row] = 1;

    Blocks blocks = {.source = {.next = next_block},
                     .columns = columns,
                     .dead = dead_every > 0 ? dead : NULL,
                     .left = rows};
    ParquetWrite write = {.path = "/tmp/walberg-bench.parquet",
                          .fields = fields,
                          .field_count = COLUMNS,
                          .rows = &blocks.source,
                          .row_group_rows = argument(argc, argv, 2, 0),
                          .row_group_bytes = argument(argc, argv, 3, 0),
                          .no_negative_zero = getenv("NEGATIVE_ZERO") == NULL};

    if (!run(&write, rows, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    unlink(write.path);
    return 0;
}
