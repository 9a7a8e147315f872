#include "iceberg/manifest_avro.h"

#include <assert.h>

/* --- Optional values: ["null", type] ------------------------------------------------------- */

static void
put_optional_long(Buf *out, int64_t n)
{
    ocf_put_long(out, n < 0 ? 0 : 1);
    if (n >= 0)
        ocf_put_long(out, n);
}

static void
put_optional_bytes(Buf *out, Str bytes)
{
    ocf_put_long(out, bytes.ptr == NULL ? 0 : 1);
    if (bytes.ptr != NULL)
        ocf_put_bytes(out, bytes);
}

/* Branch and count of an optional array; after its items comes a final 0. False: it is null. */
static bool
begin_array(Buf *out, bool present, size_t count)
{
    ocf_put_long(out, present ? 1 : 0);
    if (present && count > 0)
        ocf_put_long(out, (int64_t) count);
    return present;
}

static void
put_counts(Buf *out, const CountByField *items, size_t count)
{
    if (!begin_array(out, items != NULL, count))
        return;
    for (size_t i = 0; items != NULL && i < count; i++) {
        ocf_put_long(out, items[i].field_id);
        ocf_put_long(out, items[i].count);
    }
    ocf_put_long(out, 0);
}

static void
put_bounds(Buf *out, const BoundByField *items, size_t count)
{
    if (!begin_array(out, items != NULL, count))
        return;
    for (size_t i = 0; items != NULL && i < count; i++) {
        ocf_put_long(out, items[i].field_id);
        ocf_put_bytes(out, items[i].value);
    }
    ocf_put_long(out, 0);
}

static void
put_split_offsets(Buf *out, const DataFile *file)
{
    if (!begin_array(out, file->split_offsets != NULL, file->split_count))
        return;
    for (size_t i = 0; i < file->split_count; i++)
        ocf_put_long(out, file->split_offsets[i]);
    ocf_put_long(out, 0);
}

static void
put_equality_ids(Buf *out, const DataFile *file)
{
    if (!begin_array(out, file->equality_ids != NULL, file->equality_id_count))
        return;
    for (size_t i = 0; i < file->equality_id_count; i++)
        ocf_put_long(out, file->equality_ids[i]);
    ocf_put_long(out, 0);
}

#define PUT_COUNTS(out, map) put_counts((out), (map).items, (map).count)
#define PUT_BOUNDS(out, map) put_bounds((out), (map).items, (map).count)

/* --- Entries ------------------------------------------------------------------------------- */

/* What is the same for all entries of a manifest. */
typedef struct ManifestWriter {
    const ManifestHeader *header;
    const ResultType *types;
    Str *partition; /* scratch: values of the current file */
} ManifestWriter;

static void
put_partition(const ManifestWriter *writer, Buf *out)
{
    for (int i = 0; i < writer->header->spec->field_count; i++)
        partition_put_avro(out, &writer->types[i], writer->partition[i]);
}

static void
put_metrics_field(Buf *out, const DataFile *file, int id)
{
    switch (id) {
    case FILE_COLUMN_SIZES:
        PUT_COUNTS(out, file->column_sizes);
        break;
    case FILE_VALUE_COUNTS:
        PUT_COUNTS(out, file->value_counts);
        break;
    case FILE_NULL_COUNTS:
        PUT_COUNTS(out, file->null_counts);
        break;
    case FILE_NAN_COUNTS:
        PUT_COUNTS(out, file->nan_counts);
        break;
    case FILE_LOWER_BOUNDS:
        PUT_BOUNDS(out, file->lower_bounds);
        break;
    case FILE_UPPER_BOUNDS:
        PUT_BOUNDS(out, file->upper_bounds);
        break;
    case FILE_SPLIT_OFFSETS:
        put_split_offsets(out, file);
        break;
    case FILE_EQUALITY_IDS:
        put_equality_ids(out, file);
        break;
    default:
        assert(false && "every field of the table has a case");
    }
}

