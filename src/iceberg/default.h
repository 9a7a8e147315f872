/* default.h - the default of a field as SQL for DuckDB. Iceberg spec, "Default values" and
 * "JSON single-value serialization". Pure. */
#ifndef ICEBERG_DEFAULT_H
#define ICEBERG_DEFAULT_H

#include "model/type.h"

/* Append an expression of exactly this type for the field's initial default, the value of rows in
 * files that lack it: NULL when there is none. The empty object is a struct of its members'
 * defaults. ERR_INPUT when it is no value of the type; DuckDB judges the text of numbers and times.
 */
bool default_put_sql(Buf *sql, const Field *field, Error *err) WARN_UNUSED;

/* One text a field, NULL where there is no default; *out_defaults is NULL when no field has one. */
bool default_expressions(Arena *arena, const Field *fields, int count,
                         const char *const **out_defaults, Error *err) WARN_UNUSED;

#endif
