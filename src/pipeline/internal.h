/* internal.h - the pipeline's own struct, shared by the files of this folder.
 *
 *   pipeline.c   the story: recover, copy what is missing, stream, acknowledge
 *   recover.c    what the lake, the slot and the state object say; what must not be
 *   tables.c     tables taken in, attached, found later
 *   shapes.c     schema changes, and tables that are copied again
 *   leaves.c     partitions that come and go
 *   waits.c      transactions of others that a copy waits for
 *   words.c      labels and attributes that are called otherwise
 *   gaps.c       what the publication hides, and tables that are gone
 *   copier.c     the initial copy; with copier.h, copier_work.c
 *   resume.c     one that goes on where it was interrupted
 *   reader.c     the stream's thread
 *   writer.c     an epoch into the lake
 *   ack.c        what the slot may be told
 *   held.c       the WAL that the slot holds, for status
 *   status.c     <state>/status.json, for `walberg status`
 *   child.c      the query server's process */
#ifndef PIPELINE_INTERNAL_H
#define PIPELINE_INTERNAL_H

#include "pg/conn.h"
#include "pipeline/held.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader.h"
#include "pipeline/retry.h"
#include "pipeline/state.h"
#include "pipeline/table.h"
#include "source/publication.h"
#include "source/server.h"
#include "source/slot.h"
#include "source/tables.h"

typedef struct Copier Copier;
typedef struct QueryChild QueryChild;

/* A transaction that a copy waits for. */
typedef struct Waits {
    int64_t looked_ms;
    char blocker[64]; /* who was in the way at the last look; "": nobody */
    char text[1024];  /* what status says of it; "": nothing yet */
} Waits;

typedef struct Pipeline {
    const PipelineOptions *options;
    const Config *config;
    Cancel *cancel;
    const atomic_bool *stop;
    Arena *arena; /* process lifetime */
    ServerInfo server;
    PgConn *conn;         /* catalog queries; NULL: to be connected again */
    PgConn *standby_conn; /* replication; of a source that is a standby, to ask its timeline */
    Sink *sink;
    int lock_fd; /* <state>/lock, held while we run */
    PipelineState state;
    char writer[37]; /* this process, in the state object */
    Arena *state_arena;
    bool publication_is_ours; /* not named by the user: tables may be added to it */
    SourceTables source;      /* as read last */
    Publication publication;  /* as read with it */
    Arena *source_arena;
    Position source_from; /* what was read was so when the WAL was somewhere from here ... */
    Position source_at;   /* ... to here */
    size_t table_count;
    PipeTable **tables;
    Copier *copier; /* NULL: nothing is being copied */
    QueryChild *child;
    Held *held; /* NULL before the source is known */
    Reader *reader;
    bool idle_due;      /* a session began: its first idle position is told at once */
    Position committed; /* of this session: every table that streams has all up to here */
    Position stop_at;   /* once: where to end */
    int64_t state_written_ms;
    int64_t looked_for_tables_ms;
    int64_t look_took_ms; /* the question whether anything changed; with very many tables, long */
    int64_t status_written_ms;
    Str relations_seen;    /* signature of the catalogs when we looked last */
    Buf absent;            /* uint32_t: oids of tables that cannot arrive, once that was said */
    Buf cuts;              /* Position: of the session's reader */
    bool restart;          /* the stream must begin again: a table joins it */
    bool copied;           /* the copy beside the stream has ended */
    bool copy_moved;       /* something was taken of a copy, since the last one was interrupted */
    bool new_tables;       /* seen in the source, to be taken in between two sessions */
    PgConn *snapshot_conn; /* of a slot just made: the first copy reads under its snapshot */
    SlotSnapshot snapshot;
    const char *phase; /* of status: "copying", "streaming", "stopped", "failed" */
    char last_error[1024];
    Waits waits;
    int64_t last_commit_time_us; /* commit time, at the source, of the last transaction committed */
} Pipeline;

/* recover.c */
bool recover_source(Pipeline *pl, Error *err) WARN_UNUSED; /* connect, server, settings, lock */
/* The lake's state object: is it the source we know? Announces a new slot. */
bool recover_state(Pipeline *pl, Error *err) WARN_UNUSED;
bool recover_slot(Pipeline *pl, Error *err) WARN_UNUSED; /* checked, or made */
/* With the tables there: whether the source went on from what the lake has, on which timeline ever.
 * The state object knows the new one before anything of it is read. */
bool recover_timeline(Pipeline *pl, Error *err) WARN_UNUSED;
/* Before a later session of the stream: is it still the same source, is the slot where we left it?
 */
bool recover_again(Pipeline *pl, Error *err) WARN_UNUSED;
/* What the session has read so far is of the timeline that the state object knows. A standby may
 * move on to another one, or be promoted, under a stream that goes on: asked before anything is
 * committed or acknowledged. False: the session ends, and the next begins with the new one. */
