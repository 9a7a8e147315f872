#include "config/wrap.h"

enum { WRAP_COLUMNS = 79 };

void
wrap_text(Buf *out, const char *indent, const char *text)
{
    size_t column = 0; /* 0: at the beginning of a line */

    while (*text != '\0') {
        size_t word = strcspn(text, " ");

        if (column > 0 && column + 1 + word > WRAP_COLUMNS) {
            buf_byte(out, '\n');
            column = 0;
        }
        if (column == 0) {
            buf_cstr(out, indent);
            column = strlen(indent);
        } else {
            buf_byte(out, ' ');
            column++;
        }
        buf_str(out, (Str){.ptr = text, .len = word});
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    buf_byte(out, '\n');
}
