/* Manifests and manifest lists. entries.txt in the golden folders is what Java and PyIceberg read
 * in their own files; what we read must come out as the same text. */
#include "golden_files.h"
#include "testing.h"

#include <inttypes.h>

#include "iceberg/manifest.h"
#include "iceberg/manifest_avro.h"
#include "iceberg/partition.h"

/* --- The text of entries.txt --------------------------------------------------------------- */

static void
put_hex(Buf *out, Str bytes)
{
    if (bytes.ptr == NULL) {
        buf_cstr(out, "null");
        return;
    }
    buf_byte(out, 'x');
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(out, "%02x", (uint8_t) bytes.ptr[i]);
}

static void
put_counts(Buf *out, const CountByField *items, size_t count)
{
    if (items == NULL) {
        buf_cstr(out, "null");
        return;
    }
    buf_byte(out, '{');
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%d=%" PRId64 " ", items[i].field_id, items[i].count);
    buf_byte(out, '}');
}

static void
put_bounds(Buf *out, const BoundByField *items, size_t count)
{
    if (items == NULL) {
        buf_cstr(out, "null");
        return;
    }
    buf_byte(out, '{');
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "%d=", items[i].field_id);
        put_hex(out, items[i].value);
        buf_byte(out, ' ');
    }
    buf_byte(out, '}');
}

static void
put_number(Buf *out, const char *label, int64_t n)
{
    if (n < 0)
        buf_printf(out, "%snull", label);
    else
        buf_printf(out, "%s%" PRId64, label, n);
}

/* Java's lines that PyIceberg's text does not have. */
static void
put_java_lines(Buf *out, const DataFile *file)
{
    if (file->split_offsets == NULL)
        buf_cstr(out, "  splits=null");
    for (size_t i = 0; file->split_offsets != NULL && i < file->split_count; i++)
        buf_printf(out, "%s%" PRId64, i == 0 ? "  splits=[" : ", ", file->split_offsets[i]);
    buf_cstr(out, file->split_offsets == NULL ? " equality=" : "] equality=");
    if (file->equality_ids == NULL)
        buf_cstr(out, "null");
    for (size_t i = 0; file->equality_ids != NULL && i < file->equality_id_count; i++)
        buf_printf(out, "%s%d", i == 0 ? "[" : ", ", file->equality_ids[i]);
    if (file->equality_ids != NULL)
        buf_byte(out, ']');
    put_number(out, " firstrow=", file->first_row_id);
    if (file->content != CONTENT_DATA) {
        buf_printf(out, " referenced=%s",
                   file->referenced_data_file.ptr == NULL ? "null"
                                                          : file->referenced_data_file.ptr);
        put_number(out, " offset=", file->content_offset);
        put_number(out, " size=", file->content_bytes);
    }
    buf_byte(out, '\n');
}

static void
put_entry(Buf *out, const ManifestEntry *entry, int partition_fields, bool java)
{
    const DataFile *file = &entry->file;
    Str values[16];

    buf_printf(out,
               "live seq=%" PRId64 " fileseq=%" PRId64 " content=%d path=%s format=%s "
               "records=%" PRId64 " bytes=%" PRId64,
               entry->sequence_number, entry->file_sequence_number, (int) file->content,
               file->path.ptr, file->format.ptr, file->record_count, file->file_bytes);
    put_number(out, " sort=", file->sort_order_id);
    assert_true(partition_unpack(file->partition, values, partition_fields));
    buf_cstr(out, java ? "\n  partition=" : "\n");
    for (int i = 0; java && i < partition_fields; i++) {
        put_hex(out, values[i]);
        buf_byte(out, ' ');
    }
    buf_cstr(out, java ? "\n  sizes=" : "  sizes=");
    put_counts(out, file->column_sizes.items, file->column_sizes.count);
    buf_cstr(out, " values=");
    put_counts(out, file->value_counts.items, file->value_counts.count);
    buf_cstr(out, " nulls=");
    put_counts(out, file->null_counts.items, file->null_counts.count);
    buf_cstr(out, " nans=");
    put_counts(out, file->nan_counts.items, file->nan_counts.count);
    buf_cstr(out, "\n  lower=");
    put_bounds(out, file->lower_bounds.items, file->lower_bounds.count);
    buf_cstr(out, " upper=");
    put_bounds(out, file->upper_bounds.items, file->upper_bounds.count);
    buf_byte(out, '\n');
    if (java)
        put_java_lines(out, file);
}

