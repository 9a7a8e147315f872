#include "duck/session.h"

#include <pthread.h>

#include <jansson.h>

#include "duck/internal.h"
#include "duck/value.h"

enum { TYPE_NESTING_MAX = 32, REASON_RUNS_MAX = 20 };

struct DuckSession {
    duckdb_connection connection;
    pthread_mutex_t interrupt_lock;
    bool interrupt_asked; /* since the present statement began */
    Arena *failure_arena; /* of failure */
    DuckFailure failure;
};

struct DuckStatement {
    DuckSession *session;
    duckdb_prepared_statement prepared;
    Arena *arena; /* of columns */
    int column_count;
    DuckColumn *columns;
};

struct DuckRows {
    DuckStatement *statement;
    duckdb_result result;
    duckdb_data_chunk chunk;
    Arena *arena; /* of columns */
    int column_count;
    DuckColumn *columns;
    ValueVector *vectors; /* of the present chunk, one per column */
};

/* --- settings ------------------------------------------------------------------------------ */

bool
duck_lockdown(Duck *duck, const char *const *directories, size_t count, Error *err)
{
    AUTO_CONNECTION duckdb_connection connection = NULL;
    AUTO_BUF Buf sql = {0};

    TRY(duck_connect(duck, &connection, err));
    /* Postgres' meaning of 1/2 and of ORDER BY with NULLs; zone-dependent functions in UTC, which
     * is also how values are shown; x -> y is JSON's, not a lambda. Data files never change. */
    buf_cstr(&sql, "SET GLOBAL integer_division = true;"
                   "SET GLOBAL default_null_order = 'nulls_last_on_asc_first_on_desc';"
                   "SET GLOBAL TimeZone = 'UTC';"
                   "SET GLOBAL lambda_syntax = 'DISABLE_SINGLE_ARROW';"
                   "SET GLOBAL errors_as_json = true;"
                   "SET GLOBAL preserve_identifier_case = false;"
                   "SET GLOBAL parquet_metadata_cache = true;"
                   "SET GLOBAL validate_external_file_cache = 'NO_VALIDATION';"
                   "SET GLOBAL allowed_directories = [");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(&sql, ',');
        duck_quote_literal(&sql, str_of(directories[i]));
    }
    buf_cstr(&sql, "];"
                   "SET GLOBAL enable_external_access = false;"
                   "SET GLOBAL autoinstall_known_extensions = false;"
                   "SET GLOBAL autoload_known_extensions = false;"
                   "SET GLOBAL allow_community_extensions = false;"
                   "SET GLOBAL lock_configuration = true;");
    return duck_run(connection, buf_text(&sql), err);
}

/* --- failures ------------------------------------------------------------------------------ */

static DuckErrorClass
class_of_type(Str type)
{
    static const struct {
        const char *type; /* as DuckDB's ExceptionTypeToString spells it */
        DuckErrorClass class;
    } classes[] = {
        {"Parser", DUCK_ERROR_SYNTAX},
        {"Syntax", DUCK_ERROR_SYNTAX},
        {"Catalog", DUCK_ERROR_CATALOG},
        {"Binder", DUCK_ERROR_BINDER},
        {"Mismatch Type", DUCK_ERROR_BINDER},
        {"Conversion", DUCK_ERROR_CONVERSION},
        {"Out of Range", DUCK_ERROR_OUT_OF_RANGE},
        {"Decimal", DUCK_ERROR_OUT_OF_RANGE},
        {"Invalid Input", DUCK_ERROR_INVALID_INPUT},
        {"Divide by Zero", DUCK_ERROR_DIVISION},
        {"Out of Memory", DUCK_ERROR_MEMORY},
        {"IO", DUCK_ERROR_IO},
        {"Permission", DUCK_ERROR_PERMISSION},
        {"Not implemented", DUCK_ERROR_UNSUPPORTED},
        {"Missing Extension", DUCK_ERROR_UNSUPPORTED},
        {"Invalid Configuration", DUCK_ERROR_PERMISSION},
        {"TransactionContext", DUCK_ERROR_TRANSACTION},
        {"INTERRUPT", DUCK_ERROR_INTERRUPTED},
    };

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (str_eqc(type, classes[i].type))
            return classes[i].class;
    return DUCK_ERROR_INTERNAL;
}

