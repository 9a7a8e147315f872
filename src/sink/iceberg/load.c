/* load.c - what the lake has of a table. */
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/folder.h"
#include "base/log.h"
#include "batch/fold.h"
#include "iceberg/default.h"
#include "iceberg/sort_order.h"
#include "iceberg/spec.h"
#include "sink/iceberg/sink.h"

/* --- reading files of the table -------------------------------------------------------------- */

/* Whatever is wrong with a file, the source has the rows. */
static bool
damaged(Error *err)
{
    return err->kind == ERR_INPUT && error_hint(err, HINT_COPY_AGAIN);
}

bool
iceberg_read_manifest(IcebergTable *table, Arena *arena, const ManifestFile *manifest,
                      ManifestEntry **out_entries, size_t *out_count, Error *err)
{
    AUTO_BUF Buf bytes = {0};

    TRY(file_cache_read(&table->sink->files, arena, manifest->path, &bytes, err));
    return manifest_read(arena, buf_view(&bytes), manifest, out_entries, out_count, err) ||
           damaged(err);
}

bool
iceberg_live_files(IcebergTable *table, Arena *arena, Buf *out, Error *err)
{
    for (size_t m = 0; m < table->manifest_count; m++) {
        const ManifestFile *manifest = &table->manifests[m];
        ManifestEntry *entries;
        size_t count;

        if (manifest->deletes || manifest->added_files + manifest->existing_files == 0)
            continue;
        TRY(iceberg_read_manifest(table, arena, manifest, &entries, &count, err));
        for (size_t i = 0; i < count; i++)
            if (entries[i].status != ENTRY_DELETED)
                BUF_PUSH(out, ManifestEntry, entries[i]);
    }
    return true;
}

/* --- position deletes ------------------------------------------------------------------------ */

typedef struct DeleteReader {
    RowSink sink;
    Deletes *into;
} DeleteReader;

static bool
take_deletes(RowSink *sink, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    DeleteReader *reader = (DeleteReader *) (void *) sink;

    (void) first_row;
    for (size_t i = 0; i < rows; i++) {
        int64_t pos = BUF_AT(&columns[1].values, int64_t, i);

        if (column_is_null(&columns[0], i) || pos < 0 || pos > UINT32_MAX)
            return FAIL(err, ERR_INPUT,
                        "position delete file: row without a usable file_path, pos");
        deletes_add(reader->into, column_bytes(&columns[0], i), (uint32_t) pos);
    }
    return true;
}

static const Type type_string = {.kind = TYPE_STRING};
static const Type type_int64 = {.kind = TYPE_INT64};

const Field position_delete_fields[2] = {
    {.name = {"file_path", 9}, .id = 2147483546, .required = true, .type = &type_string},
    {.name = {"pos", 3}, .id = 2147483545, .required = true, .type = &type_int64},
};

static bool
read_position_deletes(IcebergTable *table, Deletes *into, const char *path, Error *err)
{
    DeleteReader reader = {.sink = {.block = take_deletes}, .into = into};
    ParquetScan scan = {
        .path = path, .fields = position_delete_fields, .field_count = 2, .sink = &reader.sink};

    return duck_scan_parquet(table->sink->duck, &scan, err);
}

/* Only the bytes of this vector: the file has those of other data files, too. */
static bool
read_vector(Deletes *into, const DataFile *file, const char *path, Error *err)
{
    AUTO_BUF Buf blob = {0};
    struct stat found = {0};
    int fd;

    if (file->content_offset < 0 || file->content_bytes < 0 ||
        file->content_offset > file->file_bytes ||
        file->content_bytes > file->file_bytes - file->content_offset)
        return FAIL(err, ERR_INPUT, "deletion vector at %" PRId64 ", %" PRId64 " bytes: not there",
                    file->content_offset, file->content_bytes);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return FAIL(err, ERR_TRANSIENT, "cannot open %s: %m", path);

    ssize_t got = -1;

    if (fstat(fd, &found) == 0 && found.st_size >= file->content_offset + file->content_bytes)
        got = pread(fd, buf_push(&blob, (size_t) file->content_bytes), (size_t) file->content_bytes,
                    file->content_offset);
    close(fd);
    if (got != file->content_bytes)
        return FAIL(err, ERR_INPUT, "deletion vector at %" PRId64 ": the file is cut short",
                    file->content_offset);
    return deletes_add_vector(into, file->referenced_data_file, buf_view(&blob), file->record_count,
                              err);
}

