/* The HTTP client against a scripted server, and over TLS against OpenSSL's. */
#include "testing.h"

#include "script_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "net/http_client.h"

static HttpClient *
client_with(const HttpOptions *options)
{
    HttpClient *client = NULL;
    Error err = {0};

    OK(http_client_new(options, &client, &err));
    return client;
}

static const char *
url_of(const ScriptServer *server, const char *path)
{
    static char url[256];

    snprintf(url, sizeof url, "%s%s", server->url, path);
    return url;
}

static void
an_exchange_carries_everything(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start((const ScriptStep[]){
        {.status = 201,
         .headers = "ETag: \"e\"\r\nX-Empty:\r\nX-Blank: \t a b  \r\n",
         .body = "yes"},
        {.status = 404, .body = "no"},
        {.status = 200, .headers = "ETag: \"h\"\r\n", .body = "not sent for HEAD"},
        {.status = 301, .headers = "Location: /elsewhere\r\n"},
        {.status = 204},
        {.end = true}});
    HttpClient *client = client_with(&(HttpOptions){0});
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    HttpHeader headers[] = {{"X-One", "1"}, {"X-None", ""}};
    Error err = {0};
    char value[64];

    OK(http_send(client,
                 &(HttpRequest){.method = "PUT",
                                .url = url_of(server, "/a%20b/%2B/../c?x=%3D"),
                                .headers = headers,
                                .header_count = 2,
                                .body = STR("body")},
                 &response, &err));
    assert_int_equal(response.fate, HTTP_ANSWERED);
    assert_int_equal(response.status, 201);
    assert_true(str_eqc(buf_view(&response.body), "yes"));
    assert_true(str_eqc(http_header(&response, "etag"), "\"e\""));
    assert_true(str_eqc(http_header(&response, "x-blank"), "a b"));
    assert_true(http_header(&response, "x-empty").ptr != NULL);
    assert_int_equal(http_header(&response, "x-empty").len, 0);
    assert_null(http_header(&response, "x-not-there").ptr);
    assert_string_equal(script_request(server, 0)->method, "PUT");
    assert_string_equal(script_request(server, 0)->target, "/a%20b/%2B/../c?x=%3D");
    assert_true(str_eqc(buf_view(&script_request(server, 0)->body), "body"));
    assert_string_equal(script_header(script_request(server, 0), "X-One", value, sizeof value),
                        "1");
    assert_non_null(strstr(script_request(server, 0)->headers, "X-None:"));
    assert_string_equal(script_header(script_request(server, 0), "Expect", value, sizeof value),
                        "");

    OK(http_send(client, &(HttpRequest){.method = "GET", .url = url_of(server, "/")}, &response,
                 &err));
    assert_int_equal(response.status, 404);
    assert_true(str_eqc(buf_view(&response.body), "no"));
    OK(http_send(client, &(HttpRequest){.method = "HEAD", .url = url_of(server, "/")}, &response,
                 &err));
    assert_int_equal(response.status, 200);
    assert_int_equal(response.body.len, 0);
    assert_true(str_eqc(http_header(&response, "Content-Length"), "17"));
    OK(http_send(client, &(HttpRequest){.method = "GET", .url = url_of(server, "/")}, &response,
                 &err));
    assert_int_equal(response.status, 301); /* not followed */
    OK(http_send(client, &(HttpRequest){.method = "DELETE", .url = url_of(server, "/x")}, &response,
                 &err));
    assert_string_equal(script_request(server, 4)->method, "DELETE");
    /* one connection served them all */
    assert_int_equal(script_request(server, 4)->connection, 1);
    http_client_free(client);
    script_server_stop(server);
}

static void
files_are_sent_and_received(void **state)
{
    (void) state;

    ScriptServer *server =
        script_server_start((const ScriptStep[]){{.status = 200, .body = "for the file"},
                                                 {.status = 200},
                                                 {.status = 403, .body = "<Error/>"},
                                                 {.end = true}});
    HttpClient *client = client_with(&(HttpOptions){0});
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    char up[] = "/tmp/walberg-up-XXXXXX";
    char down[] = "/tmp/walberg-down-XXXXXX";
    char content[64] = "";
    Error err = {0};
    int fd = mkstemp(up);

    assert_int_equal(write(fd, "from a file", 11), 11);
    close(fd);
    close(mkstemp(down));
    OK(http_send(
        client,
        &(HttpRequest){
            .method = "PUT", .url = url_of(server, "/x"), .body_path = up, .response_path = down},
        &response, &err));
    assert_true(str_eqc(buf_view(&script_request(server, 0)->body), "from a file"));
    assert_int_equal(response.body.len, 0);
    assert_int_equal(response.file_bytes, 12);
    fd = open(down, O_RDONLY);
    assert_int_equal(read(fd, content, sizeof content), 12);
    close(fd);
    assert_string_equal(content, "for the file");
    /* an empty answer makes an empty file */
    OK(http_send(
        client, &(HttpRequest){.method = "GET", .url = url_of(server, "/x"), .response_path = down},
        &response, &err));
    fd = open(down, O_RDONLY);
    assert_int_equal(read(fd, content, sizeof content), 0);
    close(fd);
    unlink(down);
    /* a refusal does not go into the file */
    OK(http_send(
        client, &(HttpRequest){.method = "GET", .url = url_of(server, "/x"), .response_path = down},
        &response, &err));
    assert_true(str_eqc(buf_view(&response.body), "<Error/>"));
    assert_int_not_equal(access(down, F_OK), 0);
    FAILS(http_send(client,
                    &(HttpRequest){
                        .method = "PUT", .url = url_of(server, "/x"), .body_path = "/no/such/file"},
                    &response, &err),
          ERR_INPUT);
    assert_int_equal(response.fate, HTTP_NOT_SENT);
    unlink(up);
    http_client_free(client);
    script_server_stop(server);
}

