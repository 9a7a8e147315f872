#include "iceberg/sorter.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "iceberg/transform.h"

typedef struct Term {
    int column; /* index into the columns */
    Transform transform;
    bool descending;
    bool nulls_first;
    Buf results; /* int32_t a row: bucket, year, month, day, hour; else empty */
} Term;

struct Sorter {
    int term_count;
    Term *terms;
    const Column *columns;
};

static int
find_column(const Field *fields, int field_count, int id)
{
    for (int i = 0; i < field_count; i++)
        if (fields[i].id == id)
            return i;
    return -1;
}

Sorter *
sorter_new(const SortOrder *order, const Field *fields, int field_count)
{
    Sorter *sorter;

    if (order->field_count == 0)
        return NULL;
    sorter = xcalloc(1, sizeof *sorter);
    sorter->term_count = order->field_count;
    sorter->terms = xcalloc((size_t) order->field_count, sizeof(Term));
    for (int i = 0; i < order->field_count; i++) {
        const SortField *field = &order->fields[i];
        Term *term = &sorter->terms[i];

        *term = (Term){.column = find_column(fields, field_count, field->source_id),
                       .descending = field->descending,
                       .nulls_first = field->nulls_first};
        if (!transform_parse(field->transform, &term->transform) || term->column < 0 ||
            !transform_takes(term->transform, fields[term->column].type)) {
            sorter_free(sorter);
            return NULL;
        }
    }
    return sorter;
}

void
sorter_free(Sorter *sorter)
{
    if (sorter == NULL)
        return;
    for (int i = 0; i < sorter->term_count; i++)
        buf_done(&sorter->terms[i].results);
    free(sorter->terms);
    free(sorter);
}

bool
sorter_uses(const Sorter *sorter, int column)
{
    for (int i = 0; i < sorter->term_count; i++)
        if (sorter->terms[i].column == column)
            return true;
    return false;
}

/* --- values ---------------------------------------------------------------------------------- */

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* The bits of a real as a number of the same order; NaNs differ in their sign only. */
static int64_t
real_order(const Column *column, size_t row)
{
    double value = column->type->kind == TYPE_FLOAT32 ? (double) BUF_AT(&column->values, float, row)
                                                      : BUF_AT(&column->values, double, row);
    int64_t bits;

    if (isnan(value))
        return signbit(value) ? INT64_MIN : INT64_MAX;
    memcpy(&bits, &value, sizeof bits);
    return bits >= 0 ? bits : ~(bits & INT64_MAX);
}

static int
compare_bytes(Str a, Str b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared == 0 ? 0 : memcmp(a.ptr, b.ptr, shared);

    return order != 0 ? order : COMPARE(a.len, b.len);
}

static int
compare_decimals(const Column *column, size_t a, size_t b)
{
    if (column->type->precision <= 18)
        return COMPARE(BUF_AT(&column->values, int64_t, a), BUF_AT(&column->values, int64_t, b));
    return COMPARE(BUF_AT(&column->values, __int128, a), BUF_AT(&column->values, __int128, b));
}

static int
compare_values(const Column *column, size_t a, size_t b)
{
    switch (column->type->kind) {
    case TYPE_BOOL:
        return COMPARE(BUF_AT(&column->values, uint8_t, a) != 0,
                       BUF_AT(&column->values, uint8_t, b) != 0);
    case TYPE_INT32:
    case TYPE_DATE:
        return COMPARE(BUF_AT(&column->values, int32_t, a), BUF_AT(&column->values, int32_t, b));
    case TYPE_INT64:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        return COMPARE(BUF_AT(&column->values, int64_t, a), BUF_AT(&column->values, int64_t, b));
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return COMPARE(real_order(column, a), real_order(column, b));
    case TYPE_DECIMAL:
        return compare_decimals(column, a, b);
    case TYPE_STRING:
    case TYPE_JSON:
    case TYPE_BINARY:
        return compare_bytes(column_bytes(column, a), column_bytes(column, b));
    case TYPE_UUID:
        return memcmp(column->values.ptr + a * 16, column->values.ptr + b * 16, 16);
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        break;
    }
    assert(false && "nested columns have no order");
    return 0;
}

static int
compare_truncated(const Column *column, int width, size_t a, size_t b)
{
    TypeKind kind = column->type->kind;

    if (kind == TYPE_STRING || kind == TYPE_JSON || kind == TYPE_BINARY)
        return compare_bytes(transform_truncated_bytes(column, a, width),
                             transform_truncated_bytes(column, b, width));
    return COMPARE(transform_truncated_number(column, a, width),
                   transform_truncated_number(column, b, width));
}

static int
compare_term(const Term *term, const Column *column, size_t a, size_t b)
{
    int order = 0;

    if (column_is_null(column, a) || column_is_null(column, b)) {
        order = column_is_null(column, b) - column_is_null(column, a); /* as if NULLs were first */
        return term->nulls_first ? order : -order;
    }
    switch (term->transform.kind) {
    case TRANSFORM_IDENTITY:
        order = compare_values(column, a, b);
        break;
    case TRANSFORM_TRUNCATE:
        order = compare_truncated(column, term->transform.width, a, b);
        break;
    case TRANSFORM_VOID:
        break;
    case TRANSFORM_BUCKET:
    case TRANSFORM_YEAR:
    case TRANSFORM_MONTH:
    case TRANSFORM_DAY:
    case TRANSFORM_HOUR:
        order = COMPARE(BUF_AT(&term->results, int32_t, a), BUF_AT(&term->results, int32_t, b));
        break;
    }
    return term->descending ? -order : order;
}

/* --- rows ------------------------------------------------------------------------------------ */

static bool
has_results(Transform transform)
{
    return transform.kind == TRANSFORM_BUCKET || transform_is_time(transform);
}

static int32_t
result_of(Transform transform, const Column *column, size_t row, Buf *scratch)
{
    Error err;
    bool done;

    if (column_is_null(column, row))
        return 0;
    buf_reset(scratch);
    done = transform_apply(transform, column, row, scratch, &err);
    assert(done && scratch->len == 4); /* only truncate can fail */
    (void) done;
    return (int32_t) load_le32(scratch->ptr);
}

void
sorter_begin(Sorter *sorter, const Column *columns, size_t rows)
{
    AUTO_BUF Buf scratch = {0};

    sorter->columns = columns;
    for (int t = 0; t < sorter->term_count; t++) {
        Term *term = &sorter->terms[t];

        buf_reset(&term->results);
        if (!has_results(term->transform))
            continue;
        buf_reserve(&term->results, rows * sizeof(int32_t));
        for (size_t row = 0; row < rows; row++)
            BUF_PUSH(&term->results, int32_t,
                     result_of(term->transform, &columns[term->column], row, &scratch));
    }
}

static int
compare_rows(const void *a, const void *b, void *context)
{
    const Sorter *sorter = context;
    uint32_t x = *(const uint32_t *) a;
    uint32_t y = *(const uint32_t *) b;

    for (int t = 0; t < sorter->term_count; t++) {
        const Term *term = &sorter->terms[t];
        int order = compare_term(term, &sorter->columns[term->column], x, y);

        if (order != 0)
            return order;
    }
    return COMPARE(x, y);
}

void
sorter_sort(const Sorter *sorter, uint32_t *rows, size_t count)
{
    assert(sorter->columns != NULL);
    if (count > 1)
        qsort_r(rows, count, sizeof *rows, compare_rows, (void *) (uintptr_t) sorter);
}
