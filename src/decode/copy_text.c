#include "decode/copy_text.h"

#include <stdint.h>
#include <string.h>

static int
digit_value(char c, int base)
{
    int value = -1;

    if (c >= '0' && c <= '9')
        value = c - '0';
    else if (c >= 'a' && c <= 'f')
        value = c - 'a' + 10;
    else if (c >= 'A' && c <= 'F')
        value = c - 'A' + 10;
    return value < base ? value : -1;
}

/* Digits of \ooo or \xhh from *at on, `max` of them at most; false when there are none. */
static bool
read_code(Str field, size_t *at, int base, int max, char *out)
{
    int value = 0;
    int digits = 0;

    while (digits < max && *at < field.len && digit_value(field.ptr[*at], base) >= 0) {
        value = value * base + digit_value(field.ptr[(*at)++], base);
        digits++;
    }
    *out = (char) (uint8_t) value;
    return digits > 0;
}

/* What stands behind a backslash at *at. */
static char
read_escape(Str field, size_t *at)
{
    static const char letters[] = "b\bf\fn\nr\rt\tv\v";
    char c = field.ptr[*at];
    char code;

    for (size_t i = 0; i < sizeof letters - 1; i += 2) {
        if (c == letters[i]) {
            (*at)++;
            return letters[i + 1];
        }
    }
    if (c >= '0' && c <= '7' && read_code(field, at, 8, 3, &code))
        return code;
    (*at)++;
    if (c == 'x' && read_code(field, at, 16, 2, &code))
        return code;
    return c;
}

/* Undo the escapes of a field in place; false when it ends in a backslash. */
static bool
unescape(char *field, size_t *size)
{
    Str source = {.ptr = field, .len = *size};
    size_t length = 0;

    for (size_t at = 0; at < source.len;) {
        if (field[at] != '\\') {
            field[length++] = field[at++];
            continue;
        }
        at++;
        if (at == source.len)
            return false;
        field[length++] = read_escape(source, &at);
    }
    *size = length;
    return true;
}

/* Position of c at or behind `at`, or `size`. */
static size_t
find(const char *line, size_t at, size_t size, char c)
{
    const char *found = memchr(line + at, c, size - at);

    return found == NULL ? size : (size_t) (found - line);
}

static bool
read_field(char *field, size_t size, bool escaped, Datum *out)
{
    if (escaped && size == 2 && field[1] == 'N') {
        *out = (Datum){.kind = DATUM_NULL};
        return true;
    }
    if (escaped && !unescape(field, &size))
        return false;
    *out = (Datum){.kind = DATUM_TEXT, .text = {.ptr = field, .len = size}};
    return true;
}

bool
copy_text_split(char *line, size_t size, Datum *out_datums, int count, Error *err)
{
    size_t start = 0;
    int fields = 0;

    if (size > 0 && line[size - 1] == '\n')
        size--;
    if (count == 0 && size == 0) /* a table without columns: empty lines */
        return true;

    size_t backslash = find(line, 0, size, '\\');

    while (start <= size) {
        /* a tab within a value is written \t, so a tab is always an end */
        size_t end = find(line, start, size, '\t');
        bool escaped = backslash < end;

        if (escaped) /* before they are undone in place */
            backslash = find(line, end, size, '\\');
        if (fields == count)
            return FAIL(err, ERR_BUG, "COPY line has more than the expected %d fields", count);
        if (!read_field(line + start, end - start, escaped, &out_datums[fields++]))
            return FAIL(err, ERR_BUG, "COPY line: field %d ends in a backslash", fields);
        start = end + 1;
    }
    if (fields != count)
        return FAIL(err, ERR_BUG, "COPY line has %d fields, not the expected %d", fields, count);
    return true;
}
