/* resume.c - what an initial copy has so far, for a later process to go on with.
 *
 * The files of complete loads are named by a manifest that belongs to no snapshot
 * (metadata/copy-<uuid>.avro): it has all that a commit will need of them. A record names the
 * manifest and says under which shape the files were written. Shape: everything about the table
 * that a file depends on. When it is another by now, or a file is gone (whoever removes what no
 * snapshot refers to may have taken it), the rows are of no use. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "sink/iceberg/sink.h"

enum { RECORDS_KEPT = 2 };

/* Of one bulk_record(), or of a process before. */
typedef struct Record {
    const char *files; /* keys; "": none */
    const char *rejects;
    bool own;
} Record;

/* --- what the files depend on ---------------------------------------------------------------- */

static const char *
shape_text(const IcebergTable *table, Arena *arena)
{
    AUTO_BUF Buf text = {0};
    JsonWriter json;
    const PartitionSpec *spec = iceberg_spec(table);
    const SortOrder *order = iceberg_sort_order(table);
    Hash128 hash;

    buf_printf(&text, "%s %.*s %d ", table->index_identity == NULL ? "" : table->index_identity,
               STR_ARG(table->metadata->table_uuid), spec->spec_id);
    jw_begin(&json, &text);
    iceberg_schema_write(&json, metadata_current_schema(iceberg_shaped_metadata(table, arena)));
    jw_begin(&json, &text);
    partition_fields_write(&json, spec);
    buf_printf(&text, " %d ", order->order_id);
    jw_begin(&json, &text);
    sort_fields_write(&json, order);
    hash = hash128(text.ptr, text.len, 0);
    return arena_printf(arena, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

/* The widest values of bare numeric columns: "<field id>=<digits>,<scale>,<not finite>" each. */
static const char *
widths_text(const IcebergTable *table, Arena *arena)
{
    AUTO_BUF Buf text = {0};
    const TableSchema *schema = table->base.schema;

    for (int i = 0; i < schema->column_count; i++) {
        const NumericWidth *width = &table->numerics[i];

        if (width->tracked)
            buf_printf(&text, "%s%d=%d,%d,%d", text.len == 0 ? "" : " ",
                       schema->columns[i].field.id, width->integer_digits, width->scale,
                       width->not_finite);
    }
    return arena_strdup(arena, buf_text(&text));
}

static void
widen(NumericWidth *width, int digits, int scale, bool not_finite)
{
    width->integer_digits = digits > width->integer_digits ? digits : width->integer_digits;
    width->scale = scale > width->scale ? scale : width->scale;
    width->not_finite |= not_finite;
}

static void
restore_widths(IcebergTable *table, const char *text)
{
    const TableSchema *schema = table->base.schema;
    const char *at = text;

    while (*at != '\0') {
        char *end;
        long numbers[4]; /* field id, digits, scale, not finite */

        for (int i = 0; i < 4; i++) {
            numbers[i] = strtol(at, &end, 10);
            at = *end == '\0' ? end : end + 1;
        }
        for (int i = 0; i < schema->column_count; i++)
            if (schema->columns[i].field.id == numbers[0])
                widen(&table->numerics[i], (int) numbers[1], (int) numbers[2], numbers[3] != 0);
    }
}

/* --- recording ------------------------------------------------------------------------------- */

static int
by_number(const void *a, const void *b)
{
    int x = *(const int *) a;
    int y = *(const int *) b;

    return x < y ? -1 : x > y;
}

/* Files of earlier processes are in records of their own. */
static ManifestEntry *
files_of_loads(Arena *arena, const Buf *files, const BulkDone *done, size_t *out_count)
{
    size_t count = BUF_COUNT(files, BulkFile);
    ManifestEntry *entries = ARENA_ARRAY(arena, ManifestEntry, count);

    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        const BulkFile *file = &BUF_AT(files, BulkFile, i);

        if (bsearch(&file->load, done->loads, done->count, sizeof *done->loads, by_number) != NULL)
            entries[(*out_count)++] = (ManifestEntry){.status = ENTRY_ADDED, .file = file->file};
    }
    return entries;
}

typedef struct RecordPut {
    const IcebergTable *of; /* whose files they are: the table, or that of rejects */
    const ManifestEntry *entries;
    size_t count;
} RecordPut;

static bool
put_record(IcebergTable *table, Arena *arena, const RecordPut *put, const char **out_key,
           Error *err)
{
    AUTO_BUF Buf bytes = {0};
    ManifestFile file;
    const PartitionSpec *spec;
    char uuid[37];

    *out_key = "";
    if (put->count == 0)
        return true;
    spec = iceberg_spec(put->of);

    const TableMetadata *metadata = iceberg_shaped_metadata(put->of, arena);

    manifest_write(arena,
                   &(ManifestHeader){.format_version = metadata->format_version,
                                     .schema = metadata_current_schema(metadata),
                                     .spec = spec,
                                     .snapshot_id = 1},
                   put->entries, put->count, &bytes, &file);
    random_uuid(uuid);
    *out_key = arena_printf(arena, "%s/metadata/copy-%s.avro", table->prefix, uuid);
    return store_put(table->sink->store, *out_key, buf_view(&bytes), err);
}

static void
remove_record(const IcebergTable *table, const Record *record)
{
    const char *const keys[] = {record->files, record->rejects};

    for (int i = 0; i < 2; i++) {
        Error err;

        if (keys[i][0] != '\0' && !store_remove(table->sink->store, keys[i], &err))
            log_debug("cannot remove a record of the copy", LOG_STR("key", keys[i]),
                      LOG_STR("error", err.msg));
    }
}

/* The newest may not be in the pipeline's state yet, the one before may still be. */
static void
remove_superseded(IcebergTable *table)
{
    Buf *records = &table->pending.records;
    size_t count = BUF_COUNT(records, Record);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        Record record = BUF_AT(records, Record, i);

        if (record.own && i + RECORDS_KEPT < count)
            remove_record(table, &record);
        else
            BUF_AT(records, Record, kept++) = record;
    }
    records->len = kept * sizeof(Record);
}

