/* Avro object container files. The strange-*.avro files are fastavro's (golden/iceberg/golden.py);
 * what we write is read by fastavro in golden/check_written.py. */
#include "golden_files.h"
#include "testing.h"

#include "avro/ocf.h"

#define PLAIN                                                                                      \
    "{\"type\":\"record\",\"name\":\"r\",\"fields\":["                                             \
    "{\"name\":\"n\",\"type\":\"long\",\"field-id\":7},"                                           \
    "{\"name\":\"s\",\"type\":[\"null\",\"string\"]},"                                             \
    "{\"name\":\"d\",\"type\":\"double\"},{\"name\":\"f\",\"type\":\"float\"},"                    \
    "{\"name\":\"b\",\"type\":\"boolean\"},"                                                       \
    "{\"name\":\"l\",\"type\":{\"type\":\"array\",\"items\":\"int\"}}]}"

/* Avro 1.12 specification, "Binary Encoding": the table of longs, and the ends of the range. */
static void
longs_are_zigzag_varints(void **state)
{
    static const struct {
        int64_t n;
        const char *bytes;
    } vectors[] = {
        {0, "00"},
        {-1, "01"},
        {1, "02"},
        {-2, "03"},
        {2, "04"},
        {-64, "7f"},
        {64, "8001"},
        {INT64_MAX, "feffffffffffffffff01"},
        {INT64_MIN, "ffffffffffffffffff01"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        AUTO_BUF Buf out = {0};
        AUTO_BUF Buf hex = {0};

        ocf_put_long(&out, vectors[i].n);
        for (size_t j = 0; j < out.len; j++)
            buf_printf(&hex, "%02x", (uint8_t) out.ptr[j]);
        assert_string_equal(buf_text(&hex), vectors[i].bytes);
    }
}

static void
write_plain(Buf *out, OcfCodec codec, int64_t rows)
{
    const OcfMeta meta[] = {{"schema-id", STR("3")}, {"content", STR("data")}};
    OcfWriter writer;

    ocf_begin(&writer, out,
              &(OcfHeader){.schema = STR(PLAIN), .codec = codec, .meta_count = 2, .meta = meta});
    for (int64_t i = 0; i < rows; i++) {
        ocf_put_long(&writer.block, i * -1000003);
        ocf_put_long(&writer.block, i % 2);
        if (i % 2 == 1)
            ocf_put_bytes(&writer.block, STR("odd"));
        ocf_put_double(&writer.block, 1.5);
        ocf_put_float(&writer.block, -2.5F);
        ocf_put_bool(&writer.block, true);
        ocf_put_long(&writer.block, 2);
        ocf_put_long(&writer.block, 10);
        ocf_put_long(&writer.block, 11);
        ocf_put_long(&writer.block, 0);
        ocf_end_record(&writer);
    }
    ocf_finish(&writer);
}

static void
read_plain_row(OcfInput *in, const OcfType *type, int64_t i)
{
    Error err = {0};
    OcfScalar value;
    OcfItems items = {0};
    bool more;

    OK(ocf_read_scalar(in, type->fields[0].type, &value, &err));
    assert_true(value.integer == i * -1000003);
    OK(ocf_read_scalar(in, type->fields[1].type, &value, &err));
    assert_int_equal(value.kind, i % 2 ? OCF_STRING : OCF_NULL);
    assert_true(i % 2 == 0 || str_eqc(value.bytes, "odd"));
    OK(ocf_read_scalar(in, type->fields[2].type, &value, &err));
    assert_true(value.real == 1.5);
    OK(ocf_read_scalar(in, type->fields[3].type, &value, &err));
    assert_true(value.real == -2.5);
    OK(ocf_read_scalar(in, type->fields[4].type, &value, &err));
    assert_true(value.integer == 1);
    for (int64_t want = 10; want < 12; want++) {
        OK(ocf_next_item(in, type->fields[5].type, &items, &more, &err));
        assert_true(more);
        OK(ocf_read_scalar(in, type->fields[5].type->fields[0].type, &value, &err));
        assert_true(value.integer == want);
    }
    OK(ocf_next_item(in, type->fields[5].type, &items, &more, &err));
    assert_false(more);
}

static void
write_and_read(OcfCodec codec)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_OCF OcfReader *reader = NULL;
    AUTO_BUF Buf bytes = {0};
    Error err = {0};
    OcfInput *in = NULL;
    const int64_t rows = 20000; /* several blocks */

    write_plain(&bytes, codec, rows);
    OK(ocf_open(arena, buf_view(&bytes), &reader, &err));
    assert_true(str_eqc(ocf_meta(reader, "schema-id"), "3"));
    assert_true(str_eqc(ocf_meta(reader, "avro.schema"), PLAIN));
    assert_null(ocf_meta(reader, "other").ptr);
    assert_int_equal(ocf_record_type(reader)->fields[0].id, 7);
    assert_int_equal(ocf_record_type(reader)->fields[1].id, -1);
    for (int64_t i = 0; i < rows; i++) {
        OK(ocf_next(reader, &in, &err));
        assert_non_null(in);
        read_plain_row(in, ocf_record_type(reader), i);
    }
    OK(ocf_next(reader, &in, &err));
    assert_null(in);
}

