/* state.h - what the pipeline remembers in the lake: <warehouse>/_walberg/<pipeline>.json.
 *
 * Positions of tables are not here but in the tables themselves. This object says which source the
 * lake belongs to (so that another database, a recreated slot, a table made again under the same
 * name are noticed), up to where all tables are committed (what the query server shows) and up to
 * where the slot was told (so that a slot advanced by somebody else is noticed). Written by
 * compare-and-swap before what it announces, so that a crash in between is recognised. Of a copy
 * that takes long it has which pages are done, and where the sink has their rows. */
#ifndef PIPELINE_STATE_H
#define PIPELINE_STATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/position.h"
#include "sink/sink.h"
#include "source/copy.h"

/* What of a table was copied under one snapshot. */
typedef struct StateCopied {
    SinkLoaded loaded;
    int tasks; /* that it took */
    int range_count;
    CopyRange *ranges; /* joined */
} StateCopied;

/* A copy that is not complete: what a later process goes on with. */
typedef struct StateCopy {
    uint64_t files_mark; /* as of before its first snapshot, like what follows */
    uint64_t columns_mark;
    const char *publication; /* version; NULL: nothing may be recorded */
    int count;               /* of snapshots; 0: nothing is recorded */
    StateCopied *parts;      /* oldest snapshot first */
} StateCopy;

/* How a table was published when it was copied: whatever changes in it since hides changes of rows
 * from the stream. */
typedef struct StatePublished {
    bool noted;            /* false: the state was written by a version that did not look */
    uint32_t entry;        /* as in SourceTable */
    uint32_t schema_entry; /* as in SourceTable */
    const char *missing;   /* operations that are not published, "update, truncate"; or "" */
    const char *filter;    /* of rows; or "" */
    const char *columns;   /* attnums of the column list; or "" */
} StatePublished;

typedef struct StateName {
    const char *schema_name;
    const char *table_name;
} StateName;

typedef struct StateTable {
    uint32_t oid;
    const char *source; /* "public.orders" at the time of the copy */
    const char *lake;
    const char *schema_name; /* of the source, when it was taken in: names the lake's table */
    const char *table_name;
    Position streamed;   /* the slot was told at most this while the table was with us */
    Position committed;  /* the lake had at least this of it */
    uint64_t files_mark; /* see SourceTable */
    uint64_t columns_mark;
    const char *leaves; /* of a partitioned table, see leaves.c; NULL: not known */
    const char *words;  /* of its types, see words.c; NULL: not known */
    bool copy_again;    /* its rows are to be replaced by a new copy */
    bool mended;    /* it was copied again because the lake lacked rows, and not altered since */
    bool dropped;   /* it is gone from the source: said once, its rows stay */
    int name_count; /* of other names that it had, when values of it may have been rejected */
    StateName *names;
    StatePublished published;
    StateCopy copy;
} StateTable;

typedef enum SlotPhase {
    SLOT_CREATING, /* announced: nothing was read yet; a slot of this name may be ours */
    SLOT_READY,
} SlotPhase;

typedef struct PipelineState {
    const char *pipeline;
    const char *writer; /* the process that wrote it: makes its states unlike anybody else's */
    const char *system_identifier;
    int timeline;
    Position timeline_began; /* two timelines may have one number; POSITION_NONE: not known */
    const char *database;
    const char *slot;
    const char *publication;
    uint32_t publication_oid;        /* 0: not known */
    const char *publication_version; /* as in Publication; "": not known */
    bool publication_made;           /* by this pipeline, so it may drop it */
    SlotPhase phase;
    Position consistent_point; /* where the slot began */
    Position committed;        /* all tables have every transaction at or before it */
    Position acknowledged;     /* the slot was never told more than this */
    size_t table_count;
    StateTable *tables;
} PipelineState;

/* ERR_INPUT names what is wrong with it, and says what to do with the object. */
bool state_parse(Arena *arena, Str json, PipelineState *out_state, Error *err) WARN_UNUSED;
void state_write(const PipelineState *state, Buf *out);

/* NULL when the state does not know the table. By oid: it may have been renamed. */
StateTable *state_find_table(const PipelineState *state, const char *source);
StateTable *state_find_oid(const PipelineState *state, uint32_t oid);
/* Whether the table is, or was, called so. */
bool state_has_name(const StateTable *table, Str schema_name, Str table_name);
/* Note it, in the arena. */
void state_add_name(Arena *arena, StateTable *table, Str schema_name, Str table_name);
StateCopy state_copy_copy(Arena *arena, const StateCopy *copy); /* deep */
/* Add or replace: by oid, else by source name. */
void state_set_table(Arena *arena, PipelineState *state, const StateTable *table);

#endif
