/* index.h - the key index: from a row's key hash to where the row is in the lake.
 *
 * For each data file an immutable, sorted run of (key hash, file, row), made while the file is
 * written. Runs are merged in tiers, so a table has O(log n) of them; each has a blocked Bloom
 * filter (about 10 bits a key: one cache line, one read per probe). Runs are read with pread, not
 * mmap: what a probe touches does not count as memory of the process, and an update costs a few
 * page reads whatever the table's size.
 *
 *   run file   header (magic, version, counts, checksum) | Bloom blocks of 64 bytes | entries
 *   entry      hash high (8) | hash low (8) | file ordinal (4) | row (4), little-endian, sorted
 *
 * Files are known by ordinal; `index.json` in the folder names each ordinal's data file (full URI)
 * and lists the runs; it is replaced by rename. Everything here is rebuildable from the data files:
 * losing or distrusting it costs time, never data. A torn or foreign file is treated as missing.
 * One thread at a time, but merges may run on a background thread of the index itself. */
#ifndef ICEBERG_INDEX_H
#define ICEBERG_INDEX_H

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"

typedef struct Index Index;

/* Open or make the index in `folder`, for the table with this uuid (another uuid: emptied). */
bool index_open(const char *folder, const char *table_uuid, Index **out_index,
                Error *err) WARN_UNUSED;
void index_close(Index *index); /* NULL is fine; waits for a merge */

/* Whether the rows of a data file are in the index. */
bool index_has_file(const Index *index, Str data_file);

/* Add the rows of a data file: keys[i] is row i. The file counts from now on (also before its
 * commit: updates in the same transaction must find it). Saved to disk by index_save(). */
bool index_add_file(Index *index, Str data_file, const Hash128 *keys, size_t rows,
                    Error *err) WARN_UNUSED;

/* The same in pieces, for files larger than memory allows: sorted spill runs, merged at end. */
typedef struct IndexBuild IndexBuild;
bool index_build_begin(Index *index, Str data_file, IndexBuild **out_build, Error *err) WARN_UNUSED;
bool index_build_add(IndexBuild *build, const Hash128 *keys, size_t rows, Error *err) WARN_UNUSED;
bool index_build_end(IndexBuild *build, Error *err) WARN_UNUSED; /* frees build, also on failure */
void index_build_abort(IndexBuild *build);

/* Forget a data file: its entries do not count any more (truncate, compaction, abandoned file). */
void index_remove_file(Index *index, Str data_file);

/* One place where a key was found. */
typedef struct IndexHit {
    size_t probe; /* index into the keys given */
    int file;     /* ordinal, see index_file_name */
    uint32_t row;
} IndexHit;

/* All places of each of the keys (need not be sorted), appended to *out_hits as IndexHit, ordered
 * by probe, then newest file first, then by row, descending. Rows deleted in the lake are still
 * there: the caller knows which are (iceberg/deletes.h). */
bool index_lookup(Index *index, const Hash128 *keys, size_t count, Buf *out_hits,
                  Error *err) WARN_UNUSED;

/* Full URI of a file ordinal. */
Str index_file_name(const Index *index, int file);

/* Make what was added so far survive a restart, and start merging when a tier is full. Not needed
 * for correctness. */
bool index_save(Index *index, Error *err) WARN_UNUSED;

typedef struct IndexStats {
    size_t runs;
    size_t files;
    uint64_t entries;
    uint64_t bytes;
} IndexStats;

IndexStats index_stats(const Index *index);

#endif
