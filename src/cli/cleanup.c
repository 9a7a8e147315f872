/* cleanup.c - `walberg cleanup`: tables out of the lake, and with --all everything of a pipeline.
 *
 * Nothing may write meanwhile: the lock of the state folder is held, the slot must not be read, and
 * the state object is claimed, as a second `run` would.
 * The order is such that a crash leaves what `run` and another cleanup understand:
 *
 *   0. what _walberg.rejects notes of the table: without it values may be recorded twice
 *   1. the table's metadata, the newest version last: the table is whole until it is gone at once
 *   2. its files: nothing refers to them any more
 *   3. its entry in the state object: until then a second cleanup knows that files may be left,
 *      while `run` finds no table and copies it afresh. (The other way round, a table whose entry
 *      is gone would have forgotten that changes of it are missing.)
 *
 * With --all then publication and slot, then the state object, which says that these are ours, and
 * the local folder last: its lock is ours until the end. */
#include "cli/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json_writer.h"
#include "cli/connect.h"
#include "iceberg/metadata.h"
#include "sink/iceberg/rejects.h"
#include "source/server.h"
#include "source/slot.h"

enum { CONFLICTS_MAX = 10, TREE_FDS = 16, SLOT_WATCH_MS = 2000, SLOT_PAUSE_MS = 50 };

static void
cleanup_done(Cleanup *cleanup)
{
    catalog_close(cleanup->catalog);
    store_close(cleanup->store);
    pg_close(cleanup->conn);
    if (cleanup->lock_fd >= 0)
        close(cleanup->lock_fd);
    buf_done(&cleanup->items);
    buf_done(&cleanup->notes);
}

/* --- nobody else ----------------------------------------------------------------------------- */

/* A folder that is not there has no process. */
static bool
lock_folder(Cleanup *cleanup, Error *err)
{
    const char *path = arena_printf(cleanup->arena, "%s/lock", cleanup->config->state);

    if (access(cleanup->config->state, F_OK) != 0)
        return true;
    cleanup->lock_fd = folder_create_file(path, O_RDWR, 0600);
    if (cleanup->lock_fd < 0)
        return FAIL(err, ERR_INPUT, "cannot open %s: %s", path, strerrordesc_np(errno));
    if (flock(cleanup->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    return FAIL(err, ERR_INPUT, "walberg runs pipeline %s (it holds %s)\nhint: stop it first",
                cleanup->config->pipeline, path);
}

/* On another machine, or with another state folder. Between two sessions of its stream a process
 * does not read its slot for a moment, so we look for a while; one that is away for longer is kept
 * out by claim_state(). */
static bool
check_slot(Cleanup *cleanup, Error *err)
{
    const char *name = cleanup->has_state ? cleanup->state.slot : cleanup->config->source_slot;

    for (int64_t until = clock_ms() + SLOT_WATCH_MS; clock_ms() < until;) {
        AUTO_ARENA Arena *arena = arena_new();
        Slot slot;

        TRY(source_slot_load(cleanup->conn, arena, name, &slot, err));
        if (!slot.exists)
            return true;
        if (slot.active_pid != 0)
            return FAIL(err, ERR_INPUT,
                        "slot %s is in use by server process %d: walberg runs somewhere\n"
                        "hint: stop it first",
                        name, slot.active_pid);
        usleep(1000 * SLOT_PAUSE_MS);
    }
    return true;
}

static bool
stand_alone(Cleanup *cleanup, Error *err)
{
    if (cleanup->cli->dry_run)
        return true;
    TRY(lock_folder(cleanup, err));
    return !cleanup->same_source || check_slot(cleanup, err);
}

/* --- what is printed ------------------------------------------------------------------------- */

static const char *const kind_names[] = {[CLEANUP_TABLE] = "table",
                                         [CLEANUP_PUBLICATION] = "publication",
                                         [CLEANUP_SLOT] = "slot",
                                         [CLEANUP_STATE] = "state object",
                                         [CLEANUP_FOLDER] = "state folder"};

static void
put_item(Buf *out, const char *what, const CleanupItem *item)
{
    buf_printf(out, "%s%s %s", what, kind_names[item->kind], item->name);
    if (item->known != NULL && strcmp(item->known, item->name) != 0)
        buf_printf(out, ", %s in the source", item->known);
    if (item->kind == CLEANUP_TABLE)
        buf_printf(out, " (%zu files, %" PRId64 " kB)", item->objects, (item->bytes + 1023) / 1024);
    buf_byte(out, '\n');
}

static void
put_items(const Cleanup *cleanup, Buf *out, const char *what)
{
    for (size_t i = 0; i < BUF_COUNT(&cleanup->items, CleanupItem); i++)
        if (!BUF_AT(&cleanup->items, CleanupItem, i).stays)
            put_item(out, what, &BUF_AT(&cleanup->items, CleanupItem, i));
}

static void
put_json(const Cleanup *cleanup, Buf *out)
{
    JsonWriter json;

    jw_begin(&json, out);
    jw_object(&json);
    jw_key(&json, "pipeline");
    jw_cstr(&json, cleanup->config->pipeline);
    jw_key(&json, "removed");
    jw_bool(&json, !cleanup->cli->dry_run);
    jw_key(&json, "items");
    jw_array(&json);
    for (size_t i = 0; i < BUF_COUNT(&cleanup->items, CleanupItem); i++) {
        const CleanupItem *item = &BUF_AT(&cleanup->items, CleanupItem, i);

        if (item->stays)
            continue;
        jw_object(&json);
        jw_key(&json, "kind");
        jw_cstr(&json, kind_names[item->kind]);
        jw_key(&json, "name");
        jw_cstr(&json, item->name);
        if (item->kind == CLEANUP_TABLE) {
            jw_key(&json, "files");
            jw_int(&json, (int64_t) item->objects);
            jw_key(&json, "bytes");
            jw_int(&json, item->bytes);
        }
        jw_end(&json);
    }
    jw_end(&json);
    jw_end(&json);
    buf_byte(out, '\n');
}

static void
print(const Cleanup *cleanup)
{
    AUTO_BUF Buf out = {0};

    for (size_t i = 0; i < BUF_COUNT(&cleanup->notes, const char *); i++)
        fprintf(stderr, "walberg: %s\n", BUF_AT(&cleanup->notes, const char *, i));
    if (cleanup->cli->json)
        put_json(cleanup, &out);
    else
        put_items(cleanup, &out, cleanup->cli->dry_run ? "would remove " : "removed ");
    cli_put(&out);
}

/* --- removing -------------------------------------------------------------------------------- */

static int
remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void) status;
    (void) type;
    (void) walk;
    return remove(path);
}

