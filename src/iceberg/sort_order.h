/* sort_order.h - sort orders of tables: from settings, and from one to the next. Iceberg spec,
 * "Sort Orders". What sorts rows by one is in iceberg/sorter.h. Pure. */
#ifndef ICEBERG_SORT_ORDER_H
#define ICEBERG_SORT_ORDER_H

#include "config/config.h"
#include "iceberg/metadata.h"

/* Property of a table: the setting that its order follows, as sort_rule_text() has it. */
#define SORT_PROPERTY "walberg.sort"

/* What the rows of a table's files are to be ordered by, without an id; source ids are those of
 * `schema`. ERR_INPUT names the place of the setting, the table, the column and what would be
 * allowed. */
bool sort_order_resolve(Arena *arena, const SortRule *rule, const TableSchema *schema,
                        SortOrder *out_order, Error *err) WARN_UNUSED;

/* The order as far as it can live on with this schema: without fields whose column is gone, and
 * with those of the rule whose column has come (back) under its name, before what the rule has
 * after them. *out_lost: how many fields went. Java refuses to load a table whose default order
 * names a column that is not there. */
void sort_order_follow(Arena *arena, const SortOrder *order, const SortRule *rule,
                       const TableSchema *schema, SortOrder *out_order, int *out_lost);

/* "day(at) desc nulls last, identity(id) asc nulls first": the rule as it is remembered in the
 * table, however it was spelled. */
Str sort_rule_text(Arena *arena, const SortRule *rule);

/* A copy of metadata with `wanted`, whose id does not count, as the default order: one of the table
 * that is equal, or a new one. Id 0 is the order without fields. What did not change is shared. */
TableMetadata *metadata_set_sort_order(Arena *arena, const TableMetadata *metadata,
                                       const SortOrder *wanted);

/* Same fields in the same sequence. */
bool sort_order_same(const SortOrder *a, const SortOrder *b);
SortOrder sort_order_copy(Arena *arena, const SortOrder *order);

/* The order that new files should have; without fields: none. */
const SortOrder *metadata_default_sort_order(const TableMetadata *metadata);

#endif
