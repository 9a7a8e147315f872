/* write_table.c - make the metadata of an Iceberg table whose data files somebody else wrote.
 *
 *     write_table FOLDER SIZE_A SIZE_B SIZE_DELETES
 *
 * test/golden/check_written.py writes FOLDER/data/{a,b,deletes}.parquet, runs this, and has
 * independent readers read the result. Every step of a table's life is there, one snapshot each:
 * empty table; append a; delete two rows of a; append b, merging manifests; remove b. */
#include "iceberg/deletes.h"
#include "iceberg/manifest.h"
#include "iceberg/metadata.h"
#include "iceberg/metrics.h"
#include "iceberg/snapshot.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS_A = 1000, ROWS_B = 100, PATH_ID = 2147483546, POS_ID = 2147483545 };

static const int64_t start_ms = 1796000000000;

typedef struct Maker {
    Arena *arena;
    const char *folder;
    TableMetadata *metadata;
    int version;
    const IcebergSchema *schema;
    ManifestFile manifests[8];
    size_t manifest_count;
} Maker;

/* --- The schema ---------------------------------------------------------------------------- */

static const Type *
plain(Arena *arena, TypeKind kind)
{
    Type *type = ARENA_NEW(arena, Type);

    type->kind = kind;
    return type;
}

static const Type *
decimal(Arena *arena, int precision, int scale)
{
    Type *type = ARENA_NEW(arena, Type);

    *type = (Type){.kind = TYPE_DECIMAL, .precision = precision, .scale = scale};
    return type;
}

static const Type *
nested(Arena *arena, TypeKind kind, int count, const Field *fields)
{
    Type *type = ARENA_NEW(arena, Type);

    *type = (Type){.kind = kind, .field_count = count};
    type->fields = ARENA_ARRAY(arena, Field, (size_t) count);
    memcpy(type->fields, fields, sizeof(Field) * (size_t) count);
    return type;
}

static void
add_column(TableSchema *schema, const char *name, const Type *type, const char *pg_type)
{
    SchemaColumn *column = &schema->columns[schema->column_count++];

    column->field.name = str_of(name);
    column->field.type = type;
    column->attnum = schema->column_count;
    column->pg_type = pg_type;
}

static TableSchema *
make_schema(void)
{
    Arena *arena;
    TableSchema *schema = schema_new(&arena);
    const Type *number = plain(arena, TYPE_INT32);
    const Type *text = plain(arena, TYPE_STRING);

    schema->columns = ARENA_ARRAY(arena, SchemaColumn, 20);
    add_column(schema, "id", plain(arena, TYPE_INT64), "bigint");
    add_column(schema, "b", plain(arena, TYPE_BOOL), "boolean");
    add_column(schema, "i", number, "integer");
    add_column(schema, "f", plain(arena, TYPE_FLOAT32), "real");
    add_column(schema, "d", plain(arena, TYPE_FLOAT64), "double precision");
    add_column(schema, "n", decimal(arena, 12, 2), "numeric(12,2)");
    add_column(schema, "big", decimal(arena, 38, 4), "numeric(38,4)");
    add_column(schema, "day", plain(arena, TYPE_DATE), "date");
    add_column(schema, "at", plain(arena, TYPE_TIME), "time without time zone");
    add_column(schema, "ts", plain(arena, TYPE_TIMESTAMP), "timestamp without time zone");
    add_column(schema, "tz", plain(arena, TYPE_TIMESTAMPTZ), "timestamp with time zone");
    add_column(schema, "s", text, "text");
    add_column(schema, "raw", plain(arena, TYPE_BINARY), "bytea");
    add_column(schema, "u", plain(arena, TYPE_UUID), "uuid");
    add_column(schema, "l",
               nested(arena, TYPE_LIST, 1, (Field[]){{.name = STR("element"), .type = number}}),
               "integer[]");
    add_column(
        schema, "st",
        nested(arena, TYPE_STRUCT, 2,
               (Field[]){{.name = STR("x"), .type = number}, {.name = STR("y"), .type = text}}),
        "pair");
    schema->columns[0].not_null = true;
    schema->key_mode = KEY_COLUMNS;
    schema->key_count = 1;
    schema->key = ARENA_NEW(arena, int);
    schema_assign_ids(schema);
    return schema;
}

