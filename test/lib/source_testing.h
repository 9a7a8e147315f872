/* source_testing.h - what the tests of source/ share. */
#ifndef SOURCE_TESTING_H
#define SOURCE_TESTING_H

#include "throwaway_pg.h"

#include "source/slot.h"
#include "source/tables.h"

/* source.tables = these patterns, and nothing else set. */
static inline Config *
config_of(Arena *arena, const char *patterns)
{
    Config *config = NULL;
    Error err = {0};
    const char *sets[] = {arena_printf(arena, "source.tables=%s", patterns),
                          "sink.iceberg.warehouse=/tmp/none", "source.postgres=postgres://h/d"};

    OK(config_load(arena, &(ConfigLoad){.set_count = 3, .sets = sets}, &config, &err));
    return config;
}

static inline void
load_tables(PgConn *conn, Arena *arena, const TablesRead *read, SourceTables *out_tables)
{
    Error err = {0};

    OK(source_tables_load(conn, arena, read, out_tables, &err));
}

static inline SourceTable *
table_named(SourceTables *tables, const char *qualified)
{
    for (int i = 0; i < tables->count; i++)
        if (strcmp(tables->items[i].qualified, qualified) == 0)
            return &tables->items[i];
    print_error("no table %s\n", qualified);
    abort(); /* fail() does not say that it never returns */
}

static inline Position
position_of(const char *text)
{
    Position position = 0;
    Error err = {0};

    OK(position_parse(str_of(text), &position, &err));
    return position;
}

/* Without complaint when it is not there. */
static inline void
drop_slot(PgConn *conn, const char *name)
{
    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};

    OK(source_slot_drop(conn, arena, name, &err));
}

#endif
