#include "cli/text_table.h"

#include <assert.h>

void
text_table_init(TextTable *table, Arena *arena, int columns, unsigned right)
{
    assert(columns > 0 && columns <= TEXT_TABLE_COLUMNS_MAX);
    *table = (TextTable){.columns = columns, .right = right, .arena = arena};
}

void
text_table_done(TextTable *table)
{
    buf_done(&table->cells);
}

void
text_table_cell(TextTable *table, const char *text)
{
    char *copy = arena_strdup(table->arena, text == NULL ? "" : text);

    for (char *p = copy; *p != '\0'; p++)
        if ((unsigned char) *p < ' ' || *p == 0x7f)
            *p = '?';
    BUF_PUSH(&table->cells, Str, str_of(copy));
}

/* Characters, not bytes: names of tables are UTF-8. */
static size_t
width_of(Str text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.len; i++)
        width += ((unsigned char) text.ptr[i] & 0xC0) != 0x80;
    return width;
}

static void
put_blanks(Buf *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_byte(out, ' ');
}

void
text_table_print(const TextTable *table, Buf *out)
{
    size_t widths[TEXT_TABLE_COLUMNS_MAX] = {0};
    size_t count = BUF_COUNT(&table->cells, Str);
    size_t columns = (size_t) table->columns;

    assert(count % columns == 0);
    for (size_t i = 0; i < count; i++) {
        size_t width = width_of(BUF_AT(&table->cells, Str, i));

        if (width > widths[i % columns])
            widths[i % columns] = width;
    }
    for (size_t i = 0; i < count; i++) {
        size_t column = i % columns;
        Str text = BUF_AT(&table->cells, Str, i);
        size_t blanks = widths[column] - width_of(text);
        bool right = (table->right & (1u << column)) != 0;

        put_blanks(out, column == 0 ? 0 : 2);
        put_blanks(out, right ? blanks : 0);
        buf_str(out, text);
        put_blanks(out, right ? 0 : blanks);
        if (column + 1 < columns)
            continue;
        while (out->len > 0 && out->ptr[out->len - 1] == ' ')
            out->len--;
        buf_byte(out, '\n');
    }
}
