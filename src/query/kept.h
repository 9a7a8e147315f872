/* kept.h - the statements and portals that a client has, by name; sorted, so that finding one of
 * many is cheap. */
#ifndef QUERY_KEPT_H
#define QUERY_KEPT_H

#include "query/portal.h"

enum { KEPT_MAX = 10000 }; /* of each */

typedef struct Kept {
    Buf statements; /* KeptEntry */
    Buf portals;    /* likewise */
} Kept;

void kept_done(Kept *kept);

/* NULL: there is none of that name. */
Prepared *kept_statement(const Kept *kept, Str name);
Portal *kept_portal(const Kept *kept, Str name);

/* Takes ownership; false, and nothing is taken, when there are too many. The name must be free. */
bool kept_add_statement(Kept *kept, Prepared *prepared) WARN_UNUSED;
bool kept_add_portal(Kept *kept, Portal *portal) WARN_UNUSED;

/* The portals made of a statement go with it ("Close"), or stay when another one takes its name.
 */
void kept_drop_statement(Kept *kept, Prepared *prepared);
void kept_forget_statement(Kept *kept, Prepared *prepared);
void kept_drop_portal(Kept *kept, Portal *portal);
void kept_drop_portals(Kept *kept);
void kept_drop_all(Kept *kept);

#endif