bool
iceberg_read_deletes(IcebergTable *table, Deletes *into, const DataFile *file, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_FILE_HOLD FileHold hold = {0};
    const char *path;

    TRY(file_cache_path(&table->sink->files, &hold, arena, file->path, &path, err));
    if (!(file_is_vector(file) ? read_vector(into, file, path, err)
                               : read_position_deletes(table, into, path, err)))
        return WRAP(err, "%.*s", STR_ARG(file->path));
    return true;
}

/* --- key index ------------------------------------------------------------------------------- */

typedef struct KeyReader {
    RowSink sink;
    const TableSchema *schema;
    IndexBuild *build;
    Column *view; /* laid out like schema->columns; only the key's are read */
    Buf keys;
    Buf scratch;
    int field_count;
    const int *columns; /* field -> index into schema->columns */
} KeyReader;

static bool
take_keys(RowSink *sink, const Column *columns, size_t rows, int64_t first_row, Error *err)
{
    KeyReader *reader = (KeyReader *) (void *) sink;

    (void) first_row;
    for (int f = 0; f < reader->field_count; f++)
        reader->view[reader->columns[f]] = columns[f];
    buf_reset(&reader->keys);
    for (size_t row = 0; row < rows; row++)
        BUF_PUSH(&reader->keys, Hash128,
                 key_hash(reader->schema, reader->view, row, &reader->scratch));
    return index_build_add(reader->build, (const Hash128 *) (const void *) reader->keys.ptr, rows,
                           err);
}

/* Read the key columns of a data file that the index lacks: the way back after a lost state folder.
 */
static bool
index_data_file(IcebergTable *table, const DataFile *file, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const TableSchema *schema = table->base.schema;
    bool full = schema->key_mode == KEY_FULL_ROW;
    int count = full ? schema->column_count : schema->key_count;
    Field *fields = ARENA_ARRAY(arena, Field, (size_t) count);
    int *columns = ARENA_ARRAY(arena, int, (size_t) count);
    AUTO_FILE_HOLD FileHold hold = {0};
    KeyReader reader = {.sink = {.block = take_keys}, .schema = schema, .field_count = count};
    ParquetScan scan = {.fields = fields, .field_count = count, .sink = &reader.sink};

    for (int i = 0; i < count; i++) {
        columns[i] = full ? i : schema->key[i];
        fields[i] = schema->columns[columns[i]].field;
    }
    reader.columns = columns;
    reader.view = ARENA_ARRAY(arena, Column, (size_t) schema->column_count);
    TRY(default_expressions(arena, fields, count, &scan.defaults, err));
    TRY(file_cache_path(&table->sink->files, &hold, arena, file->path, &scan.path, err));
    TRY(index_build_begin(table->index, file->path, &reader.build, err));

    bool read = duck_scan_parquet(table->sink->duck, &scan, err);

    buf_done(&reader.keys);
    buf_done(&reader.scratch);
    if (!read) {
        index_build_abort(reader.build);
        WRAP(err, "key index: %.*s", STR_ARG(file->path));
        return damaged(err);
    }
    return index_build_end(reader.build, err);
}

/* What the hashes in the index are made of: of another key than the table has now, they are worth
 * nothing and are made again from the files. */
