#include "duck/absorb.h"

#include <assert.h>
#include <inttypes.h>

#include "base/bytes.h"

void
absorb_nulls(Column *column, size_t count)
{
    for (size_t i = 0; i < count; i++)
        column_append_null(column);
}

/* --- Validity ------------------------------------------------------------------------------ */

static bool
row_is_valid(const uint64_t *mask, size_t row)
{
    return mask == NULL || (mask[row / 64] >> (row % 64) & 1) != 0;
}

static void
absorb_valid(Column *column, duckdb_vector vector, Rows rows)
{
    const uint64_t *mask = duckdb_vector_get_validity(vector);
    uint8_t *valid = buf_push(&column->valid, rows.count);

    column->rows += rows.count;
    if (mask == NULL)
        memset(valid, 1, rows.count);
    else
        for (size_t i = 0; i < rows.count; i++)
            valid[i] = row_is_valid(mask, rows_at(rows, i));
}

/* --- Values. A vector's value under a NULL is anything; a Column's is zero. ------------------- */

/* to[i] = the vector's value as `To`, for each row. */
#define CONVERT(To, From)                                                                          \
    do {                                                                                           \
        const void *data = duckdb_vector_get_data(vector);                                         \
        const From *from = data; /* NOLINT(bugprone-macro-parentheses) */                          \
        To *to = buf_push(&column->values, rows.count * sizeof(To)); /* NOLINT */                  \
                                                                                                   \
        for (size_t i = 0; i < rows.count; i++)                                                    \
            to[i] = row_is_valid(mask, rows_at(rows, i)) ? (To) from[rows_at(rows, i)] : (To) 0;   \
        return true;                                                                               \
    } while (0)

static __int128
hugeint_value(duckdb_hugeint value)
{
    return (__int128) (((unsigned __int128) (uint64_t) value.upper << 64) | value.lower);
}

static void
absorb_hugeints(Column *column, duckdb_vector vector, Rows rows)
{
    const uint64_t *mask = duckdb_vector_get_validity(vector);
    const duckdb_hugeint *from = duckdb_vector_get_data(vector);

    for (size_t i = 0; i < rows.count; i++) {
        size_t row = rows_at(rows, i);
        __int128 value = row_is_valid(mask, row) ? hugeint_value(from[row]) : 0;

        buf_append(&column->values, &value, sizeof value);
    }
}

static void
absorb_uuids(Column *column, duckdb_vector vector, Rows rows)
{
    const uint64_t *mask = duckdb_vector_get_validity(vector);
    const duckdb_hugeint *from = duckdb_vector_get_data(vector);

    for (size_t i = 0; i < rows.count; i++) {
        size_t row = rows_at(rows, i);
        char *out = buf_push(&column->values, 16);

        memset(out, 0, 16);
        if (!row_is_valid(mask, row))
            continue;
        store_be64(out, (uint64_t) from[row].upper ^ (UINT64_C(1) << 63));
        store_be64(out + 8, from[row].lower);
    }
}

static void
absorb_strings(Column *column, duckdb_vector vector, Rows rows)
{
    const uint64_t *mask = duckdb_vector_get_validity(vector);
    duckdb_string_t *from = duckdb_vector_get_data(vector);

    for (size_t i = 0; i < rows.count; i++) {
        size_t row = rows_at(rows, i);
        Span span = {0};

        if (row_is_valid(mask, row)) {
            span = (Span){.offset = column->bytes.len, .length = duckdb_string_t_length(from[row])};
            buf_append(&column->bytes, duckdb_string_t_data(&from[row]), span.length);
        }
        BUF_PUSH(&column->values, Span, span);
    }
}

static bool
absorb_decimals(Column *column, duckdb_vector vector, duckdb_logical_type type, Rows rows)
{
    const uint64_t *mask = duckdb_vector_get_validity(vector);
    bool wide = column->type->precision > 18;

    if (duckdb_decimal_scale(type) != column->type->scale ||
        duckdb_decimal_width(type) > column->type->precision)
        return false;
    switch ((int) duckdb_decimal_internal_type(type)) {
    case DUCKDB_TYPE_SMALLINT:
        if (wide)
            CONVERT(__int128, int16_t);
        CONVERT(int64_t, int16_t);
    case DUCKDB_TYPE_INTEGER:
        if (wide)
            CONVERT(__int128, int32_t);
        CONVERT(int64_t, int32_t);
    case DUCKDB_TYPE_BIGINT:
        if (wide)
            CONVERT(__int128, int64_t);
        CONVERT(int64_t, int64_t);
    default:
        absorb_hugeints(column, vector, rows);
        return wide;
    }
}

