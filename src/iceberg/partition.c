#include "iceberg/partition.h"
#include "base/bytes.h"

#include <assert.h>
#include <math.h>

/* --- Types --------------------------------------------------------------------------------- */

typedef struct ResultName {
    const char *iceberg; /* type of the source column */
    ResultKind kind;
    const char *avro; /* JSON of the Avro type; %d where it depends on more */
} ResultName;

/* Iceberg spec, "Appendix A: Avro". In the order of ResultKind. */
static const ResultName result_names[] = {
    {"boolean", RESULT_BOOLEAN, "\"boolean\""},
    {"int", RESULT_INT, "\"int\""},
    {"long", RESULT_LONG, "\"long\""},
    {"float", RESULT_FLOAT, "\"float\""},
    {"double", RESULT_DOUBLE, "\"double\""},
    {"date", RESULT_DATE, "{\"type\":\"int\",\"logicalType\":\"date\"}"},
    {"time", RESULT_TIME, "{\"type\":\"long\",\"logicalType\":\"time-micros\"}"},
    {"timestamp", RESULT_TIMESTAMP,
     "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\",\"adjust-to-utc\":false}"},
    {"timestamptz", RESULT_TIMESTAMPTZ,
     "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\",\"adjust-to-utc\":true}"},
    {"timestamp_ns", RESULT_TIMESTAMP_NS,
     "{\"type\":\"long\",\"logicalType\":\"timestamp-nanos\",\"adjust-to-utc\":false}"},
    {"timestamptz_ns", RESULT_TIMESTAMPTZ_NS,
     "{\"type\":\"long\",\"logicalType\":\"timestamp-nanos\",\"adjust-to-utc\":true}"},
    {"decimal", RESULT_DECIMAL, NULL},
    {"string", RESULT_STRING, "\"string\""},
    {"uuid", RESULT_UUID, NULL},
    {"fixed", RESULT_FIXED, NULL},
    {"binary", RESULT_BINARY, "\"bytes\""},
};

_Static_assert(sizeof result_names / sizeof result_names[0] == RESULT_BINARY + 1, "one per kind");

/* Bytes of the smallest two's complement number that holds 10^precision - 1. */
static int
decimal_bytes(int precision)
{
    double bits = ceil(precision * 3.321928094887362) + 1; /* log2(10), and a sign */

    return (int) ceil(bits / 8);
}

/* "decimal(9, 2)", "fixed[16]" */
static bool
parse_sized(const char *name, ResultType *out)
{
    char *end = NULL;

    if (strncmp(name, "fixed[", 6) == 0) {
        *out = (ResultType){.kind = RESULT_FIXED, .size = (int) strtol(name + 6, &end, 10)};
        return strcmp(end, "]") == 0 && out->size > 0;
    }
    if (strncmp(name, "decimal(", 8) != 0)
        return false;
    *out = (ResultType){.kind = RESULT_DECIMAL, .precision = (int) strtol(name + 8, &end, 10)};
    if (*end != ',')
        return false;
    out->scale = (int) strtol(end + 1, &end, 10);
    out->size = decimal_bytes(out->precision);
    return strcmp(end, ")") == 0 && out->precision >= 1 && out->precision <= 38;
}

static bool
source_type(const IcebergSchema *schema, const PartitionField *field, ResultType *out)
{
    AUTO_BUF Buf name = {0};

    if (!iceberg_schema_type_name(schema, field->source_id, &name))
        return false;
    for (size_t i = 0; i < sizeof result_names / sizeof result_names[0]; i++) {
        if (strcmp(buf_text(&name), result_names[i].iceberg) == 0) {
            *out = (ResultType){.kind = result_names[i].kind};
            return out->kind != RESULT_DECIMAL && out->kind != RESULT_FIXED;
        }
    }
    return parse_sized(buf_text(&name), out);
}

