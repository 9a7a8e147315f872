/* position_deletes.c - version 2: the deleted rows of a commit as position delete files.
 *
 * One new file per commit and partition, whatever the number of data files it points into. They are
 * merged in tiers, so that a table has O(log n) of them and each deleted row is written O(log n)
 * times. Iceberg spec, "Position Delete Files". */
#include <stdlib.h>

#include "sink/iceberg/build.h"

enum {
    DELETE_FILES_MERGE_MIN = 8,
    PARTITION_DELETE_FILES_MERGE_MIN = 3, /* there are many partitions */
    DELETE_BLOCK_ROWS = 8192,
};

/* --- the file -------------------------------------------------------------------------------- */

typedef struct DeleteSource {
    RowSource source;
    DeletesCursor *cursor;
    Column columns[2];
    Str first; /* smallest and largest file_path so far */
    Str last;
    uint32_t row_min, row_max;
} DeleteSource;

static bool
next_deletes(RowSource *source, RowBlock *out_block, Error *err)
{
    DeleteSource *from = (DeleteSource *) (void *) source;
    Str file;
    uint32_t row;

    (void) err;
    column_reset(&from->columns[0]);
    column_reset(&from->columns[1]);
    while (from->columns[0].rows < DELETE_BLOCK_ROWS && deletes_next(from->cursor, &file, &row)) {
        int64_t pos = row;

        if (from->first.ptr == NULL)
            from->first = file;
        from->last = file;
        if (row < from->row_min)
            from->row_min = row;
        if (row > from->row_max)
            from->row_max = row;
        column_append_bytes(&from->columns[0], file);
        column_append_fixed(&from->columns[1], &pos);
    }
    *out_block = (RowBlock){.columns = from->columns, .rows = from->columns[0].rows};
    return true;
}

/* Bounds of file_path are not truncated: equal ones are how older readers see that a delete file
 * concerns one data file only. Spec, "Position Delete Files". */
static void
describe_deletes(Arena *arena, const DeleteSource *source, DataFile *file)
{
    int64_t range[2] = {source->row_min, source->row_max};
    BoundByField *lower = ARENA_ARRAY(arena, BoundByField, 2);
    BoundByField *upper = ARENA_ARRAY(arena, BoundByField, 2);

    for (int i = 0; i < 2; i++) {
        lower[i].field_id = upper[i].field_id = position_delete_fields[1 - i].id;
    }
    lower[0].value = arena_str(arena, (Str){.ptr = (const char *) &range[0], .len = 8});
    upper[0].value = arena_str(arena, (Str){.ptr = (const char *) &range[1], .len = 8});
    lower[1].value = arena_str(arena, source->first);
    upper[1].value = arena_str(arena, source->last);
    file->lower_bounds.items = lower;
    file->upper_bounds.items = upper;
    file->lower_bounds.count = file->upper_bounds.count = 2;
    if (str_eq(source->first, source->last))
        file->referenced_data_file = arena_str(arena, source->first);
}

static bool
write_delete_file(Builder *builder, const Deletes *deletes, const Place *place, DataFile *out_file,
                  Error *err)
{
    DeleteSource source = {
        .source = {.next = next_deletes}, .cursor = deletes_cursor(deletes), .row_min = UINT32_MAX};
    FileWrite write = {.key = iceberg_data_key(builder->table, builder->arena, "deletes"),
                       .fields = position_delete_fields,
                       .field_count = 2,
                       .rows = &source.source,
                       .content = CONTENT_POSITION_DELETES,
                       .spec = metadata_find_spec(builder->base, place->spec_id),
                       .partition = arena_str(builder->arena, place->partition)};

    column_init(&source.columns[0], position_delete_fields[0].type);
    column_init(&source.columns[1], position_delete_fields[1].type);

    bool done = iceberg_write_file(builder->table, builder->arena, &write, out_file, err);

    if (done)
        describe_deletes(builder->arena, &source, out_file);
    column_done(&source.columns[0]);
    column_done(&source.columns[1]);
    deletes_cursor_free(source.cursor);
    return done;
}

/* --- merging --------------------------------------------------------------------------------- */

