/* waits.c - transactions of others, or a primary, that a copy waits for.
 *
 * Postgres makes a slot, and with it the snapshot of a copy, when all transactions that were open
 * have ended, and lets nobody read a table that one of them has altered. One that was forgotten (a
 * prepared one has not even a session) would hold up a copy for ever and in silence. So the log,
 * once, and status say whose it is when the same one is in the way at two looks. */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "pipeline/internal.h"
#include "source/blocker.h"

enum { LOOK_MS = 10000 };

bool
waits_due(const Pipeline *pl)
{
    return clock_ms() - pl->waits.looked_ms >= LIMIT("waits.look_ms", LOOK_MS);
}

void
waits_forget(Pipeline *pl)
{
    pl->waits.blocker[0] = pl->waits.text[0] = '\0';
}

static void
say(Pipeline *pl, const Blocker *blocker)
{
    AUTO_ARENA Arena *arena = arena_new();
    const char *text = source_blocker_text(arena, blocker);
    const char *hint = source_blocker_hint(arena, blocker);

    if (pl->waits.text[0] == '\0')
        log_warn("the copy waits", LOG_STR("for", text), LOG_STR("hint", hint));
    snprintf(pl->waits.text, sizeof pl->waits.text, "the copy waits for %s\nhint: %s", text, hint);
}

void
waits_look(Pipeline *pl, const Buf *pids)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf list = {0};
    Blocker blocker = {0};
    Error err;

    pl->waits.looked_ms = clock_ms();
    for (size_t i = 0; i < BUF_COUNT(pids, int); i++)
        buf_printf(&list, "%s%d", i == 0 ? "{" : ",", BUF_AT(pids, int, i));
    buf_byte(&list, '}');
    if (pids->len > 0 && (!recover_connection(pl, &err) ||
                          !source_blocker_load(pl->conn, arena, buf_text(&list), &blocker, &err))) {
        log_debug("cannot look at locks", LOG_STR("error", err.msg));
        pg_close(pl->conn);
        pl->conn = NULL;
        return;
    }
    if (blocker.id == NULL || strcmp(blocker.id, pl->waits.blocker) != 0)
        waits_forget(pl);
    else
        say(pl, &blocker);
    if (blocker.id != NULL)
        snprintf(pl->waits.blocker, sizeof pl->waits.blocker, "%s", blocker.id);
}
