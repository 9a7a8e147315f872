/* commit.c - the one atomic step of a table, and what to do when it is contested or its outcome is
 * not known.
 *
 *     build manifests and metadata  ->  compare-and-swap in the catalog  ->  adopt what we wrote
 *                                          |                  |
 *                                       conflict           unknown
 *                                          |                  |
 *                                load; is our snapshot there? it is done (with somebody else's
 *                                          |            commit on top: find the rows again)
 *                                          |
 *                         somebody else's commit: are our rows still where we think?
 *                              yes: build again on top      no: give the table up
 *
 * A file that may be referenced is never deleted here. The position is part of the same atomic
 * commit as the rows: snapshot summary and table property cdc.position. */
#include <assert.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "sink/iceberg/sink.h"

enum { CONFLICTS_MAX = 10 };

/* --- what a commit says about itself --------------------------------------------------------- */

typedef struct CommitFacts {
    Position position; /* POSITION_NONE: not changed by this commit (rejects of a copy) */
    int64_t commit_time_us;
    SinkCommitted committed;
} CommitFacts;

/* Before it: what another writer made of our rows since is not ours to tell. */
static SinkCommitted
count_pending(const IcebergTable *table)
{
    const Pending *pending = &table->pending;
    SinkCommitted count = {.files = (int64_t) BUF_COUNT(&pending->files, DataFile),
                           .deletes = (int64_t) deletes_total(pending->deletes)};

    for (int64_t i = 0; i < count.files; i++)
        count.rows += BUF_AT(&pending->files, DataFile, i).record_count;
    if (pending->truncated)
        count.deletes += table->base.rows;
    return count;
}

static PropertyList
summary_extra(IcebergTable *table, Arena *arena, const CommitFacts *facts)
{
    PropertyList extra = {0};
    char when[32];

    if (facts->position != POSITION_NONE)
        extra = property_set(arena, &extra, STR("cdc.position"),
                             arena_strf(arena, "%s", POSITION_TEXT(facts->position)));
    if (facts->commit_time_us != 0) {
        clock_format(facts->commit_time_us, when, sizeof when);
        extra = property_set(arena, &extra, STR("cdc.commit-time"), arena_str(arena, str_of(when)));
    }
    extra = property_set(arena, &extra, STR("cdc.pipeline"), str_of(table->sink->pipeline));
    extra = property_set(arena, &extra, STR("engine-name"), STR("walberg"));
    return property_set(arena, &extra, STR("engine-version"), STR(WALBERG_VERSION));
}

/* Columns may have been renamed or dropped: what is said of them is said anew. */
static PropertyList
without_numerics(Arena *arena, const PropertyList *properties)
{
    PropertyList rest = {.items = ARENA_ARRAY(arena, Property, properties->count)};

    for (size_t i = 0; i < properties->count; i++)
        if (!str_starts(properties->items[i].key, STR("walberg.numeric.")))
            rest.items[rest.count++] = properties->items[i];
    return rest;
}

static PropertyList
table_properties(IcebergTable *table, Arena *arena, const PropertyList *base,
                 const CommitFacts *facts)
{
    const TableSchema *schema = table->base.schema;
    PropertyList properties = without_numerics(arena, base);

    if (facts->position != POSITION_NONE)
        properties = property_set(arena, &properties, STR("cdc.position"),
                                  arena_strf(arena, "%s", POSITION_TEXT(facts->position)));
    if (table == table->sink->rejects)
        properties = iceberg_rejects_properties(table->sink, arena, &properties, facts->position);
    for (int i = 0; i < schema->column_count; i++) {
        const NumericWidth *width = &table->numerics[i];

        if (!width->tracked || (width->integer_digits + width->scale == 0 && !width->not_finite))
            continue;
        properties = property_set(
            arena, &properties,
            arena_strf(arena, "walberg.numeric.%.*s", STR_ARG(schema->columns[i].field.name)),
            width->not_finite ? STR("text")
                              : arena_strf(arena, "%d,%d", width->integer_digits, width->scale));
    }
    return properties;
}

/* --- after the swap -------------------------------------------------------------------------- */

