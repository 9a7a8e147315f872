#include "iceberg/metrics.h"
#include "iceberg/bounds.h"

#include <assert.h>

/* Java's default of write.metadata.metrics.max-inferred-column-defaults */
enum { LEAVES_MAX = 100 };

/* One leaf column. Fields are walked in the same order every time, so a leaf is known by its
 * place. */
typedef struct Leaf {
    int field_id;
    bool repeated; /* inside a list or map: counts only */
    bool real;
    int64_t value_count;
    int64_t null_count;
    Bounds bounds;
} Leaf;

struct FileMetrics {
    const Field *fields;
    int field_count;
    size_t leaf_count;
    Leaf *leaves;
    Buf masks[TYPE_DEPTH_MAX + 2]; /* scratch, one per level: which rows count */
    Buf present;                   /* scratch: which rows of a leaf have a value */
};

static void
add_leaves(FileMetrics *metrics, const Field *field, bool repeated)
{
    const Type *type = field->type;

    if (metrics->leaf_count == LEAVES_MAX)
        return;
    if (type_is_nested(type)) {
        for (int i = 0; i < type->field_count; i++)
            add_leaves(metrics, &type->fields[i], repeated || type->kind != TYPE_STRUCT);
        return;
    }

    Leaf *leaf = &metrics->leaves[metrics->leaf_count++];

    *leaf = (Leaf){
        .field_id = field->id,
        .repeated = repeated,
        .real = type->kind == TYPE_FLOAT32 || type->kind == TYPE_FLOAT64,
    };
    bounds_init(&leaf->bounds, type);
}

FileMetrics *
file_metrics_new(const Field *fields, int field_count)
{
    FileMetrics *metrics = xcalloc(1, sizeof *metrics);

    metrics->fields = fields;
    metrics->field_count = field_count;
    metrics->leaves = xcalloc(LEAVES_MAX, sizeof *metrics->leaves);
    for (int i = 0; i < field_count; i++)
        add_leaves(metrics, &fields[i], false);
    return metrics;
}

void
file_metrics_free(FileMetrics *metrics)
{
    if (metrics == NULL)
        return;
    for (size_t i = 0; i < metrics->leaf_count; i++)
        bounds_done(&metrics->leaves[i].bounds);
    for (size_t i = 0; i < sizeof metrics->masks / sizeof metrics->masks[0]; i++)
        buf_done(&metrics->masks[i]);
    buf_done(&metrics->present);
    free(metrics->leaves);
    free(metrics);
}

void
file_metrics_keep_full(FileMetrics *metrics, int field_id)
{
    for (size_t i = 0; i < metrics->leaf_count; i++)
        if (metrics->leaves[i].field_id == field_id)
            metrics->leaves[i].bounds.full = true;
}

/* --- Adding -------------------------------------------------------------------------------- */

/* Rows of one level: live[i] != 0 where row i counts (NULL: all do). */
typedef struct Rows {
    const uint8_t *live;
    size_t count;
    int level;
} Rows;

/* Where a row counts and has a value: the column's own valid bytes when all rows count. */
static const uint8_t *
present_rows(FileMetrics *metrics, const Column *column, const Rows *rows)
{
    const uint8_t *valid = (const uint8_t *) column->valid.ptr;

    if (rows->live == NULL)
        return valid;
    buf_reset(&metrics->present);

    uint8_t *present = buf_push(&metrics->present, rows->count);

    for (size_t i = 0; i < rows->count; i++)
        present[i] = valid[i] & rows->live[i];
    return present;
}

static int64_t
count_ones(const uint8_t *mask, size_t rows)
{
    int64_t ones = 0;

    for (size_t i = 0; i < rows; i++)
        ones += mask[i];
    return ones;
}

static void
add_leaf(FileMetrics *metrics, Leaf *leaf, const Column *column, const Rows *rows)
{
    if (rows->count == 0)
        return;

    const uint8_t *present = present_rows(metrics, column, rows);
    int64_t live = rows->live == NULL ? (int64_t) rows->count : count_ones(rows->live, rows->count);

    leaf->value_count += live;
    leaf->null_count += live - count_ones(present, rows->count);
    if (!leaf->repeated || leaf->real) /* NaNs are counted in lists too */
        bounds_add(&leaf->bounds, column, present, rows->count);
}

/* Which elements belong to rows that count. Elements of overwritten rows belong to none. */
static Rows
element_rows(FileMetrics *metrics, const Column *column, const Rows *rows)
{
    const Column *elements = &column->children[0];
    Rows out = {.count = elements->rows, .level = rows->level + 1};

    Buf *mask = &metrics->masks[out.level];

    assert(out.level < TYPE_DEPTH_MAX + 2);
    buf_reset(mask);
    buf_reserve(mask, out.count + 1);
    mask->len = out.count;
    memset(mask->ptr, 0, out.count + 1);
    for (size_t i = 0; i < rows->count; i++) {
        Span span = column_span(column, i);

        if ((rows->live == NULL || rows->live[i]) && !column_is_null(column, i))
            memset(mask->ptr + span.offset, 1, span.length);
    }
    out.live = (const uint8_t *) mask->ptr;
    return out;
}