/* Send a PUT that must fail, and say what became of it. */
static HttpFate
fate_of(HttpClient *client, const char *url, ErrKind kind)
{
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    Error err = {0};

    FAILS(http_send(client, &(HttpRequest){.method = "PUT", .url = url, .body = STR("x")},
                    &response, &err),
          kind);
    return response.fate;
}

static void
not_sent_is_told_from_unknown(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start(
        (const ScriptStep[]){{.status = 0},
                             {.status = 200, .body = "cut short", .cut = CUT_IN_HEAD},
                             {.status = 200, .body = "cut short", .cut = CUT_IN_BODY},
                             {.end = true}});
    HttpClient *client = client_with(&(HttpOptions){0});
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char nobody[64];

    /* a port where nobody listens */
    assert_int_equal(bind(listener, (struct sockaddr *) &address, length), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &address, &length), 0);
    snprintf(nobody, sizeof nobody, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    assert_int_equal(fate_of(client, nobody, ERR_TRANSIENT), HTTP_NOT_SENT);
    close(listener);
    assert_int_equal(fate_of(client, "http://no-such-host.invalid/", ERR_TRANSIENT), HTTP_NOT_SENT);
    assert_int_equal(fate_of(client, "not a url", ERR_INPUT), HTTP_NOT_SENT);
    assert_int_equal(fate_of(client, "file:///etc/passwd", ERR_INPUT), HTTP_NOT_SENT);
    assert_int_equal(fate_of(client, url_of(server, "/"), ERR_TRANSIENT), HTTP_UNKNOWN);
    assert_int_equal(fate_of(client, url_of(server, "/"), ERR_TRANSIENT), HTTP_UNKNOWN);
    assert_int_equal(fate_of(client, url_of(server, "/"), ERR_TRANSIENT), HTTP_UNKNOWN);
    http_client_free(client);
    script_server_stop(server);
}

/* A kept-alive connection may turn out to be closed. libcurl then repeats the request on a new one,
 * which is right for most and must not happen to a request that is sent once. */
static void
once_means_a_fresh_connection(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start((const ScriptStep[]){{.status = 200, .close = true},
                                                                    {.status = 200},
                                                                    {.status = 200},
                                                                    {.status = 0},
                                                                    {.status = 200},
                                                                    {.end = true}});
    HttpClient *client = client_with(&(HttpOptions){0});
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    HttpRequest request = {.method = "PUT", .url = url_of(server, "/"), .body = STR("x")};
    Error err = {0};

    OK(http_send(client, &request, &response, &err));
    OK(http_send(client, &request, &response, &err));
    assert_int_equal(script_request(server, 1)->connection, 2);
    assert_true(str_eqc(buf_view(&script_request(server, 1)->body), "x"));
    request.once = true;
    OK(http_send(client, &request, &response, &err));
    assert_int_equal(script_request(server, 2)->connection, 3);
    FAILS(http_send(client, &request, &response, &err), ERR_TRANSIENT);
    assert_int_equal(response.fate, HTTP_UNKNOWN);
    assert_int_equal(script_request(server, 3)->connection, 4);
    OK(http_send(client, &request, &response, &err));
    http_client_free(client);
    script_server_stop(server);
}

static void
what_does_not_move_is_given_up(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start(
        (const ScriptStep[]){{.status = 200, .wait_ms = 5000},
                             {.status = 200, .body = "slow", .cut = CUT_IN_BODY, .stall_ms = 5000},
                             {.status = 200, .wait_ms = 100},
                             {.status = 200, .wait_ms = 5000},
                             {.end = true}});
    HttpClient *client = client_with(&(HttpOptions){.stall_ms = 300});
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    HttpRequest request = {.method = "GET", .url = url_of(server, "/")};
    Error err = {0};
    int64_t start = clock_ms();

    FAILS(http_send(client, &request, &response, &err), ERR_TRANSIENT);
    assert_non_null(strstr(err.msg, "nothing moved"));
    FAILS(http_send(client, &request, &response, &err), ERR_TRANSIENT); /* within the body */
    assert_int_equal(response.status, 200);
    assert_int_equal(response.fate, HTTP_UNKNOWN);
    assert_true(clock_ms() - start < 3000);
    OK(http_send(client, &request, &response, &err));
    http_client_free(client);

    client = client_with(&(HttpOptions){0});
    request.total_ms = 200;
    FAILS(http_send(client, &request, &response, &err), ERR_TRANSIENT);
    http_client_free(client);
    script_server_stop(server);
}

