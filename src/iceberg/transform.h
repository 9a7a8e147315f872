/* transform.h - what partition transforms give. Iceberg spec, "Partition Transforms", "Appendix B".
 * Pure. */
#ifndef ICEBERG_TRANSFORM_H
#define ICEBERG_TRANSFORM_H

#include "base/error.h"
#include "model/column.h"
#include "model/transform.h"

/* The value of a row that is not NULL, in Iceberg's binary single-value encoding, appended to out;
 * the type must be one that the transform takes. ERR_INPUT: a decimal that has no room for what it
 * is truncated to.
 *
 * Where numbers end, we do as Java does: an int or long wraps around when it is truncated below its
 * smallest value. Hours beyond 32 bits (the year 246953) stay at the limit. */
bool transform_apply(Transform transform, const Column *column, size_t row, Buf *out,
                     Error *err) WARN_UNUSED;

/* What truncate gives, for comparing: of a number that is not NULL, at the column's scale, where a
 * decimal always has room; and a view of a string or binary. */
__int128 transform_truncated_number(const Column *column, size_t row, int width);
Str transform_truncated_bytes(const Column *column, size_t row, int width);

/* The hash of the bucket transform, before it is brought into [0, N). */
uint32_t transform_hash(const Column *column, size_t row);

#endif
