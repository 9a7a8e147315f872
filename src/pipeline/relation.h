/* relation.h - Relation messages of the stream against the tables we know. */
#ifndef PIPELINE_RELATION_H
#define PIPELINE_RELATION_H

#include "decode/pgoutput.h"
#include "pg/conn.h"
#include "pipeline/table.h"

typedef struct RelationMap RelationMap;

/* Finds tables by oid; all of them become unmapped: a new session sends its relations again. */
RelationMap *relation_map_new(size_t count, PipeTable *const *tables);
void relation_map_free(RelationMap *map);
PipeTable *relation_table(const RelationMap *map, uint32_t relid); /* NULL: not ours */

/* Fit the message's columns to table->schema: fills column_map. False with a reason (ERR_INPUT)
 * when the table has another shape than its schema: names, types or key changed. */
bool relation_map(PipeTable *table, const Message *message, Error *err) WARN_UNUSED;

/* Whether the columns are still those of the schema by attnum: a Relation message does not have it,
 * and two columns that swapped names, or one dropped and added again, look alike without. Asks the
 * catalog as it is now, which may be newer than the stream: then the table stops earlier than it
 * had to. False with ERR_INPUT: other columns; ERR_TRANSIENT: the question could not be asked. */
bool relation_same_columns(PgConn *conn, const TableSchema *schema, Error *err) WARN_UNUSED;

#endif
