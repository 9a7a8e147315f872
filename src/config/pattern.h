/* pattern.h - schema.table patterns: "public.orders", "public.*", "*.*_log", "\"odd.schema\".*".
 *
 * Each part is literal or has '*' (any characters) and '?' (one character); a part in double
 * quotes is literal throughout, a quote in it is doubled. Upper and lower case differ, as in
 * Postgres once quoting is undone. */
#ifndef CONFIG_PATTERN_H
#define CONFIG_PATTERN_H

#include "base/error.h"
#include "base/str.h"

bool pattern_check(Str pattern, Error *err) WARN_UNUSED;
/* False for a pattern that pattern_check refuses. */
bool pattern_matches(Str pattern, Str schema, Str table);

#endif
