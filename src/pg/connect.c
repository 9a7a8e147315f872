#include "pg/conn_internal.h"

#include <assert.h>
#include <ctype.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"

/* Settings that change how values are written or what is found, and those that would end a long
 * copy. Roles and databases override the server's defaults; what the client sends at startup wins
 * over both. Copy and stream must agree to the letter, so both pin all of them. */
static const struct {
    const char *name;
    const char *value;
} pinned[] = {
    {"datestyle", "ISO"},
    {"intervalstyle", "postgres"},
    {"timezone", "UTC"},
    {"extra_float_digits", "3"},
    {"bytea_output", "hex"},
    {"xmloption", "content"},
    {"quote_all_identifiers", "off"},
    {"search_path", "pg_catalog"}, /* regclass and friends print by it */
    {"standard_conforming_strings", "on"},
    {"row_security", "off"},         /* an error instead of missing rows */
    {"synchronize_seqscans", "off"}, /* a scan starts at its beginning */
    {"jit", "off"},                  /* compiling costs more than reading a range */
    {"statement_timeout", "0"},
    {"lock_timeout", "0"},
    {"idle_in_transaction_session_timeout", "0"},
    {"lc_monetary", "C"}, /* the last: by SET, so that RESET has the source's own */
};

enum {
    PINNED_COUNT = sizeof pinned / sizeof pinned[0],
    STARTUP_COUNT = PINNED_COUNT - 1,
    CONNECT_TIMEOUT_S = 10,
    IMPATIENT_LOCK_MS = 2000,
    IMPATIENT_ANSWER_MS = 60000,
};

#define POOLER_HINT                                                                                \
    "hint: this looks like a connection pooler; give walberg the address of Postgres itself "      \
    "(replication does not pass through a pooler)"

/* What of the connection string we must know ourselves. */
typedef struct Parsed {
    char *options; /* of the string or PGOPTIONS; owned */
    int timeout_s; /* connect_timeout, 0 when not set */
    bool secret;   /* a password is in it */
} Parsed;

static void
parsed_done(Parsed *parsed)
{
    free(parsed->options);
}

static void
silence_notice(void *unused, const PGresult *result)
{
    (void) unused;

    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    log_debug("server notice", LOG_STR("message", message == NULL ? "" : message));
}

/* --- the connection string ------------------------------------------------------------------ */

static void
take_option(const PQconninfoOption *option, Parsed *parsed)
{
    if (option->val == NULL)
        return;
    if (strcmp(option->keyword, "options") == 0 && parsed->options == NULL)
        parsed->options = xstrdup(option->val);
    else if (strcmp(option->keyword, "connect_timeout") == 0)
        parsed->timeout_s = (int) strtol(option->val, NULL, 10);
    else if (strcmp(option->keyword, "password") == 0)
        parsed->secret = true;
}

/* A password with an '@', '/' or ':' that is not percent-encoded ends up in the host or port, and
 * from there in every message: stop before that. */
static bool
check_place(const PQconninfoOption *option, Error *err)
{
    const char *value = option->val == NULL ? "" : option->val;
    bool bad_host = strcmp(option->keyword, "host") == 0 && strchr(value, '@') != NULL;
    bool bad_port =
        strcmp(option->keyword, "port") == 0 && value[strspn(value, "0123456789, ")] != '\0';

    if (bad_host || bad_port)
        return FAIL(err, ERR_INPUT,
                    "connection string: the %s is not valid\nhint: in a URI the characters @ : / "
                    "%% # ? of a password are written %%40 %%3A %%2F %%25 %%23 %%3F",
                    option->keyword);
    return true;
}

