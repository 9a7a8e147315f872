/* names.h - column names that DuckDB can tell apart. */
#ifndef DUCK_NAMES_H
#define DUCK_NAMES_H

#include "model/type.h"

/* One name a field, the field's own where possible. DuckDB compares names without regard to the
 * case of ASCII letters, so a later one that collides gets a suffix, and so does the word that
 * COPY keeps for itself (__duckdb_field_id). NUL-terminated, in arena. */
Str *duck_unique_names(Arena *arena, const Field *fields, int field_count);

#endif
