/* snapshot.h - what a snapshot says about itself: operation and exact counters. Pure. */
#ifndef ICEBERG_SNAPSHOT_H
#define ICEBERG_SNAPSHOT_H

#include "iceberg/manifest.h"

/* Files that a commit adds and removes. */
typedef struct SnapshotDelta {
    size_t added_count;
    const DataFile *added; /* data and delete files */
    size_t removed_count;
    const DataFile *removed;
    size_t manifests_created, manifests_kept, manifests_replaced;
    bool only_added; /* all other files are gone, and not all of those could be told in `removed` */
} SnapshotDelta;

/* "operation" (append, delete, overwrite, replace when is_replace) and the standard counters,
 * totals derived from the parent's summary (NULL: a first snapshot); zero counters are left out, as
 * Java does; totals, manifests-* and changed-partition-count are always there (a total that the
 * parent lacks stays out). extra entries (cdc.position ...) are added. Sorted by key. */
PropertyList snapshot_summary(Arena *arena, const SnapshotDelta *delta, bool is_replace,
                              const PropertyList *parent, const PropertyList *extra);

#endif
