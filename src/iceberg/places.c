#include "iceberg/places.h"

#include <assert.h>

#include "batch/key_map.h"
#include "model/column.h"

typedef struct Partition {
    int spec_id;
    Span tuple; /* in bytes */
} Partition;

struct Places {
    KeyMap files;   /* hash of the path -> number of its partition */
    KeyMap numbers; /* hash of the tuple, seeded with the spec's id -> number */
    Buf partitions; /* Partition */
    Buf bytes;
};

Places *
places_new(void)
{
    return xcalloc(1, sizeof(Places));
}

void
places_free(Places *places)
{
    if (places == NULL)
        return;
    key_map_done(&places->files);
    key_map_done(&places->numbers);
    buf_done(&places->partitions);
    buf_done(&places->bytes);
    free(places);
}

static Hash128
hash_tuple(int spec_id, Str tuple)
{
    return hash128(tuple.ptr, tuple.len, (uint64_t) spec_id);
}

void
places_add(Places *places, Str data_file, int spec_id, Str partition)
{
    KeyEntry *number = key_map_put(&places->numbers, hash_tuple(spec_id, partition));

    if (number->row == ROW_NONE) {
        Partition added = {.spec_id = spec_id,
                           .tuple = {.offset = places->bytes.len, .length = partition.len}};

        number->row = places_count(places);
        BUF_PUSH(&places->partitions, Partition, added);
        buf_str(&places->bytes, partition);
    }
    key_map_put(&places->files, hash128(data_file.ptr, data_file.len, 0))->row = number->row;
}

bool
places_find(const Places *places, Str data_file, uint32_t *out_number)
{
    const KeyEntry *entry = key_map_find(&places->files, hash128(data_file.ptr, data_file.len, 0));

    if (entry == NULL)
        return false;
    *out_number = entry->row;
    return true;
}

Place
places_at(const Places *places, uint32_t number)
{
    assert(number < places_count(places));

    const Partition *partition = &BUF_AT(&places->partitions, Partition, number);

    return (Place){.spec_id = partition->spec_id,
                   .partition = {.ptr = places->bytes.ptr + partition->tuple.offset,
                                 .len = partition->tuple.length}};
}

uint32_t
places_count(const Places *places)
{
    return (uint32_t) BUF_COUNT(&places->partitions, Partition);
}
