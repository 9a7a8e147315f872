#include "store/s3_request.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/fs_file.h"

enum {
    RETRY_MS_DEFAULT = 60 * 1000,
    RETRY_FIRST_MS = 100,
    RETRY_STEP_MS_MAX = 10 * 1000,
    RETRY_DOUBLINGS_MAX = 10,
    HEADERS_MAX = 8,
    HASH_BLOCK_BYTES = 1 << 17,
    MD5_SIZE = 16,
    MD5_BASE64_SIZE = 25,
    MESSAGE_SHOWN_MAX = 200,
};

/* ---- where the bucket is ---- */

/* Without the port that the scheme implies, as HTTP clients write it (RFC 9110, section 7.2). */
static char *
host_header(Str scheme, Str authority)
{
    AUTO_BUF Buf out = {0};
    Str implied = str_eq(scheme, STR("https")) ? STR(":443") : STR(":80");

    if (str_ends(authority, implied))
        authority.len -= implied.len;
    buf_str(&out, authority);
    return xstrdup(buf_text(&out));
}

static bool
split_endpoint(const char *endpoint, Str *out_scheme, Str *out_authority, Str *out_path, Error *err)
{
    Str url = str_of(endpoint);
    Str scheme = str_starts(url, STR("https://"))  ? STR("https")
                 : str_starts(url, STR("http://")) ? STR("http")
                                                   : STR_NULL;

    if (scheme.ptr == NULL || strpbrk(endpoint, "?#@") != NULL ||
        strcspn(endpoint + scheme.len + 3, "/:") == 0)
        return FAIL(err, ERR_INPUT,
                    "not an endpoint: \"%s\"\nhint: sink.iceberg.s3.endpoint is written "
                    "https://host[:port]",
                    endpoint);

    Str rest = {url.ptr + scheme.len + 3, url.len - scheme.len - 3};
    const char *slash = memchr(rest.ptr, '/', rest.len);
    size_t length = slash == NULL ? rest.len : (size_t) (slash - rest.ptr);

    *out_scheme = scheme;
    *out_authority = (Str){rest.ptr, length};
    *out_path = (Str){rest.ptr + length, rest.len - length};
    while (out_path->len > 0 && out_path->ptr[out_path->len - 1] == '/')
        out_path->len--;
    return true;
}

/* AWS General Reference, "Amazon Simple Storage Service endpoints". */
static void
aws_endpoint(Buf *out, const char *region)
{
    bool china = strncmp(region, "cn-", 3) == 0;

    buf_printf(out, "https://s3.%s.amazonaws.com%s", region, china ? ".cn" : "");
}

static bool
locate(S3Bucket *bucket, const StoreOptions *options, Error *err)
{
    AUTO_BUF Buf aws = {0};
    AUTO_BUF Buf authority = {0};
    AUTO_BUF Buf text = {0};
    Str scheme = STR_NULL;
    Str host = STR_NULL;
    Str path = STR_NULL;

    aws_endpoint(&aws, bucket->region);
    TRY(split_endpoint(options->endpoint != NULL ? options->endpoint : buf_text(&aws), &scheme,
                       &host, &path, err));

    /* a wildcard certificate covers one level, so a bucket with dots has no host of its own */
    bool path_style =
        options->path_style || (strchr(bucket->name, '.') != NULL && str_eq(scheme, STR("https")));

    if (!path_style)
        buf_printf(&authority, "%s.", bucket->name);
    buf_str(&authority, host);
    bucket->host = host_header(scheme, buf_view(&authority));
    buf_printf(&text, "%.*s://%.*s", STR_ARG(scheme), STR_ARG(buf_view(&authority)));
    bucket->origin = xstrdup(buf_text(&text));
    buf_reset(&text);
    buf_printf(&text, "%.*s/", STR_ARG(path));
    if (path_style)
        buf_printf(&text, "%s/", bucket->name);
    bucket->base_path = xstrdup(buf_text(&text));
    return true;
}

