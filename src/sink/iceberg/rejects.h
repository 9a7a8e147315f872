/* rejects.h - what others may know of the table _walberg.rejects. */
#ifndef SINK_ICEBERG_REJECTS_H
#define SINK_ICEBERG_REJECTS_H

#include "base/arena.h"
#include "base/str.h"

/* Property of the rejects table: up to where the rejects of one source table are recorded. By the
 * uuid of its lake table: one that is copied afresh, perhaps from another server, has another. */
static inline Str
rejects_position_key(Arena *arena, Str table_uuid)
{
    return arena_strf(arena, "walberg.rejects.%.*s", STR_ARG(table_uuid));
}

/* Another: how many of its rows are of that table. */
static inline Str
rejects_count_key(Arena *arena, Str table_uuid)
{
    return arena_strf(arena, "walberg.reject-count.%.*s", STR_ARG(table_uuid));
}

#endif
