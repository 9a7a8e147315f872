#include "pipeline/relation.h"

#include <assert.h>
#include <stdlib.h>

struct RelationMap {
    size_t count;
    PipeTable **tables; /* sorted by relid */
};

static int
by_relid(const void *a, const void *b)
{
    uint32_t x = (*(PipeTable *const *) a)->schema->relid;
    uint32_t y = (*(PipeTable *const *) b)->schema->relid;

    return x < y ? -1 : x > y;
}

RelationMap *
relation_map_new(size_t count, PipeTable *const *tables)
{
    RelationMap *map = xcalloc(1, sizeof *map);

    map->count = count;
    map->tables = xcalloc(count, sizeof(PipeTable *));
    for (size_t i = 0; i < count; i++) {
        map->tables[i] = tables[i];
        map->tables[i]->mapped = false;
    }
    qsort((void *) map->tables, count, sizeof(PipeTable *), by_relid);
    return map;
}

void
relation_map_free(RelationMap *map)
{
    if (map == NULL)
        return;
    free((void *) map->tables);
    free(map);
}

PipeTable *
relation_table(const RelationMap *map, uint32_t relid)
{
    size_t low = 0;
    size_t high = map->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (map->tables[middle]->schema->relid < relid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < map->count && map->tables[low]->schema->relid == relid ? map->tables[low] : NULL;
}

/* A message column that the schema has under another type, or not at all, is a schema change;
 * typmod changes that keep the logical type (varchar(10) to varchar(20)) are none. */
static bool
find_column(const TableSchema *schema, const RelationColumn *column, int *out_index, Error *err)
{
    int index = schema_find_column(schema, column->name);

    if (index < 0)
        return FAIL(
            err, ERR_INPUT,
            "column %.*s was added or renamed, which this version cannot follow\n" HINT_COPY_AGAIN,
            STR_ARG(column->name));

    const SchemaColumn *known = &schema->columns[index];
    bool decimal = known->field.type->kind == TYPE_DECIMAL;

    if (known->type_oid != column->type_oid || (decimal && known->typmod != column->typmod))
        return FAIL(err, ERR_INPUT,
                    "column %.*s changed its type (it was %s), which this version cannot "
                    "follow\n" HINT_COPY_AGAIN,
                    STR_ARG(column->name), known->pg_type);
    *out_index = index;
    return true;
}

static bool
same_identity(const TableSchema *schema, const Message *message, Error *err)
{
    if ((char) schema->identity == message->relation.identity)
        return true;
    return FAIL(err, ERR_INPUT,
                "its replica identity changed, which this version cannot follow\n" HINT_COPY_AGAIN);
}

/* Another key under the same identity: rows would be looked for by columns that find others. A key
 * that the user declared is not the server's, and FULL flags every column. */
static bool
same_key(const PipeTable *table, const Message *message, const int *map, Error *err)
{
    const TableSchema *schema = table->schema;
    int flagged = 0;
    int found = 0;

    if (table->inserts_replace || schema->identity == IDENTITY_FULL)
        return true;
    for (int i = 0; i < message->relation.column_count; i++) {
        if (!message->relation.columns[i].is_key)
            continue;
        flagged++;
        for (int k = 0; k < schema->key_count; k++)
            found += schema->key[k] == map[i];
    }
    if (flagged == found && found == schema->key_count)
        return true;
    return FAIL(err, ERR_INPUT,
                "its key changed, which this version cannot follow\n" HINT_COPY_AGAIN);
}

bool
relation_map(PipeTable *table, const Message *message, Error *err)
{
    const TableSchema *schema = table->schema;
    int count = message->relation.column_count;
    int found = 0;
    int *map = xcalloc((size_t) count, sizeof *map);

    for (int i = 0; i < count; i++) {
        if (!find_column(schema, &message->relation.columns[i], &map[i], err)) {
            free(map);
            return false;
        }
        found++;
    }
    if (found != schema->column_count) {
        free(map);
        return FAIL(
            err, ERR_INPUT,
            "the stream has %d columns, the lake %d: a column was dropped, or the publication "
            "lists columns, which this version cannot follow\n" HINT_COPY_AGAIN,
            found, schema->column_count);
    }
    if (!same_identity(schema, message, err) || !same_key(table, message, map, err)) {
        free(map);
        return false;
    }
    free(table->column_map);
    table->column_map = map;
    table->column_map_count = count;
    table->mapped = true;
    return true;
}

static bool
has_column(const PgResult *result, const SchemaColumn *column)
{
    for (int row = 0; row < result->rows; row++)
        if (pg_value_int(result, row, 0) == column->attnum)
            return str_eq(pg_value(result, row, 1), column->field.name);
    return false;
}

bool
relation_same_columns(PgConn *conn, const TableSchema *schema, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *sql = arena_printf(arena,
                                   "SELECT attnum, attname FROM pg_catalog.pg_attribute"
                                   " WHERE attrelid = %u AND attnum > 0 AND NOT attisdropped",
                                   schema->relid);
    PgResult result;

    TRY(pg_query(conn, arena, sql, 0, NULL, &result, err));
    if (result.rows == 0)
        return true; /* dropped meanwhile: what the stream still has of it is of the old one */
    for (int i = 0; i < schema->column_count; i++)
        if (!has_column(&result, &schema->columns[i]))
            return FAIL(err, ERR_INPUT,
                        "column %.*s was renamed, or dropped and added again, which this version "
                        "cannot follow\n" HINT_COPY_AGAIN,
                        STR_ARG(schema->columns[i].field.name));
    return true;
}
