/* random_rows.h - a table of every kind of column, nested ones too, and random values for it.
 *
 * Included by one test: everything here is static. `seed` makes the values. */
#ifndef RANDOM_ROWS_H
#define RANDOM_ROWS_H

#include <inttypes.h>
#include <math.h>

#include "model/column.h"

/* --- Types ----------------------------------------------------------------------------------- */

#define PLAIN(k)                                                                                   \
    (&(Type){                                                                                      \
        .kind = (k),                                                                               \
    })
#define DECIMAL(p, s)                                                                              \
    (&(Type){                                                                                      \
        .kind = TYPE_DECIMAL,                                                                      \
        .precision = (p),                                                                          \
        .scale = (s),                                                                              \
    })
#define NESTED(k, n, ...)                                                                          \
    (&(Type){                                                                                      \
        .kind = (k),                                                                               \
        .field_count = (n),                                                                        \
        .fields = (Field[]){__VA_ARGS__},                                                          \
    })
#define FIELD(n, t)                                                                                \
    {                                                                                              \
        .name = STR(n), .type = (t)                                                                \
    }
#define LIST(t)   NESTED(TYPE_LIST, 1, FIELD("element", (t)))
#define MAP(k, v) NESTED(TYPE_MAP, 2, FIELD("key", (k)), FIELD("value", (v)))

static void
assign_ids(Arena *arena, Field *fields, int count)
{
    int next = count + 1;

    for (int i = 0; i < count; i++) {
        Type *type = (Type *) (uintptr_t) type_copy(arena, fields[i].type);

        fields[i].id = i + 1;
        type_assign_ids(type, &next);
        fields[i].type = type;
    }
}

static const Type INT32 = {.kind = TYPE_INT32};
static const Type INT64 = {.kind = TYPE_INT64};
static const Type STRING = {.kind = TYPE_STRING};

/* Every kind, every width of decimals, and what can be nested in what. */
static Field *
all_fields(Arena *arena, int *out_count)
{
    Field fields[] = {
        FIELD("b", PLAIN(TYPE_BOOL)),
        FIELD("i", PLAIN(TYPE_INT32)),
        FIELD("l", PLAIN(TYPE_INT64)),
        FIELD("f", PLAIN(TYPE_FLOAT32)),
        FIELD("d", PLAIN(TYPE_FLOAT64)),
        FIELD("dec4", DECIMAL(4, 2)),
        FIELD("dec9", DECIMAL(9, 0)),
        FIELD("dec18", DECIMAL(18, 18)),
        FIELD("dec19", DECIMAL(19, 4)),
        FIELD("dec38", DECIMAL(38, 10)),
        FIELD("date", PLAIN(TYPE_DATE)),
        FIELD("time", PLAIN(TYPE_TIME)),
        FIELD("ts", PLAIN(TYPE_TIMESTAMP)),
        FIELD("tstz", PLAIN(TYPE_TIMESTAMPTZ)),
        FIELD("s", PLAIN(TYPE_STRING)),
        FIELD("json", PLAIN(TYPE_JSON)),
        FIELD("bin", PLAIN(TYPE_BINARY)),
        FIELD("uuid", PLAIN(TYPE_UUID)),
        FIELD("list", LIST(PLAIN(TYPE_INT32))),
        FIELD("lists", LIST(LIST(PLAIN(TYPE_STRING)))),
        FIELD("map", MAP(PLAIN(TYPE_STRING), PLAIN(TYPE_STRING))),
        FIELD("row", NESTED(TYPE_STRUCT, 3, FIELD("x", PLAIN(TYPE_STRING)),
                            FIELD("y", DECIMAL(4, 1)), FIELD("z", LIST(PLAIN(TYPE_UUID))))),
        FIELD("rows", LIST(NESTED(TYPE_STRUCT, 2, FIELD("k", PLAIN(TYPE_STRING)),
                                  FIELD("m", MAP(PLAIN(TYPE_STRING), LIST(PLAIN(TYPE_DATE))))))),
    };
    int count = (int) (sizeof fields / sizeof fields[0]);
    Field *copy = ARENA_ARRAY(arena, Field, (size_t) count);

    memcpy(copy, fields, sizeof fields);
    assign_ids(arena, copy, count);
    *out_count = count;
    return copy;
}

/* --- Random values --------------------------------------------------------------------------- */

static uint64_t seed;

static uint64_t
noise(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed >> 11;
}

