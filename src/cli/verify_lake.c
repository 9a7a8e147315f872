/* verify_lake.c - how far the lake is, and the rows it has. */
#include <assert.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/connect.h"
#include "cli/state_folder.h"
#include "cli/verify.h"
#include "duck/parquet.h"
#include "iceberg/default.h"
#include "iceberg/evolve.h"

enum { LOOK_EVERY_MS = 200 };

/* --- how far it is --------------------------------------------------------------------------- */

bool
verify_load_state(Verify *verify, Error *err)
{
    arena_reset(verify->state_arena);
    TRY(cli_load_state(verify->config, verify->state_arena, verify->store, &verify->state, NULL,
                       err));
    if (verify->state.pipeline == NULL)
        return FAIL(err, ERR_INPUT,
                    "the lake %s has no pipeline %s\n"
                    "hint: walberg run makes it; --set pipeline=... names another one",
                    verify->store->base_uri, verify->config->pipeline);
    return true;
}

static const char *
text_of(Arena *arena, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? NULL : arena_strdup(arena, text);
}

static void
look_at_tables(Verify *verify, const json_t *status)
{
    Arena *arena = verify->state_arena;
    const char *committed = text_of(arena, json_object_get(status, "source"), "committed");
    size_t i;
    const json_t *table;
    Error ignored;

    verify->copying = false;
    verify->streamed = POSITION_NONE;
    buf_reset(&verify->standing);
    if (committed == NULL || !position_parse(str_of(committed), &verify->streamed, &ignored))
        verify->streamed = POSITION_NONE;
    json_array_foreach(json_object_get(status, "tables"), i, table)
    {
        const char *state = text_of(arena, table, "state");
        StandingTable standing = {.name = text_of(arena, table, "name"),
                                  .parked = state != NULL && strcmp(state, "parked") == 0};

        if (standing.name == NULL || state == NULL || strcmp(state, "streaming") == 0 ||
            strcmp(state, "dropped") == 0)
            continue;
        standing.reason =
            standing.parked ? "parked: see walberg status" : "it is being copied, or was just now";
        verify->copying |= !standing.parked;
        BUF_PUSH(&verify->standing, StandingTable, standing);
    }
}

/* What the slot was told, all tables have, but for those that are parked with a gap or are to be
 * copied; others that stand still hold it back. Those that stream are further: the status document
 * says how far, and which they are. */
static Position
reached(const Verify *verify)
{
    Position acknowledged = verify->state.acknowledged;

    return verify->streamed > acknowledged ? verify->streamed : acknowledged;
}

/* The document has the name of the pipeline's last look. NULL: it streams. */
static const StandingTable *
find_standing(const Verify *verify, const VerifyTable *table)
{
    const StateTable *known =
        table->source == NULL ? NULL : state_find_oid(&verify->state, table->source->relid);

    for (size_t i = 0; i < BUF_COUNT(&verify->standing, StandingTable); i++) {
        const StandingTable *standing = &BUF_AT(&verify->standing, StandingTable, i);

        if (strcmp(standing->name, table->name) == 0 ||
            (known != NULL && strcmp(standing->name, known->source) == 0))
            return standing;
    }
    return NULL;
}

void
verify_leave_standing(Verify *verify, bool sums)
{
    bool all_told = verify->state.acknowledged >= verify->snapshot;

    for (size_t i = 0; i < verify->table_count; i++) {
        VerifyTable *table = &verify->tables[i];
        const StandingTable *standing = find_standing(verify, table);

        if (standing != NULL && table->reason == NULL && (sums || table->open) &&
            (standing->parked || !all_told))
            table->reason = arena_strdup(verify->arena, standing->reason);
    }
}

static bool
look(Verify *verify, bool *out_running, Error *err)
{
    AUTO(json_unref) json_t *status = NULL;
    Error ignored;

    /* before the state: who stops in between has written it */
    *out_running = state_folder_is_locked(verify->config, verify->round_arena);
    if (!*out_running)
        TRY(verify_slot_is_read(verify, out_running, err));
    /* replaced by rename, but it may be of another version */
    if (!state_folder_status(verify->config, verify->round_arena, &status, &ignored))
        status = NULL;
    TRY(verify_load_state(verify, err));
    look_at_tables(verify, status);
    if (*out_running && (verify->copying || reached(verify) < verify->snapshot))
        progress_note(&verify->progress, json_string_value(json_object_get(status, "error")));
    return true;
}