static Str
member(Arena *arena, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? (Str){.ptr = "", .len = 0} : arena_str(arena, str_of(text));
}

/* "Binder Error: {...}" or "{...}" (errors_as_json), or plain "Binder Error: text". */
static DuckFailure
parse_failure(Arena *arena, const char *text)
{
    const char *brace = strchr(text, '{');
    const char *colon = strstr(text, " Error: ");
    json_t *json = brace == NULL ? NULL : json_loads(brace, JSON_DISABLE_EOF_CHECK, NULL);
    DuckFailure failure = {.position = -1, .subtype = STR(""), .missing = STR(""), .name = STR("")};

    if (json != NULL && json_object_get(json, "exception_type") != NULL) {
        Str position = member(arena, json, "position");

        failure.class = class_of_type(member(arena, json, "exception_type"));
        failure.message = member(arena, json, "exception_message");
        failure.subtype = member(arena, json, "error_subtype");
        failure.missing = member(arena, json, "type");
        failure.name = member(arena, json, "name");
        if (position.len > 0)
            failure.position = strtoll(position.ptr, NULL, 10);
    } else if (colon != NULL && colon - text < 40) {
        failure.class = class_of_type((Str){.ptr = text, .len = (size_t) (colon - text)});
        failure.message = arena_str(arena, str_of(colon + strlen(" Error: ")));
    } else {
        failure.message = arena_str(arena, str_of(text));
    }
    json_decref(json);
    return failure;
}

static ErrKind
kind_of_class(DuckErrorClass class)
{
    switch (class) {
    case DUCK_ERROR_INTERRUPTED:
        return ERR_CANCELED;
    case DUCK_ERROR_INTERNAL:
        return ERR_BUG;
    case DUCK_ERROR_IO:
    case DUCK_ERROR_MEMORY:
        return ERR_TRANSIENT;
    case DUCK_ERROR_SYNTAX:
    case DUCK_ERROR_CATALOG:
    case DUCK_ERROR_BINDER:
    case DUCK_ERROR_CONVERSION:
    case DUCK_ERROR_OUT_OF_RANGE:
    case DUCK_ERROR_INVALID_INPUT:
    case DUCK_ERROR_DIVISION:
    case DUCK_ERROR_PERMISSION:
    case DUCK_ERROR_UNSUPPORTED:
    case DUCK_ERROR_TRANSACTION:
        return ERR_INPUT;
    }
    return ERR_BUG;
}

static bool
failed(DuckSession *session, const char *text, Error *err)
{
    arena_reset(session->failure_arena);
    session->failure =
        parse_failure(session->failure_arena, text == NULL ? "failed without a reason" : text);
    return FAIL(err, kind_of_class(session->failure.class), "%.*s",
                STR_ARG(session->failure.message));
}

const DuckFailure *
duck_session_failure(const DuckSession *session)
{
    return &session->failure;
}

/* --- sessions ------------------------------------------------------------------------------ */

bool
duck_session_open(Duck *duck, DuckSession **out_session, Error *err)
{
    duckdb_connection connection = NULL;

    TRY(duck_connect(duck, &connection, err));

    DuckSession *session = xcalloc(1, sizeof *session);

    session->connection = connection;
    pthread_mutex_init(&session->interrupt_lock, NULL);
    session->failure_arena = arena_new();
    session->failure = (DuckFailure){.position = -1, .message = STR("")};
    *out_session = session;
    return true;
}

void
duck_session_close(DuckSession *session)
{
    if (session == NULL)
        return;
    duckdb_disconnect(&session->connection);
    pthread_mutex_destroy(&session->interrupt_lock);
    arena_free(session->failure_arena);
    free(session);
}