static int
by_records(const void *a, const void *b)
{
    int64_t x = (*(const ManifestEntry *const *) a)->file.record_count;
    int64_t y = (*(const ManifestEntry *const *) b)->file.record_count;

    return x < y ? -1 : x > y;
}

/* Rows to delete by the number of the partition that their file is in; NULL: none there. */
typedef struct DeleteGroups {
    size_t count;
    Deletes **rows;
} DeleteGroups;

static void
groups_free(DeleteGroups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        deletes_free(groups->rows[i]);
    free((void *) groups->rows);
}

static bool
group_deletes(IcebergTable *table, DeleteGroups *groups, Error *err)
{
    DeletesCursor *cursor = deletes_cursor(table->pending.deletes);
    Str last = STR_NULL;
    uint32_t number = 0;
    Str file;
    uint32_t row;
    bool found = true;

    groups->count = places_count(table->places);
    groups->rows = xcalloc(groups->count + 1, sizeof(Deletes *));
    while (found && deletes_next(cursor, &file, &row)) {
        if (last.ptr == NULL || !str_eq(file, last)) {
            found = places_find(table->places, file, &number);
            last = file;
        }
        if (!found)
            break;
        if (groups->rows[number] == NULL)
            groups->rows[number] = deletes_new();
        deletes_add(groups->rows[number], file, row);
    }
    if (!found)
        (void) FAIL(err, ERR_BUG, "deleted rows of %.*s, which is no live file", STR_ARG(file));
    deletes_cursor_free(cursor);
    return found;
}

static bool
is_at(const DataFile *file, const Place *place)
{
    return file->spec_id == place->spec_id && str_eq(file->partition, place->partition);
}

/* Which live delete files of the partition the new one takes in: from the smallest up, as long as
 * the next is at most twice what is gathered. So sizes stay geometric. Rows of the chosen ones join
 * `rows`. */
static bool
choose_merged(Builder *builder, const Place *place, Deletes *rows, OldDeletes *old, Error *err)
{
    size_t least = iceberg_ever_partitioned(builder->base) ? PARTITION_DELETE_FILES_MERGE_MIN
                                                           : DELETE_FILES_MERGE_MIN;
    const ManifestEntry **sorted = ARENA_ARRAY(builder->arena, const ManifestEntry *, old->count);
    int64_t gathered = (int64_t) deletes_total(rows);
    size_t count = 0;

    for (size_t i = 0; i < old->count; i++)
        if (is_at(&old->entries[i].file, place))
            sorted[count++] = &old->entries[i];
    if (count < least)
        return true;
    qsort((void *) sorted, count, sizeof(void *), by_records);
    for (size_t i = 0; i < count && sorted[i]->file.record_count <= 2 * gathered; i++) {
        gathered += sorted[i]->file.record_count;
        old->gone[sorted[i] - old->entries] = true;
        TRY(iceberg_read_deletes(builder->table, rows, &sorted[i]->file, err));
    }
    return true;
}

/* The new delete file of a partition, with what it takes in. */
static bool
add_of_partition(Builder *builder, const Place *place, Deletes *rows, OldDeletes *old, Buf *entries,
                 Error *err)
{
    DataFile file;

    if (!builder->table->pending.truncated)
        TRY(choose_merged(builder, place, rows, old, err));
    TRY(write_delete_file(builder, rows, place, &file, err));
    iceberg_add_delete_file(builder, &file, entries);
    return true;
}

bool
iceberg_add_position_deletes(Builder *builder, OldDeletes *old, Buf *entries, Error *err)
{
    IcebergTable *table = builder->table;

    if (!iceberg_ever_partitioned(builder->base)) {
        Place whole = {.spec_id = builder->base->specs[0].spec_id, .partition = STR("")};
        AUTO(deletes_freep) Deletes *rows = deletes_new();

        deletes_merge(rows, table->pending.deletes);
        return add_of_partition(builder, &whole, rows, old, entries, err);
    }

    AUTO(groups_free) DeleteGroups groups = {0};

    TRY(iceberg_load_places(builder, err));
    TRY(group_deletes(table, &groups, err));
    for (size_t i = 0; i < groups.count; i++) {
        Place place = places_at(table->places, (uint32_t) i);

        if (groups.rows[i] != NULL)
            TRY(add_of_partition(builder, &place, groups.rows[i], old, entries, err));
    }
    return true;
}