/* --- Rows: the same formulas are in check_written.py --------------------------------------- */

static void append_text(Column *column, const char *format, ...) PRINTF_LIKE(2, 3);

static void
append_text(Column *column, const char *format, ...)
{
    char text[80];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    column_append_bytes(column, str_of(text));
}

static void
append_row(Column *columns, int64_t i)
{
    int32_t small = (int32_t) (i * 7 - 3000);
    double real = i % 50 == 0 ? (double) NAN : (double) i / 8 - 10;
    float single = (float) real;
    int64_t cents = (i - 500) * 1234567;
    __int128 big = (__int128) (i - 500) * 1000000000000000000 * 1000000000;
    int32_t day = (int32_t) (i - 500);
    int64_t time = i * 1000001;
    int64_t stamp = (i - 500) * 86400000001;
    uint8_t yes = i % 3 == 0;
    uint8_t uuid[16] = {[6] = 0x70, [7] = (uint8_t) i, [8] = 0x80, [15] = (uint8_t) (i >> 8)};

    column_append_fixed(&columns[0], &i);
    column_append_fixed(&columns[1], &yes);
    if (i % 10 == 0)
        column_append_null(&columns[2]);
    else
        column_append_fixed(&columns[2], &small);
    column_append_fixed(&columns[3], &single);
    column_append_fixed(&columns[4], &real);
    column_append_fixed(&columns[5], &cents);
    column_append_fixed(&columns[6], &big);
    column_append_fixed(&columns[7], &day);
    column_append_fixed(&columns[8], &time);
    column_append_fixed(&columns[9], &stamp);
    column_append_fixed(&columns[10], &stamp);
    append_text(&columns[11], "row %06" PRId64 " \xE2\x82\xAC long enough", i);
    append_text(&columns[12], "bytes %020" PRId64, i);
    column_append_fixed(&columns[13], uuid);

    size_t start = columns[14].children[0].rows;

    for (int32_t j = 0; j < i % 4; j++)
        column_append_fixed(&columns[14].children[0], &j);
    column_append_span(&columns[14], start);
    if (i % 5 == 0) {
        column_append_null(&columns[15]);
        return;
    }
    column_append_fixed(&columns[15].children[0], &small);
    append_text(&columns[15].children[1], "y%" PRId64, i);
    column_append_struct(&columns[15]);
}

static DataFile
describe_file(Maker *maker, const char *name, int64_t bytes, int64_t first, int64_t rows)
{
    Column columns[20];
    int count = maker->schema->field_count;
    FileMetrics *metrics = file_metrics_new(maker->schema->fields, count);
    DataFile file = {
        .content = CONTENT_DATA,
        .path = arena_strf(maker->arena, "file://%s/data/%s", maker->folder, name),
        .format = STR("PARQUET"),
        .record_count = rows,
        .file_bytes = bytes,
        .sort_order_id = 0,
        .split_count = 1,
        .split_offsets = ARENA_NEW(maker->arena, int64_t),
    };

    file.split_offsets[0] = 4;
    for (int i = 0; i < count; i++)
        column_init(&columns[i], maker->schema->fields[i].type);
    for (int64_t i = first; i < first + rows; i++)
        append_row(columns, i);
    file_metrics_add(metrics, columns, (size_t) rows, NULL);
    file_metrics_finish(metrics, maker->arena, &file);
    file_metrics_free(metrics);
    for (int i = 0; i < count; i++)
        column_done(&columns[i]);
    return file;
}

