#include "iceberg/partitioner.h"

#include <assert.h>

#include "base/bytes.h"
#include "batch/key_map.h"
#include "iceberg/transform.h"

typedef struct Source {
    int column; /* index into the columns */
    Transform transform;
} Source;

struct Partitioner {
    int source_count;
    Source *sources;
    KeyMap numbers; /* hash of the tuple -> number */
    Buf tuples;     /* Span into bytes */
    Buf bytes;
    Buf scratch;
};

Partitioner *
partitioner_new(const PartitionSpec *spec, const Field *fields, int field_count)
{
    Partitioner *partitioner = xcalloc(1, sizeof *partitioner);

    partitioner->source_count = spec->field_count;
    partitioner->sources = xcalloc((size_t) spec->field_count + 1, sizeof(Source));
    for (int i = 0; i < spec->field_count; i++) {
        Source *source = &partitioner->sources[i];
        bool known = transform_parse(spec->fields[i].transform, &source->transform);

        source->column = -1;
        for (int f = 0; f < field_count; f++)
            if (fields[f].id == spec->fields[i].source_id)
                source->column = f;
        assert(known && (source->column >= 0 || source->transform.kind == TRANSFORM_VOID));
    }
    return partitioner;
}

void
partitioner_free(Partitioner *partitioner)
{
    if (partitioner == NULL)
        return;
    key_map_done(&partitioner->numbers);
    buf_done(&partitioner->tuples);
    buf_done(&partitioner->bytes);
    buf_done(&partitioner->scratch);
    free(partitioner->sources);
    free(partitioner);
}

/* The row's tuple, packed, into scratch. */
static bool
pack_row(Partitioner *partitioner, const Column *columns, size_t row, Error *err)
{
    Buf *out = &partitioner->scratch;

    buf_reset(out);
    for (int i = 0; i < partitioner->source_count; i++) {
        const Source *source = &partitioner->sources[i];
        size_t start = out->len;

        buf_push(out, 4);
        store_le32(out->ptr + start, PARTITION_NULL);
        if (source->transform.kind == TRANSFORM_VOID ||
            column_is_null(&columns[source->column], row))
            continue;
        TRY(transform_apply(source->transform, &columns[source->column], row, out, err));
        store_le32(out->ptr + start, (uint32_t) (out->len - start - 4));
    }
    return true;
}

static uint32_t
number_of_scratch(Partitioner *partitioner)
{
    Buf *tuple = &partitioner->scratch;
    KeyEntry *entry = key_map_put(&partitioner->numbers, hash128(tuple->ptr, tuple->len, 0));

    if (entry->row == ROW_NONE) {
        Span span = {.offset = partitioner->bytes.len, .length = tuple->len};

        entry->row = (uint32_t) partitioner_count(partitioner);
        BUF_PUSH(&partitioner->tuples, Span, span);
        buf_append(&partitioner->bytes, tuple->ptr, tuple->len);
    }
    return entry->row;
}

bool
partitioner_assign(Partitioner *partitioner, const Column *columns, size_t rows,
                   const uint8_t *dead, uint32_t *numbers, Error *err)
{
    for (size_t row = 0; row < rows; row++) {
        if (dead != NULL && dead[row])
            continue;
        TRY(pack_row(partitioner, columns, row, err));
        numbers[row] = number_of_scratch(partitioner);
    }
    return true;
}

size_t
partitioner_count(const Partitioner *partitioner)
{
    return BUF_COUNT(&partitioner->tuples, Span);
}

Str
partitioner_tuple(const Partitioner *partitioner, size_t number)
{
    Span span = BUF_AT(&partitioner->tuples, Span, number);

    return (Str){.ptr = partitioner->bytes.ptr + span.offset, .len = span.length};
}
