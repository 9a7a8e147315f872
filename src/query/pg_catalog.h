/* pg_catalog.h - what clients find in pg_catalog and information_schema: views over the tables of
 * the lake, and functions that DuckDB lacks or means differently.
 *
 * DuckDB's own pg_catalog cannot be changed, so ours lies in a schema of another name, which the
 * dialect puts in its place and which is last in every search path. */
#ifndef QUERY_PG_CATALOG_H
#define QUERY_PG_CATALOG_H

#include "duck/session.h"

#define PG_CATALOG_SCHEMA         "_pg_catalog"
#define INFORMATION_SCHEMA_SCHEMA "_information_schema"

/* Make schemas, tables, views and macros. Once per Duck. */
bool pg_catalog_install(DuckSession *session, Error *err) WARN_UNUSED;

/* Whether it is one of the views; space empty: an unqualified name. */
bool pg_catalog_has(Str space, Str name);

/* Schemas that cannot be shown under their name, because it is DuckDB's or ours. */
bool pg_catalog_owns_schema(Str space);

/* A table as the views show it. */
typedef struct PgRelation {
    uint32_t oid;
    Str space;
    Str name;
    int64_t rows; /* -1: not known */
} PgRelation;

typedef struct PgAttribute {
    uint32_t relation;
    int number; /* from 1 */
    Str name;
    uint32_t type_oid;
    int32_t typmod;
    bool not_null;
    Str type_text; /* as format_type prints it in the source */
} PgAttribute;

/* Statements that put it in place of what is known of it; appended to sql. */
void pg_catalog_put_relation(Buf *sql, const PgRelation *relation, const PgAttribute *attributes,
                             size_t count);
void pg_catalog_drop_relation(Buf *sql, uint32_t oid);

#endif
