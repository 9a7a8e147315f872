#include "query/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "base/hash.h"
#include "query/session_internal.h"
#include "query/token.h"

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

void
session_say_fatal(QuerySession *session, const char *sqlstate, const char *message)
{
    wire_put_error(
        &session->peer.out,
        &(WireError){.severity = "FATAL", .sqlstate = sqlstate, .message = str_of(message)});
    session->leaving = true;
}

void
session_warn(QuerySession *session, const char *sqlstate, const char *message)
{
    wire_put_notice(
        &session->peer.out,
        &(WireError){.severity = "WARNING", .sqlstate = sqlstate, .message = str_of(message)});
}

/* client_min_messages knows less than these, too; what is more than a notice leaves them out. */
static void
send_notices(QuerySession *session)
{
    const char *least = settings_get(session->settings, STR("client_min_messages"));
    size_t count;
    const EngineNotice *notices = engine_take_notices(&session->engine, &count);

    if (strcasecmp(least, "warning") == 0 || strcasecmp(least, "error") == 0)
        return;
    for (size_t i = 0; i < count; i++)
        wire_put_notice(&session->peer.out, &(WireError){.severity = "NOTICE",
                                                         .sqlstate = SQLSTATE_SUCCESS,
                                                         .message = notices[i].message,
                                                         .detail = notices[i].detail,
                                                         .hint = notices[i].hint});
}

/* --- statements ---------------------------------------------------------------------------- */

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
run_simple_query(QuerySession *session, Prepared *prepared, Error *err)
{
    AUTO(portal_freep) Portal *portal = NULL;
    const WireColumn *columns;
    int count;

    TRY(portal_new(&session->engine, &(PortalMake){.name = STR(""), .prepared = prepared}, &portal,
                   err));
    TRY(portal_open(portal, &session->engine, err));
    send_notices(session);
    columns = portal_columns(portal, &count);
    wire_put_columns(&session->peer.out, columns, count);
    TRY(portal_run(portal, &session->engine, &session->peer, 0, err));
    put_complete(session, portal);
    return true;
}

static bool
run_simple(QuerySession *session, Str sql, Error *err)
{
    AUTO(prepared_unrefp) Prepared *prepared = NULL;

    TRY(prepared_new(&session->engine, &(PreparedMake){.name = STR(""), .sql = sql}, &prepared,
                     err));
    TRY(check_transaction(session, prepared, err));
    if (is_query(prepared))
        return run_simple_query(session, prepared, err);
    if (prepared->utility.kind == UTILITY_SHOW)
        wire_put_columns(&session->peer.out, prepared->columns, prepared->column_count);
    return session_run_utility(session, prepared->utility, err);
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
    Prepared *old;

    TRY(wire_parse_parse(session->arena, body, &parse, err));
    old = kept_statement(&session->kept, parse.name);
    if (old != NULL && parse.name.len > 0)
        return query_fail(&session->engine.failure, err, SQLSTATE_DUPLICATE_STATEMENT,
                          "prepared statement \"%.*s\" already exists", STR_ARG(parse.name));
    if (old != NULL)
        kept_forget_statement(&session->kept, old);

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
        prepared_unref(prepared);
        return false;
    }
    if (!kept_add_statement(&session->kept, prepared)) {
        prepared_unref(prepared);
        return query_fail(&session->engine.failure, err, "53000",
                          "more than %d prepared statements", KEPT_MAX);
    }
    wire_put_bare(&session->peer.out, WIRE_PARSE_COMPLETE);
    return true;
}

