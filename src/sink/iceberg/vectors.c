/* vectors.c - version 3: the deleted rows of a data file are its deletion vector.
 *
 * Every data file that a commit deletes from gets a new vector: all of its deleted rows, those of
 * the vector before and of position delete files included. All vectors of a commit are in one
 * Puffin file; the entry of the vector before is deleted in the same commit. Iceberg spec,
 * "Deletion Vectors".
 *
 * Position delete files, left from the time as version 2, stay until the first commit that deletes:
 * it turns all of them into vectors, and no more are written. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "iceberg/puffin.h"
#include "sink/iceberg/build.h"

/* Manifests with fewer entries are small; when there are that many of them, they are gathered. */
enum { SMALL_MANIFEST_ENTRIES = DELETE_MANIFEST_ENTRIES_MAX / 4, SMALL_MANIFESTS_MAX = 8 };

/* --- what gets a new vector ------------------------------------------------------------------ */

static void
mark_manifest(Builder *builder, const LiveManifest *manifest)
{
    builder->rewritten[manifest->number] = true;
}

/* Rows of position delete files, which are replaced by vectors, into *rows. */
static bool
read_position_deletes(Builder *builder, Deletes *rows, Error *err)
{
    IcebergTable *table = builder->table;

    for (size_t m = 0; m < live_deletes_count(table->live_deletes); m++) {
        const LiveManifest *manifest = live_deletes_at(table->live_deletes, m);

        for (size_t i = 0; i < manifest->count; i++) {
            if (file_is_vector(&manifest->entries[i].file))
                continue;
            mark_manifest(builder, manifest);
            TRY(iceberg_read_deletes(table, rows, &manifest->entries[i].file, err));
        }
    }
    return true;
}

/* The data files that they point into: those that are gone need no vector, and those that have one
 * already have all that counts in it. */
static bool
choose_converted(Builder *builder, Deletes *chosen, Error *err)
{
    IcebergTable *table = builder->table;
    AUTO(deletes_freep) Deletes *rows = deletes_new();
    Str *files;
    size_t count;
    uint32_t place;

    TRY(read_position_deletes(builder, rows, err));
    if (deletes_total(rows) == 0)
        return true;
    TRY(iceberg_load_places(builder, err));
    count = deletes_files(rows, builder->arena, &files);
    for (size_t i = 0; i < count; i++)
        if (!places_find(table->places, files[i], &place) ||
            live_deletes_find(table->live_deletes, files[i]) != NULL)
            deletes_remove_file(rows, files[i]);
    deletes_merge(chosen, rows);
    return true;
}

/* Each commit leaves a manifest of its new vectors. */
static void
gather_small(Builder *builder)
{
    const LiveDeletes *live = builder->table->live_deletes;
    size_t small = 0;

    for (size_t m = 0; m < live_deletes_count(live); m++)
        small += live_deletes_at(live, m)->count < SMALL_MANIFEST_ENTRIES;
    for (size_t m = 0; small >= SMALL_MANIFESTS_MAX && m < live_deletes_count(live); m++)
        if (live_deletes_at(live, m)->count < SMALL_MANIFEST_ENTRIES)
            mark_manifest(builder, live_deletes_at(live, m));
}

bool
iceberg_choose_vectors(Builder *builder, Buf *files, Error *err)
{
    IcebergTable *table = builder->table;
    AUTO(deletes_freep) Deletes *chosen = deletes_new();
    Str *paths;
    size_t count;

    deletes_merge(chosen, table->pending.deletes);
    if (!table->pending.truncated) {
        TRY(choose_converted(builder, chosen, err));
        gather_small(builder);
    }
    count = deletes_files(chosen, builder->arena, &paths);
    for (size_t i = 0; i < count; i++) {
        const LiveManifest *manifest = live_deletes_find(table->live_deletes, paths[i]);

        if (manifest != NULL)
            mark_manifest(builder, manifest);
        BUF_PUSH(files, Str, arena_str(builder->arena, paths[i]));
    }
    return true;
}

