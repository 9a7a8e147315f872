#include "iceberg/index_run.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "store/fs_file.h"

enum {
    PAGE_SIZE = 1024,
    PAGE_ENTRIES = 42,
    PAGE_COUNT_AT = PAGE_ENTRIES * (int) sizeof(Entry),
    PAGE_NUMBER_AT = PAGE_COUNT_AT + 4,
    PAGE_CHECKSUM_AT = PAGE_SIZE - 8,
    BLOCK_SIZE = 64,
    BLOCK_BITS = 480,
    BLOCK_CHECKSUM_AT = BLOCK_BITS / 8,
    BLOCK_KEYS = 48, /* 10 bits a key */
    BITS_PER_KEY = 6,
    DENSE_BLOCKS = 64,
    FORMAT_VERSION = 1,
};

_Static_assert(PAGE_NUMBER_AT + 4 == PAGE_CHECKSUM_AT, "a page is full");

static const char MAGIC[8] = "WBRGIDX";

/* --- Bytes of a run ------------------------------------------------------------------------ */

static uint64_t
page_checksum(const uint8_t *page, uint64_t seed)
{
    return XXH3_64bits_withSeed(page, PAGE_CHECKSUM_AT, seed);
}

static uint32_t
block_checksum(const uint8_t *block, uint64_t number, uint64_t seed)
{
    return (uint32_t) XXH3_64bits_withSeed(block, BLOCK_CHECKSUM_AT, seed ^ number);
}

static uint64_t
filter_pages(uint64_t filter_blocks)
{
    return (filter_blocks * BLOCK_SIZE + PAGE_SIZE - 1) / PAGE_SIZE;
}

static off_t
block_at(uint64_t block)
{
    return (off_t) (PAGE_SIZE + block * BLOCK_SIZE);
}

static off_t
page_at(uint64_t filter_blocks, uint64_t page)
{
    return (off_t) ((1 + filter_pages(filter_blocks) + page) * PAGE_SIZE);
}

/* x of [0, 2^64) scaled to [0, n). */
static uint64_t
scale(uint64_t x, uint64_t n)
{
    return (uint64_t) ((unsigned __int128) x * n >> 64);
}

/* The six bits of a key in its block, from the parts of the hash that did not choose the block. */
static unsigned
key_bit(Hash128 key, int i)
{
    uint64_t part = i < 4 ? key.low >> (16 * i) : key.high >> (16 * (i - 4));

    return (unsigned) ((part & 0xffff) * BLOCK_BITS >> 16);
}

static void
block_add(uint8_t *block, Hash128 key)
{
    for (int i = 0; i < BITS_PER_KEY; i++) {
        unsigned bit = key_bit(key, i);

        block[bit / 8] = (uint8_t) (block[bit / 8] | 1u << bit % 8);
    }
}

static bool
block_may_have(const uint8_t *block, Hash128 key)
{
    for (int i = 0; i < BITS_PER_KEY; i++) {
        unsigned bit = key_bit(key, i);

        if ((block[bit / 8] >> bit % 8 & 1) == 0)
            return false;
    }
    return true;
}

