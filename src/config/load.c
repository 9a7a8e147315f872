/* load.c - file, environment, --set and arguments, one after the other, into a Config. */
#include "config/config.h"

#include <assert.h>
#include <stdlib.h>

#include "config/check.h"
#include "config/distance.h"
#include "config/pattern.h"
#include "config/setting.h"
#include "config/value.h"

typedef enum Layer { LAYER_FILE, LAYER_ENVIRONMENT, LAYER_SET, LAYER_ARGUMENT } Layer;

typedef struct Loader {
    Arena *arena;
    Config *config;
    Layer layer;
    const char *origin;                  /* the file, variable or argument */
    Buf rules;                           /* TableRule */
    const YamlNode *seen[SETTING_COUNT]; /* in the file */
} Loader;

extern char **environ;

static void
loader_done(Loader *loader)
{
    buf_done(&loader->rules);
}

/* Where a value was written, as messages begin with it. */
static const char *
place_text(const Loader *loader, const YamlNode *at, const char *key)
{
    if (at != NULL && at->key != NULL && yaml_is_empty(at))
        at = at->key; /* nothing stands where the value should be */
    switch (loader->layer) {
    case LAYER_FILE:
        assert(at != NULL); /* all that a file says has a place */
        return arena_printf(loader->arena, "%s:%d:%d: %s", loader->origin, at->line, at->column,
                            key);
    case LAYER_SET:
        return arena_printf(loader->arena, "--set %s", key);
    case LAYER_ENVIRONMENT:
    case LAYER_ARGUMENT:
        break;
    }
    return arena_strdup(loader->arena, loader->origin);
}

/* Put the place in front of a message about a value. */
static bool
wrap_place(const Loader *loader, const YamlNode *at, const char *key, Error *err)
{
    return WRAP(err, "%s", place_text(loader, at, key));
}

/* --- what is not known ----------------------------------------------------------------------- */

static bool
fail_unknown(const Loader *loader, const YamlNode *at, const char *key, const char *hint,
             Error *err)
{
    const char *text = hint == NULL ? "" : arena_printf(loader->arena, "\nhint: %s", hint);

    if (loader->layer == LAYER_FILE)
        return FAIL(err, ERR_INPUT, "%s:%d:%d: unknown setting \"%.100s\"%s", loader->origin,
                    at->line, at->column, key, text);
    return FAIL(err, ERR_INPUT, "--set %.100s: unknown setting%s", key, text);
}

/* A whole group may be misspelled: the first setting in it shows best what was meant. */
static bool
refuse_unknown(const Loader *loader, const char *key, const YamlNode *value, Error *err)
{
    const YamlNode *leaf = value;
    const char *leaf_key = key;

    while (leaf->kind == YAML_MAP && leaf->first != NULL) {
        leaf = leaf->first;
        leaf_key = arena_printf(loader->arena, "%s.%s", leaf_key, leaf->key->text.ptr);
    }
    if (leaf->kind != YAML_MAP) {
        value = leaf;
        key = leaf_key;
    }

    Str near = setting_nearest(str_of(key));
    const char *hint = near.ptr == NULL
                           ? NULL
                           : arena_printf(loader->arena, "did you mean \"%.*s\"?", STR_ARG(near));

    return fail_unknown(loader, value->key == NULL ? value : value->key, key, hint, err);
}

/* --- tables.PATTERN.OPTION ------------------------------------------------------------------- */

static bool
set_table_name(Arena *arena, TableRule *rule, const YamlNode *value, Error *err)
{
    if (value->kind != YAML_SCALAR || value->text.len == 0)
        return FAIL(err, ERR_INPUT, "wants the name of a table");
    rule->name = arena_str(arena, value->text).ptr;
    return true;
}

static bool
set_partition(Loader *loader, PartitionRule *rule, const YamlNode *value, const char *key,
              Error *err)
{
    const YamlNode *item = value->kind == YAML_LIST ? value->first : value;
    PartitionRule parsed = {.place = place_text(loader, value, key)};
    StrList texts;

    if (!setting_list(loader->arena, value, &texts, err))
        return wrap_place(loader, value, key, err);
    parsed.terms = ARENA_ARRAY(loader->arena, PartitionTerm, texts.count + 1);
    for (; parsed.count < texts.count; item = item->next, parsed.count++)
        if (!partition_term_parse(loader->arena, texts.items[parsed.count],
                                  &parsed.terms[parsed.count], err))
            return wrap_place(loader, item, key, err);
    *rule = parsed;
    return true;
}

