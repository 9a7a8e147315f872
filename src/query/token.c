#include "query/token.h"

#include <ctype.h>
#include <strings.h>

/* Bytes above 127 belong to identifiers. */
static bool
starts_word(char c)
{
    return isalpha((unsigned char) c) || c == '_' || (c & 0x80) != 0;
}

static bool
goes_on_word(char c)
{
    return starts_word(c) || isdigit((unsigned char) c) || c == '$';
}

static bool
is_operator(char c)
{
    return c != '\0' && strchr("+-*/<>=~!@#%^&|`?", c) != NULL;
}

static char
at(Str s, size_t i)
{
    if (i < s.len)
        return s.ptr[i];
    return '\0';
}

/* Length of the comment at the start of s, 0 when there is none; false: it has no end. */
static bool
comment_length(Str s, size_t *out_length)
{
    int depth = 0;

    *out_length = 0;
    if (at(s, 0) == '-' && at(s, 1) == '-') {
        const char *end = memchr(s.ptr, '\n', s.len);

        *out_length = end == NULL ? s.len : (size_t) (end - s.ptr) + 1;
        return true;
    }
    if (at(s, 0) != '/' || at(s, 1) != '*')
        return true;
    for (size_t i = 0; i + 1 < s.len; i++) {
        if (s.ptr[i] == '/' && s.ptr[i + 1] == '*') {
            depth++;
            i++;
        } else if (s.ptr[i] == '*' && s.ptr[i + 1] == '/') {
            depth--;
            i++;
        }
        if (depth == 0) {
            *out_length = i + 1;
            return true;
        }
    }
    return false;
}

static void
advance(Str *s, size_t length)
{
    s->ptr += length;
    s->len -= length;
}

static bool
skip_blanks(Str *s, Error *err)
{
    for (;;) {
        size_t length;

        while (s->len > 0 && isspace((unsigned char) s->ptr[0]))
            advance(s, 1);
        if (!comment_length(*s, &length))
            return FAIL(err, ERR_INPUT, "unterminated /* comment");
        if (length == 0)
            return true;
        advance(s, length);
    }
}

/* Length of what is quoted by `mark` from `start` on (the place of the opening one), 0: no end. A
 * doubled mark stands for itself; so does what follows a backslash in E'...'. */
static size_t
quoted_length(Str s, size_t start, char mark, bool escapes)
{
    for (size_t i = start + 1; i < s.len; i++) {
        bool pair = s.ptr[i] == mark && at(s, i + 1) == mark;

        if (pair || (escapes && s.ptr[i] == '\\'))
            i++;
        else if (s.ptr[i] == mark)
            return i + 1;
    }
    return 0;
}

/* Length of the opening $tag$ at the start of s, 0: it is none. */
static size_t
dollar_length(Str s)
{
    size_t i = 1;

    if (at(s, 1) != '$' && !starts_word(at(s, 1)))
        return 0;
    while (i < s.len && s.ptr[i] != '$' && goes_on_word(s.ptr[i]))
        i++;
    return at(s, i) == '$' ? i + 1 : 0;
}

static bool
take_dollar(Str s, size_t *out_length, Error *err)
{
    size_t tag = dollar_length(s);
    const char *end = memmem(s.ptr + tag, s.len - tag, s.ptr, tag);

    if (end == NULL)
        return FAIL(err, ERR_INPUT, "unterminated dollar-quoted string");
    *out_length = (size_t) (end - s.ptr) + tag;
    return true;
}

static size_t
number_length(Str s)
{
    size_t i = 0;

    while (isdigit((unsigned char) at(s, i)) || at(s, i) == '_')
        i++;
    /* "1..10" is not ours to understand: two dots end a number */
    if (at(s, i) == '.' && at(s, i + 1) != '.')
        for (i++; isdigit((unsigned char) at(s, i)); i++)
            ;
    if (at(s, i) == 'e' || at(s, i) == 'E') {
        size_t j = at(s, i + 1) == '+' || at(s, i + 1) == '-' ? i + 2 : i + 1;

        if (isdigit((unsigned char) at(s, j)))
            for (i = j; isdigit((unsigned char) at(s, i)); i++)
                ;
    }
    return i;
}

/* A run of operator characters ends where a comment begins. */
static size_t
operator_length(Str s)
{
    size_t i = 0;

    while (is_operator(at(s, i)) && !(i > 0 && at(s, i) == '-' && at(s, i + 1) == '-') &&
           !(i > 0 && at(s, i) == '/' && at(s, i + 1) == '*'))
        i++;
    return i;
}

