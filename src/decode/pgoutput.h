/* pgoutput.h - messages of the pgoutput plugin, protocol version 1, as structs.
 *
 * Bytes in, views out: every Str points into the message, arrays live in the arena. Anything that
 * is not exactly a message is ERR_BUG with the message type and offset; no byte beyond the message
 * is ever read (fuzzed: test/fuzz/pgoutput.c). Postgres documentation, "Logical Replication Message
 * Formats"; src/backend/replication/logical/proto.c. */
#ifndef DECODE_PGOUTPUT_H
#define DECODE_PGOUTPUT_H

#include "base/arena.h"
#include "model/change.h"
#include "model/position.h"

typedef struct RelationColumn {
    bool is_key;
    Str name;
    uint32_t type_oid;
    int32_t typmod;
} RelationColumn;

typedef struct Message {
    /* 'B' begin, 'C' commit, 'O' origin, 'R' relation, 'Y' type, 'I' 'U' 'D' change, 'T' truncate,
     * 'M' logical message */
    char kind;

    union {
        struct {
            Position final_lsn;     /* start of the transaction's commit record */
            int64_t commit_time_us; /* since 1970 */
            uint32_t xid;
        } begin;

        struct {
            Position commit_lsn; /* == begin.final_lsn */
            Position end_lsn;    /* end of the commit record: the transaction's Position */
            int64_t commit_time_us;
        } commit;

        struct {
            uint32_t relid;
            Str schema_name;
            Str table_name;
            char identity; /* 'd' 'n' 'f' 'i' */
            int column_count;
            RelationColumn *columns;
        } relation;

        struct {
            uint32_t oid;
            Str schema_name;
            Str type_name;
        } type;

        Change change; /* insert, update, delete */

        struct {
            bool cascade;
            bool restart_identity;
            int relid_count;
            uint32_t *relids;
        } truncate;

        struct {
            bool transactional;
            Position lsn;
            Str prefix;
            Str content;
        } logical;

        struct {
            Position commit_lsn;
            Str name;
        } origin;
    };
} Message;

bool pgoutput_decode(Str bytes, Arena *arena, Message *out_message, Error *err) WARN_UNUSED;

#endif
