#include "source/types.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* An array type is one whose element names it as its array (typarray): int2vector and oidvector
 * have elements too, but another text form. */
static const char types_sql[] =
    "WITH RECURSIVE wanted(oid) AS ("
    "  SELECT unnest($1::oid[])"
    "  UNION"
    "  SELECT part.oid FROM wanted w JOIN pg_type t ON t.oid = w.oid CROSS JOIN LATERAL ("
    "    SELECT t.typelem WHERE t.typelem <> 0"
    "    UNION ALL SELECT t.typbasetype WHERE t.typbasetype <> 0"
    "    UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = t.oid"
    "    UNION ALL SELECT d.refobjid FROM pg_depend d WHERE t.typtype = 'm' AND d.objid = t.oid"
    "      AND d.classid = 'pg_type'::regclass AND d.refclassid = 'pg_type'::regclass"
    "    UNION ALL SELECT a.atttypid FROM pg_attribute a"
    "      WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0"
    "      AND NOT a.attisdropped"
    "  ) part(oid)"
    ") SELECT t.oid, t.typname, t.typtype, coalesce(e.typdelim, ','),"
    " coalesce(e.typarray = t.oid, false), t.typtypmod,"
    " CASE WHEN t.typtype = 'd' THEN t.typbasetype WHEN e.typarray = t.oid THEN e.oid"
    "  WHEN t.typtype = 'r' THEN (SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = t.oid)"
    "  WHEN t.typtype = 'm' THEN (SELECT min(d.refobjid) FROM pg_depend d WHERE d.objid = t.oid"
    "   AND d.classid = 'pg_type'::regclass AND d.refclassid = 'pg_type'::regclass) ELSE 0 END"
    " FROM wanted w JOIN pg_type t ON t.oid = w.oid LEFT JOIN pg_type e ON e.oid = t.typelem"
    " ORDER BY t.oid";

static const char members_sql[] =
    "SELECT t.oid, a.attname, a.atttypid, a.atttypmod"
    " FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid"
    " WHERE t.oid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped"
    " ORDER BY t.oid, a.attnum";

/* A new label has a new oid, a new attribute a higher attnum; a rename changes neither. */
static const char words_sql[] =
    "SELECT e.enumtypid, e.oid::int8, e.enumlabel, e.xmin FROM pg_enum e"
    " WHERE e.enumtypid = ANY ($1::oid[])"
    " UNION ALL SELECT t.oid, a.attnum::int8, a.attname, a.xmin"
    " FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid"
    " WHERE t.oid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped"
    " ORDER BY 1, 2";

/* A type that vanished between two queries: its values arrive as text. */
static const PgType unknown_type = {
    .name = {.ptr = "unknown", .len = 7}, .typtype = 'p', .delimiter = ',', .typmod = -1};

const char *
source_oid_array(Arena *arena, const uint32_t *oids, int count)
{
    AUTO_BUF Buf text = {0};

    buf_byte(&text, '{');
    for (int i = 0; i < count; i++)
        buf_printf(&text, "%s%u", i > 0 ? "," : "", oids[i]);
    buf_byte(&text, '}');
    return arena_strdup(arena, buf_text(&text));
}

static int
compare_oid(const void *key, const void *item)
{
    uint32_t oid = *(const uint32_t *) key;
    const PgType *type = item;

    return oid < type->oid ? -1 : oid > type->oid;
}

static PgType *
find(const TypeSet *types, uint32_t oid)
{
    if (types->count == 0)
        return NULL;
    return bsearch(&oid, types->types, (size_t) types->count, sizeof(PgType), compare_oid);
}

const PgType *
source_types_find(const TypeSet *types, uint32_t oid)
{
    return find(types, oid);
}

static const PgType *
find_or_unknown(const TypeSet *types, uint32_t oid)
{
    const PgType *type = find(types, oid);

    return type == NULL ? &unknown_type : type;
}

static void
add_members(Arena *arena, const PgResult *members, const TypeSet *types)
{
    for (int row = 0; row < members->rows;) {
        uint32_t oid = (uint32_t) pg_value_int(members, row, 0);
        int end = row;

        while (end < members->rows && (uint32_t) pg_value_int(members, end, 0) == oid)
            end++;

        PgType *type = find(types, oid);

        if (type != NULL) {
            type->member_count = end - row;
            type->members = ARENA_ARRAY(arena, PgMember, (size_t) type->member_count);
            for (int i = 0; i < type->member_count; i++)
                type->members[i] = (PgMember){
                    .name = pg_value(members, row + i, 1),
                    .type = find_or_unknown(types, (uint32_t) pg_value_int(members, row + i, 2)),
                    .typmod = (int32_t) pg_value_int(members, row + i, 3)};
        }
        row = end;
    }
}

