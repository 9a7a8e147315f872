/* guard.h - what clients may run: queries, and only on the tables.
 *
 * DuckDB's own settings keep statements away from the file system and the network (duck_lockdown),
 * but not from the lake's own files read as they are (deleted rows included), nor from its
 * catalog's views, which tell paths. So each query is parsed by DuckDB, and its syntax tree is
 * walked before it may run: every table must be one of ours, every table function on a short list,
 * no function on another. What DuckDB cannot serialize is not a query.
 *
 * Statements other than queries never get here: see utility.h. */
#ifndef QUERY_GUARD_H
#define QUERY_GUARD_H

#include "query/sqlstate.h"

/* Which tables there are. Embed as the first member of what knows. */
typedef struct GuardTables GuardTables;

typedef enum TableStanding {
    TABLE_UNKNOWN,
    TABLE_READABLE,
    TABLE_LEFT_OUT, /* it exists but cannot be read: *out_reason says why */
} TableStanding;

struct GuardTables {
    /* space is empty for an unqualified name. Case does not count. */
    TableStanding (*find)(GuardTables *tables, Arena *arena, Str space, Str name, Str *out_reason);
};

typedef struct Guarded {
    /* What Postgres would call the columns of the result; STR_NULL where it would use the column's
     * own name. The first `head_count` columns, and the last `tail_count` (what is between comes
     * from a star). */
    int head_count;
    Str *head;
    int tail_count;
    Str *tail;
    bool star; /* there is one, somewhere */
    size_t name_count;
    Str *names; /* of columns that the query names, without those of their tables */
} Guarded;

/* Whether the query may read a column of this name, of any table. */
bool guarded_names(const Guarded *guarded, Str column);

typedef struct GuardQuery {
    Str sql;             /* one query, in DuckDB's dialect */
    DuckSession *parser; /* not in a transaction */
    GuardTables *tables;
} GuardQuery;

/* On failure *failure is set. */
bool guard_check(const GuardQuery *query, Arena *arena, Guarded *out_guarded, QueryFailure *failure,
                 Error *err) WARN_UNUSED;

/* The walk alone, over what json_serialize_sql() answered. */
bool guard_check_tree(GuardTables *tables, Arena *arena, Str json, Guarded *out_guarded,
                      QueryFailure *failure, Error *err) WARN_UNUSED;

#endif
