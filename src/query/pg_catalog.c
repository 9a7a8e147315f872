#include "query/pg_catalog.h"

#include <inttypes.h>
#include <strings.h>

#include "query/types.h"

/* Where a view shows nothing, it is there because clients join with it. */
static const char schema_sql[] =
    "CREATE SCHEMA IF NOT EXISTS public;"
    "CREATE SCHEMA " PG_CATALOG_SCHEMA ";"
    "CREATE SCHEMA " INFORMATION_SCHEMA_SCHEMA ";"
    "SET search_path = '" PG_CATALOG_SCHEMA "';"
    "CREATE TABLE lake_relation(oid BIGINT, space VARCHAR, name VARCHAR, tuples BIGINT);"
    "CREATE TABLE lake_attribute(relid BIGINT, num SMALLINT, name VARCHAR, typid BIGINT,"
    " typmod INTEGER, not_null BOOLEAN, type_text VARCHAR);"
    "CREATE TABLE lake_type(oid BIGINT, typname VARCHAR, typlen SMALLINT, typelem BIGINT,"
    " typarray BIGINT, typcategory VARCHAR, sql_name VARCHAR);"
    "CREATE TYPE name AS VARCHAR;"
    "CREATE TYPE jsonb AS JSON;"
    "CREATE TYPE regclass AS BIGINT;"
    "CREATE TYPE regnamespace AS BIGINT;"
    "CREATE TYPE regrole AS BIGINT;"
    "CREATE TYPE regtype AS BIGINT;"
    "CREATE TYPE regproc AS VARCHAR;";

