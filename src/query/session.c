#include "query/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <uthash.h>

#include "base/hash.h"
#include "base/log.h"
#include "query/portal.h"
#include "query/settings.h"
#include "query/token.h"

enum {
    STARTUP_WAIT_MS = 60 * 1000,
    CANCEL_KEY_SHORT = 4, /* bytes, protocol 3.0 */
    CANCEL_KEY_LONG = 32,
    PREPARED_MAX = 10000, /* statements and portals that a client may keep */
};

typedef struct NamedStatement {
    Prepared *prepared;
    UT_hash_handle hh;
} NamedStatement;

typedef struct NamedPortal {
    Portal *portal;
    UT_hash_handle hh;
} NamedPortal;

struct QuerySession {
    SessionOpen open;
    Peer peer;
    Engine engine;
    Settings *settings;
    Arena *arena; /* of the message being handled */
    uint32_t pid;
    char key[CANCEL_KEY_LONG];
    atomic_size_t key_length; /* settled before the client knows the key */
    char status;              /* 'I', 'T', 'E' as in ReadyForQuery */
    bool skip_to_sync;        /* after a failure in the extended protocol */
    bool leaving;
    NamedStatement *statements;
    NamedPortal *portals;
    atomic_bool busy; /* a statement runs */
};

/* --- errors -------------------------------------------------------------------------------- */

static int
count_characters(Str text)
{
    int count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += (text.ptr[i] & 0xc0) != 0x80;
    return count;
}

/* Message, detail and hint of an Error: its first line, the others, the line "hint: ...". */
static void
split_message(Arena *arena, const char *text, WireError *error)
{
    const char *hint = strncmp(text, "hint: ", 6) == 0 ? text : strstr(text, "\nhint: ");
    size_t whole = hint == NULL ? strlen(text) : (size_t) (hint - text);
    const char *line = memchr(text, '\n', whole);
    size_t first = line == NULL ? whole : (size_t) (line - text);

    error->message = arena_str(arena, (Str){.ptr = text, .len = first});
    if (line != NULL)
        error->detail = arena_str(arena, (Str){.ptr = line + 1, .len = whole - first - 1});
    if (hint != NULL)
        error->hint = str_of(strstr(hint, "hint: ") + 6);
}

/* Send the failure of a statement; the transaction is broken by it. query is the message's text,
 * in which the engine's place counts from `offset`. */
static void
report(QuerySession *session, const Error *err, Str query, size_t offset)
{
    const QueryFailure *failure = &session->engine.failure;
    WireError error = {.severity = "ERROR", .sqlstate = failure->sqlstate};

    split_message(session->arena, err->msg, &error);
    if (failure->position >= 0 && (size_t) failure->position + offset <= query.len)
        error.position =
            count_characters((Str){.ptr = query.ptr, .len = (size_t) failure->position + offset}) +
            1;
    wire_put_error(&session->peer.out, &error);
    if (session->status == 'T')
        session->status = 'E';
}

static void
say_fatal(QuerySession *session, const char *sqlstate, const char *message)
{
    wire_put_error(
        &session->peer.out,
        &(WireError){.severity = "FATAL", .sqlstate = sqlstate, .message = str_of(message)});
    session->leaving = true;
}

static void
warn(QuerySession *session, const char *sqlstate, const char *message)
{
    wire_put_notice(
        &session->peer.out,
        &(WireError){.severity = "WARNING", .sqlstate = sqlstate, .message = str_of(message)});
}

/* --- what is kept -------------------------------------------------------------------------- */

static void
drop_portal(QuerySession *session, NamedPortal *named)
{
    HASH_DEL(session->portals, named);
    portal_free(named->portal);
    free(named);
}

static void
drop_portals(QuerySession *session)
{
    NamedPortal *named;
    NamedPortal *next;

    HASH_ITER(hh, session->portals, named, next)
    drop_portal(session, named);
}

/* The portals made of a statement go with it. */
static void
drop_statement(QuerySession *session, NamedStatement *statement)
{
    NamedPortal *named;
    NamedPortal *next;

    HASH_ITER(hh, session->portals, named, next)
    {
        if (named->portal->prepared == statement->prepared)
            drop_portal(session, named);
    }
    HASH_DEL(session->statements, statement);
    prepared_free(statement->prepared);
    free(statement);
}

