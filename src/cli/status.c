/* status.c - where a pipeline stands.
 *
 * A running pipeline writes <state>/status.json every second and holds a lock on <state>/lock, so
 * asking costs it nothing. When nobody holds the lock, what the file says about the source is old:
 * then the source is asked for the slot, which goes on holding WAL while nobody reads it. */
#include "cli/cli.h"

#include <stdlib.h>

#include <jansson.h>

#include "base/clock.h"
#include "cli/connect.h"
#include "cli/state_folder.h"
#include "cli/text_table.h"
#include "model/position.h"
#include "source/server.h"
#include "source/slot.h"

enum { EXIT_PARKED = 1, STALE_S = 10, GROWTH_MIN = 1024 };

typedef struct Status {
    Arena *arena;
    const Config *config;
    PgConn *conn; /* NULL: not connected (yet) */
    json_t *json; /* the document of section 5 of the manual, as it will be shown */
    bool live;
} Status;

static void
status_done(Status *status)
{
    pg_close(status->conn);
    json_decref(status->json);
}

/* --- what the pipeline left ------------------------------------------------------------------ */

static json_t *
empty_document(const Status *status)
{
    return json_pack("{s:s, s:s, s:n, s:{s:n, s:s, s:n, s:n, s:n, s:n, s:n, s:n, s:n}, s:[]}",
                     "pipeline", status->config->pipeline, "state", "stopped", "error", "source",
                     "system_identifier", "slot", status->config->source_slot, "server_position",
                     "committed", "acknowledged", "lag_bytes", "lag_seconds", "retained_wal_bytes",
                     "retained_wal_bytes_per_second", "tables");
}

static bool
read_document(Status *status, Error *err)
{
    TRY(state_folder_status(status->config, status->arena, &status->json, err));
    if (status->json == NULL)
        status->json = empty_document(status);
    return status->json != NULL || FAIL(err, ERR_BUG, "status: json_pack failed");
}

/* --- the source ------------------------------------------------------------------------------ */

static void
set_or_null(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value == NULL ? json_pack("n") : value);
}

static bool
ask_source(Status *status, json_t *source, Error *err)
{
    ServerInfo server;
    Slot slot;

    if (status->conn == NULL)
        TRY(cli_connect_source(status->config, &status->conn, err));
    TRY(source_server_info(status->conn, status->arena, &server, err));
    TRY(source_slot_load(status->conn, status->arena, status->config->source_slot, &slot, err));
    set_or_null(source, "system_identifier", json_string(server.system_identifier));
    set_or_null(source, "server_position", json_string(POSITION_TEXT(server.flush)));
    if (!slot.exists)
        return true;
    set_or_null(source, "acknowledged", json_string(POSITION_TEXT(slot.confirmed)));
    set_or_null(source, "lag_bytes",
                json_integer(server.flush > slot.confirmed
                                 ? (json_int_t) (server.flush - slot.confirmed)
                                 : 0));
    set_or_null(source, "retained_wal_bytes", json_integer(slot.retained_bytes));
    return true;
}

/* Nobody writes status.json: state and source facts are brought up to date. */
static void
make_stopped(Status *status)
{
    static const char *const stale[] = {"server_position",
                                        "committed",
                                        "acknowledged",
                                        "lag_bytes",
                                        "lag_seconds",
                                        "retained_wal_bytes",
                                        "retained_wal_bytes_per_second"};
    json_t *source = json_object_get(status->json, "source");
    const char *state = json_string_value(json_object_get(status->json, "state"));
    Error err = {0};

    if (state == NULL || strcmp(state, "failed") != 0)
        json_object_set_new(status->json, "state", json_string("stopped"));
    json_object_del(status->json, "pid");
    if (!json_is_object(source)) {
        source = json_pack("{}");
        json_object_set_new(status->json, "source", source);
    }
    json_object_set_new(source, "slot", json_string(status->config->source_slot));
    for (size_t i = 0; i < sizeof stale / sizeof stale[0]; i++)
        json_object_set_new(source, stale[i], json_pack("n"));
    if (status->config->source_postgres != NULL && !ask_source(status, source, &err))
        json_object_set_new(source, "error", json_string(err.msg));
}

/* --- text ------------------------------------------------------------------------------------ */

static const char *
text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* "16MB", as Postgres' pg_size_pretty would round it. */
static const char *
size_text(Arena *arena, json_int_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    size_t unit = 0;

    while (unit + 1 < sizeof units / sizeof units[0] && bytes >= 10240) {
        bytes = (bytes + 512) / 1024;
        unit++;
    }
    return arena_printf(arena, "%lld %s", (long long) bytes, units[unit]);
}

