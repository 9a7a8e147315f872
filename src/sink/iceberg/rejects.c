/* rejects.c - the table _walberg.rejects: every value that its column could not hold.
 *
 * An ordinary table of this sink, written by inserts only and shared by the pipelines of a
 * warehouse. The stream's rejects are committed before the rows they belong to. A table property
 * says for each source table up to where they are recorded, so that a replay, which some tables
 * need and others do not, drops what is there already. Rejects of an initial copy are written by
 * the copying threads as files of their own, and committed just before the copied table. When a
 * process dies between such a commit and the table's, or a table is parked in between, records may
 * stand twice; never not at all.
 *
 * Another table property counts the rows of each source table, duplicates too, in the commit that
 * brings them. It goes with the table of rejects when somebody removes that, and a lake table that
 * is made again begins at nothing.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "batch/fold.h"
#include "sink/iceberg/rejects.h"
#include "sink/iceberg/sink.h"

typedef struct RejectColumn {
    const char *name;
    TypeKind kind;
    const char *pg_type;
} RejectColumn;

static const RejectColumn reject_columns[] = {
    {"position", TYPE_STRING, "pg_lsn"},
    {"commit_time", TYPE_TIMESTAMPTZ, "timestamp with time zone"},
    {"schema", TYPE_STRING, "name"},
    {"table", TYPE_STRING, "name"},
    {"key", TYPE_JSON, "json"},
    {"column", TYPE_STRING, "name"},
    {"type", TYPE_STRING, "text"},
    {"value", TYPE_STRING, "text"},
    {"reason", TYPE_STRING, "text"},
};

enum { REJECT_COLUMN_COUNT = sizeof reject_columns / sizeof reject_columns[0] };

static const TableSchema *
rejects_schema(void)
{
    Arena *arena;
    TableSchema *schema = schema_new(&arena);

    schema->schema_name = STR("_walberg");
    schema->table_name = STR("rejects");
    schema->qualified = "_walberg.rejects";
    schema->identity = IDENTITY_NOTHING;
    schema->key_mode = KEY_NONE;
    schema->column_count = REJECT_COLUMN_COUNT;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, REJECT_COLUMN_COUNT);
    for (int i = 0; i < REJECT_COLUMN_COUNT; i++) {
        Type *type = ARENA_NEW(arena, Type);

        type->kind = reject_columns[i].kind;
        schema->columns[i] = (SchemaColumn){
            .field = {.name = str_of(reject_columns[i].name), .type = type},
            .attnum = i + 1,
            .pg_type = reject_columns[i].pg_type,
        };
    }
    schema_assign_ids(schema);
    return schema;
}

/* Made with the first reject, by whichever thread has it. */
static bool
attach_rejects(IcebergSink *sink, Error *err)
{
    const TableSchema *schema = rejects_schema();
    TableName name = {.space = STR("_walberg"), .name = STR("rejects")};
    bool done = true;

    pthread_mutex_lock(&sink->lock);
    if (sink->rejects == NULL)
        done = iceberg_open_table(sink, &(TableOpen){.schema = schema, .name = name},
                                  &sink->rejects, err);
    pthread_mutex_unlock(&sink->lock);
    schema_unref(schema);
    return done || WRAP(err, "table _walberg.rejects");
}

/* Versions have the same numbers in one that another pipeline made in its place. */
static bool
is_same_table(const IcebergTable *rejects, Arena *arena, const CatalogTable *now)
{
    TableMetadata *metadata;
    Error ignored;

    return metadata_parse(arena, now->metadata, &metadata, &ignored) &&
           str_eq(metadata->table_uuid, rejects->metadata->table_uuid);
}

/* They went with their table. */
static void
forget_counts(IcebergSink *sink)
{
    for (size_t i = 0; i < sink->table_count; i++)
        sink->tables[i]->base.rejects = 0;
}

/* The stream has rejects. Somebody may have removed their table, as one empties it; and what could
 * not be loaded may be mended. Main thread. */