static void
drop_statements(QuerySession *session)
{
    NamedStatement *named;
    NamedStatement *next;

    HASH_ITER(hh, session->statements, named, next)
    drop_statement(session, named);
}

static NamedStatement *
find_statement(QuerySession *session, Str name)
{
    NamedStatement *named;

    HASH_FIND(hh, session->statements, name.ptr, name.len, named);
    return named;
}

static NamedPortal *
find_portal(QuerySession *session, Str name)
{
    NamedPortal *named;

    HASH_FIND(hh, session->portals, name.ptr, name.len, named);
    return named;
}

static bool
keep_statement(QuerySession *session, Prepared *prepared, Error *err)
{
    if (HASH_COUNT(session->statements) >= PREPARED_MAX) {
        prepared_free(prepared);
        return query_fail(&session->engine.failure, err, "53000",
                          "more than %d prepared statements", PREPARED_MAX);
    }

    NamedStatement *named = xcalloc(1, sizeof *named);

    named->prepared = prepared;
    HASH_ADD_KEYPTR(hh, session->statements, prepared->name, strlen(prepared->name), named);
    return true;
}

static void
keep_portal(QuerySession *session, Portal *portal)
{
    NamedPortal *named = xcalloc(1, sizeof *named);

    named->portal = portal;
    HASH_ADD_KEYPTR(hh, session->portals, portal->name, strlen(portal->name), named);
}

/* --- utility statements -------------------------------------------------------------------- */

static void
report_setting(QuerySession *session, Str name)
{
    for (size_t i = 0; i < settings_count(); i++) {
        const char *known = settings_name(i);

        if (strlen(known) == name.len && strncasecmp(known, name.ptr, name.len) == 0)
            wire_put_parameter(&session->peer.out, known,
                               str_of(settings_get(session->settings, name)));
    }
}

static bool
set_setting(QuerySession *session, Str name, Str value, Error *err)
{
    bool due = false;

    if (name.len == 0)
        return true;
    TRY(settings_set(session->settings, name, value, &due, &session->engine.failure, err));
    if (due)
        report_setting(session, name);
    if (str_eqc(name, "search_path"))
        engine_set_path(&session->engine, str_of(settings_get(session->settings, name)));
    return true;
}

static void
reset_settings(QuerySession *session)
{
    settings_reset(session->settings);
    engine_set_path(&session->engine, str_of(settings_get(session->settings, STR("search_path"))));
}

static void
put_texts(Buf *out, const char *const *texts, int count)
{
    size_t row = wire_row_begin(out, count);

    for (int i = 0; i < count; i++) {
        size_t value = wire_value_begin(out);

        buf_cstr(out, texts[i]);
        wire_value_end(out, value);
    }
    wire_row_end(out, row);
}

static bool
show_setting(QuerySession *session, Str name, Error *err)
{
    const char *value = settings_get(session->settings, name);

    if (name.len > 0 && value == NULL)
        return query_fail(&session->engine.failure, err, SQLSTATE_UNDEFINED_OBJECT,
                          "unrecognized configuration parameter \"%.*s\"", STR_ARG(name));
    if (name.len > 0) {
        put_texts(&session->peer.out, &value, 1);
        return true;
    }
    for (size_t i = 0; i < settings_count(); i++) {
        const char *row[] = {settings_name(i),
                             settings_get(session->settings, str_of(settings_name(i))),
                             settings_about(i)};

        put_texts(&session->peer.out, row, 3);
    }
    return true;
}

static const char *
begin_transaction(QuerySession *session, const char *tag)
{
    if (session->status != 'I') {
        warn(session, SQLSTATE_ACTIVE_TRANSACTION, "there is already a transaction in progress");
        return tag;
    }
    engine_begin(&session->engine);
    session->status = 'T';
    return tag;
}

static const char *
end_transaction(QuerySession *session, const char *tag)
{
    bool failed = session->status == 'E';

    if (session->status == 'I')
        warn(session, SQLSTATE_NO_TRANSACTION, "there is no transaction in progress");
    drop_portals(session);
    engine_end(&session->engine);
    session->status = 'I';
    return failed ? "ROLLBACK" : tag;
}

