/* A table leaves the stream: the reader and the main thread may both say so, at the same time. */
#include "shapes.h"
#include "testing.h"

#include <pthread.h>
#include <sched.h>

#include "base/log.h"
#include "pipeline/table.h"

static void
who_leaves_was_streaming(void **state)
{
    static const TableState others[] = {TABLE_WAITING, TABLE_COPYING, TABLE_PARKED};
    TableSchema *schema = shape("1:id:int4*");
    PipeTable *table = pipe_table_new(schema);

    (void) state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        atomic_store(&table->state, others[i]);
        assert_false(pipe_table_leave(table));
        assert_int_equal(atomic_load(&table->state), others[i]);
    }
    atomic_store(&table->state, TABLE_STREAMING);
    assert_true(pipe_table_leave(table));
    assert_int_equal(atomic_load(&table->state), TABLE_PARKED);
    pipe_table_free(table);
    schema_unref(schema);
}

enum { RACES = 200000 };

typedef struct Race {
    PipeTable *table;
    atomic_int begun; /* rounds; both spin, so that they meet */
    atomic_int ended;
    bool left;
} Race;

static void
spin_until(const atomic_int *rounds, int wanted)
{
    for (int spins = 0; atomic_load(rounds) < wanted; spins++)
        if (spins % 1000 == 999)
            sched_yield();
}

static void *
reader_main(void *arg)
{
    Race *race = arg;

    for (int i = 1; i <= RACES; i++) {
        spin_until(&race->begun, i);
        race->left = pipe_table_leave(race->table);
        atomic_store(&race->ended, i);
    }
    return NULL;
}

/* Whoever is first, the copy that the main thread wants is not forgotten. */
static void
a_copy_is_not_forgotten(void **state)
{
    TableSchema *schema = shape("1:id:int4*");
    Race race = {.table = pipe_table_new(schema)};
    pthread_t reader;

    (void) state;
    log_configure(LOG_ERROR, LOG_FORMAT_TEXT);
    assert_int_equal(pthread_create(&reader, NULL, reader_main, &race), 0);
    for (int i = 1; i <= RACES; i++) {
        race.table->copy_again = false;
        atomic_store(&race.table->state, TABLE_STREAMING);
        atomic_store(&race.begun, i);
        for (volatile int pause = i % 64; pause > 0; pause--) {
        }
        pipe_table_copy_again(race.table, "asked for");
        spin_until(&race.ended, i);
        assert_int_equal(atomic_load(&race.table->state), TABLE_WAITING);
        assert_false(race.left && park_note_stands(&(ParkNote){.table = race.table}));
    }
    pthread_join(reader, NULL);
    pipe_table_free(race.table);
    schema_unref(schema);
}

/* A gap that the main thread found is not mended by a copy that the reader wants. */
static void
a_note_does_not_undo_a_park(void **state)
{
    TableSchema *schema = shape("1:id:int4*");
    PipeTable *table = pipe_table_new(schema);
    ParkNote note = {.table = table, .copy_again = true};

    (void) state;
    atomic_store(&table->state, TABLE_STREAMING);
    assert_true(pipe_table_leave(table));
    assert_true(park_note_stands(&note));
    pipe_table_park(table, "changes are missing");
    assert_false(park_note_stands(&note));
    pipe_table_free(table);
    schema_unref(schema);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_was_streaming),
        cmocka_unit_test(a_copy_is_not_forgotten),
        cmocka_unit_test(a_note_does_not_undo_a_park),
    };

    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
