/* Files of a remote store, kept on a disk that bends them. The store is a table of functions here:
 * one object, and how often it was asked for it. */
#include "testing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "store/file_cache.h"

#define URI     "s3://bucket/lake/public/t/data/1.parquet"
#define KEY     "public/t/data/1.parquet"
#define CONTENT "PAR1 what was written at first PAR1"

typedef struct FakeStore {
    Store base;
    const char *content; /* NULL: there is no such object */
    int fetched;
} FakeStore;

static void
write_file(const char *path, const char *content, size_t size)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static bool
fake_fetch(Store *store, const char *key, const char *path, bool *out_found, Error *err)
{
    FakeStore *fake = (FakeStore *) (void *) store;

    (void) key;
    (void) err;
    fake->fetched++;
    *out_found = fake->content != NULL;
    if (*out_found) {
        char part[256];

        snprintf(part, sizeof part, "%s.%d.part", path, (int) getpid());
        write_file(part, fake->content, strlen(fake->content));
        assert_int_equal(rename(part, path), 0);
    }
    return true;
}

static bool
fake_put_file(Store *store, const char *key, const char *path, Error *err)
{
    (void) store;
    (void) key;
    (void) path;
    (void) err;
    return true;
}

static bool
fake_remove(Store *store, const char *key, Error *err)
{
    (void) key;
    (void) err;
    ((FakeStore *) (void *) store)->content = NULL;
    return true;
}

static const StoreOps fake_ops = {
    .scheme = "s3", .fetch = fake_fetch, .put_file = fake_put_file, .remove = fake_remove};

typedef struct Scene {
    FakeStore store;
    FileCache cache;
    Arena *arena;
    char uri[32];
    char root[40];
    char folder[64];
} Scene;

static int
setup(void **state)
{
    Scene *scene = calloc(1, sizeof *scene);

    assert_non_null(scene);
    snprintf(scene->uri, sizeof scene->uri, "s3://bucket/lake");
    snprintf(scene->root, sizeof scene->root, "/tmp/walberg-file-cache-XXXXXX");
    assert_non_null(mkdtemp(scene->root));
    snprintf(scene->folder, sizeof scene->folder, "%s/cache", scene->root);
    assert_int_equal(mkdir(scene->folder, 0700), 0);
    scene->store =
        (FakeStore){.base = {.ops = &fake_ops, .base_uri = scene->uri}, .content = CONTENT};
    scene->cache.store = &scene->store.base;
    scene->cache.folder = scene->folder;
    scene->cache.bytes_max = 1 << 20;
    scene->arena = arena_new();
    *state = scene;
    return 0;
}

static int
teardown(void **state)
{
    Scene *scene = *state;
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", scene->root);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
    arena_free(scene->arena);
    free(scene);
    return 0;
}

/* The file by its path, if its content is that of the store; NULL. */
static const char *
find_path(Scene *scene, const char *uri, FileHold *into)
{
    Error err = {0};
    const char *path = NULL;
    char content[128] = "";

    if (!file_cache_path(&scene->cache, into, scene->arena, str_of(uri), &path, &err))
        return NULL;

    FILE *file = fopen(path, "re");

    if (file == NULL)
        return NULL;
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    return fclose(file) == 0 && strcmp(content, CONTENT) == 0 ? path : NULL;
}

static const char *
path_now(Scene *scene, const char *uri)
{
    AUTO_FILE_HOLD FileHold hold = {0};
    const char *path = find_path(scene, uri, &hold);

    assert_non_null(path);
    return path;
}

static void
fetched_once(void **state)
{
    Scene *scene = *state;
    const char *path = path_now(scene, URI);

    path_now(scene, URI);
    assert_int_equal(scene->store.fetched, 1);
    assert_string_equal(path, arena_printf(scene->arena, "%s/" KEY, scene->folder));
    assert_int_equal(scene->cache.fetched_bytes, sizeof CONTENT - 1);

    scene->store.content = NULL; /* what is kept needs no store */
    path_now(scene, URI);
}

/* As a backup brings it: other inodes and times, the same bytes. */
static void
a_copy_is_believed_by_its_content(void **state)
{
    Scene *scene = *state;
    const char *path = path_now(scene, URI);
    const char *other = arena_printf(scene->arena, "%s.other", path);

    for (int round = 0; round < 2; round++) {
        write_file(other, CONTENT, sizeof CONTENT - 1);
        assert_int_equal(rename(other, path), 0);
        path_now(scene, URI);
        path_now(scene, URI);
    }
    assert_int_equal(scene->store.fetched, 1);
}

