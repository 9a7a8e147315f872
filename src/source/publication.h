/* publication.h - the publication that says which tables arrive.
 *
 * An existing one is enough: managed services give a role REPLICATION without ownership, so the
 * owner makes it beforehand. FOR TABLE needs ownership of each table, FOR ALL TABLES a superuser;
 * we only ever make the former. */
#ifndef SOURCE_PUBLICATION_H
#define SOURCE_PUBLICATION_H

#include "source/tables.h"

typedef struct Publication {
    bool exists;
    uint32_t oid;
    const char *version; /* another one after each ALTER PUBLICATION but of its tables */
    bool made;           /* by this call */
    bool altered;        /* by this call */
    const char *owner;
    bool owned; /* our role may alter it */
    bool all_tables;
    bool via_root;
    /* Changes that are not published, "update, truncate"; NULL when all are. */
    const char *unpublished;
    int missing;             /* of our tables, how many it does not publish */
    const char *missing_sql; /* what its owner would run for them; NULL */
} Publication;

typedef struct PublicationWant {
    const char *name;
    bool may_create;
    bool may_alter; /* add tables to it: for the one that bears our own name */
} PublicationWant;

/* Look it up, make it when it is missing and that is allowed, add tables likewise. `tables` were
 * read with this publication's name; published ones are marked as it goes. ERR_INPUT with the SQL
 * for the owner as the hint when it is missing and our role cannot make it, and when it publishes
 * partitions under their own names although we have partitioned tables. */
bool source_publication_ensure(PgConn *conn, Arena *arena, const PublicationWant *want,
                               SourceTables *tables, Publication *out_publication,
                               Error *err) WARN_UNUSED;

/* Only look. */
bool source_publication_load(PgConn *conn, Arena *arena, const char *name,
                             const SourceTables *tables, Publication *out_publication,
                             Error *err) WARN_UNUSED;

/* CREATE PUBLICATION for all tables that can be replicated, ALTER PUBLICATION ... ADD for those
 * that are not published yet (NULL when there are none). */
const char *source_publication_create_sql(Arena *arena, const char *name,
                                          const SourceTables *tables);
const char *source_publication_add_sql(Arena *arena, const char *name, const SourceTables *tables);

#endif
