/* Which files have dictionaries: DuckDB's take 0 and -0 for one value, so the writer is told
 * whether a -0 may come. That zeros keep their sign is a test of parquet.c, and of
 * e2e/test_zeros.py, where pyarrow looks at the files. */
#include "testing.h"

#include <duckdb.h>
#include <stdlib.h>
#include <unistd.h>

#include "duck/parquet.h"

enum { ROWS = 5000, COLUMNS = 2 };

static Type word = {.kind = TYPE_STRING};
static Type number = {.kind = TYPE_INT32};
static Type real = {.kind = TYPE_FLOAT32};
static Field element = {.name = {.ptr = "element", .len = 7}, .id = 3, .type = &real};
static Type reals = {.kind = TYPE_LIST, .field_count = 1, .fields = &element};
static Field member = {.name = {.ptr = "list", .len = 4}, .id = 4, .type = &reals};
static Type nested = {.kind = TYPE_STRUCT, .field_count = 1, .fields = &member};

typedef struct Rows {
    RowSource source;
    Column columns[COLUMNS];
    bool given;
} Rows;

static bool
next_rows(RowSource *source, RowBlock *out_block, Error *err)
{
    Rows *rows = (Rows *) (void *) source;

    (void) err;
    *out_block = (RowBlock){.columns = rows->columns, .rows = rows->given ? 0 : ROWS};
    rows->given = true;
    return true;
}

/* A few values, as dictionaries are made for. */
static void
append_value(Column *column, int row)
{
    static const char *const words[] = {"new", "paid", "shipped"};
    float half = (float) (row % 4) / 2;
    size_t start;

    switch ((int) column->type->kind) {
    case TYPE_STRING:
        column_append_bytes(column, str_of(words[row % 3]));
        break;
    case TYPE_INT32:
        column_append_fixed(column, &(int32_t){row % 5});
        break;
    case TYPE_FLOAT32:
        column_append_fixed(column, &half);
        break;
    case TYPE_LIST:
        start = column->children[0].rows;
        append_value(&column->children[0], row);
        append_value(&column->children[0], row + 1);
        column_append_span(column, start);
        break;
    default: /* a struct */
        append_value(&column->children[0], row);
        column_append_struct(column);
        break;
    }
}

/* As somebody else reads them: columns with a dictionary page in all their row groups. */
static int
count_dictionaries(const char *path)
{
    duckdb_database database;
    duckdb_connection connection;
    duckdb_result result;
    char sql[256];

    snprintf(sql, sizeof sql,
             "select count(*) from parquet_metadata('%s') where dictionary_page_offset is not null",
             path);
    assert_int_equal(duckdb_open(NULL, &database), DuckDBSuccess);
    assert_int_equal(duckdb_connect(database, &connection), DuckDBSuccess);
    assert_int_equal(duckdb_query(connection, sql, &result), DuckDBSuccess);

    int count = (int) duckdb_value_int64(&result, 0, 0);

    duckdb_destroy_result(&result);
    duckdb_disconnect(&connection);
    duckdb_close(&database);
    return count;
}

/* A file of a column of words and one of the type. */
static int
dictionaries_beside(Type *type, bool no_negative_zero)
{
    Field fields[COLUMNS] = {{.name = STR("word"), .id = 1, .type = &word},
                             {.name = STR("other"), .id = 2, .type = type}};
    Rows rows = {.source = {.next = next_rows}};
    AUTO_ARENA Arena *arena = arena_new();
    char path[] = "/tmp/walberg-dictionaries-XXXXXX";
    ParquetWrite write = {.path = path,
                          .fields = fields,
                          .field_count = COLUMNS,
                          .rows = &rows.source,
                          .no_negative_zero = no_negative_zero};
    ParquetFile file;
    Duck *duck = NULL;
    Error err = {0};
    int count;

    close(mkstemp(path));
    for (int i = 0; i < COLUMNS; i++) {
        column_init(&rows.columns[i], fields[i].type);
        for (int row = 0; row < ROWS; row++)
            append_value(&rows.columns[i], row);
    }
    OK(duck_open(&(DuckOptions){.threads = 1}, &duck, &err));
    OK(duck_write_parquet(duck, arena, &write, &file, &err));
    count = count_dictionaries(path);
    unlink(path);
    duck_close(duck);
    for (int i = 0; i < COLUMNS; i++)
        column_done(&rows.columns[i]);
    return count;
}

static void
reals_without_a_negative_zero_have_them(void **state)
{
    (void) state;
    assert_int_equal(dictionaries_beside(&real, true), 2);
    assert_int_equal(dictionaries_beside(&nested, true), 2);
}

static void
nobody_has_them_where_one_may_come(void **state)
{
    (void) state;
    assert_int_equal(dictionaries_beside(&real, false), 0);
    assert_int_equal(dictionaries_beside(&nested, false), 0);
}

static void
who_has_no_reals_needs_no_promise(void **state)
{
    (void) state;
    assert_int_equal(dictionaries_beside(&number, false), 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reals_without_a_negative_zero_have_them),
        cmocka_unit_test(nobody_has_them_where_one_may_come),
        cmocka_unit_test(who_has_no_reals_needs_no_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
