/* resolve.c - settings that follow from others, and questions about a table. */
#include "config/config.h"

#include <stdint.h>
#include <strings.h>

#include "base/hash.h"
#include "config/check.h"
#include "config/pattern.h"
#include "config/template.h"
#include "config/value.h"

enum { SLOT_BYTES_MAX = 63 }; /* NAMEDATALEN - 1 */

/* A slot is called [a-z0-9_]{1,63}. What does not fit is replaced, and then a hash of the whole
 * name is appended, so that "my-app" and "my.app" do not meet in one slot. */
static const char *
slot_name(Arena *arena, const char *pipeline)
{
    char *name = arena_printf(arena, "walberg_%s", pipeline);
    size_t length = strlen(name);
    bool changed = length > SLOT_BYTES_MAX;

    for (char *p = name; *p != '\0'; p++) {
        if ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_')
            continue;
        if (*p >= 'A' && *p <= 'Z')
            *p |= 0x20;
        else
            *p = '_';
        changed = true;
    }
    if (!changed)
        return name;

    uint32_t hash = (uint32_t) hash128(pipeline, strlen(pipeline), 0).low;

    return arena_printf(arena, "%.*s_%08x", SLOT_BYTES_MAX - 9, name, hash);
}

/* XDG Base Directory Specification: $XDG_STATE_HOME, ignored unless absolute, else
 * ~/.local/state. */
static bool
default_state(Arena *arena, const char *pipeline, const char **out_state, Error *err)
{
    const char *xdg = value_environment("XDG_STATE_HOME");
    const char *home = value_environment("HOME");

    if (xdg != NULL && xdg[0] == '/')
        *out_state = arena_printf(arena, "%s/walberg/%s", xdg, pipeline);
    else if (home != NULL)
        *out_state = arena_printf(arena, "%s/.local/state/walberg/%s", home, pipeline);
    else
        return FAIL(err, ERR_INPUT,
                    "no folder for the state: neither HOME nor XDG_STATE_HOME is set\n"
                    "hint: set state to a local folder: -s state=/var/lib/walberg");
    return true;
}

bool
config_resolve(Config *config, Arena *arena, const char *database, Error *err)
{
    const char *pipeline = config->pipeline != NULL ? config->pipeline : database;
    const char *state = config->state;

    if (pipeline == NULL)
        return FAIL(err, ERR_INPUT,
                    "the pipeline has no name\nhint: set pipeline, or source.postgres");
    if (config->pipeline == NULL && !check_pipeline_name(pipeline, err)) {
        (void) FAIL(err, ERR_INPUT,
                    "the database's name cannot name a pipeline\n"
                    "hint: set pipeline: -s pipeline=NAME");
        return false;
    }
    if (state == NULL)
        TRY(default_state(arena, pipeline, &state, err));

    config->pipeline = arena_strdup(arena, pipeline);
    config->state = state;
    if (config->source_slot == NULL)
        config->source_slot = slot_name(arena, pipeline);
    if (config->source_publication == NULL)
        config->source_publication = slot_name(arena, pipeline);
    return true;
}

Str
config_namespace(const Config *config, Arena *arena, const char *database, Str schema)
{
    return template_expand(arena, config->iceberg_namespace,
                           &(TemplateValues){.schema = schema,
                                             .database = str_of(database),
                                             .pipeline = str_of(config->pipeline)});
}

bool
config_namespace_is_free(Str space, Error *err)
{
    const Str own = STR("_walberg");

    if (space.len != own.len || strncasecmp(space.ptr, own.ptr, own.len) != 0)
        return true;
    return FAIL(
        err, ERR_INPUT,
        "the lake's namespace %.*s is walberg's own\n"
        "hint: set another sink.iceberg.namespace, or leave the schema out of source.tables",
        STR_ARG(space));
}

bool
config_takes_table(const Config *config, Str schema, Str table)
{
    bool takes = false;

    for (size_t i = 0; i < config->source_tables.count; i++) {
        Str pattern = config->source_tables.items[i];
        bool excludes = pattern.ptr[0] == '!';

        if (excludes)
            pattern = (Str){.ptr = pattern.ptr + 1, .len = pattern.len - 1};
        if (pattern_matches(pattern, schema, table))
            takes = !excludes;
    }
    return takes;
}

static void
add_casts(Arena *arena, TableRule *merged, const TableRule *rule)
{
    CastRule *casts;

    if (rule->cast_count == 0)
        return;
    casts = ARENA_ARRAY(arena, CastRule, merged->cast_count + rule->cast_count);
    for (size_t i = 0; i < merged->cast_count; i++)
        casts[i] = merged->casts[i];
    for (size_t i = 0; i < rule->cast_count; i++)
        casts[merged->cast_count++] = rule->casts[i];
    merged->casts = casts;
}

TableRule
config_table_rule(const Config *config, Arena *arena, Str schema, Str table)
{
    TableRule merged = {0};

    for (size_t i = 0; i < config->rule_count; i++) {
        const TableRule *rule = &config->rules[i];

        if (!pattern_matches(rule->pattern, schema, table))
            continue;
        merged.pattern = rule->pattern;
        if (rule->name != NULL)
            merged.name = rule->name;
        if (rule->key.count > 0)
            merged.key = rule->key;
        if (rule->partition.place != NULL)
            merged.partition = rule->partition;
        if (rule->sort.place != NULL)
            merged.sort = rule->sort;
        add_casts(arena, &merged, rule);
    }
    return merged;
}
