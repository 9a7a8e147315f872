/* The contract of store.h, against every store there is. */
#include "test_stores.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/clock.h"
#include "store/store.h"

static Store *
store_of(void **state)
{
    return ((TestStore *) *state)->store;
}

static void
what_is_not_there_is_not_found(void **state)
{
    Store *store = store_of(state);
    AUTO_BUF Buf out = {0};
    StoreVersion version = {.text = "x"};
    Error err = {0};
    bool found = true;

    buf_cstr(&out, "left over");
    OK(store_get(store, "no/such", &out, &found, &version, &err));
    assert_false(found);
    assert_int_equal(out.len, 0);
    assert_string_equal(version.text, "");
    found = true;
    OK(store_stat(store, "no/such", &found, NULL, &err));
    assert_false(found);
    OK(store_remove(store, "no/such", &err));
    /* a folder is no object */
    OK(store_put(store, "folder/x", STR("1"), &err));
    found = true;
    OK(store_get(store, "folder", &out, &found, NULL, &err));
    assert_false(found);
    found = true;
    OK(store_stat(store, "folder", &found, NULL, &err));
    assert_false(found);
}

static void
put_replaces_and_get_sees_all_of_it(void **state)
{
    Store *store = store_of(state);
    AUTO_BUF Buf big = {0};
    Error err = {0};
    int64_t bytes = -1;
    bool found = false;

    OK(store_put(store, "a", STR("one"), &err));
    assert_content(store, "a", STR("one"));
    OK(store_put(store, "a", STR("second"), &err));
    assert_content(store, "a", STR("second"));
    OK(store_put(store, "deep/er/empty", STR_NULL, &err));
    assert_content(store, "deep/er/empty", STR(""));
    for (size_t i = 0; i < 3000000; i++)
        buf_byte(&big, (uint8_t) (i * 31 >> 3));
    OK(store_put(store, "big", buf_view(&big), &err));
    assert_content(store, "big", buf_view(&big));
    OK(store_stat(store, "big", &found, &bytes, &err));
    assert_true(found);
    assert_int_equal(bytes, 3000000);
    OK(store_remove(store, "a", &err));
    OK(store_remove(store, "a", &err));
    OK(store_stat(store, "a", &found, NULL, &err));
    assert_false(found);
}

static void
a_range_is_read_alone(void **state)
{
    Store *store = store_of(state);
    AUTO_BUF Buf out = {0};
    Error err = {0};
    bool found = false;

    OK(store_put(store, "r", STR("0123456789"), &err));
    buf_cstr(&out, "left over");
    OK(store_get_range(store, "r", (StoreRange){.offset = 3, .length = 4}, &out, &found, &err));
    assert_true(found);
    assert_true(str_eq(buf_view(&out), STR("3456")));
    OK(store_get_range(store, "r", (StoreRange){.length = 10}, &out, &found, &err));
    assert_true(str_eq(buf_view(&out), STR("0123456789")));
    OK(store_get_range(store, "r", (StoreRange){.offset = 9, .length = 1}, &out, &found, &err));
    assert_true(str_eq(buf_view(&out), STR("9")));
    FAILS(store_get_range(store, "r", (StoreRange){.offset = 3, .length = 8}, &out, &found, &err),
          ERR_INPUT);
    FAILS(store_get_range(store, "r", (StoreRange){.offset = 10, .length = 1}, &out, &found, &err),
          ERR_INPUT);
    FAILS(store_get_range(store, "r", (StoreRange){.length = INT64_MAX}, &out, &found, &err),
          ERR_INPUT);
    OK(store_get_range(store, "no/such", (StoreRange){.length = 1}, &out, &found, &err));
    assert_false(found);
    assert_int_equal(out.len, 0);
}

static void
put_absent_creates_once(void **state)
{
    Store *store = store_of(state);
    Error err = {0};
    bool created = false;

    OK(store_put_absent(store, "m/v1.json", STR("first"), &created, &err));
    assert_true(created);
    OK(store_put_absent(store, "m/v1.json", STR("second"), &created, &err));
    assert_false(created);
    /* the same bytes again are somebody else's, too: nothing of ours was in doubt */
    OK(store_put_absent(store, "m/v1.json", STR("first"), &created, &err));
    assert_false(created);
    assert_content(store, "m/v1.json", STR("first"));
    OK(store_remove(store, "m/v1.json", &err));
    OK(store_put_absent(store, "m/v1.json", STR("third"), &created, &err));
    assert_true(created);
}

