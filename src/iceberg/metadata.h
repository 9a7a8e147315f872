/* metadata.h - table metadata (vN.metadata.json), format versions 1 to 3 read, 2 and 3 written.
 *
 * Parsing keeps what it does not model (unknown keys, statistics, encryption keys, partition specs
 * and sort orders it cannot use) so that writing a table somebody else made loses nothing. Iceberg
 * spec, "Table Metadata", "Appendix C". Pure: no network, no clock, no randomness - times, uuids
 * and snapshot ids are arguments. Everything lives in the arena given. */
#ifndef ICEBERG_METADATA_H
#define ICEBERG_METADATA_H

#include "iceberg/schema.h"

typedef struct Property {
    Str key;
    Str value;
} Property;

typedef struct PropertyList {
    size_t count;
    Property *items; /* sorted by key */
} PropertyList;

typedef struct PartitionField {
    int source_id;
    int field_id; /* 1000 ... */
    Str name;
    Str transform; /* "identity", "bucket[16]", ... */
} PartitionField;

typedef struct PartitionSpec {
    int spec_id;
    int field_count;
    PartitionField *fields;
    Str json; /* the whole object, as read; STR_NULL: made here */
} PartitionSpec;

typedef struct SortField {
    int source_id;
    Str transform; /* as in PartitionField */
    bool descending;
    bool nulls_first;
} SortField;

typedef struct SortOrder {
    int order_id; /* 0: unsorted, which has no fields */
    int field_count;
    SortField *fields;
    Str json; /* the whole object, as read; STR_NULL: made here */
} SortOrder;

typedef struct Snapshot {
    int64_t snapshot_id;
    int64_t parent_id; /* 0: none */
    int64_t sequence_number;
    int64_t timestamp_ms;
    Str manifest_list;    /* full URI */
    PropertyList summary; /* "operation" included */
    int schema_id;        /* -1: not given */
    int64_t first_row_id; /* version 3: row ids of new manifests begin here; -1: not given */
    int64_t added_rows;   /* version 3: how many row ids it takes; -1: not given */
    Str json;             /* the whole object, as read; STR_NULL: made here */
} Snapshot;

typedef struct SnapshotRef {
    Str name;
    int64_t snapshot_id;
    bool is_tag;
    Str json; /* the whole object, as read */
} SnapshotRef;

typedef struct MetadataLogEntry {
    Str file;
    int64_t timestamp_ms;
} MetadataLogEntry;

typedef struct SnapshotLogEntry {
    int64_t snapshot_id;
    int64_t timestamp_ms;
} SnapshotLogEntry;

typedef struct TableMetadata {
    int format_version;
    Str table_uuid;
    Str location;
    int64_t last_sequence_number;
    int64_t last_updated_ms;
    int last_column_id;
    size_t schema_count;
    IcebergSchema *schemas;
    int current_schema_id;
    size_t spec_count;
    PartitionSpec *specs;
    int default_spec_id;
    int last_partition_id;
    size_t sort_order_count;
    SortOrder *sort_orders;
    int default_sort_order_id;
    PropertyList properties;
    int64_t current_snapshot_id; /* 0: none */
    int64_t next_row_id;         /* version 3: above every row id that was assigned */
    size_t snapshot_count;
    Snapshot *snapshots; /* oldest first */
    size_t snapshot_log_count;
    SnapshotLogEntry *snapshot_log;
    size_t metadata_log_count;
    MetadataLogEntry *metadata_log;
    size_t ref_count;
    SnapshotRef *refs;
    Str rest; /* JSON object with the keys not modelled above, e.g. statistics */
} TableMetadata;

/* Version 1 is brought to today's shape ("schema" and "partition-spec" become lists, a main branch
 * appears); unpartitioned fields without ids get theirs. ERR_INPUT names what is wrong ("metadata:
 * snapshots[3]: no manifest-list"). */
bool metadata_parse(Arena *arena, Str json, TableMetadata **out_metadata, Error *err) WARN_UNUSED;
/* Compact JSON, keys in Java's order. A version 1 table is written as version 2 (the upgrade needs
 * nothing else); version 3 stays version 3, with everything it came with. */
