/* What reading costs: a scan, and picks of a few rows. Not a test: nothing passes or fails.
 *
 *     parquet_read FILE ROWS ID:KIND...      KIND is a number of TypeKind
 */
#include "duck/parquet.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/xalloc.h"

enum { FIELDS_MAX = 64 };

static double
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* others may share the machine */
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static long
anonymous_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "RssAnon: %ld", &kb) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kb;
}

static bool
drop_block(RowSink *sink, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    (void) sink;
    (void) columns;
    (void) rows;
    (void) first_row;
    (void) err;
    return true;
}

static bool
pick(Duck *duck, ParquetPick pick, int64_t rows, size_t count, Error *err)
{
    int64_t *numbers = xcalloc(count, sizeof *numbers);
    Column *columns = xcalloc((size_t) pick.field_count, sizeof *columns);
    double best = 1e9;

    for (size_t i = 0; i < count; i++)
        numbers[i] = (int64_t) ((double) i * (double) rows / (double) count) + (int64_t) (i % 7);
    pick.row_numbers = numbers;
    pick.row_count = count;
    for (int i = 0; i < pick.field_count; i++)
        column_init(&columns[i], pick.fields[i].type);
    for (int round = 0; round < 5; round++) {
        double start = now_ms();

        TRY(duck_pick_parquet(duck, &pick, columns, err));

        double took = now_ms() - start;

        best = took < best ? took : best;
    }
    printf("%zu rows of %" PRId64 ": %.1f ms; memory %ld kB\n", count, rows, best, anonymous_kb());
    for (int i = 0; i < pick.field_count; i++)
        column_done(&columns[i]);
    free(columns);
    free(numbers);
    return true;
}

static bool
run(const char *path, int64_t rows, const Field *fields, int count, Error *err)
{
    Duck *duck = NULL;
    RowSink sink = {.block = drop_block};
    ParquetPick some = {.path = path, .fields = fields, .field_count = count};

    TRY(duck_open(&(DuckOptions){.threads = 1}, &duck, err));
    for (size_t n = 1; n <= 10000; n *= 10)
        TRY(pick(duck, some, rows, n, err));

    double start = now_ms();

    TRY(duck_scan_parquet(
        duck, &(ParquetScan){.path = path, .fields = fields, .field_count = count, .sink = &sink},
        err));
    printf("scan: %.0f ms; memory %ld kB\n", now_ms() - start, anonymous_kb());
    duck_close(duck);
    return true;
}

int
main(int argc, char **argv)
{
    Type types[FIELDS_MAX] = {0};
    Field fields[FIELDS_MAX] = {0};
    int count = 0;
    Error err = {0};

    for (int i = 3; i < argc && count < FIELDS_MAX; i++) {
        char *end;

        fields[count].id = (int) strtol(argv[i], &end, 10);
        types[count].kind = (TypeKind) strtol(end + 1, NULL, 10);
        fields[count].type = &types[count];
        count++;
    }
    if (count == 0) {
        fprintf(stderr, "usage: parquet_read FILE ROWS ID:KIND...\n");
        return 2;
    }
    if (!run(argv[1], atoll(argv[2]), fields, count, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    return 0;
}
