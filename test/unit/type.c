/* From Postgres types to logical types, their names and ids. */
#include "testing.h"

#include "model/cast.h"
#include "model/type.h"

#define BASE(oid_, name_)                                                                          \
    {                                                                                              \
        .oid = (oid_), .name = {(name_), sizeof(name_) - 1}, .typtype = 'b'                        \
    }

#define MONEY(digits)                                                                              \
    {                                                                                              \
        .oid = 790, .name = {"money", 5}, .typtype = 'b', .money_digits = (digits)                 \
    }

static const PgType int4 = BASE(23, "int4");
static const PgType text = BASE(25, "text");
static const PgType numeric = BASE(1700, "numeric");
static const PgType interval = BASE(1186, "interval");

static PgType
array_of(const PgType *base, char delimiter)
{
    return (PgType){.oid = 99999,
                    .name = STR("_any"),
                    .typtype = 'b',
                    .is_array = true,
                    .delimiter = delimiter,
                    .base = base};
}

static int32_t
numeric_typmod(int precision, int scale)
{
    return ((precision << 16) | (scale & 0x7ff)) + 4;
}

/* DuckDB's name says everything about a type that the lake can see. */
static void
assert_duckdb(const PgType *pg, int32_t typmod, int dimensions, const char *expected)
{
    Arena *arena = arena_new();
    AUTO_BUF Buf name = {0};

    type_duckdb_name(type_from_postgres(arena, pg, typmod, dimensions), &name);
    assert_string_equal(buf_text(&name), expected);
    arena_free(arena);
}

static void
every_row_of_the_table(void **state)
{
    (void) state;

    static const struct {
        PgType type;
        const char *iceberg;
        bool as_text;
    } rows[] = {
        {BASE(16, "bool"), "boolean", false},
        {BASE(21, "int2"), "int", false},
        {BASE(23, "int4"), "int", false},
        {BASE(20, "int8"), "long", false},
        {BASE(26, "oid"), "long", false},
        {BASE(28, "xid"), "long", false},
        {BASE(700, "float4"), "float", false},
        {BASE(701, "float8"), "double", false},
        {BASE(1700, "numeric"), "string", true}, /* without precision */
        {MONEY(2), "decimal(19,2)", false},
        {MONEY(0), "decimal(19,0)", false}, /* yen */
        {MONEY(3), "decimal(19,3)", false}, /* dinars */
        {BASE(25, "text"), "string", false},
        {BASE(1043, "varchar"), "string", false},
        {BASE(1042, "bpchar"), "string", false},
        {BASE(19, "name"), "string", false},
        {BASE(18, "char"), "string", false},
        {BASE(142, "xml"), "string", false},
        {BASE(114, "json"), "string", false},
        {BASE(3802, "jsonb"), "string", false},
        {BASE(17, "bytea"), "binary", false},
        {BASE(1560, "bit"), "string", true},
        {BASE(1562, "varbit"), "string", true},
        {BASE(2950, "uuid"), "uuid", false},
        {BASE(1082, "date"), "date", false},
        {BASE(1083, "time"), "string", true},
        {BASE(1266, "timetz"), "string", true},
        {BASE(1114, "timestamp"), "timestamp", false},
        {BASE(1184, "timestamptz"), "timestamptz", false},
        {BASE(1186, "interval"), "string", true},
        {BASE(869, "inet"), "string", true},
        {BASE(22, "int2vector"), "string", true},
        {BASE(5069, "xid8"), "string", true},
        {BASE(50000, "citext"), "string", false},
        {BASE(50000, "geometry"), "binary", false},
        {BASE(50000, "geography"), "binary", false},
        {BASE(50000, "int4"), "string", true}, /* somebody's own */
        {BASE(50000, "ltree"), "string", true},
        {{.oid = 60000, .name = {"mood", 4}, .typtype = 'e'}, "string", false},
        {{.oid = 60000, .name = {"int4", 4}, .typtype = 'e'}, "string", false},
        {{.oid = 3904, .name = {"int4range", 9}, .typtype = 'r'}, "string", true},
        {{.oid = 4451, .name = {"int4multirange", 14}, .typtype = 'm'}, "string", true},
    };

    Arena *arena = arena_new();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const Type *type = type_from_postgres(arena, &rows[i].type, -1, 0);
        AUTO_BUF Buf name = {0};

        type_iceberg_name(type, &name);
        assert_string_equal(buf_text(&name), rows[i].iceberg);
        assert_int_equal(type_arrives_as_text(&rows[i].type, type), rows[i].as_text);
    }
    assert_int_equal(type_from_postgres(arena, &rows[19].type, -1, 0)->kind, TYPE_JSON);
    assert_int_equal(type_from_postgres(arena, &rows[9].type, -1, 0)->form, FORM_MONEY);
    assert_int_equal(type_from_postgres(arena, &rows[34].type, -1, 0)->form, FORM_EWKB);
    arena_free(arena);
}