static void
put_match_swaps_the_version_it_was_given(void **state)
{
    Store *store = store_of(state);
    AUTO_BUF Buf out = {0};
    StoreVersion none = {0};
    StoreVersion first = {0};
    StoreVersion second = {0};
    StoreVersion read = {0};
    Error err = {0};
    bool swapped = false;
    bool found;

    OK(store_put_match(store, "_walberg/shop.json", &none, STR("1"), &swapped, &first, &err));
    assert_true(swapped);
    OK(store_put_match(store, "_walberg/shop.json", &none, STR("x"), &swapped, &second, &err));
    assert_false(swapped);
    OK(store_get(store, "_walberg/shop.json", &out, &found, &read, &err));
    assert_string_equal(read.text, first.text);
    OK(store_put_match(store, "_walberg/shop.json", &read, STR("2"), &swapped, &second, &err));
    assert_true(swapped);
    assert_string_not_equal(second.text, first.text);
    OK(store_put_match(store, "_walberg/shop.json", &first, STR("3"), &swapped, NULL, &err));
    assert_false(swapped);
    assert_content(store, "_walberg/shop.json", STR("2"));
    OK(store_put_match(store, "_walberg/shop.json", &second, STR("3"), &swapped, NULL, &err));
    assert_true(swapped);
    assert_content(store, "_walberg/shop.json", STR("3"));
    /* gone: there is nothing that could match */
    OK(store_remove(store, "_walberg/shop.json", &err));
    OK(store_put_match(store, "_walberg/shop.json", &second, STR("4"), &swapped, NULL, &err));
    assert_false(swapped);
    OK(store_put_match(store, "never/was", &second, STR("4"), &swapped, NULL, &err));
    assert_false(swapped);
}

/* ---- races ---- */

enum { RACERS = 8, ROUNDS = 10 };

typedef struct Racer {
    Store *store;
    pthread_barrier_t *barrier;
    const char *key;
    const StoreVersion *expected; /* NULL: put_absent */
    char text[16];
    bool won;
    bool ok;
    Error err;
} Racer;

static void *
race(void *argument)
{
    Racer *racer = argument;

    pthread_barrier_wait(racer->barrier);
    if (racer->expected == NULL)
        racer->ok = store_put_absent(racer->store, racer->key, str_of(racer->text), &racer->won,
                                     &racer->err);
    else
        racer->ok = store_put_match(racer->store, racer->key, racer->expected, str_of(racer->text),
                                    &racer->won, NULL, &racer->err);
    return NULL;
}

/* All start together; exactly one wins, and what is there is the winner's. */
static void
run_race(Store *store, const char *key, const StoreVersion *expected)
{
    Racer racers[RACERS] = {0};
    pthread_t threads[RACERS];
    pthread_barrier_t barrier;
    int winners = 0;

    pthread_barrier_init(&barrier, NULL, RACERS);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (Racer){.store = store, .barrier = &barrier, .key = key, .expected = expected};
        snprintf(racers[i].text, sizeof racers[i].text, "racer %d", i);
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < RACERS; i++) {
        if (!racers[i].ok)
            print_error("%s\n", racers[i].err.msg);
        assert_true(racers[i].ok);
        winners += racers[i].won;
        if (racers[i].won)
            assert_content(store, key, str_of(racers[i].text));
    }
    assert_int_equal(winners, 1);
}

static void
of_racing_creates_one_wins(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        char key[64];

        snprintf(key, sizeof key, "race/%d", round);
        run_race(store_of(state), key, NULL);
    }
}

static void
of_racing_swaps_one_wins(void **state)
{
    Store *store = store_of(state);

    for (int round = 0; round < ROUNDS; round++) {
        StoreVersion version = {0};
        Error err = {0};
        char key[64];
        bool swapped;

        snprintf(key, sizeof key, "race/%d", round);
        OK(store_put_match(store, key, &version, STR("start"), &swapped, &version, &err));
        assert_true(swapped);
        run_race(store, key, &version);
    }
}

typedef struct Writer {
    Store *store;
    atomic_bool stop;
    Error err;
} Writer;

enum { TORN_BYTES = 200000 };

static void *
keep_writing(void *argument)
{
    Writer *writer = argument;
    AUTO_BUF Buf bytes = {0};

    for (char letter = 'a'; !atomic_load(&writer->stop);
         letter = (char) (letter == 'z' ? 'a' : letter + 1)) {
        size_t size = TORN_BYTES / (size_t) (letter - 'a' + 1);

        buf_reset(&bytes);
        memset(buf_push(&bytes, size), letter, size);
        if (!store_put(writer->store, "torn", buf_view(&bytes), &writer->err))
            return NULL;
    }
    return NULL;
}