static void
what_is_not_as_it_was_is_fetched_again(void **state)
{
    Scene *scene = *state;
    const char *path = path_now(scene, URI);
    const char *stamp = arena_printf(scene->arena, "%s.stamp", path);
    char flipped[] = CONTENT;
    char zeros[sizeof CONTENT - 1] = {0};
    static const char no_stamp[] = "whatever it is, it is longer than a stamp, and nothing like it";
    int fetched = 1;

    flipped[9] ^= 1;

    const struct {
        const char *path;
        const char *content;
        size_t size;
    } damages[] = {
        {path, flipped, sizeof flipped - 1},
        {path, zeros, sizeof zeros},
        {path, CONTENT, 20},
        {path, CONTENT "more", sizeof CONTENT + 3},
        {path, "", 0},
        {stamp, "", 0},
        {stamp, no_stamp, sizeof no_stamp - 1},
        {stamp, no_stamp, 12},
    };

    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        write_file(damages[i].path, damages[i].content, damages[i].size);
        path_now(scene, URI);
        assert_int_equal(scene->store.fetched, ++fetched);
    }
    assert_int_equal(unlink(stamp), 0); /* the process died before it was written */
    path_now(scene, URI);
    assert_int_equal(unlink(path), 0);
    path_now(scene, URI);
    assert_int_equal(scene->store.fetched, fetched + 2);
}

static void
what_is_put_is_kept(void **state)
{
    Scene *scene = *state;
    AUTO_FILE_HOLD FileHold hold = {0};
    Error err = {0};
    const char *part = arena_printf(scene->arena, "%s/part", scene->folder);

    write_file(part, CONTENT, sizeof CONTENT - 1);
    OK(file_cache_put(&scene->cache, KEY, part, &err));
    assert_int_equal(access(part, F_OK), -1);

    const char *path = path_now(scene, URI);

    assert_int_equal(scene->store.fetched, 0);
    assert_string_equal(path, file_cache_place(&scene->cache, scene->arena, KEY));

    OK(file_cache_remove(&scene->cache, KEY, &err));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(arena_printf(scene->arena, "%s.stamp", path), F_OK), -1);
    FAILS(file_cache_path(&scene->cache, &hold, scene->arena, STR(URI), &path, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, URI " is missing"));
}

/* An object's name may be longer than a file's. */
static void
long_keys_have_a_place_too(void **state)
{
    Scene *scene = *state;
    char name[300];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';

    const char *uris[] = {
        arena_printf(scene->arena, "s3://bucket/lake/%s", name),
        arena_printf(scene->arena, "s3://bucket/lake/%s/%.255s", name, name),
        arena_printf(scene->arena, "s3://bucket/lake/%.255s", name),
        arena_printf(scene->arena, "s3://bucket/lake/%.200s", name),
    };

    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++) {
        path_now(scene, uris[i]);
        path_now(scene, uris[i]);
        assert_int_equal(scene->store.fetched, (int) i + 1);
    }
}

static void
not_of_this_store(void **state)
{
    Scene *scene = *state;
    AUTO_FILE_HOLD FileHold hold = {0};
    Error err = {0};
    const char *path = NULL;

    FAILS(
        file_cache_path(&scene->cache, &hold, scene->arena, STR("s3://other/lake/x"), &path, &err),
        ERR_INPUT);
    assert_non_null(strstr(err.msg, "s3://other/lake/x is not below the warehouse"));
    FAILS(file_cache_path(&scene->cache, &hold, scene->arena, STR("s3://bucket/lake/../x"), &path,
                          &err),
          ERR_INPUT);
    assert_null(path);
}

