/* check.h - the two halves of `walberg check`. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "cli/report.h"
#include "config/config.h"

/* Server, role, slot, publication, every table. Resolves the settings with the database's name. */
void check_source(Report *report, Config *config);

/* The warehouse takes objects and its compare-and-swap is real; the catalog. */
void check_lake(Report *report, const Config *config);

#endif