static const char *
index_identity(const IcebergTable *table, Arena *arena)
{
    AUTO_BUF Buf text = {0};
    const TableSchema *schema = table->base.schema;
    bool full = schema->key_mode == KEY_FULL_ROW;
    int count = full ? schema->column_count : schema->key_count;

    buf_str(&text, table->metadata->table_uuid);
    buf_cstr(&text, full ? " row" : " key");
    for (int i = 0; i < count; i++)
        buf_printf(&text, " %d", schema->columns[full ? i : schema->key[i]].field.id);
    return arena_strdup(arena, buf_text(&text));
}

static bool
open_index(IcebergTable *table, Error *err)
{
    index_close(table->index);
    table->index = NULL;
    if (table->base.schema->key_mode == KEY_NONE)
        return true;

    AUTO_ARENA Arena *arena = arena_new();
    const char *folder = arena_printf(arena, "%s/index/%.*s", table->sink->state_folder,
                                      STR_ARG(table->metadata->table_uuid));

    free(table->index_identity);
    table->index_identity = xstrdup(index_identity(table, arena));
    return index_open(folder, table->index_identity, &table->index, err);
}

/* --- the whole ------------------------------------------------------------------------------- */

void
iceberg_pending_reset(Pending *pending)
{
    if (pending->arena == NULL)
        pending->arena = arena_new();
    else
        arena_reset(pending->arena);
    if (pending->deletes == NULL)
        pending->deletes = deletes_new();
    else
        deletes_clear(pending->deletes);
    buf_reset(&pending->files);
    buf_reset(&pending->loaded);
    buf_reset(&pending->records);
    buf_reset(&pending->rejects);
    buf_reset(&pending->earlier_fits);
    pending->fit = (SchemaFit){0};
    buf_reset(&pending->specs);
    pending->spec = NULL;
    pending->partition_text = STR_NULL;
    buf_reset(&pending->sort_orders);
    pending->sort_order = NULL;
    pending->sort_text = STR_NULL;
    pending->truncated = false;
    pending->any = false;
    pending->stale = false;
    buf_reset(&pending->attempts);
}

static bool
load_manifests(IcebergTable *table, Error *err)
{
    Arena *arena = table->arena;
    const Snapshot *snapshot = metadata_current_snapshot(table->metadata);

    table->manifest_count = 0;
    table->manifests = NULL;
    if (snapshot == NULL)
        return true;

    AUTO_BUF Buf bytes = {0};

    TRY(file_cache_read(&table->sink->files, arena, snapshot->manifest_list, &bytes, err));
    if (!manifest_list_read(arena, buf_view(&bytes), &table->manifests, &table->manifest_count,
                            err))
        return WRAP(err, "%.*s", STR_ARG(snapshot->manifest_list));
    return true;
}

static bool
check_delete_files(const LiveManifest *manifest, Error *err)
{
    for (size_t i = 0; i < manifest->count; i++) {
        const DataFile *file = &manifest->entries[i].file;

        if (file->content == CONTENT_POSITION_DELETES &&
            (file_is_vector(file) || str_eqc(file->format, "PARQUET")))
            continue;
        return FAIL(err, ERR_INPUT,
                    "the table has %s (%.*s), which walberg does not write\n"
                    "hint: another writer made them; compact the table with that writer first",
                    file->content == CONTENT_EQUALITY_DELETES ? "equality deletes"
                                                              : "deletes of another format",
                    STR_ARG(file->path));
    }
    return true;
}

/* The live delete files of the current snapshot, checked to be of a kind we understand. */
static bool
list_deletes(IcebergTable *table, Error *err)
{
    for (size_t m = 0; m < table->manifest_count; m++) {
        AUTO_BUF Buf bytes = {0};
        const ManifestFile *manifest = &table->manifests[m];

        if (!manifest->deletes || manifest->added_files + manifest->existing_files == 0)
            continue;
        TRY(file_cache_read(&table->sink->files, table->arena, manifest->path, &bytes, err));
        if (!live_deletes_add(table->live_deletes, buf_view(&bytes), manifest, err))
            return WRAP(err, "%.*s", STR_ARG(manifest->path));
    }
    for (size_t m = 0; m < live_deletes_count(table->live_deletes); m++)
        TRY(check_delete_files(live_deletes_at(table->live_deletes, m), err));
    return true;
}

