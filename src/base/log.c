#include "base/log.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json_writer.h"

static _Atomic LogLevel current_level = LOG_INFO;
static _Atomic LogFormat current_format = LOG_FORMAT_TEXT;
static const char *const level_names[] = {"error", "warn", "info", "debug"};

void
log_configure(LogLevel level, LogFormat format)
{
    atomic_store(&current_level, level);
    atomic_store(&current_format, format);
}

bool
log_enabled(LogLevel level)
{
    return level <= atomic_load(&current_level);
}

/* logfmt: a value with blanks, quotes, '=' or control characters, or that is not UTF-8, is quoted
 * like JSON. */
static void
put_text_value(Buf *out, Str value)
{
    bool plain = value.len > 0 && str_is_utf8(value);

    for (size_t i = 0; i < value.len && plain; i++) {
        unsigned char c = (unsigned char) value.ptr[i];

        plain = c > ' ' && c != '"' && c != '=' && c != '\\' && c != 0x7f;
    }
    if (plain)
        buf_str(out, value);
    else
        jw_put_string(out, value);
}

static void
put_text(Buf *out, LogLevel level, const char *event, const LogField *fields)
{
    char when[32];

    clock_format(clock_wall_us(), when, sizeof when);
    buf_printf(out, "%s %s %s", when, level_names[level], event);
    for (const LogField *field = fields; field->key != NULL; field++) {
        buf_printf(out, " %s=", field->key);
        if (field->kind == LOG_FIELD_STR)
            put_text_value(out, field->str);
        else
            buf_printf(out, "%" PRId64 "%s", field->number,
                       field->kind == LOG_FIELD_MS ? "ms" : "");
    }
}

static void
put_json(Buf *out, LogLevel level, const char *event, const LogField *fields)
{
    char when[32];
    JsonWriter json;

    clock_format(clock_wall_us(), when, sizeof when);
    jw_begin(&json, out);
    jw_object(&json);
    jw_key(&json, "time");
    jw_cstr(&json, when);
    jw_key(&json, "level");
    jw_cstr(&json, level_names[level]);
    jw_key(&json, "event");
    jw_cstr(&json, event);
    for (const LogField *field = fields; field->key != NULL; field++) {
        jw_key(&json, field->key);
        if (field->kind == LOG_FIELD_STR)
            jw_str(&json, field->str);
        else
            jw_int(&json, field->number);
    }
    jw_end(&json);
}

void
log_event(LogLevel level, const char *event, const LogField *fields)
{
    AUTO_BUF Buf line = {0};

    if (atomic_load(&current_format) == LOG_FORMAT_JSON)
        put_json(&line, level, event, fields);
    else
        put_text(&line, level, event, fields);
    buf_byte(&line, '\n');

    ssize_t written = write(STDERR_FILENO, line.ptr, line.len);

    (void) written; /* nowhere left to complain to */
}