static const char views_sql[] =
    /* Schemas have the OIDs of a row number: nothing outlives the session anyway. */
    "CREATE VIEW pg_namespace AS"
    " SELECT 16000 + row_number() OVER (ORDER BY space) AS oid, space AS nspname,"
    "  10::BIGINT AS nspowner, NULL::VARCHAR[] AS nspacl"
    "  FROM (SELECT DISTINCT space FROM " PG_CATALOG_SCHEMA ".lake_relation"
    "        UNION SELECT 'public')"
    " UNION ALL VALUES (11, 'pg_catalog', 10, NULL), (13000, 'information_schema', 10, NULL);"
    "CREATE VIEW pg_class AS"
    " SELECT r.oid, r.name AS relname, n.oid AS relnamespace, 0::BIGINT AS reltype,"
    "  0::BIGINT AS reloftype, 10::BIGINT AS relowner, 0::BIGINT AS relam,"
    "  0::BIGINT AS relfilenode, 0::BIGINT AS reltablespace, 0 AS relpages,"
    "  r.tuples::FLOAT AS reltuples, 0 AS relallvisible, 0::BIGINT AS reltoastrelid,"
    "  false AS relhasindex, false AS relisshared, 'p' AS relpersistence, 'r' AS relkind,"
    "  (SELECT count(*) FROM " PG_CATALOG_SCHEMA ".lake_attribute a WHERE a.relid = r.oid)"
    "   ::SMALLINT AS relnatts,"
    "  0::SMALLINT AS relchecks, false AS relhasrules, false AS relhastriggers,"
    "  false AS relhassubclass, false AS relrowsecurity, false AS relforcerowsecurity,"
    "  true AS relispopulated, 'd' AS relreplident, false AS relispartition,"
    "  0::BIGINT AS relrewrite, 0::BIGINT AS relfrozenxid, 0::BIGINT AS relminmxid,"
    "  NULL::VARCHAR[] AS relacl, NULL::VARCHAR[] AS reloptions, NULL::VARCHAR AS relpartbound"
    " FROM " PG_CATALOG_SCHEMA ".lake_relation r"
    " JOIN " PG_CATALOG_SCHEMA ".pg_namespace n ON n.nspname = r.space;"
    "CREATE VIEW pg_type AS"
    " SELECT oid, typname, 11::BIGINT AS typnamespace, 10::BIGINT AS typowner, typlen,"
    "  false AS typbyval, 'b' AS typtype, typcategory, false AS typispreferred,"
    "  true AS typisdefined, ',' AS typdelim, 0::BIGINT AS typrelid, typelem, typarray,"
    "  CASE WHEN typelem <> 0 THEN 'array_in' ELSE typname || 'in' END AS typinput,"
    "  CASE WHEN typelem <> 0 THEN 'array_out' ELSE typname || 'out' END AS typoutput,"
    "  CASE WHEN typelem <> 0 THEN 'array_recv' ELSE typname || 'recv' END AS typreceive,"
    "  CASE WHEN typelem <> 0 THEN 'array_send' ELSE typname || 'send' END AS typsend,"
    "  'i' AS typalign, 'p' AS typstorage, false AS typnotnull, 0::BIGINT AS typbasetype,"
    "  -1 AS typtypmod, 0 AS typndims, 0::BIGINT AS typcollation, NULL::VARCHAR AS typdefault"
    " FROM " PG_CATALOG_SCHEMA ".lake_type;"
    "CREATE VIEW pg_attribute AS"
    " SELECT a.relid AS attrelid, a.name AS attname, a.typid AS atttypid, -1 AS attstattarget,"
    "  coalesce(t.typlen, -1)::SMALLINT AS attlen, a.num AS attnum, 0 AS attndims,"
    "  -1 AS attcacheoff, a.typmod AS atttypmod, false AS attbyval, 'i' AS attalign,"
    "  'p' AS attstorage, '' AS attcompression, a.not_null AS attnotnull, false AS atthasdef,"
    "  false AS atthasmissing, '' AS attidentity, '' AS attgenerated, false AS attisdropped,"
    "  true AS attislocal, 0 AS attinhcount, 0::BIGINT AS attcollation,"
    "  NULL::VARCHAR[] AS attacl, NULL::VARCHAR[] AS attoptions, NULL::VARCHAR[] AS attfdwoptions,"
    "  NULL::VARCHAR AS attmissingval"
    " FROM " PG_CATALOG_SCHEMA ".lake_attribute a"
    " LEFT JOIN " PG_CATALOG_SCHEMA ".lake_type t ON t.oid = a.typid;"
    "CREATE VIEW pg_tables AS"
    " SELECT space AS schemaname, name AS tablename, 'walberg' AS tableowner,"
    "  NULL::VARCHAR AS tablespace, false AS hasindexes, false AS hasrules,"
    "  false AS hastriggers, false AS rowsecurity FROM " PG_CATALOG_SCHEMA ".lake_relation;"
    "CREATE VIEW pg_database AS"
    " SELECT 1::BIGINT AS oid, 'walberg' AS datname, 10::BIGINT AS datdba, 6 AS encoding,"
    "  'c' AS datlocprovider, false AS datistemplate, true AS datallowconn, -1 AS datconnlimit,"
    "  0::BIGINT AS dattablespace, 'C.UTF-8' AS datcollate, 'C.UTF-8' AS datctype,"
    "  NULL::VARCHAR AS daticulocale, NULL::VARCHAR[] AS datacl;"
    "CREATE VIEW pg_roles AS"
    " SELECT 10::BIGINT AS oid, 'walberg' AS rolname, false AS rolsuper, true AS rolinherit,"
    "  false AS rolcreaterole, false AS rolcreatedb, true AS rolcanlogin,"
    "  false AS rolreplication, -1 AS rolconnlimit, NULL::VARCHAR AS rolpassword,"
    "  NULL::TIMESTAMPTZ AS rolvaliduntil, false AS rolbypassrls, NULL::VARCHAR[] AS rolconfig;"
    "CREATE VIEW pg_user AS"
    " SELECT 'walberg' AS usename, 10::BIGINT AS usesysid, false AS usecreatedb,"
    "  false AS usesuper;"
    "CREATE VIEW " INFORMATION_SCHEMA_SCHEMA ".tables AS"
    " SELECT 'walberg' AS table_catalog, space AS table_schema, name AS table_name,"
    "  'BASE TABLE' AS table_type, 'NO' AS is_insertable_into, 'NO' AS is_typed"
    " FROM " PG_CATALOG_SCHEMA ".lake_relation;"
    "CREATE VIEW " INFORMATION_SCHEMA_SCHEMA ".schemata AS"
    " SELECT 'walberg' AS catalog_name, nspname AS schema_name, 'walberg' AS schema_owner"
    " FROM " PG_CATALOG_SCHEMA ".pg_namespace;"
    "CREATE VIEW " INFORMATION_SCHEMA_SCHEMA ".columns AS"
    " SELECT 'walberg' AS table_catalog, r.space AS table_schema, r.name AS table_name,"
    "  a.name AS column_name, a.num::INTEGER AS ordinal_position, NULL::VARCHAR AS column_default,"
    "  CASE WHEN a.not_null THEN 'NO' ELSE 'YES' END AS is_nullable,"
    "  coalesce(t.sql_name, 'USER-DEFINED') AS data_type, 'pg_catalog' AS udt_schema,"
    "  t.typname AS udt_name, 'NO' AS is_updatable"
    " FROM " PG_CATALOG_SCHEMA ".lake_relation r"
    " JOIN " PG_CATALOG_SCHEMA ".lake_attribute a ON a.relid = r.oid"
    " LEFT JOIN " PG_CATALOG_SCHEMA ".lake_type t ON t.oid = a.typid;";

