#include "store/store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/fault.h"
#include "store/kinds.h"

enum { KEY_BYTES_MAX = 1024 }; /* of S3 */

static const StoreOps *const store_kinds[] = {
    &fs_store_ops,
    &s3_store_ops,
};

StoreOptions
store_options(const Config *config, Cancel *cancel)
{
    return (StoreOptions){
        .endpoint = config->s3_endpoint,
        .region = config->s3_region,
        .path_style = config->s3_path_style,
        .access_key_id = config->s3_access_key_id,
        .secret_access_key = config->s3_secret_access_key,
        .session_token = config->s3_session_token,
        .ca_file = config->s3_ca_file,
        .cancel = cancel,
    };
}

/* A part of a key that means something else than its name to a file system, or to us. */
static bool
part_is_special(Str part)
{
    return part.len == 0 || str_eq(part, STR(".")) || str_eq(part, STR(".."));
}

static bool
is_key(Str key)
{
    Str rest = key;

    if (key.len == 0 || key.len > KEY_BYTES_MAX || memchr(key.ptr, '\0', key.len) != NULL ||
        !str_is_utf8(key))
        return false;
    for (;;) {
        const char *slash = memchr(rest.ptr, '/', rest.len);
        Str part = {rest.ptr, slash == NULL ? rest.len : (size_t) (slash - rest.ptr)};

        if (part_is_special(part))
            return false;
        if (slash == NULL)
            return true;
        rest = (Str){slash + 1, rest.len - part.len - 1};
    }
}

static bool
check_key(const char *key, Error *err)
{
    if (!is_key(str_of(key)))
        return FAIL(err, ERR_INPUT, "not a key: \"%s\"", key);
    return true;
}

static bool
is_reserved(const char *key)
{
    const char *slash = strrchr(key, '/');

    return str_starts(str_of(slash == NULL ? key : slash + 1), STR(STORE_RESERVED_PREFIX));
}

static bool
check_new_key(const char *key, Error *err)
{
    TRY(check_key(key, err));
    if (is_reserved(key))
        return FAIL(err, ERR_INPUT, "not a key: \"%s\": %s is reserved", key,
                    STORE_RESERVED_PREFIX);
    return true;
}

/* "" or parts, the last of which may be cut short. */
static bool
check_prefix(const char *prefix, Error *err)
{
    const char *slash = strrchr(prefix, '/');
    Str folder = {prefix, slash == NULL ? 0 : (size_t) (slash - prefix)};

    if (!str_is_utf8(str_of(prefix)) || (slash != NULL && !is_key(folder)))
        return FAIL(err, ERR_INPUT, "not a prefix of a key: \"%s\"", prefix);
    return true;
}

/* The scheme of a location; a bare path is "file". */
static Str
scheme_of(const char *location)
{
    const char *colon = strchr(location, ':');
    const char *slash = strchr(location, '/');

    if (colon == NULL || (slash != NULL && slash < colon) || colon + 1 != slash)
        return STR("file");

    Str scheme = {location, (size_t) (colon - location)};

    /* Hadoop's names for the same service */
    if (str_eq(scheme, STR("s3a")) || str_eq(scheme, STR("s3n")))
        return STR("s3");
    return scheme;
}

bool
store_open(const char *location, const StoreOptions *options, Store **out_store, Error *err)
{
    Str scheme = scheme_of(location);

    for (size_t i = 0; i < sizeof store_kinds / sizeof store_kinds[0]; i++)
        if (str_eqc(scheme, store_kinds[i]->scheme))
            return store_kinds[i]->open(str_of(location), options, out_store, err) ||
                   WRAP(err, "%s", location);
    return FAIL(err, ERR_INPUT,
                "%s: no store for %.*s:\nhint: a warehouse is a path, file:///path or "
                "s3://bucket/prefix",
                location, STR_ARG(scheme));
}

void
store_close(Store *store)
{
    if (store != NULL)
        store->ops->close(store);
}

bool
store_get(Store *store, const char *key, Buf *out, bool *out_found, StoreVersion *out_version,
          Error *err)
{
    StoreVersion version = {0};
    bool found;

    TRY(check_key(key, err));
    TRY(FAULT("store.get", err));
    buf_reset(out);
    if (!store->ops->get(store, key, out, &found, &version, err))
        return WRAP(err, "get %s/%s", store->base_uri, key);
    *out_found = found;
    if (out_version != NULL)
        *out_version = version;
    return true;
}

bool
store_get_range(/* NOLINT(readability-function-size): as in store.h */
                Store *store, const char *key, StoreRange range, Buf *out, bool *out_found,
                Error *err)
{
    bool found;

    TRY(check_key(key, err));
    assert(range.offset >= 0 && range.length > 0);
    TRY(FAULT("store.get_range", err));
    buf_reset(out);
    if (!store->ops->get_range(store, key, range, out, &found, err))
        return WRAP(err, "get %" PRId64 " bytes at %" PRId64 " of %s/%s", range.length,
                    range.offset, store->base_uri, key);
    if (found && (int64_t) out->len != range.length)
        return FAIL(err, ERR_INPUT, "get %" PRId64 " bytes at %" PRId64 " of %s/%s: it ends before",
                    range.length, range.offset, store->base_uri, key);
    *out_found = found;
    return true;
}

/* The fault points named "...answer" stand for a write that was done and whose answer was lost. */
bool
store_put(Store *store, const char *key, Str bytes, Error *err)
{
    TRY(check_new_key(key, err));
    TRY(FAULT("store.put", err));
    if (!store->ops->put(store, key, bytes, err))
        return WRAP(err, "put %s/%s", store->base_uri, key);
    return FAULT("store.put.answer", err);
}

