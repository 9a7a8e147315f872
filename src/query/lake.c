#include "query/lake.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uthash.h>

#include "avro/json_node.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "iceberg/metadata.h"
#include "model/position.h"
#include "query/pg_catalog.h"
#include "query/view_sql.h"

enum { FIRST_RELATION_OID = 16384 };

typedef struct LakeTable LakeTable;

struct LakeTable {
    char *key; /* lower case "space\1name" */
    char *space;
    char *name;
    uint32_t oid;
    bool listed; /* by the catalog, in this refresh */

    char *token;  /* of the metadata */
    Arena *arena; /* of the metadata */
    TableMetadata *metadata;
    PlanCache cache;

    bool settled;           /* it was looked at before: it is shown or left out */
    bool shown;             /* there is a view */
    bool changed;           /* in this refresh: metadata or committed position */
    int64_t snapshot_id;    /* that was wanted last; 0: none */
    const Snapshot *wanted; /* that it shall show; NULL: none */
    uint64_t dead_set;      /* of the view; 0: none */
    uint64_t next_dead_set; /* of the one being made */
    char *reason;           /* why it is left out; NULL: it is not */
    UT_hash_handle hh;
};

typedef struct Pin {
    uint64_t epoch;
    size_t count;
} Pin;

/* A set of deleted rows that no new statement asks for. */
typedef struct Retired {
    uint64_t epoch; /* the first one without it */
    uint64_t set;
} Retired;

typedef struct Pipeline {
    Str name;
    bool known; /* its state says how far all tables are */
    Position committed;
} Pipeline;

struct Lake {
    LakeOptions options;
    char *cache_folder;
    Catalog *catalog;
    Duck *duck;
    DeadTable *dead;
    DuckSession *session; /* of the refresh */
    FileCache files;
    uint32_t next_oid;
    Buf pipelines; /* char *, names of those that tables told of */

    pthread_mutex_t lock; /* of what follows: sessions look at it */
    LakeTable *tables;
    uint64_t epoch;
    Buf pins;    /* Pin, ascending */
    Buf retired; /* Retired, ascending */
};

/* What one refresh works with. */
typedef struct Refresh {
    Lake *lake;
    Arena *arena;
    Buf pipelines; /* Pipeline, as they were before the tables were looked at */
    bool again;    /* a pipeline turned up that was not among them */
    bool any_change;
} Refresh;

/* --- names --------------------------------------------------------------------------------- */

static void
put_lower(Buf *out, Str s)
{
    for (size_t i = 0; i < s.len; i++)
        buf_byte(out, (uint8_t) tolower((unsigned char) s.ptr[i]));
}

static void
put_key(Buf *out, Str space, Str name)
{
    put_lower(out, space);
    buf_byte(out, 1);
    put_lower(out, name);
}

static LakeTable *
find_table(Lake *lake, Str space, Str name)
{
    AUTO_BUF Buf key = {0};
    LakeTable *table = NULL;

    put_key(&key, space, name);
    HASH_FIND(hh, lake->tables, key.ptr, key.len, table);
    return table;
}

static LakeTable *
add_table(Lake *lake, Str space, Str name)
{
    AUTO_BUF Buf text = {0};
    LakeTable *table = xcalloc(1, sizeof *table);

    put_key(&text, space, name);
    table->key = xstrdup(buf_text(&text));

    size_t key_length = text.len;

    buf_reset(&text);
    buf_str(&text, space);
    table->space = xstrdup(buf_text(&text));
    buf_reset(&text);
    buf_str(&text, name);
    table->name = xstrdup(buf_text(&text));
    table->oid = lake->next_oid++;
    HASH_ADD_KEYPTR(hh, lake->tables, table->key, key_length, table);
    return table;
}

static void
table_free(LakeTable *table)
{
    plan_cache_done(&table->cache);
    arena_free(table->arena);
    free(table->token);
    free(table->reason);
    free(table->key);
    free(table->space);
    free(table->name);
    free(table);
}

TableStanding
lake_find(Lake *lake, Arena *arena, Str space, Str name, Str *out_reason)
{
    TableStanding standing = TABLE_UNKNOWN;

    pthread_mutex_lock(&lake->lock);

    const LakeTable *table = find_table(lake, space, name);

    if (table != NULL && table->reason != NULL) {
        standing = TABLE_LEFT_OUT;
        *out_reason = arena_str(arena, str_of(table->reason));
    } else if (table != NULL && table->shown) {
        standing = TABLE_READABLE;
    }
    pthread_mutex_unlock(&lake->lock);
    return standing;
}

