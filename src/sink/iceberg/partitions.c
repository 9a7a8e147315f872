/* partitions.c - rows of a partitioned table into one data file per partition.
 *
 * A batch of the stream is in memory as a whole: its rows are written partition by partition, each
 * taken out of the batch a few thousand at a time. Order within a partition is the table's sort
 * order, or the batch's, and the key index gets row numbers of the files. One file is open at any
 * time.
 *
 * The initial copy, and rows whose unchanged values are read back from the lake, come in blocks of
 * which only one is there at a time: rows wait in a buffer per partition. When all buffers together
 * reach their budget, the largest becomes a file. So memory has a bound whatever the number of
 * partitions; the price of very many is small files. */
#include <assert.h>

#include "iceberg/partitioner.h"
#include "iceberg/spec.h"
#include "sink/iceberg/sink.h"

enum { PATCHED_SHARE = 16 };

/* --- a file of one partition ----------------------------------------------------------------- */

/* What the files of a table have in common. */
typedef struct PartitionWriter {
    IcebergTable *table;
    FileWrite like;
    ResultType *types;
    Partitioner *partitioner;
    Sorter *sorter; /* NULL: rows stay as they come */
} PartitionWriter;

static bool
writer_init(PartitionWriter *writer, IcebergTable *table, Arena *arena, const FileWrite *like,
            Error *err)
{
    *writer = (PartitionWriter){.table = table, .like = *like};
    TRY(iceberg_check_spec(table, arena, &writer->types, err));
    writer->like.spec = iceberg_spec(table);
    writer->partitioner = partitioner_new(writer->like.spec, like->fields, like->field_count);
    writer->sorter = iceberg_sorter(table, like->fields, like->field_count);
    writer->like.sort_order_id = writer->sorter != NULL ? iceberg_sort_order(table)->order_id : 0;
    return true;
}

static void
writer_done(PartitionWriter *writer)
{
    partitioner_free(writer->partitioner);
    sorter_free(writer->sorter);
}

/* Write rows of partition `number`. */
static bool
write_partition(const PartitionWriter *writer, Arena *arena, size_t number, RowSource *rows,
                DataFile *out_file, Error *err)
{
    AUTO_BUF Buf folder = {0};
    Str tuple = partitioner_tuple(writer->partitioner, number);
    FileWrite write = writer->like;

    partition_path(write.spec, writer->types, tuple, &folder);
    buf_byte(&folder, '/');
    write.key = iceberg_data_key_in(writer->table, arena, buf_text(&folder), "data");
    write.rows = rows;
    write.partition = arena_str(arena, tuple);
    return iceberg_write_file(writer->table, arena, &write, out_file, err);
}

/* --- a batch as it is ------------------------------------------------------------------------ */

/* The live rows of a batch, ordered by partition, and within one as its file has them. */
typedef struct Split {
    size_t count;   /* partitions */
    size_t *starts; /* count + 1: where each begins in rows */
    uint32_t *rows;
} Split;

static bool
split_rows(Arena *arena, Partitioner *partitioner, const Batch *batch, Split *out, Error *err)
{
    const uint8_t *dead =
        batch->live_rows == batch->rows ? NULL : (const uint8_t *) batch->dead.ptr;
    uint32_t *numbers = ARENA_ARRAY(arena, uint32_t, batch->rows);
    size_t *next;

    TRY(partitioner_assign(partitioner, batch->columns, batch->rows, dead, numbers, err));
    out->count = partitioner_count(partitioner);
    out->starts = ARENA_ARRAY(arena, size_t, out->count + 1);
    out->rows = ARENA_ARRAY(arena, uint32_t, batch->live_rows);
    next = ARENA_ARRAY(arena, size_t, out->count + 1);
    for (size_t row = 0; row < batch->rows; row++)
        if (dead == NULL || !dead[row])
            out->starts[numbers[row] + 1]++;
    for (size_t p = 0; p < out->count; p++) {
        out->starts[p + 1] += out->starts[p];
        next[p] = out->starts[p];
    }
    assert(out->starts[out->count] == batch->live_rows);
    for (size_t row = 0; row < batch->rows; row++)
        if (dead == NULL || !dead[row])
            out->rows[next[numbers[row]]++] = (uint32_t) row;
    return true;
}