bool recover_timeline_stands(Pipeline *pl) WARN_UNUSED;
bool recover_connection(Pipeline *pl, Error *err) WARN_UNUSED; /* pl->conn is alive */
bool pipeline_write_state(Pipeline *pl, Error *err) WARN_UNUSED;
/* One attempt: whether the lake takes anything at all. */
bool pipeline_try_state(Pipeline *pl, Error *err) WARN_UNUSED;

/* tables.c */
bool tables_publish(Pipeline *pl, Error *err) WARN_UNUSED;
bool tables_attach(Pipeline *pl, Error *err) WARN_UNUSED;
bool tables_look_for_new(Pipeline *pl, Error *err) WARN_UNUSED; /* sets new_tables and restart */
bool tables_take_new(Pipeline *pl, Error *err) WARN_UNUSED;
size_t tables_waiting(const Pipeline *pl); /* to be copied */

/* The WAL position that everything which the connection can see now lies before. */
bool tables_position(Pipeline *pl, Position *out_position, Error *err) WARN_UNUSED;
/* Open its table in the lake. ERR_INPUT: the table has to be parked. */
bool tables_open(Pipeline *pl, PipeTable *table, Error *err) WARN_UNUSED;
/* The state's entry of a table that is open, with what is not known yet. */
void tables_remember(Pipeline *pl, const PipeTable *table, const SourceTable *source);
/* The state object's entry of a table that is in the lake; NULL: there is none. */
StateTable *tables_state(const Pipeline *pl, const PipeTable *table);

/* shapes.c */

/* Compare the tables that stream with the catalog as it was between two positions: what has another
 * shape becomes due, what was rewritten is copied again. True in *out_copy: something is. */
void shapes_compare(Pipeline *pl, const SourceTables *now, Position from, Position at);
/* Something waits for the end of the session: a shape whose position the stream has reached, or a
 * table to be copied again. */
bool shapes_waiting(const Pipeline *pl);
/* Between sessions: shapes that are due, into the lake. */
bool shapes_apply(Pipeline *pl, Error *err) WARN_UNUSED;
/* Before a copy: waiting tables get the shape that the catalog has now. */
bool shapes_refresh(Pipeline *pl, Error *err) WARN_UNUSED;
/* `walberg resync`: the tables named in <state>/resync are copied again. */
bool shapes_take_requests(Pipeline *pl, Error *err) WARN_UNUSED;

/* leaves.c */

/* The partitions that hold a table's rows, to be remembered; "" when it is not partitioned. */
const char *leaves_text(Arena *arena, const SourceTable *source);
/* Compare them with what the state remembers: rows that came or went with them are a reason to copy
 * the table again. */
void leaves_follow(Pipeline *pl, PipeTable *table, const SourceTable *now);

/* waits.c */

/* Sessions of ours may wait for somebody's transaction: these server processes (int), looked at
 * when it is time to. */
bool waits_due(const Pipeline *pl);
void waits_look(Pipeline *pl, const Buf *pids);
void waits_forget(Pipeline *pl);

/* words.c */

/* What the values of a table are spelled with, to be remembered. */
const char *words_text(Arena *arena, const SourceTable *source);
/* The type of which a word is not what it was, so that old rows read otherwise; NULL: none. `known`
 * may be NULL: not known. */
const PgType *words_changed(const char *known, const SourceTable *now);

/* gaps.c */

/* Is it the publication that the slot was read with? Its version is noted in the state. */
bool gap_in_publication(Pipeline *pl, const Publication *publication, Error *err) WARN_UNUSED;
/* Is the table published as it `was`? ERR_INPUT: changes are missing, and why. */
bool gap_in_table(const SourceTable *source, const Publication *publication,
                  const StatePublished *was, Error *err) WARN_UNUSED;
/* How it is published now, to be compared later; its texts are the arguments'. */
StatePublished gap_note(const SourceTable *source, const Publication *publication);
/* Why the lake is less than the table by the user's own wish: for status. */
void gap_say_wanted(PipeTable *table, const SourceTable *source, const Publication *publication);
/* Tables that we knew and that the source has no more: noted and logged once each. */
bool gap_dropped_tables(Pipeline *pl, const SourceTables *tables, bool *out_any,
                        Error *err) WARN_UNUSED;

/* copier.c */

/* Copy every waiting table under one snapshot. */
bool copier_start(Pipeline *pl, Error *err) WARN_UNUSED;
/* Take what the workers finished, commit whole tables; *out_done when all ended.
 * Waits up to ms. */
bool copier_step(Pipeline *pl, int64_t ms, bool *out_done, Error *err) WARN_UNUSED;
void copier_free(Pipeline *pl); /* stops the workers; NULL copier is fine */
/* Where the snapshot of the running copy is: the slot must not be told more. */
Position copier_position(const Pipeline *pl);

/* resume.c */

