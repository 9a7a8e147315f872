#include "query/engine.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "query/pg_catalog.h"
#include "query/token.h"

/* --- names --------------------------------------------------------------------------------- */

/* Of a table that a statement names. */
typedef struct FoundNumbers {
    Str space;
    Str table;
    TextNumbers numbers; /* in the arena of the statement */
} FoundNumbers;

static TableStanding
find_in(Engine *engine, Arena *arena, Str space, Str name, Str *out_reason)
{
    TableStanding standing = lake_find(engine->lake, arena, space, name, out_reason);
    FoundNumbers found = {.space = arena_str(arena, space), .table = arena_str(arena, name)};

    if (standing == TABLE_READABLE)
        lake_text_numbers(engine->lake, arena, space, name, &found.numbers);
    if (found.numbers.count > 0)
        BUF_PUSH(&engine->found, FoundNumbers, found);
    return standing;
}

static TableStanding
find_table(GuardTables *tables, Arena *arena, Str space, Str name, Str *out_reason)
{
    Engine *engine = (Engine *) tables; /* its first member */

    if (pg_catalog_has(space, name))
        return TABLE_READABLE;
    if (space.len > 0)
        return find_in(engine, arena, space, name, out_reason);
    for (int i = 0; i < engine->path_count; i++) {
        TableStanding standing = find_in(engine, arena, engine->path[i], name, out_reason);

        if (standing != TABLE_UNKNOWN)
            return standing;
    }
    return TABLE_UNKNOWN;
}

/* The schemas of a search_path as it was set: names, quoted or not, between commas. */
static void
parse_path(Engine *engine, Str text)
{
    Lexer lexer = {.rest = arena_str(engine->path_arena, text)};
    Token token;
    Error ignored;

    engine->path_count = 0;
    while (engine->path_count < ENGINE_PATH_MAX && token_next(&lexer, &token, &ignored) &&
           token.kind != TOKEN_END) {
        Str name = token.text;

        if (token.kind == TOKEN_QUOTED || token.kind == TOKEN_STRING)
            name = (Str){.ptr = name.ptr + 1, .len = name.len - 2};
        if (token.kind <= TOKEN_STRING)
            engine->path[engine->path_count++] = name;
    }
}

void
engine_set_path(Engine *engine, Str search_path)
{
    arena_reset(engine->path_arena);
    parse_path(engine, search_path);
    engine->path_version++;
}

static bool
apply_path(Engine *engine, Lane *lane, Error *err)
{
    AUTO_BUF Buf path = {0};
    AUTO_BUF Buf sql = {0};

    if (lane->path_version == engine->path_version)
        return true;
    for (int i = 0; i < engine->path_count; i++) {
        if (!lake_has_space(engine->lake, engine->path[i]))
            continue;
        duck_quote_identifier(&path, engine->path[i]);
        buf_byte(&path, ',');
    }
    buf_cstr(&path, PG_CATALOG_SCHEMA);
    buf_cstr(&sql, "SET search_path = ");
    duck_quote_literal(&sql, buf_view(&path));
    TRY(duck_session_run(lane->session, buf_text(&sql), err));
    lane->path_version = engine->path_version;
    return true;
}

/* --- life ---------------------------------------------------------------------------------- */

bool
engine_init(Engine *engine, Lake *lake, Error *err)
{
    DuckSession *parser = NULL;

    TRY(lake_connect(lake, &parser, err));
    *engine = (Engine){.tables = {.find = find_table}, .lake = lake, .parser = parser};
    pthread_mutex_init(&engine->lock, NULL);
    engine->path_arena = arena_new();
    engine->notice_arena = arena_new();
    engine_set_path(engine, STR("public"));
    return true;
}

void
engine_done(Engine *engine)
{
    for (int i = 0; i < ENGINE_LANES_MAX; i++) {
        assert(!engine->lanes[i].busy);
        duck_session_close(engine->lanes[i].session);
    }
    duck_session_close(engine->parser);
    if (engine->pinned)
        lake_unpin(engine->lake, engine->pin);
    arena_free(engine->path_arena);
    arena_free(engine->notice_arena);
    buf_done(&engine->found);
    buf_done(&engine->notices);
    buf_done(&engine->told);
    pthread_mutex_destroy(&engine->lock);
}

static void
hold_state(Engine *engine)
{
    if (!engine->pinned)
        engine->pin = lake_pin(engine->lake);
    engine->pinned = true;
}

void
engine_rest(Engine *engine)
{
    if (!engine->pinned || engine->in_transaction)
        return;
    lake_unpin(engine->lake, engine->pin);
    engine->pinned = false;
}