bool
lake_has_space(Lake *lake, Str space)
{
    bool found = str_eqc(space, "public");

    pthread_mutex_lock(&lake->lock);
    for (const LakeTable *table = lake->tables; table != NULL && !found; table = table->hh.next)
        found = table->shown && str_eqc(space, table->space);
    pthread_mutex_unlock(&lake->lock);
    return found;
}

/* --- pins ---------------------------------------------------------------------------------- */

uint64_t
lake_pin(Lake *lake)
{
    pthread_mutex_lock(&lake->lock);

    uint64_t epoch = lake->epoch;
    size_t count = BUF_COUNT(&lake->pins, Pin);

    if (count > 0 && BUF_AT(&lake->pins, Pin, count - 1).epoch == epoch)
        BUF_AT(&lake->pins, Pin, count - 1).count++;
    else
        BUF_PUSH(&lake->pins, Pin, ((Pin){.epoch = epoch, .count = 1}));
    pthread_mutex_unlock(&lake->lock);
    return epoch;
}

/* Under the lock: free the sets that nobody can ask for any more. A pin of an epoch before the one
 * that dropped a set may still lead to it. */
static void
sweep(Lake *lake)
{
    size_t kept = 0;
    uint64_t oldest =
        BUF_COUNT(&lake->pins, Pin) == 0 ? UINT64_MAX : BUF_AT(&lake->pins, Pin, 0).epoch;

    for (size_t i = 0; i < BUF_COUNT(&lake->retired, Retired); i++) {
        Retired retired = BUF_AT(&lake->retired, Retired, i);

        if (retired.epoch <= oldest)
            dead_table_retire(lake->dead, retired.set);
        else
            BUF_AT(&lake->retired, Retired, kept++) = retired;
    }
    lake->retired.len = kept * sizeof(Retired);
}

void
lake_unpin(Lake *lake, uint64_t pin)
{
    size_t kept = 0;

    pthread_mutex_lock(&lake->lock);
    for (size_t i = 0; i < BUF_COUNT(&lake->pins, Pin); i++) {
        Pin held = BUF_AT(&lake->pins, Pin, i);

        if (held.epoch == pin)
            held.count--;
        if (held.count > 0)
            BUF_AT(&lake->pins, Pin, kept++) = held;
    }
    lake->pins.len = kept * sizeof(Pin);
    sweep(lake);
    pthread_mutex_unlock(&lake->lock);
}

/* --- opening ------------------------------------------------------------------------------- */

static bool
make_folder(const char *path, Error *err)
{
    AUTO_FREE char *copy = xstrdup(path);

    for (char *at = strchr(copy + 1, '/');; at = strchr(at + 1, '/')) {
        if (at != NULL)
            *at = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            return FAIL(err, ERR_INPUT, "%s: %s", copy, strerrordesc_np(errno));
        if (at == NULL)
            return true;
        *at = '/';
    }
}

/* The state folder, made, by its absolute path: DuckDB compares paths as text. */
static bool
open_state(Lake *lake, char **out_spill, Error *err)
{
    AUTO_BUF Buf folder = {0};

    TRY(make_folder(lake->options.state, err));

    char *state = realpath(lake->options.state, NULL);

    if (state == NULL)
        return FAIL(err, ERR_INPUT, "%s: %s", lake->options.state, strerrordesc_np(errno));
    /* DuckDB makes it when needed and removes it; two servers may share a state folder */
    buf_printf(&folder, "%s/spill-%d", state, (int) getpid());
    *out_spill = xstrdup(buf_text(&folder));
    buf_reset(&folder);
    buf_printf(&folder, "%s/cache", state);
    free(state);
    lake->cache_folder = xstrdup(buf_text(&folder));
    lake->files = (FileCache){.store = lake->options.warehouse, .folder = lake->cache_folder};
    return make_folder(lake->cache_folder, err);
}

