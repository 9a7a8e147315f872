#include "duck/emit.h"

#include <assert.h>

#include "base/bytes.h"
#include "duck/names.h"

_Static_assert(sizeof(duckdb_list_entry) == sizeof(Span), "a Span is DuckDB's list entry");
_Static_assert(sizeof(duckdb_string_t) == 16, "a string is 16 bytes");

/* --- Types --------------------------------------------------------------------------------- */

static duckdb_type
primitive_of(TypeKind kind)
{
    switch (kind) {
    case TYPE_BOOL:
        return DUCKDB_TYPE_BOOLEAN;
    case TYPE_INT32:
        return DUCKDB_TYPE_INTEGER;
    case TYPE_INT64:
        return DUCKDB_TYPE_BIGINT;
    case TYPE_FLOAT32:
        return DUCKDB_TYPE_FLOAT;
    case TYPE_FLOAT64:
        return DUCKDB_TYPE_DOUBLE;
    case TYPE_DATE:
        return DUCKDB_TYPE_DATE;
    case TYPE_TIME:
        return DUCKDB_TYPE_TIME;
    case TYPE_TIMESTAMP:
        return DUCKDB_TYPE_TIMESTAMP;
    case TYPE_TIMESTAMPTZ:
        return DUCKDB_TYPE_TIMESTAMP_TZ;
    case TYPE_STRING:
    case TYPE_JSON: /* Iceberg has it as a string, so does the file */
        return DUCKDB_TYPE_VARCHAR;
    case TYPE_BINARY:
        return DUCKDB_TYPE_BLOB;
    case TYPE_UUID:
        return DUCKDB_TYPE_UUID;
    case TYPE_DECIMAL:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
        break;
    }
    assert(false); /* a kind with parts */
    return DUCKDB_TYPE_INVALID;
}

static duckdb_logical_type
struct_type(const Type *type)
{
    AUTO_ARENA Arena *arena = arena_new();
    size_t count = (size_t) type->field_count;
    Str *names = duck_unique_names(arena, type->fields, type->field_count);
    const char **texts = ARENA_ARRAY(arena, const char *, count);
    duckdb_logical_type *members = ARENA_ARRAY(arena, duckdb_logical_type, count);

    for (size_t i = 0; i < count; i++) {
        texts[i] = names[i].ptr;
        members[i] = duck_logical_type(type->fields[i].type);
    }

    duckdb_logical_type made = duckdb_create_struct_type(members, texts, count);

    for (size_t i = 0; i < count; i++)
        duckdb_destroy_logical_type(&members[i]);
    return made;
}

duckdb_logical_type
duck_logical_type(const Type *type)
{
    if (type->kind == TYPE_STRUCT)
        return struct_type(type);
    if (type->kind == TYPE_DECIMAL)
        return duckdb_create_decimal_type((uint8_t) type->precision, (uint8_t) type->scale);
    if (type->kind != TYPE_LIST && type->kind != TYPE_MAP)
        return duckdb_create_logical_type(primitive_of(type->kind));

    AUTO_TYPE duckdb_logical_type first = duck_logical_type(type->fields[0].type);

    if (type->kind == TYPE_LIST)
        return duckdb_create_list_type(first);

    AUTO_TYPE duckdb_logical_type second = duck_logical_type(type->fields[1].type);

    return duckdb_create_map_type(first, second);
}

/* --- Validity ------------------------------------------------------------------------------ */

bool
emit_all_zero(const uint8_t *bytes, size_t count)
{
    uint64_t any = 0;
    size_t i = 0;

    for (; i + 8 <= count; i += 8)
        any |= load_le64(bytes + i);
    for (; i < count; i++)
        any |= bytes[i];
    return any == 0;
}

/* Eight bytes, each 0 or 1, to eight bits, the first byte's lowest. */
static uint8_t
pack_bits(const uint8_t *bytes)
{
    return (uint8_t) ((load_le64(bytes) * UINT64_C(0x0102040810204080)) >> 56);
}