static bool
deallocate(QuerySession *session, Str name, Error *err)
{
    NamedStatement *named;

    if (name.len == 0) {
        drop_statements(session);
        return true;
    }
    named = find_statement(session, name);
    if (named == NULL)
        return query_fail(&session->engine.failure, err, SQLSTATE_NO_STATEMENT,
                          "prepared statement \"%.*s\" does not exist", STR_ARG(name));
    drop_statement(session, named);
    return true;
}

/* Runs everything that is no query. The Utility may be freed by it (DEALLOCATE of itself), so it is
 * a copy. */
static bool
run_utility(QuerySession *session, Utility utility, Error *err)
{
    const char *tag = utility.tag;

    switch (utility.kind) {
    case UTILITY_EMPTY:
        wire_put_bare(&session->peer.out, WIRE_EMPTY_QUERY);
        return true;
    case UTILITY_BEGIN:
        tag = begin_transaction(session, tag);
        break;
    case UTILITY_COMMIT:
    case UTILITY_ROLLBACK:
        tag = end_transaction(session, tag);
        break;
    case UTILITY_ROLLBACK_TO:
        if (session->status == 'E')
            session->status = 'T';
        break;
    case UTILITY_SET:
        TRY(set_setting(session, utility.name, utility.value, err));
        break;
    case UTILITY_SHOW:
        TRY(show_setting(session, utility.name, err));
        break;
    case UTILITY_DEALLOCATE:
        TRY(deallocate(session, utility.name, err));
        break;
    case UTILITY_DISCARD:
        drop_statements(session);
        reset_settings(session);
        break;
    case UTILITY_RESET_ALL:
        reset_settings(session);
        break;
    case UTILITY_SAVEPOINT:
    case UTILITY_NOTHING:
    case UTILITY_QUERY:
    case UTILITY_EXPLAIN:
        break;
    }
    wire_put_complete(&session->peer.out, tag);
    return true;
}

static bool
is_query(const Prepared *prepared)
{
    return prepared->utility.kind == UTILITY_QUERY || prepared->utility.kind == UTILITY_EXPLAIN;
}

/* In a failed transaction only its end is of interest. */
static bool
check_transaction(QuerySession *session, const Prepared *prepared, Error *err)
{
    UtilityKind kind = prepared->utility.kind;

    if (session->status != 'E' || kind == UTILITY_COMMIT || kind == UTILITY_ROLLBACK ||
        kind == UTILITY_ROLLBACK_TO || kind == UTILITY_EMPTY)
        return true;
    return query_fail(&session->engine.failure, err, SQLSTATE_FAILED_TRANSACTION,
                      "current transaction is aborted, commands ignored until end of "
                      "transaction block");
}

static void
start_clock(QuerySession *session)
{
    engine_start_clock(&session->engine, settings_timeout_ms(session->settings));
    atomic_store(&session->busy, true);
}

static void
stop_clock(QuerySession *session)
{
    atomic_store(&session->busy, false);
    engine_stop_clock(&session->engine);
}

static void
put_complete(QuerySession *session, const Portal *portal)
{
    char tag[40];

    if (portal->prepared->utility.kind == UTILITY_EXPLAIN)
        snprintf(tag, sizeof tag, "EXPLAIN");
    else
        snprintf(tag, sizeof tag, "SELECT %" PRIu64, portal->rows);
    wire_put_complete(&session->peer.out, tag);
}

/* --- simple queries ------------------------------------------------------------------------ */

static bool
run_simple_query(QuerySession *session, const Prepared *prepared, Error *err)
{
    AUTO(portal_freep) Portal *portal = NULL;
    const WireColumn *columns;
    int count;

    TRY(portal_new(&session->engine, &(PortalMake){.name = STR(""), .prepared = prepared}, &portal,
                   err));
    TRY(portal_open(portal, &session->engine, err));
    columns = portal_columns(portal, &count);
    wire_put_columns(&session->peer.out, columns, count);
    TRY(portal_run(portal, &session->engine, &session->peer, 0, err));
    put_complete(session, portal);
    return true;
}

