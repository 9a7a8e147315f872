/* portal.h - a prepared statement with its parameters, on its way to the client. */
#ifndef QUERY_PORTAL_H
#define QUERY_PORTAL_H

#include "query/peer.h"
#include "query/prepared.h"

typedef struct Portal {
    char *name;
    Prepared *prepared; /* holds a reference */
    Arena *arena;
    Buf text; /* for DuckDB; empty for utility statements */
    DialectMap map;
    int format_count;
    int16_t *formats; /* of the columns, as in Bind */
    Cursor *cursor;   /* NULL: not opened yet */
    bool started;
    bool done;
    int column_count;
    WireColumn *columns;
    uint32_t *elements; /* element_oid() of the columns */
    uint64_t rows;      /* sent by the last portal_run() */
} Portal;

typedef struct PortalMake {
    Str name;
    Prepared *prepared;
    const WireBind *bind; /* NULL: no parameters, all columns as text */
} PortalMake;

bool portal_new(Engine *engine, const PortalMake *make, Portal **out_portal,
                Error *err) WARN_UNUSED;
void portal_free(Portal *portal); /* NULL is fine */
void portal_freep(Portal **portal);

/* Plan it; portal->columns are known then. Queries only. */
bool portal_open(Portal *portal, Engine *engine, Error *err) WARN_UNUSED;
/* Send rows_max more rows, 0: all. portal->done tells whether that was all. */
bool portal_run(Portal *portal, Engine *engine, Peer *peer, int32_t rows_max,
                Error *err) WARN_UNUSED;
/* The columns with the formats that Bind asked for, as RowDescription wants them. */
const WireColumn *portal_columns(Portal *portal, int *out_count);

#endif
