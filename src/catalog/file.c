/* file.c - tables in folders of the warehouse, no server needed: the Hadoop catalog's layout.
 *
 *     <namespace>/<table>/metadata/v1.metadata.json, v2.metadata.json, ...
 *                         metadata/version-hint.text      "2", without a newline
 *
 * The highest version is the table, and making the next one - which nobody else may have made - is
 * the commit. What Iceberg's specification calls unsafe about this layout ("Metastore Tables",
 * "File System Tables": renames that are not atomic or overwrite) is the store's put_absent here:
 * link(2), or If-None-Match.
 *
 * The hint is written after the commit and may lag behind, or go backwards by one when two commit
 * at the same time. Readers that take it literally then see the version before; everybody else,
 * we included, looks upward from it. Metadata compressed by other writers (vN.gz.metadata.json) is
 * read, never written. */
#include "catalog/kinds.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/fault.h"
#include "catalog/folder_name.h"

enum {
    CLIMB_MAX = 16, /* versions looked for one by one before listing the folder */
    LOADS_MAX = 5,  /* the version we found may be expired before we have read it */
    TOKEN_DIGITS_MAX = 18,
};

#define METADATA_BYTES_MAX ((size_t) 1 << 30)

#define VERSION_HINT "version-hint.text"

static const char plain_suffix[] = ".metadata.json";
static const char gzip_suffix[] = ".gz.metadata.json";

/* number 0: there is no such version. */
typedef struct Version {
    int64_t number;
    bool gzip;
} Version;

/* A table's folders, as keys. */
typedef struct Place {
    Store *store;
    Arena *arena;
    const char *folder;   /* "public/orders" */
    const char *metadata; /* "public/orders/metadata/" */
} Place;

static Place
place_of(Catalog *catalog, Arena *arena, const TableName *name)
{
    AUTO_BUF Buf folder = {0};

    assert(catalog->ops == &file_catalog_ops);
    folder_name_write(&folder, name->space);
    buf_byte(&folder, '/');
    folder_name_write(&folder, name->name);

    Place place = {.store = catalog->warehouse,
                   .arena = arena,
                   .folder = arena_strdup(arena, buf_text(&folder))};

    place.metadata = arena_printf(arena, "%s/metadata/", place.folder);
    return place;
}

static const char *
version_key(const Place *place, Version version)
{
    return arena_printf(place->arena, "%sv%" PRId64 "%s", place->metadata, version.number,
                        version.gzip ? gzip_suffix : plain_suffix);
}

static const char *
hint_key(const Place *place)
{
    return arena_printf(place->arena, "%s" VERSION_HINT, place->metadata);
}

/* A positive number as we would write it, and nothing else; 0 when it is not one. */
static int64_t
parse_number(Str text)
{
    int64_t number = 0;

    if (text.len == 0 || text.len > TOKEN_DIGITS_MAX || text.ptr[0] == '0')
        return 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return 0;
        number = number * 10 + (text.ptr[i] - '0');
    }
    return number;
}

/* The token is the version's number, with ".gz" behind it where that is part of the name. */
static const char *
token_of(Arena *arena, Version version)
{
    return arena_printf(arena, "%" PRId64 "%s", version.number, version.gzip ? ".gz" : "");
}

static Version
version_of_token(const char *token)
{
    Str text = str_of(token);
    bool gzip = str_ends(text, STR(".gz"));

    if (gzip)
        text.len -= 3;
    return (Version){.number = parse_number(text), .gzip = gzip};
}

/* "public/orders/metadata/v7.metadata.json" -> 7 */
static Version
version_of_key(const Place *place, Str key)
{
    size_t start = strlen(place->metadata) + 1;
    Str gzip = {gzip_suffix, sizeof gzip_suffix - 1};
    Str plain = {plain_suffix, sizeof plain_suffix - 1};
    bool is_gzip = str_ends(key, gzip);
    size_t end = is_gzip ? gzip.len : plain.len;

    if (!str_ends(key, plain) || key.len < start + end)
        return (Version){0};
    return (Version){.number = parse_number((Str){key.ptr + start, key.len - start - end}),
                     .gzip = is_gzip};
}

/* ---- finding the current version ---- */

static bool
version_exists(const Place *place, Version version, bool *out_exists, Error *err)
{
    return store_stat(place->store, version_key(place, version), out_exists, NULL, err);
}