/* The folders that statements may read from: that of a local warehouse, and the cache. */
static bool
lock_down(Lake *lake, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *folders[2] = {arena_printf(arena, "%s/", lake->cache_folder), NULL};
    const char *inside = store_local_path(lake->options.warehouse, arena, "x");
    size_t count = 1;

    if (inside != NULL)
        folders[count++] = arena_printf(arena, "%.*s", (int) strlen(inside) - 1, inside);
    TRY(duck_register_live(lake->duck, lake->dead, err));
    return duck_lockdown(lake->duck, folders, count, err);
}

static bool
open_parts(Lake *lake, Error *err)
{
    AUTO_FREE char *spill = NULL;

    TRY(open_state(lake, &spill, err));
    TRY(catalog_open(lake->options.catalog_type, lake->options.warehouse, &lake->catalog, err));
    TRY(duck_open(
        &(DuckOptions){.memory_bytes_max = lake->options.memory_bytes_max, .temp_directory = spill},
        &lake->duck, err));
    TRY(lock_down(lake, err));
    TRY(duck_session_open(lake->duck, &lake->session, err));
    return pg_catalog_install(lake->session, err);
}

bool
lake_open(const LakeOptions *options, Lake **out_lake, Error *err)
{
    Lake *lake = xcalloc(1, sizeof *lake);

    lake->options = *options;
    lake->dead = dead_table_new();
    lake->next_oid = FIRST_RELATION_OID;
    lake->epoch = 1;
    pthread_mutex_init(&lake->lock, NULL);
    if (!open_parts(lake, err)) {
        lake_close(lake);
        return false;
    }
    *out_lake = lake;
    return true;
}

void
lake_close(Lake *lake)
{
    LakeTable *table;
    LakeTable *next;

    if (lake == NULL)
        return;
    HASH_ITER(hh, lake->tables, table, next)
    {
        HASH_DEL(lake->tables, table);
        table_free(table);
    }
    duck_session_close(lake->session);
    duck_close(lake->duck);
    dead_table_free(lake->dead);
    catalog_close(lake->catalog);
    for (size_t i = 0; i < BUF_COUNT(&lake->pipelines, char *); i++)
        free(BUF_AT(&lake->pipelines, char *, i));
    buf_done(&lake->pipelines);
    buf_done(&lake->pins);
    buf_done(&lake->retired);
    pthread_mutex_destroy(&lake->lock);
    free(lake->cache_folder);
    free(lake);
}

bool
lake_connect(Lake *lake, DuckSession **out_session, Error *err)
{
    return duck_session_open(lake->duck, out_session, err);
}

/* --- refresh: what changed ----------------------------------------------------------------- */

/* The namespace _walberg is the pipelines' own; only what was rejected is for everybody. */
static bool
is_hidden(const TableName *name)
{
    return str_eqc(name->space, "_walberg") && !str_eqc(name->name, "rejects");
}

static void
forget_metadata(LakeTable *table)
{
    arena_free(table->arena);
    free(table->token);
    table->arena = NULL;
    table->metadata = NULL;
    table->token = NULL;
}

static void
leave_out(LakeTable *table, const char *reason)
{
    if (table->reason == NULL || strcmp(table->reason, reason) != 0)
        log_warn("table left out", LOG_STR("schema", table->space), LOG_STR("table", table->name),
                 LOG_STR("reason", reason));
    free(table->reason);
    table->reason = xstrdup(reason);
}

/* Metadata that cannot be understood concerns this table only. */
static bool
load_metadata(Refresh *refresh, LakeTable *table, const TableName *name, Error *err)
{
    CatalogTable loaded;
    bool found = false;

    forget_metadata(table);
    table->arena = arena_new();
    TRY(catalog_load(refresh->lake->catalog, table->arena, name, &loaded, &found, err));
    table->listed = found;
    table->changed = true;
    if (!found)
        return true;
    table->token = xstrdup(loaded.token);
    if (metadata_parse(table->arena, loaded.metadata, &table->metadata, err))
        return true;
    table->metadata = NULL;
    leave_out(table, err->msg);
    return err->kind == ERR_INPUT;
}

