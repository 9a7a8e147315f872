#include "config/value.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/buf.h"

enum { SECRET_BYTES_MAX = 64 * 1024 };

typedef struct Unit {
    const char *name;
    int64_t factor;
} Unit;

static const Unit duration_units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {NULL, 0},
};
static const Unit size_units[] = {
    {"B", 1}, {"kB", 1LL << 10}, {"MB", 1LL << 20}, {"GB", 1LL << 30}, {"TB", 1LL << 40}, {NULL, 0},
};

/* Digits from *at on; false when there are none or they do not fit. */
static bool
take_digits(Str text, size_t *at, int64_t *out_number)
{
    int64_t number = 0;
    size_t start = *at;

    while (*at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9') {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, text.ptr[*at] - '0', &number))
            return false;
        (*at)++;
    }
    *out_number = number;
    return *at > start;
}

bool
value_int(Str text, int64_t *out_number, Error *err)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    size_t at = negative ? 1 : 0;
    int64_t number = 0;

    if (!take_digits(text, &at, &number) || at != text.len)
        return FAIL(err, ERR_INPUT, "\"%.60s\" is not a whole number", text.ptr);
    *out_number = negative ? -number : number;
    return true;
}

bool
value_bool(Str text, bool *out_bool, Error *err)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text.ptr, words[i]) == 0) {
            *out_bool = i % 2 == 1;
            return true;
        }
    return FAIL(err, ERR_INPUT, "\"%.60s\" is neither true nor false", text.ptr);
}

static bool
parse_with_unit(Str text, const Unit *units, const char *hint, int64_t *out_number, Error *err)
{
    size_t at = 0;
    int64_t number = 0;

    if (!take_digits(text, &at, &number))
        return FAIL(err, ERR_INPUT, "\"%.60s\" is not understood\nhint: %s", text.ptr, hint);
    if (at == text.len)
        return FAIL(err, ERR_INPUT, "%.60s has no unit\nhint: %s", text.ptr, hint);
    while (at < text.len && text.ptr[at] == ' ')
        at++;
    for (const Unit *unit = units; unit->name != NULL; unit++)
        if (strcmp(text.ptr + at, unit->name) == 0) {
            if (__builtin_mul_overflow(number, unit->factor, out_number))
                return FAIL(err, ERR_INPUT, "%.60s is too large", text.ptr);
            return true;
        }
    return FAIL(err, ERR_INPUT, "%.60s has the unknown unit \"%.20s\"\nhint: %s", text.ptr,
                text.ptr + at, hint);
}

bool
value_duration(Str text, int64_t *out_ms, Error *err)
{
    return parse_with_unit(text, duration_units, "durations are written 500ms, 10s, 5m or 1h",
                           out_ms, err);
}

bool
value_size(Str text, int64_t *out_bytes, Error *err)
{
    return parse_with_unit(text, size_units, "sizes are written 64kB, 128MB or 1GB", out_bytes,
                           err);
}

const char *
value_environment(const char *name)
{
    /* settings are loaded before any thread starts */
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe) */

    return value == NULL || value[0] == '\0' ? NULL : value;
}

static void
close_file(FILE **file)
{
    if (*file != NULL)
        fclose(*file);
}

bool
value_read_file(Arena *arena, const char *path, size_t bytes_max, Str *out_text, bool *out_found,
                Error *err)
{
    AUTO(close_file) FILE *file = fopen(path, "rbe");
    AUTO_BUF Buf text = {0};

    if (file == NULL && errno == ENOENT && out_found != NULL) {
        *out_found = false;
        return true;
    }
    if (file == NULL)
        return FAIL(err, ERR_INPUT, "cannot read %.300s: %m", path);
    for (;;) {
        buf_reserve(&text, 4096);

        size_t n = fread(text.ptr + text.len, 1, 4096, file);

        text.len += n;
        if (text.len > bytes_max)
            return FAIL(err, ERR_INPUT, "%.300s is larger than %zu bytes", path, bytes_max);
        if (n == 0)
            break;
    }
    if (ferror(file))
        return FAIL(err, ERR_INPUT, "cannot read %.300s: %m", path);
    *out_text = arena_str(arena, buf_view(&text));
    if (out_found != NULL)
        *out_found = true;
    return true;
}

static bool
resolve_file(Arena *arena, const char *path, const char **out_text, Error *err)
{
    Str text = STR_NULL;

    TRY(value_read_file(arena, path, SECRET_BYTES_MAX, &text, NULL, err));
    while (text.len > 0 && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
        text.len--;
    if (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL)
        return FAIL(err, ERR_INPUT, "%.300s holds a zero byte", path);
    *out_text = arena_str(arena, text).ptr;
    return true;
}

bool
value_resolve(Arena *arena, Str text, const char **out_text, Error *err)
{
    if (str_starts(text, STR("env:"))) {
        const char *name = text.ptr + 4;
        const char *value = name[0] == '\0' ? NULL : value_environment(name);

        if (value == NULL)
            return FAIL(err, ERR_INPUT, "the environment variable %.200s is not set", name);
        *out_text = arena_strdup(arena, value);
        return true;
    }
    if (str_starts(text, STR("file:")) && !str_starts(text, STR("file://")))
        return resolve_file(arena, text.ptr + 5, out_text, err);
    *out_text = arena_str(arena, text).ptr;
    return true;
}
