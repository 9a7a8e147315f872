#include "iceberg/manifest_avro.h"

#include <assert.h>

/* A map with int keys is an array of records: Iceberg spec, "Appendix A: Avro" */
#define INT_MAP(key, value, type)                                                                  \
    "{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"k" #key "_v" #value             \
    "\",\"fields\":[{\"name\":\"key\",\"type\":\"int\",\"field-id\":" #key                         \
    "},{\"name\":\"value\",\"type\":\"" type "\",\"field-id\":" #value                             \
    "}]},\"logicalType\":\"map\"}"

#define LIST(element, type)                                                                        \
    "{\"type\":\"array\",\"items\":\"" type "\",\"element-id\":" #element "}"

static const AvroField entry_fields[] = {
    {ENTRY_STATUS, 1, "status", "\"int\"", false},
    {ENTRY_SNAPSHOT_ID, 1, "snapshot_id", "\"long\"", true},
    {ENTRY_SEQUENCE_NUMBER, 2, "sequence_number", "\"long\"", true},
    {ENTRY_FILE_SEQUENCE_NUMBER, 2, "file_sequence_number", "\"long\"", true},
    {ENTRY_DATA_FILE, 1, "data_file", NULL, false},
};

static const AvroField data_file_fields[] = {
    {FILE_CONTENT, 2, "content", "\"int\"", false},
    {FILE_PATH, 1, "file_path", "\"string\"", false},
    {FILE_FORMAT, 1, "file_format", "\"string\"", false},
    {FILE_PARTITION, 1, "partition", NULL, false},
    {FILE_RECORD_COUNT, 1, "record_count", "\"long\"", false},
    {FILE_SIZE, 1, "file_size_in_bytes", "\"long\"", false},
    {FILE_COLUMN_SIZES, 1, "column_sizes", INT_MAP(117, 118, "long"), true},
    {FILE_VALUE_COUNTS, 1, "value_counts", INT_MAP(119, 120, "long"), true},
    {FILE_NULL_COUNTS, 1, "null_value_counts", INT_MAP(121, 122, "long"), true},
    {FILE_NAN_COUNTS, 1, "nan_value_counts", INT_MAP(138, 139, "long"), true},
    {FILE_LOWER_BOUNDS, 1, "lower_bounds", INT_MAP(126, 127, "bytes"), true},
    {FILE_UPPER_BOUNDS, 1, "upper_bounds", INT_MAP(129, 130, "bytes"), true},
    {FILE_KEY_METADATA, 1, "key_metadata", "\"bytes\"", true},
    {FILE_SPLIT_OFFSETS, 1, "split_offsets", LIST(133, "long"), true},
    {FILE_EQUALITY_IDS, 2, "equality_ids", LIST(136, "int"), true},
    {FILE_SORT_ORDER, 1, "sort_order_id", "\"int\"", true},
    {FILE_FIRST_ROW_ID, 3, "first_row_id", "\"long\"", true},
    {FILE_REFERENCED, 2, "referenced_data_file", "\"string\"", true},
    {FILE_CONTENT_OFFSET, 3, "content_offset", "\"long\"", true},
    {FILE_CONTENT_SIZE, 3, "content_size_in_bytes", "\"long\"", true},
};

static const AvroField summary_fields[] = {
    {SUMMARY_CONTAINS_NULL, 1, "contains_null", "\"boolean\"", false},
    {SUMMARY_CONTAINS_NAN, 1, "contains_nan", "\"boolean\"", true},
    {SUMMARY_LOWER, 1, "lower_bound", "\"bytes\"", true},
    {SUMMARY_UPPER, 1, "upper_bound", "\"bytes\"", true},
};

static const AvroField list_fields[] = {
    {LIST_PATH, 1, "manifest_path", "\"string\"", false},
    {LIST_LENGTH, 1, "manifest_length", "\"long\"", false},
    {LIST_SPEC_ID, 1, "partition_spec_id", "\"int\"", false},
    {LIST_CONTENT, 2, "content", "\"int\"", false},
    {LIST_SEQUENCE_NUMBER, 2, "sequence_number", "\"long\"", false},
    {LIST_MIN_SEQUENCE, 2, "min_sequence_number", "\"long\"", false},
    {LIST_ADDED_SNAPSHOT, 1, "added_snapshot_id", "\"long\"", false},
    {LIST_ADDED_FILES, 1, "added_files_count", "\"int\"", false},
    {LIST_EXISTING_FILES, 1, "existing_files_count", "\"int\"", false},
    {LIST_DELETED_FILES, 1, "deleted_files_count", "\"int\"", false},
    {LIST_ADDED_ROWS, 1, "added_rows_count", "\"long\"", false},
    {LIST_EXISTING_ROWS, 1, "existing_rows_count", "\"long\"", false},
    {LIST_DELETED_ROWS, 1, "deleted_rows_count", "\"long\"", false},
    {LIST_PARTITIONS, 1, "partitions", NULL, true},
    {LIST_KEY_METADATA, 1, "key_metadata", "\"bytes\"", true},
    {LIST_FIRST_ROW_ID, 3, "first_row_id", "\"long\"", true},
};

