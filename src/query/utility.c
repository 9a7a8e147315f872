#include "query/utility.h"

#include <ctype.h>
#include <strings.h>

#include "query/token.h"

typedef struct Parser {
    Arena *arena;
    Str sql;
    Lexer lexer;
    Token token; /* the present one */
    QueryFailure *failure;
} Parser;

static bool
advance(Parser *parser, Error *err)
{
    if (!token_next(&parser->lexer, &parser->token, err))
        return query_fail(parser->failure, err, SQLSTATE_SYNTAX, "%s",
                          arena_strdup(parser->arena, err->msg));
    return true;
}

/* Whether the present token is the word; then it is skipped. */
static bool
take_word(Parser *parser, const char *word, bool *out_taken, Error *err)
{
    *out_taken = token_is_word(&parser->token, word);
    return !*out_taken || advance(parser, err);
}

static bool
syntax_error(Parser *parser, Error *err)
{
    if (parser->token.kind == TOKEN_END)
        return query_fail(parser->failure, err, SQLSTATE_SYNTAX, "syntax error at end of input");
    (void) query_fail(parser->failure, err, SQLSTATE_SYNTAX, "syntax error at or near \"%.*s\"",
                      STR_ARG(parser->token.text));
    parser->failure->position = parser->token.text.ptr - parser->sql.ptr;
    return false;
}

static Str
lower(Arena *arena, Str s)
{
    char *copy = arena_alloc(arena, s.len + 1);

    for (size_t i = 0; i < s.len; i++)
        copy[i] = (char) tolower((unsigned char) s.ptr[i]);
    return (Str){.ptr = copy, .len = s.len};
}

/* The text of an identifier, a string or a number: quotes taken off, doubled ones halved. */
static Str
plain(Arena *arena, const Token *token)
{
    char mark = token->kind == TOKEN_QUOTED ? '"' : '\'';
    const char *start = memchr(token->text.ptr, mark, token->text.len);

    if ((token->kind != TOKEN_QUOTED && token->kind != TOKEN_STRING) || start == NULL)
        return arena_str(arena, token->text);

    char *copy = arena_alloc(arena, token->text.len);
    size_t length = 0;
    const char *end = token->text.ptr + token->text.len - 1;

    for (const char *c = start + 1; c < end; c++) {
        copy[length++] = *c;
        if (*c == mark)
            c++;
    }
    return (Str){.ptr = copy, .len = length};
}

/* --- SET, SHOW ----------------------------------------------------------------------------- */

/* name [. name] */
static bool
take_setting_name(Parser *parser, Str *out_name, Error *err)
{
    AUTO_BUF Buf name = {0};

    for (;;) {
        if (parser->token.kind != TOKEN_WORD && parser->token.kind != TOKEN_QUOTED)
            return syntax_error(parser, err);
        buf_str(&name, plain(parser->arena, &parser->token));
        TRY(advance(parser, err));
        if (!token_is(&parser->token, "."))
            break;
        buf_byte(&name, '.');
        TRY(advance(parser, err));
    }
    *out_name = lower(parser->arena, buf_view(&name));
    return true;
}

/* value [, value ...] up to the end; DEFAULT alone. */
static bool
take_setting_value(Parser *parser, Utility *utility, Error *err)
{
    AUTO_BUF Buf value = {0};

    if (token_is_word(&parser->token, "default")) {
        utility->value = STR_NULL;
        return advance(parser, err);
    }
    if (parser->token.kind == TOKEN_END)
        return syntax_error(parser, err);
    while (parser->token.kind != TOKEN_END) {
        Str part = plain(parser->arena, &parser->token);

        buf_cstr(&value, str_eqc(part, ",") ? "," : value.len > 0 ? " " : "");
        if (!str_eqc(part, ","))
            buf_str(&value, part);
        TRY(advance(parser, err));
    }
    utility->value = arena_str(parser->arena, buf_view(&value));
    return true;
}

/* Forms of SET that are not name = value. */
static bool
parse_special_set(Parser *parser, Utility *utility, bool *out_done, Error *err)
{
    bool taken = false;

    *out_done = true;
    TRY(take_word(parser, "time", &taken, err));
    if (taken) {
        TRY(take_word(parser, "zone", &taken, err));
        utility->name = STR("timezone");
        return taken ? take_setting_value(parser, utility, err) : syntax_error(parser, err);
    }
    TRY(take_word(parser, "names", &taken, err));
    if (taken) {
        utility->name = STR("client_encoding");
        return take_setting_value(parser, utility, err);
    }
    TRY(take_word(parser, "schema", &taken, err));
    if (taken) {
        utility->name = STR("search_path");
        return take_setting_value(parser, utility, err);
    }
    /* Every transaction is read only and sees one state, whatever is asked for. */
    if (token_is_word(&parser->token, "transaction") ||
        token_is_word(&parser->token, "characteristics")) {
        utility->name = STR("");
        return true;
    }
    *out_done = false;
    return true;
}

