#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/xalloc.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif

#ifdef ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n)   ((void) (p), (void) (n))
#define UNPOISON(p, n) ((void) (p), (void) (n))
#endif

enum { CHUNK_MIN = 4096, CHUNK_MAX = 1 << 20 };

typedef struct Chunk {
    struct Chunk *next;
    size_t size; /* usable bytes behind the header */
    size_t used;
    alignas(max_align_t) char memory[];
} Chunk;

struct Arena {
    Chunk *head; /* the chunk being filled */
    size_t bytes;
};

Arena *
arena_new(void)
{
    return xcalloc(1, sizeof(Arena));
}

static void
chunk_free(Chunk *chunk)
{
    UNPOISON(chunk->memory, chunk->size);
    free(chunk);
}

void
arena_free(Arena *arena)
{
    if (arena == NULL)
        return;
    while (arena->head != NULL) {
        Chunk *next = arena->head->next;

        chunk_free(arena->head);
        arena->head = next;
    }
    free(arena);
}

void
arena_freep(Arena **arena)
{
    arena_free(*arena);
}

void
arena_reset(Arena *arena)
{
    Chunk *keep = arena->head;

    if (keep == NULL)
        return;
    for (Chunk *chunk = keep->next; chunk != NULL;) {
        Chunk *next = chunk->next;

        chunk_free(chunk);
        chunk = next;
    }
    if (keep->size > CHUNK_MAX) {
        chunk_free(keep);
        arena->head = NULL;
        arena->bytes = 0;
        return;
    }
    keep->next = NULL;
    keep->used = 0;
    arena->bytes = keep->size;
    POISON(keep->memory, keep->size);
}

static void
add_chunk(Arena *arena, size_t need)
{
    size_t size = arena->head == NULL ? CHUNK_MIN : arena->head->size * 2;

    if (size > CHUNK_MAX)
        size = CHUNK_MAX;
    if (size < need)
        size = need;

    Chunk *chunk = xrealloc(NULL, sizeof *chunk + size);

    chunk->size = size;
    chunk->used = 0;
    chunk->next = arena->head;
    arena->head = chunk;
    arena->bytes += size;
    POISON(chunk->memory, chunk->size);
}

void *
arena_alloc(Arena *arena, size_t size)
{
    size_t need = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);

    if (need == 0)
        need = alignof(max_align_t);
    if (arena->head == NULL || arena->head->size - arena->head->used < need)
        add_chunk(arena, need);

    void *p = arena->head->memory + arena->head->used;

    arena->head->used += need;
    UNPOISON(p, size);
    return memset(p, 0, size);
}

Str
arena_str(Arena *arena, Str s)
{
    char *copy = arena_alloc(arena, s.len + 1);

    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    return (Str){.ptr = copy, .len = s.len};
}

char *
arena_strdup(Arena *arena, const char *s)
{
    size_t size = strlen(s) + 1;

    return memcpy(arena_alloc(arena, size), s, size);
}

char *
arena_vprintf(Arena *arena, const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);

    int n = vsnprintf(NULL, 0, fmt, args);
    char *out = arena_alloc(arena, (size_t) n + 1);

    vsnprintf(out, (size_t) n + 1, fmt, again);
    va_end(again);
    return out;
}

char *
arena_printf(Arena *arena, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);

    char *out = arena_vprintf(arena, fmt, args);

    va_end(args);
    return out;
}

Str
arena_strf(Arena *arena, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);

    char *out = arena_vprintf(arena, fmt, args);

    va_end(args);
    return str_of(out);
}

size_t
arena_bytes(const Arena *arena)
{
    return arena->bytes;
}
