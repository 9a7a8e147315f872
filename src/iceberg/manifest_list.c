#include "iceberg/manifest_avro.h"
#include "iceberg/manifest_values.h"

#include <assert.h>
#include <inttypes.h>

bool
manifest_read_int64(OcfInput *in, const OcfType *type, int64_t if_null, int64_t *out, Error *err)
{
    OcfScalar value;

    TRY(ocf_read_scalar(in, type, &value, err));
    if (value.kind != OCF_NULL && value.kind != OCF_INT && value.kind != OCF_LONG)
        return FAIL(err, ERR_INPUT, "not an int or long");
    *out = value.kind == OCF_NULL ? if_null : value.integer;
    return true;
}

bool
manifest_read_text(Arena *arena, OcfInput *in, const OcfType *type, Str *out, Error *err)
{
    OcfScalar value;

    TRY(ocf_read_scalar(in, type, &value, err));
    if (value.kind != OCF_NULL && value.kind != OCF_STRING && value.kind != OCF_BYTES)
        return FAIL(err, ERR_INPUT, "not a string or bytes");
    *out = value.kind == OCF_NULL ? STR_NULL : arena_str(arena, value.bytes);
    return true;
}

/* --- Writing ------------------------------------------------------------------------------- */

static void
put_optional(Buf *out, Str bytes)
{
    ocf_put_long(out, bytes.ptr == NULL ? 0 : 1);
    if (bytes.ptr != NULL)
        ocf_put_bytes(out, bytes);
}

static void
put_partitions(Buf *out, const ManifestFile *file)
{
    ocf_put_long(out, 1); /* Java writes an empty list for unpartitioned tables, not null */
    if (file->partition_count > 0)
        ocf_put_long(out, (int64_t) file->partition_count);
    for (size_t i = 0; i < file->partition_count; i++) {
        const FieldSummary *summary = &file->partitions[i];

        ocf_put_bool(out, summary->contains_null);
        ocf_put_long(out, summary->contains_nan < 0 ? 0 : 1);
        if (summary->contains_nan >= 0)
            ocf_put_bool(out, summary->contains_nan != 0);
        put_optional(out, summary->lower);
        put_optional(out, summary->upper);
    }
    ocf_put_long(out, 0);
}

static void
put_list_field(Buf *out, const ManifestFile *file, int id)
{
    switch (id) {
    case LIST_PATH:
        ocf_put_bytes(out, file->path);
        break;
    case LIST_LENGTH:
        ocf_put_long(out, file->length);
        break;
    case LIST_SPEC_ID:
        ocf_put_long(out, file->spec_id);
        break;
    case LIST_CONTENT:
        ocf_put_long(out, file->deletes ? 1 : 0);
        break;
    case LIST_SEQUENCE_NUMBER:
        ocf_put_long(out, file->sequence_number);
        break;
    case LIST_MIN_SEQUENCE:
        ocf_put_long(out, file->min_sequence_number);
        break;
    case LIST_ADDED_SNAPSHOT:
        ocf_put_long(out, file->added_snapshot_id);
        break;
    case LIST_ADDED_FILES:
        ocf_put_long(out, file->added_files);
        break;
    case LIST_EXISTING_FILES:
        ocf_put_long(out, file->existing_files);
        break;
    case LIST_DELETED_FILES:
        ocf_put_long(out, file->deleted_files);
        break;
    case LIST_ADDED_ROWS:
        ocf_put_long(out, file->added_rows);
        break;
    case LIST_EXISTING_ROWS:
        ocf_put_long(out, file->existing_rows);
        break;
    case LIST_DELETED_ROWS:
        ocf_put_long(out, file->deleted_rows);
        break;
    case LIST_PARTITIONS:
        put_partitions(out, file);
        break;
    case LIST_KEY_METADATA: /* manifest_list_read() refuses it */
        put_optional(out, STR_NULL);
        break;
    case LIST_FIRST_ROW_ID:
        ocf_put_long(out, file->first_row_id < 0 ? 0 : 1);
        if (file->first_row_id >= 0)
            ocf_put_long(out, file->first_row_id);
        break;
    default:
        assert(false && "every field of the table has a case");
    }
}

int64_t
manifest_assign_row_ids(ManifestFile *files, size_t count, int64_t first_row_id)
{
    int64_t next = first_row_id;

    for (size_t i = 0; i < count; i++) {
        if (files[i].deletes || files[i].first_row_id >= 0)
            continue;
        files[i].first_row_id = next;
        next += files[i].added_rows + files[i].existing_rows;
    }
    return next - first_row_id;
}