bool
source_types_build(Arena *arena, const PgResult *types, const PgResult *members, TypeSet *out_types,
                   Error *err)
{
    TypeSet set = {.count = types->rows, .types = ARENA_ARRAY(arena, PgType, (size_t) types->rows)};

    for (int row = 0; row < types->rows; row++) {
        PgType *type = &set.types[row];

        *type = (PgType){.oid = (uint32_t) pg_value_int(types, row, 0),
                         .name = pg_value(types, row, 1),
                         .typtype = pg_value(types, row, 2).ptr[0],
                         .delimiter = pg_value(types, row, 3).ptr[0],
                         .is_array = pg_value_bool(types, row, 4),
                         .typmod = (int32_t) pg_value_int(types, row, 5)};
        if (row > 0 && type->oid <= set.types[row - 1].oid)
            return FAIL(err, ERR_BUG, "types are not sorted by oid");
    }
    for (int row = 0; row < types->rows; row++) {
        uint32_t base = (uint32_t) pg_value_int(types, row, 6);

        if (base != 0)
            set.types[row].base = find_or_unknown(&set, base);
    }
    add_members(arena, members, &set);
    *out_types = set;
    return true;
}

bool
xid_is_after(uint32_t xid, uint32_t other)
{
    return (int32_t) (xid - other) > 0;
}

static void
add_words(Arena *arena, const PgResult *words, const TypeSet *types)
{
    uint64_t all = 0;

    for (int row = 0, end; row < words->rows; row = end) {
        uint32_t oid = (uint32_t) pg_value_int(words, row, 0);
        PgType *type = find(types, oid);

        for (end = row; end < words->rows && pg_value_int(words, end, 0) == oid; end++) {
        }
        type->words = ARENA_ARRAY(arena, uint64_t, (size_t) (end - row));
        for (all = 0; row < end; row++) {
            Str word = pg_value(words, row, 2);
            uint32_t xid = (uint32_t) pg_value_int(words, row, 3);
            /* a label may have been another one in between; attributes are told by number */
            uint64_t written = type->typtype == 'e' ? xid : 0;
            const uint64_t parts[] = {all, (uint64_t) pg_value_int(words, row, 1), written,
                                      hash128(word.ptr, word.len, 0).low};

            all = hash128(parts, sizeof parts, 0).low;
            type->words[type->word_count++] = all;
            if (type->word_count == 1 || xid_is_after(xid, type->words_xid))
                type->words_xid = xid;
        }
    }
}

/* The types of one kind, as a parameter. */
static const char *
oids_of(Arena *arena, const PgResult *types, const char *kinds)
{
    AUTO_BUF Buf oids = {0};

    for (int row = 0; row < types->rows; row++)
        if (strchr(kinds, pg_value(types, row, 2).ptr[0]) != NULL)
            BUF_PUSH(&oids, uint32_t, (uint32_t) pg_value_int(types, row, 0));
    return source_oid_array(arena, (const uint32_t *) (void *) oids.ptr,
                            (int) BUF_COUNT(&oids, uint32_t));
}

/* Only when there is money: the locale's name of its currency need not be in the database's
 * encoding, and then every amount is an error. */
static bool
ask_money_digits(PgConn *conn, const TypeSet *types, Error *err)
{
    for (int i = 0; i < types->count; i++) {
        PgType *type = &types->types[i];

        if (type_is_money(type) && !pg_money_digits(conn, NULL, &type->money_digits, err))
            return WRAP(err, "ask how many digits after the point money has");
    }
    return true;
}

bool
source_types_load(PgConn *conn, Arena *arena, const uint32_t *oids, int count, TypeSet *out_types,
                  Error *err)
{
    PgResult types;
    PgResult members;
    PgResult words;
    const char *params[] = {source_oid_array(arena, oids, count)};

    assert(!pg_is_replication(conn));
    if (!pg_ask(conn, arena, types_sql, 1, params, &types, err))
        return WRAP(err, "read types");
    params[0] = oids_of(arena, &types, "c");
    if (!pg_ask(conn, arena, members_sql, 1, params, &members, err))
        return WRAP(err, "read members of composite types");
    params[0] = oids_of(arena, &types, "ce");
    if (!pg_ask(conn, arena, words_sql, 1, params, &words, err))
        return WRAP(err, "read labels of enums");
    TRY(source_types_build(arena, &types, &members, out_types, err));
    add_words(arena, &words, out_types);
    return ask_money_digits(conn, out_types, err);
}
