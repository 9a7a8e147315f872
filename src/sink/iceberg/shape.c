/* shape.c - the columns of a table: as the lake has them, as the source has them, and on the way
 * from one to the other.
 *
 *     settled          schema (and source) as of the last commit; what abandon() goes back to
 *     base.schema      what is written now
 *     pending.fit      the difference, part of the next commit
 */
#include <stdlib.h>

#include "avro/json_node.h"
#include "base/log.h"
#include "sink/iceberg/sink.h"

static void
assign(const TableSchema **place, const TableSchema *schema)
{
    const TableSchema *old = *place;

    *place = schema == NULL ? NULL : schema_ref(schema);
    schema_unref(old);
}

/* What is known of numeric columns goes with their fields. */
static void
carry_numerics(IcebergTable *table, const TableSchema *from, const TableSchema *to)
{
    NumericWidth *old = table->numerics;

    table->numerics = xcalloc((size_t) to->column_count, sizeof *table->numerics);
    for (int i = 0; i < to->column_count; i++) {
        const SchemaColumn *column = &to->columns[i];

        for (int k = 0; k < from->column_count; k++)
            if (from->columns[k].field.id == column->field.id)
                table->numerics[i] = old[k];
        table->numerics[i].tracked =
            column->field.type->kind == TYPE_STRING && strcmp(column->pg_type, "numeric") == 0;
    }
    free(old);
}

/* Rows of files that lack a bare numeric column show its default. */
static bool
track_defaults(IcebergTable *table, Error *err)
{
    const TableSchema *schema = table->base.schema;

    for (int i = 0; i < schema->column_count; i++) {
        AUTO_NODE JsonNode *value = NULL;
        Str json = schema->columns[i].field.initial_default;
        Str text;

        if (!table->numerics[i].tracked || json.ptr == NULL)
            continue;
        TRY(node_parse(json, &value, err));
        if (node_to_str(value, &text))
            iceberg_widen_numeric(&table->numerics[i], text);
    }
    return true;
}

static void
use(IcebergTable *table, const TableSchema *schema, const TableSchema *source)
{
    carry_numerics(table, table->base.schema, schema);
    assign(&table->base.schema, schema);
    assign(&table->base.source, source);
}

/* The shape that the lake has now, told in the source's terms when they agree. */
static bool
fit_lake(IcebergTable *table, const TableSchema *source, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    FitWant want = {.source = source};
    SchemaFit fit = {0};

    if (!iceberg_fit_schema(arena, table->metadata, &want, &fit, err)) {
        if (err->kind != ERR_COPY)
            return false;
    } else if (fit.next == NULL) {
        use(table, fit.schema, source);
        schema_unref(fit.schema);
        return true;
    }
    schema_unref(fit.schema);
    if (source->relid == 0) /* our own table of rejects: its shape is ours to say */
        return FAIL(err, ERR_INPUT,
                    "the lake table has other columns than this version of walberg writes");

    TableSchema *shape = iceberg_lake_shape(table->metadata, source);

    use(table, shape, NULL);
    schema_unref(shape);
    return true;
}

bool
iceberg_load_shape(IcebergTable *table, Error *err)
{
    if (table->settled != NULL) {
        use(table, table->settled, table->settled_source);
        return true;
    }
    TRY(fit_lake(table, table->base.schema, err));
    iceberg_settle_shape(table);
    return true;
}

void
iceberg_settle_shape(IcebergTable *table)
{
    assign(&table->settled, table->base.schema);
    assign(&table->settled_source, table->base.source);
}

void
iceberg_free_shape(IcebergTable *table)
{
    schema_unref(table->settled);
    schema_unref(table->settled_source);
    schema_unref(table->base.source);
    schema_unref(table->base.schema);
}

/* Fit on top of what is pending; the fit lives as long as that. */
static bool
change(IcebergTable *table, const FitWant *want, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    Pending *pending = &table->pending;
    SchemaFit fit = {0};

    TRY(iceberg_fit_schema(pending->arena, iceberg_shaped_metadata(table, arena), want, &fit, err));
    if (fit.next != NULL) {
        if (pending->fit.next == NULL)
            pending->fit_base_id = table->metadata->last_column_id;
        else if (pending->files.len > 0)
            BUF_PUSH(&pending->earlier_fits, SchemaFit, pending->fit);
        pending->fit = fit;
        pending->fit.schema = NULL; /* base.schema has it */
        pending->any = true;
        log_info("shape changed", LOG_STR("table", table->base.lake_name),
                 LOG_INT("columns", fit.schema->column_count));
    }
    use(table, fit.schema, want->source);
    schema_unref(fit.schema);
    TRY(track_defaults(table, err));
    TRY(iceberg_follow_spec(table, true, err));
    return iceberg_follow_sort(table, true, err);
}

bool
iceberg_evolve(Sink *sink, SinkTable *sink_table, const TableSchema *schema, Error *err)
{
    IcebergTable *table = (IcebergTable *) (void *) sink_table;
    FitWant want = {
        .source = schema,
        .defaults_are_null = strcmp(table->sink->config->on_add_default, "ignore") == 0,
    };

    (void) sink;
    if (table->base.source == schema)
        return true;
    TRY(change(table, &want, err));
    return iceberg_rekey_index(table, err);
}

bool
iceberg_begin_anew(IcebergTable *table, const TableSchema *schema, Error *err)
{
    table->replacing = true;
    if (table->half_loaded)
        TRY(iceberg_table_load(table, err));
    iceberg_pending_reset(&table->pending);
    iceberg_unhide(table);
    buf_reset(&table->bulk_rejects);
    table->rejects_adopted = false;
    TRY(change(table, &(FitWant){.source = schema, .fresh = true}, err));
    if (metadata_current_snapshot(table->metadata) != NULL) {
        table->pending.truncated = true;
        table->pending.any = true;
    }
    deletes_clear(table->deletes);
    return true;
}

bool
iceberg_replace(Sink *sink, SinkTable *sink_table, const TableSchema *schema, Error *err)
{
    IcebergTable *table = (IcebergTable *) (void *) sink_table;

    (void) sink;
    TRY(iceberg_begin_anew(table, schema, err));
    TRY(iceberg_rekey_index(table, err));
    iceberg_empty_index(table);
    table->keep_index = false;
    return true;
}
