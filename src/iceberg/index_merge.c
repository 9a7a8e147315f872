/* Merging runs in the background. Runs fall into tiers, each for sizes up to four times those of
 * the one below; four runs in a tier become one, usually of the next. A run most of whose entries
 * are of removed files is rewritten alone.
 *
 * The thread gets everything it needs when it starts and touches nothing of the index. Its inputs
 * are immutable and stay open until index_merge_finish() or index_merge_cancel() has joined it. A
 * merge that fails (a full disk) is tried again later and nobody is told: what matters fails in the
 * foreground too. */
#include "iceberg/index_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TIER_FACTOR = 4,
    TIER_RUNS = 4,
    MERGE_RUNS_MAX = 64,
    MERGE_REST = 100, /* saves without a merge after one that failed */
};

struct Merge {
    pthread_t thread;
    atomic_bool stop;
    atomic_bool finished;
    IndexRun *inputs[MERGE_RUNS_MAX];
    Run *runs[MERGE_RUNS_MAX];
    size_t count;
    LiveFiles live;
    RunWriter *writer;
    uint64_t number;
    bool merged;
    size_t broken; /* the input that could not be read, or count */
    Run *output;
    char *temporary;
    char *final;
    Error err;
};

/* --- The thread ---------------------------------------------------------------------------- */

static bool
merge_runs(Merge *merge)
{
    RunMerge job = {
        .runs = merge->runs, .count = merge->count, .files = &merge->live, .stop = &merge->stop};
    bool merged = run_merge(&job, merge->writer, &merge->err);

    merge->broken = job.broken;
    if (!merged) {
        run_abort(merge->writer);
        return false;
    }
    TRY(run_finish(merge->writer, &merge->output, &merge->err));
    if (rename(merge->temporary, merge->final) == 0)
        return true;
    (void) FAIL(&merge->err, ERR_TRANSIENT, "rename %s: %m", merge->temporary);
    unlink(merge->temporary);
    run_close(merge->output);
    return false;
}

static void *
merge_thread(void *argument)
{
    Merge *merge = argument;

    merge->merged = merge_runs(merge);
    atomic_store(&merge->finished, true);
    return NULL;
}

static void
merge_free(Merge *merge)
{
    live_done(&merge->live);
    free(merge->temporary);
    free(merge->final);
    free(merge);
}

/* --- Choosing ------------------------------------------------------------------------------ */

static int
tier_of(uint64_t entries)
{
    int tier = 0;

    for (uint64_t limit = RECENT_ENTRIES_MAX / 2; entries > limit; limit *= TIER_FACTOR)
        tier++;
    return tier;
}

static void
count_live(Index *index)
{
    for (size_t i = 0; i < index_run_count(index); i++)
        index_run_at(index, i)->live = 0;
    for (size_t i = 0; i < index_file_count(index); i++) {
        IndexFile *file = index_file_at(index, i);

        if (file->run != NULL)
            file->run->live += file->rows;
    }
}

/* The runs of the lowest tier that is full, else one that is half dead. */
static size_t
choose_runs(const Index *index, IndexRun **chosen)
{
    size_t in_tier[64] = {0};
    size_t count = 0;
    int full = 0;

    for (size_t i = 0; i < index_run_count(index); i++)
        in_tier[tier_of(index_run_at(index, i)->run->entries)]++;
    while (full < 64 && in_tier[full] < TIER_RUNS)
        full++;
    for (size_t i = 0; i < index_run_count(index) && count < MERGE_RUNS_MAX; i++) {
        IndexRun *run = index_run_at(index, i);

        if (tier_of(run->run->entries) == full)
            chosen[count++] = run;
    }
    for (size_t i = 0; i < index_run_count(index) && count == 0; i++)
        if (index_run_at(index, i)->live < index_run_at(index, i)->run->entries / 2)
            chosen[count++] = index_run_at(index, i);
    return count;
}

/* Runs of which nothing counts need no merge to go. */
static void
leave_dead_runs(Index *index)
{
    for (size_t i = index_run_count(index); i-- > 0;)
        if (index_run_at(index, i)->live == 0)
            index_leave_run(index, index_run_at(index, i));
}

/* --- From the index' thread ------------------------------------------------------------------ */

static bool
launch(Index *index, Merge *merge, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    uint64_t entries = 0;

    for (size_t i = 0; i < merge->count; i++) {
        merge->runs[i] = merge->inputs[i]->run;
        entries += merge->inputs[i]->live;
    }
    TRY(index_create_run(index, merge->number, entries, true, &merge->writer, err));
    merge->live = index_live_files(index);
    merge->temporary = xstrdup(index_path(index, arena, "new", merge->number));
    merge->final = xstrdup(index_path(index, arena, "run", merge->number));

    int failed = pthread_create(&merge->thread, NULL, merge_thread, merge);

    if (failed == 0)
        return true;
    run_abort(merge->writer);
    errno = failed;
    return FAIL(err, ERR_TRANSIENT, "start a thread: %m");
}

void
index_merge_start(Index *index)
{
    Error ignored;

    if (index->merge != NULL)
        return;
    if (index->merge_rest > 0) {
        index->merge_rest--;
        return;
    }
    count_live(index);
    leave_dead_runs(index);

    Merge *merge = xcalloc(1, sizeof *merge);

    merge->count = choose_runs(index, merge->inputs);
    if (merge->count == 0) {
        merge_free(merge);
        return;
    }
    merge->number = index->next_number++;
    if (launch(index, merge, &ignored)) {
        index->merge = merge;
        return;
    }
    merge_free(merge);
    index->merge_rest = MERGE_REST;
}

static void
install(Index *index, const Merge *merge)
{
    IndexRun *output = index_enter_run(index, merge->number, merge->output);

    for (size_t i = 0; i < index_file_count(index); i++) {
        IndexFile *file = index_file_at(index, i);

        for (size_t k = 0; k < merge->count; k++)
            if (file->run == merge->inputs[k])
                file->run = output;
    }
    for (size_t k = 0; k < merge->count; k++)
        index_leave_run(index, merge->inputs[k]);
}

bool
index_merge_finish(Index *index, Error *err)
{
    Merge *merge = index->merge;

    if (merge == NULL || !atomic_load(&merge->finished))
        return true;
    pthread_join(merge->thread, NULL);
    index->merge = NULL;
    if (merge->merged) {
        install(index, merge);
        merge_free(merge);
        return true;
    }

    IndexRun *broken = merge->broken < merge->count ? merge->inputs[merge->broken] : NULL;

    *err = merge->err;
    merge_free(merge);
    if (broken != NULL)
        return index_drop_run(index, broken, err);
    index->merge_rest = MERGE_REST;
    return true;
}

void
index_merge_cancel(Index *index)
{
    Merge *merge = index->merge;

    if (merge == NULL)
        return;
    atomic_store(&merge->stop, true);
    pthread_join(merge->thread, NULL);
    if (merge->merged) {
        unlink(merge->final);
        run_close(merge->output);
    }
    merge_free(merge);
    index->merge = NULL;
}