static void
note_record(IcebergTable *table, const SinkLoaded *loaded, bool own)
{
    Arena *arena = table->pending.arena;
    Record record = {.files = arena_strdup(arena, loaded->files),
                     .rejects = arena_strdup(arena, loaded->rejects),
                     .own = own};

    BUF_PUSH(&table->pending.records, Record, record);
}

void
iceberg_remove_records(IcebergTable *table)
{
    for (size_t i = 0; i < BUF_COUNT(&table->pending.records, Record); i++)
        remove_record(table, &BUF_AT(&table->pending.records, Record, i));
    buf_reset(&table->pending.records);
}

/* Without it the index is made again from the files. */
static void
save_index(IcebergTable *table)
{
    Error err;

    if (table->index == NULL || index_save(table->index, &err))
        return;
    table->index_unsure = true;
    log_debug("cannot save the key index", LOG_STR("table", table->base.lake_name),
              LOG_STR("error", err.msg));
}

bool
iceberg_bulk_record(Sink *sink, SinkTable *sink_table, const BulkDone *done, Arena *arena,
                    SinkLoaded *out_loaded, Error *err)
{
    IcebergTable *table = (IcebergTable *) (void *) sink_table;
    SinkLoaded loaded = {.position = done->position};
    RecordPut files = {.of = table};
    RecordPut rejects;

    TRY(FAULT("sink.bulk_record", err));
    pthread_mutex_lock(&table->sink->lock);
    rejects = (RecordPut){.of = ((IcebergSink *) (void *) sink)->rejects};
    files.entries = files_of_loads(arena, &table->pending.loaded, done, &files.count);
    rejects.entries = files_of_loads(arena, &table->bulk_rejects, done, &rejects.count);
    loaded.widths = widths_text(table, arena);
    save_index(table);
    pthread_mutex_unlock(&table->sink->lock);

    for (size_t i = 0; i < files.count; i++)
        loaded.rows += files.entries[i].file.record_count;
    loaded.shape = shape_text(table, arena);
    TRY(put_record(table, arena, &files, &loaded.files, err));
    TRY(put_record(table, arena, &rejects, &loaded.rejects, err));
    pthread_mutex_lock(&table->sink->lock); /* loads keep their files in the same arena */
    note_record(table, &loaded, true);
    pthread_mutex_unlock(&table->sink->lock);
    remove_superseded(table);
    table->keep_index = true;
    *out_loaded = loaded;
    return true;
}

/* --- going on -------------------------------------------------------------------------------- */