/* Views without rows: their names, and columns as "name type". */
static const struct {
    const char *name;
    const char *columns;
} empty_views[] = {
    {"pg_am", "oid BIGINT, amname VARCHAR"},
    {"pg_attrdef", "oid BIGINT, adrelid BIGINT, adnum SMALLINT, adbin VARCHAR"},
    {"pg_auth_members", "roleid BIGINT, member BIGINT, admin_option BOOLEAN"},
    {"pg_collation", "oid BIGINT, collname VARCHAR, collnamespace BIGINT"},
    {"pg_constraint",
     "oid BIGINT, conname VARCHAR, connamespace BIGINT, contype VARCHAR, condeferrable BOOLEAN, "
     "condeferred BOOLEAN, convalidated BOOLEAN, conrelid BIGINT, contypid BIGINT, conindid "
     "BIGINT, conparentid BIGINT, confrelid BIGINT, confupdtype VARCHAR, confdeltype VARCHAR, "
     "confmatchtype VARCHAR, conkey SMALLINT[], confkey SMALLINT[], conbin VARCHAR"},
    {"pg_depend", "classid BIGINT, objid BIGINT, objsubid INTEGER, refclassid BIGINT, refobjid "
                  "BIGINT, refobjsubid INTEGER, deptype VARCHAR"},
    {"pg_description", "objoid BIGINT, classoid BIGINT, objsubid INTEGER, description VARCHAR"},
    {"pg_enum", "oid BIGINT, enumtypid BIGINT, enumsortorder FLOAT, enumlabel VARCHAR"},
    {"pg_event_trigger", "oid BIGINT, evtname VARCHAR"},
    {"pg_extension", "oid BIGINT, extname VARCHAR, extnamespace BIGINT, extversion VARCHAR"},
    {"pg_foreign_table", "ftrelid BIGINT, ftserver BIGINT, ftoptions VARCHAR[]"},
    {"pg_index",
     "indexrelid BIGINT, indrelid BIGINT, indnatts SMALLINT, indnkeyatts SMALLINT, indisunique "
     "BOOLEAN, indisprimary BOOLEAN, indisexclusion BOOLEAN, indimmediate BOOLEAN, indisclustered "
     "BOOLEAN, indisvalid BOOLEAN, indisready BOOLEAN, indislive BOOLEAN, indisreplident BOOLEAN, "
     "indkey SMALLINT[], indoption SMALLINT[], indexprs VARCHAR, indpred VARCHAR"},
    {"pg_inherits",
     "inhrelid BIGINT, inhparent BIGINT, inhseqno INTEGER, inhdetachpending BOOLEAN"},
    {"pg_indexes", "schemaname VARCHAR, tablename VARCHAR, indexname VARCHAR, tablespace VARCHAR, "
                   "indexdef VARCHAR"},
    {"pg_language", "oid BIGINT, lanname VARCHAR"},
    {"pg_matviews", "schemaname VARCHAR, matviewname VARCHAR, definition VARCHAR"},
    {"pg_policy", "oid BIGINT, polname VARCHAR, polrelid BIGINT, polcmd VARCHAR, polpermissive "
                  "BOOLEAN, polroles BIGINT[], polqual VARCHAR, polwithcheck VARCHAR"},
    {"pg_proc", "oid BIGINT, proname VARCHAR, pronamespace BIGINT, prokind VARCHAR, prorettype "
                "BIGINT"},
    {"pg_publication", "oid BIGINT, pubname VARCHAR, puballtables BOOLEAN"},
    {"pg_publication_namespace", "oid BIGINT, pnpubid BIGINT, pnnspid BIGINT"},
    {"pg_publication_rel",
     "oid BIGINT, prpubid BIGINT, prrelid BIGINT, prqual VARCHAR, prattrs SMALLINT[]"},
    {"pg_range", "rngtypid BIGINT, rngsubtype BIGINT"},
    {"pg_rewrite", "oid BIGINT, rulename VARCHAR, ev_class BIGINT, ev_enabled VARCHAR"},
    {"pg_sequence", "seqrelid BIGINT, seqtypid BIGINT"},
    {"pg_shdescription", "objoid BIGINT, classoid BIGINT, description VARCHAR"},
    {"pg_statistic_ext", "oid BIGINT, stxrelid BIGINT, stxname VARCHAR, stxnamespace BIGINT, "
                         "stxstattarget INTEGER, stxkeys SMALLINT[], stxkind VARCHAR[]"},
    {"pg_tablespace", "oid BIGINT, spcname VARCHAR"},
    {"pg_trigger", "oid BIGINT, tgrelid BIGINT, tgparentid BIGINT, tgname VARCHAR, tgenabled "
                   "VARCHAR, tgisinternal BOOLEAN, tgconstraint BIGINT"},
    {"pg_views", "schemaname VARCHAR, viewname VARCHAR, viewowner VARCHAR, definition VARCHAR"},
};

