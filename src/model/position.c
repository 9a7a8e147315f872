#include "model/position.h"

#include <inttypes.h>

const char *
position_format(Position position, char out[POSITION_TEXT_SIZE])
{
    snprintf(out, POSITION_TEXT_SIZE, "%" PRIX32 "/%" PRIX32, (uint32_t) (position >> 32),
             (uint32_t) position);
    return out;
}

/* Up to eight hexadecimal digits from text[*at]; false when there are none or too many. */
static bool
parse_half(Str text, size_t *at, uint32_t *out)
{
    size_t start = *at;
    uint32_t value = 0;

    for (; *at < text.len; (*at)++) {
        char c = text.ptr[*at];
        uint32_t digit;

        if (c >= '0' && c <= '9')
            digit = (uint32_t) (c - '0');
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t) (c - 'A') + 10;
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t) (c - 'a') + 10;
        else
            break;
        value = value << 4 | digit;
    }
    *out = value;
    return *at > start && *at - start <= 8;
}

bool
position_parse(Str text, Position *out_position, Error *err)
{
    size_t at = 0;
    uint32_t high;
    uint32_t low;

    if (!parse_half(text, &at, &high) || at >= text.len || text.ptr[at++] != '/' ||
        !parse_half(text, &at, &low) || at != text.len)
        return FAIL(err, ERR_INPUT, "not a position (LSN): \"%.*s\"", STR_ARG(text));
    *out_position = (Position) high << 32 | low;
    return true;
}