/* A record's manifest into *into. */
static bool
read_record(IcebergTable *table, const char *key, const SinkLoaded *loaded, int spec_id, Buf *into,
            Error *err)
{
    AUTO_BUF Buf bytes = {0};
    ManifestFile file = {.path = str_of(key), .spec_id = spec_id, .first_row_id = -1};
    ManifestEntry *entries;
    size_t count;
    bool found;

    if (key[0] == '\0')
        return true;
    TRY(store_get(table->sink->store, key, &bytes, &found, NULL, err));
    if (!found)
        return FAIL(err, ERR_COPY, "%s is gone", key);
    if (!manifest_read(table->pending.arena, buf_view(&bytes), &file, &entries, &count, err)) {
        err->kind = ERR_COPY;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        BulkFile known = {.file = entries[i].file, .load = -1, .position = loaded->position};

        BUF_PUSH(into, BulkFile, known);
    }
    return true;
}

static int
by_key(const void *a, const void *b)
{
    return str_cmp(((const StoreObject *) a)->key, ((const StoreObject *) b)->key);
}

/* All at once: there may be many, and asking for each takes long. */
static bool
check_files(IcebergTable *table, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    Store *store = table->sink->store;
    const Buf *files = &table->pending.loaded;
    StoreObject *objects;
    size_t count;

    TRY(store_list(store, arena_printf(arena, "%s/data/", table->prefix), arena, &objects, &count,
                   err));
    for (size_t i = 0; i < BUF_COUNT(files, BulkFile); i++) {
        const DataFile *file = &BUF_AT(files, BulkFile, i).file;
        const char *key = store_key(store, arena, arena_str(arena, file->path).ptr);
        StoreObject probe = {.key = key == NULL ? STR("") : str_of(key)};
        const StoreObject *found =
            count == 0 ? NULL : bsearch(&probe, objects, count, sizeof probe, by_key);

        if (found == NULL || found->bytes != file->file_bytes)
            return FAIL(err, ERR_COPY, "%.*s is gone, or is another one", STR_ARG(file->path));
    }
    return true;
}

bool
iceberg_check_rejects(IcebergTable *table, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    Store *store = table->sink->store;

    for (size_t i = 0; i < BUF_COUNT(&table->bulk_rejects, BulkFile); i++) {
        Str path = BUF_AT(&table->bulk_rejects, BulkFile, i).file.path;
        const char *key = store_key(store, arena, arena_str(arena, path).ptr);
        bool found = false;

        if (key != NULL)
            TRY(store_stat(store, key, &found, NULL, err));
        if (!found)
            return FAIL(err, ERR_COPY, "%.*s is gone", STR_ARG(path));
    }
    return true;
}

static bool
read_records(IcebergTable *table, const SinkResume *resume, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *shape = shape_text(table, arena);
    int spec_id = iceberg_spec(table)->spec_id;

    for (size_t i = 0; i < resume->count; i++) {
        const SinkLoaded *loaded = &resume->loaded[i];

        if (strcmp(loaded->shape, shape) != 0)
            return FAIL(err, ERR_COPY, "the table has other columns or partitions now");
        TRY(read_record(table, loaded->files, loaded, spec_id, &table->pending.loaded, err));
        TRY(read_record(table, loaded->rejects, loaded, 0, &table->bulk_rejects, err));
        restore_widths(table, loaded->widths);
        note_record(table, loaded, false);
        if (table->base.replay_from == POSITION_NONE || loaded->position < table->base.replay_from)
            table->base.replay_from = loaded->position;
    }
    TRY(check_files(table, err));
    return iceberg_check_rejects(table, err);
}

bool
iceberg_resume(Sink *sink, SinkTable *sink_table, const SinkResume *resume, Error *err)
{
    IcebergTable *table = (IcebergTable *) (void *) sink_table;

    if (resume->count == 0)
        return iceberg_replace(sink, sink_table, resume->schema, err);
    TRY(FAULT("sink.resume", err));
    table->keep_index = true;
    TRY(iceberg_begin_anew(table, resume->schema, err));
    TRY(iceberg_rekey_index(table, err));
    TRY(read_records(table, resume, err));
    for (size_t i = 0; i < BUF_COUNT(&table->pending.loaded, BulkFile); i++)
        BUF_PUSH(&table->pending.files, DataFile, BUF_AT(&table->pending.loaded, BulkFile, i).file);
    table->pending.any |= table->pending.files.len > 0;
    TRY(iceberg_sync_index(table, err));
    table->keep_index = false;
    return true;
}
