/* lake_internal.h - what the files of a lake share: lake.c (names, pins, life) and lake_refresh.c.
 */
#ifndef QUERY_LAKE_INTERNAL_H
#define QUERY_LAKE_INTERNAL_H

#include <pthread.h>

#include "catalog/catalog.h"
#include "iceberg/metadata.h"
#include "model/position.h"
#include "query/lake.h"
#include "query/table_plan.h"
#include "query/view_sql.h"

typedef struct LakeTable LakeTable;

struct LakeTable {
    char *key; /* lower case "space\1name" */
    char *space;
    char *name;
    uint32_t oid;
    bool listed; /* by the catalog, in this refresh */
    char *twin;  /* another table of this name but for case, in this refresh; NULL: none */

    char *token;  /* of the metadata */
    Arena *arena; /* of the metadata */
    TableMetadata *metadata;
    PlanCache cache;

    bool had_twin;       /* when it was settled */
    bool settled;        /* it was looked at before: it is shown or left out */
    bool shown;          /* clients find it in pg_catalog */
    bool changed;        /* what it shows is not what it should, until the next views are there */
    int64_t snapshot_id; /* that was wanted last; 0: none */
    const Snapshot *wanted; /* that it shall show; NULL: none */
    PlanMoment moment;      /* why there is none */
    bool copying;           /* likewise: its first copy is not complete */
    uint64_t dead_set;      /* of the view; 0: none */
    FileHold hold;          /* of the files that the view names */
    uint64_t next_dead_set; /* of the one being made */
    FileHold next_hold;     /* likewise */
    char *next_reason;      /* likewise */
    TextNumbers numbers;    /* of the view */
    TextNumbers next_numbers;
    int64_t failing_ms;  /* since when it fails for reasons that may pass; 0: it does not */
    int64_t retry_ms;    /* left out for that: it is looked at again from then on; 0: it is not */
    char *reason;        /* why it cannot be read; NULL: it can */
    bool tells_progress; /* the reason is its first copy */
};

typedef struct Pin {
    uint64_t epoch;
    size_t count;
} Pin;

/* What no new statement asks for: a set of deleted rows, and files. */
typedef struct Retired {
    uint64_t epoch; /* the first one without them */
    uint64_t set;   /* 0: none */
    FileHold hold;
} Retired;

typedef struct Pipeline {
    Str name;
    bool known; /* its state says how far all tables are */
    Position committed;
} Pipeline;

struct Lake {
    LakeOptions options;
    char *cache_folder;
    Catalog *catalog;
    Duck *duck;
    DeadTable *dead;
    DuckSession *session; /* of the refresh */
    FileCache files;
    uint32_t next_oid;
    Buf pipelines; /* char *, names of those that tables told of */

    pthread_mutex_t lock; /* of what follows: sessions look at it */
    Buf tables;           /* LakeTable *, ordered by key */
    uint64_t epoch;
    Buf pins;    /* Pin, ascending */
    Buf retired; /* Retired, ascending */
};

static inline LakeTable *
lake_table(const Lake *lake, size_t i)
{
    return BUF_AT(&lake->tables, LakeTable *, i);
}

static inline size_t
lake_table_count(const Lake *lake)
{
    return BUF_COUNT(&lake->tables, LakeTable *);
}

/* NULL: there is none. Case does not count. */
LakeTable *lake_find_table(const Lake *lake, Str space, Str name);
/* Under the lock, when others may look: */
LakeTable *lake_add_table(Lake *lake, Str space, Str name);
/* Another spelling of the same key. */
void lake_name_table(LakeTable *table, Str space, Str name);
void lake_remove_table(Lake *lake, LakeTable *table);
/* Free the sets of deleted rows, and let go of the files, that nobody can ask for any more. */
void lake_sweep(Lake *lake);

#endif