void
engine_begin(Engine *engine)
{
    engine->in_transaction = true;
    hold_state(engine);
}

void
engine_end(Engine *engine)
{
    for (int i = 0; i < ENGINE_LANES_MAX; i++) {
        Lane *lane = &engine->lanes[i];
        Error ignored;

        assert(!lane->busy);
        /* Nothing was changed, so how it ends makes no difference; a connection that cannot even
         * do that is thrown away. */
        if (lane->in_transaction && !duck_session_run(lane->session, "ROLLBACK", &ignored)) {
            duck_session_close(lane->session);
            lane->session = NULL;
        }
        lane->in_transaction = false;
    }
    engine->in_transaction = false;
    engine_rest(engine);
}

/* --- being interrupted --------------------------------------------------------------------- */

void
engine_start_clock(Engine *engine, int64_t timeout_ms)
{
    atomic_store(&engine->cancel_wanted, false);
    atomic_store(&engine->timed_out, false);
    atomic_store(&engine->deadline_ms, timeout_ms == 0 ? 0 : clock_ms() + timeout_ms);
}

void
engine_stop_clock(Engine *engine)
{
    atomic_store(&engine->deadline_ms, 0);
}

static void
set_running(Engine *engine, DuckSession *session)
{
    pthread_mutex_lock(&engine->lock);
    engine->running = session;
    pthread_mutex_unlock(&engine->lock);
}

void
engine_interrupt(Engine *engine)
{
    atomic_store(&engine->cancel_wanted, true);
    pthread_mutex_lock(&engine->lock);
    if (engine->running != NULL)
        duck_session_interrupt(engine->running);
    pthread_mutex_unlock(&engine->lock);
}

void
engine_tick(Engine *engine, int64_t now_ms)
{
    int64_t deadline = atomic_load(&engine->deadline_ms);

    if (deadline == 0 || now_ms < deadline)
        return;
    atomic_store(&engine->timed_out, true);
    engine_interrupt(engine);
}

static bool
fail_canceled(Engine *engine, Error *err)
{
    return query_fail(&engine->failure, err, SQLSTATE_CANCELED, "canceling statement due to %s",
                      atomic_load(&engine->timed_out) ? "statement timeout" : "user request");
}

/* Between the steps, where DuckDB has nothing running that could be interrupted. */
static bool
check_canceled(Engine *engine, Error *err)
{
    return !atomic_load(&engine->cancel_wanted) || fail_canceled(engine, err);
}

static bool
fail_lane(Lane *lane, Engine *engine, Error *err)
{
    const DuckFailure *failure = duck_session_failure(lane->session);

    if (failure->class == DUCK_ERROR_INTERRUPTED)
        return fail_canceled(engine, err);
    return query_fail_duck(&engine->failure, err, failure);
}

/* --- cursors ------------------------------------------------------------------------------- */

static bool
ready_lane(Engine *engine, Lane *lane, Error *err)
{
    if (lane->session == NULL) {
        if (!lake_connect(engine->lake, &lane->session, err))
            return query_fail(&engine->failure, err, SQLSTATE_INTERNAL, "cannot open a connection");
        lane->path_version = 0;
    }
    if (!apply_path(engine, lane, err))
        return fail_lane(lane, engine, err);
    if (engine->in_transaction && !lane->in_transaction) {
        if (!duck_session_run(lane->session, "BEGIN TRANSACTION READ ONLY", err))
            return fail_lane(lane, engine, err);
        lane->in_transaction = true;
    }
    return true;
}

static bool
take_lane(Engine *engine, Lane **out_lane, Error *err)
{
    for (int i = 0; i < ENGINE_LANES_MAX; i++) {
        Lane *lane = &engine->lanes[i];

        if (lane->busy)
            continue;
        TRY(ready_lane(engine, lane, err));
        lane->busy = true;
        *out_lane = lane;
        return true;
    }
    return query_fail(&engine->failure, err, "53000", "more than %d portals are open",
                      ENGINE_LANES_MAX);
}

/* --- notices ------------------------------------------------------------------------------- */

static bool
is_told(Engine *engine, const FoundNumbers *found, Str column)
{
    Hash128 hash = hash128(found->space.ptr, found->space.len, 0);

    hash = hash128(found->table.ptr, found->table.len, hash.low);
    hash = hash128(column.ptr, column.len, hash.low);
    for (size_t i = 0; i < BUF_COUNT(&engine->told, Hash128); i++)
        if (BUF_AT(&engine->told, Hash128, i).low == hash.low)
            return true;
    BUF_PUSH(&engine->told, Hash128, hash);
    return false;
}

