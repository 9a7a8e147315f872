#include "net/http_client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/folder.h"

enum {
    CONNECT_MS_DEFAULT = 10 * 1000,
    STALL_MS_DEFAULT = 30 * 1000,
    POLL_MS_MAX = 1000,
    TRANSFER_MAGIC = 0x48747470, /* "Http" */
};

#define RESPONSE_BYTES_DEFAULT ((size_t) 1 << 30)

/* A connection and what drives it. One belongs to one exchange at a time; between exchanges it
 * waits in the client's pool with its connection open. */
typedef struct Slot {
    CURL *easy;
    CURLM *multi; /* keeps the connection; polled together with the cancel token */
    char curl_error[CURL_ERROR_SIZE];
    struct Slot *next;
} Slot;

struct HttpClient {
    HttpOptions options;
    char *ca_file;
    pthread_mutex_t lock; /* guards idle */
    Slot *idle;
};

/* One running exchange, as the callbacks see it. */
typedef struct Transfer {
    uint32_t magic;
    CURL *easy;
    const HttpRequest *request;
    HttpResponse *response;
    size_t bytes_max;
    size_t body_at;   /* of request->body */
    int body_fd;      /* -1: the body is in memory */
    int file_fd;      /* -1: response_path is not opened (yet) */
    int64_t moved_at; /* clock_ms() of the last byte in either direction */
    Error err;        /* of a callback; kind ERR_NONE: none */
} Transfer;

static void
transfer_done(Transfer *transfer)
{
    if (transfer->body_fd >= 0)
        close(transfer->body_fd);
    if (transfer->file_fd >= 0)
        close(transfer->file_fd);
}

static void
free_headers(struct curl_slist **list)
{
    curl_slist_free_all(*list);
}

static Transfer *
transfer_of(void *pointer)
{
    Transfer *transfer = pointer;

    assert(transfer->magic == TRANSFER_MAGIC);
    return transfer;
}

static size_t
on_read(char *out, size_t size, size_t count, void *pointer)
{
    Transfer *transfer = transfer_of(pointer);
    size_t room = size * count;

    transfer->moved_at = clock_ms();
    if (transfer->body_fd >= 0) {
        ssize_t n = read(transfer->body_fd, out, room);

        if (n >= 0)
            return (size_t) n;
        FAIL(&transfer->err, ERR_TRANSIENT, "%s: read: %s", transfer->request->body_path,
             strerrordesc_np(errno));
        return CURL_READFUNC_ABORT;
    }

    Str body = transfer->request->body;
    size_t left = body.len - transfer->body_at;
    size_t n = left < room ? left : room;

    if (n > 0)
        memcpy(out, body.ptr + transfer->body_at, n);
    transfer->body_at += n;
    return n;
}

/* libcurl rewinds the body when it repeats a request on a fresh connection. */
static int
on_seek(void *pointer, curl_off_t offset, int origin)
{
    Transfer *transfer = transfer_of(pointer);

    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    if (transfer->body_fd >= 0)
        return lseek(transfer->body_fd, (off_t) offset, SEEK_SET) < 0 ? CURL_SEEKFUNC_FAIL
                                                                      : CURL_SEEKFUNC_OK;
    transfer->body_at = (size_t) offset;
    return CURL_SEEKFUNC_OK;
}

static size_t
on_header(char *line, size_t size, size_t count, void *pointer)
{
    Transfer *transfer = transfer_of(pointer);
    size_t length = size * count;

    transfer->moved_at = clock_ms();
    /* a further status line: what came before was "100 Continue" or the like */
    if (str_starts((Str){line, length}, STR("HTTP/")))
        buf_reset(&transfer->response->headers);
    buf_append(&transfer->response->headers, line, length);
    return length;
}

