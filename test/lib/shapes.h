/* shapes.h - table shapes from a short text, for tests: "1:id:int4* 2:a:text" is attnum, name and
 * type of each column, * marks the key; a number by itself is the highest attnum ever given. */
#ifndef SHAPES_H
#define SHAPES_H

#include <stdlib.h>

#include "model/schema.h"

typedef struct ShapeType {
    const char *name;
    uint32_t oid;
    Type type;
} ShapeType;

static const ShapeType shape_types[] = {
    {"int4", 23, {.kind = TYPE_INT32}},
    {"int8", 20, {.kind = TYPE_INT64}},
    {"text", 25, {.kind = TYPE_STRING}},
    {"jsonb", 3802, {.kind = TYPE_JSON}},
    {"ints", 1007, {.kind = TYPE_JSON, .form = FORM_ARRAY_OF_NUMBERS, .delimiter = ','}},
    {"float4", 700, {.kind = TYPE_FLOAT32}},
    {"float8", 701, {.kind = TYPE_FLOAT64}},
    {"dec8", 1700, {.kind = TYPE_DECIMAL, .precision = 8, .scale = 2}},
    {"dec12", 1700, {.kind = TYPE_DECIMAL, .precision = 12, .scale = 2}},
    {"unknown", 0, {.kind = TYPE_STRING}},
};

static inline const ShapeType *
shape_type(const char *name)
{
    for (size_t i = 0; i < sizeof shape_types / sizeof shape_types[0]; i++)
        if (strcmp(shape_types[i].name, name) == 0)
            return &shape_types[i];
    abort();
}

static inline TableSchema *
shape(const char *text)
{
    Arena *arena;
    TableSchema *schema = schema_new(&arena);
    char *copy = arena_strdup(arena, text);
    char *rest = NULL;

    schema->relid = 16400;
    schema->schema_name = STR("public");
    schema->table_name = STR("t");
    schema->qualified = "public.t";
    schema->identity = IDENTITY_DEFAULT;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, 20);
    schema->key = ARENA_ARRAY(arena, int, 20);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        SchemaColumn *column = &schema->columns[schema->column_count];

        if (strchr(word, ':') == NULL) {
            schema->attnum_max = (int) strtol(word, NULL, 10);
            continue;
        }

        char *name = strchr(word, ':') + 1;
        char *type = strchr(name, ':') + 1;
        size_t length = strlen(type);

        if (type[length - 1] == '*') {
            schema->key[schema->key_count++] = schema->column_count;
            type[length - 1] = '\0';
        }
        type[-1] = '\0';
        column->attnum = (int) strtol(word, NULL, 10);
        column->field.name = str_of(name);
        column->field.type = type_copy(arena, &shape_type(type)->type);
        column->type_oid = shape_type(type)->oid;
        column->typmod = column->type_oid == 1700 ? column->field.type->precision : -1;
        column->pg_type = arena_strdup(arena, type);
        schema->column_count++;
    }
    schema->key_mode = schema->key_count > 0 ? KEY_COLUMNS : KEY_NONE;
    schema_assign_ids(schema);
    return schema;
}

#endif
