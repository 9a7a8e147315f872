/* sigv4.h - AWS Signature Version 4 as a pure function: a request in, its signature out.
 *
 * AWS General Reference, "Create a signed AWS API request"; S3 API Reference, "Authenticating
 * Requests: Using the Authorization Header". No clock, no network, no environment, so the published
 * test vectors apply. S3 encodes the path once; for other services the caller passes it encoded
 * twice. Every header given is signed. */
#ifndef STORE_SIGV4_H
#define STORE_SIGV4_H

#include "base/arena.h"
#include "net/http_client.h"

enum { SHA256_HEX_SIZE = 65, SIGV4_TIME_SIZE = 17 };

typedef struct SigV4Key {
    const char *access_key_id;
    const char *secret_access_key;
    const char *region;
    const char *service; /* "s3" */
} SigV4Key;

/* One name=value of the query, neither of them encoded. */
typedef struct SigV4Param {
    Str name;
    Str value;
} SigV4Param;

typedef struct SigV4Request {
    const char *method;
    Str path; /* percent-encoded, starts with a slash */
    const SigV4Param *params;
    size_t param_count;
    const HttpHeader *headers; /* "host" and "x-amz-date" among them; each name once, any case */
    size_t header_count;
    const char *payload_sha256; /* hex */
} SigV4Request;

/* The value of the Authorization header. */
const char *sigv4_authorization(Arena *arena, const SigV4Key *key, const SigV4Request *request);

/* The request as it is hashed, for tests and for comparing with what a server says it saw. */
const char *sigv4_canonical_request(Arena *arena, const SigV4Request *request);

/* The query as it is signed, which is also a way to send it: sorted, encoded, joined by '&'. */
const char *sigv4_query(Arena *arena, const SigV4Param *params, size_t count);

/* Percent-encode all but A-Z a-z 0-9 - . _ ~ and, when keep_slash, '/'. */
void sigv4_encode(Buf *out, Str text, bool keep_slash);

/* "20130524T000000Z" from microseconds since 1970. */
void sigv4_time(int64_t wall_us, char out[SIGV4_TIME_SIZE]);

void sha256_hex(Str bytes, char out[SHA256_HEX_SIZE]);

#endif
