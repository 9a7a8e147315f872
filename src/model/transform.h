/* transform.h - partition transforms: how the Iceberg spec and the settings spell them, and which
 * types they take. Iceberg spec, "Partition Transforms". What they give is in iceberg/transform.h.
 */
#ifndef MODEL_TRANSFORM_H
#define MODEL_TRANSFORM_H

#include "base/error.h"
#include "model/type.h"

typedef enum TransformKind {
    TRANSFORM_IDENTITY,
    TRANSFORM_BUCKET,
    TRANSFORM_TRUNCATE,
    TRANSFORM_YEAR,
    TRANSFORM_MONTH,
    TRANSFORM_DAY,
    TRANSFORM_HOUR,
    TRANSFORM_VOID,
} TransformKind;

typedef struct Transform {
    TransformKind kind;
    int width; /* number of buckets, or what a value is truncated to; 0 for the others */
} Transform;

/* "identity", "bucket[16]", "day": as metadata has it. False for one that the spec does not have.
 */
bool transform_parse(Str text, Transform *out_transform);
void transform_text(Transform transform, Buf *out);
bool transform_eq(Transform a, Transform b);
bool transform_takes(Transform transform, const Type *type);
/* "date, timestamp and timestamptz", for messages. */
const char *transform_takes_text(Transform transform);
/* year, month, day or hour: one of them says all that the coarser ones do. */
bool transform_is_time(Transform transform);

/* One item of the setting tables.PATTERN.partition. */
typedef struct PartitionTerm {
    Transform transform;
    Str column;
    Str text; /* as it was written */
} PartitionTerm;

/* "day(at)", "bucket[16](id)", "bucket(16, id)", "region"; a column that could be mistaken for
 * something else stands in double quotes, as in SQL. The message is about the text alone. */
bool partition_term_parse(Arena *arena, Str text, PartitionTerm *out_term, Error *err) WARN_UNUSED;

#endif
