#include "query/settings.h"

#include <stdlib.h>
#include <strings.h>

/* FIXED: cannot be set. PINNED: can be set to what it is already, because everything is printed
 * that way. FREE: remembered and shown, of no effect. */
typedef enum SettingMode { FIXED, PINNED, FREE } SettingMode;

typedef struct SettingRow {
    const char *name;
    SettingMode mode;
    bool reported; /* ParameterStatus; PostgreSQL documentation, "Asynchronous Operations" */
    const char *value;
    const char *about;
} SettingRow;

static const SettingRow rows[] = {
    {"application_name", FREE, true, "", "name of the client"},
    {"bytea_output", PINNED, false, "hex", "output format of bytea"},
    {"client_encoding", PINNED, true, "UTF8", "encoding of the client"},
    {"client_min_messages", FREE, false, "notice", "least important messages sent"},
    {"DateStyle", PINNED, true, "ISO, MDY", "format of dates"},
    {"default_transaction_isolation", FREE, false, "repeatable read", "see transaction_isolation"},
    {"default_transaction_read_only", FREE, true, "on", "see transaction_read_only"},
    {"extra_float_digits", FREE, false, "1", "floats are always printed in full"},
    {"idle_in_transaction_session_timeout", FREE, false, "0", "of no effect"},
    {"in_hot_standby", FIXED, true, "off", "whether this is a standby"},
    {"integer_datetimes", FIXED, true, "on", "times are 64-bit integers"},
    {"IntervalStyle", PINNED, true, "postgres", "format of intervals"},
    {"is_superuser", FIXED, true, "off", "whether the user is a superuser"},
    {"jit", FREE, false, "off", "of no effect"},
    {"lc_collate", FIXED, false, "C", "order of strings"},
    {"lc_ctype", FIXED, false, "C.UTF-8", "classes of characters"},
    {"lc_messages", FREE, false, "C", "language of messages"},
    {"lc_monetary", FREE, false, "C", "format of money"},
    {"lc_numeric", FREE, false, "C", "format of numbers"},
    {"lc_time", FREE, false, "C", "format of dates in words"},
    {"lock_timeout", FREE, false, "0", "of no effect"},
    {"max_identifier_length", FIXED, false, "63", "length of identifiers"},
    {"max_index_keys", FIXED, false, "32", "columns of an index"},
    {"row_security", FREE, false, "on", "of no effect"},
    {"search_path", FREE, false, "\"$user\", public", "schemas of names without one"},
    {"server_encoding", FIXED, true, "UTF8", "encoding of the tables"},
    {"server_version", FIXED, true, "16.0 (walberg " WALBERG_VERSION ")",
     "version of Postgres that is spoken"},
    {"server_version_num", FIXED, false, "160000", "the same as a number"},
    {"session_authorization", FIXED, true, "walberg", "the user"},
    {"standard_conforming_strings", PINNED, true, "on", "backslashes in strings are backslashes"},
    {"statement_timeout", FREE, false, "0", "a statement is cancelled after so long"},
    {"synchronous_commit", FREE, false, "on", "of no effect"},
    {"TimeZone", PINNED, true, "UTC", "zone in which times are shown"},
    {"transaction_isolation", FREE, false, "repeatable read",
     "a transaction sees one state of all tables"},
    {"transaction_read_only", FREE, false, "on", "nothing can be written"},
    {"transaction_timeout", FREE, false, "0", "of no effect"},
    {"work_mem", FREE, false, "4MB", "of no effect"},
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0], VALUE_MAX = 8192 };

struct Settings {
    char *values[ROW_COUNT]; /* NULL: as built in */
    char *pinned[ROW_COUNT]; /* at the start of the session */
};

Settings *
settings_new(void)
{
    return xcalloc(1, sizeof(Settings));
}

void
settings_free(Settings *settings)
{
    if (settings == NULL)
        return;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        free(settings->values[i]);
        free(settings->pinned[i]);
    }
    free(settings);
}

static void
assign(char **slot, const char *value)
{
    free(*slot);
    *slot = value == NULL ? NULL : xstrdup(value);
}

void
settings_reset(Settings *settings)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        assign(&settings->values[i], settings->pinned[i]);
}

void
settings_pin(Settings *settings)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        assign(&settings->pinned[i], settings->values[i]);
}

static size_t
find(Str name)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strlen(rows[i].name) == name.len && strncasecmp(rows[i].name, name.ptr, name.len) == 0)
            return i;
    return ROW_COUNT;
}