static bool
ready_rejects(IcebergSink *sink, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    CatalogTable now;
    bool found = false;

    TRY(attach_rejects(sink, err));

    IcebergTable *rejects = sink->rejects;

    if (rejects->pending.any)
        return true; /* its commit will see */

    bool done = catalog_load(sink->catalog, arena, &rejects->name, &now, &found, err);

    if (done && !found) {
        log_info("the table of rejects is gone, and made again");
        sink->rejects_remade = true;
        done = iceberg_table_create(rejects, rejects->base.schema, err) ||
               err->kind == ERR_CONFLICT; /* another pipeline was first */
    }

    bool other = done && found && !is_same_table(rejects, arena, &now);

    sink->rejects_remade |= other;
    if (done && (!found || other))
        forget_counts(sink);
    if (done && (!found || rejects->half_loaded || other))
        done = iceberg_table_load(rejects, err);
    return done || WRAP(err, "table _walberg.rejects");
}

/* They are committed before the table's own rows, so a replay of the table may bring them again. */
static bool
recorded_position(IcebergTable *table, Position *out_position, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const TableMetadata *metadata = table->sink->rejects->metadata;
    Str key = rejects_position_key(arena, table->metadata->table_uuid);
    Str text = property_get(&metadata->properties, key.ptr);

    *out_position = POSITION_NONE;
    return text.ptr == NULL || position_parse(text, out_position, err);
}

/* --- how many -------------------------------------------------------------------------------- */

static int64_t
recorded_count(const PropertyList *properties, const IcebergTable *table)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str key = rejects_count_key(arena, table->metadata->table_uuid);
    Str text = property_get(properties, key.ptr);

    return text.ptr == NULL ? 0 : strtoll(arena_str(arena, text).ptr, NULL, 10);
}

/* What the table of rejects says before this process has any of its own. */
static bool
find_counts(IcebergSink *sink, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const TableName name = {.space = STR("_walberg"), .name = STR("rejects")};
    CatalogTable found_table;
    TableMetadata *metadata;
    PropertyList properties = {0};
    bool found;

    if (sink->rejects_found != NULL)
        return true;
    TRY(catalog_load(sink->catalog, arena, &name, &found_table, &found, err));
    if (found) {
        TRY(metadata_parse(arena, found_table.metadata, &metadata, err));
        properties = property_list_copy(sink->arena, &metadata->properties);
    }
    sink->rejects_found = ARENA_NEW(sink->arena, PropertyList);
    *sink->rejects_found = properties;
    return true;
}

void
iceberg_rejects_attach(IcebergTable *table)
{
    IcebergSink *sink = table->sink;
    const IcebergTable *rejects;
    Error err;

    pthread_mutex_lock(&sink->lock); /* a copying thread may have the first one */
    rejects = sink->rejects;
    pthread_mutex_unlock(&sink->lock);
    if (rejects != NULL)
        table->base.rejects = recorded_count(&rejects->metadata->properties, table);
    else if (find_counts(sink, &err))
        table->base.rejects = recorded_count(sink->rejects_found, table);
    else
        table->base.rejects = REJECTS_UNKNOWN;
    if (table->base.rejects == REJECTS_UNKNOWN)
        log_debug("rejects are not counted", LOG_STR("table", table->base.lake_name),
                  LOG_STR("error", err.msg));
}

/* So many rows of the pending files of the rejects table are of this one. */
static void
count_rejects(IcebergTable *table, int64_t rows)
{
    RejectCount count = {.of = table, .rows = rows};

    BUF_PUSH(&table->sink->rejects->pending.rejects, RejectCount, count);
}

static PropertyList
add_counts(const IcebergTable *rejects, Arena *arena, PropertyList properties)
{
    const Buf *pending = &rejects->pending.rejects;

    for (size_t i = 0; i < BUF_COUNT(pending, RejectCount); i++) {
        const RejectCount *count = &BUF_AT(pending, RejectCount, i);
        int64_t rows = recorded_count(&properties, count->of) + count->rows;

        properties = property_set(arena, &properties,
                                  rejects_count_key(arena, count->of->metadata->table_uuid),
                                  arena_strf(arena, "%" PRId64, rows));
    }
    return properties;
}

PropertyList
iceberg_rejects_properties(IcebergSink *sink, Arena *arena, const PropertyList *base,
                           Position position)
{
    PropertyList properties = add_counts(sink->rejects, arena, *base);
    Str text = arena_strf(arena, "%s", POSITION_TEXT(position));

    for (size_t i = 0; i < sink->table_count && position != POSITION_NONE; i++) {
        const IcebergTable *table = sink->tables[i];

        if (table->rejects_pending)
            properties = property_set(
                arena, &properties, rejects_position_key(arena, table->metadata->table_uuid), text);
    }
    return properties;
}

