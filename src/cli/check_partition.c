/* check_partition.c - the settings of how a lake table is partitioned and sorted.
 *
 * It names columns as they are called now. `run` takes it on once and remembers it in the table, by
 * field id from then on: a column that was renamed since is no reason to stop
 * (sink/iceberg/spec.c). So a name that the source does not have is wrong only when the lake did
 * not take it on. */
#include "cli/check.h"

#include <ctype.h>
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
    Str schema_name = table->schema_name;
    Str table_name = table->table_name;
    PipelineState state;

    TRY(cli_load_state(check->config, arena, store, &state, NULL, err));

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

/* A table in the lake that follows the setting. */
typedef struct Followed {
    TableMetadata *metadata;
    SchemaFit fit; /* the shape of its next commit */
} Followed;

static void
followed_done(Followed *followed)
{
    schema_unref(followed->fit.schema);
}

/* Whether the lake has the table, and in this property of it the setting. What does not fit its
 * rows comes with a new copy. */
static bool
is_followed(const PartitionCheck *check, const SourceTable *table, const char *property,
            Str setting, Followed *followed)
{
    const FitWant want = {.source = table->schema};
    const FitWant anew = {.source = table->schema, .fresh = true};
    Arena *arena = check->arena;
    Error ignored;

    return load_metadata(check, table, &followed->metadata, &ignored) &&
           followed->metadata != NULL &&
           str_eq(property_get(&followed->metadata->properties, property), setting) &&
           (iceberg_fit_schema(arena, followed->metadata, &want, &followed->fit, &ignored) ||
            iceberg_fit_schema(arena, followed->metadata, &anew, &followed->fit, &ignored));
}

/* --- the setting to write -------------------------------------------------------------------- */

static Str
column_name(const TableSchema *schema, int id)
{
    for (int i = 0; i < schema->column_count; i++)
        if (schema->columns[i].field.id == id)
            return schema->columns[i].field.name;
    return STR("?"); /* one within a struct: an order of somebody else */
}

static bool
is_plain(Str name)
{
    bool plain = name.len > 0;

    for (size_t i = 0; i < name.len; i++)
        plain = plain && (name.ptr[i] == '_' || isalnum((unsigned char) name.ptr[i]));
    return plain;
}

/* An item of a list of YAML, in single quotes, because of transforms with brackets. */
static void
put_item(Arena *arena, Buf *list, Str transform, Str column, const char *direction)
{
    const char *name =
        is_plain(column) ? arena_str(arena, column).ptr : pg_quote_identifier(arena, column);
    const char *term = str_eqc(transform, "identity")
                           ? name
                           : arena_printf(arena, "%.*s(%s)", STR_ARG(transform), name);

    buf_cstr(list, list->len == 0 ? "'" : ", '");
    for (; *term != '\0'; term++)
        buf_printf(list, *term == '\'' ? "''" : "%c", *term);
    buf_printf(list, "%s'", direction);
}

static const char *
spec_setting(Arena *arena, const PartitionSpec *spec, const TableSchema *schema)
{
    AUTO_BUF Buf list = {0};

    for (int i = 0; i < spec->field_count; i++)
        put_item(arena, &list, spec->fields[i].transform,
                 column_name(schema, spec->fields[i].source_id), "");
    return arena_strdup(arena, buf_text(&list));
}

/* NULLs come first ascending and last descending when nothing is said of them. */
static const char *
order_setting(Arena *arena, const SortOrder *order, const TableSchema *schema)
{
    static const char *const directions[2][2] = {{" nulls last", ""},
                                                 {" desc", " desc nulls first"}};
    AUTO_BUF Buf list = {0};

    for (int i = 0; i < order->field_count; i++) {
        const SortField *field = &order->fields[i];

        put_item(arena, &list, field->transform, column_name(schema, field->source_id),
                 directions[field->descending][field->nulls_first]);
    }
    return arena_strdup(arena, buf_text(&list));
}

static void
hint_setting(const PartitionCheck *check, const char *list)
{
    report_hint(check->report,
                arena_printf(check->arena, "set it to [%s], as the columns are called now", list));
}

/* --- partitions ------------------------------------------------------------------------------ */

void
check_partition(const PartitionCheck *check, const SourceTable *table, const PartitionRule *rule,
                const char *item)
{
    Arena *arena = check->arena;
    AUTO(followed_done) Followed lake = {0};
    PartitionSpec next;
    int lost;
    Error err = {0};

    if (partition_spec_resolve(arena, rule, table->schema, &next, &err))
        return;
    if (!is_followed(check, table, PARTITION_PROPERTY, partition_rule_text(arena, rule), &lake)) {
        report_message(check->report, item, VERDICT_FAIL, err.msg);
        return;
    }
    partition_spec_follow(arena, metadata_default_spec(lake.metadata), rule, lake.fit.schema, &next,
                          &lost);
    report_add(check->report, item, VERDICT_WARN, "%.*s; the lake, which knew it, goes on by %s",
               (int) strcspn(err.msg, "\n"), err.msg,
               next.field_count == 0 ? "nothing"
                                     : partition_spec_text(arena, &next, lake.fit.schema).ptr);
    hint_setting(check, spec_setting(arena, &next, lake.fit.schema));
}

/* --- sort order ------------------------------------------------------------------------------ */

void
check_sort(const PartitionCheck *check, const SourceTable *table, const SortRule *rule,
           const char *item)
{
    Arena *arena = check->arena;
    AUTO(followed_done) Followed lake = {0};
    SortOrder next;
    int lost;
    Error err = {0};

    if (sort_order_resolve(arena, rule, table->schema, &next, &err))
        return;
    if (!is_followed(check, table, SORT_PROPERTY, sort_rule_text(arena, rule), &lake)) {
        report_message(check->report, item, VERDICT_FAIL, err.msg);
        return;
    }
    sort_order_follow(arena, metadata_default_sort_order(lake.metadata), rule, lake.fit.schema,
                      &next, &lost);
    report_add(check->report, item, VERDICT_WARN,
               "%.*s; the lake, which knew it, stays sorted by the columns that are left",
               (int) strcspn(err.msg, "\n"), err.msg);
    hint_setting(check, order_setting(arena, &next, lake.fit.schema));
}
