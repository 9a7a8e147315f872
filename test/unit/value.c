/* Text values, case by case: what Postgres may send, what it never would, and what has no home.
 * Values by the row, as real servers print and explain them, are in pgoutput.c. */
#include "testing.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "decode/datetime.h"
#include "decode/number.h"
#include "decode/value.h"

/* --- Numbers --------------------------------------------------------------------------------- */

static void
integers(void **state)
{
    (void) state;

    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-1", true, -1},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"18446744073709551615", false, 0},
        {"99999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"0x10", false, 0},
        {"--1", false, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = 0;
        const char *reason = number_parse_int64(str_of(cases[i].text), &value);

        assert_int_equal(reason == NULL, cases[i].ok);
        assert_true(value == cases[i].value);
    }

    int32_t small = 0;

    assert_null(number_parse_int32(STR("-2147483648"), &small));
    assert_int_equal(small, INT32_MIN);
    assert_string_equal(number_parse_int32(STR("2147483648"), &small),
                        "out of range for 32-bit integers");
}

static uint64_t
bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void
assert_double(const char *text)
{
    double value = 0;
    const char *reason = number_parse_float64(str_of(text), &value);

    if (isinf(strtod(text, NULL)))
        assert_string_equal(reason, "out of range for floating point");
    else if (reason != NULL || bits_of(value) != bits_of(strtod(text, NULL)))
        fail_msg("%s: %a, not %a", text, value, strtod(text, NULL));
}

static void
assert_float(const char *text)
{
    float value = 0;
    const char *reason = number_parse_float32(str_of(text), &value);

    if (isinf(strtof(text, NULL)))
        assert_string_equal(reason, "out of range for floating point");
    else if (reason != NULL || bits_of((double) value) != bits_of((double) strtof(text, NULL)))
        fail_msg("%s: %a, not %a", text, (double) value, (double) strtof(text, NULL));
}

/* glibc's strtod and strtof round exactly: they are the judges. */
static void
floats_chosen(void **state)
{
    (void) state;

    static const char *const texts[] = {
        "0",
        "-0",
        "0.1",
        "1e22",
        "1e23",             /* halfway */
        "9007199254740993", /* 2^53 + 1, halfway */
        "9007199254740993.0000000000000000000000001",
        "9007199254740991",
        "18014398509481986",
        "123456789012345678",
        "1.7976931348623157e+308",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "5e-324",
        "4.9406564584124654e-324",
        "1e-400",
        "3.4028234663852886e+38",
        "1.17549435e-38",
        "1e-45",
        "0.000000000000000000000000000000000000000000001",
        "100000000000000000000000000000000000000000000000",
        "8388608.5",        /* halfway between floats */
        "16777217",         /* 2^24 + 1 */
        "16777217.0000001", /* above halfway by less than a double can tell from far */
        "1.00000005960464477540",
        "1.000000059604644775390625",
        "1.000000059604644775390624",
        "1.000000059604644775390626",
        "00000000000000000000000001.5",
        "0.00000000000000000000000001234567890123456789",
        "1234567890123456789012345678901234567890",
        "-73.98765432109876",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_double(texts[i]);
        assert_float(texts[i]);
    }
}

/* splitmix64 */
static uint64_t
draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void
floats_at_random(void **state)
{
    (void) state;

    uint64_t random = 7;
    char text[64];

    for (int i = 0; i < 300000; i++) {
        uint64_t bits = draw(&random);
        double d;
        float f;

        memcpy(&d, &bits, sizeof d);
        memcpy(&f, &bits, sizeof f);
        if (!isfinite(d) || !isfinite(f))
            continue;
        snprintf(text, sizeof text, "%.17g", d);
        assert_double(text);
        snprintf(text, sizeof text, "%.9g", (double) f);
        assert_float(text);
        /* moderate numbers, as tables have them */
        snprintf(text, sizeof text, "%s%u.%0*u", i % 2 == 0 ? "-" : "", (unsigned) (bits % 1000000),
                 (int) (bits >> 32 & 7) + 1, (unsigned) (bits >> 40) % 1000000);
        assert_double(text);
        assert_float(text);
        snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long) bits >> 20,
                 (unsigned long long) draw(&random) >> 40, (int) (bits % 61) - 30);
        assert_double(text);
        assert_float(text);
    }
}

