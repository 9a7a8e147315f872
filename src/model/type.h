/* type.h - logical types: what a column holds, independent of source and sink.
 *
 * type_rows[] in type.c is the table that everything else reads: one row per Postgres type that
 * does not arrive as its text. Adding a type is one row there. */
#ifndef MODEL_TYPE_H
#define MODEL_TYPE_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdint.h>

/* Order matters nowhere; every kind has a row in type_kinds[]. */
typedef enum TypeKind {
    TYPE_BOOL,        /* values: uint8_t 0 or 1 */
    TYPE_INT32,       /* int32_t */
    TYPE_INT64,       /* int64_t */
    TYPE_FLOAT32,     /* float */
    TYPE_FLOAT64,     /* double */
    TYPE_DECIMAL,     /* int64_t unscaled when precision <= 18, else __int128 */
    TYPE_DATE,        /* int32_t, days since 1970-01-01 */
    TYPE_TIME,        /* int64_t, microseconds since midnight, < 24 h */
    TYPE_TIMESTAMP,   /* int64_t, microseconds since 1970-01-01 00:00:00, no zone */
    TYPE_TIMESTAMPTZ, /* int64_t, microseconds since 1970-01-01 00:00:00 UTC */
    TYPE_STRING,      /* Span into bytes, UTF-8 */
    TYPE_JSON,        /* Span into bytes, the text as Postgres sent it */
    TYPE_BINARY,      /* Span into bytes */
    TYPE_UUID,        /* 16 bytes, big-endian as written */
    TYPE_LIST,        /* Span of rows in children[0] */
    TYPE_MAP,         /* Span of rows in children[0] (keys) and children[1] (values) */
    TYPE_STRUCT,      /* children[i] have the same length as this column */
} TypeKind;

enum { TYPE_KIND_COUNT = TYPE_STRUCT + 1, TYPE_DEPTH_MAX = 16 };

/* How the Postgres text of a value is spelled when its kind alone does not say. */
typedef enum TextForm {
    FORM_PLAIN,
    /* TYPE_DECIMAL from "-$1,234.56": lc_monetary is pinned to C, whatever the scale */
    FORM_MONEY,
    FORM_EWKB,     /* TYPE_BINARY from hexadecimal digits without \x (PostGIS) */
    FORM_BRACKETS, /* TYPE_LIST from "[1,2,3]" (pgvector) */
    /* TYPE_LIST that is a further dimension of the list around it: {{1,2},{3,4}}, and never NULL.
     * The element of an array of a domain over an array is FORM_PLAIN instead: {"{1,2}",NULL} */
    FORM_DIMENSION,
    /* TYPE_JSON from "[0:1]={1,NULL}", an array of any shape: what its elements are */
    FORM_ARRAY_OF_NUMBERS,
    FORM_ARRAY_OF_BOOLS,
    FORM_ARRAY_OF_JSON,
    FORM_ARRAY_OF_TEXTS, /* and of everything else, as its text */
} TextForm;

typedef struct Type Type;

/* A named part: a column of a table, the element of a list ("element"), key and value of a map
 * ("key", "value"), a member of a struct. */
typedef struct Field {
    Str name;
    int id; /* Iceberg field id, unique in the table and never reused; 0 = not assigned yet */
    bool required;
    const Type *type;
    /* Values as Iceberg's JSON (spec, "JSON single-value serialization": 5, "2017-11-16"),
     * STR_NULL: none. Columns and members of structs only, format version 3. */
    Str initial_default; /* of rows in files that lack the field */
    Str write_default;   /* of rows whose writer has no value */
} Field;

struct Type {
    TypeKind kind;
    TextForm form;
    char delimiter;  /* lists, arrays as JSON: between elements, ',' but ';' for box[] */
    int precision;   /* TYPE_DECIMAL: 1..38 */
    int scale;       /* TYPE_DECIMAL: 0..precision */
    int field_count; /* list 1, map 2, struct n, others 0 */
    Field *fields;
};

