#include "iceberg/index_entry.h"

#include <stdlib.h>

int
entry_cmp(const Entry *a, const Entry *b)
{
    int order = hash128_cmp(a->key, b->key);

    if (order != 0)
        return order;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int
entry_cmp_for_qsort(const void *a, const void *b)
{
    return entry_cmp(a, b);
}

static void
insertion_sort(Entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        Entry moving = entries[i];
        size_t at = i;

        for (; at > 0 && entry_cmp(&moving, &entries[at - 1]) < 0; at--)
            entries[at] = entries[at - 1];
        entries[at] = moving;
    }
}

static unsigned
key_byte(const Entry *entry, int byte)
{
    uint64_t half = byte < 8 ? entry->key.high : entry->key.low;

    return (unsigned) (half >> (56 - 8 * (byte % 8))) & 0xff;
}

/* Put the entries into 256 buckets by one byte of the key, in place ("American flag sort"), then
 * sort each by the next. Two rounds leave a handful per bucket when keys are hashes. */
static void
radix_sort(Entry *entries, size_t count, int byte)
{
    size_t begin[257] = {0};
    size_t next[256];

    if (count <= 32) {
        insertion_sort(entries, count);
        return;
    }
    if (byte == sizeof(Hash128)) { /* twins */
        qsort(entries, count, sizeof *entries, entry_cmp_for_qsort);
        return;
    }
    for (size_t i = 0; i < count; i++)
        begin[key_byte(&entries[i], byte) + 1]++;
    for (int i = 0; i < 256; i++) {
        begin[i + 1] += begin[i];
        next[i] = begin[i];
    }
    for (unsigned bucket = 0; bucket < 256; bucket++) {
        while (next[bucket] < begin[bucket + 1]) {
            Entry moving = entries[next[bucket]];
            unsigned home = key_byte(&moving, byte);

            while (home != bucket) {
                Entry displaced = entries[next[home]];

                entries[next[home]++] = moving;
                moving = displaced;
                home = key_byte(&moving, byte);
            }
            entries[next[bucket]++] = moving;
        }
    }
    for (int i = 0; i < 256; i++)
        radix_sort(entries + begin[i], begin[i + 1] - begin[i], byte + 1);
}

void
entry_sort(Entry *entries, size_t count)
{
    radix_sort(entries, count, 0);
}

size_t
entry_lower_bound(const Entry *entries, size_t count, Hash128 key)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;

        if (hash128_cmp(entries[middle].key, key) < 0)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

void
entry_lookup(const Entry *entries, size_t count, const Probe *probes, size_t probe_count,
             Buf *matches)
{
    size_t at = 0;

    for (size_t i = 0; i < probe_count; i++) {
        at += entry_lower_bound(entries + at, count - at, probes[i].key);
        for (size_t k = at; k < count && hash128_eq(entries[k].key, probes[i].key); k++)
            BUF_PUSH(matches, Match, ((Match){probes[i].number, entries[k].file, entries[k].row}));
    }
}
