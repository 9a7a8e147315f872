/* status.c - <state>/status.json: what `walberg status` shows of a running pipeline. Replaced by
 * rename, at most once a second; keys as in the interface, with pid and updated_us added. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "pipeline/internal.h"

enum { STATUS_EVERY_MS = 1000 };

static void
put_position(JsonWriter *json, const char *key, Position position)
{
    jw_key(json, key);
    jw_cstr(json, POSITION_TEXT(position));
}

/* The reader gave it up and the main thread has not said yet what becomes of it. */
static bool
is_given_up(const PipeTable *table)
{
    return atomic_load(&table->state) == TABLE_PARKED && table->error == NULL;
}

/* What every table has that is shown as streaming. `verify` relies on that. */
static void
put_committed(const Pipeline *pl, JsonWriter *json)
{
    for (size_t i = 0; i < pl->table_count; i++)
        if (is_given_up(pl->tables[i])) {
            jw_key(json, "committed");
            jw_null(json);
            return;
        }
    put_position(json, "committed", pl->committed);
}

static void
put_source(Pipeline *pl, JsonWriter *json)
{
    HeldWal held = pl->held == NULL ? (HeldWal){0} : held_now(pl->held);
    Position server = pl->reader == NULL ? pl->server.flush : reader_server_position(pl->reader);
    Position acknowledged = pl->state.acknowledged;
    bool idle = pl->reader != NULL && reader_idle_position(pl->reader) != POSITION_NONE;

    /* the stream tells how far it was read, which may be far behind */
    if (server < held.server)
        server = held.server;
    if (server < acknowledged)
        server = acknowledged;
    jw_key(json, "source");
    jw_object(json);
    jw_key(json, "system_identifier");
    jw_cstr(json, pl->server.system_identifier);
    jw_key(json, "slot");
    jw_cstr(json, pl->config->source_slot);
    put_position(json, "server_position", server);
    put_committed(pl, json);
    put_position(json, "acknowledged", acknowledged);
    jw_key(json, "lag_bytes");
    jw_int(json, idle ? 0 : (int64_t) (server - acknowledged));
    jw_key(json, "lag_seconds");
    if (idle)
        jw_double(json, 0);
    else if (pl->last_commit_time_us != 0)
        jw_double(json, (double) (clock_wall_us() - pl->last_commit_time_us) / 1e6);
    else
        jw_null(json); /* how old the lake is, nothing of this process has told yet */
    jw_key(json, "retained_wal_bytes");
    if (held.restart == POSITION_NONE)
        jw_null(json);
    else
        jw_int(json, (int64_t) (server - held.restart));
    jw_key(json, "retained_wal_bytes_per_second");
    if (held.growth_known)
        jw_int(json, held.growth);
    else
        jw_null(json);
    jw_end(json);
}

static const char dropped_state[] = "dropped";
static const char dropped_error[] = "it was dropped in the source; its rows stay in the lake";

static void
put_error(JsonWriter *json, const char *error)
{
    jw_key(json, "error");
    jw_str(json, error == NULL ? STR_NULL : str_of(error));
}

static TableState
state_of(const PipeTable *table)
{
    return is_given_up(table) ? TABLE_STREAMING : atomic_load(&table->state);
}

static void
put_table(JsonWriter *json, const PipeTable *table)
{
    const SinkTable *sink = table->sink_table;
    int64_t copied = atomic_load(&table->copied_rows);
    int done = atomic_load(&table->tasks_done);
    int total = atomic_load(&table->tasks_total);
    bool complete = sink != NULL && !pipe_table_needs_copy(table);
    char when[32];

    jw_object(json);
    jw_key(json, "name");
    jw_cstr(json, table->schema->qualified);
    jw_key(json, "lake");
    jw_str(json, sink == NULL ? STR_NULL : str_of(sink->lake_name));
    jw_key(json, "state");
    jw_cstr(json, table->dropped                ? dropped_state
                  : pipe_table_is_hidden(table) ? table_state_name(TABLE_COPYING)
                                                : table_state_name(state_of(table)));
    jw_key(json, "position");
    if (complete)
        jw_cstr(json, POSITION_TEXT(sink->position));
    else
        jw_null(json);
    jw_key(json, "rows");
    jw_int(json, sink == NULL ? 0 : sink->rows);
    jw_key(json, "copied_rows");
    jw_int(json, copied);
    jw_key(json, "copied_fraction");
    jw_double(json, complete ? 1.0 : (total == 0 ? 0.0 : (double) done / total));
    jw_key(json, "rejects");
    if (sink != NULL && sink->rejects == REJECTS_UNKNOWN)
        jw_null(json);
    else
        jw_int(json, sink == NULL ? 0 : sink->rejects);
    jw_key(json, "last_commit");
    if (sink == NULL || sink->last_commit_us == 0) {
        jw_null(json);
    } else {
        clock_format(sink->last_commit_us, when, sizeof when);
        jw_cstr(json, when);
    }
    put_error(json, table->dropped         ? dropped_error
                    : table->error != NULL ? table->error
                                           : table->note);
    jw_end(json);
}

