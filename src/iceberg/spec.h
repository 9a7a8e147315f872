/* spec.h - partition specs: from settings, and from one to the next. Iceberg spec, "Partitioning",
 * "Partition Evolution". Pure. */
#ifndef ICEBERG_SPEC_H
#define ICEBERG_SPEC_H

#include "config/config.h"
#include "iceberg/metadata.h"

/* Property of a table: the setting that its spec follows, as partition_rule_text() has it. */
#define PARTITION_PROPERTY "walberg.partition"

/* What a table is to be partitioned by, as fields without ids; source ids are those of `schema`.
 * ERR_INPUT names the place of the setting, the table, the column and what would be allowed. */
bool partition_spec_resolve(Arena *arena, const PartitionRule *rule, const TableSchema *schema,
                            PartitionSpec *out_spec, Error *err) WARN_UNUSED;

/* The spec as far as it can live on with this schema: without fields whose column is gone, and with
 * those of the rule whose column has come (back) under its name. *out_lost: how many fields went.
 */
void partition_spec_follow(Arena *arena, const PartitionSpec *spec, const PartitionRule *rule,
                           const TableSchema *schema, PartitionSpec *out_spec, int *out_lost);

/* "day(at), bucket[16](id)": the rule as it is remembered in the table, however it was spelled. */
Str partition_rule_text(Arena *arena, const PartitionRule *rule);

/* The same of a spec whose source columns are all in the schema, as they are called there. */
Str partition_spec_text(Arena *arena, const PartitionSpec *spec, const TableSchema *schema);

/* A copy of metadata in which new files have the fields of `wanted`, whose ids do not count. As
 * Java does: an equal spec is used again; a field of the same source and transform keeps the id and
 * name that it had in any spec; others get ids that were never used. Names that a field of any spec
 * or another column of any schema has get a suffix. What did not change is shared. */
TableMetadata *metadata_set_spec(Arena *arena, const TableMetadata *metadata,
                                 const PartitionSpec *wanted);

/* After the schema changed: fields of any spec whose name a column took that they are not made of
 * (dropped and added again, say, or called at_day) get another one; their ids stay, by which they
 * are known. Iceberg's Java library cannot open a table of such specs: "Cannot create identity
 * partition sourced from different field in schema" (before 1.12 also if the field's own column is
 * gone). */
void metadata_free_spec_names(Arena *arena, TableMetadata *metadata);

/* Same sources and transforms in the same order. */
bool partition_spec_same(const PartitionSpec *a, const PartitionSpec *b);
PartitionSpec partition_spec_copy(Arena *arena, const PartitionSpec *spec);

/* The spec of new files. */
const PartitionSpec *metadata_default_spec(const TableMetadata *metadata);
/* A schema in which the spec's source columns have their types: the current one, or the newest that
 * still had columns which were dropped since. */
const IcebergSchema *metadata_spec_schema(const TableMetadata *metadata, const PartitionSpec *spec);

#endif
