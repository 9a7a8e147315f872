#include "decode/nested.h"

#include "base/json_writer.h"
#include "decode/cursor.h"
#include "decode/value.h"

enum { ARRAY_DIMENSIONS_MAX = 6 }; /* MAXDIM in src/include/utils/array.h */

static const char *const NOT_AN_ARRAY = "not an array";
static const char *const NOT_AN_HSTORE = "not an hstore";
static const char *const NOT_A_RECORD = "not a composite value";

/* --- Tokens ---------------------------------------------------------------------------------- */

/* Bytes up to the next quote or backslash, or to the end. */
static Str
read_run(Cursor *cursor)
{
    const char *start = cursor->at;

    while (!cursor_done(cursor) && *cursor->at != '"' && *cursor->at != '\\')
        cursor->at++;
    return (Str){.ptr = start, .len = (size_t) (cursor->at - start)};
}

/* A backslash takes the next byte as it is; in records a doubled quote is one, too. */
static bool
accept_escape(Cursor *cursor, bool doubled)
{
    if (cursor_left(cursor) < 2)
        return false;
    if (cursor->at[0] != '\\' && !(doubled && cursor->at[0] == '"' && cursor->at[1] == '"'))
        return false;
    cursor->at++;
    return true;
}

/* The rest of a quoted token, up to and over its closing quote. *out_text points into the input, or
 * into `token` when something had to be undone. */
static bool
read_quoted(Cursor *cursor, bool doubled, Buf *token, Str *out_text)
{
    Str run = read_run(cursor);

    if (!accept_escape(cursor, doubled)) {
        *out_text = run;
        return cursor_accept(cursor, '"');
    }
    buf_reset(token);
    do {
        buf_str(token, run);
        buf_byte(token, (uint8_t) *cursor->at++);
        run = read_run(cursor);
    } while (accept_escape(cursor, doubled));
    buf_str(token, run);
    *out_text = buf_view(token);
    return cursor_accept(cursor, '"');
}

/* A token without quotes, up to one of two bytes that end it. What would have been quoted by
 * Postgres (see each caller) is not accepted. */
static bool
read_bare(Cursor *cursor, const char *stops, const char *forbidden, Str *out_text)
{
    const char *start = cursor->at;

    for (; !cursor_done(cursor); cursor->at++) {
        char c = *cursor->at;

        if (c == stops[0] || c == stops[1])
            break;
        if (c != '\0' && strchr(forbidden, c) != NULL)
            return false;
    }
    *out_text = (Str){.ptr = start, .len = (size_t) (cursor->at - start)};
    return true;
}

static const char *
append_text(Column *column, Str text)
{
    const char *reason = NULL;

    return value_parse(column, text, &reason) == PARSE_OK ? NULL : reason;
}

/* --- Arrays ---------------------------------------------------------------------------------- */

static const char *parse_dimension(Cursor *cursor, Column *list);

static const char *
parse_element(Cursor *cursor, Column *list, Buf *token)
{
    Column *element = &list->children[0];
    const char stops[2] = {list->type->delimiter, '}'};
    Str text;

    if (element->type->form == FORM_DIMENSION)
        return parse_dimension(cursor, element);
    if (cursor_is_at(cursor, '{'))
        return "the array has more dimensions than the column";
    if (cursor_accept(cursor, '"'))
        return read_quoted(cursor, false, token, &text) ? append_text(element, text) : NOT_AN_ARRAY;
    if (!read_bare(cursor, stops, "\"\\{", &text) || text.len == 0)
        return NOT_AN_ARRAY;
    if (str_eq(text, STR("NULL"))) { /* the text NULL is quoted */
        column_append_null(element);
        return NULL;
    }
    return append_text(element, text);
}

/* "{...}" as one row of the list. */
static const char *
parse_dimension(Cursor *cursor, Column *list)
{
    AUTO_BUF Buf token = {0};
    size_t start = list->children[0].rows;
    bool more = true;

    if (!cursor_accept(cursor, '{'))
        return list->type->form == FORM_DIMENSION ? "the array has fewer dimensions than the column"
                                                  : NOT_AN_ARRAY;
    if (cursor_accept(cursor, '}'))
        more = false;
    while (more) {
        const char *reason = parse_element(cursor, list, &token);

        more = cursor_accept(cursor, list->type->delimiter);
        if (reason == NULL && !more && !cursor_accept(cursor, '}'))
            reason = NOT_AN_ARRAY;
        if (reason != NULL) {
            column_truncate(&list->children[0], start);
            return reason;
        }
    }
    column_append_span(list, start);
    return NULL;
}

