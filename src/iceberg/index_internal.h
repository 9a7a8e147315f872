/* index_internal.h - the key index from inside: index.c answers, index_state.c makes it survive,
 * index_build.c adds files, index_merge.c keeps runs few.
 *
 *     recent (memory + journal) --spill--> run --+
 *     large file ------------------------> run --+--merge of four of a size--> run --> ...
 *
 * A file's entries are all in one place: one run, or recent. What counts is decided by the list of
 * files alone: an entry whose file is not in it does not count, so removing a file is removing its
 * name, and ordinals are never used twice. */
#ifndef ICEBERG_INDEX_INTERNAL_H
#define ICEBERG_INDEX_INTERNAL_H

#include <pthread.h>
#include <stdlib.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "base/arena.h"
#include "iceberg/index.h"
#include "iceberg/index_journal.h"
#include "iceberg/index_recent.h"

enum {
    RECENT_ENTRIES_MAX = 256 * 1024, /* 6 MB; then they become a run */
    RECENT_FILE_ROWS = 64 * 1024,    /* a file with more rows gets a run of its own */
    JOURNAL_BYTES_MAX = 16 << 20,
};

typedef struct IndexRun {
    uint64_t number; /* its file is run-<number> */
    Run *run;
    uint64_t live; /* entries that count; by count_live() */
} IndexRun;

typedef struct IndexFile {
    uint32_t ordinal;
    uint32_t rows;
    IndexRun *run; /* NULL: in recent, or it has no rows */
    bool recent;
    Str name;
    UT_hash_handle hh;
} IndexFile;

typedef struct Merge Merge;

struct Index {
    char *folder;
    char *table_uuid;
    uint64_t table; /* hash of it */
    uint32_t next_file;
    uint64_t next_number; /* of runs, journals, temporary files */
    Buf files;            /* IndexFile *, ordinals ascending */
    IndexFile *by_name;
    Buf runs; /* IndexRun *, oldest first */
    Recent recent;
    Journal journal;
    bool runs_changed;    /* index.json is behind */
    bool journal_changed; /* recent was spilled: the journal starts again */
    Buf obsolete;         /* uint64_t: runs whose file goes once index.json is written */
    Merge *merge;         /* running in the background, or NULL */
    int merge_rest;       /* saves to let pass before the next one */
};

/* --- index.c ------------------------------------------------------------------------------- */

static inline size_t
index_run_count(const Index *index)
{
    return BUF_COUNT(&index->runs, IndexRun *);
}

static inline IndexRun *
index_run_at(const Index *index, size_t i)
{
    return BUF_AT(&index->runs, IndexRun *, i);
}

static inline size_t
index_file_count(const Index *index)
{
    return BUF_COUNT(&index->files, IndexFile *);
}

static inline IndexFile *
index_file_at(const Index *index, size_t i)
{
    return BUF_AT(&index->files, IndexFile *, i);
}

IndexFile *index_find_file(const Index *index, Str name);
/* Enter a file that is complete; ordinals are given in ascending order, but builds may end in any.
 */
IndexFile *index_enter_file(Index *index, uint32_t ordinal, Str name, uint32_t rows);
void index_drop_file(Index *index, IndexFile *file);
void index_drop_ordinal(Index *index, uint32_t ordinal); /* may be unknown */

/* The run belongs to the index from now on. */
IndexRun *index_enter_run(Index *index, uint64_t number, Run *run);
/* Take a run out of the list, close it, and have its file removed at the next save. Its files must
 * be elsewhere or gone. */
void index_leave_run(Index *index, IndexRun *run);

/* A run turned out to be damaged: forget its files. Turns *err into the ERR_CONFLICT that tells
 * the caller to add them again; returns false. */
bool index_drop_run(Index *index, IndexRun *run, Error *err);

/* Which ordinals count now; free with live_done(). */
LiveFiles index_live_files(const Index *index);
void live_done(LiveFiles *files);
#define AUTO_LIVE __attribute__((cleanup(live_done)))

/* --- index_state.c ------------------------------------------------------------------------- */

/* "<folder>/<kind>-<number>" in arena. */
char *index_path(const Index *index, Arena *arena, const char *kind, uint64_t number);

/* Read index.json and the journal; whatever is not trusted is left out. Then remove files that
 * nothing refers to. */
bool index_load(Index *index, Error *err) WARN_UNUSED;
/* Make the present state the one that the next index_load() finds. */
bool index_store(Index *index, Error *err) WARN_UNUSED;

/* --- index_build.c ------------------------------------------------------------------------- */

/* Write recent out as a run. */
bool index_spill(Index *index, Error *err) WARN_UNUSED;

/* A new run file under a temporary name; index_complete_run() gives it its own. */
bool index_create_run(const Index *index, uint64_t number, uint64_t entries_max, bool sync,
                      RunWriter **out_writer, Error *err) WARN_UNUSED;
bool index_complete_run(const Index *index, uint64_t number, RunWriter *writer, Run **out_run,
                        Error *err) WARN_UNUSED;

/* --- index_merge.c ------------------------------------------------------------------------- */

/* Put the result of a finished merge in place of its inputs. Fails like index_drop_run() when one
 * of them turned out to be damaged. */
bool index_merge_finish(Index *index, Error *err) WARN_UNUSED;
/* Start one when a tier is full and none is running. */
void index_merge_start(Index *index);
/* Stop a running merge and forget it. */
void index_merge_cancel(Index *index);

#endif