static DataFile
describe_deletes(Maker *maker, int64_t bytes, Str data_file)
{
    const Type text = {.kind = TYPE_STRING};
    const Field fields[] = {{.name = STR("file_path"), .id = PATH_ID, .type = &text}};
    FileMetrics *metrics = file_metrics_new(fields, 1);
    Deletes *deletes = deletes_new();
    DeletesCursor *cursor;
    Column column;
    Str path;
    uint32_t row;
    DataFile file = {
        .content = CONTENT_POSITION_DELETES,
        .path = arena_strf(maker->arena, "file://%s/data/deletes.parquet", maker->folder),
        .format = STR("PARQUET"),
        .file_bytes = bytes,
        .sort_order_id = -1,
        .referenced_data_file = data_file,
    };

    deletes_add(deletes, data_file, 500);
    deletes_add(deletes, data_file, 3);
    column_init(&column, &text);
    file_metrics_keep_full(metrics, PATH_ID);
    cursor = deletes_cursor(deletes);
    while (deletes_next(cursor, &path, &row)) {
        column_append_bytes(&column, path);
        file.record_count++;
    }
    deletes_cursor_free(cursor);
    deletes_free(deletes);
    file_metrics_add(metrics, &column, column.rows, NULL);
    file_metrics_finish(metrics, maker->arena, &file);
    file_metrics_free(metrics);
    column_done(&column);
    return file;
}

/* PyIceberg's metadata tables fall over files without column sizes. */
static void
set_column_size(Maker *maker, DataFile *file, int field_id)
{
    file->column_sizes.count = 1;
    file->column_sizes.items = ARENA_NEW(maker->arena, CountByField);
    file->column_sizes.items[0] = (CountByField){field_id, file->file_bytes / 2};
}

/* --- Files --------------------------------------------------------------------------------- */

static void
save(const char *path, const Buf *bytes)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(bytes->ptr, 1, bytes->len, file) != bytes->len ||
        fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static const char *
metadata_path(const Maker *maker, int version)
{
    return arena_printf(maker->arena, "%s/metadata/v%d.metadata.json", maker->folder, version);
}