static bool
write_file(Transfer *transfer, const char *bytes, size_t size)
{
    const char *path = transfer->request->response_path;

    if (transfer->file_fd < 0)
        transfer->file_fd = folder_create_file(path, O_WRONLY | O_TRUNC, 0666);
    if (transfer->file_fd < 0)
        return FAIL(&transfer->err, ERR_INPUT, "%s: %s", path, strerrordesc_np(errno));
    while (size > 0) {
        ssize_t n = write(transfer->file_fd, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return FAIL(&transfer->err, ERR_TRANSIENT, "%s: write: %s", path,
                        strerrordesc_np(errno));
        bytes += n;
        size -= (size_t) n;
        transfer->response->file_bytes += (uint64_t) n;
    }
    return true;
}

static size_t
on_body(char *bytes, size_t size, size_t count, void *pointer)
{
    Transfer *transfer = transfer_of(pointer);
    size_t length = size * count;
    long status = 0;

    transfer->moved_at = clock_ms();
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (transfer->request->response_path != NULL && status / 100 == 2)
        return write_file(transfer, bytes, length) ? length : 0;
    if (transfer->response->body.len + length > transfer->bytes_max) {
        FAIL(&transfer->err, ERR_INPUT, "%s: the answer is larger than %zu bytes",
             transfer->request->url, transfer->bytes_max);
        return 0;
    }
    buf_append(&transfer->response->body, bytes, length);
    return length;
}

static void
slot_free(Slot *slot)
{
    curl_easy_cleanup(slot->easy);
    curl_multi_cleanup(slot->multi);
    free(slot);
}

static Slot *
slot_take(HttpClient *client)
{
    pthread_mutex_lock(&client->lock);

    Slot *slot = client->idle;

    if (slot != NULL)
        client->idle = slot->next;
    pthread_mutex_unlock(&client->lock);
    if (slot != NULL)
        return slot;
    slot = xcalloc(1, sizeof *slot);
    slot->easy = curl_easy_init();
    slot->multi = curl_multi_init();
    if (slot->easy == NULL || slot->multi == NULL) {
        fprintf(stderr, "walberg: out of memory: cannot make a connection\n");
        abort();
    }
    return slot;
}

static void
slot_give_back(HttpClient *client, Slot *slot)
{
    curl_easy_reset(slot->easy);
    pthread_mutex_lock(&client->lock);
    slot->next = client->idle;
    client->idle = slot;
    pthread_mutex_unlock(&client->lock);
}

static void
init_curl(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        fprintf(stderr, "walberg: libcurl does not start\n");
        abort();
    }
}

bool
http_client_new(const HttpOptions *options, HttpClient **out_client, Error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, init_curl);
    if (options->ca_file != NULL && access(options->ca_file, R_OK) != 0)
        return FAIL(err, ERR_INPUT, "%s: %s\nhint: ca_file is a PEM file of trusted certificates",
                    options->ca_file, strerrordesc_np(errno));

    HttpClient *client = xcalloc(1, sizeof *client);

    client->options = *options;
    if (options->ca_file != NULL)
        client->options.ca_file = client->ca_file = xstrdup(options->ca_file);
    if (client->options.connect_ms == 0)
        client->options.connect_ms = CONNECT_MS_DEFAULT;
    if (client->options.stall_ms == 0)
        client->options.stall_ms = STALL_MS_DEFAULT;
    if (client->options.response_bytes_max == 0)
        client->options.response_bytes_max = RESPONSE_BYTES_DEFAULT;
    pthread_mutex_init(&client->lock, NULL);
    *out_client = client;
    return true;
}

void
http_client_free(HttpClient *client)
{
    if (client == NULL)
        return;
    while (client->idle != NULL) {
        Slot *slot = client->idle;

        client->idle = slot->next;
        slot_free(slot);
    }
    pthread_mutex_destroy(&client->lock);
    free(client->ca_file);
    free(client);
}

static struct curl_slist *
header_list(const HttpRequest *request)
{
    AUTO_BUF Buf line = {0};
    struct curl_slist *list = NULL;

    for (size_t i = 0; i < request->header_count; i++) {
        const HttpHeader *header = &request->headers[i];

        assert(strpbrk(header->name, "\r\n:") == NULL && strpbrk(header->value, "\r\n") == NULL);
        buf_reset(&line);
        /* "Name;" is libcurl's way to write a header with an empty value */
        if (header->value[0] == '\0')
            buf_printf(&line, "%s;", header->name);
        else
            buf_printf(&line, "%s: %s", header->name, header->value);
        list = curl_slist_append(list, buf_text(&line));
    }
    /* no "Expect: 100-continue": servers that do not know it cost a second per upload */
    return curl_slist_append(list, "Expect:");
}

