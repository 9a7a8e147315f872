/* discard.c - data files that were written and that nothing will ever name.
 *
 * Only files of this process that no attempt at a commit had: an attempt whose answer was lost may
 * have taken effect, and then the lake reads them. What cannot be removed, or belongs to a process
 * that died, stays, as the files of expired snapshots do. */
#include "base/log.h"
#include "sink/iceberg/sink.h"

static bool
discard(const IcebergSink *sink, const DataFile *file, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *key = store_key(sink->store, arena, arena_str(arena, file->path).ptr);

    return file_cache_remove(&sink->files, key, err);
}

void
iceberg_discard_files(const IcebergSink *sink, const Buf *files)
{
    Error err;

    for (size_t i = 0; i < BUF_COUNT(files, DataFile); i++) {
        if (discard(sink, &BUF_AT(files, DataFile, i), &err))
            continue;
        log_debug("files that nothing refers to stay",
                  LOG_INT("files", BUF_COUNT(files, DataFile) - i), LOG_STR("error", err.msg));
        return; /* the store may be away, which is why they are not needed: do not wait for each */
    }
}

void
iceberg_discard_pending(IcebergTable *table)
{
    bool recorded = table->pending.records.len > 0 ||
                    table == table->sink->rejects; /* by the copy of any other table */

    if (table->pending.attempts.len == 0 && !recorded)
        iceberg_discard_files(table->sink, &table->pending.files);
}