static void
put_source(const Status *status, Buf *out)
{
    const json_t *source = json_object_get(status->json, "source");
    const json_t *bytes = json_object_get(source, "lag_bytes");
    const json_t *seconds = json_object_get(source, "lag_seconds");
    const json_t *retained = json_object_get(source, "retained_wal_bytes");
    json_int_t growth =
        json_integer_value(json_object_get(source, "retained_wal_bytes_per_second"));

    if (json_is_integer(bytes))
        buf_printf(out, ", %s behind", size_text(status->arena, json_integer_value(bytes)));
    if (json_is_number(seconds))
        buf_printf(out, " (%.1f s)", json_number_value(seconds));
    if (text_of(source, "slot") != NULL)
        buf_printf(out, ", slot %s", text_of(source, "slot"));
    if (text_of(source, "acknowledged") != NULL)
        buf_printf(out, " at %s", text_of(source, "acknowledged"));
    if (json_is_integer(retained))
        buf_printf(out, ", WAL held %s", size_text(status->arena, json_integer_value(retained)));
    if (json_is_integer(retained) && growth >= GROWTH_MIN)
        buf_printf(out, ", growing %s/s", size_text(status->arena, growth));
    buf_byte(out, '\n');
    if (text_of(status->json, "error") != NULL)
        buf_printf(out, "error: %s\n", text_of(status->json, "error"));
    if (text_of(source, "error") != NULL)
        buf_printf(out, "source: %s\n", text_of(source, "error"));
}

static const char *
number_text(Arena *arena, const json_t *table, const char *key)
{
    const json_t *number = json_object_get(table, key);

    return json_is_integer(number)
               ? arena_printf(arena, "%lld", (long long) json_integer_value(number))
               : "";
}

static void
put_table_row(const Status *status, TextTable *rows, const json_t *table)
{
    const json_t *fraction = json_object_get(table, "copied_fraction");

    text_table_cell(rows, text_of(table, "name"));
    text_table_cell(rows, text_of(table, "state"));
    text_table_cell(rows, text_of(table, "position"));
    text_table_cell(rows, number_text(status->arena, table, "rows"));
    text_table_cell(rows, json_is_number(fraction) ? arena_printf(status->arena, "%.0f%%",
                                                                  json_number_value(fraction) * 100)
                                                   : "");
    text_table_cell(rows, number_text(status->arena, table, "rejects"));
    text_table_cell(rows, text_of(table, "last_commit"));
}

static void
put_tables(const Status *status, Buf *out)
{
    static const char *const head[] = {"table",  "state",   "position",   "rows",
                                       "copied", "rejects", "last commit"};

    enum { COLUMNS = sizeof head / sizeof head[0] };

    const json_t *tables = json_object_get(status->json, "tables");
    AUTO_TEXT_TABLE TextTable rows = {0};
    size_t i;
    const json_t *table;

    if (json_array_size(tables) == 0)
        return;
    text_table_init(&rows, status->arena, COLUMNS, 1u << 3 | 1u << 4 | 1u << 5);
    for (i = 0; i < COLUMNS; i++)
        text_table_cell(&rows, head[i]);
    json_array_foreach(tables, i, table) put_table_row(status, &rows, table);
    buf_byte(out, '\n');
    text_table_print(&rows, out);
    json_array_foreach(tables, i, table) if (text_of(table, "error") != NULL)
        buf_printf(out, "%s: %s\n", text_of(table, "name"), text_of(table, "error"));
}

/* It is written every second, whatever the process does. */
static void
put_age(const Status *status, Buf *out)
{
    const json_t *updated = json_object_get(status->json, "updated_us");
    int64_t age_s = (clock_wall_us() - json_integer_value(updated)) / 1000000;

    if (status->live && json_is_integer(updated) && age_s >= STALE_S)
        buf_printf(out, "this is from %lld s ago: the process lives, but did not write since\n",
                   (long long) age_s);
}

static void
put_text(const Status *status, Buf *out)
{
    const char *state = text_of(status->json, "state");

    buf_printf(out, "%s: %s", status->config->pipeline, state == NULL ? "?" : state);
    put_source(status, out);
    put_age(status, out);
    put_tables(status, out);
}

static void
put_json(const Status *status, Buf *out)
{
    char *text = json_dumps(status->json, JSON_COMPACT | JSON_REAL_PRECISION(15));

    buf_cstr(out, text == NULL ? "null" : text);
    buf_byte(out, '\n');
    free(text);
}

/* --- the command ----------------------------------------------------------------------------- */

static bool
has_parked_table(const Status *status)
{
    size_t i;
    const json_t *table;

    json_array_foreach(json_object_get(status->json, "tables"), i, table)
    {
        const char *state = text_of(table, "state");

        if (state != NULL && strcmp(state, "parked") == 0)
            return true;
    }
    return false;
}

int
cmd_status(const Cli *cli)
{
    AUTO(status_done) Status status = {.arena = cli->arena, .config = cli->config};
    AUTO_BUF Buf out = {0};
    Error err = {0};

    if (!cli_resolve(cli->config, status.arena, &status.conn, &err))
        return cli_fail_settings(&err);
    if (!read_document(&status, &err))
        return cli_fail(&err);
    status.live = state_folder_is_locked(status.config, status.arena);
    if (!status.live)
        make_stopped(&status);
    if (cli->json)
        put_json(&status, &out);
    else
        put_text(&status, &out);
    cli_put(&out);
    return has_parked_table(&status) ? EXIT_PARKED : 0;
}
