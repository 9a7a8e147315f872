/* resync.c - `walberg resync`: tables are copied again while the others stream.
 *
 * The names go to <state>/resync, which a running pipeline takes at once and any other when it is
 * started. With a running one we wait, and show how far it is. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/connect.h"
#include "cli/progress.h"
#include "cli/state_folder.h"

enum { LOOK_MS = 200 };

typedef struct Resync {
    const Cli *cli;
    const Config *config;
    Arena *arena;
    Buf names; /* const char *, as status has them */
    Progress progress;
} Resync;

static const char *
text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* One that was dropped has its name still; then another may have it, too. */
static const json_t *
find_table(const json_t *status, const char *name)
{
    const json_t *found = NULL;
    size_t i;
    const json_t *table;

    json_array_foreach(json_object_get(status, "tables"), i, table)
    {
        const char *its_name = text_of(table, "name");
        const char *state = text_of(table, "state");

        if (its_name != NULL && strcmp(its_name, name) == 0 &&
            (found == NULL || state == NULL || strcmp(state, "dropped") != 0))
            found = table;
    }
    return found;
}

/* As typed, or in the schema public. */
static bool
take_name(Resync *resync, const json_t *status, const char *typed, Error *err)
{
    const char *in_public = arena_printf(resync->arena, "public.%s", typed);

    if (find_table(status, typed) != NULL)
        BUF_PUSH(&resync->names, const char *, typed);
    else if (find_table(status, in_public) != NULL)
        BUF_PUSH(&resync->names, const char *, in_public);
    else
        return FAIL(err, ERR_INPUT,
                    "pipeline %s has no table %s\nhint: walberg status lists its tables",
                    resync->config->pipeline, typed);
    return true;
}

static bool
take_names(Resync *resync, Error *err)
{
    AUTO(json_unref) json_t *status = NULL;

    TRY(state_folder_status(resync->config, resync->arena, &status, err));
    if (status == NULL)
        return FAIL(err, ERR_INPUT,
                    "pipeline %s did not run here yet: there is no %s/status.json\n"
                    "hint: run this where walberg run runs, with the same settings",
                    resync->config->pipeline, resync->config->state);
    for (int i = 0; i < resync->cli->arg_count; i++)
        TRY(take_name(resync, status, resync->cli->args[i], err));
    return true;
}

/* The pipeline has to read and remove what we write: as root we do it as the user that runs it, who
 * is the owner of the status that it writes. */
static bool
become_runner(const Resync *resync, Error *err)
{
    const char *path = arena_printf(resync->arena, "%s/status.json", resync->config->state);
    struct stat status;

    if (stat(path, &status) != 0)
        return FAIL(err, ERR_INPUT, "cannot look at %s: %s", path, strerrordesc_np(errno));
    if (status.st_uid == geteuid())
        return true;
    if (setegid(status.st_gid) == 0 && seteuid(status.st_uid) == 0)
        return true;
    return FAIL(err, ERR_INPUT,
                "pipeline %s is run by another user, with uid %u\n"
                "hint: ask as that user, or as root",
                resync->config->pipeline, status.st_uid);
}

/* A pipeline may take the file between our opening and our lock, and be done with it: then what we
 * write would be read by nobody. *out_gone says so. */
static bool
append(const char *path, Str text, bool *out_gone, Error *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    struct stat file = {0};

    if (fd < 0)
        return FAIL(err, ERR_INPUT, "cannot write %s: %s", path, strerrordesc_np(errno));

    bool done = flock(fd, LOCK_EX) == 0 && fstat(fd, &file) == 0;

    *out_gone = done && file.st_nlink == 0;
    done = done && (*out_gone || write(fd, text.ptr, text.len) == (ssize_t) text.len);
    if (!done)
        (void) FAIL(err, ERR_TRANSIENT, "cannot write %s: %s", path, strerrordesc_np(errno));
    close(fd);
    return done;
}

/* What a pipeline could not read is put there. */
static const char *
refused_path(const Resync *resync)
{
    return arena_printf(resync->arena, "%s/resync.refused", resync->config->state);
}

