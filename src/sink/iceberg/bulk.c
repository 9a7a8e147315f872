/* bulk.c - the initial copy: rows of one table from several threads into data files, one commit.
 *
 * A load runs on the thread that calls it: the Parquet writer pulls blocks, the block is the next
 * batch of the source. Only what threads share (the list of pending files, the key index) is under
 * the sink's lock. A file ends when it is large, or when the rows became so much wider than those
 * it began with that its row groups would outgrow the memory budget, or when a -0 comes and it
 * began with dictionaries (duck/parquet.h). */
#include <assert.h>

#include "base/fault.h"
#include "sink/iceberg/sink.h"

enum { FILE_ROWS_MAX = 8 << 20, WIDTH_RATIO_MAX = 4, LARGE_SHARE = 16 };

static const size_t FILE_BYTES_MAX = (size_t) 1
                                     << 30; /* in memory; about a quarter of it on disk */

typedef struct BulkRows {
    RowSource source;
    BulkSource *inner;
    IcebergTable *table;
    IndexBuild *build;
    Batch *ahead; /* fetched, not yet given to a file */
    size_t rows;  /* in this file */
    size_t bytes;
    size_t row_bytes; /* of its first batch */
    bool ended;
    bool negative_zero; /* a batch had one, perhaps the one ahead */
    bool dictionaries;  /* in this file, so it cannot take that batch */
    bool alone;         /* holds sink->large */
    Arena *arena;
    Buf files;   /* DataFile, complete ones */
    Buf rejects; /* DataFile of the rejects table */
} BulkRows;

static size_t
batch_bytes(const Batch *batch)
{
    size_t bytes = 0;

    for (int i = 0; i < batch->schema->column_count; i++)
        bytes += column_memory(&batch->columns[i]);
    return bytes;
}

/* The next batch that has rows: an empty one, which the last may be, would end the file. */
static bool
fetch(BulkRows *rows, Error *err)
{
    do {
        rows->ahead = NULL;
        TRY(rows->inner->next(rows->inner, &rows->ahead, err));
    } while (rows->ahead != NULL && rows->ahead->rows == 0);
    rows->ended = rows->ahead == NULL;
    if (!rows->ended && !rows->negative_zero)
        rows->negative_zero =
            columns_have_negative_zero(rows->ahead->columns, rows->ahead->schema->column_count);
    return true;
}

static bool
file_is_full(const BulkRows *rows, size_t bytes)
{
    size_t width = bytes / (rows->ahead->rows + 1);

    return rows->rows > 0 && ((rows->negative_zero && rows->dictionaries) ||
                              rows->rows + rows->ahead->rows > FILE_ROWS_MAX ||
                              rows->bytes + bytes > FILE_BYTES_MAX ||
                              width > WIDTH_RATIO_MAX * (rows->row_bytes + 64));
}

/* The writer holds several times what it is given. Of batches that outgrow the budget by a single
 * row, one at a time is with it. */
static void
wait_to_be_alone(BulkRows *rows, size_t bytes)
{
    IcebergSink *sink = rows->table->sink;

    if (bytes <= (size_t) sink->config->memory / LARGE_SHARE)
        return;
    pthread_mutex_lock(&sink->large);
    rows->alone = true;
}

static void
no_longer_alone(BulkRows *rows)
{
    if (rows->alone)
        pthread_mutex_unlock(&rows->table->sink->large);
    rows->alone = false;
}

/* What a batch says beside its rows. */
static bool
note_batch(BulkRows *rows, const Batch *batch, Error *err)
{
    pthread_mutex_lock(&rows->table->sink->lock);
    iceberg_track_numerics(rows->table, batch);
    pthread_mutex_unlock(&rows->table->sink->lock);
    return iceberg_bulk_rejects(rows->table, rows->arena, batch, &rows->rejects, err);
}