/* --- the Puffin file ------------------------------------------------------------------------- */

/* A vector has the spec and partition of its data file. */
static bool
vector_place(Builder *builder, Str data_file, Place *out_place, Error *err)
{
    const Places *places = builder->table->places;
    uint32_t number;

    if (!iceberg_ever_partitioned(builder->base)) {
        *out_place = (Place){.spec_id = builder->base->specs[0].spec_id, .partition = STR("")};
        return true;
    }
    if (!places_find(places, data_file, &number))
        return FAIL(err, ERR_BUG, "deleted rows of %.*s, which is no live file",
                    STR_ARG(data_file));
    *out_place = places_at(places, number);
    return true;
}

static bool
describe_vector(Builder *builder, const PuffinBlob *blob, DataFile *out_file, Error *err)
{
    Place place = {0};

    TRY(vector_place(builder, blob->data_file, &place, err));
    *out_file = (DataFile){
        .content = CONTENT_POSITION_DELETES,
        .format = STR("PUFFIN"),
        .spec_id = place.spec_id,
        .partition = arena_str(builder->arena, place.partition),
        .record_count = blob->cardinality,
        .sort_order_id = -1,
        .referenced_data_file = blob->data_file,
        .first_row_id = -1,
        .content_offset = blob->offset,
        .content_bytes = blob->length,
    };
    return true;
}

static bool
write_vectors(Builder *builder, const Buf *files, Buf *entries, Error *err)
{
    IcebergTable *table = builder->table;
    Store *store = table->sink->store;
    size_t count = BUF_COUNT(files, Str);
    const char *key = iceberg_vectors_key(table, builder->arena);
    DataFile *vectors = ARENA_ARRAY(builder->arena, DataFile, count);
    AUTO_BUF Buf bytes = {0};
    PuffinWriter writer;
    bool done = true;

    puffin_begin(&writer, &bytes);
    for (size_t i = 0; i < count && done; i++) {
        PuffinBlob blob = puffin_add_vector(&writer, table->deletes, BUF_AT(files, Str, i));

        done = describe_vector(builder, &blob, &vectors[i], err);
    }
    puffin_end(&writer);
    TRY(done && FAULT("sink.vectors", err));
    TRY(store_put(store, key, buf_view(&bytes), err));
    for (size_t i = 0; i < count; i++) {
        vectors[i].path = str_of(store_uri(store, builder->arena, key));
        vectors[i].file_bytes = (int64_t) bytes.len;
        iceberg_add_delete_file(builder, &vectors[i], entries);
    }
    return true;
}

/* --- what they replace ----------------------------------------------------------------------- */

static int
compare_paths(const void *a, const void *b)
{
    return str_cmp(*(const Str *) a, *(const Str *) b);
}

/* The files come sorted. A row that was deleted stays so: anything else would be our mistake. */
static bool
replace_old(Builder *builder, const Buf *files, OldDeletes *old, Error *err)
{
    const Deletes *deletes = builder->table->deletes;

    for (size_t i = 0; i < old->count; i++) {
        const DataFile *file = &old->entries[i].file;
        Str data_file = file->referenced_data_file;

        if (!file_is_vector(file)) {
            old->gone[i] = true;
            continue;
        }
        if (files->len == 0 || bsearch(&data_file, files->ptr, BUF_COUNT(files, Str), sizeof(Str),
                                       compare_paths) == NULL)
            continue;
        if ((int64_t) deletes_count(deletes, data_file) < file->record_count)
            return FAIL(err, ERR_BUG, "%.*s would have fewer deleted rows than before",
                        STR_ARG(data_file));
        old->gone[i] = true;
    }
    return true;
}

bool
iceberg_add_vectors(Builder *builder, const Buf *files, OldDeletes *old, Buf *entries, Error *err)
{
    if (files->len == 0) /* truncated, and nothing deleted since */
        return true;
    if (iceberg_ever_partitioned(builder->base))
        TRY(iceberg_load_places(builder, err));
    TRY(write_vectors(builder, files, entries, err));
    return replace_old(builder, files, old, err);
}
