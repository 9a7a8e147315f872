/* file_shape.h - nested columns as a data file has them, when that is not as the schema says.
 *
 * DuckDB finds the columns of a file by field id, but the members of structs by name. So in a file
 * from before a member was renamed, added, or gave its name to another one, such a column is read
 * under the file's own names and put together again:
 *
 *     CASE WHEN c2 IS NULL THEN NULL
 *          ELSE struct_pack("new" := c2."old", "more" := CAST('7' AS INTEGER)) END */
#ifndef QUERY_FILE_SHAPE_H
#define QUERY_FILE_SHAPE_H

#include "duck/parquet_footer.h"
#include "iceberg/schema.h"

/* One column of the schema, called c<field id>. */
typedef struct ShapedColumn {
    const char *file_type;  /* what to ask DuckDB for; NULL: the type of the schema */
    const char *expression; /* what to show; NULL: the column as it is */
} ShapedColumn;

typedef struct FileShape {
    ShapedColumn *columns; /* one a field of the schema */
    const char *key;       /* equal for files of the same shape */
} FileShape;

/* Shapes of the files of a table, kept from plan to plan: one footer is read for each file. */
typedef struct ShapeCache {
    Arena *arena; /* of the shapes; NULL: nothing is known */
    Str schema;   /* JSON of the schema that they are of */
    Buf shapes;   /* FileShape *, each once */
    Buf files;    /* KnownFile, by hash */
} ShapeCache;

void shape_cache_done(ShapeCache *cache);

/* Whether files can differ from the schema in a way that matters here. */
bool schema_needs_shapes(const IcebergSchema *schema);

/* Begin with the files of one plan. Shapes of another schema are forgotten. */
void shape_cache_begin(ShapeCache *cache, const IcebergSchema *schema);

/* The shape of a file; NULL: as the schema says. Lives until shape_cache_begin or _done. ERR_INPUT:
 * it cannot be read as the schema says. */
bool shape_cache_get(ShapeCache *cache, const IcebergSchema *schema, const char *path,
                     const FileShape **out_shape, Error *err) WARN_UNUSED;

/* End: files that were not asked for are forgotten. */
void shape_cache_end(ShapeCache *cache);

#endif
