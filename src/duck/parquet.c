/* Writing. COPY pulls, the table function walberg_rows(number) answers with the rows of the write
 * that has this number:
 *
 *     duck_write_parquet -> COPY (FROM walberg_rows(7)) TO ... -> feed_chunk() -> rows->next()
 *
 * A number rather than a pointer, so that SQL text can never make us follow one. */
#include "duck/parquet.h"

#include <assert.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/fault.h"
#include "duck/emit.h"
#include "duck/internal.h"
#include "duck/names.h"
#include "duck/parquet_footer.h"

#define FEED_FUNCTION "walberg_rows"

static const int64_t ROW_GROUP_ROWS = 122880;
static const int64_t ROW_GROUP_BYTES = 32 << 20;
/* DuckDB looks at the size of a row group between chunks, so chunks of wide rows are shorter. */
static const size_t CHUNK_BYTES = 2 << 20;

struct Feed {
    int64_t number;
    const ParquetWrite *write;
    RowBlock block;
    bool wide;    /* the block has more than CHUNK_BYTES */
    size_t at;    /* next row of the block */
    int64_t rows; /* emitted so far */
    bool ended;
    bool failed; /* rows->next() did, and *err says why */
    Error *err;
    Feed *next;
};

/* --- The table function -------------------------------------------------------------------- */

static Feed *
find_feed(Duck *duck, int64_t number)
{
    pthread_mutex_lock(&duck->lock);

    Feed *feed = duck->feeds;

    while (feed != NULL && feed->number != number)
        feed = feed->next;
    pthread_mutex_unlock(&duck->lock);
    return feed;
}

static void
bind_feed(duckdb_bind_info info)
{
    Duck *duck = duckdb_bind_get_extra_info(info);
    duckdb_value number = duckdb_bind_get_parameter(info, 0);
    Feed *feed = find_feed(duck, duckdb_get_int64(number));

    duckdb_destroy_value(&number);
    if (feed == NULL) {
        duckdb_bind_set_error(info, FEED_FUNCTION " is for walberg's own use");
        return;
    }

    AUTO(arena_freep) Arena *arena = arena_new();
    const Field *fields = feed->write->fields;
    Str *names = duck_unique_names(arena, fields, feed->write->field_count);

    for (int i = 0; i < feed->write->field_count; i++) {
        AUTO_TYPE duckdb_logical_type type = duck_logical_type(fields[i].type);

        duckdb_bind_add_result_column(info, names[i].ptr, type);
    }
    duckdb_bind_set_bind_data(info, feed, NULL);
}

static void
init_feed(duckdb_init_info info)
{
    duckdb_init_set_max_threads(info, 1); /* rows stay in order */
}

static bool
is_wide(const Feed *feed, const RowBlock *block)
{
    size_t bytes = 0;

    for (int i = 0; i < feed->write->field_count && block->rows > 0; i++)
        bytes += column_memory(&block->columns[i]);
    return bytes > CHUNK_BYTES;
}

/* Make sure that the block has a row at feed->at; false at the end and on failure. */
static bool
have_row(Feed *feed)
{
    while (!feed->ended && feed->at == feed->block.rows) {
        RowSource *rows = feed->write->rows;
        RowBlock block = {0};

        if (!rows->next(rows, &block, feed->err)) {
            feed->failed = feed->ended = true;
            return false;
        }
        assert(!feed->write->no_negative_zero || block.rows == 0 ||
               !columns_have_negative_zero(block.columns, feed->write->field_count));
        feed->block = block;
        feed->wide = is_wide(feed, &block);
        feed->at = 0;
        feed->ended = block.rows == 0;
    }
    return !feed->ended;
}

/* How many rows from feed->at on, at most `count`, make a chunk. */
static size_t
rows_that_fit(const Feed *feed, size_t count)
{
    size_t bytes = 0;

    for (size_t row = 0; row < count && feed->wide; row++) {
        for (int i = 0; i < feed->write->field_count; i++)
            bytes += column_row_memory(&feed->block.columns[i], feed->at + row);
        if (bytes >= CHUNK_BYTES)
            return row + 1;
    }
    return count;
}

