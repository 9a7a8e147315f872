/* golden_files.h - files under test/golden: their bytes, and the names in a folder. */
#ifndef GOLDEN_FILES_H
#define GOLDEN_FILES_H

#include "testing.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"

static inline Str
golden_file(Arena *arena, const char *path)
{
    AUTO_BUF Buf bytes = {0};
    FILE *file = fopen(arena_printf(arena, TEST_DIR "/golden/%s", path), "rb");

    if (file == NULL)
        fail_msg("no golden file %s", path);
    for (;;) {
        buf_reserve(&bytes, 1 << 16);

        size_t n = fread(bytes.ptr + bytes.len, 1, 1 << 16, file);

        if (n == 0)
            break;
        bytes.len += n;
    }
    fclose(file);
    return arena_str(arena, buf_view(&bytes));
}

static inline int
golden_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Paths of the files in a folder whose names end so, sorted; never none. */
static inline size_t
golden_list(Arena *arena, const char *folder, const char *suffix, const char *out[64])
{
    DIR *dir = opendir(arena_printf(arena, TEST_DIR "/golden/%s", folder));
    size_t count = 0;

    if (dir == NULL) {
        fail_msg("no golden folder %s", folder);
        return 0;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        if (str_ends(str_of(entry->d_name), str_of(suffix)) && count < 64)
            out[count++] = arena_printf(arena, "%s/%s", folder, entry->d_name);
    closedir(dir);
    assert_true(count > 0);
    qsort(out, count, sizeof out[0], golden_compare);
    return count;
}

#endif
