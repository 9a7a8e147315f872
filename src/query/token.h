/* token.h - Postgres' lexical structure (PostgreSQL documentation, "Lexical Structure"): enough to
 * split a query string into statements, to see what kind of statement each is, and to find its
 * parameters. What a statement means is decided by DuckDB's parser, see guard.h. */
#ifndef QUERY_TOKEN_H
#define QUERY_TOKEN_H

#include "base/error.h"
#include "base/str.h"

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_WORD,        /* keyword or unquoted identifier */
    TOKEN_QUOTED,      /* "identifier" */
    TOKEN_STRING,      /* 'text', E'text', $tag$text$tag$, B'', X'' */
    TOKEN_NUMBER,      /* 1, 1.5e3, .5 */
    TOKEN_PARAMETER,   /* $1 */
    TOKEN_OPERATOR,    /* a run of + - * / < > = ~ ! @ # % ^ & | ` ? */
    TOKEN_PUNCTUATION, /* one of ( ) [ ] , ; . : or the two characters :: or := */
} TokenKind;

typedef struct Token {
    TokenKind kind;
    Str text; /* as written */
} Token;

typedef struct Lexer {
    Str rest;
} Lexer;

/* The next token behind blanks and comments. ERR_INPUT: a string or comment without an end. */
bool token_next(Lexer *lexer, Token *out_token, Error *err) WARN_UNUSED;

/* An unquoted word, in any case. */
bool token_is_word(const Token *token, const char *word);
bool token_is(const Token *token, const char *text);

/* Cut the first statement (without its semicolon) off *rest, which may be left empty. The statement
 * is empty when there are only blanks and comments. */
bool token_split(Str *rest, Str *out_statement, Error *err) WARN_UNUSED;

/* Whether nothing but blanks, comments and semicolons is left. */
bool token_only_blanks(Str text);

#endif
