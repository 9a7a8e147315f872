#include "source/tables.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "source/keys.h"
#include "source/tables_sql.h"
#include "source/types.h"

/* One reading of the catalog: the rows of its queries, each sorted by the table's oid, and the
 * tables made of them. */
typedef struct Load {
    PgConn *conn;
    Arena *arena;
    const TablesRead *read;
    PgResult relations;
    PgResult columns;
    PgResult keys;
    PgResult published;
    TypeSet types;
    int count;
    SourceTable *tables; /* sorted by oid until the end */
} Load;

static uint32_t
oid_at(const PgResult *result, int row, int column)
{
    return (uint32_t) pg_value_int(result, row, column);
}

/* First row of a result whose column 0 is >= relid. */
static int
first_row(const PgResult *result, uint32_t relid)
{
    int low = 0;
    int high = result->rows;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (oid_at(result, middle, 0) < relid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool
row_is_of(const PgResult *result, int row, uint32_t relid)
{
    return row < result->rows && oid_at(result, row, 0) == relid;
}

/* --- names ---------------------------------------------------------------------------------- */

static void
put_part(Buf *out, Str part)
{
    if (memchr(part.ptr, '.', part.len) == NULL && memchr(part.ptr, '"', part.len) == NULL) {
        buf_str(out, part);
        return;
    }
    buf_byte(out, '"');
    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] == '"')
            buf_byte(out, '"');
        buf_byte(out, (uint8_t) part.ptr[i]);
    }
    buf_byte(out, '"');
}

static const char *
qualified_name(Arena *arena, Str schema, Str table)
{
    AUTO_BUF Buf text = {0};

    put_part(&text, schema);
    buf_byte(&text, '.');
    put_part(&text, table);
    return arena_strdup(arena, buf_text(&text));
}

const char *
source_relation_sql(Arena *arena, Str schema_name, Str table_name)
{
    return arena_printf(arena, "%s.%s", pg_quote_identifier(arena, schema_name),
                        pg_quote_identifier(arena, table_name));
}

bool
source_table_names(PgConn *conn, Arena *arena, const uint32_t *relids, int count,
                   const char **out_names, Error *err)
{
    const char *oids = source_oid_array(arena, relids, count);
    PgResult r;

    TRY(pg_ask(conn, arena,
               "SELECT n.nspname, c.relname FROM unnest($1::oid[]) WITH ORDINALITY o (oid, place)"
               " LEFT JOIN pg_class c ON c.oid = o.oid"
               " LEFT JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY o.place",
               1, &oids, &r, err));
    for (int i = 0; i < r.rows; i++)
        out_names[i] = pg_value(&r, i, 0).ptr == NULL
                           ? NULL
                           : qualified_name(arena, pg_value(&r, i, 0), pg_value(&r, i, 1));
    return true;
}

/* --- relations ------------------------------------------------------------------------------- */

static const char *
why_excluded(Arena *arena, const PgResult *r, int row)
{
    char kind = pg_value(r, row, REL_KIND).ptr[0];

    if (kind == 'v')
        return "a view: it has no changes of its own";
    if (kind == 'm')
        return "a materialized view: Postgres does not publish it";
    if (kind == 'f')
        return "a foreign table: its rows are elsewhere";
    if (!str_is_utf8(pg_value(r, row, REL_SCHEMA)) || !str_is_utf8(pg_value(r, row, REL_NAME)))
        return "its name is not valid UTF-8";
    if (str_eq(pg_value(r, row, REL_PERSISTENCE), STR("u")))
        return "unlogged: its changes are not in the WAL";
    if (pg_value(r, row, REL_EXTENSION).ptr != NULL)
        return arena_printf(arena, "belongs to extension %s", pg_value(r, row, REL_EXTENSION).ptr);
    return NULL;
}

