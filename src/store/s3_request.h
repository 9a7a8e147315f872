/* s3_request.h - one signed request to an S3 service, and what its answer means.
 *
 * Under s3.c: addresses (path and virtual-host style), signatures, waiting and trying again, and
 * the table that turns S3's error codes into kinds and hints. */
#ifndef STORE_S3_REQUEST_H
#define STORE_S3_REQUEST_H

#include "net/http_client.h"
#include "store/s3_xml.h"
#include "store/sigv4.h"
#include "store/store.h"

/* Where the bucket is and who we are. Immutable once made, so any thread may use it. */
typedef struct S3Bucket {
    HttpClient *http;
    Cancel *cancel;  /* NULL: none */
    char *name;      /* of the bucket */
    char *origin;    /* "https://bucket.s3.eu-west-3.amazonaws.com" */
    char *host;      /* what the Host header says */
    char *base_path; /* before an object's key: "/bucket/", or "/" in virtual-host style */
    char *region;
    char *access_key_id;
    char *secret_access_key;
    char *session_token; /* NULL: none */
    int64_t retry_ms_max;
} S3Bucket;

/* Checks the options (ERR_INPUT with a hint); no request is made. */
bool s3_bucket_init(S3Bucket *bucket, Str name, const StoreOptions *options,
                    Error *err) WARN_UNUSED;
void s3_bucket_done(S3Bucket *bucket);

typedef struct S3Request {
    const char *method;
    const char *key; /* whole, with the store's prefix; NULL: the bucket */
    const SigV4Param *params;
    size_t param_count;
    HttpHeader condition; /* If-Match or If-None-Match; name NULL: none */
    const char *range;    /* "bytes=0-9"; NULL: all */
    Str body;             /* ptr NULL: none */
    const char *body_path;
    const char *response_path;
} S3Request;

/* How long and how often something has been tried. */
typedef struct S3Patience {
    int attempts;
    int64_t deadline_ms; /* clock_ms() */
} S3Patience;

S3Patience s3_patience(const S3Bucket *bucket);

/* Wait before the next attempt: exponential, with jitter, at least what the service asked for.
 * False when time is up (err, which says why we wait, stays, with the number of attempts in front)
 * or we are canceled. */
bool s3_wait(const S3Bucket *bucket, S3Patience *patience, int64_t retry_after_ms,
             Error *err) WARN_UNUSED;

/* What became of a single attempt. */
typedef enum S3Outcome {
    S3_DONE,    /* 2xx */
    S3_MISSING, /* 404 of an object */
    S3_LOST,    /* 412: the condition did not hold */
    S3_AGAIN,   /* surely without effect; worth another attempt; err says why */
    S3_UNKNOWN, /* maybe with effect; err says why */
    S3_FAILED,  /* err says why; another attempt is of no use */
} S3Outcome;

/* Send once. A request with a condition is sent on a fresh connection, so that no layer below
 * repeats it. */
S3Outcome s3_try(const S3Bucket *bucket, const S3Request *request, HttpResponse *response,
                 Error *err);

/* Send, and try again as long as it makes sense: for requests that may be repeated. True: the
 * outcome is S3_DONE, or S3_MISSING with *out_found = false. */
bool s3_send(const S3Bucket *bucket, const S3Request *request, HttpResponse *response,
             bool *out_found, Error *err) WARN_UNUSED;

#endif