/* Halves between two neighbours, and just beside them: the fast way must not decide these wrongly.
 */
static void
floats_between(void **state)
{
    (void) state;

    uint64_t random = 11;
    char text[512];

    for (int i = 0; i < 20000; i++) {
        double low = ldexp((double) (draw(&random) >> 11), (int) (draw(&random) % 120) - 100);
        double half = nextafter(low, INFINITY) - low;
        float single = (float) low;

        if (low == 0)
            continue;
        /* glibc prints all digits exactly, and a long double holds the sum */
        snprintf(text, sizeof text, "%.150Lf", (long double) low + (long double) half / 2);
        assert_double(text);
        snprintf(text, sizeof text, "%.17Lg", (long double) low + (long double) half / 2);
        assert_double(text);
        snprintf(text, sizeof text, "%.17g",
                 ((double) single + (double) nextafterf(single, INFINITY)) / 2);
        assert_float(text);
    }
}

static void
floats_that_are_none(void **state)
{
    (void) state;

    static const char *const texts[] = {"",      "-",  ".",   "e5",   "1e",       "1e+",
                                        "1.2.3", "+1", "nan", "inf",  "0x1p3",    "1,5",
                                        " 1",    "1 ", "--1", "1e5x", "12345678x"};
    double d;
    float f;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_string_equal(number_parse_float64(str_of(texts[i]), &d), "not a number");
        assert_string_equal(number_parse_float32(str_of(texts[i]), &f), "not a number");
    }
    assert_non_null(number_parse_float64(STR("1e400"), &d));
    assert_non_null(number_parse_float32(STR("1e39"), &f));
    assert_null(number_parse_float64(STR("NaN"), &d));
    assert_true(isnan(d));
    assert_null(number_parse_float64(STR("-Infinity"), &d));
    assert_true(d == -INFINITY);
    assert_null(number_parse_float32(STR("Infinity"), &f));
    assert_true(f == INFINITY);
}