/* ~ is a macro because DuckDB's own wants the whole string to match. */
static const char macros_sql[] =
    "CREATE MACRO regexp_full_match(a, b) AS regexp_matches(a, b, 's');"
    "CREATE MACRO \"~*\"(a, b) AS regexp_matches(a, b, 'is');"
    "CREATE MACRO \"!~*\"(a, b) AS NOT regexp_matches(a, b, 'is');"
    "CREATE MACRO version() AS 'PostgreSQL 16.0 (walberg " WALBERG_VERSION ")';"
    "CREATE MACRO current_database() AS 'walberg';"
    "CREATE MACRO current_catalog() AS 'walberg';"
    "CREATE MACRO pg_backend_pid() AS 0;"
    "CREATE MACRO pg_is_in_recovery() AS false;"
    "CREATE MACRO pg_get_userbyid(a) AS 'walberg';"
    "CREATE MACRO pg_table_is_visible(a) AS (SELECT coalesce(bool_or(n.nspname = 'public'), false)"
    " FROM " PG_CATALOG_SCHEMA ".pg_class c JOIN " PG_CATALOG_SCHEMA ".pg_namespace n"
    " ON n.oid = c.relnamespace WHERE c.oid = a);"
    "CREATE MACRO to_regclass(s) AS coalesce(TRY_CAST(s AS BIGINT), (SELECT max(c.oid)"
    " FROM " PG_CATALOG_SCHEMA ".pg_class c JOIN " PG_CATALOG_SCHEMA ".pg_namespace n"
    " ON n.oid = c.relnamespace"
    " WHERE replace(s, '\"', '') IN (n.nspname || '.' || c.relname, c.relname)"
    " AND (n.nspname = 'public' OR contains(s, '.'))));"
    "CREATE MACRO pg_type_is_visible(a) AS true;"
    "CREATE MACRO pg_encoding_to_char(a) AS 'UTF8';"
    "CREATE MACRO pg_get_expr(a, b) AS NULL::VARCHAR, (a, b, c) AS NULL::VARCHAR;"
    "CREATE MACRO pg_get_indexdef(a) AS NULL::VARCHAR, (a, b, c) AS NULL::VARCHAR;"
    "CREATE MACRO pg_get_constraintdef(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;"
    "CREATE MACRO pg_get_partkeydef(a) AS NULL::VARCHAR;"
    "CREATE MACRO pg_get_statisticsobjdef_columns(a) AS NULL::VARCHAR;"
    "CREATE MACRO pg_relation_is_publishable(a) AS false;"
    "CREATE MACRO obj_description(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;"
    "CREATE MACRO col_description(a, b) AS NULL::VARCHAR;"
    "CREATE MACRO shobj_description(a, b) AS NULL::VARCHAR;"
    "CREATE MACRO pg_total_relation_size(a) AS 0::BIGINT;"
    "CREATE MACRO pg_relation_size(a) AS 0::BIGINT;"
    "CREATE MACRO pg_table_size(a) AS 0::BIGINT;"
    "CREATE MACRO has_table_privilege(a, b) AS true, (a, b, c) AS true;"
    "CREATE MACRO has_schema_privilege(a, b) AS true, (a, b, c) AS true;"
    "CREATE MACRO has_database_privilege(a, b) AS true, (a, b, c) AS true;"
    /* The modifier is that of varchar, bpchar and numeric; others have none here. */
    "CREATE MACRO format_type(t, m) AS (SELECT y.sql_name ||"
    " CASE WHEN m IS NULL OR m < 4 THEN ''"
    "  WHEN y.oid = 1700 THEN '(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535) || ')'"
    "  WHEN y.oid IN (1042, 1043) THEN '(' || (m - 4) || ')' ELSE '' END"
    " FROM " PG_CATALOG_SCHEMA ".lake_type y WHERE y.oid = t);"
    "CREATE MACRO array_upper(a, n) AS len(a);"
    "CREATE MACRO array_lower(a, n) AS 1;"
    "CREATE MACRO initcap(s) AS array_to_string(list_transform(string_split(s, ' '),"
    " lambda w: upper(w[1]) || lower(w[2:])), ' ');"
    "CREATE MACRO btrim(s) AS trim(s), (s, c) AS trim(s, c);"
    "CREATE MACRO quote_ident(s) AS '\"' || replace(s, '\"', '\"\"') || '\"';"
    "CREATE MACRO quote_literal(s) AS '''' || replace(s::VARCHAR, '''', '''''') || '''';"
    "CREATE MACRO json_build_object(a, b) AS json_object(a::VARCHAR, b),"
    " (a, b, c, d) AS json_object(a::VARCHAR, b, c::VARCHAR, d),"
    " (a, b, c, d, e, f) AS json_object(a::VARCHAR, b, c::VARCHAR, d, e::VARCHAR, f);"
    "CREATE MACRO jsonb_build_object(a, b) AS json_object(a::VARCHAR, b),"
    " (a, b, c, d) AS json_object(a::VARCHAR, b, c::VARCHAR, d),"
    " (a, b, c, d, e, f) AS json_object(a::VARCHAR, b, c::VARCHAR, d, e::VARCHAR, f);"
    "CREATE MACRO jsonb_array_length(a) AS json_array_length(a);"
    "CREATE MACRO jsonb_typeof(a) AS lower(json_type(a));"
    "CREATE MACRO jsonb_agg(a) AS json_group_array(a);"
    "CREATE MACRO json_agg(a) AS json_group_array(a);"
    "CREATE MACRO to_jsonb(a) AS to_json(a);";

