/* The footer of a Parquet file from arbitrary bytes: nothing may crash, and what is accepted is one
 * tree whose nodes can all be reached. */
#include <assert.h>
#include <stdint.h>

#include "duck/parquet_footer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int
count_nodes(const ParquetFooter *footer, int node, int depth)
{
    int count = 1;

    for (int i = 0; i < footer->nodes[node].child_count && depth < 100; i++)
        count += count_nodes(footer, parquet_node_child(footer, node, i), depth + 1);
    assert(parquet_node_child(footer, node, footer->nodes[node].child_count) == -1);
    return count;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO_ARENA Arena *arena = arena_new();
    ParquetFooter footer;
    Error err = {0};

    if (!parquet_footer_parse(arena, (Str){.ptr = (const char *) bytes, .len = size}, &footer,
                              &err)) {
        assert(err.kind == ERR_INPUT && err.msg[0] != '\0');
        return 0;
    }
    assert(footer.file.rows >= 0 && footer.file.leaf_count < footer.node_count);
    if (footer.node_count < 1000)
        assert(count_nodes(&footer, 0, 0) <= footer.node_count);
    return 0;
}