static bool
adopt_deletes(IcebergTable *table, const NextSnapshot *next, Error *err)
{
    for (size_t i = 0; i < BUF_COUNT(&next->replaced_deletes, Str); i++)
        live_deletes_remove(table->live_deletes, BUF_AT(&next->replaced_deletes, Str, i));
    for (size_t m = 0; m < BUF_COUNT(&next->delete_manifests, DeleteManifest); m++) {
        const DeleteManifest *manifest = &BUF_AT(&next->delete_manifests, DeleteManifest, m);

        TRY(live_deletes_add(table->live_deletes, manifest->bytes, &manifest->file, err));
    }
    return true;
}

/* What we wrote is what the table is now; copied, so that the memory of the commit can go. */
static bool
adopt(IcebergTable *table, const NextSnapshot *next, const TableMetadata *metadata,
      const CatalogTable *made, Error *err)
{
    Arena *arena = arena_new();
    Arena *old = table->arena;

    table->arena = arena;
    table->current = (CatalogTable){
        .location = arena_strdup(arena, made->location),
        .metadata_location = arena_strdup(arena, made->metadata_location),
        .token = arena_strdup(arena, made->token),
    };

    bool done = metadata_copy(arena, metadata, &table->metadata, err) &&
                manifest_list_read(arena, buf_view(&next->manifest_list), &table->manifests,
                                   &table->manifest_count, err) &&
                adopt_deletes(table, next, err);

    arena_free(old);
    if (!done)
        return WRAP(err, "read back what was committed");
    return true;
}

/* --- contested ------------------------------------------------------------------------------- */

/* Whether every data file that pending deletes point into is still live. */
static bool
rows_are_where_we_think(IcebergTable *table, bool *out_yes, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf live = {0};
    Deletes *left = deletes_new();
    bool done = iceberg_live_files(table, arena, &live, err);

    deletes_merge(left, table->pending.deletes);
    for (size_t i = 0; done && i < BUF_COUNT(&live, ManifestEntry); i++)
        deletes_remove_file(left, BUF_AT(&live, ManifestEntry, i).file.path);
    for (size_t i = 0; done && i < BUF_COUNT(&table->pending.files, DataFile); i++)
        deletes_remove_file(left, BUF_AT(&table->pending.files, DataFile, i).path);
    *out_yes = deletes_total(left) == 0;
    deletes_free(left);
    return done;
}

static bool
is_attempt(const IcebergTable *table, int64_t snapshot_id)
{
    const Buf *attempts = &table->pending.attempts;

    for (size_t i = 0; i < BUF_COUNT(attempts, int64_t); i++)
        if (BUF_AT(attempts, int64_t, i) == snapshot_id)
            return true;
    return false;
}

static bool
is_of_pipeline(const IcebergTable *table, const Snapshot *snapshot)
{
    return snapshot != NULL &&
           str_eqc(property_get(&snapshot->summary, "cdc.pipeline"), table->sink->pipeline);
}

/* Whether one of our attempts is in the table. Another writer may have expired its snapshot since;
 * the position that came with it stays, and nobody else writes that. */
static bool
has_attempt(const IcebergTable *table, Position position)
{
    const TableMetadata *metadata = table->metadata;
    const Buf *attempts = &table->pending.attempts;

    for (size_t i = 0; i < BUF_COUNT(attempts, int64_t); i++)
        if (metadata_find_snapshot(metadata, BUF_AT(attempts, int64_t, i)) != NULL)
            return true;
    if (attempts->len == 0 || position == POSITION_NONE || position == table->base.position ||
        table->base.schema->relid == 0 || /* other pipelines write to the table of rejects */
        is_of_pipeline(table, metadata_current_snapshot(metadata)))
        return false;
    return str_eqc(property_get(&metadata->properties, "cdc.position"), POSITION_TEXT(position));
}

/* The table as it is now, beside what is pending. *out_ours: that is in it already. */
static bool
look_again(IcebergTable *table, Position position, bool *out_ours, Error *err)
{
    TRY(FAULT("sink.look_again", err));
    TRY(iceberg_table_refresh(table, err));
    *out_ours = has_attempt(table, position);
    return true;
}

