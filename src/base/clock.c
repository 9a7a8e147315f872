#include "base/clock.h"

#include <stdio.h>
#include <time.h>

int64_t
clock_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t
clock_wall_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void
clock_format(int64_t wall_us, char *out, size_t size)
{
    time_t seconds = (time_t) (wall_us / 1000000);
    int ms = (int) (wall_us % 1000000 / 1000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ms);
}