static bool
is_bucket_name(Str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' &&
            c != '.' && c != '_')
            return false;
    }
    return name.len >= 3 && name.len <= 255;
}

static bool
check_credentials(const StoreOptions *options, Error *err)
{
    bool no_id = options->access_key_id == NULL || options->access_key_id[0] == '\0';
    bool no_secret = options->secret_access_key == NULL || options->secret_access_key[0] == '\0';

    if (!no_id && !no_secret)
        return true;
    return FAIL(err, ERR_INPUT,
                "no S3 credentials: %s not set\nhint: set sink.iceberg.s3.access_key_id and "
                "secret_access_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                no_id && no_secret ? "access_key_id and secret_access_key are"
                : no_id            ? "access_key_id is"
                                   : "secret_access_key is");
}

bool
s3_bucket_init(S3Bucket *bucket, Str name, const StoreOptions *options, Error *err)
{
    AUTO_BUF Buf text = {0};

    if (!is_bucket_name(name))
        return FAIL(err, ERR_INPUT, "not a bucket name: \"%.*s\"\nhint: s3://bucket/prefix",
                    STR_ARG(name));
    TRY(check_credentials(options, err));
    buf_str(&text, name);
    bucket->name = xstrdup(buf_text(&text));
    bucket->region = xstrdup(options->region != NULL ? options->region : "us-east-1");
    bucket->access_key_id = xstrdup(options->access_key_id);
    bucket->secret_access_key = xstrdup(options->secret_access_key);
    if (options->session_token != NULL && options->session_token[0] != '\0')
        bucket->session_token = xstrdup(options->session_token);
    bucket->retry_ms_max = options->retry_ms_max == 0 ? RETRY_MS_DEFAULT : options->retry_ms_max;
    bucket->cancel = options->cancel;
    TRY(locate(bucket, options, err));
    return http_client_new(&(HttpOptions){.ca_file = options->ca_file,
                                          .stall_ms = options->stall_ms,
                                          .cancel = options->cancel},
                           &bucket->http, err);
}

void
s3_bucket_done(S3Bucket *bucket)
{
    http_client_free(bucket->http);
    free(bucket->name);
    free(bucket->origin);
    free(bucket->host);
    free(bucket->base_path);
    free(bucket->region);
    free(bucket->access_key_id);
    free(bucket->secret_access_key);
    free(bucket->session_token);
    *bucket = (S3Bucket){0};
}

/* ---- what is sent ---- */

/* Hashes of a body: SHA-256 for the signature, MD5 so that services that do not check the former
 * still notice damage on the way (and S3 asks for it when objects are locked). */
typedef struct BodyHashes {
    char sha256[SHA256_HEX_SIZE];
    char md5[MD5_BASE64_SIZE]; /* empty: this OpenSSL has no MD5 */
} BodyHashes;

static void
free_md(EVP_MD_CTX **context)
{
    EVP_MD_CTX_free(*context);
}

static void
finish_hashes(EVP_MD_CTX *sha256, EVP_MD_CTX *md5, BodyHashes *out)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    int ok = EVP_DigestFinal_ex(sha256, digest, &size);

    assert(ok == 1);
    for (unsigned int i = 0; i < size; i++)
        snprintf(out->sha256 + (size_t) 2 * i, 3, "%02x", digest[i]);
    out->md5[0] = '\0';
    if (md5 != NULL && EVP_DigestFinal_ex(md5, digest, &size) == 1 && size == MD5_SIZE)
        EVP_EncodeBlock((uint8_t *) out->md5, digest, MD5_SIZE);
}