static bool
result_type(const IcebergSchema *schema, const PartitionField *field, ResultType *out, Error *err)
{
    Str transform = field->transform;

    if (str_starts(transform, STR("bucket[")) || str_eqc(transform, "year") ||
        str_eqc(transform, "month") || str_eqc(transform, "hour")) {
        *out = (ResultType){.kind = RESULT_INT};
        return true;
    }
    if (str_eqc(transform, "day")) {
        *out = (ResultType){.kind = RESULT_DATE};
        return true;
    }
    if (!str_eqc(transform, "identity") && !str_eqc(transform, "void") &&
        !str_starts(transform, STR("truncate[")))
        return FAIL(err, ERR_INPUT, "partition field %.*s: unknown transform %.*s",
                    STR_ARG(field->name), STR_ARG(transform));
    if (!source_type(schema, field, out))
        return FAIL(err, ERR_INPUT,
                    "partition field %.*s: column %d is not in the schema, or cannot be "
                    "partitioned by",
                    STR_ARG(field->name), field->source_id);
    return true;
}

bool
partition_result_types(Arena *arena, const IcebergSchema *schema, const PartitionSpec *spec,
                       ResultType **out_types, Error *err)
{
    ResultType *types = ARENA_ARRAY(arena, ResultType, (size_t) spec->field_count);

    for (int i = 0; i < spec->field_count; i++)
        TRY(result_type(schema, &spec->fields[i], &types[i], err));
    *out_types = types;
    return true;
}

/* --- Tuples -------------------------------------------------------------------------------- */

Str
partition_pack(Arena *arena, const Str *values, int count)
{
    AUTO_BUF Buf out = {0};

    for (int i = 0; i < count; i++) {
        assert(values[i].len < PARTITION_NULL);
        store_le32(buf_push(&out, 4),
                   values[i].ptr == NULL ? PARTITION_NULL : (uint32_t) values[i].len);
        buf_str(&out, values[i]);
    }
    return arena_str(arena, buf_view(&out));
}

bool
partition_unpack(Str packed, Str *out_values, int count)
{
    for (int i = 0; i < count; i++) {
        if (packed.len < 4)
            return false;

        uint32_t size = load_le32(packed.ptr);

        packed = (Str){.ptr = packed.ptr + 4, .len = packed.len - 4};
        out_values[i] = STR_NULL;
        if (size == PARTITION_NULL)
            continue;
        if (size > packed.len)
            return false;
        out_values[i] = (Str){.ptr = packed.ptr, .len = size};
        packed = (Str){.ptr = packed.ptr + size, .len = packed.len - size};
    }
    return packed.len == 0;
}

/* --- Avro ---------------------------------------------------------------------------------- */

void
partition_avro_type(const ResultType *type, int field_id, Buf *out)
{
    const char *avro = result_names[type->kind].avro;

    assert(result_names[type->kind].kind == type->kind);
    buf_cstr(out, "[\"null\",");
    if (avro != NULL)
        buf_cstr(out, avro);
    else if (type->kind == RESULT_DECIMAL)
        buf_printf(out,
                   "{\"type\":\"fixed\",\"name\":\"decimal_%d_%d_%d\",\"size\":%d,"
                   "\"logicalType\":\"decimal\",\"precision\":%d,\"scale\":%d}",
                   type->precision, type->scale, field_id, type->size, type->precision,
                   type->scale);
    else if (type->kind == RESULT_UUID)
        buf_printf(out,
                   "{\"type\":\"fixed\",\"name\":\"uuid_fixed_%d\",\"size\":16,"
                   "\"logicalType\":\"uuid\"}",
                   field_id);
    else
        buf_printf(out, "{\"type\":\"fixed\",\"name\":\"fixed_%d_%d\",\"size\":%d}", type->size,
                   field_id, type->size);
    buf_byte(out, ']');
}

/* Byte by byte, where Java goes by UTF-16 units: readers go by field id. */
void
partition_avro_name(Str name, Buf *out)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = (uint8_t) name.ptr[i];
        bool digit = c >= '0' && c <= '9';

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (digit && i > 0))
            buf_byte(out, c);
        else if (digit)
            buf_printf(out, "_%c", c);
        else
            buf_printf(out, "_x%X", c);
    }
}

