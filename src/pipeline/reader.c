#include "pipeline/reader.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/queue.h"
#include "decode/pgoutput.h"
#include "pipeline/relation.h"
#include "source/stream.h"
#include "source/tables.h"

enum {
    EPOCHS_MAX = 2,
    WAIT_MS = 100,
    WAIT_ONCE_MS = 20,
    WAIT_ALONE_MS = 5,
    FINISH_MS = 10000,
    PATCH_COPIES = 4,
    LARGE_SHARE = 8,
};

struct Reader {
    ReaderOptions options;
    pthread_t thread;
    Stream *stream;
    Queue *sealed;    /* Epoch: to the main thread */
    Queue *empty;     /* Epoch: back from it */
    atomic_bool quit; /* end now, make no further epoch */
    atomic_bool ended;
    atomic_ullong flushed; /* to be told to the slot */
    atomic_ullong idle;    /* reader_idle_position() */
    atomic_ullong server;
    atomic_int in_flight; /* epochs handed over and not given back */
    Error error;          /* the thread's, valid after it ended; kind ERR_NONE: none */

    /* the thread's own */
    Epoch *filling;
    int64_t first_change_ms; /* of the epoch being filled */
    size_t bytes_handed;     /* of the epoch, in pieces already handed over */
    Position position;       /* end LSN of the last transaction read */
    size_t cut;              /* next of options.cuts */
    Position keepalive;      /* the server has sent all that ends at or before */
    int64_t commit_time_us;
    bool in_transaction;
    Position transaction; /* start LSN of its commit record */
    int64_t transaction_time_us;
    RelationMap *relations;
    PgConn *catalog; /* for questions about Relation messages; NULL until the first */
};

/* --- handing over ---------------------------------------------------------------------------- */

/* Wait for a free epoch, answering the server meanwhile: the sink may be busy for minutes. alone:
 * and until nothing of what was handed over is held any more. */
static bool
take_empty(Reader *reader, bool alone, Error *err)
{
    bool timeout;

    while (reader->filling == NULL || (alone && atomic_load(&reader->in_flight) > 0)) {
        if (atomic_load(&reader->quit))
            return FAIL(err, ERR_CANCELED, "the session ends");
        if (reader->filling == NULL)
            reader->filling = queue_take_for(reader->empty, WAIT_MS, &timeout);
        stream_set_flushed(reader->stream, atomic_load(&reader->flushed));
        TRY(stream_service(reader->stream, reader->filling == NULL ? 0 : WAIT_ALONE_MS, err));
    }
    return true;
}

/* What was gathered goes to the main thread: the end of an epoch, or a piece of it. */
static bool
hand_over(Reader *reader, bool final, Error *err)
{
    Epoch *epoch = reader->filling;

    TRY(FAULT("reader.hand_over", err)); /* before it counts as in flight */
    for (size_t i = 0; i < BUF_COUNT(&epoch->parts, EpochPart); i++) {
        EpochPart *part = &BUF_AT(&epoch->parts, EpochPart, i);

        part->table->filling = NULL;
        batch_seal(part->batch);
    }
    epoch->final = final;
    if (final) {
        epoch->position = reader->position;
        epoch->commit_time_us = reader->commit_time_us;
    }
    reader->bytes_handed = final ? 0 : reader->bytes_handed + epoch->bytes;

    /* a value larger than the budget: not two at a time */
    bool alone = epoch->bytes > reader->options.memory_bytes_max / 4 * 5;

    reader->filling = NULL;
    atomic_fetch_add(&reader->in_flight, 1);
    stream_message_done(reader->stream);

    bool queued = queue_put(reader->sealed, epoch);

    assert(queued);
    return take_empty(reader, alone, err);
}