static void
no_reader_sees_a_part(void **state)
{
    Writer writer = {.store = store_of(state)};
    AUTO_BUF Buf out = {0};
    Error err = {0};
    pthread_t thread;
    bool found;

    OK(store_put(writer.store, "torn", STR("a"), &err));
    pthread_create(&thread, NULL, keep_writing, &writer);
    for (int i = 0; i < 100; i++) {
        OK(store_get(writer.store, "torn", &out, &found, NULL, &err));
        assert_true(found && out.len > 0);

        char letter = out.ptr[0];
        size_t whole = TORN_BYTES / (size_t) (letter - 'a' + 1);

        assert_true(out.len == whole || out.len == 1);
        for (size_t at = 0; at < out.len; at++)
            assert_int_equal(out.ptr[at], letter);
    }
    atomic_store(&writer.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(writer.err.kind, ERR_NONE);
}

/* ---- files ---- */

static void
write_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    for (size_t i = 0; i < size; i++)
        assert_int_not_equal(fputc((int) (i * 7 >> 2 & 0xFF), file), EOF);
    assert_int_equal(fclose(file), 0);
}

static void
assert_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(fgetc(file), (int) (i * 7 >> 2 & 0xFF));
    assert_int_equal(fgetc(file), EOF);
    assert_int_equal(fclose(file), 0);
}

static void
files_go_up_and_come_down(void **state)
{
    Store *store = store_of(state);
    Error err = {0};
    char folder[] = "/tmp/walberg-files-XXXXXX";
    char up[64];
    char down[64];
    bool found = false;

    assert_non_null(mkdtemp(folder));
    snprintf(up, sizeof up, "%s/up", folder);
    snprintf(down, sizeof down, "%s/down", folder);
    write_file(up, 1234567);
    OK(store_put_file(store, "data/x.parquet", up, &err));
    OK(store_fetch(store, "data/x.parquet", down, &found, &err));
    assert_true(found);
    assert_file(down, 1234567);
    unlink(down);
    write_file(up, 0);
    OK(store_put_file(store, "data/empty", up, &err));
    OK(store_fetch(store, "data/empty", down, &found, &err));
    assert_true(found);
    assert_file(down, 0);
    unlink(down);
    OK(store_fetch(store, "data/not there", down, &found, &err));
    assert_false(found);
    assert_int_not_equal(access(down, F_OK), 0);
    FAILS(store_put_file(store, "data/y", "/no/such/file", &err), ERR_TRANSIENT);
    assert_non_null(strstr(err.msg, "/no/such/file"));
    unlink(up);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left behind */
}

/* ---- listing ---- */

static void
list_gives_all_below_a_prefix_in_byte_order(void **state)
{
    static const char *const keys[] = {
        "l/B", "l/a-b", "l/a/b", "l/a/c/d", "l/a0", "l/z\xC3\xA9", "l/\xC3\xA9", "l0/x",
    };
    Store *store = store_of(state);
    AUTO_ARENA Arena *arena = arena_new();
    StoreObject *objects;
    Error err = {0};
    size_t count;

    put_all(store, keys, COUNT(keys));
    assert_listed(store, "", keys, COUNT(keys));
    assert_listed(store, "l/", keys, COUNT(keys) - 1);
    assert_listed(store, "l/a/", keys + 2, 2);
    assert_listed(store, "l/a", keys + 1, 4); /* a part of a name is a prefix, too */
    assert_listed(store, "l/a/b", keys + 2, 1);
    assert_listed(store, "nothing/here/", NULL, 0);
    OK(store_list(store, "l/a/b", arena, &objects, &count, &err));
    assert_int_equal(objects[0].bytes, strlen("l/a/b"));

    /* the clock of the machine and of the service may differ a little */
    int64_t age = clock_wall_us() - objects[0].modified_us;

    assert_true(age > -60 * 1000000LL && age < 600 * 1000000LL);
}

typedef struct Filler {
    Store *store;
    int first;
    bool ok;
    Error err;
} Filler;

enum { MANY = 1010, FILLERS = 10 }; /* S3 lists 1,000 a page */

static void *
fill(void *argument)
{
    Filler *filler = argument;

    filler->ok = true;
    for (int i = filler->first; i < MANY && filler->ok; i += FILLERS) {
        char key[32];

        snprintf(key, sizeof key, "many/%04d", i);
        filler->ok = store_put(filler->store, key, STR("x"), &filler->err);
    }
    return NULL;
}

static void
list_goes_on_over_pages(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    Filler fillers[FILLERS];
    pthread_t threads[FILLERS];
    StoreObject *objects;
    Error err = {0};
    size_t count;

    for (int i = 0; i < FILLERS; i++) {
        fillers[i] = (Filler){.store = store_of(state), .first = i};
        pthread_create(&threads[i], NULL, fill, &fillers[i]);
    }
    for (int i = 0; i < FILLERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < FILLERS; i++)
        assert_true(fillers[i].ok);
    OK(store_list(store_of(state), "many/", arena, &objects, &count, &err));
    assert_int_equal(count, MANY);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(objects[i].key.ptr, arena_printf(arena, "many/%04d", (int) i));
}

