/* partition.h - partition tuples, as manifests carry them. Iceberg spec, "Partitioning", "Partition
 * Transforms", "Appendix D: Single-value serialization".
 *
 * A tuple travels packed into one Str, so that equal tuples are equal bytes:
 *
 *   per field of the spec, in its order:  length (4 bytes, little-endian; 0xFFFFFFFF = null) |
 * value
 *
 * Values are in Iceberg's binary single-value encoding, which does not care how wide the writer's
 * Avro type was. Pure. */
#ifndef ICEBERG_PARTITION_H
#define ICEBERG_PARTITION_H

#include "avro/ocf.h"
#include "iceberg/metadata.h"

/* Length of a null value in a packed tuple. */
#define PARTITION_NULL UINT32_MAX

/* What a transform gives. */
typedef enum ResultKind {
    RESULT_BOOLEAN,
    RESULT_INT,
    RESULT_LONG,
    RESULT_FLOAT,
    RESULT_DOUBLE,
    RESULT_DATE,
    RESULT_TIME,
    RESULT_TIMESTAMP,
    RESULT_TIMESTAMPTZ,
    RESULT_TIMESTAMP_NS,
    RESULT_TIMESTAMPTZ_NS,
    RESULT_DECIMAL,
    RESULT_STRING,
    RESULT_UUID,
    RESULT_FIXED,
    RESULT_BINARY,
} ResultKind;

typedef struct ResultType {
    ResultKind kind;
    int precision; /* RESULT_DECIMAL */
    int scale;
    int size; /* RESULT_FIXED: bytes; RESULT_DECIMAL: bytes of its Avro fixed */
} ResultType;

/* One per field of the spec. ERR_INPUT when a transform is unknown, or its source is not in the
 * schema or of a type that cannot be partitioned by: then manifests of the spec cannot be written.
 */
bool partition_result_types(Arena *arena, const IcebergSchema *schema, const PartitionSpec *spec,
                            ResultType **out_types, Error *err) WARN_UNUSED;

/* STR_NULL values are null. */
Str partition_pack(Arena *arena, const Str *values, int count);
/* False when it does not hold exactly `count` values. */
bool partition_unpack(Str packed, Str *out_values, int count);

/* The tuple with the widths that its types have now: an int that became a long since it was written
 * is the same partition. The tuple itself when nothing is to do, or when it is not of the spec. */
Str partition_widen(Arena *arena, const ResultType *types, int count, Str tuple);

/* --- To and from manifests ----------------------------------------------------------------- */

/* The type of a manifest's r102 field, JSON of an optional Avro type. */
void partition_avro_type(const ResultType *type, int field_id, Buf *out);
/* A field name that Avro accepts: other characters become _x and their code, as Java writes it. */
void partition_avro_name(Str name, Buf *out);
/* A value (STR_NULL: null) as the optional Avro type above. */
void partition_put_avro(Buf *out, const ResultType *type, Str value);
/* Read a whole r102 record of any writer. */
bool partition_read_avro(Arena *arena, OcfInput *in, const OcfType *record, Str *out_packed,
                         Error *err) WARN_UNUSED;

/* Order of two values of a type, as readers compare them with bounds. */
int partition_compare(const ResultType *type, Str a, Str b);
bool partition_is_nan(const ResultType *type, Str value);

#endif
