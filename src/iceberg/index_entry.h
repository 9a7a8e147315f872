/* index_entry.h - what the key index is made of: entries, and what is looked for among them. */
#ifndef ICEBERG_INDEX_ENTRY_H
#define ICEBERG_INDEX_ENTRY_H

#include "base/buf.h"
#include "base/hash.h"

/* As on disk. Order: key, file, row. */
typedef struct Entry {
    Hash128 key;
    uint32_t file;
    uint32_t row;
} Entry;

_Static_assert(sizeof(Entry) == 24, "an entry is 24 bytes on disk");

int entry_cmp(const Entry *a, const Entry *b);
void entry_sort(Entry *entries, size_t count);

/* A key that is looked for, with its place among the caller's. */
typedef struct Probe {
    Hash128 key;
    size_t number;
} Probe;

/* An entry that was found. */
typedef struct Match {
    size_t probe;
    uint32_t file;
    uint32_t row;
} Match;

/* The first entry whose key is not below `key`, or count. */
size_t entry_lower_bound(const Entry *entries, size_t count, Hash128 key);

/* Entries with the probes' keys (sorted) in a sorted array; appended to *matches. */
void entry_lookup(const Entry *entries, size_t count, const Probe *probes, size_t probe_count,
                  Buf *matches);

#endif
