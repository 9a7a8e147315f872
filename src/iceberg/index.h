/* index.h - the key index: from a row's key hash to where the row is in the lake.
 *
 * Immutable, sorted runs of (key hash, file, row). The entries of a large data file become a run of
 * their own while it is written; those of small ones collect in memory first (6 MB). Runs are
 * merged in tiers, so a table has O(log n) of them; each has a blocked Bloom filter (10 bits a key:
 * one cache line, one read per probe). Runs are read with pread, not mmap: what a probe touches
 * does not count as memory of the process, and an update costs a few page reads whatever the
 * table's size. index_run.h has the bytes.
 *
 * Files are known by ordinal; `index.json` in the folder names each ordinal's data file (full URI)
 * and lists the runs; a journal has what is in memory only. Everything here is rebuildable from the
 * data files: losing or distrusting it costs time, never data. What is torn or foreign when the
 * index is opened is treated as missing: index_has_file() is false. What is found to be damaged
 * later makes the call fail with ERR_CONFLICT, and the files concerned are missing from then on:
 * add them again and repeat the call.
 *
 * An index keeps a descriptor for its journal and one for each run, and a pipeline has an index for
 * each table: so there is no lock of its own. A folder belongs to one Index at a time, also across
 * processes, which <state>/lock sees to.
 *
 * One thread at a time; merges run on a background thread of the index itself. */
#ifndef ICEBERG_INDEX_H
#define ICEBERG_INDEX_H

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"

typedef struct Index Index;

/* Open or make the index in `folder`, for the table with this uuid (another uuid: emptied). */
bool index_open(const char *folder, const char *table_uuid, Index **out_index,
                Error *err) WARN_UNUSED;
void index_close(Index *index); /* NULL is fine; gives up a running merge */

/* Whether the rows of a data file are in the index. */
bool index_has_file(const Index *index, Str data_file);

/* Add the rows of a data file: keys[i] is row i. The file counts from now on (also before its
 * commit: updates in the same transaction must find it). Saved to disk by index_save(). */
bool index_add_file(Index *index, Str data_file, const Hash128 *keys, size_t rows,
                    Error *err) WARN_UNUSED;

/* The same in pieces, for files larger than memory allows: sorted spill runs, merged at end. At
 * most 6 MB are held. index_build_add() touches nothing but its build: several may go on in threads
 * of their own, as long as the other calls come from one at a time. */
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

/* Full URI of a file ordinal; STR_NULL when it does not count any more. */
Str index_file_name(const Index *index, int file);

/* Make what was added and removed so far survive a restart of the process (nothing is synced: after
 * a crash of the machine some files may be missing), and start merging when a tier is full. Not
 * needed for correctness. Usually one write to the journal. */
bool index_save(Index *index, Error *err) WARN_UNUSED;

typedef struct IndexStats {
    size_t runs;
    size_t files;     /* ordinals are below this; index_file_name() tells which count */
    uint64_t entries; /* those of removed files included, until merged away */
    uint64_t bytes;   /* on disk */
} IndexStats;

IndexStats index_stats(const Index *index);

#endif