static void
emit_valid_range(uint64_t *mask, const uint8_t *valid, size_t count)
{
    uint8_t *bits = (uint8_t *) mask;
    size_t i = 0;

    for (; i + 8 <= count; i += 8)
        bits[i / 8] = pack_bits(valid + i);
    for (; i < count; i++)
        duckdb_validity_set_row_validity(mask, i, valid[i] != 0);
}

/* DuckDB's mask is absent while everything is valid, which is the usual case. */
static void
emit_valid(duckdb_vector vector, const Column *column, Rows rows)
{
    const uint8_t *valid = (const uint8_t *) column->valid.ptr;
    bool some_null = false;

    if (rows.indexes == NULL)
        some_null = memchr(valid + rows.start, 0, rows.count) != NULL;
    else
        for (size_t i = 0; i < rows.count; i++)
            some_null |= valid[rows.indexes[i]] == 0;
    if (!some_null)
        return;
    duckdb_vector_ensure_validity_writable(vector);

    uint64_t *mask = duckdb_vector_get_validity(vector);

    if (rows.indexes == NULL) {
        emit_valid_range(mask, valid + rows.start, rows.count);
        return;
    }
    for (size_t i = 0; i < rows.count; i++)
        if (valid[rows.indexes[i]] == 0)
            duckdb_validity_set_row_invalid(mask, i);
}

/* --- Values -------------------------------------------------------------------------------- */

#define GATHER(Type)                                                                               \
    do {                                                                                           \
        const Type *from = (const Type *) (const void *) column->values.ptr;                       \
        Type *to = out; /* NOLINT(bugprone-macro-parentheses) */                                   \
                                                                                                   \
        for (size_t i = 0; i < rows.count; i++)                                                    \
            to[i] = from[rows.indexes[i]];                                                         \
    } while (0)

/* Columns whose values are DuckDB's bit for bit. */
static void
emit_fixed(void *out, const Column *column, Rows rows)
{
    size_t width = type_width(column->type);

    if (rows.indexes == NULL) {
        memcpy(out, column->values.ptr + rows.start * width, rows.count * width);
        return;
    }
    switch (width) {
    case 1:
        GATHER(uint8_t);
        break;
    case 4:
        GATHER(uint32_t);
        break;
    case 8:
        GATHER(uint64_t);
        break;
    default:
        assert(width == sizeof(__int128));
        GATHER(__int128);
    }
}

/* DuckDB keeps a decimal in 16 bits up to 4 digits, in 32 up to 9, in 64 up to 18, else in 128;
 * Column in 64 up to 18. */
static void
emit_decimal(void *out, const Column *column, Rows rows)
{
    int precision = column->type->precision;

    if (precision > 9) {
        emit_fixed(out, column, rows);
    } else if (precision > 4) {
        for (size_t i = 0; i < rows.count; i++)
            ((int32_t *) out)[i] = (int32_t) BUF_AT(&column->values, int64_t, rows_at(rows, i));
    } else {
        for (size_t i = 0; i < rows.count; i++)
            ((int16_t *) out)[i] = (int16_t) BUF_AT(&column->values, int64_t, rows_at(rows, i));
    }
}

/* A UUID is a 128-bit integer with its top bit flipped, so that signed order is byte order. */
static void
emit_uuids(duckdb_hugeint *out, const Column *column, Rows rows)
{
    for (size_t i = 0; i < rows.count; i++) {
        const char *bytes = column->values.ptr + rows_at(rows, i) * 16;

        out[i].upper = (int64_t) (load_be64(bytes) ^ (UINT64_C(1) << 63));
        out[i].lower = load_be64(bytes + 8);
    }
}

/* Up to 12 bytes lie in the string itself, padded with zeros (DuckDB compares all 16 bytes); of a
 * longer one the first four, and where it is. */