static bool
run_simple(QuerySession *session, Str sql, Error *err)
{
    AUTO(prepared_freep) Prepared *prepared = NULL;

    TRY(prepared_new(&session->engine, &(PreparedMake){.name = STR(""), .sql = sql}, &prepared,
                     err));
    TRY(check_transaction(session, prepared, err));
    if (is_query(prepared))
        return run_simple_query(session, prepared, err);
    if (prepared->utility.kind == UTILITY_SHOW)
        wire_put_columns(&session->peer.out, prepared->columns, prepared->column_count);
    return run_utility(session, prepared->utility, err);
}

/* All statements of a Query message, up to the first that fails. */
static void
handle_query(QuerySession *session, Str query)
{
    Str rest = query;
    bool any = false;
    Error err = {0};

    start_clock(session);
    do {
        Str sql = rest;
        bool ok = token_split(&rest, &sql, &err);

        if (!ok)
            (void) query_fail(&session->engine.failure, &err, SQLSTATE_SYNTAX, "%s",
                              arena_strdup(session->arena, err.msg));
        else if (sql.len == 0 && (any || rest.len > 0))
            continue;
        else
            ok = run_simple(session, sql, &err);
        any = true;
        engine_rest(&session->engine);
        if (!ok && !session->peer.lost)
            report(session, &err, query, (size_t) (sql.ptr - query.ptr));
        if (!ok)
            break;
    } while (rest.len > 0);
    stop_clock(session);
    wire_put_ready(&session->peer.out, session->status);
}

/* --- the extended protocol ----------------------------------------------------------------- */

static bool
handle_parse(QuerySession *session, Str body, Error *err)
{
    WireParse parse;
    Prepared *prepared = NULL;
    NamedStatement *old;

    TRY(wire_parse_parse(session->arena, body, &parse, err));
    old = find_statement(session, parse.name);
    if (old != NULL && parse.name.len > 0)
        return query_fail(&session->engine.failure, err, SQLSTATE_DUPLICATE_STATEMENT,
                          "prepared statement \"%.*s\" already exists", STR_ARG(parse.name));
    if (old != NULL)
        drop_statement(session, old);

    Str rest = parse.query;
    Str sql;

    if (!token_split(&rest, &sql, err))
        return query_fail(&session->engine.failure, err, SQLSTATE_SYNTAX, "%s",
                          arena_strdup(session->arena, err->msg));
    if (rest.len > 0 && !token_only_blanks(rest))
        return query_fail(&session->engine.failure, err, SQLSTATE_SYNTAX,
                          "cannot insert multiple commands into a prepared statement");
    TRY(prepared_new(&session->engine,
                     &(PreparedMake){.name = parse.name,
                                     .sql = sql,
                                     .type_count = parse.type_count,
                                     .types = parse.types,
                                     .describe = session->status != 'E'},
                     &prepared, err));
    if (!check_transaction(session, prepared, err)) {
        prepared_free(prepared);
        return false;
    }
    TRY(keep_statement(session, prepared, err));
    wire_put_bare(&session->peer.out, WIRE_PARSE_COMPLETE);
    return true;
}

static bool
handle_bind(QuerySession *session, Str body, Error *err)
{
    WireBind bind;
    Portal *portal = NULL;

    TRY(wire_parse_bind(session->arena, body, &bind, err));

    NamedStatement *statement = find_statement(session, bind.statement);
    NamedPortal *old = find_portal(session, bind.portal);

    if (statement == NULL)
        return query_fail(&session->engine.failure, err, SQLSTATE_NO_STATEMENT,
                          "prepared statement \"%.*s\" does not exist", STR_ARG(bind.statement));
    if (old != NULL && bind.portal.len > 0)
        return query_fail(&session->engine.failure, err, SQLSTATE_DUPLICATE_PORTAL,
                          "portal \"%.*s\" already exists", STR_ARG(bind.portal));
    if (old != NULL)
        drop_portal(session, old);
    if (HASH_COUNT(session->portals) >= PREPARED_MAX)
        return query_fail(&session->engine.failure, err, "53000", "more than %d portals",
                          PREPARED_MAX);
    TRY(check_transaction(session, statement->prepared, err));
    TRY(portal_new(
        &session->engine,
        &(PortalMake){.name = bind.portal, .prepared = statement->prepared, .bind = &bind}, &portal,
        err));
    keep_portal(session, portal);
    wire_put_bare(&session->peer.out, WIRE_BIND_COMPLETE);
    return true;
}

