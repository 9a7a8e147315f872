/* column_name.h - what Postgres calls a column without an alias: "count", "?column?", "int4"
 * (FigureColname in Postgres' parse_target.c), from DuckDB's serialized syntax tree. */
#ifndef QUERY_COLUMN_NAME_H
#define QUERY_COLUMN_NAME_H

#include <jansson.h>

#include "query/guard.h"

/* node: of one statement. Names are copied into the arena. */
void column_names(Arena *arena, const json_t *node, Guarded *out_guarded);

#endif
