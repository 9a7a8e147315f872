#include "duck/internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/xalloc.h"

static bool
set_option(duckdb_config config, const char *name, const char *value, Error *err)
{
    if (duckdb_set_config(config, name, value) != DuckDBSuccess)
        return FAIL(err, ERR_BUG, "duckdb does not take the option %s = %s", name, value);
    return true;
}

static bool
set_options(duckdb_config config, const DuckOptions *options, Error *err)
{
    char number[32];

    /* Nothing is ever fetched from the network behind the user's back. */
    TRY(set_option(config, "autoinstall_known_extensions", "false", err));
    TRY(set_option(config, "autoload_known_extensions", "false", err));
    TRY(set_option(config, "temp_directory",
                   options->temp_directory == NULL ? "" : options->temp_directory, err));
    if (options->temp_bytes_max > 0) {
        snprintf(number, sizeof number, "%" PRId64 "B", options->temp_bytes_max);
        TRY(set_option(config, "max_temp_directory_size", number, err));
    }
    if (options->threads > 0) {
        snprintf(number, sizeof number, "%d", options->threads);
        TRY(set_option(config, "threads", number, err));
    }
    /* One thread cannot reorder anything, and only without this promise does COPY accept a limit
     * in bytes for its row groups, which is what bounds the memory of wide rows. */
    if (options->threads == 1)
        TRY(set_option(config, "preserve_insertion_order", "false", err));
    if (options->reads_once)
        TRY(set_option(config, "enable_external_file_cache", "false", err));
    if (options->memory_bytes_max > 0) {
        snprintf(number, sizeof number, "%" PRId64 "B", options->memory_bytes_max);
        TRY(set_option(config, "memory_limit", number, err));
    }
    return true;
}

bool
duck_open(const DuckOptions *options, Duck **out_duck, Error *err)
{
    AUTO(duckdb_destroy_config) duckdb_config config = NULL;
    duckdb_database database = NULL;
    char *text = NULL;

    if (duckdb_create_config(&config) != DuckDBSuccess)
        return FAIL(err, ERR_BUG, "cannot make a duckdb configuration");
    TRY(set_options(config, options, err));
    if (duckdb_open_ext(NULL, &database, config, &text) != DuckDBSuccess) {
        (void) FAIL(err, ERR_BUG, "cannot open duckdb: %s", text == NULL ? "no reason" : text);
        duckdb_free(text);
        return false;
    }

    Duck *duck = xcalloc(1, sizeof *duck);

    duck->database = database;
    duck->threads = options->threads;
    duck->next_feed = 1;
    pthread_mutex_init(&duck->lock, NULL);
    *out_duck = duck;
    return true;
}

void
duck_close(Duck *duck)
{
    if (duck == NULL)
        return;
    duckdb_close(&duck->database);
    pthread_mutex_destroy(&duck->lock);
    free(duck);
}

const char *
duck_version(void)
{
    return duckdb_library_version();
}

bool
duck_connect(Duck *duck, duckdb_connection *out_connection, Error *err)
{
    if (duckdb_connect(duck->database, out_connection) != DuckDBSuccess)
        return FAIL(err, ERR_BUG, "cannot connect to the embedded duckdb");
    return true;
}

bool
duck_run(duckdb_connection connection, const char *sql, Error *err)
{
    AUTO_RESULT duckdb_result result = {0};

    if (duckdb_query(connection, sql, &result) != DuckDBSuccess)
        return duck_result_error(&result, err);
    return true;
}

static ErrKind
kind_of(duckdb_error_type type)
{
    switch ((int) type) {
    case DUCKDB_ERROR_OUT_OF_MEMORY:
    case DUCKDB_ERROR_IO:
    case DUCKDB_ERROR_NETWORK:
        return ERR_TRANSIENT;
    case DUCKDB_ERROR_INTERRUPT:
        return ERR_CANCELED;
    case DUCKDB_ERROR_INVALID: /* of a library under it: Thrift and zstd on a damaged file */
    case DUCKDB_ERROR_INVALID_INPUT:
    case DUCKDB_ERROR_CONVERSION:
    case DUCKDB_ERROR_SERIALIZATION:
    case DUCKDB_ERROR_PERMISSION:
        return ERR_INPUT;
    default:
        return ERR_BUG;
    }
}

/* The first line says it; the others quote our SQL or advise on settings that are ours to make. */
static bool
fail_with(ErrKind kind, const char *text, Error *err)
{
    if (text == NULL)
        text = "failed without a reason";
    return FAIL(err, kind, "duckdb: %.*s", (int) strcspn(text, "\n"), text);
}

bool
duck_result_error(duckdb_result *result, Error *err)
{
    return fail_with(kind_of(duckdb_result_error_type(result)), duckdb_result_error(result), err);
}

/* Preparing and pending have an error text without its type. */
static bool
fail_with_text(const char *text, Error *err)
{
    Str message = str_of(text);
    ErrKind kind = ERR_BUG;

    if (str_starts(message, STR("IO Error")) || str_starts(message, STR("Out of Memory")))
        kind = ERR_TRANSIENT;
    else if (str_starts(message, STR("Invalid Input")) || str_starts(message, STR("Invalid Error")))
        kind = ERR_INPUT;
    return fail_with(kind, text, err);
}

bool
duck_stream(duckdb_connection connection, const char *sql, duckdb_result *out_result, Error *err)
{
    AUTO_PREPARED duckdb_prepared_statement statement = NULL;
    AUTO_PENDING duckdb_pending_result pending = NULL;
    duckdb_result result = {0};

    if (duckdb_prepare(connection, sql, &statement) != DuckDBSuccess)
        return fail_with_text(duckdb_prepare_error(statement), err);
    if (duckdb_pending_prepared_streaming(statement, &pending) != DuckDBSuccess)
        return fail_with_text(duckdb_pending_error(pending), err);
    if (duckdb_execute_pending(pending, &result) != DuckDBSuccess) {
        (void) duck_result_error(&result, err);
        duckdb_destroy_result(&result);
        return false;
    }
    *out_result = result;
    return true;
}

bool
duck_fetch(duckdb_result *result, duckdb_data_chunk *out_chunk, Error *err)
{
    duckdb_data_chunk chunk = duckdb_fetch_chunk(*result);

    if (chunk == NULL && duckdb_result_error_type(result) != DUCKDB_ERROR_INVALID)
        return duck_result_error(result, err);
    *out_chunk = chunk;
    return true;
}

static void
quote(Buf *out, Str text, char mark)
{
    buf_byte(out, (uint8_t) mark);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == mark)
            buf_byte(out, (uint8_t) mark);
        buf_byte(out, (uint8_t) text.ptr[i]);
    }
    buf_byte(out, (uint8_t) mark);
}

void
duck_quote_identifier(Buf *out, Str name)
{
    quote(out, name, '"');
}

void
duck_quote_literal(Buf *out, Str text)
{
    quote(out, text, '\'');
}
