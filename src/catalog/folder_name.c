#include "catalog/folder_name.h"

static bool
stays(Str name, size_t i)
{
    char c = name.ptr[i];

    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || (c == '.' && i > 0);
}

void
folder_name_write(Buf *out, Str name)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = (uint8_t) name.ptr[i];

        if (stays(name, i)) {
            buf_byte(out, c);
        } else {
            buf_byte(out, '~');
            buf_byte(out, (uint8_t) digits[c >> 4]);
            buf_byte(out, (uint8_t) digits[c & 15]);
        }
    }
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool
folder_name_read(Str folder, Buf *out)
{
    AUTO_BUF Buf again = {0};

    buf_reset(out);
    for (size_t i = 0; i < folder.len; i++) {
        if (folder.ptr[i] != '~') {
            buf_byte(out, (uint8_t) folder.ptr[i]);
            continue;
        }
        if (i + 2 >= folder.len)
            return false;

        int high = hex_value(folder.ptr[i + 1]);
        int low = hex_value(folder.ptr[i + 2]);

        if (high < 0 || low < 0)
            return false;
        buf_byte(out, (uint8_t) (high * 16 + low));
        i += 2;
    }
    /* what was escaped without need, or not escaped in spite of it, is not ours */
    folder_name_write(&again, buf_view(out));
    return folder.len > 0 && str_eq(buf_view(&again), folder);
}
