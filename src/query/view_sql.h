/* view_sql.h - the view of a table, as SQL for DuckDB.
 *
 *     CREATE OR REPLACE VIEW "public"."orders" AS
 *       SELECT c1 AS "id", ... FROM read_parquet([files without deletes], schema = MAP {...})
 *       UNION ALL
 *       SELECT c1 AS "id", ... FROM read_parquet([files with], schema = ..., file_row_number =
 * true) WHERE walberg_live(7, file_index, file_row_number)
 *
 * Columns are found by field id (the MAP's keys), so renamed, widened and added ones are right; in
 * the files they are called c<field id>, which no name of a column of ours can meet. Files with
 * deletes share one scan (of those that have structs in another shape each shape has its own):
 * measured with 1 M rows in 20 files, a branch per file costs as much for a sum and twice as much
 * for one row.
 *
 * DuckDB folds the case of quoted names, too. Columns whose names differ in nothing else are all
 * shown under their name and field id ("Name_1", "name_2"), none under the plain one: that would be
 * the wrong one for somebody. */
#ifndef QUERY_VIEW_SQL_H
#define QUERY_VIEW_SQL_H

#include "iceberg/metadata.h"
#include "query/pg_catalog.h"
#include "query/table_plan.h"

typedef struct ViewTable {
    Str space;
    Str name;
    const TableMetadata *metadata;
    const IcebergSchema *schema;
    const TablePlan *plan; /* NULL: no rows */
    uint64_t dead_set;     /* number of plan->dead */
} ViewTable;

/* A bare numeric that is shown as text, because no decimal of 38 digits holds all its values. */
typedef struct TextNumber {
    Str column; /* as it is shown */
    Str why;    /* a sentence */
} TextNumber;

typedef struct TextNumbers {
    Arena *arena; /* NULL: there is none */
    size_t count;
    TextNumber *items;
} TextNumbers;

TextNumbers view_text_numbers(const ViewTable *table);
void text_numbers_done(TextNumbers *numbers);

/* Append the statement to sql. ERR_INPUT: the schema has a default that is no value. */
bool view_put(Buf *sql, const ViewTable *table, Error *err) WARN_UNUSED;

/* How the columns look in pg_attribute. *out_attributes is in the arena; relation is not set. */
void view_attributes(Arena *arena, const ViewTable *table, PgAttribute **out_attributes,
                     size_t *out_count);

#endif
