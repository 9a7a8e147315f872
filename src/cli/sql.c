/* sql.c - `walberg sql`: one statement on the lake, the result on standard output. What may be
 * asked, and how, is what the query server accepts. */
#include "cli/cli.h"

#include <assert.h>

#include "base/json_writer.h"
#include "base/log.h"
#include "query/prepared.h"
#include "query/server.h"
#include "query/token.h"

int cmd_sql(const Cli *cli);

enum { FLUSH_BYTES = 1024 * 1024 };

typedef enum SqlFormat { SQL_TABLE, SQL_CSV, SQL_JSON } SqlFormat;

typedef struct SqlOutput {
    SqlFormat format;
    Arena *arena;
    int column_count;
    WireColumn *columns;
    bool *plain; /* per column: numbers and booleans, which JSON writes without quotes */
    Buf cells;   /* Str, row by row: table only */
    Buf text;    /* what goes out */
    uint64_t rows;
} SqlOutput;

/* --- formats ------------------------------------------------------------------------------- */

static void
put_csv_value(Buf *out, Str value)
{
    bool quotes = value.len == 0; /* NULL is nothing at all, an empty text is "" */

    for (size_t i = 0; i < value.len && !quotes; i++)
        quotes = (value.ptr[i] != '\0' && strchr(",\"\n\r", value.ptr[i]) != NULL);
    if (!quotes) {
        buf_str(out, value);
        return;
    }
    buf_byte(out, '"');
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '"')
            buf_byte(out, '"');
        buf_byte(out, (uint8_t) value.ptr[i]);
    }
    buf_byte(out, '"');
}

static void
put_csv_row(SqlOutput *output, const Str *values)
{
    for (int i = 0; i < output->column_count; i++) {
        if (i > 0)
            buf_byte(&output->text, ',');
        if (values[i].ptr != NULL)
            put_csv_value(&output->text, values[i]);
    }
    buf_byte(&output->text, '\n');
}

/* JSON has no NaN and no infinities: these are texts. */
static bool
is_json_number(Str value)
{
    return value.ptr != NULL && value.len > 0 &&
           (value.ptr[0] == '-' || (value.ptr[0] >= '0' && value.ptr[0] <= '9')) &&
           memchr(value.ptr, 'I', value.len) == NULL;
}

static void
put_json_row(SqlOutput *output, const Str *values)
{
    JsonWriter json;

    buf_cstr(&output->text, output->rows == 0 ? "[\n" : ",\n");
    jw_begin(&json, &output->text);
    jw_object(&json);
    for (int i = 0; i < output->column_count; i++) {
        jw_key_str(&json, output->columns[i].name);
        if (values[i].ptr != NULL && output->plain[i] && str_eqc(values[i], "t"))
            jw_bool(&json, true);
        else if (values[i].ptr != NULL && output->plain[i] && str_eqc(values[i], "f"))
            jw_bool(&json, false);
        else if (output->plain[i] && is_json_number(values[i]))
            jw_raw(&json, values[i]);
        else
            jw_str(&json, values[i]);
    }
    jw_end(&json);
}

static void
put_row(SqlOutput *output, const Str *values)
{
    if (output->format == SQL_CSV)
        put_csv_row(output, values);
    else if (output->format == SQL_JSON)
        put_json_row(output, values);
    else
        for (int i = 0; i < output->column_count; i++)
            BUF_PUSH(&output->cells, Str,
                     values[i].ptr == NULL ? STR_NULL : arena_str(output->arena, values[i]));
    output->rows++;
}

/* Characters of UTF-8, each counted as one column. */
static size_t
width_of(Str text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.len; i++)
        width += (text.ptr[i] & 0xc0) != 0x80;
    return width;
}

static void
pad(Buf *out, char c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_byte(out, (uint8_t) c);
}