/* The table has what was pending. If another writer committed on top of it, the rows may be in
 * other files by now, and so may those that were deleted: the lake alone says where they are. */
static bool
find_committed(IcebergTable *table, Error *err)
{
    int64_t current = table->metadata->current_snapshot_id;

    if (is_attempt(table, current))
        return true;
    deletes_clear(table->pending.deletes);
    buf_reset(&table->pending.files);
    table->pending.truncated = false;
    table->replacing = false;
    log_warn("another writer committed to the table", LOG_STR("table", table->base.lake_name),
             LOG_INT("snapshot", current));
    TRY(iceberg_table_refresh(table, err));
    return iceberg_sync_index(table, err);
}

/* Nothing was committed: with what the lake has then, it fits. */
#define HINT_START_AGAIN "hint: start walberg again, and let only walberg maintain the table"

/* Ids that are pending may be another's by now. ALTER TABLE makes no snapshot. */
static bool
check_foreign_shape(const IcebergTable *table, Error *err)
{
    const Pending *pending = &table->pending;
    const TableMetadata *metadata = table->metadata;

    if (pending->fit.next != NULL && pending->fit_base_id != metadata->last_column_id)
        return FAIL(err, ERR_INPUT,
                    "another writer changed the columns of the lake table while the source's "
                    "changed, too\n" HINT_START_AGAIN);
    if (pending->files.len == 0)
        return true; /* none has the id of a spec or an order: they get those that are free now */
    if (pending->specs.len > 0 && pending->spec_base_count != metadata->spec_count)
        return FAIL(err, ERR_INPUT,
                    "another writer changed the partitions of the lake table while the settings "
                    "did, too\n" HINT_START_AGAIN);
    if (pending->sort_orders.len > 0 && pending->sort_base_count != metadata->sort_order_count)
        return FAIL(err, ERR_INPUT,
                    "another writer changed the sort order of the lake table while the settings "
                    "did, too\n" HINT_START_AGAIN);
    return true;
}

/* Values of a column that is gone would come to files where no reader finds them. A shape that is
 * pending brings its columns itself. */
static bool
check_columns(const IcebergTable *table, Error *err)
{
    const TableSchema *schema = table->base.schema;
    const IcebergSchema *lake = metadata_current_schema(table->metadata);

    for (int i = 0; table->pending.fit.next == NULL && i < schema->column_count; i++) {
        const Field *field = &schema->columns[i].field;

        if (iceberg_schema_find(lake, field->id) == NULL)
            return FAIL(err, ERR_INPUT,
                        "another writer dropped column %.*s of the lake table\n"
                        "hint: start walberg again: it copies the table, and let only walberg "
                        "maintain it",
                        STR_ARG(field->name));
    }
    return true;
}

/* Somebody else committed first. What is pending may go on top when it still fits. */
static bool
check_foreign_commit(IcebergTable *table, int64_t snapshot_before, Error *err)
{
    const Snapshot *current = metadata_current_snapshot(table->metadata);
    bool rows_stayed = current == NULL || current->snapshot_id == snapshot_before;
    bool fits = true;

    if (!rows_stayed && is_of_pipeline(table, current))
        return FAIL(err, ERR_INPUT,
                    "another walberg process committed to this table\n"
                    "hint: only one process may run pipeline %s; stop the other one",
                    table->sink->pipeline);
    TRY(check_foreign_shape(table, err));
    if (rows_stayed)
        return true; /* a change of properties, of the shape, or of history */
    TRY(rows_are_where_we_think(table, &fits, err));
    if (!fits)
        return FAIL(err, ERR_INPUT,
                    "another writer rewrote files of the lake table while rows of them "
                    "changed\n" HINT_COPY_AGAIN ", and let only walberg maintain it");
    log_warn("another writer committed to the table", LOG_STR("table", table->base.lake_name),
             LOG_INT("snapshot", current->snapshot_id));
    return iceberg_sync_index(table, err);
}

/* --- one try --------------------------------------------------------------------------------- */

typedef enum Outcome { COMMITTED, CONTESTED, UNKNOWN } Outcome;

