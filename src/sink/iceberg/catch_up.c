/* catch_up.c - a batch of the stream into a table whose rows are of several moments.
 *
 * A copy that was interrupted goes on under a newer snapshot, so its rows are as of S1, S2, ... and
 * all changes since S1 come. Between S1 and S2 an update may have moved a row from one range of
 * pages to another: it was loaded twice, or not at all. What makes the end exact:
 *
 *     A row of a key that was loaded as of a moment after the change is the truth for its key: the
 *     change has happened to it already. It stays, and everything the batch says of its key, and
 *     every row of it from before, goes.
 *
 *     Else all rows of the key go, and what the batch says of it comes in their place.
 *
 * So after the changes up to a moment, each key has its row as of that moment or of a later one.
 * A value that the batch lacks (unchanged TOAST) may only be taken from a row that is as of right
 * before the change; where there is none, only a new copy has it. No batch has changes from both
 * sides of a moment that rows are of: the pipeline cuts its epochs there. */
#include <stdlib.h>

#include "batch/fold.h"
#include "sink/iceberg/sink.h"

/* --- hidden ---------------------------------------------------------------------------------- */

static int
by_path(const void *a, const void *b)
{
    return str_cmp(((const BulkFile *) a)->file.path, ((const BulkFile *) b)->file.path);
}

void
iceberg_hide(IcebergTable *table, Position position)
{
    Buf *loaded = &table->pending.loaded;

    if (iceberg_is_hidden(table) || table->base.replay_from == POSITION_NONE ||
        table->base.replay_from >= position)
        return;
    for (size_t i = 0; i < BUF_COUNT(loaded, BulkFile); i++)
        if (BUF_AT(loaded, BulkFile, i).position == POSITION_NONE)
            BUF_AT(loaded, BulkFile, i).position = position;
    if (loaded->len > 0)
        qsort(loaded->ptr, BUF_COUNT(loaded, BulkFile), sizeof(BulkFile), by_path);
    table->base.hidden_until = position;
    table->replayed = table->base.replay_from;
}

void
iceberg_unhide(IcebergTable *table)
{
    table->base.hidden_until = table->base.replay_from = table->replayed = POSITION_NONE;
}

/* What the rows of a file are as of; POSITION_NONE: they came with the stream. */
static Position
file_position(const IcebergTable *table, Str path)
{
    const Buf *loaded = &table->pending.loaded;
    BulkFile probe = {.file.path = path};
    const BulkFile *found =
        loaded->len == 0
            ? NULL
            : bsearch(&probe, loaded->ptr, BUF_COUNT(loaded, BulkFile), sizeof probe, by_path);

    return found == NULL ? POSITION_NONE : found->position;
}

/* --- one batch ------------------------------------------------------------------------------- */

/* The keys that a batch says something of, and what the table has of them. */
typedef struct Keys {
    Arena *arena;
    size_t count;
    Hash128 *keys; /* ascending, each once */
    int *rows;     /* live ones, that are not as of later than the batch */
    bool *ahead;   /* it has one that is as of later */
} Keys;

static int
by_hash(const void *a, const void *b)
{
    return hash128_cmp(*(const Hash128 *) a, *(const Hash128 *) b);
}

/* With inserts_replace every key that the batch touches is in its deletes. */
static Keys
touched_keys(Arena *arena, const Batch *batch)
{
    size_t count = BUF_COUNT(&batch->deletes, Hash128);
    Keys keys = {.arena = arena,
                 .keys = ARENA_ARRAY(arena, Hash128, count),
                 .rows = ARENA_ARRAY(arena, int, count),
                 .ahead = ARENA_ARRAY(arena, bool, count)};

    if (count == 0)
        return keys;
    memcpy(keys.keys, batch->deletes.ptr, count * sizeof *keys.keys);
    qsort(keys.keys, count, sizeof *keys.keys, by_hash);
    for (size_t i = 0; i < count; i++)
        if (keys.count == 0 || !hash128_eq(keys.keys[keys.count - 1], keys.keys[i]))
            keys.keys[keys.count++] = keys.keys[i];
    return keys;
}

static bool
is_live(const IcebergTable *table, IndexHit hit)
{
    return !deletes_contains(table->deletes, index_file_name(table->index, hit.file), hit.row);
}

/* Look at all rows of one key: hits[0..count). */
static bool
judge_key(IcebergTable *table, Keys *keys, const IndexHit *hits, size_t count, Buf *out, Error *err)
{
    size_t key = hits[0].probe;
    Position newest = POSITION_NONE;
    int kept = 0;

    for (size_t i = 0; i < count; i++) {
        Position position = file_position(table, index_file_name(table->index, hits[i].file));

        if (position > table->replayed && position > newest && is_live(table, hits[i]))
            newest = position;
    }
    keys->ahead[key] = newest != POSITION_NONE;
    for (size_t i = 0; i < count; i++) {
        DeletedRow row = {.file = hits[i].file, .row = hits[i].row};

        if (!is_live(table, hits[i]))
            continue;
        if (keys->ahead[key] &&
            file_position(table, index_file_name(table->index, hits[i].file)) == newest) {
            kept++;
            continue;
        }
        keys->rows[key]++;
        BUF_PUSH(out, DeletedRow, row);
    }
    if (kept > 1)
        return FAIL(err, ERR_COPY, "two rows of one key were copied as of the same moment");
    return true;
}

static bool
judge_keys(IcebergTable *table, Keys *keys, Buf *out, Error *err)
{
    AUTO_BUF Buf found = {0};

    TRY(iceberg_look_up(table, keys->keys, keys->count, &found, err));

    const IndexHit *hits = (const IndexHit *) (const void *) found.ptr;
    size_t count = BUF_COUNT(&found, IndexHit);

    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && hits[to].probe == hits[from].probe;)
            to++;
        TRY(judge_key(table, keys, &hits[from], to - from, out, err));
    }
    return true;
}

/* What is ahead of the batch is not touched by it. */
static void
drop_what_is_ahead(const Keys *keys, Batch *batch)
{
    Hash128 *ahead = ARENA_ARRAY(keys->arena, Hash128, keys->count);
    size_t count = 0;

    for (size_t i = 0; i < keys->count; i++)
        if (keys->ahead[i])
            ahead[count++] = keys->keys[i];
    batch_kill_keys(batch, ahead, count);
}

/* Each value that was not sent must be in the one row that is as of right before. */
static bool
check_patches(const Keys *keys, const Batch *batch, Error *err)
{
    for (size_t i = 0; i < BUF_COUNT(&batch->patches, Patch); i++) {
        const Patch *patch = &BUF_AT(&batch->patches, Patch, i);
        const Hash128 *key =
            bsearch(&patch->source, keys->keys, keys->count, sizeof *keys->keys, by_hash);

        if (key == NULL || keys->ahead[key - keys->keys] || keys->rows[key - keys->keys] != 1)
            return FAIL(err, ERR_COPY,
                        "an update left column %.*s unchanged, and its row moved while the copy "
                        "was interrupted",
                        STR_ARG(batch->schema->columns[patch->column].field.name));
    }
    return true;
}

bool
iceberg_catch_up(IcebergTable *table, Batch *batch, Buf *out, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    Keys keys;

    if (batch->truncated || table->index == NULL)
        return FAIL(err, ERR_COPY, "the table was truncated while its copy was interrupted");
    keys = touched_keys(arena, batch);
    if (keys.count == 0)
        return true;
    TRY(judge_keys(table, &keys, out, err));
    drop_what_is_ahead(&keys, batch);
    return check_patches(&keys, batch, err);
}
