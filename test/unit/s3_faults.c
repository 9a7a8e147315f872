/* What an S3 service does on its bad days, scripted; what it does on good ones is tested against
 * real services (test/contract/store.c). */
#include "testing.h"

#include "script_server.h"

#include "base/clock.h"
#include "store/store.h"

static Store *
store_on_with(const ScriptServer *server, StoreOptions options)
{
    Store *store = NULL;
    Error err = {0};

    options.endpoint = server->url;
    options.path_style = true;
    options.access_key_id = "id";
    options.secret_access_key = "secret";
    OK(store_open("s3://bucket/lake", &options, &store, &err));
    return store;
}

static Store *
store_on(const ScriptServer *server)
{
    return store_on_with(server, (StoreOptions){.retry_ms_max = 5000, .stall_ms = 500});
}

static void
done(Store *store, ScriptServer *server)
{
    store_close(store);
    script_server_stop(server);
}

#define SLOW_DOWN "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"

static void
trouble_passes(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start(
        (const ScriptStep[]){{.status = 503, .body = SLOW_DOWN},
                             {.status = 500, .body = "<Error><Code>InternalError</Code></Error>"},
                             {.status = 200, .headers = "ETag: \"1\"\r\n"},
                             {.status = 429},
                             {.status = 200,
                              .headers = "ETag: \"1\"\r\n",
                              .body = "cut in the body",
                              .cut = CUT_IN_BODY},
                             {.status = 200,
                              .headers = "ETag: \"1\"\r\n",
                              .body = "cut in the head",
                              .cut = CUT_IN_HEAD},
                             {.status = 0},
                             {.status = 200, .headers = "ETag: \"1\"\r\n", .body = "whole"},
                             {.status = 502, .body = "<html>Bad Gateway</html>"},
                             {.status = 400, .body = "<Error><Code>RequestTimeout</Code></Error>"},
                             {.status = 204},
                             {.end = true}});
    Store *store = store_on(server);
    AUTO_BUF Buf out = {0};
    StoreVersion version;
    Error err = {0};
    bool found = false;

    OK(store_put(store, "a b", STR("x"), &err));
    assert_string_equal(script_request(server, 2)->target, "/bucket/lake/a%20b");
    assert_true(str_eqc(buf_view(&script_request(server, 2)->body), "x"));
    OK(store_get(store, "x", &out, &found, &version, &err));
    assert_true(found);
    assert_string_equal(buf_text(&out), "whole");
    assert_string_equal(version.text, "\"1\"");
    OK(store_remove(store, "x", &err));
    done(store, server);
}

static void
trouble_that_stays_is_transient(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start((const ScriptStep[]){
        {.status = 503, .body = SLOW_DOWN, .headers = "Retry-After: 600\r\n"}, {.end = true}});
    Store *store = store_on(server);
    Error err = {0};
    int64_t start = clock_ms();

    /* there is no use in waiting longer than we would try */
    FAILS(store_put(store, "x", STR("x"), &err), ERR_TRANSIENT);
    assert_true(clock_ms() - start < 1000);
    assert_non_null(strstr(err.msg, "SlowDown: Reduce your rate"));
    assert_non_null(strstr(err.msg, "put s3://bucket/lake/x"));
    done(store, server);
}

static void
retry_after_is_waited_for(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start((const ScriptStep[]){
        {.status = 503, .headers = "Retry-After: 1\r\n"}, {.status = 200}, {.end = true}});
    Store *store = store_on(server);
    Error err = {0};
    int64_t start = clock_ms();

    OK(store_put(store, "x", STR("x"), &err));
    assert_true(clock_ms() - start >= 1000);
    done(store, server);
}

static void
a_slow_server_is_given_up_and_asked_again(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start(
        (const ScriptStep[]){{.status = 200, .wait_ms = 10000},
                             {.status = 200,
                              .headers = "ETag: \"1\"\r\n",
                              .body = "stalls",
                              .cut = CUT_IN_BODY,
                              .stall_ms = 10000},
                             {.status = 200, .headers = "ETag: \"1\"\r\n", .body = "moves"},
                             {.end = true}});
    Store *store = store_on(server);
    AUTO_BUF Buf out = {0};
    Error err = {0};
    bool found;

    OK(store_get(store, "x", &out, &found, NULL, &err));
    assert_string_equal(buf_text(&out), "moves");
    done(store, server);
}

