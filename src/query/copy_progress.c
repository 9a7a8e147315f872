#include "query/copy_progress.h"

#include "avro/json_node.h"
#include "config/value.h"

enum { STATUS_BYTES_MAX = 64 << 20 };

/* From 0 to 99: when all is read, what changed meanwhile is still to come. */
static int
percent(const JsonNode *table)
{
    double fraction = 0;

    if (!node_to_double(node_get(table, "copied_fraction"), &fraction) || fraction < 0)
        return 0;
    return fraction < 0.99 ? (int) (fraction * 100) : 99;
}

const char *
copy_progress(Arena *arena, const char *folder, const char *lake_name)
{
    AUTO_NODE JsonNode *status = NULL;
    Str text;
    Str name;
    Str state;
    bool found = false;
    Error ignored;

    if (!value_read_file(arena, arena_printf(arena, "%s/status.json", folder), STATUS_BYTES_MAX,
                         &text, &found, &ignored) ||
        !found || !node_parse(text, &status, &ignored))
        return "";

    const JsonNode *tables = node_get(status, "tables");

    for (size_t i = 0; i < node_count(tables); i++) {
        const JsonNode *table = node_at(tables, i);

        if (!node_to_str(node_get(table, "lake"), &name) || !str_eqc(name, lake_name))
            continue;
        if (node_to_str(node_get(table, "state"), &state) && str_eqc(state, "parked"))
            return ", and it is parked\nhint: walberg status says why";
        return arena_printf(arena, ": %d %%", percent(table));
    }
    return "";
}
