/* table_plan.h - from one snapshot of a table to the files to read and the rows to leave out.
 *
 * Iceberg spec, "Scan Planning": live data files are the ADDED and EXISTING entries of the data
 * manifests; a position delete or a deletion vector applies to a data file whose data sequence
 * number is not greater than its own, and a vector replaces the position deletes. What cannot be
 * read rightly fails with ERR_INPUT, the reason being the message. */
#ifndef QUERY_TABLE_PLAN_H
#define QUERY_TABLE_PLAN_H

#include "query/file_shape.h"
#include "query/plan_deletes.h"

/* What is kept of a table from plan to plan: manifests and delete files never change. */
typedef struct PlanCache {
    Buf manifests; /* CachedManifest */
    DeletesCache deletes;
    ShapeCache shapes;
} PlanCache;

void plan_cache_done(PlanCache *cache);

/* Files of one shape. */
typedef struct PlanGroup {
    const FileShape *shape; /* NULL: as the schema says */
    size_t clean_count;     /* of the plan's, group after group */
    size_t dirty_count;
} PlanGroup;

typedef struct TablePlan {
    size_t clean_count;
    const char **clean; /* local paths of files without deletes */
    size_t dirty_count;
    const char **dirty; /* of those with */
    DeadRows *dead;     /* of the dirty ones, by index; NULL when there are none */
    FileHold hold;      /* of all of them */
    int64_t rows;       /* live */
    size_t group_count;
    PlanGroup *groups; /* shapes live as long as the cache does not make another plan */
} TablePlan;

typedef struct PlanMake {
    FileCache *files;
    Duck *duck; /* reads delete files */
    PlanCache *cache;
    const Snapshot *snapshot;
    const IcebergSchema *schema; /* that rows are shown with; NULL: who reads goes by field ids */
} PlanMake;

/* Paths are in the arena; plan->dead and plan->hold are the caller's. */
bool table_plan_make(Arena *arena, const PlanMake *make, TablePlan *out_plan,
                     Error *err) WARN_UNUSED;

/* What there is of a table as of the moment that is shown of all. */
typedef enum PlanMoment {
    MOMENT_THERE,
    MOMENT_AHEAD, /* all that it has is of later */
    MOMENT_LOST,  /* its history does not reach back that far any more */
} PlanMoment;

/* The snapshot to show: the newest on main that is not ahead of `committed`. NULL with
 * MOMENT_THERE: none yet, the table is empty. has_limit false: the current one (a table that no
 * pipeline writes).
 */
const Snapshot *plan_choose_snapshot(const TableMetadata *metadata, bool has_limit,
                                     uint64_t committed, PlanMoment *out_moment);

#endif
