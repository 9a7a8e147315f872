#include "query/lake.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/folder.h"
#include "query/copy_progress.h"
#include "query/lake_internal.h"
#include "query/pg_catalog.h"

enum { FIRST_RELATION_OID = 16384 };

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

/* Where the key is, or would be. */
static size_t
find_place(const Lake *lake, Str key, bool *out_found)
{
    size_t low = 0;
    size_t high = lake_table_count(lake);

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (str_cmp(str_of(lake_table(lake, mid)->key), key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *out_found = low < lake_table_count(lake) && str_eqc(key, lake_table(lake, low)->key);
    return low;
}

LakeTable *
lake_find_table(const Lake *lake, Str space, Str name)
{
    AUTO_BUF Buf key = {0};
    bool found = false;

    put_key(&key, space, name);

    size_t place = find_place(lake, buf_view(&key), &found);

    return found ? lake_table(lake, place) : NULL;
}

static char *
copy_text(Str text)
{
    char *copy = xcalloc(1, text.len + 1);

    memcpy(copy, text.ptr, text.len);
    return copy;
}

void
lake_name_table(LakeTable *table, Str space, Str name)
{
    free(table->space);
    free(table->name);
    table->space = copy_text(space);
    table->name = copy_text(name);
}

LakeTable *
lake_add_table(Lake *lake, Str space, Str name)
{
    AUTO_BUF Buf key = {0};
    LakeTable *table = xcalloc(1, sizeof *table);
    bool found = false;

    put_key(&key, space, name);
    table->key = copy_text(buf_view(&key));
    lake_name_table(table, space, name);
    table->oid = lake->next_oid++;

    size_t place = find_place(lake, buf_view(&key), &found);
    size_t count = lake_table_count(lake);

    assert(!found);
    buf_push(&lake->tables, sizeof(LakeTable *));

    LakeTable **at = &BUF_AT(&lake->tables, LakeTable *, place);

    memmove((void *) (at + 1), (void *) at, (count - place) * sizeof(LakeTable *));
    *at = table;
    return table;
}

static void
table_free(LakeTable *table)
{
    plan_cache_done(&table->cache);
    file_hold_done(&table->hold);
    file_hold_done(&table->next_hold);
    arena_free(table->arena);
    free(table->token);
    free(table->twin);
    free(table->reason);
    free(table->next_reason);
    text_numbers_done(&table->numbers);
    text_numbers_done(&table->next_numbers);
    free(table->key);
    free(table->space);
    free(table->name);
    free(table);
}

void
lake_remove_table(Lake *lake, LakeTable *table)
{
    bool found = false;
    size_t place = find_place(lake, str_of(table->key), &found);
    LakeTable **at = &BUF_AT(&lake->tables, LakeTable *, place);

    assert(found);
    memmove((void *) at, (void *) (at + 1),
            (lake_table_count(lake) - place - 1) * sizeof(LakeTable *));
    lake->tables.len -= sizeof(LakeTable *);
    table_free(table);
}

TableStanding
lake_find(Lake *lake, Arena *arena, Str space, Str name, Str *out_reason)
{
    TableStanding standing = TABLE_UNKNOWN;
    const char *copied = NULL; /* its name, if its copy is to be told of */

    pthread_mutex_lock(&lake->lock);

    const LakeTable *table = lake_find_table(lake, space, name);

    if (table != NULL && table->reason != NULL) {
        standing = TABLE_LEFT_OUT;
        *out_reason = arena_str(arena, str_of(table->reason));
        if (table->tells_progress)
            copied = arena_printf(arena, "%s.%s", table->space, table->name);
    } else if (table != NULL && table->shown) {
        standing = TABLE_READABLE;
    }
    pthread_mutex_unlock(&lake->lock);
    if (copied != NULL)
        *out_reason = arena_strf(arena, "%.*s%s", STR_ARG(*out_reason),
                                 copy_progress(arena, lake->options.state, copied));
    return standing;
}

void
lake_text_numbers(Lake *lake, Arena *arena, Str space, Str name, TextNumbers *out_numbers)
{
    TextNumbers numbers = {.arena = arena};

    pthread_mutex_lock(&lake->lock);

    const LakeTable *table = lake_find_table(lake, space, name);

    if (table != NULL)
        numbers.items = ARENA_ARRAY(arena, TextNumber, table->numbers.count);
    for (size_t i = 0; table != NULL && i < table->numbers.count; i++) {
        const TextNumber *number = &table->numbers.items[i];

        numbers.items[numbers.count++] = (TextNumber){.column = arena_str(arena, number->column),
                                                      .why = arena_str(arena, number->why)};
    }
    pthread_mutex_unlock(&lake->lock);
    *out_numbers = numbers;
}

bool
lake_has_space(Lake *lake, Str space)
{
    bool found = str_eqc(space, "public");

    pthread_mutex_lock(&lake->lock);
    for (size_t i = 0; i < lake_table_count(lake) && !found; i++)
        found = lake_table(lake, i)->shown && str_eqc(space, lake_table(lake, i)->space);
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

/* A pin of an epoch before the one that dropped something may still lead to it. */
void
lake_sweep(Lake *lake)
{
    size_t kept = 0;
    uint64_t oldest =
        BUF_COUNT(&lake->pins, Pin) == 0 ? UINT64_MAX : BUF_AT(&lake->pins, Pin, 0).epoch;

    for (size_t i = 0; i < BUF_COUNT(&lake->retired, Retired); i++) {
        Retired retired = BUF_AT(&lake->retired, Retired, i);

        if (retired.epoch > oldest) {
            BUF_AT(&lake->retired, Retired, kept++) = retired;
            continue;
        }
        dead_table_retire(lake->dead, retired.set);
        file_hold_done(&retired.hold);
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
    lake_sweep(lake);
    pthread_mutex_unlock(&lake->lock);
}

/* --- opening ------------------------------------------------------------------------------- */

/* The state folder, made, by its absolute path: DuckDB compares paths as text. */
static bool
open_state(Lake *lake, char **out_spill, Error *err)
{
    AUTO_BUF Buf folder = {0};

    TRY(folder_make(lake->options.state, 0700, err));

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
    lake->files.store = lake->options.warehouse;
    lake->files.folder = lake->cache_folder;
    lake->files.bytes_max = lake->options.cache_bytes_max;
    return folder_make(lake->cache_folder, 0700, err);
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
        &(DuckOptions){.memory_bytes_max = lake->options.memory_bytes_max,
                       .temp_directory = lake->options.spill_bytes_max == 0 ? NULL : spill,
                       .temp_bytes_max = lake->options.spill_bytes_max},
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
    if (lake == NULL)
        return;
    for (size_t i = 0; i < lake_table_count(lake); i++)
        table_free(lake_table(lake, i));
    buf_done(&lake->tables);
    duck_session_close(lake->session);
    duck_close(lake->duck);
    dead_table_free(lake->dead);
    catalog_close(lake->catalog);
    for (size_t i = 0; i < BUF_COUNT(&lake->pipelines, char *); i++)
        free(BUF_AT(&lake->pipelines, char *, i));
    buf_done(&lake->pipelines);
    buf_done(&lake->pins);
    for (size_t i = 0; i < BUF_COUNT(&lake->retired, Retired); i++)
        file_hold_done(&BUF_AT(&lake->retired, Retired, i).hold);
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

LakeStats
lake_stats(Lake *lake)
{
    LakeStats stats = {.cached_bytes = lake->files.fetched_bytes};

    pthread_mutex_lock(&lake->lock);
    stats.epoch = lake->epoch;
    for (size_t i = 0; i < lake_table_count(lake); i++) {
        stats.tables += lake_table(lake, i)->shown && lake_table(lake, i)->reason == NULL;
        stats.left_out += lake_table(lake, i)->reason != NULL;
        stats.retried += lake_table(lake, i)->retry_ms != 0;
    }
    pthread_mutex_unlock(&lake->lock);
    return stats;
}
