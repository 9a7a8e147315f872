#include "query/dialect.h"

#include <strings.h>

#include "query/pg_catalog.h"
#include "query/token.h"

enum { PARAMETER_MAX = 65535, DEPTH_MAX = 64 };

void
dialect_map_done(DialectMap *map)
{
    buf_done(&map->pieces);
}

int64_t
dialect_place(const DialectMap *map, int64_t out)
{
    int64_t place = out;

    if (out < 0)
        return out;
    for (size_t i = 0; i < BUF_COUNT(&map->pieces, DialectPiece); i++) {
        DialectPiece piece = BUF_AT(&map->pieces, DialectPiece, i);

        if ((int64_t) piece.out > out)
            break;
        place = (int64_t) piece.in + (out - (int64_t) piece.out);
    }
    return place;
}

/* --- the rewriting ------------------------------------------------------------------------- */

typedef struct Rewriter {
    const DialectRewrite *rewrite;
    Buf tokens; /* Token, TOKEN_END last */
    size_t at;
    const char *copied; /* up to where the client's text is in out */
    Buf *out;
    DialectMap *map;
    int parameter_max;
    int depth;               /* of parentheses */
    bool in_from[DEPTH_MAX]; /* whether the clause there is FROM */
    Buf aliases;             /* size_t, tokens that get themselves as column name */
    QueryFailure *failure;
} Rewriter;

static void
rewriter_done(Rewriter *writer)
{
    buf_done(&writer->tokens);
    buf_done(&writer->aliases);
}

/* The token n places ahead; the last one stays. */
static const Token *
peek(const Rewriter *writer, size_t n)
{
    size_t last = BUF_COUNT(&writer->tokens, Token) - 1;
    size_t i = writer->at + n < last ? writer->at + n : last;

    return &BUF_AT(&writer->tokens, Token, i);
}

static bool
read_tokens(Rewriter *writer, Error *err)
{
    Lexer lexer = {.rest = writer->rewrite->sql};
    Token token;

    do {
        if (!token_next(&lexer, &token, err))
            return query_fail(writer->failure, err, SQLSTATE_SYNTAX, "unterminated quoted text");
        BUF_PUSH(&writer->tokens, Token, token);
    } while (token.kind != TOKEN_END);
    return true;
}

/* Copy what is before the present token, leave `count` tokens out and go on behind them. */
static void
replace(Rewriter *writer, size_t count, Str with)
{
    const Token *first = peek(writer, 0);
    const Token *last = peek(writer, count - 1);

    buf_append(writer->out, writer->copied, (size_t) (first->text.ptr - writer->copied));
    buf_str(writer->out, with);
    writer->copied = last->text.ptr + last->text.len;
    writer->at += count;
    BUF_PUSH(&writer->map->pieces, DialectPiece,
             ((DialectPiece){.out = writer->out->len,
                             .in = (size_t) (writer->copied - writer->rewrite->sql.ptr)}));
}

static bool
is_pg_catalog(const Token *token)
{
    return token_is_word(token, "pg_catalog") ||
           (token->kind == TOKEN_QUOTED && str_eqc(token->text, "\"pg_catalog\""));
}

static bool
is_default(const Token *token)
{
    return token_is_word(token, "default") ||
           (token->kind == TOKEN_QUOTED && str_eqc(token->text, "\"default\""));
}

/* OPERATOR ( [pg_catalog .] op ) */
static bool
try_operator(Rewriter *writer)
{
    size_t n = 2;

    if (!token_is_word(peek(writer, 0), "operator") || !token_is(peek(writer, 1), "("))
        return false;
    if (is_pg_catalog(peek(writer, 2)) && token_is(peek(writer, 3), "."))
        n = 4;
    if (peek(writer, n)->kind != TOKEN_OPERATOR || !token_is(peek(writer, n + 1), ")"))
        return false;
    replace(writer, n + 2, peek(writer, n)->text);
    return true;
}

static bool
try_collate(Rewriter *writer)
{
    if (!token_is_word(peek(writer, 0), "collate"))
        return false;
    if (is_default(peek(writer, 1))) {
        replace(writer, 2, STR(""));
        return true;
    }
    if (is_pg_catalog(peek(writer, 1)) && token_is(peek(writer, 2), ".") &&
        is_default(peek(writer, 3))) {
        replace(writer, 4, STR(""));
        return true;
    }
    return false;
}