static SourceTable
table_from_row(Load *load, int row)
{
    const PgResult *r = &load->relations;
    SourceTable table = {
        .relid = oid_at(r, row, REL_OID),
        .schema_name = pg_value(r, row, REL_SCHEMA),
        .table_name = pg_value(r, row, REL_NAME),
        .qualified =
            qualified_name(load->arena, pg_value(r, row, REL_SCHEMA), pg_value(r, row, REL_NAME)),
        .kind = pg_value(r, row, REL_KIND).ptr[0],
        .owner = pg_value(r, row, REL_OWNER).ptr,
        .owned = pg_value_bool(r, row, REL_OWNED),
        .readable = pg_value_bool(r, row, REL_READABLE),
        .excluded = why_excluded(load->arena, r, row),
        .files_mark = (uint64_t) pg_value_int(r, row, REL_FILENODE),
        .pages = pg_value_int(r, row, REL_PAGES),
        .rows_estimate = pg_value_int(r, row, REL_ROWS),
    };

    if (!table.readable)
        table.problem =
            arena_printf(load->arena, "our role may not read it\nhint: GRANT SELECT ON %s TO ...",
                         source_relation_sql(load->arena, table.schema_name, table.table_name));
    else if (pg_value_bool(r, row, REL_ROW_SECURITY))
        table.problem = "row security hides rows from our role\nhint: ALTER ROLE ... BYPASSRLS, or "
                        "leave the table out in source.tables";
    return table;
}

static int
compare_relid(const void *a, const void *b)
{
    uint32_t x = ((const SourceTable *) a)->relid;
    uint32_t y = ((const SourceTable *) b)->relid;

    return x < y ? -1 : x > y;
}

static SourceTable *
find_table(const SourceTable *tables, int count, uint32_t relid)
{
    SourceTable key = {.relid = relid};

    if (count == 0)
        return NULL;
    return bsearch(&key, tables, (size_t) count, sizeof key, compare_relid);
}

static uint64_t
mix(uint64_t mark, int64_t value)
{
    const uint64_t both[2] = {mark, (uint64_t) value};

    return hash128(both, sizeof both, 0).low;
}

/* Partitions that hold rows, to their roots. A first pass counts, a second fills. */
static void
link_leaves(Load *load, bool fill)
{
    const PgResult *r = &load->relations;

    for (int row = 0; row < r->rows; row++) {
        if (pg_value(r, row, REL_ROOT).ptr == NULL || str_eq(pg_value(r, row, REL_KIND), STR("p")))
            continue;

        SourceTable *root = find_table(load->tables, load->count, oid_at(r, row, REL_ROOT));

        if (root == NULL || root->excluded != NULL)
            continue;
        if (!fill) {
            root->leaf_count++;
            continue;
        }
        if (root->leaves == NULL) {
            root->leaves = ARENA_ARRAY(load->arena, TableLeaf, (size_t) root->leaf_count);
            root->leaf_count = 0;
            root->pages = 0;
        }
        root->leaves[root->leaf_count++] = (TableLeaf){
            .relid = oid_at(r, row, REL_OID),
            .schema_name = pg_value(r, row, REL_SCHEMA),
            .table_name = pg_value(r, row, REL_NAME),
            .kind = pg_value(r, row, REL_KIND).ptr[0],
            .filenode = oid_at(r, row, REL_FILENODE),
            .joined = oid_at(r, row, REL_JOINED),
            .born = pg_value_bool(r, row, REL_BORN),
        };
        root->pages += pg_value_int(r, row, REL_PAGES);
        root->files_mark = mix(root->files_mark, pg_value_int(r, row, REL_FILENODE));
        root->files_mark = mix(root->files_mark, pg_value_int(r, row, REL_JOINED));
        if (str_eq(pg_value(r, row, REL_PERSISTENCE), STR("u")))
            root->warning = "a partition is unlogged: its changes do not arrive";
        if (str_eq(pg_value(r, row, REL_KIND), STR("f")))
            root->warning = "a partition is a foreign table: its rows do not arrive";
    }
}