/* The version with this number, in either form. */
static bool
find_number(const Place *place, int64_t number, Version *out_version, Error *err)
{
    Version version = {.number = number};
    bool exists = false;

    TRY(version_exists(place, version, &exists, err));
    if (!exists) {
        version.gzip = true;
        TRY(version_exists(place, version, &exists, err));
    }
    *out_version = exists ? version : (Version){0};
    return true;
}

/* What the hint says; 0 when there is none, or none that can be read. */
static bool
read_hint(const Place *place, int64_t *out_number, Error *err)
{
    AUTO_BUF Buf text = {0};
    bool found = false;

    TRY(store_get(place->store, hint_key(place), &text, &found, NULL, err));

    Str digits = buf_view(&text);

    while (digits.len > 0 && strchr(" \t\r\n", digits.ptr[digits.len - 1]) != NULL)
        digits.len--; /* other writers end the line */
    *out_number = parse_number(digits);
    return true;
}

/* The highest version in the folder. */
static bool
find_by_list(const Place *place, Version *out_version, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    Version best = {0};
    StoreObject *objects;
    size_t count;

    TRY(store_list(place->store, arena_printf(arena, "%sv", place->metadata), arena, &objects,
                   &count, err));
    for (size_t i = 0; i < count; i++) {
        Version version = version_of_key(place, objects[i].key);

        /* of two with one number, ours is the one that is not compressed */
        if (version.number > best.number || (version.number == best.number && !version.gzip))
            best = version;
    }
    *out_version = best;
    return true;
}

/* Upward from a version that is there, to the last one without a gap. */
static bool
climb(const Place *place, Version from, Version *out_version, Error *err)
{
    for (int steps = 0; steps < CLIMB_MAX; steps++) {
        Version next = {0};

        TRY(find_number(place, from.number + 1, &next, err));
        if (next.number == 0) {
            *out_version = from;
            return true;
        }
        from = next;
    }
    return find_by_list(place, out_version, err);
}

/* `known` is where to begin; number 0: at the hint. */
static bool
find_current(const Place *place, Version known, Version *out_version, Error *err)
{
    bool exists = false;
    int64_t hint = 0;

    if (known.number != 0) {
        TRY(version_exists(place, known, &exists, err));
        if (exists)
            return climb(place, known, out_version, err);
    }
    TRY(read_hint(place, &hint, err));
    known = (Version){0};
    if (hint != 0)
        TRY(find_number(place, hint, &known, err));
    if (known.number != 0)
        return climb(place, known, out_version, err);
    return find_by_list(place, out_version, err);
}

/* ---- reading ---- */

static void
end_inflate(z_stream *stream)
{
    inflateEnd(stream);
}

/* RFC 1952. */
static bool
gunzip(Str in, Buf *out, Error *err)
{
    AUTO(end_inflate) z_stream stream = {0};
    int code = inflateInit2(&stream, 16 + MAX_WBITS);

    assert(code == Z_OK);
    if (in.len > UINT32_MAX)
        return FAIL(err, ERR_INPUT, "compressed metadata of %zu bytes", in.len);
    stream.next_in = (z_const Bytef *) (uintptr_t) in.ptr;
    stream.avail_in = (uInt) in.len;
    buf_reset(out);
    while (code == Z_OK) {
        if (out->len > METADATA_BYTES_MAX)
            return FAIL(err, ERR_INPUT, "compressed metadata is too large");
        buf_reserve(out, 1 << 16);
        stream.next_out = (Bytef *) out->ptr + out->len;
        stream.avail_out = 1 << 16;
        code = inflate(&stream, Z_NO_FLUSH);
        out->len += (1 << 16) - stream.avail_out;
    }
    if (code != Z_STREAM_END)
        return FAIL(err, ERR_INPUT, "compressed metadata is damaged");
    return true;
}

static CatalogTable
table_of(const Place *place, Version version, Str metadata)
{
    return (CatalogTable){.location = store_uri(place->store, place->arena, place->folder),
                          .metadata_location =
                              store_uri(place->store, place->arena, version_key(place, version)),
                          .metadata = arena_str(place->arena, metadata),
                          .token = token_of(place->arena, version)};
}

static bool
read_version(const Place *place, Version version, CatalogTable *out_table, bool *out_found,
             Error *err)
{
    AUTO_BUF Buf bytes = {0};
    AUTO_BUF Buf plain = {0};

    TRY(store_get(place->store, version_key(place, version), &bytes, out_found, NULL, err));
    if (!*out_found)
        return true;
    if (version.gzip && !gunzip(buf_view(&bytes), &plain, err))
        return WRAP(err, "%s", version_key(place, version));
    *out_table = table_of(place, version, buf_view(version.gzip ? &plain : &bytes));
    return true;
}