const char *
nested_parse_array(Column *column, Str text)
{
    Cursor cursor = cursor_of(text);
    size_t rows = column->rows;

    if (cursor_is_at(&cursor, '['))
        return "the array has bounds that do not start at 1";

    const char *reason = parse_dimension(&cursor, column);

    if (reason == NULL && !cursor_done(&cursor)) {
        column_truncate(column, rows);
        return NOT_AN_ARRAY;
    }
    return reason;
}

/* --- Arrays as JSON -------------------------------------------------------------------------- */

static bool
skip_digits(Cursor *cursor)
{
    const char *start = cursor->at;

    while (!cursor_done(cursor) && *cursor->at >= '0' && *cursor->at <= '9')
        cursor->at++;
    return cursor->at > start;
}

/* RFC 8259, section 6; no number that Postgres prints begins with a needless 0. */
static bool
is_json_number(Str text)
{
    Cursor cursor = cursor_of(text);

    (void) cursor_accept(&cursor, '-');
    if (!skip_digits(&cursor) || (cursor_accept(&cursor, '.') && !skip_digits(&cursor)))
        return false;
    if (cursor_accept(&cursor, 'e')) {
        if (!cursor_accept(&cursor, '-'))
            (void) cursor_accept(&cursor, '+');
        return skip_digits(&cursor) && cursor_done(&cursor);
    }
    return cursor_done(&cursor);
}

static const char *
put_json_value(Buf *out, TextForm form, Str text)
{
    if (form == FORM_ARRAY_OF_BOOLS) {
        if (!str_eq(text, STR("t")) && !str_eq(text, STR("f")))
            return "not a boolean";
        buf_cstr(out, text.ptr[0] == 't' ? "true" : "false");
    } else if (form == FORM_ARRAY_OF_JSON ||
               (form == FORM_ARRAY_OF_NUMBERS && is_json_number(text))) {
        buf_str(out, text);
    } else {
        jw_put_string(out, text);
    }
    return NULL;
}

static const char *put_json_array(Buf *out, Cursor *cursor, const Type *type, int depth);

static const char *
put_json_element(Buf *out, Cursor *cursor, const Type *type, int depth)
{
    AUTO_BUF Buf token = {0};
    const char stops[2] = {type->delimiter, '}'};
    Str text;

    if (cursor_is_at(cursor, '{'))
        return put_json_array(out, cursor, type, depth + 1);
    if (cursor_accept(cursor, '"'))
        return read_quoted(cursor, false, &token, &text) ? put_json_value(out, type->form, text)
                                                         : NOT_AN_ARRAY;
    if (!read_bare(cursor, stops, "\"\\{", &text) || text.len == 0)
        return NOT_AN_ARRAY;
    if (!str_eq(text, STR("NULL")))
        return put_json_value(out, type->form, text);
    buf_cstr(out, "null");
    return NULL;
}

/* Recursion follows the dimensions: at most ARRAY_DIMENSIONS_MAX. */
static const char *
put_json_array(Buf *out, Cursor *cursor, const Type *type, int depth)
{
    bool more = true;

    if (depth == ARRAY_DIMENSIONS_MAX || !cursor_accept(cursor, '{'))
        return NOT_AN_ARRAY;
    buf_byte(out, '[');
    if (cursor_accept(cursor, '}'))
        more = false;
    while (more) {
        const char *reason = put_json_element(out, cursor, type, depth);

        more = cursor_accept(cursor, type->delimiter);
        if (more)
            buf_byte(out, ',');
        else if (reason == NULL && !cursor_accept(cursor, '}'))
            reason = NOT_AN_ARRAY;
        if (reason != NULL)
            return reason;
    }
    buf_byte(out, ']');
    return NULL;
}

/* "[0:1][-1:2]=" */
static bool
skip_bounds(Cursor *cursor)
{
    bool any = false;

    while (cursor_accept(cursor, '[')) {
        any = true;
        (void) cursor_accept(cursor, '-');
        if (!skip_digits(cursor) || !cursor_accept(cursor, ':'))
            return false;
        (void) cursor_accept(cursor, '-');
        if (!skip_digits(cursor) || !cursor_accept(cursor, ']'))
            return false;
    }
    return !any || cursor_accept(cursor, '=');
}

const char *
nested_parse_json_array(Column *column, Str text)
{
    AUTO_BUF Buf json = {0};
    Cursor cursor = cursor_of(text);

    if (!str_is_utf8(text))
        return "not valid UTF-8";
    if (!skip_bounds(&cursor))
        return NOT_AN_ARRAY;

    const char *reason = put_json_array(&json, &cursor, column->type, 0);

    if (reason != NULL || !cursor_done(&cursor))
        return reason != NULL ? reason : NOT_AN_ARRAY;
    column_append_bytes(column, buf_view(&json));
    return NULL;
}

