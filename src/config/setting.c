#include "config/setting.h"

#include <assert.h>
#include <ctype.h>

#include "config/distance.h"
#include "config/value.h"

#define OPTION(key, field, type, def, min, max, secret, doc)                                       \
    {key, def, min, max, doc, offsetof(Config, field), SETTING_##type, secret},

const Setting settings[SETTING_COUNT] = {
#include "config/options.h"
};

#undef OPTION

const TableOption table_options[TABLE_OPTION_COUNT] = {
    {"name", "text", "orders", "name of the table in the lake; default: as in Postgres"},
    {"key", "list", "[id]",
     "columns that identify a row, for a table whose replica identity does not say; default: the "
     "columns of the replica identity"},
    {"partition", "list", "[\"day(created_at)\", \"bucket[16](id)\"]",
     "partitions of the table in the lake: columns, or identity, bucket[N], truncate[N], year, "
     "month, day, hour or void of a column. When it changes, new files have the new partitions"},
    {"sort", "list", "[\"created_at desc\", \"id\"]",
     "order of the rows within a data file, and default sort order of the table in the lake: "
     "columns, or transforms as for partition but void, each with asc or desc and nulls first or "
     "nulls last; without these ascending, and NULLs first ascending, last descending. When it "
     "changes, new files have the new order"},
    {"columns", "mapping", "{price: {cast: \"decimal(18,4)\"}}",
     "another type in the lake: anything may become string; smallint and integer long, double or "
     "decimal(p,s); bigint and numeric decimal(p,s); real double; time time; arrays json. A value "
     "that does not fit exactly is a reject. When it changes, the table is copied again unless "
     "Iceberg can widen the column"},
};

const Setting *
setting_find(Str key)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (str_eqc(key, settings[i].key))
            return &settings[i];
    return NULL;
}

bool
setting_is_group(Str key)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (str_starts(str_of(settings[i].key), key) && settings[i].key[key.len] == '.')
            return true;
    return false;
}

/* Of "sink.iceberg.s3.region" also "sink", "sink.iceberg" and "sink.iceberg.s3" are candidates:
 * whole groups are misspelled too. */
static Str
nearest_part(Str key, Str whole, size_t *distance_max)
{
    Str best = STR_NULL;

    for (size_t i = 0; i <= whole.len; i++) {
        Str part = {.ptr = whole.ptr, .len = i};

        if (i < whole.len && whole.ptr[i] != '.')
            continue;

        size_t distance = distance_between(key, part);

        if (distance < *distance_max) {
            best = part;
            *distance_max = distance;
        }
    }
    return best;
}

/* The end of one key only: "warehouse", "iceberg.warehouse". */
static Str
key_with_end(Str key)
{
    Str found = STR_NULL;

    for (size_t i = 0; i < SETTING_COUNT; i++) {
        Str whole = str_of(settings[i].key);

        if (whole.len <= key.len || !str_ends(whole, key) ||
            whole.ptr[whole.len - key.len - 1] != '.')
            continue;
        if (found.ptr != NULL)
            return STR_NULL;
        found = whole;
    }
    return found;
}

Str
setting_nearest(Str key)
{
    Str best = STR_NULL;
    size_t distance_max = distance_limit(key) + 1;

    for (size_t i = 0; i < SETTING_COUNT; i++) {
        Str part = nearest_part(key, str_of(settings[i].key), &distance_max);

        if (part.ptr != NULL)
            best = part;
    }
    return best.ptr != NULL ? best : key_with_end(key);
}

const TableOption *
table_option_nearest(Str name)
{
    for (size_t i = 0; i < TABLE_OPTION_COUNT; i++)
        if (distance_between(name, str_of(table_options[i].name)) <= distance_limit(name))
            return &table_options[i];
    return NULL;
}

const char *
setting_variable(Arena *arena, const Setting *setting)
{
    char *name = arena_printf(arena, "WALBERG_%s", setting->key);

    for (char *p = name; *p != '\0'; p++)
        if (*p == '.')
            *p = '_';
        else
            *p = (char) toupper((unsigned char) *p);
    return name;
}

/* "record|park" -> "record, park" */
static const char *
words_text(Arena *arena, const char *words)
{
    AUTO_BUF Buf out = {0};

    for (const char *p = words; *p != '\0'; p++)
        if (*p == '|')
            buf_cstr(&out, ", ");
        else
            buf_byte(&out, (uint8_t) *p);
    return arena_strdup(arena, buf_text(&out));
}

const char *
setting_type_text(Arena *arena, const Setting *setting)
{
    switch (setting->type) {
    case SETTING_STRING:
        return "text";
    case SETTING_LIST:
        return "list";
    case SETTING_INT:
        return "whole number";
    case SETTING_BOOL:
        return "true or false";
    case SETTING_DURATION:
        return "duration";
    case SETTING_SIZE:
        return "size";
    case SETTING_ENUM:
        if (strchr(setting->min, '|') == NULL)
            return arena_printf(arena, "only %s", setting->min);
        return arena_printf(arena, "one of %s", words_text(arena, setting->min));
    }
    return "?";
}

