/* catalog.h - where a table's current metadata is, and the one atomic step of a commit.
 *
 * A Catalog is a CatalogOps table and a struct whose first member is Catalog; adding one: write
 * catalog/<name>.c and add its line to catalog_kinds[] in catalog.c.
 *
 * Contract, checked by test/contract/catalog.c against every catalog:
 *   - commit is compare-and-swap on the token that load, create or an earlier commit returned; of
 *     racing commits on one token exactly one succeeds, the others get ERR_CONFLICT;
 *   - a commit whose outcome cannot be known fails with ERR_TRANSIENT; the caller loads and looks
 *     for its snapshot id before anything else;
 *   - drop makes the table go at one moment: before it, the last version is there, never an older
 *     one. It may be called again, also for a table that is half dropped or not there. What the
 *     table's metadata names (data files, manifests) stays: that is for the caller to remove;
 *   - list names every table with its namespace, sorted, exactly as given to create; a namespace
 *     is there when it has a table. One that cannot be read does not make it fail: it is named,
 *     and load says what is wrong with it. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "store/store.h"

typedef struct Catalog Catalog;

typedef struct TableName {
    Str space; /* namespace, one level; exactly as in Postgres */
    Str name;
} TableName;

/* One version of a table's metadata. Strings live in the arena given to the call. */
typedef struct CatalogTable {
    const char *location;          /* of the table, full URI, no trailing slash */
    const char *metadata_location; /* full URI of the metadata file */
    Str metadata;                  /* its JSON text */
    const char *token;             /* what commit compares: opaque, e.g. "7" for v7.metadata.json */
} CatalogTable;

typedef struct CatalogOps {
    const char *name; /* "file" */
    bool (*open)(Store *warehouse, Catalog **out_catalog, Error *err);
    bool (*load)(Catalog *catalog, Arena *arena, const TableName *name, CatalogTable *out_table,
                 bool *out_found, Error *err);
    bool (*create)(Catalog *catalog, Arena *arena, const TableName *name, Str metadata,
                   CatalogTable *out_table, Error *err);
    bool (*commit)(Catalog *catalog, Arena *arena, const TableName *name, const CatalogTable *base,
                   Str metadata, CatalogTable *out_table, Error *err);
    bool (*drop)(Catalog *catalog, Arena *arena, const TableName *name, Error *err);
    bool (*list)(Catalog *catalog, Arena *arena, TableName **out_names, size_t *out_count,
                 Error *err);
    bool (*current_token)(Catalog *catalog, Arena *arena, const TableName *name, const char *token,
                          const char **out_token, Error *err);
    void (*close)(Catalog *catalog);
} CatalogOps;

struct Catalog {
    const CatalogOps *ops;
    Store *warehouse; /* not owned */
};

bool catalog_open(const char *kind, Store *warehouse, Catalog **out_catalog,
                  Error *err) WARN_UNUSED;
void catalog_close(Catalog *catalog); /* NULL is fine */

/* Where a new table's location will be: <warehouse>/<namespace>/<table>, escaped as needed. */
const char *catalog_location(Catalog *catalog, Arena *arena, const TableName *name);

bool catalog_load(Catalog *catalog, Arena *arena, const TableName *name, CatalogTable *out_table,
                  bool *out_found, Error *err) WARN_UNUSED;
/* ERR_CONFLICT when the table exists. */
bool catalog_create(Catalog *catalog, Arena *arena, const TableName *name, Str metadata,
                    CatalogTable *out_table, Error *err) WARN_UNUSED;
bool catalog_commit(Catalog *catalog, Arena *arena, const TableName *name, const CatalogTable *base,
                    Str metadata, CatalogTable *out_table, Error *err) WARN_UNUSED;
/* Nobody else may write to it meanwhile. No error when it is not there. */
bool catalog_drop(Catalog *catalog, Arena *arena, const TableName *name, Error *err) WARN_UNUSED;
bool catalog_list(Catalog *catalog, Arena *arena, TableName **out_names, size_t *out_count,
                  Error *err) WARN_UNUSED;
/* Cheap check for news: the table's present token, starting the look from `token` (NULL: from
 * nothing). NULL out when the table is gone. */
bool catalog_current_token(Catalog *catalog, Arena *arena, const TableName *name, const char *token,
                           const char **out_token, Error *err) WARN_UNUSED;

#endif
