/* manifest_values.h - single values of manifests and manifest lists. Private to the manifest
 * files. */
#ifndef ICEBERG_MANIFEST_VALUES_H
#define ICEBERG_MANIFEST_VALUES_H

#include "avro/ocf.h"

/* An int or long; if_null when it is null. */
bool manifest_read_int64(OcfInput *in, const OcfType *type, int64_t if_null, int64_t *out,
                         Error *err) WARN_UNUSED;
/* A string or bytes, copied; STR_NULL when it is null. */
bool manifest_read_text(Arena *arena, OcfInput *in, const OcfType *type, Str *out,
                        Error *err) WARN_UNUSED;

#endif