/* As who may not: 65534 is nobody, where the test runs as root. */
static int
fails_with(Scene *scene, const char *uri, const char *words)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        FileHold hold = {0};
        Error err = {0};
        const char *path = NULL;
        bool set = geteuid() != 0 || setuid(65534) == 0;

        _exit(
            set && !file_cache_path(&scene->cache, &hold, scene->arena, str_of(uri), &path, &err) &&
                    err.kind == ERR_INPUT && strstr(err.msg, words) != NULL
                ? 0
                : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void
a_file_that_may_not_be_read_is_not_missing(void **state)
{
    Scene *scene = *state;
    const char *path = arena_printf(scene->arena, "%s/1.parquet", scene->folder);
    const char *base = arena_printf(scene->arena, "file://%s", scene->folder);

    scene->store.base.base_uri = arena_strdup(scene->arena, base);
    write_file(path, CONTENT, sizeof CONTENT - 1);
    assert_int_equal(chmod(scene->root, 0755), 0);
    assert_int_equal(chmod(scene->folder, 0755), 0);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(fails_with(scene, arena_printf(scene->arena, "%s/1.parquet", base),
                                "Permission denied\nhint: the user that walberg runs as"),
                     0);
    assert_int_equal(
        fails_with(scene, arena_printf(scene->arena, "%s/2.parquet", base), "2.parquet is missing"),
        0);
}

/* --- the bound ------------------------------------------------------------------------------- */

enum {
    SIZE = sizeof CONTENT - 1,
    NINE_STAY = 10 * SIZE - 1, /* a bound; a file is more than a tenth, so each is counted */
};

static const char *
uri_of(Scene *scene, int n)
{
    return arena_printf(scene->arena, "s3://bucket/lake/t/data/%d.parquet", n);
}

static const char *
place_of(Scene *scene, int n)
{
    return arena_printf(scene->arena, "%s/t/data/%d.parquet", scene->folder, n);
}

static const char *
stamp_of(Scene *scene, int n)
{
    return arena_printf(scene->arena, "%s.stamp", place_of(scene, n));
}

static bool
is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void
set_age(const char *path, int seconds)
{
    const struct timespec then = {.tv_sec = time(NULL) - seconds};

    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){then, then}, 0), 0);
}

static int
age(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return (int) (time(NULL) - status.st_mtim.tv_sec);
}

/* Files first to last, used one after the other, the first a day ago. */
static void
fetch_aged(Scene *scene, int first, int last)
{
    for (int n = first; n <= last; n++) {
        path_now(scene, uri_of(scene, n));
        set_age(stamp_of(scene, n), 86400 - n);
    }
}

static int
count_there(Scene *scene, int first, int last)
{
    int count = 0;

    for (int n = first; n <= last; n++) {
        assert_int_equal(is_there(place_of(scene, n)), is_there(stamp_of(scene, n)));
        count += is_there(place_of(scene, n));
    }
    return count;
}

static void
the_longest_unused_goes_first(void **state)
{
    Scene *scene = *state;

    scene->cache.bytes_max = NINE_STAY;
    fetch_aged(scene, 1, 9);
    assert_int_equal(count_there(scene, 1, 9), 9);
    path_now(scene, uri_of(scene, 1));
    path_now(scene, uri_of(scene, 3));
    for (int n = 10; n <= 12; n++)
        path_now(scene, uri_of(scene, n));
    assert_int_equal(count_there(scene, 1, 12), 9);
    assert_int_equal(count_there(scene, 4, 5) + is_there(place_of(scene, 2)), 0);

    assert_int_equal(scene->store.fetched, 12);
    path_now(scene, uri_of(scene, 2)); /* what went is fetched again */
    assert_int_equal(scene->store.fetched, 13);
    assert_int_equal(count_there(scene, 1, 12), 9);
}

/* What was there when the process began counts, too; later only every tenth of the bound. */
static void
counted_at_the_first_file_and_every_tenth(void **state)
{
    Scene *scene = *state;

    fetch_aged(scene, 0, 99);
    scene->cache.room = 0; /* as of a new process */
    scene->cache.bytes_max = INT64_C(50) * SIZE;
    path_now(scene, uri_of(scene, 100));
    assert_int_equal(count_there(scene, 0, 100), 45);
    assert_int_equal(count_there(scene, 56, 100), 45);
    fetch_aged(scene, 101, 105);
    assert_int_equal(count_there(scene, 0, 105), 50);
    fetch_aged(scene, 106, 106);
    assert_int_equal(count_there(scene, 0, 106), 45);
}