static bool
open_body(Transfer *transfer, int64_t *out_bytes, Error *err)
{
    const char *path = transfer->request->body_path;
    struct stat st;

    if (path == NULL) {
        *out_bytes = (int64_t) transfer->request->body.len;
        return true;
    }
    transfer->body_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (transfer->body_fd < 0 || fstat(transfer->body_fd, &st) != 0)
        return FAIL(err, ERR_INPUT, "%s: %s", path, strerrordesc_np(errno));
    *out_bytes = (int64_t) st.st_size;
    return true;
}

static void
set_options(HttpClient *client, Slot *slot, Transfer *transfer, struct curl_slist *headers,
            int64_t body_bytes)
{
    const HttpRequest *request = transfer->request;
    CURL *easy = slot->easy;

    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, slot->curl_error);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    /* one request per connection at a time: what was sent and what was not stays decidable */
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "walberg/" WALBERG_VERSION);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long) client->options.connect_ms);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long) request->total_ms);
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request->once ? 1L : 0L);
    if (client->options.ca_file != NULL)
        curl_easy_setopt(easy, CURLOPT_CAINFO, client->options.ca_file);
    if (strcmp(request->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else if (request->body.ptr != NULL || request->body_path != NULL)
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t) body_bytes);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
}

/* Whether libcurl has finished, and with what. */
static bool
finished(CURLM *multi, CURLcode *out_code)
{
    int left;
    CURLMsg *msg = curl_multi_info_read(multi, &left);

    if (msg == NULL || msg->msg != CURLMSG_DONE)
        return false;
    *out_code = msg->data.result;
    return true;
}

static bool
stalled(const HttpClient *client, Transfer *transfer)
{
    curl_off_t ready_us = 0;

    /* until the request can be sent, the connect timeout rules */
    curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
    if (ready_us == 0)
        transfer->moved_at = clock_ms();
    return clock_ms() - transfer->moved_at >= client->options.stall_ms;
}

/* Drive the exchange to its end. False: canceled or stalled, with the error. */
static bool
drive(HttpClient *client, Slot *slot, Transfer *transfer, CURLcode *out_code, Error *err)
{
    Cancel *cancel = client->options.cancel;
    struct curl_waitfd leaving = {.events = CURL_WAIT_POLLIN};
    int64_t wait_ms =
        client->options.stall_ms < POLL_MS_MAX ? client->options.stall_ms : POLL_MS_MAX;

    if (cancel != NULL)
        leaving.fd = cancel_fd(cancel);
    for (;;) {
        int running;
        CURLMcode code = curl_multi_perform(slot->multi, &running);

        if (code != CURLM_OK)
            return FAIL(err, ERR_BUG, "%s: %s", transfer->request->url, curl_multi_strerror(code));
        if (finished(slot->multi, out_code))
            return true;
        if (cancel != NULL && cancel_is_set(cancel))
            return FAIL(err, ERR_CANCELED, "canceled");
        if (stalled(client, transfer))
            return FAIL(err, ERR_TRANSIENT, "nothing moved for %lld ms",
                        (long long) client->options.stall_ms);
        code = curl_multi_poll(slot->multi, cancel == NULL ? NULL : &leaving, cancel != NULL,
                               (int) wait_ms, NULL);
        if (code != CURLM_OK)
            return FAIL(err, ERR_BUG, "%s: %s", transfer->request->url, curl_multi_strerror(code));
    }
}

static bool
fail_with(CURLcode code, const Slot *slot, const Transfer *transfer, Error *err)
{
    const char *why = slot->curl_error[0] != '\0' ? slot->curl_error : curl_easy_strerror(code);

    if (transfer->err.kind != ERR_NONE) {
        *err = transfer->err;
        return false;
    }
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return FAIL(err, ERR_INPUT,
                    "%s\nhint: when the server's certificate is signed by a CA of your own, name "
                    "its PEM file in the ca_file setting",
                    why);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
        code == CURLE_SSL_CACERT_BADFILE)
        return FAIL(err, ERR_INPUT, "%s", why);
    return FAIL(err, ERR_TRANSIENT, "%s", why);
}