static void
put_cell(SqlOutput *output, int column, Str text, size_t width, bool header)
{
    Buf *out = &output->text;
    size_t room = width - width_of(text);
    bool right = output->plain[column] && !header;

    buf_cstr(out, column == 0 ? " " : " | ");
    if (right)
        pad(out, ' ', room);
    buf_str(out, text);
    if (!right && column + 1 < output->column_count)
        pad(out, ' ', room);
}

/* As psql draws it. */
static void
draw_table(SqlOutput *output)
{
    size_t columns = (size_t) output->column_count;

    assert(columns > 0);

    size_t *widths = ARENA_ARRAY(output->arena, size_t, columns);

    for (size_t i = 0; i < columns; i++)
        widths[i] = width_of(output->columns[i].name);
    for (size_t i = 0; i < BUF_COUNT(&output->cells, Str); i++) {
        size_t width = width_of(BUF_AT(&output->cells, Str, i));

        if (width > widths[i % columns])
            widths[i % columns] = width;
    }
    for (int i = 0; i < output->column_count; i++)
        put_cell(output, i, output->columns[i].name, widths[i], true);
    buf_byte(&output->text, '\n');
    for (size_t i = 0; i < columns; i++) {
        buf_cstr(&output->text, i == 0 ? "" : "+");
        pad(&output->text, '-', widths[i] + 2);
    }
    buf_byte(&output->text, '\n');
    for (size_t i = 0; i < BUF_COUNT(&output->cells, Str); i++) {
        put_cell(output, (int) (i % columns), BUF_AT(&output->cells, Str, i), widths[i % columns],
                 false);
        if ((i + 1) % columns == 0)
            buf_byte(&output->text, '\n');
    }
    buf_printf(&output->text, "(%llu row%s)\n", (unsigned long long) output->rows,
               output->rows == 1 ? "" : "s");
}

static void
finish_output(SqlOutput *output)
{
    if (output->format == SQL_TABLE)
        draw_table(output);
    else if (output->format == SQL_JSON)
        buf_cstr(&output->text, output->rows == 0 ? "[]\n" : "\n]\n");
    cli_put(&output->text);
}

static void
start_output(SqlOutput *output, const Cursor *cursor)
{
    const DuckColumn *columns = duck_statement_columns(cursor->statement);

    output->plain = ARENA_ARRAY(output->arena, bool, (size_t) output->column_count);
    for (int i = 0; i < output->column_count; i++) {
        DuckKind kind = columns[i].type.kind;

        output->plain[i] = kind >= DUCK_BOOL && kind <= DUCK_DECIMAL;
    }
    if (output->format != SQL_CSV)
        return;

    Str *names = ARENA_ARRAY(output->arena, Str, (size_t) output->column_count);

    for (int i = 0; i < output->column_count; i++)
        names[i] = output->columns[i].name;
    put_csv_row(output, names);
}

/* --- the statement ------------------------------------------------------------------------- */

static void
read_row(const Cursor *cursor, const SqlOutput *output, Buf *bytes, Str *values)
{
    buf_reset(bytes);
    for (int i = 0; i < output->column_count; i++) {
        if (!duck_rows_is_null(cursor->rows, i, cursor->chunk_row))
            duck_rows_text(cursor->rows, i, cursor->chunk_row, bytes);
        values[i].len = bytes->len; /* its end, until all are there */
    }
    buf_text(bytes);

    size_t start = 0;

    for (int i = 0; i < output->column_count; i++) {
        size_t end = values[i].len;

        values[i] = duck_rows_is_null(cursor->rows, i, cursor->chunk_row)
                        ? STR_NULL
                        : (Str){.ptr = bytes->ptr + start, .len = end - start};
        start = end;
    }
}

static bool
print_rows(Cursor *cursor, SqlOutput *output, Error *err)
{
    AUTO_BUF Buf bytes = {0};
    Str *values = ARENA_ARRAY(output->arena, Str, (size_t) output->column_count);

    TRY(cursor_start(cursor, err));
    for (;;) {
        bool end = false;

        TRY(cursor_fill(cursor, &end, err));
        if (end)
            return true;
        read_row(cursor, output, &bytes, values);
        put_row(output, values);
        cursor->chunk_row++;
        if (output->text.len > FLUSH_BYTES) {
            cli_put(&output->text);
            buf_reset(&output->text);
        }
    }
}

