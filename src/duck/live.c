/* live.c - walberg_live(set, file_index, file_row_number): is this row not deleted?
 *
 * Deleted rows are a sorted list per file. Rows of a scan come in runs: one file, ascending row
 * numbers without gaps. For such a run the list is searched once for what lies inside, so the cost
 * follows the deleted rows, not all rows. */
#include "duck/session.h"

#include <assert.h>
#include <pthread.h>

#include "duck/internal.h"

struct DeadRows {
    size_t file_count;
    Buf *files; /* uint32_t, ascending once sealed */
};

typedef struct DeadEntry {
    uint64_t set;
    DeadRows *dead;
} DeadEntry;

struct DeadTable {
    pthread_rwlock_t lock; /* of all below; held for reading while a chunk is looked at */
    uint64_t next;
    Buf entries; /* DeadEntry, ascending by set */
};

DeadRows *
dead_rows_new(size_t file_count)
{
    DeadRows *dead = xcalloc(1, sizeof *dead);

    dead->file_count = file_count;
    dead->files = xcalloc(file_count, sizeof(Buf));
    return dead;
}

void
dead_rows_free(DeadRows *dead)
{
    if (dead == NULL)
        return;
    for (size_t i = 0; i < dead->file_count; i++)
        buf_done(&dead->files[i]);
    free(dead->files);
    free(dead);
}

void
dead_rows_add(DeadRows *dead, size_t file, uint32_t row)
{
    assert(file < dead->file_count);
    BUF_PUSH(&dead->files[file], uint32_t, row);
}

static int
compare_rows(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *) a;
    uint32_t right = *(const uint32_t *) b;

    return left < right ? -1 : left > right;
}

static void
seal_file(Buf *rows)
{
    size_t count = BUF_COUNT(rows, uint32_t);
    size_t kept = 0;

    if (count == 0)
        return;
    qsort(rows->ptr, count, sizeof(uint32_t), compare_rows);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || BUF_AT(rows, uint32_t, i) != BUF_AT(rows, uint32_t, kept - 1))
            BUF_AT(rows, uint32_t, kept++) = BUF_AT(rows, uint32_t, i);
    rows->len = kept * sizeof(uint32_t);
}

void
dead_rows_seal(DeadRows *dead)
{
    for (size_t i = 0; i < dead->file_count; i++)
        seal_file(&dead->files[i]);
}

uint64_t
dead_rows_count(const DeadRows *dead, size_t file)
{
    assert(file < dead->file_count);
    return BUF_COUNT(&dead->files[file], uint32_t);
}

bool
dead_rows_has(const DeadRows *dead, size_t file, uint32_t row)
{
    assert(file < dead->file_count);

    const Buf *rows = &dead->files[file];

    return rows->len > 0 &&
           bsearch(&row, rows->ptr, BUF_COUNT(rows, uint32_t), sizeof row, compare_rows) != NULL;
}

DeadTable *
dead_table_new(void)
{
    DeadTable *table = xcalloc(1, sizeof *table);

    pthread_rwlock_init(&table->lock, NULL);
    table->next = 1;
    return table;
}

void
dead_table_free(DeadTable *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < BUF_COUNT(&table->entries, DeadEntry); i++)
        dead_rows_free(BUF_AT(&table->entries, DeadEntry, i).dead);
    buf_done(&table->entries);
    pthread_rwlock_destroy(&table->lock);
    free(table);
}