static bool
set_sort(Loader *loader, SortRule *rule, const YamlNode *value, const char *key, Error *err)
{
    const YamlNode *item = value->kind == YAML_LIST ? value->first : value;
    SortRule parsed = {.place = place_text(loader, value, key)};
    StrList texts;

    if (!setting_list(loader->arena, value, &texts, err))
        return wrap_place(loader, value, key, err);
    parsed.terms = ARENA_ARRAY(loader->arena, SortTerm, texts.count + 1);
    for (; parsed.count < texts.count; item = item->next, parsed.count++)
        if (!sort_term_parse(loader->arena, texts.items[parsed.count], &parsed.terms[parsed.count],
                             err))
            return wrap_place(loader, item, key, err);
    *rule = parsed;
    return true;
}

/* {COLUMN: {cast: TYPE}} */
static bool
set_cast(Loader *loader, CastRule *cast, const YamlNode *column, const char *key, Error *err)
{
    const YamlNode *option = column->first;
    const char *place = arena_printf(loader->arena, "%s.%.*s", key, STR_ARG(column->key->text));

    if (column->kind != YAML_MAP || option == NULL || option->next != NULL ||
        !str_eqc(option->key->text, "cast") || option->kind != YAML_SCALAR) {
        (void) FAIL(err, ERR_INPUT, "wants {cast: TYPE}");
        return wrap_place(loader, column, place, err);
    }
    place = arena_printf(loader->arena, "%s.cast", place);
    if (!cast_parse(loader->arena, option->text, &cast->type, err))
        return wrap_place(loader, option, place, err);
    cast->column = arena_str(loader->arena, column->key->text);
    cast->text = arena_str(loader->arena, option->text);
    cast->place = place_text(loader, option, place);
    return true;
}

static bool
set_columns(Loader *loader, TableRule *rule, const YamlNode *value, const char *key, Error *err)
{
    size_t count = 0;

    if (value->kind != YAML_MAP) {
        (void) FAIL(err, ERR_INPUT,
                    "wants a mapping of columns: {price: {cast: \"decimal(18,4)\"}}");
        return wrap_place(loader, value, key, err);
    }
    for (const YamlNode *column = value->first; column != NULL; column = column->next)
        count++;
    rule->casts = ARENA_ARRAY(loader->arena, CastRule, count);
    for (const YamlNode *column = value->first; column != NULL; column = column->next)
        TRY(set_cast(loader, &rule->casts[rule->cast_count++], column, key, err));
    return true;
}

static bool
set_table_option(Loader *loader, TableRule *rule, Str option, const YamlNode *value, Error *err)
{
    const char *key =
        arena_printf(loader->arena, "tables.%s.%.*s", rule->pattern.ptr, STR_ARG(option));

    if (yaml_is_null(value))
        return true;
    if (str_eqc(option, "name"))
        return set_table_name(loader->arena, rule, value, err) ||
               wrap_place(loader, value, key, err);
    if (str_eqc(option, "key"))
        return setting_list(loader->arena, value, &rule->key, err) ||
               wrap_place(loader, value, key, err);
    if (str_eqc(option, "partition"))
        return set_partition(loader, &rule->partition, value, key, err);
    if (str_eqc(option, "sort"))
        return set_sort(loader, &rule->sort, value, key, err);
    if (str_eqc(option, "columns"))
        return set_columns(loader, rule, value, key, err);

    const TableOption *near = table_option_nearest(option);

    return fail_unknown(loader, value->key == NULL ? value : value->key, key,
                        near == NULL
                            ? "the settings of a table are name, key, partition, sort and columns"
                            : arena_printf(loader->arena, "did you mean \"%s\"?", near->name),
                        err);
}

