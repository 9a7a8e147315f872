/* change.h - one decoded row event of the replication stream, as views into the message. */
#ifndef MODEL_CHANGE_H
#define MODEL_CHANGE_H

#include "base/str.h"

#include <stdint.h>

typedef enum Op { OP_INSERT, OP_UPDATE, OP_DELETE, OP_TRUNCATE } Op;

typedef enum DatumKind {
    DATUM_NULL = 'n',
    DATUM_UNCHANGED = 'u', /* a TOASTed value that the update did not touch: not sent */
    DATUM_TEXT = 't',
} DatumKind;

typedef struct Datum {
    DatumKind kind;
    Str text; /* Postgres' text output, UTF-8 unless the database is SQL_ASCII */
} Datum;

/* Values in the order of the Relation message; count is that of the relation's columns. */
typedef struct Tuple {
    int count;
    Datum *datums;
} Tuple;

typedef enum OldTuple {
    OLD_NONE,
    OLD_KEY, /* 'K': only key columns are meaningful, the others read NULL */
    OLD_ROW, /* 'O': the whole row (REPLICA IDENTITY FULL) */
} OldTuple;

/* Valid until the next message is decoded. */
typedef struct Change {
    Op op;
    uint32_t relid;
    OldTuple old_kind;
    Tuple old;   /* update, delete */
    Tuple after; /* insert, update */
} Change;

#endif