/* Index of the first entry whose set is at least `set`. */
static size_t
find_entry(const DeadTable *table, uint64_t set)
{
    size_t low = 0;
    size_t high = BUF_COUNT(&table->entries, DeadEntry);

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (BUF_AT(&table->entries, DeadEntry, mid).set < set)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static const DeadRows *
find_dead(const DeadTable *table, uint64_t set)
{
    size_t i = find_entry(table, set);

    if (i == BUF_COUNT(&table->entries, DeadEntry))
        return NULL;

    DeadEntry entry = BUF_AT(&table->entries, DeadEntry, i);

    return entry.set == set ? entry.dead : NULL;
}

uint64_t
dead_table_publish(DeadTable *table, DeadRows *dead)
{
    pthread_rwlock_wrlock(&table->lock);

    uint64_t set = table->next++;

    BUF_PUSH(&table->entries, DeadEntry, ((DeadEntry){.set = set, .dead = dead}));
    pthread_rwlock_unlock(&table->lock);
    return set;
}

void
dead_table_retire(DeadTable *table, uint64_t set)
{
    DeadRows *dead = NULL;

    pthread_rwlock_wrlock(&table->lock);

    size_t i = find_entry(table, set);
    size_t count = BUF_COUNT(&table->entries, DeadEntry);

    if (i < count && BUF_AT(&table->entries, DeadEntry, i).set == set) {
        DeadEntry *at = &BUF_AT(&table->entries, DeadEntry, i);

        dead = at->dead;
        memmove(at, at + 1, (count - i - 1) * sizeof(DeadEntry));
        table->entries.len -= sizeof(DeadEntry);
    }
    pthread_rwlock_unlock(&table->lock);
    dead_rows_free(dead);
}

/* The first of the rows and whether the others follow it without gaps. */
static bool
is_run(const int64_t *rows, size_t count)
{
    bool run = true;

    for (size_t i = 1; i < count; i++)
        run &= rows[i] == rows[0] + (int64_t) i;
    return run;
}

static bool
is_constant(const uint64_t *values, size_t count)
{
    bool constant = true;

    for (size_t i = 1; i < count; i++)
        constant &= values[i] == values[0];
    return constant;
}

/* Index of the first deleted row that is at least `row`. */
static size_t
find_row(const Buf *rows, uint32_t row)
{
    size_t low = 0;
    size_t high = BUF_COUNT(rows, uint32_t);

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (BUF_AT(rows, uint32_t, mid) < row)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Clear what is deleted of `count` rows from `first` on. */
static void
clear_run(const Buf *rows, uint32_t first, size_t count, bool *live)
{
    size_t end = BUF_COUNT(rows, uint32_t);

    for (size_t i = find_row(rows, first); i < end; i++) {
        uint32_t offset = BUF_AT(rows, uint32_t, i) - first;

        if (offset >= count)
            return;
        live[offset] = false;
    }
}

static bool
is_dead(const Buf *rows, uint32_t row)
{
    size_t i = find_row(rows, row);

    return i < BUF_COUNT(rows, uint32_t) && BUF_AT(rows, uint32_t, i) == row;
}

static bool
mark_live(const DeadRows *dead, const uint64_t *files, const int64_t *rows, size_t count,
          bool *live)
{
    memset(live, true, count);
    for (size_t i = 0; i < count; i++)
        if (files[i] >= dead->file_count || rows[i] < 0 || rows[i] > UINT32_MAX)
            return false;
    if (count > 0 && is_constant(files, count) && is_run(rows, count)) {
        clear_run(&dead->files[files[0]], (uint32_t) rows[0], count, live);
        return true;
    }
    for (size_t i = 0; i < count; i++)
        live[i] = !is_dead(&dead->files[files[i]], (uint32_t) rows[i]);
    return true;
}

static void
walberg_live(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output)
{
    DeadTable *table = duckdb_scalar_function_get_extra_info(info);
    size_t count = duckdb_data_chunk_get_size(input);
    const uint64_t *sets = duckdb_vector_get_data(duckdb_data_chunk_get_vector(input, 0));
    const uint64_t *files = duckdb_vector_get_data(duckdb_data_chunk_get_vector(input, 1));
    const int64_t *rows = duckdb_vector_get_data(duckdb_data_chunk_get_vector(input, 2));

    if (count == 0)
        return;
    pthread_rwlock_rdlock(&table->lock);

    const DeadRows *dead = find_dead(table, sets[0]);
    bool known = dead != NULL && is_constant(sets, count) &&
                 mark_live(dead, files, rows, count, duckdb_vector_get_data(output));

    pthread_rwlock_unlock(&table->lock);
    if (!known)
        duckdb_scalar_function_set_error(info, "walberg_live: no such set, file or row");
}

static void
add_parameter(duckdb_scalar_function function, duckdb_type type)
{
    AUTO_TYPE duckdb_logical_type logical = duckdb_create_logical_type(type);

    duckdb_scalar_function_add_parameter(function, logical);
}

bool
duck_register_live(Duck *duck, DeadTable *table, Error *err)
{
    AUTO_CONNECTION duckdb_connection connection = NULL;
    AUTO(duckdb_destroy_scalar_function)
    duckdb_scalar_function function = duckdb_create_scalar_function();
    AUTO_TYPE duckdb_logical_type result = duckdb_create_logical_type(DUCKDB_TYPE_BOOLEAN);

    TRY(duck_connect(duck, &connection, err));
    duckdb_scalar_function_set_name(function, "walberg_live");
    add_parameter(function, DUCKDB_TYPE_UBIGINT);
    add_parameter(function, DUCKDB_TYPE_UBIGINT);
    add_parameter(function, DUCKDB_TYPE_BIGINT);
    duckdb_scalar_function_set_return_type(function, result);
    duckdb_scalar_function_set_extra_info(function, table, NULL);
    duckdb_scalar_function_set_function(function, walberg_live);
    if (duckdb_register_scalar_function(connection, function) != DuckDBSuccess)
        return FAIL(err, ERR_BUG, "duckdb does not take the function walberg_live");
    return true;
}
