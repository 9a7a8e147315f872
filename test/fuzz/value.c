/* Any bytes as a value of a type that the first byte picks: appended as one row, or refused with a
 * reason and nothing left behind. */
#include <stdint.h>
#include <stdlib.h>

#include "decode/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define FIELD(name_, type_)                                                                        \
    {                                                                                              \
        .name = {(name_), sizeof(name_) - 1}, .type = &(type_)                                     \
    }

static const Type bool_type = {.kind = TYPE_BOOL};
static const Type int32_type = {.kind = TYPE_INT32};
static const Type int64_type = {.kind = TYPE_INT64};
static const Type float32_type = {.kind = TYPE_FLOAT32};
static const Type float64_type = {.kind = TYPE_FLOAT64};
static const Type decimal_type = {.kind = TYPE_DECIMAL, .precision = 12, .scale = 2};
static const Type large_type = {.kind = TYPE_DECIMAL, .precision = 38, .scale = 10};
static const Type money_type = {
    .kind = TYPE_DECIMAL, .form = FORM_MONEY, .precision = 19, .scale = 2};
static const Type date_type = {.kind = TYPE_DATE};
static const Type time_type = {.kind = TYPE_TIME};
static const Type timestamp_type = {.kind = TYPE_TIMESTAMP};
static const Type timestamptz_type = {.kind = TYPE_TIMESTAMPTZ};
static const Type string_type = {.kind = TYPE_STRING};
static const Type binary_type = {.kind = TYPE_BINARY};
static const Type ewkb_type = {.kind = TYPE_BINARY, .form = FORM_EWKB};
static const Type uuid_type = {.kind = TYPE_UUID};
static Field strings_field[] = {FIELD("element", string_type)};
static const Type strings_type = {
    .kind = TYPE_LIST, .delimiter = ',', .field_count = 1, .fields = strings_field};
static Field row_field[] = {FIELD("element", int32_type)};
static const Type row_type = {.kind = TYPE_LIST,
                              .form = FORM_DIMENSION,
                              .delimiter = ';',
                              .field_count = 1,
                              .fields = row_field};
static Field grid_field[] = {FIELD("element", row_type)};
static const Type grid_type = {
    .kind = TYPE_LIST, .delimiter = ';', .field_count = 1, .fields = grid_field};
static Field vector_field[] = {FIELD("element", float32_type)};
static const Type vector_type = {
    .kind = TYPE_LIST, .form = FORM_BRACKETS, .field_count = 1, .fields = vector_field};
static Field map_fields[] = {FIELD("key", string_type), FIELD("value", string_type)};
static const Type map_type = {.kind = TYPE_MAP, .field_count = 2, .fields = map_fields};
static Field members[] = {FIELD("a", int64_type), FIELD("b", strings_type), FIELD("c", map_type)};
static const Type struct_type = {.kind = TYPE_STRUCT, .field_count = 3, .fields = members};
static Field structs_field[] = {FIELD("element", struct_type)};
static const Type structs_type = {
    .kind = TYPE_LIST, .delimiter = ',', .field_count = 1, .fields = structs_field};
static Field outer_members[] = {FIELD("s", struct_type), FIELD("l", structs_type)};
static const Type outer_type = {.kind = TYPE_STRUCT, .field_count = 2, .fields = outer_members};

static const Type json_numbers_type = {
    .kind = TYPE_JSON, .form = FORM_ARRAY_OF_NUMBERS, .delimiter = ','};
static const Type json_texts_type = {
    .kind = TYPE_JSON, .form = FORM_ARRAY_OF_TEXTS, .delimiter = ';'};

static const Type *const types[] = {
    &bool_type,      &int32_type,   &int64_type,  &float32_type,      &float64_type,
    &decimal_type,   &large_type,   &money_type,  &date_type,         &time_type,
    &timestamp_type, &string_type,  &binary_type, &timestamptz_type,  &ewkb_type,
    &uuid_type,      &strings_type, &grid_type,   &vector_type,       &map_type,
    &struct_type,    &structs_type, &outer_type,  &json_numbers_type, &json_texts_type,
};

static size_t
all_rows(const Column *column)
{
    size_t rows = column->rows + column->bytes.len + column->valid.len + column->values.len;

    for (int i = 0; i < column->type->field_count; i++)
        rows += all_rows(&column->children[i]);
    return rows;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO_BUF Buf encoded = {0};
    AUTO_BUF Buf again = {0};
    const char *reason = NULL;
    Column column;

    if (size == 0)
        return 0;

    Str text = {.ptr = (const char *) bytes + 1, .len = size - 1};

    column_init(&column, types[bytes[0] % (sizeof types / sizeof types[0])]);
    column_append_null(&column);

    size_t before = all_rows(&column);

    if (value_parse(&column, text, &reason) == PARSE_OK) {
        /* a copy of it encodes the same, and dropping both leaves what was */
        if (column.rows != 2 || column_is_null(&column, 1))
            abort();
        column_append_copy(&column, &column, 1);
        column_encode(&column, 1, &encoded);
        column_encode(&column, 2, &again);
        if (!str_eq(buf_view(&encoded), buf_view(&again)))
            abort();
        column_truncate(&column, 1);
    } else if (reason == NULL) {
        abort();
    }
    if (all_rows(&column) != before)
        abort();
    column_done(&column);
    return 0;
}