/* Names that version 1 writers gave the counts. */
static const AvroField old_list_fields[] = {
    {LIST_ADDED_FILES, 1, "added_data_files_count", NULL, true},
    {LIST_EXISTING_FILES, 1, "existing_data_files_count", NULL, true},
    {LIST_DELETED_FILES, 1, "deleted_data_files_count", NULL, true},
};

#define TABLE(fields) ((AvroTable){sizeof(fields) / sizeof((fields)[0]), (fields)})

AvroTable
manifest_entry_fields(void)
{
    return TABLE(entry_fields);
}

AvroTable
manifest_data_file_fields(void)
{
    return TABLE(data_file_fields);
}

AvroTable
manifest_list_fields(void)
{
    return TABLE(list_fields);
}

AvroTable
manifest_summary_fields(void)
{
    return TABLE(summary_fields);
}

static int
id_by_name(AvroTable table, Str name)
{
    for (size_t i = 0; i < table.count; i++)
        if (str_eqc(name, table.fields[i].name))
            return table.fields[i].id;
    return -1;
}

int
manifest_field_id(AvroTable table, const OcfField *field)
{
    int id = field->id >= 0 ? field->id : id_by_name(table, field->name);

    if (id < 0 && table.fields == list_fields)
        id = id_by_name(TABLE(old_list_fields), field->name);
    return id;
}

/* --- Schemas ------------------------------------------------------------------------------- */

/* `type` replaces the table's where that is NULL. */
static void
put_field(Buf *out, const AvroField *field, Str type)
{
    if (field->type != NULL)
        type = str_of(field->type);
    buf_printf(out, "{\"name\":\"%s\",\"type\":", field->name);
    if (field->optional)
        buf_cstr(out, "[\"null\",");
    buf_str(out, type);
    if (field->optional)
        buf_cstr(out, "],\"default\":null");
    buf_printf(out, ",\"field-id\":%d}", field->id);
}

/* A record; `inner` is the type of its one field that the table leaves open. */
static void
put_record(Buf *out, const char *name, AvroTable table, int format_version, Str inner)
{
    const char *comma = "";

    buf_printf(out, "{\"type\":\"record\",\"name\":\"%s\",\"fields\":[", name);
    for (size_t i = 0; i < table.count; i++) {
        if (table.fields[i].since > format_version)
            continue;
        buf_cstr(out, comma);
        put_field(out, &table.fields[i], inner);
        comma = ",";
    }
    buf_cstr(out, "]}");
}

static void
put_partition_record(Buf *out, const PartitionSpec *spec, const ResultType *types)
{
    buf_cstr(out, "{\"type\":\"record\",\"name\":\"r102\",\"fields\":[");
    for (int i = 0; i < spec->field_count; i++) {
        AUTO_BUF Buf name = {0};

        partition_avro_name(spec->fields[i].name, &name);
        buf_cstr(out, i == 0 ? "{\"name\":" : ",{\"name\":");
        jw_put_string(out, buf_view(&name));
        buf_cstr(out, ",\"type\":");
        partition_avro_type(&types[i], spec->fields[i].field_id, out);
        buf_printf(out, ",\"default\":null,\"field-id\":%d", spec->fields[i].field_id);
        if (!str_eq(buf_view(&name), spec->fields[i].name)) {
            buf_cstr(out, ",\"iceberg-field-name\":");
            jw_put_string(out, spec->fields[i].name);
        }
        buf_byte(out, '}');
    }
    buf_cstr(out, "]}");
}

void
manifest_entry_schema(int format_version, const PartitionSpec *spec, const ResultType *types,
                      Buf *out)
{
    AUTO_BUF Buf partition = {0};
    AUTO_BUF Buf file = {0};

    assert(format_version >= 2);
    put_partition_record(&partition, spec, types);
    put_record(&file, "r2", TABLE(data_file_fields), format_version, buf_view(&partition));
    put_record(out, "manifest_entry", TABLE(entry_fields), format_version, buf_view(&file));
}

void
manifest_list_schema(int format_version, Buf *out)
{
    AUTO_BUF Buf partitions = {0};

    assert(format_version >= 2);
    buf_cstr(&partitions, "{\"type\":\"array\",\"items\":");
    put_record(&partitions, "r508", TABLE(summary_fields), format_version, STR_NULL);
    buf_cstr(&partitions, ",\"element-id\":508}");
    put_record(out, "manifest_file", TABLE(list_fields), format_version, buf_view(&partitions));
}