/* All below the path, but for other file systems there; none there is fine. */
static bool
remove_tree(const char *path, Error *err)
{
    /* one thread, and no other that walks */
    if (nftw(path, remove_entry, TREE_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0 || /* NOLINT */
        errno == ENOENT)
        return true;
    return FAIL(err, ERR_INPUT, "cannot remove %s: %s", path, strerrordesc_np(errno));
}

/* How far its rejects are recorded, and how many. Other pipelines may write to that table
 * meanwhile. */
static bool
forget_rejects(Cleanup *cleanup, Str table_uuid, Error *err)
{
    const TableName name = {.space = STR("_walberg"), .name = STR("rejects")};

    for (int conflicts = 0; conflicts < CONFLICTS_MAX; conflicts++) {
        AUTO_ARENA Arena *arena = arena_new();
        AUTO_BUF Buf json = {0};
        Str position = rejects_position_key(arena, table_uuid);
        Str count = rejects_count_key(arena, table_uuid);
        CatalogTable table;
        TableMetadata *metadata;
        bool found;

        TRY(catalog_load(cleanup->catalog, arena, &name, &table, &found, err));
        if (!found)
            return true;
        if (!metadata_parse(arena, table.metadata, &metadata, err))
            return true; /* damaged: it does not say */
        if (property_get(&metadata->properties, position.ptr).ptr == NULL &&
            property_get(&metadata->properties, count.ptr).ptr == NULL)
            return true;

        PropertyList rest = property_set(arena, &metadata->properties, position, STR_NULL);

        rest = property_set(arena, &rest, count, STR_NULL);
        metadata_write(metadata_set_properties(arena, metadata, &rest, table.metadata_location,
                                               clock_wall_us() / 1000),
                       &json);
        if (catalog_commit(cleanup->catalog, arena, &name, &table, buf_view(&json), &table, err))
            return true;
        if (err->kind != ERR_CONFLICT)
            return WRAP(err, "table _walberg.rejects");
    }
    return FAIL(err, ERR_TRANSIENT, "table _walberg.rejects: other pipelines write to it");
}

static bool
remove_table(Cleanup *cleanup, const CleanupItem *item, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *location = catalog_location(cleanup->catalog, arena, &item->table);
    const char *prefix = arena_printf(arena, "%s/", store_key(cleanup->store, arena, location));
    StoreObject *objects;
    size_t count;

    if (item->uuid != NULL)
        TRY(forget_rejects(cleanup, str_of(item->uuid), err));
    TRY(catalog_drop(cleanup->catalog, arena, &item->table, err));
    TRY(FAULT("cleanup.dropped", err));
    TRY(store_list(cleanup->store, prefix, arena, &objects, &count, err));
    for (size_t i = 0; i < count; i++) {
        TRY(FAULT("cleanup.file", err));
        TRY(store_remove(cleanup->store, arena_str(arena, objects[i].key).ptr, err));
    }
    if (item->uuid == NULL)
        return true;
    return remove_tree(arena_printf(arena, "%s/index/%s", cleanup->config->state, item->uuid), err);
}

static bool
is_removed(const Cleanup *cleanup, const StateTable *known)
{
    for (size_t i = 0; i < BUF_COUNT(&cleanup->items, CleanupItem); i++) {
        const CleanupItem *item = &BUF_AT(&cleanup->items, CleanupItem, i);

        if (item->kind == CLEANUP_TABLE && cleanup_is_lake_table(cleanup, known, &item->table))
            return true;
    }
    return false;
}

static bool
write_state(Cleanup *cleanup, Error *err)
{
    AUTO_BUF Buf text = {0};
    char *writer = ARENA_ARRAY(cleanup->arena, char, 37);
    const char *key = cli_state_key(cleanup->config, cleanup->arena);
    bool swapped;

    random_uuid(writer);
    cleanup->state.writer = writer;
    state_write(&cleanup->state, &text);
    TRY(FAULT("cleanup.state", err));
    TRY(store_put_match(cleanup->store, key, &cleanup->state_version, buf_view(&text), &swapped,
                        &cleanup->state_version, err));
    if (!swapped)
        return FAIL(err, ERR_INPUT,
                    "another process wrote the pipeline's state: walberg runs somewhere\n"
                    "hint: stop it first");
    return true;
}

/* Whoever runs the pipeline unseen is refused at its next write of the state, and before it could
 * tell the slot anything. */
static bool
claim_state(Cleanup *cleanup, Error *err)
{
    return !cleanup->has_state || write_state(cleanup, err);
}

/* The tables that are gone out of the state object. */
static bool
forget_tables(Cleanup *cleanup, Error *err)
{
    PipelineState *state = &cleanup->state;
    size_t kept = 0;

    for (size_t i = 0; i < state->table_count; i++)
        if (!is_removed(cleanup, &state->tables[i]))
            state->tables[kept++] = state->tables[i];
    if (kept == state->table_count)
        return true;
    state->table_count = kept;
    return write_state(cleanup, err);
}

static bool
drop_publication(Cleanup *cleanup, const char *name, Error *err)
{
    const char *sql = arena_printf(cleanup->arena, "DROP PUBLICATION IF EXISTS %s",
                                   pg_quote_identifier(cleanup->arena, str_of(name)));

    return pg_exec(cleanup->conn, NULL, sql, NULL, err) || WRAP(err, "drop publication %s", name);
}

/* What walberg makes in a state folder, but for its lock. A query server that was killed leaves
 * spill-<pid>. */
static bool
is_of_state(const char *name)
{
    static const char *const ours[] = {"index",       "cache",        "cache.lock",
                                       "cache.holds", "status.json",  "status.json.new",
                                       "resync",      "resync.taken", "resync.refused"};

    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return strncmp(name, "spill-", 6) == 0 && name[6] != '\0' &&
           name[6 + strspn(name + 6, "0123456789")] == '\0';
}

static void
close_dir(DIR **dir)
{
    if (*dir != NULL)
        closedir(*dir);
}

/* Only the link itself goes. */
static void
note_link(Cleanup *cleanup, const char *path)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target);

    if (n > 0)
        BUF_PUSH(&cleanup->notes, const char *,
                 arena_printf(cleanup->arena, "%s was a link: what is in %.*s stays", path, (int) n,
                              target));
}

