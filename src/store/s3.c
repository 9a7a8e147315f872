/* s3.c - a store in a bucket of an S3 service, below a prefix.
 *
 * Commits rest on two conditional writes: If-None-Match: * (put_absent) and If-Match (put_match).
 * Both go as a single PUT, never as a multipart upload, whose conditional completion is not
 * reliable everywhere. When the answer to one is lost, the object itself is the answer: if it holds
 * our bytes, our write was the one.
 *
 *   200: we won.
 *   412: lost; or our own earlier attempt won, when there was one without an answer.
 *   404 to If-Match: lost, the object is gone (AWS; other services say 412).
 *   409 Conditional...: another write of the key is under way, so again.
 *   5xx, 408, cut, timeout: unknown, so read the object, then decide. */
#include "store/kinds.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/fs_file.h"
#include "store/s3_request.h"

/* S3 User Guide, "Amazon S3 multipart upload limits": what one PUT takes. */
#define PUT_BYTES_MAX ((int64_t) 5 << 30)

typedef struct S3Store {
    Store store;
    S3Bucket bucket;
    char *prefix; /* "" or with a slash at the end */
} S3Store;

static S3Store *
s3_of(Store *store)
{
    assert(store->ops == &s3_store_ops);
    return (S3Store *) store;
}

static const char *
whole_key(const S3Store *s3, Arena *arena, const char *key)
{
    return arena_printf(arena, "%s%s", s3->prefix, key);
}

static bool
version_of(const HttpResponse *response, StoreVersion *out, Error *err)
{
    Str etag = http_header(response, "ETag");

    if (etag.len == 0 || etag.len >= sizeof out->text)
        return FAIL(err, ERR_INPUT, "the service answered with %s ETag",
                    etag.len == 0 ? "no" : "too long an");
    *out = (StoreVersion){0};
    memcpy(out->text, etag.ptr, etag.len);
    return true;
}

static bool
s3_get(Store *store, const char *key, Buf *out, bool *out_found, StoreVersion *out_version,
       Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    S3Store *s3 = s3_of(store);

    TRY(s3_send(&s3->bucket, &(S3Request){.method = "GET", .key = whole_key(s3, arena, key)},
                &response, out_found, err));
    if (!*out_found)
        return true;
    TRY(version_of(&response, out_version, err));

    /* the body changes hands, it is not copied */
    Buf body = response.body;

    response.body = *out;
    *out = body;
    return true;
}

/* A service that does not know ranges answers 200 with the whole object. */
static bool
s3_get_range(Store *store, const char *key, StoreRange range, Buf *out, bool *out_found, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    S3Store *s3 = s3_of(store);
    const char *bytes = arena_printf(arena, "bytes=%" PRId64 "-%" PRId64, range.offset,
                                     range.offset + range.length - 1);

    TRY(s3_send(&s3->bucket,
                &(S3Request){.method = "GET", .key = whole_key(s3, arena, key), .range = bytes},
                &response, out_found, err));
    if (!*out_found)
        return true;

    Str body = buf_view(&response.body);
    size_t skip = response.status == 206 ? 0 : (size_t) range.offset;

    if (skip < body.len) {
        body = (Str){.ptr = body.ptr + skip, .len = body.len - skip};
        body.len = body.len < (size_t) range.length ? body.len : (size_t) range.length;
        buf_str(out, body);
    }
    return true;
}

static bool
s3_stat(Store *store, const char *key, bool *out_found, int64_t *out_bytes, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    S3Store *s3 = s3_of(store);

    TRY(s3_send(&s3->bucket, &(S3Request){.method = "HEAD", .key = whole_key(s3, arena, key)},
                &response, out_found, err));
    if (*out_found) {
        Str length = http_header(&response, "Content-Length");

        *out_bytes = length.len == 0 ? 0 : strtoll(length.ptr, NULL, 10);
    }
    return true;
}

