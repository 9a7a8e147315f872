/* session.h - SQL on a Duck for the query server: one connection per client.
 *
 *     session -> prepare -> execute -> chunks of rows -> Postgres' text or binary forms
 *
 * Results stream: a chunk at a time is in memory, and the next statement on the same session ends
 * the one before.
 *
 * A session and what comes from it belong to one thread; only duck_session_interrupt() may be
 * called from another. After a failure duck_session_failure() tells what the Error has no room
 * for: the class, the name that was missing, the place in the query. */
#ifndef DUCK_SESSION_H
#define DUCK_SESSION_H

#include "base/arena.h"
#include "duck/duck.h"

typedef enum DuckKind {
    DUCK_OTHER, /* no form of its own here: cast it in SQL */
    DUCK_BOOL,
    DUCK_INT8,
    DUCK_INT16,
    DUCK_INT32,
    DUCK_INT64,
    DUCK_INT128,
    DUCK_UINT8,
    DUCK_UINT16,
    DUCK_UINT32,
    DUCK_UINT64,
    DUCK_UINT128,
    DUCK_FLOAT32,
    DUCK_FLOAT64,
    DUCK_DECIMAL,
    DUCK_TEXT,
    DUCK_JSON,
    DUCK_BLOB,
    DUCK_DATE,
    DUCK_TIME,
    DUCK_TIMETZ,
    DUCK_TIMESTAMP, /* microseconds */
    DUCK_TIMESTAMP_S,
    DUCK_TIMESTAMP_MS,
    DUCK_TIMESTAMP_NS,
    DUCK_TIMESTAMPTZ,
    DUCK_INTERVAL,
    DUCK_UUID,
    DUCK_LIST,
    DUCK_ARRAY,
    DUCK_STRUCT,
    DUCK_MAP,
} DuckKind;

enum { DUCK_KIND_COUNT = DUCK_MAP + 1 };

typedef struct DuckType DuckType;

struct DuckType {
    DuckKind kind;
    int precision; /* DECIMAL */
    int scale;
    uint64_t size;   /* ARRAY: elements */
    int child_count; /* LIST, ARRAY 1; MAP 2; STRUCT n */
    const DuckType *children;
    Str *names; /* STRUCT: of the members */
};

typedef struct DuckColumn {
    Str name;
    DuckType type;
} DuckColumn;

typedef struct DuckSession DuckSession;
typedef struct DuckStatement DuckStatement;
typedef struct DuckRows DuckRows;

/* What kind of failure it was, as far as a client may be told. */
typedef enum DuckErrorClass {
    DUCK_ERROR_INTERNAL,
    DUCK_ERROR_SYNTAX,
    DUCK_ERROR_CATALOG, /* something named does not exist; see DuckFailure.missing */
    DUCK_ERROR_BINDER,  /* names and types do not fit */
    DUCK_ERROR_CONVERSION,
    DUCK_ERROR_OUT_OF_RANGE,
    DUCK_ERROR_INVALID_INPUT,
    DUCK_ERROR_DIVISION,
    DUCK_ERROR_MEMORY,
    DUCK_ERROR_IO,
    DUCK_ERROR_PERMISSION,
    DUCK_ERROR_UNSUPPORTED,
    DUCK_ERROR_TRANSACTION,
    DUCK_ERROR_INTERRUPTED,
} DuckErrorClass;

/* Valid until the next call on the session. */
typedef struct DuckFailure {
    DuckErrorClass class;
    Str message;
    Str subtype;      /* "MISSING_ENTRY", "COLUMN_NOT_FOUND", ...; may be empty */
    Str missing;      /* what kind of thing: "Table", "Scalar Function", ...; may be empty */
    Str name;         /* which; may be empty */
    int64_t position; /* byte offset in the statement; -1: not known */
} DuckFailure;

/* Prepare a Duck to serve strangers: Postgres' meaning where a setting gives it, no files but those
 * below the directories, no network, no extensions, settings locked. Once per Duck, first of all.
 */
bool duck_lockdown(Duck *duck, const char *const *directories, size_t count,
                   Error *err) WARN_UNUSED;