static void
a_download_is_whole_or_not_there(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start(
        (const ScriptStep[]){{.status = 200, .body = "a long first attempt", .cut = CUT_IN_BODY},
                             {.status = 200, .body = "second"},
                             {.status = 200, .body = "cut, then it is gone", .cut = CUT_IN_BODY},
                             {.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"},
                             {.status = 403, .body = "<Error><Code>AccessDenied</Code></Error>"},
                             {.end = true}});
    Store *store = store_on(server);
    char folder[] = "/tmp/walberg-fetch-XXXXXX";
    char path[64];
    char content[64] = "";
    Error err = {0};
    bool found = false;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x", folder);
    OK(store_fetch(store, "x", path, &found, &err));
    assert_true(found);

    FILE *file = fopen(path, "rb");

    assert_int_equal(fread(content, 1, sizeof content, file), 6);
    fclose(file);
    assert_string_equal(content, "second");
    unlink(path);
    OK(store_fetch(store, "x", path, &found, &err));
    assert_false(found);
    FAILS(store_fetch(store, "x", path, &found, &err), ERR_INPUT);
    assert_int_equal(rmdir(folder), 0); /* nothing left behind */
    done(store, server);
}

#define PRECONDITION "<Error><Code>PreconditionFailed</Code></Error>"
#define NO_SUCH_KEY  "<Error><Code>NoSuchKey</Code></Error>"
#define ETAG(text)   "ETag: \"" text "\"\r\n"

static void
create_whose_answer_was_lost_is_ours(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start(
        (const ScriptStep[]){/* done, the answer is lost: what is there is ours */
                             {.status = 0},
                             {.status = 200, .headers = ETAG("1"), .echo_put = true},
                             /* done, the answer says 500 */
                             {.status = 500},
                             {.status = 200, .headers = ETAG("1"), .echo_put = true},
                             /* not done, or not yet: there is nothing; then the late first attempt
                              * makes the second fail */
                             {.status = 200, .headers = ETAG("1"), .cut = CUT_IN_HEAD},
                             {.status = 404, .body = NO_SUCH_KEY},
                             {.status = 412, .body = PRECONDITION},
                             {.status = 200, .headers = ETAG("1"), .echo_put = true},
                             {.end = true}});
    Store *store = store_on(server);
    Error err = {0};
    char value[32];

    for (int i = 0; i < 3; i++) {
        bool created = false;

        OK(store_put_absent(store, "v2", STR("ours"), &created, &err));
        assert_true(created);
    }
    assert_string_equal(
        script_header(script_request(server, 0), "If-None-Match", value, sizeof value), "*");
    assert_string_equal(script_header(script_request(server, 0), "If-Match", value, sizeof value),
                        "");
    assert_string_equal(script_request(server, 1)->method, "GET");
    done(store, server);
}

static void
create_that_was_lost_is_lost(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start(
        (const ScriptStep[]){/* a plain 412 needs no look: nothing of ours was under way */
                             {.status = 412, .body = PRECONDITION},
                             /* no answer, and somebody else's bytes */
                             {.status = 0},
                             {.status = 200, .headers = ETAG("9"), .body = "theirs"},
                             /* 503, nothing there, 412, somebody else's bytes */
                             {.status = 503},
                             {.status = 404, .body = NO_SUCH_KEY},
                             {.status = 412, .body = PRECONDITION},
                             {.status = 200, .headers = ETAG("9"), .body = "theirs"},
                             /* as before, and their object is gone by the time we look */
                             {.status = 0},
                             {.status = 404, .body = NO_SUCH_KEY},
                             {.status = 412, .body = PRECONDITION},
                             {.status = 404, .body = NO_SUCH_KEY},
                             {.end = true}});
    Store *store = store_on(server);
    Error err = {0};

    for (int i = 0; i < 4; i++) {
        bool created = true;

        OK(store_put_absent(store, "v2", STR("ours"), &created, &err));
        assert_false(created);
    }
    done(store, server);
}

static void
a_conflict_under_way_is_tried_again(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start((const ScriptStep[]){
        {.status = 409, .body = "<Error><Code>ConditionalRequestConflict</Code></Error>"},
        {.status = 429},
        {.status = 200, .headers = ETAG("1")},
        {.status = 409, .body = "<Error><Code>ConditionalRequestConflict</Code></Error>"},
        {.status = 412, .body = PRECONDITION},
        {.status = 409, .body = "<Error><Code>ObjectParentIsFile</Code></Error>"},
        {.end = true}});
    Store *store = store_on(server);
    Error err = {0};
    bool created = false;

    OK(store_put_absent(store, "v2", STR("ours"), &created, &err));
    assert_true(created);
    OK(store_put_absent(store, "v2", STR("ours"), &created, &err));
    assert_false(created);
    FAILS(store_put_absent(store, "v2", STR("ours"), &created, &err), ERR_INPUT);
    done(store, server);
}

static void
swaps_whose_answer_was_lost(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start((const ScriptStep[]){
        {.status = 0}, /* done */
        {.status = 200, .headers = ETAG("2"), .echo_put = true},
        {.status = 500}, /* not done: the old version is there, so once more */
        {.status = 200, .headers = ETAG("1"), .body = "old"},
        {.status = 200, .headers = ETAG("2")},
        {.status = 500}, /* somebody else swapped */
        {.status = 200, .headers = ETAG("3"), .body = "theirs"},
        {.status = 404, .body = NO_SUCH_KEY},  /* If-Match on a key that is gone (AWS) */
        {.status = 412, .body = PRECONDITION}, /* (others) */
        {.status = 404, .body = "<Error><Code>NoSuchBucket</Code></Error>"},
        {.end = true}});
    static const bool expected[] = {true, true, false, false, false};
    const StoreVersion old = {.text = "\"1\""};
    Store *store = store_on(server);
    StoreVersion version = {0};
    Error err = {0};
    bool swapped = false;
    char value[32];

    for (size_t i = 0; i < sizeof expected; i++) {
        OK(store_put_match(store, "state", &old, STR("new"), &swapped, &version, &err));
        assert_int_equal(swapped, expected[i]);
        assert_string_equal(version.text, "\"2\"");
    }
    assert_string_equal(script_header(script_request(server, 0), "If-Match", value, sizeof value),
                        "\"1\"");
    FAILS(store_put_match(store, "state", &old, STR("new"), &swapped, &version, &err), ERR_INPUT);
    done(store, server);
}

static void
an_outcome_nobody_can_tell_is_transient(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start((const ScriptStep[]){
        {.status = 0}, {.status = 503, .headers = "Retry-After: 600\r\n"}, {.end = true}});
    Store *store = store_on(server);
    Error err = {0};
    bool created = false;

    FAILS(store_put_absent(store, "v2", STR("ours"), &created, &err), ERR_TRANSIENT);
    assert_false(created);
    done(store, server);
}

static void
refusals_say_what_to_do(void **state)
{
    (void) state;

    static const struct {
        ScriptStep step;
        const char *hint;
    } cases[] = {
        {{.status = 403, .body = "<Error><Code>AccessDenied</Code></Error>"}, "s3:PutObject"},
        {{.status = 403, .body = "<Error><Code>InvalidAccessKeyId</Code></Error>"},
         "access_key_id"},
        {{.status = 403, .body = "<Error><Code>SignatureDoesNotMatch</Code></Error>"},
         "secret_access_key"},
        {{.status = 400, .body = "<Error><Code>ExpiredToken</Code></Error>"}, "temporary"},
        {{.status = 403, .body = "<Error><Code>RequestTimeTooSkewed</Code></Error>"}, "clock"},
        {{.status = 404, .body = "<Error><Code>NoSuchBucket</Code></Error>"}, "make the bucket"},
        {{.status = 400,
          .body = "<Error><Code>AuthorizationHeaderMalformed</Code>"
                  "<Region>eu-west-3</Region></Error>"},
         "in eu-west-3: set sink.iceberg.s3.region"},
        {{.status = 301,
          .headers = "x-amz-bucket-region: ap-south-1\r\n",
          .body = "<Error><Code>PermanentRedirect</Code></Error>"},
         "in ap-south-1: set sink.iceberg.s3.region"},
        {{.status = 301}, "set sink.iceberg.s3.region"},
        {{.status = 501, .body = "<Error><Code>NotImplemented</Code></Error>"},
         "conditional writes"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const ScriptStep steps[] = {cases[i].step, {.end = true}};
        ScriptServer *server = script_server_start(steps);
        Store *store = store_on(server);
        Error err = {0};
        bool created;

        FAILS(store_put_absent(store, "x", STR("x"), &created, &err), ERR_INPUT);
        assert_non_null(strstr(err.msg, "\nhint: "));
        assert_non_null(strstr(strstr(err.msg, "\nhint: "), cases[i].hint));
        done(store, server);
    }
}

#define PAGE(rest) "<ListBucketResult>" rest "</ListBucketResult>"

static void
listing_pages(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start((const ScriptStep[]){
        {.status = 200,
         .body = PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken>a+/=</Next"
                      "ContinuationToken><Contents><Key>lake/b</Key><Size>1</Size></Contents>"
                      "<Contents><Key>lake/folder/</Key><Size>0</Size></Contents>")},
        {.status = 500},
        {.status = 200, .body = PAGE("<Contents><Key>lake/a</Key></Contents>")},
        {.status = 200, .body = PAGE("<IsTruncated>true</IsTruncated>")},
        {.status = 200, .body = "<html/>"},
        {.end = true}});
    AUTO_ARENA Arena *arena = arena_new();
    Store *store = store_on(server);
    StoreObject *objects;
    Error err = {0};
    size_t count;

    OK(store_list(store, "", arena, &objects, &count, &err));
    assert_int_equal(count, 2);
    assert_true(str_eqc(objects[0].key, "a"));
    assert_true(str_eqc(objects[1].key, "b"));
    assert_string_equal(script_request(server, 0)->target,
                        "/bucket/?encoding-type=url&list-type=2&prefix=lake%2F");
    assert_string_equal(script_request(server, 2)->target,
                        "/bucket/?continuation-token=a%2B%2F%3D&encoding-type=url&list-type=2&"
                        "prefix=lake%2F");
    /* a page that promises more and does not say where */
    FAILS(store_list(store, "", arena, &objects, &count, &err), ERR_TRANSIENT);
    FAILS(store_list(store, "", arena, &objects, &count, &err), ERR_TRANSIENT);
    done(store, server);
}

static void *
cancel_soon(void *argument)
{
    poll(NULL, 0, 200);
    cancel_set(argument);
    return NULL;
}

static void
waiting_ends_when_we_leave(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start(
        (const ScriptStep[]){{.status = 503, .headers = "Retry-After: 30\r\n"}, {.end = true}});
    Cancel *cancel = cancel_new();
    Store *store = store_on_with(server, (StoreOptions){.cancel = cancel});
    Error err = {0};
    pthread_t thread;
    int64_t start = clock_ms();

    pthread_create(&thread, NULL, cancel_soon, cancel);
    FAILS(store_put(store, "x", STR("x"), &err), ERR_CANCELED);
    assert_true(clock_ms() - start < 2000);
    pthread_join(thread, NULL);
    done(store, server);
    cancel_free(cancel);
}

static void
a_file_too_large_for_one_put_is_refused(void **state)
{
    (void) state;

    ScriptServer *server = script_server_start((const ScriptStep[]){{.end = true}});
    Store *store = store_on(server);
    char path[] = "/tmp/walberg-large-XXXXXX";
    Error err = {0};
    int fd = mkstemp(path);

    assert_int_equal(ftruncate(fd, ((off_t) 5 << 30) + 1), 0); /* sparse */
    close(fd);
    FAILS(store_put_file(store, "x", path, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "5 GiB"));
    unlink(path);
    done(store, server);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_passes),
        cmocka_unit_test(trouble_that_stays_is_transient),
        cmocka_unit_test(retry_after_is_waited_for),
        cmocka_unit_test(a_slow_server_is_given_up_and_asked_again),
        cmocka_unit_test(a_download_is_whole_or_not_there),
        cmocka_unit_test(create_whose_answer_was_lost_is_ours),
        cmocka_unit_test(create_that_was_lost_is_lost),
        cmocka_unit_test(a_conflict_under_way_is_tried_again),
        cmocka_unit_test(swaps_whose_answer_was_lost),
        cmocka_unit_test(an_outcome_nobody_can_tell_is_transient),
        cmocka_unit_test(refusals_say_what_to_do),
        cmocka_unit_test(listing_pages),
        cmocka_unit_test(waiting_ends_when_we_leave),
        cmocka_unit_test(a_file_too_large_for_one_put_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
