/* Deleted rows per data file, against a plain array that is obviously right. */
#include "testing.h"

#include <stdlib.h>

#include "iceberg/deletes.h"

enum { FILES = 5, ROWS = 3000 };

static Str
file_name(int i)
{
    static const char *const names[FILES] = {"s3://b/z", "s3://b/a", "s3://b/a/longer", "s3://b/",
                                             "s3://b/m"};

    return str_of(names[i]);
}

static void
rows_are_added_once(void **state)
{
    Deletes *deletes = deletes_new();

    (void) state;
    assert_true(deletes_add(deletes, STR("f"), 7));
    assert_false(deletes_add(deletes, STR("f"), 7));
    assert_true(deletes_add(deletes, STR("f"), UINT32_MAX));
    assert_true(deletes_add(deletes, STR("ff"), 7));
    assert_true(deletes_contains(deletes, STR("f"), 7));
    assert_false(deletes_contains(deletes, STR("f"), 8));
    assert_false(deletes_contains(deletes, STR("g"), 7));
    assert_int_equal(deletes_count(deletes, STR("f")), 2);
    assert_int_equal(deletes_count(deletes, STR("g")), 0);
    assert_int_equal(deletes_total(deletes), 3);
    deletes_remove_file(deletes, STR("f"));
    deletes_remove_file(deletes, STR("g"));
    assert_int_equal(deletes_total(deletes), 1);
    deletes_clear(deletes);
    assert_int_equal(deletes_total(deletes), 0);
    assert_true(deletes_add(deletes, STR("f"), 7));
    deletes_free(deletes);
    deletes_free(NULL);
}

static void
the_cursor_is_in_order_of_a_delete_file(void **state)
{
    static bool deleted[FILES][ROWS];
    static const int order[FILES] = {3, 1, 2, 4, 0}; /* by bytes of the name */
    Deletes *deletes = deletes_new();
    Deletes *more = deletes_new();
    uint64_t total = 0;
    unsigned random = 1;

    (void) state;
    memset(deleted, 0, sizeof deleted);
    for (int i = 0; i < 8000; i++) {
        random = random * 1103515245 + 12345;

        int file = (int) (random >> 16) % FILES;
        uint32_t row = (random >> 8) % ROWS;

        total += !deleted[file][row];
        /* half of them come by a merge, some of these twice */
        deletes_add(i % 2 == 0 ? deletes : more, file_name(file), row);
        deleted[file][row] = true;
    }
    deletes_merge(deletes, more);
    deletes_merge(deletes, more);
    assert_int_equal(deletes_total(deletes), total);

    DeletesCursor *cursor = deletes_cursor(deletes);
    Str file;
    uint32_t row;

    for (int i = 0; i < FILES; i++)
        for (uint32_t want = 0; want < ROWS; want++) {
            if (!deleted[order[i]][want])
                continue;
            assert_true(deletes_next(cursor, &file, &row));
            assert_true(str_eq(file, file_name(order[i])));
            assert_int_equal(row, want);
        }
    assert_false(deletes_next(cursor, &file, &row));
    assert_false(deletes_next(cursor, &file, &row));
    deletes_cursor_free(cursor);
    deletes_free(deletes);
    deletes_free(more);
}

static void
nothing_deleted_nothing_to_walk(void **state)
{
    Deletes *deletes = deletes_new();
    DeletesCursor *cursor = deletes_cursor(deletes);
    Str file;
    uint32_t row;

    (void) state;
    assert_false(deletes_next(cursor, &file, &row));
    deletes_cursor_free(cursor);
    deletes_cursor_free(NULL);
    deletes_free(deletes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_added_once),
        cmocka_unit_test(the_cursor_is_in_order_of_a_delete_file),
        cmocka_unit_test(nothing_deleted_nothing_to_walk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