static bool
next_bulk(RowSource *source, RowBlock *out_block, Error *err)
{
    BulkRows *rows = (BulkRows *) (void *) source;

    no_longer_alone(rows);
    if (rows->ahead == NULL && !rows->ended)
        TRY(fetch(rows, err));
    *out_block = (RowBlock){0};
    if (rows->ended)
        return true;

    Batch *batch = rows->ahead;
    size_t bytes = batch_bytes(batch);

    if (file_is_full(rows, bytes))
        return true; /* stays ahead, for the next file */
    if (rows->build != NULL)
        TRY(index_build_add(rows->build, (const Hash128 *) (const void *) batch->keys.ptr,
                            batch->rows, err));
    TRY(note_batch(rows, batch, err));
    rows->rows += batch->rows;
    rows->bytes += bytes;
    rows->ahead = NULL;
    wait_to_be_alone(rows, bytes);
    *out_block = (RowBlock){.columns = batch->columns, .rows = batch->rows};
    return true;
}

static bool
begin_index(IcebergTable *table, Str path, IndexBuild **out_build, Error *err)
{
    bool done = true;

    *out_build = NULL;
    if (table->index == NULL)
        return true;
    pthread_mutex_lock(&table->sink->lock);
    done = index_build_begin(table->index, path, out_build, err);
    pthread_mutex_unlock(&table->sink->lock);
    return done;
}

static bool
end_index(IcebergTable *table, BulkRows *rows, Error *err)
{
    IndexBuild *build = rows->build;
    bool done = true;

    rows->build = NULL;
    if (build == NULL)
        return true;
    pthread_mutex_lock(&table->sink->lock);
    done = index_build_end(build, err);
    pthread_mutex_unlock(&table->sink->lock);
    return done;
}

static void
keep_files(IcebergTable *table, const Buf *files, int load, Buf *into)
{
    for (size_t i = 0; i < BUF_COUNT(files, DataFile); i++) {
        BulkFile kept = {.file =
                             iceberg_copy_file(table->pending.arena, &BUF_AT(files, DataFile, i)),
                         .load = load};

        BUF_PUSH(into, BulkFile, kept);
        if (into == &table->pending.loaded)
            BUF_PUSH(&table->pending.files, DataFile, kept.file);
    }
}

/* A load counts as a whole: its files join the table's when all of its rows are written, so that a
 * range whose connection broke can be copied again. */
static void
end_load(BulkRows *rows, bool keep)
{
    IcebergTable *table = rows->table;

    pthread_mutex_lock(&table->sink->lock);
    if (keep) {
        keep_files(table, &rows->files, rows->inner->load, &table->pending.loaded);
        keep_files(table, &rows->rejects, rows->inner->load, &table->bulk_rejects);
        table->pending.any |= rows->files.len > 0;
    } else {
        for (size_t i = 0; i < BUF_COUNT(&rows->files, DataFile) && table->index != NULL; i++)
            index_remove_file(table->index, BUF_AT(&rows->files, DataFile, i).path);
    }
    pthread_mutex_unlock(&table->sink->lock);
    if (!keep) {
        iceberg_discard_files(table->sink, &rows->files);
        iceberg_discard_files(table->sink, &rows->rejects);
    }
    buf_done(&rows->files);
    buf_done(&rows->rejects);
}

static bool
load_file(IcebergTable *table, BulkRows *rows, Error *err)
{
    Arena *arena = rows->arena;
    const Config *config = table->sink->config;
    const char *key = iceberg_data_key(table, arena, "data");
    Str uri = str_of(store_uri(table->sink->store, arena, key));
    DataFile file;

    rows->row_bytes = batch_bytes(rows->ahead) / (rows->ahead->rows + 1);
    rows->rows = rows->bytes = 0;
    rows->dictionaries = !rows->negative_zero;
    TRY(begin_index(table, uri, &rows->build, err));

    FileWrite write = {
        .key = key,
        .fields = iceberg_table_fields(table, arena),
        .field_count = table->base.schema->column_count,
        .rows = &rows->source,
        .row_bytes = rows->row_bytes,
        .row_group_bytes = config->memory / (4 * config->copy_workers),
        .content = CONTENT_DATA,
        .no_negative_zero = rows->dictionaries,
    };

    bool written = iceberg_write_file(table, arena, &write, &file, err);

    no_longer_alone(rows);
    if (!written) {
        if (rows->build != NULL)
            index_build_abort(rows->build);
        return false;
    }
    assert(file.record_count == (int64_t) rows->rows);
    BUF_PUSH(&rows->files, DataFile, file);
    return end_index(table, rows, err);
}