/* Returns the number of leaves below the column that were passed. Recursion follows the type. */
static size_t
add_column(FileMetrics *metrics, size_t leaf, const Column *column, const Rows *rows)
{
    const Type *type = column->type;

    if (leaf >= metrics->leaf_count)
        return 0;
    if (!type_is_nested(type)) {
        add_leaf(metrics, &metrics->leaves[leaf], column, rows);
        return 1;
    }

    Rows inner = *rows;
    size_t passed = 0;

    if (type->kind != TYPE_STRUCT)
        inner = element_rows(metrics, column, rows);
    for (int i = 0; i < type->field_count; i++)
        passed += add_column(metrics, leaf + passed, &column->children[i], &inner);
    return passed;
}

void
file_metrics_add(FileMetrics *metrics, const Column *columns, size_t rows, const uint8_t *dead)
{
    Rows live = {.count = rows};
    size_t leaf = 0;

    if (rows == 0)
        return;
    if (dead != NULL) {
        Buf *mask = &metrics->masks[0];

        buf_reset(mask);

        uint8_t *bytes = buf_push(mask, rows);

        for (size_t i = 0; i < rows; i++)
            bytes[i] = dead[i] == 0;
        live.live = bytes;
    }
    for (int i = 0; i < metrics->field_count; i++)
        leaf += add_column(metrics, leaf, &columns[i], &live);
}

/* --- Finishing ----------------------------------------------------------------------------- */

static int
compare_counts(const void *a, const void *b)
{
    int x = ((const CountByField *) a)->field_id;
    int y = ((const CountByField *) b)->field_id;

    return x < y ? -1 : x > y;
}

static int
compare_bounds(const void *a, const void *b)
{
    int x = ((const BoundByField *) a)->field_id;
    int y = ((const BoundByField *) b)->field_id;

    return x < y ? -1 : x > y;
}

static void
finish_bounds(const FileMetrics *metrics, Arena *arena, DataFile *file)
{
    file->lower_bounds.items = ARENA_ARRAY(arena, BoundByField, metrics->leaf_count);
    file->upper_bounds.items = ARENA_ARRAY(arena, BoundByField, metrics->leaf_count);
    file->lower_bounds.count = 0;
    file->upper_bounds.count = 0;
    for (size_t i = 0; i < metrics->leaf_count; i++) {
        const Leaf *leaf = &metrics->leaves[i];

        if (leaf->repeated)
            continue;

        Str lower = bounds_lower(&leaf->bounds, arena);
        Str upper = bounds_upper(&leaf->bounds, arena);

        if (lower.ptr != NULL)
            file->lower_bounds.items[file->lower_bounds.count++] =
                (BoundByField){.field_id = leaf->field_id, .value = lower};
        if (upper.ptr != NULL)
            file->upper_bounds.items[file->upper_bounds.count++] =
                (BoundByField){.field_id = leaf->field_id, .value = upper};
    }
    qsort(file->lower_bounds.items, file->lower_bounds.count, sizeof(BoundByField), compare_bounds);
    qsort(file->upper_bounds.items, file->upper_bounds.count, sizeof(BoundByField), compare_bounds);
}

void
file_metrics_finish(const FileMetrics *metrics, Arena *arena, DataFile *file)
{
    size_t count = metrics->leaf_count;

    file->value_counts.items = ARENA_ARRAY(arena, CountByField, count);
    file->null_counts.items = ARENA_ARRAY(arena, CountByField, count);
    file->nan_counts.items = ARENA_ARRAY(arena, CountByField, count);
    file->value_counts.count = count;
    file->null_counts.count = count;
    file->nan_counts.count = 0;
    for (size_t i = 0; i < count; i++) {
        const Leaf *leaf = &metrics->leaves[i];

        file->value_counts.items[i] = (CountByField){leaf->field_id, leaf->value_count};
        file->null_counts.items[i] = (CountByField){leaf->field_id, leaf->null_count};
        if (leaf->real)
            file->nan_counts.items[file->nan_counts.count++] =
                (CountByField){leaf->field_id, leaf->bounds.nan_count};
    }
    qsort(file->value_counts.items, count, sizeof(CountByField), compare_counts);
    qsort(file->null_counts.items, count, sizeof(CountByField), compare_counts);
    qsort(file->nan_counts.items, file->nan_counts.count, sizeof(CountByField), compare_counts);
    finish_bounds(metrics, arena, file);
}
