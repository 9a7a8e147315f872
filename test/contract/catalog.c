/* The contract of catalog.h: the file catalog over every store there is. */
#include "test_stores.h"

#include <pthread.h>
#include <zlib.h>

#include "base/arena.h"
#include "catalog/catalog.h"

static const TableName orders = {{"public", 6}, {"orders", 6}};

typedef struct Fixture {
    Store *store;
    Catalog *catalog;
    Arena *arena;
} Fixture;

static void
fixture_done(Fixture *f)
{
    catalog_close(f->catalog);
    arena_free(f->arena);
}

#define AUTO_FIXTURE __attribute__((cleanup(fixture_done)))

static Fixture
fixture_of(void **state)
{
    Fixture f = {.store = ((TestStore *) *state)->store, .arena = arena_new()};
    Error err = {0};

    OK(catalog_open("file", f.store, &f.catalog, &err));
    return f;
}

static CatalogTable
create(Fixture *f, const TableName *name, const char *metadata)
{
    CatalogTable table = {0};
    Error err = {0};

    OK(catalog_create(f->catalog, f->arena, name, str_of(metadata), &table, &err));
    return table;
}

static CatalogTable
commit(Fixture *f, const CatalogTable *base, const char *metadata)
{
    CatalogTable table = {0};
    Error err = {0};

    OK(catalog_commit(f->catalog, f->arena, &orders, base, str_of(metadata), &table, &err));
    return table;
}

/* NULL: it must not be there. */
static CatalogTable
load(Fixture *f, const TableName *name, const char *metadata)
{
    CatalogTable table = {0};
    Error err = {0};
    bool found = false;

    OK(catalog_load(f->catalog, f->arena, name, &table, &found, &err));
    assert_int_equal(found, metadata != NULL);
    if (found)
        assert_true(str_eqc(table.metadata, metadata));
    return table;
}

static void
put(Fixture *f, const char *key, const char *text)
{
    Error err = {0};

    OK(store_put(f->store, key, str_of(text), &err));
}

static void
remove_key(Fixture *f, const char *key)
{
    Error err = {0};

    OK(store_remove(f->store, key, &err));
}

#define METADATA "public/orders/metadata/"
#define HINT     METADATA "version-hint.text"

static void
a_table_is_created_loaded_committed(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);
    AUTO_BUF Buf hint = {0};
    Error err = {0};
    bool found;

    load(&f, &orders, NULL);

    CatalogTable first = create(&f, &orders, "{\"v\": 1}");

    assert_string_equal(first.location, catalog_location(f.catalog, f.arena, &orders));
    assert_string_equal(first.location, store_uri(f.store, f.arena, "public/orders"));
    assert_string_equal(first.metadata_location,
                        store_uri(f.store, f.arena, METADATA "v1.metadata.json"));
    assert_string_equal(load(&f, &orders, "{\"v\": 1}").token, first.token);

    CatalogTable second = commit(&f, &first, "{\"v\": 2}");
    CatalogTable loaded = load(&f, &orders, "{\"v\": 2}");

    assert_string_equal(loaded.token, second.token);
    assert_string_equal(loaded.metadata_location,
                        store_uri(f.store, f.arena, METADATA "v2.metadata.json"));
    /* DuckDB takes the hint whole, so there must be no newline */
    OK(store_get(f.store, HINT, &hint, &found, NULL, &err));
    assert_true(found);
    assert_string_equal(buf_text(&hint), "2");
    commit(&f, &loaded, "{\"v\": 3}");
    load(&f, &orders, "{\"v\": 3}");
}

static void
who_comes_second_has_a_conflict(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);
    CatalogTable table;
    Error err = {0};

    CatalogTable first = create(&f, &orders, "1");

    FAILS(catalog_create(f.catalog, f.arena, &orders, STR("x"), &table, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.msg, "public.orders"));
    commit(&f, &first, "2");
    FAILS(catalog_commit(f.catalog, f.arena, &orders, &first, STR("x"), &table, &err),
          ERR_CONFLICT);
    load(&f, &orders, "2");
}

enum { RACERS = 8, ROUNDS = 10 };

typedef struct Racer {
    Catalog *catalog;
    Arena *arena;
    pthread_barrier_t *barrier;
    const CatalogTable *base; /* NULL: create */
    TableName name;
    char text[16];
    CatalogTable table;
    bool won;
    Error err;
} Racer;

