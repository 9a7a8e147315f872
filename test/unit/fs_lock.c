/* The lock file of a folder, of which somebody makes another one whenever it is waited for. */
#include "testing.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/arena.h"
#include "store/store.h"

enum { ROUNDS_MAX = 200, ROUND_US = 50000 };

typedef struct Swap {
    Store *store;
    atomic_bool ended;
    bool done;
    Error err;
} Swap;

static void *
swap(void *argument)
{
    Swap *at = argument;
    StoreVersion version = {.text = "any"};
    bool swapped;

    at->done =
        store_put_match(at->store, "f/object", &version, STR("new"), &swapped, NULL, &at->err);
    atomic_store(&at->ended, true);
    return NULL;
}

static int
make_lock(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    return fd;
}

/* Five times, then it is said. */
static void
a_lock_that_is_always_another_is_given_up(void **state)
{
    char root[] = "/tmp/walberg-lock-XXXXXX";
    char path[64];
    char command[64];
    Swap at = {0};
    pthread_t thread;
    bool flag;
    Error err = {0};

    (void) state;
    assert_non_null(mkdtemp(root));
    OK(store_open(root, &(StoreOptions){0}, &at.store, &err));
    OK(store_put_absent(at.store, "f/object", STR("old"), &flag, &err));
    snprintf(path, sizeof path, "%s/f/" STORE_RESERVED_PREFIX "lock", root);
    unlink(path);

    int held = make_lock(path);

    assert_int_equal(pthread_create(&thread, NULL, swap, &at), 0);
    for (int round = 0; round < ROUNDS_MAX && !atomic_load(&at.ended); round++) {
        int next;

        usleep(ROUND_US); /* it waits for the one that is held */
        unlink(path);
        next = make_lock(path);
        close(held);
        held = next;
    }
    close(held);
    pthread_join(thread, NULL);
    assert_false(at.done);
    assert_int_equal(at.err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(at.err.msg, "/f is removed again and again"));
    store_close(at.store);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0); /* NOLINT: a fixed command of this test */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_that_is_always_another_is_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
