/* clock.h - the two clocks. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Monotonic milliseconds, for intervals and timeouts. */
int64_t clock_ms(void);

/* Wall clock: microseconds since 1970-01-01 UTC. */
int64_t clock_wall_us(void);

/* "2026-11-30T10:00:00.123Z" from microseconds since 1970; out holds at least 32 bytes. */
void clock_format(int64_t wall_us, char *out, size_t size);

#endif
