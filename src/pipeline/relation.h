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

/* Keep the message, for relation_map(), until the next one of this table or session. */
void relation_keep(PipeTable *table, const Message *message);

/* Whether the message has the columns and the key of table->reading, by name and type: then its
 * column_map is filled. */
bool relation_map(PipeTable *table, const Message *message);

/* Whether the columns of a schema are those of the catalog as it is now, by attnum: a Relation
 * message does not have it, and two columns that swapped names, or one dropped and added again,
 * look alike without. One small query. */
bool relation_same_columns(PgConn *conn, const TableSchema *schema, bool *out_same,
                           Error *err) WARN_UNUSED;

/* The attnums of a message's columns. It lists the columns of its moment in the order of attnum
 * (logicalrep_write_attrs in Postgres' proto.c goes through the tuple descriptor), but attnums are
 * not in it, and names and types are no evidence: a column may have had another name in between,
 * or have been dropped and its name given away. What holds under every history is that attnums are
 * given in ascending order and never again, and that a dropped column does not come back. So it is
 * a matter of counting, between a shape from before the message and one from after it. False: more
 * than one history explains it, or none; the array is undefined then. */
bool relation_attnums(const TableSchema *before, const TableSchema *now, int count,
                      int *out_attnums);

/* The shape that the message describes, its columns told apart by attnum: between the shape that
 * the stream had last (table->reading) and that of the catalog now, which may have gone on since.
 * A type that neither has any more is asked for. *out_shape is a new reference. ERR_COPY: more than
 * one history would explain the message, so the rows must be copied again. */
bool relation_shape(PgConn *catalog, const PipeTable *table, const TableSchema *now,
                    const Message *message, TableSchema **out_shape, Error *err) WARN_UNUSED;

#endif
