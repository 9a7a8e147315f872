/* engine.h - the part of a client's session that runs queries: guard, connections, cursors.
 *
 * A result is streamed, and while it is, its connection can run nothing else. A client may leave a
 * portal half read and go on with another statement; so an engine has several connections
 * ("lanes"), made when needed. In a transaction all of them are in one. */
#ifndef QUERY_ENGINE_H
#define QUERY_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "query/guard.h"
#include "query/lake.h"

enum { ENGINE_LANES_MAX = 8, ENGINE_PATH_MAX = 16 };

typedef struct Lane {
    DuckSession *session; /* NULL: not opened yet */
    bool busy;
    bool in_transaction;
    unsigned path_version; /* of the search path that it has */
} Lane;

typedef struct Engine {
    GuardTables tables; /* first member: the guard calls back */
    Lake *lake;
    DuckSession *parser;
    Lane lanes[ENGINE_LANES_MAX];
    bool in_transaction;
    bool pinned;
    uint64_t pin;
    unsigned path_version;
    int path_count; /* search_path */
    Str path[ENGINE_PATH_MAX];
    Arena *path_arena;
    QueryFailure failure; /* of the last call that failed */
    Buf found;            /* FoundNumbers, of the statement that is planned */
    Arena *notice_arena;
    Buf notices; /* EngineNotice, to be told */
    Buf told;    /* Hash128 of each that was a notice */

    /* What other threads touch. */
    pthread_mutex_t lock;
    DuckSession *running; /* under lock */
    atomic_bool cancel_wanted;
    atomic_bool timed_out;
    _Atomic int64_t deadline_ms; /* clock_ms(), 0: none */
} Engine;

bool engine_init(Engine *engine, Lake *lake, Error *err) WARN_UNUSED;
void engine_done(Engine *engine);

/* All queries until engine_end() see one state of the tables. */
void engine_begin(Engine *engine);
/* Ends the transaction; cursors must be closed. */
void engine_end(Engine *engine);
/* Between statements outside of a transaction: old states are not needed any more. */
void engine_rest(Engine *engine);

/* The schemas in which names without one are looked for. */
void engine_set_path(Engine *engine, Str search_path);

/* Around everything that a client may cancel. timeout_ms 0: none. */
void engine_start_clock(Engine *engine, int64_t timeout_ms);
void engine_stop_clock(Engine *engine);
/* From any thread. */
void engine_interrupt(Engine *engine);
void engine_tick(Engine *engine, int64_t now_ms);

/* What a client should know of the columns that it reads: that numbers are text there. */
typedef struct EngineNotice {
    Str message;
    Str detail;
    Str hint;
} EngineNotice;

/* The notices of the statements that were planned since the last call, each once in the life of the
 * engine; until the next statement is planned. */
const EngineNotice *engine_take_notices(Engine *engine, size_t *out_count);

/* A query that was planned, and its rows when it was started. */
typedef struct Cursor {
    Engine *engine;
    Lane *lane;
    Arena *arena; /* of guarded */
    Guarded guarded;
    DuckStatement *statement;
    DuckRows *rows;    /* NULL: not started */
    size_t chunk_rows; /* in the present chunk */
    size_t chunk_row;  /* the next one of them */
} Cursor;

typedef struct CursorOpen {
    const char *sql; /* the whole statement, in DuckDB's dialect */
    Str guarded;     /* the part of it that is the query: all, or what follows EXPLAIN */
} CursorOpen;

bool cursor_open(Engine *engine, const CursorOpen *open, Cursor **out_cursor,
                 Error *err) WARN_UNUSED;
bool cursor_start(Cursor *cursor, Error *err) WARN_UNUSED;
/* Make sure that chunk_row < chunk_rows; *out_end: there are no more rows. */
bool cursor_fill(Cursor *cursor, bool *out_end, Error *err) WARN_UNUSED;
void cursor_close(Cursor *cursor); /* NULL is fine */

/* Name of a column as Postgres would give it. */
Str cursor_column_name(const Cursor *cursor, int column);

#endif