/* Nobody streams. The lake is as of the snapshot if nothing waits for it in the slot: behind what
 * the slot was told, since a table may have been catching up with the others; but a table that
 * stood still holds that back, and is left out. */
static bool
judge_stopped(Verify *verify, bool lenient, Error *err)
{
    Position at = verify->standing.len > 0 ? verify->state.committed : verify->state.acknowledged;
    int64_t changes = 0;

    if (lenient) {
        verify->stopped = true;
        return true;
    }
    if (!verify_waiting_changes(verify, at, &changes, err))
        return FAIL(err, ERR_TRANSIENT,
                    "the lake is at %s and differs from the source at %s, but walberg is not "
                    "running, and the changes that wait for it cannot be looked at\n"
                    "hint: start it, or walberg run --once, and verify again",
                    POSITION_TEXT(at), POSITION_TEXT(verify->snapshot));
    if (changes > 0)
        return FAIL(err, ERR_TRANSIENT,
                    "the lake is at %s and does not have the last %" PRId64
                    " changes of the source: walberg is not running\n"
                    "hint: start it, or walberg run --once, and verify again",
                    POSITION_TEXT(at), changes);
    return true;
}

bool
verify_await_lake(Verify *verify, bool lenient, Error *err)
{
    int64_t until = clock_ms() + verify->timeout_ms;

    for (;;) {
        bool running;

        TRY(look(verify, &running, err));
        if (reached(verify) >= verify->snapshot)
            return true;
        if (!running)
            return judge_stopped(verify, lenient, err);
        if (clock_ms() > until)
            return FAIL(err, ERR_TRANSIENT,
                        "the lake is at %s and did not reach %s in time\n"
                        "hint: walberg status says how far behind it is; --timeout waits longer",
                        POSITION_TEXT(reached(verify)), POSITION_TEXT(verify->snapshot));
        if (progress_due(&verify->progress))
            progress_say(&verify->progress, "waiting for the lake to reach %s, it is at %s",
                         POSITION_TEXT(verify->snapshot), POSITION_TEXT(reached(verify)));
        usleep(1000 * LOOK_EVERY_MS);
    }
}

/* --- what it has ----------------------------------------------------------------------------- */

/* The lake's fields in the order of the source's columns. A column that the lake was not told of
 * yet reads NULL there. */
static bool
map_fields(Verify *verify, VerifyTable *table, const TableMetadata *metadata, Error *err)
{
    const FitWant want = {.source = table->source->schema};
    int count = table->source->schema->column_count;
    SchemaFit fit;

    TRY(iceberg_fit_schema(verify->round_arena, metadata, &want, &fit, err));
    table->fit = fit.schema;
    assert(fit.schema->column_count == count);
    table->fields = ARENA_ARRAY(verify->round_arena, Field, (size_t) count);
    for (int i = 0; i < count; i++) {
        const Field *field = &fit.schema->columns[i].field;
        const Field *known = iceberg_schema_find(metadata_current_schema(metadata), field->id);

        table->fields[i] = *field;
        table->fields[i].initial_default = known == NULL ? STR_NULL : known->initial_default;
    }
    return default_expressions(verify->round_arena, table->fields, count, &table->defaults, err);
}

static bool
check_metadata(const Verify *verify, const TableMetadata *metadata, Error *err)
{
    Str pipeline = property_get(&metadata->properties, "cdc.pipeline");

    if (!str_eqc(pipeline, verify->config->pipeline))
        return FAIL(err, ERR_INPUT, "the table in the lake belongs to %s%.*s",
                    pipeline.ptr == NULL ? "somebody else" : "pipeline ", STR_ARG(pipeline));
    if (property_get(&metadata->properties, "cdc.position").ptr == NULL)
        return FAIL(err, ERR_INPUT, "its copy is not complete");
    return true;
}

