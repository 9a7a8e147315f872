#include "iceberg/metadata.h"
#include "iceberg/sort_order.h"
#include "iceberg/spec.h"

#include <assert.h>
#include <stdlib.h>

/* Iceberg spec, "Partition Evolution": the first partition field gets 1000 */
enum { LAST_PARTITION_ID_NONE = 999 };

TableMetadata *
metadata_create(Arena *arena, const TableCreate *create)
{
    TableMetadata *metadata = ARENA_NEW(arena, TableMetadata);

    assert(create->format_version == 2 || create->format_version == 3);
    *metadata = (TableMetadata){
        .format_version = create->format_version,
        .table_uuid = arena_str(arena, str_of(create->uuid)),
        .location = arena_str(arena, str_of(create->location)),
        .last_updated_ms = create->now_ms,
        .last_column_id = iceberg_schema_last_id(create->schema),
        .schema_count = 1,
        .schemas = ARENA_NEW(arena, IcebergSchema),
        .current_schema_id = create->schema->schema_id,
        .spec_count = 1,
        .specs = ARENA_NEW(arena, PartitionSpec),
        .last_partition_id = LAST_PARTITION_ID_NONE,
        .sort_order_count = 1, /* unsorted */
        .sort_orders = ARENA_NEW(arena, SortOrder),
    };
    metadata->schemas[0] = *create->schema;
    if (create->spec != NULL && create->spec->field_count > 0) {
        *metadata = *metadata_set_spec(arena, metadata, create->spec);
        metadata->spec_count = 1; /* the first spec, not one after an empty one */
        metadata->specs[0] = metadata->specs[1];
        metadata->specs[0].spec_id = metadata->default_spec_id = 0;
    }
    if (create->sort_order != NULL)
        *metadata = *metadata_set_sort_order(arena, metadata, create->sort_order);
    for (size_t i = 0; i < create->properties.count; i++)
        metadata->properties =
            property_set(arena, &metadata->properties, create->properties.items[i].key,
                         create->properties.items[i].value);
    return metadata;
}

TableMetadata *
metadata_upgrade(Arena *arena, const TableMetadata *metadata)
{
    TableMetadata *out = ARENA_NEW(arena, TableMetadata);

    assert(metadata->format_version < 3);
    *out = *metadata;
    out->format_version = 3;
    out->next_row_id = 0;
    return out;
}

const IcebergSchema *
metadata_find_schema(const TableMetadata *metadata, int schema_id)
{
    for (size_t i = 0; i < metadata->schema_count; i++)
        if (metadata->schemas[i].schema_id == schema_id)
            return &metadata->schemas[i];
    return NULL;
}

const PartitionSpec *
metadata_find_spec(const TableMetadata *metadata, int spec_id)
{
    for (size_t i = 0; i < metadata->spec_count; i++)
        if (metadata->specs[i].spec_id == spec_id)
            return &metadata->specs[i];
    return NULL;
}

const SortOrder *
metadata_find_sort_order(const TableMetadata *metadata, int order_id)
{
    for (size_t i = 0; i < metadata->sort_order_count; i++)
        if (metadata->sort_orders[i].order_id == order_id)
            return &metadata->sort_orders[i];
    return NULL;
}

const IcebergSchema *
metadata_current_schema(const TableMetadata *metadata)
{
    const IcebergSchema *schema = metadata_find_schema(metadata, metadata->current_schema_id);

    assert(schema != NULL); /* metadata_parse() checks it */
    return schema;
}

const Snapshot *
metadata_find_snapshot(const TableMetadata *metadata, int64_t snapshot_id)
{
    for (size_t i = metadata->snapshot_count; i-- > 0;)
        if (metadata->snapshots[i].snapshot_id == snapshot_id)
            return &metadata->snapshots[i];
    return NULL;
}

const Snapshot *
metadata_current_snapshot(const TableMetadata *metadata)
{
    if (metadata->current_snapshot_id == 0)
        return NULL;
    return metadata_find_snapshot(metadata, metadata->current_snapshot_id);
}

/* Index of the first item whose key is not before `key`. */
static size_t
property_place(const PropertyList *list, Str key)
{
    size_t low = 0;
    size_t high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (str_cmp(list->items[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

Str
property_get(const PropertyList *list, const char *key)
{
    size_t at = property_place(list, str_of(key));

    if (at < list->count && str_eqc(list->items[at].key, key))
        return list->items[at].value;
    return STR_NULL;
}

PropertyList
property_set(Arena *arena, const PropertyList *list, Str key, Str value)
{
    size_t at = property_place(list, key);
    size_t behind = at < list->count && str_eq(list->items[at].key, key) ? at + 1 : at;

    assert(at <= list->count && (list->count == 0 || list->items != NULL));

    PropertyList out = {.items = ARENA_ARRAY(arena, Property, list->count + 1)};

    for (size_t i = 0; i < at; i++)
        out.items[out.count++] = list->items[i];
    if (value.ptr != NULL)
        out.items[out.count++] =
            (Property){.key = arena_str(arena, key), .value = arena_str(arena, value)};
    for (size_t i = behind; i < list->count; i++)
        out.items[out.count++] = list->items[i];
    return out;
}
