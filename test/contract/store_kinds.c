/* What is particular to one kind of store; what all have in common is in store.c. */
#include "test_stores.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "net/http_client.h"
#include "store/sigv4.h"
#include "store/store.h"

/* ---- the file system alone ---- */

static void
file_uris_have_several_spellings(void **state)
{
    TestStore *test = *state;
    AUTO_ARENA Arena *arena = arena_new();
    const char *path = test->location;
    Error err = {0};
    Store *again;

    assert_string_equal(store_uri(test->store, arena, "a/b"),
                        arena_printf(arena, "file://%s/a/b", path));
    assert_string_equal(store_local_path(test->store, arena, "a/b"),
                        arena_printf(arena, "%s/a/b", path));
    assert_string_equal(store_key(test->store, arena, arena_printf(arena, "file:%s/a/b", path)),
                        "a/b");
    assert_string_equal(
        store_key(test->store, arena, arena_printf(arena, "file://localhost%s/a/b", path)), "a/b");
    assert_string_equal(store_key(test->store, arena, arena_printf(arena, "%s/a/b", path)), "a/b");
    assert_null(store_key(test->store, arena, arena_printf(arena, "file://host%s/a/b", path)));
    OK(store_put(test->store, "x", STR("here"), &err));

    const char *const spellings[] = {
        arena_printf(arena, "file://%s", path),
        arena_printf(arena, "file:%s/", path),
        arena_printf(arena, "%s//", path),
        arena_printf(arena, "%s/./", path),
        arena_printf(arena, "%s/sub/new/../..", path),
    };

    OK(store_put(test->store, "sub/new/x", STR("1"), &err));
    for (size_t i = 0; i < COUNT(spellings); i++) {
        OK(store_open(spellings[i], &test->options, &again, &err));
        assert_string_equal(again->base_uri, test->store->base_uri);
        assert_content(again, "x", STR("here"));
        store_close(again);
    }
    FAILS(store_open("file://host/x", &test->options, &again, &err), ERR_INPUT);
    FAILS(store_open("gs://bucket/x", &test->options, &again, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "hint:"));
    FAILS(store_open("", &test->options, &again, &err), ERR_INPUT);
    FAILS(store_open(arena_printf(arena, "%s/x", path), &test->options, &again, &err), ERR_INPUT);
    FAILS(store_put(test->store, "x/below/a/file", STR("1"), &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, path));
}

static void
relative_folder_becomes_absolute(void **state)
{
    TestStore *test = *state;
    AUTO_ARENA Arena *arena = arena_new();
    char *before = getcwd(NULL, 0);
    Error err = {0};
    Store *store;

    assert_int_equal(chdir(test->location), 0);
    OK(store_open("./lake//here", &test->options, &store, &err));
    assert_string_equal(store->base_uri,
                        arena_printf(arena, "file://%s/lake/here", test->location));
    OK(store_put(store, "x", STR("1"), &err));
    store_close(store);
    assert_content(test->store, "lake/here/x", STR("1"));
    assert_int_equal(chdir(before), 0);
    free(before);
}

