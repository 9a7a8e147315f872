/* sink.c - open, attach, state object. */
#include "sink/iceberg/sink.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"

static void
sink_done(Sink *base)
{
    IcebergSink *sink = (IcebergSink *) (void *) base;

    for (size_t i = 0; i < sink->table_count; i++)
        iceberg_table_free(sink->tables[i]);
    iceberg_table_free(sink->rejects);
    free((void *) sink->tables);
    duck_close(sink->duck);
    catalog_close(sink->catalog);
    store_close(sink->store);
    pthread_mutex_destroy(&sink->lock);
    pthread_mutex_destroy(&sink->large);
    arena_free(sink->arena);
    free(sink);
}

static bool
open_parts(IcebergSink *sink, Error *err)
{
    StoreOptions store = store_options(sink->config, sink->cancel);
    /* The budget is kept by the size of batches and row groups. A limit here could only refuse a
     * value that is larger than it, so it is DuckDB's own: most of the machine's memory. */
    DuckOptions duck = {.threads = 1};

    TRY(store_open(sink->config->warehouse, &store, &sink->store, err));
    sink->files.store = sink->store;
    sink->files.folder = arena_printf(sink->arena, "%s/cache", sink->state_folder);
    sink->files.bytes_max = sink->config->cache;
    TRY(catalog_open(sink->config->catalog_type, sink->store, &sink->catalog, err));
    return duck_open(&duck, &sink->duck, err);
}

static bool
open_sink(const SinkOptions *options, Sink **out_sink, Error *err)
{
    IcebergSink *sink = xcalloc(1, sizeof *sink);

    sink->base.ops = &iceberg_sink_ops;
    sink->arena = arena_new();
    sink->config = options->config;
    sink->pipeline = options->config->pipeline;
    sink->state_folder = options->config->state;
    sink->database = arena_strdup(sink->arena, options->database);
    sink->cancel = options->cancel;
    sink->retention = (Retention){
        .keep_hourly_ms = sink->config->history_hourly_ms,
        .keep_all_ms = sink->config->history_all_ms,
        /* queries show one before the newest until all tables are as far */
        .snapshots_min = 10,
        .snapshots_max = 500,
        .metadata_log_max = 100,
    };
    pthread_mutex_init(&sink->lock, NULL);
    pthread_mutex_init(&sink->large, NULL);
    random_uuid(sink->run_id);
    if (!open_parts(sink, err)) {
        sink_done(&sink->base);
        return false;
    }
    *out_sink = &sink->base;
    return true;
}

/* --- tables ---------------------------------------------------------------------------------- */

void
iceberg_table_free(IcebergTable *table)
{
    if (table == NULL)
        return;
    index_close(table->index);
    deletes_free(table->deletes);
    places_free(table->places);
    deletes_free(table->pending.deletes);
    buf_done(&table->pending.specs);
    buf_done(&table->pending.sort_orders);
    buf_done(&table->pending.earlier_fits);
    buf_done(&table->pending.files);
    buf_done(&table->pending.loaded);
    buf_done(&table->pending.records);
    buf_done(&table->pending.rejects);
    buf_done(&table->pending.attempts);
    buf_done(&table->bulk_rejects);
    buf_done(&table->rejects_told);
    arena_free(table->pending.arena);
    live_deletes_free(table->live_deletes);
    arena_free(table->arena);
    iceberg_free_shape(table);
    free(table->index_identity);
    free(table->base.lake_name);
    free(table->numerics);
    arena_free(table->own);
    free(table);
}

static IcebergTable *
table_new(IcebergSink *sink, const TableSchema *schema, const TableName *name)
{
    IcebergTable *table = xcalloc(1, sizeof *table);

    table->own = arena_new();
    table->sink = sink;
    table->base.schema = schema_ref(schema);
    table->name = (TableName){.space = arena_str(table->own, name->space),
                              .name = arena_str(table->own, name->name)};
    table->base.lake_name =
        xstrdup(arena_printf(table->own, "%.*s.%.*s", STR_ARG(name->space), STR_ARG(name->name)));
    table->prefix =
        store_key(sink->store, table->own, catalog_location(sink->catalog, table->own, name));
    table->deletes = deletes_new();
    table->live_deletes = live_deletes_new();
    table->numerics = xcalloc((size_t) schema->column_count, sizeof *table->numerics);
    iceberg_pending_reset(&table->pending);
    return table;
}

/* Somebody may make it at the same time, as two pipelines do with the table of rejects: then that
 * one is loaded, and refused if it is not for us. */
static bool
make_table(IcebergTable *table, const TableSchema *schema, Error *err)
{
    return iceberg_table_create(table, schema, err) || err->kind == ERR_CONFLICT;
}

bool
iceberg_open_table(IcebergSink *sink, const TableOpen *open, IcebergTable **out_table, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    CatalogTable found_table;
    bool found;
    IcebergTable *table = table_new(sink, open->schema, &open->name);

    table->replacing = open->replace;
    table->keep_index = open->resume;
    table->partition = open->partition;
    table->sort = open->sort;

    bool done = catalog_load(sink->catalog, arena, &open->name, &found_table, &found, err) &&
                (found || make_table(table, open->schema, err)) && iceberg_table_load(table, err);

    if (!done) {
        iceberg_table_free(table);
        return false;
    }
    *out_table = table;
    return true;
}

