/* retry.h - the only place that sleeps: backoff between attempts at what may pass later. */
#ifndef PIPELINE_RETRY_H
#define PIPELINE_RETRY_H

#include "base/cancel.h"

#include <stdatomic.h>

typedef struct Retry {
    Cancel *cancel;
    const atomic_bool *stop; /* a wish to leave: no further attempt */
    int64_t give_up_ms;      /* since the first failure, 0: never */
    int64_t started_ms;      /* when the first attempt failed */
    int64_t delay_ms;
    int attempts;            /* that failed */
    void (*beat)(void *arg); /* called many times a second while it pauses; NULL: nothing to do */
    void *beat_arg;
} Retry;

/* A series of attempts begins. What the first one takes does not count as patience. */
Retry retry_begin(Cancel *cancel, const atomic_bool *stop, int64_t give_up_ms);

/* Called with the error of a failed attempt: true after a pause when it should be made again (the
 * error is logged as a warning, `what` names it); false when the error stands. */
bool retry_again(Retry *retry, const char *what, Error *err);

/* For how long attempts have failed; 0: none that retry_again() was told of. */
int64_t retry_failing_ms(const Retry *retry);

/* The attempt succeeded: the next series starts with a short pause again. */
void retry_reset(Retry *retry);

#endif
