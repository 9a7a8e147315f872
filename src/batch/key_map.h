/* key_map.h - from a key hash to the last row of a batch that has it.
 *
 * Open addressing with linear probing: key hashes are uniform, so their low bits are the slot. Keys
 * are never removed one by one; an entry without a row says that what the lake has under the key is
 * already dealt with. The table is reused from batch to batch. */
#ifndef BATCH_KEY_MAP_H
#define BATCH_KEY_MAP_H

#include "base/buf.h"
#include "base/hash.h"

#define ROW_NONE UINT32_MAX

typedef struct KeyEntry {
    Hash128 key;
    uint32_t row; /* ROW_NONE: no live row */
    bool used;
} KeyEntry;

/* A zeroed KeyMap is a valid empty one. */
typedef struct KeyMap {
    KeyEntry *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t count;
} KeyMap;

void key_map_done(KeyMap *map);
void key_map_reset(KeyMap *map); /* memory kept */

/* NULL when the key is not there. Valid until the next key_map_put(). */
KeyEntry *key_map_find(const KeyMap *map, Hash128 key);

/* The entry of the key; a new one has no row. Valid until the next key_map_put(). */
KeyEntry *key_map_put(KeyMap *map, Hash128 key);

/* Bytes in use: what the entries take at the usual load, not what is kept for later. */
size_t key_map_memory(const KeyMap *map);

#endif