static void
sort_split(const PartitionWriter *writer, const Batch *batch, Split *split)
{
    if (writer->sorter == NULL)
        return;
    sorter_begin(writer->sorter, batch->columns, batch->rows);
    for (size_t p = 0; p < split->count; p++)
        sorter_sort(writer->sorter, split->rows + split->starts[p],
                    split->starts[p + 1] - split->starts[p]);
}

static bool
write_split(const PartitionWriter *writer, const Batch *batch, const Split *split, Buf *files,
            Error *err)
{
    AUTO_PICKED PickedRows *picked =
        iceberg_picked_rows(batch->columns, batch->schema->column_count, writer->like.row_bytes);

    for (size_t p = 0; p < split->count; p++) {
        DataFile file;

        iceberg_pick(picked, split->rows + split->starts[p],
                     split->starts[p + 1] - split->starts[p]);
        TRY(write_partition(writer, writer->table->pending.arena, p, (RowSource *) (void *) picked,
                            &file, err));
        BUF_PUSH(files, DataFile, file);
    }
    return true;
}

/* Row i of the file of a partition is row i of its part of the split. */
static bool
index_split(IcebergTable *table, const Batch *batch, const Split *split, const Buf *files,
            Error *err)
{
    AUTO_BUF Buf keys = {0};

    for (size_t p = 0; p < split->count && table->index != NULL; p++) {
        size_t count = split->starts[p + 1] - split->starts[p];

        buf_reset(&keys);
        for (size_t i = split->starts[p]; i < split->starts[p + 1]; i++)
            BUF_PUSH(&keys, Hash128, BUF_AT(&batch->keys, Hash128, split->rows[i]));
        if (index_add_file(table->index, BUF_AT(files, DataFile, p).path,
                           (const Hash128 *) (const void *) keys.ptr, count, err))
            continue;
        while (p-- > 0)
            index_remove_file(table->index, BUF_AT(files, DataFile, p).path);
        return false;
    }
    return true;
}

static bool
write_batch(IcebergTable *table, const Batch *batch, const FileWrite *like, Buf *files, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PartitionWriter writer;
    Split split = {0};

    TRY(writer_init(&writer, table, arena, like, err));

    bool done = split_rows(arena, writer.partitioner, batch, &split, err);

    if (done) {
        sort_split(&writer, batch, &split);
        done = write_split(&writer, batch, &split, files, err) &&
               index_split(table, batch, &split, files, err);
    }
    writer_done(&writer);
    return done;
}

/* --- rows that come a block at a time -------------------------------------------------------- */

typedef struct PartitionBuffer {
    Column *columns; /* NULL: empty */
    Buf keys;        /* Hash128 */
    size_t rows;
    size_t bytes; /* about */
} PartitionBuffer;

struct PartitionBuffers {
    PartitionWriter writer;
    PartitionTarget target;
    Arena *arena; /* of the writer's types */
    Buf buffers;  /* PartitionBuffer, by number of the partition */
    Buf numbers;  /* uint32_t, of the rows of a batch */
    size_t bytes;
    size_t budget;
};

PartitionBuffers *
iceberg_buffers_new(IcebergTable *table, const FileWrite *like, const PartitionTarget *target,
                    size_t budget, Error *err)
{
    PartitionBuffers *buffers = xcalloc(1, sizeof *buffers);

    buffers->arena = arena_new();
    buffers->target = *target;
    buffers->budget = budget;
    if (!writer_init(&buffers->writer, table, buffers->arena, like, err)) {
        iceberg_buffers_free(buffers);
        return NULL;
    }
    return buffers;
}

static void
empty_buffer(PartitionBuffers *buffers, PartitionBuffer *buffer)
{
    for (int c = 0; buffer->columns != NULL && c < buffers->writer.like.field_count; c++)
        column_done(&buffer->columns[c]);
    free(buffer->columns);
    buf_done(&buffer->keys);
    buffers->bytes -= buffer->bytes;
    *buffer = (PartitionBuffer){0};
}

void
iceberg_buffers_free(PartitionBuffers *buffers)
{
    if (buffers == NULL)
        return;
    for (size_t p = 0; p < BUF_COUNT(&buffers->buffers, PartitionBuffer); p++)
        empty_buffer(buffers, &BUF_AT(&buffers->buffers, PartitionBuffer, p));
    writer_done(&buffers->writer);
    arena_free(buffers->arena);
    buf_done(&buffers->buffers);
    buf_done(&buffers->numbers);
    free(buffers);
}