/* All transactions at or before `reached` were read: the epoch ends if there is a cut before. */
static bool
pass_cuts(Reader *reader, Position reached, Error *err)
{
    const ReaderOptions *options = &reader->options;
    size_t before = reader->cut;

    while (reader->cut < options->cut_count && options->cuts[reader->cut] <= reached)
        reader->cut++;
    if (reader->cut == before)
        return true;
    if (reader->position < options->cuts[reader->cut - 1])
        reader->position = options->cuts[reader->cut - 1];
    return hand_over(reader, true, err);
}

static bool
epoch_is_due(const Reader *reader)
{
    const ReaderOptions *options = &reader->options;
    const Epoch *epoch = reader->filling;

    return epoch->changes >= options->commit_rows ||
           (int64_t) (epoch->bytes + reader->bytes_handed) >= options->commit_bytes ||
           clock_ms() - reader->first_change_ms >= options->commit_interval_ms;
}

static bool
epoch_has_begun(const Reader *reader)
{
    return !epoch_is_empty(reader->filling) || reader->bytes_handed > 0;
}

/* The table leaves the stream: for good (a person has to act), or to be copied again. */
static void
give_up(Reader *reader, PipeTable *table, const char *reason, bool copy_again)
{
    ParkNote note = {.table = table, .copy_again = copy_again};

    if (!pipe_table_leave(table))
        return;
    note.reason = xstrdup(reason);
    if (!epoch_has_begun(reader))
        reader->first_change_ms = clock_ms();
    BUF_PUSH(&reader->filling->parked, ParkNote, note);
}

/* --- changes --------------------------------------------------------------------------------- */

static bool
table_wants(const Reader *reader, const PipeTable *table)
{
    return table != NULL && atomic_load(&table->state) == TABLE_STREAMING &&
           reader->transaction >= table->done;
}

static Batch *
batch_for(Reader *reader, PipeTable *table)
{
    EpochPart part;

    if (table->filling != NULL)
        return table->filling;
    if (!epoch_has_begun(reader))
        reader->first_change_ms = clock_ms();
    table->filling = batch_new(table->reading, true);
    batch_set_value_limit(table->filling, reader->options.value_bytes_max);
    batch_set_inserts_replace(table->filling,
                              table->inserts_replace || reader->transaction < table->replay_until);
    part = (EpochPart){.table = table, .batch = table->filling};
    BUF_PUSH(&reader->filling->parts, EpochPart, part);
    return table->filling;
}

/* What the batch will take while its unchanged values are read back and written: they are in the
 * page of the lake's file, in the column as read, in the batch, and in the row group of the new
 * file. */
static size_t
memory_with_patches(const PipeTable *table, const Batch *batch)
{
    long long each = atomic_load(&table->sink_table->patch_bytes);

    return batch_memory(batch) + BUF_COUNT(&batch->patches, Patch) * PATCH_COPIES *
                                     (size_t) (each == 0 ? PATCH_BYTES_UNKNOWN : each);
}

static bool
meet_catalog(Reader *reader, Error *err)
{
    PgConnect connect = {.conninfo = reader->options.conninfo,
                         .application_name = "walberg",
                         .cancel = reader->options.leaving,
                         .impatient = true};

    return reader->catalog != NULL || pg_connect(&connect, &reader->catalog, err);
}

static const TableSchema *
current_schema(const SourceTables *found, uint32_t relid)
{
    const SourceTable *now = source_tables_find(found, relid);

    return now == NULL ? NULL : now->schema;
}

/* The table as the catalog has it now; *out_now is NULL when it is gone, else as long as *found. */
static bool
ask_catalog(Reader *reader, Arena *arena, uint32_t relid, SourceTables *found,
            const TableSchema **out_now, Error *err)
{
    TablesRead read = {.config = reader->options.config,
                       .publication = reader->options.publication};

    TRY(meet_catalog(reader, err));
    TRY(source_table_by_oid(reader->catalog, arena, &read, relid, found, err));
    *out_now = current_schema(found, relid);
    return true;
}

