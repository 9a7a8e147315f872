#include "query/plan_deletes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "duck/parquet.h"
#include "iceberg/deletes.h"

/* Iceberg spec, "Reserved Field IDs". */
enum { FIELD_ID_DELETE_FILE_PATH = 2147483546, FIELD_ID_DELETE_POS = 2147483545 };

/* A request to an object store takes about as long as this many bytes more in another. */
enum { REQUEST_BYTES = 256 * 1024 };

bool
plan_is_vector(const DataFile *file)
{
    return file->content == CONTENT_POSITION_DELETES && file->format.len == 6 &&
           strncasecmp(file->format.ptr, "puffin", 6) == 0;
}

/* --- the cache ----------------------------------------------------------------------------- */

/* What tells entries apart. */
typedef struct DeletesKey {
    Str path;
    int64_t offset;
} DeletesKey;

static DeletesKey
key_of_file(const DataFile *file)
{
    return (DeletesKey){.path = file->path,
                        .offset = plan_is_vector(file) ? file->content_offset : -1};
}

static DeletesKey
key_of_entry(const CachedDeletes *entry)
{
    return (DeletesKey){.path = str_of(entry->path), .offset = entry->offset};
}

static int
compare_keys(DeletesKey a, DeletesKey b)
{
    int order = str_cmp(a.path, b.path);

    if (order != 0)
        return order;
    return a.offset < b.offset ? -1 : a.offset > b.offset;
}

static int
compare_entries(const void *a, const void *b)
{
    return compare_keys(key_of_entry(a), key_of_entry(b));
}

static int
compare_files(const void *a, const void *b)
{
    return compare_keys(key_of_file(*(const DataFile *const *) a),
                        key_of_file(*(const DataFile *const *) b));
}

