/* literal_binary.h - parameters as Postgres' send functions write them: big-endian numbers, times
 * counted from 2000-01-01, numeric as base-10000 digits, arrays of one dimension. */
#ifndef QUERY_LITERAL_BINARY_H
#define QUERY_LITERAL_BINARY_H

#include "query/literal.h"

/* Either the whole literal goes to out (*out_done), or the value's text to text. */
bool literal_put_binary(Buf *out, Buf *text, const Parameter *parameter, bool *out_done,
                        QueryFailure *failure, Error *err) WARN_UNUSED;

#endif