static void
numerics_that_fit_are_decimals(void **state)
{
    (void) state;
    assert_duckdb(&numeric, numeric_typmod(12, 2), 0, "DECIMAL(12,2)");
    assert_duckdb(&numeric, numeric_typmod(38, 38), 0, "DECIMAL(38,38)");
    assert_duckdb(&numeric, numeric_typmod(1, 0), 0, "DECIMAL(1,0)");
    assert_duckdb(&numeric, numeric_typmod(39, 2), 0, "VARCHAR");
    assert_duckdb(&numeric, numeric_typmod(5, -3), 0, "VARCHAR"); /* from 15 on */
    assert_duckdb(&numeric, numeric_typmod(3, 5), 0, "VARCHAR");
    assert_duckdb(&numeric, numeric_typmod(1000, 1000), 0, "VARCHAR");
    assert_duckdb(&numeric, -1, 0, "VARCHAR");
}

static void
arrays_nest_as_declared(void **state)
{
    (void) state;

    Arena *arena = arena_new();
    PgType ints = array_of(&int4, ',');
    PgType boxes = array_of(&(const PgType) BASE(603, "box"), ';');
    PgType numerics = array_of(&numeric, ',');
    PgType domain = {.oid = 70000, .typtype = 'd', .typmod = -1, .base = &ints};
    PgType domains = array_of(&domain, ',');

    assert_duckdb(&ints, -1, 0, "INTEGER[]");
    assert_duckdb(&ints, -1, 1, "INTEGER[]");
    assert_duckdb(&ints, -1, 3, "INTEGER[][][]");
    assert_duckdb(&ints, -1, 100, "VARCHAR");
    assert_duckdb(&numerics, numeric_typmod(10, 3), 2, "DECIMAL(10,3)[][]");
    assert_duckdb(&boxes, -1, 0, "VARCHAR[]");
    assert_duckdb(&domain, -1, 0, "INTEGER[]");
    assert_duckdb(&domains, -1, 0, "INTEGER[][]");

    const Type *type = type_from_postgres(arena, &boxes, -1, 0);

    assert_int_equal(type->delimiter, ';');
    assert_true(type_arrives_as_text(&boxes, type));
    type = type_from_postgres(arena, &ints, -1, 2);
    assert_int_equal(type->form, FORM_PLAIN);
    assert_int_equal(type->fields[0].type->form, FORM_DIMENSION);
    assert_false(type_arrives_as_text(&ints, type));
    type = type_from_postgres(arena, &domains, -1, 0);
    assert_int_equal(type->fields[0].type->form, FORM_PLAIN);
    arena_free(arena);
}