static bool
file_load(Catalog *catalog, Arena *arena, const TableName *name, CatalogTable *out_table,
          bool *out_found, Error *err)
{
    Place place = place_of(catalog, arena, name);

    for (int tries = 0; tries < LOADS_MAX; tries++) {
        Version version = {0};

        TRY(find_current(&place, (Version){0}, &version, err));
        if (version.number == 0) {
            *out_found = false;
            return true;
        }
        TRY(read_version(&place, version, out_table, out_found, err));
        if (*out_found)
            return true;
    }
    return FAIL(err, ERR_TRANSIENT, "its metadata changes faster than it can be read");
}

static bool
file_current_token(Catalog *catalog, Arena *arena, const TableName *name, const char *token,
                   const char **out_token, Error *err)
{
    Place place = place_of(catalog, arena, name);
    Version known = token == NULL ? (Version){0} : version_of_token(token);
    Version version = {0};

    TRY(find_current(&place, known, &version, err));
    *out_token = version.number == 0 ? NULL : token_of(arena, version);
    return true;
}

/* ---- writing ---- */

/* Make one version. When somebody else made it: ERR_CONFLICT. */
static bool
write_version(const Place *place, int64_t number, Str metadata, CatalogTable *out_table, Error *err)
{
    Version version = {.number = number};
    bool created = false;
    Error ignored;

    TRY(store_put_absent(place->store, version_key(place, version), metadata, &created, err));
    if (!created)
        return FAIL(err, ERR_CONFLICT, "version %" PRId64 " exists", number);
    *out_table = table_of(place, version, metadata);

    /* the commit stands, whether the hint can be written or not */
    const char *hint = arena_printf(place->arena, "%" PRId64, number);
    bool hinted = store_put(place->store, hint_key(place), str_of(hint), &ignored);

    (void) hinted;
    return true;
}

static bool
file_create(Catalog *catalog, Arena *arena, const TableName *name, Str metadata,
            CatalogTable *out_table, Error *err)
{
    Place place = place_of(catalog, arena, name);
    Version version = {0};

    /* version 1 of an old table may have been expired, so its absence alone says nothing */
    TRY(find_current(&place, (Version){0}, &version, err));
    if (version.number != 0)
        return FAIL(err, ERR_CONFLICT, "it exists, at version %" PRId64, version.number);
    return write_version(&place, 1, metadata, out_table, err);
}

static bool
file_commit(/* NOLINT(readability-function-size): as in catalog.h */
            Catalog *catalog, Arena *arena, const TableName *name, const CatalogTable *base,
            Str metadata, CatalogTable *out_table, Error *err)
{
    Place place = place_of(catalog, arena, name);
    Version from = version_of_token(base->token);
    Version compressed = {.number = from.number + 1, .gzip = true};
    bool exists = false;

    if (from.number == 0)
        return FAIL(err, ERR_BUG, "not a token of this catalog: \"%s\"", base->token);

    /* Old versions are expired oldest first. If ours is gone, the next one may have come and gone,
     * too, and making it once more would fork the table's history. */
    TRY(version_exists(&place, from, &exists, err));
    if (!exists)
        return FAIL(err, ERR_CONFLICT, "version %" PRId64 " is gone", from.number);
    TRY(version_exists(&place, compressed, &exists, err));
    if (exists)
        return FAIL(err, ERR_CONFLICT, "version %" PRId64 " exists", compressed.number);
    return write_version(&place, from.number + 1, metadata, out_table, err);
}

/* ---- dropping ---- */

static int
compare_versions(const void *left, const void *right)
{
    const Version *a = left;
    const Version *b = right;

    return a->number < b->number ? -1 : a->number > b->number;
}

/* All versions, oldest first: the highest is the table for as long as it is there, so it goes last.
 * The hint follows it; one that names nothing is not believed. */