static CachedDeletes *
find_entry(const DeletesCache *cache, const DataFile *file)
{
    DeletesKey key = key_of_file(file);
    size_t low = 0;
    size_t high = BUF_COUNT(&cache->entries, CachedDeletes);

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        CachedDeletes *entry = &BUF_AT(&cache->entries, CachedDeletes, mid);
        int order = compare_keys(key_of_entry(entry), key);

        if (order == 0)
            return entry;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

const CachedDeletes *
deletes_cache_find(const DeletesCache *cache, const DataFile *file)
{
    const CachedDeletes *entry = find_entry(cache, file);

    assert(entry != NULL);
    return entry;
}

static void
entry_done(CachedDeletes *entry)
{
    for (size_t i = 0; i < BUF_COUNT(&entry->files, DeletedIn); i++)
        buf_done(&BUF_AT(&entry->files, DeletedIn, i).rows);
    buf_done(&entry->files);
    free(entry->path);
    arena_free(entry->arena);
}

void
deletes_cache_done(DeletesCache *cache)
{
    for (size_t i = 0; i < BUF_COUNT(&cache->entries, CachedDeletes); i++)
        entry_done(&BUF_AT(&cache->entries, CachedDeletes, i));
    buf_done(&cache->entries);
}

void
deletes_cache_mark_unused(DeletesCache *cache)
{
    for (size_t i = 0; i < BUF_COUNT(&cache->entries, CachedDeletes); i++)
        BUF_AT(&cache->entries, CachedDeletes, i).used = false;
}

void
deletes_cache_drop_unused(DeletesCache *cache)
{
    size_t kept = 0;

    for (size_t i = 0; i < BUF_COUNT(&cache->entries, CachedDeletes); i++) {
        CachedDeletes *entry = &BUF_AT(&cache->entries, CachedDeletes, i);

        if (entry->used)
            BUF_AT(&cache->entries, CachedDeletes, kept++) = *entry;
        else
            entry_done(entry);
    }
    cache->entries.len = kept * sizeof(CachedDeletes);
}

static CachedDeletes
new_entry(const DataFile *file)
{
    CachedDeletes entry = {.offset = key_of_file(file).offset, .arena = arena_new(), .used = true};

    entry.path = xstrdup(arena_str(entry.arena, file->path).ptr);
    return entry;
}

/* --- position delete files ----------------------------------------------------------------- */

typedef struct DeleteSink {
    RowSink base; /* first member */
    CachedDeletes *deletes;
    size_t last; /* index of the data file of the row before: the file is sorted by it */
} DeleteSink;

static DeletedIn *
find_deleted_in(DeleteSink *sink, Str data_file)
{
    Buf *files = &sink->deletes->files;
    size_t count = BUF_COUNT(files, DeletedIn);

    if (sink->last < count && str_eq(BUF_AT(files, DeletedIn, sink->last).data_file, data_file))
        return &BUF_AT(files, DeletedIn, sink->last);
    for (size_t i = 0; i < count; i++)
        if (str_eq(BUF_AT(files, DeletedIn, i).data_file, data_file)) {
            sink->last = i;
            return &BUF_AT(files, DeletedIn, i);
        }
    sink->last = count;
    BUF_PUSH(files, DeletedIn,
             ((DeletedIn){.data_file = arena_str(sink->deletes->arena, data_file)}));
    return &BUF_AT(files, DeletedIn, count);
}

static bool
take_deletes(RowSink *base, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    DeleteSink *sink = (DeleteSink *) base;

    (void) first_row;
    for (size_t i = 0; i < rows; i++) {
        if (column_is_null(&columns[0], i) || column_is_null(&columns[1], i))
            return FAIL(err, ERR_INPUT, "a position delete without file or row");

        int64_t row = BUF_AT(&columns[1].values, int64_t, i);

        if (row < 0 || row > UINT32_MAX)
            return FAIL(err, ERR_INPUT, "a position delete of row %lld", (long long) row);
        BUF_PUSH(&find_deleted_in(sink, column_bytes(&columns[0], i))->rows, uint32_t,
                 (uint32_t) row);
    }
    return true;
}

static bool
scan_positions(const DeletesLoad *load, const DataFile *file, CachedDeletes *deletes, Error *err)
{
    static const Type text = {.kind = TYPE_STRING};
    static const Type number = {.kind = TYPE_INT64};
    const Field fields[] = {
        {.name = STR("file_path"), .id = FIELD_ID_DELETE_FILE_PATH, .type = &text},
        {.name = STR("pos"), .id = FIELD_ID_DELETE_POS, .type = &number},
    };
    DeleteSink sink = {.base = {.block = take_deletes}, .deletes = deletes};
    AUTO_FILE_HOLD FileHold hold = {0};
    const char *path = NULL;

    TRY(file_cache_path(load->files, &hold, load->arena, file->path, &path, err));
    return duck_scan_parquet(
        load->duck,
        &(ParquetScan){.path = path, .fields = fields, .field_count = 2, .sink = &sink.base}, err);
}

static bool
load_positions(DeletesCache *cache, const DeletesLoad *load, const DataFile *file, Error *err)
{
    CachedDeletes entry = new_entry(file);

    if (!scan_positions(load, file, &entry, err)) {
        entry_done(&entry);
        return false;
    }
    BUF_PUSH(&cache->entries, CachedDeletes, entry);
    return true;
}

/* --- deletion vectors ---------------------------------------------------------------------- */

static bool
add_vector(DeletesCache *cache, const DataFile *file, Str blob, Error *err)
{
    AUTO(deletes_freep) Deletes *rows = deletes_new();
    Str data_file = file->referenced_data_file;
    uint32_t row;

    TRY(deletes_add_vector(rows, data_file, blob, file->record_count, err));

    CachedDeletes entry = new_entry(file);
    DeletedIn in = {.data_file = arena_str(entry.arena, data_file)};
    DeletesCursor *cursor = deletes_cursor(rows);

    while (deletes_next(cursor, &data_file, &row))
        BUF_PUSH(&in.rows, uint32_t, row);
    deletes_cursor_free(cursor);
    BUF_PUSH(&entry.files, DeletedIn, in);
    BUF_PUSH(&cache->entries, CachedDeletes, entry);
    return true;
}

/* From the bytes of the whole Puffin file. */
static bool
cut_vector(DeletesCache *cache, const DataFile *file, Str puffin, Error *err)
{
    if (file->content_offset > (int64_t) puffin.len ||
        file->content_bytes > (int64_t) puffin.len - file->content_offset)
        return FAIL(err, ERR_INPUT, "it has no %" PRId64 " bytes at %" PRId64, file->content_bytes,
                    file->content_offset);
    return add_vector(
        cache, file,
        (Str){.ptr = puffin.ptr + file->content_offset, .len = (size_t) file->content_bytes}, err);
}

/* The vectors of one Puffin file. */
static bool
load_vectors(DeletesCache *cache, const DeletesLoad *load, const DataFile **wanted, size_t count,
             Error *err)
{
    AUTO_BUF Buf bytes = {0};
    int64_t cost = 0; /* of fetching them one by one */

    for (size_t i = 0; i < count; i++)
        cost += wanted[i]->content_bytes + REQUEST_BYTES;
    if (count > 1 && wanted[0]->file_bytes <= cost) {
        TRY(file_cache_read(load->files, load->arena, wanted[0]->path, &bytes, err));
        for (size_t i = 0; i < count; i++)
            TRY(cut_vector(cache, wanted[i], buf_view(&bytes), err));
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        StoreRange range = {.offset = wanted[i]->content_offset,
                            .length = wanted[i]->content_bytes};

        TRY(file_cache_read_range(load->files, wanted[i]->path, range, &bytes, err));
        TRY(add_vector(cache, wanted[i], buf_view(&bytes), err));
    }
    return true;
}

/* --- loading ------------------------------------------------------------------------------- */

static bool
load_missing(DeletesCache *cache, const DeletesLoad *load, const DataFile **missing, size_t count,
             Error *err)
{
    size_t next;

    for (size_t i = 0; i < count; i = next) {
        bool vectors = plan_is_vector(missing[i]);

        next = i + 1;
        while (vectors && next < count && plan_is_vector(missing[next]) &&
               str_eq(missing[next]->path, missing[i]->path))
            next++;
        if (vectors ? !load_vectors(cache, load, missing + i, next - i, err)
                    : !load_positions(cache, load, missing[i], err))
            return WRAP(err, "%.*s", STR_ARG(missing[i]->path));
    }
    return true;
}

bool
deletes_cache_load(DeletesCache *cache, const DeletesLoad *load, const DataFile **wanted,
                   size_t count, Error *err)
{
    const DataFile **missing =
        (const DataFile **) arena_alloc(load->arena, count * sizeof(DataFile *));
    size_t missing_count = 0;

    for (size_t i = 0; i < count; i++) {
        CachedDeletes *entry = find_entry(cache, wanted[i]);

        if (entry == NULL)
            missing[missing_count++] = wanted[i];
        else
            entry->used = true;
    }
    if (missing_count == 0)
        return true;
    qsort(missing, missing_count, sizeof(DataFile *), compare_files);

    bool loaded = load_missing(cache, load, missing, missing_count, err);

    if (cache->entries.len > 0)
        qsort(cache->entries.ptr, BUF_COUNT(&cache->entries, CachedDeletes), sizeof(CachedDeletes),
              compare_entries);
    return loaded;
}
