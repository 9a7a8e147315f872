/* Statements as a client may send them: split, classified, rewritten with parameters taken from the
 * same bytes. What is rewritten must split into as many statements as before: a parameter never
 * ends the literal that it is in. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "query/dialect.h"
#include "query/token.h"
#include "query/types.h"
#include "query/utility.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
rewrite(Str sql, Str value, uint8_t kind)
{
    static const uint32_t types[] = {
        0,    OID_TEXT, OID_INT8,      OID_NUMERIC,  OID_BYTEA, OID_FLOAT8, 1007,
        1009, 1016,     OID_TIMESTAMP, OID_INTERVAL, OID_DATE,  OID_JSONB,  OID_UUID};
    AUTO_BUF Buf out = {0};
    AUTO(dialect_map_done) DialectMap map = {0};
    Parameter parameters[2] = {
        {.type_oid = types[kind % 14], .format = kind >> 7, .value = value},
        {.type_oid = 0, .value = value},
    };
    QueryFailure failure;
    Error err = {0};
    int count;
    Str statement;
    Str rest;

    if (!dialect_rewrite(
            &(DialectRewrite){.sql = sql, .parameters = parameters, .parameter_count = 2}, &out,
            &map, &count, &failure, &err))
        return;
    buf_text(&out);
    for (size_t i = 0; i <= out.len; i += 7)
        (void) dialect_place(&map, (int64_t) i);
    rest = buf_view(&out);
    if (!token_split(&rest, &statement, &err) || rest.len > 0)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 2)
        return 0;

    AUTO_ARENA Arena *arena = arena_new();
    size_t value_length = bytes[1] < size - 2 ? bytes[1] : size - 2;
    Str value = {.ptr = (const char *) bytes + 2, .len = value_length};
    Str rest = {.ptr = value.ptr + value.len, .len = size - 2 - value.len};
    Error err = {0};

    while (rest.len > 0) {
        Str sql;
        Utility utility;
        QueryFailure failure;

        if (!token_split(&rest, &sql, &err))
            return 0;
        (void) !utility_parse(arena, sql, &utility, &failure, &err);
        rewrite(sql, value, bytes[0]);
    }
    return 0;
}
