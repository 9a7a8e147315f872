#include "query/literal.h"

#include <ctype.h>
#include <inttypes.h>
#include <strings.h>

#include "base/bytes.h"
#include "query/types.h"

/* --- binary parameters become text --------------------------------------------------------- */

static bool
wrong_size(const Parameter *parameter, QueryFailure *failure, Error *err)
{
    return query_fail(failure, err, SQLSTATE_INVALID_BINARY,
                      "incorrect binary data format in parameter of type %u (%zu bytes)",
                      parameter->type_oid, parameter->value.len);
}

static void
float4_text(Buf *out, uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof number);
    buf_printf(out, "%.9g", (double) number);
}

static void
float8_text(Buf *out, uint64_t bits)
{
    double number;

    memcpy(&number, &bits, sizeof number);
    buf_printf(out, "%.17g", number);
}

static void
hex_text(Buf *out, Str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(out, "%02x", (uint8_t) bytes.ptr[i]);
}

static bool
fixed_text(Buf *out, const Parameter *parameter, QueryFailure *failure, Error *err)
{
    const PgTypeRow *row = pg_type_of_oid(parameter->type_oid);
    const char *bytes = parameter->value.ptr;

    if (row == NULL || row->size < 0 || parameter->value.len != (size_t) row->size)
        return wrong_size(parameter, failure, err);
    switch (parameter->type_oid) {
    case OID_BOOL:
        buf_byte(out, bytes[0] != 0 ? 't' : 'f');
        return true;
    case OID_INT2:
        buf_printf(out, "%d", (int16_t) load_be16(bytes));
        return true;
    case OID_INT4:
        buf_printf(out, "%" PRId32, (int32_t) load_be32(bytes));
        return true;
    case OID_INT8:
        buf_printf(out, "%" PRId64, (int64_t) load_be64(bytes));
        return true;
    case OID_FLOAT4:
        float4_text(out, load_be32(bytes));
        return true;
    case OID_FLOAT8:
        float8_text(out, load_be64(bytes));
        return true;
    default:
        hex_text(out, parameter->value); /* uuid: DuckDB reads it without hyphens, too */
        return true;
    }
}

static bool
binary_text(Buf *out, const Parameter *parameter, QueryFailure *failure, Error *err)
{
    switch (parameter->type_oid) {
    case OID_BOOL:
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_UUID:
        return fixed_text(out, parameter, failure, err);
    case 0:
    case OID_TEXT:
    case OID_VARCHAR:
    case OID_BPCHAR:
    case OID_NAME:
    case OID_UNKNOWN:
    case OID_JSON:
        buf_str(out, parameter->value);
        return true;
    case OID_BYTEA:
        buf_cstr(out, "\\x");
        hex_text(out, parameter->value);
        return true;
    default:
        return query_fail(failure, err, SQLSTATE_UNSUPPORTED,
                          "binary format of parameters of type %u is not supported\n"
                          "hint: send the parameter as text",
                          parameter->type_oid);
    }
}

/* --- text parameters become literals ------------------------------------------------------- */

static void
put_cast(Buf *out, Str text, const char *type)
{
    buf_cstr(out, "CAST(");
    duck_quote_literal(out, text);
    buf_printf(out, " AS %s)", type);
}

/* [-+] digits [. digits], short enough for a decimal: written bare it is one of just that width. */
static bool
is_plain_decimal(Str text)
{
    size_t digits = 0;
    size_t points = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (isdigit((unsigned char) text.ptr[i]))
            digits++;
        else if (text.ptr[i] == '.')
            points++;
        else if (i > 0 || (text.ptr[i] != '-' && text.ptr[i] != '+'))
            return false;
    }
    return digits > 0 && digits <= 38 && points <= 1;
}

static void
put_numeric(Buf *out, Str text)
{
    if (is_plain_decimal(text))
        buf_printf(out, "(%.*s)", STR_ARG(text));
    else
        put_cast(out, text, "DOUBLE");
}

static int
hex_value(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c == '\0' ? NULL : strchr(digits, tolower((unsigned char) c));

    return at == NULL ? -1 : (int) (at - digits);
}

/* '\x00ff' -> '\x00\xFF'::BLOB, DuckDB's way to write one. */
static bool
put_bytea(Buf *out, Str text, QueryFailure *failure, Error *err)
{
    if (text.len < 2 || text.ptr[0] != '\\' || text.ptr[1] != 'x' || text.len % 2 != 0)
        return query_fail(failure, err, SQLSTATE_INVALID_TEXT,
                          "invalid input syntax for type bytea\n"
                          "hint: use the hexadecimal format, '\\x00ff'");
    buf_cstr(out, "CAST('");
    for (size_t i = 2; i < text.len; i += 2) {
        if (hex_value(text.ptr[i]) < 0 || hex_value(text.ptr[i + 1]) < 0)
            return query_fail(failure, err, SQLSTATE_INVALID_TEXT,
                              "invalid hexadecimal digit in bytea");
        buf_printf(out, "\\x%c%c", text.ptr[i], text.ptr[i + 1]);
    }
    buf_cstr(out, "' AS BLOB)");
    return true;
}

