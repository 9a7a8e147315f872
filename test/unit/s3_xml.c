/* The XML of S3: documents as printed in the S3 API Reference ("ListObjectsV2", "Error Responses"),
 * and what a parser must not fall for. */
#include "testing.h"

#include "base/arena.h"
#include "store/s3_xml.h"

static void
a_page_of_the_reference(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};
    S3Page page;

    OK(s3_page_parse(
        arena,
        STR("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n"
            "  <Name>bucket</Name>\n  <Prefix/>\n  <KeyCount>205</KeyCount>\n"
            "  <MaxKeys>1000</MaxKeys>\n  <IsTruncated>true</IsTruncated>\n"
            "  <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</Next"
            "ContinuationToken>\n"
            "  <Contents>\n    <Key>my-image.jpg</Key>\n"
            "    <LastModified>2009-10-12T17:50:30.000Z</LastModified>\n"
            "    <ETag>\"fba9dede5f27731c9771645a39863328\"</ETag>\n    <Size>434234</Size>\n"
            "    <StorageClass>STANDARD</StorageClass>\n"
            "    <Owner><ID>8a69b1ddee97</ID><DisplayName>x</DisplayName></Owner>\n"
            "  </Contents>\n"
            "  <CommonPrefixes>\n    <Prefix>photos/</Prefix>\n  </CommonPrefixes>\n"
            "</ListBucketResult>\n"),
        &page, &err));
    assert_true(page.truncated);
    assert_string_equal(page.next_token.ptr, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
    assert_int_equal(page.object_count, 1);
    assert_string_equal(page.objects[0].key.ptr, "my-image.jpg");
    assert_int_equal(page.objects[0].bytes, 434234);
    assert_true(page.objects[0].modified_us == 1255369830000000); /* date -u -d ... +%s */
    assert_int_equal(page.prefix_count, 1);
    assert_string_equal(page.prefixes[0].ptr, "photos/");
}

static void
keys_are_decoded(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};
    S3Page page;

    OK(s3_page_parse(arena,
                     STR("<s:ListBucketResult xmlns:s='x'><!-- a comment with <Key> -->"
                         "<Contents><Key>a&amp;b&lt;&gt;&quot;&apos;&#233;&#x1F418;+%20</Key>"
                         "</Contents><Contents><Key><![CDATA[<&amp;]]></Key></Contents>"
                         "</s:ListBucketResult>"),
                     &page, &err));
    assert_int_equal(page.object_count, 2);
    assert_string_equal(page.objects[0].key.ptr, "a&b<>\"'\xC3\xA9\xF0\x9F\x90\x98+%20");
    assert_string_equal(page.objects[1].key.ptr, "<&amp;");
    assert_false(page.truncated);
    /* the encoding is told after the keys as well as before them */
    OK(s3_page_parse(arena,
                     STR("<ListBucketResult><Contents><Key>a+b%2B%C3%A9%%2</Key></Contents>"
                         "<CommonPrefixes><Prefix>x%20y/</Prefix></CommonPrefixes>"
                         "<EncodingType>url</EncodingType></ListBucketResult>"),
                     &page, &err));
    assert_string_equal(page.objects[0].key.ptr, "a b+\xC3\xA9%%2");
    assert_string_equal(page.prefixes[0].ptr, "x y/");
}

static void
what_is_not_a_page_is_refused(void **state)
{
    (void) state;

    static const char *const documents[] = {
        "",
        "not xml",
        "<html><body>Bad Gateway</body></html>",
        "<ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents>",
        "<ListBucketResult></Contents></ListBucketResult>",
        "<ListBucketResult><Contents></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Size>99999999999999999999</Size></Contents>",
        "<ListBucketResult><Contents><Key>&nbsp;</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>&#0;</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>&#xD800;</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>&#x110000;</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>& b</Key></Contents></ListBucketResult>",
        "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult></ListBucketResult>",
        "<ListBucketResult><!-- never closed </ListBucketResult>",
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
        "< >",
    };

    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        AUTO_ARENA Arena *arena = arena_new();
        Error err = {0};
        S3Page page;

        FAILS(s3_page_parse(arena, str_of(documents[i]), &page, &err), ERR_TRANSIENT);
    }
}

static void
an_error_of_the_reference(void **state)
{
    (void) state;

    AUTO_ARENA Arena *arena = arena_new();
    S3Problem problem;

    s3_problem_parse(arena,
                     STR("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>\n"
                         "  <Code>NoSuchKey</Code>\n"
                         "  <Message>The resource you requested does not exist</Message>\n"
                         "  <Resource>/mybucket/myfoto.jpg</Resource> \n"
                         "  <RequestId>4442587FB7D0A2F9</RequestId>\n</Error>"),
                     &problem);
    assert_string_equal(problem.code, "NoSuchKey");
    assert_string_equal(problem.message, "The resource you requested does not exist");
    assert_string_equal(problem.region, "");
    s3_problem_parse(arena,
                     STR("<Error><Code>AuthorizationHeaderMalformed</Code>"
                         "<Region>eu-west-3</Region>"),
                     &problem); /* cut: what is there counts */
    assert_string_equal(problem.region, "eu-west-3");
    s3_problem_parse(arena, STR("<html>Bad Gateway"), &problem);
    assert_string_equal(problem.code, "");
    s3_problem_parse(arena, STR_NULL, &problem);
    assert_string_equal(problem.message, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_of_the_reference),
        cmocka_unit_test(keys_are_decoded),
        cmocka_unit_test(what_is_not_a_page_is_refused),
        cmocka_unit_test(an_error_of_the_reference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
