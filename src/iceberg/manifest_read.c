#include "iceberg/manifest_avro.h"
#include "iceberg/manifest_values.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- Maps from field ids ------------------------------------------------------------------- */

/* What one item of such a map is: a record of key and value, or (a real Avro map) the value after a
 * string key. */
typedef struct PairType {
    const OcfType *array;
    const OcfType *record; /* NULL: real map */
} PairType;

static bool
resolve_pairs(OcfInput *in, const OcfType *type, PairType *out, bool *out_present, Error *err)
{
    TRY(ocf_resolve(in, type, &type, err));
    *out_present = type->kind != OCF_NULL;
    if (!*out_present)
        return true;
    *out = (PairType){.array = type};
    if (type->kind == OCF_MAP)
        return true;
    if (type->kind != OCF_ARRAY || type->fields[0].type->kind != OCF_RECORD)
        return FAIL(err, ERR_INPUT, "no map where one belongs");
    out->record = type->fields[0].type;
    return true;
}

static bool
read_map_key(OcfInput *in, int *out, Error *err)
{
    static const OcfType string = {.kind = OCF_STRING};
    OcfScalar key;
    char text[16];
    char *end;

    TRY(ocf_read_scalar(in, &string, &key, err));
    if (key.bytes.len == 0 || key.bytes.len >= sizeof text)
        return FAIL(err, ERR_INPUT, "a map key that is no field id");
    memcpy(text, key.bytes.ptr, key.bytes.len);
    text[key.bytes.len] = '\0';
    *out = (int) strtol(text, &end, 10);
    if (*end != '\0')
        return FAIL(err, ERR_INPUT, "a map key that is no field id");
    return true;
}

static bool
read_pair(OcfInput *in, const PairType *pair, int *out_key, OcfScalar *out_value, Error *err)
{
    int64_t key = -1;

    if (pair->record == NULL) {
        TRY(read_map_key(in, out_key, err));
        return ocf_read_scalar(in, pair->array->fields[0].type, out_value, err);
    }
    for (size_t i = 0; i < pair->record->field_count; i++) {
        const OcfField *field = &pair->record->fields[i];

        if (str_eqc(field->name, "key"))
            TRY(manifest_read_int64(in, field->type, -1, &key, err));
        else if (str_eqc(field->name, "value"))
            TRY(ocf_read_scalar(in, field->type, out_value, err));
        else
            TRY(ocf_skip(in, field->type, err));
    }
    if (key < 0 || key > INT32_MAX)
        return FAIL(err, ERR_INPUT, "%" PRId64 " is no field id", key);
    *out_key = (int) key;
    return true;
}

static int
compare_counts(const void *a, const void *b)
{
    int x = ((const CountByField *) a)->field_id;
    int y = ((const CountByField *) b)->field_id;

    return x < y ? -1 : x > y;
}

static int
compare_bounds(const void *a, const void *b)
{
    int x = ((const BoundByField *) a)->field_id;
    int y = ((const BoundByField *) b)->field_id;

    return x < y ? -1 : x > y;
}

/* Both kinds of maps; exactly one of counts and bounds is not NULL. */
static bool
read_pairs(OcfInput *in, const PairType *pair, Arena *arena, Buf *counts, Buf *bounds, Error *err)
{
    OcfItems items = {0};

    for (;;) {
        OcfScalar value = {.kind = OCF_NULL};
        bool more;
        int key = 0;

        TRY(ocf_next_item(in, pair->array, &items, &more, err));
        if (!more)
            return true;
        TRY(read_pair(in, pair, &key, &value, err));
        if (value.kind == OCF_NULL)
            continue;
        if (counts != NULL && (value.kind == OCF_LONG || value.kind == OCF_INT))
            BUF_PUSH(counts, CountByField, ((CountByField){key, value.integer}));
        else if (bounds != NULL && value.kind == OCF_BYTES)
            BUF_PUSH(bounds, BoundByField, ((BoundByField){key, arena_str(arena, value.bytes)}));
        else
            return FAIL(err, ERR_INPUT, "a map value of the wrong type");
    }
}