static void
put_description(QuerySession *session, const WireColumn *columns, int count)
{
    if (count == 0)
        wire_put_bare(&session->peer.out, WIRE_NO_DATA);
    else
        wire_put_columns(&session->peer.out, columns, count);
}

static bool
fail_no_portal(QuerySession *session, Str name, Error *err)
{
    return query_fail(&session->engine.failure, err, SQLSTATE_NO_PORTAL,
                      "portal \"%.*s\" does not exist", STR_ARG(name));
}

static bool
handle_describe(QuerySession *session, Str body, Error *err)
{
    WireTarget target;

    TRY(wire_parse_target(body, &target, err));
    if (target.kind == 'P') {
        NamedPortal *named = find_portal(session, target.name);
        const WireColumn *columns;
        int count;

        if (named == NULL)
            return fail_no_portal(session, target.name, err);
        columns = portal_columns(named->portal, &count);
        put_description(session, columns, count);
        return true;
    }

    NamedStatement *named = find_statement(session, target.name);

    if (named == NULL)
        return query_fail(&session->engine.failure, err, SQLSTATE_NO_STATEMENT,
                          "prepared statement \"%.*s\" does not exist", STR_ARG(target.name));
    wire_put_parameter_types(&session->peer.out, named->prepared->types,
                             named->prepared->parameter_count);
    put_description(session, named->prepared->columns, named->prepared->column_count);
    return true;
}

static bool
handle_execute(QuerySession *session, Str body, Error *err)
{
    WireExecute execute;

    TRY(wire_parse_execute(body, &execute, err));

    NamedPortal *named = find_portal(session, execute.portal);

    if (named == NULL)
        return fail_no_portal(session, execute.portal, err);

    Portal *portal = named->portal;

    TRY(check_transaction(session, portal->prepared, err));
    if (!is_query(portal->prepared))
        return run_utility(session, portal->prepared->utility, err);
    if (!portal->done)
        TRY(portal_run(portal, &session->engine, &session->peer, execute.rows_max, err));
    if (portal->done)
        put_complete(session, portal);
    else
        wire_put_bare(&session->peer.out, WIRE_PORTAL_SUSPENDED);
    return true;
}

static bool
handle_close(QuerySession *session, Str body, Error *err)
{
    WireTarget target;

    TRY(wire_parse_target(body, &target, err));

    NamedStatement *statement = target.kind == 'S' ? find_statement(session, target.name) : NULL;
    NamedPortal *portal = target.kind == 'P' ? find_portal(session, target.name) : NULL;

    if (statement != NULL)
        drop_statement(session, statement);
    if (portal != NULL)
        drop_portal(session, portal);
    wire_put_bare(&session->peer.out, WIRE_CLOSE_COMPLETE);
    return true;
}

static void
handle_sync(QuerySession *session)
{
    session->skip_to_sync = false;
    if (session->status == 'I') {
        drop_portals(session);
        engine_rest(&session->engine);
    }
    wire_put_ready(&session->peer.out, session->status);
}

typedef bool (*Handler)(QuerySession *session, Str body, Error *err);

static Handler
handler_of(char type)
{
    switch (type) {
    case 'P':
        return handle_parse;
    case 'B':
        return handle_bind;
    case 'D':
        return handle_describe;
    case 'E':
        return handle_execute;
    case 'C':
        return handle_close;
    default:
        return NULL;
    }
}

static void
handle_extended(QuerySession *session, const WireMessage *message)
{
    Handler handler = handler_of(message->type);
    Error err = {0};

    if (session->skip_to_sync)
        return;
    session->engine.failure =
        (QueryFailure){.sqlstate = SQLSTATE_PROTOCOL_VIOLATION, .position = -1};
    start_clock(session);

    bool ok = handler(session, message->body, &err);

    stop_clock(session);
    if (ok || session->peer.lost)
        return;

    /* The place of an error in Parse is in its query; later messages carry none. */
    Str query = STR("");

    if (message->type == 'P')
        query = (Str){.ptr = message->body.ptr + strlen(message->body.ptr) + 1,
                      .len = strlen(message->body.ptr + strlen(message->body.ptr) + 1)};
    report(session, &err, query, 0);
    session->skip_to_sync = true;
}

