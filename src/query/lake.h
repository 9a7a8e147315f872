/* lake.h - the tables of a warehouse as views in a Duck, all of one epoch.
 *
 *     catalog -> metadata -> manifests -> data files, deleted rows -> view
 *
 * An epoch here is a state of all tables up to the position that the pipeline says is committed in
 * every one of them; so no statement sees one table ahead of another. A refresh reads only tables
 * whose metadata changed and swaps all their views in one transaction of DuckDB: whoever has one
 * open goes on with the old views, and with the old sets of deleted rows, which are kept while
 * somebody may ask for them (lake_pin).
 *
 * A table without rows of that moment, because its first copy is not complete, is known with its
 * columns and cannot be read.
 *
 * Names are as in Postgres. DuckDB does not tell case apart: tables whose names differ in nothing
 * else are left out: of a statement it is not known whether a name was quoted, so whichever of them
 * were shown would be the wrong one for somebody. Tables that cannot be read rightly (equality
 * deletes, deletion vectors, files outside of the warehouse) are left out, never shown wrongly. */
#ifndef QUERY_LAKE_H
#define QUERY_LAKE_H

#include "config/config.h"
#include "query/guard.h"
#include "query/view_sql.h"
#include "store/store.h"

typedef struct Lake Lake;

typedef struct LakeOptions {
    Store *warehouse;         /* not owned */
    const char *catalog_type; /* "file" */
    const char *state;        /* local folder: cached files of remote stores, spilled data */
    int64_t cache_bytes_max;  /* of the former, as far as nobody reads them */
    int64_t memory_bytes_max; /* of all statements; 0: DuckDB's default */
    int64_t spill_bytes_max;  /* of what they may write below state; 0: nothing */
    Cancel *cancel;
} LakeOptions;

bool lake_open(const LakeOptions *options, Lake **out_lake, Error *err) WARN_UNUSED;
void lake_close(Lake *lake); /* NULL is fine; after all sessions */

/* Look for news. From one thread at a time. *out_changed: the tables differ now. */
bool lake_refresh(Lake *lake, bool *out_changed, Error *err) WARN_UNUSED;

/* A session that sees the tables. */
bool lake_connect(Lake *lake, DuckSession **out_session, Error *err) WARN_UNUSED;

/* From lake_pin() to lake_unpin() every state that is current in between can be read. */
uint64_t lake_pin(Lake *lake);
void lake_unpin(Lake *lake, uint64_t pin);

/* Case does not count. */
TableStanding lake_find(Lake *lake, Arena *arena, Str space, Str name, Str *out_reason);
/* The table's numbers that are shown as text. */
void lake_text_numbers(Lake *lake, Arena *arena, Str space, Str name, TextNumbers *out_numbers);
bool lake_has_space(Lake *lake, Str space);

typedef struct LakeStats {
    uint64_t epoch; /* counts changes */
    size_t tables;
    size_t left_out;
    size_t retried;        /* of these: what they lack may come back by itself */
    uint64_t cached_bytes; /* fetched from a remote store */
} LakeStats;

LakeStats lake_stats(Lake *lake);

#endif
