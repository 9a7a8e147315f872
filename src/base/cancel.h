/* cancel.h - one token that says "we are leaving", readable by poll(2).
 *
 * Everything that waits, waits on its own descriptor and on cancel_fd(). Set once, never unset. */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include "base/error.h"

#include <stdint.h>

typedef struct Cancel Cancel;

Cancel *cancel_new(void);
void cancel_free(Cancel *cancel);
void cancel_set(Cancel *cancel); /* from any thread */
bool cancel_is_set(const Cancel *cancel);
/* Becomes readable when set, and stays so. */
int cancel_fd(const Cancel *cancel);

/* Sleep; false with ERR_CANCELED when the token was set before or meanwhile. */
bool cancel_sleep(Cancel *cancel, int64_t ms, Error *err) WARN_UNUSED;

/* Wait until fd is ready for `events` (poll's) or the time is over (-1: no limit). *out_ready is
 * false on a timeout; ERR_CANCELED when the token is set. */
bool cancel_poll(Cancel *cancel, int fd, short events, int64_t ms, bool *out_ready,
                 Error *err) WARN_UNUSED;

#endif