/* The rows of the live delete files of one kind. */
static bool
read_live_deletes(IcebergTable *table, bool vectors, Deletes *into, Error *err)
{
    for (size_t m = 0; m < live_deletes_count(table->live_deletes); m++) {
        const LiveManifest *manifest = live_deletes_at(table->live_deletes, m);

        for (size_t i = 0; i < manifest->count; i++)
            if (file_is_vector(&manifest->entries[i].file) == vectors)
                TRY(iceberg_read_deletes(table, into, &manifest->entries[i].file, err));
    }
    return true;
}

/* The delete files again, with the rows they delete; what is pending stays deleted. A vector stands
 * for all position deletes of its data file. Iceberg spec, "Scan Planning". */
static bool
load_deletes(IcebergTable *table, Error *err)
{
    AUTO(deletes_freep) Deletes *positions = deletes_new();

    TRY(list_deletes(table, err));
    if (!table->replacing && !table->pending.truncated) { /* else they go with their files */
        TRY(read_live_deletes(table, true, table->deletes, err));
        TRY(read_live_deletes(table, false, positions, err));
        for (size_t m = 0; m < live_deletes_count(table->live_deletes); m++) {
            const LiveManifest *manifest = live_deletes_at(table->live_deletes, m);

            for (size_t i = 0; i < manifest->count; i++)
                if (file_is_vector(&manifest->entries[i].file))
                    deletes_remove_file(positions, manifest->entries[i].file.referenced_data_file);
        }
        deletes_merge(table->deletes, positions);
    }
    deletes_merge(table->deletes, table->pending.deletes);
    return true;
}

static int
by_path(const void *a, const void *b)
{
    return str_cmp(((const ManifestEntry *) a)->file.path, ((const ManifestEntry *) b)->file.path);
}

static bool
index_missing(IcebergTable *table, const DataFile *file, Error *err)
{
    return index_has_file(table->index, file->path) || index_data_file(table, file, err);
}

/* Data files that count, sorted by path: live ones, unless a truncate is pending, and pending ones.
 */
static bool
counted_files(IcebergTable *table, Arena *arena, Buf *out, Error *err)
{
    if (!table->pending.truncated)
        TRY(iceberg_live_files(table, arena, out, err));
    for (size_t i = 0; i < BUF_COUNT(&table->pending.files, DataFile); i++) {
        ManifestEntry entry = {.file = BUF_AT(&table->pending.files, DataFile, i)};

        BUF_PUSH(out, ManifestEntry, entry);
    }
    if (out->len > 0)
        qsort(out->ptr, BUF_COUNT(out, ManifestEntry), sizeof(ManifestEntry), by_path);
    return true;
}

bool
iceberg_sync_index(IcebergTable *table, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf files = {0};

    if (table->index == NULL)
        return true;
    TRY(counted_files(table, arena, &files, err));

    size_t count = BUF_COUNT(&files, ManifestEntry);

    for (int f = 0; f < (int) index_stats(table->index).files; f++) {
        ManifestEntry probe = {.file.path = index_file_name(table->index, f)};

        if (probe.file.path.len > 0 &&
            (count == 0 || bsearch(&probe, files.ptr, count, sizeof probe, by_path) == NULL))
            index_remove_file(table->index, probe.file.path);
    }
    for (size_t i = 0; i < count; i++)
        TRY(index_missing(table, &BUF_AT(&files, ManifestEntry, i).file, err));
    return true;
}

bool
iceberg_save_index(IcebergTable *table, Error *err)
{
    if (table->index == NULL || index_save(table->index, err))
        return true;
    if (err->kind != ERR_CONFLICT)
        return false;
    TRY(iceberg_sync_index(table, err));
    return index_save(table->index, err);
}

