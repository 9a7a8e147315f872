/* build.h - one build of the next snapshot. Private to the files that make it:
 *
 *   manifests.c          data files, the manifests and their list
 *   deletes.c            which delete manifests are written again, and what stays of them
 *   position_deletes.c   version 2: position delete files, merged in tiers
 *   vectors.c            version 3: a deletion vector per data file */
#ifndef SINK_ICEBERG_BUILD_H
#define SINK_ICEBERG_BUILD_H

#include "sink/iceberg/sink.h"

/* What it adds, removes, carries. Everything it makes is in the arena. */
typedef struct Builder {
    IcebergTable *table;
    const TableMetadata *base;
    Arena *arena;
    NextSnapshot *next;
    Buf manifests; /* ManifestFile, newest first */
    Buf added;     /* DataFile */
    Buf removed;   /* DataFile */
    size_t created, kept, replaced;
    int written;        /* manifests written, for their names */
    ResultType **types; /* of base->specs */
    bool unlisted;      /* files that go cannot be told */
    bool *rewritten;    /* by number of live_deletes: this manifest is written again */
} Builder;

/* The entries of the delete manifests that are written again. */
typedef struct OldDeletes {
    size_t count;
    ManifestEntry *entries;
    bool *gone; /* not live in the next snapshot */
} OldDeletes;

/* manifests.c */

/* A file may have been written before a column that it is partitioned by was widened. */
void iceberg_widen_partition(const Builder *builder, Arena *arena, DataFile *file);
/* The entries as manifests, one or more per spec. */
bool iceberg_add_manifests(Builder *builder, bool deletes, const ManifestEntry *entries,
                           size_t count, Error *err) WARN_UNUSED;

/* deletes.c */

bool iceberg_ever_partitioned(const TableMetadata *metadata);
/* Where every data file is that deletes may point into: table->places. */
bool iceberg_load_places(Builder *builder, Error *err) WARN_UNUSED;
/* The delete files of the next snapshot, where they change. */
bool iceberg_add_deletes(Builder *builder, Error *err) WARN_UNUSED;
/* The other delete manifests stay. */
void iceberg_carry_deletes(Builder *builder);
/* A delete file of this snapshot, into *entries (ManifestEntry). */
void iceberg_add_delete_file(Builder *builder, const DataFile *file, Buf *entries);

/* position_deletes.c */

/* What is pending as new position delete files; old ones that they take in are marked as gone. */
bool iceberg_add_position_deletes(Builder *builder, OldDeletes *old, Buf *entries,
                                  Error *err) WARN_UNUSED;

/* vectors.c */

/* The data files that get a new vector, into *files (Str); marks the manifests with their old
 * ones. */
bool iceberg_choose_vectors(Builder *builder, Buf *files, Error *err) WARN_UNUSED;
/* Write them, and mark what they replace as gone. */
bool iceberg_add_vectors(Builder *builder, const Buf *files, OldDeletes *old, Buf *entries,
                         Error *err) WARN_UNUSED;

#endif
