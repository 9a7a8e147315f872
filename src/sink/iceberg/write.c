/* write.c - a batch becomes deletes by position and a data file that no snapshot names yet.
 *
 * Order matters: unchanged TOAST values are read from the lake, while the file is written, before
 * anything is deleted there; nothing in the table changes before the data file is durable, so a
 * failed write can be repeated. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/folder.h"
#include "base/log.h"
#include "batch/fold.h"
#include "sink/iceberg/sink.h"

enum {
    ROW_GROUP_BYTES_MAX = 32 << 20,
    ROW_GROUP_ROWS_MAX = 122880,
    ROW_GROUP_ROWS_MIN = 2048,
    WIDE_ROW_BYTES = 4096,
};

/* --- files ----------------------------------------------------------------------------------- */

/* Passes the blocks through to the writer and gathers the column metrics on the way. */
typedef struct MeteredSource {
    RowSource source;
    RowSource *inner;
    FileMetrics *metrics;
} MeteredSource;

static bool
next_metered(RowSource *source, RowBlock *out_block, Error *err)
{
    MeteredSource *metered = (MeteredSource *) (void *) source;

    TRY(metered->inner->next(metered->inner, out_block, err));
    if (out_block->rows > 0)
        file_metrics_add(metered->metrics, out_block->columns, out_block->rows, out_block->dead);
    return true;
}

static void
describe_file(Arena *arena, const ParquetFile *parquet, DataFile *file)
{
    file->format = STR("PARQUET");
    file->record_count = parquet->rows;
    file->file_bytes = parquet->bytes;
    file->first_row_id = file->content_offset = file->content_bytes = -1;
    file->split_count = (size_t) parquet->row_group_count;
    file->split_offsets = parquet->row_group_offsets;
    file->column_sizes.count = (size_t) parquet->leaf_count;
    file->column_sizes.items = ARENA_ARRAY(arena, CountByField, (size_t) parquet->leaf_count);
    for (int i = 0; i < parquet->leaf_count; i++)
        file->column_sizes.items[i] = (CountByField){.field_id = parquet->leaves[i].field_id,
                                                     .count = parquet->leaves[i].compressed_bytes};
}

/* Row groups are what the writer holds in memory, so their size follows the budget, too. */
static int64_t
row_group_bytes(const FileWrite *write)
{
    int64_t bytes = write->row_group_bytes;

    return bytes == 0 || bytes > ROW_GROUP_BYTES_MAX ? ROW_GROUP_BYTES_MAX : bytes;
}

static int64_t
row_group_rows(const FileWrite *write)
{
    int64_t bytes = row_group_bytes(write);
    int64_t rows = write->row_bytes == 0 ? ROW_GROUP_ROWS_MAX : bytes / (int64_t) write->row_bytes;
    if (rows > ROW_GROUP_ROWS_MAX)
        return ROW_GROUP_ROWS_MAX;
    return rows < ROW_GROUP_ROWS_MIN ? ROW_GROUP_ROWS_MIN
                                     : rows / ROW_GROUP_ROWS_MIN * ROW_GROUP_ROWS_MIN;
}

static int64_t
next_file_number(IcebergSink *sink)
{
    return __atomic_add_fetch(&sink->file_number, 1, __ATOMIC_RELAXED);
}

const char *
iceberg_data_key_in(IcebergTable *table, Arena *arena, const char *folder, const char *kind)
{
    IcebergSink *sink = table->sink;

    return arena_printf(arena, "%s/data/%s%s-%05" PRId64 "-%s.parquet", table->prefix, folder,
                        sink->run_id, next_file_number(sink), kind);
}

const char *
iceberg_vectors_key(IcebergTable *table, Arena *arena)
{
    IcebergSink *sink = table->sink;

    return arena_printf(arena, "%s/data/%s-%05" PRId64 "-deletes.puffin", table->prefix,
                        sink->run_id, next_file_number(sink));
}

const char *
iceberg_data_key(IcebergTable *table, Arena *arena, const char *kind)
{
    return iceberg_data_key_in(table, arena, "", kind);
}