static void
put_data_file_field(const ManifestWriter *writer, Buf *out, const DataFile *file, int id)
{
    switch (id) {
    case FILE_CONTENT:
        ocf_put_long(out, file->content);
        break;
    case FILE_PATH:
        ocf_put_bytes(out, file->path);
        break;
    case FILE_FORMAT:
        ocf_put_bytes(out, file->format);
        break;
    case FILE_PARTITION:
        put_partition(writer, out);
        break;
    case FILE_RECORD_COUNT:
        ocf_put_long(out, file->record_count);
        break;
    case FILE_SIZE:
        ocf_put_long(out, file->file_bytes);
        break;
    case FILE_KEY_METADATA: /* encryption: manifest_read() refuses it, we make none */
        put_optional_bytes(out, STR_NULL);
        break;
    case FILE_SORT_ORDER: /* "must be null for position delete files" */
        put_optional_long(out,
                          file->content == CONTENT_POSITION_DELETES ? -1 : file->sort_order_id);
        break;
    case FILE_FIRST_ROW_ID: /* "must be null" for delete files */
        put_optional_long(out, file->content == CONTENT_DATA ? file->first_row_id : -1);
        break;
    case FILE_REFERENCED:
        put_optional_bytes(out, file->referenced_data_file);
        break;
    case FILE_CONTENT_OFFSET:
        put_optional_long(out, file->content_offset);
        break;
    case FILE_CONTENT_SIZE:
        put_optional_long(out, file->content_bytes);
        break;
    default:
        put_metrics_field(out, file, id);
    }
}

static void
put_data_file(const ManifestWriter *writer, Buf *out, const DataFile *file)
{
    AvroTable table = manifest_data_file_fields();

    assert(file->path.len > 0 && file->format.len > 0 && file->record_count >= 0);
    for (size_t i = 0; i < table.count; i++)
        if (table.fields[i].since <= writer->header->format_version)
            put_data_file_field(writer, out, file, table.fields[i].id);
}

static int64_t
entry_snapshot_id(const ManifestHeader *header, const ManifestEntry *entry)
{
    return entry->snapshot_id == 0 ? header->snapshot_id : entry->snapshot_id;
}

static void
put_entry(const ManifestWriter *writer, Buf *out, const ManifestEntry *entry)
{
    bool added = entry->status == ENTRY_ADDED;

    /* Iceberg spec, "Manifest Entry Fields": only added files may inherit */
    assert(added || (entry->sequence_number >= 0 && entry->file_sequence_number >= 0 &&
                     entry->snapshot_id != 0));
    assert((entry->file.content != CONTENT_DATA) == writer->header->deletes);
    ocf_put_long(out, entry->status);
    put_optional_long(out, entry_snapshot_id(writer->header, entry));
    put_optional_long(out, added ? -1 : entry->sequence_number);
    put_optional_long(out, added ? -1 : entry->file_sequence_number);
    put_data_file(writer, out, &entry->file);
}

/* --- The manifest-list record -------------------------------------------------------------- */

static void
count_entry(ManifestFile *file, const ManifestHeader *header, const ManifestEntry *entry)
{
    int64_t rows = entry->file.record_count;
    int64_t sequence_number =
        entry->status == ENTRY_ADDED ? header->sequence_number : entry->sequence_number;

    switch (entry->status) {
    case ENTRY_ADDED:
        file->added_files++;
        file->added_rows += rows;
        break;
    case ENTRY_EXISTING:
        file->existing_files++;
        file->existing_rows += rows;
        break;
    case ENTRY_DELETED:
        file->deleted_files++;
        file->deleted_rows += rows;
        return;
    }
    if (sequence_number < file->min_sequence_number)
        file->min_sequence_number = sequence_number;
}

static void
summarize_value(FieldSummary *summary, const ResultType *type, Str value)
{
    bool real = type->kind == RESULT_FLOAT || type->kind == RESULT_DOUBLE;

    if (summary->contains_nan < 0)
        summary->contains_nan = 0;
    if (value.ptr == NULL) {
        summary->contains_null = true;
        return;
    }
    if (real && partition_is_nan(type, value)) {
        summary->contains_nan = 1;
        return;
    }
    if (type->kind == RESULT_UUID) /* readers disagree on the order of uuids: no bounds */
        return;
    if (summary->lower.ptr == NULL || partition_compare(type, value, summary->lower) < 0)
        summary->lower = value;
    if (summary->upper.ptr == NULL || partition_compare(type, value, summary->upper) > 0)
        summary->upper = value;
}