/* One element of an array's text at *at, to the delimiter: quoted or bare. */
static void
put_element(Buf *out, Str text, size_t *at)
{
    AUTO_BUF Buf element = {0};
    bool quoted = text.ptr[*at] == '"';

    for (size_t i = quoted ? *at + 1 : *at;; i++) {
        bool end =
            i >= text.len || (quoted ? text.ptr[i] == '"' : strchr(",}", text.ptr[i]) != NULL);

        if (end) {
            *at = quoted ? i + 1 : i;
            break;
        }
        if (text.ptr[i] == '\\' && i + 1 < text.len)
            i++;
        buf_byte(&element, (uint8_t) text.ptr[i]);
    }
    while (!quoted && element.len > 0 && element.ptr[element.len - 1] == ' ')
        element.len--;
    if (!quoted && element.len == 4 && strncasecmp(element.ptr, "null", 4) == 0)
        buf_cstr(out, "NULL");
    else
        duck_quote_literal(out, buf_view(&element));
}

/* {1,NULL,"a b",{2}} -> ['1',NULL,'a b',['2']]. What does not balance, DuckDB will not parse. */
static bool
put_array(Buf *out, Str text, const PgTypeRow *element, QueryFailure *failure, Error *err)
{
    int depth = 0;
    int deepest = 0;

    if (text.len < 2 || text.ptr[0] != '{' || text.ptr[text.len - 1] != '}')
        return query_fail(failure, err, SQLSTATE_INVALID_TEXT, "malformed array literal");
    buf_cstr(out, "CAST(");
    for (size_t i = 0; i < text.len;) {
        char c = text.ptr[i];

        if (c == '{') {
            buf_byte(out, '[');
            depth++;
            deepest = depth > deepest ? depth : deepest;
        } else if (c == '}') {
            buf_byte(out, ']');
            depth--;
        } else if (c == ',') {
            buf_byte(out, ',');
        } else if (c != ' ') {
            put_element(out, text, &i);
            continue;
        }
        i++;
    }
    if (depth != 0 || deepest > 6)
        return query_fail(failure, err, SQLSTATE_INVALID_TEXT, "malformed array literal");
    buf_printf(out, " AS %s", element->duckdb == NULL ? "DOUBLE" : element->duckdb);
    for (int i = 0; i < deepest; i++)
        buf_cstr(out, "[]");
    buf_byte(out, ')');
    return true;
}

static void
put_null(Buf *out, uint32_t type_oid)
{
    const PgTypeRow *row = pg_type_of_oid(type_oid);
    const PgTypeRow *element = pg_type_of_array(type_oid);

    if (row != NULL && row->duckdb != NULL)
        buf_printf(out, "CAST(NULL AS %s)", row->duckdb);
    else if (type_oid == OID_NUMERIC)
        buf_cstr(out, "CAST(NULL AS DECIMAL(38,9))");
    else if (element != NULL && element->duckdb != NULL)
        buf_printf(out, "CAST(NULL AS %s[])", element->duckdb);
    else
        buf_cstr(out, "NULL");
}

static bool
put_text(Buf *out, uint32_t type_oid, Str text, QueryFailure *failure, Error *err)
{
    const PgTypeRow *row = pg_type_of_oid(type_oid);
    const PgTypeRow *element = pg_type_of_array(type_oid);

    if (!str_is_utf8(text) || memchr(text.ptr, 0, text.len) != NULL)
        return query_fail(failure, err, "22021",
                          "invalid byte sequence for encoding \"UTF8\" in a parameter");
    if (element != NULL)
        return put_array(out, text, element, failure, err);
    if (type_oid == OID_BYTEA)
        return put_bytea(out, text, failure, err);
    if (type_oid == OID_NUMERIC)
        put_numeric(out, text);
    else if (row != NULL && row->duckdb != NULL)
        put_cast(out, text, row->duckdb);
    else
        duck_quote_literal(out, text);
    return true;
}

bool
literal_put(Buf *out, const Parameter *parameter, QueryFailure *failure, Error *err)
{
    AUTO_BUF Buf text = {0};
    Str value = parameter->value;

    if (value.ptr == NULL) {
        put_null(out, parameter->type_oid);
        return true;
    }
    if (parameter->format == 1) {
        TRY(binary_text(&text, parameter, failure, err));
        buf_text(&text);
        value = buf_view(&text);
    }
    return put_text(out, parameter->type_oid, value, failure, err);
}
