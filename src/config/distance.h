/* distance.h - how far apart two names are, for "did you mean". */
#ifndef CONFIG_DISTANCE_H
#define CONFIG_DISTANCE_H

#include "base/str.h"

/* Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment), letters
 * compared without case and '-' as '_'. SIZE_MAX for names too long to be compared. */
size_t distance_between(Str a, Str b);

/* Up to this distance a name of this length counts as a slip of the fingers. */
size_t distance_limit(Str name);

#endif
