/* sink_bench.h - a sink in a warehouse of its own, with a table (id bigint primary key, note text):
 * for the tests of its contract. */
#ifndef SINK_BENCH_H
#define SINK_BENCH_H

#include "testing.h"

#include <stdlib.h>

#include "base/cancel.h"
#include "batch/fold.h"
#include "sink/sink.h"

typedef struct Bench {
    Arena *arena;
    Config *config;
    Cancel *cancel;
    char folder[64];
    int format_version;
    const char *sort; /* the setting; NULL: none */
    Sink *sink;
    const TableSchema *schema;
} Bench;

/* --- a table (id bigint primary key, note text) ---------------------------------------------- */

static const TableSchema *
make_schema(const char *table, KeyMode mode)
{
    Arena *arena;
    TableSchema *schema = schema_new(&arena);
    Type *types = ARENA_ARRAY(arena, Type, 2);

    types[0].kind = TYPE_INT64;
    types[1].kind = TYPE_STRING;
    schema->relid = 16384;
    schema->schema_name = STR("public");
    schema->table_name = str_of(arena_strdup(arena, table));
    schema->qualified = arena_printf(arena, "public.%s", table);
    schema->identity = mode == KEY_FULL_ROW ? IDENTITY_FULL : IDENTITY_DEFAULT;
    schema->key_mode = mode;
    schema->key_count = mode == KEY_COLUMNS;
    schema->key = ARENA_ARRAY(arena, int, 1);
    schema->column_count = 2;
    schema->columns = ARENA_ARRAY(arena, SchemaColumn, 2);
    schema->columns[0] = (SchemaColumn){.field = {.name = STR("id"), .type = &types[0]},
                                        .attnum = 1,
                                        .type_oid = 20,
                                        .pg_type = "bigint",
                                        .not_null = true};
    schema->columns[1] = (SchemaColumn){.field = {.name = STR("note"), .type = &types[1]},
                                        .attnum = 2,
                                        .type_oid = 25,
                                        .pg_type = "text"};
    schema_assign_ids(schema);
    return schema;
}

static inline void
open_sink(Bench *bench)
{
    Error err = {0};
    SinkOptions options = {.config = bench->config, .database = "shop", .cancel = bench->cancel};

    OK(sink_open(&options, &bench->sink, &err));
}

static inline SinkTable *
attach(Bench *bench)
{
    Error err = {0};
    SinkTable *table = NULL;

    OK(sink_attach(bench->sink, &(SinkAttach){.schema = bench->schema}, &table, &err));
    return table;
}

/* As if the process had ended and begun again. */
static inline SinkTable *
reopen(Bench *bench)
{
    sink_close(bench->sink);
    open_sink(bench);
    return attach(bench);
}

/* The settings of a table that is partitioned so. */
static inline void
configure(Bench *bench, const char *partition)
{
    Error err = {0};
    const char *sets[] = {
        "pipeline=test",
        arena_printf(bench->arena, "state=%s/state", bench->folder),
        arena_printf(bench->arena, "sink.iceberg.warehouse=%s/lake", bench->folder),
        arena_printf(bench->arena, "sink.iceberg.format_version=%d", bench->format_version),
        arena_printf(bench->arena, "tables.*.*.partition=%s", partition),
        arena_printf(bench->arena, "tables.*.*.sort=%s", bench->sort),
    };
    size_t count = bench->sort == NULL ? 5 : 6;

    OK(config_load(bench->arena, &(ConfigLoad){.set_count = count, .sets = sets}, &bench->config,
                   &err));
    OK(config_resolve(bench->config, bench->arena, "shop", &err));
}

static inline int
begin(void **state, const char *partition, int format_version)
{
    Bench *bench = xcalloc(1, sizeof *bench);

    strcpy(bench->folder, "/tmp/walberg-sink-XXXXXX");
    assert_non_null(mkdtemp(bench->folder));
    bench->arena = arena_new();
    bench->cancel = cancel_new();

    bench->format_version = format_version;
    configure(bench, partition);
    bench->schema = make_schema("t", KEY_COLUMNS);
    open_sink(bench);
    *state = bench;
    return 0;
}

#define PARTITION "['bucket[4](id)', 'truncate[3](note)']"

static inline int
setup(void **state)
{
    return begin(state, "[]", 2);
}

static inline int
setup_partitioned(void **state)
{
    return begin(state, PARTITION, 2);
}

static inline int
setup_v3(void **state)
{
    return begin(state, "[]", 3);
}

