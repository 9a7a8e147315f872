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

/* The warehouse takes objects and its compare-and-swap is real; the catalog. */
void check_lake(Report *report, const Config *config);

#endif