static void
what_is_written_is_read(void **state)
{
    (void) state;
    write_and_read(OCF_CODEC_NULL);
    write_and_read(OCF_CODEC_DEFLATE);
}

static void
an_empty_file_has_no_records(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_OCF OcfReader *reader = NULL;
    AUTO_BUF Buf bytes = {0};
    Error err = {0};
    OcfInput *in;

    (void) state;
    write_plain(&bytes, OCF_CODEC_DEFLATE, 0);
    OK(ocf_open(arena, buf_view(&bytes), &reader, &err));
    OK(ocf_next(reader, &in, &err));
    assert_null(in);
}

/* Skip through a whole file; false when it is broken. */
static bool
count_records(Str bytes, int *out_count, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_OCF OcfReader *reader = NULL;

    *out_count = 0;
    TRY(ocf_open(arena, bytes, &reader, err));
    for (;;) {
        OcfInput *in;

        TRY(ocf_next(reader, &in, err));
        if (in == NULL)
            return true;
        for (size_t i = 0; i < ocf_record_type(reader)->field_count; i++)
            TRY(ocf_skip(in, ocf_record_type(reader)->fields[i].type, err));
        ++*out_count;
    }
}

static void
files_of_others_are_read(void **state)
{
    static const char *const codecs[] = {"null", "deflate", "zstandard"};
    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};
    int count;

    (void) state;
    for (size_t i = 0; i < 3; i++) {
        OK(count_records(
            golden_file(arena,
                        arena_printf(arena, "iceberg/python-avro/strange-%s.avro", codecs[i])),
            &count, &err));
        assert_int_equal(count, 300);
    }
    FAILS(count_records(golden_file(arena, "iceberg/python-avro/strange-bzip2.avro"), &count, &err),
          ERR_INPUT);
    assert_non_null(strstr(err.msg, "bzip2"));
    assert_non_null(strstr(err.msg, "\nhint: "));
}

/* Every cut, and every byte inverted: no crash, and never all records from a cut file. */
static void
damage_is_found(void **state)
{
    AUTO_BUF Buf bytes = {0};
    Error err = {0};
    int count;

    (void) state;
    write_plain(&bytes, OCF_CODEC_DEFLATE, 50);
    for (size_t cut = 0; cut < bytes.len; cut++) {
        bool ok = count_records((Str){.ptr = bytes.ptr, .len = cut}, &count, &err);

        assert_true(!ok || count == 0); /* cut right behind the header: an empty file */
    }
    for (size_t i = 0; i < bytes.len; i++) {
        bytes.ptr[i] = (char) ~bytes.ptr[i];
        if (count_records(buf_view(&bytes), &count, &err))
            assert_true(count == 50 || count == 0);
        bytes.ptr[i] = (char) ~bytes.ptr[i];
    }
    OK(count_records(buf_view(&bytes), &count, &err));
    assert_int_equal(count, 50);
    FAILS(count_records(STR_NULL, &count, &err), ERR_INPUT);
    FAILS(count_records(STR("PAR1"), &count, &err), ERR_INPUT);
}

