/* The pipeline's state object: what is written is read, and what is not one is refused. */
#include "testing.h"

#include "pipeline/state.h"

/* A copy under two snapshots. */
static StateCopy
sample_copy(void)
{
    static CopyRange first[] = {{16401, 0, 128}, {16402, 0, -1}};
    static CopyRange second[] = {{16401, 4294967290, -1}};
    static StateCopied parts[] = {
        {.loaded = {.position = 0x1900,
                    .rows = 5000000000,
                    .files = "public/a.b/metadata/copy-1.avro",
                    .rejects = "",
                    .shape = "0123",
                    .widths = "3=12,4,0"},
         .tasks = 7,
         .range_count = 2,
         .ranges = first},
        {.loaded = {.position = 0x1980, .files = "", .rejects = "r", .shape = "0123", .widths = ""},
         .tasks = 1,
         .range_count = 1,
         .ranges = second},
    };

    return (StateCopy){.files_mark = 0xfedcba9876543211,
                       .columns_mark = 9,
                       .publication = "741",
                       .count = 2,
                       .parts = parts};
}

static PipelineState
sample(StateTable *tables)
{
    static StateName former = {"a", "b.c"};

    tables[0] = (StateTable){
        .oid = 16400,
        .source = "public.orders",
        .lake = "public.orders",
        .schema_name = "public",
        .table_name = "orders",
        .files_mark = 0xfedcba9876543210,
        .columns_mark = 7,
        .words = "16420/3/00000000000000ff",
        .copy_again = true,
        .streamed = 0x2000,
        .committed = 0x1800,
        .published = {.noted = true,
                      .entry = 4000000000U,
                      .schema_entry = 16500,
                      .missing = "update, truncate",
                      .filter = "(note = '\"\\'::text)",
                      .columns = "1 3"},
    };
    tables[1] = (StateTable){
        .oid = 16401,
        .source = "public.\"a.b\"",
        .lake = "public.a.b",
        .schema_name = "public",
        .table_name = "a.b",
        .mended = true,
        .dropped = true,
        .name_count = 1,
        .names = &former,
        .copy = sample_copy(),
    };
    return (PipelineState){
        .pipeline = "shop",
        .writer = "me",
        .system_identifier = "7300000000000000001",
        .timeline = 3,
        .timeline_began = 0xF00,
        .database = "shop",
        .slot = "walberg_shop",
        .publication = "walberg_shop",
        .publication_oid = 16390,
        .publication_version = "740",
        .publication_made = true,
        .phase = SLOT_READY,
        .consistent_point = 0x1000,
        .committed = 0x2100,
        .acknowledged = 0x2000,
        .table_count = 2,
        .tables = tables,
    };
}

static void
what_is_written_is_read(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf again = {0};
    StateTable tables[2];
    PipelineState written = sample(tables);
    PipelineState read = {0};
    Error err = {0};

    state_write(&written, &text);
    OK(state_parse(arena, buf_view(&text), &read, &err));
    read.writer = written.writer; /* names the process: not read back */
    state_write(&read, &again);
    assert_string_equal(buf_text(&again), buf_text(&text));
    assert_true(read.tables[0].published.noted && !read.tables[0].dropped);
    assert_int_equal(read.tables[0].published.entry, 4000000000U);
    assert_string_equal(read.tables[0].published.filter, tables[0].published.filter);
    assert_string_equal(read.tables[0].words, tables[0].words);
    assert_true(!read.tables[0].mended && read.tables[1].mended);
    assert_true(!read.tables[1].published.noted && read.tables[1].dropped);
    assert_int_equal(read.tables[0].copy.count, 0);
    assert_true(state_has_name(&read.tables[0], STR("public"), STR("orders")));
    assert_true(state_has_name(&read.tables[1], STR("a"), STR("b.c")));
    assert_false(state_has_name(&read.tables[1], STR("a.b"), STR("c")));
    state_add_name(arena, &read.tables[1], STR("a.b"), STR("c"));
    state_add_name(arena, &read.tables[1], STR("a"), STR("b.c"));
    assert_int_equal(read.tables[1].name_count, 2);
    assert_true(state_has_name(&read.tables[1], STR("a.b"), STR("c")));
    assert_int_equal(read.tables[1].copy.count, 2);
    assert_true(read.publication_made);
    assert_true(read.tables[1].copy.parts[0].loaded.rows == 5000000000);
    assert_true(read.tables[1].copy.parts[1].ranges[0].first_page == 4294967290);
    assert_true(read.tables[1].copy.parts[1].ranges[0].end_page == -1);
}

/* The lifetime of what a table was set from does not matter. */
static void
a_table_is_replaced_by_name(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    StateTable tables[2];
    PipelineState pipeline = sample(tables);
    char filter[] = "(id > 5)";
    StateTable table = {
        .oid = 1,
        .source = "public.orders",
        .lake = "public.orders",
        .schema_name = "public",
        .table_name = "orders",
        .published = {.noted = true, .missing = "", .filter = filter, .columns = ""},
    };

    state_set_table(arena, &pipeline, &table);
    memset(filter, 'x', sizeof filter - 1);
    assert_int_equal(pipeline.table_count, 2);
    assert_string_equal(state_find_table(&pipeline, "public.orders")->published.filter, "(id > 5)");
    table.source = "public.new";
    table.oid = 2;
    state_set_table(arena, &pipeline, &table);
    assert_int_equal(pipeline.table_count, 3);
    assert_null(state_find_table(&pipeline, "public.none"));
}

/* A crash of the machine may leave any part of it. */
static void
no_part_of_it_is_taken_for_the_whole(void **state)
{
    (void) state;

    AUTO_BUF Buf text = {0};
    StateTable tables[2];
    PipelineState written = sample(tables);

    state_write(&written, &text);
    for (size_t length = 0; length + 2 < text.len; length++) {
        AUTO_ARENA Arena *arena = arena_new();
        PipelineState read = {0};
        Error err = {0};
        Str part = {.ptr = buf_view(&text).ptr, .len = length};

        FAILS(state_parse(arena, part, &read, &err), ERR_INPUT);
        assert_null(read.pipeline);
    }
}

static void
other_json_is_refused(void **state)
{
    (void) state;

    static const char *const wrong[] = {"[]", "{}", "{\"version\": 2}", "{\"version\": 1}",
                                        "{\"version\": 1, \"pipeline\": 5}"};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        AUTO_ARENA Arena *arena = arena_new();
        PipelineState read = {0};
        Error err = {0};

        FAILS(state_parse(arena, str_of(wrong[i]), &read, &err), ERR_INPUT);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_table_is_replaced_by_name),
        cmocka_unit_test(no_part_of_it_is_taken_for_the_whole),
        cmocka_unit_test(other_json_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
