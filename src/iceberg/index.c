#include "iceberg/index_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/folder.h"

/* --- Files --------------------------------------------------------------------------------- */

IndexFile * /* NOLINTNEXTLINE(readability-function-size): uthash is made of macros */
index_find_file(const Index *index, Str name)
{
    IndexFile *file = NULL;

    HASH_FIND(hh, index->by_name, name.ptr, name.len, file);
    return file;
}

/* Where the ordinal is in the list, or would be. */
static size_t
file_position(const Index *index, uint32_t ordinal)
{
    size_t low = 0;
    size_t high = index_file_count(index);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (index_file_at(index, middle)->ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static IndexFile *
find_ordinal(const Index *index, uint32_t ordinal)
{
    size_t at = file_position(index, ordinal);

    if (at == index_file_count(index) || index_file_at(index, at)->ordinal != ordinal)
        return NULL;
    return index_file_at(index, at);
}

static void /* NOLINTNEXTLINE(readability-function-size): uthash is made of macros */
enter_name(Index *index, IndexFile *file)
{
    HASH_ADD_KEYPTR(hh, index->by_name, file->name.ptr, file->name.len, file);
}

static void /* NOLINTNEXTLINE(readability-function-size): uthash is made of macros */
drop_name(Index *index, IndexFile *file)
{
    HASH_DEL(index->by_name, file);
}

IndexFile *
index_enter_file(Index *index, uint32_t ordinal, Str name, uint32_t rows)
{
    IndexFile *old = index_find_file(index, name);

    if (old != NULL)
        index_drop_file(index, old);

    IndexFile *file = xcalloc(1, sizeof *file);
    char *copy = xcalloc(name.len + 1, 1);
    size_t at = file_position(index, ordinal);

    memcpy(copy, name.ptr, name.len);
    file->ordinal = ordinal;
    file->rows = rows;
    file->name = (Str){.ptr = copy, .len = name.len};
    BUF_PUSH(&index->files, IndexFile *, file);
    for (size_t i = index_file_count(index) - 1; i > at; i--)
        BUF_AT(&index->files, IndexFile *, i) = index_file_at(index, i - 1);
    BUF_AT(&index->files, IndexFile *, at) = file;
    enter_name(index, file);
    return file;
}

static void
free_file(IndexFile *file)
{
    free((char *) (uintptr_t) file->name.ptr);
    free(file);
}

void
index_drop_file(Index *index, IndexFile *file)
{
    size_t at = file_position(index, file->ordinal);

    assert(index_file_at(index, at) == file);
    for (size_t i = at + 1; i < index_file_count(index); i++)
        BUF_AT(&index->files, IndexFile *, i - 1) = index_file_at(index, i);
    index->files.len -= sizeof(IndexFile *);
    drop_name(index, file);
    journal_remove(&index->journal, file->ordinal);
    free_file(file);
}

void
index_drop_ordinal(Index *index, uint32_t ordinal)
{
    IndexFile *file = find_ordinal(index, ordinal);

    if (file != NULL)
        index_drop_file(index, file);
}

LiveFiles
index_live_files(const Index *index)
{
    size_t count = index_file_count(index);
    LiveFiles files = {0};

    if (count == 0)
        return files;
    files.first = index_file_at(index, 0)->ordinal;
    files.count = index_file_at(index, count - 1)->ordinal - files.first + 1;

    uint8_t *live = xcalloc(files.count, 1);

    for (size_t i = 0; i < count; i++)
        live[index_file_at(index, i)->ordinal - files.first] = 1;
    files.live = live;
    return files;
}

void
live_done(LiveFiles *files)
{
    free((uint8_t *) (uintptr_t) files->live);
}

/* --- Runs ---------------------------------------------------------------------------------- */

IndexRun *
index_enter_run(Index *index, uint64_t number, Run *run)
{
    IndexRun *entered = xcalloc(1, sizeof *entered);

    *entered = (IndexRun){.number = number, .run = run};
    BUF_PUSH(&index->runs, IndexRun *, entered);
    index->runs_changed = true;
    return entered;
}

void
index_leave_run(Index *index, IndexRun *run)
{
    size_t kept = 0;

    for (size_t i = 0; i < index_run_count(index); i++)
        if (index_run_at(index, i) != run)
            BUF_AT(&index->runs, IndexRun *, kept++) = index_run_at(index, i);
    index->runs.len = kept * sizeof(IndexRun *);
    BUF_PUSH(&index->obsolete, uint64_t, run->number);
    index->runs_changed = true;
    run_close(run->run);
    free(run);
}

bool
index_drop_run(Index *index, IndexRun *run, Error *err)
{
    size_t dropped = 0;

    index_merge_cancel(index);
    for (size_t i = index_file_count(index); i-- > 0;) {
        if (index_file_at(index, i)->run != run)
            continue;
        index_drop_file(index, index_file_at(index, i));
        dropped++;
    }
    index_leave_run(index, run);
    err->kind = ERR_CONFLICT;
    return WRAP(err, "the key index lost %zu data files, which have to be added again", dropped);
}

/* --- Opening ------------------------------------------------------------------------------- */

bool
index_open(const char *folder, const char *table_uuid, Index **out_index, Error *err)
{
    Index *index = xcalloc(1, sizeof *index);

    index->folder = xstrdup(folder);
    index->table_uuid = xstrdup(table_uuid);
    index->table = hash128(table_uuid, strlen(table_uuid), 0).high;
    index->journal.fd = -1;
    index->journal.table = index->table;
    if (!folder_make(folder, 0700, err) || !index_load(index, err)) {
        index_close(index);
        return false;
    }
    *out_index = index;
    return true;
}

void
index_close(Index *index)
{
    if (index == NULL)
        return;
    index_merge_cancel(index);
    HASH_CLEAR(hh, index->by_name);
    for (size_t i = 0; i < index_file_count(index); i++)
        free_file(index_file_at(index, i));
    for (size_t i = 0; i < index_run_count(index); i++) {
        run_close(index_run_at(index, i)->run);
        free(index_run_at(index, i));
    }
    recent_done(&index->recent);
    journal_done(&index->journal);
    buf_done(&index->files);
    buf_done(&index->runs);
    buf_done(&index->obsolete);
    free(index->folder);
    free(index->table_uuid);
    free(index);
}

/* --- Asking -------------------------------------------------------------------------------- */

bool
index_has_file(const Index *index, Str data_file)
{
    return index_find_file(index, data_file) != NULL;
}

void
index_remove_file(Index *index, Str data_file)
{
    IndexFile *file = index_find_file(index, data_file);

    if (file != NULL)
        index_drop_file(index, file);
}

Str
index_file_name(const Index *index, int file)
{
    const IndexFile *found = find_ordinal(index, (uint32_t) file);

    return found == NULL ? STR_NULL : found->name;
}

static void
sort_probes(const Hash128 *keys, size_t count, Buf *out_probes)
{
    AUTO_BUF Buf sorted = {0};

    /* an entry is a probe with its number cut in two */
    for (size_t i = 0; i < count; i++)
        BUF_PUSH(&sorted, Entry, ((Entry){keys[i], (uint32_t) (i >> 32), (uint32_t) i}));
    entry_sort((Entry *) (void *) sorted.ptr, count);
    for (size_t i = 0; i < count; i++) {
        Entry entry = BUF_AT(&sorted, Entry, i);

        BUF_PUSH(out_probes, Probe, ((Probe){entry.key, (size_t) entry.file << 32 | entry.row}));
    }
}

static bool
find_matches(Index *index, const Buf *probes, Buf *matches, Error *err)
{
    const Probe *first = (const Probe *) (const void *) probes->ptr;
    size_t count = BUF_COUNT(probes, Probe);

    recent_lookup(&index->recent, first, count, matches);
    for (size_t i = 0; i < index_run_count(index); i++) {
        IndexRun *run = index_run_at(index, i);

        if (!run_lookup(run->run, first, count, matches, err))
            return index_drop_run(index, run, err);
    }
    return true;
}

/* By probe; the newest file first; from its end. */
static int
compare_hits(const void *a, const void *b)
{
    const IndexHit *left = a;
    const IndexHit *right = b;

    if (left->probe != right->probe)
        return left->probe < right->probe ? -1 : 1;
    if (left->file != right->file)
        return left->file > right->file ? -1 : 1;
    return left->row > right->row ? -1 : left->row < right->row;
}

bool
index_lookup(Index *index, const Hash128 *keys, size_t count, Buf *out_hits, Error *err)
{
    AUTO_BUF Buf probes = {0};
    AUTO_BUF Buf matches = {0};
    AUTO_LIVE LiveFiles live = index_live_files(index);
    size_t begin = BUF_COUNT(out_hits, IndexHit);

    if (count == 0)
        return true;
    sort_probes(keys, count, &probes);
    TRY(find_matches(index, &probes, &matches, err));
    for (size_t i = 0; i < BUF_COUNT(&matches, Match); i++) {
        Match match = BUF_AT(&matches, Match, i);

        if (live_file(&live, match.file))
            BUF_PUSH(out_hits, IndexHit, ((IndexHit){match.probe, (int) match.file, match.row}));
    }

    size_t found = BUF_COUNT(out_hits, IndexHit) - begin;

    if (found > 0)
        qsort(&BUF_AT(out_hits, IndexHit, begin), found, sizeof(IndexHit), compare_hits);
    return true;
}

/* --- Saving -------------------------------------------------------------------------------- */

bool
index_save(Index *index, Error *err)
{
    TRY(index_merge_finish(index, err));
    if (index->journal.size + index->journal.pending.len > JOURNAL_BYTES_MAX)
        TRY(index_spill(index, err));
    TRY(index_store(index, err));
    index_merge_start(index);
    return true;
}

IndexStats
index_stats(const Index *index)
{
    IndexStats stats = {.runs = index_run_count(index),
                        .files = index->next_file,
                        .entries = recent_count(&index->recent),
                        .bytes = index->journal.size};

    for (size_t i = 0; i < stats.runs; i++) {
        stats.entries += index_run_at(index, i)->run->entries;
        stats.bytes += index_run_at(index, i)->run->bytes;
    }
    return stats;
}