/* FETCH {FIRST | NEXT} [n] {ROW | ROWS} ONLY */
static bool
try_fetch(Rewriter *writer)
{
    const Token *number = peek(writer, 2);
    bool given = number->kind == TOKEN_NUMBER;
    const Token *rows = peek(writer, given ? 3 : 2);
    const Token *only = peek(writer, given ? 4 : 3);

    if (!token_is_word(peek(writer, 0), "fetch") ||
        !(token_is_word(peek(writer, 1), "first") || token_is_word(peek(writer, 1), "next")) ||
        !(token_is_word(rows, "row") || token_is_word(rows, "rows")) ||
        !token_is_word(only, "only"))
        return false;

    AUTO_BUF Buf limit = {0};

    buf_cstr(&limit, "LIMIT ");
    buf_str(&limit, given ? number->text : STR("1"));
    replace(writer, given ? 5 : 4, buf_view(&limit));
    return true;
}

static bool
is_word_of(const Token *token, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (token_is_word(token, words[i]))
            return true;
    return false;
}

#define WORD_OF(token, words) is_word_of((token), (words), sizeof(words) / sizeof(words)[0])

/* Keep track of parentheses, and of the clause in each. */
static void
follow_clauses(Rewriter *writer)
{
    static const char *const begin_from[] = {"from", "join", "lateral"};
    static const char *const end_from[] = {"select", "where", "group", "order",     "having",
                                           "limit",  "union", "on",    "intersect", "except"};
    const Token *token = peek(writer, 0);

    bool opens = token_is(token, "(");

    if (opens)
        writer->depth++;
    else if (token_is(token, ")") && writer->depth > 0)
        writer->depth--;
    if (writer->depth >= DEPTH_MAX)
        return;
    if (opens || WORD_OF(token, end_from))
        writer->in_from[writer->depth] = false;
    else if (WORD_OF(token, begin_from))
        writer->in_from[writer->depth] = true;
}

/* How many tokens the present word and the parentheses behind it take, 0: they do not close. */
static size_t
call_length(const Rewriter *writer)
{
    int depth = 0;

    for (size_t n = 1; peek(writer, n)->kind != TOKEN_END; n++) {
        depth += token_is(peek(writer, n), "(") ? 1 : token_is(peek(writer, n), ")") ? -1 : 0;
        if (depth == 0)
            return n + 1;
    }
    return 0;
}

/* FROM f(...) [AS] name, f giving one column: in Postgres the column is called like the table. */
static void
find_column_alias(Rewriter *writer)
{
    static const char *const functions[] = {"generate_series",       "unnest",
                                            "regexp_split_to_table", "json_array_elements",
                                            "jsonb_array_elements",  "json_object_keys"};
    static const char *const not_names[] = {
        "where", "on",     "join",   "left",   "right", "inner",   "full",
        "cross", "group",  "order",  "limit",  "union", "natural", "with",
        "as",    "having", "window", "offset", "fetch", "except",  "intersect"};
    size_t n;

    if (writer->depth >= DEPTH_MAX || !writer->in_from[writer->depth] ||
        !WORD_OF(peek(writer, 0), functions) || !token_is(peek(writer, 1), "("))
        return;
    n = call_length(writer);
    if (n == 0)
        return;
    if (token_is_word(peek(writer, n), "as"))
        n++;

    const Token *name = peek(writer, n);

    if ((name->kind == TOKEN_QUOTED || (name->kind == TOKEN_WORD && !WORD_OF(name, not_names))) &&
        !token_is(peek(writer, n + 1), "("))
        BUF_PUSH(&writer->aliases, size_t, writer->at + n);
}

static bool
try_column_alias(Rewriter *writer)
{
    size_t count = BUF_COUNT(&writer->aliases, size_t);
    bool found = false;

    for (size_t i = 0; i < count && !found; i++)
        found = BUF_AT(&writer->aliases, size_t, i) == writer->at;
    if (!found)
        return false;

    AUTO_BUF Buf text = {0};
    Str name = peek(writer, 0)->text;

    buf_str(&text, name);
    buf_byte(&text, '(');
    buf_str(&text, name);
    buf_byte(&text, ')');
    replace(writer, 1, buf_view(&text));
    return true;
}

