/* index_journal.h - what happened to the key index since a run was last written, so that a restart
 * need not read data files again.
 *
 *     header   magic (8) | table (8) | number (8) | checksum (8)
 *     record   kind (4) | file (4) | name length (4) | rows (4) | checksum (8)
 *              | name | a key of 16 bytes for each row
 *
 * Appended to by plain writes, never synced: it survives the process, and what a crash of the
 * machine leaves of it is told by the checksums; reading stops at the first record that is not
 * whole. */
#ifndef ICEBERG_INDEX_JOURNAL_H
#define ICEBERG_INDEX_JOURNAL_H

#include "base/error.h"
#include "iceberg/index_entry.h"

#include <sys/types.h>

typedef struct Journal {
    int fd; /* -1: there is no file yet */
    uint64_t table;
    uint64_t number;
    uint64_t size;
    Buf pending; /* records to be appended */
} Journal;

typedef enum JournalKind { JOURNAL_ADD = 1, JOURNAL_REMOVE = 2 } JournalKind;

/* A view into the text that is read. */
typedef struct JournalRecord {
    JournalKind kind;
    uint32_t file;
    Str name;
    uint32_t rows;
    const char *keys; /* see journal_key */
} JournalRecord;

void journal_done(Journal *journal);

/* Note that a file came, with its entries in the order of its rows, or went. */
void journal_add(Journal *journal, uint32_t file, Str name, const Entry *entries, uint32_t rows);
void journal_remove(Journal *journal, uint32_t file);

/* Start a new file with the pending records; the old one stays. */
bool journal_create(Journal *journal, const char *path, uint64_t number, Error *err) WARN_UNUSED;
/* Append the pending records. */
bool journal_flush(Journal *journal, Error *err) WARN_UNUSED;

/* Open an existing file and read it into *out_text. */
bool journal_open(Journal *journal, const char *path, uint64_t number, Buf *out_text,
                  Error *err) WARN_UNUSED;
/* The next whole record of that text; false at the end, where appending goes on. */
bool journal_next(Journal *journal, Str text, JournalRecord *out_record);
Hash128 journal_key(const JournalRecord *record, uint32_t row);

#endif
