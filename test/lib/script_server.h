/* script_server.h - an HTTP server that does what a test tells it to, request by request.
 *
 *     ScriptServer *server = script_server_start((ScriptStep[]){
 *         {.status = 503, .headers = "Retry-After: 1\r\n"},
 *         {.status = 200, .body = "hello"},
 *         {.end = true}});
 *     ... use server->url ...
 *     script_server_stop(server);                     fails the test when steps are left over
 *
 * Each request takes the next step, whatever connection it comes on; one that finds no step gets
 * 599. What came in is kept for assertions (script_request). A step can answer late, slowly, in
 * part or not at all, and can do what was asked before it cuts the connection: a PUT's body is what
 * .echo_put answers with later. One thread; connections are kept alive. */
#ifndef SCRIPT_SERVER_H
#define SCRIPT_SERVER_H

#include "testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"

enum { SCRIPT_CONNECTIONS_MAX = 16, SCRIPT_REQUESTS_MAX = 64 };

typedef enum ScriptCut { CUT_NOT, CUT_IN_HEAD, CUT_IN_BODY } ScriptCut;

typedef struct ScriptStep {
    int status;          /* 0: no answer, the connection is closed once the request was read */
    const char *headers; /* further lines, each with "\r\n" */
    const char *body;
    bool echo_put;  /* the body is that of the last PUT */
    int wait_ms;    /* before answering */
    ScriptCut cut;  /* send half of the head, or the head and half of the body, then close */
    int stall_ms;   /* with cut: wait so long before closing */
    bool no_length; /* without Content-Length: the body ends with the connection */
    bool close;     /* close the connection behind the answer without saying so */
    bool end;       /* the script ends before this one */
} ScriptStep;

typedef struct ScriptRequest {
    char method[16];
    char target[2048];
    char headers[8192]; /* all lines */
    Buf body;
    int connection; /* counted from 1 */
} ScriptRequest;

typedef struct ScriptServer {
    char url[64]; /* "http://127.0.0.1:port" */
    int port;
    int listener;
    atomic_bool stop;
    pthread_t thread;
    const ScriptStep *steps;
    size_t step_count;
    atomic_size_t request_count;
    ScriptRequest requests[SCRIPT_REQUESTS_MAX];
    Buf last_put;
    int connection_count;
} ScriptServer;

/* The nth request, from 0. */
static inline const ScriptRequest *
script_request(const ScriptServer *server, size_t n)
{
    assert_true(n < atomic_load(&server->request_count));
    return &server->requests[n];
}

/* Value of a header of a request, copied into out; "" when it is not there. */
static inline const char *
script_header(const ScriptRequest *request, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);

    out[0] = '\0';
    for (const char *line = request->headers; *line != '\0';) {
        const char *end = strstr(line, "\r\n");

        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1;

            value += strspn(value, " ");
            snprintf(out, size, "%.*s", (int) (end - value), value);
            return out;
        }
        line = end + 2;
    }
    return out;
}

/* Read more into buf; false when the peer is gone. */
static inline bool
script_read(int fd, Buf *buf)
{
    char bytes[65536];
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);

    if (n <= 0)
        return false;
    buf_append(buf, bytes, (size_t) n);
    return true;
}

/* One request: head and body. */
static inline bool
script_read_request(int fd, ScriptRequest *out)
{
    AUTO_BUF Buf in = {0};
    char length[32];
    const char *head_end = NULL;

    while (head_end == NULL) {
        if (!script_read(fd, &in))
            return false;
        head_end = strstr(buf_text(&in), "\r\n\r\n");
    }
    if (sscanf(in.ptr, "%15s %2047s", out->method, out->target) != 2)
        return false;

    const char *first = strstr(in.ptr, "\r\n") + 2;
    size_t head = (size_t) (head_end - in.ptr) + 4;

    snprintf(out->headers, sizeof out->headers, "%.*s", (int) (head_end + 2 - first), first);

    size_t body = strtoul(script_header(out, "Content-Length", length, sizeof length), NULL, 10);

    while (in.len < head + body)
        if (!script_read(fd, &in))
            return false;
    buf_reset(&out->body);
    buf_append(&out->body, in.ptr + head, body);
    return true;
}

