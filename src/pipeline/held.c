/* held.c - the WAL that the slot holds, for status.
 *
 * Not what is between the server's position and the acknowledged one: the server keeps WAL from the
 * beginning of the oldest transaction that was open then, so one that somebody forgot holds all of
 * it while the stream goes on. Only the slot tells. It is asked by a thread with a connection of
 * its own, because it grows just when the others wait: for the lake, or for a source that is away.
 *
 * The slot moves on in steps of some seconds, so WAL held goes up and down all the time. Whether it
 * grows is told by the least of one window and of the next. */
#include "pipeline/held.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/xalloc.h"

enum { LOOK_MS = 5000, WINDOW_MS = 30000 };

/* The least of a window. */
typedef struct Low {
    int64_t at_ms; /* 0: none yet */
    int64_t bytes;
} Low;

struct Held {
    const Config *config;
    Cancel *cancel;
    pthread_t thread;
    pthread_mutex_t lock; /* for what follows */
    HeldWal now;
    int64_t window_ms; /* when it began */
    Low window;
    Low last; /* of the window before it */
};

static void
end_window(Held *held)
{
    held->now.growth_known = held->last.at_ms != 0;
    if (held->now.growth_known)
        held->now.growth = (held->window.bytes - held->last.bytes) * 1000 /
                           (held->window.at_ms - held->last.at_ms);
    held->last = held->window;
    held->window = (Low){0};
}

void
held_note(Held *held, const Slot *slot)
{
    int64_t now = clock_ms();

    pthread_mutex_lock(&held->lock);
    held->now.restart = slot->restart;
    if (slot->restart != POSITION_NONE) {
        held->now.server = slot->restart + (Position) slot->retained_bytes;
        if (held->window.at_ms != 0 && now - held->window_ms >= LIMIT("held.window_ms", WINDOW_MS))
            end_window(held);
        if (held->window.at_ms == 0)
            held->window_ms = now;
        if (held->window.at_ms == 0 || slot->retained_bytes < held->window.bytes)
            held->window = (Low){.at_ms = now, .bytes = slot->retained_bytes};
    }
    pthread_mutex_unlock(&held->lock);
}

HeldWal
held_now(Held *held)
{
    HeldWal now;

    pthread_mutex_lock(&held->lock);
    now = held->now;
    pthread_mutex_unlock(&held->lock);
    return now;
}

/* The source does not say: what it said before may be old. */
static void
held_forget(Held *held)
{
    pthread_mutex_lock(&held->lock);
    held->now = (HeldWal){0};
    held->window = held->last = (Low){0};
    pthread_mutex_unlock(&held->lock);
}

static bool
ask(const Held *held, PgConn **conn, Arena *arena, Slot *out_slot, Error *err)
{
    PgConnect connect = {.conninfo = held->config->source_postgres,
                         .application_name = "walberg status",
                         .cancel = held->cancel,
                         .impatient = true};

    if (*conn == NULL)
        TRY(pg_connect(&connect, conn, err));
    return source_slot_load(*conn, arena, held->config->source_slot, out_slot, err);
}

static void *
held_main(void *arg)
{
    Held *held = arg;
    AUTO_PG PgConn *conn = NULL;
    AUTO_ARENA Arena *arena = arena_new();
    Error err;

    while (cancel_sleep(held->cancel, LIMIT("held.look_ms", LOOK_MS), &err)) {
        Slot slot;

        arena_reset(arena);
        if (ask(held, &conn, arena, &slot, &err)) {
            held_note(held, &slot);
            continue;
        }
        log_debug("cannot look at the slot", LOG_STR("error", err.msg));
        held_forget(held);
        pg_close(conn);
        conn = NULL;
    }
    return NULL;
}

Held *
held_start(const Config *config)
{
    Held *held = xcalloc(1, sizeof *held);

    held->config = config;
    held->cancel = cancel_new();
    pthread_mutex_init(&held->lock, NULL);
    if (pthread_create(&held->thread, NULL, held_main, held) != 0) {
        perror("walberg: pthread_create");
        abort();
    }
    return held;
}

void
held_stop(Held *held)
{
    if (held == NULL)
        return;
    cancel_set(held->cancel);
    pthread_join(held->thread, NULL);
    cancel_free(held->cancel);
    pthread_mutex_destroy(&held->lock);
    free(held);
}
