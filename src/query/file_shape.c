#include "query/file_shape.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "duck/duck.h"
#include "iceberg/default.h"

/* --- what differs -------------------------------------------------------------------------- */

static bool
has_struct(const Type *type)
{
    if (type->kind == TYPE_STRUCT)
        return true;
    for (int i = 0; i < type->field_count; i++)
        if (has_struct(type->fields[i].type))
            return true;
    return false;
}

bool
schema_needs_shapes(const IcebergSchema *schema)
{
    for (int i = 0; i < schema->field_count; i++) {
        const Field *field = &schema->fields[i];

        if (has_struct(field->type) ||
            (type_is_nested(field->type) && field->initial_default.ptr != NULL))
            return true;
    }
    return false;
}

/* The node of a field among the children of another, or -1. */
static int
find_node(const ParquetFooter *footer, int parent, int field_id)
{
    for (int i = 0; i < footer->nodes[parent].child_count; i++) {
        int node = parquet_node_child(footer, parent, i);

        if (footer->nodes[node].field_id == field_id)
            return node;
    }
    return -1;
}

/* The node of part i of a list or map, or -1: a group of a repeated group (parquet-format,
 * LogicalTypes.md, "Nested Types"). */
static int
part_node(const ParquetFooter *footer, int node, int i)
{
    int repeated = parquet_node_child(footer, node, 0);

    return repeated < 0 ? -1 : parquet_node_child(footer, repeated, i);
}

/* A writer that sets no field ids goes by names, as DuckDB does. */
static bool
has_ids(const ParquetFooter *footer, int node)
{
    for (int i = 0; i < footer->nodes[node].child_count; i++)
        if (footer->nodes[parquet_node_child(footer, node, i)].field_id != 0)
            return true;
    return false;
}

/* Whether DuckDB reads the node rightly when it is asked for the type. What is not there (a list or
 * map that is not of three levels has no ids either) is left to it, too. */
static bool
is_plain(const Type *type, const ParquetFooter *footer, int node)
{
    if (node < 0 || (type->kind == TYPE_STRUCT && !has_ids(footer, node)))
        return true;
    for (int i = 0; i < type->field_count; i++) {
        const Field *field = &type->fields[i];
        bool member = type->kind == TYPE_STRUCT;
        int at = member ? find_node(footer, node, field->id) : part_node(footer, node, i);

        if (member && (at < 0 || !str_eq(footer->nodes[at].name, field->name)))
            return false;
        if (!is_plain(field->type, footer, at))
            return false;
    }
    return true;
}

/* --- what to ask for ----------------------------------------------------------------------- */

static void put_file_type(Buf *out, const Type *type, const ParquetFooter *footer, int node);

/* The wanted members that the file has, under its names. A struct has to have a member: when the
 * file has none of them, its first one stands there for being NULL or not. */
static void
put_file_struct(Buf *out, const Type *type, const ParquetFooter *footer, int node)
{
    bool any = false;

    buf_cstr(out, "STRUCT(");
    for (int i = 0; i < type->field_count; i++) {
        int at = find_node(footer, node, type->fields[i].id);

        if (at < 0)
            continue;
        buf_cstr(out, any ? ", " : "");
        duck_quote_identifier(out, footer->nodes[at].name);
        buf_byte(out, ' ');
        put_file_type(out, type->fields[i].type, footer, at);
        any = true;
    }
    if (!any) {
        duck_quote_identifier(out, footer->nodes[parquet_node_child(footer, node, 0)].name);
        buf_cstr(out, " VARCHAR");
    }
    buf_byte(out, ')');
}

/* Recursion follows the type, at most TYPE_DEPTH_MAX levels. */
static void
put_file_type(Buf *out, const Type *type, const ParquetFooter *footer, int node)
{
    if (is_plain(type, footer, node)) {
        type_duckdb_name(type, out);
    } else if (type->kind == TYPE_STRUCT) {
        put_file_struct(out, type, footer, node);
    } else if (type->kind == TYPE_LIST) {
        put_file_type(out, type->fields[0].type, footer, part_node(footer, node, 0));
        buf_cstr(out, "[]");
    } else {
        assert(type->kind == TYPE_MAP);
        buf_cstr(out, "MAP(");
        put_file_type(out, type->fields[0].type, footer, part_node(footer, node, 0));
        buf_cstr(out, ", ");
        put_file_type(out, type->fields[1].type, footer, part_node(footer, node, 1));
        buf_byte(out, ')');
    }
}

/* --- what to make of it -------------------------------------------------------------------- */

/* A value in the file: where it is, and what it is called in the expression. */
typedef struct FileValue {
    const ParquetFooter *footer;
    int node;
    const char *name; /* "c2", "x1.value" */
    int level;        /* of the lambdas around it */
} FileValue;