/* A number of at most 8 bytes, sign extended. Bounds and tuples keep the width they were written
 * with when a column was widened later. */
static int64_t
load_int(Str value)
{
    if (value.len == 4)
        return (int32_t) load_le32(value.ptr);
    assert(value.len == 8);
    return (int64_t) load_le64(value.ptr);
}

static double
load_real(Str value)
{
    float f;
    double d;

    if (value.len == sizeof f) {
        memcpy(&f, value.ptr, sizeof f);
        return (double) f;
    }
    assert(value.len == sizeof d);
    memcpy(&d, value.ptr, sizeof d);
    return d;
}

/* A big-endian two's complement number, widened to `size` bytes. */
static void
put_widened(Buf *out, Str value, size_t size)
{
    assert(value.len > 0 && value.len <= size);

    uint8_t sign = (uint8_t) value.ptr[0] & 0x80 ? 0xff : 0;

    for (size_t i = value.len; i < size; i++)
        buf_byte(out, sign);
    buf_str(out, value);
}

static bool
is_narrow(const ResultType *type, Str value)
{
    return value.len == 4 && (type->kind == RESULT_LONG || type->kind == RESULT_DOUBLE);
}

static Str
widen_value(Arena *arena, const ResultType *type, Str value)
{
    double real;
    char bytes[8];

    if (type->kind == RESULT_LONG) {
        store_le64(bytes, (uint64_t) load_int(value));
    } else {
        real = load_real(value);
        memcpy(bytes, &real, sizeof real);
    }
    return arena_str(arena, (Str){.ptr = bytes, .len = sizeof bytes});
}

Str
partition_widen(Arena *arena, const ResultType *types, int count, Str tuple)
{
    AUTO_ARENA Arena *scratch = arena_new();
    Str *values = ARENA_ARRAY(scratch, Str, (size_t) count);
    bool narrow = false;

    if (!partition_unpack(tuple, values, count))
        return tuple;
    for (int i = 0; i < count; i++) {
        if (values[i].ptr == NULL || !is_narrow(&types[i], values[i]))
            continue;
        values[i] = widen_value(scratch, &types[i], values[i]);
        narrow = true;
    }
    return narrow ? partition_pack(arena, values, count) : tuple;
}

void
partition_put_avro(Buf *out, const ResultType *type, Str value)
{
    ocf_put_long(out, value.ptr == NULL ? 0 : 1); /* ["null", type] */
    if (value.ptr == NULL)
        return;
    switch (type->kind) {
    case RESULT_BOOLEAN:
        assert(value.len == 1);
        ocf_put_bool(out, value.ptr[0] != 0);
        break;
    case RESULT_INT:
    case RESULT_LONG:
    case RESULT_DATE:
    case RESULT_TIME:
    case RESULT_TIMESTAMP:
    case RESULT_TIMESTAMPTZ:
    case RESULT_TIMESTAMP_NS:
    case RESULT_TIMESTAMPTZ_NS:
        ocf_put_long(out, load_int(value));
        break;
    case RESULT_FLOAT:
        ocf_put_float(out, (float) load_real(value));
        break;
    case RESULT_DOUBLE:
        ocf_put_double(out, load_real(value));
        break;
    case RESULT_DECIMAL:
        put_widened(out, value, (size_t) type->size);
        break;
    case RESULT_UUID:
    case RESULT_FIXED:
        assert(value.len == (type->kind == RESULT_UUID ? 16 : (size_t) type->size));
        buf_str(out, value);
        break;
    case RESULT_STRING:
    case RESULT_BINARY:
        ocf_put_bytes(out, value);
        break;
    }
}

/* Without the leading bytes that only repeat the sign. */
static Str
minimal_number(Str value)
{
    while (value.len > 1) {
        uint8_t first = (uint8_t) value.ptr[0];
        bool negative = (uint8_t) value.ptr[1] & 0x80;

        if (first != (negative ? 0xff : 0))
            break;
        value = (Str){.ptr = value.ptr + 1, .len = value.len - 1};
    }
    return value;
}