static bool
read_counts(Arena *arena, OcfInput *in, const OcfType *type, CountByField **out, size_t *out_count,
            Error *err)
{
    AUTO_BUF Buf items = {0};
    PairType pair;
    bool present;

    TRY(resolve_pairs(in, type, &pair, &present, err));
    if (!present)
        return true;
    TRY(read_pairs(in, &pair, arena, &items, NULL, err));
    *out_count = BUF_COUNT(&items, CountByField);
    *out = ARENA_ARRAY(arena, CountByField, *out_count + 1); /* never NULL: it was there */
    if (*out_count > 0)
        memcpy(*out, items.ptr, items.len);
    qsort(*out, *out_count, sizeof **out, compare_counts);
    return true;
}

static bool
read_bounds(Arena *arena, OcfInput *in, const OcfType *type, BoundByField **out, size_t *out_count,
            Error *err)
{
    AUTO_BUF Buf items = {0};
    PairType pair;
    bool present;

    TRY(resolve_pairs(in, type, &pair, &present, err));
    if (!present)
        return true;
    TRY(read_pairs(in, &pair, arena, NULL, &items, err));
    *out_count = BUF_COUNT(&items, BoundByField);
    *out = ARENA_ARRAY(arena, BoundByField, *out_count + 1);
    if (*out_count > 0)
        memcpy(*out, items.ptr, items.len);
    qsort(*out, *out_count, sizeof **out, compare_bounds);
    return true;
}

/* A list of ints or longs, or null. */
static bool
read_numbers(OcfInput *in, const OcfType *type, Buf *out, bool *out_present, Error *err)
{
    OcfItems items = {0};

    TRY(ocf_resolve(in, type, &type, err));
    *out_present = type->kind != OCF_NULL;
    if (!*out_present)
        return true;
    for (;;) {
        bool more;
        int64_t n = 0;

        TRY(ocf_next_item(in, type, &items, &more, err));
        if (!more)
            return true;
        TRY(manifest_read_int64(in, type->fields[0].type, 0, &n, err));
        BUF_PUSH(out, int64_t, n);
    }
}

static bool
read_split_offsets(Arena *arena, OcfInput *in, const OcfType *type, DataFile *file, Error *err)
{
    AUTO_BUF Buf numbers = {0};
    bool present;

    TRY(read_numbers(in, type, &numbers, &present, err));
    if (!present)
        return true;
    file->split_count = BUF_COUNT(&numbers, int64_t);
    file->split_offsets = ARENA_ARRAY(arena, int64_t, file->split_count + 1);
    if (numbers.len > 0)
        memcpy(file->split_offsets, numbers.ptr, numbers.len);
    return true;
}

static bool
read_equality_ids(Arena *arena, OcfInput *in, const OcfType *type, DataFile *file, Error *err)
{
    AUTO_BUF Buf numbers = {0};
    bool present;

    TRY(read_numbers(in, type, &numbers, &present, err));
    if (!present)
        return true;
    file->equality_id_count = BUF_COUNT(&numbers, int64_t);
    file->equality_ids = ARENA_ARRAY(arena, int, file->equality_id_count + 1);
    for (size_t i = 0; i < file->equality_id_count; i++)
        file->equality_ids[i] = (int) BUF_AT(&numbers, int64_t, i);
    return true;
}

/* --- Data files ---------------------------------------------------------------------------- */

static bool
refuse_encrypted(OcfInput *in, const OcfType *type, Error *err)
{
    OcfScalar value;

    TRY(ocf_read_scalar(in, type, &value, err));
    if (value.kind != OCF_NULL)
        return FAIL(err, ERR_INPUT, "a file is encrypted, which is not supported");
    return true;
}