static bool
parse_set(Parser *parser, Utility *utility, Error *err)
{
    bool taken = false;
    bool done = false;

    utility->kind = UTILITY_SET;
    utility->tag = "SET";
    utility->value = STR_NULL;
    TRY(take_word(parser, "session", &taken, err));
    if (taken && token_is_word(&parser->token, "authorization"))
        return query_fail(parser->failure, err, SQLSTATE_DENIED,
                          "permission denied to set session authorization");
    if (!taken)
        TRY(take_word(parser, "local", &taken, err));
    TRY(parse_special_set(parser, utility, &done, err));
    if (done)
        return true;
    TRY(take_setting_name(parser, &utility->name, err));
    if (token_is(&parser->token, "=") || token_is_word(&parser->token, "to"))
        TRY(advance(parser, err));
    else
        return syntax_error(parser, err);
    return take_setting_value(parser, utility, err);
}

static bool
parse_reset(Parser *parser, Utility *utility, Error *err)
{
    bool all = false;

    TRY(take_word(parser, "all", &all, err));
    utility->tag = "RESET";
    utility->kind = all ? UTILITY_RESET_ALL : UTILITY_SET;
    utility->value = STR_NULL;
    return all || take_setting_name(parser, &utility->name, err);
}

static bool
parse_show(Parser *parser, Utility *utility, Error *err)
{
    bool taken = false;

    utility->kind = UTILITY_SHOW;
    utility->tag = "SHOW";
    TRY(take_word(parser, "all", &taken, err));
    if (taken) {
        utility->name = STR("");
        return true;
    }
    TRY(take_word(parser, "time", &taken, err));
    if (taken) {
        utility->name = STR("timezone");
        return advance(parser, err);
    }
    if (token_is_word(&parser->token, "transaction")) {
        utility->name = STR("transaction_isolation");
        return true;
    }
    return take_setting_name(parser, &utility->name, err);
}

/* --- the others ---------------------------------------------------------------------------- */

static bool
parse_rollback(Parser *parser, Utility *utility, Error *err)
{
    bool taken = false;

    TRY(take_word(parser, "work", &taken, err));
    if (!taken)
        TRY(take_word(parser, "transaction", &taken, err));
    TRY(take_word(parser, "to", &taken, err));
    utility->kind = taken ? UTILITY_ROLLBACK_TO : UTILITY_ROLLBACK;
    utility->tag = "ROLLBACK";
    return true;
}

static bool
parse_deallocate(Parser *parser, Utility *utility, Error *err)
{
    bool taken = false;

    utility->kind = UTILITY_DEALLOCATE;
    TRY(take_word(parser, "prepare", &taken, err));
    TRY(take_word(parser, "all", &taken, err));
    utility->tag = taken ? "DEALLOCATE ALL" : "DEALLOCATE";
    utility->name = STR("");
    if (taken)
        return true;
    if (parser->token.kind != TOKEN_WORD && parser->token.kind != TOKEN_QUOTED)
        return syntax_error(parser, err);
    utility->name = plain(parser->arena, &parser->token);
    if (parser->token.kind == TOKEN_WORD)
        utility->name = lower(parser->arena, utility->name);
    return true;
}

/* EXPLAIN [ANALYZE] [VERBOSE] [(option [, ...])] query */
static bool
parse_explain(Parser *parser, Utility *utility, Error *err)
{
    bool inside = token_is(&parser->token, "(");
    bool taken = true;

    utility->kind = UTILITY_EXPLAIN;
    utility->tag = "EXPLAIN";
    for (bool options = inside; options;) {
        TRY(advance(parser, err));
        if (parser->token.kind == TOKEN_END)
            return syntax_error(parser, err);
        if (token_is_word(&parser->token, "analyze"))
            utility->analyze = true;
        options = !token_is(&parser->token, ")");
        if (!options)
            TRY(advance(parser, err));
    }
    while (!inside && taken) {
        TRY(take_word(parser, "analyze", &taken, err));
        utility->analyze = utility->analyze || taken;
        if (!taken)
            TRY(take_word(parser, "verbose", &taken, err));
    }
    utility->rest.ptr = parser->token.text.ptr;
    utility->rest.len = (size_t) (parser->sql.ptr + parser->sql.len - utility->rest.ptr);
    return true;
}

typedef struct UtilityWord {
    const char *word;
    UtilityKind kind;
    const char *tag;
    bool (*parse)(Parser *parser, Utility *utility, Error *err);
} UtilityWord;

