#include "model/type.h"

#include <assert.h>

/* --- The kinds ------------------------------------------------------------------------------- */

typedef struct KindRow {
    const char *iceberg;
    const char *duckdb;
    size_t width; /* of one value in Column.values */
} KindRow;

static const KindRow type_kinds[TYPE_KIND_COUNT] = {
    [TYPE_BOOL] = {"boolean", "BOOLEAN", 1},
    [TYPE_INT32] = {"int", "INTEGER", 4},
    [TYPE_INT64] = {"long", "BIGINT", 8},
    [TYPE_FLOAT32] = {"float", "FLOAT", 4},
    [TYPE_FLOAT64] = {"double", "DOUBLE", 8},
    [TYPE_DECIMAL] = {"decimal", "DECIMAL", 8}, /* 16 above 18 digits, see type_width() */
    [TYPE_DATE] = {"date", "DATE", 4},
    [TYPE_TIME] = {"time", "TIME", 8},
    [TYPE_TIMESTAMP] = {"timestamp", "TIMESTAMP", 8},
    [TYPE_TIMESTAMPTZ] = {"timestamptz", "TIMESTAMP WITH TIME ZONE", 8},
    [TYPE_STRING] = {"string", "VARCHAR", 16},
    [TYPE_JSON] = {"string", "VARCHAR", 16}, /* DuckDB's JSON is a VARCHAR with another name */
    [TYPE_BINARY] = {"binary", "BLOB", 16},
    [TYPE_UUID] = {"uuid", "UUID", 16},
    [TYPE_LIST] = {"list", "", 16},
    [TYPE_MAP] = {"map", "MAP", 16},
    [TYPE_STRUCT] = {"struct", "STRUCT", 0},
};

/* --- The types of Postgres ------------------------------------------------------------------- */

typedef struct TypeRow {
    uint32_t oid; /* 0: from an extension, so its OID differs from database to database */
    const char *name;
    TypeKind kind;
    TextForm form;
    const char *note; /* for docs/types.md */
} TypeRow;

/* OIDs: src/include/catalog/pg_type.dat. A built-in type is known by its OID, since anybody may
 * name a type of his own "int4"; one from an extension by its name. Arrays, domains, enums and
 * composites are made of these; whatever is not here arrives as its Postgres text. */
static const TypeRow type_rows[] = {
    {16, "bool", TYPE_BOOL, FORM_PLAIN, ""},
    {17, "bytea", TYPE_BINARY, FORM_PLAIN, ""},
    {18, "char", TYPE_STRING, FORM_PLAIN, "the type \"char\", of one byte"},
    {19, "name", TYPE_STRING, FORM_PLAIN, ""},
    {20, "int8", TYPE_INT64, FORM_PLAIN, "bigint"},
    {21, "int2", TYPE_INT32, FORM_PLAIN, "smallint"},
    {23, "int4", TYPE_INT32, FORM_PLAIN, "integer"},
    {25, "text", TYPE_STRING, FORM_PLAIN, ""},
    {26, "oid", TYPE_INT64, FORM_PLAIN, "unsigned 32 bits"},
    {28, "xid", TYPE_INT64, FORM_PLAIN, "unsigned 32 bits"},
    {114, "json", TYPE_JSON, FORM_PLAIN, "the text as it is: spaces, order and twins of keys"},
    {142, "xml", TYPE_STRING, FORM_PLAIN, ""},
    {700, "float4", TYPE_FLOAT32, FORM_PLAIN, "real; NaN, infinities and -0 as they are"},
    {701, "float8", TYPE_FLOAT64, FORM_PLAIN, "double precision; likewise"},
    {790, "money", TYPE_DECIMAL, FORM_MONEY,
     "as many digits after the point as lc_monetary has: (19,0) for yen; as text always like in "
     "the locale C: $12.34 for 1234 yen"},
    {1042, "bpchar", TYPE_STRING, FORM_PLAIN, "char(n), with its blanks"},
    {1043, "varchar", TYPE_STRING, FORM_PLAIN, ""},
    {1082, "date", TYPE_DATE, FORM_PLAIN, "every year; infinity is a reject"},
    {1114, "timestamp", TYPE_TIMESTAMP, FORM_PLAIN,
     "microseconds; infinity is a reject, and what 64 bits of them cannot reach"},
    {1184, "timestamptz", TYPE_TIMESTAMPTZ, FORM_PLAIN, "likewise"},
    {1700, "numeric", TYPE_DECIMAL, FORM_PLAIN,
     "without precision; walberg check proposes a decimal that holds the present values"},
    {2950, "uuid", TYPE_UUID, FORM_PLAIN, ""},
    {3802, "jsonb", TYPE_JSON, FORM_PLAIN, "the text as Postgres prints it"},
    {0, "citext", TYPE_STRING, FORM_PLAIN, ""},
    {0, "hstore", TYPE_MAP, FORM_PLAIN, "NULL values are kept"},
    {0, "vector", TYPE_LIST, FORM_BRACKETS, "pgvector"},
    {0, "halfvec", TYPE_LIST, FORM_BRACKETS, "pgvector"},
    {0, "geometry", TYPE_BINARY, FORM_EWKB, "PostGIS; EWKB"},
    {0, "geography", TYPE_BINARY, FORM_EWKB, "PostGIS; EWKB"},
};

