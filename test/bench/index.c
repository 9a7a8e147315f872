/* What the key index costs: building, looking up 10,000 random keys, saving a commit of 1,000, and
 * the process' memory. Not a test: nothing passes or fails.
 *
 *     index FOLDER [keys [rows of a commit]]
 *
 * With rows of a commit, the keys come in commits of so many instead of in one file. */
#include "iceberg/index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"

#include <time.h>

enum { PROBES = 10000, ROUNDS = 10, COMMIT_ROWS = 1000 };

static double
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* others may share the machine */
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* Memory that is ours, without the library's pages and the cache's. */
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

static Hash128
key_of(uint64_t number)
{
    return hash128(&number, sizeof number, 1);
}

static bool
build(Index *index, uint64_t keys, Error *err)
{
    IndexBuild *build;
    Hash128 some[COMMIT_ROWS];

    TRY(index_build_begin(index, STR("file:///lake/one.parquet"), &build, err));
    for (uint64_t at = 0; at < keys; at += COMMIT_ROWS) {
        for (uint64_t i = 0; i < COMMIT_ROWS; i++)
            some[i] = key_of(at + i);
        TRY(index_build_add(build, some, COMMIT_ROWS, err));
    }
    return index_build_end(build, err);
}

static bool
commit(Index *index, uint64_t keys, uint64_t rows, double *out_slowest, Error *err)
{
    Hash128 *some = xcalloc(rows, sizeof *some);
    char name[64];

    *out_slowest = 0;
    for (uint64_t at = 0; at < keys; at += rows) {
        for (uint64_t i = 0; i < rows; i++)
            some[i] = key_of(at + i);
        snprintf(name, sizeof name, "file:///lake/data/%" PRIu64 ".parquet", at);

        double start = now_ms();

        TRY(index_add_file(index, str_of(name), some, rows, err));
        TRY(index_save(index, err));

        double took = now_ms() - start;

        *out_slowest = took > *out_slowest ? took : *out_slowest;
    }
    free(some);
    return true;
}

static bool
look_up(Index *index, uint64_t keys, size_t count, Error *err)
{
    Buf hits = {0};
    uint64_t state = 99;
    double best = 1e9;
    double first = 0;

    for (int round = 0; round < ROUNDS; round++) {
        Hash128 *probes = xcalloc(count, sizeof *probes);

        for (size_t i = 0; i < count; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            probes[i] = key_of((state >> 20) % keys);
        }
        buf_reset(&hits);

        double start = now_ms();

        TRY(index_lookup(index, probes, count, &hits, err));

        double took = now_ms() - start;

        first = round == 0 ? took : first;
        best = took < best ? took : best;
        free(probes);
        if (BUF_COUNT(&hits, IndexHit) != count)
            return FAIL(err, ERR_BUG, "%zu of %zu found", BUF_COUNT(&hits, IndexHit), count);
    }
    printf("look up %zu keys: first %.2f ms, best %.2f ms; memory %ld kB\n", count, first, best,
           anonymous_kb());
    buf_done(&hits);
    return true;
}

static bool
save(Index *index, uint64_t keys, Error *err)
{
    double slowest;
    double start = now_ms();

    TRY(commit(index, 20 * COMMIT_ROWS, COMMIT_ROWS, &slowest, err));
    printf("commit of 1,000 keys: mean %.2f ms, slowest %.2f ms (of %" PRIu64 " keys)\n",
           (now_ms() - start) / 20, slowest, keys);
    return true;
}

static bool
run(const char *folder, uint64_t keys, uint64_t rows, Error *err)
{
    Index *index;
    double slowest = 0;

    TRY(index_open(folder, "bench", &index, err));

    double start = now_ms();

    if (rows == 0)
        TRY(build(index, keys, err));
    else
        TRY(commit(index, keys, rows, &slowest, err));

    double took = now_ms() - start;
    IndexStats stats = index_stats(index);

    printf("%" PRIu64 " keys: %.0f ms (%.3f s a million), slowest commit %.1f ms, %zu runs, "
           "%.1f bytes a key; memory %ld kB\n",
           keys, took, took / (double) keys * 1e3, slowest, stats.runs,
           (double) stats.bytes / (double) keys, anonymous_kb());
    TRY(look_up(index, keys, PROBES, err));
    TRY(look_up(index, keys, 100, err));
    TRY(look_up(index, keys, 1, err));
    TRY(save(index, keys, err));
    index_close(index);
    return true;
}

int
main(int argc, char **argv)
{
    Error err = {0};

    if (argc < 2) {
        fprintf(stderr, "usage: index FOLDER [keys [rows of a commit]]\n");
        return 2;
    }
    if (!run(argv[1], argc > 2 ? (uint64_t) atoll(argv[2]) : 1000000,
             argc > 3 ? (uint64_t) atoll(argv[3]) : 0, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    return 0;
}