/* Letters and digits only, in lower case: "UTF-8", "utf8" and "UTF8" are one. */
static bool
same_word(const char *a, const char *b)
{
    for (;;) {
        while (*a != '\0' && strchr("-_ '\"", *a) != NULL)
            a++;
        while (*b != '\0' && strchr("-_ '\"", *b) != NULL)
            b++;
        if (*a == '\0' || *b == '\0')
            return *a == *b;
        if ((*a | 0x20) != (*b | 0x20))
            return false;
        a++;
        b++;
    }
}

/* Other spellings of the one value that a PINNED setting has. */
static bool
is_same_value(const SettingRow *row, const char *value)
{
    static const struct {
        const char *name;
        const char *value;
    } spellings[] = {
        {"client_encoding", "unicode"},
        {"DateStyle", "ISO"},
        {"DateStyle", "ISO,MDY"},
        {"DateStyle", "ISO,DMY"},
        {"DateStyle", "ISO,YMD"},
        {"TimeZone", "GMT"},
        {"TimeZone", "Etc/UTC"},
        {"TimeZone", "Z"},
        {"TimeZone", "0"},
        {"TimeZone", "Etc/GMT"},
        {"TimeZone", "Zulu"},
        {"TimeZone", "+00:00"},
        {"standard_conforming_strings", "true"},
        {"standard_conforming_strings", "1"},
    };

    if (same_word(row->value, value))
        return true;
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
        if (strcmp(spellings[i].name, row->name) == 0 && same_word(spellings[i].value, value))
            return true;
    return false;
}

/* A number of milliseconds, or with a unit. */
static bool
parse_ms(const char *text, int64_t *out_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}};

    char *end;
    long long number = strtoll(text, &end, 10);

    while (*end == ' ')
        end++;
    if (end == text || number < 0 || number > INT32_MAX)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].unit, end) == 0) {
            *out_ms = number * units[i].ms;
            return true;
        }
    return false;
}

static bool
check_value(const SettingRow *row, const char *value, QueryFailure *failure, Error *err)
{
    int64_t ms;

    if (row->mode == FIXED)
        return query_fail(failure, err, "55P02", "parameter \"%s\" cannot be changed", row->name);
    if (row->mode == PINNED && !is_same_value(row, value))
        return query_fail(failure, err, SQLSTATE_UNSUPPORTED,
                          "%s can only be \"%s\" here, not \"%s\"%s", row->name, row->value, value,
                          strcmp(row->name, "TimeZone") == 0
                              ? "\nhint: write  x AT TIME ZONE 'Europe/Paris'  in the query"
                              : "");
    if (strcmp(row->name, "statement_timeout") == 0 && !parse_ms(value, &ms))
        return query_fail(failure, err, SQLSTATE_INVALID_PARAMETER,
                          "invalid value for parameter \"%s\": \"%s\"", row->name, value);
    if (strlen(value) > VALUE_MAX)
        return query_fail(failure, err, SQLSTATE_INVALID_PARAMETER,
                          "value of parameter \"%s\" is too long", row->name);
    return true;
}

bool
settings_set(Settings *settings, Str name, Str value, bool *out_report, QueryFailure *failure,
             Error *err)
{
    size_t i = find(name);
    AUTO_BUF Buf text = {0};

    *out_report = false;
    if (i == ROW_COUNT && memchr(name.ptr, '.', name.len) != NULL)
        return true; /* somebody's own, as Postgres has it */
    if (i == ROW_COUNT)
        return query_fail(failure, err, SQLSTATE_UNDEFINED_OBJECT,
                          "unrecognized configuration parameter \"%.*s\"", STR_ARG(name));
    if (value.ptr == NULL) {
        assign(&settings->values[i], settings->pinned[i]);
    } else {
        buf_str(&text, value);
        TRY(check_value(&rows[i], buf_text(&text), failure, err));
        if (rows[i].mode == FREE)
            assign(&settings->values[i], buf_text(&text));
    }
    *out_report = rows[i].reported;
    return true;
}

static const char *
value_of(const Settings *settings, size_t i)
{
    return settings->values[i] == NULL ? rows[i].value : settings->values[i];
}

const char *
settings_get(const Settings *settings, Str name)
{
    size_t i = find(name);

    return i == ROW_COUNT ? NULL : value_of(settings, i);
}

size_t
settings_count(void)
{
    return ROW_COUNT;
}

const char *
settings_name(size_t i)
{
    return rows[i].name;
}

bool
settings_is_reported(size_t i)
{
    return rows[i].reported;
}

const char *
settings_about(size_t i)
{
    return rows[i].about;
}

int64_t
settings_timeout_ms(const Settings *settings)
{
    int64_t ms = 0;

    (void) parse_ms(settings_get(settings, STR("statement_timeout")), &ms);
    return ms;
}
