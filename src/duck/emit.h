/* emit.h - Columns into DuckDB's vectors. */
#ifndef DUCK_EMIT_H
#define DUCK_EMIT_H

#include "duck/internal.h"
#include "model/column.h"

/* Some rows of a Column: those of `indexes`, or without indexes start, start + 1, ... */
typedef struct Rows {
    const uint32_t *indexes;
    size_t start;
    size_t count;
} Rows;

static inline size_t
rows_at(Rows rows, size_t i)
{
    return rows.indexes == NULL ? rows.start + i : rows.indexes[i];
}

/* Whether none of the bytes is set: no row dead, say. */
bool emit_all_zero(const uint8_t *bytes, size_t count);

/* The DuckDB type that a Column of this type is emitted as. To be destroyed by the caller. */
duckdb_logical_type duck_logical_type(const Type *type);

/* Fill the vector, which has duck_logical_type() of the column's type, from its position 0. Long
 * strings are not copied: the vector points into the column, which must live until DuckDB is done
 * with the chunk (an operator that keeps rows makes its own copy of them). */
void emit_column(duckdb_vector vector, const Column *column, Rows rows);

#endif
