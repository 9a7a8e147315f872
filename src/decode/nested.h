/* nested.h - lists, maps and structs in Postgres' text output.
 *
 * The text of an element may itself be a quoted list or struct, so these and value_parse() call
 * each other. They go as deep as the column's type, which is bounded, never as deep as the text. */
#ifndef DECODE_NESTED_H
#define DECODE_NESTED_H

#include "model/column.h"

/* Each appends one row and returns NULL, or appends nothing, children included, and says why
 * (static text). */

/* array_out: {1,NULL,"a \"b\""}, {{1,2},{3,4}} */
const char *nested_parse_array(Column *column, Str text);
/* array_out, whatever its shape, into a column of JSON (FORM_ARRAY_OF_...): [[1,null],[3,4]].
 * Lower bounds are left out, as by to_json() of Postgres. NaN and the infinities are texts. */
const char *nested_parse_json_array(Column *column, Str text);
/* pgvector: [1,2.5] */
const char *nested_parse_vector(Column *column, Str text);
/* hstore_out: "a"=>"1", "b"=>NULL */
const char *nested_parse_hstore(Column *column, Str text);
/* record_out: (1,"a ""b""",) */
const char *nested_parse_record(Column *column, Str text);

#endif