static const char *const shown_views[] = {
    "pg_attribute", "pg_class",  "pg_database", "pg_namespace",
    "pg_roles",     "pg_tables", "pg_type",     "pg_user",
};

static const char *const information_views[] = {"columns", "schemata", "tables"};

/* --- installing ---------------------------------------------------------------------------- */

/* The SQL standard's names of types where format_type prints them. */
static const char *
sql_name(const PgTypeRow *row)
{
    static const struct {
        uint32_t oid;
        const char *name;
    } names[] = {
        {OID_BOOL, "boolean"},
        {OID_INT2, "smallint"},
        {OID_INT4, "integer"},
        {OID_INT8, "bigint"},
        {OID_FLOAT4, "real"},
        {OID_FLOAT8, "double precision"},
        {OID_VARCHAR, "character varying"},
        {OID_BPCHAR, "character"},
        {OID_TIME, "time without time zone"},
        {OID_TIMETZ, "time with time zone"},
        {OID_TIMESTAMP, "timestamp without time zone"},
        {OID_TIMESTAMPTZ, "timestamp with time zone"},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].oid == row->oid)
            return names[i].name;
    return row->name;
}

static char
category(uint32_t oid)
{
    switch (oid) {
    case OID_BOOL:
        return 'B';
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_NUMERIC:
        return 'N';
    case OID_DATE:
    case OID_TIME:
    case OID_TIMETZ:
    case OID_TIMESTAMP:
    case OID_TIMESTAMPTZ:
        return 'D';
    case OID_INTERVAL:
        return 'T';
    case OID_TEXT:
    case OID_VARCHAR:
    case OID_BPCHAR:
    case OID_NAME:
        return 'S';
    default:
        return 'U';
    }
}