static bool
new_rule(Loader *loader, Str pattern, const YamlNode *at, TableRule *out_rule, Error *err)
{
    if (!pattern_check(pattern, err))
        return wrap_place(loader, at, arena_printf(loader->arena, "tables.%.*s", STR_ARG(pattern)),
                          err);
    *out_rule = (TableRule){.pattern = arena_str(loader->arena, pattern)};
    return true;
}

/* tables: {PATTERN: {OPTION: value}} */
static bool
apply_tables(Loader *loader, const YamlNode *tables, Error *err)
{
    if (yaml_is_empty(tables) || yaml_is_null(tables))
        return true;
    if (tables->kind != YAML_MAP) {
        (void) FAIL(err, ERR_INPUT, "wants a mapping of patterns");
        return wrap_place(loader, tables, "tables", err);
    }
    for (const YamlNode *entry = tables->first; entry != NULL; entry = entry->next) {
        TableRule rule = {0};

        TRY(new_rule(loader, entry->key->text, entry->key, &rule, err));
        if (entry->kind != YAML_MAP && !yaml_is_empty(entry) && !yaml_is_null(entry)) {
            (void) FAIL(err, ERR_INPUT,
                        "wants a mapping of name, key, partition, sort and columns");
            return wrap_place(loader, entry,
                              arena_printf(loader->arena, "tables.%s", rule.pattern.ptr), err);
        }
        for (const YamlNode *option = entry->first; option != NULL; option = option->next)
            TRY(set_table_option(loader, &rule, option->key->text, option, err));
        BUF_PUSH(&loader->rules, TableRule, rule);
    }
    return true;
}

/* "tables.public.orders.key": the last part is the option, dots before it are the pattern's. */
static bool
apply_table_path(Loader *loader, const char *path, const YamlNode *value, Error *err)
{
    const char *rest = path + strlen("tables.");
    const char *dot = strrchr(rest, '.');
    TableRule rule = {0};

    if (dot == NULL) {
        (void) FAIL(err, ERR_INPUT,
                    "names no option of a table\nhint: write tables.PATTERN.OPTION: "
                    "tables.public.orders.key");
        return wrap_place(loader, value, path, err);
    }
    TRY(new_rule(loader, (Str){.ptr = rest, .len = (size_t) (dot - rest)}, value, &rule, err));
    TRY(set_table_option(loader, &rule, str_of(dot + 1), value, err));
    BUF_PUSH(&loader->rules, TableRule, rule);
    return true;
}

/* --- settings -------------------------------------------------------------------------------- */

static bool
apply_setting(Loader *loader, const Setting *setting, const YamlNode *value, Error *err)
{
    const YamlNode **seen = &loader->seen[setting - settings];

    if (loader->layer == LAYER_FILE && *seen != NULL) {
        (void) FAIL(err, ERR_INPUT, "is set twice, first on line %d", (*seen)->line);
        return wrap_place(loader, value->key, setting->key, err);
    }
    *seen = value->key;
    if (!setting_store(setting, loader->config, loader->arena, value, err) ||
        !check_setting(setting->key, loader->config, err))
        return wrap_place(loader, value, setting->key, err);
    return true;
}

/* Recursion follows the groups of options.h, not the input: three levels. */
static bool
apply_key(Loader *loader, const char *key, const YamlNode *value, Error *err)
{
    const Setting *setting = setting_find(str_of(key));

    if (setting != NULL)
        return apply_setting(loader, setting, value, err);
    if (strcmp(key, "tables") == 0)
        return apply_tables(loader, value, err);
    if (str_starts(str_of(key), STR("tables.")))
        return apply_table_path(loader, key, value, err);
    if (!setting_is_group(str_of(key)))
        return refuse_unknown(loader, key, value, err);
    if (yaml_is_empty(value))
        return true; /* "commit:" with all its settings commented out */
    if (value->kind != YAML_MAP) {
        (void) FAIL(err, ERR_INPUT, "is a group of settings, not a setting");
        return wrap_place(loader, value, key, err);
    }
    for (const YamlNode *child = value->first; child != NULL; child = child->next)
        TRY(apply_key(loader, arena_printf(loader->arena, "%s.%s", key, child->key->text.ptr),
                      child, err));
    return true;
}

