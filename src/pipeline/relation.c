#include "pipeline/relation.h"

#include <stdlib.h>
#include <string.h>

#include "source/tables.h"

struct RelationMap {
    size_t count;
    PipeTable **tables; /* sorted by relid */
};

static int
by_relid(const void *a, const void *b)
{
    uint32_t x = (*(PipeTable *const *) a)->reading->relid;
    uint32_t y = (*(PipeTable *const *) b)->reading->relid;

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
        map->tables[i]->relation = NULL;
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

        if (map->tables[middle]->reading->relid < relid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < map->count && map->tables[low]->reading->relid == relid ? map->tables[low] : NULL;
}

void
relation_keep(PipeTable *table, const Message *message)
{
    int count = message->relation.column_count;
    Arena *arena;

    if (table->relation_arena == NULL)
        table->relation_arena = arena_new();
    arena = table->relation_arena;
    arena_reset(arena);
    table->relation = ARENA_NEW(arena, Message);
    *table->relation = *message;
    table->relation->relation.schema_name = arena_str(arena, message->relation.schema_name);
    table->relation->relation.table_name = arena_str(arena, message->relation.table_name);
    table->relation->relation.columns = ARENA_ARRAY(arena, RelationColumn, (size_t) count);
    for (int i = 0; i < count; i++) {
        table->relation->relation.columns[i] = message->relation.columns[i];
        table->relation->relation.columns[i].name =
            arena_str(arena, message->relation.columns[i].name);
    }
    table->mapped = false;
}

/* --- a message against the shape that we know ------------------------------------------------- */

/* A type that is spelled otherwise but stored alike (varchar(10), varchar(20)) is no other type. */
static bool
same_column_type(const SchemaColumn *known, const RelationColumn *column)
{
    bool decimal = known->field.type->kind == TYPE_DECIMAL;

    return known->type_oid == column->type_oid && (!decimal || known->typmod == column->typmod);
}

/* Whether the key is that of the schema. One that the user declared is not the server's, and FULL
 * flags every column. */
static bool
same_key(const PipeTable *table, const Message *message, const int *map)
{
    const TableSchema *schema = table->reading;
    int flagged = 0;
    int found = 0;

    if ((char) schema->identity != message->relation.identity)
        return false;
    if (table->inserts_replace || schema->identity == IDENTITY_FULL)
        return true;
    for (int i = 0; i < message->relation.column_count; i++) {
        if (!message->relation.columns[i].is_key)
            continue;
        flagged++;
        for (int k = 0; k < schema->key_count; k++)
            found += schema->key[k] == map[i];
    }
    return flagged == found && found == schema->key_count;
}

static bool
fill_map(const TableSchema *schema, const Message *message, int *map)
{
    for (int i = 0; i < message->relation.column_count; i++) {
        map[i] = schema_find_column(schema, message->relation.columns[i].name);
        if (map[i] < 0 || (i > 0 && map[i] <= map[i - 1]) || /* both are in the order of attnum */
            !same_column_type(&schema->columns[map[i]], &message->relation.columns[i]))
            return false;
    }
    return message->relation.column_count == schema->column_count;
}

bool
relation_map(PipeTable *table, const Message *message)
{
    int count = message->relation.column_count;
    int *map = xcalloc((size_t) count, sizeof *map);

    if (!fill_map(table->reading, message, map) || !same_key(table, message, map)) {
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
relation_same_columns(PgConn *conn, const TableSchema *schema, bool *out_same, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *sql = arena_printf(arena,
                                   "SELECT attnum, attname FROM pg_catalog.pg_attribute"
                                   " WHERE attrelid = %u AND attnum > 0 AND NOT attisdropped",
                                   schema->relid);
    PgResult result;

    TRY(pg_ask(conn, arena, sql, 0, NULL, &result, err));
    *out_same = true;
    if (result.rows == 0)
        return true; /* dropped meanwhile: what the stream still has of it is of the old one */
    for (int i = 0; i < schema->column_count && *out_same; i++)
        *out_same = has_column(&result, &schema->columns[i]);
    return true;
}

/* --- a message's columns by attnum ------------------------------------------------------------ */

typedef enum Presence {
    PRESENCE_NONE,  /* dropped before, or generated and not published */
    PRESENCE_SURE,  /* both have it: it lived on through the message's time */
    PRESENCE_ADDED, /* made since `before`, and there from then on: all later ones imply it */
    PRESENCE_MAYBE, /* dropped since, perhaps also made since; or it was generated at first */
} Presence;

static Presence
presence(const TableSchema *before, const TableSchema *now, int attnum)
{
    bool was = schema_find_attnum(before, attnum) >= 0;
    bool is = schema_find_attnum(now, attnum) >= 0;
    bool made = attnum > schema_attnum_max(before);

    if (was && is)
        return PRESENCE_SURE;
    if (made && is)
        return PRESENCE_ADDED;
    return was || is || made ? PRESENCE_MAYBE : PRESENCE_NONE;
}

/* Those below `end` that were there. */
static void
take_attnums(const TableSchema *before, const TableSchema *now, int end, bool with_maybe,
             int *out_attnums)
{
    for (int attnum = 1; attnum < end; attnum++) {
        Presence there = presence(before, now, attnum);

        if (there != PRESENCE_NONE && (there != PRESENCE_MAYBE || with_maybe))
            *out_attnums++ = attnum;
    }
}

/* Each added column may be the first that was not there yet: then none above it was, all that were
 * added below it were, and of the others below it some, which the number of columns tells only when
 * it is none or all. */
bool
relation_attnums(const TableSchema *before, const TableSchema *now, int count, int *out_attnums)
{
    int last = schema_attnum_max(before);
    int solutions = 0;
    int sure = 0;
    int maybe = 0;

    if (last < schema_attnum_max(now))
        last = schema_attnum_max(now);
    for (int attnum = 1; attnum <= last + 1; attnum++) {
        Presence there = attnum > last ? PRESENCE_ADDED : presence(before, now, attnum);
        int others = count - sure;

        if (there == PRESENCE_ADDED && others >= 0 && others <= maybe) {
            if (solutions++ > 0 || (others > 0 && others < maybe))
                return false;
            take_attnums(before, now, attnum, others > 0, out_attnums);
        }
        sure += there == PRESENCE_SURE || there == PRESENCE_ADDED;
        maybe += there == PRESENCE_MAYBE;
    }
    return solutions == 1;
}

/* --- the message's shape ---------------------------------------------------------------------- */

typedef struct Matching {
    const TableSchema *before; /* older than the message, or as old */
    const TableSchema *now;    /* newer, or as new */
    const Message *message;
    PgConn *catalog;
    int *found; /* attnums of the message's columns */
} Matching;

/* The one of both sides that has the message's type, if any; its spelling, too, if one has it. */
static const SchemaColumn *
known_column(const Matching *m, int attnum, const RelationColumn *column)
{
    const TableSchema *sides[] = {m->now, m->before};
    const SchemaColumn *known = NULL;

    for (int s = 0; s < 2; s++) {
        int at = schema_find_attnum(sides[s], attnum);

        if (at < 0 || !same_column_type(&sides[s]->columns[at], column))
            continue;
        if (sides[s]->columns[at].typmod == column->typmod)
            return &sides[s]->columns[at];
        if (known == NULL)
            known = &sides[s]->columns[at];
    }
    return known;
}

/* Lists in lists: what a column of arrays had for dimensions. */
static int
list_depth(const Type *type)
{
    int depth = 0;

    for (; type->kind == TYPE_LIST; type = type->fields[0].type)
        depth++;
    return depth;
}

/* A type of the time between, or of a column that is gone by now: asked for. A shape that was read
 * back from the lake knows types by their names only. */
static bool
ask_column(const Matching *m, int attnum, const RelationColumn *column, Arena *arena,
           SchemaColumn *out_column, Error *err)
{
    int at = schema_find_attnum(m->before, attnum);
    int dimensions = at < 0 ? 0 : list_depth(m->before->columns[at].field.type);

    *out_column =
        (SchemaColumn){.attnum = attnum, .type_oid = column->type_oid, .typmod = column->typmod};
    TRY(source_column_type(m->catalog, arena, dimensions, out_column, err));
    if (out_column->pg_type == NULL)
        return FAIL(err, ERR_COPY, "the type of column %.*s was dropped", STR_ARG(column->name));
    return true;
}

static bool
shape_column(const Matching *m, int i, Arena *arena, SchemaColumn *out_column, Error *err)
{
    const RelationColumn *column = &m->message->relation.columns[i];
    const SchemaColumn *known = known_column(m, m->found[i], column);

    if (known != NULL)
        *out_column = schema_copy_column(arena, known);
    else
        TRY(ask_column(m, m->found[i], column, arena, out_column, err));
    out_column->field.name = arena_str(arena, column->name);
    return true;
}

/* The key of `from`, by attnum, if the shape has its columns. */
static bool
take_key(TableSchema *shape, const TableSchema *from)
{
    for (int i = 0; i < from->key_count; i++) {
        shape->key[i] = schema_find_attnum(shape, from->columns[from->key[i]].attnum);
        if (shape->key[i] < 0)
            return false;
    }
    shape->key_count = from->key_count;
    shape->key_mode = from->key_mode;
    return true;
}

static bool
is_flagged_key(const Message *message, const TableSchema *shape)
{
    int flagged = 0;

    for (int i = 0; i < message->relation.column_count; i++)
        flagged += message->relation.columns[i].is_key;
    if (shape->key_mode != KEY_COLUMNS || shape->key_count != flagged)
        return false;
    for (int i = 0; i < shape->key_count; i++)
        if (!message->relation.columns[shape->key[i]].is_key)
            return false;
    return true;
}

/* The columns that the message flags; in the order of a key that we know when it is that one, since
 * the order is part of what the key index hashes. */
static void
take_flagged_key(TableSchema *shape, const Matching *m)
{
    if ((take_key(shape, m->before) && is_flagged_key(m->message, shape)) ||
        (take_key(shape, m->now) && is_flagged_key(m->message, shape)))
        return;
    shape->key_count = 0;
    for (int i = 0; i < m->message->relation.column_count; i++)
        if (m->message->relation.columns[i].is_key)
            shape->key[shape->key_count++] = i;
    shape->key_mode = shape->key_count > 0 ? KEY_COLUMNS : KEY_NONE;
}

static bool
same_key_columns(const TableSchema *a, const TableSchema *b)
{
    bool same = a->key_mode == b->key_mode && a->key_count == b->key_count;

    for (int i = 0; i < a->key_count && same; i++)
        same = a->columns[a->key[i]].attnum == b->columns[b->key[i]].attnum;
    return same;
}

static bool
shape_key(TableSchema *shape, const Matching *m, bool declared, Error *err)
{
    shape->identity = (ReplicaIdentity) m->message->relation.identity;
    if (declared || shape->identity == IDENTITY_FULL) {
        /* the message does not tell which key: what both ends agree on holds in between, too */
        if (!declared && !same_key_columns(m->before, m->now))
            return FAIL(err, ERR_COPY, "its key changed, and it cannot be told when");
        if (take_key(shape, m->now))
            return true;
        return FAIL(err, ERR_COPY, "a column of its key was dropped");
    }
    if (shape->identity == IDENTITY_NOTHING) {
        shape->key_mode = KEY_NONE;
        return true;
    }
    take_flagged_key(shape, m);
    return true;
}

static bool
build_shape(const Matching *m, bool declared, TableSchema **out_shape, Error *err)
{
    int count = m->message->relation.column_count;
    Arena *arena;
    TableSchema *shape = schema_new(&arena);
    bool done = true;

    shape->relid = m->before->relid;
    shape->schema_name = arena_str(arena, m->before->schema_name);
    shape->table_name = arena_str(arena, m->before->table_name);
    shape->qualified = arena_strdup(arena, m->before->qualified);
    shape->columns = ARENA_ARRAY(arena, SchemaColumn, (size_t) count);
    shape->key = ARENA_ARRAY(arena, int, (size_t) count);
    shape->column_count = count;
    shape->attnum_max = schema_attnum_max(m->before);
    for (int i = 0; i < count && done; i++)
        done = shape_column(m, i, arena, &shape->columns[i], err);
    done = done && shape_key(shape, m, declared, err);
    if (!done) {
        schema_unref(shape);
        return false;
    }
    schema_assign_ids(shape);
    *out_shape = shape;
    return true;
}

bool
relation_shape(PgConn *catalog, const PipeTable *table, const TableSchema *now,
               const Message *message, TableSchema **out_shape, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    size_t count = (size_t) message->relation.column_count;
    Matching m = {
        .before = table->reading,
        .now = now,
        .message = message,
        .catalog = catalog,
        .found = ARENA_ARRAY(arena, int, count),
    };

    if (!relation_attnums(m.before, now, message->relation.column_count, m.found))
        return FAIL(err, ERR_COPY,
                    "columns were dropped and others added, and it cannot be told when");
    return build_shape(&m, table->inserts_replace, out_shape, err);
}
