/* index_run.h - one file of the key index: sorted, written once, never changed.
 *
 *     header     magic, version, table, seed, counts | checksum (8)       1,024 bytes
 *     filter     blocks of 60 bytes of Bloom bits | checksum (4)          padded to 1,024
 *     page       42 entries of 24 bytes | count (4) | number (4) | checksum (8)
 *
 * Hashes are uniform, so everything is found by arithmetic: a key's filter block and, but for a
 * page or two, its page follow from its upper 64 bits. Both grow with the hash: sorted probes walk
 * through the file once. Every page and filter block carries a checksum seeded with the run's
 * random number, verified whenever it is read: what is torn, flipped or another run's is noticed
 * when it is used, and opening a run costs one read whatever its size. Pages are small because a
 * probe usually needs one entry of one page, and copies and checks all of it.
 *
 * A failure to read means: this run cannot be trusted. Integers are little-endian. */
#ifndef ICEBERG_INDEX_RUN_H
#define ICEBERG_INDEX_RUN_H

#include "base/error.h"
#include "iceberg/index_entry.h"

#include <stdatomic.h>

/* --- Reading ------------------------------------------------------------------------------- */

typedef struct Run {
    int fd;
    uint64_t table; /* hash of the table's uuid */
    uint64_t seed;
    uint64_t entries;
    uint64_t pages;
    uint64_t filter_blocks;
    uint64_t bytes;
} Run;

/* A run that has to belong to this table and to have this seed. */
bool run_open(const char *path, uint64_t table, uint64_t seed, Run **out_run,
              Error *err) WARN_UNUSED;
void run_close(Run *run); /* NULL is fine; the file stays */

/* Probes sorted by key. Matches are appended in the order of the probes. */
bool run_lookup(const Run *run, const Probe *probes, size_t probe_count, Buf *matches,
                Error *err) WARN_UNUSED;

/* --- Writing ------------------------------------------------------------------------------- */

typedef struct RunWriter RunWriter;

typedef struct RunOptions {
    const char *path;
    uint64_t table;
    uint64_t entries_max; /* upper bound of what will be added: sizes the filter */
    bool filter;          /* none for spills that are only merged */
    bool sync;            /* fdatasync at the end */
} RunOptions;

bool run_create(const RunOptions *options, RunWriter **out_writer, Error *err) WARN_UNUSED;
/* In order. */
bool run_add(RunWriter *writer, const Entry *entry, Error *err) WARN_UNUSED;
/* Completes the file and opens it. Frees the writer, also on failure; then the file is removed. */
bool run_finish(RunWriter *writer, Run **out_run, Error *err) WARN_UNUSED;
void run_abort(RunWriter *writer); /* NULL is fine; removes the file */

/* --- Merging ------------------------------------------------------------------------------- */

/* Which files count: live[ordinal - first] != 0; ordinals outside do not. NULL: all of them. */
typedef struct LiveFiles {
    const uint8_t *live;
    uint32_t first;
    uint32_t count;
} LiveFiles;

static inline bool
live_file(const LiveFiles *files, uint32_t file)
{
    return files == NULL ||
           (file - files->first < files->count && files->live[file - files->first] != 0);
}

typedef struct RunMerge {
    Run *const *runs;
    size_t count;
    const LiveFiles *files;
    const atomic_bool *stop; /* give up when it becomes true; may be NULL */
    size_t broken;           /* out, when it fails: the run that could not be read, or count */
} RunMerge;

/* All entries of the runs, in order, into the writer. ERR_CANCELED when stopped. */
bool run_merge(RunMerge *merge, RunWriter *writer, Error *err) WARN_UNUSED;

#endif
