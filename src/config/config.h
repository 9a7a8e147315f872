/* config.h - the settings of one run: built-in values, then walberg.yaml, then WALBERG_*
 * variables, then --set, then positional arguments; later ones win.
 *
 * Bad input is never skipped: the message names file, line and column, or the variable or option,
 * and the nearest known key. Everything lives in the arena and is immutable after loading. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/cast.h"
#include "model/sort_term.h"
#include "model/transform.h"

#include <stdint.h>

typedef struct StrList {
    size_t count;
    Str *items;
} StrList;

/* tables.<pattern>.partition: how the lake table is partitioned. */
typedef struct PartitionRule {
    size_t count;
    PartitionTerm *terms;
    const char *place; /* "walberg.yaml:7:30: tables.public.orders.partition", for messages; NULL:
                          not set */
} PartitionRule;

/* tables.<pattern>.sort: what the rows of a data file are ordered by. */
typedef struct SortRule {
    size_t count;
    SortTerm *terms;
    const char *place; /* as above; NULL: not set */
} SortRule;

/* tables.<pattern>: what is set for the tables that match; later patterns win per option. */
typedef struct TableRule {
    Str pattern;      /* "public.orders", "public.*" */
    const char *name; /* lake name, NULL: as in Postgres */
    StrList key;      /* column names, empty: the replica identity's */
    PartitionRule partition;
    SortRule sort;
    size_t cast_count;
    CastRule *casts; /* of columns; a later one of the same column wins */
} TableRule;

typedef struct Config {
#define CONFIG_TYPE_STRING                                   const char *
#define CONFIG_TYPE_ENUM                                     const char *
#define CONFIG_TYPE_LIST                                     StrList
#define CONFIG_TYPE_INT                                      int64_t
#define CONFIG_TYPE_DURATION                                 int64_t
#define CONFIG_TYPE_SIZE                                     int64_t
#define CONFIG_TYPE_BOOL                                     bool
#define OPTION(key, field, type, def, min, max, secret, doc) CONFIG_TYPE_##type field;
#include "config/options.h"
#undef OPTION
    size_t rule_count;
    TableRule *rules;
    const char *file; /* where it was read from, NULL: no file */
} Config;

typedef struct ConfigLoad {
    const char *file; /* --config, NULL: ./walberg.yaml if it is there */
    size_t set_count;
    const char *const *sets; /* --set KEY=VALUE */
    const char *source;      /* positional SOURCE, NULL */
    const char *warehouse;   /* positional WAREHOUSE, NULL */
} ConfigLoad;

/* ERR_INPUT for anything wrong, with place and hint; the process then exits with 2. */
bool config_load(Arena *arena, const ConfigLoad *load, Config **out_config, Error *err) WARN_UNUSED;

/* What depends on the source's database name once it is known: pipeline, slot, publication, state
 * folder. Idempotent. database may be NULL (no source at hand): then the pipeline must be set. */
bool config_resolve(Config *config, Arena *arena, const char *database, Error *err) WARN_UNUSED;

/* The Iceberg namespace of a Postgres schema: sink.iceberg.namespace with its placeholders
 * replaced. After config_resolve(). */
Str config_namespace(const Config *config, Arena *arena, const char *database, Str schema);
/* ERR_INPUT: it is the one that walberg keeps for itself, in any case of letters. */
bool config_namespace_is_free(Str space, Error *err) WARN_UNUSED;

/* Whether source.tables takes the table in. Patterns: schema.table, each part literal or with '*'
 * and '?'; '!' excludes; the last one that matches decides; a part with a dot is written quoted:
 * "odd.schema".* */
bool config_takes_table(const Config *config, Str schema, Str table);
/* Merged rules for a table: {0} members when nothing is set. */
TableRule config_table_rule(const Config *config, Arena *arena, Str schema, Str table);

/* The settings as documentation: `walberg help settings`, docs/settings.md, and `walberg init`. */
void config_print_settings(Buf *out);
void config_print_markdown(Buf *out);
void config_print_yaml(Buf *out);

#endif