/* --- Postgres' side ------------------------------------------------------------------------ */

/* A Postgres type as pg_type has it, with what it is made of. Filled by source/ from the catalog;
 * immutable afterwards. */
typedef struct PgType PgType;

typedef struct PgMember {
    Str name;
    int32_t typmod;
    const PgType *type;
} PgMember;

struct PgType {
    uint32_t oid;
    int32_t typmod;     /* domains: the base type's typmod */
    int money_digits;   /* money: after the point, see pg_money_digits() */
    Str name;           /* pg_type.typname, e.g. "int4", "hstore" */
    const PgType *base; /* arrays: the element; domains: the base type; ranges: of their bounds */
    PgMember *members;  /* composites */
    int member_count;
    int word_count; /* labels of an enum, attributes of a composite; in the order of their making */
    uint64_t *words;    /* a hash of each, of who wrote a label, and of all before it */
    uint32_t words_xid; /* the youngest transaction that wrote one */
    char typtype;       /* b base, c composite, d domain, e enum, r range, m multirange, p pseudo */
    char delimiter;     /* pg_type.typdelim of the element, for arrays */
    bool is_array;      /* true array type (typsubscript = array_subscript_handler / typlen -1) */
};

/* The logical type of a Postgres column: postgres-notes section 4. typmod is
 * pg_attribute.atttypmod, dimensions attndims (0 when unknown counts as 1 for an array). What has
 * no exact home becomes TYPE_STRING: its Postgres text. Never fails. */
const Type *type_from_postgres(Arena *arena, const PgType *pg, int32_t typmod, int dimensions);

/* Of an array, the JSON of its values; and whether a type is one of those. */
const Type *type_json_of_array(Arena *arena, const PgType *pg);
bool type_is_json_array(const Type *type);

bool type_is_money(const PgType *pg);
/* Also domains over one; a time is without a zone. */
bool type_is_array(const PgType *pg);
bool type_is_time(const PgType *pg);

/* Row i of the type table as a type of a database, and what docs/types.md says of it; NULL behind
 * the last one. */
const char *type_row(size_t i, PgType *out_type);

/* Whether the mapping keeps the type's own meaning, or the value arrives as its text. */
bool type_arrives_as_text(const PgType *pg, const Type *type);

/* --- Iceberg's side ------------------------------------------------------------------------ */

/* Iceberg's name of a primitive kind, e.g. "decimal(12,2)"; lists, maps and structs are written by
 * iceberg/schema.c. Appends to out. */
void type_iceberg_name(const Type *type, Buf *out);

/* DuckDB's name, nested ones included: DECIMAL(12,2), INTEGER[], MAP(VARCHAR, VARCHAR),
 * STRUCT("a" INTEGER). Struct names are quoted. Appends to out. */
void type_duckdb_name(const Type *type, Buf *out);

/* Bytes of one value in Column.values. For lists, maps, strings: sizeof(Span); struct: 0. */
size_t type_width(const Type *type);

bool type_is_nested(const Type *type);
/* Float or double, or one of them somewhere inside. */
bool type_has_reals(const Type *type);
/* Same kinds and names. What does not count: field ids, required, defaults, and how the Postgres
 * text is spelled (form, delimiter), so money equals numeric(19,2) here: compare OIDs and typmods
 * too when asking whether rows can still be parsed. */
bool type_eq(const Type *a, const Type *b);

/* Deep copies. */
const Type *type_copy(Arena *arena, const Type *type);
Field field_copy(Arena *arena, const Field *field);

/* Give every field of the tree below (element, key, value, members) the ids *next_id, *next_id + 1
 * ... in the order of Iceberg's TypeUtil.assignFreshIds (AssignFreshIds.java): first all fields of
 * this type, then what is below the first of them, then what is below the second. The top field's
 * own id is the caller's. */
void type_assign_ids(Type *type, int *next_id);

#endif
