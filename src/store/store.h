/* store.h - objects by key: a folder of a file system, or a bucket and prefix of an S3 service.
 *
 * A Store is a StoreOps table and a struct whose first member is Store. Adding one means: write
 * store/<name>.c and add its line to store_kinds[] in store.c.
 *
 * Contract, checked by test/contract/store.c against every store:
 *   - keys are relative, '/'-separated, UTF-8, never empty, without empty, "." or ".." parts; the
 *     last part does not start with ".walberg." (what the file store keeps for itself);
 *   - after a put returned true the object is durable and every later get sees all of it; no get
 *     ever sees a part of it;
 *   - put_absent: of any number of racing calls for one key exactly one has *out_created = true;
 *   - put_match: compare-and-swap on the version that get or an earlier put_match returned. A key
 *     that is swapped is not also written by plain puts;
 *   - a put whose outcome is not known (timeout, 5xx after sending) fails with ERR_TRANSIENT; the
 *     caller looks before it decides. put_absent and put_match resolve a lost answer themselves
 *     by reading the object back (ours byte for byte: it was our write);
 *   - transient trouble (500, 503, SlowDown, cut connection, timeout) is retried with backoff
 *     inside, up to retry_ms_max, then ERR_TRANSIENT; refused rights, missing bucket: ERR_INPUT
 *     with a hint. A full disk is ERR_TRANSIENT: it passes when somebody makes room;
 *   - any thread may call; calls on one Store run in parallel. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/cancel.h"
#include "config/config.h"

/* Keys whose last part starts with this belong to the file store itself. */
#define STORE_RESERVED_PREFIX ".walberg."

typedef struct Store Store;

typedef struct StoreOptions {
    const char *endpoint; /* s3: URL, NULL = AWS for the region */
    const char *region;   /* NULL = "us-east-1" */
    bool path_style;
    const char *access_key_id;
    const char *secret_access_key;
    const char *session_token; /* NULL: none */
    const char *ca_file;       /* NULL: the system's */
    int64_t retry_ms_max;      /* 0 = 60,000 */
    int64_t stall_ms;          /* give up on a request that does not move; 0 = 30,000 */
    Cancel *cancel;            /* NULL: cannot be interrupted */
} StoreOptions;

/* As the settings say. */
StoreOptions store_options(const Config *config, Cancel *cancel);

/* An object's version for put_match: S3's ETag, or a hash of the content. */
typedef struct StoreVersion {
    char text[80]; /* empty: the object does not exist */
} StoreVersion;

typedef struct StoreObject {
    Str key; /* relative to the store */
    int64_t bytes;
    int64_t modified_us; /* since 1970 */
} StoreObject;

/* Some bytes of an object. */
typedef struct StoreRange {
    int64_t offset;
    int64_t length; /* at least 1 */
} StoreRange;

typedef struct StoreOps {
    const char *scheme; /* "file", "s3" */
    bool (*open)(Str location, const StoreOptions *options, Store **out_store, Error *err);
    bool (*get)(Store *store, const char *key, Buf *out, bool *out_found, StoreVersion *out_version,
                Error *err);
    bool (*get_range)(Store *store, const char *key, StoreRange range, Buf *out, bool *out_found,
                      Error *err);
    bool (*put)(Store *store, const char *key, Str bytes, Error *err);
    bool (*put_file)(Store *store, const char *key, const char *path, Error *err);
    bool (*put_absent)(Store *store, const char *key, Str bytes, bool *out_created, Error *err);
    bool (*put_match)(Store *store, const char *key, const StoreVersion *expected, Str bytes,
                      bool *out_swapped, StoreVersion *out_version, Error *err);
    bool (*fetch)(Store *store, const char *key, const char *path, bool *out_found, Error *err);
    bool (*stat)(Store *store, const char *key, bool *out_found, int64_t *out_bytes, Error *err);
    /* both in any order */
    bool (*list)(Store *store, const char *prefix, Arena *arena, StoreObject **out_objects,
                 size_t *out_count, Error *err);
    bool (*list_folders)(Store *store, const char *prefix, Arena *arena, Str **out_names,
                         size_t *out_count, Error *err);
    bool (*remove)(Store *store, const char *key, Error *err);
    void (*close)(Store *store);
} StoreOps;

struct Store {
    const StoreOps *ops;
    char *base_uri; /* "file:///data/lake" or "s3://bucket/prefix", no trailing slash */
};

/* location: a path (relative ones are made absolute), file:///path or s3://bucket/prefix. A file
 * store's folder is made when missing. */
bool store_open(const char *location, const StoreOptions *options, Store **out_store,
                Error *err) WARN_UNUSED;
void store_close(Store *store); /* NULL is fine */

/* *out_found = false leaves out empty and is no error. out_version may be NULL. out is replaced. */
bool store_get(Store *store, const char *key, Buf *out, bool *out_found, StoreVersion *out_version,
               Error *err) WARN_UNUSED;
/* The bytes of a range, all of them: ERR_INPUT when the object ends before. */
bool store_get_range(Store *store, const char *key, StoreRange range, Buf *out, bool *out_found,
                     Error *err) WARN_UNUSED;
bool store_put(Store *store, const char *key, Str bytes, Error *err) WARN_UNUSED;
/* The content of a local file. fs: renames when it can, so `path` may be gone afterwards. */
bool store_put_file(Store *store, const char *key, const char *path, Error *err) WARN_UNUSED;
bool store_put_absent(Store *store, const char *key, Str bytes, bool *out_created,
                      Error *err) WARN_UNUSED;
/* expected->text empty: the object must not exist. */
bool store_put_match(Store *store, const char *key, const StoreVersion *expected, Str bytes,
                     bool *out_swapped, StoreVersion *out_version, Error *err) WARN_UNUSED;
/* Download into a local file (written beside it, as <path>.<16 hex digits>.part, and renamed: it is
 * whole or not there, also after a crash). */
bool store_fetch(Store *store, const char *key, const char *path, bool *out_found,
                 Error *err) WARN_UNUSED;
/* Whether an object is there, and its size (out_bytes may be NULL), without reading it. */
bool store_stat(Store *store, const char *key, bool *out_found, int64_t *out_bytes,
                Error *err) WARN_UNUSED;
/* All objects whose key starts with prefix, in key order (bytes). Temporary files of the file store
 * appear only when they are more than a day old: then they are litter of a dead process, and
 * whoever removes what nobody refers to may remove them. */
bool store_list(Store *store, const char *prefix, Arena *arena, StoreObject **out_objects,
                size_t *out_count, Error *err) WARN_UNUSED;
/* Names of the folders directly below prefix, which is "" or ends with a slash, in byte order. The
 * file store may name empty ones, too. Costs what the folder holds, not what the tree holds. */
bool store_list_folders(Store *store, const char *prefix, Arena *arena, Str **out_names,
                        size_t *out_count, Error *err) WARN_UNUSED;
/* No error when it is not there. */
bool store_remove(Store *store, const char *key, Error *err) WARN_UNUSED;

/* The local path of an object when the store is a file system, else NULL: such files are read in
 * place. */
const char *store_local_path(const Store *store, Arena *arena, const char *key);

/* Full URI of a key, and back. A URI may come as file:///x, file:/x or /x for a file store;
 * s3a:// and s3n:// count as s3://. store_key returns NULL when the URI is not below this store.
 * Nothing is percent-encoded or decoded: Iceberg readers take a path as it stands. */
const char *store_uri(const Store *store, Arena *arena, const char *key);
const char *store_key(const Store *store, Arena *arena, const char *uri);

#endif
