/* SigV4 against values published by AWS:
 *
 *   - S3 API Reference, "Authenticating Requests: Using the Authorization Header (AWS Signature
 *     Version 4)", the four examples with AKIAIOSFODNN7EXAMPLE;
 *   - the Signature Version 4 test suite (aws-sig-v4-test-suite), cases named in the table. */
#include "testing.h"

#include "base/arena.h"
#include "store/sigv4.h"

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SESSION_TOKEN                                                                              \
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSP" \
    "fIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT" \
    "7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlz" \
    "m8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

enum { PARAMS_MAX = 2, HEADERS_MAX = 5 };

typedef struct Vector {
    const char *name;
    const char *method;
    const char *path;
    const char *body;
    SigV4Param params[PARAMS_MAX];
    HttpHeader headers[HEADERS_MAX];
    const char *canonical_sha256; /* last line of the string to sign; NULL: not published */
    const char *signed_headers;
    const char *signature;
} Vector;

static void
check(const SigV4Key *key, const char *day, const Vector *vector)
{
    AUTO_ARENA Arena *arena = arena_new();
    SigV4Request request = {.method = vector->method,
                            .path = str_of(vector->path),
                            .params = vector->params,
                            .headers = vector->headers};
    char payload[SHA256_HEX_SIZE];
    char canonical[SHA256_HEX_SIZE];

    while (request.param_count < PARAMS_MAX && vector->params[request.param_count].name.ptr != NULL)
        request.param_count++;
    while (request.header_count < HEADERS_MAX && vector->headers[request.header_count].name != NULL)
        request.header_count++;
    sha256_hex(str_of(vector->body), payload);
    request.payload_sha256 = payload;

    const char *expected =
        arena_printf(arena,
                     "AWS4-HMAC-SHA256 Credential=%s/%s/%s/%s/aws4_request, SignedHeaders=%s, "
                     "Signature=%s",
                     key->access_key_id, day, key->region, key->service, vector->signed_headers,
                     vector->signature);

    print_message("# %s\n", vector->name);
    sha256_hex(str_of(sigv4_canonical_request(arena, &request)), canonical);
    if (vector->canonical_sha256 != NULL)
        assert_string_equal(canonical, vector->canonical_sha256);
    assert_string_equal(sigv4_authorization(arena, key, &request), expected);
}

#define S3_HOST                                                                                    \
    {                                                                                              \
        "Host", "examplebucket.s3.amazonaws.com"                                                   \
    }
#define S3_DATE                                                                                    \
    {                                                                                              \
        "x-amz-date", "20130524T000000Z"                                                           \
    }

