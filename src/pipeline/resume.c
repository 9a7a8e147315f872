/* resume.c - an initial copy that goes on where it was interrupted.
 *
 * While a copy runs, the ranges of pages that are done go into the state object, with the moment
 * (S1, the position of the snapshot) that their rows are of. A later process, or the same one after
 * it lost the snapshot, copies only the other ranges, under a newer snapshot S2. Then the table is
 * hidden: the stream begins again at S1, and when it has passed S2 the table is shown, all at once.
 * The sink makes rows of several moments into those of one, see sink.h.
 *
 * That is exact as long as every change of the table since S1 comes with the stream, by a key that
 * stayed the same, and a row that did not change stayed on its page. So what was recorded is of no
 * use when the slot is beyond S1; when the table was rewritten (TRUNCATE, VACUUM FULL), its columns
 * changed, or it was published otherwise meanwhile; when some operations are not published at all;
 * and for tables without a key, or with one that only the settings say is one. Such a copy begins
 * from the beginning. */
#include <string.h>

#include "base/log.h"
#include "pipeline/internal.h"

/* --- may it go on? --------------------------------------------------------------------------- */

static void
forget(PipeTable *table, StateTable *known)
{
    known->copy = (StateCopy){0};
    table->copied_from = POSITION_NONE;
}

/* Every change comes with the stream, and names its row. */
static bool
is_followed(const PipeTable *table, const StateTable *known)
{
    return table->schema->key_mode == KEY_COLUMNS && !table->inserts_replace &&
           known->published.noted && known->published.missing[0] == '\0';
}

static Position
newest(const StateCopy *copy)
{
    return copy->count == 0 ? POSITION_NONE : copy->parts[copy->count - 1].loaded.position;
}

/* Why the recorded ranges are of no use; NULL: they are. */
static const char *
obstacle(const Pipeline *pl, const PipeTable *table, const StateTable *known,
         const SourceTable *now, const Publication *publication)
{
    const StateCopy *copy = &known->copy;
    Error err;

    if (table->begin_anew)
        return "it was to begin anew";
    if (!is_followed(table, known))
        return "not every change of it can be followed";
    if (copy->parts[0].loaded.position < pl->state.acknowledged || known->streamed == POSITION_NONE)
        return "the slot moved on meanwhile";
    if (copy->files_mark != now->files_mark)
        return "it was rewritten meanwhile";
    if (copy->columns_mark != now->columns_mark)
        return "its columns changed meanwhile";
    if (words_changed(known->words, now) != NULL)
        return "what its rows say changed meanwhile";
    if (publication->version == NULL || strcmp(copy->publication, publication->version) != 0 ||
        !gap_in_table(now, publication, &known->published, &err))
        return "it was published otherwise meanwhile";
    if (table->sink_table != NULL && table->sink_table->position >= newest(copy))
        return "the lake has it already";
    return NULL;
}

void
resume_check(Pipeline *pl, PipeTable *table, const SourceTable *now, const Publication *publication)
{
    StateTable *known = tables_state(pl, table);
    const char *why;

    table->copied_from = POSITION_NONE;
    if (known == NULL || known->copy.count == 0)
        return;
    why = obstacle(pl, table, known, now, publication);
    table->copied_from = known->copy.parts[0].loaded.position;
    if (why == NULL)
        return;
    log_info("copy begins from the beginning", LOG_STR("table", table->schema->qualified),
             LOG_STR("reason", why));
    forget(table, known);
}

/* --- going on -------------------------------------------------------------------------------- */

/* Nothing is copied yet. */
static StateCopy
begin(Pipeline *pl, const SourceTable *now, const Publication *publication)
{
    return (StateCopy){.files_mark = now->files_mark,
                       .columns_mark = now->columns_mark,
                       .publication = publication->version == NULL
                                          ? NULL
                                          : arena_strdup(pl->state_arena, publication->version)};
}

static bool
give_back(Pipeline *pl, PipeTable *table, const TableSchema *schema, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const StateCopy *copy = &tables_state(pl, table)->copy;
    SinkLoaded *loaded = ARENA_ARRAY(arena, SinkLoaded, (size_t) copy->count);
    SinkResume resume = {.schema = schema, .count = (size_t) copy->count, .loaded = loaded};

    for (int i = 0; i < copy->count; i++)
        loaded[i] = copy->parts[i].loaded;
    return sink_resume(pl->sink, table->sink_table, &resume, err);
}

