/* Which delete manifest has the vector of a data file, while manifests come and go. */
#include "testing.h"

#include "iceberg/live_deletes.h"

enum { FILES = 1000, PER_MANIFEST = 10 };

typedef struct Manifest {
    ManifestFile file;
    Str bytes;
} Manifest;

static ManifestEntry
vector_of(Arena *arena, int number, EntryStatus status)
{
    return (ManifestEntry){
        .status = status,
        .snapshot_id = 5,
        .sequence_number = 3,
        .file_sequence_number = 3,
        .file = {.content = CONTENT_POSITION_DELETES,
                 .path = STR("v.puffin"),
                 .format = STR("PUFFIN"),
                 .partition = STR(""),
                 .record_count = 1,
                 .file_bytes = 100,
                 .sort_order_id = -1,
                 .referenced_data_file = str_of(arena_printf(arena, "data/%d", number)),
                 .first_row_id = -1,
                 .content_offset = 4,
                 .content_bytes = 40},
    };
}

static Manifest
manifest_of(Arena *arena, const char *path, const ManifestEntry *entries, size_t count)
{
    static const PartitionSpec unpartitioned = {0};
    static const IcebergSchema schema = {0};
    AUTO_BUF Buf bytes = {0};
    Manifest manifest;
    ManifestHeader header = {.format_version = 3,
                             .schema = &schema,
                             .spec = &unpartitioned,
                             .deletes = true,
                             .snapshot_id = 9,
                             .sequence_number = 4};

    manifest_write(arena, &header, entries, count, &bytes, &manifest.file);
    manifest.file.path = str_of(path);
    manifest.bytes = arena_str(arena, buf_view(&bytes));
    return manifest;
}

static void
add_numbered(Arena *arena, LiveDeletes *live, int number)
{
    ManifestEntry entries[PER_MANIFEST];
    Error err = {0};

    for (int i = 0; i < PER_MANIFEST; i++)
        entries[i] = vector_of(arena, number * PER_MANIFEST + i, ENTRY_ADDED);

    Manifest manifest =
        manifest_of(arena, arena_printf(arena, "m%d", number), entries, PER_MANIFEST);

    OK(live_deletes_add(live, manifest.bytes, &manifest.file, &err));
}

static void
vectors_are_found_in_their_manifest(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    LiveDeletes *live = live_deletes_new();

    (void) state;
    for (int m = 0; m < FILES / PER_MANIFEST; m++)
        add_numbered(arena, live, m);
    for (int m = 0; m < FILES / PER_MANIFEST; m += 3) /* some go */
        live_deletes_remove(live, str_of(arena_printf(arena, "m%d", m)));
    live_deletes_remove(live, STR("m0")); /* gone already */
    assert_int_equal(live_deletes_count(live), FILES / PER_MANIFEST - 34);
    for (int i = 0; i < FILES; i++) {
        int m = i / PER_MANIFEST;
        const LiveManifest *found =
            live_deletes_find(live, str_of(arena_printf(arena, "data/%d", i)));

        if (m % 3 == 0) {
            assert_null(found);
            continue;
        }
        assert_non_null(found);
        assert_string_equal(found->file.path.ptr, arena_printf(arena, "m%d", m));
        assert_ptr_equal(live_deletes_at(live, found->number), found);
    }
    add_numbered(arena, live, 0); /* and come back */
    assert_non_null(live_deletes_find(live, STR("data/9")));
    assert_null(live_deletes_find(live, STR("data/1001")));
    live_deletes_free(live);
}

static void
only_live_entries_count(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    LiveDeletes *live = live_deletes_new();
    ManifestEntry entries[] = {vector_of(arena, 1, ENTRY_DELETED),
                               vector_of(arena, 2, ENTRY_EXISTING)};
    Manifest manifest = manifest_of(arena, "m", entries, 2);
    Manifest dead = manifest_of(arena, "dead", entries, 1);
    Error err = {0};

    (void) state;
    OK(live_deletes_add(live, dead.bytes, &dead.file, &err));
    assert_int_equal(live_deletes_count(live), 0);
    OK(live_deletes_add(live, manifest.bytes, &manifest.file, &err));
    assert_int_equal(live_deletes_at(live, 0)->count, 1);
    assert_null(live_deletes_find(live, STR("data/1")));
    assert_non_null(live_deletes_find(live, STR("data/2")));
    live_deletes_free(live);
}

static void
position_deletes_are_listed_without_a_vector(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    LiveDeletes *live = live_deletes_new();
    ManifestEntry entry = vector_of(arena, 1, ENTRY_ADDED);
    Error err = {0};

    (void) state;
    entry.file.format = STR("PARQUET");
    entry.file.content_offset = entry.file.content_bytes = -1;

    Manifest manifest = manifest_of(arena, "m", &entry, 1);

    OK(live_deletes_add(live, manifest.bytes, &manifest.file, &err));
    assert_false(file_is_vector(&live_deletes_at(live, 0)->entries[0].file));
    assert_null(live_deletes_find(live, STR("data/1")));
    live_deletes_free(live);
}

static void
what_cannot_be_is_refused_and_leaves_no_trace(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    LiveDeletes *live = live_deletes_new();
    ManifestEntry entries[] = {vector_of(arena, 1, ENTRY_ADDED), vector_of(arena, 2, ENTRY_ADDED)};
    ManifestEntry nowhere = vector_of(arena, 3, ENTRY_ADDED);
    Manifest first = manifest_of(arena, "first", &entries[1], 1);
    Manifest second = manifest_of(arena, "second", entries, 2);
    Error err = {0};

    (void) state;
    nowhere.file.referenced_data_file = STR_NULL;

    Manifest third = manifest_of(arena, "third", &nowhere, 1);

    OK(live_deletes_add(live, first.bytes, &first.file, &err));
    FAILS(live_deletes_add(live, second.bytes, &second.file, &err), ERR_INPUT);
    assert_string_equal(err.msg, "data/2 has two deletion vectors");
    assert_null(live_deletes_find(live, STR("data/1")));
    FAILS(live_deletes_add(live, third.bytes, &third.file, &err), ERR_INPUT);
    FAILS(live_deletes_add(live, STR("Obj"), &third.file, &err), ERR_INPUT);
    assert_int_equal(live_deletes_count(live), 1);
    assert_string_equal(live_deletes_find(live, STR("data/2"))->file.path.ptr, "first");
    live_deletes_free(live);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_found_in_their_manifest),
        cmocka_unit_test(only_live_entries_count),
        cmocka_unit_test(position_deletes_are_listed_without_a_vector),
        cmocka_unit_test(what_cannot_be_is_refused_and_leaves_no_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