static void *
cancel_soon(void *argument)
{
    Error err = {0};
    Cancel *timer = cancel_new();

    OK(cancel_sleep(timer, 200, &err));
    cancel_free(timer);
    cancel_set(argument);
    return NULL;
}

static void
canceling_does_not_wait(void **state)
{
    (void) state;

    ScriptServer *server =
        script_server_start((const ScriptStep[]){{.status = 200, .wait_ms = 5000}, {.end = true}});
    Cancel *cancel = cancel_new();
    HttpClient *client = client_with(&(HttpOptions){.cancel = cancel});
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    Error err = {0};
    pthread_t thread;
    int64_t start = clock_ms();

    pthread_create(&thread, NULL, cancel_soon, cancel);
    FAILS(http_send(client, &(HttpRequest){.method = "GET", .url = url_of(server, "/")}, &response,
                    &err),
          ERR_CANCELED);
    assert_true(clock_ms() - start < 400);
    assert_int_equal(response.fate, HTTP_UNKNOWN);
    pthread_join(thread, NULL);
    FAILS(http_send(client, &(HttpRequest){.method = "GET", .url = url_of(server, "/")}, &response,
                    &err),
          ERR_CANCELED);
    assert_int_equal(response.fate, HTTP_NOT_SENT);
    http_client_free(client);
    script_server_stop(server);
    cancel_free(cancel);
}

static void
answers_are_bounded_and_retry_after_is_read(void **state)
{
    (void) state;

    ScriptServer *server =
        script_server_start((const ScriptStep[]){{.status = 200, .body = "0123456789"},
                                                 {.status = 200, .body = "0123456789+"},
                                                 {.status = 503, .headers = "Retry-After: 7\r\n"},
                                                 {.status = 503},
                                                 {.end = true}});
    HttpClient *client = client_with(&(HttpOptions){.response_bytes_max = 10});
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    HttpRequest request = {.method = "GET", .url = url_of(server, "/")};
    Error err = {0};

    OK(http_send(client, &request, &response, &err));
    FAILS(http_send(client, &request, &response, &err), ERR_INPUT);
    OK(http_send(client, &request, &response, &err));
    assert_int_equal(response.retry_after_ms, 7000);
    OK(http_send(client, &request, &response, &err));
    assert_int_equal(response.retry_after_ms, 0);
    http_client_free(client);
    script_server_stop(server);
}

/* ---- TLS ---- */

static bool
run(const char *command)
{
    return system(command) == 0; /* NOLINT: a fixed command of this test */
}

/* A free port: bound, read, and let go. */
static int
free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *) &address, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void
certificates_are_checked(void **state)
{
    (void) state;

    char folder[] = "/tmp/walberg-tls-XXXXXX";
    char command[1024];
    char url[64];
    char ca[64];
    char port[16];
    Error err = {0};

    assert_non_null(mkdtemp(folder));
    snprintf(ca, sizeof ca, "%s/cert.pem", folder);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
             "-subj /CN=walberg-test -addext subjectAltName=IP:127.0.0.1 "
             "-keyout %s/key.pem -out %s/cert.pem >/dev/null 2>&1",
             folder, folder);
    if (!run(command))
        skip(); /* no openssl command here */

    int number = free_port();

    snprintf(port, sizeof port, "%d", number);
    snprintf(url, sizeof url, "https://127.0.0.1:%d/", number);
    assert_int_equal(chdir(folder), 0);

    pid_t server = fork();

    if (server == 0) {
        execlp("openssl", "openssl", "s_server", "-quiet", "-www", "-accept", port, "-cert",
               "cert.pem", "-key", "key.pem", (char *) NULL);
        _exit(127);
    }

    HttpClient *trusting = client_with(&(HttpOptions){.ca_file = ca});
    HttpClient *doubting = client_with(&(HttpOptions){0});
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    HttpRequest request = {.method = "GET", .url = url};
    bool answered = false;

    for (int tries = 0; tries < 100 && !answered; tries++) {
        answered = http_send(trusting, &request, &response, &err);
        poll(NULL, 0, answered ? 0 : 50);
    }
    assert_true(answered);
    assert_int_equal(response.status, 200);
    FAILS(http_send(doubting, &request, &response, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "ca_file"));
    assert_int_equal(response.fate, HTTP_NOT_SENT);
    http_client_free(trusting);
    http_client_free(doubting);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    FAILS(http_client_new(&(HttpOptions){.ca_file = "/no/such.pem"}, &doubting, &err), ERR_INPUT);
    assert_int_equal(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_true(run(command));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exchange_carries_everything),
        cmocka_unit_test(files_are_sent_and_received),
        cmocka_unit_test(not_sent_is_told_from_unknown),
        cmocka_unit_test(once_means_a_fresh_connection),
        cmocka_unit_test(what_does_not_move_is_given_up),
        cmocka_unit_test(canceling_does_not_wait),
        cmocka_unit_test(answers_are_bounded_and_retry_after_is_read),
        cmocka_unit_test(certificates_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