static Str
reject_text(const Batch *batch, Span span)
{
    return (Str){.ptr = batch->reject_bytes.ptr + span.offset, .len = span.length};
}

/* One row of the rejects table. */
static void
append_reject(Batch *into, const Batch *batch, const Reject *reject)
{
    const TableSchema *schema = batch->schema;
    const SchemaColumn *column = &schema->columns[reject->column];
    char position[POSITION_TEXT_SIZE];
    int c = 0;
    uint8_t live = 0;

    column_append_bytes(&into->columns[c++], str_of(position_format(reject->position, position)));
    if (reject->commit_time_us == 0)
        column_append_null(&into->columns[c++]);
    else
        column_append_fixed(&into->columns[c++], &reject->commit_time_us);
    column_append_bytes(&into->columns[c++], schema->schema_name);
    column_append_bytes(&into->columns[c++], schema->table_name);
    if (reject->key.length == 0)
        column_append_null(&into->columns[c++]);
    else
        column_append_bytes(&into->columns[c++], reject_text(batch, reject->key));
    column_append_bytes(&into->columns[c++], column->field.name);
    column_append_bytes(&into->columns[c++], str_of(column->pg_type));
    column_append_bytes(&into->columns[c++], reject_text(batch, reject->value));
    column_append_bytes(&into->columns[c++], reject_text(batch, reject->reason));
    assert(c == REJECT_COLUMN_COUNT);
    BUF_PUSH(&into->dead, uint8_t, live);
    into->rows++;
    into->live_rows++;
}

/* The rejects of `batch` as rows of the rejects table; those before `done` are there already.
 */
static Batch *
reject_rows(const TableSchema *schema, const Batch *batch, Position done)
{
    Batch *rows = batch_new(schema, false);

    for (size_t i = 0; i < BUF_COUNT(&batch->rejects, Reject); i++) {
        const Reject *reject = &BUF_AT(&batch->rejects, Reject, i);

        if (reject->position >= done)
            append_reject(rows, batch, reject);
    }
    batch_seal(rows);
    return rows;
}

/* Whether the log has a line of this column; the next time it has. */
static bool
was_told(IcebergTable *table, int attnum)
{
    for (size_t i = 0; i < BUF_COUNT(&table->rejects_told, int); i++)
        if (BUF_AT(&table->rejects_told, int, i) == attnum)
            return true;
    BUF_PUSH(&table->rejects_told, int, attnum);
    return false;
}

/* The first one of each column. */
static void
log_first_rejects(IcebergTable *table, const Batch *batch)
{
    for (size_t i = 0; i < BUF_COUNT(&batch->rejects, Reject); i++) {
        const Reject *reject = &BUF_AT(&batch->rejects, Reject, i);
        const SchemaColumn *column = &batch->schema->columns[reject->column];

        if (!was_told(table, column->attnum))
            log_warn("value rejected", LOG_STR("table", table->base.lake_name),
                     LOG_VIEW("column", column->field.name), LOG_STR("type", column->pg_type),
                     LOG_VIEW("reason", reject_text(batch, reject->reason)),
                     LOG_STR("recorded", "_walberg.rejects"));
    }
}

bool
iceberg_rejects_write(IcebergTable *table, const Batch *batch, Error *err)
{
    IcebergSink *sink = table->sink;
    Position recorded;

    if (BUF_COUNT(&batch->rejects, Reject) == 0)
        return true;
    TRY(ready_rejects(sink, err));
    TRY(recorded_position(table, &recorded, err));

    Batch *rows = reject_rows(sink->rejects->base.schema, batch, recorded);
    int64_t count = (int64_t) rows->rows;
    bool done = count == 0 || iceberg_write(&sink->base, &sink->rejects->base, rows, err);

    batch_free(rows);
    if (!done)
        return false;
    if (count > 0)
        count_rejects(table, count);
    log_first_rejects(table, batch);
    table->rejects_pending = true;
    return true;
}