static bool
load_file(Loader *loader, const char *file, Error *err)
{
    const char *path = file == NULL ? "walberg.yaml" : file;
    bool found = true;
    Str text = STR_NULL;
    YamlNode *root = NULL;

    if (!value_read_file(loader->arena, path, YAML_BYTES_MAX, &text, file == NULL ? &found : NULL,
                         err))
        return false;
    if (!found)
        return true;
    loader->layer = LAYER_FILE;
    loader->origin = path;
    loader->config->file = arena_strdup(loader->arena, path);
    TRY(yaml_parse(loader->arena, text, path, &root, err));
    if (root == NULL || yaml_is_empty(root) || yaml_is_null(root))
        return true;
    if (root->kind != YAML_MAP)
        return FAIL(err, ERR_INPUT, "%s:%d:%d: settings are a mapping of names to values", path,
                    root->line, root->column);
    for (const YamlNode *child = root->first; child != NULL; child = child->next)
        TRY(apply_key(loader, child->key->text.ptr, child, err));
    return true;
}

/* --- environment ----------------------------------------------------------------------------- */

/* WALBERG_COMMIT_ROWS lies in the group WALBERG_COMMIT_. */
static bool
in_group_of(Str name, const char *known)
{
    const char *end = strchr(known + strlen("WALBERG_"), '_');

    return end != NULL && str_starts(name, (Str){.ptr = known, .len = (size_t) (end - known) + 1});
}

/* A variable that looks like one of ours is a slip; others are left alone, because container
 * platforms name their own after a service called walberg (WALBERG_SERVICE_HOST, WALBERG_PORT). */
static bool
refuse_misspelled_variable(const Loader *loader, Str name, Error *err)
{
    const char *near = NULL;
    size_t near_distance = 3;
    bool ours = false;

    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const char *known = setting_variable(loader->arena, &settings[i]);
        size_t distance = distance_between(name, str_of(known));

        if (str_eqc(name, known))
            return true;
        if (strchr(settings[i].key, '.') != NULL)
            ours = ours || in_group_of(name, known);
        if (distance < near_distance) {
            near = known;
            near_distance = distance;
        }
    }
    if (near != NULL)
        return FAIL(err, ERR_INPUT, "%.*s: unknown setting\nhint: did you mean %s?", STR_ARG(name),
                    near);
    return !ours || FAIL(err, ERR_INPUT, "%.*s: unknown setting", STR_ARG(name));
}

static bool
check_variable_names(const Loader *loader, Error *err)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *equals = strchr(*entry, '=');
        Str name = {.ptr = *entry, .len = equals == NULL ? 0 : (size_t) (equals - *entry)};

        if (str_starts(name, STR("WALBERG_")))
            TRY(refuse_misspelled_variable(loader, name, err));
    }
    return true;
}

/* A list is YAML ("[a, b]"); everything else is taken as it is, so that no secret needs quotes. */
static bool
load_variable(Loader *loader, const Setting *setting, const char *text, Error *err)
{
    YamlNode *value = yaml_scalar(loader->arena, text);

    if (setting->type == SETTING_LIST && text[0] == '[' &&
        !yaml_parse(loader->arena, str_of(text), NULL, &value, err))
        return wrap_place(loader, value, setting->key, err);
    return apply_setting(loader, setting, value, err);
}

static bool
load_environment(Loader *loader, Error *err)
{
    loader->layer = LAYER_ENVIRONMENT;
    TRY(check_variable_names(loader, err));
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        loader->origin = setting_variable(loader->arena, &settings[i]);

        const char *text = value_environment(loader->origin);

        if (text != NULL)
            TRY(load_variable(loader, &settings[i], text, err));
    }
    return true;
}

/* --- command line ---------------------------------------------------------------------------- */

/* What is no scalar in YAML ("{pipeline}_{schema}") is a text as it stands. */
static bool
parse_set(Loader *loader, const char *key, const char *text, YamlNode **out_value, Error *err)
{
    const Setting *setting = setting_find(str_of(key));
    bool is_text = setting != NULL && setting->type == SETTING_STRING && str_is_utf8(str_of(text));
    bool parsed = yaml_parse(loader->arena, str_of(text), NULL, out_value, err);

    if (is_text && (!parsed || (*out_value != NULL && (*out_value)->kind != YAML_SCALAR)))
        *out_value = yaml_scalar(loader->arena, text);
    return parsed || is_text;
}

