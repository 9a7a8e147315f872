/* settings.h - the settings of a session, as Postgres has them: shown, and where harmless set. */
#ifndef QUERY_SETTINGS_H
#define QUERY_SETTINGS_H

#include "query/sqlstate.h"

typedef struct Settings Settings;

Settings *settings_new(void);
void settings_free(Settings *settings); /* NULL is fine */
/* RESET ALL: back to what settings_pin() kept. */
void settings_reset(Settings *settings);
/* What is set now is what RESET and DEFAULT mean: the values of the startup packet. */
void settings_pin(Settings *settings);

/* value.ptr == NULL: DEFAULT. Failures: 42704 unknown, 22023 bad value, 0A000 a value that would
 * change how results look, 55P02 fixed. *out_report: a ParameterStatus is due. */
bool settings_set(Settings *settings, Str name, Str value, bool *out_report, QueryFailure *failure,
                  Error *err) WARN_UNUSED;

/* NULL: there is no such setting. */
const char *settings_get(const Settings *settings, Str name);
/* For SHOW ALL and the reports at startup: names as Postgres spells them. */
size_t settings_count(void);
const char *settings_name(size_t i);
bool settings_is_reported(size_t i);
const char *settings_about(size_t i);

/* statement_timeout in milliseconds, 0: none. */
int64_t settings_timeout_ms(const Settings *settings);

#endif