void
duck_session_interrupt(DuckSession *session)
{
    pthread_mutex_lock(&session->interrupt_lock);
    session->interrupt_asked = true;
    duckdb_interrupt(session->connection);
    pthread_mutex_unlock(&session->interrupt_lock);
}

/* DuckDB forgets earlier interruptions when a statement begins, and so do we. */
static void
forget_interrupt(DuckSession *session)
{
    pthread_mutex_lock(&session->interrupt_lock);
    session->interrupt_asked = false;
    pthread_mutex_unlock(&session->interrupt_lock);
}

static bool
interrupt_asked(DuckSession *session)
{
    pthread_mutex_lock(&session->interrupt_lock);

    bool asked = session->interrupt_asked;

    pthread_mutex_unlock(&session->interrupt_lock);
    return asked;
}

bool
duck_session_run(DuckSession *session, const char *sql, Error *err)
{
    AUTO_RESULT duckdb_result result = {0};

    if (duckdb_query(session->connection, sql, &result) != DuckDBSuccess)
        return failed(session, duckdb_result_error(&result), err);
    return true;
}

bool
duck_session_ask(DuckSession *session, Arena *arena, const char *sql, Str parameter,
                 Str *out_answer, Error *err)
{
    AUTO_PREPARED duckdb_prepared_statement prepared = NULL;
    AUTO_RESULT duckdb_result result = {0};

    if (duckdb_prepare(session->connection, sql, &prepared) != DuckDBSuccess)
        return failed(session, duckdb_prepare_error(prepared), err);
    if (duckdb_bind_varchar_length(prepared, 1, parameter.ptr, parameter.len) != DuckDBSuccess)
        return failed(session, "cannot bind", err);
    if (duckdb_execute_prepared(prepared, &result) != DuckDBSuccess)
        return failed(session, duckdb_result_error(&result), err);

    AUTO_CHUNK duckdb_data_chunk chunk = duckdb_fetch_chunk(result);

    *out_answer = STR_NULL;
    if (chunk == NULL || duckdb_data_chunk_get_size(chunk) == 0)
        return true;

    static const DuckType text = {.kind = DUCK_TEXT};
    ValueVector values = value_vector(&text, duckdb_data_chunk_get_vector(chunk, 0));

    if (!value_is_null(&values, 0))
        *out_answer = arena_str(arena, value_bytes(&values, 0));
    return true;
}

/* --- types --------------------------------------------------------------------------------- */

static DuckKind
kind_of_id(duckdb_type id)
{
    static const DuckKind kinds[] = {
        [DUCKDB_TYPE_BOOLEAN] = DUCK_BOOL,
        [DUCKDB_TYPE_TINYINT] = DUCK_INT8,
        [DUCKDB_TYPE_SMALLINT] = DUCK_INT16,
        [DUCKDB_TYPE_INTEGER] = DUCK_INT32,
        [DUCKDB_TYPE_BIGINT] = DUCK_INT64,
        [DUCKDB_TYPE_HUGEINT] = DUCK_INT128,
        [DUCKDB_TYPE_UTINYINT] = DUCK_UINT8,
        [DUCKDB_TYPE_USMALLINT] = DUCK_UINT16,
        [DUCKDB_TYPE_UINTEGER] = DUCK_UINT32,
        [DUCKDB_TYPE_UBIGINT] = DUCK_UINT64,
        [DUCKDB_TYPE_UHUGEINT] = DUCK_UINT128,
        [DUCKDB_TYPE_FLOAT] = DUCK_FLOAT32,
        [DUCKDB_TYPE_DOUBLE] = DUCK_FLOAT64,
        [DUCKDB_TYPE_DECIMAL] = DUCK_DECIMAL,
        [DUCKDB_TYPE_VARCHAR] = DUCK_TEXT,
        [DUCKDB_TYPE_BLOB] = DUCK_BLOB,
        [DUCKDB_TYPE_DATE] = DUCK_DATE,
        [DUCKDB_TYPE_TIME] = DUCK_TIME,
        [DUCKDB_TYPE_TIME_TZ] = DUCK_TIMETZ,
        [DUCKDB_TYPE_TIMESTAMP] = DUCK_TIMESTAMP,
        [DUCKDB_TYPE_TIMESTAMP_S] = DUCK_TIMESTAMP_S,
        [DUCKDB_TYPE_TIMESTAMP_MS] = DUCK_TIMESTAMP_MS,
        [DUCKDB_TYPE_TIMESTAMP_NS] = DUCK_TIMESTAMP_NS,
        [DUCKDB_TYPE_TIMESTAMP_TZ] = DUCK_TIMESTAMPTZ,
        [DUCKDB_TYPE_INTERVAL] = DUCK_INTERVAL,
        [DUCKDB_TYPE_UUID] = DUCK_UUID,
        [DUCKDB_TYPE_LIST] = DUCK_LIST,
        [DUCKDB_TYPE_ARRAY] = DUCK_ARRAY,
        [DUCKDB_TYPE_STRUCT] = DUCK_STRUCT,
        [DUCKDB_TYPE_MAP] = DUCK_MAP,
        [DUCKDB_TYPE_SQLNULL] = DUCK_INT32, /* a column of nothing but NULLs */
    };

    return (size_t) id < sizeof kinds / sizeof kinds[0] ? kinds[id] : DUCK_OTHER;
}