static bool
replace_parameter(Rewriter *writer, Error *err)
{
    const DialectRewrite *rewrite = writer->rewrite;
    Str text = peek(writer, 0)->text;
    int number = 0;

    for (size_t i = 1; i < text.len && number <= PARAMETER_MAX; i++)
        number = number * 10 + (text.ptr[i] - '0');
    if (number < 1 || number > PARAMETER_MAX)
        return query_fail(writer->failure, err, SQLSTATE_UNDEFINED_PARAMETER,
                          "there is no parameter %.*s", STR_ARG(text));
    if (number > writer->parameter_max)
        writer->parameter_max = number;
    if (rewrite->parameters == NULL) {
        writer->at++;
        return true;
    }
    if (number > rewrite->parameter_count)
        return query_fail(writer->failure, err, SQLSTATE_UNDEFINED_PARAMETER,
                          "there is no parameter $%d", number);

    AUTO_BUF Buf literal = {0};

    TRY(literal_put(&literal, &rewrite->parameters[number - 1], writer->failure, err));
    replace(writer, 1, buf_view(&literal));
    return true;
}

/* 'name' :: [pg_catalog .] regclass */
static bool
try_regclass(Rewriter *writer)
{
    const Token *name = peek(writer, 0);
    size_t type = is_pg_catalog(peek(writer, 2)) && token_is(peek(writer, 3), ".") ? 4 : 2;

    if (name->kind != TOKEN_STRING || !token_is(peek(writer, 1), "::") ||
        !token_is_word(peek(writer, type), "regclass"))
        return false;

    AUTO_BUF Buf call = {0};

    buf_cstr(&call, "to_regclass(");
    buf_str(&call, name->text);
    buf_byte(&call, ')');
    replace(writer, type + 1, buf_view(&call));
    return true;
}

/* Keywords of DuckDB that are ordinary names in Postgres (duckdb_keywords() against
 * pg_get_keywords()): quoted, unless what follows shows that the keyword is meant. */
static bool
try_keyword(Rewriter *writer)
{
    static const char *const keywords[] = {
        "anti", "asof",   "at",     "columns",   "describe",   "generated",
        "glob", "lambda", "map",    "pivot",     "positional", "qualify",
        "semi", "show",   "struct", "summarize", "unpack",     "unpivot",
    };
    static const char *const goes_on[] = {"time", "join", "local"};
    const Token *next = peek(writer, 1);
    Str word = peek(writer, 0)->text;

    if (!WORD_OF(peek(writer, 0), keywords) || token_is(next, "(") || token_is(next, "{") ||
        next->kind == TOKEN_STRING || WORD_OF(next, goes_on) ||
        (token_is_word(peek(writer, 0), "lambda") && next->kind == TOKEN_WORD))
        return false;

    AUTO_BUF Buf quoted = {0};

    buf_byte(&quoted, '"');
    for (size_t i = 0; i < word.len; i++)
        buf_byte(&quoted, (uint8_t) (word.ptr[i] | 0x20)); /* all letters */
    buf_byte(&quoted, '"');
    replace(writer, 1, buf_view(&quoted));
    return true;
}

static bool
rewrite_token(Rewriter *writer, Error *err)
{
    const Token *token = peek(writer, 0);

    follow_clauses(writer);
    find_column_alias(writer);
    if (token->kind == TOKEN_PARAMETER)
        return replace_parameter(writer, err);
    if (is_pg_catalog(token) && token_is(peek(writer, 1), ".")) {
        replace(writer, 2, STR(""));
        return true;
    }
    if (token_is_word(token, "information_schema") && token_is(peek(writer, 1), ".")) {
        replace(writer, 2, STR(INFORMATION_SCHEMA_SCHEMA "."));
        return true;
    }
    if (token_is_word(token, "similar") && token_is_word(peek(writer, 1), "to"))
        return query_fail(writer->failure, err, SQLSTATE_UNSUPPORTED,
                          "SIMILAR TO is not supported\nhint: use LIKE or ~");
    if (!try_operator(writer) && !try_collate(writer) && !try_fetch(writer) &&
        !try_regclass(writer) && !try_column_alias(writer) && !try_keyword(writer))
        writer->at++;
    return true;
}

bool
dialect_rewrite(const DialectRewrite *rewrite, Buf *out, DialectMap *map, int *out_parameter_max,
                QueryFailure *failure, Error *err)
{
    AUTO(rewriter_done)
    Rewriter writer = {
        .rewrite = rewrite, .copied = rewrite->sql.ptr, .out = out, .map = map, .failure = failure};

    buf_reset(out);
    buf_reset(&map->pieces);
    BUF_PUSH(&map->pieces, DialectPiece, ((DialectPiece){0}));
    TRY(read_tokens(&writer, err));
    while (peek(&writer, 0)->kind != TOKEN_END)
        TRY(rewrite_token(&writer, err));
    buf_append(out, writer.copied, (size_t) (rewrite->sql.ptr + rewrite->sql.len - writer.copied));
    *out_parameter_max = writer.parameter_max;
    return true;
}