static void
refuse_schema(const char *json, const char *word)
{
    AUTO_ARENA Arena *arena = arena_new();
    const OcfType *type;
    Error err = {0};

    FAILS(ocf_parse_schema(arena, str_of(json), &type, &err), ERR_INPUT);
    if (strstr(err.msg, word) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.msg, word);
}

static void
schemas_are_bounded(void **state)
{
    AUTO_BUF Buf deep = {0};
    AUTO_BUF Buf wide = {0};

    (void) state;
    refuse_schema("", "not JSON");
    refuse_schema("7", "no name");
    refuse_schema("\"strin\"", "strin");
    refuse_schema("[]", "without branches");
    refuse_schema("{\"type\":\"record\",\"name\":\"r\"}", "without fields");
    refuse_schema("{\"type\":\"record\",\"fields\":[]}", "no name");
    refuse_schema("{\"type\":\"fixed\",\"name\":\"f\",\"size\":-1}", "-1");
    refuse_schema("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"next\","
                  "\"type\":[\"null\",\"r\"]}]}",
                  "recursive");
    for (int i = 0; i < 100; i++)
        buf_cstr(&deep, "{\"type\":\"array\",\"items\":");
    buf_cstr(&deep, "\"int\"");
    for (int i = 0; i < 100; i++)
        buf_byte(&deep, '}');
    refuse_schema(buf_text(&deep), "deeper");
    /* each record holds the one before it twice: 2^20 fields in a few lines */
    buf_cstr(&wide, "[{\"type\":\"record\",\"name\":\"r0\",\"fields\":[]}");
    for (int i = 1; i <= 20; i++)
        buf_printf(&wide,
                   ",{\"type\":\"record\",\"name\":\"r%d\",\"fields\":[{\"name\":\"a\",\"type\":"
                   "\"r%d\"},{\"name\":\"b\",\"type\":\"r%d\"}]}",
                   i, i - 1, i - 1);
    buf_byte(&wide, ']');
    refuse_schema(buf_text(&wide), "more than");
}

static void
lengths_are_bounded(void **state)
{
    static const OcfType null_type = {.kind = OCF_NULL};
    static const OcfType int_type = {.kind = OCF_INT, .min_bytes = 1};
    OcfField items_field = {.type = &null_type};
    OcfType array = {.kind = OCF_ARRAY, .field_count = 1, .fields = &items_field};
    const uint8_t many[] = {0x7e, 0, 0, 0}; /* 63 items */
    const uint8_t endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const uint8_t wide[] = {0x80, 0x80, 0x80, 0x80, 0x20};
    OcfInput in = {many, many + sizeof many};
    OcfScalar value;
    Error err = {0};

    (void) state;
    FAILS(ocf_skip(&in, &array, &err), ERR_INPUT);
    items_field.type = &int_type;
    in = (OcfInput){many, many + sizeof many};
    FAILS(ocf_skip(&in, &array, &err), ERR_INPUT);
    in = (OcfInput){endless, endless + sizeof endless};
    FAILS(ocf_skip(&in, &int_type, &err), ERR_INPUT);
    in = (OcfInput){wide, wide + sizeof wide};
    FAILS(ocf_read_scalar(&in, &int_type, &value, &err), ERR_INPUT);
    in = (OcfInput){many, many + sizeof many};
    FAILS(ocf_read_scalar(&in, &array, &value, &err), ERR_INPUT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longs_are_zigzag_varints),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(an_empty_file_has_no_records),
        cmocka_unit_test(files_of_others_are_read),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(schemas_are_bounded),
        cmocka_unit_test(lengths_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
