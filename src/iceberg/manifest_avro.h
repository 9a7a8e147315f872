/* manifest_avro.h - the Avro records of manifests and manifest lists: their fields as one table
 * each, from which the schemas are written and by which files are written and read. Iceberg spec,
 * "Manifests", "Manifest Lists", "Appendix A: Avro". Private to the manifest files. */
#ifndef ICEBERG_MANIFEST_AVRO_H
#define ICEBERG_MANIFEST_AVRO_H

#include "iceberg/manifest.h"
#include "iceberg/partition.h"

/* Field ids of the spec. */
enum {
    ENTRY_STATUS = 0,
    ENTRY_SNAPSHOT_ID = 1,
    ENTRY_DATA_FILE = 2,
    ENTRY_SEQUENCE_NUMBER = 3,
    ENTRY_FILE_SEQUENCE_NUMBER = 4,

    FILE_PATH = 100,
    FILE_FORMAT = 101,
    FILE_PARTITION = 102,
    FILE_RECORD_COUNT = 103,
    FILE_SIZE = 104,
    FILE_COLUMN_SIZES = 108,
    FILE_VALUE_COUNTS = 109,
    FILE_NULL_COUNTS = 110,
    FILE_LOWER_BOUNDS = 125,
    FILE_UPPER_BOUNDS = 128,
    FILE_KEY_METADATA = 131,
    FILE_SPLIT_OFFSETS = 132,
    FILE_CONTENT = 134,
    FILE_EQUALITY_IDS = 135,
    FILE_NAN_COUNTS = 137,
    FILE_SORT_ORDER = 140,
    FILE_FIRST_ROW_ID = 142,
    FILE_REFERENCED = 143,
    FILE_CONTENT_OFFSET = 144,
    FILE_CONTENT_SIZE = 145,

    LIST_PATH = 500,
    LIST_LENGTH = 501,
    LIST_SPEC_ID = 502,
    LIST_ADDED_SNAPSHOT = 503,
    LIST_ADDED_FILES = 504,
    LIST_EXISTING_FILES = 505,
    LIST_DELETED_FILES = 506,
    LIST_PARTITIONS = 507,
    LIST_ADDED_ROWS = 512,
    LIST_EXISTING_ROWS = 513,
    LIST_DELETED_ROWS = 514,
    LIST_SEQUENCE_NUMBER = 515,
    LIST_MIN_SEQUENCE = 516,
    LIST_CONTENT = 517,
    LIST_KEY_METADATA = 519,
    LIST_FIRST_ROW_ID = 520,

    SUMMARY_CONTAINS_NULL = 509,
    SUMMARY_LOWER = 510,
    SUMMARY_UPPER = 511,
    SUMMARY_CONTAINS_NAN = 518,
};

typedef struct AvroField {
    int id;
    int since; /* format version that may write it */
    const char *name;
    const char *type; /* JSON; for records the caller's business */
    bool optional;    /* ["null", type], default null */
} AvroField;

typedef struct AvroTable {
    size_t count;
    const AvroField *fields; /* in Java's order */
} AvroTable;

AvroTable manifest_entry_fields(void);
AvroTable manifest_data_file_fields(void);
AvroTable manifest_list_fields(void);
AvroTable manifest_summary_fields(void);

/* The id of a field as some writer wrote it: its field-id, or by name where that is missing; -1:
 * neither is known. */
int manifest_field_id(AvroTable table, const OcfField *field);

/* Schema of the entries of a manifest; types has one item per field of the spec. */
void manifest_entry_schema(int format_version, const PartitionSpec *spec, const ResultType *types,
                           Buf *out);
void manifest_list_schema(int format_version, Buf *out);

#endif