void
iceberg_empty_index(IcebergTable *table)
{
    int count = table->index == NULL ? 0 : (int) index_stats(table->index).files;

    for (int f = 0; f < count; f++) {
        Str name = index_file_name(table->index, f);

        if (name.ptr != NULL)
            index_remove_file(table->index, name);
    }
}

bool
iceberg_rekey_index(IcebergTable *table, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    bool keyed = table->base.schema->key_mode != KEY_NONE;

    if (keyed == (table->index != NULL) &&
        (!keyed || strcmp(index_identity(table, arena), table->index_identity) == 0))
        return true;
    TRY(open_index(table, err));
    return iceberg_sync_index(table, err);
}

int64_t
iceberg_summary_number(const Snapshot *snapshot, const char *key)
{
    Str text = snapshot == NULL ? STR_NULL : property_get(&snapshot->summary, key);
    int64_t value = 0;

    for (size_t i = 0; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++)
        value = value * 10 + (text.ptr[i] - '0');
    return value;
}

/* Property "walberg.numeric.<column>" = "12,4" or "text". */
static void
load_numerics(IcebergTable *table)
{
    AUTO_ARENA Arena *arena = arena_new();
    const TableSchema *schema = table->base.schema;

    for (int i = 0; i < schema->column_count; i++) {
        const SchemaColumn *column = &schema->columns[i];
        NumericWidth *width = &table->numerics[i];
        const char *key = arena_printf(arena, "walberg.numeric.%.*s", STR_ARG(column->field.name));
        Str value = property_get(&table->metadata->properties, key);

        *width = (NumericWidth){.tracked = column->field.type->kind == TYPE_STRING &&
                                           strcmp(column->pg_type, "numeric") == 0};
        if (value.ptr == NULL)
            continue;

        char *end;
        const char *text = arena_str(arena, value).ptr;

        width->not_finite = str_eqc(value, "text");
        width->integer_digits = (int) strtol(text, &end, 10);
        width->scale = *end == ',' ? (int) strtol(end + 1, NULL, 10) : 0;
    }
}

/* Manifests of every spec may have to be written again. */
static bool
check_spec(const TableMetadata *metadata, const PartitionSpec *spec, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    ResultType *types;

    return partition_result_types(arena, metadata_spec_schema(metadata, spec), spec, &types, err);
}

static bool
use_metadata(IcebergTable *table, Error *err)
{
    const TableMetadata *metadata = table->metadata;
    Str pipeline = property_get(&metadata->properties, "cdc.pipeline");
    Str position = property_get(&metadata->properties, "cdc.position");
    const Snapshot *snapshot = metadata_current_snapshot(metadata);

    /* rejects of all pipelines of a warehouse go to one table */
    if (table->base.schema->relid != 0 && !str_eqc(pipeline, table->sink->pipeline))
        return FAIL(err, ERR_INPUT,
                    "the lake table belongs to %s%.*s\n"
                    "hint: give it another name in the lake: tables.%s.name, or another namespace",
                    pipeline.ptr == NULL ? "somebody else" : "pipeline ", STR_ARG(pipeline),
                    table->base.schema->qualified);
    if (metadata->format_version < 2)
        return FAIL(err, ERR_INPUT,
                    "the lake table has format version %d, this walberg writes 2 and 3",
                    metadata->format_version);
    for (size_t i = 0; i < metadata->spec_count; i++)
        TRY(check_spec(metadata, &metadata->specs[i], err));
    table->base.position = POSITION_NONE;
    if (position.ptr != NULL)
        TRY(position_parse(position, &table->base.position, err));
    table->base.rows = iceberg_summary_number(snapshot, "total-records") -
                       iceberg_summary_number(snapshot, "total-position-deletes");
    table->base.last_commit_us = snapshot == NULL ? 0 : snapshot->timestamp_ms * 1000;
    return true;
}

