/* deletes.h - which rows of which data files are deleted: one roaring bitmap per data file.
 *
 * Rows are added as the deletes of a commit are found; position delete files and deletion vectors
 * of the table are added when it is opened. v2 writes them as position delete files (this folder
 * only sorts them), v3 as deletion vectors. Pure. */
#ifndef ICEBERG_DELETES_H
#define ICEBERG_DELETES_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdint.h>

typedef struct Deletes Deletes;

Deletes *deletes_new(void);
void deletes_free(Deletes *deletes);   /* NULL is fine */
void deletes_freep(Deletes **deletes); /* for AUTO() */

/* False when it was deleted already. */
bool deletes_add(Deletes *deletes, Str data_file, uint32_t row);
bool deletes_contains(const Deletes *deletes, Str data_file, uint32_t row);
void deletes_remove_file(Deletes *deletes, Str data_file);
uint64_t deletes_count(const Deletes *deletes, Str data_file);
uint64_t deletes_total(const Deletes *deletes);
void deletes_clear(Deletes *deletes);
/* Add everything of `other`. */
void deletes_merge(Deletes *deletes, const Deletes *other);

/* The data files with deleted rows, in order of bytes; views that are good until one is removed. */
size_t deletes_files(const Deletes *deletes, Arena *arena, Str **out_files);

/* Append the rows of one data file as a deletion vector blob (iceberg/deletion_vector.h); how many
 * they are. A file without deletes has an empty vector. */
uint64_t deletes_write_vector(const Deletes *deletes, Str data_file, Buf *out);

/* Add the rows of a deletion vector blob. `cardinality` is what the manifest says of it, its
 * record_count; the blob must agree. ERR_INPUT: it is damaged, nothing was added. */
bool deletes_add_vector(Deletes *deletes, Str data_file, Str blob, int64_t cardinality,
                        Error *err) WARN_UNUSED;

/* Walk all (file, row) in order of file bytes, then row: the order of a position delete file. */
typedef struct DeletesCursor DeletesCursor;
DeletesCursor *deletes_cursor(const Deletes *deletes);
bool deletes_next(DeletesCursor *cursor, Str *out_file, uint32_t *out_row);
void deletes_cursor_free(DeletesCursor *cursor);

#endif