static const char *
base_name(Str path)
{
    const char *slash = strrchr(path.ptr, '/');

    return slash == NULL ? path.ptr : slash + 1;
}

static void
put_summaries(Buf *out, const ManifestFile *file)
{
    put_number(out, " firstrow=", file->first_row_id);
    buf_cstr(out, " partitions=");
    for (size_t i = 0; i < file->partition_count; i++) {
        const FieldSummary *summary = &file->partitions[i];

        buf_printf(out, "%s,%s,", summary->contains_null ? "true" : "false",
                   summary->contains_nan < 0 ? "null"
                   : summary->contains_nan   ? "true"
                                             : "false");
        put_hex(out, summary->lower);
        buf_byte(out, ',');
        put_hex(out, summary->upper);
        buf_byte(out, ' ');
    }
}

static void
put_manifest(Buf *out, const ManifestFile *file, bool java)
{
    buf_printf(out,
               "manifest %s content=%d spec=%d seq=%" PRId64 " min=%" PRId64 " snapshot=%" PRId64
               " files=%d,%d,%d rows=%" PRId64 ",%" PRId64 ",%" PRId64,
               base_name(file->path), file->deletes, file->spec_id, file->sequence_number,
               file->min_sequence_number, file->added_snapshot_id, file->added_files,
               file->existing_files, file->deleted_files, file->added_rows, file->existing_rows,
               file->deleted_rows);
    if (java)
        put_summaries(out, file);
    buf_byte(out, '\n');
}

typedef struct GoldenTable {
    Arena *arena;
    const char *folder;
    TableMetadata *metadata;
} GoldenTable;

static GoldenTable
open_table(Arena *arena, const char *folder)
{
    GoldenTable table = {.arena = arena, .folder = folder};
    const char *paths[64] = {0};
    size_t count = golden_list(arena, folder, ".metadata.json", paths);
    Error err = {0};

    OK(metadata_parse(arena, golden_file(arena, paths[count - 1]), &table.metadata, &err));
    return table;
}

static size_t
read_list(const GoldenTable *table, const Snapshot *snapshot, ManifestFile **out_files)
{
    const char *path =
        arena_printf(table->arena, "%s/%s", table->folder, base_name(snapshot->manifest_list));
    size_t count = 0;
    Error err = {0};

    OK(manifest_list_read(table->arena, golden_file(table->arena, path), out_files, &count, &err));
    return count;
}

static size_t
read_manifest(const GoldenTable *table, const ManifestFile *file, ManifestEntry **out_entries)
{
    const char *path = arena_printf(table->arena, "%s/%s", table->folder, base_name(file->path));
    size_t count = 0;
    Error err = {0};

    OK(manifest_read(table->arena, golden_file(table->arena, path), file, out_entries, &count,
                     &err));
    return count;
}

static void
same_as_entries_txt(const char *folder, bool java)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf out = {0};
    GoldenTable table = open_table(arena, folder);

    for (size_t i = 0; i < table.metadata->snapshot_count; i++) {
        const Snapshot *snapshot = &table.metadata->snapshots[i];
        ManifestFile *files = NULL;
        size_t file_count = read_list(&table, snapshot, &files);

        buf_printf(&out, "list %s\n", base_name(snapshot->manifest_list));
        for (size_t j = 0; j < file_count; j++) {
            const PartitionSpec *spec = metadata_find_spec(table.metadata, files[j].spec_id);
            ManifestEntry *entries = NULL;
            size_t count = read_manifest(&table, &files[j], &entries);

            put_manifest(&out, &files[j], java);
            for (size_t k = 0; k < count; k++)
                if (entries[k].status != ENTRY_DELETED)
                    put_entry(&out, &entries[k], spec->field_count, java);
        }
    }
    assert_string_equal(buf_text(&out),
                        golden_file(arena, arena_printf(arena, "%s/entries.txt", folder)).ptr);
}

static void
java_v1_is_read(void **state)
{
    (void) state;
    same_as_entries_txt("iceberg/java-v1", true);
}

static void
java_v2_is_read(void **state)
{
    (void) state;
    same_as_entries_txt("iceberg/java-v2", true);
}