typedef struct BufferSource {
    RowSource source;
    const PartitionBuffer *buffer;
    bool given;
} BufferSource;

static bool
next_buffer(RowSource *source, RowBlock *out_block, Error *err)
{
    BufferSource *from = (BufferSource *) (void *) source;

    (void) err;
    *out_block =
        (RowBlock){.columns = from->buffer->columns, .rows = from->given ? 0 : from->buffer->rows};
    from->given = true;
    return true;
}

/* order: what the file has at i; NULL: row i of the buffer. */
static bool
index_buffer(IcebergTable *table, const PartitionBuffer *buffer, const uint32_t *order, Str path,
             Error *err)
{
    AUTO_BUF Buf ordered = {0};
    const Hash128 *keys = (const Hash128 *) (const void *) buffer->keys.ptr;
    bool done = true;

    if (table->index == NULL)
        return true;
    if (order != NULL) {
        buf_reserve(&ordered, buffer->rows * sizeof *keys);
        for (size_t i = 0; i < buffer->rows; i++)
            BUF_PUSH(&ordered, Hash128, keys[order[i]]);
        keys = (const Hash128 *) (const void *) ordered.ptr;
    }
    pthread_mutex_lock(&table->sink->lock);
    done = index_add_file(table->index, path, keys, buffer->rows, err);
    pthread_mutex_unlock(&table->sink->lock);
    return done;
}

/* The rows of a buffer in the order of its file, in `arena`; NULL: in their own. */
static const uint32_t *
sort_buffer(Sorter *sorter, const PartitionBuffer *buffer, Arena *arena)
{
    uint32_t *rows;

    if (sorter == NULL)
        return NULL;
    rows = ARENA_ARRAY(arena, uint32_t, buffer->rows);
    for (size_t i = 0; i < buffer->rows; i++)
        rows[i] = (uint32_t) i;
    sorter_begin(sorter, buffer->columns, buffer->rows);
    sorter_sort(sorter, rows, buffer->rows);
    return rows;
}

/* A buffer becomes a file. */
static bool
flush(PartitionBuffers *buffers, size_t number, Error *err)
{
    PartitionBuffer *buffer = &BUF_AT(&buffers->buffers, PartitionBuffer, number);
    BufferSource source = {.source = {.next = next_buffer}, .buffer = buffer};
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_PICKED PickedRows *picked = NULL;
    PartitionWriter writer = buffers->writer;
    RowSource *rows = &source.source;
    const uint32_t *order = sort_buffer(writer.sorter, buffer, arena);
    DataFile file;

    writer.like.row_bytes = buffer->bytes / buffer->rows + 1;
    writer.like.no_negative_zero =
        !columns_have_negative_zero(buffer->columns, writer.like.field_count);
    if (order != NULL) {
        picked =
            iceberg_picked_rows(buffer->columns, writer.like.field_count, writer.like.row_bytes);
        iceberg_pick(picked, order, buffer->rows);
        rows = (RowSource *) (void *) picked;
    }
    TRY(write_partition(&writer, buffers->target.arena, number, rows, &file, err));
    BUF_PUSH(buffers->target.files, DataFile, file);
    TRY(index_buffer(writer.table, buffer, order, file.path, err));
    empty_buffer(buffers, buffer);
    return true;
}

static void
append_row(PartitionBuffers *buffers, PartitionBuffer *buffer, const Column *columns, size_t row)
{
    int count = buffers->writer.like.field_count;

    if (buffer->columns == NULL) {
        buffer->columns = xcalloc((size_t) count, sizeof(Column));
        for (int c = 0; c < count; c++)
            column_init(&buffer->columns[c], buffers->writer.like.fields[c].type);
    }
    for (int c = 0; c < count; c++)
        column_append_copy(&buffer->columns[c], &columns[c], row);
    buffer->rows++;
}

static size_t
largest_buffer(const PartitionBuffers *buffers)
{
    size_t largest = 0;

    for (size_t p = 1; p < BUF_COUNT(&buffers->buffers, PartitionBuffer); p++)
        if (BUF_AT(&buffers->buffers, PartitionBuffer, p).bytes >
            BUF_AT(&buffers->buffers, PartitionBuffer, largest).bytes)
            largest = p;
    return largest;
}

