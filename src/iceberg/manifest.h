/* manifest.h - manifests and manifest lists: Avro files, by the letter of the spec ("Manifests",
 * "Manifest Lists"). Avro schemas with field ids in Java's order. Pure. */
#ifndef ICEBERG_MANIFEST_H
#define ICEBERG_MANIFEST_H

#include "iceberg/metadata.h"

typedef enum FileContent {
    CONTENT_DATA = 0,
    CONTENT_POSITION_DELETES = 1,
    CONTENT_EQUALITY_DELETES = 2
} FileContent;

typedef enum EntryStatus { ENTRY_EXISTING = 0, ENTRY_ADDED = 1, ENTRY_DELETED = 2 } EntryStatus;

/* Per leaf column, sorted by field id. */
typedef struct CountByField {
    int field_id;
    int64_t count;
} CountByField;

typedef struct BoundByField {
    int field_id;
    Str value; /* binary single-value encoding */
} BoundByField;

/* NOLINTBEGIN(bugprone-macro-parentheses): Type is a type */
#define FIELD_MAP(Type)                                                                            \
    struct {                                                                                       \
        size_t count;                                                                              \
        Type *items; /* NULL and 0: absent */                                                      \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

typedef struct DataFile {
    FileContent content;
    Str path;      /* full URI */
    Str format;    /* "PARQUET" */
    int spec_id;   /* of the manifest that has it */
    Str partition; /* the tuple, packed as iceberg/partition.h says; empty for unpartitioned */
    int64_t record_count;
    int64_t file_bytes;
    FIELD_MAP(CountByField) column_sizes;
    FIELD_MAP(CountByField) value_counts;
    FIELD_MAP(CountByField) null_counts;
    FIELD_MAP(CountByField) nan_counts;
    FIELD_MAP(BoundByField) lower_bounds;
    FIELD_MAP(BoundByField) upper_bounds;
    size_t split_count;
    int64_t *split_offsets;
    size_t equality_id_count;
    int *equality_ids;
    int sort_order_id;        /* -1: null */
    Str referenced_data_file; /* STR_NULL: none */
    /* version 3; -1: null */
    int64_t first_row_id; /* of a data file: row n has the row id first_row_id + n */
    int64_t content_offset;
    int64_t content_bytes;
} DataFile;

typedef struct ManifestEntry {
    EntryStatus status;
    int64_t snapshot_id;
    int64_t sequence_number;      /* data sequence number; -1: null (inherited) */
    int64_t file_sequence_number; /* -1: null */
    DataFile file;
} ManifestEntry;

typedef struct FieldSummary {
    bool contains_null;
    int contains_nan; /* -1: null */
    Str lower;        /* STR_NULL: null */
    Str upper;
} FieldSummary;

typedef struct ManifestFile {
    Str path; /* full URI */
    int64_t length;
    int spec_id;
    bool deletes; /* content */
    int64_t sequence_number;
    int64_t min_sequence_number;
    int64_t added_snapshot_id;
    int added_files, existing_files, deleted_files;
    int64_t added_rows, existing_rows, deleted_rows;
    size_t partition_count;
    FieldSummary *partitions;
    int64_t first_row_id; /* -1: null */
} ManifestFile;

typedef struct ManifestHeader {
    int format_version;
    const IcebergSchema *schema;
    const PartitionSpec *spec;
    bool deletes;
    int64_t snapshot_id;     /* the snapshot that will list it */
    int64_t sequence_number; /* its sequence number, for the summary record only */
} ManifestHeader;

/* The Avro file's bytes into out, and its manifest-list record (without path) into *out_file, whose
 * partition summaries are in the arena. ADDED entries are written with null sequence numbers and,
 * where snapshot_id is 0, the header's; EXISTING and DELETED ones must carry theirs, and in version
 * 3 the row id of their first row as manifest_read() resolved it. The spec must
 * be one that partition_result_types() understands (unpartitioned always is). */
void manifest_write(Arena *arena, const ManifestHeader *header, const ManifestEntry *entries,
                    size_t count, Buf *out, ManifestFile *out_file);

/* Entries with inheritance resolved from the manifest-list record `file`. Strings are copied into
 * the arena. Reads files of other writers: fields by id, unions in either order, unknown fields
 * skipped, null, deflate and zstandard codecs. Encrypted files are refused. */
bool manifest_read(Arena *arena, Str bytes, const ManifestFile *file, ManifestEntry **out_entries,
                   size_t *out_count, Error *err) WARN_UNUSED;

typedef struct ManifestListHeader {
    int format_version;
    int64_t snapshot_id;
    int64_t parent_id; /* 0: none */
    int64_t sequence_number;
    int64_t first_row_id; /* version 3: the snapshot's */
} ManifestListHeader;

/* Version 3: data manifests that have no first_row_id get theirs, in the order of the list: new
 * ones, and after an upgrade those that are carried. Returns how many row ids that takes, the
 * snapshot's added-rows. Spec, "First Row ID Assignment". */
int64_t manifest_assign_row_ids(ManifestFile *files, size_t count, int64_t first_row_id);

void manifest_list_write(const ManifestListHeader *header, const ManifestFile *files, size_t count,
                         Buf *out);
bool manifest_list_read(Arena *arena, Str bytes, ManifestFile **out_files, size_t *out_count,
                        Error *err) WARN_UNUSED;

#endif