static void
java_partitioned_is_read(void **state)
{
    (void) state;
    same_as_entries_txt("iceberg/java-partitioned", true);
}

static void
java_v3_is_read(void **state)
{
    (void) state;
    same_as_entries_txt("iceberg/java-v3", true);
}

static void
pyiceberg_is_read(void **state)
{
    (void) state;
    same_as_entries_txt("iceberg/python-v2", false);
}

/* --- Writing ------------------------------------------------------------------------------- */

static void
expect_same_entry(const ManifestEntry *a, const ManifestEntry *b, int partition_fields)
{
    AUTO_BUF Buf x = {0};
    AUTO_BUF Buf y = {0};

    assert_int_equal(a->status, b->status);
    assert_true(a->snapshot_id == b->snapshot_id);
    put_entry(&x, a, partition_fields, true);
    put_entry(&y, b, partition_fields, true);
    assert_string_equal(buf_text(&x), buf_text(&y));
}

/* Java gives bounds of uuids in its own order, we give none. */
static void
expect_same_summaries(const ManifestFile *ours, const ManifestFile *java)
{
    assert_int_equal(ours->partition_count, java->partition_count);
    for (size_t i = 0; i < ours->partition_count; i++) {
        const FieldSummary *a = &ours->partitions[i];
        const FieldSummary *b = &java->partitions[i];

        assert_int_equal(a->contains_null, b->contains_null);
        assert_int_equal(a->contains_nan, b->contains_nan);
        if (b->lower.len == 16)
            continue;
        assert_true(str_eq(a->lower, b->lower) && str_eq(a->upper, b->upper));
    }
}

static void
rewrite(const GoldenTable *table, const ManifestFile *file, const ManifestEntry *entries,
        size_t count)
{
    AUTO_BUF Buf bytes = {0};
    const PartitionSpec *spec = metadata_find_spec(table->metadata, file->spec_id);
    ManifestEntry *again = NULL;
    ManifestFile written;
    size_t again_count = 0;
    Error err = {0};

    manifest_write(table->arena,
                   &(ManifestHeader){.format_version = 2,
                                     .schema = metadata_current_schema(table->metadata),
                                     .spec = spec,
                                     .deletes = file->deletes,
                                     .snapshot_id = file->added_snapshot_id,
                                     .sequence_number = file->sequence_number},
                   entries, count, &bytes, &written);
    assert_int_equal(written.length, bytes.len);
    assert_int_equal(written.added_files, file->added_files);
    assert_int_equal(written.existing_files, file->existing_files);
    assert_int_equal(written.deleted_files, file->deleted_files);
    assert_int_equal(written.added_rows, file->added_rows);
    assert_int_equal(written.existing_rows, file->existing_rows);
    assert_int_equal(written.deleted_rows, file->deleted_rows);
    assert_int_equal(written.min_sequence_number, file->min_sequence_number);
    expect_same_summaries(&written, file);
    written.path = file->path;
    OK(manifest_read(table->arena, buf_view(&bytes), &written, &again, &again_count, &err));
    assert_int_equal(again_count, count);
    for (size_t i = 0; i < count; i++)
        expect_same_entry(&entries[i], &again[i], spec->field_count);
}

static void
manifests_of_java_are_rewritten_without_loss(void **state)
{
    static const char *const folders[] = {"iceberg/java-v2", "iceberg/java-partitioned"};

    (void) state;
    for (size_t i = 0; i < 2; i++) {
        AUTO_ARENA Arena *arena = arena_new();
        GoldenTable table = open_table(arena, folders[i]);

        for (size_t j = 0; j < table.metadata->snapshot_count; j++) {
            ManifestFile *files = NULL;
            size_t count = read_list(&table, &table.metadata->snapshots[j], &files);

            for (size_t k = 0; k < count; k++) {
                ManifestEntry *entries = NULL;
                size_t entry_count = read_manifest(&table, &files[k], &entries);

                rewrite(&table, &files[k], entries, entry_count);
            }
        }
    }
}