static bool
read_fully(int fd, void *out, size_t size, off_t at, Error *err)
{
    char *to = out;

    while (size > 0) {
        ssize_t n = pread(fd, to, size, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return FAIL(err, ERR_TRANSIENT, "read: %m");
        if (n == 0)
            return FAIL(err, ERR_INPUT, "the file ends early");
        to += n;
        at += n;
        size -= (size_t) n;
    }
    return true;
}

static bool
write_fully(int fd, const void *bytes, size_t size, off_t at, Error *err)
{
    const char *from = bytes;

    while (size > 0) {
        ssize_t n = pwrite(fd, from, size, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return FAIL(err, ERR_TRANSIENT, "write: %m");
        from += n;
        at += n;
        size -= (size_t) n;
    }
    return true;
}

/* --- Reading ------------------------------------------------------------------------------- */

/* Page 0, 8 bytes each: magic, version, table, seed, entries, pages, filter blocks. */

static bool
parse_header(Run *run, const uint8_t *page, Error *err)
{
    if (memcmp(page, MAGIC, sizeof MAGIC) != 0 || load_le64(page + 8) != FORMAT_VERSION)
        return FAIL(err, ERR_INPUT, "not a run of the key index");
    if (load_le64(page + PAGE_CHECKSUM_AT) != page_checksum(page, load_le64(page + 24)))
        return FAIL(err, ERR_INPUT, "wrong checksum of its header");
    run->table = load_le64(page + 16);
    run->seed = load_le64(page + 24);
    run->entries = load_le64(page + 32);
    run->pages = load_le64(page + 40);
    run->filter_blocks = load_le64(page + 48);
    return true;
}

static bool
read_header(Run *run, uint64_t table, uint64_t seed, Error *err)
{
    uint8_t page[PAGE_SIZE];
    struct stat status;

    if (fstat(run->fd, &status) != 0)
        return FAIL(err, ERR_TRANSIENT, "stat: %m");
    TRY(read_fully(run->fd, page, sizeof page, 0, err));
    TRY(parse_header(run, page, err));
    if (run->table != table || run->seed != seed)
        return FAIL(err, ERR_INPUT, "belongs to another index");
    run->bytes = (uint64_t) status.st_size;
    if (page_at(run->filter_blocks, run->pages) != status.st_size ||
        run->entries > run->pages * PAGE_ENTRIES)
        return FAIL(err, ERR_INPUT, "its size is not what its header says");
    return true;
}

bool
run_open(const char *path, uint64_t table, uint64_t seed, Run **out_run, Error *err)
{
    Run run = {.fd = open(path, O_RDONLY | O_CLOEXEC)};

    if (run.fd < 0)
        return fs_fail(err, "open", path);
    if (!read_header(&run, table, seed, err)) {
        close(run.fd);
        return WRAP(err, "%s", path);
    }
    *out_run = xcalloc(1, sizeof run);
    **out_run = run;
    return true;
}

void
run_close(Run *run)
{
    if (run == NULL)
        return;
    close(run->fd);
    free(run);
}

static bool
check_page(const Run *run, const uint8_t *page, uint64_t number, Error *err)
{
    if (load_le64(page + PAGE_CHECKSUM_AT) != page_checksum(page, run->seed) ||
        load_le32(page + PAGE_NUMBER_AT) != (uint32_t) number ||
        load_le32(page + PAGE_COUNT_AT) == 0 || load_le32(page + PAGE_COUNT_AT) > PAGE_ENTRIES)
        return FAIL(err, ERR_INPUT, "page %llu is damaged", (unsigned long long) number);
    return true;
}

/* The page and the stretch of filter that were read last. */
typedef struct RunReader {
    const Run *run;
    uint64_t page; /* number, or UINT64_MAX */
    size_t count;  /* entries of it */
    Entry entries[PAGE_SIZE / sizeof(Entry) + 1];
    uint64_t block; /* the first of those in blocks */
    uint64_t block_count;
    uint64_t block_window; /* how many to read at once */
    uint8_t blocks[256 * BLOCK_SIZE];
} RunReader;

static bool
load_page(RunReader *reader, uint64_t number, Error *err)
{
    uint8_t *page = (uint8_t *) reader->entries;

    if (reader->page == number)
        return true;
    reader->page = UINT64_MAX;
    TRY(read_fully(reader->run->fd, page, PAGE_SIZE, page_at(reader->run->filter_blocks, number),
                   err));
    TRY(check_page(reader->run, page, number, err));
    reader->page = number;
    reader->count = load_le32(page + PAGE_COUNT_AT);
    return true;
}

static bool
load_block(RunReader *reader, uint64_t number, Error *err)
{
    const Run *run = reader->run;
    uint64_t left = run->filter_blocks - number;

    if (number - reader->block < reader->block_count)
        return true;
    reader->block_count = 0;
    if (left > reader->block_window)
        left = reader->block_window;
    TRY(read_fully(run->fd, reader->blocks, left * BLOCK_SIZE, block_at(number), err));
    reader->block = number;
    reader->block_count = left;
    return true;
}

static bool
may_have(RunReader *reader, Hash128 key, bool *out_may, Error *err)
{
    const Run *run = reader->run;
    uint64_t number = scale(key.high, run->filter_blocks);

    if (run->filter_blocks == 0) {
        *out_may = true;
        return true;
    }
    TRY(load_block(reader, number, err));

    const uint8_t *block = reader->blocks + (number - reader->block) * BLOCK_SIZE;

    if (load_le32(block + BLOCK_CHECKSUM_AT) != block_checksum(block, number, run->seed))
        return FAIL(err, ERR_INPUT, "filter block %llu is damaged", (unsigned long long) number);
    *out_may = block_may_have(block, key);
    return true;
}

/* Where a key's first entry can be: pages below `low` end before it, pages from `high` on begin
 * behind it. The hashes at those borders are what the next guess is interpolated between. */
typedef struct Bracket {
    uint64_t low;
    uint64_t high;
    uint64_t low_hash;
    uint64_t high_hash;
} Bracket;

static uint64_t
guess_page(const Bracket *bracket, Hash128 key, int guesses)
{
    uint64_t width = bracket->high - bracket->low;
    uint64_t range = bracket->high_hash - bracket->low_hash;

    /* Keys that are not uniform could make interpolation crawl: after a few guesses halve. */
    if (guesses >= 6 || key.high < bracket->low_hash || range == 0)
        return bracket->low + width / 2;

    uint64_t step = (uint64_t) ((unsigned __int128) (key.high - bracket->low_hash) * width / range);

    return bracket->low + (step < width ? step : width - 1);
}

/* Narrow the bracket to the first page whose last key is not below `key`, loaded in the reader;
 * bracket->low is its number, or the number of pages. Then it serves the next, larger key. */
static bool
find_page(RunReader *reader, Hash128 key, Bracket *bracket, Error *err)
{
    for (int guesses = 0; bracket->low < bracket->high; guesses++) {
        uint64_t guess = guess_page(bracket, key, guesses);

        TRY(load_page(reader, guess, err));
        if (hash128_cmp(reader->entries[reader->count - 1].key, key) < 0) {
            bracket->low = guess + 1;
            bracket->low_hash = reader->entries[reader->count - 1].key.high;
        } else if (guess == bracket->low || hash128_cmp(reader->entries[0].key, key) < 0) {
            bracket->low = guess;
            bracket->low_hash = reader->entries[0].key.high;
            return true;
        } else {
            bracket->high = guess;
            bracket->high_hash = reader->entries[0].key.high;
        }
    }
    return bracket->low == reader->run->pages || load_page(reader, bracket->low, err);
}

/* All entries of the key, which may go on over several pages. */
static bool
collect(RunReader *reader, const Probe *probe, uint64_t page, Buf *matches, Error *err)
{
    for (; page < reader->run->pages; page++) {
        TRY(load_page(reader, page, err));

        size_t at = entry_lower_bound(reader->entries, reader->count, probe->key);

        for (; at < reader->count; at++) {
            const Entry *entry = &reader->entries[at];

            if (!hash128_eq(entry->key, probe->key))
                return true;
            BUF_PUSH(matches, Match, ((Match){probe->number, entry->file, entry->row}));
        }
    }
    return true;
}

bool
run_lookup(const Run *run, const Probe *probes, size_t probe_count, Buf *matches, Error *err)
{
    RunReader reader = {.run = run, .page = UINT64_MAX, .block_window = 1};
    Bracket bracket = {0};

    /* Many probes to few blocks: read stretches. */
    if (run->filter_blocks / (probe_count + 1) < DENSE_BLOCKS)
        reader.block_window = sizeof reader.blocks / BLOCK_SIZE;
    for (size_t i = 0; i < probe_count; i++) {
        bool may = false;

        assert(i == 0 || hash128_cmp(probes[i - 1].key, probes[i].key) <= 0);
        TRY(may_have(&reader, probes[i].key, &may, err));
        if (!may)
            continue;
        bracket.high = run->pages;
        bracket.high_hash = UINT64_MAX;
        TRY(find_page(&reader, probes[i].key, &bracket, err));
        TRY(collect(&reader, &probes[i], bracket.low, matches, err));
    }
    return true;
}

/* --- Writing ------------------------------------------------------------------------------- */

enum { WRITE_PAGES = 256, WRITE_BLOCKS = 1024 };

struct RunWriter {
    Run run;
    char *path;
    bool sync;
    Entry last;
    uint8_t pages[WRITE_PAGES][PAGE_SIZE];
    uint64_t first_page; /* number of pages[0] */
    size_t page_entries; /* in the page being filled, number run.pages */
    uint8_t blocks[WRITE_BLOCKS][BLOCK_SIZE];
    uint64_t first_block; /* number of blocks[0] */
    uint64_t block;       /* the one being filled */
};

bool
run_create(const RunOptions *options, RunWriter **out_writer, Error *err)
{
    int fd = folder_create_file(options->path, O_RDWR | O_TRUNC, 0600);

    if (fd < 0)
        return fs_fail(err, "create", options->path);

    RunWriter *writer = xcalloc(1, sizeof *writer);

    writer->run = (Run){.fd = fd, .table = options->table};
    random_bytes(&writer->run.seed, sizeof writer->run.seed);
    if (options->filter)
        writer->run.filter_blocks = options->entries_max / BLOCK_KEYS + 1;
    writer->path = xstrdup(options->path);
    writer->sync = options->sync;
    *out_writer = writer;
    return true;
}

static void
free_writer(RunWriter *writer)
{
    free(writer->path);
    free(writer);
}

void
run_abort(RunWriter *writer)
{
    if (writer == NULL)
        return;
    close(writer->run.fd);
    unlink(writer->path);
    free_writer(writer);
}

static bool
flush_blocks(RunWriter *writer, Error *err)
{
    uint64_t count = writer->block - writer->first_block;

    TRY(write_fully(writer->run.fd, writer->blocks, count * BLOCK_SIZE,
                    block_at(writer->first_block), err));
    memset(writer->blocks, 0, sizeof writer->blocks);
    writer->first_block = writer->block;
    return true;
}

/* Complete the blocks before `number`, which becomes the one being filled. */
static bool
advance_block(RunWriter *writer, uint64_t number, Error *err)
{
    for (; writer->block < number;) {
        uint8_t *block = writer->blocks[writer->block - writer->first_block];

        store_le32(block + BLOCK_CHECKSUM_AT,
                   block_checksum(block, writer->block, writer->run.seed));
        writer->block++;
        if (writer->block - writer->first_block == WRITE_BLOCKS)
            TRY(flush_blocks(writer, err));
    }
    return true;
}

static bool
flush_pages(RunWriter *writer, Error *err)
{
    uint64_t count = writer->run.pages - writer->first_page;

    TRY(write_fully(writer->run.fd, writer->pages, count * PAGE_SIZE,
                    page_at(writer->run.filter_blocks, writer->first_page), err));
    writer->first_page = writer->run.pages;
    return true;
}

static bool
complete_page(RunWriter *writer, Error *err)
{
    uint64_t number = writer->run.pages++;
    uint8_t *page = writer->pages[number - writer->first_page];
    size_t used = writer->page_entries * sizeof(Entry);

    memset(page + used, 0, PAGE_SIZE - used);
    store_le32(page + PAGE_COUNT_AT, (uint32_t) writer->page_entries);
    store_le32(page + PAGE_NUMBER_AT, (uint32_t) number);
    store_le64(page + PAGE_CHECKSUM_AT, page_checksum(page, writer->run.seed));
    writer->page_entries = 0;
    if (writer->run.pages - writer->first_page < WRITE_PAGES)
        return true;
    return flush_pages(writer, err);
}

bool
run_add(RunWriter *writer, const Entry *entry, Error *err)
{
    Run *run = &writer->run;

    assert(run->entries == 0 || entry_cmp(&writer->last, entry) <= 0);
    if (run->filter_blocks > 0) {
        uint64_t block = scale(entry->key.high, run->filter_blocks);

        if (block != writer->block)
            TRY(advance_block(writer, block, err));
        block_add(writer->blocks[block - writer->first_block], entry->key);
    }
    memcpy(writer->pages[run->pages - writer->first_page] + writer->page_entries * sizeof *entry,
           entry, sizeof *entry);
    writer->last = *entry;
    run->entries++;
    if (++writer->page_entries == PAGE_ENTRIES)
        return complete_page(writer, err);
    return true;
}

static bool
write_header(const Run *run, Error *err)
{
    uint8_t page[PAGE_SIZE] = {0};

    memcpy(page, MAGIC, sizeof MAGIC);
    store_le64(page + 8, FORMAT_VERSION);
    store_le64(page + 16, run->table);
    store_le64(page + 24, run->seed);
    store_le64(page + 32, run->entries);
    store_le64(page + 40, run->pages);
    store_le64(page + 48, run->filter_blocks);
    store_le64(page + PAGE_CHECKSUM_AT, page_checksum(page, run->seed));
    return write_fully(run->fd, page, sizeof page, 0, err);
}

static bool
complete(RunWriter *writer, Error *err)
{
    Run *run = &writer->run;

    if (writer->page_entries > 0)
        TRY(complete_page(writer, err));
    TRY(flush_pages(writer, err));
    TRY(advance_block(writer, run->filter_blocks, err));
    TRY(flush_blocks(writer, err));
    run->bytes = (uint64_t) page_at(run->filter_blocks, run->pages);
    if (ftruncate(run->fd, (off_t) run->bytes) != 0)
        return FAIL(err, ERR_TRANSIENT, "truncate: %m");
    TRY(write_header(run, err));
    if (writer->sync && fdatasync(run->fd) != 0)
        return FAIL(err, ERR_TRANSIENT, "sync: %m");
    return true;
}

bool
run_finish(RunWriter *writer, Run **out_run, Error *err)
{
    if (!complete(writer, err)) {
        (void) WRAP(err, "%s", writer->path);
        run_abort(writer);
        return false;
    }
    *out_run = xcalloc(1, sizeof(Run));
    **out_run = writer->run;
    free_writer(writer);
    return true;
}

/* --- Merging ------------------------------------------------------------------------------- */

enum { CURSOR_PAGES = 64 };

/* Reads a run from its beginning to its end, some pages at a time. */
typedef struct Cursor {
    const Run *run;
    uint64_t next_page; /* to be read next */
    size_t page;        /* in pages */
    size_t page_count;
    size_t at; /* entry of the page */
    size_t count;
    Entry current;
    uint8_t pages[CURSOR_PAGES][PAGE_SIZE];
} Cursor;

static bool
cursor_next_page(Cursor *cursor, Error *err)
{
    if (++cursor->page >= cursor->page_count) {
        uint64_t left = cursor->run->pages - cursor->next_page;

        cursor->page = 0;
        cursor->page_count = left < CURSOR_PAGES ? (size_t) left : CURSOR_PAGES;
        TRY(read_fully(cursor->run->fd, cursor->pages, cursor->page_count * PAGE_SIZE,
                       page_at(cursor->run->filter_blocks, cursor->next_page), err));
    }

    const uint8_t *page = cursor->pages[cursor->page];

    TRY(check_page(cursor->run, page, cursor->next_page, err));
    cursor->next_page++;
    cursor->count = load_le32(page + PAGE_COUNT_AT);
    cursor->at = 0;
    return true;
}

/* Step to the next entry that counts; *out_end when there is none. */
static bool
cursor_step(Cursor *cursor, const LiveFiles *files, bool *out_end, Error *err)
{
    for (;;) {
        if (cursor->at == cursor->count) {
            if (cursor->next_page == cursor->run->pages) {
                *out_end = true;
                return true;
            }
            TRY(cursor_next_page(cursor, err));
        }

        Entry previous = cursor->current;

        memcpy(&cursor->current, cursor->pages[cursor->page] + cursor->at * sizeof(Entry),
               sizeof(Entry));
        if (entry_cmp(&previous, &cursor->current) > 0)
            return FAIL(err, ERR_INPUT, "entries are out of order");
        cursor->at++;
        if (live_file(files, cursor->current.file))
            return true;
    }
}

/* A heap of cursors, the one with the smallest entry on top. */
typedef struct Heap {
    Cursor **cursors;
    size_t count;
} Heap;

static void
sift_down(Heap *heap, size_t at)
{
    Cursor *moving = heap->cursors[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            entry_cmp(&heap->cursors[child + 1]->current, &heap->cursors[child]->current) < 0)
            child++;
        if (entry_cmp(&moving->current, &heap->cursors[child]->current) <= 0)
            break;
        heap->cursors[at] = heap->cursors[child];
        at = child;
    }
    heap->cursors[at] = moving;
}

static bool
go_on(const RunMerge *merge, Error *err)
{
    if (merge->stop != NULL && atomic_load_explicit(merge->stop, memory_order_relaxed))
        return FAIL(err, ERR_CANCELED, "the merge was stopped");
    return true;
}

/* Step the cursor of run `number`; what fails is that run. */
static bool
step_run(RunMerge *merge, size_t number, Cursor *cursor, bool *out_end, Error *err)
{
    if (!cursor_step(cursor, merge->files, out_end, err)) {
        merge->broken = number;
        return false;
    }
    return true;
}

static bool
merge_entries(RunMerge *merge, Cursor *cursors, Heap *heap, RunWriter *writer, Error *err)
{
    for (size_t i = 0; i < merge->count; i++) {
        bool end = false;

        cursors[i].run = merge->runs[i];
        TRY(step_run(merge, i, &cursors[i], &end, err));
        if (!end)
            heap->cursors[heap->count++] = &cursors[i];
    }
    for (size_t i = heap->count; i-- > 0;)
        sift_down(heap, i);
    for (uint64_t added = 0; heap->count > 0; added++) {
        Cursor *top = heap->cursors[0];
        bool end = false;

        if (added % 4096 == 0)
            TRY(go_on(merge, err));
        TRY(run_add(writer, &top->current, err));
        TRY(step_run(merge, (size_t) (top - cursors), top, &end, err));
        if (end)
            heap->cursors[0] = heap->cursors[--heap->count];
        if (heap->count > 0)
            sift_down(heap, 0);
    }
    return true;
}

bool
run_merge(RunMerge *merge, RunWriter *writer, Error *err)
{
    Cursor *cursors = xcalloc(merge->count, sizeof *cursors);
    Heap heap = {.cursors = xcalloc(merge->count, sizeof(Cursor *))};

    merge->broken = merge->count;

    bool merged = merge_entries(merge, cursors, &heap, writer, err);

    free(heap.cursors);
    free(cursors);
    return merged;
}