/* What was recorded of copies that are not complete. */
typedef struct ResumeProgress {
    int64_t rows;
    int tasks;
    Position newest; /* snapshot; POSITION_NONE: nothing is recorded */
    uint64_t files_mark;
    uint64_t columns_mark;
} ResumeProgress;

/* Tasks that are complete under the running copy's snapshot: all of them, each time. */
typedef struct ResumeDone {
    Position position;
    const Buf *loads; /* int, ascending */
    Buf *ranges;      /* CopyRange */
} ResumeDone;

/* Before the state's entry follows the table as it is `now`: when what is recorded of its copy is
 * of no use any more, it is forgotten. */
void resume_check(Pipeline *pl, PipeTable *table, const SourceTable *now,
                  const Publication *publication);
/* Its rows are about to be copied: sink_replace(), or what is recorded counts. */
bool resume_copy(Pipeline *pl, PipeTable *table, const SourceTable *now,
                 const Publication *publication, Error *err) WARN_UNUSED;
/* All of it is recorded; the table is hidden once more, as it was before the stream wrote to it.
 * ERR_COPY: only a copy from the beginning helps. */
bool resume_hide(Pipeline *pl, PipeTable *table, Error *err) WARN_UNUSED;
/* It is visible. */
void resume_shown(Pipeline *pl, PipeTable *table);
ResumeProgress resume_progress(const Pipeline *pl, const PipeTable *table);
/* Recorded ranges, appended as CopyRange. */
void resume_ranges(const Pipeline *pl, const PipeTable *table, Buf *into);
/* Into the sink and pl->state; the caller writes that. */
bool resume_record(Pipeline *pl, PipeTable *table, const ResumeDone *done, Error *err) WARN_UNUSED;

/* writer.c */
bool writer_epoch(Pipeline *pl, Epoch *epoch, Error *err) WARN_UNUSED;
/* Tables that were parked because the lake did not take what was written to them are tried again:
 * whether it is time for one, and between two sessions, the attempt. TABLE_STREAMING: it takes part
 * in the next one. */
bool writer_wants_back(Pipeline *pl);
bool writer_is_due(const PipeTable *table);
TableState writer_take_back(Pipeline *pl, PipeTable *table);
/* retry_again() for what is done to one table. After a minute in which the lake takes what others
 * have the table is parked like them. False: it is (away_since_ms says so), or the error stands. */
bool writer_try_again(Pipeline *pl, PipeTable *table, Retry *retry, const char *what, Error *err);
/* For how long attempts at one table may fail before it is parked like that. */
int64_t writer_patience_ms(void);
/* The table alone fails, though the lake takes what the others have: it is parked like them.
 * False: it is not so, the error stands. */
bool writer_park_alone(Pipeline *pl, PipeTable *table, const char *what, const Error *cause);
/* Queries may see everything up to here, unless a table is ahead: after a crash amid an epoch the
 * next process cuts its epochs elsewhere, and there is no snapshot of that table which goes with
 * theirs. They see the moment from before the crash until the stream has come to where it is. */
void writer_show(Pipeline *pl, Position position);
/* Take a table to a shape; when the lake's rows cannot take it, the table waits for a new copy. */
bool writer_evolve(Pipeline *pl, PipeTable *table, const TableSchema *shape,
                   Error *err) WARN_UNUSED;
/* The table leaves the stream and waits for a new copy of its rows. */
void writer_copy_again(Pipeline *pl, PipeTable *table, const char *reason);
/* The table stops here, alone: nothing half done is left in it. */
void writer_park(Pipeline *pl, PipeTable *table, const char *reason);
/* What a table that leaves the stream was sent since its last commit is dropped; its position
 * holds. When it cannot be reloaded, nobody waits for that: it is tried again before it takes
 * anything. */
void writer_drop_pending(Pipeline *pl, PipeTable *table);
/* The values of a parked table's batch that were rejected. */
bool writer_record(Pipeline *pl, PipeTable *table, Batch *batch, Error *err) WARN_UNUSED;

/* ack.c */

/* The largest position the slot may be told: no table that still needs the stream
 * lacks it. */
Position ack_limit(const Pipeline *pl);
/* Tell the reader, after the state object knows it. */
bool ack_advance(Pipeline *pl, Position position, Error *err) WARN_UNUSED;
bool ack_idle(Pipeline *pl, bool now, Error *err) WARN_UNUSED;

/* status.c */
void status_write(Pipeline *pl, bool now);
/* retry_again() on the main thread: meanwhile status has the error, and is kept fresh, and the
 * query server is watched. */
bool status_retry(Pipeline *pl, Retry *retry, const char *what, Error *err);

/* child.c */
bool child_start(Pipeline *pl, Error *err) WARN_UNUSED;
void child_tell(Pipeline *pl);  /* something was committed */
void child_watch(Pipeline *pl); /* starts a dead child again */
/* How often in a row it ended soon after its start; 0: it serves, or is not wanted. */
int child_failures(const Pipeline *pl);
void child_stop(Pipeline *pl);

#endif
