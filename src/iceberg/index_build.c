/* Adding files. A build collects entries up to a piece, sorts it and puts it aside as a run without
 * a filter; at the end the pieces are merged. A file that fits into one piece needs none of that,
 * and a small one goes to the recent entries. */
#include "iceberg/index_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"

enum {
    PIECE_ENTRIES = RECENT_ENTRIES_MAX,
    PIECES_MAX = 64, /* then they are merged into one */
};

struct IndexBuild {
    Index *index;
    uint32_t ordinal;
    uint64_t number; /* of its temporary files */
    Str name;
    uint64_t rows;
    Buf entries; /* Entry, in row order */
    Run *pieces[PIECES_MAX];
    size_t piece_count;
    unsigned pieces_made;
};

/* --- Run files ----------------------------------------------------------------------------- */

bool
index_create_run(const Index *index, uint64_t number, uint64_t entries_max, bool sync,
                 RunWriter **out_writer, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();

    return run_create(&(RunOptions){.path = index_path(index, arena, "new", number),
                                    .table = index->table,
                                    .entries_max = entries_max,
                                    .filter = true,
                                    .sync = sync},
                      out_writer, err);
}

bool
index_complete_run(const Index *index, uint64_t number, RunWriter *writer, Run **out_run,
                   Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *temporary = index_path(index, arena, "new", number);
    const char *final = index_path(index, arena, "run", number);
    Run *run = NULL;

    TRY(run_finish(writer, &run, err));
    if (rename(temporary, final) != 0) {
        (void) FAIL(err, ERR_TRANSIENT, "rename %s: %m", temporary);
        unlink(temporary);
        run_close(run);
        return false;
    }
    *out_run = run;
    return true;
}

/* --- Recent entries become a run ------------------------------------------------------------ */

static bool
spill_run(Index *index, IndexRun **out_run, Error *err)
{
    AUTO_LIVE LiveFiles live = index_live_files(index);
    uint64_t number = index->next_number++;
    RunWriter *writer = NULL;
    Run *run = NULL;

    TRY(FAULT("index.spill", err));
    TRY(index_create_run(index, number, recent_count(&index->recent), false, &writer, err));
    if (!recent_write(&index->recent, &live, writer, err)) {
        run_abort(writer);
        return false;
    }
    TRY(index_complete_run(index, number, writer, &run, err));
    *out_run = index_enter_run(index, number, run);
    return true;
}

bool
index_spill(Index *index, Error *err)
{
    IndexRun *run = NULL;

    if (recent_count(&index->recent) > 0)
        TRY(spill_run(index, &run, err));
    for (size_t i = 0; i < index_file_count(index); i++) {
        IndexFile *file = index_file_at(index, i);

        if (file->recent && file->rows > 0)
            file->run = run;
        file->recent = false;
    }
    recent_reset(&index->recent);
    buf_reset(&index->journal.pending);
    index->runs_changed = true;
    index->journal_changed = true;
    return true;
}

/* --- Builds -------------------------------------------------------------------------------- */

bool
index_build_begin(Index *index, Str data_file, IndexBuild **out_build, Error *err)
{
    if (index->next_file == INT32_MAX)
        return FAIL(err, ERR_INPUT, "%s: two billion data files were indexed", index->folder);

    IndexBuild *build = xcalloc(1, sizeof *build);
    char *name = xcalloc(data_file.len + 1, 1);

    memcpy(name, data_file.ptr, data_file.len);
    build->index = index;
    build->ordinal = index->next_file++;
    build->number = index->next_number++;
    build->name = (Str){.ptr = name, .len = data_file.len};
    *out_build = build;
    return true;
}

void
index_build_abort(IndexBuild *build)
{
    if (build == NULL)
        return;
    for (size_t i = 0; i < build->piece_count; i++)
        run_close(build->pieces[i]);
    buf_done(&build->entries);
    free((char *) (uintptr_t) build->name.ptr);
    free(build);
}

/* A piece has no name: it is gone with its descriptor, however we end. */
static bool
open_piece(IndexBuild *build, RunWriter **out_writer, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *path =
        arena_printf(arena, "%s-%u", index_path(build->index, arena, "piece", build->number),
                     build->pieces_made++);

    TRY(run_create(&(RunOptions){.path = path, .table = build->index->table}, out_writer, err));
    unlink(path);
    return true;
}

static bool
write_entries(const Buf *entries, RunWriter *writer, Error *err)
{
    for (size_t i = 0; i < BUF_COUNT(entries, Entry); i++)
        TRY(run_add(writer, &BUF_AT(entries, Entry, i), err));
    return true;
}

