/* bounds.h - lower and upper bound of the values of one leaf column, as they arrive. Iceberg spec,
 * "Appendix D: Single-value serialization"; a bound that cannot be given right is not given. Pure.
 */
#ifndef ICEBERG_BOUNDS_H
#define ICEBERG_BOUNDS_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/column.h"

/* Characters of a string, bytes of a binary (Java's default metrics mode, truncate(16)). */
enum { BOUND_LENGTH = 16 };

typedef union BoundNumber {
    int64_t i64;
    __int128 i128;
    double f64;
} BoundNumber;

/* The smallest (or largest) string so far: its first BOUND_LENGTH characters, and whether that is
 * not all of it. */
typedef struct BoundBytes {
    Buf prefix;
    bool cut;
} BoundBytes;

typedef struct Bounds {
    const Type *type;
    bool full;      /* keep strings whole */
    bool has_value; /* min and max mean something */
    int64_t nan_count;
    BoundNumber min;
    BoundNumber max;
    BoundBytes min_bytes;
    BoundBytes max_bytes;
    uint8_t uuid_ones; /* sign bits of the two halves seen set, and seen clear: see bounds.c */
    uint8_t uuid_zeros;
} Bounds;

void bounds_init(Bounds *bounds, const Type *type);
void bounds_done(Bounds *bounds);

/* Take in rows [0, rows) of a leaf column; mask[i] != 0 where row i counts and is not NULL. */
void bounds_add(Bounds *bounds, const Column *column, const uint8_t *mask, size_t rows);

/* Single-value bytes in the arena, STR_NULL when there is no bound. */
Str bounds_lower(const Bounds *bounds, Arena *arena);
Str bounds_upper(const Bounds *bounds, Arena *arena);

#endif