static bool
read_relations(Load *load, uint32_t only, Error *err)
{
    const char *narrow = "";

    if (only != 0)
        narrow = arena_printf(load->arena, " AND (c.oid = %u OR pg_partition_root(c.oid) = %u)",
                              only, only);
    if (!pg_ask(load->conn, load->arena, arena_printf(load->arena, RELATIONS_SQL, narrow), 0, NULL,
                &load->relations, err))
        return WRAP(err, "read tables");

    const PgResult *r = &load->relations;

    load->tables = ARENA_ARRAY(load->arena, SourceTable, (size_t) r->rows);
    for (int row = 0; row < r->rows; row++) {
        if (pg_value(r, row, REL_ROOT).ptr != NULL)
            continue;
        if (only == 0 && !config_takes_table(load->read->config, pg_value(r, row, REL_SCHEMA),
                                             pg_value(r, row, REL_NAME)))
            continue;
        load->tables[load->count++] = table_from_row(load, row);
    }
    link_leaves(load, false);
    link_leaves(load, true);
    return true;
}

/* --- details --------------------------------------------------------------------------------- */

static bool
query_by_oids(Load *load, const char *sql, Buf *oids, PgResult *out_result, Error *err)
{
    const char *params[] = {source_oid_array(load->arena, (const uint32_t *) (void *) oids->ptr,
                                             (int) BUF_COUNT(oids, uint32_t))};

    return pg_ask(load->conn, load->arena, sql, 1, params, out_result, err);
}

static bool
read_published(Load *load, Error *err)
{
    AUTO_BUF Buf oids = {0};
    int version = pg_server_version(load->conn);
    const char *sql = version >= 180000   ? PUBLISHED_SQL_18
                      : version >= 150000 ? PUBLISHED_SQL_15
                                          : PUBLISHED_SQL_13;

    for (int i = 0; i < load->count; i++)
        BUF_PUSH(&oids, uint32_t, load->tables[i].relid);

    const char *params[] = {
        load->read->publication,
        source_oid_array(load->arena, (const uint32_t *) (void *) oids.ptr, load->count)};

    if (!pg_ask(load->conn, load->arena, sql, 2, params, &load->published, err))
        return WRAP(err, "read publication %s", load->read->publication);
    return true;
}

static bool
read_details(Load *load, Error *err)
{
    AUTO_BUF Buf oids = {0};
    AUTO_BUF Buf types = {0};

    for (int i = 0; i < load->count; i++)
        if (load->tables[i].excluded == NULL)
            BUF_PUSH(&oids, uint32_t, load->tables[i].relid);
    if (!query_by_oids(load, COLUMNS_SQL, &oids, &load->columns, err))
        return WRAP(err, "read columns");
    for (int i = 0; i < load->count; i++)
        for (int leaf = 0; leaf < load->tables[i].leaf_count; leaf++)
            BUF_PUSH(&oids, uint32_t, load->tables[i].leaves[leaf].relid);
    if (!query_by_oids(load, KEYS_SQL, &oids, &load->keys, err))
        return WRAP(err, "read keys");
    for (int row = 0; row < load->columns.rows; row++)
        BUF_PUSH(&types, uint32_t, oid_at(&load->columns, row, COL_TYPE));
    TRY(source_types_load(load->conn, load->arena, (const uint32_t *) (void *) types.ptr,
                          (int) BUF_COUNT(&types, uint32_t), &load->types, err));
    if (load->read->publication == NULL)
        return true;

    return read_published(load, err);
}

/* --- keys ------------------------------------------------------------------------------------ */

static IdentityFacts
identity_facts(const Load *load, uint32_t relid)
{
    const PgResult *k = &load->keys;
    int relation = first_row(&load->relations, relid);
    int from = first_row(k, relid);
    IdentityFacts facts = {
        .identity = (ReplicaIdentity) pg_value(&load->relations, relation, REL_IDENTITY).ptr[0]};
    int to = from;

    assert(row_is_of(&load->relations, relation, relid));
    while (row_is_of(k, to, relid))
        to++;
    facts.indexes = ARENA_ARRAY(load->arena, IndexFacts, (size_t) (to - from));
    for (int row = from; row < to; row++) {
        bool first = row == from || oid_at(k, row, KEY_INDEX) != oid_at(k, row - 1, KEY_INDEX);

        if (first)
            facts.indexes[facts.index_count++] = (IndexFacts){
                .primary = pg_value_bool(k, row, KEY_PRIMARY),
                .identity = pg_value_bool(k, row, KEY_IDENTITY),
                .immediate = pg_value_bool(k, row, KEY_IMMEDIATE),
                .columns.items = ARENA_ARRAY(load->arena, Str, (size_t) (to - row)),
            };

        StrList *columns = &facts.indexes[facts.index_count - 1].columns;

        columns->items[columns->count++] = pg_value(k, row, KEY_COLUMN);
    }
    return facts;
}