enum {
    FIRST_NORMAL_OID = 16384, /* FirstNormalObjectId: below are the built-in types */
    MONEY_OID = 790,
    TIME_OID = 1083,
    MONEY_DIGITS = 2, /* of lc_monetary = C */
    INT2VECTOR_OID = 22,
    OIDVECTOR_OID = 30,
    NUMERIC_PRECISION_MAX = 38, /* Iceberg's */
};

static const TypeRow *
find_row(const PgType *pg)
{
    bool builtin = pg->oid < FIRST_NORMAL_OID;

    if (pg->typtype != 'b' || pg->is_array)
        return NULL;
    for (size_t i = 0; i < sizeof type_rows / sizeof type_rows[0]; i++) {
        const TypeRow *row = &type_rows[i];

        if (builtin ? row->oid == pg->oid : row->oid == 0 && str_eqc(pg->name, row->name))
            return row;
    }
    return NULL;
}

const char *
type_row(size_t i, PgType *out_type)
{
    const TypeRow *row = &type_rows[i];

    if (i >= sizeof type_rows / sizeof type_rows[0])
        return NULL;
    *out_type = (PgType){.oid = row->oid != 0 ? row->oid : FIRST_NORMAL_OID,
                         .name = str_of(row->name),
                         .typtype = 'b',
                         .delimiter = ',',
                         .typmod = -1,
                         .money_digits = MONEY_DIGITS};
    return row->note;
}

static Type *
new_type(Arena *arena, TypeKind kind, int field_count)
{
    Type *type = ARENA_NEW(arena, Type);

    type->kind = kind;
    type->field_count = field_count;
    if (field_count > 0)
        type->fields = ARENA_ARRAY(arena, Field, (size_t) field_count);
    return type;
}

static Type *
new_list(Arena *arena, const Type *element, char delimiter)
{
    Type *type = new_type(arena, TYPE_LIST, 1);

    type->delimiter = delimiter;
    if (delimiter == '\0')
        type->delimiter = ',';
    type->fields[0] = (Field){.name = STR("element"), .type = element};
    return type;
}

static Type *
new_string_map(Arena *arena)
{
    Type *type = new_type(arena, TYPE_MAP, 2);

    type->fields[0] = (Field){
        .name = STR("key"),
        .required = true,
        .type = new_type(arena, TYPE_STRING, 0),
    };
    type->fields[1] = (Field){.name = STR("value"), .type = new_type(arena, TYPE_STRING, 0)};
    return type;
}