static bool
s3_fetch(Store *store, const char *key, const char *path, bool *out_found, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    AUTO_FS_TMP FsTmp part = {.fd = -1};
    S3Store *s3 = s3_of(store);

    TRY(fs_part_path(path, part.path, err));
    TRY(s3_send(
        &s3->bucket,
        &(S3Request){.method = "GET", .key = whole_key(s3, arena, key), .response_path = part.path},
        &response, out_found, err));
    if (!*out_found)
        return true;
    /* on disk before it has its name: a crash must not leave a file that looks whole */
    part.fd = open(part.path, O_RDONLY | O_CLOEXEC);
    if (part.fd < 0)
        return fs_fail(err, "open", part.path);
    TRY(fs_sync_file(part.fd, part.path, err));
    if (rename(part.path, path) != 0)
        return fs_fail(err, "rename to", path);
    part.path[0] = '\0';
    return true;
}

/* ---- writing ---- */

/* A write that may be repeated: the last one counts and all are the same. */
static bool
send_put(S3Store *s3, const S3Request *request, Error *err)
{
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    bool found;

    TRY(s3_send(&s3->bucket, request, &response, &found, err));
    if (!found)
        return FAIL(err, ERR_INPUT, "HTTP 404\nhint: is this an S3 endpoint?");
    return true;
}

/* An empty object has a body, too. */
static Str
as_body(Str bytes)
{
    return bytes.ptr == NULL ? STR("") : bytes;
}

static bool
s3_put(Store *store, const char *key, Str bytes, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    S3Store *s3 = s3_of(store);

    return send_put(
        s3, &(S3Request){.method = "PUT", .key = whole_key(s3, arena, key), .body = as_body(bytes)},
        err);
}

static bool
s3_put_file(Store *store, const char *key, const char *path, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    S3Store *s3 = s3_of(store);
    struct stat st;

    if (stat(path, &st) != 0)
        return fs_fail(err, "open", path);
    if (st.st_size > PUT_BYTES_MAX)
        return FAIL(err, ERR_INPUT,
                    "%s has %lld bytes, S3 takes 5 GiB at once\nhint: write smaller data files",
                    path, (long long) st.st_size);
    return send_put(
        s3, &(S3Request){.method = "PUT", .key = whole_key(s3, arena, key), .body_path = path},
        err);
}

/* A conditional write and what has happened to it so far. */
typedef struct Swap {
    const char *key; /* relative to the store */
    Str bytes;
    const char *expected; /* ETag; NULL: the object must not exist */
    bool maybe_done;      /* an attempt may have had its effect */
} Swap;

typedef enum Verdict { SWAP_WON, SWAP_LOST, SWAP_OPEN } Verdict;

/* Decide by what is there now. SWAP_OPEN: as before our attempts, so it may be tried again. */
static bool
look(S3Store *s3, const Swap *swap, Verdict *out_verdict, StoreVersion *out_version, Error *err)
{
    AUTO_BUF Buf present = {0};
    bool found;

    TRY(s3_get(&s3->store, swap->key, &present, &found, out_version, err));
    if (found && str_eq(buf_view(&present), swap->bytes))
        *out_verdict = SWAP_WON;
    else if (found)
        *out_verdict = swap->expected != NULL && strcmp(swap->expected, out_version->text) == 0
                           ? SWAP_OPEN
                           : SWAP_LOST;
    else
        *out_verdict = swap->expected == NULL ? SWAP_OPEN : SWAP_LOST;
    return true;
}

/* One attempt. */
static bool
attempt(S3Store *s3, Swap *swap, HttpResponse *response, Verdict *out_verdict,
        StoreVersion *out_version, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    HttpHeader condition = {"If-None-Match", "*"};
    bool looked_in_vain = false;

    if (swap->expected != NULL)
        condition = (HttpHeader){"If-Match", swap->expected};

    S3Outcome outcome = s3_try(&s3->bucket,
                               &(S3Request){.method = "PUT",
                                            .key = whole_key(s3, arena, swap->key),
                                            .condition = condition,
                                            .body = as_body(swap->bytes)},
                               response, err);

    switch (outcome) {
    case S3_DONE:
        *out_verdict = SWAP_WON;
        return version_of(response, out_version, err);
    case S3_FAILED:
        return false;
    case S3_AGAIN:
        *out_verdict = SWAP_OPEN;
        return true;
    case S3_UNKNOWN:
        swap->maybe_done = true;
        break;
    case S3_MISSING:
    case S3_LOST:
        *out_verdict = SWAP_LOST;
        if (!swap->maybe_done)
            return true;
        looked_in_vain = true;
        break;
    }

    Error looked = {0};

    if (!look(s3, swap, out_verdict, out_version, &looked)) {
        *err = looked;
        return false;
    }
    /* the condition failed, and what made it fail is gone again: somebody else's business */
    if (looked_in_vain && *out_verdict == SWAP_OPEN)
        *out_verdict = SWAP_LOST;
    return true;
}