static duckdb_logical_type
child_type(duckdb_logical_type logical, DuckKind kind, int i)
{
    switch ((int) kind) {
    case DUCK_LIST:
        return duckdb_list_type_child_type(logical);
    case DUCK_ARRAY:
        return duckdb_array_type_child_type(logical);
    case DUCK_MAP:
        return i == 0 ? duckdb_map_type_key_type(logical) : duckdb_map_type_value_type(logical);
    default:
        return duckdb_struct_type_child_type(logical, (idx_t) i);
    }
}

static bool
is_json(duckdb_logical_type logical)
{
    char *alias = duckdb_logical_type_get_alias(logical);
    bool json = alias != NULL && strcmp(alias, "JSON") == 0;

    duckdb_free(alias);
    return json;
}

static DuckType type_of(Arena *arena, duckdb_logical_type logical, int depth);

/* The types below; when one of them has no form, neither has the whole. */
static void
add_children(Arena *arena, DuckType *type, duckdb_logical_type logical, int depth)
{
    DuckType *children = ARENA_ARRAY(arena, DuckType, (size_t) type->child_count);

    type->children = children;
    type->names = ARENA_ARRAY(arena, Str, (size_t) type->child_count);
    for (int i = 0; i < type->child_count; i++) {
        AUTO_TYPE duckdb_logical_type child = child_type(logical, type->kind, i);

        children[i] = type_of(arena, child, depth + 1);
        if (children[i].kind == DUCK_OTHER)
            type->kind = DUCK_OTHER;
        if (type->kind == DUCK_STRUCT) {
            char *name = duckdb_struct_type_child_name(logical, (idx_t) i);

            type->names[i] = arena_str(arena, str_of(name));
            duckdb_free(name);
        }
    }
}

static DuckType
type_of(Arena *arena, duckdb_logical_type logical, int depth)
{
    DuckType type = {0};

    type.kind = depth > TYPE_NESTING_MAX ? DUCK_OTHER : kind_of_id(duckdb_get_type_id(logical));
    if (type.kind == DUCK_TEXT && is_json(logical))
        type.kind = DUCK_JSON;
    if (type.kind == DUCK_DECIMAL) {
        type.precision = duckdb_decimal_width(logical);
        type.scale = duckdb_decimal_scale(logical);
    }
    if (type.kind == DUCK_ARRAY)
        type.size = duckdb_array_type_array_size(logical);
    if (type.kind == DUCK_LIST || type.kind == DUCK_ARRAY)
        type.child_count = 1;
    else if (type.kind == DUCK_MAP)
        type.child_count = 2;
    else if (type.kind == DUCK_STRUCT)
        type.child_count = (int) duckdb_struct_type_child_count(logical);
    if (type.child_count > 0)
        add_children(arena, &type, logical, depth);
    return type;
}