bool
store_put_file(Store *store, const char *key, const char *path, Error *err)
{
    TRY(check_new_key(key, err));
    TRY(FAULT("store.upload", err));
    if (!store->ops->put_file(store, key, path, err))
        return WRAP(err, "put %s/%s", store->base_uri, key);
    return FAULT("store.upload.answer", err);
}

bool
store_put_absent(Store *store, const char *key, Str bytes, bool *out_created, Error *err)
{
    TRY(check_new_key(key, err));
    TRY(FAULT("store.put_absent", err));

    bool created;

    if (!store->ops->put_absent(store, key, bytes, &created, err))
        return WRAP(err, "create %s/%s", store->base_uri, key);
    TRY(FAULT("store.put_absent.answer", err));
    *out_created = created;
    return true;
}

bool
store_put_match(/* NOLINT(readability-function-size): as in store.h */
                Store *store, const char *key, const StoreVersion *expected, Str bytes,
                bool *out_swapped, StoreVersion *out_version, Error *err)
{
    StoreVersion version = {0};
    bool swapped;

    TRY(check_new_key(key, err));
    TRY(FAULT("store.put_match", err));
    if (!store->ops->put_match(store, key, expected, bytes, &swapped, &version, err))
        return WRAP(err, "swap %s/%s", store->base_uri, key);
    TRY(FAULT("store.put_match.answer", err));
    *out_swapped = swapped;
    if (swapped && out_version != NULL)
        *out_version = version;
    return true;
}

bool
store_fetch(Store *store, const char *key, const char *path, bool *out_found, Error *err)
{
    TRY(check_key(key, err));
    TRY(FAULT("store.fetch", err));
    if (!store->ops->fetch(store, key, path, out_found, err))
        return WRAP(err, "fetch %s/%s", store->base_uri, key);
    return true;
}

bool
store_stat(Store *store, const char *key, bool *out_found, int64_t *out_bytes, Error *err)
{
    int64_t bytes = 0;
    bool found;

    TRY(check_key(key, err));
    TRY(FAULT("store.stat", err));
    if (!store->ops->stat(store, key, &found, &bytes, err))
        return WRAP(err, "stat %s/%s", store->base_uri, key);
    *out_found = found;
    if (found && out_bytes != NULL)
        *out_bytes = bytes;
    return true;
}

static int
by_key(const void *left, const void *right)
{
    return str_cmp(((const StoreObject *) left)->key, ((const StoreObject *) right)->key);
}

static int
by_name(const void *left, const void *right)
{
    return str_cmp(*(const Str *) left, *(const Str *) right);
}

/* Folders come in any order, and services differ ("a/b" before "a-b"), so it is made here. */
bool
store_list(Store *store, const char *prefix, Arena *arena, StoreObject **out_objects,
           size_t *out_count, Error *err)
{
    TRY(check_prefix(prefix, err));
    TRY(FAULT("store.list", err));
    if (!store->ops->list(store, prefix, arena, out_objects, out_count, err))
        return WRAP(err, "list %s/%s", store->base_uri, prefix);
    if (*out_count > 0)
        qsort(*out_objects, *out_count, sizeof **out_objects, by_key);
    return true;
}

bool
store_list_folders(Store *store, const char *prefix, Arena *arena, Str **out_names,
                   size_t *out_count, Error *err)
{
    TRY(check_prefix(prefix, err));
    assert(prefix[0] == '\0' || prefix[strlen(prefix) - 1] == '/');
    TRY(FAULT("store.list", err));
    if (!store->ops->list_folders(store, prefix, arena, out_names, out_count, err))
        return WRAP(err, "list %s/%s", store->base_uri, prefix);
    if (*out_count > 0)
        qsort(*out_names, *out_count, sizeof **out_names, by_name);
    return true;
}

bool
store_remove(Store *store, const char *key, Error *err)
{
    TRY(check_key(key, err));
    TRY(FAULT("store.remove", err));
    if (!store->ops->remove(store, key, err))
        return WRAP(err, "remove %s/%s", store->base_uri, key);
    return true;
}

const char *
store_local_path(const Store *store, Arena *arena, const char *key)
{
    Str base = str_of(store->base_uri);

    if (!str_starts(base, STR("file://")))
        return NULL;
    return arena_printf(arena, "%s/%s", base.ptr + strlen("file://"), key);
}

const char *
store_uri(const Store *store, Arena *arena, const char *key)
{
    return arena_printf(arena, "%s/%s", store->base_uri, key);
}

/* The one spelling we compare: file:///path or s3://bucket/key. */
static const char *
canonical_uri(Arena *arena, Str uri)
{
    static const struct {
        const char *from;
        const char *to;
    } spellings[] = {
        {"s3a://", "s3://"},      {"s3n://", "s3://"}, {"file://localhost/", "file:///"},
        {"file:///", "file:///"}, {"file://", NULL}, /* another host's */
        {"file:/", "file:///"},   {"/", "file:///"},
    };

    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        Str from = str_of(spellings[i].from);

        if (!str_starts(uri, from))
            continue;
        if (spellings[i].to == NULL)
            return NULL;
        return arena_printf(arena, "%s%.*s", spellings[i].to, (int) (uri.len - from.len),
                            uri.ptr + from.len);
    }
    return arena_str(arena, uri).ptr;
}

const char *
store_key(const Store *store, Arena *arena, const char *uri)
{
    const char *canonical = canonical_uri(arena, str_of(uri));
    size_t base_length = strlen(store->base_uri);

    if (canonical == NULL || strncmp(canonical, store->base_uri, base_length) != 0 ||
        canonical[base_length] != '/' || !is_key(str_of(canonical + base_length + 1)))
        return NULL;
    return canonical + base_length + 1;
}