static void
domains_bring_their_typmod(void **state)
{
    (void) state;

    PgType price = {.oid = 70000, .typtype = 'd', .typmod = numeric_typmod(9, 2), .base = &numeric};
    PgType fee = {.oid = 70001, .typtype = 'd', .typmod = -1, .base = &price};
    PgType fees = array_of(&fee, ',');

    assert_duckdb(&price, -1, 0, "DECIMAL(9,2)");
    assert_duckdb(&fee, -1, 0, "DECIMAL(9,2)");
    assert_duckdb(&fees, -1, 0, "DECIMAL(9,2)[]");
}

static void
composites_are_structs(void **state)
{
    (void) state;

    Arena *arena = arena_new();
    PgType ints = array_of(&int4, ',');
    PgMember inner_members[] = {{STR("x"), -1, &int4}, {STR("a\"b"), -1, &ints}};
    PgType inner = {.oid = 80000, .typtype = 'c', .member_count = 2, .members = inner_members};
    PgMember outer_members[] = {
        {STR("p"), numeric_typmod(5, 1), &numeric}, {STR("q"), -1, &inner}, {STR("r"), -1, &text}};
    PgType outer = {.oid = 80001, .typtype = 'c', .member_count = 3, .members = outer_members};
    PgMember late_members[] = {{STR("i"), -1, &interval}};
    PgType late = {.oid = 80002, .typtype = 'c', .member_count = 1, .members = late_members};
    PgType empty = {.oid = 80003, .typtype = 'c'};

    assert_duckdb(&outer, -1, 0,
                  "STRUCT(\"p\" DECIMAL(5,1), \"q\" STRUCT(\"x\" INTEGER, \"a\"\"b\" INTEGER[]), "
                  "\"r\" VARCHAR)");
    assert_duckdb(&empty, -1, 0, "VARCHAR");
    assert_false(type_arrives_as_text(&outer, type_from_postgres(arena, &outer, -1, 0)));
    assert_true(type_arrives_as_text(&late, type_from_postgres(arena, &late, -1, 0)));
    arena_free(arena);
}

static int
height(const Type *type)
{
    int below = 0;

    for (int i = 0; i < type->field_count; i++)
        below = height(type->fields[i].type) > below ? height(type->fields[i].type) : below;
    return below + 1;
}

static void
depth_is_bounded(void **state)
{
    (void) state;

    Arena *arena = arena_new();
    PgType levels[40];
    PgMember members[40];

    levels[0] = int4;
    for (int i = 1; i < 40; i++) {
        members[i] = (PgMember){STR("m"), -1, &levels[i - 1]};
        levels[i] = (PgType){.typtype = 'c', .member_count = 1, .members = &members[i]};
        if (i % 2 == 0)
            levels[i] = array_of(&levels[i - 1], ',');
    }
    assert_int_equal(height(type_from_postgres(arena, &levels[15], -1, 0)), TYPE_DEPTH_MAX);
    for (int i = 0; i < 40; i++)
        for (int dimensions = 0; dimensions < 20; dimensions++)
            assert_true(height(type_from_postgres(arena, &levels[i], -1, dimensions)) <=
                        TYPE_DEPTH_MAX);
    arena_free(arena);
}

static void
extensions_are_known_by_name(void **state)
{
    (void) state;

    const PgType hstore = BASE(50001, "hstore");
    const PgType vector = BASE(50002, "vector");
    const PgType halfvec = BASE(50003, "halfvec");
    PgType vectors = array_of(&vector, ',');

    assert_duckdb(&hstore, -1, 0, "MAP(VARCHAR, VARCHAR)");
    assert_duckdb(&vector, 3, 0, "FLOAT[]");
    assert_duckdb(&halfvec, -1, 0, "FLOAT[]");
    assert_duckdb(&vectors, -1, 0, "FLOAT[][]");
}

/* The order of Iceberg's api/.../types/AssignFreshIds.java, worked out by hand from its visitor:
 * a struct takes ids for all its fields before it visits the first of them. */