const char **
setting_string(const Setting *setting, Config *config)
{
    assert(setting->type == SETTING_STRING || setting->type == SETTING_ENUM);
    return (const char **) (void *) ((char *) config + setting->offset);
}

static bool
parse_number(const Setting *setting, Str text, int64_t *out_number, Error *err)
{
    if (setting->type == SETTING_DURATION)
        return value_duration(text, out_number, err);
    if (setting->type == SETTING_SIZE)
        return value_size(text, out_number, err);
    return value_int(text, out_number, err);
}

static bool
store_number(const Setting *setting, Config *config, Str text, Error *err)
{
    int64_t number = 0;
    int64_t limit = 0;
    Error ignored = {0};

    TRY(parse_number(setting, text, &number, err));
    if (setting->min != NULL && parse_number(setting, str_of(setting->min), &limit, &ignored) &&
        number < limit)
        return FAIL(err, ERR_INPUT, "%s is less than the minimum %s", text.ptr, setting->min);
    if (setting->max != NULL && parse_number(setting, str_of(setting->max), &limit, &ignored) &&
        number > limit)
        return FAIL(err, ERR_INPUT, "%s is more than the maximum %s", text.ptr, setting->max);
    *(int64_t *) (void *) ((char *) config + setting->offset) = number;
    return true;
}

static bool
store_word(const Setting *setting, Config *config, Arena *arena, Str text, Error *err)
{
    assert(setting->min != NULL);
    for (const char *word = setting->min; word != NULL;) {
        const char *bar = strchr(word, '|');
        Str known = {.ptr = word, .len = bar == NULL ? strlen(word) : (size_t) (bar - word)};

        if (str_eq(known, text)) {
            *setting_string(setting, config) = arena_str(arena, known).ptr;
            return true;
        }
        word = bar == NULL ? NULL : bar + 1;
    }
    if (strchr(setting->min, '|') == NULL)
        return FAIL(err, ERR_INPUT, "\"%.60s\" is not the only choice, %s", text.ptr, setting->min);
    return FAIL(err, ERR_INPUT, "\"%.60s\" is not %s", text.ptr, setting_type_text(arena, setting));
}

bool
setting_list(Arena *arena, const YamlNode *value, StrList *out_list, Error *err)
{
    YamlNode alone = *value; /* one text counts as a list of one */
    const YamlNode *first = &alone;
    size_t count = 0;

    alone.next = NULL;
    if (value->kind == YAML_MAP)
        return FAIL(err, ERR_INPUT, "wants a list, not a mapping");
    if (value->kind == YAML_LIST)
        first = value->first;
    for (const YamlNode *item = first; item != NULL; item = item->next)
        count++;

    StrList list = {.items = ARENA_ARRAY(arena, Str, count + 1)};

    for (const YamlNode *item = first; item != NULL; item = item->next) {
        if (item->kind != YAML_SCALAR || item->text.len == 0)
            return FAIL(err, ERR_INPUT, "item %zu of the list is not text", list.count + 1);
        list.items[list.count++] = item->text;
    }
    *out_list = list;
    return true;
}

static bool
store_scalar(const Setting *setting, Config *config, Arena *arena, Str text, Error *err)
{
    switch (setting->type) {
    case SETTING_STRING:
        return value_resolve(arena, text, setting_string(setting, config), err);
    case SETTING_BOOL:
        return value_bool(text, (bool *) ((char *) config + setting->offset), err);
    case SETTING_ENUM:
        return store_word(setting, config, arena, text, err);
    case SETTING_INT:
    case SETTING_DURATION:
    case SETTING_SIZE:
        return store_number(setting, config, text, err);
    case SETTING_LIST:
        break;
    }
    return FAIL(err, ERR_BUG, "%s is not a scalar", setting->key);
}

bool
setting_store(const Setting *setting, Config *config, Arena *arena, const YamlNode *value,
              Error *err)
{
    if (yaml_is_null(value)) {
        setting_store_default(setting, config, arena);
        return true;
    }
    if (yaml_is_empty(value))
        return FAIL(err, ERR_INPUT, "has no value\nhint: null stands for the built-in value");
    if (setting->type == SETTING_LIST)
        return setting_list(arena, value, (StrList *) (void *) ((char *) config + setting->offset),
                            err);
    if (value->kind != YAML_SCALAR)
        return FAIL(err, ERR_INPUT, "wants %s, not a %s",
                    setting->type == SETTING_STRING ? "text" : "a single value",
                    value->kind == YAML_LIST ? "list" : "mapping");
    return store_scalar(setting, config, arena, value->text, err);
}

void
setting_store_default(const Setting *setting, Config *config, Arena *arena)
{
    Error err = {0};

    if (setting->type == SETTING_STRING || setting->type == SETTING_ENUM)
        *setting_string(setting, config) = setting->def;
    else if (setting->type == SETTING_LIST)
        *(StrList *) (void *) ((char *) config + setting->offset) = (StrList){0};
    if (setting->def == NULL)
        return;

    bool ok = setting_store(setting, config, arena, yaml_scalar(arena, setting->def), &err);

    assert(ok); /* options.h contradicts itself */
    (void) ok;
}