bool
iceberg_rejects_commit(IcebergSink *sink, Position position, int64_t commit_time_us, Error *err)
{
    IcebergTable *rejects = sink->rejects;
    AUTO_BUF Buf counted = {0};

    buf_append(&counted, rejects->pending.rejects.ptr, rejects->pending.rejects.len);
    if (rejects->pending.any && !iceberg_commit_pending(rejects, position, commit_time_us, err))
        return WRAP(err, "table _walberg.rejects");
    for (size_t i = 0; i < BUF_COUNT(&counted, RejectCount); i++) {
        IcebergTable *table = BUF_AT(&counted, RejectCount, i).of;

        table->base.rejects = recorded_count(&rejects->metadata->properties, table);
    }
    for (size_t i = 0; i < sink->table_count; i++)
        sink->tables[i]->rejects_pending = false;
    return true;
}

/* Their position is not noted: more of the same transaction may come when the table goes on. */
bool
iceberg_record(Sink *base, SinkTable *sink_table, Batch *batch, Error *err)
{
    IcebergSink *sink = (IcebergSink *) (void *) base;

    TRY(iceberg_rejects_write((IcebergTable *) (void *) sink_table, batch, err));
    buf_reset(&batch->rejects); /* the rest may fail and be repeated */
    return sink->rejects == NULL || iceberg_rejects_commit(sink, POSITION_NONE, 0, err);
}

/* --- the initial copy ------------------------------------------------------------------------ */

typedef struct RejectSource {
    RowSource source;
    const Batch *rows;
    bool given;
} RejectSource;

static bool
next_rejects(RowSource *source, RowBlock *out_block, Error *err)
{
    RejectSource *from = (RejectSource *) (void *) source;

    (void) err;
    *out_block =
        (RowBlock){.columns = from->rows->columns, .rows = from->given ? 0 : from->rows->rows};
    from->given = true;
    return true;
}

static bool
write_reject_file(IcebergTable *rejects, Arena *arena, const Batch *rows, Buf *files, Error *err)
{
    /* copying threads come here while the main thread commits: nothing of the table is looked at */
    static const PartitionSpec unpartitioned = {0};
    RejectSource source = {.source = {.next = next_rejects}, .rows = rows};
    FileWrite write = {
        .spec = &unpartitioned,
        .key = iceberg_data_key(rejects, arena, "data"),
        .fields = iceberg_table_fields(rejects, arena),
        .field_count = REJECT_COLUMN_COUNT,
        .rows = &source.source,
        .content = CONTENT_DATA,
    };
    DataFile file;

    TRY(iceberg_write_file(rejects, arena, &write, &file, err));
    BUF_PUSH(files, DataFile, file);
    return true;
}

bool
iceberg_bulk_rejects(IcebergTable *table, Arena *arena, const Batch *batch, Buf *files, Error *err)
{
    if (BUF_COUNT(&batch->rejects, Reject) == 0)
        return true;
    TRY(attach_rejects(table->sink, err));
    pthread_mutex_lock(&table->sink->lock);
    log_first_rejects(table, batch);
    pthread_mutex_unlock(&table->sink->lock);

    Batch *rows = reject_rows(table->sink->rejects->base.schema, batch, POSITION_NONE);
    bool done = write_reject_file(table->sink->rejects, arena, rows, files, err);

    batch_free(rows);
    return done;
}

bool
iceberg_rejects_adopt(IcebergSink *sink, IcebergTable *table, Error *err)
{
    size_t count = BUF_COUNT(&table->bulk_rejects, BulkFile);

    if (count > 0)
        TRY(attach_rejects(sink, err));
    if (sink->rejects == NULL || (count == 0 && !table->rejects_adopted))
        return true;
    if (count > 0 && sink->rejects->half_loaded && !iceberg_table_load(sink->rejects, err))
        return WRAP(err, "table _walberg.rejects");
    if (sink->rejects_remade && !iceberg_check_rejects(table, err)) {
        if (err->kind == ERR_COPY)
            err->kind = ERR_INPUT;
        return WRAP(err, "table _walberg.rejects");
    }
    for (size_t i = 0; i < count; i++) {
        DataFile file = iceberg_copy_file(sink->rejects->pending.arena,
                                          &BUF_AT(&table->bulk_rejects, BulkFile, i).file);

        count_rejects(table, file.record_count);
        BUF_PUSH(&sink->rejects->pending.files, DataFile, file);
        sink->rejects->pending.any = table->rejects_adopted = true;
    }
    buf_reset(&table->bulk_rejects);
    /* those of the stream that wait there come along: before their rows, as ever */
    TRY(iceberg_rejects_commit(sink, POSITION_NONE, 0, err));
    table->rejects_adopted = false;
    return true;
}
