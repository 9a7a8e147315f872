/* prepared.h - a statement of a client, parsed and described: what Parse makes. */
#ifndef QUERY_PREPARED_H
#define QUERY_PREPARED_H

#include "pg/wire.h"
#include "query/dialect.h"
#include "query/engine.h"
#include "query/utility.h"

/* Shared by the portals that were made of it: it lives as long as one of them. */
typedef struct Prepared {
    int references;
    char *name; /* empty: the unnamed one */
    Arena *arena;
    Str sql; /* one statement, as the client wrote it; NUL-terminated */
    Utility utility;
    int parameter_count;
    uint32_t *types; /* what the client said, or what the statement tells */
    bool *stated;    /* by the client */
    bool described;
    bool typed_nulls; /* types that were guessed fit for NULLs */
    int column_count; /* 0: none, NoData */
    WireColumn *columns;
} Prepared;

typedef struct PreparedMake {
    Str name;
    Str sql;
    int type_count;
    const uint32_t *types;
    bool describe; /* else columns and parameter types are left open */
} PreparedMake;

/* One reference is the caller's. Failures are in engine->failure, places counted from the start of
 * sql. */
bool prepared_new(Engine *engine, const PreparedMake *make, Prepared **out_prepared,
                  Error *err) WARN_UNUSED;
Prepared *prepared_ref(Prepared *prepared);
void prepared_unref(Prepared *prepared); /* NULL is fine */
void prepared_unrefp(Prepared **prepared);

/* The statement for DuckDB, with the parameters in it. */
bool prepared_text(const Prepared *prepared, const Parameter *parameters, Buf *out, DialectMap *map,
                   QueryFailure *failure, Error *err) WARN_UNUSED;
/* Open it; a failure's place becomes one in prepared->sql. */
bool prepared_open(const Prepared *prepared, Engine *engine, const Buf *text, const DialectMap *map,
                   Cursor **out_cursor, Error *err) WARN_UNUSED;

/* Columns of a cursor in text format, in the arena. */
bool cursor_wire_columns(const Prepared *prepared, const Cursor *cursor, Arena *arena,
                         WireColumn **out_columns, int *out_count, Error *err) WARN_UNUSED;

#endif