static const UtilityWord words[] = {
    {"select", UTILITY_QUERY, "SELECT", NULL},
    {"with", UTILITY_QUERY, "SELECT", NULL},
    {"values", UTILITY_QUERY, "SELECT", NULL},
    {"table", UTILITY_QUERY, "SELECT", NULL},
    {"begin", UTILITY_BEGIN, "BEGIN", NULL},
    {"start", UTILITY_BEGIN, "START TRANSACTION", NULL},
    {"commit", UTILITY_COMMIT, "COMMIT", NULL},
    {"end", UTILITY_COMMIT, "COMMIT", NULL},
    {"abort", UTILITY_ROLLBACK, "ROLLBACK", NULL},
    {"rollback", UTILITY_ROLLBACK, "ROLLBACK", parse_rollback},
    {"savepoint", UTILITY_SAVEPOINT, "SAVEPOINT", NULL},
    {"release", UTILITY_SAVEPOINT, "RELEASE", NULL},
    {"set", UTILITY_SET, "SET", parse_set},
    {"reset", UTILITY_SET, "RESET", parse_reset},
    {"show", UTILITY_SHOW, "SHOW", parse_show},
    {"deallocate", UTILITY_DEALLOCATE, "DEALLOCATE", parse_deallocate},
    {"discard", UTILITY_DISCARD, "DISCARD", NULL},
    {"explain", UTILITY_EXPLAIN, "EXPLAIN", parse_explain},
    {"unlisten", UTILITY_NOTHING, "UNLISTEN", NULL},
};

/* First words of statements that Postgres has and a reader of the lake cannot do. */
static const char *const writing_words[] = {
    "alter",    "analyze",  "call",   "checkpoint", "cluster", "comment", "create",
    "delete",   "do",       "drop",   "grant",      "import",  "insert",  "load",
    "lock",     "merge",    "notify", "reassign",   "refresh", "reindex", "revoke",
    "security", "truncate", "update", "vacuum",
};

static const char *const unsupported_words[] = {
    "close", "copy", "declare", "execute", "fetch", "listen", "move", "prepare",
};

static bool
is_among(const Token *token, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (token_is_word(token, list[i]))
            return true;
    return false;
}

#define AMONG(token, list) is_among((token), (list), sizeof(list) / sizeof(list)[0])

static const char *
upper(Arena *arena, Str word)
{
    char *copy = arena_alloc(arena, word.len + 1);

    for (size_t i = 0; i < word.len; i++)
        copy[i] = (char) toupper((unsigned char) word.ptr[i]);
    return copy;
}

/* "INSERT", "CREATE TABLE": as Postgres names the command. */
static const char *
command_name(Parser *parser)
{
    Token first = parser->token;
    const char *name = upper(parser->arena, first.text);
    Error ignored;

    if (!token_is_word(&first, "create") && !token_is_word(&first, "alter") &&
        !token_is_word(&first, "drop"))
        return name;
    if (!token_next(&parser->lexer, &parser->token, &ignored) || parser->token.kind != TOKEN_WORD)
        return name;
    return arena_printf(parser->arena, "%s %s", name, upper(parser->arena, parser->token.text));
}

static bool
refuse(Parser *parser, Error *err)
{
    if (AMONG(&parser->token, writing_words))
        return query_fail(parser->failure, err, SQLSTATE_READ_ONLY,
                          "cannot execute %s in a read-only transaction", command_name(parser));
    if (AMONG(&parser->token, unsupported_words))
        return query_fail(parser->failure, err, SQLSTATE_UNSUPPORTED, "%s is not supported",
                          command_name(parser));
    return syntax_error(parser, err);
}

bool
utility_parse(Arena *arena, Str sql, Utility *out_utility, QueryFailure *failure, Error *err)
{
    Parser parser = {.arena = arena, .sql = sql, .lexer = {.rest = sql}, .failure = failure};
    Utility utility = {.name = STR(""), .value = STR(""), .rest = sql};

    TRY(advance(&parser, err));
    if (parser.token.kind == TOKEN_END) {
        utility.kind = UTILITY_EMPTY;
        *out_utility = utility;
        return true;
    }
    if (token_is(&parser.token, "(")) {
        utility.tag = "SELECT";
        *out_utility = utility;
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!token_is_word(&parser.token, words[i].word))
            continue;
        utility.kind = words[i].kind;
        utility.tag = words[i].tag;
        if (words[i].parse != NULL) {
            TRY(advance(&parser, err));
            TRY(words[i].parse(&parser, &utility, err));
        }
        if (utility.kind == UTILITY_DISCARD)
            utility.tag = "DISCARD ALL";
        *out_utility = utility;
        return true;
    }
    return refuse(&parser, err);
}