bool
resume_copy(Pipeline *pl, PipeTable *table, const SourceTable *now, const Publication *publication,
            Error *err)
{
    const TableSchema *schema = now->schema;
    StateTable *known;
    ResumeProgress progress;

    resume_check(pl, table, now, publication);
    known = tables_state(pl, table);
    table->begin_anew = false;
    if (known == NULL || known->copy.count == 0) {
        if (known != NULL)
            known->copy = begin(pl, now, publication);
        return sink_replace(pl->sink, table->sink_table, schema, err);
    }
    if (give_back(pl, table, schema, err)) {
        progress = resume_progress(pl, table);
        log_info("copy resumed", LOG_STR("table", table->schema->qualified),
                 LOG_INT("ranges_done", progress.tasks), LOG_INT("rows", progress.rows),
                 LOG_STR("position", POSITION_TEXT(table->copied_from)));
        return true;
    }
    if (err->kind != ERR_COPY)
        return false;
    log_warn("copy begins from the beginning", LOG_STR("table", table->schema->qualified),
             LOG_STR("reason", err->msg));
    forget(table, known);
    known->copy = begin(pl, now, publication);
    return sink_replace(pl->sink, table->sink_table, schema, err);
}

bool
resume_hide(Pipeline *pl, PipeTable *table, Error *err)
{
    TRY(give_back(pl, table, table->schema, err));
    return sink_bulk_commit(pl->sink, table->sink_table, resume_progress(pl, table).newest, err);
}

void
resume_shown(Pipeline *pl, PipeTable *table)
{
    StateTable *known = tables_state(pl, table);

    if (known != NULL)
        forget(table, known);
}

ResumeProgress
resume_progress(const Pipeline *pl, const PipeTable *table)
{
    const StateTable *known = tables_state(pl, table);
    ResumeProgress progress = {0};

    if (known == NULL || known->copy.count == 0)
        return progress;
    progress.files_mark = known->copy.files_mark;
    progress.columns_mark = known->copy.columns_mark;
    progress.newest = newest(&known->copy);
    for (int i = 0; i < known->copy.count; i++) {
        progress.rows += known->copy.parts[i].loaded.rows;
        progress.tasks += known->copy.parts[i].tasks;
    }
    return progress;
}

void
resume_ranges(const Pipeline *pl, const PipeTable *table, Buf *into)
{
    const StateTable *known = tables_state(pl, table);

    for (int i = 0; known != NULL && i < known->copy.count; i++)
        for (int k = 0; k < known->copy.parts[i].range_count; k++)
            BUF_PUSH(into, CopyRange, known->copy.parts[i].ranges[k]);
}

/* --- recording ------------------------------------------------------------------------------- */

/* In the place of what was recorded under this snapshot before. */
static void
set_part(Pipeline *pl, StateTable *known, const StateCopied *part)
{
    Arena *arena = pl->state_arena;
    StateCopy *copy = &known->copy;
    StateCopy next = *copy;

    if (newest(copy) != part->loaded.position)
        next.count++;
    next.parts = ARENA_ARRAY(arena, StateCopied, (size_t) next.count);
    if (copy->count > 0)
        memcpy(next.parts, copy->parts, (size_t) copy->count * sizeof *next.parts);
    next.parts[next.count - 1] = *part;
    *copy = state_copy_copy(arena, &next);
}

bool
resume_record(Pipeline *pl, PipeTable *table, const ResumeDone *done, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    StateTable *known = tables_state(pl, table);
    size_t count = BUF_COUNT(done->loads, int);
    BulkDone loads = {.position = done->position,
                      .count = count,
                      .loads = (const int *) (void *) done->loads->ptr};
    StateCopied part = {.tasks = (int) count};

    if (known == NULL || known->copy.publication == NULL || !is_followed(table, known) ||
        count == 0)
        return true;
    TRY(sink_bulk_record(pl->sink, table->sink_table, &loads, arena, &part.loaded, err));
    part.ranges = (CopyRange *) (void *) done->ranges->ptr;
    part.range_count = copy_ranges_join(part.ranges, (int) BUF_COUNT(done->ranges, CopyRange));
    set_part(pl, known, &part);
    table->copied_from = known->copy.parts[0].loaded.position;
    log_debug("copy recorded", LOG_STR("table", table->schema->qualified),
              LOG_INT("ranges_done", part.tasks));
    return true;
}
