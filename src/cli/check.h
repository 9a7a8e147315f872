/* check.h - the two halves of `walberg check`. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "cli/report.h"
#include "config/config.h"
#include "source/tables.h"

/* Server, role, slot, publication, every table. Resolves the settings with the database's name. */
void check_source(Report *report, Config *config);

typedef struct NumericCheck {
    Report *report;
    Arena *arena;
    PgConn *conn;
} NumericCheck;

/* For columns that are numeric without a precision: the cast that holds their present values. Reads
 * the table, at most half a GB of it. */
void check_numerics(NumericCheck *check, const SourceTable *table, const TableRule *rule);

/* When a table has money: how many digits after the point it has, and for whom it has others. */
void check_money(Report *report, PgConn *conn, const SourceTables *tables);

typedef struct PartitionCheck {
    Report *report;
    Arena *arena;
    const Config *config;
    const char *database;
} PartitionCheck;

/* Whether the setting of how the lake's table is partitioned fits the source's columns, or did when
 * the lake took it on. */
void check_partition(const PartitionCheck *check, const SourceTable *table,
                     const PartitionRule *rule, const char *item);
/* The same of the setting of how its files are sorted. */
void check_sort(const PartitionCheck *check, const SourceTable *table, const SortRule *rule,
                const char *item);

/* The path of an object; NULL for a lake that is not on this machine. */
const char *check_local_path(Arena *arena, const char *warehouse, const char *key);

/* The warehouse takes objects and its compare-and-swap is real; the catalog. */
void check_lake(Report *report, const Config *config);

#endif
