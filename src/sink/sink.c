#include "sink/sink.h"

#include "sink/iceberg/sink.h"

static const SinkOps *const sink_kinds[] = {
    &iceberg_sink_ops,
};

bool
sink_open(const SinkOptions *options, Sink **out_sink, Error *err)
{
    /* One kind so far; the settings will name it when there is a second. */
    const SinkOps *ops = sink_kinds[0];

    if (!ops->open(options, out_sink, err))
        return WRAP(err, "%s", ops->name);
    return true;
}

void
sink_close(Sink *sink)
{
    if (sink != NULL)
        sink->ops->close(sink);
}

bool
sink_attach(Sink *sink, const SinkAttach *attach, SinkTable **out_table, Error *err)
{
    SinkAttach named = *attach;

    if (named.schema_name.ptr == NULL)
        named.schema_name = attach->schema->schema_name;
    if (named.table_name.ptr == NULL)
        named.table_name = attach->schema->table_name;
    if (!sink->ops->attach(sink, &named, out_table, err))
        return WRAP(err, "%s: table %s", sink->ops->name, attach->schema->qualified);
    return true;
}

bool
sink_evolve(Sink *sink, SinkTable *table, const TableSchema *schema, Error *err)
{
    if (!sink->ops->evolve(sink, table, schema, err))
        return WRAP(err, "%s: columns of %s", sink->ops->name, table->lake_name);
    return true;
}

bool
sink_replace(Sink *sink, SinkTable *table, const TableSchema *schema, Error *err)
{
    if (!sink->ops->replace(sink, table, schema, err))
        return WRAP(err, "%s: columns of %s", sink->ops->name, table->lake_name);
    return true;
}

bool
sink_write(Sink *sink, SinkTable *table, Batch *batch, Error *err)
{
    if (!sink->ops->write(sink, table, batch, err))
        return WRAP(err, "%s: write %s", sink->ops->name, table->lake_name);
    return true;
}

bool
sink_commit(Sink *sink, SinkTable *table, Position position, int64_t commit_time_us, Error *err)
{
    if (!sink->ops->commit(sink, table, position, commit_time_us, err))
        return WRAP(err, "%s: commit %s", sink->ops->name, table->lake_name);
    return true;
}

bool
sink_abandon(Sink *sink, SinkTable *table_or_null, Error *err)
{
    if (!sink->ops->abandon(sink, table_or_null, err))
        return WRAP(err, "%s: reload %s", sink->ops->name,
                    table_or_null == NULL ? "rejects" : table_or_null->lake_name);
    return true;
}

bool
sink_record(Sink *sink, SinkTable *table, Batch *batch, Error *err)
{
    if (!sink->ops->record(sink, table, batch, err))
        return WRAP(err, "%s: rejects of %s", sink->ops->name, table->lake_name);
    return true;
}

bool
sink_bulk_load(Sink *sink, SinkTable *table, BulkSource *source, Error *err)
{
    if (!sink->ops->bulk_load(sink, table, source, err))
        return WRAP(err, "%s: load %s", sink->ops->name, table->lake_name);
    return true;
}

bool
sink_bulk_commit(Sink *sink, SinkTable *table, Position position, Error *err)
{
    if (!sink->ops->bulk_commit(sink, table, position, err))
        return WRAP(err, "%s: commit %s", sink->ops->name, table->lake_name);
    return true;
}

bool
sink_bulk_record(Sink *sink, SinkTable *table, const BulkDone *done, Arena *arena,
                 SinkLoaded *out_loaded, Error *err)
{
    if (!sink->ops->bulk_record(sink, table, done, arena, out_loaded, err))
        return WRAP(err, "%s: record loads of %s", sink->ops->name, table->lake_name);
    return true;
}

bool
sink_resume(Sink *sink, SinkTable *table, const SinkResume *resume, Error *err)
{
    if (!sink->ops->resume(sink, table, resume, err))
        return WRAP(err, "%s: loads of %s", sink->ops->name, table->lake_name);
    return true;
}

bool
sink_state_load(Sink *sink, Buf *out, bool *out_found, Error *err)
{
    if (!sink->ops->state_load(sink, out, out_found, err))
        return WRAP(err, "%s: pipeline state", sink->ops->name);
    return true;
}

bool
sink_state_swap(Sink *sink, Str state, Error *err)
{
    if (!sink->ops->state_swap(sink, state, err))
        return WRAP(err, "%s: pipeline state", sink->ops->name);
    return true;
}