/* src/backend/utils/adt/numeric.c, make_numeric_typmod(): precision in the upper half, scale as an
 * 11-bit signed number (from 15 on; a plain number up to 1000 before, which reads the same). */
static Type *
new_numeric(Arena *arena, int32_t typmod)
{
    if (typmod < 4) /* VARHDRSZ; -1 = no precision given */
        return new_type(arena, TYPE_STRING, 0);

    int precision = ((typmod - 4) >> 16) & 0xffff;
    int scale = (((typmod - 4) & 0x7ff) ^ 1024) - 1024;

    if (precision < 1 || precision > NUMERIC_PRECISION_MAX || scale < 0 || scale > precision)
        return new_type(arena, TYPE_STRING, 0);

    Type *type = new_type(arena, TYPE_DECIMAL, 0);

    type->precision = precision;
    type->scale = scale;
    return type;
}

bool
type_is_money(const PgType *pg)
{
    return pg->oid == MONEY_OID;
}

static Type *
new_money(Arena *arena, const PgType *pg)
{
    Type *type = new_type(arena, TYPE_DECIMAL, 0);

    type->form = FORM_MONEY;
    type->precision = 19; /* int64, in the smallest unit */
    type->scale = pg->money_digits;
    return type;
}

/* A base type: by its row, else text. */
static Type *
map_base(Arena *arena, const PgType *pg, int32_t typmod, int depth)
{
    const TypeRow *row = find_row(pg);
    Type *type;

    if (row == NULL)
        return new_type(arena, TYPE_STRING, 0);
    if (row->form == FORM_MONEY)
        return new_money(arena, pg);
    if (row->kind == TYPE_DECIMAL)
        return new_numeric(arena, typmod);
    if (row->kind == TYPE_MAP || row->kind == TYPE_LIST) {
        if (depth + 1 >= TYPE_DEPTH_MAX)
            return new_type(arena, TYPE_STRING, 0);
        if (row->kind == TYPE_MAP)
            return new_string_map(arena);
        type = new_list(arena, new_type(arena, TYPE_FLOAT32, 0), ',');
    } else {
        type = new_type(arena, row->kind, 0);
    }
    type->form = row->form;
    return type;
}

/* A column's type on its way down: depth is that of the type to be made, the column's own is 0. */
typedef struct TypeUse {
    int32_t typmod;
    int dimensions;
    int depth;
} TypeUse;

static const Type *map_type(Arena *arena, const PgType *pg, TypeUse use);

static const Type *
map_array(Arena *arena, const PgType *pg, TypeUse use)
{
    int dimensions = use.dimensions > 0 ? use.dimensions : 1;

    if (pg->base == NULL || dimensions >= TYPE_DEPTH_MAX - use.depth)
        return new_type(arena, TYPE_STRING, 0);

    const Type *element =
        map_type(arena, pg->base, (TypeUse){.typmod = use.typmod, .depth = use.depth + dimensions});

    for (int i = 1; i < dimensions; i++) {
        Type *inner = new_list(arena, element, pg->delimiter);

        inner->form = FORM_DIMENSION;
        element = inner;
    }
    return new_list(arena, element, pg->delimiter);
}

static const Type *
map_composite(Arena *arena, const PgType *pg, TypeUse use)
{
    /* a struct without fields exists neither in Iceberg nor in Parquet */
    if (pg->member_count == 0 || use.depth + 1 >= TYPE_DEPTH_MAX)
        return new_type(arena, TYPE_STRING, 0);

    Type *type = new_type(arena, TYPE_STRUCT, pg->member_count);

    for (int i = 0; i < pg->member_count; i++) {
        const PgMember *member = &pg->members[i];

        type->fields[i] = (Field){
            .name = arena_str(arena, member->name),
            .type = map_type(arena, member->type,
                             (TypeUse){.typmod = member->typmod, .depth = use.depth + 1}),
        };
    }
    return type;
}