/* Key columns by name into the schema; false when one of them does not arrive. */
static bool
place_key(TableSchema *schema, Arena *arena, const StrList *columns, Str *out_absent)
{
    int *key = ARENA_ARRAY(arena, int, columns->count);

    for (size_t i = 0; i < columns->count; i++) {
        key[i] = schema_find_column(schema, columns->items[i]);
        if (key[i] < 0) {
            *out_absent = columns->items[i];
            return false;
        }
    }
    schema->key = key;
    schema->key_count = (int) columns->count;
    return true;
}

/* What keys are told apart by must be all in the lake. */
static const char *
key_cast_problem(Arena *arena, const TableSchema *schema)
{
    for (int i = 0; i < schema->key_count; i++) {
        const Field *field = &schema->columns[schema->key[i]].field;

        if (type_is_json_array(field->type))
            return arena_printf(arena,
                                "key column %.*s is cast to json, where arrays with other lower "
                                "bounds are alike\nhint: string keeps all of an array",
                                STR_ARG(field->name));
    }
    return NULL;
}

static void
set_key(Load *load, SourceTable *table, TableSchema *schema, Arena *schema_arena)
{
    IdentityFacts facts = identity_facts(load, table->relid);
    TableRule rule =
        config_table_rule(load->read->config, load->arena, table->schema_name, table->table_name);
    TableKey key = rule.key.count > 0 ? key_from_rule(load->arena, &facts, &rule.key)
                                      : key_from_identity(&facts);
    Str absent;

    if (key.mode == KEY_COLUMNS && !place_key(schema, schema_arena, &key.columns, &absent)) {
        if (facts.identity == IDENTITY_FULL && rule.key.count == 0) {
            key.mode = KEY_FULL_ROW;
        } else {
            key.mode = KEY_NONE;
            key.problem = arena_printf(
                load->arena,
                "key column %.*s does not arrive\nhint: set another key in the settings, or ALTER "
                "TABLE ... REPLICA IDENTITY FULL",
                STR_ARG(absent));
        }
    }
    if (key.problem == NULL && key.mode == KEY_COLUMNS)
        key.problem = key_cast_problem(load->arena, schema);
    for (int i = 0; i < table->leaf_count && key.problem == NULL; i++) {
        const TableLeaf *leaf = &table->leaves[i];
        IdentityFacts partition = identity_facts(load, leaf->relid);

        if (leaf->kind == 'r')
            key.problem = key_partition_problem(
                load->arena, &key, &partition,
                qualified_name(load->arena, leaf->schema_name, leaf->table_name));
    }
    schema->identity = facts.identity;
    schema->key_mode = key.mode;
    if (table->problem == NULL)
        table->problem = key.problem;
    if (table->warning == NULL)
        table->warning = key.warning;
}

/* --- columns --------------------------------------------------------------------------------- */

/* Whether an attnum is in a column list as int2vector prints it: "1 3 4". */
static bool
in_column_list(const char *list, int64_t attnum)
{
    for (char *end; *list != '\0'; list = end) {
        long number = strtol(list, &end, 10);

        if (end == list)
            return false;
        if (number == attnum)
            return true;
    }
    return false;
}

static bool
is_generated(const PgResult *c, int row)
{
    return pg_value(c, row, COL_GENERATED).len > 0;
}

