#include <strings.h>

#include "query/session_internal.h"

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

bool
session_set(QuerySession *session, Str name, Str value, Error *err)
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
        session_warn(session, SQLSTATE_ACTIVE_TRANSACTION,
                     "there is already a transaction in progress");
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
        session_warn(session, SQLSTATE_NO_TRANSACTION, "there is no transaction in progress");
    kept_drop_portals(&session->kept);
    engine_end(&session->engine);
    session->status = 'I';
    return failed ? "ROLLBACK" : tag;
}

static bool
deallocate(QuerySession *session, Str name, Error *err)
{
    Prepared *prepared = kept_statement(&session->kept, name);

    if (name.len == 0) {
        kept_drop_all(&session->kept);
        return true;
    }
    if (prepared == NULL)
        return query_fail(&session->engine.failure, err, SQLSTATE_NO_STATEMENT,
                          "prepared statement \"%.*s\" does not exist", STR_ARG(name));
    kept_drop_statement(&session->kept, prepared);
    return true;
}

bool
session_run_utility(QuerySession *session, Utility utility, Error *err)
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
        TRY(session_set(session, utility.name, utility.value, err));
        break;
    case UTILITY_SHOW:
        TRY(show_setting(session, utility.name, err));
        break;
    case UTILITY_DEALLOCATE:
        TRY(deallocate(session, utility.name, err));
        break;
    case UTILITY_DISCARD:
        kept_drop_all(&session->kept);
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
