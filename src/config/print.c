/* print.c - the settings as documentation, from the rows of options.h. */
#include "config/config.h"

#include "config/setting.h"
#include "config/wrap.h"

/* "100ms to 1h", "at least 1", "" */
static const char *
range_text(Arena *arena, const Setting *setting)
{
    if (setting->type == SETTING_ENUM || (setting->min == NULL && setting->max == NULL))
        return "";
    if (setting->max == NULL)
        return arena_printf(arena, "at least %s", setting->min);
    if (setting->min == NULL)
        return arena_printf(arena, "at most %s", setting->max);
    if (strcmp(setting->min, setting->max) == 0)
        return arena_printf(arena, "only %s", setting->min);
    return arena_printf(arena, "%s to %s", setting->min, setting->max);
}

void
config_print_settings(Buf *out)
{
    AUTO_ARENA Arena *arena = arena_new();

    buf_cstr(out, "Settings, in walberg.yaml, as a variable (WALBERG_COMMIT_INTERVAL) or as\n"
                  "--set KEY=VALUE; the later of these wins.\n");
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const Setting *setting = &settings[i];
        const char *range = range_text(arena, setting);

        buf_printf(out, "\n%s (%s", setting->key, setting_type_text(arena, setting));
        if (range[0] != '\0')
            buf_printf(out, ", %s", range);
        if (setting->def != NULL)
            buf_printf(out, "; default %s", setting->def);
        if (setting->secret)
            buf_cstr(out, "; secret");
        buf_cstr(out, ")\n");
        wrap_text(out, "    ", setting->doc);
    }
    for (size_t i = 0; i < TABLE_OPTION_COUNT; i++) {
        buf_printf(out, "\ntables.PATTERN.%s (%s)\n", table_options[i].name, table_options[i].type);
        wrap_text(out, "    ", table_options[i].doc);
    }
    buf_cstr(out, "\nDurations are written 500ms 10s 5m 1h, sizes 64kB 128MB 1GB. Any text may be\n"
                  "env:NAME (a variable) or file:PATH (a file's content).\n");
}

/* --- Markdown -------------------------------------------------------------------------------- */

/* A '|' would end the cell of a table. */
static void
put_cell(Buf *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '|')
            buf_byte(out, '\\');
        buf_byte(out, (uint8_t) *p);
    }
}

static void
put_markdown_head(Buf *out)
{
    buf_cstr(
        out,
        "# Settings\n"
        "\n"
        "<!-- made by tools/gen-docs from src/config/options.h; do not edit -->\n"
        "\n"
        "Settings come from, in this order, later ones winning: built-in values, `walberg.yaml`\n"
        "(or `--config FILE`), the environment, `--set KEY=VALUE`, the arguments SOURCE and\n"
        "WAREHOUSE. `walberg init` writes a `walberg.yaml` with all of them.\n"
        "\n"
        "- A dot in a key is nesting in the file: `commit.interval` is `commit: {interval: 10s}`.\n"
        "- In the environment a key is spelled `WALBERG_COMMIT_INTERVAL`; an empty variable "
        "counts\n"
        "  as unset, a list is written `[\"public.*\", \"!public.audit_*\"]`.\n"
        "- With `--set` the value is YAML: `-s 'source.tables=[\"public.*\"]'`; in\n"
        "  `tables.PATTERN.OPTION` the last part is the option.\n"
        "- `null` stands for the built-in value.\n"
        "- Durations: `500ms` `10s` `5m` `1h`. Sizes: `64kB` `128MB` `1GB` (multiples of 1024).\n"
        "- Any text may be `env:NAME` (the value of that variable) or `file:PATH` (the content of\n"
        "  that file): for secrets, which are never printed.\n"
        "- Anything unknown, of the wrong type or out of range stops walberg before it starts\n"
        "  (exit code 2), with file, line and column.\n"
        "\n"
        "| key | type | default | meaning |\n"
        "|---|---|---|---|\n");
}