/* The type under a domain, and under a domain over that. Only the innermost with a typmod can have
 * one (getBaseTypeAndTypmod() in src/backend/utils/cache/lsyscache.c). */
static const PgType *
strip_domains(const PgType *pg, int32_t *typmod)
{
    while (pg->typtype == 'd' && pg->base != NULL) {
        *typmod = pg->typmod;
        pg = pg->base;
    }
    return pg;
}

static const Type *
map_type(Arena *arena, const PgType *pg, TypeUse use)
{
    pg = strip_domains(pg, &use.typmod);
    assert(use.depth < TYPE_DEPTH_MAX);
    /* These two have an element type, but print "1 2 3". */
    if (pg->oid == INT2VECTOR_OID || pg->oid == OIDVECTOR_OID)
        return new_type(arena, TYPE_STRING, 0);
    if (pg->is_array)
        return map_array(arena, pg, use);
    if (pg->typtype == 'c')
        return map_composite(arena, pg, use);
    return map_base(arena, pg, use.typmod, use.depth);
}

const Type *
type_from_postgres(Arena *arena, const PgType *pg, int32_t typmod, int dimensions)
{
    return map_type(arena, pg, (TypeUse){.typmod = typmod, .dimensions = dimensions});
}

bool
type_is_time(const PgType *pg)
{
    int32_t typmod = -1;

    return strip_domains(pg, &typmod)->oid == TIME_OID;
}

bool
type_is_array(const PgType *pg)
{
    int32_t typmod = -1;

    pg = strip_domains(pg, &typmod);
    return pg->is_array && pg->base != NULL;
}

/* --- Arrays as JSON -------------------------------------------------------------------------- */

/* Decided by the element's own row: what has none, or is made of others, is its text. */
static TextForm
json_form(const PgType *element)
{
    const TypeRow *row = find_row(element);

    if (row == NULL)
        return FORM_ARRAY_OF_TEXTS;
    switch (row->kind) {
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return FORM_ARRAY_OF_NUMBERS;
    case TYPE_DECIMAL:
        return row->form == FORM_MONEY ? FORM_ARRAY_OF_TEXTS : FORM_ARRAY_OF_NUMBERS;
    case TYPE_BOOL:
        return FORM_ARRAY_OF_BOOLS;
    case TYPE_JSON:
        return FORM_ARRAY_OF_JSON;
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_STRING:
    case TYPE_BINARY:
    case TYPE_UUID:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_STRUCT:
    default:
        return FORM_ARRAY_OF_TEXTS;
    }
}

const Type *
type_json_of_array(Arena *arena, const PgType *pg)
{
    int32_t typmod = -1;

    pg = strip_domains(pg, &typmod);
    assert(type_is_array(pg));

    Type *type = new_type(arena, TYPE_JSON, 0);

    type->form = json_form(strip_domains(pg->base, &typmod));
    type->delimiter = pg->delimiter;
    if (type->delimiter == '\0')
        type->delimiter = ',';
    return type;
}

bool
type_is_json_array(const Type *type)
{
    return type->kind == TYPE_JSON && type->form != FORM_PLAIN;
}

bool
type_arrives_as_text(const PgType *pg, const Type *type)
{
    int32_t typmod = -1;

    pg = strip_domains(pg, &typmod);
    if (pg->is_array && type->kind == TYPE_LIST) {
        const Type *element = type->fields[0].type;

        while (element->form == FORM_DIMENSION)
            element = element->fields[0].type;
        return type_arrives_as_text(pg->base, element);
    }
    if (pg->typtype == 'c' && type->kind == TYPE_STRUCT) {
        for (int i = 0; i < type->field_count && i < pg->member_count; i++)
            if (type_arrives_as_text(pg->members[i].type, type->fields[i].type))
                return true;
        return false;
    }
    if (type->kind != TYPE_STRING || pg->typtype == 'e')
        return false;

    const TypeRow *row = find_row(pg);

    return row == NULL || row->kind != TYPE_STRING;
}