/* --- the loop ------------------------------------------------------------------------------ */

static void
handle_message(QuerySession *session, const WireMessage *message)
{
    Str query;
    Error err = {0};

    switch (message->type) {
    case 'Q':
        session->skip_to_sync = false;
        if (wire_parse_query(message->body, &query, &err))
            handle_query(session, query);
        else
            say_fatal(session, SQLSTATE_PROTOCOL_VIOLATION, err.msg);
        break;
    case 'P':
    case 'B':
    case 'D':
    case 'E':
    case 'C':
        handle_extended(session, message);
        break;
    case 'S':
        handle_sync(session);
        break;
    case 'H':
        break;
    case 'X':
        session->leaving = true;
        break;
    case 'd': /* COPY data that nobody asked for: what a client sends after a failed COPY */
    case 'c':
    case 'f':
        break;
    default:
        say_fatal(session, SQLSTATE_PROTOCOL_VIOLATION, "invalid frontend message type");
        break;
    }
}

/* What is buffered goes out when the client will wait for it. */
static bool
wants_flush(char type)
{
    return type == 'Q' || type == 'S' || type == 'H' || type == 'X';
}

static void
serve(QuerySession *session)
{
    while (!session->leaving && !session->peer.lost) {
        WireMessage message;
        bool closed = false;
        Error err = {0};

        arena_reset(session->arena);
        if (!peer_read(&session->peer, true, -1, &message, &closed, &err)) {
            if (err.kind == ERR_CANCELED)
                say_fatal(session, SQLSTATE_SHUTDOWN,
                          "terminating connection due to administrator command");
            else
                say_fatal(session, SQLSTATE_PROTOCOL_VIOLATION, err.msg);
            break;
        }
        if (closed)
            return;
        handle_message(session, &message);
        if (wants_flush(message.type) && !peer_flush(&session->peer, &err))
            break;
    }
    if (cancel_is_set(session->open.cancel) && !session->leaving)
        say_fatal(session, SQLSTATE_SHUTDOWN,
                  "terminating connection due to administrator command");
}

/* --- startup ------------------------------------------------------------------------------- */

/* -c name=value and --name=value of the startup option "options". */
static void
set_options(QuerySession *session, Str options)
{
    char *text = arena_strdup(session->arena, arena_str(session->arena, options).ptr);
    char *save = NULL;

    for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        char *name = strncmp(word, "--", 2) == 0 || strncmp(word, "-c", 2) == 0 ? word + 2 : word;
        Error ignored;

        if (equals == NULL)
            continue;
        *equals = '\0';
        (void) !set_setting(session, str_of(name), str_of(equals + 1), &ignored);
    }
}

/* Settings that cannot be had are left as they are: what holds is reported anyway, and a client
 * whose zone is not UTC shall be able to connect. */
static void
apply_startup(QuerySession *session, const WireStartup *startup)
{
    for (int i = 0; i < startup->setting_count; i++) {
        WireSetting setting = startup->settings[i];
        Error ignored;

        if (str_eqc(setting.name, "user") || str_eqc(setting.name, "database") ||
            str_eqc(setting.name, "replication"))
            continue;
        if (str_eqc(setting.name, "options"))
            set_options(session, setting.value);
        else
            (void) !set_setting(session, setting.name, setting.value, &ignored);
    }
    settings_pin(session->settings);
}

static void
welcome(QuerySession *session, const WireStartup *startup)
{
    Buf *out = &session->peer.out;
    int32_t protocol = wire_protocol(startup->protocol);

    if (protocol != startup->protocol || startup->unknown_count > 0)
        wire_put_negotiate(out, protocol, startup->unknown, startup->unknown_count);
    wire_put_authentication_ok(out);
    apply_startup(session, startup);
    for (size_t i = 0; i < settings_count(); i++)
        if (settings_is_reported(i))
            wire_put_parameter(out, settings_name(i),
                               str_of(settings_get(session->settings, str_of(settings_name(i)))));
    if (protocol < WIRE_PROTOCOL_3_2)
        session->key_length = CANCEL_KEY_SHORT;
    wire_put_backend_key(out, session->pid, (Str){.ptr = session->key, .len = session->key_length});
    wire_put_ready(out, session->status);
}

