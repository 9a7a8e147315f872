/* value.h - single values out of DuckDB's vectors, in Postgres' forms. Private to this folder. */
#ifndef DUCK_VALUE_H
#define DUCK_VALUE_H

#include "base/buf.h"
#include "duck/internal.h"
#include "duck/session.h"

/* A vector with what is asked of it for every value. */
typedef struct ValueVector {
    const DuckType *type;
    duckdb_vector vector;
    const void *data;
    uint64_t *validity; /* NULL: all valid */
} ValueVector;

static inline ValueVector
value_vector(const DuckType *type, duckdb_vector vector)
{
    return (ValueVector){
        .type = type,
        .vector = vector,
        .data = duckdb_vector_get_data(vector),
        .validity = duckdb_vector_get_validity(vector),
    };
}

static inline bool
value_is_null(const ValueVector *values, size_t row)
{
    return values->validity != NULL && !duckdb_validity_row_is_valid(values->validity, row);
}

/* DUCK_TEXT, DUCK_JSON, DUCK_BLOB. */
Str value_bytes(const ValueVector *values, size_t row);
/* Any integer kind and the unscaled value of a decimal, but for numbers of 2^127 and more. */
__int128 value_integer(const ValueVector *values, size_t row);
/* DUCK_UUID, as 16 bytes in the order they are written. */
void value_uuid(const ValueVector *values, size_t row, uint8_t out[16]);
/* Microseconds of any timestamp kind; INT64_MAX and -INT64_MAX are the infinities. */
int64_t value_microseconds(const ValueVector *values, size_t row);
/* The elements of row `row` of a list or an array: rows *out_first ... of the vector returned. */
ValueVector value_elements(const ValueVector *values, size_t row, size_t *out_first,
                           size_t *out_count);

void value_text(const ValueVector *values, size_t row, Buf *out);
void value_binary(const ValueVector *values, size_t row, uint32_t element_oid, Buf *out);

#endif