bool
iceberg_buffers_add(PartitionBuffers *buffers, const RowBlock *block, const Hash128 *keys,
                    size_t row_bytes, Error *err)
{
    Partitioner *partitioner = buffers->writer.partitioner;
    size_t known = BUF_COUNT(&buffers->buffers, PartitionBuffer);
    uint32_t *numbers;

    assert(block->dead == NULL);
    buf_reset(&buffers->numbers);
    numbers = buf_push(&buffers->numbers, block->rows * sizeof *numbers);
    TRY(partitioner_assign(partitioner, block->columns, block->rows, NULL, numbers, err));
    for (; known < partitioner_count(partitioner); known++)
        memset(buf_push(&buffers->buffers, sizeof(PartitionBuffer)), 0, sizeof(PartitionBuffer));
    for (size_t row = 0; row < block->rows; row++) {
        PartitionBuffer *buffer = &BUF_AT(&buffers->buffers, PartitionBuffer, numbers[row]);

        append_row(buffers, buffer, block->columns, row);
        if (keys != NULL)
            BUF_PUSH(&buffer->keys, Hash128, keys[row]);
        buffer->bytes += row_bytes;
        buffers->bytes += row_bytes;
    }
    while (buffers->bytes > buffers->budget)
        TRY(flush(buffers, largest_buffer(buffers), err));
    return true;
}

bool
iceberg_buffers_finish(PartitionBuffers *buffers, Error *err)
{
    for (size_t p = 0; p < BUF_COUNT(&buffers->buffers, PartitionBuffer); p++)
        if (BUF_AT(&buffers->buffers, PartitionBuffer, p).rows > 0)
            TRY(flush(buffers, p, err));
    return true;
}

/* --- a batch of the stream ------------------------------------------------------------------- */

static void
live_keys(const Batch *batch, Buf *out)
{
    for (size_t row = 0; row < batch->rows; row++)
        if (!BUF_AT(&batch->dead, uint8_t, row))
            BUF_PUSH(out, Hash128, BUF_AT(&batch->keys, Hash128, row));
}

/* The rows of the source, which are the live ones of the batch in its order. */
static bool
buffer_rows(PartitionBuffers *buffers, const Batch *batch, RowSource *rows, Error *err)
{
    AUTO_BUF Buf keys = {0};
    size_t at = 0;

    live_keys(batch, &keys);
    for (;;) {
        RowBlock block;
        size_t bytes = 0;

        TRY(rows->next(rows, &block, err));
        if (block.rows == 0)
            break;
        for (int c = 0; c < batch->schema->column_count; c++)
            bytes += column_memory(&block.columns[c]);
        TRY(iceberg_buffers_add(buffers, &block, &BUF_AT(&keys, Hash128, at),
                                bytes / block.rows + 1, err));
        at += block.rows;
    }
    assert(at == batch->live_rows);
    return iceberg_buffers_finish(buffers, err);
}

static bool
write_patched(IcebergTable *table, const Batch *batch, const FileWrite *like, RowSource *patched,
              Buf *files, Error *err)
{
    PartitionTarget target = {.arena = table->pending.arena, .files = files};
    size_t budget = (size_t) (table->sink->config->memory / PATCHED_SHARE);
    PartitionBuffers *buffers = iceberg_buffers_new(table, like, &target, budget, err);

    if (buffers == NULL)
        return false;

    bool done = buffer_rows(buffers, batch, patched, err);

    iceberg_buffers_free(buffers);
    for (size_t i = 0; !done && i < BUF_COUNT(files, DataFile); i++)
        index_remove_file(table->index, BUF_AT(files, DataFile, i).path);
    return done;
}

bool
iceberg_write_partitions(IcebergTable *table, const Batch *batch, const FileWrite *like,
                         RowSource *patched, Error *err)
{
    AUTO_BUF Buf files = {0};
    bool done = patched != NULL ? write_patched(table, batch, like, patched, &files, err)
                                : write_batch(table, batch, like, &files, err);

    if (!done) {
        iceberg_discard_files(table->sink, &files);
        return false;
    }
    buf_append(&table->pending.files, files.ptr, files.len);
    return true;
}