static bool put_expression(Buf *out, Arena *arena, const Type *type, FileValue value,
                           Error *err) WARN_UNUSED;

static bool
put_member(Buf *out, Arena *arena, const Field *member, FileValue value, Error *err)
{
    AUTO_BUF Buf name = {0};
    int at = find_node(value.footer, value.node, member->id);

    if (at < 0)
        return default_put_sql(out, member, err);
    buf_printf(&name, "%s.", value.name);
    duck_quote_identifier(&name, value.footer->nodes[at].name);
    value.node = at;
    value.name = arena_strdup(arena, buf_text(&name));
    return put_expression(out, arena, member->type, value, err);
}

static bool
put_struct(Buf *out, Arena *arena, const Type *type, FileValue value, Error *err)
{
    buf_printf(out, "CASE WHEN %s IS NULL THEN NULL ELSE struct_pack(", value.name);
    for (int i = 0; i < type->field_count; i++) {
        buf_cstr(out, i == 0 ? "" : ", ");
        duck_quote_identifier(out, type->fields[i].name);
        buf_cstr(out, " := ");
        TRY(put_member(out, arena, &type->fields[i], value, err));
    }
    buf_cstr(out, ") END");
    return true;
}

/* Part i of a list or map, under the name that a lambda gives it. */
static FileValue
part_of(FileValue value, int i, const char *name)
{
    return (FileValue){.footer = value.footer,
                       .node = part_node(value.footer, value.node, i),
                       .name = name,
                       .level = value.level + 1};
}

static bool
put_list(Buf *out, Arena *arena, const Type *type, FileValue value, Error *err)
{
    const char *item = arena_printf(arena, "x%d", value.level);

    buf_printf(out, "list_transform(%s, lambda %s: ", value.name, item);
    TRY(put_expression(out, arena, type->fields[0].type, part_of(value, 0, item), err));
    buf_byte(out, ')');
    return true;
}

static bool
put_map(Buf *out, Arena *arena, const Type *type, FileValue value, Error *err)
{
    const char *item = arena_printf(arena, "x%d", value.level);
    FileValue key = part_of(value, 0, arena_printf(arena, "%s.key", item));
    FileValue mapped = part_of(value, 1, arena_printf(arena, "%s.value", item));

    buf_printf(out,
               "map_from_entries(list_transform(map_entries(%s), lambda %s: struct_pack(key := ",
               value.name, item);
    TRY(put_expression(out, arena, type->fields[0].type, key, err));
    buf_cstr(out, ", value := ");
    TRY(put_expression(out, arena, type->fields[1].type, mapped, err));
    buf_cstr(out, ")))");
    return true;
}

/* Recursion follows the type, at most TYPE_DEPTH_MAX levels. */
static bool
put_expression(Buf *out, Arena *arena, const Type *type, FileValue value, Error *err)
{
    if (is_plain(type, value.footer, value.node)) {
        buf_cstr(out, value.name);
        return true;
    }
    if (type->kind == TYPE_STRUCT)
        return put_struct(out, arena, type, value, err);
    if (type->kind == TYPE_LIST)
        return put_list(out, arena, type, value, err);
    return put_map(out, arena, type, value, err);
}

static bool
shape_column(Arena *arena, const Field *field, const ParquetFooter *footer, ShapedColumn *column,
             Error *err)
{
    AUTO_BUF Buf text = {0};
    int node = find_node(footer, 0, field->id);

    if (!type_is_nested(field->type))
        return true;
    if (node < 0) {
        if (field->initial_default.ptr == NULL)
            return true;
        TRY(default_put_sql(&text, field, err));
        column->expression = arena_strdup(arena, buf_text(&text));
        return true;
    }
    if (is_plain(field->type, footer, node))
        return true;
    put_file_type(&text, field->type, footer, node);
    column->file_type = arena_strdup(arena, buf_text(&text));
    buf_reset(&text);

    FileValue value = {
        .footer = footer, .node = node, .name = arena_printf(arena, "c%d", field->id)};

    TRY(put_expression(&text, arena, field->type, value, err));
    column->expression = arena_strdup(arena, buf_text(&text));
    return true;
}

