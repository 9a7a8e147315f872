#include "duck/parquet_footer.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"

/* --- Thrift's compact protocol ------------------------------------------------------------- */

enum {
    THRIFT_STOP = 0,
    THRIFT_TRUE = 1,
    THRIFT_FALSE = 2,
    THRIFT_BYTE = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_DOUBLE = 7,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_SET = 10,
    THRIFT_MAP = 11,
    THRIFT_STRUCT = 12,
    THRIFT_DEPTH_MAX = 32,
};

/* Reading past the end or nonsense sets `broken`; from then on everything reads as zero and stop,
 * so loops end and one check at the end is enough. */
typedef struct Thrift {
    const uint8_t *at;
    const uint8_t *end;
    bool broken;
} Thrift;

static size_t
left(const Thrift *thrift)
{
    return (size_t) (thrift->end - thrift->at);
}

static void
give_up(Thrift *thrift)
{
    thrift->broken = true;
    thrift->at = thrift->end;
}

static uint8_t
read_byte(Thrift *thrift)
{
    if (thrift->at == thrift->end) {
        give_up(thrift);
        return 0;
    }
    return *thrift->at++;
}

static uint64_t
read_varint(Thrift *thrift)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = read_byte(thrift);

        value |= (uint64_t) (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
    give_up(thrift);
    return 0;
}

static int64_t
read_integer(Thrift *thrift)
{
    uint64_t zigzag = read_varint(thrift);

    return (int64_t) (zigzag >> 1) ^ -(int64_t) (zigzag & 1);
}

static int
read_int(Thrift *thrift)
{
    int64_t value = read_integer(thrift);

    if (value < INT_MIN || value > INT_MAX) {
        give_up(thrift);
        return 0;
    }
    return (int) value;
}

static Str
read_binary(Thrift *thrift)
{
    uint64_t length = read_varint(thrift);

    if (length > left(thrift)) {
        give_up(thrift);
        return STR_NULL;
    }

    Str bytes = {.ptr = (const char *) thrift->at, .len = (size_t) length};

    thrift->at += length;
    return bytes;
}

/* The next field of a struct: its id in *id (which holds the last one before), its type returned;
 * THRIFT_STOP at the end. */
static int
read_field(Thrift *thrift, int *id)
{
    uint8_t head = read_byte(thrift);

    if ((head & 0x0f) == THRIFT_STOP)
        return THRIFT_STOP;
    if (head >> 4 != 0)
        *id += head >> 4;
    else
        *id = (int16_t) read_integer(thrift);
    return head & 0x0f;
}

/* Number of elements, each at least one byte, and their type. */
static size_t
read_list(Thrift *thrift, int *out_type)
{
    uint8_t head = read_byte(thrift);
    uint64_t count = head >> 4;

    *out_type = head & 0x0f;
    if (count == 15)
        count = read_varint(thrift);
    if (count > left(thrift)) {
        give_up(thrift);
        return 0;
    }
    return (size_t) count;
}

static void skip_value(Thrift *thrift, int type, int depth);

static void
skip_elements(Thrift *thrift, int depth)
{
    int type;
    size_t count = read_list(thrift, &type);

    for (size_t i = 0; i < count && !thrift->broken; i++) {
        if (type == THRIFT_TRUE || type == THRIFT_FALSE)
            read_byte(thrift); /* a byte in lists, in the type nibble elsewhere */
        else
            skip_value(thrift, type, depth + 1);
    }
}

static void
skip_map(Thrift *thrift, int depth)
{
    uint64_t count = read_varint(thrift);

    if (count == 0)
        return;
    if (count > left(thrift)) {
        give_up(thrift);
        return;
    }

    uint8_t types = read_byte(thrift);

    for (uint64_t i = 0; i < count && !thrift->broken; i++) {
        skip_value(thrift, types >> 4, depth + 1);
        skip_value(thrift, types & 0x0f, depth + 1);
    }
}

static void
skip_struct(Thrift *thrift, int depth)
{
    int id = 0;

    for (;;) {
        int type = read_field(thrift, &id);

        if (type == THRIFT_STOP)
            return;
        skip_value(thrift, type, depth + 1);
    }
}