static void
used_is_noted_once_a_minute(void **state)
{
    Scene *scene = *state;
    const char *path = path_now(scene, uri_of(scene, 1));

    set_age(stamp_of(scene, 1), 50);
    path_now(scene, uri_of(scene, 1));
    assert_in_range(age(stamp_of(scene, 1)), 50, 55);
    set_age(stamp_of(scene, 1), 61);
    set_age(path, 100);
    path_now(scene, uri_of(scene, 1));
    assert_in_range(age(stamp_of(scene, 1)), 0, 5);
    set_age(stamp_of(scene, 1), -1000); /* the clock was set back */
    path_now(scene, uri_of(scene, 1));
    assert_in_range(age(stamp_of(scene, 1)), 0, 5);
    assert_in_range(age(path), 100, 105);
    assert_int_equal(scene->store.fetched, 1);
}

static void
what_is_written_is_left_alone(void **state)
{
    Scene *scene = *state;
    char large[100 * SIZE] = "";

    scene->cache.bytes_max = NINE_STAY;
    fetch_aged(scene, 1, 1);

    const char *part = arena_printf(scene->arena, "%s.0123456789abcdef.part", place_of(scene, 2));

    write_file(part, large, sizeof large);
    set_age(part, 86000);
    fetch_aged(scene, 3, 3);
    assert_true(is_there(part)); /* and it does not count */
    assert_int_equal(count_there(scene, 1, 3), 2);
    set_age(part, 87000); /* nobody writes to it any more */
    fetch_aged(scene, 4, 4);
    assert_false(is_there(part));
    assert_int_equal(count_there(scene, 1, 4), 3);
}

/* The folder may be on another disk. */
static void
a_link_to_the_folder_is_counted(void **state)
{
    Scene *scene = *state;
    const char *elsewhere = arena_printf(scene->arena, "%s/elsewhere", scene->root);

    assert_int_equal(rename(scene->folder, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, scene->folder), 0);
    scene->cache.bytes_max = NINE_STAY;
    fetch_aged(scene, 1, 20);
    assert_int_equal(count_there(scene, 1, 20), 9);
}

/* How often that is said, while these files come. */
static int
complaints(Scene *scene, int first, int last)
{
    const char *path = arena_printf(scene->arena, "%s/log", scene->root);
    int stderr_fd = dup(STDERR_FILENO);
    int log_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char log[10000] = "";
    int count = 0;

    assert_int_equal(dup2(log_fd, STDERR_FILENO), STDERR_FILENO);
    fetch_aged(scene, first, last);
    assert_int_equal(dup2(stderr_fd, STDERR_FILENO), STDERR_FILENO);
    assert_true(pread(log_fd, log, sizeof log - 1, 0) >= 0);
    assert_int_equal(close(log_fd) + close(stderr_fd), 0);
    for (const char *at = log; (at = strstr(at, "warn cannot evict")) != NULL; at++)
        count++;
    return count;
}

/* Each time that it begins. */
static void
growing_beyond_the_bound_is_said_once(void **state)
{
    Scene *scene = *state;
    const char *hold = arena_printf(scene->arena, "%s/cache.holds/x", scene->root);

    scene->cache.bytes_max = NINE_STAY;
    for (int first = 1; first <= 41; first += 40) {
        assert_int_equal(complaints(scene, first, first + 9), 0);
        assert_int_equal(symlink("x", hold), 0); /* it cannot be told what it holds */
        assert_int_equal(complaints(scene, first + 10, first + 19), 1);
        assert_int_equal(count_there(scene, first + 10, first + 19), 10);
        assert_int_equal(unlink(hold), 0);
        assert_int_equal(complaints(scene, first + 20, first + 20), 0);
        assert_int_equal(count_there(scene, 1, first + 20), 9);
    }
}

static void
what_has_no_stamp_goes_too(void **state)
{
    Scene *scene = *state;

    scene->cache.bytes_max = NINE_STAY;
    fetch_aged(scene, 1, 9);
    assert_int_equal(unlink(stamp_of(scene, 9)), 0);
    set_age(place_of(scene, 9), 100000);
    path_now(scene, uri_of(scene, 10));
    assert_false(is_there(place_of(scene, 9)));
    assert_int_equal(count_there(scene, 1, 10), 9);
}

static void
what_is_put_counts(void **state)
{
    Scene *scene = *state;
    Error err = {0};

    scene->cache.bytes_max = NINE_STAY;
    for (int n = 1; n <= 20; n++) {
        const char *part = arena_printf(scene->arena, "%s.part", place_of(scene, n));

        if (n == 1)
            path_now(scene, uri_of(scene, n)); /* makes the folders */
        write_file(part, CONTENT, SIZE);
        OK(file_cache_put(&scene->cache, arena_printf(scene->arena, "t/data/%d.parquet", n), part,
                          &err));
        set_age(stamp_of(scene, n), 1000 - n);
    }
    assert_int_equal(count_there(scene, 1, 20), 9);
    assert_int_equal(count_there(scene, 12, 20), 9);
}

