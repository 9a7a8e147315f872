/* log.h - one line per event, for a DBA: logfmt or JSON on stderr.
 *
 *     log_info("committed", LOG_STR("table", name), LOG_INT("rows", rows));
 *     2026-11-30T10:00:00.123Z info committed table=public.orders rows=1200
 *
 * An event is a few plain words, its facts are fields. INFO tells the story (connected, slot made,
 * copy progress, committed, parked, resumed); nothing per row; secrets never. Only the top of a
 * thread logs an Error, once (log_error_event). Thread safe: one write(2) per line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/error.h"
#include "base/str.h"

#include <stdint.h>

typedef enum LogLevel { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } LogLevel;

typedef enum LogFormat { LOG_FORMAT_TEXT, LOG_FORMAT_JSON } LogFormat;

typedef struct LogField {
    const char *key; /* NULL ends the list */

    enum { LOG_FIELD_STR, LOG_FIELD_INT, LOG_FIELD_MS } kind;

    Str str;
    int64_t number;
} LogField;

#define LOG_STR(k, v)  ((LogField){.key = (k), .kind = LOG_FIELD_STR, .str = str_of(v)})
#define LOG_VIEW(k, v) ((LogField){.key = (k), .kind = LOG_FIELD_STR, .str = (v)})
#define LOG_INT(k, v)  ((LogField){.key = (k), .kind = LOG_FIELD_INT, .number = (int64_t) (v)})
/* A duration in milliseconds: took=84ms in text, a number in JSON. */
#define LOG_MS(k, v) ((LogField){.key = (k), .kind = LOG_FIELD_MS, .number = (int64_t) (v)})

void log_configure(LogLevel level, LogFormat format);
bool log_enabled(LogLevel level);
void log_event(LogLevel level, const char *event, const LogField *fields);

#define LOG_FIELDS(...) ((const LogField[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})
#define log_at(level, event, ...)                                                                  \
    do {                                                                                           \
        if (log_enabled(level))                                                                    \
            log_event((level), (event), LOG_FIELDS(__VA_ARGS__));                                  \
    } while (0)
#define log_error(event, ...) log_at(LOG_ERROR, event __VA_OPT__(, ) __VA_ARGS__)
#define log_warn(event, ...)  log_at(LOG_WARN, event __VA_OPT__(, ) __VA_ARGS__)
#define log_info(event, ...)  log_at(LOG_INFO, event __VA_OPT__(, ) __VA_ARGS__)
#define log_debug(event, ...) log_at(LOG_DEBUG, event __VA_OPT__(, ) __VA_ARGS__)

#endif