/* A table that was gone from the source before this process began. */
static void
put_dropped(JsonWriter *json, const StateTable *table)
{
    static const char *const unknown[] = {"rows", "copied_rows", "copied_fraction", "rejects",
                                          "last_commit"};

    jw_object(json);
    jw_key(json, "name");
    jw_cstr(json, table->source);
    jw_key(json, "lake");
    jw_cstr(json, table->lake);
    jw_key(json, "state");
    jw_cstr(json, dropped_state);
    put_position(json, "position", table->committed);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        jw_key(json, unknown[i]);
        jw_null(json);
    }
    put_error(json, dropped_error);
    jw_end(json);
}

static bool
is_shown(const Pipeline *pl, const StateTable *known)
{
    for (size_t i = 0; i < pl->table_count; i++)
        if (strcmp(pl->tables[i]->schema->qualified, known->source) == 0)
            return true;
    return false;
}

/* The stream's own, or what is wrong beside it; NULL: nothing. */
static const char *
error_of(const Pipeline *pl, Buf *buffer)
{
    if (pl->last_error[0] != '\0')
        return pl->last_error;
    if (pl->waits.text[0] != '\0')
        return pl->waits.text;
    if (child_failures(pl) == 0)
        return NULL;
    buf_printf(buffer, "the query server on %s ended %d times, see the log",
               pl->config->query_listen, child_failures(pl));
    return buf_text(buffer);
}

static void
put_status(Pipeline *pl, Buf *out)
{
    AUTO_BUF Buf buffer = {0};
    JsonWriter json;

    jw_begin(&json, out);
    jw_object(&json);
    jw_key(&json, "pipeline");
    jw_cstr(&json, pl->config->pipeline);
    jw_key(&json, "state");
    jw_cstr(&json, pl->phase);
    put_error(&json, error_of(pl, &buffer));
    jw_key(&json, "pid");
    jw_int(&json, getpid());
    jw_key(&json, "updated_us");
    jw_int(&json, clock_wall_us());
    put_source(pl, &json);
    jw_key(&json, "tables");
    jw_array(&json);
    for (size_t i = 0; i < pl->table_count; i++)
        put_table(&json, pl->tables[i]);
    for (size_t i = 0; i < pl->state.table_count; i++)
        if (pl->state.tables[i].dropped && !is_shown(pl, &pl->state.tables[i]))
            put_dropped(&json, &pl->state.tables[i]);
    jw_end(&json);
    jw_end(&json);
    buf_byte(out, '\n');
}

void
status_write(Pipeline *pl, bool now)
{
    if (!now && clock_ms() - pl->status_written_ms < STATUS_EVERY_MS)
        return;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf text = {0};
    const char *path = arena_printf(arena, "%s/status.json", pl->config->state);
    const char *temporary = arena_printf(arena, "%s.new", path);
    int fd = folder_create_file(temporary, O_WRONLY | O_TRUNC, 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    pl->status_written_ms = clock_ms();
    put_status(pl, &text);

    bool written = file != NULL && fwrite(text.ptr, 1, text.len, file) == text.len;

    if (file != NULL)
        written = fclose(file) == 0 && written;
    if (!written || rename(temporary, path) != 0)
        log_debug("cannot write status", LOG_STR("path", path));
}

static void
beat(void *arg)
{
    child_watch(arg);
    status_write(arg, false);
}

bool
status_retry(Pipeline *pl, Retry *retry, const char *what, Error *err)
{
    if (err->kind == ERR_TRANSIENT && pl->lock_fd >= 0) {
        snprintf(pl->last_error, sizeof pl->last_error, "%s: %.900s", what, err->msg);
        status_write(pl, false);
        retry->beat = beat;
        retry->beat_arg = pl;
    }
    return retry_again(retry, what, err);
}