static bool
parse_conninfo(const char *conninfo, Parsed *parsed, Error *err)
{
    char *reason = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &reason);

    if (options == NULL) {
        /* libpq's reason quotes the string, which may hold a password. */
        bool secret = strstr(conninfo, "password") != NULL || strchr(conninfo, '@') != NULL;

        FAIL(err, ERR_INPUT, "connection string: %s",
             secret || reason == NULL ? "cannot be parsed" : reason);
        PQfreemem(reason);
        return false;
    }

    bool ok = true;

    for (PQconninfoOption *option = options; option->keyword != NULL && ok; option++) {
        take_option(option, parsed);
        ok = check_place(option, err);
    }
    PQconninfoFree(options);
    if (!ok)
        return false;

    /* Naming `options` ourselves keeps libpq from looking at PGOPTIONS. */
    PQconninfoOption *defaults = PQconndefaults();

    for (PQconninfoOption *option = defaults; option != NULL && option->keyword != NULL; option++)
        if (strcmp(option->keyword, "options") == 0)
            take_option(option, parsed);
    PQconninfoFree(defaults);
    return true;
}

static PGconn *
start_connection(const PgConnect *connect, const Parsed *parsed)
{
    AUTO_BUF Buf options = {0};

    if (parsed->options != NULL)
        buf_cstr(&options, parsed->options);
    for (int i = 0; i < STARTUP_COUNT; i++)
        buf_printf(&options, " -c %s=%s", pinned[i].name, pinned[i].value);

    /* In this order: what stands before dbname is a default, what stands behind it is final. */
    const char *const keywords[] = {"keepalives_idle",
                                    "keepalives_interval",
                                    "keepalives_count",
                                    "fallback_application_name",
                                    "dbname",
                                    "options",
                                    "client_encoding",
                                    connect->replication ? "replication" : NULL,
                                    NULL};
    const char *const values[] = {"30",
                                  "10",
                                  "6",
                                  connect->application_name == NULL ? "walberg"
                                                                    : connect->application_name,
                                  connect->conninfo,
                                  buf_text(&options),
                                  "UTF8",
                                  connect->replication ? "database" : NULL,
                                  NULL};

    return PQconnectStartParams(keywords, values, 1);
}

/* --- failures -------------------------------------------------------------------------------- */

/* Of a verbose libpq message ("... failed: FATAL:  28P01: text\nLOCATION:  ...") the last attempt:
 * its SQLSTATE ("" when the server did not speak) and its text. libpq has no other way to the
 * SQLSTATE of a refused connection, and the text may be in any language. */
static Str
last_attempt(const char *message, char sqlstate[6])
{
    static const char failed[] = " failed: ";
    const char *text = message;

    for (const char *p = strstr(message, failed); p != NULL; p = strstr(p + 1, failed))
        text = p + sizeof failed - 1;
    sqlstate[0] = '\0';

    size_t len = strcspn(text, "\n");

    for (size_t i = 0; i + 9 < len; i++) {
        size_t n = 0;

        while (n < 5 && (isdigit((unsigned char) text[i + 3 + n]) ||
                         isupper((unsigned char) text[i + 3 + n])))
            n++;
        if (strncmp(text + i, ":  ", 3) != 0 || n < 5 || strncmp(text + i + 8, ": ", 2) != 0)
            continue;
        memcpy(sqlstate, text + i + 3, 5);
        sqlstate[5] = '\0';
        return (Str){.ptr = text + i + 10, .len = len - i - 10};
    }
    return (Str){.ptr = text, .len = len};
}

/* What a person can do, by SQLSTATE. */
static const char *
connect_hint(const PgConn *conn, Str text)
{
    const char *sqlstate = conn->sqlstate;

    if (PQconnectionNeedsPassword(conn->pg))
        return "\nhint: give the password in the connection string, PGPASSWORD or ~/.pgpass";
    if (strcmp(sqlstate, "28P01") == 0)
        return "\nhint: check user and password (connection string, PGPASSWORD, ~/.pgpass)";
    if (strcmp(sqlstate, "28000") == 0)
        return "\nhint: check the role's name, its LOGIN right and pg_hba.conf";
    if (strcmp(sqlstate, "3D000") == 0)
        return "\nhint: check the database's name";
    if (strcmp(sqlstate, "42501") == 0 && conn->replication)
        return "\nhint: the role needs the replication right: ALTER ROLE ... REPLICATION (on "
               "Amazon RDS: GRANT rds_replication TO ...)";
    if (memmem(text.ptr, text.len, "unsupported startup parameter", 29) != NULL)
        return "\n" POOLER_HINT;
    return "";
}