/* Everything in the arena; *out_key is empty when nothing differs. */
static bool
shape_file(Arena *arena, const IcebergSchema *schema, const char *path, FileShape *out_shape,
           Error *err)
{
    AUTO_BUF Buf key = {0};
    ShapedColumn *columns = ARENA_ARRAY(arena, ShapedColumn, (size_t) schema->field_count);
    ParquetFooter footer;

    TRY(parquet_footer_read(arena, path, &footer, err));
    for (int i = 0; i < schema->field_count; i++) {
        columns[i] = (ShapedColumn){0};
        TRY(shape_column(arena, &schema->fields[i], &footer, &columns[i], err));
        if (columns[i].expression != NULL)
            buf_printf(&key, "%d %s %s\n", i,
                       columns[i].file_type == NULL ? "" : columns[i].file_type,
                       columns[i].expression);
    }
    *out_shape = (FileShape){.columns = columns, .key = arena_strdup(arena, buf_text(&key))};
    return true;
}

/* --- the cache ----------------------------------------------------------------------------- */

typedef struct KnownFile {
    Hash128 path;
    const FileShape *shape; /* NULL: as the schema says */
    bool used;              /* by the plan being made */
} KnownFile;

void
shape_cache_done(ShapeCache *cache)
{
    arena_free(cache->arena);
    buf_done(&cache->shapes);
    buf_done(&cache->files);
    *cache = (ShapeCache){0};
}

void
shape_cache_begin(ShapeCache *cache, const IcebergSchema *schema)
{
    if (cache->arena == NULL || !str_eq(cache->schema, schema->json)) {
        shape_cache_done(cache);
        cache->arena = arena_new();
        cache->schema = arena_str(cache->arena, schema->json);
    }
    for (size_t i = 0; i < BUF_COUNT(&cache->files, KnownFile); i++)
        BUF_AT(&cache->files, KnownFile, i).used = false;
}

static size_t
find_known(const ShapeCache *cache, Hash128 path)
{
    size_t low = 0;
    size_t high = BUF_COUNT(&cache->files, KnownFile);

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (hash128_cmp(BUF_AT(&cache->files, KnownFile, mid).path, path) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The one copy of a shape. */
static const FileShape *
keep_shape(ShapeCache *cache, const IcebergSchema *schema, const FileShape *shape)
{
    for (size_t i = 0; i < BUF_COUNT(&cache->shapes, FileShape *); i++)
        if (strcmp(BUF_AT(&cache->shapes, FileShape *, i)->key, shape->key) == 0)
            return BUF_AT(&cache->shapes, FileShape *, i);

    FileShape *kept = ARENA_NEW(cache->arena, FileShape);
    size_t count = (size_t) schema->field_count;

    *kept = (FileShape){.columns = ARENA_ARRAY(cache->arena, ShapedColumn, count),
                        .key = arena_strdup(cache->arena, shape->key)};
    for (size_t i = 0; i < count; i++) {
        const ShapedColumn *from = &shape->columns[i];

        kept->columns[i] = (ShapedColumn){0};
        if (from->file_type != NULL)
            kept->columns[i].file_type = arena_strdup(cache->arena, from->file_type);
        if (from->expression != NULL)
            kept->columns[i].expression = arena_strdup(cache->arena, from->expression);
    }
    BUF_PUSH(&cache->shapes, FileShape *, kept);
    return kept;
}

/* Put a file in its place among those that are known. */
static void
remember(ShapeCache *cache, size_t at, KnownFile file)
{
    size_t behind = BUF_COUNT(&cache->files, KnownFile) - at;

    buf_push(&cache->files, sizeof(KnownFile));

    KnownFile *place = &BUF_AT(&cache->files, KnownFile, at);

    memmove(place + 1, place, behind * sizeof(KnownFile));
    *place = file;
}

bool
shape_cache_get(ShapeCache *cache, const IcebergSchema *schema, const char *path,
                const FileShape **out_shape, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    KnownFile file = {.path = hash128(path, strlen(path), 0), .used = true};
    size_t at = find_known(cache, file.path);
    FileShape shape;

    if (at < BUF_COUNT(&cache->files, KnownFile) &&
        hash128_eq(BUF_AT(&cache->files, KnownFile, at).path, file.path)) {
        BUF_AT(&cache->files, KnownFile, at).used = true;
        *out_shape = BUF_AT(&cache->files, KnownFile, at).shape;
        return true;
    }
    if (!shape_file(arena, schema, path, &shape, err))
        return WRAP(err, "%s", path);
    if (shape.key[0] != '\0')
        file.shape = keep_shape(cache, schema, &shape);
    remember(cache, at, file);
    *out_shape = file.shape;
    return true;
}

void
shape_cache_end(ShapeCache *cache)
{
    size_t kept = 0;

    for (size_t i = 0; i < BUF_COUNT(&cache->files, KnownFile); i++)
        if (BUF_AT(&cache->files, KnownFile, i).used)
            BUF_AT(&cache->files, KnownFile, kept++) = BUF_AT(&cache->files, KnownFile, i);
    cache->files.len = kept * sizeof(KnownFile);
}