static void
ids_are_those_of_iceberg(void **state)
{
    (void) state;

    Arena *arena = arena_new();
    PgType ints = array_of(&int4, ',');
    PgMember inner_members[] = {{STR("x"), -1, &ints}, {STR("y"), -1, &int4}};
    PgType inner = {.oid = 80000, .typtype = 'c', .member_count = 2, .members = inner_members};
    const PgType hstore = BASE(50001, "hstore");
    PgMember outer_members[] = {
        {STR("a"), -1, &inner}, {STR("b"), -1, &hstore}, {STR("c"), -1, &inner}};
    PgType outer = {.oid = 80001, .typtype = 'c', .member_count = 3, .members = outer_members};
    Type *type = (Type *) (uintptr_t) type_copy(arena, type_from_postgres(arena, &outer, -1, 0));
    int next = 10;

    type_assign_ids(type, &next);
    assert_int_equal(next, 21);
    for (int i = 0; i < 3; i++)
        assert_int_equal(type->fields[i].id, 10 + i);

    const Type *a = type->fields[0].type;
    const Type *b = type->fields[1].type;
    const Type *c = type->fields[2].type;

    assert_int_equal(a->fields[0].id, 13);
    assert_int_equal(a->fields[1].id, 14);
    assert_int_equal(a->fields[0].type->fields[0].id, 15);
    assert_int_equal(b->fields[0].id, 16);
    assert_int_equal(b->fields[1].id, 17);
    assert_int_equal(c->fields[0].id, 18);
    assert_int_equal(c->fields[1].id, 19);
    assert_int_equal(c->fields[0].type->fields[0].id, 20);
    arena_free(arena);
}

static void
equality_sees_shape_and_names(void **state)
{
    (void) state;

    Arena *arena = arena_new();
    const PgType money = MONEY(2);
    const Type *cents = type_from_postgres(arena, &money, -1, 0);
    const PgType money_of_yen = MONEY(0);
    const Type *decimal = type_from_postgres(arena, &numeric, numeric_typmod(19, 2), 0);
    PgMember one[] = {{STR("x"), -1, &int4}};
    PgMember other[] = {{STR("y"), -1, &int4}};
    PgType a = {.oid = 80000, .typtype = 'c', .member_count = 1, .members = one};
    PgType b = {.oid = 80000, .typtype = 'c', .member_count = 1, .members = other};
    const Type *type_a = type_from_postgres(arena, &a, -1, 0);
    const Type *type_b = type_from_postgres(arena, &b, -1, 0);

    assert_true(type_eq(cents, decimal));
    assert_false(type_eq(cents, type_from_postgres(arena, &money_of_yen, -1, 0)));
    assert_false(type_eq(decimal, type_from_postgres(arena, &numeric, numeric_typmod(19, 3), 0)));
    assert_true(type_eq(type_a, type_copy(arena, type_a)));
    assert_false(type_eq(type_a, type_b));
    arena_free(arena);
}

typedef struct CastRow {
    PgType pg;
    Type type;
    const char *allowed; /* string, long, double, decimal, time, json */
} CastRow;

static void
check_casts_of(const CastRow *row)
{
    static const char *const names[] = {"string",         "long", "double",
                                        "numeric(12, 4)", "time", "json"};
    AUTO_ARENA Arena *arena = arena_new();
    Error err = {0};

    for (int c = 0; c < 6; c++) {
        const Type *to;

        OK(cast_parse(arena, str_of(names[c]), &to, &err));
        if ((cast_apply(arena, &row->pg, &row->type, to) != NULL) == (row->allowed[c] == 'y'))
            continue;
        print_error("%.*s to %s\n", STR_ARG(row->pg.name), names[c]);
        fail();
    }
}

