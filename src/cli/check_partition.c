/* check_partition.c - the settings of how a lake table is partitioned and sorted.
 *
 * It names columns as they are called now. `run` takes it on once and remembers it in the table, by
 * field id from then on: a column that was renamed since is no reason to stop
 * (sink/iceberg/spec.c). So a name that the source does not have is wrong only when the lake did
 * not take it on. */
#include "cli/check.h"

#include <unistd.h>

#include "catalog/catalog.h"
#include "cli/connect.h"
#include "iceberg/evolve.h"
#include "iceberg/sort_order.h"
#include "iceberg/spec.h"
#include "pipeline/state.h"

typedef struct LakeEnds {
    Store *store;
    Catalog *catalog;
} LakeEnds;

static void
lake_ends_done(LakeEnds *ends)
{
    catalog_close(ends->catalog);
    store_close(ends->store);
}

/* *out_found = false: there is no lake yet, and it is not made by looking. */
static bool
open_lake(const PartitionCheck *check, LakeEnds *ends, bool *out_found, Error *err)
{
    const char *folder = check_local_path(check->arena, check->config->warehouse, "");

    *out_found = folder == NULL || access(folder, F_OK) == 0;
    if (!*out_found)
        return true;
    TRY(cli_open_warehouse(check->config, 0, &ends->store, err));
    return catalog_open(check->config->catalog_type, ends->store, &ends->catalog, err);
}

/* A table that was renamed keeps its name in the lake. */
static bool
lake_name(const PartitionCheck *check, Store *store, const SourceTable *table, TableName *out_name,
          Error *err)
{
    Arena *arena = check->arena;
    AUTO_BUF Buf text = {0};
    const char *key = arena_printf(arena, "_walberg/%s.json", check->config->pipeline);
    Str schema_name = table->schema_name;
    Str table_name = table->table_name;
    PipelineState state = {0};
    bool found;

    TRY(store_get(store, key, &text, &found, NULL, err));
    if (found)
        TRY(state_parse(arena, buf_view(&text), &state, err));

    const StateTable *known = state_find_oid(&state, table->relid);

    if (known != NULL) {
        schema_name = str_of(known->schema_name);
        table_name = str_of(known->table_name);
    }

    TableRule rule = config_table_rule(check->config, arena, schema_name, table_name);

    out_name->space = config_namespace(check->config, arena, check->database, schema_name);
    out_name->name = rule.name != NULL ? str_of(rule.name) : table_name;
    return true;
}

/* *out_metadata: NULL when there is no such table. */
static bool
load_metadata(const PartitionCheck *check, const SourceTable *table, TableMetadata **out_metadata,
              Error *err)
{
    AUTO(lake_ends_done) LakeEnds ends = {0};
    CatalogTable loaded;
    TableName name;
    bool found;

    *out_metadata = NULL;
    TRY(open_lake(check, &ends, &found, err));
    if (!found)
        return true;
    TRY(lake_name(check, ends.store, table, &name, err));
    TRY(catalog_load(ends.catalog, check->arena, &name, &loaded, &found, err));
    return !found || metadata_parse(check->arena, loaded.metadata, out_metadata, err);
}

/* What the lake's table is partitioned by from now on, in today's names; STR_NULL: it follows
 * another setting, or there is no such table. */
static bool
followed(const PartitionCheck *check, const SourceTable *table, const PartitionRule *rule,
         Str *out_text, Error *err)
{
    Arena *arena = check->arena;
    const FitWant want = {.source = table->schema};
    TableMetadata *metadata;
    SchemaFit fit = {0};
    PartitionSpec next;
    int lost;

    *out_text = STR_NULL;
    TRY(load_metadata(check, table, &metadata, err));
    if (metadata == NULL || !str_eq(property_get(&metadata->properties, PARTITION_PROPERTY),
                                    partition_rule_text(arena, rule)))
        return true;
    TRY(iceberg_fit_schema(arena, metadata, &want, &fit, err));
    partition_spec_follow(arena, metadata_default_spec(metadata), rule, fit.schema, &next, &lost);
    *out_text = partition_spec_text(arena, &next, fit.schema);
    schema_unref(fit.schema);
    return true;
}

void
check_partition(const PartitionCheck *check, const SourceTable *table, const PartitionRule *rule,
                const char *item)
{
    PartitionSpec spec;
    Str now;
    Error err = {0};
    Error ignored;

    if (partition_spec_resolve(check->arena, rule, table->schema, &spec, &err))
        return;
    if (!followed(check, table, rule, &now, &ignored) || now.ptr == NULL) {
        report_message(check->report, item, VERDICT_FAIL, err.msg);
        return;
    }
    report_add(check->report, item, VERDICT_WARN, "%.*s; the lake, which knew it, goes on by %s",
               (int) strcspn(err.msg, "\n"), err.msg, now.len == 0 ? "nothing" : now.ptr);
    report_hint(check->report,
                arena_printf(check->arena, "set it to [%.*s], as the columns are called now",
                             STR_ARG(now)));
}

void
check_sort(const PartitionCheck *check, const SourceTable *table, const SortRule *rule,
           const char *item)
{
    TableMetadata *metadata = NULL;
    SortOrder order;
    Error err = {0};
    Error ignored;

    if (sort_order_resolve(check->arena, rule, table->schema, &order, &err))
        return;
    if (!load_metadata(check, table, &metadata, &ignored) || metadata == NULL ||
        !str_eq(property_get(&metadata->properties, SORT_PROPERTY),
                sort_rule_text(check->arena, rule))) {
        report_message(check->report, item, VERDICT_FAIL, err.msg);
        return;
    }
    report_add(check->report, item, VERDICT_WARN,
               "%.*s; the lake, which knew it, stays sorted by the columns that are left",
               (int) strcspn(err.msg, "\n"), err.msg);
    report_hint(check->report, "write the names that the columns have now");
}