static const Vector s3_examples[] = {
    {.name = "GET Object",
     .method = "GET",
     .path = "/test.txt",
     .body = "",
     .headers = {S3_HOST, {"Range", "bytes=0-9"}, {"x-amz-content-sha256", EMPTY_SHA256}, S3_DATE},
     .canonical_sha256 = "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972",
     .signed_headers = "host;range;x-amz-content-sha256;x-amz-date",
     .signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {.name = "PUT Object",
     .method = "PUT",
     .path = "/test%24file.text",
     .body = "Welcome to Amazon S3.",
     .headers = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                 S3_HOST,
                 S3_DATE,
                 {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                 {"x-amz-content-sha256",
                  "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"}},
     .canonical_sha256 = "9e0e90d9c76de8fa5b200d8c849cd5b8dc7a3be3951ddb7f6a76b4158342019d",
     .signed_headers = "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
     .signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {.name = "GET Bucket Lifecycle",
     .method = "GET",
     .path = "/",
     .body = "",
     .params = {{{"lifecycle", 9}, {"", 0}}},
     .headers = {S3_HOST, {"x-amz-content-sha256", EMPTY_SHA256}, S3_DATE},
     .signed_headers = "host;x-amz-content-sha256;x-amz-date",
     .signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {.name = "Get Bucket (List Objects), parameters out of order",
     .method = "GET",
     .path = "/",
     .body = "",
     .params = {{{"prefix", 6}, {"J", 1}}, {{"max-keys", 8}, {"2", 1}}},
     .headers = {S3_HOST, {"x-amz-content-sha256", EMPTY_SHA256}, S3_DATE},
     .signed_headers = "host;x-amz-content-sha256;x-amz-date",
     .signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

static void
s3_documentation_examples(void **state)
{
    (void) state;

    const SigV4Key key = {.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                          .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                          .region = "us-east-1",
                          .service = "s3"};

    for (size_t i = 0; i < sizeof s3_examples / sizeof s3_examples[0]; i++)
        check(&key, "20130524", &s3_examples[i]);
}

#define SUITE_HOST                                                                                 \
    {                                                                                              \
        "Host", "example.amazonaws.com"                                                            \
    }
#define SUITE_DATE                                                                                 \
    {                                                                                              \
        "X-Amz-Date", "20150830T123600Z"                                                           \
    }

static const Vector suite[] = {
    {.name = "get-vanilla",
     .method = "GET",
     .path = "/",
     .body = "",
     .headers = {SUITE_HOST, SUITE_DATE},
     .signed_headers = "host;x-amz-date",
     .signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {.name = "get-vanilla-query-order-key-case",
     .method = "GET",
     .path = "/",
     .body = "",
     .params = {{{"Param2", 6}, {"value2", 6}}, {{"Param1", 6}, {"value1", 6}}},
     .headers = {SUITE_HOST, SUITE_DATE},
     .signed_headers = "host;x-amz-date",
     .signature = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {.name = "get-utf8",
     .method = "GET",
     .path = "/%E1%88%B4",
     .body = "",
     .headers = {SUITE_HOST, SUITE_DATE},
     .signed_headers = "host;x-amz-date",
     .signature = "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {.name = "get-header-value-trim",
     .method = "GET",
     .path = "/",
     .body = "",
     .headers =
         {SUITE_HOST, {"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}, SUITE_DATE},
     .signed_headers = "host;my-header1;my-header2;x-amz-date",
     .signature = "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {.name = "post-vanilla",
     .method = "POST",
     .path = "/",
     .body = "",
     .headers = {SUITE_HOST, SUITE_DATE},
     .canonical_sha256 = "553f88c9e4d10fc9e109e2aeb65f030801b70c2f6468faca261d401ae622fc87",
     .signed_headers = "host;x-amz-date",
     .signature = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {.name = "post-header-value-case",
     .method = "POST",
     .path = "/",
     .body = "",
     .headers = {SUITE_HOST, {"My-Header1", "VALUE1"}, SUITE_DATE},
     .signed_headers = "host;my-header1;x-amz-date",
     .signature = "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
    {.name = "post-sts-header-before",
     .method = "POST",
     .path = "/",
     .body = "",
     .headers = {SUITE_HOST, SUITE_DATE, {"X-Amz-Security-Token", SESSION_TOKEN}},
     .canonical_sha256 = "c237e1b440d4c63c32ca95b5b99481081cb7b13c7e40434868e71567c1a882f6",
     .signed_headers = "host;x-amz-date;x-amz-security-token",
     .signature = "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
    {.name = "post-x-www-form-urlencoded",
     .method = "POST",
     .path = "/",
     .body = "Param1=value1",
     .headers = {{"Content-Type", "application/x-www-form-urlencoded"}, SUITE_HOST, SUITE_DATE},
     .signed_headers = "content-type;host;x-amz-date",
     .signature = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
};

static void
aws_test_suite(void **state)
{
    (void) state;

    const SigV4Key key = {.access_key_id = "AKIDEXAMPLE",
                          .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                          .region = "us-east-1",
                          .service = "service"};

    for (size_t i = 0; i < sizeof suite / sizeof suite[0]; i++)
        check(&key, "20150830", &suite[i]);
}

/* RFC 3986, section 2.3: the unreserved characters; everything else by its UTF-8 bytes. */
static void
keys_are_encoded_byte_by_byte(void **state)
{
    (void) state;

    AUTO_BUF Buf out = {0};

    sigv4_encode(&out, STR("a b+c=d%25/\xC3\xA9~_-.(1)'!*&"), true);
    assert_string_equal(buf_text(&out), "a%20b%2Bc%3Dd%2525/%C3%A9~_-.%281%29%27%21%2A%26");
    buf_reset(&out);
    sigv4_encode(&out, STR("a/b"), false);
    assert_string_equal(buf_text(&out), "a%2Fb");
}

static void
time_has_the_basic_iso_form(void **state)
{
    (void) state;

    char text[SIGV4_TIME_SIZE];

    sigv4_time(1369353600000000, text); /* date -u -d @1369353600: 2013-05-24 00:00:00 */
    assert_string_equal(text, "20130524T000000Z");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s3_documentation_examples),
        cmocka_unit_test(aws_test_suite),
        cmocka_unit_test(keys_are_encoded_byte_by_byte),
        cmocka_unit_test(time_has_the_basic_iso_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