static void *
race(void *argument)
{
    Racer *racer = argument;

    pthread_barrier_wait(racer->barrier);
    if (racer->base == NULL)
        racer->won = catalog_create(racer->catalog, racer->arena, &racer->name, str_of(racer->text),
                                    &racer->table, &racer->err);
    else
        racer->won = catalog_commit(racer->catalog, racer->arena, &racer->name, racer->base,
                                    str_of(racer->text), &racer->table, &racer->err);
    return NULL;
}

/* Exactly one wins, the others have a conflict, and the table is what the winner wrote. */
static CatalogTable
run_race(Fixture *f, const CatalogTable *base)
{
    Racer racers[RACERS] = {0};
    pthread_t threads[RACERS];
    pthread_barrier_t barrier;
    const Racer *winner = NULL;
    int winners = 0;

    pthread_barrier_init(&barrier, NULL, RACERS);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (Racer){.catalog = f->catalog,
                            .arena = arena_new(),
                            .barrier = &barrier,
                            .base = base,
                            .name = orders};
        snprintf(racers[i].text, sizeof racers[i].text, "racer %d", i);
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < RACERS; i++) {
        if (racers[i].won) {
            winners++;
            winner = &racers[i];
        } else if (racers[i].err.kind != ERR_CONFLICT) {
            print_error("%s\n", racers[i].err.msg);
            fail();
        }
        arena_free(racers[i].arena);
    }
    assert_int_equal(winners, 1);
    return load(f, &orders, winner->text);
}

static void
of_racing_commits_one_wins(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);
    CatalogTable table = run_race(&f, NULL);

    for (int round = 0; round < ROUNDS; round++)
        table = run_race(&f, &table);
    assert_string_equal(table.token, arena_printf(f.arena, "%d", ROUNDS + 1));
}

static void
the_hint_is_only_a_hint(void **state)
{
    static const char *const hints[] = {
        "1", "2\n", "3", "7", "0", "", "x", "-1", "99999999999999999999999"};
    AUTO_FIXTURE Fixture f = fixture_of(state);
    CatalogTable table = create(&f, &orders, "1");

    table = commit(&f, &table, "2");
    table = commit(&f, &table, "3");
    for (size_t i = 0; i < COUNT(hints); i++) {
        put(&f, HINT, hints[i]);
        assert_string_equal(load(&f, &orders, "3").token, table.token);
    }
    remove_key(&f, HINT);
    load(&f, &orders, "3");
    /* the older versions expired */
    remove_key(&f, METADATA "v1.metadata.json");
    remove_key(&f, METADATA "v2.metadata.json");
    load(&f, &orders, "3");
    put(&f, HINT, "1");
    load(&f, &orders, "3");
}

static void
a_hint_far_behind_is_caught_up(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);

    for (int i = 1; i <= 40; i++)
        put(&f, arena_printf(f.arena, METADATA "v%d.metadata.json", i),
            arena_printf(f.arena, "%d", i));
    put(&f, METADATA "v041.metadata.json", "not a version");
    put(&f, METADATA "v42.metadata.json.bak", "not a version");
    put(&f, METADATA "00043-uuid.metadata.json", "another catalog's");
    put(&f, HINT, "2");
    load(&f, &orders, "40");
}

static void
history_is_not_forked(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);
    CatalogTable first = create(&f, &orders, "1");
    CatalogTable second = commit(&f, &first, "2");
    CatalogTable third = commit(&f, &second, "3");
    CatalogTable table;
    Error err = {0};

    /* versions 1 and 2 expire; who still holds 1 must not make 2 again */
    remove_key(&f, METADATA "v1.metadata.json");
    remove_key(&f, METADATA "v2.metadata.json");
    FAILS(catalog_commit(f.catalog, f.arena, &orders, &first, STR("x"), &table, &err),
          ERR_CONFLICT);
    FAILS(catalog_create(f.catalog, f.arena, &orders, STR("x"), &table, &err), ERR_CONFLICT);
    commit(&f, &third, "4");
}

static void
put_gzip(Fixture *f, const char *key, const char *text)
{
    uint8_t out[256];
    z_stream stream = {.next_in = (z_const Bytef *) (uintptr_t) text,
                       .avail_in = (uInt) strlen(text),
                       .next_out = out,
                       .avail_out = sizeof out};
    Error err = {0};

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    OK(store_put(f->store, key, (Str){(const char *) out, sizeof out - (size_t) stream.avail_out},
                 &err));
}

