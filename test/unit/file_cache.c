/* Files of a remote store, kept on a disk that bends them. The store is a table of functions here:
 * one object, and how often it was asked for it. */
#include "testing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    if (*out_found)
        write_file(path, fake->content, strlen(fake->content));
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
    char folder[64];
} Scene;

static int
setup(void **state)
{
    Scene *scene = calloc(1, sizeof *scene);

    assert_non_null(scene);
    snprintf(scene->uri, sizeof scene->uri, "s3://bucket/lake");
    snprintf(scene->folder, sizeof scene->folder, "/tmp/walberg-file-cache-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    scene->store =
        (FakeStore){.base = {.ops = &fake_ops, .base_uri = scene->uri}, .content = CONTENT};
    scene->cache.store = &scene->store.base;
    scene->cache.folder = scene->folder;
    scene->arena = arena_new();
    *state = scene;
    return 0;
}

static int
teardown(void **state)
{
    Scene *scene = *state;
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", scene->folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
    arena_free(scene->arena);
    free(scene);
    return 0;
}

/* The file by its path, whose content is that of the store. */
static const char *
path_now(Scene *scene, const char *uri)
{
    Error err = {0};
    const char *path = NULL;
    char content[128] = "";

    OK(file_cache_path(&scene->cache, scene->arena, str_of(uri), &path, &err));

    FILE *file = fopen(path, "re");

    assert_non_null(file);
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_string_equal(content, CONTENT);
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
    FAILS(file_cache_path(&scene->cache, scene->arena, STR(URI), &path, &err), ERR_INPUT);
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
    Error err = {0};
    const char *path = NULL;

    FAILS(file_cache_path(&scene->cache, scene->arena, STR("s3://other/lake/x"), &path, &err),
          ERR_INPUT);
    assert_non_null(strstr(err.msg, "s3://other/lake/x is not below the warehouse"));
    FAILS(file_cache_path(&scene->cache, scene->arena, STR("s3://bucket/lake/../x"), &path, &err),
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
        Error err = {0};
        const char *path = NULL;
        bool set = geteuid() != 0 || setuid(65534) == 0;

        _exit(set && !file_cache_path(&scene->cache, scene->arena, str_of(uri), &path, &err) &&
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
    assert_int_equal(chmod(scene->folder, 0755), 0);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(fails_with(scene, arena_printf(scene->arena, "%s/1.parquet", base),
                                "Permission denied\nhint: the user that walberg runs as"),
                     0);
    assert_int_equal(
        fails_with(scene, arena_printf(scene->arena, "%s/2.parquet", base), "2.parquet is missing"),
        0);
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
