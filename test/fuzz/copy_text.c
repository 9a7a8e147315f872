/* Any bytes as a COPY line of as many fields as the first byte says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/copy_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    Datum datums[256];
    Error err = {0};

    if (size == 0)
        return 0;

    int count = bytes[0];
    size_t line_size = size - 1;
    char *line = malloc(line_size + 1); /* not NULL for an empty line */

    memcpy(line, bytes + 1, line_size);

    bool ok = copy_text_split(line, line_size, datums, count, &err);

    for (int i = 0; ok && i < count; i++) {
        Str text = datums[i].text;

        if (datums[i].kind == DATUM_NULL
                ? text.len != 0
                : text.ptr < line || text.ptr + text.len > line + line_size)
            abort();
    }
    if (!ok && err.kind != ERR_BUG)
        abort();
    free(line);
    return 0;
}