/* False: errno says why. */
static bool
hash_file(const char *path, EVP_MD_CTX *sha256, EVP_MD_CTX *md5)
{
    AUTO_FREE char *block = xrealloc(NULL, HASH_BLOCK_BYTES);
    AUTO(fs_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    for (;;) {
        ssize_t n = read(fd, block, HASH_BLOCK_BYTES);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        EVP_DigestUpdate(sha256, block, (size_t) n);
        if (md5 != NULL)
            EVP_DigestUpdate(md5, block, (size_t) n);
    }
}

static bool
hash_body(const S3Request *request, BodyHashes *out, Error *err)
{
    AUTO(free_md) EVP_MD_CTX *sha256 = EVP_MD_CTX_new();
    AUTO(free_md) EVP_MD_CTX *md5 = EVP_MD_CTX_new();
    int ok = EVP_DigestInit_ex(sha256, EVP_sha256(), NULL);
    bool has_md5 = EVP_DigestInit_ex(md5, EVP_md5(), NULL) == 1; /* FIPS: it has not */

    assert(ok == 1);
    if (request->body_path == NULL) {
        EVP_DigestUpdate(sha256, request->body.ptr, request->body.len);
        if (has_md5)
            EVP_DigestUpdate(md5, request->body.ptr, request->body.len);
        finish_hashes(sha256, has_md5 ? md5 : NULL, out);
        return true;
    }

    bool read = hash_file(request->body_path, sha256, has_md5 ? md5 : NULL);

    if (!read)
        FAIL(err, ERR_INPUT, "%s: %s", request->body_path, strerrordesc_np(errno));
    finish_hashes(sha256, has_md5 ? md5 : NULL, out);
    return read;
}

typedef struct HeaderList {
    HttpHeader items[HEADERS_MAX];
    size_t count;
} HeaderList;

static void
add_header(HeaderList *list, const char *name, const char *value)
{
    assert(list->count < HEADERS_MAX);
    list->items[list->count++] = (HttpHeader){name, value};
}

/* Sign and send; true when an answer came. */
static bool
send_signed(const S3Bucket *bucket, const S3Request *request, HttpResponse *response, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf path = {0};
    HeaderList headers = {0};
    BodyHashes hashes;
    char now[SIGV4_TIME_SIZE];
    bool has_body = request->body.ptr != NULL || request->body_path != NULL;
    const SigV4Key key = {.access_key_id = bucket->access_key_id,
                          .secret_access_key = bucket->secret_access_key,
                          .region = bucket->region,
                          .service = "s3"};

    response->fate = HTTP_NOT_SENT;
    TRY(hash_body(request, &hashes, err));
    sigv4_time(clock_wall_us(), now);
    sigv4_encode(&path, str_of(bucket->base_path), true);
    if (request->key != NULL)
        sigv4_encode(&path, str_of(request->key), true);
    add_header(&headers, "Host", bucket->host);
    add_header(&headers, "x-amz-date", now);
    add_header(&headers, "x-amz-content-sha256", hashes.sha256);
    if (bucket->session_token != NULL)
        add_header(&headers, "x-amz-security-token", bucket->session_token);
    if (has_body && hashes.md5[0] != '\0')
        add_header(&headers, "Content-MD5", hashes.md5);
    if (request->condition.name != NULL)
        add_header(&headers, request->condition.name, request->condition.value);
    if (request->range != NULL)
        add_header(&headers, "Range", request->range);

    const char *query = sigv4_query(arena, request->params, request->param_count);
    const char *authorization =
        sigv4_authorization(arena, &key,
                            &(SigV4Request){.method = request->method,
                                            .path = buf_view(&path),
                                            .params = request->params,
                                            .param_count = request->param_count,
                                            .headers = headers.items,
                                            .header_count = headers.count,
                                            .payload_sha256 = hashes.sha256});

    add_header(&headers, "Authorization", authorization);
    return http_send(
        bucket->http,
        &(HttpRequest){.method = request->method,
                       .url = arena_printf(arena, "%s%s%s%s", bucket->origin, buf_text(&path),
                                           query[0] == '\0' ? "" : "?", query),
                       .headers = headers.items,
                       .header_count = headers.count,
                       .body = request->body,
                       .body_path = request->body_path,
                       .response_path = request->response_path,
                       .once = request->condition.name != NULL},
        response, err);
}

/* ---- what came back ---- */

typedef struct S3Code {
    const char *code;
    S3Outcome outcome;
    const char *hint; /* NULL: none */
} S3Code;

/* S3 API Reference, "Error Responses", "List of error codes". What is not here goes by status. */
static const S3Code codes[] = {
    {"AccessDenied", S3_FAILED,
     "these credentials need s3:GetObject, s3:PutObject and s3:DeleteObject on the objects and "
     "s3:ListBucket on the bucket"},
    {"AllAccessDisabled", S3_FAILED, NULL},
    {"InvalidAccessKeyId", S3_FAILED,
     "the service does not know this access_key_id: check sink.iceberg.s3.access_key_id and "
     "endpoint"},
    {"SignatureDoesNotMatch", S3_FAILED,
     "check sink.iceberg.s3.secret_access_key, and that no proxy in between changes requests"},
    {"ExpiredToken", S3_FAILED, "the session token has expired: get new temporary credentials"},
    {"InvalidToken", S3_FAILED, "check sink.iceberg.s3.session_token"},
    {"RequestTimeTooSkewed", S3_FAILED,
     "the clock of this machine is wrong: set it (NTP), requests are signed with the time"},
    {"NoSuchBucket", S3_FAILED, "make the bucket first, or correct sink.iceberg.warehouse"},
    {"InvalidBucketName", S3_FAILED, "correct sink.iceberg.warehouse"},
    {"EntityTooLarge", S3_FAILED, "write smaller data files"},
    {"NotImplemented", S3_FAILED,
     "this service lacks a feature walberg relies on, such as conditional writes (If-None-Match)"},
    {"ConditionalRequestConflict", S3_AGAIN, NULL},
    {"OperationAborted", S3_AGAIN, NULL},
    {"RequestTimeout", S3_UNKNOWN, NULL}, /* a 400: the body came too slowly */
    {"SlowDown", S3_UNKNOWN, NULL},
    {"BadDigest", S3_AGAIN, NULL}, /* damaged on the way */
    {"XAmzContentSHA256Mismatch", S3_AGAIN, NULL},
};

static S3Outcome
outcome_of_status(int status)
{
    switch (status) {
    case 404:
        return S3_MISSING;
    case 412:
        return S3_LOST;
    case 307: /* a bucket on the move */
    case 425:
    case 429:
        return S3_AGAIN;
    case 408:
        return S3_UNKNOWN;
    default:
        return status / 100 == 2 ? S3_DONE : status >= 500 ? S3_UNKNOWN : S3_FAILED;
    }
}

static const char *
hint_of_status(int status)
{
    return status == 403 ? codes[0].hint : NULL;
}

/* A wrong region shows as 301, or as 400 on a service that checks the signature's scope. */
static const char *
region_hint(Arena *arena, const S3Bucket *bucket, const HttpResponse *response,
            const S3Problem *problem)
{
    Str region = http_header(response, "x-amz-bucket-region");

    if (region.len == 0)
        region = str_of(problem->region);

    bool named = region.len > 0 && !str_eqc(region, bucket->region);

    if (response->status != 301 && strcmp(problem->code, "AuthorizationHeaderMalformed") != 0 &&
        (response->status != 400 || !named))
        return NULL;
    if (!named)
        return "set sink.iceberg.s3.region to the region of the bucket";
    return arena_printf(arena, "the bucket is in %.*s: set sink.iceberg.s3.region",
                        STR_ARG(region));
}

/* A body that ends with the connection cannot be told from one that was cut off. S3 never sends
 * such, but a proxy might. */
static bool
has_length(const HttpResponse *response)
{
    return http_header(response, "Content-Length").ptr != NULL ||
           http_header(response, "Transfer-Encoding").ptr != NULL;
}

/* What a refusal means, from S3's code for it or else from the status; err gets the words. */
static S3Outcome
judge_refusal(const S3Bucket *bucket, const HttpResponse *response, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    S3Outcome outcome = outcome_of_status(response->status);
    const char *hint = hint_of_status(response->status);
    S3Problem problem;

    s3_problem_parse(arena, buf_view(&response->body), &problem);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(problem.code, codes[i].code) == 0) {
            outcome = codes[i].outcome;
            hint = codes[i].hint;
        }
    }
    if (response->status == 409 && problem.code[0] == '\0')
        outcome = S3_AGAIN;

    const char *region = region_hint(arena, bucket, response, &problem);

    if (region != NULL)
        hint = region;
    FAIL(err, outcome == S3_FAILED ? ERR_INPUT : ERR_TRANSIENT, "HTTP %d%s%s%s%.*s%s%s",
         response->status, problem.code[0] == '\0' ? "" : " ", problem.code,
         problem.message[0] == '\0' ? "" : ": ", MESSAGE_SHOWN_MAX, problem.message,
         hint == NULL ? "" : "\nhint: ", hint == NULL ? "" : hint);
    return outcome;
}