static bool
swap_object(S3Store *s3, Swap *swap, bool *out_won, StoreVersion *out_version, Error *err)
{
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    S3Patience patience = s3_patience(&s3->bucket);
    Verdict verdict = SWAP_OPEN;

    for (;;) {
        TRY(attempt(s3, swap, &response, &verdict, out_version, err));
        if (verdict != SWAP_OPEN)
            break;
        TRY(s3_wait(&s3->bucket, &patience, response.retry_after_ms, err));
    }
    *out_won = verdict == SWAP_WON;
    return true;
}

static bool
s3_put_absent(Store *store, const char *key, Str bytes, bool *out_created, Error *err)
{
    Swap swap = {.key = key, .bytes = bytes};
    StoreVersion version;

    return swap_object(s3_of(store), &swap, out_created, &version, err);
}

static bool
s3_put_match(/* NOLINT(readability-function-size): as in store.h */
             Store *store, const char *key, const StoreVersion *expected, Str bytes,
             bool *out_swapped, StoreVersion *out_version, Error *err)
{
    Swap swap = {
        .key = key, .bytes = bytes, .expected = expected->text[0] == '\0' ? NULL : expected->text};

    return swap_object(s3_of(store), &swap, out_swapped, out_version, err);
}

static bool
s3_remove(Store *store, const char *key, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    S3Store *s3 = s3_of(store);
    bool found;

    return s3_send(&s3->bucket, &(S3Request){.method = "DELETE", .key = whole_key(s3, arena, key)},
                   &response, &found, err);
}

/* ---- listing ---- */

/* What a listing gathers over its pages. */
typedef struct Listing {
    Buf objects; /* of StoreObject, keys relative to the store */
    Buf folders; /* of Str */
} Listing;

static void
listing_done(Listing *listing)
{
    buf_done(&listing->objects);
    buf_done(&listing->folders);
}

static void
gather(Listing *listing, const S3Store *s3, Str whole_prefix, const S3Page *page)
{
    for (size_t i = 0; i < page->object_count; i++) {
        StoreObject object = page->objects[i];

        /* a key that ends with a slash is how consoles draw an empty folder */
        if (!str_starts(object.key, whole_prefix) || str_ends(object.key, STR("/")))
            continue;
        object.key.ptr += strlen(s3->prefix);
        object.key.len -= strlen(s3->prefix);
        BUF_PUSH(&listing->objects, StoreObject, object);
    }
    for (size_t i = 0; i < page->prefix_count; i++) {
        Str folder = page->prefixes[i];

        if (!str_starts(folder, whole_prefix) || folder.len < whole_prefix.len + 2)
            continue;
        BUF_PUSH(&listing->folders, Str,
                 ((Str){folder.ptr + whole_prefix.len, folder.len - whole_prefix.len - 1}));
    }
}

