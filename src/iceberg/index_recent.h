/* index_recent.h - the youngest entries of the key index, in memory.
 *
 * A commit adds a thousand entries or so: too few for a file of their own. They are kept as sorted
 * segments, each at least twice as long as the next, so there are O(log n) of them and an entry is
 * moved O(log n) times until all are written out as a run. */
#ifndef ICEBERG_INDEX_RECENT_H
#define ICEBERG_INDEX_RECENT_H

#include "iceberg/index_run.h"

typedef struct Recent {
    Buf entries;  /* Entry */
    Buf segments; /* size_t: where each begins */
    Buf scratch;
} Recent;

void recent_done(Recent *recent);
void recent_reset(Recent *recent);

static inline size_t
recent_count(const Recent *recent)
{
    return BUF_COUNT(&recent->entries, Entry);
}

/* Sorts them first. */
void recent_add(Recent *recent, Entry *entries, size_t count);

/* Probes sorted; matches appended segment by segment. */
void recent_lookup(const Recent *recent, const Probe *probes, size_t count, Buf *matches);

/* Everything that counts, in order, into the writer. Leaves one segment. */
bool recent_write(Recent *recent, const LiveFiles *files, RunWriter *writer,
                  Error *err) WARN_UNUSED;

#endif
