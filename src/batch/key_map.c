#include "batch/key_map.h"

#include <assert.h>

enum { SLOTS_MIN = 64 };

void
key_map_done(KeyMap *map)
{
    free(map->slots);
    *map = (KeyMap){0};
}

void
key_map_reset(KeyMap *map)
{
    if (map->count > 0)
        memset(map->slots, 0, map->slot_count * sizeof(KeyEntry));
    map->count = 0;
}

/* The slot of the key, or the free one where it would be. */
static KeyEntry *
probe(const KeyMap *map, Hash128 key)
{
    size_t mask = map->slot_count - 1;
    size_t slot = (size_t) key.low & mask;

    while (map->slots[slot].used && !hash128_eq(map->slots[slot].key, key))
        slot = (slot + 1) & mask;
    return &map->slots[slot];
}

KeyEntry *
key_map_find(const KeyMap *map, Hash128 key)
{
    if (map->count == 0)
        return NULL;

    KeyEntry *entry = probe(map, key);

    return entry->used ? entry : NULL;
}

static void
grow(KeyMap *map)
{
    KeyMap larger = {
        .slot_count = map->slot_count == 0 ? SLOTS_MIN : map->slot_count * 2,
        .count = map->count,
    };

    larger.slots = xcalloc(larger.slot_count, sizeof(KeyEntry));
    for (size_t i = 0; i < map->slot_count; i++)
        if (map->slots[i].used)
            *probe(&larger, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = larger;
}

KeyEntry *
key_map_put(KeyMap *map, Hash128 key)
{
    if (map->count >= map->slot_count / 4 * 3)
        grow(map);

    KeyEntry *entry = probe(map, key);

    if (!entry->used) {
        *entry = (KeyEntry){.key = key, .row = ROW_NONE, .used = true};
        map->count++;
    }
    assert(map->count < map->slot_count);
    return entry;
}

size_t
key_map_memory(const KeyMap *map)
{
    return map->count * 2 * sizeof(KeyEntry); /* between 3/8 and 3/4 full */
}