static void
lists_of_java_are_rewritten_without_loss(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    GoldenTable table = open_table(arena, "iceberg/java-partitioned");

    (void) state;
    for (size_t i = 0; i < table.metadata->snapshot_count; i++) {
        AUTO_BUF Buf bytes = {0};
        AUTO_BUF Buf before = {0};
        AUTO_BUF Buf after = {0};
        ManifestFile *files = NULL;
        ManifestFile *again = NULL;
        size_t again_count = 0;
        size_t count = read_list(&table, &table.metadata->snapshots[i], &files);
        Error err = {0};

        manifest_list_write(&(ManifestListHeader){.format_version = 2, .snapshot_id = 1}, files,
                            count, &bytes);
        OK(manifest_list_read(arena, buf_view(&bytes), &again, &again_count, &err));
        assert_int_equal(again_count, count);
        for (size_t j = 0; j < count; j++) {
            put_manifest(&before, &files[j], true);
            put_manifest(&after, &again[j], true);
            assert_true(files[j].length == again[j].length);
        }
        assert_string_equal(buf_text(&before), buf_text(&after));
    }
}

/* The .avsc files hold Java's schemas without the docs. */
static void
schemas_are_java_s(void **state)
{
    static const PartitionSpec none = {.field_count = 0};
    AUTO_ARENA Arena *arena = arena_new();

    (void) state;
    for (int version = 2; version <= 3; version++) {
        AUTO_BUF Buf entry = {0};
        AUTO_BUF Buf list = {0};

        manifest_entry_schema(version, &none, NULL, &entry);
        assert_string_equal(
            buf_text(&entry),
            golden_file(arena, arena_printf(arena, "iceberg/manifest-entry-v%d-unpartitioned.avsc",
                                            version))
                .ptr);
        manifest_list_schema(version, &list);
        assert_string_equal(
            buf_text(&list),
            golden_file(arena, arena_printf(arena, "iceberg/manifest-list-v%d.avsc", version)).ptr);
    }

    AUTO_BUF Buf entry = {0};
    PartitionField fields[] = {{.field_id = 1000, .name = STR("ts_day")},
                               {.field_id = 1001, .name = STR("id_bucket")}};
    const PartitionSpec spec = {.field_count = 2, .fields = fields};
    const ResultType types[] = {{.kind = RESULT_DATE}, {.kind = RESULT_INT}};

    manifest_entry_schema(3, &spec, types, &entry);
    assert_string_equal(buf_text(&entry),
                        golden_file(arena, "iceberg/manifest-entry-v3-part-example.avsc").ptr);
}

/* --- Row ids ------------------------------------------------------------------------------- */

/* Java's lists without the row ids that each of its snapshots assigned get the same ones again. */
static void
row_ids_are_assigned_as_in_java(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    GoldenTable table = open_table(arena, "iceberg/java-v3");

    (void) state;
    for (size_t i = 0; i < table.metadata->snapshot_count; i++) {
        const Snapshot *snapshot = &table.metadata->snapshots[i];
        ManifestFile *java = NULL;
        ManifestFile *ours = NULL;
        size_t count = read_list(&table, snapshot, &java);

        assert_int_equal(read_list(&table, snapshot, &ours), count);
        for (size_t j = 0; j < count; j++)
            if (ours[j].added_snapshot_id == snapshot->snapshot_id)
                ours[j].first_row_id = -1;
        assert_true(manifest_assign_row_ids(ours, count, snapshot->first_row_id) ==
                    snapshot->added_rows);
        for (size_t j = 0; j < count; j++)
            assert_true(ours[j].first_row_id == java[j].first_row_id);
    }
}

/* Carried manifests of version 2, and merged ones with rows that exist already. */
static void
an_upgrade_assigns_row_ids_to_all(void **state)
{
    ManifestFile files[] = {
        {.added_rows = 5, .first_row_id = -1},
        {.added_rows = 9, .deletes = true, .first_row_id = -1},
        {.added_rows = 20, .existing_rows = 100, .deleted_rows = 7, .first_row_id = -1},
        {.added_rows = 3, .first_row_id = 40},
    };

    (void) state;
    assert_true(manifest_assign_row_ids(files, 4, 1000) == 125);
    assert_true(files[0].first_row_id == 1000);
    assert_true(files[1].first_row_id == -1);
    assert_true(files[2].first_row_id == 1005);
    assert_true(files[3].first_row_id == 40);
}

static ManifestEntry
entry_of(EntryStatus status, const char *path, int64_t rows)
{
    return (ManifestEntry){
        .status = status,
        .snapshot_id = 8,
        .sequence_number = status == ENTRY_ADDED ? -1 : 3,
        .file_sequence_number = status == ENTRY_ADDED ? -1 : 3,
        .file = {.path = str_of(path),
                 .format = STR("PARQUET"),
                 .partition = STR(""),
                 .record_count = rows,
                 .file_bytes = 100,
                 .first_row_id = -1,
                 .content_offset = -1,
                 .content_bytes = -1},
    };
}