void metadata_write(const TableMetadata *metadata, Buf *out);

/* The same table as metadata_parse() reads from what metadata_write() writes, in an arena of its
 * own. The history, which is most of it, is copied without going through JSON. Fails only where
 * metadata_parse() would. */
bool metadata_copy(Arena *arena, const TableMetadata *metadata, TableMetadata **out_metadata,
                   Error *err) WARN_UNUSED;

/* The array of an order's fields. */
void sort_fields_write(JsonWriter *json, const SortOrder *order);
/* The array of a spec's fields: a manifest's "partition-spec" is just this. */
void partition_fields_write(JsonWriter *json, const PartitionSpec *spec);

typedef struct TableCreate {
    const char *uuid;
    const char *location;
    const IcebergSchema *schema;
    const PartitionSpec *spec;   /* fields without ids; NULL: unpartitioned */
    const SortOrder *sort_order; /* without an id; NULL: unsorted */
    int64_t now_ms;
    int format_version; /* 2 or 3 */
    PropertyList properties;
} TableCreate;

/* A new, empty table. */
TableMetadata *metadata_create(Arena *arena, const TableCreate *create);

/* A copy of a table's metadata under version 3: row ids begin at 0, and are assigned by the next
 * snapshot to all data files that are there. Spec, "Row Lineage for Upgraded Tables". Nothing goes
 * back to version 2. What did not change is shared. */
TableMetadata *metadata_upgrade(Arena *arena, const TableMetadata *metadata);

const IcebergSchema *metadata_current_schema(const TableMetadata *metadata);
const Snapshot *metadata_current_snapshot(const TableMetadata *metadata); /* NULL: none */
const Snapshot *metadata_find_snapshot(const TableMetadata *metadata, int64_t snapshot_id);
/* NULL when there is none. */
const IcebergSchema *metadata_find_schema(const TableMetadata *metadata, int schema_id);
const PartitionSpec *metadata_find_spec(const TableMetadata *metadata, int spec_id);
const SortOrder *metadata_find_sort_order(const TableMetadata *metadata, int order_id);

/* Value of a table property or summary entry; STR_NULL when absent. */
Str property_get(const PropertyList *list, const char *key);
PropertyList property_list_copy(Arena *arena, const PropertyList *list); /* deep */
/* A new list with key set to value (value.ptr == NULL: removed). */
PropertyList property_set(Arena *arena, const PropertyList *list, Str key, Str value);

/* How much history metadata_add_snapshot() keeps. */
typedef struct Retention {
    int64_t keep_hourly_ms; /* the last snapshot of each hour up to this age */
    int64_t keep_all_ms;    /* the others that are younger than this */
    size_t snapshots_min;   /* the last ones stay whatever their age, the newest in any case */
    size_t snapshots_max;   /* never more young ones, the youngest win; 0: no limit */
    size_t metadata_log_max;
} Retention;

/* A copy of `metadata` in which `snapshot` is the current one on main: log entries, refs, sequence
 * number, last-updated; previous_file (NULL: none) joins the metadata log; history thinned by
 * `retention` (NULL: not at all), never a snapshot that a branch or tag points at. The snapshot-log
 * drops entries before a removed one, as the spec says; statistics of removed snapshots go too.
 * In version 3 the snapshot takes its row ids: its first_row_id is the metadata's next_row_id.
 * What did not change is shared with `metadata`, which must outlive the copy. */
TableMetadata *metadata_add_snapshot(Arena *arena, const TableMetadata *metadata,
                                     const Snapshot *snapshot, const char *previous_file,
                                     const Retention *retention);

/* A copy of `metadata` with other properties, and nothing else changed but last-updated and, as
 * above, the metadata log. */
TableMetadata *metadata_set_properties(Arena *arena, const TableMetadata *metadata,
                                       const PropertyList *properties, const char *previous_file,
                                       int64_t now_ms);

#endif
