/* Any bytes as the state object: what is accepted must survive being written. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "pipeline/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf once = {0};
    AUTO_BUF Buf twice = {0};
    Str text = {.ptr = (const char *) bytes, .len = size};
    PipelineState state;
    PipelineState again;
    Error err;

    if (!state_parse(arena, text, &state, &err))
        return 0;
    state_write(&state, &once);
    if (!state_parse(arena, buf_view(&once), &again, &err)) {
        fprintf(stderr, "%s\n%s\n", err.msg, buf_text(&once));
        abort();
    }
    state_write(&again, &twice);
    if (!str_eq(buf_view(&once), buf_view(&twice)))
        abort();
    return 0;
}
