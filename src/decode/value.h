/* value.h - a Postgres text value into a Column: the one parser of copy and stream. */
#ifndef DECODE_VALUE_H
#define DECODE_VALUE_H

#include "model/column.h"

typedef enum ParseResult {
    PARSE_OK,
    PARSE_REJECT, /* the column cannot hold it: nothing was appended, *out_reason says why */
} ParseResult;

/* Append one value to the column. *out_reason is a static text like "infinity has no timestamp" or
 * "not valid UTF-8"; the caller appends NULL and records the reject. Postgres sends canonical text
 * (pinned session settings, postgres-notes section 3); text that no Postgres would send is a reject
 * too, never a crash. */
ParseResult value_parse(Column *column, Str text, const char **out_reason) WARN_UNUSED;

#endif
