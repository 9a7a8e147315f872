/* Any bytes as an Avro file, a manifest and a manifest list. */
#include <stddef.h>
#include <stdint.h>

#include "avro/ocf.h"
#include "iceberg/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool
skip_all(Arena *arena, Str bytes, Error *err)
{
    AUTO_OCF OcfReader *reader = NULL;

    TRY(ocf_open(arena, bytes, &reader, err));
    for (;;) {
        OcfInput *in;

        TRY(ocf_next(reader, &in, err));
        if (in == NULL)
            return true;
        for (size_t i = 0; i < ocf_record_type(reader)->field_count; i++)
            TRY(ocf_skip(in, ocf_record_type(reader)->fields[i].type, err));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str text = {.ptr = (const char *) bytes, .len = size};
    const ManifestFile file = {.path = STR("m"), .sequence_number = 1, .first_row_id = 5};
    ManifestEntry *entries;
    ManifestFile *files;
    size_t count;
    Error err;

    if (!skip_all(arena, text, &err))
        return 0;
    if (!manifest_read(arena, text, &file, &entries, &count, &err) &&
        !manifest_list_read(arena, text, &files, &count, &err))
        return 0;
    return 0;
}