static bool
look_at_table(Refresh *refresh, const TableName *name, Error *err)
{
    Lake *lake = refresh->lake;
    LakeTable *table = find_table(lake, name->space, name->name);
    const char *token = NULL;

    if (is_hidden(name))
        return true;
    if (table == NULL) {
        pthread_mutex_lock(&lake->lock);
        table = add_table(lake, name->space, name->name);
        pthread_mutex_unlock(&lake->lock);
    } else if (!str_eqc(name->space, table->space) || !str_eqc(name->name, table->name)) {
        log_debug("table left out", LOG_VIEW("schema", name->space), LOG_VIEW("table", name->name),
                  LOG_STR("reason", "its name differs from another's in case only"));
        return true;
    }
    table->listed = true;
    TRY(catalog_current_token(lake->catalog, refresh->arena, name, table->token, &token, err));
    if (token == NULL)
        table->listed = false;
    else if (table->token == NULL || strcmp(token, table->token) != 0)
        TRY(load_metadata(refresh, table, name, err));
    return true;
}

/* How far all tables of a pipeline are committed, from its state object. */
static bool
read_pipeline(Refresh *refresh, const char *name, Error *err)
{
    AUTO_BUF Buf bytes = {0};
    const char *key = arena_printf(refresh->arena, "_walberg/%s.json", name);
    Pipeline pipeline = {.name = str_of(name)};
    Error ignored;

    TRY(store_get(refresh->lake->options.warehouse, key, &bytes, &pipeline.known, NULL, err));
    if (pipeline.known) {
        AUTO_NODE JsonNode *json = NULL;
        Str committed = STR("");

        /* no word of what is committed: nothing is */
        if (!node_parse(buf_view(&bytes), &json, &ignored) ||
            !node_to_str(node_get(json, "committed"), &committed) ||
            !position_parse(committed, &pipeline.committed, &ignored))
            pipeline.committed = POSITION_NONE;
    }
    BUF_PUSH(&refresh->pipelines, Pipeline, pipeline);
    return true;
}

static bool
read_pipelines(Refresh *refresh, Error *err)
{
    const Buf *names = &refresh->lake->pipelines;

    buf_reset(&refresh->pipelines);
    for (size_t i = 0; i < BUF_COUNT(names, char *); i++)
        TRY(read_pipeline(refresh, BUF_AT(names, char *, i), err));
    return true;
}

/* NULL: it was not known when this refresh began; the next round knows it. */
static const Pipeline *
find_pipeline(Refresh *refresh, Str name)
{
    for (size_t i = 0; i < BUF_COUNT(&refresh->pipelines, Pipeline); i++)
        if (str_eq(BUF_AT(&refresh->pipelines, Pipeline, i).name, name))
            return &BUF_AT(&refresh->pipelines, Pipeline, i);
    BUF_PUSH(&refresh->lake->pipelines, char *, xstrdup(arena_str(refresh->arena, name).ptr));
    BUF_PUSH(&refresh->pipelines, Pipeline, ((Pipeline){.name = arena_str(refresh->arena, name)}));
    refresh->again = true;
    return NULL;
}

/* Which snapshot a table shall show; it changes when that or the metadata does. */
static void
choose_snapshot(Refresh *refresh, LakeTable *table)
{
    const TableMetadata *metadata = table->metadata;
    Str name = property_get(&metadata->properties, "cdc.pipeline");
    const Pipeline *pipeline = name.ptr == NULL ? NULL : find_pipeline(refresh, name);

    table->wanted = plan_choose_snapshot(metadata, pipeline != NULL && pipeline->known,
                                         pipeline == NULL ? POSITION_NONE : pipeline->committed);
    if (!table->settled ||
        table->snapshot_id != (table->wanted == NULL ? 0 : table->wanted->snapshot_id))
        table->changed = true;
}

static bool
look_at_tables(Refresh *refresh, Error *err)
{
    Lake *lake = refresh->lake;
    TableName *names = NULL;
    size_t count = 0;

    TRY(catalog_list(lake->catalog, refresh->arena, &names, &count, err));
    for (LakeTable *table = lake->tables; table != NULL; table = table->hh.next)
        table->listed = false;
    for (size_t i = 0; i < count; i++)
        TRY(look_at_table(refresh, &names[i], err));
    for (LakeTable *table = lake->tables; table != NULL; table = table->hh.next)
        if (table->listed && table->metadata != NULL)
            choose_snapshot(refresh, table);
    return true;
}

