#include "query/portal.h"

#include <assert.h>
#include <stdlib.h>

#include "query/types.h"

void
portal_free(Portal *portal)
{
    if (portal == NULL)
        return;
    cursor_close(portal->cursor);
    prepared_unref(portal->prepared);
    buf_done(&portal->text);
    dialect_map_done(&portal->map);
    arena_free(portal->arena);
    free(portal->name);
    free(portal);
}

void
portal_freep(Portal **portal)
{
    portal_free(*portal);
}

static bool
is_query(const Prepared *prepared)
{
    return prepared->utility.kind == UTILITY_QUERY || prepared->utility.kind == UTILITY_EXPLAIN;
}

static bool
put_parameters(Portal *portal, const WireBind *bind, Engine *engine, Error *err)
{
    const Prepared *prepared = portal->prepared;
    int count = prepared->parameter_count;
    Parameter *parameters = ARENA_ARRAY(portal->arena, Parameter, (size_t) count + 1);

    for (int i = 0; i < count; i++) {
        int format = wire_format(bind->formats, bind->format_count, i);
        bool null = bind->values[i].ptr == NULL;
        bool typed = prepared->stated[i] || (null ? prepared->typed_nulls : format == 1);

        /* A type that was only guessed is good for NULLs and for reading binary; text says by
         * itself what it is, as an untyped literal does. */
        parameters[i] = (Parameter){
            .type_oid = typed ? prepared->types[i] : 0,
            .format = format,
            .value = bind->values[i],
        };
    }
    return prepared_text(prepared, parameters, &portal->text, &portal->map, &engine->failure, err);
}

static bool
fill(Portal *portal, const WireBind *bind, Engine *engine, Error *err)
{
    static const WireBind none = {0};
    const WireBind *given = bind == NULL ? &none : bind;
    const Prepared *prepared = portal->prepared;

    if (given->value_count != prepared->parameter_count && bind != NULL)
        return query_fail(&engine->failure, err, SQLSTATE_PROTOCOL_VIOLATION,
                          "bind message supplies %d parameters, but prepared statement \"%s\" "
                          "requires %d",
                          given->value_count, prepared->name, prepared->parameter_count);
    if (bind == NULL && prepared->parameter_count > 0)
        return query_fail(&engine->failure, err, SQLSTATE_UNDEFINED_PARAMETER,
                          "there is no parameter $1");
    if (given->result_format_count > 1 && prepared->described &&
        given->result_format_count != prepared->column_count)
        return query_fail(&engine->failure, err, SQLSTATE_PROTOCOL_VIOLATION,
                          "bind message has %d result formats but query has %d columns",
                          given->result_format_count, prepared->column_count);
    portal->format_count = given->result_format_count;
    portal->formats = ARENA_ARRAY(portal->arena, int16_t, (size_t) portal->format_count);
    for (int i = 0; i < portal->format_count; i++)
        portal->formats[i] = given->result_formats[i];
    return !is_query(prepared) || put_parameters(portal, given, engine, err);
}

bool
portal_new(Engine *engine, const PortalMake *make, Portal **out_portal, Error *err)
{
    Portal *portal = xcalloc(1, sizeof *portal);
    AUTO_BUF Buf name = {0};

    buf_str(&name, make->name);
    portal->name = xstrdup(buf_text(&name));
    portal->arena = arena_new();
    portal->prepared = prepared_ref(make->prepared);
    if (!fill(portal, make->bind, engine, err)) {
        portal_free(portal);
        return false;
    }
    *out_portal = portal;
    return true;
}

/* --- opening ------------------------------------------------------------------------------- */

/* A client that was told other columns would read these wrongly. */
static bool
check_described(const Portal *portal, Engine *engine, Error *err)
{
    const Prepared *prepared = portal->prepared;
    bool same = portal->column_count == prepared->column_count;

    if (!prepared->described)
        return true;
    for (int i = 0; same && i < portal->column_count; i++)
        same = portal->columns[i].type_oid == prepared->columns[i].type_oid;
    return same || query_fail(&engine->failure, err, SQLSTATE_UNSUPPORTED,
                              "cached plan must not change result type");
}