static inline int
setup_v3_partitioned(void **state)
{
    return begin(state, PARTITION, 3);
}

static inline int
teardown(void **state)
{
    Bench *bench = *state;
    char command[128];

    sink_close(bench->sink);
    schema_unref(bench->schema);
    cancel_free(bench->cancel);
    snprintf(command, sizeof command, "rm -rf %s", bench->folder);

    int status = system(command);

    arena_free(bench->arena);
    free(bench);
    return status;
}

/* --- changes --------------------------------------------------------------------------------- */

static const int both_columns[] = {0, 1};
static const TupleMap map = {.count = 2, .column_map = both_columns};

static inline void
apply(Batch *batch, Op op, int id, const char *note)
{
    Error err = {0};
    char text[16];
    ChangeOrigin origin = {.position = 1};

    snprintf(text, sizeof text, "%d", id);

    Datum datums[2] = {{DATUM_TEXT, str_of(text)},
                       {note == NULL ? DATUM_UNCHANGED : DATUM_TEXT, str_of(note)}};
    Tuple tuple = {.count = 2, .datums = datums};
    Change change = {.op = op, .after = tuple};

    if (op == OP_DELETE)
        change = (Change){.op = op, .old_kind = OLD_KEY, .old = tuple};
    OK(batch_apply(batch, &map, &change, &origin, &err));
}

static inline void
insert_rows(Batch *batch, int from, int to)
{
    for (int id = from; id < to; id++)
        apply(batch, OP_INSERT, id, "a row");
}

static inline void
write_and_free(Bench *bench, SinkTable *table, Batch *batch)
{
    Error err = {0};

    batch_seal(batch);
    OK(sink_write(bench->sink, table, batch, &err));
    batch_free(batch);
}

static inline void
commit(Bench *bench, SinkTable *table, Position position)
{
    Error err = {0};

    OK(sink_commit(bench->sink, table, position, 1796032800000000, &err));
}

/* The initial copy of rows [from, to) in batches of 100, and an empty one at the end. odd: the
 * first row of each batch has a value that is rejected, and rows get wider and wider, so that each
 * batch is a file of its own. */
typedef struct RangeSource {
    BulkSource source;
    Batch *batch;
    int next, to;
    bool fails;
    bool odd;
    bool ended;
} RangeSource;

static inline bool
next_range(BulkSource *source, Batch **out_batch, Error *err)
{
    RangeSource *range = (RangeSource *) source;
    ChangeOrigin origin = {.position = 100};
    AUTO_BUF Buf wide = {0};

    *out_batch = NULL;
    if (range->ended)
        return true;
    if (range->next == range->to && range->fails)
        return FAIL(err, ERR_TRANSIENT, "the connection broke");
    range->ended = range->next == range->to;
    batch_reset(range->batch);
    while (range->odd && wide.len < ((size_t) 500 << (range->next / 100 * 3)))
        buf_byte(&wide, 'x');
    for (int i = 0; i < 100 && range->next < range->to; i++, range->next++) {
        char text[16];

        snprintf(text, sizeof text, "%d", range->next);

        Datum datums[2] = {{DATUM_TEXT, str_of(text)}, {DATUM_TEXT, STR("copied")}};

        if (range->odd)
            datums[1].text = i == 0 ? STR("not UTF-8: \xFF") : buf_view(&wide);
        TRY(batch_append_row(range->batch, &map, datums, &origin, err));
    }
    batch_seal(range->batch);
    *out_batch = range->batch;
    return true;
}

static inline bool
load_range(Bench *bench, SinkTable *table, int from, int to, bool fails, Error *err)
{
    RangeSource range = {.source = {.next = next_range, .load = from},
                         .batch = batch_new(table->schema, false),
                         .next = from,
                         .to = to,
                         .fails = fails};
    bool done = sink_bulk_load(bench->sink, table, &range.source, err);

    batch_free(range.batch);
    return done;
}

static inline void
copy_rows(Bench *bench, SinkTable *table, int count)
{
    Error err = {0};

    OK(load_range(bench, table, 0, count, false, &err));
    OK(sink_bulk_commit(bench->sink, table, 100, &err));
}

/* Each of them also of a partitioned table, and under format version 3. */
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, setup, teardown),                                        \
        {#name " (partitioned)", name, setup_partitioned, teardown, NULL},                         \
        {#name " (v3)", name, setup_v3, teardown, NULL},                                           \
    {                                                                                              \
#name " (v3, partitioned)", name, setup_v3_partitioned, teardown, NULL                     \
    }

#endif