static bool
plan_table(Verify *verify, VerifyTable *table, Error *err)
{
    Arena *arena = verify->round_arena;
    CatalogTable loaded;
    TableMetadata *metadata;
    const StateTable *known = state_find_oid(&verify->state, table->source->relid);
    bool found = false;

    /* "committed" does not speak of it: it stands still until the copy is there */
    if (known != NULL && known->copy_again)
        return FAIL(err, ERR_INPUT,
                    "it is to be copied again, and the lake still shows the old rows");
    TRY(catalog_load(verify->catalog, arena, &table->lake, &loaded, &found, err));
    if (!found)
        return FAIL(err, ERR_INPUT, "it is not in the lake");
    TRY(metadata_parse(arena, loaded.metadata, &metadata, err));
    TRY(check_metadata(verify, metadata, err));
    TRY(map_fields(verify, table, metadata, err));

    const PlanMake make = {.files = &verify->files,
                           .duck = verify->duck,
                           .cache = &table->cache,
                           .snapshot = metadata_current_snapshot(metadata)};

    return make.snapshot == NULL || table_plan_make(arena, &make, &table->plan, err);
}

void
verify_drop_plan(VerifyTable *table)
{
    dead_rows_free(table->plan.dead);
    file_hold_done(&table->plan.hold);
    schema_unref(table->fit);
    table->fit = NULL;
    table->plan = (TablePlan){0};
}

bool
verify_plan_lake(Verify *verify, VerifyTable *table, Error *err)
{
    verify_drop_plan(table);
    if (plan_table(verify, table, err))
        return true;
    if (err->kind != ERR_INPUT && err->kind != ERR_COPY)
        return WRAP(err, "%s", table->name);
    table->reason = arena_strdup(verify->arena, err->msg);
    return true;
}

/* --- rows ------------------------------------------------------------------------------------ */

typedef struct LakeScan {
    RowSink base; /* first member */
    RowTaker taker;
    uint64_t file; /* hash of its path */
    const DeadRows *dead;
    size_t dead_file;
} LakeScan;

static void
scan_done(LakeScan *scan)
{
    verify_taker_done(&scan->taker);
}

static bool
take_block(RowSink *base, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    LakeScan *scan = (LakeScan *) base;

    for (size_t i = 0; i < rows; i++) {
        int64_t row = first_row + (int64_t) i;

        if (scan->dead != NULL && dead_rows_has(scan->dead, scan->dead_file, (uint32_t) row))
            continue;
        TRY(verify_take_row(&scan->taker, columns, i, NULL,
                            hash128(&row, sizeof row, scan->file).low, err));
    }
    if (progress_due(&scan->taker.verify->progress))
        progress_say(&scan->taker.verify->progress, "%s: %" PRId64 " rows of the lake read",
                     scan->taker.table->name, scan->taker.rows);
    return true;
}

static bool
scan_file(LakeScan *scan, const char *path, Error *err)
{
    const VerifyTable *table = scan->taker.table;
    ParquetScan parquet = {.path = path,
                           .fields = table->fields,
                           .field_count = table->source->schema->column_count,
                           .defaults = table->defaults,
                           .sink = &scan->base};

    scan->file = hash128(path, strlen(path), 0).low;
    return duck_scan_parquet(scan->taker.verify->duck, &parquet, err);
}

static bool
scan_files(LakeScan *scan, Error *err)
{
    const TablePlan *plan = &scan->taker.table->plan;

    for (size_t i = 0; i < plan->clean_count; i++)
        TRY(scan_file(scan, plan->clean[i], err));
    scan->dead = plan->dead;
    for (size_t i = 0; i < plan->dirty_count; i++) {
        scan->dead_file = i;
        TRY(scan_file(scan, plan->dirty[i], err));
    }
    return true;
}

bool
verify_scan_lake(Verify *verify, VerifyTable *table, bool notes, Error *err)
{
    AUTO(scan_done)
    LakeScan scan = {
        .base = {.block = take_block},
        .taker = {.verify = verify, .table = table, .side = SIDE_LAKE, .notes = notes}};

    if (scan_files(&scan, err)) {
        if (!notes)
            table->rows[SIDE_LAKE] = scan.taker.rows;
        return true;
    }
    if (err->kind != ERR_INPUT)
        return WRAP(err, "%s", table->name);
    table->reason = arena_strdup(verify->arena, err->msg);
    return true;
}