/* --- The whole file ------------------------------------------------------------------------ */

/* The file metadata that the spec requires. */
static void
begin_file(OcfWriter *ocf, Buf *out, const ManifestHeader *header, Str avro_schema)
{
    AUTO_BUF Buf schema = {0};
    AUTO_BUF Buf spec = {0};
    JsonWriter json;
    char schema_id[16];
    char spec_id[16];
    char version[16];

    snprintf(schema_id, sizeof schema_id, "%d", header->schema->schema_id);
    snprintf(spec_id, sizeof spec_id, "%d", header->spec->spec_id);
    snprintf(version, sizeof version, "%d", header->format_version);
    jw_begin(&json, &schema);
    iceberg_schema_write(&json, header->schema);
    jw_begin(&json, &spec);
    partition_fields_write(&json, header->spec);

    const OcfMeta meta[] = {
        {"schema", buf_view(&schema)},
        {"schema-id", str_of(schema_id)},
        {"partition-spec", buf_view(&spec)},
        {"partition-spec-id", str_of(spec_id)},
        {"format-version", str_of(version)},
        {"content", header->deletes ? STR("deletes") : STR("data")},
    };

    ocf_begin(ocf, out,
              &(OcfHeader){.schema = avro_schema,
                           .codec = OCF_CODEC_DEFLATE,
                           .meta_count = sizeof meta / sizeof meta[0],
                           .meta = meta});
}

static ManifestFile
new_manifest_file(Arena *arena, const ManifestHeader *header)
{
    ManifestFile file = {
        .spec_id = header->spec->spec_id,
        .deletes = header->deletes,
        .sequence_number = header->sequence_number,
        .min_sequence_number = header->sequence_number,
        .added_snapshot_id = header->snapshot_id,
        .partition_count = (size_t) header->spec->field_count,
        .partitions = ARENA_ARRAY(arena, FieldSummary, (size_t) header->spec->field_count),
        .first_row_id = -1,
    };

    for (size_t i = 0; i < file.partition_count; i++)
        file.partitions[i].contains_nan = -1;
    return file;
}

/* The bounds are views of the entries until now. */
static void
own_summaries(Arena *arena, ManifestFile *file)
{
    for (size_t i = 0; i < file->partition_count; i++) {
        FieldSummary *summary = &file->partitions[i];

        if (summary->lower.ptr == NULL)
            continue;
        summary->lower = arena_str(arena, summary->lower);
        summary->upper = arena_str(arena, summary->upper);
    }
}

void
manifest_write(Arena *arena, const ManifestHeader *header, const ManifestEntry *entries,
               size_t count, Buf *out, ManifestFile *out_file)
{
    AUTO_BUF Buf avro_schema = {0};
    ManifestFile file = new_manifest_file(arena, header);
    ResultType *types = NULL;
    int fields = header->spec->field_count;
    size_t start = out->len;
    OcfWriter ocf;
    Error err;
    bool ok = partition_result_types(arena, header->schema, header->spec, &types, &err);

    assert(ok); /* the caller has checked */
    assert(header->format_version >= 2);

    ManifestWriter writer = {
        .header = header,
        .types = types,
        .partition = ARENA_ARRAY(arena, Str, (size_t) fields),
    };

    manifest_entry_schema(header->format_version, header->spec, types, &avro_schema);
    begin_file(&ocf, out, header, buf_view(&avro_schema));
    for (size_t i = 0; i < count; i++) {
        ok = partition_unpack(entries[i].file.partition, writer.partition, fields);
        assert(ok); /* a tuple of another spec */
        for (int j = 0; j < fields; j++)
            summarize_value(&file.partitions[j], &types[j], writer.partition[j]);
        put_entry(&writer, &ocf.block, &entries[i]);
        ocf_end_record(&ocf);
        count_entry(&file, header, &entries[i]);
    }
    ocf_finish(&ocf);
    own_summaries(arena, &file);
    file.length = (int64_t) (out->len - start);
    *out_file = file;
}
