/* reader.h - the reader thread: replication stream -> changes -> batches -> epochs.
 *
 * One session of the stream, from a connection to its end. The thread never waits for the sink
 * without answering the server: while the queue is full it keeps reporting its position. At most
 * two epochs exist at a time (one filled, one written), which is what bounds memory.
 *
 *     stream -> decode -> batch of its table -> epoch --queue--> main thread writes and commits
 *       ^                                                              |
 *       +----------------- reader_set_flushed(position) --------------+                          */
#ifndef PIPELINE_READER_H
#define PIPELINE_READER_H

#include "pipeline/table.h"

typedef struct Reader Reader;

typedef struct ReaderOptions {
    const Config *config;
    const char *conninfo;
    const char *slot;
    const char *publication;
    size_t table_count;
    PipeTable *const *tables;
    Position start; /* everything at or before it is committed */
    size_t cut_count;
    const Position *cuts; /* ascending: no epoch has transactions from both sides of one */
    Position stop_at;     /* POSITION_NONE: never; else end when the source was read up to here */
    int timeline;         /* of the server that was looked at; 0: any */
    int64_t commit_interval_ms;
    int64_t commit_rows;
    int64_t commit_bytes;
    size_t memory_bytes_max; /* of the batches of one epoch; then it is handed over in pieces */
    int64_t value_bytes_max; /* of a value's text; a longer one is a reject */
    bool park_on_reject;
    Cancel *cancel;          /* leave at once */
    Cancel *leaving;         /* set with `stop`: no further question to the catalogs */
    const atomic_bool *stop; /* a wish: finish the transaction, hand it over, end */
} ReaderOptions;

/* Options are copied, what they point to must outlive the reader. Connects in the new thread. */
Reader *reader_start(const ReaderOptions *options);

/* Next epoch, or NULL when there is none within ms. The caller gives it back with reader_recycle()
 * once written. */
Epoch *reader_take(Reader *reader, int64_t ms);
void reader_recycle(Reader *reader, Epoch *epoch);

/* The thread has ended and its queue is drained. */
bool reader_ended(Reader *reader);

/* The slot may forget everything up to here. Any thread. */
void reader_set_flushed(Reader *reader, Position position);

/* When nothing is pending between stream and lake: how far the source was read without finding
 * anything of ours. POSITION_NONE while something is pending. */
Position reader_idle_position(Reader *reader);

/* What the server said last: its WAL position, and when we heard from it (clock_ms). */
Position reader_server_position(Reader *reader);

/* End the session: no further epoch is made (what is not handed over will come again). Joins the
 * thread, frees everything. False with the thread's error when it gave up by itself. */
bool reader_stop(Reader *reader, Error *err) WARN_UNUSED;

#endif