/* One value of an Avro type as single-value bytes; STR_NULL for null. */
static bool
read_value(Arena *arena, OcfInput *in, const OcfType *type, Str *out, Error *err)
{
    const OcfType *branch = NULL;
    OcfScalar value;
    char number[8];

    TRY(ocf_resolve(in, type, &branch, err));
    TRY(ocf_read_scalar(in, branch, &value, err));
    switch (value.kind) {
    case OCF_NULL:
        *out = STR_NULL;
        return true;
    case OCF_BOOLEAN:
        *out = arena_str(arena, value.integer ? STR("\x01") : STR("\0"));
        return true;
    case OCF_INT:
        store_le32(number, (uint32_t) value.integer);
        *out = arena_str(arena, (Str){.ptr = number, .len = 4});
        return true;
    case OCF_LONG:
        store_le64(number, (uint64_t) value.integer);
        *out = arena_str(arena, (Str){.ptr = number, .len = 8});
        return true;
    case OCF_FLOAT: /* Avro's little-endian bytes are Iceberg's */
    case OCF_DOUBLE:
    case OCF_BYTES:
    case OCF_STRING:
    case OCF_FIXED:
        *out = arena_str(arena, branch->is_decimal ? minimal_number(value.bytes) : value.bytes);
        return true;
    case OCF_ENUM:
    case OCF_RECORD:
    case OCF_ARRAY:
    case OCF_MAP:
    case OCF_UNION:
        break;
    }
    return FAIL(err, ERR_INPUT, "a partition value of a type that Iceberg does not have");
}

bool
partition_read_avro(Arena *arena, OcfInput *in, const OcfType *record, Str *out_packed, Error *err)
{
    TRY(ocf_resolve(in, record, &record, err));
    if (record->kind != OCF_RECORD)
        return FAIL(err, ERR_INPUT, "partition is not a record");

    Str *values = ARENA_ARRAY(arena, Str, record->field_count);

    for (size_t i = 0; i < record->field_count; i++)
        TRY(read_value(arena, in, record->fields[i].type, &values[i], err));
    *out_packed = partition_pack(arena, values, (int) record->field_count);
    return true;
}

/* --- Order --------------------------------------------------------------------------------- */

static int
compare_decimals(Str a, Str b)
{
    bool a_negative = a.len > 0 && (uint8_t) a.ptr[0] & 0x80;
    bool b_negative = b.len > 0 && (uint8_t) b.ptr[0] & 0x80;

    if (a_negative != b_negative)
        return a_negative ? -1 : 1;
    if (a.len != b.len) /* minimal, so more bytes are further from zero */
        return (a.len < b.len) == a_negative ? 1 : -1;
    return str_cmp(a, b);
}

int
partition_compare(const ResultType *type, Str a, Str b)
{
    switch (type->kind) {
    case RESULT_INT:
    case RESULT_LONG:
    case RESULT_DATE:
    case RESULT_TIME:
    case RESULT_TIMESTAMP:
    case RESULT_TIMESTAMPTZ:
    case RESULT_TIMESTAMP_NS:
    case RESULT_TIMESTAMPTZ_NS: {
        int64_t x = load_int(a);
        int64_t y = load_int(b);

        return x < y ? -1 : x > y;
    }
    case RESULT_FLOAT:
    case RESULT_DOUBLE: {
        double x = load_real(a);
        double y = load_real(b);

        return x < y ? -1 : x > y;
    }
    case RESULT_DECIMAL:
        return compare_decimals(a, b);
    case RESULT_BOOLEAN:
    case RESULT_STRING:
    case RESULT_UUID:
    case RESULT_FIXED:
    case RESULT_BINARY:
        break;
    }
    return str_cmp(a, b);
}

bool
partition_is_nan(const ResultType *type, Str value)
{
    return (type->kind == RESULT_FLOAT || type->kind == RESULT_DOUBLE) && isnan(load_real(value));
}