static void
write_and_read(Arena *arena, const ManifestEntry *entries, size_t count, ManifestEntry **out_again)
{
    static const PartitionSpec unpartitioned = {0};
    static const IcebergSchema schema = {0};
    AUTO_BUF Buf bytes = {0};
    ManifestHeader header = {.format_version = 3,
                             .schema = &schema,
                             .spec = &unpartitioned,
                             .deletes = entries[0].file.content != CONTENT_DATA,
                             .snapshot_id = 9,
                             .sequence_number = 4};
    ManifestFile file;
    size_t again_count;
    Error err = {0};

    manifest_write(arena, &header, entries, count, &bytes, &file);
    assert_true(file.first_row_id == -1); /* the list's to say */
    file.path = STR("m.avro");
    if (!header.deletes)
        file.first_row_id = 100;
    OK(manifest_read(arena, arena_str(arena, buf_view(&bytes)), &file, out_again, &again_count,
                     &err));
    assert_int_equal(again_count, count);
}

static void
entries_of_version_3_come_back(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    ManifestEntry *again = NULL;
    ManifestEntry data[] = {entry_of(ENTRY_ADDED, "a", 10), entry_of(ENTRY_EXISTING, "b", 20),
                            entry_of(ENTRY_DELETED, "c", 30), entry_of(ENTRY_EXISTING, "d", 40),
                            entry_of(ENTRY_ADDED, "e", 50)};
    ManifestEntry vector = entry_of(ENTRY_ADDED, "v.puffin", 7);

    (void) state;
    data[1].file.first_row_id = 7;
    data[2].file.first_row_id = 50;
    write_and_read(arena, data, 5, &again);
    assert_true(again[0].file.first_row_id == 100);
    assert_true(again[1].file.first_row_id == 7);
    assert_true(again[2].file.first_row_id == 50);
    assert_true(again[3].file.first_row_id == 110); /* of version 2: null until now */
    assert_true(again[4].file.first_row_id == 150);

    vector.file.content = CONTENT_POSITION_DELETES;
    vector.file.format = STR("PUFFIN");
    vector.file.referenced_data_file = STR("a");
    vector.file.content_offset = 4;
    vector.file.content_bytes = 50;
    vector.file.first_row_id = 12; /* must not come out: "must be null" */
    write_and_read(arena, &vector, 1, &again);
    assert_true(again[0].file.first_row_id == -1);
    assert_true(again[0].file.content_offset == 4 && again[0].file.content_bytes == 50);
    assert_true(str_eqc(again[0].file.referenced_data_file, "a"));
    assert_int_equal(again[0].sequence_number, 4);
    assert_int_equal(again[0].file.sort_order_id, -1);
}

/* --- Odd files ----------------------------------------------------------------------------- */

/* golden.py, strange_entry() */
static void
strange_schemas_are_resolved(void **state)
{
    static const char *const codecs[] = {"null", "deflate", "zstandard"};
    const ManifestFile file = {
        .path = STR("m"), .sequence_number = 7, .added_snapshot_id = 8, .first_row_id = -1};

    (void) state;
    for (size_t i = 0; i < 3; i++) {
        AUTO_ARENA Arena *arena = arena_new();
        ManifestEntry *entries = NULL;
        size_t count = 0;
        Error err = {0};

        OK(manifest_read(
            arena,
            golden_file(arena,
                        arena_printf(arena, "iceberg/python-avro/strange-%s.avro", codecs[i])),
            &file, &entries, &count, &err));
        assert_int_equal(count, 300);
        for (size_t j = 0; j < count; j++) {
            const DataFile *data = &entries[j].file;
            Str value;

            assert_int_equal(entries[j].status, ENTRY_ADDED);
            assert_int_equal(entries[j].sequence_number, 7);
            assert_int_equal(entries[j].snapshot_id, 8);
            assert_string_equal(data->path.ptr, arena_printf(arena, "file:/data/%zu.parquet", j));
            assert_int_equal(data->record_count, j);
            assert_int_equal(data->file_bytes, 100 + j);
            assert_int_equal(data->value_counts.count, 2); /* the third is null */
            assert_int_equal(data->value_counts.items[0].field_id, 1);
            assert_int_equal(data->value_counts.items[1].count, j);
            assert_int_equal(data->lower_bounds.count, 2);
            assert_int_equal(data->lower_bounds.items[1].field_id, 12);
            assert_int_equal(data->lower_bounds.items[1].value.len, 0);
            assert_null(data->upper_bounds.items);
            assert_int_equal(data->split_count, j == 0 ? 0 : 2);
            assert_true(partition_unpack(data->partition, &value, 1));
            assert_true(j % 2 ? str_eq(value, STR("\x01")) : value.ptr == NULL);
        }
    }
}

