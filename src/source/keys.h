/* keys.h - how the rows of a table are found again: from its replica identity, its indexes and
 * what the settings say. Pure: names in, names out. */
#ifndef SOURCE_KEYS_H
#define SOURCE_KEYS_H

#include "config/config.h"
#include "model/schema.h"

/* The primary key or the replica identity index of a table. */
typedef struct IndexFacts {
    bool primary;
    bool identity;  /* indisreplident */
    bool immediate; /* not deferrable: Postgres takes no other for a replica identity */
    StrList columns;
} IndexFacts;

typedef struct IdentityFacts {
    ReplicaIdentity identity;
    int index_count;
    IndexFacts *indexes;
} IdentityFacts;

typedef struct TableKey {
    KeyMode mode;
    StrList columns;     /* of KEY_COLUMNS */
    const char *warning; /* what a person should know; NULL */
    const char *problem; /* why rows could be missed or mixed up; NULL */
} TableKey;

/* The key by Postgres' rules: default -> primary key, index -> that index, full -> primary key if
 * there is one, else the whole row. */
TableKey key_from_identity(const IdentityFacts *facts);

/* The columns whose old values arrive with every update that changes them and every delete; with
 * FULL all do (*out_all). */
StrList key_identity_columns(const IdentityFacts *facts, bool *out_all);

/* tables.<pattern>.key: allowed when the identity sends the old values of these columns, or when
 * there is no identity, so that only inserts can come. */
TableKey key_from_rule(Arena *arena, const IdentityFacts *facts, const StrList *columns);

/* Changes of a partition arrive as its root's, but with the old values that the partition's own
 * identity gives. NULL when these suffice for the root's key. */
const char *key_partition_problem(Arena *arena, const TableKey *root,
                                  const IdentityFacts *partition, const char *partition_name);

bool str_list_has(const StrList *list, Str item);

#endif
