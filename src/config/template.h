/* template.h - texts with {schema}, {database} and {pipeline} in them. */
#ifndef CONFIG_TEMPLATE_H
#define CONFIG_TEMPLATE_H

#include "base/arena.h"

typedef struct TemplateValues {
    Str schema;
    Str database;
    Str pipeline;
} TemplateValues;

/* ERR_INPUT for an unknown placeholder or a brace without its partner. */
bool template_check(const char *text, Error *err) WARN_UNUSED;
/* The text must have passed template_check(). */
Str template_expand(Arena *arena, const char *text, const TemplateValues *values);

#endif
