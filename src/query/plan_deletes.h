/* plan_deletes.h - the deleted rows of a table, from its position delete files and deletion
 * vectors, kept from plan to plan: neither ever changes. */
#ifndef QUERY_PLAN_DELETES_H
#define QUERY_PLAN_DELETES_H

#include "duck/session.h"
#include "iceberg/manifest.h"
#include "store/file_cache.h"

/* The deletes of one data file. */
typedef struct DeletedIn {
    Str data_file;
    Buf rows; /* uint32_t */
} DeletedIn;

/* What one manifest entry brings. */
typedef struct CachedDeletes {
    char *path;
    int64_t offset; /* of a vector in its Puffin file; -1: a position delete file */
    Arena *arena;   /* of the names */
    Buf files;      /* DeletedIn; a vector has one */
    bool used;      /* by the plan being made */
} CachedDeletes;

typedef struct DeletesCache {
    Buf entries; /* CachedDeletes, by path and offset */
} DeletesCache;

/* A deletion vector, as opposed to a position delete file. */
bool plan_is_vector(const DataFile *file);

/* Where deletes come from. */
typedef struct DeletesLoad {
    Arena *arena; /* for the time of the call */
    FileCache *files;
    Duck *duck; /* reads position delete files */
} DeletesLoad;

/* See to it that all the wanted ones are there, and mark them as used. Of a Puffin file that has
 * little else only the vectors are read, else all of it at once. */
bool deletes_cache_load(DeletesCache *cache, const DeletesLoad *load, const DataFile **wanted,
                        size_t count, Error *err) WARN_UNUSED;

/* Of a file that was loaded. */
const CachedDeletes *deletes_cache_find(const DeletesCache *cache, const DataFile *file);

void deletes_cache_mark_unused(DeletesCache *cache);
void deletes_cache_drop_unused(DeletesCache *cache);
void deletes_cache_done(DeletesCache *cache);

#endif
