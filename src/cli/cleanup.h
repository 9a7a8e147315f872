/* cleanup.h - what `walberg cleanup` removes: a list of items, in the order in which they go. */
#ifndef CLI_CLEANUP_H
#define CLI_CLEANUP_H

#include "catalog/catalog.h"
#include "cli/cli.h"
#include "pg/conn.h"
#include "pipeline/state.h"

typedef enum CleanupKind {
    CLEANUP_TABLE,
    CLEANUP_PUBLICATION,
    CLEANUP_SLOT,
    CLEANUP_STATE,  /* the state object in the lake */
    CLEANUP_FOLDER, /* the local state folder */
} CleanupKind;

typedef struct CleanupItem {
    CleanupKind kind;
    const char *name;  /* "public.orders", a slot, a folder ... */
    TableName table;   /* CLEANUP_TABLE */
    const char *known; /* the table's name in the source; NULL: the state object has none */
    const char *uuid; /* of the table, for its local key index; NULL: it has no metadata any more */
    size_t objects;
    int64_t bytes;
    bool stays; /* it has more than what is ours, as a note says */
} CleanupItem;

typedef struct Cleanup {
    const Cli *cli;
    Config *config;
    Arena *arena;
    bool default_publication; /* its name is not from the settings */
    PgConn *conn;
    Store *store;
    Catalog *catalog;
    int lock_fd; /* <state>/lock, held while we remove; -1 */
    bool has_state;
    bool same_source; /* the lake was filled from this server */
    PipelineState state;
    StoreVersion state_version;
    Buf items; /* CleanupItem */
    Buf notes; /* const char *: what stays, and why */
} Cleanup;

/* cleanup_plan.c */

bool cleanup_load_state(Cleanup *cleanup, Error *err) WARN_UNUSED;
/* Whether the state's table is the lake's of this name. */
bool cleanup_is_lake_table(const Cleanup *cleanup, const StateTable *known, const TableName *name);
/* ERR_INPUT: a table that was named is not there, or is somebody else's, or it is not clear which
 * one is meant. */
bool cleanup_plan(Cleanup *cleanup, Error *err) WARN_UNUSED;

#endif
