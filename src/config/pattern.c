#include "config/pattern.h"

#include <stdint.h>

/* Characters until the dot that separates the parts, or the end. */
static size_t
part_length(Str rest)
{
    bool quoted = false;

    for (size_t i = 0; i < rest.len; i++) {
        if (rest.ptr[i] == '"')
            quoted = !quoted;
        else if (rest.ptr[i] == '.' && !quoted)
            return i;
    }
    return rest.len;
}

/* Not empty, and quotes either nowhere or around all of it with inner ones doubled. */
static bool
part_is_sound(Str part)
{
    if (part.len == 0)
        return false;
    if (part.ptr[0] != '"')
        return memchr(part.ptr, '"', part.len) == NULL;
    if (part.len < 3 || part.ptr[part.len - 1] != '"')
        return false;
    for (size_t i = 1; i < part.len - 1; i++) {
        if (part.ptr[i] != '"')
            continue;
        if (i + 1 >= part.len - 1 || part.ptr[i + 1] != '"')
            return false;
        i++;
    }
    return true;
}

static bool
split(Str pattern, Str *out_schema, Str *out_table)
{
    size_t dot = part_length(pattern);

    if (dot == pattern.len)
        return false;

    Str schema = {.ptr = pattern.ptr, .len = dot};
    Str table = {.ptr = pattern.ptr + dot + 1, .len = pattern.len - dot - 1};

    if (!part_is_sound(schema) || !part_is_sound(table) || part_length(table) != table.len)
        return false;
    *out_schema = schema;
    *out_table = table;
    return true;
}

bool
pattern_check(Str pattern, Error *err)
{
    Str schema;
    Str table;

    if (split(pattern, &schema, &table))
        return true;
    return FAIL(err, ERR_INPUT,
                "\"%.*s\" is not a pattern of the form schema.table\n"
                "hint: write \"public.orders\" or \"public.*\"; a part with a dot in it is quoted: "
                "'\"odd.schema\".orders'",
                pattern.len < 128 ? (int) pattern.len : 128, pattern.ptr);
}

static bool
match_quoted(Str part, Str name)
{
    size_t n = 0;

    for (size_t i = 1; i < part.len - 1; i++, n++) {
        if (n >= name.len || name.ptr[n] != part.ptr[i])
            return false;
        if (part.ptr[i] == '"')
            i++;
    }
    return n == name.len;
}

/* Bytes of the UTF-8 character at `at`; '?' stands for all of them. */
static size_t
character_length(Str name, size_t at)
{
    size_t end = at + 1;

    while (end < name.len && ((unsigned char) name.ptr[end] & 0xC0) == 0x80)
        end++;
    return end - at;
}

/* On a mismatch go back to the last '*' and let it take one character more: quadratic at worst. */
static bool
match_part(Str part, Str name)
{
    size_t p = 0;
    size_t n = 0;
    size_t star = SIZE_MAX;
    size_t star_name = 0;

    if (part.ptr[0] == '"')
        return match_quoted(part, name);
    while (n < name.len) {
        if (p < part.len && part.ptr[p] == '*') {
            star = p++;
            star_name = n;
        } else if (p < part.len && part.ptr[p] == '?') {
            p++;
            n += character_length(name, n);
        } else if (p < part.len && part.ptr[p] == name.ptr[n]) {
            p++;
            n++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            star_name += character_length(name, star_name);
            n = star_name;
        } else {
            return false;
        }
    }
    while (p < part.len && part.ptr[p] == '*')
        p++;
    return p == part.len;
}

bool
pattern_matches(Str pattern, Str schema, Str table)
{
    Str schema_part;
    Str table_part;

    return split(pattern, &schema_part, &table_part) && match_part(schema_part, schema) &&
           match_part(table_part, table);
}
