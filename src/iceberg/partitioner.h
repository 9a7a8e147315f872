/* partitioner.h - which partition each row of some columns belongs to.
 *
 * Partitions are numbered in the order in which they are first seen; tuples are packed as
 * iceberg/partition.h says. Pure. */
#ifndef ICEBERG_PARTITIONER_H
#define ICEBERG_PARTITIONER_H

#include "iceberg/partition.h"
#include "model/column.h"

typedef struct Partitioner Partitioner;

/* For rows of columns laid out like `fields`; the spec's source columns are found by field id, and
 * must be there. Both must outlive it. */
Partitioner *partitioner_new(const PartitionSpec *spec, const Field *fields, int field_count);
void partitioner_free(Partitioner *partitioner); /* NULL is fine */

/* The number of the partition of each row that is not dead (NULL: all live), into numbers[row]. */
bool partitioner_assign(Partitioner *partitioner, const Column *columns, size_t rows,
                        const uint8_t *dead, uint32_t *numbers, Error *err) WARN_UNUSED;

size_t partitioner_count(const Partitioner *partitioner);
/* Good until the next partitioner_assign(). */
Str partitioner_tuple(const Partitioner *partitioner, size_t number);

/* The folder of a partition: "at_day=2026-11-30/id_bucket_16=3", escaped as Java does it; values
 * that are too long for a path are cut. `types` as partition_result_types() gives them. */
void partition_path(const PartitionSpec *spec, const ResultType *types, Str tuple, Buf *out);

#endif