/* As a reader would see it: written, parsed back. */
static void
save_metadata(Maker *maker)
{
    AUTO_BUF Buf text = {0};
    Error err;

    metadata_write(maker->metadata, &text);
    save(metadata_path(maker, ++maker->version), &text);
    if (!metadata_parse(maker->arena, arena_str(maker->arena, buf_view(&text)), &maker->metadata,
                        &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
}

static int64_t
snapshot_id(const Maker *maker)
{
    return 9000000000000000000 + maker->version;
}

static ManifestFile
save_manifest(Maker *maker, bool deletes, const ManifestEntry *entries, size_t count)
{
    AUTO_BUF Buf bytes = {0};
    const char *path = arena_printf(maker->arena, "%s/metadata/manifest-%d-%zu.avro", maker->folder,
                                    maker->version, maker->manifest_count);
    ManifestFile file;

    manifest_write(maker->arena,
                   &(ManifestHeader){.format_version = 2,
                                     .schema = maker->schema,
                                     .spec = metadata_find_spec(maker->metadata, 0),
                                     .deletes = deletes,
                                     .snapshot_id = snapshot_id(maker),
                                     .sequence_number = maker->metadata->last_sequence_number + 1},
                   entries, count, &bytes, &file);
    file.path = arena_strf(maker->arena, "file://%s", path);
    save(path, &bytes);
    return file;
}

static void
commit(Maker *maker, const SnapshotDelta *delta)
{
    AUTO_BUF Buf bytes = {0};
    const Snapshot *parent = metadata_current_snapshot(maker->metadata);
    const char *path =
        arena_printf(maker->arena, "%s/metadata/snap-%d.avro", maker->folder, maker->version);
    PropertyList extra = {0};
    Snapshot snapshot = {
        .snapshot_id = snapshot_id(maker),
        .parent_id = parent == NULL ? 0 : parent->snapshot_id,
        .sequence_number = maker->metadata->last_sequence_number + 1,
        .timestamp_ms = start_ms + (int64_t) maker->version * 1000,
        .manifest_list = arena_strf(maker->arena, "file://%s", path),
    };

    extra = property_set(maker->arena, &extra, STR("cdc.position"), STR("0/16B3748"));
    snapshot.summary = snapshot_summary(maker->arena, delta, false,
                                        parent == NULL ? NULL : &parent->summary, &extra);
    manifest_list_write(&(ManifestListHeader){.format_version = 2,
                                              .snapshot_id = snapshot.snapshot_id,
                                              .parent_id = snapshot.parent_id,
                                              .sequence_number = snapshot.sequence_number},
                        maker->manifests, maker->manifest_count, &bytes);
    save(path, &bytes);
    maker->metadata = metadata_add_snapshot(maker->arena, maker->metadata, &snapshot,
                                            metadata_path(maker, maker->version), NULL);
    save_metadata(maker);
}

int
main(int argc, char **argv)
{
    AUTO_ARENA Arena *arena = arena_new();
    Maker maker = {.arena = arena, .folder = argc > 1 ? argv[1] : "."};
    TableSchema *table = make_schema();

    if (argc != 5) {
        fprintf(stderr, "usage: write_table FOLDER SIZE_A SIZE_B SIZE_DELETES\n");
        return 2;
    }
    maker.schema = iceberg_schema_from_table(arena, table, 0);

    TableCreate create = {
        .uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        .location = arena_printf(arena, "file://%s", maker.folder),
        .schema = maker.schema,
        .now_ms = start_ms,
        .format_version = 2,
    };

    create.properties = property_set(arena, &create.properties, STR("owner"), STR("walberg"));
    maker.metadata = metadata_create(arena, &create);
    save_metadata(&maker);

    DataFile a = describe_file(&maker, "a.parquet", strtoll(argv[2], NULL, 10), 0, ROWS_A);
    DataFile b = describe_file(&maker, "b.parquet", strtoll(argv[3], NULL, 10), ROWS_A, ROWS_B);
    DataFile deletes = describe_deletes(&maker, strtoll(argv[4], NULL, 10), a.path);

    set_column_size(&maker, &a, 1);
    set_column_size(&maker, &b, 1);
    set_column_size(&maker, &deletes, PATH_ID);

    ManifestEntry add_a = {.status = ENTRY_ADDED, .file = a};
    ManifestEntry add_b = {.status = ENTRY_ADDED, .file = b};
    ManifestEntry add_deletes = {.status = ENTRY_ADDED, .file = deletes};

    maker.manifests[0] = save_manifest(&maker, false, &add_a, 1);
    maker.manifest_count = 1;
    commit(&maker, &(SnapshotDelta){.added_count = 1, .added = &a, .manifests_created = 1});

    maker.manifests[1] = save_manifest(&maker, true, &add_deletes, 1);
    maker.manifest_count = 2;
    commit(&maker,
           &(SnapshotDelta){
               .added_count = 1, .added = &deletes, .manifests_created = 1, .manifests_kept = 1});

    ManifestEntry merged[] = {add_a, add_b};

    merged[0].status = ENTRY_EXISTING;
    merged[0].snapshot_id = maker.manifests[0].added_snapshot_id;
    merged[0].sequence_number = 1;
    merged[0].file_sequence_number = 1;
    maker.manifests[0] = save_manifest(&maker, false, merged, 2);
    commit(&maker, &(SnapshotDelta){.added_count = 1,
                                    .added = &b,
                                    .manifests_created = 1,
                                    .manifests_kept = 1,
                                    .manifests_replaced = 1});

    merged[1].status = ENTRY_DELETED;
    merged[1].snapshot_id = snapshot_id(&maker);
    merged[1].sequence_number = 3;
    merged[1].file_sequence_number = 3;
    maker.manifests[0] = save_manifest(&maker, false, merged, 2);
    commit(&maker, &(SnapshotDelta){.removed_count = 1,
                                    .removed = &b,
                                    .manifests_created = 1,
                                    .manifests_kept = 1,
                                    .manifests_replaced = 1});
    schema_unref(table);
    return 0;
}