/* The committed position is read before the tables: they may be ahead of it, never behind. */
static bool
look_at_catalog(Refresh *refresh, Error *err)
{
    Lake *lake = refresh->lake;

    for (LakeTable *table = lake->tables; table != NULL; table = table->hh.next)
        table->changed = false;
    do {
        refresh->again = false;
        TRY(read_pipelines(refresh, err));
        TRY(look_at_tables(refresh, err));
    } while (refresh->again);
    for (LakeTable *table = lake->tables; table != NULL; table = table->hh.next)
        refresh->any_change = refresh->any_change || table->changed || !table->listed;
    return true;
}

/* --- refresh: the new views ---------------------------------------------------------------- */

static const IcebergSchema *
wanted_schema(const LakeTable *table)
{
    const TableMetadata *metadata = table->metadata;
    const IcebergSchema *schema = NULL;

    /* The schema of an older snapshot is the one it was written with. */
    if (table->wanted != NULL && table->wanted->snapshot_id != metadata->current_snapshot_id)
        schema = metadata_find_schema(metadata, table->wanted->schema_id);
    return schema == NULL ? metadata_current_schema(metadata) : schema;
}

/* Why it cannot be shown whatever its files are, or NULL. */
static const char *
flaw(const LakeTable *table, const IcebergSchema *schema)
{
    Str space = str_of(table->space);

    if (pg_catalog_owns_schema(space))
        return "the name of its schema is taken";
    if (schema->field_count == 0)
        return "it has no columns";
    if (!iceberg_schema_understood(schema))
        return "it has a column of a type that is not supported";
    return NULL;
}

/* What will be run for one table. */
typedef struct Change {
    LakeTable *table;
    const char *sql;
    bool shows; /* else it takes the view away */
    bool later; /* its files cannot be had at the moment: it stays as it is */
} Change;

/* Files that cannot be had now are tried again with the next refresh. */
static void
put_off(Change *change, const Error *err)
{
    log_warn("table not refreshed", LOG_STR("schema", change->table->space),
             LOG_STR("table", change->table->name), LOG_STR("error", err->msg));
    change->later = true;
}

/* The statements that show a table's wanted state. */
static void
put_table(Refresh *refresh, Change *change, Buf *sql)
{
    LakeTable *table = change->table;
    Lake *lake = refresh->lake;
    const IcebergSchema *schema = wanted_schema(table);
    TablePlan plan = {0};
    Error err = {0};
    PgAttribute *attributes;
    size_t count;

    if (flaw(table, schema) != NULL) {
        leave_out(table, flaw(table, schema));
        return;
    }
    if (table->wanted != NULL && !table_plan_make(refresh->arena,
                                                  &(PlanMake){.files = &lake->files,
                                                              .duck = lake->duck,
                                                              .cache = &table->cache,
                                                              .snapshot = table->wanted},
                                                  &plan, &err)) {
        if (err.kind == ERR_INPUT)
            leave_out(table, err.msg);
        else
            put_off(change, &err);
        return;
    }
    table->next_dead_set = plan.dead == NULL ? 0 : dead_table_publish(lake->dead, plan.dead);

    ViewTable view = {
        .space = str_of(table->space),
        .name = str_of(table->name),
        .metadata = table->metadata,
        .schema = schema,
        .plan = table->wanted == NULL ? NULL : &plan,
        .dead_set = table->next_dead_set,
    };

    buf_cstr(sql, "CREATE SCHEMA IF NOT EXISTS ");
    duck_quote_identifier(sql, view.space);
    buf_byte(sql, ';');
    view_put(sql, &view);
    buf_byte(sql, ';');
    view_attributes(refresh->arena, &view, &attributes, &count);
    pg_catalog_put_relation(
        sql,
        &(PgRelation){.oid = table->oid, .space = view.space, .name = view.name, .rows = plan.rows},
        attributes, count);
    change->shows = true;
}

static void
put_drop(const LakeTable *table, Buf *sql)
{
    buf_cstr(sql, "DROP VIEW IF EXISTS ");
    duck_quote_identifier(sql, str_of(table->space));
    buf_byte(sql, '.');
    duck_quote_identifier(sql, str_of(table->name));
    buf_byte(sql, ';');
    pg_catalog_drop_relation(sql, table->oid);
}

static Change
plan_change(Refresh *refresh, LakeTable *table)
{
    AUTO_BUF Buf sql = {0};
    Change change = {.table = table};

    if (table->listed && table->metadata != NULL)
        put_table(refresh, &change, &sql);
    if (!change.shows && !change.later) {
        buf_reset(&sql);
        if (table->shown)
            put_drop(table, &sql);
    }
    change.sql = arena_strdup(refresh->arena, buf_text(&sql));
    return change;
}