static void
compressed_metadata_of_others_is_read(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);
    CatalogTable first = create(&f, &orders, "1");
    CatalogTable table;
    Error err = {0};
    bool found;

    put_gzip(&f, METADATA "v2.gz.metadata.json", "{\"two\": 2}");
    FAILS(catalog_commit(f.catalog, f.arena, &orders, &first, STR("x"), &table, &err),
          ERR_CONFLICT);

    CatalogTable second = load(&f, &orders, "{\"two\": 2}");

    assert_string_equal(second.metadata_location,
                        store_uri(f.store, f.arena, METADATA "v2.gz.metadata.json"));
    remove_key(&f, HINT);
    assert_string_equal(load(&f, &orders, "{\"two\": 2}").token, second.token);
    commit(&f, &second, "3");
    load(&f, &orders, "3");
    put(&f, METADATA "v4.gz.metadata.json", "this is not gzip");
    FAILS(catalog_load(f.catalog, f.arena, &orders, &table, &found, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "v4.gz.metadata.json"));
}

static void
assert_token(Fixture *f, const TableName *name, const char *from, const char *expected)
{
    const char *token = "?";
    Error err = {0};

    OK(catalog_current_token(f->catalog, f->arena, name, from, &token, &err));
    if (expected == NULL)
        assert_null(token);
    else
        assert_string_equal(token, expected);
}

static void
news_is_seen_by_token(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);

    assert_token(&f, &orders, NULL, NULL);

    CatalogTable first = create(&f, &orders, "1");

    assert_token(&f, &orders, NULL, first.token);
    assert_token(&f, &orders, first.token, first.token);

    CatalogTable second = commit(&f, &first, "2");

    assert_token(&f, &orders, first.token, second.token);
    remove_key(&f, METADATA "v1.metadata.json");
    assert_token(&f, &orders, first.token, second.token);
    remove_key(&f, METADATA "v2.metadata.json");
    assert_token(&f, &orders, second.token, NULL);
    load(&f, &orders, NULL);
}

static void
names_are_kept_exactly(void **state)
{
    static const TableName names[] = {
        {{"Public", 6}, {"orders", 6}},
        {{"_walberg", 8}, {"rejects", 7}},
        {{"public", 6}, {".hidden", 7}},
        {{"public", 6}, {"Orders", 6}},
        {{"public", 6}, {"a b/c", 5}},
        {{"public", 6}, {"a~20b", 5}},
        {{"public", 6}, {"caf\xC3\xA9 \"50%\"", 11}},
        {{"public", 6}, {"orders", 6}},
        {{"we\xC3\xAFrd=", 7}, {"~", 1}},
    };
    AUTO_FIXTURE Fixture f = fixture_of(state);
    TableName *listed;
    Error err = {0};
    size_t count;

    OK(catalog_list(f.catalog, f.arena, &listed, &count, &err));
    assert_int_equal(count, 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *text = arena_printf(f.arena, "%zu", i);
        CatalogTable table = create(&f, &names[i], text);
        const char *below = table.location + strlen(f.store->base_uri);

        assert_null(strpbrk(below, " %\"=\xC3"));
        assert_string_equal(load(&f, &names[i], text).token, table.token);
    }
    /* none of these is a table */
    put(&f, "_walberg/shop.json", "{}");
    put(&f, "public/left/data/x.parquet", "x");
    put(&f, "public/dropped/metadata/version-hint.text", "3");
    put(&f, "not ours/x/metadata/v1.metadata.json", "x");
    put(&f, "top-level", "x");
    OK(catalog_list(f.catalog, f.arena, &listed, &count, &err));
    assert_int_equal(count, COUNT(names));
    for (size_t i = 0; i < count; i++) {
        assert_true(str_eq(listed[i].space, names[i].space));
        assert_true(str_eq(listed[i].name, names[i].name));
    }
}

/* A link to itself, which root cannot read either; there are no such things in S3. */
static void
a_table_that_cannot_be_read_is_listed(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);
    const char *hint = store_local_path(f.store, f.arena, METADATA "version-hint.text");
    const TableName other = {.space = STR("public"), .name = STR("orders2")};
    CatalogTable table;
    TableName *listed;
    Error err = {0};
    size_t count;
    bool found;

    create(&f, &orders, "1");
    create(&f, &other, "other");
    if (hint == NULL)
        return;
    assert_int_equal(unlink(hint), 0);
    assert_int_equal(symlink("version-hint.text", hint), 0);
    OK(catalog_list(f.catalog, f.arena, &listed, &count, &err));
    assert_int_equal(count, 2);
    assert_true(str_eq(listed[0].name, orders.name));
    FAILS(catalog_load(f.catalog, f.arena, &orders, &table, &found, &err), ERR_INPUT);
    load(&f, &other, "other");
}

