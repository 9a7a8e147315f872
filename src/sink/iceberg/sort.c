/* sort.c - what the rows of a table's files are ordered by: its settings, also after its columns
 * changed, or what somebody else set while the settings say nothing.
 *
 * As with partitions (spec.c), the table property walberg.sort remembers the setting that the lake
 * follows.
 *
 * Rows are sorted where all rows of a file are in memory at once: a batch of the stream, and the
 * buffers of partitions. Files of the initial copy of a table without partitions are written while
 * their rows arrive, and are not sorted. data_file.sort_order_id is set on sorted files only. */
#include <assert.h>

#include "base/log.h"
#include "iceberg/sort_order.h"
#include "sink/iceberg/sink.h"

const SortOrder *
iceberg_sort_order(const IcebergTable *table)
{
    return table->pending.sort_order != NULL ? table->pending.sort_order
                                             : metadata_default_sort_order(table->metadata);
}

/* --- which order ----------------------------------------------------------------------------- */

/* From now on files are written in this order. */
static void
use_order(IcebergTable *table, const SortOrder *wanted)
{
    AUTO_ARENA Arena *arena = arena_new();
    Pending *pending = &table->pending;
    SortOrder copy = sort_order_copy(pending->arena, wanted);

    if (pending->sort_orders.len == 0)
        pending->sort_base_count = table->metadata->sort_order_count;
    BUF_PUSH(&pending->sort_orders, SortOrder, copy);

    const TableMetadata *shaped = iceberg_shaped_metadata(table, arena);

    pending->sort_order = ARENA_NEW(pending->arena, SortOrder);
    *pending->sort_order = sort_order_copy(pending->arena, metadata_default_sort_order(shaped));
}

/* Whether the setting is another than the one that the table follows. */
static bool
setting_changed(const IcebergTable *table, Str text)
{
    Str known = table->pending.sort_text;

    if (known.ptr == NULL)
        known = property_get(&table->metadata->properties, SORT_PROPERTY);
    if (table->sort->place == NULL)
        return known.len > 0;
    return known.ptr == NULL || !str_eq(known, text);
}

static bool
follow_setting(IcebergTable *table, Str text, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    SortOrder wanted;

    TRY(sort_order_resolve(arena, table->sort, table->base.schema, &wanted, err));
    if (!sort_order_same(&wanted, iceberg_sort_order(table))) {
        use_order(table, &wanted);
        log_info("sort order changed", LOG_STR("table", table->base.lake_name),
                 LOG_STR("sort", arena_str(arena, text).ptr));
    }
    table->pending.sort_text = arena_str(table->pending.arena, text);
    return true;
}

static void
follow_columns(IcebergTable *table)
{
    AUTO_ARENA Arena *arena = arena_new();
    SortOrder next;
    int lost;

    sort_order_follow(arena, iceberg_sort_order(table), table->sort, table->base.schema, &next,
                      &lost);
    if (sort_order_same(&next, iceberg_sort_order(table)))
        return;
    use_order(table, &next);
    if (lost > 0)
        log_warn("the table is no longer sorted by columns that are gone",
                 LOG_STR("table", table->base.lake_name), LOG_INT("fields", lost));
}

bool
iceberg_follow_sort(IcebergTable *table, bool columns_changed, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();

    if (table->sort == NULL) /* a table of our own */
        return true;

    Str text = sort_rule_text(arena, table->sort);
    bool shaped = table->base.source != NULL; /* else the setting may name columns yet to come */

    if (shaped && setting_changed(table, text))
        return follow_setting(table, text, err);
    if (columns_changed)
        follow_columns(table);
    return true;
}

/* --- rows in it ------------------------------------------------------------------------------ */

Sorter *
iceberg_sorter(const IcebergTable *table, const Field *fields, int field_count)
{
    return sorter_new(iceberg_sort_order(table), fields, field_count);
}

/* A value that is still to be read from the lake cannot be compared. */
static bool
is_patched(const Sorter *sorter, const Batch *batch)
{
    for (size_t i = 0; i < BUF_COUNT(&batch->patches, Patch); i++)
        if (sorter_uses(sorter, BUF_AT(&batch->patches, Patch, i).column))
            return true;
    return false;
}

static const uint32_t *
sort_live_rows(Sorter *sorter, const Batch *batch, Arena *arena)
{
    uint32_t *rows = ARENA_ARRAY(arena, uint32_t, batch->live_rows);
    size_t count = 0;

    for (size_t row = 0; row < batch->rows; row++)
        if (batch->live_rows == batch->rows || !BUF_AT(&batch->dead, uint8_t, row))
            rows[count++] = (uint32_t) row;
    assert(count == batch->live_rows);
    sorter_begin(sorter, batch->columns, batch->rows);
    sorter_sort(sorter, rows, count);
    return rows;
}

const uint32_t *
iceberg_sorted_rows(const IcebergTable *table, const Batch *batch, Arena *arena)
{
    Sorter *sorter =
        iceberg_sorter(table, iceberg_table_fields(table, arena), batch->schema->column_count);
    const uint32_t *rows = NULL;

    if (sorter != NULL && !is_patched(sorter, batch) && iceberg_patches_fit(table, batch))
        rows = sort_live_rows(sorter, batch, arena);
    sorter_free(sorter);
    return rows;
}