static bool
ask(Resync *resync, Error *err)
{
    AUTO_BUF Buf text = {0};
    const char *path = arena_printf(resync->arena, "%s/resync", resync->config->state);
    bool gone = true;

    TRY(become_runner(resync, err));
    unlink(refused_path(resync)); /* of an earlier request */
    for (size_t i = 0; i < BUF_COUNT(&resync->names, const char *); i++)
        buf_printf(&text, "%s\n", BUF_AT(&resync->names, const char *, i));
    while (gone)
        TRY(append(path, buf_view(&text), &gone, err));
    return true;
}

static bool
is_taken(const Resync *resync)
{
    return access(arena_printf(resync->arena, "%s/resync", resync->config->state), F_OK) != 0 &&
           access(arena_printf(resync->arena, "%s/resync.taken", resync->config->state), F_OK) != 0;
}

static bool
pause_while_running(Resync *resync, Error *err)
{
    usleep(1000 * LOOK_MS);
    return state_folder_is_locked(resync->config, resync->arena) ||
           FAIL(err, ERR_TRANSIENT,
                "walberg run ended meanwhile\nhint: when it is started, it goes on with the copy");
}

/* *out_waiting: how many tables are not there yet. */
static bool
look(Resync *resync, int64_t since_us, size_t *out_waiting, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO(json_unref) json_t *status = NULL;
    size_t count = BUF_COUNT(&resync->names, const char *);
    int64_t rows = 0;

    *out_waiting = count;
    TRY(state_folder_status(resync->config, arena, &status, err));
    if (status == NULL || json_integer_value(json_object_get(status, "updated_us")) <= since_us)
        return true; /* from before it was asked */
    for (size_t i = 0; i < count; i++) {
        const char *name = BUF_AT(&resync->names, const char *, i);
        const json_t *table = find_table(status, name);
        const char *state = table == NULL ? "gone" : text_of(table, "state");

        if (strcmp(state, "streaming") == 0)
            --*out_waiting;
        else if (strcmp(state, "copying") != 0)
            return FAIL(err, ERR_INPUT, "table %s is %s: %s", name, state,
                        table == NULL || text_of(table, "error") == NULL ? "see walberg status"
                                                                         : text_of(table, "error"));
        rows += json_integer_value(json_object_get(table, "copied_rows"));
    }
    progress_note(&resync->progress, text_of(status, "error"));
    if (progress_due(&resync->progress))
        progress_say(&resync->progress, "copying %zu tables, %" PRId64 " rows so far", *out_waiting,
                     rows);
    return true;
}

static bool
wait_for_it(Resync *resync, Error *err)
{
    size_t waiting = 1;

    while (!is_taken(resync)) {
        if (progress_due(&resync->progress))
            progress_say(&resync->progress, "waiting for walberg run to take it");
        TRY(pause_while_running(resync, err));
    }
    if (access(refused_path(resync), F_OK) == 0)
        return FAIL(err, ERR_INPUT, "walberg run cannot read what was asked: see its log");
    for (int64_t since_us = clock_wall_us(); waiting > 0;) {
        TRY(pause_while_running(resync, err));
        TRY(look(resync, since_us, &waiting, err));
    }
    return true;
}

static bool
resync_tables(Resync *resync, Error *err)
{
    TRY(take_names(resync, err));
    TRY(ask(resync, err));
    if (!state_folder_is_locked(resync->config, resync->arena)) {
        if (!resync->cli->quiet)
            fprintf(stderr, "walberg run is not up; it copies again when it is started\n");
        return true;
    }
    return wait_for_it(resync, err);
}

int
cmd_resync(const Cli *cli)
{
    Resync resync = {.cli = cli, .config = cli->config, .arena = cli->arena};
    PgConn *conn = NULL;
    Error err = {0};

    if (cli->arg_count == 0)
        return cli_usage_error("resync wants the tables that are to be copied again\n"
                               "usage: walberg resync [SOURCE WAREHOUSE] TABLE...");

    bool resolved = cli_resolve(cli->config, cli->arena, &conn, &err);

    pg_close(conn);
    if (!resolved)
        return cli_fail_settings(&err);
    progress_begin(&resync.progress, cli->quiet);

    bool done = resync_tables(&resync, &err);

    progress_end(&resync.progress);
    buf_done(&resync.names);
    return done ? 0 : cli_fail(&err);
}