static void
drop(Fixture *f, const TableName *name)
{
    Error err = {0};

    OK(catalog_drop(f->catalog, f->arena, name, &err));
}

static void
a_dropped_table_is_gone_and_can_be_made_again(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);
    const TableName other = {.space = STR("public"), .name = STR("orders2")};
    CatalogTable table = create(&f, &orders, "1");
    TableName *listed;
    Error err = {0};
    size_t count;
    bool found;

    for (int i = 2; i < 13; i++)
        table = commit(&f, &table, arena_printf(f.arena, "%d", i));
    create(&f, &other, "other");
    put(&f, "public/orders/data/x.parquet", "x");
    put(&f, METADATA "v5-not-a-version", "x");
    drop(&f, &orders);
    load(&f, &orders, NULL);
    load(&f, &other, "other");
    OK(catalog_list(f.catalog, f.arena, &listed, &count, &err));
    assert_int_equal(count, 1);
    /* what metadata names is the caller's business */
    OK(store_stat(f.store, "public/orders/data/x.parquet", &found, NULL, &err));
    assert_true(found);
    drop(&f, &orders); /* again: no error */
    FAILS(catalog_commit(f.catalog, f.arena, &orders, &table, STR("x"), &table, &err),
          ERR_CONFLICT);
    create(&f, &orders, "anew");
    load(&f, &orders, "anew");
}

/* What a drop that was interrupted leaves: the newest version is the table until it goes. */
static void
a_half_dropped_table_is_whole_or_gone(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);
    CatalogTable first = create(&f, &orders, "1");
    CatalogTable second = commit(&f, &first, "2");

    commit(&f, &second, "3");
    remove_key(&f, METADATA "v1.metadata.json");
    remove_key(&f, METADATA "v2.metadata.json");
    load(&f, &orders, "3");
    remove_key(&f, METADATA "v3.metadata.json");
    load(&f, &orders, NULL); /* only the hint is left */
    drop(&f, &orders);
    create(&f, &orders, "anew");
    load(&f, &orders, "anew");
}

static void
what_cannot_be_is_refused(void **state)
{
    AUTO_FIXTURE Fixture f = fixture_of(state);
    const TableName nameless = {.space = STR("public"), .name = STR("")};
    CatalogTable table = {.token = "seven"};
    Catalog *catalog;
    Error err = {0};

    FAILS(catalog_open("hive", f.store, &catalog, &err), ERR_INPUT);
    FAILS(catalog_create(f.catalog, f.arena, &nameless, STR("1"), &table, &err), ERR_INPUT);
    FAILS(catalog_commit(f.catalog, f.arena, &orders, &table, STR("1"), &table, &err), ERR_BUG);
}

int
main(void)
{
    static const TestCase cases[] = {
        {"a_table_is_created_loaded_committed", a_table_is_created_loaded_committed, NULL},
        {"who_comes_second_has_a_conflict", who_comes_second_has_a_conflict, NULL},
        {"of_racing_commits_one_wins", of_racing_commits_one_wins, NULL},
        {"the_hint_is_only_a_hint", the_hint_is_only_a_hint, NULL},
        {"a_hint_far_behind_is_caught_up", a_hint_far_behind_is_caught_up, NULL},
        {"history_is_not_forked", history_is_not_forked, NULL},
        {"compressed_metadata_of_others_is_read", compressed_metadata_of_others_is_read, NULL},
        {"news_is_seen_by_token", news_is_seen_by_token, NULL},
        {"names_are_kept_exactly", names_are_kept_exactly, NULL},
        {"a_table_that_cannot_be_read_is_listed", a_table_that_cannot_be_read_is_listed, NULL},
        {"a_dropped_table_is_gone_and_can_be_made_again",
         a_dropped_table_is_gone_and_can_be_made_again, NULL},
        {"a_half_dropped_table_is_whole_or_gone", a_half_dropped_table_is_whole_or_gone, NULL},
        {"what_cannot_be_is_refused", what_cannot_be_is_refused, NULL},
    };

    return test_run_on_stores(cases, COUNT(cases));
}
