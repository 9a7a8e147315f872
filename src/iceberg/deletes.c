#include "iceberg/deletes.h"
#include "iceberg/deletion_vector.h"

#include <inttypes.h>
#include <stdlib.h>

#include <roaring/roaring.h>

#define uthash_fatal(msg) abort() /* out of memory, as xalloc.h does */
#include <uthash.h>

typedef struct FileDeletes {
    roaring_bitmap_t *rows;
    UT_hash_handle hh;
    size_t path_len;
    char path[]; /* the key */
} FileDeletes;

struct Deletes {
    FileDeletes *files;
    uint64_t total;
};

struct DeletesCursor {
    const FileDeletes **files; /* by path */
    size_t count;
    size_t next;
    roaring_uint32_iterator_t *rows; /* of files[next - 1] */
};

Deletes *
deletes_new(void)
{
    return xcalloc(1, sizeof(Deletes));
}

void
deletes_free(Deletes *deletes)
{
    if (deletes == NULL)
        return;
    deletes_clear(deletes);
    free(deletes);
}

void
deletes_freep(Deletes **deletes)
{
    deletes_free(*deletes);
}

static Str
path_of(const FileDeletes *file)
{
    return (Str){.ptr = file->path, .len = file->path_len};
}

/* NOLINTBEGIN(readability-function-size): the macros of uthash nest */
static FileDeletes *
find_file(const Deletes *deletes, Str path)
{
    FileDeletes *file = NULL;

    HASH_FIND(hh, deletes->files, path.ptr, path.len, file);
    return file;
}

static FileDeletes *
get_file(Deletes *deletes, Str path)
{
    FileDeletes *file = find_file(deletes, path);

    if (file != NULL)
        return file;
    file = xcalloc(1, sizeof *file + path.len);
    file->rows = roaring_bitmap_create();
    if (file->rows == NULL)
        abort();
    file->path_len = path.len;
    memcpy(file->path, path.ptr, path.len);
    HASH_ADD_KEYPTR(hh, deletes->files, file->path, file->path_len, file);
    return file;
}

static void
drop_file(Deletes *deletes, FileDeletes *file)
{
    HASH_DEL(deletes->files, file); /* NOLINT(clang-analyzer-unix.Malloc): only in the macro */
    roaring_bitmap_free(file->rows);
    free(file);
}

/* NOLINTEND(readability-function-size) */

bool
deletes_add(Deletes *deletes, Str data_file, uint32_t row)
{
    bool added = roaring_bitmap_add_checked(get_file(deletes, data_file)->rows, row);

    deletes->total += added;
    return added;
}

bool
deletes_contains(const Deletes *deletes, Str data_file, uint32_t row)
{
    const FileDeletes *file = find_file(deletes, data_file);

    return file != NULL && roaring_bitmap_contains(file->rows, row);
}

void
deletes_remove_file(Deletes *deletes, Str data_file)
{
    FileDeletes *file = find_file(deletes, data_file);

    if (file == NULL)
        return;
    deletes->total -= roaring_bitmap_get_cardinality(file->rows);
    drop_file(deletes, file);
}

uint64_t
deletes_count(const Deletes *deletes, Str data_file)
{
    const FileDeletes *file = find_file(deletes, data_file);

    return file == NULL ? 0 : roaring_bitmap_get_cardinality(file->rows);
}

uint64_t
deletes_total(const Deletes *deletes)
{
    return deletes->total;
}

void
deletes_clear(Deletes *deletes)
{
    FileDeletes *file;
    FileDeletes *next;

    HASH_ITER(hh, deletes->files, file, next)
    drop_file(deletes, file);
    deletes->total = 0;
}

static void
merge_rows(Deletes *deletes, Str path, const roaring_bitmap_t *rows)
{
    FileDeletes *file = get_file(deletes, path);
    uint64_t before = roaring_bitmap_get_cardinality(file->rows);

    roaring_bitmap_or_inplace(file->rows, rows);
    deletes->total += roaring_bitmap_get_cardinality(file->rows) - before;
}