#define READ_COUNTS(map) read_counts(arena, in, type, &(map).items, &(map).count, err)
#define READ_BOUNDS(map) read_bounds(arena, in, type, &(map).items, &(map).count, err)

static bool
read_metrics_field(Arena *arena, OcfInput *in, const OcfType *type, int id, DataFile *file,
                   Error *err)
{
    switch (id) {
    case FILE_COLUMN_SIZES:
        return READ_COUNTS(file->column_sizes);
    case FILE_VALUE_COUNTS:
        return READ_COUNTS(file->value_counts);
    case FILE_NULL_COUNTS:
        return READ_COUNTS(file->null_counts);
    case FILE_NAN_COUNTS:
        return READ_COUNTS(file->nan_counts);
    case FILE_LOWER_BOUNDS:
        return READ_BOUNDS(file->lower_bounds);
    case FILE_UPPER_BOUNDS:
        return READ_BOUNDS(file->upper_bounds);
    case FILE_SPLIT_OFFSETS:
        return read_split_offsets(arena, in, type, file, err);
    case FILE_EQUALITY_IDS:
        return read_equality_ids(arena, in, type, file, err);
    default:
        return ocf_skip(in, type, err);
    }
}

static bool
read_file_field(Arena *arena, OcfInput *in, const OcfType *type, int id, DataFile *file, Error *err)
{
    int64_t number = -1;

    switch (id) {
    case FILE_CONTENT:
        TRY(manifest_read_int64(in, type, CONTENT_DATA, &number, err));
        if (number < CONTENT_DATA || number > CONTENT_EQUALITY_DELETES)
            return FAIL(err, ERR_INPUT, "content %" PRId64 " is unknown", number);
        file->content = (FileContent) number;
        return true;
    case FILE_PATH:
        return manifest_read_text(arena, in, type, &file->path, err);
    case FILE_FORMAT:
        return manifest_read_text(arena, in, type, &file->format, err);
    case FILE_PARTITION:
        return partition_read_avro(arena, in, type, &file->partition, err);
    case FILE_RECORD_COUNT:
        return manifest_read_int64(in, type, -1, &file->record_count, err);
    case FILE_SIZE:
        return manifest_read_int64(in, type, -1, &file->file_bytes, err);
    case FILE_KEY_METADATA:
        return refuse_encrypted(in, type, err);
    case FILE_SORT_ORDER:
        TRY(manifest_read_int64(in, type, -1, &number, err));
        file->sort_order_id = (int) number;
        return true;
    case FILE_FIRST_ROW_ID:
        return manifest_read_int64(in, type, -1, &file->first_row_id, err);
    case FILE_REFERENCED:
        return manifest_read_text(arena, in, type, &file->referenced_data_file, err);
    case FILE_CONTENT_OFFSET:
        return manifest_read_int64(in, type, -1, &file->content_offset, err);
    case FILE_CONTENT_SIZE:
        return manifest_read_int64(in, type, -1, &file->content_bytes, err);
    default:
        return read_metrics_field(arena, in, type, id, file, err);
    }
}

static bool
read_data_file(Arena *arena, OcfInput *in, const OcfType *type, DataFile *file, Error *err)
{
    TRY(ocf_resolve(in, type, &type, err));
    if (type->kind != OCF_RECORD)
        return FAIL(err, ERR_INPUT, "data_file is not a record");
    for (size_t i = 0; i < type->field_count; i++) {
        const OcfField *field = &type->fields[i];
        int id = manifest_field_id(manifest_data_file_fields(), field);

        if (!read_file_field(arena, in, field->type, id, file, err))
            return WRAP(err, "%.*s", STR_ARG(field->name));
    }
    if (file->path.len == 0)
        return FAIL(err, ERR_INPUT, "no file_path");
    if (file->record_count < 0 || file->file_bytes < 0)
        return FAIL(err, ERR_INPUT, "%.*s: no record_count or file_size_in_bytes",
                    STR_ARG(file->path));
    return true;
}

/* --- Entries ------------------------------------------------------------------------------- */