void
manifest_list_write(const ManifestListHeader *header, const ManifestFile *files, size_t count,
                    Buf *out)
{
    AUTO_BUF Buf schema = {0};
    AvroTable table = manifest_list_fields();
    char snapshot_id[24];
    char parent_id[24] = "null";
    char sequence_number[24];
    char version[16];
    char first_row_id[24];
    OcfWriter ocf;

    snprintf(snapshot_id, sizeof snapshot_id, "%" PRId64, header->snapshot_id);
    if (header->parent_id != 0)
        snprintf(parent_id, sizeof parent_id, "%" PRId64, header->parent_id);
    snprintf(sequence_number, sizeof sequence_number, "%" PRId64, header->sequence_number);
    snprintf(version, sizeof version, "%d", header->format_version);
    snprintf(first_row_id, sizeof first_row_id, "%" PRId64, header->first_row_id);

    /* what Java writes; the spec asks for none of it */
    const OcfMeta meta[] = {
        {"snapshot-id", str_of(snapshot_id)},         {"parent-snapshot-id", str_of(parent_id)},
        {"sequence-number", str_of(sequence_number)}, {"format-version", str_of(version)},
        {"first-row-id", str_of(first_row_id)}, /* from version 3 on */
    };
    size_t meta_count = sizeof meta / sizeof meta[0] - (header->format_version < 3);

    manifest_list_schema(header->format_version, &schema);
    ocf_begin(&ocf, out,
              &(OcfHeader){.schema = buf_view(&schema),
                           .codec = OCF_CODEC_DEFLATE,
                           .meta_count = meta_count,
                           .meta = meta});
    for (size_t i = 0; i < count; i++) {
        assert(files[i].path.len > 0 && files[i].length > 0);
        assert(header->format_version < 3 || files[i].deletes == (files[i].first_row_id < 0));
        for (size_t j = 0; j < table.count; j++)
            if (table.fields[j].since <= header->format_version)
                put_list_field(&ocf.block, &files[i], table.fields[j].id);
        ocf_end_record(&ocf);
    }
    ocf_finish(&ocf);
}

/* --- Reading ------------------------------------------------------------------------------- */

static bool
read_bool(OcfInput *in, const OcfType *type, int if_null, int *out, Error *err)
{
    OcfScalar value;

    TRY(ocf_read_scalar(in, type, &value, err));
    if (value.kind != OCF_NULL && value.kind != OCF_BOOLEAN)
        return FAIL(err, ERR_INPUT, "not a boolean");
    *out = value.kind == OCF_NULL ? if_null : (int) value.integer;
    return true;
}

static bool
read_summary(Arena *arena, OcfInput *in, const OcfType *type, FieldSummary *out, Error *err)
{
    TRY(ocf_resolve(in, type, &type, err));
    if (type->kind != OCF_RECORD)
        return FAIL(err, ERR_INPUT, "not a record");
    out->contains_nan = -1;
    for (size_t i = 0; i < type->field_count; i++) {
        const OcfField *field = &type->fields[i];
        int flag = 0;

        switch (manifest_field_id(manifest_summary_fields(), field)) {
        case SUMMARY_CONTAINS_NULL:
            TRY(read_bool(in, field->type, 1, &flag, err));
            out->contains_null = flag != 0;
            break;
        case SUMMARY_CONTAINS_NAN:
            TRY(read_bool(in, field->type, -1, &out->contains_nan, err));
            break;
        case SUMMARY_LOWER:
            TRY(manifest_read_text(arena, in, field->type, &out->lower, err));
            break;
        case SUMMARY_UPPER:
            TRY(manifest_read_text(arena, in, field->type, &out->upper, err));
            break;
        default:
            TRY(ocf_skip(in, field->type, err));
        }
    }
    return true;
}

static bool
read_partitions(Arena *arena, OcfInput *in, const OcfType *type, ManifestFile *file, Error *err)
{
    AUTO_BUF Buf summaries = {0};
    OcfItems items = {0};

    TRY(ocf_resolve(in, type, &type, err));
    if (type->kind == OCF_NULL)
        return true;
    for (;;) {
        FieldSummary summary = {0};
        bool more;

        TRY(ocf_next_item(in, type, &items, &more, err));
        if (!more)
            break;
        TRY(read_summary(arena, in, type->fields[0].type, &summary, err));
        BUF_PUSH(&summaries, FieldSummary, summary);
    }
    file->partition_count = BUF_COUNT(&summaries, FieldSummary);
    file->partitions = ARENA_ARRAY(arena, FieldSummary, file->partition_count);
    if (summaries.len > 0)
        memcpy(file->partitions, summaries.ptr, summaries.len);
    return true;
}

