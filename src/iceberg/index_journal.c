#include "iceberg/index_journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "store/fs_file.h"

enum {
    HEADER_SIZE = 32,
    RECORD_SIZE = 24,
    RECORD_CHECKSUM_AT = 16,
    KEY_SIZE = 16,
    JOURNAL_SIZE_MAX = 256 << 20,
};

static const char MAGIC[8] = "WBRGJNL";

void
journal_done(Journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
    buf_done(&journal->pending);
}

/* Covers the table, the journal and the place, so that no old or moved record passes. */
static uint64_t
record_checksum(const Journal *journal, const char *record, uint64_t at, size_t body)
{
    uint64_t place[] = {journal->table, journal->number, at};
    uint64_t seed = XXH3_64bits(place, sizeof place);

    seed = XXH3_64bits_withSeed(record, RECORD_CHECKSUM_AT, seed);
    return XXH3_64bits_withSeed(record + RECORD_SIZE, body, seed);
}

static void
put_header(char *record, JournalKind kind, uint32_t file, uint32_t name_length, uint32_t rows)
{
    store_le32(record, (uint32_t) kind);
    store_le32(record + 4, file);
    store_le32(record + 8, name_length);
    store_le32(record + 12, rows);
    store_le64(record + RECORD_CHECKSUM_AT, 0); /* until it is written: its place counts */
}

void
journal_add(Journal *journal, uint32_t file, Str name, const Entry *entries, uint32_t rows)
{
    assert(name.len <= UINT32_MAX);
    put_header(buf_push(&journal->pending, RECORD_SIZE), JOURNAL_ADD, file, (uint32_t) name.len,
               rows);
    buf_str(&journal->pending, name);

    char *keys = buf_push(&journal->pending, (size_t) rows * KEY_SIZE);

    for (uint32_t row = 0; row < rows; row++, keys += KEY_SIZE) {
        assert(entries[row].row == row);
        store_le64(keys, entries[row].key.high);
        store_le64(keys + 8, entries[row].key.low);
    }
}

void
journal_remove(Journal *journal, uint32_t file)
{
    put_header(buf_push(&journal->pending, RECORD_SIZE), JOURNAL_REMOVE, file, 0, 0);
}

static size_t
body_size(const char *record)
{
    return load_le32(record + 8) + (size_t) load_le32(record + 12) * KEY_SIZE;
}

static bool
write_at(int fd, const char *bytes, size_t size, uint64_t at, Error *err)
{
    while (size > 0) {
        ssize_t n = pwrite(fd, bytes, size, (off_t) at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return FAIL(err, ERR_TRANSIENT, "write the journal of the key index: %m");
        bytes += n;
        at += (uint64_t) n;
        size -= (size_t) n;
    }
    return true;
}

bool
journal_flush(Journal *journal, Error *err)
{
    Buf *pending = &journal->pending;

    for (size_t at = 0; at < pending->len;) {
        char *record = pending->ptr + at;
        size_t body = body_size(record);

        store_le64(record + RECORD_CHECKSUM_AT,
                   record_checksum(journal, record, journal->size + at, body));
        at += RECORD_SIZE + body;
    }
    TRY(write_at(journal->fd, pending->ptr, pending->len, journal->size, err));
    journal->size += pending->len;
    buf_reset(pending);
    return true;
}

static void
make_header(const Journal *journal, char header[HEADER_SIZE])
{
    memcpy(header, MAGIC, sizeof MAGIC);
    store_le64(header + 8, journal->table);
    store_le64(header + 16, journal->number);
    store_le64(header + 24, XXH3_64bits(header, 24));
}

bool
journal_create(Journal *journal, const char *path, uint64_t number, Error *err)
{
    int fd = folder_create_file(path, O_RDWR | O_TRUNC, 0600);
    char header[HEADER_SIZE];

    if (fd < 0)
        return fs_fail(err, "create", path);
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = fd;
    journal->number = number;
    journal->size = HEADER_SIZE;
    make_header(journal, header);
    TRY(write_at(fd, header, sizeof header, 0, err));
    return journal_flush(journal, err);
}

static bool
read_all(int fd, Buf *text, Error *err)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return FAIL(err, ERR_TRANSIENT, "stat: %m");
    if (status.st_size < HEADER_SIZE || status.st_size > JOURNAL_SIZE_MAX)
        return FAIL(err, ERR_INPUT, "not a journal of the key index");
    buf_reserve(text, (size_t) status.st_size);

    ssize_t n = pread(fd, text->ptr, (size_t) status.st_size, 0);

    if (n != status.st_size)
        return FAIL(err, ERR_TRANSIENT, "read: %m");
    text->len = (size_t) n;
    return true;
}

bool
journal_open(Journal *journal, const char *path, uint64_t number, Buf *out_text, Error *err)
{
    char header[HEADER_SIZE];

    assert(journal->fd < 0);
    journal->fd = open(path, O_RDWR | O_CLOEXEC);
    if (journal->fd < 0)
        return fs_fail(err, "open", path);
    journal->number = number;
    journal->size = HEADER_SIZE;
    make_header(journal, header);
    if (!read_all(journal->fd, out_text, err))
        return WRAP(err, "%s", path);
    if (memcmp(out_text->ptr, header, sizeof header) != 0)
        return FAIL(err, ERR_INPUT, "%s: belongs to another index", path);
    return true;
}

bool
journal_next(Journal *journal, Str text, JournalRecord *out_record)
{
    const char *record = text.ptr + journal->size;
    size_t left = text.len - journal->size;

    if (left < RECORD_SIZE)
        return false;

    size_t body = body_size(record);

    if (body > left - RECORD_SIZE || load_le64(record + RECORD_CHECKSUM_AT) !=
                                         record_checksum(journal, record, journal->size, body))
        return false;

    uint32_t name_length = load_le32(record + 8);

    *out_record = (JournalRecord){
        .kind = (JournalKind) load_le32(record),
        .file = load_le32(record + 4),
        .name = {.ptr = record + RECORD_SIZE, .len = name_length},
        .rows = load_le32(record + 12),
        .keys = record + RECORD_SIZE + name_length,
    };
    journal->size += RECORD_SIZE + body;
    return true;
}

Hash128
journal_key(const JournalRecord *record, uint32_t row)
{
    const char *key = record->keys + (size_t) row * KEY_SIZE;

    return (Hash128){.high = load_le64(key), .low = load_le64(key + 8)};
}
