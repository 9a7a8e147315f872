#include "pipeline/retry.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"

enum { DELAY_MIN_MS = 200, DELAY_MAX_MS = 30000 };

Retry
retry_begin(Cancel *cancel, const atomic_bool *stop, int64_t give_up_ms)
{
    return (Retry){
        .cancel = cancel, .stop = stop, .give_up_ms = give_up_ms, .delay_ms = DELAY_MIN_MS};
}

void
retry_reset(Retry *retry)
{
    retry->delay_ms = DELAY_MIN_MS;
    retry->attempts = 0;
}

int64_t
retry_failing_ms(const Retry *retry)
{
    return retry->attempts == 0 ? 0 : clock_ms() - retry->started_ms;
}

bool
retry_again(Retry *retry, const char *what, Error *err)
{
    uint32_t random;
    Error interrupted;

    if (err->kind != ERR_TRANSIENT || atomic_load(retry->stop) || cancel_is_set(retry->cancel))
        return false;
    if (retry->give_up_ms > 0 && retry_failing_ms(retry) >= retry->give_up_ms)
        return false;

    /* between half and the whole of the delay, so that many do not come back at once */
    random_bytes(&random, sizeof random);

    int64_t pause = retry->delay_ms / 2 + (int64_t) (random % (uint32_t) (retry->delay_ms / 2 + 1));

    if (retry->attempts++ == 0)
        retry->started_ms = clock_ms();
    log_warn(what, LOG_STR("error", err->msg), LOG_INT("attempt", retry->attempts),
             LOG_MS("retry_in", pause));
    for (int64_t left = pause; left > 0 && !atomic_load(retry->stop); left -= 100) {
        if (!cancel_sleep(retry->cancel, left < 100 ? left : 100, &interrupted))
            return false;
        if (retry->beat != NULL)
            retry->beat(retry->beat_arg);
    }
    retry->delay_ms = retry->delay_ms * 2 > DELAY_MAX_MS ? DELAY_MAX_MS : retry->delay_ms * 2;
    return !atomic_load(retry->stop);
}