static bool
handle_bind(QuerySession *session, Str body, Error *err)
{
    WireBind bind;
    Portal *portal = NULL;

    TRY(wire_parse_bind(session->arena, body, &bind, err));

    Prepared *statement = kept_statement(&session->kept, bind.statement);
    Portal *old = kept_portal(&session->kept, bind.portal);

    if (statement == NULL)
        return query_fail(&session->engine.failure, err, SQLSTATE_NO_STATEMENT,
                          "prepared statement \"%.*s\" does not exist", STR_ARG(bind.statement));
    if (old != NULL && bind.portal.len > 0)
        return query_fail(&session->engine.failure, err, SQLSTATE_DUPLICATE_PORTAL,
                          "portal \"%.*s\" already exists", STR_ARG(bind.portal));
    if (old != NULL)
        kept_drop_portal(&session->kept, old);
    TRY(check_transaction(session, statement, err));
    TRY(portal_new(&session->engine,
                   &(PortalMake){.name = bind.portal, .prepared = statement, .bind = &bind},
                   &portal, err));
    if (!kept_add_portal(&session->kept, portal)) {
        portal_free(portal);
        return query_fail(&session->engine.failure, err, "53000", "more than %d portals", KEPT_MAX);
    }
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
        Portal *portal = kept_portal(&session->kept, target.name);
        const WireColumn *columns;
        int count;

        if (portal == NULL)
            return fail_no_portal(session, target.name, err);
        columns = portal_columns(portal, &count);
        put_description(session, columns, count);
        return true;
    }

    const Prepared *prepared = kept_statement(&session->kept, target.name);

    if (prepared == NULL)
        return query_fail(&session->engine.failure, err, SQLSTATE_NO_STATEMENT,
                          "prepared statement \"%.*s\" does not exist", STR_ARG(target.name));
    wire_put_parameter_types(&session->peer.out, prepared->types, prepared->parameter_count);
    put_description(session, prepared->columns, prepared->column_count);
    return true;
}

static bool
handle_execute(QuerySession *session, Str body, Error *err)
{
    WireExecute execute;

    TRY(wire_parse_execute(body, &execute, err));

    Portal *portal = kept_portal(&session->kept, execute.portal);

    if (portal == NULL)
        return fail_no_portal(session, execute.portal, err);
    TRY(check_transaction(session, portal->prepared, err));
    if (!is_query(portal->prepared))
        return session_run_utility(session, portal->prepared->utility, err);
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

    Prepared *prepared = target.kind == 'S' ? kept_statement(&session->kept, target.name) : NULL;
    Portal *portal = target.kind == 'P' ? kept_portal(&session->kept, target.name) : NULL;

    if (prepared != NULL)
        kept_drop_statement(&session->kept, prepared);
    if (portal != NULL)
        kept_drop_portal(&session->kept, portal);
    wire_put_bare(&session->peer.out, WIRE_CLOSE_COMPLETE);
    return true;
}

static void
handle_sync(QuerySession *session)
{
    session->skip_to_sync = false;
    if (session->status == 'I') {
        kept_drop_portals(&session->kept);
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
    send_notices(session);
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
            session_say_fatal(session, SQLSTATE_PROTOCOL_VIOLATION, err.msg);
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
        session_say_fatal(session, SQLSTATE_PROTOCOL_VIOLATION, "invalid frontend message type");
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
                session_say_fatal(session, SQLSTATE_SHUTDOWN,
                                  "terminating connection due to administrator command");
            else
                session_say_fatal(session, SQLSTATE_PROTOCOL_VIOLATION, err.msg);
            break;
        }
        if (closed)
            return;
        handle_message(session, &message);
        if (wants_flush(message.type) && !peer_flush(&session->peer, &err))
            break;
    }
    if (cancel_is_set(session->open.cancel) && !session->leaving)
        session_say_fatal(session, SQLSTATE_SHUTDOWN,
                          "terminating connection due to administrator command");
}

void
session_run(QuerySession *session)
{
    Error err = {0};
    bool started = session_start(session, &err);

    if (!started && !session->peer.lost && err.kind == ERR_INPUT)
        session_say_fatal(session, SQLSTATE_PROTOCOL_VIOLATION, err.msg);
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
    kept_done(&session->kept);
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