static const char *
why_missing(const PgResult *c, int row, const SourceTable *table)
{
    const char *column_list = table->column_list;

    if (str_eq(pg_value(c, row, COL_GENERATED), STR("v")))
        return "a virtual generated column";
    if (is_generated(c, row) && !table->generated_arrive)
        return "a generated column";
    if (column_list != NULL && !in_column_list(column_list, pg_value_int(c, row, COL_ATTNUM)))
        return "not in the publication's column list";
    return NULL;
}

/* The setting for a column; NULL: it arrives as it is. */
static const CastRule *
find_cast(const TableRule *rule, Str column)
{
    const CastRule *found = NULL;

    for (size_t i = 0; i < rule->cast_count; i++)
        if (str_eq(rule->casts[i].column, column))
            found = &rule->casts[i];
    return found;
}

/* `type`, or what the setting wants instead. */
static const Type *
apply_cast(const Load *load, SourceTable *table, const CastRule *cast, const PgType *pg,
           const Type *type)
{
    if (cast == NULL)
        return type;

    const Type *wanted = cast_apply(load->arena, pg, type, cast->type);

    if (wanted != NULL)
        return wanted;
    if (table->problem == NULL)
        table->problem = arena_printf(
            load->arena, "%s: a column of type %.*s cannot be cast to %.*s\nhint: it may be %s",
            cast->place, STR_ARG(pg->name), STR_ARG(cast->text), cast_choices(pg, type));
    return type;
}

static void
check_casts(const Load *load, SourceTable *table, const TableRule *rule, const TableSchema *schema)
{
    for (size_t i = 0; i < rule->cast_count && table->problem == NULL; i++)
        if (schema_find_column(schema, rule->casts[i].column) < 0)
            table->problem = arena_printf(
                load->arena, "%s: the table has no column %.*s that arrives in the lake",
                rule->casts[i].place, STR_ARG(rule->casts[i].column));
}

/* pg_attribute.attmissingval is an array of one element, and of whatever type: {5}, {"a b"}. There
 * is no way to subscript it. src/backend/utils/adt/arrayfuncs.c, array_out(). */
static Str
only_element(Arena *arena, Str array)
{
    AUTO_BUF Buf text = {0};
    bool quoted = array.len >= 4 && array.ptr[1] == '"';

    if (array.len < 3 || array.ptr[0] != '{' || array.ptr[array.len - 1] != '}')
        return STR_NULL;
    if (!quoted)
        return arena_str(arena, (Str){.ptr = array.ptr + 1, .len = array.len - 2});
    for (size_t i = 2; i < array.len - 2; i++) {
        i += array.ptr[i] == '\\';
        buf_byte(&text, (uint8_t) array.ptr[i]);
    }
    return arena_str(arena, buf_view(&text));
}

static SchemaColumn
build_column(const Load *load, int row, SourceTable *table, const CastRule *cast, Arena *arena,
             bool *out_as_text)
{
    const PgResult *c = &load->columns;
    uint32_t oid = oid_at(c, row, COL_TYPE);
    int32_t typmod = (int32_t) pg_value_int(c, row, COL_TYPMOD);
    const PgType *pg = source_types_find(&load->types, oid);
    PgType vanished = {.oid = oid, .typtype = 'p', .delimiter = ',', .typmod = -1};

    vanished.name = STR("unknown");
    if (pg == NULL)
        pg = &vanished;

    const Type *type =
        type_from_postgres(arena, pg, typmod, (int) pg_value_int(c, row, COL_DIMENSIONS));

    *out_as_text = cast == NULL && type_arrives_as_text(pg, type);
    type = apply_cast(load, table, cast, pg, type);
    return (SchemaColumn){
        /* Not required even if NOT NULL: a value that cannot be held reads NULL. */
        .field = {.name = arena_str(arena, pg_value(c, row, COL_NAME)),
                  .type = type_copy(arena, type)},
        .attnum = (int) pg_value_int(c, row, COL_ATTNUM),
        .type_oid = oid,
        .typmod = typmod,
        .pg_type = arena_str(arena, pg_value(c, row, COL_TYPE_NAME)).ptr,
        .not_null = pg_value_bool(c, row, COL_NOT_NULL),
        .filled = pg_value_bool(c, row, COL_FILLED) || is_generated(c, row),
        .filled_with = only_element(arena, pg_value(c, row, COL_MISSING_VALUE)),
    };
}