/* Choose the next live rows, at most a chunk full. They stay inside one block, because the chunk
 * points into it. No dead rows among them: a range, which is copied faster. */
static Rows
choose_rows(Feed *feed, uint32_t *indexes)
{
    const RowBlock *block = &feed->block;
    size_t room = duckdb_vector_size();
    size_t left = block->rows - feed->at;
    size_t count = rows_that_fit(feed, left < room ? left : room);
    Rows chosen = {.start = feed->at, .count = count};

    assert(block->rows <= UINT32_MAX);
    if (block->dead == NULL || emit_all_zero(block->dead + feed->at, count)) {
        feed->at += count;
        return chosen;
    }
    chosen = (Rows){.indexes = indexes};

    size_t end = feed->wide ? feed->at + count : block->rows;

    while (feed->at < end && chosen.count < room) {
        if (block->dead[feed->at] == 0)
            indexes[chosen.count++] = (uint32_t) feed->at;
        feed->at++;
    }
    return chosen;
}

static void
feed_chunk(duckdb_function_info info, duckdb_data_chunk output)
{
    Feed *feed = duckdb_function_get_bind_data(info);
    uint32_t indexes[4096];
    Rows chosen = {0};

    assert(duckdb_vector_size() <= sizeof indexes / sizeof indexes[0]);
    while (chosen.count == 0 && have_row(feed))
        chosen = choose_rows(feed, indexes);
    if (feed->failed) {
        duckdb_function_set_error(info, "the rows ended with an error");
        return;
    }
    for (int i = 0; i < feed->write->field_count && chosen.count > 0; i++)
        emit_column(duckdb_data_chunk_get_vector(output, (idx_t) i), &feed->block.columns[i],
                    chosen);
    feed->rows += (int64_t) chosen.count;
    duckdb_data_chunk_set_size(output, chosen.count);
}

static bool
register_function(Duck *duck, duckdb_connection connection, Error *err)
{
    AUTO(duckdb_destroy_table_function)
    duckdb_table_function function = duckdb_create_table_function();
    AUTO_TYPE duckdb_logical_type number = duckdb_create_logical_type(DUCKDB_TYPE_BIGINT);

    duckdb_table_function_set_name(function, FEED_FUNCTION);
    duckdb_table_function_add_parameter(function, number);
    duckdb_table_function_set_extra_info(function, duck, NULL);
    duckdb_table_function_set_bind(function, bind_feed);
    duckdb_table_function_set_init(function, init_feed);
    duckdb_table_function_set_function(function, feed_chunk);
    if (duckdb_register_table_function(connection, function) != DuckDBSuccess)
        return FAIL(err, ERR_BUG, "duckdb does not take the function " FEED_FUNCTION);
    return true;
}

static bool
add_feed(Duck *duck, duckdb_connection connection, Feed *feed, Error *err)
{
    bool added = true;

    pthread_mutex_lock(&duck->lock);
    if (!duck->has_feed_function)
        added = duck->has_feed_function = register_function(duck, connection, err);
    if (added) {
        feed->number = duck->next_feed++;
        feed->next = duck->feeds;
        duck->feeds = feed;
    }
    pthread_mutex_unlock(&duck->lock);
    return added;
}

static void
remove_feed(Duck *duck, Feed *feed)
{
    pthread_mutex_lock(&duck->lock);

    Feed **link = &duck->feeds;

    while (*link != feed)
        link = &(*link)->next;
    *link = feed->next;
    pthread_mutex_unlock(&duck->lock);
}

/* --- The statement ------------------------------------------------------------------------- */

static void put_field_ids(Buf *out, Arena *arena, const Field *fields, int count, bool top);

/* "name": 7 or "name": {__duckdb_field_id: 7, ...} */
static void
put_field_id(Buf *out, Arena *arena, Str name, const Field *field)
{
    const Type *type = field->type;

    duck_quote_identifier(out, name);
    if (!type_is_nested(type)) {
        buf_printf(out, ": %d", field->id);
        return;
    }
    buf_printf(out, ": {__duckdb_field_id: %d", field->id);
    put_field_ids(out, arena, type->fields, type->field_count, false);
    buf_byte(out, '}');
}