static void
own_files_are_hidden_until_they_are_litter(void **state)
{
    TestStore *test = *state;
    AUTO_ARENA Arena *arena = arena_new();
    static const char *const keys[] = {"t/.walberg.tmp.0123456789abcdef", "t/x"};
    const char *tmp = store_local_path(test->store, arena, keys[0]);
    StoreVersion version = {0};
    Error err = {0};
    bool swapped;

    OK(store_put_match(test->store, "t/x", &version, STR("1"), &swapped, &version, &err));
    OK(store_put_match(test->store, "t/x", &version, STR("2"), &swapped, &version, &err));
    close(open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    assert_listed(test->store, "t/", keys + 1, 1);

    const struct timespec long_ago[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};

    assert_int_equal(utimensat(AT_FDCWD, tmp, long_ago, 0), 0);
    assert_listed(test->store, "t/", keys, 2);
    OK(store_remove(test->store, keys[0], &err));
    assert_listed(test->store, "t/", keys + 1, 1);
}

static void
links_are_followed_and_empty_folders_go(void **state)
{
    TestStore *test = *state;
    AUTO_ARENA Arena *arena = arena_new();
    static const char *const keys[] = {"linked/x", "real/x"};
    Error err = {0};
    AUTO_BUF Buf bytes = {0};
    StoreVersion version;
    bool found;
    bool swapped;
    size_t count;
    Str *names;

    OK(store_put(test->store, "real/x", STR("1"), &err));
    assert_int_equal(symlink(store_local_path(test->store, arena, "real"),
                             store_local_path(test->store, arena, "linked")),
                     0);
    assert_int_equal(symlink("/no/such/place", store_local_path(test->store, arena, "dangling")),
                     0);
    assert_listed(test->store, "", keys, 2);
    assert_content(test->store, "linked/x", STR("1"));
    assert_int_equal(unlink(store_local_path(test->store, arena, "linked")), 0);
    assert_int_equal(unlink(store_local_path(test->store, arena, "dangling")), 0);
    OK(store_put(test->store, "a/b/c", STR("1"), &err));
    OK(store_get(test->store, "a/b/c", &bytes, &found, &version, &err));
    OK(store_put_match(test->store, "a/b/c", &version, STR("0"), &swapped, &version, &err));
    assert_true(swapped);
    OK(store_remove(test->store, "a/b/c", &err)); /* with what the swap locked */
    OK(store_list_folders(test->store, "", arena, &names, &count, &err));
    assert_int_equal(count, 1);
    OK(store_put(test->store, "a/b/c", STR("2"), &err)); /* and come back */
    assert_content(test->store, "a/b/c", STR("2"));
}

/* ---- S3 alone ---- */

static void
refusals_come_with_a_hint(void **state)
{
    TestStore *test = *state;
    AUTO_ARENA Arena *arena = arena_new();
    const char *bucket = test_env("WALBERG_TEST_S3_BUCKET");
    StoreOptions options = test->options;
    Error err = {0};
    Store *store;

    options.secret_access_key = "wrong";
    OK(store_open(test->location, &options, &store, &err));
    FAILS(store_put(store, "x", STR("1"), &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "secret_access_key"));
    store_close(store);

    options = test->options;
    options.access_key_id = "nobody";
    OK(store_open(test->location, &options, &store, &err));
    FAILS(store_put(store, "x", STR("1"), &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "hint:"));
    store_close(store);

    OK(store_open("s3://walberg-no-such-bucket/x", &test->options, &store, &err));
    FAILS(store_put(store, "x", STR("1"), &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "NoSuchBucket"));
    assert_non_null(strstr(err.msg, "hint: make the bucket"));
    store_close(store);

    options = test->options;
    options.access_key_id = NULL;
    FAILS(store_open(test->location, &options, &store, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "AWS_ACCESS_KEY_ID"));
    options = test->options;
    options.endpoint = "s3.example.com";
    FAILS(store_open(test->location, &options, &store, &err), ERR_INPUT);
    FAILS(store_open("s3://", &test->options, &store, &err), ERR_INPUT);
    FAILS(store_open("s3:/x", &test->options, &store, &err), ERR_INPUT);

    OK(store_open(arena_printf(arena, "s3a://%s/a//", bucket), &test->options, &store, &err));
    assert_string_equal(store->base_uri, arena_printf(arena, "s3://%s/a", bucket));
    assert_string_equal(store_key(store, arena, arena_printf(arena, "s3n://%s/a/b/c", bucket)),
                        "b/c");
    assert_null(store_local_path(store, arena, "x"));
    store_close(store);
}

static void
virtual_host_style(void **state)
{
    TestStore *test = *state;
    StoreOptions options = test->options;
    Error err = {0};
    Store *store;

    options.endpoint = test_env("WALBERG_TEST_S3_VHOST");
    options.path_style = false;
    if (options.endpoint == NULL)
        skip();
    OK(store_open(test->location, &options, &store, &err));
    OK(store_put(store, "a b/\xC3\xA9", STR("by host name"), &err));
    assert_content(test->store, "a b/\xC3\xA9", STR("by host name"));
    store_close(store);
}

static const char *
element(Arena *arena, const Buf *xml, const char *name)
{
    const char *open = arena_printf(arena, "<%s>", name);
    const char *start = memmem(xml->ptr, xml->len, open, strlen(open));

    assert_non_null(start);
    start += strlen(open);

    const char *end = memchr(start, '<', xml->len - (size_t) (start - xml->ptr));

    assert_non_null(end);
    return arena_str(arena, (Str){start, (size_t) (end - start)}).ptr;
}

/* AWS STS API Reference, "AssumeRole": asks the service for temporary credentials. */
static void
assume_role(Arena *arena, const char *role, StoreOptions *options)
{
    AUTO_HTTP_RESPONSE HttpResponse response = {0};
    AUTO_BUF Buf body = {0};
    HttpClient *http = NULL;
    char hash[SHA256_HEX_SIZE];
    char now[SIGV4_TIME_SIZE];
    Error err = {0};

    buf_cstr(&body, "Action=AssumeRole&Version=2011-06-15&RoleSessionName=walberg&"
                    "DurationSeconds=900&RoleArn=");
    sigv4_encode(&body, str_of(role), false);
    sha256_hex(buf_view(&body), hash);
    sigv4_time(clock_wall_us(), now);

    HttpHeader headers[4] = {{"Host", strstr(options->endpoint, "://") + 3},
                             {"x-amz-date", now},
                             {"Content-Type", "application/x-www-form-urlencoded"}};

    headers[3] = (HttpHeader){
        "Authorization",
        sigv4_authorization(arena,
                            &(SigV4Key){.access_key_id = options->access_key_id,
                                        .secret_access_key = options->secret_access_key,
                                        .region = "us-east-1",
                                        .service = "sts"},
                            &(SigV4Request){.method = "POST",
                                            .path = STR("/"),
                                            .headers = headers,
                                            .header_count = 3,
                                            .payload_sha256 = hash})};
    OK(http_client_new(&(HttpOptions){0}, &http, &err));
    OK(http_send(http,
                 &(HttpRequest){.method = "POST",
                                .url = arena_printf(arena, "%s/", options->endpoint),
                                .headers = headers,
                                .header_count = 4,
                                .body = buf_view(&body)},
                 &response, &err));
    assert_int_equal(response.status, 200);
    options->access_key_id = element(arena, &response.body, "AccessKeyId");
    options->secret_access_key = element(arena, &response.body, "SecretAccessKey");
    options->session_token = element(arena, &response.body, "SessionToken");
    http_client_free(http);
}

static void
session_tokens(void **state)
{
    const char *role = test_env("WALBERG_TEST_S3_ROLE");

    if (role == NULL)
        skip();

    TestStore *test = *state;
    AUTO_ARENA Arena *arena = arena_new();
    StoreOptions options = test->options;
    Error err = {0};
    Store *store;

    assume_role(arena, role, &options);
    OK(store_open(test->location, &options, &store, &err));
    OK(store_put(store, "x", STR("with a token"), &err));
    store_close(store);
    assert_content(test->store, "x", STR("with a token"));
    options.session_token = NULL;
    OK(store_open(test->location, &options, &store, &err));
    FAILS(store_put(store, "x", STR("without"), &err), ERR_INPUT);
    store_close(store);
}

int
main(void)
{
    static const TestCase cases[] = {
        {"file_uris_have_several_spellings", file_uris_have_several_spellings, "file"},
        {"relative_folder_becomes_absolute", relative_folder_becomes_absolute, "file"},
        {"own_files_are_hidden_until_they_are_litter", own_files_are_hidden_until_they_are_litter,
         "file"},
        {"links_are_followed_and_empty_folders_go", links_are_followed_and_empty_folders_go,
         "file"},
        {"refusals_come_with_a_hint", refusals_come_with_a_hint, "s3"},
        {"virtual_host_style", virtual_host_style, "s3"},
        {"session_tokens", session_tokens, "s3"},
    };

    return test_run_on_stores(cases, COUNT(cases));
}