static void *
copy_items(Arena *arena, const void *items, size_t count, size_t size)
{
    void *copy = arena_alloc(arena, count * size);

    if (count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

DataFile
iceberg_copy_file(Arena *arena, const DataFile *file)
{
    DataFile copy = *file;

    copy.path = arena_str(arena, file->path);
    copy.partition = arena_str(arena, file->partition);
#define COPY_MAP(map)                                                                              \
    copy.map.items = copy_items(arena, file->map.items, file->map.count, sizeof *file->map.items)
    COPY_MAP(column_sizes);
    COPY_MAP(value_counts);
    COPY_MAP(null_counts);
    COPY_MAP(nan_counts);
    COPY_MAP(lower_bounds);
    COPY_MAP(upper_bounds);
#undef COPY_MAP
    for (size_t i = 0; i < copy.lower_bounds.count; i++)
        copy.lower_bounds.items[i].value = arena_str(arena, file->lower_bounds.items[i].value);
    for (size_t i = 0; i < copy.upper_bounds.count; i++)
        copy.upper_bounds.items[i].value = arena_str(arena, file->upper_bounds.items[i].value);
    copy.split_offsets = copy_items(arena, file->split_offsets, file->split_count, sizeof(int64_t));
    copy.equality_ids = copy_items(arena, file->equality_ids, file->equality_id_count, sizeof(int));
    if (file->referenced_data_file.ptr != NULL)
        copy.referenced_data_file = arena_str(arena, file->referenced_data_file);
    return copy;
}

bool
iceberg_write_file(IcebergTable *table, Arena *arena, const FileWrite *write, DataFile *out_file,
                   Error *err)
{
    IcebergSink *sink = table->sink;
    FileMetrics *metrics = file_metrics_new(write->fields, write->field_count);
    MeteredSource metered = {
        .source = {.next = next_metered}, .inner = write->rows, .metrics = metrics};
    const char *key = write->key;
    const char *local = store_local_path(sink->store, arena, key);
    const char *path = arena_printf(arena, "%s.part", file_cache_place(&sink->files, arena, key));
    ParquetWrite parquet_write = {
        .path = path,
        .fields = write->fields,
        .field_count = write->field_count,
        .rows = &metered.source,
        .no_negative_zero = write->no_negative_zero,
        .row_group_rows = row_group_rows(write),
        .row_group_bytes = row_group_bytes(write),
    };
    ParquetFile parquet;
    DataFile file = {
        .content = write->content,
        .spec_id = (write->spec != NULL ? write->spec : iceberg_spec(table))->spec_id,
        .partition = write->partition,
        .sort_order_id = write->sort_order_id > 0 ? write->sort_order_id : -1,
    };
    bool done = folder_make_above(path, local != NULL ? 0777 : 0700, err) &&
                duck_write_parquet(sink->duck, arena, &parquet_write, &parquet, err);

    if (done && parquet.rows > 0) {
        describe_file(arena, &parquet, &file);
        file_metrics_finish(metrics, arena, &file);
        file.path = str_of(store_uri(sink->store, arena, key));
        done = FAULT("sink.file_written", err) && file_cache_put(&sink->files, key, path, err);
    } else if (done) {
        unlink(path);
    }
    file_metrics_free(metrics);
    if (!done) {
        unlink(path);
        return false;
    }
    *out_file = file;
    return true;
}

const Field *
iceberg_table_fields(const IcebergTable *table, Arena *arena)
{
    const TableSchema *schema = table->base.schema;
    Field *fields = ARENA_ARRAY(arena, Field, (size_t) schema->column_count);

    for (int i = 0; i < schema->column_count; i++)
        fields[i] = schema->columns[i].field;
    return fields;
}

/* --- bare numeric columns -------------------------------------------------------------------- */

void
iceberg_widen_numeric(NumericWidth *width, Str text)
{
    size_t start = text.len > 0 && text.ptr[0] == '-' ? 1 : 0;
    size_t dot = start;

    if (start == text.len || text.ptr[start] < '0' || text.ptr[start] > '9') {
        width->not_finite = true; /* NaN, Infinity, -Infinity */
        return;
    }
    while (dot < text.len && text.ptr[dot] != '.')
        dot++;

    int digits = text.ptr[start] == '0' && dot == start + 1 ? 0 : (int) (dot - start);
    int scale = dot < text.len ? (int) (text.len - dot - 1) : 0;

    if (digits > width->integer_digits)
        width->integer_digits = digits;
    if (scale > width->scale)
        width->scale = scale;
}

void
iceberg_track_numerics(IcebergTable *table, const Batch *batch)
{
    for (int c = 0; c < table->base.schema->column_count; c++) {
        if (!table->numerics[c].tracked)
            continue;
        for (size_t row = 0; row < batch->rows; row++)
            if (!column_is_null(&batch->columns[c], row) &&
                (batch->dead.len == 0 || !BUF_AT(&batch->dead, uint8_t, row)))
                iceberg_widen_numeric(&table->numerics[c], column_bytes(&batch->columns[c], row));
    }
}

/* --- deletes --------------------------------------------------------------------------------- */

bool
iceberg_look_up(IcebergTable *table, const Hash128 *keys, size_t count, Buf *out_hits, Error *err)
{
    if (index_lookup(table->index, keys, count, out_hits, err))
        return true;
    if (err->kind != ERR_CONFLICT)
        return false;
    log_warn("key index is damaged, reading keys again", LOG_STR("table", table->base.lake_name),
             LOG_STR("error", err->msg));
    buf_reset(out_hits);
    table->index_repairs++;
    TRY(iceberg_sync_index(table, err));
    return index_lookup(table->index, keys, count, out_hits, err);
}

static int
by_file_and_row(const void *a, const void *b)
{
    const DeletedRow *x = a;
    const DeletedRow *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int
by_hash(const void *a, const void *b)
{
    return hash128_cmp(*(const Hash128 *) a, *(const Hash128 *) b);
}

/* The rows of the lake that the batch deletes, into *out as DeletedRow. Each entry of `deletes`
 * takes one live row: under KEY_COLUMNS there is one, under KEY_FULL_ROW twins go one by one. */
static bool
find_deleted_rows(IcebergTable *table, const Batch *batch, Buf *out, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf hits = {0};
    size_t count = BUF_COUNT(&batch->deletes, Hash128);

    if (count == 0)
        return true;

    Hash128 *keys = ARENA_ARRAY(arena, Hash128, count);
    size_t *wanted = ARENA_ARRAY(arena, size_t, count);
    size_t distinct = 0;

    memcpy(keys, batch->deletes.ptr, count * sizeof *keys);
    qsort(keys, count, sizeof *keys, by_hash);
    for (size_t i = 0; i < count; i++) {
        if (distinct == 0 || !hash128_eq(keys[distinct - 1], keys[i]))
            keys[distinct++] = keys[i];
        wanted[distinct - 1]++;
    }
    TRY(iceberg_look_up(table, keys, distinct, &hits, err));
    for (size_t i = 0; i < BUF_COUNT(&hits, IndexHit); i++) {
        IndexHit hit = BUF_AT(&hits, IndexHit, i);
        DeletedRow row = {.file = hit.file, .row = hit.row};

        if (wanted[hit.probe] == 0 ||
            deletes_contains(table->deletes, index_file_name(table->index, hit.file), hit.row))
            continue;
        wanted[hit.probe]--;
        BUF_PUSH(out, DeletedRow, row);
    }
    if (out->len > 0)
        qsort(out->ptr, BUF_COUNT(out, DeletedRow), sizeof(DeletedRow), by_file_and_row);

    if (BUF_COUNT(out, DeletedRow) < count && !table->base.may_miss)
        return FAIL(err, ERR_COPY, "%zu rows that the source changed were not in the lake",
                    count - BUF_COUNT(out, DeletedRow));
    return true;
}

static void
apply_deletes(IcebergTable *table, const Buf *rows)
{
    for (size_t i = 0; i < BUF_COUNT(rows, DeletedRow); i++) {
        DeletedRow row = BUF_AT(rows, DeletedRow, i);
        Str file = index_file_name(table->index, row.file);

        deletes_add(table->deletes, file, row.row);
        deletes_add(table->pending.deletes, file, row.row);
        table->pending.any = true;
    }
}

/* --- truncate -------------------------------------------------------------------------------- */

/* Files of this epoch are forgotten, those of the table leave with the next commit. */
static void
apply_truncate(IcebergTable *table)
{
    iceberg_empty_index(table);
    iceberg_discard_pending(table);
    buf_reset(&table->pending.files);
    deletes_clear(table->pending.deletes);
    deletes_clear(table->deletes);
    table->pending.truncated = true;
    table->pending.any = true;
}

/* --- the batch ------------------------------------------------------------------------------- */

typedef struct BatchSource {
    RowSource source;
    const Batch *batch;
    bool given;
} BatchSource;

static bool
next_batch(RowSource *source, RowBlock *out_block, Error *err)
{
    BatchSource *from = (BatchSource *) (void *) source;
    const Batch *batch = from->batch;
    bool all_live = batch->live_rows == batch->rows;

    (void) err;
    *out_block = (RowBlock){
        .columns = batch->columns,
        .rows = from->given ? 0 : batch->rows,
        .dead = all_live ? NULL : (const uint8_t *) batch->dead.ptr,
    };
    from->given = true;
    return true;
}

/* The keys of the live rows: row i of the file. order: NULL, or what the file has at i. */
static bool
index_live_rows(IcebergTable *table, const Batch *batch, const uint32_t *order, Str file,
                Error *err)
{
    AUTO_BUF Buf live = {0};
    const Hash128 *keys = (const Hash128 *) (const void *) batch->keys.ptr;

    if (table->index == NULL)
        return true;
    if (batch->live_rows == batch->rows && order == NULL)
        return index_add_file(table->index, file, keys, batch->rows, err);
    buf_reserve(&live, batch->live_rows * sizeof *keys);
    for (size_t i = 0; order != NULL && i < batch->live_rows; i++)
        BUF_PUSH(&live, Hash128, keys[order[i]]);
    for (size_t i = 0; order == NULL && i < batch->rows; i++)
        if (!BUF_AT(&batch->dead, uint8_t, i))
            BUF_PUSH(&live, Hash128, keys[i]);
    return index_add_file(table->index, file, (const Hash128 *) (const void *) live.ptr,
                          batch->live_rows, err);
}

static size_t
batch_row_bytes(const Batch *batch)
{
    size_t bytes = 0;

    for (int i = 0; i < batch->schema->column_count; i++)
        bytes += column_memory(&batch->columns[i]);
    return batch->rows == 0 ? 0 : bytes / batch->rows;
}

/* Beside the writer's row group, which it holds about three times, there are two batches. Wide
 * rows make row groups of few rows anyway. */
static int64_t
stream_row_group_bytes(const IcebergTable *table, const Batch *batch)
{
    return table->sink->config->memory / (batch_row_bytes(batch) < WIDE_ROW_BYTES ? 8 : 16);
}

/* Unchanged values come out of the lake while the file is written. */
static bool
has_no_negative_zero(const Batch *batch)
{
    for (size_t i = 0; i < BUF_COUNT(&batch->patches, Patch); i++)
        if (type_has_reals(batch->columns[BUF_AT(&batch->patches, Patch, i).column].type))
            return false;
    return !columns_have_negative_zero(batch->columns, batch->schema->column_count);
}

/* order: see index_live_rows(). */
static bool
write_one_file(IcebergTable *table, const Batch *batch, const uint32_t *order, FileWrite *write,
               Error *err)
{
    AUTO_BUF Buf written = {0};
    DataFile file;

    write->key = iceberg_data_key(table, table->pending.arena, "data");
    TRY(iceberg_write_file(table, table->pending.arena, write, &file, err));
    BUF_PUSH(&written, DataFile, file);
    if (!index_live_rows(table, batch, order, file.path, err)) {
        iceberg_discard_files(table->sink, &written);
        return false;
    }
    buf_append(&table->pending.files, written.ptr, written.len);
    return true;
}

/* places: of the batch's patches. Files of partitions are sorted each for itself. */
static bool
write_live_rows(IcebergTable *table, const Batch *batch, Buf *places, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    bool partitioned = iceberg_is_partitioned(table);
    const uint32_t *order = partitioned ? NULL : iceberg_sorted_rows(table, batch, arena);
    int column_count = batch->schema->column_count;
    BatchSource source = {.source = {.next = next_batch}, .batch = batch};
    AUTO_PATCHED PatchedRows *patched =
        places->len == 0 ? NULL : iceberg_patched_rows(table, batch, places, order);
    AUTO_PICKED PickedRows *picked = NULL;
    FileWrite write = {
        .fields = iceberg_table_fields(table, table->pending.arena),
        .field_count = column_count,
        .rows = &source.source,
        .row_bytes = batch_row_bytes(batch),
        .row_group_bytes = stream_row_group_bytes(table, batch),
        .content = CONTENT_DATA,
        .no_negative_zero = has_no_negative_zero(batch),
        .sort_order_id = order != NULL ? iceberg_sort_order(table)->order_id : 0,
    };

    if (partitioned)
        return iceberg_write_partitions(table, batch, &write, (RowSource *) (void *) patched, err);
    if (patched != NULL) {
        write.rows = (RowSource *) (void *) patched;
    } else if (order != NULL) {
        picked = iceberg_picked_rows(batch->columns, column_count, write.row_bytes);
        iceberg_pick(picked, order, batch->live_rows);
        write.rows = (RowSource *) (void *) picked;
    }
    return write_one_file(table, batch, order, &write, err);
}

/* Rows that the batch needs (patches) and deletes. A repair of the index gives files other numbers,
 * so that all of them are looked up again. */
static bool
find_rows(IcebergTable *table, const Batch *batch, Buf *places, Buf *deleted, Error *err)
{
    int64_t repairs;

    if (table->index == NULL)
        return true;
    do {
        repairs = table->index_repairs;
        buf_reset(places);
        buf_reset(deleted);
        TRY(iceberg_find_patches(table, batch, places, err));
        TRY(find_deleted_rows(table, batch, deleted, err));
    } while (repairs != table->index_repairs);
    return true;
}

/* The same while the table's rows are of several moments. That cannot be done twice with a batch.
 */
static bool
find_rows_of_moments(IcebergTable *table, Batch *batch, Buf *places, Buf *deleted, Error *err)
{
    int64_t repairs = table->index_repairs;

    TRY(iceberg_catch_up(table, batch, deleted, err));
    if (table->index != NULL)
        TRY(iceberg_find_patches(table, batch, places, err));
    return repairs == table->index_repairs ||
           FAIL(err, ERR_COPY, "the key index was damaged while an interrupted copy caught up");
}

bool
iceberg_write(Sink *sink, SinkTable *sink_table, Batch *batch, Error *err)
{
    IcebergTable *table = (IcebergTable *) (void *) sink_table;
    AUTO_BUF Buf deleted = {0};
    AUTO_BUF Buf places = {0};

    assert(table->sink == (IcebergSink *) (void *) sink);
    /* first, and once: the rest may fail and be repeated with the same batch */
    TRY(iceberg_rejects_write(table, batch, err));
    buf_reset(&batch->rejects);
    if (iceberg_is_hidden(table)) {
        TRY(find_rows_of_moments(table, batch, &places, &deleted, err));
    } else {
        if (batch->truncated)
            apply_truncate(table);
        TRY(find_rows(table, batch, &places, &deleted, err));
    }
    if (batch->live_rows > 0) {
        TRY(write_live_rows(table, batch, &places, err));
        iceberg_track_numerics(table, batch);
        table->pending.any = true;
    }
    apply_deletes(table, &deleted);
    return true;
}