/* The types with words that a column's type is made of. Recursion follows a type. */
static void
collect_worded(const PgType *type, uint32_t column_xid, Buf *out)
{
    WordedType worded = {.type = type};
    size_t at = 0;

    if (type == NULL)
        return;
    while (at < BUF_COUNT(out, WordedType) && BUF_AT(out, WordedType, at).type != type)
        at++;
    if (at == BUF_COUNT(out, WordedType) && type->word_count > 0)
        BUF_PUSH(out, WordedType, worded);
    if (type->word_count > 0)
        BUF_AT(out, WordedType, at).late |= xid_is_after(type->words_xid, column_xid);
    collect_worded(type->base, column_xid, out);
    for (int i = 0; i < type->member_count; i++)
        collect_worded(type->members[i].type, column_xid, out);
}

static int
compare_worded(const void *a, const void *b)
{
    uint32_t x = ((const WordedType *) a)->type->oid;
    uint32_t y = ((const WordedType *) b)->type->oid;

    return x < y ? -1 : x > y;
}

static void
set_worded(const Load *load, SourceTable *table)
{
    const PgResult *c = &load->columns;
    AUTO_BUF Buf types = {0};

    for (int row = first_row(c, table->relid); row_is_of(c, row, table->relid); row++)
        collect_worded(source_types_find(&load->types, oid_at(c, row, COL_TYPE)),
                       oid_at(c, row, COL_XMIN), &types);
    table->worded_count = (int) BUF_COUNT(&types, WordedType);
    if (table->worded_count == 0)
        return;
    table->worded = ARENA_ARRAY(load->arena, WordedType, (size_t) table->worded_count);
    memcpy(table->worded, types.ptr, types.len);
    qsort(table->worded, (size_t) table->worded_count, sizeof *table->worded, compare_worded);
}

static void
set_columns(Load *load, SourceTable *table, TableSchema *schema, Arena *schema_arena)
{
    const PgResult *c = &load->columns;
    TableRule rule =
        config_table_rule(load->read->config, load->arena, table->schema_name, table->table_name);
    int from = first_row(c, table->relid);
    int to = from;

    while (row_is_of(c, to, table->relid))
        to++;

    size_t most = (size_t) (to - from);

    schema->columns = ARENA_ARRAY(schema_arena, SchemaColumn, most);
    table->missing = ARENA_ARRAY(load->arena, MissingColumn, most);
    table->text_columns = ARENA_ARRAY(load->arena, int, most);
    for (int row = from; row < to; row++) {
        const char *reason = why_missing(c, row, table);
        bool as_text;

        if (!str_is_utf8(pg_value(c, row, COL_NAME)) && table->problem == NULL)
            table->problem = "the name of a column is not valid UTF-8\nhint: rename the column";
        table->columns_mark = mix(table->columns_mark, pg_value_int(c, row, COL_ATTNUM));
        table->columns_mark = mix(table->columns_mark, pg_value_int(c, row, COL_XMIN));

        if (reason != NULL) {
            table->missing[table->missing_count++] =
                (MissingColumn){.name = pg_value(c, row, COL_NAME), .reason = reason};
            continue;
        }
        schema->columns[schema->column_count] = build_column(
            load, row, table, find_cast(&rule, pg_value(c, row, COL_NAME)), schema_arena, &as_text);
        table->computed |= is_generated(c, row);
        if (as_text)
            table->text_columns[table->text_count++] = schema->column_count;
        schema->column_count++;
    }
    set_worded(load, table);
    check_casts(load, table, &rule, schema);
}

/* --- assembly -------------------------------------------------------------------------------- */