/* --- statements ---------------------------------------------------------------------------- */

static void
describe(DuckStatement *statement)
{
    idx_t count = duckdb_prepared_statement_column_count(statement->prepared);

    statement->column_count = (int) count;
    statement->columns = ARENA_ARRAY(statement->arena, DuckColumn, count);
    for (idx_t i = 0; i < count; i++) {
        const char *name = duckdb_prepared_statement_column_name(statement->prepared, i);
        AUTO_TYPE duckdb_logical_type logical =
            duckdb_prepared_statement_column_logical_type(statement->prepared, i);

        statement->columns[i].name = arena_str(statement->arena, str_of(name));
        statement->columns[i].type = type_of(statement->arena, logical, 0);
        duckdb_free((void *) (uintptr_t) name);
    }
}

bool
duck_prepare(DuckSession *session, const char *sql, DuckStatement **out_statement, Error *err)
{
    AUTO_PREPARED duckdb_prepared_statement prepared = NULL;

    if (duckdb_prepare(session->connection, sql, &prepared) != DuckDBSuccess)
        return failed(session, duckdb_prepare_error(prepared), err);

    DuckStatement *statement = xcalloc(1, sizeof *statement);

    statement->session = session;
    statement->prepared = prepared;
    statement->arena = arena_new();
    prepared = NULL;
    describe(statement);
    *out_statement = statement;
    return true;
}

void
duck_statement_free(DuckStatement *statement)
{
    if (statement == NULL)
        return;
    duckdb_destroy_prepare(&statement->prepared);
    arena_free(statement->arena);
    free(statement);
}

bool
duck_statement_reads(const DuckStatement *statement)
{
    duckdb_statement_type type = duckdb_prepared_statement_type(statement->prepared);

    return type == DUCKDB_STATEMENT_TYPE_SELECT || type == DUCKDB_STATEMENT_TYPE_EXPLAIN;
}

int
duck_statement_column_count(const DuckStatement *statement)
{
    return statement->column_count;
}

const DuckColumn *
duck_statement_columns(const DuckStatement *statement)
{
    return statement->columns;
}

int
duck_statement_parameter_count(const DuckStatement *statement)
{
    return (int) duckdb_nparams(statement->prepared);
}

DuckKind
duck_statement_parameter(const DuckStatement *statement, int i)
{
    return kind_of_id(duckdb_param_type(statement->prepared, (idx_t) i + 1));
}

/* --- reasons ------------------------------------------------------------------------------- */

/* Whether the statement runs to its end; its rows are let go. */
static bool
run_to_end(DuckStatement *statement, Error *err)
{
    AUTO_RESULT duckdb_result result = {0};
    bool more = duckdb_execute_prepared_streaming(statement->prepared, &result) == DuckDBSuccess;

    while (more) {
        AUTO_CHUNK duckdb_data_chunk chunk = duckdb_fetch_chunk(result);

        more = chunk != NULL;
    }

    const char *text = duckdb_result_error(&result);

    return text == NULL || failed(statement->session, text, err);
}

static bool
is_nobodys_interrupt(DuckSession *session)
{
    return session->failure.class == DUCK_ERROR_INTERRUPTED && !interrupt_asked(session);
}

/* A thread of DuckDB that fails interrupts the others, and who fetches may be told of the
 * interruption instead of the failure, which is gone then. The statement only reads: it is run
 * again until it says why. A transaction was ended by the failure, and is begun anew for whoever
 * ends it. */
