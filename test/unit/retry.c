/* Patience is with what fails, not with what takes long. */
#include "testing.h"

#include <unistd.h>

#include "pipeline/retry.h"

enum { GIVE_UP_MS = 500, LONGER_US = 600 * 1000 };

/* How an attempt ended that took longer than there is patience: whether there is another one. */
static bool
another_one(Retry *retry)
{
    Error err;

    usleep(LONGER_US);
    (void) FAIL(&err, ERR_TRANSIENT, "the connection was cut");
    return retry_again(retry, "it was interrupted", &err);
}

static void
the_first_attempt_may_take_long(void **state)
{
    Cancel *cancel = cancel_new();
    atomic_bool stop = false;
    Retry retry = retry_begin(cancel, &stop, GIVE_UP_MS);

    (void) state;
    for (int series = 0; series < 2; series++) {
        assert_int_equal(retry_failing_ms(&retry), 0);
        assert_true(another_one(&retry));
        assert_in_range(retry_failing_ms(&retry), 1, 10000);
        assert_false(another_one(&retry));
        retry_reset(&retry);
    }
    cancel_free(cancel);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_attempt_may_take_long),
    };

    return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
