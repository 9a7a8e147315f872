/* Snapshot summaries: those of the Java tables (golden/iceberg/Golden.java) are made again from
 * their manifests and must say the same. */
#include "golden_files.h"
#include "testing.h"

#include "iceberg/snapshot.h"

static const char *
beside(Arena *arena, const char *folder, Str path)
{
    const char *slash = strrchr(path.ptr, '/');

    return arena_printf(arena, "%s/%s", folder, slash + 1);
}

/* Files that a snapshot adds and removes: entries of the manifests it wrote. */
static SnapshotDelta
delta_of(Arena *arena, const char *folder, const Snapshot *snapshot)
{
    AUTO_BUF Buf added = {0};
    AUTO_BUF Buf removed = {0};
    SnapshotDelta delta = {0};
    ManifestFile *files = NULL;
    size_t file_count = 0;
    Error err = {0};

    OK(manifest_list_read(arena, golden_file(arena, beside(arena, folder, snapshot->manifest_list)),
                          &files, &file_count, &err));
    for (size_t i = 0; i < file_count; i++) {
        ManifestEntry *entries = NULL;
        size_t count = 0;

        OK(manifest_read(arena, golden_file(arena, beside(arena, folder, files[i].path)), &files[i],
                         &entries, &count, &err));
        for (size_t j = 0; j < count; j++) {
            if (entries[j].snapshot_id != snapshot->snapshot_id)
                continue;
            if (entries[j].status == ENTRY_ADDED)
                BUF_PUSH(&added, DataFile, entries[j].file);
            else if (entries[j].status == ENTRY_DELETED)
                BUF_PUSH(&removed, DataFile, entries[j].file);
        }
    }
    delta.added_count = BUF_COUNT(&added, DataFile);
    delta.added = (const DataFile *) (const void *) arena_str(arena, buf_view(&added)).ptr;
    delta.removed_count = BUF_COUNT(&removed, DataFile);
    delta.removed = (const DataFile *) (const void *) arena_str(arena, buf_view(&removed)).ptr;
    return delta;
}

/* Counts of manifests are the committer's, and versions are not ours to say. */
static bool
is_compared(Str key)
{
    return !str_starts(key, STR("manifests-")) && !str_eqc(key, "iceberg-version") &&
           !str_eqc(key, "entries-processed");
}

static void
expect_same(const PropertyList *want, const PropertyList *have)
{
    for (size_t i = 0; i < want->count; i++) {
        Str value = property_get(have, want->items[i].key.ptr);

        if (is_compared(want->items[i].key) && !str_eq(value, want->items[i].value))
            fail_msg("%s: \"%s\", not \"%s\"", want->items[i].key.ptr,
                     value.ptr == NULL ? "(absent)" : value.ptr, want->items[i].value.ptr);
    }
}

static void
summaries_are_java_s(void **state)
{
    static const char *const folders[] = {"iceberg/java-v1", "iceberg/java-v2",
                                          "iceberg/java-partitioned", "iceberg/java-v3"};
    int compared = 0;

    (void) state;
    for (size_t i = 0; i < 4; i++) {
        AUTO_ARENA Arena *arena = arena_new();
        TableMetadata *metadata = NULL;
        const char *paths[64] = {0};
        size_t count = golden_list(arena, folders[i], ".metadata.json", paths);
        const PropertyList *parent = NULL;
        Error err = {0};

        OK(metadata_parse(arena, golden_file(arena, paths[count - 1]), &metadata, &err));
        for (size_t j = 0; j < metadata->snapshot_count; j++) {
            const Snapshot *snapshot = &metadata->snapshots[j];
            SnapshotDelta delta = delta_of(arena, folders[i], snapshot);
            bool is_replace = str_eqc(property_get(&snapshot->summary, "operation"), "replace");
            PropertyList ours = snapshot_summary(arena, &delta, is_replace, parent, NULL);

            expect_same(&snapshot->summary, &ours);
            expect_same(&ours, &snapshot->summary);
            parent = &snapshot->summary;
            compared++;
        }
    }
    assert_int_equal(compared, 4 + 4 + 3 + 3);
}

static DataFile
file_of(FileContent content, int64_t records)
{
    return (DataFile){
        .content = content, .format = STR("PARQUET"), .record_count = records, .file_bytes = 10};
}

static const char *
operation_of(Arena *arena, const SnapshotDelta *delta)
{
    PropertyList summary = snapshot_summary(arena, delta, false, NULL, NULL);

    return property_get(&summary, "operation").ptr;
}

/* Iceberg spec, "Snapshots" */
static void
operations_say_what_changed(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    DataFile data = file_of(CONTENT_DATA, 1);
    DataFile deletes = file_of(CONTENT_POSITION_DELETES, 1);
    DataFile both[] = {data, deletes};

    (void) state;
    assert_string_equal(operation_of(arena, &(SnapshotDelta){0}), "append");
    assert_string_equal(operation_of(arena, &(SnapshotDelta){.added_count = 1, .added = &data}),
                        "append");
    assert_string_equal(operation_of(arena, &(SnapshotDelta){.added_count = 1, .added = &deletes}),
                        "delete");
    assert_string_equal(operation_of(arena, &(SnapshotDelta){.removed_count = 1, .removed = &data}),
                        "delete");
    assert_string_equal(operation_of(arena, &(SnapshotDelta){.added_count = 2, .added = both}),
                        "overwrite");
    assert_string_equal(operation_of(arena, &(SnapshotDelta){.added_count = 1,
                                                             .added = &data,
                                                             .removed_count = 1,
                                                             .removed = &data}),
                        "overwrite");
}

static void
totals_follow_the_parent(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    DataFile data = file_of(CONTENT_DATA, 5);
    SnapshotDelta delta = {.added_count = 1, .added = &data};
    PropertyList parent = {0};
    PropertyList extra = {0};
    PropertyList summary;

    (void) state;
    parent = property_set(arena, &parent, STR("total-records"), STR("100"));
    parent = property_set(arena, &parent, STR("total-data-files"), STR("many"));
    extra = property_set(arena, &extra, STR("cdc.position"), STR("0/1"));
    summary = snapshot_summary(arena, &delta, false, &parent, &extra);
    assert_true(str_eqc(property_get(&summary, "total-records"), "105"));
    assert_null(property_get(&summary, "total-data-files").ptr);
    assert_null(property_get(&summary, "total-files-size").ptr);
    assert_null(property_get(&summary, "deleted-records").ptr);
    assert_true(str_eqc(property_get(&summary, "cdc.position"), "0/1"));
    for (size_t i = 1; i < summary.count; i++)
        assert_true(str_cmp(summary.items[i - 1].key, summary.items[i].key) < 0);
    delta.only_added = true; /* whatever was there */
    summary = snapshot_summary(arena, &delta, false, &parent, &extra);
    assert_true(str_eqc(property_get(&summary, "operation"), "overwrite"));
    assert_true(str_eqc(property_get(&summary, "total-records"), "5"));
    assert_true(str_eqc(property_get(&summary, "total-data-files"), "1"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summaries_are_java_s),
        cmocka_unit_test(operations_say_what_changed),
        cmocka_unit_test(totals_follow_the_parent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