static bool
try_commit(IcebergTable *table, const CommitFacts *facts, Outcome *out_outcome, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf json = {0};
    NextSnapshot next = {0};
    CatalogTable made;
    PropertyList extra = summary_extra(table, arena, facts);
    TableMetadata base = *iceberg_shaped_metadata(table, arena);

    if (!iceberg_build_snapshot(table, &base, arena, &extra, &next, err)) {
        iceberg_next_done(&next);
        return false;
    }
    base.properties = table_properties(table, arena, &base.properties, facts);

    const TableMetadata *metadata = metadata_add_snapshot(
        arena, &base, &next.snapshot, table->current.metadata_location, &table->sink->retention);

    metadata_write(metadata, &json);
    BUF_PUSH(&table->pending.attempts, int64_t, next.snapshot.snapshot_id);
    table->pending.stale = true;

    bool done = FAULT("sink.commit", err) &&
                catalog_commit(table->sink->catalog, arena, &table->name, &table->current,
                               buf_view(&json), &made, err) &&
                FAULT("sink.committed", err);

    if (done) {
        *out_outcome = COMMITTED;
        done = adopt(table, &next, metadata, &made, err);
    } else {
        *out_outcome = err->kind == ERR_CONFLICT ? CONTESTED : UNKNOWN;
        done = err->kind == ERR_CONFLICT || err->kind == ERR_TRANSIENT;
    }
    iceberg_next_done(&next);
    return done;
}

/* The table has its rows: what was pending is history. */
static bool
settle(IcebergTable *table, const CommitFacts *facts, Error *err)
{
    const Snapshot *snapshot = metadata_current_snapshot(table->metadata);
    int64_t deleted = (int64_t) deletes_total(table->deletes);

    if (facts->position != POSITION_NONE)
        table->base.position = facts->position;
    table->base.committed = facts->committed;
    table->base.last_commit_us = snapshot->timestamp_ms * 1000;
    table->base.rows = iceberg_summary_number(snapshot, "total-records") - deleted;
    iceberg_settle_shape(table);
    table->replacing = false;
    table->keep_index = false;
    iceberg_unhide(table);
    iceberg_keep_places(table);
    iceberg_remove_records(table);
    iceberg_pending_reset(&table->pending);
    /* the rows are committed: an index that cannot be saved is read from them after a restart */
    if (!iceberg_save_index(table, err)) {
        log_warn("cannot save the key index", LOG_STR("table", table->base.lake_name),
                 LOG_STR("error", err->msg));
        err->kind = ERR_NONE;
    }
    return true;
}

bool
iceberg_commit_pending(IcebergTable *table, Position position, int64_t commit_time_us, Error *err)
{
    CommitFacts facts = {
        .position = position, .commit_time_us = commit_time_us, .committed = count_pending(table)};

    for (int conflicts = 0; conflicts < CONFLICTS_MAX; conflicts++) {
        Outcome outcome;
        bool ours = false;

        if (table->pending.stale) {
            int64_t before = table->pending.base_snapshot;

            TRY(look_again(table, position, &ours, err));
            if (ours)
                return find_committed(table, err) && settle(table, &facts, err);
            TRY(check_foreign_commit(table, before, err));
            table->pending.stale = false;
        }
        TRY(check_columns(table, err));
        table->pending.base_snapshot = table->metadata->current_snapshot_id;
        TRY(try_commit(table, &facts, &outcome, err));
        if (outcome == COMMITTED)
            return settle(table, &facts, err);
    }
    return FAIL(err, ERR_TRANSIENT, "lost %d races for the next version of the table",
                CONFLICTS_MAX);
}

bool
iceberg_commit(Sink *sink, SinkTable *sink_table, Position position, int64_t commit_time_us,
               Error *err)
{
    IcebergTable *table = (IcebergTable *) (void *) sink_table;

    (void) sink;
    if (table->rejects_pending)
        TRY(iceberg_rejects_commit(table->sink, position, commit_time_us, err));
    if (position < table->base.hidden_until) {
        table->replayed = position;
        return true;
    }
    if (iceberg_is_hidden(table))
        TRY(iceberg_rejects_adopt(table->sink, table, err));
    else if (!table->pending.any)
        return true;
    return iceberg_commit_pending(table, position, commit_time_us, err);
}