static bool
refused(PgConn *conn, Error *err)
{
    Str text = last_attempt(PQerrorMessage(conn->pg), conn->sqlstate);
    const char *hint = connect_hint(conn, text);
    ErrKind kind = ERR_TRANSIENT;

    if (conn->sqlstate[0] != '\0')
        kind = conn_error_kind(conn->sqlstate);
    else if (hint[0] != '\0' || str_starts(text, STR("invalid ")) ||
             memmem(text.ptr, text.len, "SSL", 3) != NULL ||
             memmem(text.ptr, text.len, "certificate", 11) != NULL)
        kind = ERR_INPUT;
    return FAIL(err, kind, "connect to %s: %.*s%s", conn->describe, STR_ARG(text), hint);
}

/* --- connecting ------------------------------------------------------------------------------ */

static bool
poll_connection(PgConn *conn, int64_t timeout_ms, Error *err)
{
    int64_t deadline = clock_ms() + timeout_ms;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    while (status != PGRES_POLLING_OK) {
        int64_t left = deadline - clock_ms();
        bool ready;

        TRY(conn_wait(conn, status == PGRES_POLLING_READING ? POLLIN : POLLOUT, left < 0 ? 0 : left,
                      &ready, err));
        if (!ready)
            return FAIL(err, ERR_TRANSIENT, "connect to %s: no answer within %lld s",
                        conn->describe, (long long) timeout_ms / 1000);
        status = PQconnectPoll(conn->pg);
        if (status == PGRES_POLLING_FAILED)
            return refused(conn, err);
    }
    return true;
}

static const char *
or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

static void
describe_connection(PgConn *conn)
{
    snprintf(conn->describe, sizeof conn->describe, "%.63s@%.128s:%.5s/%.63s",
             or_empty(PQuser(conn->pg)), or_empty(PQhost(conn->pg)), or_empty(PQport(conn->pg)),
             or_empty(PQdb(conn->pg)));
}

static bool
same_setting(Str is, const char *wanted)
{
    size_t n = strlen(wanted);

    /* DateStyle reads "ISO, MDY" */
    return is.len >= n && strncmp(is.ptr, wanted, n) == 0 && (is.len == n || is.ptr[n] == ',');
}

/* A SQL_ASCII database holds bytes of any encoding, and Postgres would end the copy or the stream
 * at the first that is not UTF-8: there every value is taken as it is, and looked at here. */
static const char *
wanted_encoding(const PgConn *conn)
{
    const char *server = PQparameterStatus(conn->pg, "server_encoding");

    return server != NULL && strcmp(server, "SQL_ASCII") == 0 ? "SQL_ASCII" : "UTF8";
}

/* What is not pinned by the startup, then whether every pinned setting took: a pooler may swallow
 * them. */
static bool
check_settings(PgConn *conn, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf sql = {0};
    PgResult result;

    for (int i = STARTUP_COUNT; i < PINNED_COUNT; i++)
        buf_printf(&sql, "SET %s = '%s';", pinned[i].name, pinned[i].value);
    if (pg_server_version(conn) >= 140000)
        buf_cstr(&sql, "SET idle_session_timeout = 0;");
    if (pg_server_version(conn) >= 170000)
        buf_cstr(&sql, "SET transaction_timeout = 0;");
    buf_printf(&sql, "SET client_encoding = '%s'; SELECT ", wanted_encoding(conn));
    for (size_t i = 0; i < PINNED_COUNT; i++)
        buf_printf(&sql, "pg_catalog.current_setting('%s'), ", pinned[i].name);
    buf_cstr(&sql, "pg_catalog.current_setting('client_encoding')");
    TRY(pg_exec(conn, arena, buf_text(&sql), &result, err));
    if (result.rows != 1 || result.columns != PINNED_COUNT + 1)
        return FAIL(err, ERR_BUG, "%s: settings not readable", conn->describe);
    for (int i = 0; i <= PINNED_COUNT; i++) {
        const char *name = i < PINNED_COUNT ? pinned[i].name : "client_encoding";
        const char *wanted = i < PINNED_COUNT ? pinned[i].value : wanted_encoding(conn);
        Str is = pg_value(&result, 0, i);

        if (!same_setting(is, wanted))
            return FAIL(err, ERR_INPUT,
                        "%s: setting %s is \"%.*s\" although \"%s\" was asked for\n" POOLER_HINT,
                        conn->describe, name, STR_ARG(is), wanted);
    }
    return true;
}