static void
sort_piece(IndexBuild *build)
{
    entry_sort((Entry *) (void *) build->entries.ptr, BUF_COUNT(&build->entries, Entry));
}

static bool
put_piece_aside(IndexBuild *build, Error *err)
{
    RunWriter *writer = NULL;

    TRY(open_piece(build, &writer, err));
    sort_piece(build);
    if (!write_entries(&build->entries, writer, err)) {
        run_abort(writer);
        return false;
    }
    TRY(run_finish(writer, &build->pieces[build->piece_count], err));
    build->piece_count++;
    buf_reset(&build->entries);
    return true;
}

static bool
merge_into(IndexBuild *build, RunWriter *writer, Error *err)
{
    if (run_merge(&(RunMerge){.runs = build->pieces, .count = build->piece_count}, writer, err))
        return true;
    run_abort(writer);
    return WRAP(err, "index %.*s", STR_ARG(build->name));
}

/* So that a build has a bounded number of files open. */
static bool
merge_pieces(IndexBuild *build, Error *err)
{
    RunWriter *writer = NULL;
    Run *merged = NULL;

    TRY(open_piece(build, &writer, err));
    TRY(merge_into(build, writer, err));
    TRY(run_finish(writer, &merged, err));
    for (size_t i = 0; i < build->piece_count; i++)
        run_close(build->pieces[i]);
    build->pieces[0] = merged;
    build->piece_count = 1;
    return true;
}

bool
index_build_add(IndexBuild *build, const Hash128 *keys, size_t rows, Error *err)
{
    if (build->rows + rows > UINT32_MAX)
        return FAIL(err, ERR_INPUT, "%.*s has more than four billion rows", STR_ARG(build->name));
    for (size_t i = 0; i < rows; i++) {
        if (BUF_COUNT(&build->entries, Entry) == PIECE_ENTRIES) {
            if (build->piece_count == PIECES_MAX)
                TRY(merge_pieces(build, err));
            TRY(put_piece_aside(build, err));
        }
        BUF_PUSH(&build->entries, Entry,
                 ((Entry){keys[i], build->ordinal, (uint32_t) build->rows}));
        build->rows++;
    }
    return true;
}

static bool
end_recent(IndexBuild *build, Error *err)
{
    Index *index = build->index;
    Entry *entries = (Entry *) (void *) build->entries.ptr;

    if (recent_count(&index->recent) + build->rows > RECENT_ENTRIES_MAX)
        TRY(index_spill(index, err));

    IndexFile *file = index_enter_file(index, build->ordinal, build->name, (uint32_t) build->rows);

    journal_add(&index->journal, file->ordinal, file->name, entries, file->rows);
    recent_add(&index->recent, entries, file->rows);
    file->recent = true;
    return true;
}

static bool
write_run(IndexBuild *build, uint64_t number, Run **out_run, Error *err)
{
    RunWriter *writer = NULL;

    if (build->piece_count > 0) {
        if (build->piece_count == PIECES_MAX)
            TRY(merge_pieces(build, err));
        TRY(put_piece_aside(build, err));
        TRY(index_create_run(build->index, number, build->rows, false, &writer, err));
        TRY(merge_into(build, writer, err));
    } else {
        sort_piece(build);
        TRY(index_create_run(build->index, number, build->rows, false, &writer, err));
        if (!write_entries(&build->entries, writer, err)) {
            run_abort(writer);
            return false;
        }
    }
    return index_complete_run(build->index, number, writer, out_run, err);
}

static bool
end_run(IndexBuild *build, Error *err)
{
    Index *index = build->index;
    uint64_t number = index->next_number++;
    Run *run = NULL;

    TRY(write_run(build, number, &run, err));

    IndexFile *file = index_enter_file(index, build->ordinal, build->name, (uint32_t) build->rows);

    file->run = index_enter_run(index, number, run);
    return true;
}

bool
index_build_end(IndexBuild *build, Error *err)
{
    bool small = build->piece_count == 0 && build->rows <= RECENT_FILE_ROWS;
    bool ended = small ? end_recent(build, err) : end_run(build, err);

    index_build_abort(build);
    return ended;
}

bool
index_add_file(Index *index, Str data_file, const Hash128 *keys, size_t rows, Error *err)
{
    IndexBuild *build = NULL;

    TRY(index_build_begin(index, data_file, &build, err));
    assert(build != NULL);
    if (!index_build_add(build, keys, rows, err)) {
        index_build_abort(build);
        return false;
    }
    return index_build_end(build, err);
}
