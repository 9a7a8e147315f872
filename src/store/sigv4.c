#include "store/sigv4.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { SHA256_SIZE = 32 };

typedef struct Digest {
    uint8_t bytes[SHA256_SIZE];
} Digest;

static const char hex_lower[] = "0123456789abcdef";
static const char hex_upper[] = "0123456789ABCDEF";

static void
to_hex(const Digest *digest, char out[SHA256_HEX_SIZE])
{
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        out[2 * i] = hex_lower[digest->bytes[i] >> 4];
        out[2 * i + 1] = hex_lower[digest->bytes[i] & 15];
    }
    out[SHA256_HEX_SIZE - 1] = '\0';
}

void
sha256_hex(Str bytes, char out[SHA256_HEX_SIZE])
{
    Digest digest;
    int ok = EVP_Digest(bytes.ptr == NULL ? "" : bytes.ptr, bytes.len, digest.bytes, NULL,
                        EVP_sha256(), NULL);

    assert(ok == 1);
    to_hex(&digest, out);
}

static Digest
hmac(Str key, Str text)
{
    Digest digest;
    const uint8_t *ok = HMAC(EVP_sha256(), key.ptr, (int) key.len, (const uint8_t *) text.ptr,
                             text.len, digest.bytes, NULL);

    assert(ok != NULL);
    return digest;
}

static Digest
hmac_next(const Digest *key, Str text)
{
    return hmac((Str){.ptr = (const char *) key->bytes, .len = SHA256_SIZE}, text);
}

void
sigv4_encode(Buf *out, Str text, bool keep_slash)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t) text.ptr[i];

        if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
            c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keep_slash)) {
            buf_byte(out, c);
        } else {
            buf_byte(out, '%');
            buf_byte(out, (uint8_t) hex_upper[c >> 4]);
            buf_byte(out, (uint8_t) hex_upper[c & 15]);
        }
    }
}

void
sigv4_time(int64_t wall_us, char out[SIGV4_TIME_SIZE])
{
    time_t seconds = (time_t) (wall_us / 1000000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(out, SIGV4_TIME_SIZE, "%Y%m%dT%H%M%SZ", &tm);
}

/* A name and a value in the form they are signed in; sorted as bytes, by name, then by value. */
typedef struct Pair {
    Str name;
    Str value;
} Pair;

static int
compare_pairs(const void *left, const void *right)
{
    const Pair *a = left;
    const Pair *b = right;
    int order = str_cmp(a->name, b->name);

    return order != 0 ? order : str_cmp(a->value, b->value);
}

static Str
encoded(Arena *arena, Str text)
{
    AUTO_BUF Buf out = {0};

    sigv4_encode(&out, text, false);
    return arena_str(arena, buf_view(&out));
}

const char *
sigv4_query(Arena *arena, const SigV4Param *params, size_t count)
{
    AUTO_BUF Buf out = {0};
    Pair *pairs = ARENA_ARRAY(arena, Pair, count);

    for (size_t i = 0; i < count; i++) {
        pairs[i].name = encoded(arena, params[i].name);
        pairs[i].value = encoded(arena, params[i].value);
    }
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < count; i++)
        buf_printf(&out, "%s%.*s=%.*s", i == 0 ? "" : "&", STR_ARG(pairs[i].name),
                   STR_ARG(pairs[i].value));
    return arena_strdup(arena, buf_text(&out));
}

static Str
lower(Arena *arena, const char *name)
{
    char *copy = arena_strdup(arena, name);

    for (char *p = copy; *p != '\0'; p++)
        *p = (char) tolower((unsigned char) *p);
    return str_of(copy);
}

