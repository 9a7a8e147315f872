/* http_client.h - one HTTP exchange at a time per thread, connections kept and reused.
 *
 * Nothing outside this file's .c includes curl. Three things make it more than a wrapper:
 *
 *   - whoever commits over HTTP must know whether a request that got no answer may have had an
 *     effect. HttpFate says so: NOT_SENT (no byte of the request left us) or UNKNOWN;
 *   - no request that changes something is sent twice in secret: libcurl repeats a request when a
 *     kept-alive connection turns out to be closed, so `once` asks for a fresh connection;
 *   - all waiting happens in poll(2) together with the cancel token, so a shutdown is immediate.
 *
 * Redirects are never followed: a signed request is good for one address. Proxies are taken from
 * the usual variables (https_proxy, no_proxy). Answers, also 4xx and 5xx, are successes here; what
 * a status means is the caller's business. */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include "base/buf.h"
#include "base/cancel.h"

typedef struct HttpClient HttpClient;

typedef struct HttpOptions {
    const char *ca_file;       /* PEM file of trusted certificates; NULL: the system's */
    int64_t connect_ms;        /* 0 = 10,000 */
    int64_t stall_ms;          /* give up when nothing moves for this long; 0 = 30,000 */
    size_t response_bytes_max; /* of a body kept in memory; 0 = 1 GiB */
    Cancel *cancel;            /* NULL: cannot be interrupted; must outlive the client */
} HttpOptions;

typedef struct HttpHeader {
    const char *name;
    const char *value;
} HttpHeader;

typedef struct HttpRequest {
    const char *method; /* "GET", "HEAD", "PUT", ... */
    const char *url;    /* percent-encoded; sent exactly as given */
    const HttpHeader *headers;
    size_t header_count;
    Str body;                  /* ptr NULL: a request without a body */
    const char *body_path;     /* send this file instead */
    const char *response_path; /* write the body of a 2xx answer into this file, not memory */
    int64_t total_ms;          /* limit of the whole exchange; 0: none */
    bool once;                 /* on a fresh connection, so that it cannot be sent twice */
} HttpRequest;

typedef enum HttpFate {
    HTTP_NOT_SENT, /* the other side has seen nothing of it */
    HTTP_UNKNOWN,  /* it, or a part, was sent and no whole answer came back */
    HTTP_ANSWERED, /* status, headers and body are complete */
} HttpFate;

typedef struct HttpResponse {
    HttpFate fate;
    int status;             /* 0: none arrived */
    int64_t retry_after_ms; /* of a Retry-After header in either form; 0: none */
    Buf headers;            /* the lines of the final answer, "\r\n" after each */
    Buf body;
    uint64_t file_bytes; /* written to response_path */
} HttpResponse;

bool http_client_new(const HttpOptions *options, HttpClient **out_client, Error *err) WARN_UNUSED;
void http_client_free(HttpClient *client); /* NULL is fine; no exchange may be running */

/* One exchange. True: an answer came (fate HTTP_ANSWERED), whatever its status. False: fate says
 * what may have happened, and the kind is ERR_TRANSIENT (network), ERR_INPUT (bad URL, untrusted
 * certificate, local file), ERR_CANCELED. The response is reset first and may be reused. A file at
 * response_path is left behind half-written on failure; the caller owns it. Any thread may call. */
bool http_send(HttpClient *client, const HttpRequest *request, HttpResponse *response,
               Error *err) WARN_UNUSED;

/* Value of a header of the answer, without blanks around it; STR_NULL when it is not there. */
Str http_header(const HttpResponse *response, const char *name);

void http_response_done(HttpResponse *response); /* a zeroed response is a valid empty one */
#define AUTO_HTTP_RESPONSE __attribute__((cleanup(http_response_done)))

#endif