static size_t
word_length(Str s)
{
    size_t i = 1;

    while (i < s.len && goes_on_word(s.ptr[i]))
        i++;
    return i;
}

/* E'', B'', X'', N'' and U&'' begin like words. */
static size_t
string_prefix_length(Str s)
{
    if (at(s, 0) == '\'')
        return 0;
    if (strchr("eEbBxXnN", s.ptr[0]) != NULL && at(s, 1) == '\'')
        return 1;
    if ((s.ptr[0] == 'u' || s.ptr[0] == 'U') && at(s, 1) == '&' && at(s, 2) == '\'')
        return 2;
    return s.len;
}

static bool
take_quoted(Str s, size_t start, size_t *out_length, Error *err)
{
    char mark = s.ptr[start];
    bool escapes = start == 1 && (s.ptr[0] == 'e' || s.ptr[0] == 'E');

    *out_length = quoted_length(s, start, mark, escapes);
    if (*out_length == 0)
        return FAIL(err, ERR_INPUT, "unterminated quoted %s",
                    mark == '"' ? "identifier" : "string");
    return true;
}

static bool
classify(Str s, TokenKind *out_kind, size_t *out_length, Error *err)
{
    char c = at(s, 0);
    size_t prefix = string_prefix_length(s);

    if (prefix < s.len) {
        *out_kind = TOKEN_STRING;
        return take_quoted(s, prefix, out_length, err);
    }
    if (c == '"') {
        *out_kind = TOKEN_QUOTED;
        return take_quoted(s, 0, out_length, err);
    }
    if (c == '$' && isdigit((unsigned char) at(s, 1))) {
        *out_kind = TOKEN_PARAMETER;
        for (*out_length = 1; isdigit((unsigned char) at(s, *out_length)); (*out_length)++)
            ;
        return true;
    }
    if (c == '$' && dollar_length(s) > 0) {
        *out_kind = TOKEN_STRING;
        return take_dollar(s, out_length, err);
    }
    if (starts_word(c)) {
        *out_kind = TOKEN_WORD;
        *out_length = word_length(s);
    } else if (isdigit((unsigned char) c) || (c == '.' && isdigit((unsigned char) at(s, 1)))) {
        *out_kind = TOKEN_NUMBER;
        *out_length = number_length(s);
    } else if (is_operator(c)) {
        *out_kind = TOKEN_OPERATOR;
        *out_length = operator_length(s);
    } else {
        *out_kind = TOKEN_PUNCTUATION;
        *out_length = c == ':' && (at(s, 1) == ':' || at(s, 1) == '=') ? 2 : 1;
    }
    return true;
}

bool
token_next(Lexer *lexer, Token *out_token, Error *err)
{
    TokenKind kind = TOKEN_END;
    size_t length = 0;

    TRY(skip_blanks(&lexer->rest, err));
    if (lexer->rest.len > 0)
        TRY(classify(lexer->rest, &kind, &length, err));
    *out_token = (Token){.kind = kind, .text = {.ptr = lexer->rest.ptr, .len = length}};
    advance(&lexer->rest, length);
    return true;
}

bool
token_is_word(const Token *token, const char *word)
{
    return token->kind == TOKEN_WORD && token->text.len == strlen(word) &&
           strncasecmp(token->text.ptr, word, token->text.len) == 0;
}

bool
token_is(const Token *token, const char *text)
{
    return token->kind >= TOKEN_OPERATOR && str_eqc(token->text, text);
}

bool
token_split(Str *rest, Str *out_statement, Error *err)
{
    Lexer lexer = {.rest = *rest};
    const char *start = NULL;

    for (;;) {
        Token token;

        TRY(token_next(&lexer, &token, err));
        if (start == NULL)
            start = token.text.ptr;
        if (token.kind == TOKEN_END || token_is(&token, ";")) {
            *out_statement = (Str){.ptr = start, .len = (size_t) (token.text.ptr - start)};
            *rest = lexer.rest;
            return true;
        }
    }
}

bool
token_only_blanks(Str text)
{
    Lexer lexer = {.rest = text};
    Token token;
    Error ignored;

    for (;;) {
        if (!token_next(&lexer, &token, &ignored))
            return false;
        if (token.kind == TOKEN_END)
            return true;
        if (!token_is(&token, ";"))
            return false;
    }
}
