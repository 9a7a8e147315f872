/* verify_rejects.c - is every rejected value of the source recorded in _walberg.rejects?
 *
 * A record names table, key and column as they were when it was made, and the source may have
 * renamed them, or have another key, since. So values are counted: of each, a table needs as many
 * records as there are rows that have it now. There may be more, of rows that are gone. Values are
 * counted by hash, in a fixed number of places: two that share one can hide a missing record, never
 * invent one. */
#include <stdlib.h>

#include "cli/verify.h"
#include "duck/parquet.h"

enum { PLACES = 1 << 16 };

static int32_t *
place_of(VerifyTable *table, const void *value, size_t size)
{
    return &table->unrecorded[hash128(value, size, 0).low % PLACES];
}

void
verify_count_rejects(VerifyTable *table, const Batch *batch)
{
    size_t count = BUF_COUNT(&batch->rejects, Reject);

    if (count > 0 && table->unrecorded == NULL)
        table->unrecorded = xcalloc(PLACES, sizeof *table->unrecorded);
    for (size_t i = 0; i < count; i++) {
        Span value = BUF_AT(&batch->rejects, Reject, i).value;

        ++*place_of(table, batch->reject_bytes.ptr + value.offset, value.length);
    }
    table->rejected += (int64_t) count;
}

/* --- the records ----------------------------------------------------------------------------- */

enum { RECORD_SCHEMA, RECORD_TABLE, RECORD_VALUE, RECORD_FIELDS };

static const char *const record_fields[RECORD_FIELDS] = {"schema", "table", "value"};

typedef struct RecordScan {
    RowSink base; /* first member */
    Verify *verify;
    const Field *fields;
    const DeadRows *dead; /* NULL: none in this file */
    size_t dead_file;
} RecordScan;

/* By today's name, or one that it had. */
static bool
is_of_table(const Verify *verify, const VerifyTable *table, Str schema, Str name)
{
    const TableSchema *source = table->source->schema;
    const StateTable *known = state_find_oid(&verify->state, table->source->relid);

    return (str_eq(schema, source->schema_name) && str_eq(name, source->table_name)) ||
           (known != NULL && state_has_name(known, schema, name));
}

static Str
text_of(const Column *column, size_t row)
{
    return column_is_null(column, row) ? STR("") : column_bytes(column, row);
}

static bool
take_records(RowSink *base, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    const RecordScan *scan = (const RecordScan *) base;
    Verify *verify = scan->verify;

    (void) err;
    for (size_t row = 0; row < rows; row++) {
        Str value = text_of(&columns[RECORD_VALUE], row);
        int64_t number = first_row + (int64_t) row;

        if (scan->dead != NULL && dead_rows_has(scan->dead, scan->dead_file, (uint32_t) number))
            continue;
        for (size_t i = 0; i < verify->table_count; i++) {
            VerifyTable *table = &verify->tables[i];

            if (table->unrecorded != NULL &&
                is_of_table(verify, table, text_of(&columns[RECORD_SCHEMA], row),
                            text_of(&columns[RECORD_TABLE], row)))
                --*place_of(table, value.ptr, value.len);
        }
    }
    return true;
}

static bool
find_fields(const TableMetadata *metadata, Field fields[RECORD_FIELDS], Error *err)
{
    const IcebergSchema *schema = metadata_current_schema(metadata);

    for (int f = 0; f < RECORD_FIELDS; f++) {
        int i = 0;

        while (i < schema->field_count && !str_eqc(schema->fields[i].name, record_fields[f]))
            i++;
        if (i == schema->field_count || schema->fields[i].type->kind != TYPE_STRING)
            return FAIL(err, ERR_INPUT, "it has no text column %s", record_fields[f]);
        fields[f] = schema->fields[i];
    }
    return true;
}

static bool
scan_records(RecordScan *scan, const char *path, Error *err)
{
    ParquetScan parquet = {
        .path = path, .fields = scan->fields, .field_count = RECORD_FIELDS, .sink = &scan->base};

    return duck_scan_parquet(scan->verify->duck, &parquet, err);
}

static bool
scan_plan(RecordScan *scan, const TablePlan *plan, Error *err)
{
    for (size_t i = 0; i < plan->clean_count; i++)
        TRY(scan_records(scan, plan->clean[i], err));
    scan->dead = plan->dead;
    for (size_t i = 0; i < plan->dirty_count; i++) {
        scan->dead_file = i;
        TRY(scan_records(scan, plan->dirty[i], err));
    }
    return true;
}

static bool
read_records(Verify *verify, Error *err)
{
    const TableName name = {.space = STR("_walberg"), .name = STR("rejects")};
    Arena *arena = verify->round_arena;
    Field fields[RECORD_FIELDS];
    RecordScan scan = {.base = {.block = take_records}, .verify = verify, .fields = fields};
    PlanCache cache = {0};
    CatalogTable loaded;
    TableMetadata *metadata;
    TablePlan plan = {0};
    bool found;

    TRY(catalog_load(verify->catalog, arena, &name, &loaded, &found, err));
    if (!found)
        return true;
    TRY(metadata_parse(arena, loaded.metadata, &metadata, err));
    TRY(find_fields(metadata, fields, err));

    const PlanMake make = {.files = &verify->files,
                           .duck = verify->duck,
                           .cache = &cache,
                           .snapshot = metadata_current_snapshot(metadata)};
    bool done = make.snapshot == NULL ||
                (table_plan_make(arena, &make, &plan, err) && scan_plan(&scan, &plan, err));

    dead_rows_free(plan.dead);
    file_hold_done(&plan.hold);
    plan_cache_done(&cache);
    return done;
}

static int64_t
sum_unrecorded(const VerifyTable *table)
{
    int64_t sum = 0;

    for (int i = 0; i < PLACES; i++)
        sum += table->unrecorded[i] > 0 ? table->unrecorded[i] : 0;
    return sum;
}

bool
verify_find_records(Verify *verify, Error *err)
{
    bool any = false;
    bool lacking = false;

    for (size_t i = 0; i < verify->table_count; i++)
        any = any || verify->tables[i].unrecorded != NULL;
    if (!any)
        return true;
    if (!read_records(verify, err))
        return WRAP(err, "table _walberg.rejects");
    for (size_t i = 0; i < verify->table_count; i++) {
        VerifyTable *table = &verify->tables[i];

        if (table->unrecorded != NULL)
            table->without_record = sum_unrecorded(table);
        lacking = lacking || table->without_record > 0;
    }
    /* a record may be among the changes that wait while nobody streams */
    return !lacking || !verify->stopped || verify_await_lake(verify, false, err);
}