/* Over when the client has hung up, too. */
static inline void
script_pause(const ScriptServer *server, int fd, int ms)
{
    for (; ms > 0 && !atomic_load(&server->stop); ms -= 10) {
        struct pollfd peer = {.fd = fd, .events = POLLRDHUP};

        if (poll(&peer, 1, 10) > 0)
            return;
    }
}

/* Answer as the step says; false: close the connection. */
static inline bool
script_answer(ScriptServer *server, int fd, const ScriptStep *step, const ScriptRequest *request)
{
    AUTO_BUF Buf out = {0};
    Str body = step->echo_put ? buf_view(&server->last_put) : str_of(step->body);

    script_pause(server, fd, step->wait_ms);
    if (step->status == 0)
        return false;
    buf_printf(&out, "HTTP/1.1 %d Scripted\r\n%s", step->status,
               step->headers == NULL ? "" : step->headers);
    if (!step->no_length)
        buf_printf(&out, "Content-Length: %zu\r\n", body.len);
    buf_cstr(&out, "\r\n");

    size_t head = out.len;

    if (strcmp(request->method, "HEAD") != 0)
        buf_str(&out, body);

    size_t size = out.len;

    if (step->cut == CUT_IN_HEAD)
        size = head / 2;
    else if (step->cut == CUT_IN_BODY)
        size = head + body.len / 2;
    if (send(fd, out.ptr, size, MSG_NOSIGNAL) != (ssize_t) size)
        return false;
    if (step->cut != CUT_NOT) {
        script_pause(server, fd, step->stall_ms);
        return false;
    }
    return !step->close && !step->no_length;
}

static inline bool
script_serve(ScriptServer *server, int fd, int connection)
{
    static const ScriptStep none = {.status = 599, .body = "the script is over"};
    size_t n = atomic_load(&server->request_count);

    if (n == SCRIPT_REQUESTS_MAX)
        return false;

    ScriptRequest *request = &server->requests[n];

    if (!script_read_request(fd, request))
        return false;
    request->connection = connection;
    if (strcmp(request->method, "PUT") == 0) {
        buf_reset(&server->last_put);
        buf_str(&server->last_put, buf_view(&request->body));
    }
    atomic_store(&server->request_count, n + 1);
    return script_answer(server, fd, n < server->step_count ? &server->steps[n] : &none, request);
}

static inline void *
script_run(void *argument)
{
    ScriptServer *server = argument;
    struct pollfd fds[SCRIPT_CONNECTIONS_MAX + 1] = {{.fd = server->listener, .events = POLLIN}};
    int numbers[SCRIPT_CONNECTIONS_MAX + 1];
    nfds_t count = 1;

    while (!atomic_load(&server->stop)) {
        if (poll(fds, count, 20) <= 0)
            continue;
        for (nfds_t i = count - 1; i > 0; i--) {
            if (fds[i].revents == 0 || script_serve(server, fds[i].fd, numbers[i]))
                continue;
            close(fds[i].fd);
            count--;
            fds[i] = fds[count];
            numbers[i] = numbers[count];
        }
        if (fds[0].revents != 0 && count <= SCRIPT_CONNECTIONS_MAX) {
            fds[count] =
                (struct pollfd){.fd = accept(server->listener, NULL, NULL), .events = POLLIN};
            numbers[count++] = ++server->connection_count;
        }
    }
    for (nfds_t i = 1; i < count; i++)
        close(fds[i].fd);
    return NULL;
}

static inline ScriptServer *
script_server_start(const ScriptStep *steps)
{
    ScriptServer *server = xcalloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    while (!steps[server->step_count].end)
        server->step_count++;
    server->steps = steps;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *) &address, length), 0);
    assert_int_equal(listen(server->listener, SCRIPT_CONNECTIONS_MAX), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *) &address, &length), 0);
    server->port = ntohs(address.sin_port);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", server->port);
    assert_int_equal(pthread_create(&server->thread, NULL, script_run, server), 0);
    return server;
}

/* Ends the server and checks that every step was taken and no more. */
static inline void
script_server_stop(ScriptServer *server)
{
    size_t taken = atomic_load(&server->request_count);
    size_t expected = server->step_count;

    atomic_store(&server->stop, true);
    pthread_join(server->thread, NULL);
    close(server->listener);
    for (size_t i = 0; i < SCRIPT_REQUESTS_MAX; i++)
        buf_done(&server->requests[i].body);
    buf_done(&server->last_put);
    free(server);
    assert_int_equal(taken, expected);
}

#endif
