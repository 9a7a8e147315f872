/* arena.h - memory that is forgotten all at once.
 *
 * Who returns memory takes an Arena first and the memory lives there; nobody frees single pieces.
 * Chunks double up to 1 MiB; a larger piece gets a chunk of its own. Under AddressSanitizer unused
 * and reset memory is poisoned, so use after reset is found. Not thread safe: one owner at a time.
 *
 *   Arena -> chunk -> chunk -> ...      each: [header | used ... | free ... ]                    */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/error.h"
#include "base/str.h"

#include <stdarg.h>
#include <stddef.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *arena); /* NULL is fine */
void arena_freep(Arena **arena);
#define AUTO_ARENA __attribute__((cleanup(arena_freep)))

/* Forget the contents, keep one chunk for the next round. */
void arena_reset(Arena *arena);

/* Zeroed, aligned for any type. */
void *arena_alloc(Arena *arena, size_t size) __attribute__((returns_nonnull));
#define ARENA_NEW(arena, Type)      ((Type *) arena_alloc((arena), sizeof(Type)))
#define ARENA_ARRAY(arena, Type, n) ((Type *) arena_alloc((arena), sizeof(Type) * (n)))

/* Copies are NUL-terminated, so .ptr may be handed to C functions. */
Str arena_str(Arena *arena, Str s);
char *arena_strdup(Arena *arena, const char *s);
char *arena_printf(Arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
Str arena_strf(Arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(Arena *arena, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/* Bytes of all chunks. */
size_t arena_bytes(const Arena *arena);

#endif
