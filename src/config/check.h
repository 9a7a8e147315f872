/* check.h - what a value must be beyond its type and range. */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "config/config.h"

/* The rule of one key, on the value just stored; true when the key has none. */
bool check_setting(const char *key, const Config *config, Error *err) WARN_UNUSED;

/* A name that can be a file name and an object key. */
bool check_pipeline_name(const char *name, Error *err) WARN_UNUSED;

#endif
