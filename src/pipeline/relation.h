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

/* The shape that the message describes, its columns told apart by attnum: between the shape that
 * the stream had last (table->reading) and that of the catalog now, which may have gone on since.
 * Names that both agree on are sure; others are placed by the order of attnums. A type that
 * neither has any more is asked for. *out_shape is a new reference. ERR_COPY: it cannot be told, so
 * the rows must be copied again. */
bool relation_shape(PgConn *catalog, const PipeTable *table, const TableSchema *now,
                    const Message *message, TableSchema **out_shape, Error *err) WARN_UNUSED;

#endif