/* Once: a table is also loaded again after every failed commit. */
static void
tell_format_version(IcebergTable *table)
{
    int have = table->metadata->format_version;
    int want = (int) table->sink->config->iceberg_format_version;

    if (have < want && !table->format_told)
        log_info("format version is raised with the next commit",
                 LOG_STR("table", table->base.lake_name), LOG_INT("from", have),
                 LOG_INT("to", want));
    if (have > want && !table->format_told)
        log_warn("the lake table keeps its format version: the spec knows no way back",
                 LOG_STR("table", table->base.lake_name), LOG_INT("version", have),
                 LOG_INT("setting", want));
    table->format_told = true;
}

/* Properties stay when somebody goes back to an older snapshot, so the position that a commit wrote
 * into both must be the same in both. Snapshots of others and those without a position pass it on;
 * where history has been expired, it is not known. */
static bool
check_history(const IcebergTable *table, Error *err)
{
    const TableMetadata *metadata = table->metadata;
    const Snapshot *snapshot = metadata_current_snapshot(metadata);
    Str text = property_get(&metadata->properties, "cdc.position");
    Position position = POSITION_NONE;

    if (table->base.schema->relid == 0)
        return true; /* rejects: no row of a table is found by them */
    if (text.ptr != NULL)
        TRY(position_parse(text, &position, err));
    if (position < table->base.position)
        return FAIL(err, ERR_INPUT,
                    "the lake table went back from %s to %s: somebody removed what was "
                    "committed\n" HINT_COPY_AGAIN,
                    POSITION_TEXT(table->base.position), POSITION_TEXT(position));
    if (text.ptr != NULL && snapshot == NULL)
        return FAIL(err, ERR_INPUT,
                    "the lake table has no snapshot any more: somebody rolled it "
                    "back\n" HINT_COPY_AGAIN);

    Str rows = STR_NULL;

    for (size_t steps = 0;
         snapshot != NULL && rows.ptr == NULL && steps <= metadata->snapshot_count; steps++) {
        rows = property_get(&snapshot->summary, "cdc.position");
        snapshot = metadata_find_snapshot(metadata, snapshot->parent_id);
    }
    if (rows.ptr == NULL || text.ptr == NULL || str_eq(rows, text))
        return true;
    return FAIL(err, ERR_INPUT,
                "the lake table's rows are of %.*s, but it was at %.*s: somebody rolled it back\n"
                "hint: roll it forward again, or copy it again: walberg resync",
                STR_ARG(rows), STR_ARG(text));
}

/* What lists the table's files, and its deletes. What is about to go need not be there. */
static bool
load_files(IcebergTable *table, Error *err)
{
    table->unlisted = false;
    if (load_manifests(table, err) && load_deletes(table, err))
        return true;
    if (!table->replacing || err->kind != ERR_INPUT)
        return damaged(err);
    log_warn("files that the table had cannot be listed", LOG_STR("table", table->base.lake_name),
             LOG_STR("error", err->msg));
    table->unlisted = true;
    table->manifest_count = 0;
    live_deletes_free(table->live_deletes);
    table->live_deletes = live_deletes_new();
    deletes_clear(table->deletes);
    deletes_merge(table->deletes, table->pending.deletes);
    return true;
}

static bool
load_metadata(IcebergTable *table, Error *err)
{
    const TableSchema *schema = table->base.schema;

    if (metadata_parse(table->arena, table->current.metadata, &table->metadata, err))
        return true;
    WRAP(err, "%s", table->current.metadata_location);
    return schema->relid == 0
               ? error_hint(err, "hint: remove it from the lake, and walberg makes it again")
               : error_hint(err, "hint: start walberg again after: walberg cleanup %s",
                            schema->qualified);
}