static bool
establish(PgConn *conn, const PgConnect *connect, const Parsed *parsed, Error *err)
{
    int timeout_s = connect->connect_timeout_s;

    conn->pg = start_connection(connect, parsed);
    if (conn->pg == NULL)
        return FAIL(err, ERR_BUG, "libpq cannot make a connection");
    describe_connection(conn);
    if (PQstatus(conn->pg) == CONNECTION_BAD)
        return refused(conn, err);
    PQsetErrorVerbosity(conn->pg, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(conn->pg, silence_notice, NULL);
    if (timeout_s == 0)
        timeout_s = parsed->timeout_s > 0 ? parsed->timeout_s : CONNECT_TIMEOUT_S;
    TRY(poll_connection(conn, (int64_t) timeout_s * 1000, err));
    describe_connection(conn); /* of several hosts, the one that answered */
    if (pg_server_version(conn) < 130000)
        return FAIL(err, ERR_INPUT, "%s: Postgres %d is too old\nhint: 13 and newer work",
                    conn->describe, pg_server_version(conn) / 10000);
    TRY(check_settings(conn, err));
    if (!connect->impatient)
        return true;

    AUTO_ARENA Arena *arena = arena_new();

    conn->answer_ms = IMPATIENT_ANSWER_MS;
    return pg_exec(conn, arena, arena_printf(arena, "SET lock_timeout = %d", IMPATIENT_LOCK_MS),
                   NULL, err);
}

bool
pg_connect(const PgConnect *connect, PgConn **out_conn, Error *err)
{
    AUTO(parsed_done) Parsed parsed = {0};
    AUTO_PG PgConn *conn = xcalloc(1, sizeof *conn);

    TRY(FAULT("pg.connect", err));
    conn->cancel = connect->cancel;
    conn->replication = connect->replication;
    conn->answer_ms = -1;
    TRY(parse_conninfo(connect->conninfo, &parsed, err));
    TRY(establish(conn, connect, &parsed, err));
    *out_conn = conn;
    conn = NULL;
    return true;
}

/* money::numeric has as many digits as the locale's frac_digits: src/backend/utils/adt/cash.c,
 * cash_numeric(). Two statements of one message are one transaction: when the second fails, the
 * setting is what it was. */
bool
pg_money_digits(PgConn *conn, const char *locale, int *out_digits, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    PgResult result;
    const char *set = "RESET lc_monetary";

    if (locale != NULL)
        set = arena_printf(arena, "SET lc_monetary = %s", pg_quote_literal(arena, str_of(locale)));
    TRY(pg_exec(conn, arena, arena_printf(arena, "%s; SELECT scale('0'::money::numeric)", set),
                &result, err));
    TRY(pg_exec(conn, NULL, "SET lc_monetary = 'C'", NULL, err));
    *out_digits = (int) pg_value_int(&result, 0, 0);
    return true;
}

bool
pg_is_leaving(const PgConnect *connect)
{
    AUTO(parsed_done) Parsed parsed = {0};
    AUTO_PG PgConn *conn = xcalloc(1, sizeof *conn);
    Error err;

    assert(connect->connect_timeout_s > 0);
    conn->cancel = connect->cancel;
    conn->answer_ms = 1000 * (int64_t) connect->connect_timeout_s;
    return parse_conninfo(connect->conninfo, &parsed, &err) &&
           !establish(conn, connect, &parsed, &err) &&
           strcmp(conn->sqlstate, "57P03") == 0; /* cannot_connect_now */
}