static bool
run_change(Lake *lake, Change *change, Arena *arena)
{
    AUTO_BUF Buf sql = {0};
    Error err = {0};

    if (change->sql[0] == '\0' || duck_session_run(lake->session, change->sql, &err))
        return true;
    if (!change->shows) /* taking a view away does not fail */
        log_error("cannot drop a view", LOG_STR("error", err.msg));
    leave_out(change->table, err.msg);
    if (change->table->shown)
        put_drop(change->table, &sql);
    change->sql = arena_strdup(arena, buf_text(&sql));
    change->shows = false;
    return false;
}

/* All changes in one transaction; a table that DuckDB does not take is left out and all begins
 * again. */
static bool
run_changes(Refresh *refresh, Buf *changes, Error *err)
{
    Lake *lake = refresh->lake;
    size_t count = BUF_COUNT(changes, Change);

    for (size_t restart = 0; restart <= count; restart++) {
        size_t done = 0;

        TRY(duck_session_run(lake->session, "BEGIN TRANSACTION", err));
        while (done < count && run_change(lake, &BUF_AT(changes, Change, done), refresh->arena))
            done++;
        if (done == count)
            return duck_session_run(lake->session, "COMMIT", err);
        TRY(duck_session_run(lake->session, "ROLLBACK", err));
    }
    return FAIL(err, ERR_BUG, "the views cannot be replaced");
}

/* Under the lock: what sessions see follows what DuckDB has. */
static void
settle(Lake *lake, const Change *change)
{
    LakeTable *table = change->table;

    if (change->later) {
        forget_metadata(table);
        return;
    }
    if (table->dead_set != 0)
        BUF_PUSH(&lake->retired, Retired,
                 ((Retired){.epoch = lake->epoch, .set = table->dead_set}));
    if (!change->shows && table->next_dead_set != 0)
        BUF_PUSH(&lake->retired, Retired,
                 ((Retired){.epoch = lake->epoch, .set = table->next_dead_set}));
    table->dead_set = change->shows ? table->next_dead_set : 0;
    table->next_dead_set = 0;
    table->settled = true;
    table->shown = change->shows;
    table->snapshot_id = table->wanted == NULL ? 0 : table->wanted->snapshot_id;
    if (change->shows) {
        free(table->reason);
        table->reason = NULL;
    }
    if (!table->listed) {
        HASH_DEL(lake->tables, table);
        table_free(table);
    }
}

static bool
replace_views(Refresh *refresh, Error *err)
{
    Lake *lake = refresh->lake;
    AUTO_BUF Buf changes = {0};

    for (LakeTable *table = lake->tables; table != NULL; table = table->hh.next)
        if (table->changed || !table->listed)
            BUF_PUSH(&changes, Change, plan_change(refresh, table));
    TRY(run_changes(refresh, &changes, err));
    pthread_mutex_lock(&lake->lock);
    lake->epoch++;
    for (size_t i = 0; i < BUF_COUNT(&changes, Change); i++)
        settle(lake, &BUF_AT(&changes, Change, i));
    sweep(lake);
    pthread_mutex_unlock(&lake->lock);
    return true;
}

static void
refresh_done(Refresh *refresh)
{
    buf_done(&refresh->pipelines);
    arena_free(refresh->arena);
}

bool
lake_refresh(Lake *lake, bool *out_changed, Error *err)
{
    AUTO(refresh_done) Refresh refresh = {.lake = lake, .arena = arena_new()};

    *out_changed = false;
    TRY(look_at_catalog(&refresh, err));
    if (!refresh.any_change)
        return true;
    TRY(replace_views(&refresh, err));
    *out_changed = true;
    return true;
}

LakeStats
lake_stats(Lake *lake)
{
    LakeStats stats = {.cached_bytes = lake->files.bytes};

    pthread_mutex_lock(&lake->lock);
    stats.epoch = lake->epoch;
    for (const LakeTable *table = lake->tables; table != NULL; table = table->hh.next) {
        stats.tables += table->shown;
        stats.left_out += table->reason != NULL;
    }
    pthread_mutex_unlock(&lake->lock);
    return stats;
}
