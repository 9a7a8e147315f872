/* The first byte says how the rest is read: even: as a client's first packets; odd: as messages. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "pg/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
parse(Arena *arena, const WireMessage *message)
{
    Error err = {0};
    WireStartup startup;
    WireParse parse;
    WireBind bind;
    WireTarget target;
    WireExecute execute;
    Str query;

    switch (message->type) {
    case '\0':
        if (wire_parse_startup(arena, message->body, &startup, &err))
            for (int i = 0; i < startup.setting_count; i++)
                (void) str_is_utf8(startup.settings[i].value);
        break;
    case 'P':
        if (wire_parse_parse(arena, message->body, &parse, &err))
            (void) str_is_utf8(parse.query);
        break;
    case 'B':
        if (wire_parse_bind(arena, message->body, &bind, &err))
            for (int i = 0; i < bind.value_count; i++) {
                (void) wire_format(bind.formats, bind.format_count, i);
                (void) str_is_utf8(bind.values[i]);
            }
        break;
    case 'Q':
        if (wire_parse_query(message->body, &query, &err))
            (void) str_is_utf8(query);
        break;
    case 'E':
        if (wire_parse_execute(message->body, &execute, &err) && execute.rows_max < 0)
            abort();
        break;
    default:
        if (wire_parse_target(message->body, &target, &err))
            (void) str_is_utf8(target.name);
        break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;

    AUTO_ARENA Arena *arena = arena_new();
    Str in = {.ptr = (const char *) bytes + 1, .len = size - 1};
    Error err = {0};

    for (;;) {
        WireMessage message;
        size_t used;

        if (!wire_next(in, bytes[0] % 2 == 1, &message, &used, &err) || used == 0)
            return 0;
        parse(arena, &message);
        in.ptr += used;
        in.len -= used;
    }
}
