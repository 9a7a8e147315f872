/* schema.h - TableSchema: one version of a table. Immutable once built, reference counted, shared
 * between the reader and the writer thread. */
#ifndef MODEL_SCHEMA_H
#define MODEL_SCHEMA_H

#include "model/type.h"

#include <stdint.h>

typedef enum ReplicaIdentity {
    IDENTITY_DEFAULT = 'd', /* the primary key, if there is one */
    IDENTITY_INDEX = 'i',
    IDENTITY_FULL = 'f',
    IDENTITY_NOTHING = 'n',
} ReplicaIdentity;

/* How rows are found again in the lake. */
typedef enum KeyMode {
    KEY_COLUMNS,  /* hash of the key columns; one live row per key */
    KEY_FULL_ROW, /* REPLICA IDENTITY FULL without a key: hash of all columns; twins are possible */
    KEY_NONE,     /* inserts and truncates only */
} KeyMode;

typedef struct SchemaColumn {
    Field field; /* name, Iceberg id, required, logical type */
    int attnum;  /* pg_attribute.attnum: survives renames */
    uint32_t type_oid;
    int32_t typmod;
    const char *pg_type; /* as format_type prints it; becomes the column's doc */
    bool not_null;
    bool filled; /* rows from before it was seen have values: atthasmissing, or it is generated */
    Str filled_with; /* with filled: the one value of them all, as Postgres' text; STR_NULL: they
                        have different ones, or it is not known */
} SchemaColumn;

typedef struct TableSchema TableSchema;

struct TableSchema {
    uint32_t relid;  /* pg_class.oid of the table, or of the partition root */
    Str schema_name; /* Postgres schema and table, exactly as there */
    Str table_name;
    const char *qualified; /* "public.orders", for logs, settings patterns and status */
    ReplicaIdentity identity;
    KeyMode key_mode;
    int key_count;
    int *key; /* indexes into columns, in the order of the key */
    int column_count;
    SchemaColumn *columns;     /* in attnum order: dropped and generated columns are not here */
    int attnum_max;            /* highest that was given by then, also to them; 0: not known */
    int last_field_id;         /* highest id in use, nested ones included */
    struct SchemaOwner *owner; /* reference count and arena, private to schema.c */
};

/* A schema under construction: fill it and everything it points to from *out_arena, which becomes
 * the schema's. One reference is the caller's. */
TableSchema *schema_new(Arena **out_arena);
TableSchema *schema_ref(const TableSchema *schema); /* thread safe */
void schema_unref(const TableSchema *schema);       /* NULL is fine; thread safe */

/* Index of the column, or -1. */
int schema_find_column(const TableSchema *schema, Str name);
int schema_find_attnum(const TableSchema *schema, int attnum);

/* No column that was made by then has a higher one; as far as it is known. */
int schema_attnum_max(const TableSchema *schema);

/* Same columns (attnum, name, type and how it is spelled), of all that were made, and the same key.
 */
bool schema_same_shape(const TableSchema *a, const TableSchema *b);

/* Deep copy, for a schema under construction. */
SchemaColumn schema_copy_column(Arena *arena, const SchemaColumn *column);

/* The same with the name that another one has. A new reference. */
const TableSchema *schema_renamed(const TableSchema *schema, const TableSchema *named);

/* Assign field ids: columns 1..n in order, then nested fields. For a new table. */
void schema_assign_ids(TableSchema *schema);

#endif
