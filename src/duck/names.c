#include "duck/names.h"

#include <stdlib.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

typedef struct Taken {
    UT_hash_handle hh;
} Taken;

static Str
lower(Arena *arena, Str name)
{
    Str copy = arena_str(arena, name);
    char *p = (char *) (uintptr_t) copy.ptr;

    for (size_t i = 0; i < copy.len; i++)
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] = (char) (p[i] - 'A' + 'a');
    return copy;
}

/* Take the name; false when somebody has it already. */
static bool /* NOLINTNEXTLINE(readability-function-size): uthash is made of macros */
take(Arena *arena, Taken **taken, Str name)
{
    Str key = lower(arena, name);
    Taken *found = NULL;

    HASH_FIND(hh, *taken, key.ptr, key.len, found);
    if (found != NULL)
        return false;
    found = ARENA_NEW(arena, Taken);
    HASH_ADD_KEYPTR(hh, *taken, key.ptr, key.len, found);
    return true;
}

Str *
duck_unique_names(Arena *arena, const Field *fields, int field_count)
{
    Str *names = ARENA_ARRAY(arena, Str, (size_t) field_count);
    Taken *taken = NULL;

    (void) take(arena, &taken, STR("__duckdb_field_id"));
    for (int i = 0; i < field_count; i++) {
        Str wanted = fields[i].name.len > 0 ? fields[i].name : STR("column");

        names[i] = arena_str(arena, wanted);
        for (int n = 1; !take(arena, &taken, names[i]); n++)
            names[i] = arena_strf(arena, "%.*s_%d", STR_ARG(wanted), n);
    }
    HASH_CLEAR(hh, taken);
    return names;
}