void
deletes_merge(Deletes *deletes, const Deletes *other)
{
    for (const FileDeletes *from = other->files; from != NULL; from = from->hh.next)
        merge_rows(deletes, path_of(from), from->rows);
}

static int
compare_paths(const void *a, const void *b)
{
    return str_cmp(*(const Str *) a, *(const Str *) b);
}

size_t
deletes_files(const Deletes *deletes, Arena *arena, Str **out_files)
{
    Str *files = ARENA_ARRAY(arena, Str, HASH_COUNT(deletes->files));
    size_t count = 0;

    for (const FileDeletes *file = deletes->files; file != NULL; file = file->hh.next)
        files[count++] = path_of(file);
    if (count > 0)
        qsort(files, count, sizeof(Str), compare_paths);
    *out_files = files;
    return count;
}

/* --- Deletion vectors ---------------------------------------------------------------------- */

uint64_t
deletes_write_vector(const Deletes *deletes, Str data_file, Buf *out)
{
    const FileDeletes *file = find_file(deletes, data_file);

    if (file != NULL) {
        deletion_vector_write(file->rows, out);
        return roaring_bitmap_get_cardinality(file->rows);
    }

    roaring_bitmap_t *none = roaring_bitmap_create();

    if (none == NULL)
        abort();
    deletion_vector_write(none, out);
    roaring_bitmap_free(none);
    return 0;
}

bool
deletes_add_vector(Deletes *deletes, Str data_file, Str blob, int64_t cardinality, Error *err)
{
    roaring_bitmap_t *rows = NULL;

    if (!deletion_vector_read(blob, &rows, err))
        return WRAP(err, "%.*s", STR_ARG(data_file));

    int64_t found = (int64_t) roaring_bitmap_get_cardinality(rows);

    if (found == cardinality)
        merge_rows(deletes, data_file, rows);
    roaring_bitmap_free(rows);
    return found == cardinality ||
           FAIL(err, ERR_INPUT,
                "%.*s: deletion vector: %" PRId64 " rows where the manifest says %" PRId64,
                STR_ARG(data_file), found, cardinality);
}

/* --- In order ------------------------------------------------------------------------------ */

static int
compare_files(const void *a, const void *b)
{
    return str_cmp(path_of(*(const FileDeletes *const *) a),
                   path_of(*(const FileDeletes *const *) b));
}

DeletesCursor *
deletes_cursor(const Deletes *deletes)
{
    DeletesCursor *cursor = xcalloc(1, sizeof *cursor);

    cursor->files = xcalloc(HASH_COUNT(deletes->files) + 1, sizeof(FileDeletes *));
    for (const FileDeletes *file = deletes->files; file != NULL; file = file->hh.next)
        cursor->files[cursor->count++] = file;
    qsort(cursor->files, cursor->count, sizeof(FileDeletes *), compare_files);
    return cursor;
}

bool
deletes_next(DeletesCursor *cursor, Str *out_file, uint32_t *out_row)
{
    while (cursor->rows == NULL || !cursor->rows->has_value) {
        if (cursor->next == cursor->count)
            return false;
        if (cursor->rows != NULL)
            roaring_free_uint32_iterator(cursor->rows);
        cursor->rows = roaring_create_iterator(cursor->files[cursor->next++]->rows);
    }
    *out_file = path_of(cursor->files[cursor->next - 1]);
    *out_row = cursor->rows->current_value;
    roaring_advance_uint32_iterator(cursor->rows);
    return true;
}

void
deletes_cursor_free(DeletesCursor *cursor)
{
    if (cursor == NULL)
        return;
    if (cursor->rows != NULL)
        roaring_free_uint32_iterator(cursor->rows);
    free(cursor->files);
    free(cursor);
}