static void
skip_value(Thrift *thrift, int type, int depth)
{
    if (depth > THRIFT_DEPTH_MAX) {
        give_up(thrift);
        return;
    }
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        break;
    case THRIFT_BYTE:
        read_byte(thrift);
        break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        read_varint(thrift);
        break;
    case THRIFT_DOUBLE:
        if (left(thrift) < 8)
            give_up(thrift);
        else
            thrift->at += 8;
        break;
    case THRIFT_BINARY:
        read_binary(thrift);
        break;
    case THRIFT_LIST:
    case THRIFT_SET:
        skip_elements(thrift, depth);
        break;
    case THRIFT_MAP:
        skip_map(thrift, depth);
        break;
    case THRIFT_STRUCT:
        skip_struct(thrift, depth);
        break;
    default:
        give_up(thrift);
    }
}

/* --- FileMetaData; field numbers are those of parquet.thrift ------------------------------- */

static ParquetNode
read_node(Thrift *thrift)
{
    ParquetNode node = {0};
    int id = 0;

    for (;;) {
        int type = read_field(thrift, &id);

        if (type == THRIFT_STOP)
            return node;
        if (id == 4 && type == THRIFT_BINARY)
            node.name = read_binary(thrift);
        else if (id == 5 && type == THRIFT_I32)
            node.child_count = read_int(thrift);
        else if (id == 9 && type == THRIFT_I32)
            node.field_id = read_int(thrift);
        else
            skip_value(thrift, type, 0);
    }
}

static void
read_schema(Thrift *thrift, Arena *arena, ParquetFooter *footer)
{
    int type;
    size_t count = read_list(thrift, &type);

    if (type != THRIFT_STRUCT || count == 0 || count > INT_MAX) {
        give_up(thrift);
        return;
    }
    footer->nodes = ARENA_ARRAY(arena, ParquetNode, count);
    footer->node_count = (int) count;
    footer->file.leaves = ARENA_ARRAY(arena, ParquetLeaf, count);
    for (size_t i = 0; i < count; i++) {
        ParquetNode node = read_node(thrift);

        node.name = arena_str(arena, node.name);
        footer->nodes[i] = node;
        if (node.child_count < 0 || (size_t) node.child_count > count)
            give_up(thrift);
        if (node.child_count == 0 && i > 0)
            footer->file.leaves[footer->file.leaf_count++].field_id = node.field_id;
    }
}

/* ColumnMetaData: adds the size, gives the offset of the first page. */
static int64_t
read_column_meta(Thrift *thrift, ParquetLeaf *leaf)
{
    int64_t data_page = INT64_MAX;
    int64_t dictionary_page = INT64_MAX;
    int id = 0;

    for (;;) {
        int type = read_field(thrift, &id);

        if (type == THRIFT_STOP)
            return dictionary_page < data_page ? dictionary_page : data_page;
        if (id == 7 && type == THRIFT_I64) {
            int64_t bytes = read_integer(thrift);

            if (__builtin_add_overflow(leaf->compressed_bytes, bytes, &leaf->compressed_bytes))
                give_up(thrift);
        } else if (id == 9 && type == THRIFT_I64) {
            data_page = read_integer(thrift);
        } else if (id == 11 && type == THRIFT_I64) {
            dictionary_page = read_integer(thrift);
        } else {
            skip_value(thrift, type, 0);
        }
    }
}

static int64_t
read_column_chunk(Thrift *thrift, ParquetLeaf *leaf)
{
    int64_t offset = INT64_MAX;
    int id = 0;

    for (;;) {
        int type = read_field(thrift, &id);

        if (type == THRIFT_STOP)
            return offset;
        if (id == 3 && type == THRIFT_STRUCT)
            offset = read_column_meta(thrift, leaf);
        else
            skip_value(thrift, type, 0);
    }
}

/* RowGroup: adds up its columns, gives where it begins. */
static int64_t
read_row_group(Thrift *thrift, ParquetFooter *footer)
{
    int64_t begin = INT64_MAX;
    int id = 0;

    for (;;) {
        int type = read_field(thrift, &id);

        if (type == THRIFT_STOP)
            return begin;
        if (id != 1 || type != THRIFT_LIST) {
            skip_value(thrift, type, 0);
            continue;
        }

        size_t count = read_list(thrift, &type);

        if (type != THRIFT_STRUCT || count != (size_t) footer->file.leaf_count)
            give_up(thrift);
        for (size_t i = 0; i < count && !thrift->broken; i++) {
            int64_t offset = read_column_chunk(thrift, &footer->file.leaves[i]);

            begin = offset < begin ? offset : begin;
        }
    }
}

