/* tables.h - the tables of the source, as its catalog describes them.
 *
 * A bounded number of queries whatever the number of tables. Partitioned tables appear as their
 * root, which is also what their changes arrive as (publish_via_partition_root); the partitions
 * below are listed for the copy. What cannot be replicated is listed too, with the reason. */
#ifndef SOURCE_TABLES_H
#define SOURCE_TABLES_H

#include "config/config.h"
#include "model/schema.h"
#include "pg/conn.h"

/* A column that is in Postgres and not in the lake. */
typedef struct MissingColumn {
    Str name;
    const char *reason;
} MissingColumn;

typedef struct TableLeaf {
    uint32_t relid;
    Str schema_name;
    Str table_name;
    char kind; /* 'r', or 'f': a foreign table, whose rows are elsewhere and do not arrive */
    uint32_t filenode;
    uint32_t joined; /* by which transactions it, and those above it, became partitions */
    bool born; /* made as a partition, so that every row of it came through the root; false: it was
                  attached, or perhaps */
} TableLeaf;

/* An enum or a composite. */
typedef struct WordedType {
    const PgType *type;
    bool late; /* one of its words was made, or renamed, when a column of it was there already */
} WordedType;

typedef struct SourceTable {
    uint32_t relid;
    char kind;      /* pg_class.relkind: r table, p partitioned, v, m, f */
    bool owned;     /* our role may alter it */
    bool readable;  /* USAGE on the schema, SELECT on the table */
    bool published; /* by the publication that was asked about */
    Str schema_name;
    Str table_name;
    const char *qualified; /* public.orders; a part with dots or quotes is quoted */
    const char *owner;

    const char *excluded;      /* cannot be replicated at all, and why; then schema is NULL */
    const char *problem;       /* could lose rows or cannot be read; a person must act (hint) */
    const char *warning;       /* works, but worth knowing */
    const TableSchema *schema; /* a reference; field ids are those of a new table */

    /* An ALTER TABLE that writes new values into old rows (another type, a default that is no
     * constant) sends nothing to the stream, but changes both: the files of the table and its
     * partitions, and the catalog rows of its columns. VACUUM FULL changes only the first, a rename
     * only the second. */
    uint64_t files_mark;
    uint64_t columns_mark;

    /* Of the publication: an expression over the columns, and attnums as in "1 3"; or NULL. */
    const char *row_filter;
    const char *column_list;
    /* What publishes it: rows of pg_publication_rel and, by its schema, pg_publication_namespace.
     * 0: there is none; both 0 under FOR ALL TABLES. Taken out and put back, or given another
     * filter or column list, a table has another one. */
    uint32_t publication_entry;
    uint32_t schema_entry;

    int missing_count;
    int text_count;
    MissingColumn *missing;
    int *text_columns; /* indexes into schema->columns: types without a home arrive as text */

    int worded_count;
    WordedType *worded; /* what its columns are made of, sorted by oid */

    int64_t pages;         /* as of the last vacuum or analyze, partitions included */
    int64_t rows_estimate; /* -1: never analyzed */
    TableLeaf *leaves;     /* of a partitioned table */
    int leaf_count;
    bool generated_arrive; /* stored generated columns, as far as the column list has them */
    bool computed;         /* one of the schema's columns is one: COPY (table) refuses those */
} SourceTable;

/* Sorted by schema and name. */
typedef struct SourceTables {
    int count;
    SourceTable *items;
} SourceTables;

typedef struct TablesRead {
    const Config *config;    /* which tables, and their keys */
    const char *publication; /* what it publishes, with column lists and row filters; NULL */
} TablesRead;

/* On an ordinary connection, outside a transaction. Everything but the schemas lives in the arena;
 * schemas are released by source_tables_done(). */
bool source_tables_load(PgConn *conn, Arena *arena, const TablesRead *read,
                        SourceTables *out_tables, Error *err) WARN_UNUSED;

/* One table (a partitioned one by its root), whatever source.tables says: when a Relation message
 * does not match what we know. *out_tables is empty when there is no such table any more. */
bool source_table_by_oid(PgConn *conn, Arena *arena, const TablesRead *read, uint32_t relid,
                         SourceTables *out_tables, Error *err) WARN_UNUSED;

/* What relations are called now, as SourceTable.qualified; NULL for one that is gone. The array is
 * the caller's. */
bool source_table_names(PgConn *conn, Arena *arena, const uint32_t *relids, int count,
                        const char **out_names, Error *err) WARN_UNUSED;

/* What a column of the type_oid and typmod in *column (as a Relation message names them) is: fills
 * its type and pg_type, from the arena; pg_type is NULL when the type was dropped meanwhile. The
 * number of dimensions of an array is not in the type: the caller's (0: one). */
bool source_column_type(PgConn *conn, Arena *arena, int dimensions, SchemaColumn *column,
                        Error *err) WARN_UNUSED;

void source_tables_done(SourceTables *tables);

/* The table with this oid, or NULL. */
const SourceTable *source_tables_find(const SourceTables *tables, uint32_t relid);

/* "public"."orders", for SQL. */
const char *source_relation_sql(Arena *arena, Str schema_name, Str table_name);

#endif