bool duck_session_open(Duck *duck, DuckSession **out_session, Error *err) WARN_UNUSED;
void duck_session_close(DuckSession *session); /* NULL is fine; after its statements and rows */
/* Stop what runs, soon; nothing when nothing runs. From any thread. Nothing else makes a statement
 * fail as DUCK_ERROR_INTERRUPTED. */
void duck_session_interrupt(DuckSession *session);
const DuckFailure *duck_session_failure(const DuckSession *session);

/* One or more statements whose result does not matter. */
bool duck_session_run(DuckSession *session, const char *sql, Error *err) WARN_UNUSED;
/* The one value, as text, of a query with one text parameter; STR_NULL for NULL or no row. */
bool duck_session_ask(DuckSession *session, Arena *arena, const char *sql, Str parameter,
                      Str *out_answer, Error *err) WARN_UNUSED;

bool duck_prepare(DuckSession *session, const char *sql, DuckStatement **out_statement,
                  Error *err) WARN_UNUSED;
void duck_statement_free(DuckStatement *statement); /* NULL is fine; after its rows */
/* SELECT and EXPLAIN. */
bool duck_statement_reads(const DuckStatement *statement);
int duck_statement_column_count(const DuckStatement *statement);
const DuckColumn *duck_statement_columns(const DuckStatement *statement);
int duck_statement_parameter_count(const DuckStatement *statement);
/* DUCK_OTHER when nothing in the statement tells. i counts from 0. */
DuckKind duck_statement_parameter(const DuckStatement *statement, int i);

bool duck_execute(DuckStatement *statement, DuckRows **out_rows, Error *err) WARN_UNUSED;
/* The next chunk; *out_count == 0: that was all. */
bool duck_rows_next(DuckRows *rows, size_t *out_count, Error *err) WARN_UNUSED;
void duck_rows_free(DuckRows *rows); /* NULL is fine */
/* What came out, which a new state of the catalog may have made differ from what was described. */
int duck_rows_column_count(const DuckRows *rows);
const DuckColumn *duck_rows_columns(const DuckRows *rows);

/* Values of the present chunk. */
bool duck_rows_is_null(const DuckRows *rows, int column, size_t row);
/* Append Postgres' text form (DateStyle ISO, IntervalStyle postgres, bytea_output hex, UTC). */
void duck_rows_text(const DuckRows *rows, int column, size_t row, Buf *out);

/* Whether there is a binary form of ours. */
bool duck_has_binary(const DuckType *type);
/* Append Postgres' binary form (what the type's send function makes). element_oid: of the innermost
 * elements of a list, else unused. */
void duck_rows_binary(const DuckRows *rows, int column, size_t row, uint32_t element_oid, Buf *out);

/* --- deleted rows --------------------------------------------------------------------------
 *
 * Views over data files with deletes say
 *     WHERE walberg_live(<set>, file_index, file_row_number)
 * set being the number under which a DeadRows was published. A lookup table shared by all
 * connections, so that the lists exist once. */

typedef struct DeadRows DeadRows;   /* which rows of a list of files are deleted */
typedef struct DeadTable DeadTable; /* number -> DeadRows */

DeadRows *dead_rows_new(size_t file_count);
void dead_rows_free(DeadRows *dead); /* NULL is fine */
void dead_rows_add(DeadRows *dead, size_t file, uint32_t row);
/* After the last row was added; a row may have been added twice. */
void dead_rows_seal(DeadRows *dead);
uint64_t dead_rows_count(const DeadRows *dead, size_t file);
bool dead_rows_has(const DeadRows *dead, size_t file, uint32_t row); /* sealed */

DeadTable *dead_table_new(void);
void dead_table_free(DeadTable *table); /* after the Duck is closed; NULL is fine */
/* Takes ownership of sealed rows; the number is never reused. */
uint64_t dead_table_publish(DeadTable *table, DeadRows *dead);
/* No statement that starts from now on asks for it. */
void dead_table_retire(DeadTable *table, uint64_t set);
/* Make walberg_live() known. Before duck_lockdown(). The table must outlive the Duck. */
bool duck_register_live(Duck *duck, DeadTable *table, Error *err) WARN_UNUSED;

#endif