/* The matrix of model/cast.h, as a whole. */
static void
casts_are_a_closed_matrix(void **state)
{
    static const PgType time = BASE(1083, "time");
    static const PgType timetz = BASE(1266, "timetz");
    static const PgType clock = {.typtype = 'd', .base = &time};
    const PgType ints = array_of(&int4, ',');
    const CastRow rows[] = {
        {BASE(21, "int2"), {.kind = TYPE_INT32}, "yyyynn"},
        {BASE(23, "int4"), {.kind = TYPE_INT32}, "yyyynn"},
        {BASE(20, "int8"), {.kind = TYPE_INT64}, "ynnynn"},
        {BASE(700, "float4"), {.kind = TYPE_FLOAT32}, "ynynnn"},
        {BASE(701, "float8"), {.kind = TYPE_FLOAT64}, "ynnnnn"},
        {BASE(1700, "numeric"), {.kind = TYPE_STRING}, "ynnynn"},
        {BASE(1700, "numeric"), {.kind = TYPE_DECIMAL, .precision = 8, .scale = 2}, "ynnynn"},
        {MONEY(2),
         {.kind = TYPE_DECIMAL, .form = FORM_MONEY, .precision = 19, .scale = 2},
         "ynnnnn"},
        {BASE(25, "text"), {.kind = TYPE_STRING}, "ynnnnn"},
        {BASE(1082, "date"), {.kind = TYPE_DATE}, "ynnnnn"},
        {BASE(16, "bool"), {.kind = TYPE_BOOL}, "ynnnnn"},
        {time, {.kind = TYPE_STRING}, "ynnnyn"},
        {clock, {.kind = TYPE_STRING}, "ynnnyn"},
        {timetz, {.kind = TYPE_STRING}, "ynnnnn"},
        {array_of(&int4, ','), {.kind = TYPE_LIST}, "ynnnny"},
        {{.typtype = 'd', .base = &ints}, {.kind = TYPE_LIST}, "ynnnny"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_casts_of(&rows[i]);
}

/* What the elements of an array as JSON are, through domains. */
static void
arrays_as_json_know_their_elements(void **state)
{
    (void) state;

    static const PgType jsonb = BASE(3802, "jsonb");
    static const PgType boolean = BASE(16, "bool");
    static const PgType money = MONEY(2);
    static const PgType date = BASE(1082, "date");
    static const PgType price = {.typtype = 'd', .base = &numeric};
    static const PgType mood = {.oid = 60000, .name = {"int4", 4}, .typtype = 'e'};

    static const struct {
        const PgType *element;
        TextForm form;
    } cases[] = {
        {&int4, FORM_ARRAY_OF_NUMBERS},  {&price, FORM_ARRAY_OF_NUMBERS},
        {&boolean, FORM_ARRAY_OF_BOOLS}, {&jsonb, FORM_ARRAY_OF_JSON},
        {&money, FORM_ARRAY_OF_TEXTS},   {&date, FORM_ARRAY_OF_TEXTS},
        {&mood, FORM_ARRAY_OF_TEXTS},    {&interval, FORM_ARRAY_OF_TEXTS},
    };

    AUTO_ARENA Arena *arena = arena_new();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        PgType array = array_of(cases[i].element, ';');
        PgType domain = {.typtype = 'd', .base = &array};
        const Type *type = type_json_of_array(arena, &domain);

        assert_int_equal(type->kind, TYPE_JSON);
        assert_int_equal(type->form, cases[i].form);
        assert_int_equal(type->delimiter, ';');
        assert_true(type_is_json_array(type));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table),
        cmocka_unit_test(numerics_that_fit_are_decimals),
        cmocka_unit_test(arrays_nest_as_declared),
        cmocka_unit_test(domains_bring_their_typmod),
        cmocka_unit_test(composites_are_structs),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(extensions_are_known_by_name),
        cmocka_unit_test(ids_are_those_of_iceberg),
        cmocka_unit_test(equality_sees_shape_and_names),
        cmocka_unit_test(casts_are_a_closed_matrix),
        cmocka_unit_test(arrays_as_json_know_their_elements),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