static bool
apply_formats(Portal *portal, Engine *engine, Error *err)
{
    const DuckColumn *columns = duck_statement_columns(portal->cursor->statement);

    portal->elements = ARENA_ARRAY(portal->arena, uint32_t, (size_t) portal->column_count);
    for (int i = 0; i < portal->column_count; i++) {
        int format = wire_format(portal->formats, portal->format_count, i);

        portal->columns[i].format = (int16_t) format;
        portal->elements[i] = element_oid(&columns[i].type);
        if (format == 1 && !duck_has_binary(&columns[i].type))
            return query_fail(&engine->failure, err, SQLSTATE_UNSUPPORTED,
                              "column \"%.*s\" has no binary format\n"
                              "hint: ask for its text format",
                              STR_ARG(portal->columns[i].name));
    }
    return true;
}

bool
portal_open(Portal *portal, Engine *engine, Error *err)
{
    if (portal->cursor != NULL)
        return true;
    TRY(prepared_open(portal->prepared, engine, &portal->text, &portal->map, &portal->cursor, err));
    TRY(cursor_wire_columns(portal->prepared, portal->cursor, portal->arena, &portal->columns,
                            &portal->column_count, err));
    TRY(check_described(portal, engine, err));
    return apply_formats(portal, engine, err);
}

const WireColumn *
portal_columns(Portal *portal, int *out_count)
{
    const Prepared *prepared = portal->prepared;

    if (portal->columns == NULL && prepared->described) {
        portal->column_count = prepared->column_count;
        portal->columns =
            ARENA_ARRAY(portal->arena, WireColumn, (size_t) prepared->column_count + 1);
        for (int i = 0; i < prepared->column_count; i++) {
            portal->columns[i] = prepared->columns[i];
            portal->columns[i].format =
                (int16_t) wire_format(portal->formats, portal->format_count, i);
        }
    }
    *out_count = portal->column_count;
    return portal->columns;
}

/* --- rows ---------------------------------------------------------------------------------- */

static void
put_row(const Portal *portal, Buf *out)
{
    const DuckRows *rows = portal->cursor->rows;
    size_t row = portal->cursor->chunk_row;
    size_t at = wire_row_begin(out, portal->column_count);

    for (int i = 0; i < portal->column_count; i++) {
        if (duck_rows_is_null(rows, i, row)) {
            wire_put_null(out);
            continue;
        }

        size_t value = wire_value_begin(out);

        if (portal->columns[i].format == 1)
            duck_rows_binary(rows, i, row, portal->elements[i], out);
        else
            duck_rows_text(rows, i, row, out);
        wire_value_end(out, value);
    }
    wire_row_end(out, at);
}

/* DuckDB's drawing of a plan, a row per line, as psql wants it. */
static void
put_plan(const Portal *portal, Buf *out)
{
    AUTO_BUF Buf text = {0};
    const char *line;

    duck_rows_text(portal->cursor->rows, 1, portal->cursor->chunk_row, &text);
    line = buf_text(&text);
    while (*line != '\0') {
        size_t length = strcspn(line, "\n");
        size_t at = wire_row_begin(out, 1);
        size_t value = wire_value_begin(out);

        buf_append(out, line, length);
        wire_value_end(out, value);
        wire_row_end(out, at);
        line += length + (line[length] == '\n');
    }
}

bool
portal_run(Portal *portal, Engine *engine, Peer *peer, int32_t rows_max, Error *err)
{
    bool explain = portal->prepared->utility.kind == UTILITY_EXPLAIN;
    int32_t sent = 0;

    TRY(portal_open(portal, engine, err));
    if (!portal->started)
        TRY(cursor_start(portal->cursor, err));
    portal->started = true;
    portal->rows = 0;
    while (!portal->done && (rows_max == 0 || sent < rows_max)) {
        TRY(cursor_fill(portal->cursor, &portal->done, err));
        if (portal->done)
            break;
        if (explain)
            put_plan(portal, &peer->out);
        else
            put_row(portal, &peer->out);
        portal->cursor->chunk_row++;
        portal->rows++;
        sent++;
        TRY(peer_flush_some(peer, err));
    }
    if (portal->done) {
        cursor_close(portal->cursor);
        portal->cursor = NULL;
    }
    return true;
}
