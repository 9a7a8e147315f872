#include "base/cancel.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xalloc.h"

struct Cancel {
    atomic_bool set;
    int fd;
};

Cancel *
cancel_new(void)
{
    Cancel *cancel = xcalloc(1, sizeof *cancel);

    cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cancel->fd < 0) {
        perror("walberg: eventfd");
        abort();
    }
    return cancel;
}

void
cancel_free(Cancel *cancel)
{
    if (cancel == NULL)
        return;
    close(cancel->fd);
    free(cancel);
}

void
cancel_set(Cancel *cancel)
{
    atomic_store(&cancel->set, true);

    uint64_t one = 1;
    ssize_t written = write(cancel->fd, &one, sizeof one);

    (void) written; /* EAGAIN: it is readable already */
}

bool
cancel_is_set(const Cancel *cancel)
{
    return atomic_load(&cancel->set);
}

int
cancel_fd(const Cancel *cancel)
{
    return cancel->fd;
}

bool
cancel_poll(Cancel *cancel, int fd, short events, int64_t ms, bool *out_ready, Error *err)
{
    struct pollfd fds[2] = {{.fd = cancel->fd, .events = POLLIN}, {.fd = fd, .events = events}};
    int64_t deadline = ms < 0 ? INT64_MAX : clock_ms() + ms;

    for (;;) {
        int64_t left = ms < 0 ? -1 : deadline - clock_ms();
        int n = poll(fds, 2, left > INT_MAX ? INT_MAX : (int) (left < -1 ? 0 : left));

        if (n < 0 && errno != EINTR)
            return FAIL(err, ERR_TRANSIENT, "poll: %s", strerrordesc_np(errno));
        if (cancel_is_set(cancel))
            return FAIL(err, ERR_CANCELED, "canceled");
        if (n > 0 && fds[1].revents != 0) {
            *out_ready = true;
            return true;
        }
        if (ms >= 0 && clock_ms() >= deadline) {
            *out_ready = false;
            return true;
        }
    }
}

bool
cancel_sleep(Cancel *cancel, int64_t ms, Error *err)
{
    bool ready;

    return cancel_poll(cancel, -1, 0, ms, &ready, err);
}
