/* Arrays of any shape as JSON: what the element's type says of each text, and what is refused. */
#include "testing.h"

#include "decode/value.h"

static const Type json_numbers = {
    .kind = TYPE_JSON, .form = FORM_ARRAY_OF_NUMBERS, .delimiter = ','};
static const Type json_bools = {.kind = TYPE_JSON, .form = FORM_ARRAY_OF_BOOLS, .delimiter = ','};
static const Type json_json = {.kind = TYPE_JSON, .form = FORM_ARRAY_OF_JSON, .delimiter = ','};
static const Type json_texts = {.kind = TYPE_JSON, .form = FORM_ARRAY_OF_TEXTS, .delimiter = ','};
static const Type json_boxes = {.kind = TYPE_JSON, .form = FORM_ARRAY_OF_TEXTS, .delimiter = ';'};

/* As array_to_json() of Postgres 15 prints them; of boxes, that of their text. */
static void
arrays_as_json(void **state)
{
    (void) state;

    static const struct {
        const Type *type;
        const char *text;
        const char *json; /* NULL: refused */
        const char *reason;
    } cases[] = {
        {&json_numbers, "{}", "[]", NULL},
        {&json_numbers, "{1,NULL,-3}", "[1,null,-3]", NULL},
        {&json_numbers, "{{1,2},{3,4}}", "[[1,2],[3,4]]", NULL},
        {&json_numbers, "[2:3]={1,2}", "[1,2]", NULL},
        {&json_numbers, "[0:0][-1:0]={{1.50,1e+20}}", "[[1.50,1e+20]]", NULL},
        {&json_numbers, "{{{{{{7}}}}}}", "[[[[[[7]]]]]]", NULL},
        {&json_numbers, "{NaN,-Infinity,-1.5e-07,-0}", "[\"NaN\",\"-Infinity\",-1.5e-07,-0]", NULL},
        {&json_bools, "{t,f,NULL}", "[true,false,null]", NULL},
        {&json_json, "{\"{\\\"a\\\": [1, null]}\",null,5}", "[{\"a\": [1, null]},null,5]", NULL},
        {&json_texts, "{a,\"b \\\"q\\\"\",NULL,\"NULL\",\"\"}",
         "[\"a\",\"b \\\"q\\\"\",null,\"NULL\",\"\"]", NULL},
        {&json_texts, "{\"back\\\\slash\",\"\n\t\"}", "[\"back\\\\slash\",\"\\n\\t\"]", NULL},
        {&json_texts, "{12,t}", "[\"12\",\"t\"]", NULL},
        {&json_boxes, "{(2,2),(1,1);(0,0),(0,0)}", "[\"(2,2),(1,1)\",\"(0,0),(0,0)\"]", NULL},
        {&json_bools, "{true}", NULL, "not a boolean"},
        {&json_numbers, "", NULL, "not an array"},
        {&json_numbers, "{1", NULL, "not an array"},
        {&json_numbers, "{1,}", NULL, "not an array"},
        {&json_numbers, "{1}}", NULL, "not an array"},
        {&json_numbers, "{{{{{{{7}}}}}}}", NULL, "not an array"},
        {&json_numbers, "[2:3]{1,2}", NULL, "not an array"},
        {&json_numbers, "[2:]={1,2}", NULL, "not an array"},
        {&json_numbers, "[1,2]", NULL, "not an array"},
        {&json_texts, "{\"a}", NULL, "not an array"},
        {&json_texts, "{b\xffyte}", NULL, "not valid UTF-8"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reason = NULL;
        Column column;

        column_init(&column, cases[i].type);
        if (value_parse(&column, str_of(cases[i].text), &reason) == PARSE_OK) {
            if (cases[i].json == NULL || !str_eqc(column_bytes(&column, 0), cases[i].json))
                fail_msg("%s: %.*s", cases[i].text, STR_ARG(column_bytes(&column, 0)));
            assert_int_equal(column.rows, 1);
        } else {
            if (cases[i].json != NULL)
                fail_msg("%s: %s", cases[i].text, reason);
            assert_string_equal(reason, cases[i].reason);
            assert_int_equal(column.rows, 0);
            assert_int_equal(column.bytes.len, 0);
        }
        column_done(&column);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_as_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