/* --- Names ----------------------------------------------------------------------------------- */

void
type_iceberg_name(const Type *type, Buf *out)
{
    assert(!type_is_nested(type));
    buf_cstr(out, type_kinds[type->kind].iceberg);
    if (type->kind == TYPE_DECIMAL) /* the spec writes "decimal(P,S)", Java "decimal(P, S)" */
        buf_printf(out, "(%d,%d)", type->precision, type->scale);
}

static void
put_quoted_name(Buf *out, Str name)
{
    buf_byte(out, '"');
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '"')
            buf_byte(out, '"');
        buf_byte(out, (uint8_t) name.ptr[i]);
    }
    buf_byte(out, '"');
}

void
type_duckdb_name(const Type *type, Buf *out)
{
    if (type->kind == TYPE_LIST) {
        type_duckdb_name(type->fields[0].type, out);
        buf_cstr(out, "[]");
        return;
    }
    buf_cstr(out, type_kinds[type->kind].duckdb);
    if (type->kind == TYPE_DECIMAL)
        buf_printf(out, "(%d,%d)", type->precision, type->scale);
    if (type->field_count == 0)
        return;
    for (int i = 0; i < type->field_count; i++) {
        buf_cstr(out, i == 0 ? "(" : ", ");
        if (type->kind == TYPE_STRUCT) {
            put_quoted_name(out, type->fields[i].name);
            buf_byte(out, ' ');
        }
        type_duckdb_name(type->fields[i].type, out);
    }
    buf_byte(out, ')');
}

/* --- Shape ----------------------------------------------------------------------------------- */

size_t
type_width(const Type *type)
{
    assert((int) type->kind < TYPE_KIND_COUNT);
    if (type->kind == TYPE_DECIMAL && type->precision > 18)
        return sizeof(__int128);
    return type_kinds[type->kind].width;
}

bool
type_is_nested(const Type *type)
{
    return type->field_count > 0;
}

bool
type_has_reals(const Type *type)
{
    for (int i = 0; i < type->field_count; i++)
        if (type_has_reals(type->fields[i].type))
            return true;
    return type->kind == TYPE_FLOAT32 || type->kind == TYPE_FLOAT64;
}

bool
type_eq(const Type *a, const Type *b)
{
    if (a->kind != b->kind || a->field_count != b->field_count)
        return false;
    if (a->kind == TYPE_DECIMAL && (a->precision != b->precision || a->scale != b->scale))
        return false;
    for (int i = 0; i < a->field_count; i++)
        if (!str_eq(a->fields[i].name, b->fields[i].name) ||
            !type_eq(a->fields[i].type, b->fields[i].type))
            return false;
    return true;
}

static Str
copy_default(Arena *arena, Str value)
{
    return value.ptr == NULL ? STR_NULL : arena_str(arena, value);
}

Field
field_copy(Arena *arena, const Field *field)
{
    return (Field){
        .name = arena_str(arena, field->name),
        .id = field->id,
        .required = field->required,
        .type = type_copy(arena, field->type),
        .initial_default = copy_default(arena, field->initial_default),
        .write_default = copy_default(arena, field->write_default),
    };
}

const Type *
type_copy(Arena *arena, const Type *type)
{
    Type *copy = new_type(arena, type->kind, type->field_count);
    Field *fields = copy->fields;

    *copy = *type;
    copy->fields = fields;
    for (int i = 0; i < type->field_count; i++) {
        fields[i] = field_copy(arena, &type->fields[i]);
    }
    return copy;
}

void
type_assign_ids(Type *type, int *next_id)
{
    for (int i = 0; i < type->field_count; i++)
        type->fields[i].id = (*next_id)++;
    for (int i = 0; i < type->field_count; i++)
        type_assign_ids((Type *) (uintptr_t) type->fields[i].type, next_id);
}