static S3Outcome
judge(const S3Bucket *bucket, const S3Request *request, const HttpResponse *response, Error *err)
{
    if (outcome_of_status(response->status) != S3_DONE)
        return judge_refusal(bucket, response, err);
    if (strcmp(request->method, "GET") == 0 && !has_length(response)) {
        FAIL(err, ERR_TRANSIENT, "the answer does not say how long it is");
        return S3_UNKNOWN;
    }
    return S3_DONE;
}

S3Outcome
s3_try(const S3Bucket *bucket, const S3Request *request, HttpResponse *response, Error *err)
{
    if (send_signed(bucket, request, response, err))
        return judge(bucket, request, response, err);
    if (err->kind != ERR_TRANSIENT)
        return S3_FAILED;
    return response->fate == HTTP_NOT_SENT ? S3_AGAIN : S3_UNKNOWN;
}

/* ---- again ---- */

S3Patience
s3_patience(const S3Bucket *bucket)
{
    return (S3Patience){.deadline_ms = clock_ms() + bucket->retry_ms_max};
}

bool
s3_wait(const S3Bucket *bucket, S3Patience *patience, int64_t retry_after_ms, Error *err)
{
    int doublings =
        patience->attempts < RETRY_DOUBLINGS_MAX ? patience->attempts : RETRY_DOUBLINGS_MAX;
    int64_t step_ms = (int64_t) RETRY_FIRST_MS << doublings;
    uint32_t random;

    if (step_ms > RETRY_STEP_MS_MAX)
        step_ms = RETRY_STEP_MS_MAX;
    /* half fixed, half by chance: those who failed together do not come back together */
    random_bytes(&random, sizeof random);
    step_ms = step_ms / 2 + random % (step_ms / 2 + 1);
    if (step_ms < retry_after_ms)
        step_ms = retry_after_ms;
    patience->attempts++;
    if (clock_ms() + step_ms > patience->deadline_ms)
        return WRAP(err, "gave up after %d attempts", patience->attempts);
    if (bucket->cancel != NULL)
        return cancel_sleep(bucket->cancel, step_ms, err);
    nanosleep(&(struct timespec){.tv_sec = step_ms / 1000, .tv_nsec = step_ms % 1000 * 1000000},
              NULL);
    return true;
}

bool
s3_send(const S3Bucket *bucket, const S3Request *request, HttpResponse *response, bool *out_found,
        Error *err)
{
    S3Patience patience = s3_patience(bucket);

    for (;;) {
        switch (s3_try(bucket, request, response, err)) {
        case S3_DONE:
            *out_found = true;
            return true;
        case S3_MISSING:
            *out_found = false;
            return true;
        case S3_AGAIN:
        case S3_UNKNOWN:
            TRY(s3_wait(bucket, &patience, response->retry_after_ms, err));
            break;
        case S3_LOST: /* of a request without a condition: not in the protocol */
        case S3_FAILED:
            return false;
        }
    }
}