/* Few words, so that DuckDB makes dictionaries, and some long and odd ones. */
static Str
random_text(Arena *arena)
{
    static const char *const words[] = {"",
                                        "a",
                                        "twelve bytes",
                                        "thirteen byte",
                                        "\xF0\x9F\x90\x98 \"quoted\", {odd} \\ 'text'",
                                        "{\"a\": [1, 2.50, null], \"a\": \"twice\"}"};

    if (noise() % 4 == 0)
        return arena_strf(arena, "%0*" PRIu64, (int) (noise() % 60) + 1, noise());
    return str_of(words[noise() % 6]);
}

static void append_random(Arena *arena, Column *column, int null_in);

static void
append_random_elements(Arena *arena, Column *column, int null_in)
{
    size_t start = column->children[0].rows;
    size_t count = noise() % 5;

    if (noise() % 2000 == 0)
        count = 3000; /* more than a vector */
    for (size_t i = 0; i < count; i++) {
        if (column->type->kind == TYPE_MAP) {
            column_append_bytes(&column->children[0], arena_strf(arena, "key %zu", i));
            append_random(arena, &column->children[1], null_in);
        } else {
            append_random(arena, &column->children[0], null_in);
        }
    }
    column_append_span(column, start);
}

static void
append_decimal(Column *column)
{
    __int128 limit = 1;

    for (int i = 0; i < column->type->precision; i++)
        limit *= 10;

    __int128 value = (((__int128) noise() << 70) | ((__int128) noise() << 40) | noise());

    value = (value < 0 ? -value : value) % limit;
    value = noise() % 2 == 0 ? -value : value;
    if (noise() % 10 == 0)
        value = noise() % 2 == 0 ? limit - 1 : 1 - limit;
    if (column->type->precision <= 18)
        column_append_fixed(column, &(int64_t){(int64_t) value});
    else
        column_append_fixed(column, &value);
}

static double
random_double(void)
{
    static const double odd[] = {
        0.0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, 1.7976931348623157e308};

    return noise() % 8 == 0 ? odd[noise() % 7] : (double) noise() / 3.0 - 1e15;
}

/* A number in [low, high]. */
static int64_t
between(int64_t low, int64_t high)
{
    if (noise() % 20 == 0)
        return noise() % 2 == 0 ? low : high;
    return low + (int64_t) ((unsigned __int128) (noise() << 11) * (uint64_t) (high - low) >> 64);
}

static void
append_random_number(Column *column)
{
    const int64_t day = INT64_C(86400000000);
    double number = random_double();

    switch ((int) column->type->kind) {
    case TYPE_BOOL:
        column_append_fixed(column, &(uint8_t){(uint8_t) (noise() % 2)});
        break;
    case TYPE_INT32:
        column_append_fixed(column, &(int32_t){(int32_t) between(INT32_MIN, INT32_MAX)});
        break;
    case TYPE_INT64:
        column_append_fixed(column, &(int64_t){(int64_t) (noise() << 11)});
        break;
    case TYPE_FLOAT32:
        column_append_fixed(column, &(float){(float) number});
        break;
    case TYPE_FLOAT64:
        column_append_fixed(column, &number);
        break;
    case TYPE_DECIMAL:
        append_decimal(column);
        break;
    case TYPE_DATE: /* the years 1 to 9999, which is what Python has */
        column_append_fixed(column, &(int32_t){(int32_t) between(-719162, 2932896)});
        break;
    case TYPE_TIME:
        column_append_fixed(column, &(int64_t){between(0, day - 1)});
        break;
    default:
        column_append_fixed(column, &(int64_t){between(-719162 * day, 2932896 * day)});
    }
}

static void
append_random(Arena *arena, Column *column, int null_in)
{
    if (null_in > 0 && noise() % (uint64_t) null_in == 0) {
        column_append_null(column);
        return;
    }
    switch ((int) column->type->kind) {
    case TYPE_STRING:
    case TYPE_JSON:
    case TYPE_BINARY:
        column_append_bytes(column, random_text(arena));
        break;
    case TYPE_UUID:
        column_append_fixed(column, (uint64_t[]){noise() << 11, noise() << 5});
        break;
    case TYPE_LIST:
    case TYPE_MAP:
        append_random_elements(arena, column, null_in);
        break;
    case TYPE_STRUCT:
        for (int i = 0; i < column->type->field_count; i++)
            append_random(arena, &column->children[i], null_in);
        column_append_struct(column);
        break;
    default:
        append_random_number(column);
    }
}

#endif