static bool
read_count(OcfInput *in, const OcfType *type, int *out, Error *err)
{
    int64_t n = 0;

    TRY(manifest_read_int64(in, type, 0, &n, err));
    if (n < 0 || n > INT32_MAX)
        return FAIL(err, ERR_INPUT, "%" PRId64 " is out of range", n);
    *out = (int) n;
    return true;
}

static bool
read_list_field(Arena *arena, OcfInput *in, const OcfType *type, int id, ManifestFile *file,
                Error *err)
{
    int number = 0;
    Str key = STR_NULL;

    switch (id) {
    case LIST_PATH:
        return manifest_read_text(arena, in, type, &file->path, err);
    case LIST_LENGTH:
        return manifest_read_int64(in, type, 0, &file->length, err);
    case LIST_SPEC_ID:
        return read_count(in, type, &file->spec_id, err);
    case LIST_CONTENT:
        TRY(read_count(in, type, &number, err));
        if (number > 1)
            return FAIL(err, ERR_INPUT, "%d is unknown", number);
        file->deletes = number == 1;
        return true;
    case LIST_SEQUENCE_NUMBER:
        return manifest_read_int64(in, type, 0, &file->sequence_number, err);
    case LIST_MIN_SEQUENCE:
        return manifest_read_int64(in, type, 0, &file->min_sequence_number, err);
    case LIST_ADDED_SNAPSHOT:
        return manifest_read_int64(in, type, 0, &file->added_snapshot_id, err);
    case LIST_ADDED_FILES:
        return read_count(in, type, &file->added_files, err);
    case LIST_EXISTING_FILES:
        return read_count(in, type, &file->existing_files, err);
    case LIST_DELETED_FILES:
        return read_count(in, type, &file->deleted_files, err);
    case LIST_ADDED_ROWS:
        return manifest_read_int64(in, type, 0, &file->added_rows, err);
    case LIST_EXISTING_ROWS:
        return manifest_read_int64(in, type, 0, &file->existing_rows, err);
    case LIST_DELETED_ROWS:
        return manifest_read_int64(in, type, 0, &file->deleted_rows, err);
    case LIST_PARTITIONS:
        return read_partitions(arena, in, type, file, err);
    case LIST_KEY_METADATA:
        TRY(manifest_read_text(arena, in, type, &key, err));
        if (key.ptr != NULL)
            return FAIL(err, ERR_INPUT, "the manifest is encrypted, which is not supported");
        return true;
    case LIST_FIRST_ROW_ID:
        return manifest_read_int64(in, type, -1, &file->first_row_id, err);
    default:
        return ocf_skip(in, type, err);
    }
}

static bool
read_files(Arena *arena, OcfReader *reader, Buf *out, Error *err)
{
    const OcfType *type = ocf_record_type(reader);

    for (;;) {
        ManifestFile file = {.first_row_id = -1};
        OcfInput *in = NULL;

        TRY(ocf_next(reader, &in, err));
        if (in == NULL)
            return true;
        for (size_t i = 0; i < type->field_count; i++) {
            const OcfField *field = &type->fields[i];
            int id = manifest_field_id(manifest_list_fields(), field);

            if (!read_list_field(arena, in, field->type, id, &file, err))
                return WRAP(err, "%.*s", STR_ARG(field->name));
        }
        if (file.path.len == 0)
            return FAIL(err, ERR_INPUT, "no manifest_path");
        if (file.deletes)
            file.first_row_id = -1; /* means nothing there, whoever wrote it */
        BUF_PUSH(out, ManifestFile, file);
    }
}

bool
manifest_list_read(Arena *arena, Str bytes, ManifestFile **out_files, size_t *out_count, Error *err)
{
    AUTO_OCF OcfReader *reader = NULL;
    AUTO_BUF Buf files = {0};

    if (!ocf_open(arena, bytes, &reader, err) || !read_files(arena, reader, &files, err))
        return WRAP(err, "manifest list");
    *out_count = BUF_COUNT(&files, ManifestFile);
    *out_files = ARENA_ARRAY(arena, ManifestFile, *out_count);
    if (*out_count > 0)
        memcpy(*out_files, files.ptr, files.len);
    return true;
}
