#include "model/sort_term.h"

#include <strings.h>

#define DIRECTIONS                                                                                 \
    "\nhint: a column or transform, then asc or desc, then nulls first or nulls last: "            \
    "\"created_at desc nulls last\"; an odd column stands in double quotes"

/* The bytes before the first space that is neither in double quotes nor in parentheses; spaces
 * before a parenthesis or bracket do not count. */
static size_t
head_length(Str text)
{
    bool quoted = false;
    int depth = 0;

    for (size_t i = 0; i < text.len; i++) {
        size_t next = i;

        if (text.ptr[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text.ptr[i] == '(' || text.ptr[i] == '['))
            depth++;
        else if (!quoted && (text.ptr[i] == ')' || text.ptr[i] == ']'))
            depth--;
        if (quoted || depth > 0 || text.ptr[i] != ' ')
            continue;
        while (next < text.len && text.ptr[next] == ' ')
            next++;
        if (next == text.len || (text.ptr[next] != '(' && text.ptr[next] != '['))
            return i;
        i = next - 1;
    }
    return text.len;
}

/* Take the next word of *rest off; false: there is none. */
static bool
next_word(Str *rest, Str *out_word)
{
    size_t start = 0;
    size_t end;

    while (start < rest->len && rest->ptr[start] == ' ')
        start++;
    for (end = start; end < rest->len && rest->ptr[end] != ' ';)
        end++;
    *out_word = (Str){.ptr = rest->ptr + start, .len = end - start};
    *rest = (Str){.ptr = rest->ptr + end, .len = rest->len - end};
    return end > start;
}

static bool
is_word(Str word, const char *wanted)
{
    return word.len == strlen(wanted) && strncasecmp(word.ptr, wanted, word.len) == 0;
}

/* "first" or "last" after "nulls", and nothing else. */
static bool
parse_nulls(Str rest, SortTerm *term, Error *err)
{
    Str word = STR("");
    bool some = next_word(&rest, &word);

    if (!some || (!is_word(word, "first") && !is_word(word, "last")))
        return FAIL(err, ERR_INPUT, "nulls are first or last" DIRECTIONS);
    term->nulls_first = is_word(word, "first");
    if (next_word(&rest, &word))
        return FAIL(err, ERR_INPUT, "what is \"%.*s\" after nulls %s?" DIRECTIONS, STR_ARG(word),
                    term->nulls_first ? "first" : "last");
    return true;
}

static bool
parse_direction(Str rest, SortTerm *term, Error *err)
{
    Str word = STR("");
    bool some = next_word(&rest, &word);

    term->descending = some && is_word(word, "desc");
    term->nulls_first = !term->descending;
    if (some && (is_word(word, "asc") || term->descending))
        some = next_word(&rest, &word);
    if (!some)
        return true;
    if (!is_word(word, "nulls"))
        return FAIL(err, ERR_INPUT, "\"%.*s\" is no direction" DIRECTIONS, STR_ARG(word));
    return parse_nulls(rest, term, err);
}

bool
sort_term_parse(Arena *arena, Str text, SortTerm *out_term, Error *err)
{
    while (text.len > 0 && text.ptr[0] == ' ')
        text = (Str){.ptr = text.ptr + 1, .len = text.len - 1};

    SortTerm term = {.text = arena_str(arena, text)};
    size_t length = head_length(term.text);
    Str head = {.ptr = term.text.ptr, .len = length};
    Str rest = {.ptr = term.text.ptr + length, .len = term.text.len - length};

    TRY(partition_term_parse(arena, head, &term.by, err));
    if (!parse_direction(rest, &term, err))
        return WRAP(err, "\"%.*s\"", (int) (text.len < 100 ? text.len : 100), text.ptr);
    if (term.by.transform.kind == TRANSFORM_VOID)
        return FAIL(err, ERR_INPUT, "\"%.*s\": void is NULL for every row, so it orders nothing",
                    STR_ARG(head));
    *out_term = term;
    return true;
}