static void
lists_without_ids_go_by_name(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    ManifestFile *files = NULL;
    size_t count = 0;
    Error err = {0};

    (void) state;
    OK(manifest_list_read(arena, golden_file(arena, "iceberg/python-avro/list-without-ids.avro"),
                          &files, &count, &err));
    assert_int_equal(count, 1);
    assert_string_equal(files[0].path.ptr, "file:/m.avro");
    assert_true(files[0].deletes);
    assert_int_equal(files[0].sequence_number, 5);
    assert_true(files[0].added_snapshot_id == 8744736658442914487);
    assert_int_equal(files[0].deleted_rows, 6);
    assert_int_equal(files[0].partition_count, 1);
    assert_true(files[0].partitions[0].contains_null);
    assert_int_equal(files[0].partitions[0].contains_nan, -1);
    assert_int_equal(files[0].partitions[0].lower.len, 1);
    assert_null(files[0].partitions[0].upper.ptr);
}

static void
a_list_is_no_manifest(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str list = golden_file(arena, "iceberg/python-avro/list-without-ids.avro");
    const ManifestFile file = {.path = STR("s3://lake/m.avro")};
    ManifestEntry *entries;
    size_t count;
    Error err = {0};

    (void) state;
    FAILS(manifest_read(arena, list, &file, &entries, &count, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "manifest s3://lake/m.avro: "));
    FAILS(manifest_read(arena, STR("nonsense"), &file, &entries, &count, &err), ERR_INPUT);
}

static void
unknown_transforms_are_refused(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    GoldenTable table = open_table(arena, "iceberg/java-partitioned");
    const IcebergSchema *schema = metadata_current_schema(table.metadata);
    PartitionField field = {.source_id = 1, .name = STR("p"), .transform = STR("zorder")};
    PartitionSpec spec = {.field_count = 1, .fields = &field};
    ResultType *types = NULL;
    Error err = {0};

    (void) state;
    FAILS(partition_result_types(arena, schema, &spec, &types, &err), ERR_INPUT);
    assert_string_equal(err.msg, "partition field p: unknown transform zorder");
    field.transform = STR("identity");
    field.source_id = 99;
    FAILS(partition_result_types(arena, schema, &spec, &types, &err), ERR_INPUT);
    field.source_id = 9; /* a list */
    FAILS(partition_result_types(arena, schema, &spec, &types, &err), ERR_INPUT);
    field.source_id = 3;
    OK(partition_result_types(arena, schema, &spec, &types, &err));
    assert_int_equal(types[0].kind, RESULT_DECIMAL);
    assert_int_equal(types[0].size, 4); /* Iceberg spec, "Appendix A": minimum bytes of 9 digits */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(java_v1_is_read),
        cmocka_unit_test(java_v2_is_read),
        cmocka_unit_test(java_partitioned_is_read),
        cmocka_unit_test(java_v3_is_read),
        cmocka_unit_test(pyiceberg_is_read),
        cmocka_unit_test(manifests_of_java_are_rewritten_without_loss),
        cmocka_unit_test(lists_of_java_are_rewritten_without_loss),
        cmocka_unit_test(schemas_are_java_s),
        cmocka_unit_test(row_ids_are_assigned_as_in_java),
        cmocka_unit_test(an_upgrade_assigns_row_ids_to_all),
        cmocka_unit_test(entries_of_version_3_come_back),
        cmocka_unit_test(strange_schemas_are_resolved),
        cmocka_unit_test(lists_without_ids_go_by_name),
        cmocka_unit_test(a_list_is_no_manifest),
        cmocka_unit_test(unknown_transforms_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
