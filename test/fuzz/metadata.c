/* Any bytes as table metadata: what is accepted must survive being written. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "iceberg/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf once = {0};
    AUTO_BUF Buf twice = {0};
    Str text = {.ptr = (const char *) bytes, .len = size};
    TableMetadata *metadata;
    TableMetadata *again;
    Error err;

    if (!metadata_parse(arena, text, &metadata, &err))
        return 0;
    metadata_write(metadata, &once);
    if (!metadata_parse(arena, buf_view(&once), &again, &err)) {
        fprintf(stderr, "%s\n%s\n", err.msg, buf_text(&once));
        abort();
    }
    metadata_write(again, &twice);
    if (!str_eq(buf_view(&once), buf_view(&twice)))
        abort();
    return 0;
}