/* Blanks around the value go, runs of blanks inside become one. */
static Str
trimmed(Arena *arena, const char *value)
{
    AUTO_BUF Buf out = {0};

    for (const char *p = value; *p != '\0'; p++) {
        bool blank = *p == ' ' || *p == '\t';

        if (blank && (out.len == 0 || out.ptr[out.len - 1] == ' '))
            continue;
        buf_byte(&out, blank ? ' ' : (uint8_t) *p);
    }
    if (out.len > 0 && out.ptr[out.len - 1] == ' ')
        out.len--;
    return arena_str(arena, buf_view(&out));
}

static Pair *
canonical_headers(Arena *arena, const SigV4Request *request)
{
    Pair *pairs = ARENA_ARRAY(arena, Pair, request->header_count);

    for (size_t i = 0; i < request->header_count; i++) {
        pairs[i].name = lower(arena, request->headers[i].name);
        pairs[i].value = trimmed(arena, request->headers[i].value);
    }
    qsort(pairs, request->header_count, sizeof *pairs, compare_pairs);
    for (size_t i = 1; i < request->header_count; i++)
        assert(!str_eq(pairs[i - 1].name, pairs[i].name));
    return pairs;
}

static const char *
signed_names(Arena *arena, const Pair *headers, size_t count)
{
    AUTO_BUF Buf out = {0};

    for (size_t i = 0; i < count; i++)
        buf_printf(&out, "%s%.*s", i == 0 ? "" : ";", STR_ARG(headers[i].name));
    return arena_strdup(arena, buf_text(&out));
}

const char *
sigv4_canonical_request(Arena *arena, const SigV4Request *request)
{
    AUTO_BUF Buf out = {0};
    Pair *headers = canonical_headers(arena, request);

    assert(request->path.len > 0 && request->path.ptr[0] == '/');
    buf_printf(&out, "%s\n%.*s\n%s\n", request->method, STR_ARG(request->path),
               sigv4_query(arena, request->params, request->param_count));
    for (size_t i = 0; i < request->header_count; i++)
        buf_printf(&out, "%.*s:%.*s\n", STR_ARG(headers[i].name), STR_ARG(headers[i].value));
    buf_printf(&out, "\n%s\n%s", signed_names(arena, headers, request->header_count),
               request->payload_sha256);
    return arena_strdup(arena, buf_text(&out));
}

/* The day's key: the secret is only ever used through it. */
static Digest
signing_key(const SigV4Key *key, Str date)
{
    AUTO_BUF Buf secret = {0};

    buf_printf(&secret, "AWS4%s", key->secret_access_key);

    Digest digest = hmac(buf_view(&secret), date);

    digest = hmac_next(&digest, str_of(key->region));
    digest = hmac_next(&digest, str_of(key->service));
    return hmac_next(&digest, STR("aws4_request"));
}

static const char *
header_value(const Pair *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eqc(headers[i].name, name))
            return headers[i].value.ptr;
    return NULL;
}

const char *
sigv4_authorization(Arena *arena, const SigV4Key *key, const SigV4Request *request)
{
    char hash[SHA256_HEX_SIZE];
    char signature[SHA256_HEX_SIZE];
    Pair *headers = canonical_headers(arena, request);
    const char *time = header_value(headers, request->header_count, "x-amz-date");

    assert(time != NULL && strlen(time) == SIGV4_TIME_SIZE - 1);
    assert(header_value(headers, request->header_count, "host") != NULL);

    Str date = {.ptr = time, .len = strlen("YYYYMMDD")};
    const char *scope =
        arena_printf(arena, "%.*s/%s/%s/aws4_request", STR_ARG(date), key->region, key->service);

    sha256_hex(str_of(sigv4_canonical_request(arena, request)), hash);

    const char *to_sign = arena_printf(arena, "AWS4-HMAC-SHA256\n%s\n%s\n%s", time, scope, hash);
    Digest day_key = signing_key(key, date);
    Digest digest = hmac_next(&day_key, str_of(to_sign));

    to_hex(&digest, signature);
    return arena_printf(arena, "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                        key->access_key_id, scope,
                        signed_names(arena, headers, request->header_count), signature);
}