static bool
attach(Sink *base, const SinkAttach *want, SinkTable **out_table, Error *err)
{
    IcebergSink *sink = (IcebergSink *) (void *) base;
    const TableSchema *schema = want->schema;
    AUTO_ARENA Arena *arena = arena_new();
    TableRule rule = config_table_rule(sink->config, arena, want->schema_name, want->table_name);
    TableName name = {
        .space = config_namespace(sink->config, arena, sink->database, want->schema_name),
        .name = rule.name != NULL ? str_of(rule.name) : want->table_name,
    };
    IcebergTable *table;

    TRY(config_namespace_is_free(name.space, err));
    for (size_t i = 0; i < sink->table_count; i++)
        if (str_eq(sink->tables[i]->name.space, name.space) &&
            str_eq(sink->tables[i]->name.name, name.name))
            return FAIL(err, ERR_INPUT,
                        "%s already goes to the lake table %s\n"
                        "hint: give one of them another name: tables.%s.name",
                        sink->tables[i]->base.schema->qualified, sink->tables[i]->base.lake_name,
                        schema->qualified);
    TRY(FAULT("sink.attach", err));

    PartitionRule *partition = ARENA_NEW(sink->arena, PartitionRule); /* terms live in the config */
    SortRule *sort = ARENA_NEW(sink->arena, SortRule);                /* likewise */
    TableOpen open = {.schema = schema,
                      .name = name,
                      .partition = partition,
                      .sort = sort,
                      .replace = want->replace,
                      .resume = want->resume};

    *partition = rule.partition;
    *sort = rule.sort;
    TRY(iceberg_open_table(sink, &open, &table, err));
    sink->tables =
        xrealloc((void *) sink->tables, (sink->table_count + 1) * sizeof(IcebergTable *));
    sink->tables[sink->table_count++] = table;
    iceberg_rejects_attach(table);
    *out_table = &table->base;
    return true;
}

/* A table without anything uncommitted is as it was: reconnecting costs nothing. Of a table of
 * rejects that cannot be read only the next reject has to know: it loads it again. */
static bool
abandon(Sink *base, SinkTable *sink_table, Error *err)
{
    IcebergSink *sink = (IcebergSink *) (void *) base;
    IcebergTable *table = sink_table == NULL ? sink->rejects : (IcebergTable *) (void *) sink_table;

    for (size_t i = 0; i < sink->table_count; i++)
        if (sink_table == NULL || sink->tables[i] == table)
            sink->tables[i]->rejects_pending = sink->tables[i]->rejects_adopted = false;
    if (table == NULL || (!table->pending.any && !table->half_loaded &&
                          table->bulk_rejects.len == 0 && !iceberg_is_hidden(table)))
        return true;
    iceberg_discard_pending(table);
    if (iceberg_table_load(table, err))
        return true;
    if (sink_table != NULL || err->kind == ERR_CANCELED)
        return false;
    log_warn("the table of rejects cannot be loaded", LOG_STR("error", err->msg));
    return true;
}

/* --- state object ---------------------------------------------------------------------------- */

static const char *
state_key(const IcebergSink *sink, Arena *arena)
{
    return arena_printf(arena, "_walberg/%s.json", sink->pipeline);
}

static bool
state_load(Sink *base, Buf *out, bool *out_found, Error *err)
{
    IcebergSink *sink = (IcebergSink *) (void *) base;
    AUTO_ARENA Arena *arena = arena_new();

    sink->state_version = (StoreVersion){0};
    return store_get(sink->store, state_key(sink, arena), out, out_found, &sink->state_version,
                     err);
}

/* Whether the object is what we were about to write: an earlier attempt took effect and its answer
 * was lost. States name the process that wrote them, so nobody else wrote the same. */
static bool
state_is_ours(IcebergSink *sink, const char *key, Str state, bool *out_ours, Error *err)
{
    AUTO_BUF Buf found_state = {0};
    StoreVersion version = {0};
    bool found;

    TRY(store_get(sink->store, key, &found_state, &found, &version, err));
    *out_ours = found && str_eq(buf_view(&found_state), state);
    if (*out_ours)
        sink->state_version = version;
    return true;
}

static bool
state_swap(Sink *base, Str state, Error *err)
{
    IcebergSink *sink = (IcebergSink *) (void *) base;
    AUTO_ARENA Arena *arena = arena_new();
    bool swapped;
    StoreVersion version;

    TRY(FAULT("sink.state", err));
    TRY(store_put_match(sink->store, state_key(sink, arena), &sink->state_version, state, &swapped,
                        &version, err));
    if (!swapped) {
        bool ours;

        TRY(state_is_ours(sink, state_key(sink, arena), state, &ours, err));
        if (ours)
            return true;
        return FAIL(err, ERR_CONFLICT,
                    "%s/%s was written by another process\n"
                    "hint: only one process may run pipeline %s; stop the other one",
                    sink->store->base_uri, state_key(sink, arena), sink->pipeline);
    }
    sink->state_version = version;
    return true;
}

const SinkOps iceberg_sink_ops = {
    .name = "iceberg",
    .open = open_sink,
    .attach = attach,
    .evolve = iceberg_evolve,
    .replace = iceberg_replace,
    .write = iceberg_write,
    .commit = iceberg_commit,
    .abandon = abandon,
    .record = iceberg_record,
    .bulk_load = iceberg_bulk_load,
    .bulk_commit = iceberg_bulk_commit,
    .bulk_record = iceberg_bulk_record,
    .resume = iceberg_resume,
    .state_load = state_load,
    .state_swap = state_swap,
    .close = sink_done,
};
