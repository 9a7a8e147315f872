/* test_stores.h - the stores that contract tests run against: a fresh folder, always, and a fresh
 * prefix of an S3 bucket when these are set (test/lib/weed sets them):
 *
 *   WALBERG_TEST_S3_ENDPOINT, _KEY, _SECRET, _BUCKET   as in StoreOptions; path style
 *   WALBERG_TEST_S3_REGION                             optional
 *   WALBERG_TEST_S3_CA                                 optional: CA file for an https endpoint
 *   WALBERG_TEST_S3_VHOST                              optional: endpoint for virtual-host style
 *   WALBERG_TEST_S3_ROLE                               optional: a role that STS lets us assume */
#ifndef TEST_STORES_H
#define TEST_STORES_H

#include "testing.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/store.h"

typedef struct TestStore {
    const char *name; /* "file" or "s3" */
    char location[512];
    StoreOptions options;
    Store *store;
} TestStore;

static inline const char *
test_env(const char *name)
{
    return getenv(name); /* NOLINT(concurrency-mt-unsafe): never set here */
}

static inline bool
test_has_s3(void)
{
    return test_env("WALBERG_TEST_S3_ENDPOINT") != NULL;
}

static inline StoreOptions
test_s3_options(void)
{
    return (StoreOptions){.endpoint = test_env("WALBERG_TEST_S3_ENDPOINT"),
                          .region = test_env("WALBERG_TEST_S3_REGION"),
                          .path_style = true,
                          .access_key_id = test_env("WALBERG_TEST_S3_KEY"),
                          .secret_access_key = test_env("WALBERG_TEST_S3_SECRET"),
                          .ca_file = test_env("WALBERG_TEST_S3_CA"),
                          .retry_ms_max = 20000};
}

/* For a test's setup: *state is a TestStore with its name set; opens it on an empty place. */
static inline int
test_store_open(void **state)
{
    TestStore *test = *state;
    Error err = {0};
    char id[37];

    random_uuid(id);
    if (strcmp(test->name, "s3") == 0) {
        test->options = test_s3_options();
        snprintf(test->location, sizeof test->location, "s3://%s/test %s",
                 test_env("WALBERG_TEST_S3_BUCKET"), id);
    } else {
        const char *tmp = test_env("TMPDIR");

        test->options = (StoreOptions){0};
        snprintf(test->location, sizeof test->location, "%s/walberg test %s",
                 tmp == NULL ? "/tmp" : tmp, id);
    }
    OK(store_open(test->location, &test->options, &test->store, &err));
    return 0;
}

static inline int
test_store_close(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TestStore *test = *state;
    StoreObject *objects;
    size_t count;
    Error err = {0};

    if (test->store == NULL)
        return 0;
    OK(store_list(test->store, "", arena, &objects, &count, &err));
    for (size_t i = 0; i < count; i++)
        OK(store_remove(test->store, objects[i].key.ptr, &err));
    store_close(test->store);
    test->store = NULL;
    if (strcmp(test->name, "file") == 0) {
        AUTO_FREE char *command = NULL;

        if (asprintf(&command, "rm -rf '%s'", test->location) < 0 ||
            system(command) != 0) /* NOLINT: the location is ours */
            return -1;
    }
    return 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline void
assert_content(Store *store, const char *key, Str expected)
{
    AUTO_BUF Buf out = {0};
    Error err = {0};
    bool found;

    OK(store_get(store, key, &out, &found, NULL, &err));
    assert_true(found);
    assert_int_equal(out.len, expected.len);
    assert_true(str_eq(buf_view(&out), expected));
}

static inline void
put_all(Store *store, const char *const *keys, size_t count)
{
    Error err = {0};

    for (size_t i = 0; i < count; i++)
        OK(store_put(store, keys[i], str_of(keys[i]), &err));
}

static inline void
assert_listed(Store *store, const char *prefix, const char *const *keys, size_t expected)
{
    AUTO_ARENA Arena *arena = arena_new();
    StoreObject *objects;
    Error err = {0};
    size_t count;

    OK(store_list(store, prefix, arena, &objects, &count, &err));
    for (size_t i = 0; i < count && i < expected; i++)
        assert_string_equal(objects[i].key.ptr, keys[i]);
    assert_int_equal(count, expected);
}

/* Run every case against every store there is; one TAP plan for all. */
typedef struct TestCase {
    const char *name;
    CMUnitTestFunction run;
    const char *only; /* name of the one store it is for; NULL: all */
} TestCase;

static inline void
test_s3_is_not_there(void **state)
{
    (void) state;
    print_message("# WALBERG_TEST_S3_ENDPOINT is not set: no S3 service to test against\n");
    skip();
}

static inline int
test_run_on_stores(const TestCase *cases, size_t count)
{
    static TestStore stores[] = {{.name = "file"}, {.name = "s3"}};
    struct CMUnitTest *tests = xcalloc(2 * count + 1, sizeof *tests);
    size_t n = 0;

    for (size_t s = 0; s < 2; s++) {
        if (s == 1 && !test_has_s3()) {
            tests[n++] = (struct CMUnitTest){.name = "s3", .test_func = test_s3_is_not_there};
            break;
        }
        for (size_t i = 0; i < count; i++) {
            AUTO_BUF Buf name = {0};

            if (cases[i].only != NULL && strcmp(cases[i].only, stores[s].name) != 0)
                continue;
            buf_printf(&name, "%s: %s", stores[s].name, cases[i].name);
            tests[n++] = (struct CMUnitTest){.name = xstrdup(buf_text(&name)),
                                             .test_func = cases[i].run,
                                             .setup_func = test_store_open,
                                             .teardown_func = test_store_close,
                                             .initial_state = &stores[s]};
        }
    }

    int failed = _cmocka_run_group_tests("stores", tests, n, NULL, NULL);

    for (size_t i = 0; i < n; i++)
        if (strcmp(tests[i].name, "s3") != 0)
            free((void *) (uintptr_t) tests[i].name);
    free(tests);
    return failed;
}

#endif
