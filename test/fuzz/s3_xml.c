/* Fuzz target: the XML that an S3 service sends. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "store/s3_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str xml = {(const char *) bytes, size};
    S3Problem problem;
    S3Page page;
    Error err = {0};

    if (s3_page_parse(arena, xml, &page, &err)) {
        for (size_t i = 0; i < page.object_count; i++)
            if (page.objects[i].key.ptr == NULL || page.objects[i].bytes < 0)
                abort();
        for (size_t i = 0; i < page.prefix_count; i++)
            if (page.prefixes[i].ptr == NULL)
                abort();
    } else if (err.kind != ERR_TRANSIENT) {
        abort();
    }
    s3_problem_parse(arena, xml, &problem);
    if (problem.code == NULL || problem.message == NULL || problem.region == NULL)
        abort();
    return 0;
}