/* The setting may name a folder that has more: that stays. */
static bool
remove_folder(Cleanup *cleanup, CleanupItem *item, Error *err)
{
    const char *folder = item->name;
    AUTO(close_dir) DIR *dir = opendir(folder);

    if (dir == NULL && errno != ENOENT)
        return FAIL(err, ERR_INPUT, "cannot read %s: %s", folder, strerrordesc_np(errno));
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) { /* NOLINT */
        const char *path = arena_printf(cleanup->arena, "%s/%s", folder, entry->d_name);

        if (!is_of_state(entry->d_name))
            continue;
        note_link(cleanup, path);
        TRY(remove_tree(path, err));
    }
    TRY(remove_tree(arena_printf(cleanup->arena, "%s/lock", folder), err));
    item->stays = rmdir(folder) != 0 && errno != ENOENT;
    if (item->stays)
        BUF_PUSH(&cleanup->notes, const char *,
                 arena_printf(cleanup->arena, "state folder %s stays: %s", folder,
                              strerrordesc_np(errno)));
    return true;
}

static bool
remove_item(Cleanup *cleanup, CleanupItem *item, Error *err)
{
    switch (item->kind) {
    case CLEANUP_TABLE:
        return remove_table(cleanup, item, err);
    case CLEANUP_PUBLICATION:
        return drop_publication(cleanup, item->name, err);
    case CLEANUP_SLOT:
        return source_slot_drop(cleanup->conn, cleanup->arena, item->name, err);
    case CLEANUP_STATE:
        return store_remove(cleanup->store, item->name, err);
    case CLEANUP_FOLDER:
        return remove_folder(cleanup, item, err);
    }
    return FAIL(err, ERR_BUG, "cleanup: kind %d", (int) item->kind);
}