static bool
find_reason(DuckStatement *statement, Error *err)
{
    DuckSession *session = statement->session;
    bool in_transaction = duck_run(session->connection, "ROLLBACK", &(Error){0});
    bool ended = false;

    for (int i = 0; i < REASON_RUNS_MAX && !ended && is_nobodys_interrupt(session); i++)
        ended = run_to_end(statement, err);
    if (in_transaction)
        (void) !duck_run(session->connection, "BEGIN TRANSACTION READ ONLY", &(Error){0});
    if (ended || is_nobodys_interrupt(session))
        return failed(session, "failed, and its reason was lost", err);
    return false;
}

static bool
failed_running(DuckStatement *statement, const char *text, Error *err)
{
    (void) failed(statement->session, text, err);
    return is_nobodys_interrupt(statement->session) && find_reason(statement, err);
}

/* --- rows ---------------------------------------------------------------------------------- */

static DuckRows *
rows_of(DuckStatement *statement, duckdb_result result)
{
    DuckRows *rows = xcalloc(1, sizeof *rows);
    idx_t count = duckdb_column_count(&result);

    rows->statement = statement;
    rows->result = result;
    rows->arena = arena_new();
    rows->column_count = (int) count;
    rows->columns = ARENA_ARRAY(rows->arena, DuckColumn, count);
    rows->vectors = ARENA_ARRAY(rows->arena, ValueVector, count);
    for (idx_t i = 0; i < count; i++) {
        AUTO_TYPE duckdb_logical_type logical = duckdb_column_logical_type(&result, i);

        rows->columns[i].name = arena_str(rows->arena, str_of(duckdb_column_name(&result, i)));
        rows->columns[i].type = type_of(rows->arena, logical, 0);
    }
    return rows;
}

bool
duck_execute(DuckStatement *statement, DuckRows **out_rows, Error *err)
{
    duckdb_result result = {0};

    forget_interrupt(statement->session);
    if (duckdb_execute_prepared_streaming(statement->prepared, &result) != DuckDBSuccess) {
        (void) !failed_running(statement, duckdb_result_error(&result), err);
        duckdb_destroy_result(&result);
        return false;
    }
    *out_rows = rows_of(statement, result);
    return true;
}

bool
duck_rows_next(DuckRows *rows, size_t *out_count, Error *err)
{
    duckdb_destroy_data_chunk(&rows->chunk);
    rows->chunk = duckdb_fetch_chunk(rows->result);
    if (rows->chunk == NULL) {
        const char *text = duckdb_result_error(&rows->result);

        if (text != NULL)
            return failed_running(rows->statement, text, err);
        *out_count = 0;
        return true;
    }
    for (int i = 0; i < rows->column_count; i++)
        rows->vectors[i] = value_vector(&rows->columns[i].type,
                                        duckdb_data_chunk_get_vector(rows->chunk, (idx_t) i));
    *out_count = duckdb_data_chunk_get_size(rows->chunk);
    return true;
}

void
duck_rows_free(DuckRows *rows)
{
    if (rows == NULL)
        return;
    duckdb_destroy_data_chunk(&rows->chunk);
    duckdb_destroy_result(&rows->result);
    arena_free(rows->arena);
    free(rows);
}

int
duck_rows_column_count(const DuckRows *rows)
{
    return rows->column_count;
}

const DuckColumn *
duck_rows_columns(const DuckRows *rows)
{
    return rows->columns;
}

bool
duck_rows_is_null(const DuckRows *rows, int column, size_t row)
{
    return value_is_null(&rows->vectors[column], row);
}

void
duck_rows_text(const DuckRows *rows, int column, size_t row, Buf *out)
{
    value_text(&rows->vectors[column], row, out);
}

void
duck_rows_binary(const DuckRows *rows, int column, size_t row, uint32_t element_oid, Buf *out)
{
    value_binary(&rows->vectors[column], row, element_oid, out);
}

bool
duck_has_binary(const DuckType *type)
{
    if (type->kind == DUCK_LIST)
        return type->children[0].child_count == 0 && type->children[0].kind != DUCK_OTHER;
    return type->child_count == 0 && type->kind != DUCK_OTHER;
}