/* All pages below a prefix; with a delimiter, only what is directly below it. */
static bool
list_pages(S3Store *s3, Arena *arena, const char *prefix, bool folders, Listing *listing,
           Error *err)
{
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    Str whole_prefix = str_of(whole_key(s3, arena, prefix));
    Str token = STR_NULL;

    for (;;) {
        SigV4Param params[5] = {{STR("list-type"), STR("2")},
                                {STR("encoding-type"), STR("url")},
                                {STR("prefix"), whole_prefix}};
        size_t count = 3;
        S3Page page;
        bool found;

        if (folders)
            params[count++] = (SigV4Param){STR("delimiter"), STR("/")};
        if (token.ptr != NULL)
            params[count++] = (SigV4Param){STR("continuation-token"), token};
        TRY(s3_send(&s3->bucket,
                    &(S3Request){.method = "GET", .params = params, .param_count = count},
                    &response, &found, err));
        if (!found)
            return FAIL(err, ERR_INPUT, "HTTP 404\nhint: is this an S3 endpoint?");
        TRY(s3_page_parse(arena, buf_view(&response.body), &page, err));
        gather(listing, s3, whole_prefix, &page);
        if (!page.truncated)
            return true;
        if (page.next_token.len == 0 || (token.ptr != NULL && str_eq(page.next_token, token)))
            return FAIL(err, ERR_TRANSIENT, "the service's listing does not come to an end");
        token = page.next_token;
    }
}

static bool
s3_list(Store *store, const char *prefix, Arena *arena, StoreObject **out_objects,
        size_t *out_count, Error *err)
{
    AUTO(listing_done) Listing listing = {0};

    TRY(list_pages(s3_of(store), arena, prefix, false, &listing, err));

    size_t count = BUF_COUNT(&listing.objects, StoreObject);
    StoreObject *objects = ARENA_ARRAY(arena, StoreObject, count);

    if (count > 0)
        memcpy(objects, listing.objects.ptr, listing.objects.len);
    *out_objects = objects;
    *out_count = count;
    return true;
}

static bool
s3_list_folders(Store *store, const char *prefix, Arena *arena, Str **out_names, size_t *out_count,
                Error *err)
{
    AUTO(listing_done) Listing listing = {0};

    TRY(list_pages(s3_of(store), arena, prefix, true, &listing, err));

    size_t count = BUF_COUNT(&listing.folders, Str);
    Str *names = ARENA_ARRAY(arena, Str, count);

    if (count > 0)
        memcpy(names, listing.folders.ptr, listing.folders.len);
    *out_names = names;
    *out_count = count;
    return true;
}

/* ---- opening ---- */

static void
s3_close(Store *store)
{
    S3Store *s3 = s3_of(store);

    s3_bucket_done(&s3->bucket);
    free(s3->prefix);
    free(s3->store.base_uri);
    free(s3);
}

static bool
s3_open(Str location, const StoreOptions *options, Store **out_store, Error *err)
{
    AUTO_BUF Buf uri = {0};
    AUTO_BUF Buf prefix = {0};
    const char *slashes = memmem(location.ptr, location.len, "://", 3);

    if (slashes == NULL)
        return FAIL(err, ERR_INPUT, "hint: write s3://bucket/prefix");

    Str rest = {slashes + 3, location.len - (size_t) (slashes + 3 - location.ptr)};

    while (rest.len > 0 && rest.ptr[rest.len - 1] == '/')
        rest.len--;

    const char *slash = memchr(rest.ptr, '/', rest.len);
    Str name = {rest.ptr, slash == NULL ? rest.len : (size_t) (slash - rest.ptr)};

    buf_printf(&uri, "s3://%.*s", STR_ARG(rest));
    if (slash != NULL)
        buf_printf(&prefix, "%.*s/", (int) (rest.len - name.len - 1), slash + 1);

    S3Store *s3 = xcalloc(1, sizeof *s3);

    s3->store.ops = &s3_store_ops;
    s3->store.base_uri = xstrdup(buf_text(&uri));
    s3->prefix = xstrdup(buf_text(&prefix));
    if (!s3_bucket_init(&s3->bucket, name, options, err)) {
        s3_close(&s3->store);
        return false;
    }
    *out_store = &s3->store;
    return true;
}

const StoreOps s3_store_ops = {
    .scheme = "s3",
    .open = s3_open,
    .get = s3_get,
    .get_range = s3_get_range,
    .put = s3_put,
    .put_file = s3_put_file,
    .put_absent = s3_put_absent,
    .put_match = s3_put_match,
    .fetch = s3_fetch,
    .stat = s3_stat,
    .list = s3_list,
    .list_folders = s3_list_folders,
    .remove = s3_remove,
    .close = s3_close,
};
