/* Any bytes as a pgoutput message: decoded or refused, and every view lies inside the message. */
#include <stdint.h>
#include <stdlib.h>

#include "decode/pgoutput.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_inside(Str whole, Str part)
{
    if (part.len == 0)
        return;
    if (part.ptr < whole.ptr || part.ptr + part.len > whole.ptr + whole.len)
        abort();
}

static void
check_tuple(Str whole, const Tuple *tuple)
{
    for (int i = 0; i < tuple->count; i++)
        check_inside(whole, tuple->datums[i].text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str whole = {.ptr = (const char *) bytes, .len = size};
    Message message;
    Error err = {0};

    if (!pgoutput_decode(whole, arena, &message, &err)) {
        if (err.kind != ERR_BUG || err.msg[0] == '\0')
            abort();
        return 0;
    }
    if (message.kind == 'I' || message.kind == 'U' || message.kind == 'D') {
        check_tuple(whole, &message.change.old);
        check_tuple(whole, &message.change.after);
    } else if (message.kind == 'R') {
        check_inside(whole, message.relation.table_name);
        for (int i = 0; i < message.relation.column_count; i++)
            check_inside(whole, message.relation.columns[i].name);
    } else if (message.kind == 'M') {
        check_inside(whole, message.logical.prefix);
        check_inside(whole, message.logical.content);
    }
    return 0;
}
