/* What the cache makes of an upload to S3: the store's own time, and that of a whole
 * file_cache_put(), which keeps the file beside its stamp; and the two parts of the latter, the
 * sync and the second reading, alone. Not a test: nothing passes or fails.
 *
 *     test/lib/weed run DIR PORT upload FOLDER [MB a file [files]] */
#include "test_stores.h"

#include <fcntl.h>
#include <time.h>

#include "store/file_cache.h"

static double
now_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static void
make_file(const char *path, size_t bytes)
{
    static uint8_t block[1 << 20];
    FILE *file = fopen(path, "we");

    random_bytes(block, sizeof block);
    if (file == NULL)
        abort();
    for (size_t done = 0; done < bytes; done += sizeof block)
        if (fwrite(block, 1, sizeof block, file) != sizeof block)
            abort();
    fclose(file);
}

static double
time_of(bool (*step)(void *, Error *), void *of, const char *what, double mb)
{
    Error err = {0};
    double wall = now_ms(CLOCK_MONOTONIC);
    double cpu = now_ms(CLOCK_THREAD_CPUTIME_ID);

    if (!step(of, &err)) {
        fprintf(stderr, "%s: %s\n", what, err.msg);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    wall = now_ms(CLOCK_MONOTONIC) - wall;
    cpu = now_ms(CLOCK_THREAD_CPUTIME_ID) - cpu;
    printf("  %-8s %8.1f ms (%6.1f ms of CPU) %8.0f MB/s\n", what, wall, cpu, mb / wall * 1e3);
    return wall;
}

typedef struct Upload {
    FileCache cache;
    const char *path;
    int fd;
} Upload;

static bool
put(void *of, Error *err)
{
    Upload *upload = of;

    return store_put_file(upload->cache.store, "bench/plain", upload->path, err);
}

static bool
put_and_keep(void *of, Error *err)
{
    Upload *upload = of;

    return file_cache_put(&upload->cache, "bench/kept", upload->path, err);
}

static bool
sync_file(void *of, Error *err)
{
    Upload *upload = of;

    (void) err;
    return fdatasync(upload->fd) == 0;
}

static bool
hash_file(void *of, Error *err)
{
    Upload *upload = of;
    Hash128 hash;

    (void) err;
    return hash128_file(upload->fd, &hash);
}

int
main(int argc, char **argv)
{
    AUTO_ARENA Arena *arena = arena_new();
    StoreOptions options = test_s3_options();
    size_t mb = argc > 2 ? (size_t) atoi(argv[2]) : 64;
    int files = argc > 3 ? atoi(argv[3]) : 5;
    Upload upload = {.cache = {.bytes_max = INT64_MAX}};
    Error err = {0};

    if (argc < 2 || !test_has_s3() ||
        !store_open(arena_printf(arena, "s3://%s/bench", test_env("WALBERG_TEST_S3_BUCKET")),
                    &options, &upload.cache.store, &err)) {
        fprintf(stderr, "usage: test/lib/weed run DIR PORT upload FOLDER [MB [files]] %s\n",
                err.msg);
        return 2;
    }
    upload.cache.folder = arena_printf(arena, "%s/cache", argv[1]);
    for (int i = 0; i < files; i++) {
        const char *path = arena_printf(arena, "%s/%d", argv[1], i);

        printf("%zu MB\n", mb);
        upload.path = path;
        make_file(path, mb << 20);
        time_of(put, &upload, "put", (double) mb);
        make_file(path, mb << 20); /* as far from the disk as the writer leaves it */
        time_of(put_and_keep, &upload, "and kept", (double) mb);
        make_file(path, mb << 20);
        upload.fd = open(path, O_RDONLY | O_CLOEXEC);
        time_of(sync_file, &upload, "sync", (double) mb);
        time_of(hash_file, &upload, "hash", (double) mb);
        close(upload.fd);
        unlink(path);
    }
    store_close(upload.cache.store);
    return 0;
}
