/* A process that dies at any point of its writing to a file store leaves whole objects: each the
 * old one or the new one. Dies here: _exit at the nth fault point, n = 1, 2, 3, ... until a run
 * gets through; and the same with the nth step failing. */
#include "testing.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "store/store.h"

enum { POINTS_MAX = 200 };

static char root[64];

/* What a child does to the store; its exit code says how far it came. */
static int
work(const char *fault)
{
    Store *store = NULL;
    StoreVersion version = {0};
    StoreOptions options = {0};
    AUTO_BUF Buf out = {0};
    Error err = {0};
    char upload[96];
    bool flag;

    setenv("WALBERG_FAULT", fault, 1); /* NOLINT(concurrency-mt-unsafe): one thread */
    snprintf(upload, sizeof upload, "%s.upload", root);

    FILE *file = fopen(upload, "wb");

    if (file == NULL || fputs("new file", file) < 0 || fclose(file) != 0)
        return 2;
    if (!store_open(root, &options, &store, &err))
        return 2;

    bool ok = store_put(store, "deep/er/put", STR("new put"), &err) &&
              store_put_absent(store, "m/absent", STR("new absent"), &flag, &err) &&
              store_get(store, "s/match", &out, &flag, &version, &err) &&
              store_put_match(store, "s/match", &version, STR("new match"), &flag, NULL, &err) &&
              store_put_file(store, "d/file", upload, &err);

    store_close(store);
    unlink(upload);
    return ok ? 0 : 1;
}

/* Old, new, or - where nothing was before - not there. */
static void
assert_whole(Store *store, const char *key, const char *before, const char *after)
{
    AUTO_BUF Buf out = {0};
    Error err = {0};
    bool found;

    OK(store_get(store, key, &out, &found, NULL, &err));
    if (!found)
        assert_null(before);
    else if (before == NULL || strcmp(buf_text(&out), before) != 0)
        assert_string_equal(buf_text(&out), after);
}

static void
reset(Store *store)
{
    Error err = {0};

    OK(store_put(store, "deep/er/put", STR("old put"), &err));
    OK(store_remove(store, "m/absent", &err));
    OK(store_put(store, "s/match", STR("old match"), &err));
    OK(store_put(store, "d/file", STR("old file"), &err));
}

static int
run_child(const char *mode, int n)
{
    char fault[32];
    int status = 0;

    snprintf(fault, sizeof fault, "%s:%d:store", mode, n);

    pid_t child = fork();

    if (child == 0)
        _exit(work(fault));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Returns how many points there were. */
static int
run_all(const char *mode, int expected_code, bool leaves_no_litter)
{
    AUTO_ARENA Arena *arena = arena_new();
    StoreOptions options = {0};
    Error err = {0};
    Store *store;

    OK(store_open(root, &options, &store, &err));
    for (int n = 1; n <= POINTS_MAX; n++) {
        reset(store);

        int code = run_child(mode, n);

        assert_whole(store, "deep/er/put", "old put", "new put");
        assert_whole(store, "m/absent", NULL, "new absent");
        assert_whole(store, "s/match", "old match", "new match");
        assert_whole(store, "d/file", "old file", "new file");
        if (leaves_no_litter) {
            const char *find = arena_printf(arena, "test -z \"$(find %s -name '*.tmp.*')\"", root);

            assert_int_equal(system(find), 0); /* NOLINT: a fixed command of this test */
        }
        if (code == 0) {
            store_close(store);
            return n - 1;
        }
        assert_int_equal(code, expected_code);
    }
    fail();
    return 0;
}

static void
death_leaves_whole_objects(void **state)
{
    (void) state;
#ifndef WALBERG_FAULT_POINTS
    skip();
#endif
    assert_true(run_all("crash", 137, false) > 20);
}

static void
failure_leaves_whole_objects_and_no_litter(void **state)
{
    (void) state;
#ifndef WALBERG_FAULT_POINTS
    skip();
#endif
    assert_true(run_all("fail", 1, true) > 20);
}

static int
make_root(void **state)
{
    (void) state;
    snprintf(root, sizeof root, "/tmp/walberg-crash-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int
remove_root(void **state)
{
    char command[256];

    (void) state;
    snprintf(command, sizeof command, "rm -rf '%s' '%s.upload'", root, root);
    return system(command); /* NOLINT: a fixed command of this test */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(death_leaves_whole_objects, make_root, remove_root),
        cmocka_unit_test_setup_teardown(failure_leaves_whole_objects_and_no_litter, make_root,
                                        remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