static void
list_folders_names_what_is_directly_below(void **state)
{
    static const char *const keys[] = {
        "_walberg/shop.json", "public/a b/data/x", "public/orders/metadata/v1", "public/zz", "top",
    };
    Store *store = store_of(state);
    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};
    size_t count;
    Str *names;

    put_all(store, keys, COUNT(keys));
    OK(store_list_folders(store, "", arena, &names, &count, &err));
    assert_int_equal(count, 2);
    assert_string_equal(arena_str(arena, names[0]).ptr, "_walberg");
    assert_string_equal(arena_str(arena, names[1]).ptr, "public");
    OK(store_list_folders(store, "public/", arena, &names, &count, &err));
    assert_int_equal(count, 2);
    assert_string_equal(arena_str(arena, names[0]).ptr, "a b");
    assert_string_equal(arena_str(arena, names[1]).ptr, "orders");
    OK(store_list_folders(store, "nothing/", arena, &names, &count, &err));
    assert_int_equal(count, 0);
}

static void
keys_are_taken_as_they_are(void **state)
{
    static const char *const keys[] = {
        "odd/ leading blank",
        "odd/!*'()",
        "odd/#hash?query&amp;",
        "odd/<tag>\"quoted\"",
        "odd/a b+c=d%25",
        "odd/day=2026-11-30/x",
        "odd/~tilde;semi,comma:colon@at$",
        "odd/\xC3\xA9\xF0\x9F\x90\x98",
    };
    Store *store = store_of(state);
    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};

    put_all(store, keys, COUNT(keys));
    assert_listed(store, "odd/", keys, COUNT(keys));
    for (size_t i = 0; i < COUNT(keys); i++) {
        bool found = false;

        assert_content(store, keys[i], str_of(keys[i]));
        OK(store_stat(store, keys[i], &found, NULL, &err));
        assert_true(found);
        assert_string_equal(store_key(store, arena, store_uri(store, arena, keys[i])), keys[i]);
        assert_listed(store, keys[i], &keys[i], 1);
    }
}

static void
what_is_no_key_is_refused(void **state)
{
    static const char *const keys[] = {
        "",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/../b",
        "./a",
        "a/.",
        "\xFF/a",
        "\xC3/\xA9",
        ".walberg.lock",
        "a/.walberg.tmp.0123",
    };
    Store *store = store_of(state);
    AUTO_ARENA Arena *arena = arena_new();
    char too_long[1100];
    Error err = {0};
    bool created;

    for (size_t i = 0; i < COUNT(keys); i++) {
        FAILS(store_put(store, keys[i], STR("x"), &err), ERR_INPUT);
        FAILS(store_put_absent(store, keys[i], STR("x"), &created, &err), ERR_INPUT);
    }
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    FAILS(store_put(store, too_long, STR("x"), &err), ERR_INPUT);
    assert_null(store_key(store, arena, "/etc/passwd"));
    assert_null(store_key(store, arena, "s3://another/bucket"));
    assert_null(store_key(store, arena, arena_printf(arena, "%s/../x", store->base_uri)));
    assert_null(store_key(store, arena, arena_printf(arena, "%sx/y", store->base_uri)));
    assert_null(store_key(store, arena, store->base_uri));
}

int
main(void)
{
    static const TestCase cases[] = {
        {"what_is_not_there_is_not_found", what_is_not_there_is_not_found, NULL},
        {"put_replaces_and_get_sees_all_of_it", put_replaces_and_get_sees_all_of_it, NULL},
        {"a_range_is_read_alone", a_range_is_read_alone, NULL},
        {"put_absent_creates_once", put_absent_creates_once, NULL},
        {"put_match_swaps_the_version_it_was_given", put_match_swaps_the_version_it_was_given,
         NULL},
        {"of_racing_creates_one_wins", of_racing_creates_one_wins, NULL},
        {"of_racing_swaps_one_wins", of_racing_swaps_one_wins, NULL},
        {"no_reader_sees_a_part", no_reader_sees_a_part, NULL},
        {"files_go_up_and_come_down", files_go_up_and_come_down, NULL},
        {"list_gives_all_below_a_prefix_in_byte_order", list_gives_all_below_a_prefix_in_byte_order,
         NULL},
        {"list_goes_on_over_pages", list_goes_on_over_pages, NULL},
        {"list_folders_names_what_is_directly_below", list_folders_names_what_is_directly_below,
         NULL},
        {"keys_are_taken_as_they_are", keys_are_taken_as_they_are, NULL},
        {"what_is_no_key_is_refused", what_is_no_key_is_refused, NULL},
    };

    return test_run_on_stores(cases, COUNT(cases));
}
