/* cast.h - another type for a column in the lake than the one it would have: a closed matrix.
 *
 *     from                                   to
 *     anything                               string: its Postgres text
 *     smallint, integer                      long, double, decimal(p,s)
 *     bigint                                 decimal(p,s)
 *     real                                   double
 *     numeric, whatever its precision        decimal(p,s)
 *     time                                   time
 *     an array                               json: of whatever shape each value is
 *
 * None of them rounds: a value that its column cannot hold exactly is a reject, as everywhere. */
#ifndef MODEL_CAST_H
#define MODEL_CAST_H

#include "base/error.h"
#include "model/type.h"

/* One entry of the setting tables.PATTERN.columns. */
typedef struct CastRule {
    Str column;
    const Type *type;
    Str text;          /* as it was written */
    const char *place; /* "walberg.yaml:7:30: tables.public.orders.columns.price.cast" */
} CastRule;

/* "string", "long", "double", "decimal(12,4)", "time", "json", and Postgres' names for them. The
 * message is about the text alone. */
bool cast_parse(Arena *arena, Str text, const Type **out_type, Error *err) WARN_UNUSED;

/* What a column of this Postgres type, which would arrive as `from`, is when it is cast to `to`;
 * NULL: that is not in the matrix. */
const Type *cast_apply(Arena *arena, const PgType *pg, const Type *from, const Type *to);
/* "string or decimal(p,s)": what it may arrive as, for messages. */
const char *cast_choices(const PgType *pg, const Type *from);

#endif