static bool
file_drop(Catalog *catalog, Arena *arena, const TableName *name, Error *err)
{
    Place place = place_of(catalog, arena, name);
    AUTO_BUF Buf versions = {0};
    StoreObject *objects;
    size_t count;

    TRY(store_list(place.store, arena_printf(arena, "%sv", place.metadata), arena, &objects, &count,
                   err));
    for (size_t i = 0; i < count; i++) {
        Version version = version_of_key(&place, objects[i].key);

        if (version.number != 0)
            BUF_PUSH(&versions, Version, version);
    }
    count = BUF_COUNT(&versions, Version);
    if (count > 0)
        qsort(versions.ptr, count, sizeof(Version), compare_versions);
    for (size_t i = 0; i < count; i++) {
        TRY(FAULT("catalog.drop", err));
        TRY(store_remove(place.store, version_key(&place, BUF_AT(&versions, Version, i)), err));
    }
    return store_remove(place.store, hint_key(&place), err);
}

/* ---- listing ---- */

/* A folder may be left of a table that was dropped: it is one when it has metadata. */
static bool
has_metadata(const Place *place, bool *out_has, Error *err)
{
    Version version = {0};
    int64_t hint = 0;

    TRY(read_hint(place, &hint, err));
    if (hint != 0)
        TRY(find_number(place, hint, &version, err));
    if (version.number == 0)
        TRY(find_by_list(place, &version, err));
    *out_has = version.number != 0;
    return true;
}

/* What cannot be looked at may be one: whoever loads it gets the error, and the others are listed.
 */
static bool
is_table(const Place *place, bool *out_is_table, Error *err)
{
    if (has_metadata(place, out_is_table, err))
        return true;
    *out_is_table = true;
    return err->kind != ERR_CANCELED;
}

/* The folders below `prefix` whose names are names of ours. */
static bool
read_names(Store *store, Arena *arena, const char *prefix, Str **out_names, size_t *out_count,
           Error *err)
{
    AUTO_BUF Buf name = {0};
    Str *folders;
    size_t count;
    size_t kept = 0;

    TRY(store_list_folders(store, prefix, arena, &folders, &count, err));
    for (size_t i = 0; i < count; i++)
        if (folder_name_read(folders[i], &name))
            folders[kept++] = arena_str(arena, buf_view(&name));
    *out_names = folders;
    *out_count = kept;
    return true;
}

static bool
list_space(Catalog *catalog, Arena *arena, Str space, Buf *tables, Error *err)
{
    AUTO_BUF Buf prefix = {0};
    Str *names;
    size_t count;

    folder_name_write(&prefix, space);
    buf_byte(&prefix, '/');
    TRY(read_names(catalog->warehouse, arena, buf_text(&prefix), &names, &count, err));
    for (size_t i = 0; i < count; i++) {
        TableName table = {.space = space, .name = names[i]};
        Place place = place_of(catalog, arena, &table);
        bool yes = false;

        TRY(is_table(&place, &yes, err));
        if (yes)
            BUF_PUSH(tables, TableName, table);
    }
    return true;
}

static int
compare_tables(const void *left, const void *right)
{
    const TableName *a = left;
    const TableName *b = right;
    int order = str_cmp(a->space, b->space);

    return order != 0 ? order : str_cmp(a->name, b->name);
}

static bool
file_list(Catalog *catalog, Arena *arena, TableName **out_names, size_t *out_count, Error *err)
{
    AUTO_BUF Buf tables = {0};
    Str *spaces;
    size_t count;

    TRY(read_names(catalog->warehouse, arena, "", &spaces, &count, err));
    for (size_t i = 0; i < count; i++)
        TRY(list_space(catalog, arena, spaces[i], &tables, err));
    count = BUF_COUNT(&tables, TableName);

    TableName *names = ARENA_ARRAY(arena, TableName, count);

    if (count > 0) {
        memcpy(names, tables.ptr, tables.len);
        qsort(names, count, sizeof *names, compare_tables);
    }
    *out_names = names;
    *out_count = count;
    return true;
}

/* ---- opening ---- */

static bool
file_open(Store *warehouse, Catalog **out_catalog, Error *err)
{
    (void) err;

    Catalog *catalog = xcalloc(1, sizeof *catalog);

    catalog->ops = &file_catalog_ops;
    catalog->warehouse = warehouse;
    *out_catalog = catalog;
    return true;
}

static void
file_close(Catalog *catalog)
{
    free(catalog);
}

const CatalogOps file_catalog_ops = {
    .name = "file",
    .open = file_open,
    .load = file_load,
    .create = file_create,
    .commit = file_commit,
    .drop = file_drop,
    .list = file_list,
    .current_token = file_current_token,
    .close = file_close,
};
