/* tables_sql.h - the queries of tables.c and the columns of their results. search_path is
 * pg_catalog on every connection. */
#ifndef SOURCE_TABLES_SQL_H
#define SOURCE_TABLES_SQL_H

enum {
    REL_OID,
    REL_SCHEMA,
    REL_NAME,
    REL_KIND,
    REL_PERSISTENCE,
    REL_IDENTITY,
    REL_OWNER,
    REL_OWNED,
    REL_READABLE,
    REL_ROW_SECURITY,
    REL_PAGES,
    REL_ROWS,
    REL_ROOT, /* of a partition */
    REL_EXTENSION,
    REL_FILENODE,
    REL_BORN, /* a partition that was made as one, see TableLeaf */
    REL_ATTNUM_MAX,
    REL_JOINED,
};

/* What FOR ALL TABLES would take (is_publishable_class in pg_publication.c: user oids, permanent),
 * and views, foreign and unlogged tables to say why not. Sizes are those of pg_class: asking for
 * the real ones would wait for whoever holds a lock. CREATE TABLE ... PARTITION OF writes the
 * catalog rows of the table (its system columns' stay as they were made) and of its place in the
 * tree in one transaction and at most two commands apart; ATTACH comes later (seen on 13 to 18).
 * The %s narrows it to one table. */
#define RELATIONS_SQL                                                                              \
    "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident,"             \
    " pg_get_userbyid(c.relowner), pg_has_role(c.relowner, 'USAGE'),"                              \
    " has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),"              \
    " CASE WHEN c.relrowsecurity THEN row_security_active(c.oid) ELSE false END,"                  \
    " c.relpages, c.reltuples::bigint,"                                                            \
    " CASE WHEN c.relispartition THEN pg_partition_root(c.oid)::oid END,"                          \
    " (SELECT e.extname FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid"                \
    "   WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid = 0"             \
    "   AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'), c.relfilenode,"          \
    " CASE WHEN c.relispartition AND c.relkind = 'r' THEN NOT EXISTS (SELECT FROM"                 \
    "   pg_partition_ancestors(c.oid) p JOIN pg_inherits i ON i.inhrelid = p.relid"                \
    "   JOIN pg_attribute a ON a.attrelid = p.relid AND a.attnum = -1"                             \
    "   WHERE a.xmin <> i.xmin OR i.cmin::text::int8 - a.cmin::text::int8 > 2) END, c.relnatts,"   \
    " CASE WHEN c.relispartition THEN (SELECT sum(i.xmin::text::int8) %% 4294967296"               \
    "   FROM pg_partition_ancestors(c.oid) p JOIN pg_inherits i ON i.inhrelid = p.relid) END"      \
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"                               \
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.oid >= 16384"                             \
    " AND c.relpersistence <> 't' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"   \
    "%s ORDER BY c.oid"

enum {
    COL_REL,
    COL_ATTNUM,
    COL_NAME,
    COL_TYPE,
    COL_TYPMOD,
    COL_NOT_NULL,
    COL_DIMENSIONS,
    COL_GENERATED,
    COL_TYPE_NAME,
    COL_FILLED,
    COL_XMIN,
    COL_MISSING_VALUE,
};

/* A partitioned table has no rows that could miss a value (heap.c, StoreAttrMissingVal): its
 * partitions say so. */
#define COLUMNS_SQL                                                                                \
    "SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attndims,"   \
    " a.attgenerated, format_type(a.atttypid, a.atttypmod),"                                       \
    " a.atthasmissing OR m.root IS NOT NULL, a.xmin, coalesce(a.attmissingval::text, m.value)"     \
    " FROM pg_attribute a LEFT JOIN (SELECT pg_partition_root(p.oid)::oid AS root, f.attname,"     \
    "   CASE WHEN count(DISTINCT f.attmissingval::text) = 1 THEN min(f.attmissingval::text) END"   \
    "     AS value FROM pg_class p JOIN pg_attribute f ON f.attrelid = p.oid"                      \
    "   WHERE p.relispartition AND f.atthasmissing GROUP BY 1, 2) m"                               \
    "   ON m.root = a.attrelid AND m.attname = a.attname"                                          \
    " WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0"                                         \
    " AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum"

enum { KEY_REL, KEY_INDEX, KEY_PRIMARY, KEY_IDENTITY, KEY_IMMEDIATE, KEY_COLUMN };

/* One row per key column, in the key's order. */
#define KEYS_SQL                                                                                   \
    "SELECT i.indrelid, i.indexrelid, i.indisprimary, i.indisreplident, i.indimmediate, a.attname" \
    " FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, n)"    \
    " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"                      \
    " WHERE i.indrelid = ANY ($1::oid[]) AND (i.indisprimary OR i.indisreplident)"                 \
    " AND i.indisvalid AND k.n <= i.indnkeyatts"                                                   \
    " ORDER BY i.indrelid, i.indexrelid, k.n"

enum { PUB_REL, PUB_FILTER, PUB_COLUMNS, PUB_ENTRY, PUB_SCHEMA_ENTRY, PUB_GENERATED };

/* What of the tables $2 the publication $1 has. Not asked of pg_publication_tables: since 17 that
 * view waits for whoever holds a lock on any of its tables. As pgoutput.c and pg_publication.c have
 * it: partitioned tables only by their root and only with publish_via_partition_root, and a row
 * filter counts for nothing beside the table's schema or FOR ALL TABLES. */
#define PUBLISHED_SQL(values, join, or_other)                                                      \
    "SELECT c.oid, " values " FROM pg_publication b CROSS JOIN pg_class c"                         \
    " LEFT JOIN pg_publication_rel r ON r.prpubid = b.oid AND r.prrelid = c.oid" join              \
    " WHERE b.pubname = $1 AND c.oid = ANY ($2::oid[]) AND c.relpersistence = 'p'"                 \
    " AND (c.relkind = 'r' OR (c.relkind = 'p' AND b.pubviaroot)) AND NOT c.relispartition"        \
    " AND (b.puballtables OR r.oid IS NOT NULL" or_other ") ORDER BY c.oid"

/* Row filters, column lists and FOR TABLES IN SCHEMA came with 15. */
#define PUBLISHED_SINCE_15(generated)                                                              \
    PUBLISHED_SQL("CASE WHEN s.oid IS NULL AND NOT b.puballtables"                                 \
                  " THEN pg_get_expr(r.prqual, r.prrelid) END,"                                    \
                  " array_to_string(r.prattrs::int2[], ' '), r.oid, s.oid, " generated,            \
                  " LEFT JOIN pg_publication_namespace s ON s.pnpubid = b.oid AND s.pnnspid = "    \
                  "c.relnamespace",                                                                \
                  " OR s.oid IS NOT NULL")

/* Stored generated columns came with 18: if the publication says so, or a column list names them
 * (check_and_fetch_column_list in pg_publication.c: the list goes first). */
#define PUBLISHED_SQL_18 PUBLISHED_SINCE_15("r.prattrs IS NOT NULL OR b.pubgencols = 's'")
#define PUBLISHED_SQL_15 PUBLISHED_SINCE_15("false")
#define PUBLISHED_SQL_13 PUBLISHED_SQL("NULL, NULL, r.oid, NULL, false", "", "")

#endif
