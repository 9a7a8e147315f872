#include "cli/check.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "catalog/catalog.h"
#include "cli/connect.h"
#include "iceberg/metadata.h"
#include "pipeline/state.h"
#include "store/store.h"

enum { RETRY_MS_MAX = 10000 };

static void
close_store(Store **store)
{
    store_close(*store);
}

static void
close_catalog(Catalog **catalog)
{
    catalog_close(*catalog);
}

/* --- the probe ------------------------------------------------------------------------------- */

/* Everything promised to the source hangs on two refusals: a second writer of one key, and a swap
 * on an old version. Some services accept the conditions and do not keep them. */
static bool
probe_refusals(Store *store, const char *key, Error *err)
{
    StoreVersion first;
    StoreVersion second;
    AUTO_BUF Buf content = {0};
    bool done = false;
    bool found = false;

    TRY(store_put_absent(store, key, STR("first"), &done, err));
    if (!done)
        return FAIL(err, ERR_INPUT, "a new object %s was taken for an old one", key);
    TRY(store_put_absent(store, key, STR("second"), &done, err));
    if (done)
        return FAIL(err, ERR_INPUT,
                    "the store overwrites an object that must not exist\n"
                    "hint: it lacks conditional writes (If-None-Match); two writers would lose "
                    "each other's commits");
    TRY(store_get(store, key, &content, &found, &first, err));
    if (!found || !str_eq(buf_view(&content), STR("first")))
        return FAIL(err, ERR_INPUT, "object %s does not read back as it was written", key);
    TRY(store_put_match(store, key, &first, STR("third"), &done, &second, err));
    if (!done)
        return FAIL(err, ERR_INPUT, "the store refuses to swap an object nobody else touched");
    TRY(store_put_match(store, key, &first, STR("fourth"), &done, &second, err));
    if (done)
        return FAIL(err, ERR_INPUT,
                    "the store swaps an object that has changed meanwhile\n"
                    "hint: it lacks conditional writes (If-Match); two writers would lose each "
                    "other's commits");
    return true;
}

/* The probe has a folder of its own: what a file store leaves in it beside the object (the lock of
 * a swap) is nobody else's and can go. */
static void
probe_store(Report *report, Store *store, const char *folder)
{
    Error err = {0};
    Error removal = {0};
    const char *key = arena_printf(report->arena, "%s/probe", folder);
    bool sound = probe_refusals(store, key, &err);
    bool removed = store_remove(store, key, &removal);

    if (!sound)
        report_message(report, "warehouse", VERDICT_FAIL, err.msg);
    else if (!removed)
        report_message(report, "warehouse", VERDICT_FAIL, removal.msg);
    else
        report_add(report, "warehouse", VERDICT_OK, "%s takes objects, compare-and-swap holds",
                   store->base_uri);
}

/* --- a lake that is not there yet ------------------------------------------------------------ */

static bool
exists(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0;
}

/* Length of the part of a local path that is there already: folders behind it are made by the
 * store and taken away afterwards, because a check leaves nothing behind. */
static size_t
existing_part(Arena *arena, const char *path)
{
    char *part = arena_strdup(arena, path);
    size_t length = strlen(part);

    while (length > 0 && !exists(part)) {
        while (length > 0 && part[length - 1] != '/')
            length--;
        while (length > 0 && part[length - 1] == '/')
            length--;
        part[length] = '\0';
    }
    return length;
}

static void
remove_files(const char *folder)
{
    DIR *dir = opendir(folder);

    if (dir == NULL)
        return;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) /* NOLINT */
        if (entry->d_type == DT_REG)
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

/* rmdir(2) takes empty folders only, so nothing of value can go. */
static void
remove_new_folders(Arena *arena, const char *path, size_t keep)
{
    char *part = arena_strdup(arena, path);
    size_t length = strlen(part);

    remove_files(path);
    while (length > keep && (rmdir(part) == 0 || errno == ENOENT)) {
        while (length > keep && part[length - 1] != '/')
            length--;
        while (length > keep && part[length - 1] == '/')
            length--;
        part[length] = '\0';
    }
}

const char *
check_local_path(Arena *arena, const char *warehouse, const char *key)
{
    Str text = {.ptr = warehouse, .len = strlen(warehouse)};

    if (str_starts(text, STR("file://")))
        text = (Str){.ptr = text.ptr + 7, .len = text.len - 7};
    else if (strstr(warehouse, "://") != NULL)
        return NULL;
    while (text.len > 1 && text.ptr[text.len - 1] == '/')
        text.len--;
    return arena_printf(arena, "%.*s/%s", STR_ARG(text), key);
}

/* --- all of it ------------------------------------------------------------------------------- */

/* Those of our tables; none when there is no pipeline yet. */
static bool
load_state(const Config *config, Arena *arena, Store *store, PipelineState *state, Error *err)
{
    return config->pipeline == NULL || cli_load_state(config, arena, store, state, NULL, err);
}

static bool
is_ours(const PipelineState *state, const char *name)
{
    for (size_t i = 0; i < state->table_count; i++)
        if (strcmp(state->tables[i].lake, name) == 0)
            return true;
    return strcmp(name, "_walberg.rejects") == 0;
}

/* Such a table is parked or left out alone, so nothing else says it before. That of another
 * pipeline, or of another program, only cannot be queried. */
static void
check_metadata(Report *report, Catalog *catalog, const PipelineState *state, const TableName *name)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *full = arena_printf(arena, "%.*s.%.*s", STR_ARG(name->space), STR_ARG(name->name));
    CatalogTable loaded;
    TableMetadata *metadata;
    bool found;
    Error err = {0};

    if (!catalog_load(catalog, arena, name, &loaded, &found, &err) ||
        (found && !metadata_parse(arena, loaded.metadata, &metadata, &err)))
        report_message(report, arena_printf(arena, "lake table %s", full),
                       is_ours(state, full) ? VERDICT_FAIL : VERDICT_WARN, err.msg);
}

static void
check_catalog(Report *report, const Config *config, Store *store)
{
    AUTO(close_catalog) Catalog *catalog = NULL;
    PipelineState state = {0};
    TableName *names = NULL;
    size_t count = 0;
    Error err = {0};

    if (!catalog_open(config->catalog_type, store, &catalog, &err) ||
        !catalog_list(catalog, report->arena, &names, &count, &err)) {
        report_message(report, "catalog", VERDICT_FAIL, err.msg);
        return;
    }
    report_add(report, "catalog", VERDICT_OK, "%s, %zu table%s", config->catalog_type, count,
               count == 1 ? "" : "s");
    if (!load_state(config, report->arena, store, &state, &err))
        report_message(report, "state object", VERDICT_FAIL, err.msg);
    for (size_t i = 0; i < count; i++)
        check_metadata(report, catalog, &state, &names[i]);
}

void
check_lake(Report *report, const Config *config)
{
    char id[37];

    random_uuid(id);

    const char *probe = arena_printf(report->arena, "_walberg/check-%s", id);
    const char *folder = check_local_path(report->arena, config->warehouse, probe);
    size_t keep = folder == NULL ? 0 : existing_part(report->arena, folder);
    AUTO(close_store) Store *store = NULL;
    Error err = {0};

    if (cli_open_warehouse(config, RETRY_MS_MAX, &store, &err)) {
        probe_store(report, store, probe);
        check_catalog(report, config, store);
    } else {
        report_message(report, "warehouse", VERDICT_FAIL, err.msg);
    }
    if (folder != NULL)
        remove_new_folders(report->arena, folder, keep);
}
