/* types.h - Postgres types as the catalog describes them, with everything they are made of. */
#ifndef SOURCE_TYPES_H
#define SOURCE_TYPES_H

#include "model/type.h"
#include "pg/conn.h"

/* Sorted by oid. */
typedef struct TypeSet {
    int count;
    PgType *types;
} TypeSet;

/* The types `oids` (repetitions are fine) and all they refer to, in three queries however deep they
 * nest. A type that was dropped meanwhile is simply not there. */
bool source_types_load(PgConn *conn, Arena *arena, const uint32_t *oids, int count,
                       TypeSet *out_types, Error *err) WARN_UNUSED;

/* The same from the rows of two of the queries, without words; types refer to each other by oid.
 * Exposed for tests. types:   oid, typname, typtype, delimiter, is_array, typtypmod, element or
 * base type members: composite's oid, attname, atttypid, atttypmod; ordered by oid */
bool source_types_build(Arena *arena, const PgResult *types, const PgResult *members,
                        TypeSet *out_types, Error *err) WARN_UNUSED;

/* As TransactionIdFollows of Postgres: they go round. */
bool xid_is_after(uint32_t xid, uint32_t other);

/* NULL when it is not in the set. */
const PgType *source_types_find(const TypeSet *types, uint32_t oid);

/* '{1,2,3}' as a parameter for $1::oid[]. */
const char *source_oid_array(Arena *arena, const uint32_t *oids, int count);

#endif