void
config_print_markdown(Buf *out)
{
    AUTO_ARENA Arena *arena = arena_new();

    put_markdown_head(out);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const Setting *setting = &settings[i];
        const char *range = range_text(arena, setting);

        buf_printf(out, "| `%s` | %s%s%s%s | ", setting->key, setting_type_text(arena, setting),
                   range[0] == '\0' ? "" : ", ", range, setting->secret ? ", secret" : "");
        if (setting->def != NULL)
            buf_printf(out, "`%s`", setting->def);
        buf_cstr(out, " | ");
        put_cell(out, setting->doc);
        buf_cstr(out, " |\n");
    }
    for (size_t i = 0; i < TABLE_OPTION_COUNT; i++) {
        buf_printf(out, "| `tables.PATTERN.%s` | %s |  | ", table_options[i].name,
                   table_options[i].type);
        put_cell(out, table_options[i].doc);
        buf_cstr(out, " |\n");
    }
    buf_cstr(
        out,
        "\n"
        "A pattern is `schema.table`; each part is literal or has `*` (any characters) and `?` "
        "(one\n"
        "character). A part with a dot in it is quoted: `\"odd.schema\".*`. In `source.tables` "
        "the\n"
        "last pattern that matches decides, `!` excludes. Of several patterns under `tables` that\n"
        "match a table, the later wins, option by option.\n");
}

/* --- walberg.yaml ---------------------------------------------------------------------------- */

/* What stands in the file instead of a default, and is needed to start: no '#' before it. */
static const struct {
    const char *key;
    const char *value;
} examples[] = {
    {"source.postgres", "postgres://localhost/postgres"},
    {"sink.iceberg.warehouse", "./lake"},
};

static const char *
example_of(const char *key)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        if (strcmp(examples[i].key, key) == 0)
            return examples[i].value;
    return NULL;
}

static void
put_yaml_value(Buf *out, const Setting *setting)
{
    const char *example = example_of(setting->key);

    if (example != NULL)
        buf_cstr(out, example);
    else if (setting->def == NULL)
        buf_cstr(out, "null");
    else if (setting->type == SETTING_LIST)
        buf_printf(out, "[\"%s\"]", setting->def);
    else if (setting->type == SETTING_STRING)
        buf_printf(out, "\"%s\"", setting->def);
    else
        buf_cstr(out, setting->def);
}

/* Bytes of `key` up to and with the last dot that `before` shares with it: the open groups. */
static size_t
shared_groups(const char *key, const char *before)
{
    size_t shared = 0;

    for (size_t i = 0; key[i] != '\0' && key[i] == before[i]; i++)
        if (key[i] == '.')
            shared = i + 1;
    return shared;
}

/* The groups of `key` that are not open yet; returns the depth of the setting itself. */
static int
put_yaml_groups(Buf *out, const char *key, const char *before)
{
    size_t open = shared_groups(key, before);
    size_t start = 0;
    int depth = 0;

    for (const char *dot = strchr(key, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        size_t end = (size_t) (dot - key);

        if (end >= open) {
            if (depth == 0)
                buf_byte(out, '\n');
            buf_printf(out, "%*s%.*s:\n", depth * 2, "", (int) (end - start), key + start);
        }
        start = end + 1;
        depth++;
    }
    return depth;
}

void
config_print_yaml(Buf *out)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *before = "";

    buf_cstr(out,
             "# walberg.yaml - settings of one pipeline. Lines that begin with '#' before a key\n"
             "# show the built-in value. Any text may be env:NAME or file:PATH.\n");
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const Setting *setting = &settings[i];
        const char *last = strrchr(setting->key, '.');
        const char *range = range_text(arena, setting);
        int depth = put_yaml_groups(out, setting->key, before);
        const char *indent = arena_printf(arena, "%*s", depth * 2, "");

        if (depth == 0)
            buf_byte(out, '\n');

        const char *doc = setting->doc;

        if (setting->type == SETTING_ENUM)
            doc = arena_printf(arena, "%s (%s)", doc, setting_type_text(arena, setting));
        else if (range[0] != '\0')
            doc = arena_printf(arena, "%s (%s)", doc, range);
        wrap_text(out, arena_printf(arena, "%s# ", indent), doc);
        buf_printf(out, "%s%s%s: ", indent, example_of(setting->key) == NULL ? "#" : "",
                   last == NULL ? setting->key : last + 1);
        put_yaml_value(out, setting);
        buf_byte(out, '\n');
        before = setting->key;
    }
    buf_cstr(out, "\n# what differs for some tables, by pattern\n#tables:\n");
    buf_cstr(out, "#  public.orders:\n");
    for (size_t i = 0; i < TABLE_OPTION_COUNT; i++) {
        wrap_text(out, "#    # ", table_options[i].doc);
        buf_printf(out, "#    %s: %s\n", table_options[i].name, table_options[i].example);
    }
}