static bool
is_replication(const WireStartup *startup)
{
    for (int i = 0; i < startup->setting_count; i++)
        if (str_eqc(startup->settings[i].name, "replication") &&
            !str_eqc(startup->settings[i].value, "false"))
            return true;
    return false;
}

/* *out_ready: the client may send statements. */
static bool
handle_startup(QuerySession *session, Str body, bool *out_ready, Error *err)
{
    WireStartup startup;

    TRY(wire_parse_startup(session->arena, body, &startup, err));
    switch (startup.kind) {
    case WIRE_HELLO_SSL:
    case WIRE_HELLO_GSSENC:
        buf_byte(&session->peer.out, 'N');
        return true;
    case WIRE_HELLO_CANCEL:
        session->open.host->cancel(session->open.host, startup.cancel_pid, startup.cancel_key);
        session->leaving = true;
        return true;
    case WIRE_HELLO_START:
        break;
    }
    if (session->open.full) {
        say_fatal(session, SQLSTATE_TOO_MANY_CONNECTIONS, "sorry, too many clients already");
        return true;
    }
    if (is_replication(&startup)) {
        say_fatal(session, SQLSTATE_UNSUPPORTED, "this server has no replication");
        return true;
    }
    welcome(session, &startup);
    *out_ready = true;
    return true;
}

/* Up to the first ReadyForQuery. */
static bool
start(QuerySession *session, Error *err)
{
    bool ready = false;

    while (!ready && !session->leaving) {
        WireMessage message;
        bool closed = false;

        arena_reset(session->arena);
        TRY(peer_read(&session->peer, false, STARTUP_WAIT_MS, &message, &closed, err));
        if (closed) {
            session->leaving = true;
            return true;
        }
        TRY(handle_startup(session, message.body, &ready, err));
        TRY(peer_flush(&session->peer, err));
    }
    return true;
}

void
session_run(QuerySession *session)
{
    Error err = {0};
    bool started = start(session, &err);

    if (!started && !session->peer.lost && err.kind == ERR_INPUT)
        say_fatal(session, SQLSTATE_PROTOCOL_VIOLATION, err.msg);
    if (started && !session->leaving)
        serve(session);
    peer_farewell(&session->peer);
}

/* --- life ---------------------------------------------------------------------------------- */

bool
session_new(const SessionOpen *open, QuerySession **out_session, Error *err)
{
    QuerySession *session = xcalloc(1, sizeof *session);

    session->open = *open;
    peer_init(&session->peer, open->fd, open->cancel);
    if (!engine_init(&session->engine, open->lake, err)) {
        peer_done(&session->peer);
        free(session);
        return false;
    }
    session->settings = settings_new();
    session->arena = arena_new();
    session->pid = open->pid;
    session->status = 'I';
    session->key_length = CANCEL_KEY_LONG;
    random_bytes(session->key, sizeof session->key);
    *out_session = session;
    return true;
}

void
session_free(QuerySession *session)
{
    drop_portals(session);
    drop_statements(session);
    engine_end(&session->engine);
    engine_done(&session->engine);
    settings_free(session->settings);
    arena_free(session->arena);
    peer_done(&session->peer);
    free(session);
}

bool
session_has_key(const QuerySession *session, uint32_t pid, Str key)
{
    unsigned char difference = 0;

    if (session->pid != pid || key.len != session->key_length)
        return false;
    for (size_t i = 0; i < key.len; i++)
        difference |= (unsigned char) (key.ptr[i] ^ session->key[i]);
    return difference == 0;
}

void
session_interrupt(QuerySession *session)
{
    engine_interrupt(&session->engine);
}

void
session_tick(QuerySession *session, int64_t now_ms)
{
    engine_tick(&session->engine, now_ms);
    if (atomic_load(&session->busy) && peer_is_gone(session->peer.fd))
        engine_interrupt(&session->engine);
}