bool
iceberg_table_refresh(IcebergTable *table, Error *err)
{
    IcebergTable next = *table; /* only what follows is replaced, and only as a whole */
    bool found = false;

    next.arena = arena_new();
    next.live_deletes = live_deletes_new();
    next.deletes = deletes_new();

    bool done =
        catalog_load(table->sink->catalog, next.arena, &table->name, &next.current, &found, err);

    if (done && !found)
        done = FAIL(err, ERR_INPUT,
                    "the lake table is gone\nhint: somebody dropped it; walberg %s it again when "
                    "it is started",
                    table->base.schema->relid == 0 ? "makes" : "copies");
    done = done && load_metadata(&next, err) && (next.replacing || check_history(&next, err)) &&
           load_files(&next, err);

    IcebergTable *dead = done ? table : &next;

    arena_free(dead->arena);
    live_deletes_free(dead->live_deletes);
    deletes_free(dead->deletes);
    if (done) {
        *table = next;
        places_free(table->places);
        table->places = NULL;
    }
    return done;
}

/* What it has beside the rows of the lake is of use only to a copy that goes on. */
static bool
load_index(IcebergTable *table, Error *err)
{
    TRY(open_index(table, err));
    if (table->keep_index && (table->replacing || table->base.position == POSITION_NONE))
        return true;
    table->keep_index = false;
    if (!table->replacing)
        return iceberg_sync_index(table, err);
    iceberg_empty_index(table);
    return true;
}

bool
iceberg_table_load(IcebergTable *table, Error *err)
{
    table->half_loaded = true;
    table->rejects_pending = table->rejects_adopted = false;
    iceberg_pending_reset(&table->pending);
    iceberg_unhide(table);
    buf_reset(&table->bulk_rejects);
    TRY(iceberg_table_refresh(table, err));
    TRY(use_metadata(table, err));
    tell_format_version(table);
    TRY(iceberg_load_shape(table, err));
    TRY(iceberg_follow_spec(table, false, err));
    TRY(iceberg_follow_sort(table, false, err));
    load_numerics(table);
    TRY(load_index(table, err));
    TRY(iceberg_save_index(table, err));
    table->half_loaded = false;
    return true;
}

bool
iceberg_table_create(IcebergTable *table, const TableSchema *schema, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf json = {0};
    char uuid[37];
    PropertyList properties = {0};
    CatalogTable made;

    random_uuid(uuid);
    properties =
        property_set(arena, &properties, STR("cdc.pipeline"), str_of(table->sink->pipeline));
    properties =
        property_set(arena, &properties, STR("walberg.attnums"), iceberg_attnums(arena, schema));
    properties =
        property_set(arena, &properties, STR("write.parquet.compression-codec"), STR("zstd"));

    PartitionSpec spec = {0};
    SortOrder sort_order = {0};

    if (table->partition != NULL) {
        Str text = partition_rule_text(arena, table->partition);

        TRY(partition_spec_resolve(arena, table->partition, schema, &spec, err));
        if (text.len > 0)
            properties = property_set(arena, &properties, STR(PARTITION_PROPERTY), text);
    }
    if (table->sort != NULL) {
        Str text = sort_rule_text(arena, table->sort);

        TRY(sort_order_resolve(arena, table->sort, schema, &sort_order, err));
        if (text.len > 0)
            properties = property_set(arena, &properties, STR(SORT_PROPERTY), text);
    }

    TableCreate create = {
        .uuid = uuid,
        .location = catalog_location(table->sink->catalog, arena, &table->name),
        .schema = iceberg_schema_from_table(arena, schema, 0),
        .spec = &spec,
        .sort_order = &sort_order,
        .now_ms = clock_wall_us() / 1000,
        .format_version = (int) table->sink->config->iceberg_format_version,
        .properties = properties,
    };

    metadata_write(metadata_create(arena, &create), &json);
    TRY(FAULT("sink.create_table", err));
    return catalog_create(table->sink->catalog, arena, &table->name, buf_view(&json), &made, err);
}