static void
put_field_ids(Buf *out, Arena *arena, const Field *fields, int count, bool top)
{
    Str *names = duck_unique_names(arena, fields, count);

    for (int i = 0; i < count; i++) {
        assert(fields[i].id > 0);
        if (i > 0 || !top)
            buf_cstr(out, ", ");
        put_field_id(out, arena, names[i], &fields[i]);
    }
}

static int64_t
or_default(int64_t value, int64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static bool
has_reals(const Field *fields, int count)
{
    for (int i = 0; i < count; i++)
        if (type_has_reals(fields[i].type))
            return true;
    return false;
}

/* DuckDB's dictionaries (1.5.6) take 0 and -0 for one value, the first of the two, and there is no
 * option for single columns: where a -0 may come, no column has one.
 *
 * PARQUET_VERSION stays V1: V2 would take a fifth off the time, but not every reader has its delta
 * encodings (the vectorized one of older Iceberg releases refuses the file). Bloom filters are off:
 * they would only cover columns with a dictionary, and files are pruned by Iceberg's bounds. */
static void
put_copy(Buf *out, Arena *arena, const Duck *duck, const Feed *feed)
{
    const ParquetWrite *write = feed->write;

    buf_printf(out, "COPY (FROM " FEED_FUNCTION "(%" PRId64 ")) TO ", feed->number);
    duck_quote_literal(out, str_of(write->path));
    buf_cstr(out, " (FORMAT parquet, COMPRESSION zstd, WRITE_BLOOM_FILTER false, FIELD_IDS {");
    put_field_ids(out, arena, write->fields, write->field_count, true);
    buf_printf(out, "}, ROW_GROUP_SIZE %" PRId64,
               or_default(write->row_group_rows, ROW_GROUP_ROWS));
    if (!write->no_negative_zero && has_reals(write->fields, write->field_count))
        buf_cstr(out, ", DICTIONARY_SIZE_LIMIT 0");
    if (duck->threads == 1)
        buf_printf(out, ", ROW_GROUP_SIZE_BYTES %" PRId64,
                   or_default(write->row_group_bytes, ROW_GROUP_BYTES));
    buf_byte(out, ')');
}

static bool
copy_rows(Duck *duck, Feed *feed, Error *err)
{
    AUTO_CONNECTION duckdb_connection connection = NULL;
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf sql = {0};
    Error copy_err = {0};

    TRY(duck_connect(duck, &connection, err));
    TRY(add_feed(duck, connection, feed, err));
    put_copy(&sql, arena, duck, feed);

    bool copied = duck_run(connection, buf_text(&sql), &copy_err);

    remove_feed(duck, feed);
    if (feed->failed)
        return false; /* *err is what rows->next() left there */
    if (!copied)
        *err = copy_err;
    return copied;
}

static bool
write_file(Duck *duck, Arena *arena, const ParquetWrite *write, ParquetFile *out_file, Error *err)
{
    Feed feed = {.write = write, .err = err};
    ParquetFooter footer;

    TRY(FAULT("duck.write_parquet", err));
    if (!copy_rows(duck, &feed, err))
        return feed.failed ? false : WRAP(err, "write %s", write->path);
    TRY(parquet_footer_read(arena, write->path, &footer, err));
    if (footer.file.rows != feed.rows)
        return FAIL(err, ERR_BUG, "%s has %" PRId64 " rows, not %" PRId64, write->path,
                    footer.file.rows, feed.rows);
    *out_file = footer.file;
    return true;
}

bool
duck_write_parquet(Duck *duck, Arena *arena, const ParquetWrite *write, ParquetFile *out_file,
                   Error *err)
{
    assert(write->field_count > 0 && write->rows != NULL);
    if (!write_file(duck, arena, write, out_file, err)) {
        unlink(write->path);
        return false;
    }
    return true;
}