/* --- a partitioned table --------------------------------------------------------------------- */

static bool
buffer_batch(BulkRows *rows, PartitionBuffers *buffers, Error *err)
{
    const Batch *batch = rows->ahead;
    const Hash128 *keys =
        batch->keys.len == 0 ? NULL : (const Hash128 *) (const void *) batch->keys.ptr;
    RowBlock block = {.columns = batch->columns, .rows = batch->rows};
    size_t bytes = batch_bytes(batch);
    bool done;

    TRY(note_batch(rows, batch, err));
    wait_to_be_alone(rows, bytes);
    done = iceberg_buffers_add(buffers, &block, keys, bytes / batch->rows + 1, err);
    no_longer_alone(rows);
    return done;
}

/* Half of the budget waits in the buffers of all workers; a row group of one file is beside it. */
static bool
load_partitions(IcebergTable *table, BulkRows *rows, Error *err)
{
    const Config *config = table->sink->config;
    FileWrite like = {
        .fields = iceberg_table_fields(table, rows->arena),
        .field_count = table->base.schema->column_count,
        .row_group_bytes = config->memory / (4 * config->copy_workers),
        .content = CONTENT_DATA,
    };
    size_t budget = (size_t) (config->memory / (2 * config->copy_workers));
    PartitionTarget target = {.arena = rows->arena, .files = &rows->files};
    PartitionBuffers *buffers = iceberg_buffers_new(table, &like, &target, budget, err);

    if (buffers == NULL)
        return false;

    bool done = fetch(rows, err);

    while (done && !rows->ended)
        done = buffer_batch(rows, buffers, err) && fetch(rows, err);
    done = done && iceberg_buffers_finish(buffers, err);
    iceberg_buffers_free(buffers);
    return done;
}

static bool
load_files(IcebergTable *table, BulkRows *rows, Error *err)
{
    if (iceberg_is_partitioned(table))
        return load_partitions(table, rows, err);
    TRY(fetch(rows, err));
    while (!rows->ended)
        TRY(load_file(table, rows, err));
    return true;
}

bool
iceberg_bulk_load(Sink *sink, SinkTable *sink_table, BulkSource *source, Error *err)
{
    IcebergTable *table = (IcebergTable *) (void *) sink_table;
    AUTO_ARENA Arena *arena = arena_new();
    BulkRows rows = {
        .source = {.next = next_bulk}, .inner = source, .table = table, .arena = arena};

    assert(table->sink == (IcebergSink *) (void *) sink);

    bool done = load_files(table, &rows, err);

    end_load(&rows, done);
    return done;
}

bool
iceberg_bulk_commit(Sink *sink, SinkTable *sink_table, Position position, Error *err)
{
    IcebergTable *table = (IcebergTable *) (void *) sink_table;

    TRY(FAULT("sink.bulk_commit", err));
    if (table->index_unsure)
        TRY(iceberg_sync_index(table, err));
    table->index_unsure = false;
    iceberg_hide(table, position);
    if (iceberg_is_hidden(table))
        return true;
    TRY(iceberg_rejects_adopt((IcebergSink *) (void *) sink, table, err));
    /* also without rows: the position says that the copy is complete */
    return iceberg_commit_pending(table, position, 0, err);
}
