/* spec.c - how a table is partitioned: by its settings, and after its columns changed.
 *
 * The table property walberg.partition remembers the setting that the lake follows. So a spec
 * changes when the setting does, and neither a renamed column (the setting still has the old name)
 * nor a spec that somebody else set is undone by a restart. */
#include "iceberg/spec.h"
#include "base/log.h"
#include "iceberg/partition.h"
#include "iceberg/sort_order.h"
#include "sink/iceberg/sink.h"

const PartitionSpec *
iceberg_spec(const IcebergTable *table)
{
    return table->pending.spec != NULL ? table->pending.spec
                                       : metadata_default_spec(table->metadata);
}

bool
iceberg_is_partitioned(const IcebergTable *table)
{
    return iceberg_spec(table)->field_count > 0;
}

/* text: STR_NULL, as it is. */
static const TableMetadata *
with_property(Arena *arena, const TableMetadata *metadata, const char *key, Str text)
{
    TableMetadata *copy;

    if (text.ptr == NULL)
        return metadata;
    copy = ARENA_NEW(arena, TableMetadata);
    *copy = *metadata;
    copy->properties = property_set(arena, &metadata->properties, str_of(key), text);
    return copy;
}

const TableMetadata *
iceberg_shaped_metadata(const IcebergTable *table, Arena *arena)
{
    const Pending *pending = &table->pending;
    const TableMetadata *shaped = table->metadata;

    if (shaped->format_version < table->sink->config->iceberg_format_version)
        shaped = metadata_upgrade(arena, shaped);
    for (size_t i = 0; i < BUF_COUNT(&pending->earlier_fits, SchemaFit); i++)
        shaped = metadata_set_schema(arena, shaped, &BUF_AT(&pending->earlier_fits, SchemaFit, i));
    if (pending->fit.next != NULL)
        shaped = metadata_set_schema(arena, shaped, &pending->fit);
    for (size_t i = 0; i < BUF_COUNT(&pending->specs, PartitionSpec); i++)
        shaped = metadata_set_spec(arena, shaped, &BUF_AT(&pending->specs, PartitionSpec, i));
    for (size_t i = 0; i < BUF_COUNT(&pending->sort_orders, SortOrder); i++)
        shaped =
            metadata_set_sort_order(arena, shaped, &BUF_AT(&pending->sort_orders, SortOrder, i));
    shaped = with_property(arena, shaped, PARTITION_PROPERTY, pending->partition_text);
    return with_property(arena, shaped, SORT_PROPERTY, pending->sort_text);
}

/* From now on files are written under this spec. */
static void
use_spec(IcebergTable *table, const PartitionSpec *wanted)
{
    AUTO_ARENA Arena *arena = arena_new();
    Pending *pending = &table->pending;
    PartitionSpec copy = partition_spec_copy(pending->arena, wanted);

    if (pending->specs.len == 0)
        pending->spec_base_count = table->metadata->spec_count;
    BUF_PUSH(&pending->specs, PartitionSpec, copy);

    const TableMetadata *shaped = iceberg_shaped_metadata(table, arena);

    pending->spec = ARENA_NEW(pending->arena, PartitionSpec);
    *pending->spec = partition_spec_copy(pending->arena, metadata_default_spec(shaped));
}

/* Whether the setting is another than the one that the table follows. */
static bool
setting_changed(const IcebergTable *table, Str text)
{
    Str known = table->pending.partition_text;

    if (known.ptr == NULL)
        known = property_get(&table->metadata->properties, PARTITION_PROPERTY);
    if (table->partition->place == NULL)
        return known.len > 0;
    return known.ptr == NULL || !str_eq(known, text);
}

static bool
follow_setting(IcebergTable *table, Str text, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PartitionSpec wanted;

    TRY(partition_spec_resolve(arena, table->partition, table->base.schema, &wanted, err));
    if (!partition_spec_same(&wanted, iceberg_spec(table))) {
        use_spec(table, &wanted);
        log_info("partitions changed", LOG_STR("table", table->base.lake_name),
                 LOG_STR("partition", arena_str(arena, text).ptr));
    }
    table->pending.partition_text = arena_str(table->pending.arena, text);
    return true;
}

/* Iceberg spec, "Partition Evolution": a column that a field of the spec is made of may only go
 * together with the field. */
static void
follow_columns(IcebergTable *table)
{
    AUTO_ARENA Arena *arena = arena_new();
    PartitionSpec next;
    int lost;

    partition_spec_follow(arena, iceberg_spec(table), table->partition, table->base.schema, &next,
                          &lost);
    if (partition_spec_same(&next, iceberg_spec(table)))
        return;
    use_spec(table, &next);
    if (lost > 0)
        log_warn("the table is no longer partitioned by columns that are gone",
                 LOG_STR("table", table->base.lake_name), LOG_INT("fields", lost));
}

/* As `check` says it. Once: a table is also loaded again after every failed commit. */
static void
tell_old_names(IcebergTable *table)
{
    AUTO_ARENA Arena *arena = arena_new();
    PartitionSpec wanted;
    Error err;

    if (table->partition_told ||
        partition_spec_resolve(arena, table->partition, table->base.schema, &wanted, &err))
        return;
    table->partition_told = true;
    err.msg[strcspn(err.msg, "\n")] = '\0';
    log_warn(
        "the setting of partitions is of before columns changed; the lake goes on",
        LOG_STR("table", table->base.lake_name), LOG_STR("setting", err.msg),
        LOG_VIEW("partition", partition_spec_text(arena, iceberg_spec(table), table->base.schema)));
}

bool
iceberg_follow_spec(IcebergTable *table, bool columns_changed, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();

    if (table->partition == NULL) /* a table of our own */
        return true;

    Str text = partition_rule_text(arena, table->partition);
    bool shaped = table->base.source != NULL; /* else the setting may name columns yet to come */

    if (shaped && setting_changed(table, text))
        return follow_setting(table, text, err);
    if (columns_changed)
        follow_columns(table);
    if (shaped)
        tell_old_names(table);
    return true;
}

bool
iceberg_check_spec(const IcebergTable *table, Arena *arena, ResultType **out_types, Error *err)
{
    const PartitionSpec *spec = iceberg_spec(table);
    const TableMetadata *metadata = iceberg_shaped_metadata(table, arena);
    Transform transform;

    for (int i = 0; i < spec->field_count; i++)
        if (!transform_parse(spec->fields[i].transform, &transform))
            return FAIL(err, ERR_INPUT,
                        "the lake table is partitioned by %.*s, which walberg does not know\n"
                        "hint: set tables.%s.partition",
                        STR_ARG(spec->fields[i].transform), table->base.schema->qualified);
    return partition_result_types(arena, metadata_spec_schema(metadata, spec), spec, out_types,
                                  err);
}