static void
print_notices(Engine *engine)
{
    size_t count;
    const EngineNotice *notices = engine_take_notices(engine, &count);

    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "notice: %.*s\ndetail: %.*s\nhint: %.*s\n", STR_ARG(notices[i].message),
                STR_ARG(notices[i].detail), STR_ARG(notices[i].hint));
}

static bool
run_query(Engine *engine, const Prepared *prepared, SqlOutput *output, Error *err)
{
    AUTO_BUF Buf text = {0};
    AUTO(dialect_map_done) DialectMap map = {0};
    Cursor *cursor = NULL;

    TRY(prepared_text(prepared, NULL, &text, &map, &engine->failure, err));
    TRY(prepared_open(prepared, engine, &text, &map, &cursor, err));
    print_notices(engine);

    bool ok = cursor_wire_columns(prepared, cursor, output->arena, &output->columns,
                                  &output->column_count, err);

    if (ok) {
        start_output(output, cursor);
        ok = print_rows(cursor, output, err);
    }
    cursor_close(cursor);
    return ok;
}

static bool
run_statement(Engine *engine, Str sql, SqlOutput *output, Error *err)
{
    AUTO(prepared_unrefp) Prepared *prepared = NULL;
    Str rest = sql;
    Str statement;

    TRY(token_split(&rest, &statement, err));
    if (!token_only_blanks(rest))
        return FAIL(err, ERR_INPUT, "more than one statement");
    TRY(prepared_new(engine, &(PreparedMake){.name = STR(""), .sql = statement}, &prepared, err));
    if (prepared->utility.kind != UTILITY_QUERY)
        return FAIL(err, ERR_INPUT, "only a query can be run here: SELECT, WITH, VALUES, TABLE");
    if (prepared->parameter_count > 0)
        return FAIL(err, ERR_INPUT, "there is no parameter $1");
    return run_query(engine, prepared, output, err);
}

static bool
run(const Cli *cli, Cancel *cancel, SqlOutput *output, Error *err)
{
    Store *store = NULL;
    Lake *lake = NULL;
    Engine engine;

    TRY(query_open_lake(cli->config, cli->config->state, cancel, &store, &lake, err));

    bool ok = engine_init(&engine, lake, err);

    if (ok) {
        ok = run_statement(&engine, str_of(cli->args[0]), output, err);
        engine_done(&engine);
    }
    lake_close(lake);
    store_close(store);
    return ok;
}

static bool
parse_format(const Cli *cli, SqlFormat *out_format, Error *err)
{
    const char *format = cli->format != NULL ? cli->format : cli->json ? "json" : "table";

    if (strcmp(format, "table") == 0)
        *out_format = SQL_TABLE;
    else if (strcmp(format, "csv") == 0)
        *out_format = SQL_CSV;
    else if (strcmp(format, "json") == 0)
        *out_format = SQL_JSON;
    else
        return FAIL(err, ERR_INPUT, "unknown format \"%.40s\"\nhint: table, csv or json", format);
    return true;
}

int
cmd_sql(const Cli *cli)
{
    SqlOutput output = {.arena = cli->arena};
    Error err = {0};

    if (!cli_need_warehouse(cli, &err) || !parse_format(cli, &output.format, &err) ||
        !config_resolve(cli->config, cli->arena, "query", &err))
        return cli_fail_settings(&err);

    /* tables that cannot be read matter when one of them is asked for: then the error tells */
    if (!cli->verbose)
        log_configure(LOG_ERROR, LOG_FORMAT_TEXT);

    Cancel *cancel = cancel_new();
    bool ok = run(cli, cancel, &output, &err);

    if (ok)
        finish_output(&output);
    buf_done(&output.cells);
    buf_done(&output.text);
    cancel_free(cancel);
    return ok ? 0 : cli_fail(&err);
}