static void
read_row_groups(Thrift *thrift, Arena *arena, ParquetFooter *footer)
{
    int type;
    size_t count = read_list(thrift, &type);

    if (count > 0 && (type != THRIFT_STRUCT || count > INT_MAX || footer->nodes == NULL)) {
        give_up(thrift);
        return;
    }
    footer->file.row_group_offsets = ARENA_ARRAY(arena, int64_t, count);
    footer->file.row_group_count = (int) count;
    for (size_t i = 0; i < count && !thrift->broken; i++)
        footer->file.row_group_offsets[i] = read_row_group(thrift, footer);
}

/* Whether the child counts describe one tree of exactly these nodes. */
static bool
is_tree(const ParquetNode *nodes, int node_count)
{
    int64_t wanted = 1;

    for (int i = 0; i < node_count; i++) {
        if (wanted == 0)
            return false;
        wanted += nodes[i].child_count - 1;
    }
    return node_count > 0 && wanted == 0;
}

int
parquet_node_child(const ParquetFooter *footer, int node, int child)
{
    assert(node >= 0 && node < footer->node_count);
    if (child < 0 || child >= footer->nodes[node].child_count)
        return -1;
    node++;
    for (; child > 0; child--)
        for (int wanted = 1; wanted > 0; node++)
            wanted += footer->nodes[node].child_count - 1;
    return node;
}

bool
parquet_footer_parse(Arena *arena, Str bytes, ParquetFooter *out_footer, Error *err)
{
    const uint8_t *start = (const uint8_t *) bytes.ptr;
    Thrift thrift = {.at = start, .end = start + bytes.len};
    ParquetFooter footer = {0};
    int id = 0;

    for (;;) {
        int type = read_field(&thrift, &id);

        if (type == THRIFT_STOP)
            break;
        if (id == 2 && type == THRIFT_LIST && footer.nodes == NULL)
            read_schema(&thrift, arena, &footer);
        else if (id == 3 && type == THRIFT_I64)
            footer.file.rows = read_integer(&thrift);
        else if (id == 4 && type == THRIFT_LIST && footer.file.row_group_offsets == NULL)
            read_row_groups(&thrift, arena, &footer);
        else
            skip_value(&thrift, type, 0);
    }
    if (thrift.broken || !is_tree(footer.nodes, footer.node_count) || footer.file.rows < 0)
        return FAIL(err, ERR_INPUT, "not the footer of a Parquet file");
    *out_footer = footer;
    return true;
}

/* --- The file ------------------------------------------------------------------------------ */

enum { TAIL_SIZE = 8, FOOTER_SIZE_MAX = 1 << 30 };

static void
close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static bool
read_at(int fd, void *out, size_t size, off_t offset, Error *err)
{
    ssize_t n = pread(fd, out, size, offset);

    if (n < 0)
        return FAIL(err, ERR_TRANSIENT, "read: %m");
    if ((size_t) n != size)
        return FAIL(err, ERR_INPUT, "shorter than a Parquet file is");
    return true;
}

static bool
read_footer(Arena *arena, int fd, ParquetFooter *out_footer, Error *err)
{
    struct stat status;
    uint8_t tail[TAIL_SIZE];

    if (fstat(fd, &status) != 0)
        return FAIL(err, ERR_TRANSIENT, "stat: %m");
    if (status.st_size < TAIL_SIZE)
        return FAIL(err, ERR_INPUT, "shorter than a Parquet file is");
    TRY(read_at(fd, tail, sizeof tail, status.st_size - TAIL_SIZE, err));

    size_t length = load_le32(tail);

    if (memcmp(tail + 4, "PAR1", 4) != 0 || length > FOOTER_SIZE_MAX ||
        (off_t) length > status.st_size - TAIL_SIZE)
        return FAIL(err, ERR_INPUT, "does not end like a Parquet file");

    AUTO_BUF Buf bytes = {0};

    TRY(read_at(fd, buf_push(&bytes, length), length, status.st_size - TAIL_SIZE - (off_t) length,
                err));
    TRY(parquet_footer_parse(arena, buf_view(&bytes), out_footer, err));
    out_footer->file.bytes = status.st_size;
    return true;
}

bool
parquet_footer_read(Arena *arena, const char *path, ParquetFooter *out_footer, Error *err)
{
    AUTO(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return FAIL(err, ERR_TRANSIENT, "open %s: %m", path);
    if (!read_footer(arena, fd, out_footer, err))
        return WRAP(err, "%s", path);
    return true;
}