static void
note_numbers(Engine *engine, const Guarded *guarded, const FoundNumbers *found)
{
    Arena *arena = engine->notice_arena;

    for (size_t i = 0; i < found->numbers.count; i++) {
        const TextNumber *number = &found->numbers.items[i];
        EngineNotice notice = {
            .hint = STR("Cast it to decimal or double precision to calculate with it."),
        };

        if (!guarded_names(guarded, number->column) || is_told(engine, found, number->column))
            continue;
        notice.message =
            arena_strf(arena, "column \"%.*s\" of relation \"%.*s\" is numeric, and shown as text",
                       STR_ARG(number->column), STR_ARG(found->table));
        notice.detail = arena_str(arena, number->why);
        BUF_PUSH(&engine->notices, EngineNotice, notice);
    }
}

const EngineNotice *
engine_take_notices(Engine *engine, size_t *out_count)
{
    *out_count = BUF_COUNT(&engine->notices, EngineNotice);
    buf_reset(&engine->notices);
    return (const EngineNotice *) (void *) engine->notices.ptr;
}

static bool
plan(Cursor *cursor, const CursorOpen *open, Error *err)
{
    Engine *engine = cursor->engine;

    GuardQuery query = {.sql = open->guarded, .parser = engine->parser, .tables = &engine->tables};

    buf_reset(&engine->found);
    if (!guard_check(&query, cursor->arena, &cursor->guarded, &engine->failure, err)) {
        /* its place is in the part that was guarded */
        if (engine->failure.position >= 0)
            engine->failure.position += open->guarded.ptr - open->sql;
        return false;
    }
    TRY(take_lane(engine, &cursor->lane, err));
    if (!duck_prepare(cursor->lane->session, open->sql, &cursor->statement, err))
        return fail_lane(cursor->lane, engine, err);
    if (!duck_statement_reads(cursor->statement))
        return query_fail(&engine->failure, err, SQLSTATE_READ_ONLY,
                          "cannot execute this statement in a read-only transaction");
    if (engine->notices.len == 0)
        arena_reset(engine->notice_arena);
    for (size_t i = 0; i < BUF_COUNT(&engine->found, FoundNumbers); i++)
        note_numbers(engine, &cursor->guarded, &BUF_AT(&engine->found, FoundNumbers, i));
    return check_canceled(engine, err);
}

bool
cursor_open(Engine *engine, const CursorOpen *open, Cursor **out_cursor, Error *err)
{
    Cursor *cursor = xcalloc(1, sizeof *cursor);

    cursor->engine = engine;
    cursor->arena = arena_new();
    hold_state(engine);
    if (!plan(cursor, open, err)) {
        cursor_close(cursor);
        return false;
    }
    *out_cursor = cursor;
    return true;
}

bool
cursor_start(Cursor *cursor, Error *err)
{
    Engine *engine = cursor->engine;

    assert(cursor->rows == NULL);
    set_running(engine, cursor->lane->session);

    bool ok = check_canceled(engine, err) && (duck_execute(cursor->statement, &cursor->rows, err) ||
                                              fail_lane(cursor->lane, engine, err));

    set_running(engine, NULL);
    return ok;
}

bool
cursor_fill(Cursor *cursor, bool *out_end, Error *err)
{
    Engine *engine = cursor->engine;

    *out_end = false;
    if (cursor->chunk_row < cursor->chunk_rows)
        return true;
    set_running(engine, cursor->lane->session);

    bool ok =
        check_canceled(engine, err) && (duck_rows_next(cursor->rows, &cursor->chunk_rows, err) ||
                                        fail_lane(cursor->lane, engine, err));

    set_running(engine, NULL);
    TRY(ok);
    cursor->chunk_row = 0;
    *out_end = cursor->chunk_rows == 0;
    return true;
}

void
cursor_close(Cursor *cursor)
{
    if (cursor == NULL)
        return;
    duck_rows_free(cursor->rows);
    duck_statement_free(cursor->statement);
    if (cursor->lane != NULL)
        cursor->lane->busy = false;
    arena_free(cursor->arena);
    free(cursor);
}

Str
cursor_column_name(const Cursor *cursor, int column)
{
    const Guarded *guarded = &cursor->guarded;
    int count = duck_statement_column_count(cursor->statement);
    int from_end = count - column;
    Str name = STR_NULL;

    if (column < guarded->head_count)
        name = guarded->head[column];
    else if (from_end <= guarded->tail_count)
        name = guarded->tail[guarded->tail_count - from_end];
    return name.ptr == NULL ? duck_statement_columns(cursor->statement)[column].name : name;
}
