/* default_json.h - the default of a column as the JSON that table metadata has. Iceberg spec,
 * "Default Values", "JSON single-value serialization". Plain types only: a default of a list, map
 * or struct is not written. Reading them: default.h. Pure. */
#ifndef ICEBERG_DEFAULT_JSON_H
#define ICEBERG_DEFAULT_JSON_H

#include "model/type.h"

/* The value that Postgres' text means in a column of this type, through the parser that copy and
 * stream use, as JSON. STR_NULL when it cannot be said: the column cannot hold it, the type is
 * nested, or JSON has no form for it that all readers take (NaN, infinity, years beyond 9999). */
Str default_from_text(Arena *arena, const Type *type, Str text);

#endif
