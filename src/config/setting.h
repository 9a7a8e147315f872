/* setting.h - options.h as rows: what parser, checks and documentation walk. */
#ifndef CONFIG_SETTING_H
#define CONFIG_SETTING_H

#include "config/config.h"
#include "config/yaml.h"

typedef enum SettingType {
    SETTING_STRING,
    SETTING_LIST,
    SETTING_INT,
    SETTING_BOOL,
    SETTING_DURATION,
    SETTING_SIZE,
    SETTING_ENUM,
} SettingType;

typedef struct Setting {
    const char *key;
    const char *def;
    const char *min; /* SETTING_ENUM: the words, separated by '|' */
    const char *max;
    const char *doc;
    size_t offset; /* of its field in Config */
    SettingType type;
    bool secret;
} Setting;

/* One option of tables.PATTERN. */
typedef struct TableOption {
    const char *name;
    const char *type; /* for the documentation */
    const char *example;
    const char *doc;
} TableOption;

#define OPTION(...) +1 /* NOLINT(bugprone-macro-parentheses) */

enum {
    SETTING_COUNT = 0

#include "config/options.h"
};

#undef OPTION

enum { TABLE_OPTION_COUNT = 5 };

extern const Setting settings[SETTING_COUNT];
extern const TableOption table_options[TABLE_OPTION_COUNT];

/* NULL when there is none. */
const Setting *setting_find(Str key);
/* Whether settings exist below the key: "commit", "sink.iceberg". */
bool setting_is_group(Str key);
/* The setting or group that was probably meant; STR_NULL when nothing is near. */
Str setting_nearest(Str key);
const TableOption *table_option_nearest(Str name);
/* WALBERG_COMMIT_INTERVAL */
const char *setting_variable(Arena *arena, const Setting *setting);
/* For messages and documentation: "duration", "one of record, park". */
const char *setting_type_text(Arena *arena, const Setting *setting);

/* Parse, check and store. The message is about the value alone: the caller adds place and key. */
bool setting_store(const Setting *setting, Config *config, Arena *arena, const YamlNode *value,
                   Error *err) WARN_UNUSED;
void setting_store_default(const Setting *setting, Config *config, Arena *arena);
bool setting_list(Arena *arena, const YamlNode *value, StrList *out_list, Error *err) WARN_UNUSED;

/* Where a STRING setting lives. */
const char **setting_string(const Setting *setting, Config *config);

#endif