static void
complete_table(Load *load, SourceTable *table)
{
    const PgResult *p = &load->published;
    int row = first_row(p, table->relid);
    Arena *arena;

    if (row_is_of(p, row, table->relid)) {
        table->published = true;
        table->row_filter = pg_value(p, row, PUB_FILTER).ptr;
        table->column_list = pg_value(p, row, PUB_COLUMNS).ptr;
        table->publication_entry = oid_at(p, row, PUB_ENTRY);
        table->schema_entry = oid_at(p, row, PUB_SCHEMA_ENTRY);
        table->generated_arrive = pg_value_bool(p, row, PUB_GENERATED);
    }
    if (table->excluded != NULL)
        return;

    TableSchema *schema = schema_new(&arena);

    schema->relid = table->relid;
    schema->schema_name = arena_str(arena, table->schema_name);
    schema->table_name = arena_str(arena, table->table_name);
    schema->qualified = arena_strdup(arena, table->qualified);
    schema->attnum_max = (int) pg_value_int(
        &load->relations, first_row(&load->relations, table->relid), REL_ATTNUM_MAX);
    set_columns(load, table, schema, arena);
    if (schema->column_count == 0) {
        table->excluded = "no column of it arrives";
        schema_unref(schema);
        return;
    }
    set_key(load, table, schema, arena);
    schema_assign_ids(schema);
    table->schema = schema;
}

static int
compare_name(const void *a, const void *b)
{
    const SourceTable *x = a;
    const SourceTable *y = b;
    int order = str_cmp(x->schema_name, y->schema_name);

    return order != 0 ? order : str_cmp(x->table_name, y->table_name);
}

/* All queries in one snapshot: tables come and go between them otherwise. */
static bool
read_catalog(Load *load, uint32_t only, Error *err)
{
    Error ignored;

    TRY(pg_exec(load->conn, NULL, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, err));
    if (read_relations(load, only, err) && read_details(load, err))
        return pg_exec(load->conn, NULL, "COMMIT", NULL, err);
    (void) !pg_exec(load->conn, NULL, "ROLLBACK", NULL, &ignored);
    return false;
}

static bool
load_tables(Load *load, uint32_t only, SourceTables *out_tables, Error *err)
{
    assert(!pg_is_replication(load->conn));
    TRY(read_catalog(load, only, err));
    for (int i = 0; i < load->count; i++)
        complete_table(load, &load->tables[i]);
    qsort(load->tables, (size_t) load->count, sizeof *load->tables, compare_name);
    *out_tables = (SourceTables){.count = load->count, .items = load->tables};
    return true;
}

bool
source_tables_load(PgConn *conn, Arena *arena, const TablesRead *read, SourceTables *out_tables,
                   Error *err)
{
    Load load = {.conn = conn, .arena = arena, .read = read};

    return load_tables(&load, 0, out_tables, err);
}

bool
source_table_by_oid(PgConn *conn, Arena *arena, const TablesRead *read, uint32_t relid,
                    SourceTables *out_tables, Error *err)
{
    Load load = {.conn = conn, .arena = arena, .read = read};

    assert(relid != 0);
    return load_tables(&load, relid, out_tables, err);
}

bool
source_column_type(PgConn *conn, Arena *arena, int dimensions, SchemaColumn *column, Error *err)
{
    TypeSet types;
    PgResult name;
    const char *sql =
        arena_printf(arena, "SELECT format_type(%u, %d)", column->type_oid, column->typmod);

    TRY(source_types_load(conn, arena, &column->type_oid, 1, &types, err));

    const PgType *pg = source_types_find(&types, column->type_oid);

    column->pg_type = NULL;
    if (pg == NULL)
        return true;
    TRY(pg_ask(conn, arena, sql, 0, NULL, &name, err));
    column->field.type =
        type_copy(arena, type_from_postgres(arena, pg, column->typmod, dimensions));
    column->pg_type = arena_str(arena, pg_value(&name, 0, 0)).ptr;
    return true;
}

void
source_tables_done(SourceTables *tables)
{
    for (int i = 0; i < tables->count; i++)
        schema_unref(tables->items[i].schema);
    *tables = (SourceTables){0};
}

const SourceTable *
source_tables_find(const SourceTables *tables, uint32_t relid)
{
    for (int i = 0; i < tables->count; i++)
        if (tables->items[i].relid == relid)
            return &tables->items[i];
    return NULL;
}