static bool
same_members(const TableSchema *a, const TableSchema *b)
{
    for (int i = 0; i < a->column_count; i++) {
        int at = schema_find_attnum(b, a->columns[i].attnum);

        if (at >= 0 && a->columns[i].type_oid == b->columns[at].type_oid &&
            !type_eq(a->columns[i].field.type, b->columns[at].field.type))
            return false;
    }
    return true;
}

/* ALTER TYPE ... ADD ATTRIBUTE sends no Relation message: what is seen of it is a value that does
 * not fit. Asked once a session for each table. */
static bool
check_members(Reader *reader, PipeTable *table, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    SourceTables found = {0};
    const TableSchema *now;

    if (table->members_checked)
        return true;
    TRY(ask_catalog(reader, arena, table->reading->relid, &found, &now, err));
    if (now != NULL && !same_members(table->reading, now))
        give_up(reader, table, "a composite type of its columns has other attributes", true);
    table->members_checked = true;
    source_tables_done(&found);
    return true;
}

static bool
apply(Reader *reader, PipeTable *table, const Change *change, Error *err)
{
    TupleMap map = {.count = table->column_map_count, .column_map = table->column_map};
    ChangeOrigin origin = {.position = reader->transaction,
                           .commit_time_us = reader->transaction_time_us};
    Batch *batch = batch_for(reader, table);
    size_t before = memory_with_patches(table, batch);
    size_t rejects = batch->rejects.len;

    if (!batch_apply(batch, &map, change, &origin, err)) {
        if (err->kind != ERR_INPUT)
            return false;
        give_up(reader, table, err->msg, false);
        return true;
    }
    if (batch->rejects.len > rejects)
        TRY(check_members(reader, table, err));
    if (reader->options.park_on_reject && batch->rejects.len > rejects)
        give_up(reader, table, PARKED_BY_REJECT, false);
    reader->filling->changes++;
    /* what a value takes may have become known meanwhile: the sum is never less than what is held
     */
    size_t after = memory_with_patches(table, batch);

    reader->filling->bytes += after > before ? after - before : 0;
    return true;
}

/* --- shapes ---------------------------------------------------------------------------------- */

/* From here on the table has another shape. What was gathered in the old one stays a part of the
 * epoch by itself. */
static void
change_shape(PipeTable *table, TableSchema *shape)
{
    schema_unref(table->reading);
    table->reading = shape;
    table->filling = NULL;
}

/* The key of the settings does not fit the table any more, say after a column was renamed. Told as
 * `check` and a start tell it, not as the lack of a key. */
static bool
lost_its_key(const PipeTable *table, const SourceTables *found, const TableSchema *now, Error *err)
{
    const SourceTable *source = source_tables_find(found, table->reading->relid);

    if (now == NULL || now->key_mode != KEY_NONE || table->reading->key_mode == KEY_NONE ||
        source->problem == NULL)
        return false;
    (void) FAIL(err, ERR_INPUT, "%s", source->problem);
    return true;
}

/* Ask the catalog what the columns are, and follow. */
static bool
follow(Reader *reader, PipeTable *table, const Message *message, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    SourceTables found = {0};
    TableSchema *shape = NULL;
    const TableSchema *now;

    TRY(ask_catalog(reader, arena, table->reading->relid, &found, &now, err));

    bool done = lost_its_key(table, &found, now, err) ? false
                : now != NULL
                    ? relation_shape(reader->catalog, table, now, message, &shape, err)
                    : FAIL(err, ERR_INPUT,
                           "the table was dropped, after its columns changed\n"
                           "hint: what the lake has is from before; walberg cleanup %s removes it",
                           table->reading->qualified);

    if (done) {
        table->misfits = 0;
        if (schema_same_shape(shape, table->reading))
            schema_unref(shape);
        else
            change_shape(table, shape);
        if (!relation_map(table, message))
            done = FAIL(err, ERR_BUG, "table %s does not fit its own shape",
                        table->reading->qualified);
    } else if (err->kind == ERR_COPY && schema_same_shape(now, table->reading) &&
               table->misfits++ > 0) {
        err->kind = ERR_INPUT; /* one copy did not change anything: a second would not either */
    }
    source_tables_done(&found);
    return done;
}