static bool
read_entry_field(Arena *arena, OcfInput *in, const OcfField *field, ManifestEntry *entry,
                 Error *err)
{
    int64_t number = -1;

    switch (manifest_field_id(manifest_entry_fields(), field)) {
    case ENTRY_STATUS:
        TRY(manifest_read_int64(in, field->type, -1, &number, err));
        if (number < ENTRY_EXISTING || number > ENTRY_DELETED)
            return FAIL(err, ERR_INPUT, "status %" PRId64 " is unknown", number);
        entry->status = (EntryStatus) number;
        return true;
    case ENTRY_SNAPSHOT_ID:
        return manifest_read_int64(in, field->type, 0, &entry->snapshot_id, err);
    case ENTRY_SEQUENCE_NUMBER:
        return manifest_read_int64(in, field->type, -1, &entry->sequence_number, err);
    case ENTRY_FILE_SEQUENCE_NUMBER:
        return manifest_read_int64(in, field->type, -1, &entry->file_sequence_number, err);
    case ENTRY_DATA_FILE:
        return read_data_file(arena, in, field->type, &entry->file, err);
    default:
        return ocf_skip(in, field->type, err);
    }
}

/* Iceberg spec, "Manifest inheritance", "First Row ID Inheritance". */
static void
inherit(ManifestEntry *entry, const ManifestFile *file, int64_t *next_row_id)
{
    bool may_inherit = entry->status == ENTRY_ADDED || file->sequence_number == 0;

    if (entry->snapshot_id == 0)
        entry->snapshot_id = file->added_snapshot_id;
    if (entry->sequence_number < 0 && may_inherit)
        entry->sequence_number = file->sequence_number;
    if (entry->file_sequence_number < 0 && may_inherit)
        entry->file_sequence_number = file->sequence_number;
    if (*next_row_id >= 0 && entry->status != ENTRY_DELETED && entry->file.first_row_id < 0 &&
        entry->file.content == CONTENT_DATA) {
        entry->file.first_row_id = *next_row_id;
        *next_row_id += entry->file.record_count;
    }
}

static bool
read_entries(Arena *arena, OcfReader *reader, const ManifestFile *file, Buf *out, Error *err)
{
    const OcfType *type = ocf_record_type(reader);
    int64_t next_row_id = file->deletes ? -1 : file->first_row_id;

    for (;;) {
        ManifestEntry entry = {.sequence_number = -1, .file_sequence_number = -1};
        OcfInput *in = NULL;

        entry.file = (DataFile){
            .spec_id = file->spec_id,
            .record_count = -1,
            .file_bytes = -1,
            .sort_order_id = -1,
            .first_row_id = -1,
            .content_offset = -1,
            .content_bytes = -1,
        };
        TRY(ocf_next(reader, &in, err));
        if (in == NULL)
            return true;
        for (size_t i = 0; i < type->field_count; i++)
            TRY(read_entry_field(arena, in, &type->fields[i], &entry, err));
        if (entry.file.path.len == 0)
            return FAIL(err, ERR_INPUT, "an entry without data_file");
        inherit(&entry, file, &next_row_id);
        BUF_PUSH(out, ManifestEntry, entry);
    }
}

bool
manifest_read(Arena *arena, Str bytes, const ManifestFile *file, ManifestEntry **out_entries,
              size_t *out_count, Error *err)
{
    AUTO_OCF OcfReader *reader = NULL;
    AUTO_BUF Buf entries = {0};

    if (!ocf_open(arena, bytes, &reader, err) || !read_entries(arena, reader, file, &entries, err))
        return WRAP(err, "manifest %.*s", STR_ARG(file->path));
    *out_count = BUF_COUNT(&entries, ManifestEntry);
    *out_entries = ARENA_ARRAY(arena, ManifestEntry, *out_count);
    if (*out_count > 0)
        memcpy(*out_entries, entries.ptr, entries.len);
    return true;
}