/* Columns of one number a row. False: the vector has another type. */
static bool
absorb_numbers(Column *column, duckdb_vector vector, duckdb_type type, Rows rows)
{
    const uint64_t *mask = duckdb_vector_get_validity(vector);

    switch ((int) column->type->kind) {
    case TYPE_BOOL:
        if (type == DUCKDB_TYPE_BOOLEAN)
            CONVERT(uint8_t, uint8_t);
        return false;
    case TYPE_INT32:
        if (type == DUCKDB_TYPE_INTEGER)
            CONVERT(int32_t, int32_t);
        return false;
    case TYPE_INT64:
        if (type == DUCKDB_TYPE_INTEGER)
            CONVERT(int64_t, int32_t);
        if (type == DUCKDB_TYPE_BIGINT)
            CONVERT(int64_t, int64_t);
        return false;
    case TYPE_FLOAT32:
        if (type == DUCKDB_TYPE_FLOAT)
            CONVERT(float, float);
        return false;
    case TYPE_FLOAT64:
        if (type == DUCKDB_TYPE_FLOAT)
            CONVERT(double, float);
        if (type == DUCKDB_TYPE_DOUBLE)
            CONVERT(double, double);
        return false;
    case TYPE_DATE:
        if (type == DUCKDB_TYPE_DATE)
            CONVERT(int32_t, int32_t);
        return false;
    case TYPE_TIME:
        if (type == DUCKDB_TYPE_TIME)
            CONVERT(int64_t, int64_t);
        return false;
    case TYPE_TIMESTAMP:
        if (type == DUCKDB_TYPE_TIMESTAMP)
            CONVERT(int64_t, int64_t);
        return false;
    case TYPE_TIMESTAMPTZ:
        if (type == DUCKDB_TYPE_TIMESTAMP_TZ)
            CONVERT(int64_t, int64_t);
        return false;
    default:
        assert(false); /* the others are not numbers */
        return false;
    }
}

/* --- Nested -------------------------------------------------------------------------------- */

/* A list's elements, in the order of the chosen rows. */
static Rows
choose_elements(Column *column, duckdb_vector vector, Rows rows, Buf *indexes)
{
    const uint64_t *mask = duckdb_vector_get_validity(vector);
    const duckdb_list_entry *from = duckdb_vector_get_data(vector);
    uint64_t offset = column->children[0].rows;

    assert(duckdb_list_vector_get_size(vector) <= UINT32_MAX);
    for (size_t i = 0; i < rows.count; i++) {
        size_t row = rows_at(rows, i);
        Span span = {0};

        if (row_is_valid(mask, row)) {
            span = (Span){.offset = offset, .length = from[row].length};
            for (size_t k = 0; k < span.length; k++)
                BUF_PUSH(indexes, uint32_t, (uint32_t) (from[row].offset + k));
            offset += span.length;
        }
        BUF_PUSH(&column->values, Span, span);
    }
    return (Rows){.indexes = (const uint32_t *) (const void *) indexes->ptr,
                  .count = BUF_COUNT(indexes, uint32_t)};
}

/* The members of the struct vector that the parts name. Members of a NULL struct are NULL in
 * DuckDB as well. */
static bool
absorb_members(Column *column, duckdb_vector vector, const Part *part, Rows rows, Error *err)
{
    for (int i = 0; i < column->type->field_count; i++) {
        const Part *member = &part->parts[i];

        if (member->child < 0)
            absorb_nulls(&column->children[i], rows.count);
        else
            TRY(absorb_vector(&column->children[i],
                              duckdb_struct_vector_get_child(vector, (idx_t) member->child), member,
                              rows, err));
    }
    return true;
}

/* A list; a map is a list of structs of key and value. */
static bool
absorb_list(Column *column, duckdb_vector vector, const Part *part, Rows rows, Error *err)
{
    AUTO_BUF Buf indexes = {0};
    Rows elements = choose_elements(column, vector, rows, &indexes);
    duckdb_vector child = duckdb_list_vector_get_child(vector);

    if (elements.count == 0)
        return true;
    if (column->type->kind == TYPE_MAP)
        return absorb_members(column, child, part, elements, err);
    return absorb_vector(&column->children[0], child, &part->parts[0], elements, err);
}

static bool
absorb_values(Column *column, duckdb_vector vector, const Part *part, Rows rows, Error *err)
{
    AUTO_TYPE duckdb_logical_type logical = duckdb_vector_get_column_type(vector);
    duckdb_type type = duckdb_get_type_id(logical);
    bool fits;

    switch (column->type->kind) {
    case TYPE_STRING:
    case TYPE_JSON:
        fits = type == DUCKDB_TYPE_VARCHAR;
        if (fits)
            absorb_strings(column, vector, rows);
        break;
    case TYPE_BINARY:
        fits = type == DUCKDB_TYPE_BLOB;
        if (fits)
            absorb_strings(column, vector, rows);
        break;
    case TYPE_UUID:
        fits = type == DUCKDB_TYPE_UUID;
        if (fits)
            absorb_uuids(column, vector, rows);
        break;
    case TYPE_DECIMAL:
        fits = type == DUCKDB_TYPE_DECIMAL && absorb_decimals(column, vector, logical, rows);
        break;
    case TYPE_LIST:
    case TYPE_MAP:
        fits = type == (column->type->kind == TYPE_LIST ? DUCKDB_TYPE_LIST : DUCKDB_TYPE_MAP);
        if (fits)
            return absorb_list(column, vector, part, rows, err);
        break;
    case TYPE_STRUCT:
        fits = type == DUCKDB_TYPE_STRUCT;
        if (fits)
            return absorb_members(column, vector, part, rows, err);
        break;
    case TYPE_BOOL:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    default:
        fits = absorb_numbers(column, vector, type, rows);
        break;
    }
    if (!fits) {
        AUTO_BUF Buf name = {0};

        type_duckdb_name(column->type, &name);
        return FAIL(err, ERR_INPUT, "a column of the file cannot be read as %s", buf_text(&name));
    }
    return true;
}

bool
absorb_vector(Column *column, duckdb_vector vector, const Part *part, Rows rows, Error *err)
{
    absorb_valid(column, vector, rows);
    return absorb_values(column, vector, part, rows, err);
}