static void
what_is_held_stays(void **state)
{
    Scene *scene = *state;
    FileHold hold = {0};

    scene->cache.bytes_max = 0;
    for (int n = 1; n <= 5; n++)
        assert_non_null(find_path(scene, uri_of(scene, n), &hold));
    path_now(scene, uri_of(scene, 6));
    path_now(scene, uri_of(scene, 7));
    assert_int_equal(count_there(scene, 1, 5), 5);
    assert_int_equal(count_there(scene, 6, 6), 0);
    file_hold_done(&hold);
    file_hold_done(&hold);
    path_now(scene, uri_of(scene, 8));
    assert_int_equal(count_there(scene, 1, 7), 0);
}

/* By another process, under another name of the folder, until it ends, however it ends. */
static void
what_others_hold_stays(void **state)
{
    Scene *scene = *state;
    int ready[2];
    int end[2];
    char byte = 0;

    assert_int_equal(pipe(ready) + pipe(end), 0);
    scene->cache.bytes_max = 0;

    pid_t child = fork();

    if (child == 0) {
        FileHold hold = {0};

        scene->cache.folder = arena_printf(scene->arena, "%s/../cache", scene->folder);
        byte = find_path(scene, uri_of(scene, 1), &hold) != NULL ? 1 : 0;
        _exit(write(ready[1], &byte, 1) == 1 && read(end[0], &byte, 1) == 1 ? 0 : 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    path_now(scene, uri_of(scene, 2));
    path_now(scene, uri_of(scene, 3));
    assert_true(is_there(place_of(scene, 1)));
    assert_false(is_there(place_of(scene, 2)));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    path_now(scene, uri_of(scene, 4));
    assert_false(is_there(place_of(scene, 1)));
    for (int i = 0; i < 2; i++)
        assert_int_equal(close(ready[i]) + close(end[i]), 0);
}

/* As somebody who removes the state folder leaves it. */
static void
the_folders_are_made_again(void **state)
{
    Scene *scene = *state;
    AUTO_FILE_HOLD FileHold hold = {0};
    char command[128];

    assert_non_null(find_path(scene, uri_of(scene, 1), &hold));
    snprintf(command, sizeof command, "rm -rf %s", scene->root);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
    assert_non_null(find_path(scene, uri_of(scene, 1), &hold));
    path_now(scene, uri_of(scene, 2));
}

/* What a process does beside others that do it, too: it reads two files, then looks whether the
 * first is still there. */
static bool
read_files(Scene *scene, int process)
{
    enum { ROUNDS = 400, FILES = 5 };

    for (int round = 0; round < ROUNDS; round++) {
        AUTO_FILE_HOLD FileHold hold = {0};
        const char *path = find_path(scene, uri_of(scene, round * (process + 1) % FILES), &hold);

        if (path == NULL ||
            find_path(scene, uri_of(scene, (round + process) % FILES), &hold) == NULL ||
            !is_there(path))
            return false;
    }
    return true;
}

static void
many_at_once(void **state)
{
    enum { PROCESSES = 4 };

    Scene *scene = *state;
    pid_t children[PROCESSES];

    scene->cache.bytes_max = 0;
    for (int p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        if (children[p] == 0)
            _exit(read_files(scene, p) ? 0 : 1);
        assert_true(children[p] > 0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;

        assert_int_equal(waitpid(children[p], &status, 0), children[p]);
        assert_int_equal(status, 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fetched_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_is_believed_by_its_content, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_as_it_was_is_fetched_again, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_put_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(long_keys_have_a_place_too, setup, teardown),
        cmocka_unit_test_setup_teardown(not_of_this_store, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_may_not_be_read_is_not_missing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_longest_unused_goes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(counted_at_the_first_file_and_every_tenth, setup, teardown),
        cmocka_unit_test_setup_teardown(used_is_noted_once_a_minute, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_written_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_to_the_folder_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(growing_beyond_the_bound_is_said_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_no_stamp_goes_too, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_put_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_held_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_others_hold_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(the_folders_are_made_again, setup, teardown),
        cmocka_unit_test_setup_teardown(many_at_once, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
