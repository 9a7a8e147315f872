/* text_table.h - rows of cells in aligned columns, for terminals. */
#ifndef CLI_TEXT_TABLE_H
#define CLI_TEXT_TABLE_H

#include "base/arena.h"
#include "base/buf.h"

enum { TEXT_TABLE_COLUMNS_MAX = 12 };

typedef struct TextTable {
    int columns;
    unsigned right; /* bit i: column i is aligned to the right */
    Arena *arena;   /* cells are copied there */
    Buf cells;      /* Str */
} TextTable;

void text_table_init(TextTable *table, Arena *arena, int columns, unsigned right);
void text_table_done(TextTable *table);
#define AUTO_TEXT_TABLE __attribute__((cleanup(text_table_done)))

/* Cells row by row, the header first. Control characters become '?'. */
void text_table_cell(TextTable *table, const char *text);
/* Two blanks between columns, none at the end of a line. */
void text_table_print(const TextTable *table, Buf *out);

#endif