static void
put_types(Buf *sql)
{
    buf_cstr(sql, "INSERT INTO lake_type VALUES ");
    for (size_t i = 0; i < pg_type_count(); i++) {
        const PgTypeRow *row = pg_type_at(i);

        buf_printf(sql,
                   "%s(%" PRIu32 ", '%s', %d, 0, %" PRIu32 ", '%c', '%s'),"
                   "(%" PRIu32 ", '_%s', -1, %" PRIu32 ", 0, 'A', '%s[]')",
                   i == 0 ? "" : ",", row->oid, row->name, row->size, row->array_oid,
                   category(row->oid), sql_name(row), row->array_oid, row->name, row->oid,
                   sql_name(row));
    }
    buf_byte(sql, ';');
}

static void
put_empty_views(Buf *sql)
{
    for (size_t i = 0; i < sizeof empty_views / sizeof empty_views[0]; i++)
        buf_printf(sql, "CREATE TABLE %s(%s);", empty_views[i].name, empty_views[i].columns);
}

bool
pg_catalog_install(DuckSession *session, Error *err)
{
    AUTO_BUF Buf sql = {0};

    buf_cstr(&sql, schema_sql);
    put_types(&sql);
    buf_cstr(&sql, views_sql);
    put_empty_views(&sql);
    buf_cstr(&sql, macros_sql);
    return duck_session_run(session, buf_text(&sql), err);
}

/* --- names --------------------------------------------------------------------------------- */

static bool
same_name(Str name, const char *other)
{
    return name.len == strlen(other) && strncasecmp(name.ptr, other, name.len) == 0;
}

bool
pg_catalog_has(Str space, Str name)
{
    if (same_name(space, INFORMATION_SCHEMA_SCHEMA)) {
        for (size_t i = 0; i < sizeof information_views / sizeof information_views[0]; i++)
            if (same_name(name, information_views[i]))
                return true;
        return false;
    }
    if (space.len > 0 && !same_name(space, PG_CATALOG_SCHEMA))
        return false;
    for (size_t i = 0; i < sizeof shown_views / sizeof shown_views[0]; i++)
        if (same_name(name, shown_views[i]))
            return true;
    for (size_t i = 0; i < sizeof empty_views / sizeof empty_views[0]; i++)
        if (same_name(name, empty_views[i].name))
            return true;
    return false;
}

bool
pg_catalog_owns_schema(Str space)
{
    static const char *const owned[] = {PG_CATALOG_SCHEMA,
                                        INFORMATION_SCHEMA_SCHEMA,
                                        "pg_catalog",
                                        "information_schema",
                                        "main",
                                        "temp"};

    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        if (same_name(space, owned[i]))
            return true;
    return false;
}

/* --- relations ----------------------------------------------------------------------------- */

void
pg_catalog_drop_relation(Buf *sql, uint32_t oid)
{
    buf_printf(sql,
               "DELETE FROM " PG_CATALOG_SCHEMA ".lake_relation WHERE oid = %" PRIu32 ";"
               "DELETE FROM " PG_CATALOG_SCHEMA ".lake_attribute WHERE relid = %" PRIu32 ";",
               oid, oid);
}

void
pg_catalog_put_relation(Buf *sql, const PgRelation *relation, const PgAttribute *attributes,
                        size_t count)
{
    pg_catalog_drop_relation(sql, relation->oid);
    buf_printf(sql, "INSERT INTO " PG_CATALOG_SCHEMA ".lake_relation VALUES (%" PRIu32 ", ",
               relation->oid);
    duck_quote_literal(sql, relation->space);
    buf_cstr(sql, ", ");
    duck_quote_literal(sql, relation->name);
    buf_printf(sql, ", %" PRId64 ");", relation->rows);
    for (size_t i = 0; i < count; i++) {
        const PgAttribute *attribute = &attributes[i];

        buf_printf(sql, "%s(%" PRIu32 ", %d, ",
                   i == 0 ? "INSERT INTO " PG_CATALOG_SCHEMA ".lake_attribute VALUES " : ", ",
                   relation->oid, attribute->number);
        duck_quote_literal(sql, attribute->name);
        buf_printf(sql, ", %" PRIu32 ", %" PRId32 ", %s, ", attribute->type_oid, attribute->typmod,
                   attribute->not_null ? "true" : "false");
        duck_quote_literal(sql, attribute->type_text);
        buf_byte(sql, ')');
    }
    if (count > 0)
        buf_byte(sql, ';');
}
