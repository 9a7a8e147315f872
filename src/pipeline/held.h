/* held.h - how much WAL the slot holds on the server, and whether that grows. */
#ifndef PIPELINE_HELD_H
#define PIPELINE_HELD_H

#include "config/config.h"
#include "source/slot.h"

typedef struct Held Held;

typedef struct HeldWal {
    Position server;  /* its own, as of a few seconds ago; POSITION_NONE: not known */
    Position restart; /* WAL from here on is kept; POSITION_NONE: not known */
    bool growth_known;
    int64_t growth; /* bytes per second; negative: it shrinks */
} HeldWal;

/* Ask from now on; the config is resolved, and outlives it. */
Held *held_start(const Config *config);
void held_stop(Held *held); /* NULL is fine */
/* What somebody else just asked. */
void held_note(Held *held, const Slot *slot);
HeldWal held_now(Held *held);

#endif