static bool
load_set(Loader *loader, const char *text, Error *err)
{
    const char *equals = strchr(text, '=');
    YamlNode *value = NULL;

    loader->layer = LAYER_SET;
    if (equals == NULL || equals == text)
        return FAIL(err, ERR_INPUT, "--set %.100s: wants KEY=VALUE\nhint: -s commit.interval=2s",
                    text);

    const char *key = arena_printf(loader->arena, "%.*s", (int) (equals - text), text);

    if (!parse_set(loader, key, equals + 1, &value, err))
        return wrap_place(loader, NULL, key, err);
    if (value == NULL) {
        value = yaml_scalar(loader->arena, "");
        value->plain = true;
    }
    return apply_key(loader, key, value, err);
}

static bool
load_argument(Loader *loader, const char *name, const char *key, const char *text, Error *err)
{
    if (text == NULL)
        return true;
    loader->layer = LAYER_ARGUMENT;
    loader->origin = name;
    return apply_setting(loader, setting_find(str_of(key)), yaml_scalar(loader->arena, text), err);
}

/* --- what others have set already ------------------------------------------------------------ */

static void
fall_back(Arena *arena, const char **value, const char *name)
{
    const char *text = *value != NULL ? NULL : value_environment(name);

    if (text != NULL)
        *value = arena_strdup(arena, text);
}

/* The names and their order are those of AWS' SDKs ("Settings reference"). A session token belongs
 * to the key it came with, so it is taken only together with it. */
static void
fall_back_to_aws(Config *config, Arena *arena)
{
    if (config->s3_access_key_id == NULL)
        fall_back(arena, &config->s3_session_token, "AWS_SESSION_TOKEN");
    fall_back(arena, &config->s3_access_key_id, "AWS_ACCESS_KEY_ID");
    fall_back(arena, &config->s3_secret_access_key, "AWS_SECRET_ACCESS_KEY");
    fall_back(arena, &config->s3_region, "AWS_REGION");
    fall_back(arena, &config->s3_region, "AWS_DEFAULT_REGION");
    fall_back(arena, &config->s3_endpoint, "AWS_ENDPOINT_URL_S3");
    fall_back(arena, &config->s3_endpoint, "AWS_ENDPOINT_URL");
}

/* "~/lake" is written in a file, where no shell expands it. */
static void
expand_home(Arena *arena, const char **path)
{
    const char *home = value_environment("HOME");

    if (*path != NULL && home != NULL && str_starts(str_of(*path), STR("~/")))
        *path = arena_printf(arena, "%s%s", home, *path + 1);
}

static void
keep_rules(Loader *loader)
{
    Config *config = loader->config;

    config->rule_count = BUF_COUNT(&loader->rules, TableRule);
    config->rules = ARENA_ARRAY(loader->arena, TableRule, config->rule_count + 1);
    if (config->rule_count > 0)
        memcpy(config->rules, loader->rules.ptr, loader->rules.len);
}

bool
config_load(Arena *arena, const ConfigLoad *load, Config **out_config, Error *err)
{
    Config *config = ARENA_NEW(arena, Config);
    AUTO(loader_done) Loader loader = {.arena = arena, .config = config};

    for (size_t i = 0; i < SETTING_COUNT; i++)
        setting_store_default(&settings[i], config, arena);
    TRY(load_file(&loader, load->file, err));
    TRY(load_environment(&loader, err));
    for (size_t i = 0; i < load->set_count; i++)
        TRY(load_set(&loader, load->sets[i], err));
    TRY(load_argument(&loader, "SOURCE", "source.postgres", load->source, err));
    TRY(load_argument(&loader, "WAREHOUSE", "sink.iceberg.warehouse", load->warehouse, err));

    fall_back_to_aws(config, arena);
    expand_home(arena, &config->warehouse);
    expand_home(arena, &config->state);
    expand_home(arena, &config->s3_ca_file);
    keep_rules(&loader);
    *out_config = config;
    return true;
}
