#include "model/schema.h"

#include <stdatomic.h>
#include <stdlib.h>

struct SchemaOwner {
    atomic_int references;
    Arena *arena;
};

TableSchema *
schema_new(Arena **out_arena)
{
    Arena *arena = arena_new();
    TableSchema *schema = ARENA_NEW(arena, TableSchema);

    schema->owner = ARENA_NEW(arena, struct SchemaOwner);
    schema->owner->arena = arena;
    atomic_init(&schema->owner->references, 1);
    *out_arena = arena;
    return schema;
}

TableSchema *
schema_ref(const TableSchema *schema)
{
    TableSchema *shared = (TableSchema *) (uintptr_t) schema;

    atomic_fetch_add(&shared->owner->references, 1);
    return shared;
}

void
schema_unref(const TableSchema *schema)
{
    if (schema != NULL && atomic_fetch_sub(&schema->owner->references, 1) == 1)
        arena_free(schema->owner->arena);
}

int
schema_find_column(const TableSchema *schema, Str name)
{
    for (int i = 0; i < schema->column_count; i++)
        if (str_eq(schema->columns[i].field.name, name))
            return i;
    return -1;
}

int
schema_find_attnum(const TableSchema *schema, int attnum)
{
    for (int i = 0; i < schema->column_count; i++)
        if (schema->columns[i].attnum == attnum)
            return i;
    return -1;
}

int
schema_attnum_max(const TableSchema *schema)
{
    int last = schema->column_count == 0 ? 0 : schema->columns[schema->column_count - 1].attnum;

    return last > schema->attnum_max ? last : schema->attnum_max;
}

static bool
same_column(const SchemaColumn *a, const SchemaColumn *b)
{
    return a->attnum == b->attnum && str_eq(a->field.name, b->field.name) &&
           a->type_oid == b->type_oid && a->typmod == b->typmod &&
           type_eq(a->field.type, b->field.type);
}

bool
schema_same_shape(const TableSchema *a, const TableSchema *b)
{
    bool same = a->column_count == b->column_count && a->identity == b->identity &&
                a->key_mode == b->key_mode && a->key_count == b->key_count &&
                schema_attnum_max(a) == schema_attnum_max(b);

    for (int i = 0; i < a->key_count && same; i++)
        same = a->key[i] == b->key[i];
    for (int i = 0; i < a->column_count && same; i++)
        same = same_column(&a->columns[i], &b->columns[i]);
    return same;
}

SchemaColumn
schema_copy_column(Arena *arena, const SchemaColumn *column)
{
    SchemaColumn copy = *column;

    copy.field = field_copy(arena, &column->field);
    copy.pg_type = column->pg_type == NULL ? NULL : arena_strdup(arena, column->pg_type);
    if (column->filled_with.ptr != NULL)
        copy.filled_with = arena_str(arena, column->filled_with);
    return copy;
}

const TableSchema *
schema_renamed(const TableSchema *schema, const TableSchema *named)
{
    Arena *arena;
    TableSchema *renamed = schema_new(&arena);
    struct SchemaOwner *owner = renamed->owner;

    *renamed = *schema;
    renamed->owner = owner;
    renamed->schema_name = arena_str(arena, named->schema_name);
    renamed->table_name = arena_str(arena, named->table_name);
    renamed->qualified = arena_strdup(arena, named->qualified);
    renamed->columns = ARENA_ARRAY(arena, SchemaColumn, (size_t) schema->column_count);
    for (int i = 0; i < schema->column_count; i++)
        renamed->columns[i] = schema_copy_column(arena, &schema->columns[i]);
    renamed->key = ARENA_ARRAY(arena, int, (size_t) schema->key_count);
    for (int i = 0; i < schema->key_count; i++)
        renamed->key[i] = schema->key[i];
    return renamed;
}

void
schema_assign_ids(TableSchema *schema)
{
    int next = 1;

    for (int i = 0; i < schema->column_count; i++)
        schema->columns[i].field.id = next++;
    for (int i = 0; i < schema->column_count; i++)
        type_assign_ids((Type *) (uintptr_t) schema->columns[i].field.type, &next);
    schema->last_field_id = next - 1;
}