/* Read off what libcurl knows once the exchange is over, one way or the other. */
static void
note_outcome(bool answered, CURL *easy, HttpResponse *response)
{
    long request_bytes = 0;
    long status = 0;
    curl_off_t retry_after_s = 0;

    curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    response->status = (int) status;
    response->retry_after_ms = (int64_t) retry_after_s * 1000;
    if (answered)
        response->fate = HTTP_ANSWERED;
    else
        response->fate = request_bytes > 0 ? HTTP_UNKNOWN : HTTP_NOT_SENT;
}

static void
reset_response(HttpResponse *response)
{
    buf_reset(&response->headers);
    buf_reset(&response->body);
    response->fate = HTTP_NOT_SENT;
    response->status = 0;
    response->retry_after_ms = 0;
    response->file_bytes = 0;
}

/* libcurl takes a connection that closes within the head for the end of the answer. */
static bool
head_is_whole(const HttpResponse *response)
{
    Str head = buf_view(&response->headers);

    return str_ends(head, STR("\n\r\n")) || str_ends(head, STR("\n\n"));
}

/* An answer without a body never reaches on_body(), yet the file has to be there. */
static bool
finish_file(Transfer *transfer, Error *err)
{
    if (transfer->request->response_path != NULL && transfer->response->status / 100 == 2 &&
        !write_file(transfer, "", 0)) {
        *err = transfer->err;
        return false;
    }
    return true;
}

bool
http_send(HttpClient *client, const HttpRequest *request, HttpResponse *response, Error *err)
{
    AUTO(free_headers) struct curl_slist *headers = NULL;
    AUTO(transfer_done)
    Transfer transfer = {.magic = TRANSFER_MAGIC,
                         .request = request,
                         .response = response,
                         .bytes_max = client->options.response_bytes_max,
                         .body_fd = -1,
                         .file_fd = -1,
                         .moved_at = clock_ms()};
    int64_t body_bytes = 0;
    CURLcode code = CURLE_OK;

    reset_response(response);
    if (client->options.cancel != NULL && cancel_is_set(client->options.cancel))
        return FAIL(err, ERR_CANCELED, "canceled");
    TRY(open_body(&transfer, &body_bytes, err));
    headers = header_list(request);

    Slot *slot = slot_take(client);

    transfer.easy = slot->easy;
    slot->curl_error[0] = '\0';
    set_options(client, slot, &transfer, headers, body_bytes);
    curl_multi_add_handle(slot->multi, slot->easy);

    bool ok = drive(client, slot, &transfer, &code, err);

    if (ok && code != CURLE_OK)
        ok = fail_with(code, slot, &transfer, err);
    if (ok && !head_is_whole(response))
        ok = FAIL(err, ERR_TRANSIENT, "the answer was cut off in its head");
    note_outcome(ok, slot->easy, response);
    /* an exchange broken off half way takes its connection with it */
    curl_multi_remove_handle(slot->multi, slot->easy);
    slot_give_back(client, slot);
    ok = ok && finish_file(&transfer, err);
    return ok || WRAP(err, "%s %s", request->method, request->url);
}

Str
http_header(const HttpResponse *response, const char *name)
{
    size_t name_length = strlen(name);
    const char *at = response->headers.ptr;
    const char *end = at == NULL ? NULL : at + response->headers.len;

    while (at != NULL && at < end) {
        const char *next = memchr(at, '\n', (size_t) (end - at));
        const char *stop = next == NULL ? end : next;

        if ((size_t) (stop - at) > name_length && at[name_length] == ':' &&
            strncasecmp(at, name, name_length) == 0) {
            at += name_length + 1;
            while (at < stop && (*at == ' ' || *at == '\t'))
                at++;
            while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
                stop--;
            return (Str){.ptr = at, .len = (size_t) (stop - at)};
        }
        at = next == NULL ? end : next + 1;
    }
    return STR_NULL;
}

void
http_response_done(HttpResponse *response)
{
    buf_done(&response->headers);
    buf_done(&response->body);
    *response = (HttpResponse){0};
}
