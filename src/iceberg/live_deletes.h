/* live_deletes.h - the live delete files of a table, by the manifest that lists them.
 *
 * Version 2 has a few position delete files. Version 3 has a deletion vector for every data file
 * with deleted rows, which may be as many as there are data files. So each manifest stands alone,
 * and the vector of a data file is found without a walk: a commit reads and copies only the
 * manifests that it writes again. Pure. */
#ifndef ICEBERG_LIVE_DELETES_H
#define ICEBERG_LIVE_DELETES_H

#include "iceberg/manifest.h"

typedef struct LiveManifest {
    ManifestFile file;
    size_t number; /* for live_deletes_at() */
    size_t count;
    ManifestEntry *entries; /* the live ones */
    struct LiveVector *vectors;
    Arena *arena;
} LiveManifest;

typedef struct LiveDeletes LiveDeletes;

LiveDeletes *live_deletes_new(void);
void live_deletes_free(LiveDeletes *live); /* NULL is fine */

/* The manifest `file` with these bytes joins; one without live entries does not. ERR_INPUT: it
 * cannot be read, or a data file would have two deletion vectors. */
bool live_deletes_add(LiveDeletes *live, Str bytes, const ManifestFile *file,
                      Error *err) WARN_UNUSED;
/* By the manifest's path; nothing when it is not there. */
void live_deletes_remove(LiveDeletes *live, Str manifest_path);

size_t live_deletes_count(const LiveDeletes *live); /* of manifests */
/* Good until it is removed; a removal changes the number of others. */
LiveManifest *live_deletes_at(const LiveDeletes *live, size_t number);
/* The manifest with the deletion vector of a data file; NULL: it has none. */
const LiveManifest *live_deletes_find(const LiveDeletes *live, Str data_file);

/* Whether a delete file is a deletion vector. */
bool file_is_vector(const DataFile *file);

#endif