/* The shape of the changes to come, which we want. */
static bool
meet_relation(Reader *reader, PipeTable *table, const Message *message, Error *err)
{
    bool same;

    TRY(meet_catalog(reader, err));
    /* under FULL a message does not tell the key: only the catalog does */
    if (relation_map(table, message) &&
        (table->inserts_replace || table->reading->identity != IDENTITY_FULL)) {
        TRY(relation_same_columns(reader->catalog, table->reading, &same, err));
        if (same) {
            table->misfits = 0;
            return true;
        }
    }
    table->mapped = false;
    return follow(reader, table, message, err);
}

/* Looked at when the first change comes that we want: what is in the lake already may be of a shape
 * that is long gone. */
static void
on_relation(Reader *reader, const Message *message)
{
    PipeTable *table = relation_table(reader->relations, message->relation.relid);

    if (table != NULL) /* else one that nobody took in yet: the main thread looks for those */
        relation_keep(table, message);
}

/* False with ERR_INPUT or ERR_COPY: the table cannot go on. */
static bool
understand(Reader *reader, PipeTable *table, Error *err)
{
    if (table->relation == NULL)
        return FAIL(err, ERR_BUG, "a change of table %s came before its Relation message",
                    table->reading->qualified);
    return meet_relation(reader, table, table->relation, err);
}

/* --- messages -------------------------------------------------------------------------------- */

static bool
on_change(Reader *reader, const Change *change, Error *err)
{
    PipeTable *table = relation_table(reader->relations, change->relid);

    if (!table_wants(reader, table))
        return true;
    if (!table->mapped && !understand(reader, table, err)) {
        if (err->kind != ERR_INPUT && err->kind != ERR_COPY)
            return false;
        give_up(reader, table, err->msg, err->kind == ERR_COPY);
        return true;
    }

    size_t most = reader->options.memory_bytes_max;
    size_t before = reader->filling->bytes;

    TRY(apply(reader, table, change, err));
    /* what writes the piece holds large values several times over */
    if (reader->filling->bytes - before > most / LARGE_SHARE)
        most /= 2;
    if (reader->filling->bytes >= most)
        return hand_over(reader, false, err);
    return true;
}

static bool
on_truncate(Reader *reader, const Message *message, Error *err)
{
    for (int i = 0; i < message->truncate.relid_count; i++) {
        Change change = {.op = OP_TRUNCATE, .relid = message->truncate.relids[i]};

        TRY(on_change(reader, &change, err));
    }
    return true;
}

static bool
on_commit(Reader *reader, const Message *message, Error *err)
{
    reader->in_transaction = false;
    reader->position = message->commit.end_lsn;
    reader->commit_time_us = message->commit.commit_time_us;
    if (epoch_has_begun(reader) && epoch_is_due(reader))
        return hand_over(reader, true, err);
    return true;
}

static bool
on_message(Reader *reader, const Message *message, Error *err)
{
    switch (message->kind) {
    case 'B':
        reader->in_transaction = true;
        reader->transaction = message->begin.final_lsn;
        reader->transaction_time_us = message->begin.commit_time_us;
        return pass_cuts(reader, reader->transaction, err);
    case 'C':
        return on_commit(reader, message, err);
    case 'R':
        on_relation(reader, message);
        return true;
    case 'T':
        return on_truncate(reader, message, err);
    case 'I':
    case 'U':
    case 'D':
        return on_change(reader, &message->change, err);
    default: /* type, origin, logical message: nothing to do */
        return true;
    }
}

/* --- the loop -------------------------------------------------------------------------------- */

/* What the server has read, if there is nothing of ours between it and the lake. */
static Position
idle_position(Reader *reader)
{
    bool pending = reader->in_transaction || reader->filling == NULL || epoch_has_begun(reader) ||
                   atomic_load(&reader->in_flight) > 0;

    if (pending)
        return POSITION_NONE;
    return reader->keepalive > reader->position ? reader->keepalive : reader->position;
}