/* --- Vectors --------------------------------------------------------------------------------- */

const char *
nested_parse_vector(Column *column, Str text)
{
    Cursor cursor = cursor_of(text);
    Column *element = &column->children[0];
    size_t start = element->rows;
    const char *reason = cursor_accept(&cursor, '[') ? NULL : "not a vector";
    bool more = reason == NULL && !cursor_accept(&cursor, ']');

    while (more) {
        Str number;

        reason = "not a vector";
        if (read_bare(&cursor, ",]", "", &number))
            reason = append_text(element, number);
        more = reason == NULL && cursor_accept(&cursor, ',');
        if (reason == NULL && !more && !cursor_accept(&cursor, ']'))
            reason = "not a vector";
    }
    if (reason == NULL && !cursor_done(&cursor))
        reason = "not a vector";
    if (reason != NULL) {
        column_truncate(element, start);
        return reason;
    }
    column_append_span(column, start);
    return NULL;
}

/* --- hstore ---------------------------------------------------------------------------------- */

/* What follows a key: =>"value" or =>NULL. */
static const char *
parse_map_value(Cursor *cursor, Column *value, Buf *token)
{
    Str text;

    if (!cursor_accept(cursor, '=') || !cursor_accept(cursor, '>'))
        return NOT_AN_HSTORE;
    if (cursor_accept(cursor, '"'))
        return read_quoted(cursor, false, token, &text) ? append_text(value, text) : NOT_AN_HSTORE;
    if (cursor_left(cursor) < 4 || memcmp(cursor->at, "NULL", 4) != 0)
        return NOT_AN_HSTORE;
    cursor->at += 4;
    column_append_null(value);
    return NULL;
}

/* "key"=>"value" or "key"=>NULL: a row in both children, or none in either. */
static const char *
parse_pair(Cursor *cursor, Column *map, Buf *token)
{
    Column *key = &map->children[0];
    size_t start = key->rows;
    const char *reason;
    Str text;

    if (!cursor_accept(cursor, '"') || !read_quoted(cursor, false, token, &text))
        return NOT_AN_HSTORE;
    reason = append_text(key, text);
    if (reason != NULL)
        return reason;
    reason = parse_map_value(cursor, &map->children[1], token);
    if (reason != NULL)
        column_truncate(key, start);
    return reason;
}

const char *
nested_parse_hstore(Column *column, Str text)
{
    AUTO_BUF Buf token = {0};
    Cursor cursor = cursor_of(text);
    size_t start = column->children[0].rows;
    bool more = text.len > 0;

    while (more) {
        const char *reason = parse_pair(&cursor, column, &token);

        more = cursor_accept(&cursor, ',');
        if (reason == NULL && (more ? !cursor_accept(&cursor, ' ') : !cursor_done(&cursor)))
            reason = NOT_AN_HSTORE;
        if (reason != NULL) {
            column_truncate(&column->children[0], start);
            column_truncate(&column->children[1], start);
            return reason;
        }
    }
    column_append_span(column, start);
    return NULL;
}

/* --- Composites ------------------------------------------------------------------------------ */

static const char *
parse_member(Cursor *cursor, Column *member, Buf *token)
{
    Str text;

    if (cursor_is_at(cursor, ',') || cursor_is_at(cursor, ')')) {
        column_append_null(member);
        return NULL;
    }
    if (cursor_accept(cursor, '"'))
        return read_quoted(cursor, true, token, &text) ? append_text(member, text) : NOT_A_RECORD;
    if (!read_bare(cursor, ",)", "\"\\(", &text) || text.len == 0)
        return NOT_A_RECORD;
    return append_text(member, text);
}

const char *
nested_parse_record(Column *column, Str text)
{
    AUTO_BUF Buf token = {0};
    Cursor cursor = cursor_of(text);
    size_t rows = column->rows;
    int count = column->type->field_count;
    const char *reason = cursor_accept(&cursor, '(') ? NULL : NOT_A_RECORD;

    for (int i = 0; i < count && reason == NULL; i++) {
        if (i > 0 && !cursor_accept(&cursor, ','))
            reason = "fewer members than the column's type has";
        else
            reason = parse_member(&cursor, &column->children[i], &token);
    }
    if (reason == NULL && cursor_is_at(&cursor, ','))
        reason = "more members than the column's type has";
    if (reason == NULL && (!cursor_accept(&cursor, ')') || !cursor_done(&cursor)))
        reason = NOT_A_RECORD;
    if (reason != NULL) {
        for (int i = 0; i < count; i++)
            column_truncate(&column->children[i], rows);
        return reason;
    }
    column_append_struct(column);
    return NULL;
}
