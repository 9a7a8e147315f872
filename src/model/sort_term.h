/* sort_term.h - one item of the setting tables.PATTERN.sort: what rows are ordered by, as the
 * setting spells it. Iceberg spec, "Sort Orders". */
#ifndef MODEL_SORT_TERM_H
#define MODEL_SORT_TERM_H

#include "model/transform.h"

typedef struct SortTerm {
    PartitionTerm by; /* a column, or a transform of one */
    bool descending;
    bool nulls_first;
    Str text; /* as it was written */
} SortTerm;

/* "created_at desc", "id", "day(at) desc nulls first", "\"odd name\" asc": what to order by as
 * partition_term_parse() takes it, then asc (default) or desc, then nulls first or nulls last, in
 * any case. Without the latter NULLs come first ascending and last descending, as with Iceberg's
 * Java API and Spark. The message is about the text alone. */
bool sort_term_parse(Arena *arena, Str text, SortTerm *out_term, Error *err) WARN_UNUSED;

#endif
