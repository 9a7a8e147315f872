#include "query/literal.h"

#include <ctype.h>
#include <strings.h>

#include "query/literal_binary.h"
#include "query/types.h"

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
    bool done = false;

    if (value.ptr == NULL) {
        put_null(out, parameter->type_oid);
        return true;
    }
    if (parameter->format == 1) {
        TRY(literal_put_binary(out, &text, parameter, &done, failure, err));
        if (done)
            return true;
        buf_text(&text);
        value = buf_view(&text);
    }
    return put_text(out, parameter->type_oid, value, failure, err);
}