static void
decimals(void **state)
{
    (void) state;

    static const struct {
        const char *text;
        int precision;
        int scale;
        const char *reason;
        int64_t value;
    } cases[] = {
        {"0", 1, 0, NULL, 0},
        {"-0.00", 3, 2, NULL, 0},
        {"12.34", 4, 2, NULL, 1234},
        {"-12.34", 4, 2, NULL, -1234},
        {"12.3", 4, 2, NULL, 1230},
        {"12", 4, 2, NULL, 1200},
        {"12.", 4, 2, NULL, 1200},
        {".5", 4, 2, NULL, 50},
        {"012.34", 4, 2, NULL, 1234},
        {"12.3400", 4, 2, NULL, 1234}, /* nothing is lost */
        {"12.3401", 4, 2, "more fractional digits than the column's scale", 0},
        {"123.4", 4, 2, "more digits than the column's precision", 0},
        {"100", 4, 2, "more digits than the column's precision", 0},
        {"999999999999999999", 18, 0, NULL, 999999999999999999},
        {"0.00000000000000000000000000000000000001", 38, 38, NULL, 1},
        {"NaN", 4, 2, "NaN has no decimal", 0},
        {"Infinity", 4, 2, "infinity has no decimal", 0},
        {"-Infinity", 4, 2, "infinity has no decimal", 0},
        {"", 4, 2, "not a number", 0},
        {".", 4, 2, "not a number", 0},
        {"-", 4, 2, "not a number", 0},
        {"1e2", 4, 2, "not a number", 0},
        {"1.2.3", 4, 2, "not a number", 0},
        {"+1", 4, 2, "not a number", 0},
        {"999999999999999999999999999999999999999999", 38, 0,
         "more digits than the column's precision", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        __int128 value = 0;
        const char *reason =
            number_parse_decimal(str_of(cases[i].text), cases[i].precision, cases[i].scale, &value);

        if (cases[i].reason == NULL)
            assert_null(reason);
        else
            assert_string_equal(reason, cases[i].reason);
        assert_true(value == cases[i].value);
    }

    __int128 value;
    unsigned __int128 most = (unsigned __int128) 9999999999999999999u * 10000000000000000000u +
                             9999999999999999999u; /* 38 nines */

    assert_null(
        number_parse_decimal(STR("-99999999999999999999999999999999999999"), 38, 0, &value));
    assert_true(value == -(__int128) most);
    assert_null(
        number_parse_decimal(STR("9999999999999999999999999999.9999999999"), 38, 10, &value));
    assert_true(value == (__int128) most);
    assert_null(number_parse_money(STR("-$92,233,720,368,547,758.08"), &value));
    assert_true(value == INT64_MIN);
    assert_string_equal(number_parse_money(STR("1.00"), &value), "not an amount of money");
    assert_string_equal(number_parse_money(STR("$1.00 DM"), &value), "not an amount of money");
}

/* A locale with a decimal comma must change nothing. */
static void
locale_does_not_matter(void **state)
{
    (void) state;

    double d = 0;
    locale_t german = newlocale(LC_ALL_MASK, "de_DE.UTF-8", (locale_t) 0);

    if (german == (locale_t) 0) { /* not installed: nothing to learn here */
        print_message("# no locale de_DE.UTF-8\n");
        return;
    }
    uselocale(german);

    const char *reason = number_parse_float64(STR("1.5e-320"), &d);

    uselocale(LC_GLOBAL_LOCALE);
    freelocale(german);
    assert_null(reason);
    assert_true(d == 1.5e-320);
}

/* --- Dates and times ------------------------------------------------------------------------- */

/* The days and microseconds that are not obvious: Python's datetime, moved by cycles of 400 years
 * (146097 days) into its range. */
static void
dates(void **state)
{
    (void) state;

    static const struct {
        const char *text;
        const char *reason;
        int32_t days;
    } cases[] = {
        {"1970-01-01", NULL, 0},
        {"1969-12-31", NULL, -1},
        {"2000-02-29", NULL, 11016},
        {"2026-11-30", NULL, 20787},
        {"0001-01-01", NULL, -719162},
        {"0001-12-31 BC", NULL, -719163},
        {"4713-01-01 BC", NULL, -2440550}, /* Postgres: date '4713-01-01 BC' - '1970-01-01' */
        {"5874897-12-31", NULL, 2145042905},
        {"infinity", "infinity has no date", 0},
        {"-infinity", "infinity has no date", 0},
        {"2001-02-29", "not a date", 0},
        {"1900-02-29", "not a date", 0},
        {"2026-13-01", "not a date", 0},
        {"2026-00-01", "not a date", 0},
        {"2026-04-31", "not a date", 0},
        {"2026-04-00", "not a date", 0},
        {"0000-01-01 BC", "not a date", 0},
        {"26-01-01", "not a date", 0},
        {"12345678-01-01", "not a date", 0},
        {"2026-1-1", "not a date", 0},
        {"2026-01-01x", "not a date", 0},
        {" BC", "not a date", 0},
        {"", "not a date", 0},
        {"2026-01-01 00:00:00", "not a date", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t days = 0;
        const char *reason = datetime_parse_date(str_of(cases[i].text), &days);

        if (cases[i].reason == NULL)
            assert_null(reason);
        else
            assert_string_equal(reason, cases[i].reason);
        assert_int_equal(days, cases[i].days);
    }
}

/* Every day of eight hundred years, counted one by one. */
static void
every_day_follows_another(void **state)
{
    (void) state;

    static const int months[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int expected = -135140; /* 1600-01-01: two leap cycles of 146097 days before 2400 */

    for (int year = 1600; year < 2400; year++) {
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

        for (int month = 1; month <= 12; month++) {
            for (int day = 1; day <= months[month - 1] + (month == 2 && leap ? 1 : 0); day++) {
                char text[32];
                int32_t days = 0;

                snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
                assert_null(datetime_parse_date(str_of(text), &days));
                assert_int_equal(days, expected++);
            }
        }
    }
}

static void
timestamps(void **state)
{
    (void) state;

    static const struct {
        const char *text;
        bool zone;
        bool ok;
        int64_t us;
    } cases[] = {
        {"1970-01-01 00:00:00", false, true, 0},
        {"1970-01-01 00:00:00.000001", false, true, 1},
        {"1969-12-31 23:59:59.999999", false, true, -1},
        {"2026-11-30 10:00:00.1", false, true, 1796032800100000},
        {"2026-11-30 10:00:00.123456", false, true, 1796032800123456},
        {"294247-01-10 04:00:54.775807", false, true, INT64_MAX},
        {"294247-01-10 04:00:54.775808", false, false, 0},
        {"294276-12-31 23:59:59.999999", false, false, 0},
        {"2026-11-30 10:00:00+00", true, true, 1796032800000000},
        {"2026-11-30 15:30:00+05:30", true, true, 1796032800000000},
        {"2026-11-30 06:29:45-03:30:15", true, true, 1796032800000000},
        {"1970-01-01 00:00:00+00 BC", true, true, -124302816000000000},
        {"2026-11-30 10:00:00", true, false, 0},
        {"2026-11-30 10:00:00+00", false, false, 0},
        {"2026-11-30 10:00:00+0", true, false, 0},
        {"2026-11-30 10:00:00+00:", true, false, 0},
        {"2026-11-30 10:00:00+16", true, false, 0},
        {"2026-11-30 24:00:00", false, false, 0},
        {"2026-11-30 10:60:00", false, false, 0},
        {"2026-11-30 10:00:60", false, false, 0},
        {"2026-11-30 10:00:00.", false, false, 0},
        {"2026-11-30 10:00:00.1234567", false, false, 0},
        {"2026-11-30T10:00:00", false, false, 0},
        {"2026-11-30", false, false, 0},
        {"", false, false, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t us = 0;
        Str text = str_of(cases[i].text);
        const char *reason = cases[i].zone ? datetime_parse_timestamptz(text, &us)
                                           : datetime_parse_timestamp(text, &us);

        assert_true(us == cases[i].us);
        if ((reason == NULL) != cases[i].ok)
            fail_msg("%s: %s", cases[i].text, reason == NULL ? "accepted" : reason);
    }

    int64_t us;

    assert_string_equal(datetime_parse_timestamp(STR("infinity"), &us),
                        "infinity has no timestamp");
    assert_null(datetime_parse_time(STR("23:59:59.5"), &us));
    assert_true(us == 86399500000);
    assert_non_null(datetime_parse_time(STR("24:00:00"), &us));
    assert_non_null(datetime_parse_time(STR("24:00:01"), &us));
    assert_non_null(datetime_parse_time(STR("10:00"), &us));
}

/* --- Columns --------------------------------------------------------------------------------- */

static const Type int_type = {.kind = TYPE_INT32};
static const Type string_type = {.kind = TYPE_STRING};
static const Type float_type = {.kind = TYPE_FLOAT32};
static Field string_element = {.name = {"element", 7}, .type = &string_type};
static const Type strings_type = {
    .kind = TYPE_LIST, .delimiter = ',', .field_count = 1, .fields = &string_element};
static Field int_element = {.name = {"element", 7}, .type = &int_type};
static const Type row_type = {.kind = TYPE_LIST,
                              .form = FORM_DIMENSION,
                              .delimiter = ',',
                              .field_count = 1,
                              .fields = &int_element};
static Field row_element = {.name = {"element", 7}, .type = &row_type};
static const Type grid_type = {
    .kind = TYPE_LIST, .delimiter = ',', .field_count = 1, .fields = &row_element};
static const Type pair_type = {
    .kind = TYPE_LIST, .delimiter = ',', .field_count = 1, .fields = &int_element};
static Field pair_element = {.name = {"element", 7}, .type = &pair_type};
static const Type pairs_type = {
    .kind = TYPE_LIST, .delimiter = ',', .field_count = 1, .fields = &pair_element};
static Field members[] = {{.name = {"n", 1}, .type = &int_type},
                          {.name = {"s", 1}, .type = &string_type},
                          {.name = {"l", 1}, .type = &strings_type}};
static const Type record_type = {.kind = TYPE_STRUCT, .field_count = 3, .fields = members};
static Field pair_fields[] = {{.name = {"key", 3}, .required = true, .type = &string_type},
                              {.name = {"value", 5}, .type = &string_type}};
static const Type map_type = {.kind = TYPE_MAP, .field_count = 2, .fields = pair_fields};
static Field float_element = {.name = {"element", 7}, .type = &float_type};
static const Type vector_type = {
    .kind = TYPE_LIST, .form = FORM_BRACKETS, .field_count = 1, .fields = &float_element};
static const Type bool_type = {.kind = TYPE_BOOL};
static const Type uuid_type = {.kind = TYPE_UUID};
static const Type binary_type = {.kind = TYPE_BINARY};
static const Type ewkb_type = {.kind = TYPE_BINARY, .form = FORM_EWKB};

/* A plain rendering: strings in <>, NULL as ~, lists in [], structs in (), maps in {}. */
static void
render(const Column *column, size_t row, Buf *out)
{
    Span span;

    if (column_is_null(column, row)) {
        buf_byte(out, '~');
        return;
    }
    switch ((int) column->type->kind) {
    case TYPE_BOOL:
        buf_printf(out, "%d", BUF_AT(&column->values, uint8_t, row));
        break;
    case TYPE_INT32:
        buf_printf(out, "%d", BUF_AT(&column->values, int32_t, row));
        break;
    case TYPE_FLOAT32:
        buf_printf(out, "%g", (double) BUF_AT(&column->values, float, row));
        break;
    case TYPE_UUID:
        for (size_t i = 0; i < 16; i++)
            buf_printf(out, "%02x", BUF_AT(&column->values, uint8_t, row * 16 + i));
        break;
    case TYPE_BINARY:
        for (size_t i = 0; i < column_bytes(column, row).len; i++)
            buf_printf(out, "%02x", (unsigned) (uint8_t) column_bytes(column, row).ptr[i]);
        break;
    case TYPE_STRUCT:
        buf_byte(out, '(');
        for (int i = 0; i < column->type->field_count; i++) {
            render(&column->children[i], row, out);
            buf_byte(out, i + 1 < column->type->field_count ? ' ' : ')');
        }
        break;
    case TYPE_LIST:
    case TYPE_MAP:
        span = column_span(column, row);
        buf_byte(out, column->type->kind == TYPE_MAP ? '{' : '[');
        for (size_t i = span.offset; i < span.offset + span.length; i++) {
            buf_cstr(out, i > span.offset ? " " : "");
            for (int c = 0; c < column->type->field_count; c++)
                render(&column->children[c], i, out);
        }
        buf_byte(out, column->type->kind == TYPE_MAP ? '}' : ']');
        break;
    default:
        buf_printf(out, "<%.*s>", STR_ARG(column_bytes(column, row)));
    }
}

typedef struct Case {
    const Type *type;
    const char *text;
    const char *value;  /* as rendered, or NULL */
    const char *reason; /* why it is a reject */
} Case;

static size_t
all_rows(const Column *column)
{
    size_t rows = column->rows + column->bytes.len;

    for (int i = 0; i < column->type->field_count; i++)
        rows += all_rows(&column->children[i]);
    return rows;
}

static void
check_case(const Case *c)
{
    Column column;
    const char *reason = NULL;

    column_init(&column, c->type);
    column_append_null(&column); /* something is there already */

    size_t rows = all_rows(&column);
    /* memory of exactly the text's size, for the sanitizers */
    size_t size = strlen(c->text);
    char *text = malloc(size + (size == 0 ? 1 : 0));

    memcpy(text, c->text, size);

    ParseResult result = value_parse(&column, (Str){.ptr = text, .len = size}, &reason);

    free(text);
    if (c->value != NULL) {
        AUTO_BUF Buf rendered = {0};

        if (result != PARSE_OK)
            fail_msg("%s: %s", c->text, reason);
        assert_int_equal(column.rows, 2);
        render(&column, 1, &rendered);
        assert_string_equal(buf_text(&rendered), c->value);
    } else {
        if (result != PARSE_REJECT)
            fail_msg("%s: accepted", c->text);
        assert_string_equal(reason, c->reason);
        assert_int_equal(all_rows(&column), rows);
    }
    column_done(&column);
}

static const char *const NOT_AN_ARRAY = "not an array";
static const char *const TOO_DEEP = "the array has more dimensions than the column";
static const char *const TOO_FLAT = "the array has fewer dimensions than the column";
static const char *const BOUNDS = "the array has bounds that do not start at 1";
static const char *const NOT_HSTORE = "not an hstore";
static const char *const NOT_RECORD = "not a composite value";
static const char *const NO_UTF8 = "not valid UTF-8";

static void
arrays(void **state)
{
    (void) state;

    static const Case cases[] = {
        {&strings_type, "{}", "[]", NULL},
        {&strings_type, "{a}", "[<a>]", NULL},
        {&strings_type, "{a,b}", "[<a> <b>]", NULL},
        {&strings_type, "{NULL,\"NULL\",null}", "[~ <NULL> <null>]", NULL},
        {&strings_type, "{\"\",\"a b\",\"q\\\"\\\\\",\"{x,}\"}", "[<> <a b> <q\"\\> <{x,}>]", NULL},
        {&strings_type, "{\"\\\"\\\"\",\"\\\\\\\\\"}", "[<\"\"> <\\\\>]", NULL},
        {&pair_type, "{1,NULL,-3}", "[1 ~ -3]", NULL},
        {&grid_type, "{{1,2},{3,NULL}}", "[[1 2] [3 ~]]", NULL},
        {&grid_type, "{}", "[]", NULL},
        {&pairs_type, "{\"{1,2}\",NULL,\"{}\"}", "[[1 2] ~ []]", NULL},
        {&strings_type, "", NULL, NOT_AN_ARRAY},
        {&strings_type, "{", NULL, NOT_AN_ARRAY},
        {&strings_type, "{a", NULL, NOT_AN_ARRAY},
        {&strings_type, "{a,", NULL, NOT_AN_ARRAY},
        {&strings_type, "{a,}", NULL, NOT_AN_ARRAY},
        {&strings_type, "{,a}", NULL, NOT_AN_ARRAY},
        {&strings_type, "{a}x", NULL, NOT_AN_ARRAY},
        {&strings_type, "{\"a}", NULL, NOT_AN_ARRAY},
        {&strings_type, "{\"a\\", NULL, NOT_AN_ARRAY},
        {&strings_type, "{\"a\"b}", NULL, NOT_AN_ARRAY},
        {&strings_type, "{a\"b}", NULL, NOT_AN_ARRAY},
        {&strings_type, "{a\\b}", NULL, NOT_AN_ARRAY},
        {&strings_type, "a", NULL, NOT_AN_ARRAY},
        {&strings_type, "{{a},{b}}", NULL, TOO_DEEP},
        {&strings_type, "{a,{b}}", NULL, TOO_DEEP},
        {&strings_type, "[2:3]={a,b}", NULL, BOUNDS},
        {&strings_type, "{good,b\xffyte}", NULL, NO_UTF8},
        {&grid_type, "{1,2}", NULL, TOO_FLAT},
        {&grid_type, "{NULL}", NULL, TOO_FLAT},
        {&grid_type, "{{1},{{2}}}", NULL, TOO_DEEP},
        {&grid_type, "{{1},{2x}}", NULL, "not an integer"},
        {&grid_type, "{{1},{2}", NULL, NOT_AN_ARRAY},
        {&pairs_type, "{{1,2}}", NULL, TOO_DEEP},
        {&pairs_type, "{\"{1,2}\",\"[0:0]={3}\"}", NULL, BOUNDS},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
}

static void
records_and_maps(void **state)
{
    (void) state;

    static const Case cases[] = {
        {&record_type, "(1,a,{x})", "(1 <a> [<x>])", NULL},
        {&record_type, "(,,)", "(~ ~ ~)", NULL},
        {&record_type, "(,\"\",{})", "(~ <> [])", NULL},
        {&record_type, "(1,\"a \"\"q\"\" \\\\ (b),\",\"{\"\"x,\\\\\"\"\"\",NULL}\")",
         "(1 <a \"q\" \\ (b),> [<x,\"> ~])", NULL},
        {&record_type, "(1,NULL,)", "(1 <NULL> ~)", NULL},
        {&record_type, "", NULL, NOT_RECORD},
        {&record_type, "(", NULL, NOT_RECORD},
        {&record_type, "(1,a,{x}", NULL, NOT_RECORD},
        {&record_type, "(1,a,{x})x", NULL, NOT_RECORD},
        {&record_type, "(1,\"a,{x})", NULL, NOT_RECORD},
        {&record_type, "(1,\"a\"\"", NULL, NOT_RECORD},
        {&record_type, "(1,a(b,)", NULL, NOT_RECORD},
        {&record_type, "(1,a)", NULL, "fewer members than the column's type has"},
        {&record_type, "(1,a,{x},)", NULL, "more members than the column's type has"},
        {&record_type, "(1,a,\"{x,{y}}\")", NULL, TOO_DEEP},
        {&record_type, "(x,a,)", NULL, "not an integer"},
        {&map_type, "", "{}", NULL},
        {&map_type, "\"a\"=>\"1\"", "{<a><1>}", NULL},
        {&map_type, "\"a\"=>NULL, \"\"=>\"\", \"q\\\"\\\\\"=>\"=>, \"", "{<a>~ <><> <q\"\\><=>, >}",
         NULL},
        {&map_type, "\"a\"", NULL, NOT_HSTORE},
        {&map_type, "\"a\"=>", NULL, NOT_HSTORE},
        {&map_type, "\"a\"=>x", NULL, NOT_HSTORE},
        {&map_type, "\"a\"=>NULL,", NULL, NOT_HSTORE},
        {&map_type, "\"a\"=>NULL, ", NULL, NOT_HSTORE},
        {&map_type, "\"a\"=>NULLx", NULL, NOT_HSTORE},
        {&map_type, "\"a\"=>\"1\" ", NULL, NOT_HSTORE},
        {&map_type, "a=>1", NULL, NOT_HSTORE},
        {&map_type, "\"a\"=>\"1\", \"b\"=>\"\xC0\"", NULL, NO_UTF8},
        {&vector_type, "[1,2.5,-3e-05]", "[1 2.5 -3e-05]", NULL},
        {&vector_type, "[]", "[]", NULL},
        {&vector_type, "[1", NULL, "not a vector"},
        {&vector_type, "[1,]", NULL, "not a number"},
        {&vector_type, "[1]]", NULL, "not a vector"},
        {&vector_type, "1", NULL, "not a vector"},
        {&vector_type, "", NULL, "not a vector"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
}

static void
scalars(void **state)
{
    (void) state;

    static const Case cases[] = {
        {&bool_type, "t", "1", NULL},
        {&bool_type, "f", "0", NULL},
        {&bool_type, "true", NULL, "not a boolean"},
        {&bool_type, "", NULL, "not a boolean"},
        {&string_type, "", "<>", NULL},
        {&string_type, "h\xC3\xA9", "<h\xC3\xA9>", NULL},
        {&string_type, "h\xE9", NULL, NO_UTF8},
        {&uuid_type, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11",
         NULL},
        {&uuid_type, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11",
         NULL},
        {&uuid_type, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", NULL, "not a UUID"},
        {&uuid_type, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g", NULL, "not a UUID"},
        {&uuid_type, "a0eebc99-9c0b-4ef8-bb6d06bb9bd380a11", NULL, "not a UUID"},
        {&uuid_type, "a0eebc999-c0b-4ef8-bb6d-6bb9bd380a11", NULL, "not a UUID"},
        {&binary_type, "\\x", "", NULL},
        {&binary_type, "\\x00FFa5", "00ffa5", NULL},
        {&binary_type, "\\x0", NULL, "not binary in hexadecimal"},
        {&binary_type, "\\x00zz", NULL, "not binary in hexadecimal"},
        {&binary_type, "00", NULL, "not binary in hexadecimal"},
        {&binary_type, "", NULL, "not binary in hexadecimal"},
        {&ewkb_type, "0101000000000000000000F03F0000000000000040",
         "0101000000000000000000f03f0000000000000040", NULL},
        {&ewkb_type, "\\x01", NULL, "not binary in hexadecimal"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(floats_chosen),
        cmocka_unit_test(floats_at_random),
        cmocka_unit_test(floats_between),
        cmocka_unit_test(floats_that_are_none),
        cmocka_unit_test(decimals),
        cmocka_unit_test(locale_does_not_matter),
        cmocka_unit_test(dates),
        cmocka_unit_test(every_day_follows_another),
        cmocka_unit_test(timestamps),
        cmocka_unit_test(arrays),
        cmocka_unit_test(records_and_maps),
        cmocka_unit_test(scalars),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
