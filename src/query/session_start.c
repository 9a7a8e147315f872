#include "query/session_internal.h"

enum {
    STARTUP_WAIT_MS = 60 * 1000,
    CANCEL_KEY_SHORT = 4, /* bytes, protocol 3.0 */
};

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
        (void) !session_set(session, str_of(name), str_of(equals + 1), &ignored);
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
            (void) !session_set(session, setting.name, setting.value, &ignored);
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
        session_say_fatal(session, SQLSTATE_TOO_MANY_CONNECTIONS,
                          "sorry, too many clients already");
        return true;
    }
    if (is_replication(&startup)) {
        session_say_fatal(session, SQLSTATE_UNSUPPORTED, "this server has no replication");
        return true;
    }
    welcome(session, &startup);
    *out_ready = true;
    return true;
}

bool
session_start(QuerySession *session, Error *err)
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