static void
emit_strings(duckdb_string_t *out, const Column *column, Rows rows)
{
    const Span *spans = (const Span *) (const void *) column->values.ptr;

    for (size_t i = 0; i < rows.count; i++) {
        Span span = spans[rows_at(rows, i)];
        char *bytes = span.length == 0 ? NULL : column->bytes.ptr + span.offset;
        duckdb_string_t string;

        assert(span.length <= UINT32_MAX);
        memset(&string, 0, sizeof string);
        string.value.pointer.length = (uint32_t) span.length;
        if (span.length > sizeof string.value.inlined.inlined) {
            memcpy(string.value.pointer.prefix, bytes, sizeof string.value.pointer.prefix);
            string.value.pointer.ptr = bytes;
        } else if (span.length > 0) {
            memcpy(string.value.inlined.inlined, bytes, span.length);
        }
        out[i] = string;
    }
}

/* --- Nested -------------------------------------------------------------------------------- */

/* The elements of the chosen lists: a range of the child when they follow each other there, as
 * they do until a value was patched or a row is dead; otherwise one index each, in *indexes. */
static Rows
choose_elements(duckdb_list_entry *out, const Column *column, Rows rows, Buf *indexes)
{
    const Span *spans = (const Span *) (const void *) column->values.ptr;
    size_t total = 0;
    Rows elements = {0};
    bool in_sequence = true;

    for (size_t i = 0; i < rows.count; i++) {
        Span span = spans[rows_at(rows, i)];

        out[i] = (duckdb_list_entry){.offset = total, .length = span.length};
        if (span.length == 0)
            continue;
        if (total == 0)
            elements.start = span.offset;
        in_sequence = in_sequence && span.offset == elements.start + total;
        total += span.length;
    }
    elements.count = total;
    if (in_sequence)
        return elements;

    assert(column->children[0].rows <= UINT32_MAX);
    for (size_t i = 0; i < rows.count; i++) {
        Span span = spans[rows_at(rows, i)];

        for (size_t k = 0; k < span.length; k++)
            BUF_PUSH(indexes, uint32_t, (uint32_t) (span.offset + k));
    }
    elements.indexes = (const uint32_t *) (const void *) indexes->ptr;
    return elements;
}

/* A map is a list of structs of key and value. */
static void
emit_list(duckdb_vector vector, const Column *column, Rows rows)
{
    AUTO_BUF Buf indexes = {0};
    Rows elements = choose_elements(duckdb_vector_get_data(vector), column, rows, &indexes);

    duckdb_list_vector_reserve(vector, elements.count);
    duckdb_list_vector_set_size(vector, elements.count);

    duckdb_vector child = duckdb_list_vector_get_child(vector);

    if (column->type->kind == TYPE_LIST) {
        emit_column(child, &column->children[0], elements);
        return;
    }
    for (idx_t i = 0; i < 2; i++)
        emit_column(duckdb_struct_vector_get_child(child, i), &column->children[i], elements);
}

void
emit_column(duckdb_vector vector, const Column *column, Rows rows)
{
    void *out = duckdb_vector_get_data(vector);

    if (rows.count == 0)
        return;
    emit_valid(vector, column, rows);
    switch (column->type->kind) {
    case TYPE_DECIMAL:
        emit_decimal(out, column, rows);
        break;
    case TYPE_STRING:
    case TYPE_JSON:
    case TYPE_BINARY:
        emit_strings(out, column, rows);
        break;
    case TYPE_UUID:
        emit_uuids(out, column, rows);
        break;
    case TYPE_LIST:
    case TYPE_MAP:
        emit_list(vector, column, rows);
        break;
    case TYPE_STRUCT:
        for (int i = 0; i < column->type->field_count; i++)
            emit_column(duckdb_struct_vector_get_child(vector, (idx_t) i), &column->children[i],
                        rows);
        break;
    case TYPE_BOOL:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        emit_fixed(out, column, rows);
        break;
    }
}