static void
note_idle(Reader *reader)
{
    atomic_store(&reader->server, stream_received(reader->stream));
    atomic_store(&reader->idle, idle_position(reader));
}

static bool
reached_the_end(const Reader *reader)
{
    Position stop_at = reader->options.stop_at;

    return stop_at != POSITION_NONE && !reader->in_transaction &&
           (reader->position >= stop_at || reader->keepalive >= stop_at);
}

/* SIGTERM or the end of --once: what is whole goes to the lake. */
static bool
finish(Reader *reader, Error *err)
{
    if (reader->in_transaction || !epoch_has_begun(reader))
        return true;
    return hand_over(reader, true, err);
}

static bool
read_stream(Reader *reader, Error *err)
{
    int64_t wait_ms = reader->options.stop_at != POSITION_NONE ? WAIT_ONCE_MS : WAIT_MS;
    int64_t stopping_ms = 0;
    StreamEvent event;

    for (;;) {
        if (atomic_load(&reader->quit))
            return true;
        if (atomic_load(reader->options.stop) && stopping_ms == 0)
            stopping_ms = clock_ms();
        if (stopping_ms != 0 && (!reader->in_transaction || clock_ms() - stopping_ms > FINISH_MS))
            return finish(reader, err);

        stream_set_flushed(reader->stream, atomic_load(&reader->flushed));
        TRY(stream_next(reader->stream, wait_ms, &event, err));
        if (event.kind == STREAM_END)
            return FAIL(err, ERR_TRANSIENT,
                        "the server ended the stream (it may be shutting down)");
        if (event.kind == STREAM_KEEPALIVE) {
            reader->keepalive = event.server;
            if (!reader->in_transaction)
                TRY(pass_cuts(reader, reader->keepalive, err));
        }
        if (event.kind == STREAM_MESSAGE)
            TRY(on_message(reader, &event.message, err));
        else if (!reader->in_transaction && epoch_has_begun(reader) && epoch_is_due(reader))
            TRY(hand_over(reader, true, err));
        if (event.kind != STREAM_MESSAGE || !reader->in_transaction)
            note_idle(reader);
        if (reached_the_end(reader))
            return finish(reader, err);
    }
}

static bool
run_session(Reader *reader, Error *err)
{
    StreamOpen stream = {
        .application_name = "walberg",
        .conninfo = reader->options.conninfo,
        .slot = reader->options.slot,
        .publication = reader->options.publication,
        .timeline = reader->options.timeline,
        .start = reader->options.start,
        .cancel = reader->options.cancel,
    };

    TRY(FAULT("reader.connect", err));
    TRY(stream_open(&stream, &reader->stream, err));
    log_info("streaming", LOG_STR("slot", reader->options.slot),
             LOG_STR("position", POSITION_TEXT(reader->options.start)));
    reader->position = reader->options.start;
    TRY(read_stream(reader, err));
    return true;
}

/* At once: the main thread may be busy for long, and a server that shuts down waits for us. */
static void
close_stream(Reader *reader)
{
    stream_close(reader->stream);
    reader->stream = NULL;
}

static void *
reader_main(void *arg)
{
    Reader *reader = arg;

    if (run_session(reader, &reader->error) || reader->error.kind == ERR_CANCELED)
        reader->error.kind = ERR_NONE; /* one that was dealt with may be left in it */
    queue_close(reader->sealed);
    atomic_store(&reader->ended, true);

    /* keep the connection and what it confirms until the last epoch is committed */
    while (reader->error.kind == ERR_NONE && !atomic_load(&reader->quit)) {
        Error ignored;

        stream_set_flushed(reader->stream, atomic_load(&reader->flushed));
        note_idle(reader);
        if (!stream_service(reader->stream, 0, &ignored)) {
            close_stream(reader);
            break;
        }
        if (!cancel_sleep(reader->options.cancel, 20, &ignored))
            break;
    }
    if (reader->error.kind != ERR_NONE)
        close_stream(reader);
    return NULL;
}