static bool
remove_all(Cleanup *cleanup, Error *err)
{
    bool forgotten = false;

    TRY(claim_state(cleanup, err));
    for (size_t i = 0; i < BUF_COUNT(&cleanup->items, CleanupItem); i++) {
        CleanupItem *item = &BUF_AT(&cleanup->items, CleanupItem, i);

        if (item->kind != CLEANUP_TABLE && !forgotten) {
            TRY(forget_tables(cleanup, err));
            forgotten = true;
        }
        TRY(FAULT("cleanup.item", err));
        TRY(remove_item(cleanup, item, err));
    }
    if (!forgotten)
        TRY(forget_tables(cleanup, err));
    /* what it says of the tables is not so any more; run writes a new one */
    return remove_tree(arena_printf(cleanup->arena, "%s/status.json", cleanup->config->state), err);
}

/* --- the command ----------------------------------------------------------------------------- */

/* 0: yes; else the exit code. */
static int
ask(const Cleanup *cleanup)
{
    AUTO_BUF Buf list = {0};
    char answer[16];

    if (cleanup->cli->yes || cleanup->cli->dry_run || BUF_COUNT(&cleanup->items, CleanupItem) == 0)
        return 0;
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return cli_usage_error("cleanup removes tables for good, and nobody can be asked\n"
                               "hint: --yes does it, --dry-run lists what would go");
    put_items(cleanup, &list, "  ");
    fprintf(stderr, "These will be removed for good:\n%sGo on? [y/N] ", buf_text(&list));
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    fputs("walberg: nothing was removed\n", stderr);
    return 1;
}

static bool
open_ends(Cleanup *cleanup, Error *err)
{
    ServerInfo server;

    if (cleanup->conn == NULL)
        TRY(cli_connect_source(cleanup->config, &cleanup->conn, err));
    TRY(source_server_info(cleanup->conn, cleanup->arena, &server, err));
    TRY(cli_open_warehouse(cleanup->config, 0, &cleanup->store, err));
    TRY(catalog_open(cleanup->config->catalog_type, cleanup->store, &cleanup->catalog, err));
    TRY(cleanup_load_state(cleanup, err));
    cleanup->same_source =
        !cleanup->has_state ||
        (strcmp(cleanup->state.system_identifier, server.system_identifier) == 0 &&
         strcmp(cleanup->state.database, server.database) == 0);
    return stand_alone(cleanup, err);
}

static bool
take_settings(Cleanup *cleanup, Error *err)
{
    cleanup->default_publication = cleanup->config->source_publication == NULL;
    TRY(cli_need_source(cleanup->cli, err));
    TRY(cli_need_warehouse(cleanup->cli, err));
    if (cleanup->cli->all && cleanup->cli->arg_count > 0)
        return FAIL(err, ERR_INPUT, "--all and tables do not go together");
    return cli_resolve(cleanup->config, cleanup->arena, &cleanup->conn, err);
}

int
cmd_cleanup(const Cli *cli)
{
    AUTO(cleanup_done)
    Cleanup cleanup = {.cli = cli, .config = cli->config, .arena = cli->arena, .lock_fd = -1};
    Error err = {0};

    if (!take_settings(&cleanup, &err))
        return cli_fail_settings(&err);
    if (!open_ends(&cleanup, &err) || !cleanup_plan(&cleanup, &err))
        return cli_fail(&err);

    int refused = ask(&cleanup);

    if (refused != 0)
        return refused;
    if (!cli->dry_run && !remove_all(&cleanup, &err))
        return cli_fail(&err);
    print(&cleanup);
    return 0;
}