/* --- the main thread's side ------------------------------------------------------------------ */

Reader *
reader_start(const ReaderOptions *options)
{
    Reader *reader = xcalloc(1, sizeof *reader);

    reader->options = *options;
    for (size_t i = 0; i < options->table_count; i++) {
        PipeTable *table = options->tables[i];

        schema_unref(table->reading);
        table->reading = schema_ref(table->schema);
        table->members_checked = false;
    }
    reader->relations = relation_map_new(options->table_count, options->tables);
    reader->sealed = queue_new(EPOCHS_MAX);
    reader->empty = queue_new(EPOCHS_MAX);
    reader->filling = epoch_new();
    for (int i = 1; i < EPOCHS_MAX; i++)
        if (!queue_offer(reader->empty, epoch_new()))
            abort();
    atomic_store(&reader->flushed, options->start);
    if (pthread_create(&reader->thread, NULL, reader_main, reader) != 0) {
        perror("walberg: pthread_create");
        abort();
    }
    return reader;
}

Epoch *
reader_take(Reader *reader, int64_t ms)
{
    bool timeout;

    return queue_take_for(reader->sealed, ms, &timeout);
}

void
reader_recycle(Reader *reader, Epoch *epoch)
{
    epoch_free(epoch);
    if (!queue_offer(reader->empty, epoch_new()))
        abort();
    atomic_fetch_sub(&reader->in_flight, 1);
}

bool
reader_ended(Reader *reader)
{
    return atomic_load(&reader->ended) && atomic_load(&reader->in_flight) == 0;
}

void
reader_set_flushed(Reader *reader, Position position)
{
    atomic_store(&reader->flushed, position);
}

/* After the end nothing of it changes, but the thread may not have noted yet that the last epoch
 * is written: who asked only the note would miss what came after that epoch. */
Position
reader_idle_position(Reader *reader)
{
    if (reader_ended(reader) && reader->error.kind == ERR_NONE)
        return idle_position(reader);
    return atomic_load(&reader->idle);
}

Position
reader_server_position(Reader *reader)
{
    return atomic_load(&reader->server);
}

/* An epoch that was not written: it will come again, but a table that was given up in it stays so.
 */
static void
drop_epoch(Epoch *epoch)
{
    for (size_t i = 0; epoch != NULL && i < BUF_COUNT(&epoch->parked, ParkNote); i++) {
        const ParkNote *note = &BUF_AT(&epoch->parked, ParkNote, i);

        if (!park_note_stands(note))
            continue;
        if (note->copy_again)
            pipe_table_copy_again(note->table, note->reason);
        else
            pipe_table_park(note->table, note->reason);
    }
    epoch_free(epoch);
}

static void
drop_epochs(Queue *queue)
{
    queue_close(queue);
    for (Epoch *epoch = queue_take(queue); epoch != NULL; epoch = queue_take(queue))
        drop_epoch(epoch);
    queue_free(queue);
}

bool
reader_stop(Reader *reader, Error *err)
{
    Error error;

    atomic_store(&reader->quit, true);
    pthread_join(reader->thread, NULL);
    if (reader->stream != NULL) {
        Error ignored;

        stream_set_flushed(reader->stream, atomic_load(&reader->flushed));
        if (reader->error.kind == ERR_NONE && !stream_finish(reader->stream, &ignored))
            log_debug("the server did not take leave", LOG_STR("error", ignored.msg));
        stream_close(reader->stream);
    }
    for (size_t i = 0; i < reader->options.table_count; i++)
        reader->options.tables[i]->filling = NULL; /* the epoch below owns it */
    drop_epoch(reader->filling);
    drop_epochs(reader->sealed);
    drop_epochs(reader->empty);
    relation_map_free(reader->relations);
    pg_close(reader->catalog);
    error = reader->error;
    free(reader);
    if (error.kind == ERR_NONE)
        return true;
    *err = error;
    return false;
}
