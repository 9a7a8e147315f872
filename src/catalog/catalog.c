#include "catalog/catalog.h"

#include <assert.h>

#include "base/fault.h"
#include "catalog/folder_name.h"
#include "catalog/kinds.h"

static const CatalogOps *const catalog_kinds[] = {
    &file_catalog_ops,
};

bool
catalog_open(const char *kind, Store *warehouse, Catalog **out_catalog, Error *err)
{
    for (size_t i = 0; i < sizeof catalog_kinds / sizeof catalog_kinds[0]; i++)
        if (strcmp(catalog_kinds[i]->name, kind) == 0)
            return catalog_kinds[i]->open(warehouse, out_catalog, err);
    return FAIL(err, ERR_INPUT, "no such catalog: %s\nhint: sink.iceberg.catalog.type is file",
                kind);
}

void
catalog_close(Catalog *catalog)
{
    if (catalog != NULL)
        catalog->ops->close(catalog);
}

const char *
catalog_location(Catalog *catalog, Arena *arena, const TableName *name)
{
    AUTO_BUF Buf key = {0};

    folder_name_write(&key, name->space);
    buf_byte(&key, '/');
    folder_name_write(&key, name->name);
    return store_uri(catalog->warehouse, arena, buf_text(&key));
}

static bool
wrap(Error *err, const char *step, const TableName *name)
{
    return WRAP(err, "%s table %.*s.%.*s", step, STR_ARG(name->space), STR_ARG(name->name));
}

static bool
check_name(const TableName *name, Error *err)
{
    if (name->space.len == 0 || name->name.len == 0)
        return FAIL(err, ERR_INPUT, "a table needs a namespace and a name");
    return true;
}

bool
catalog_load(Catalog *catalog, Arena *arena, const TableName *name, CatalogTable *out_table,
             bool *out_found, Error *err)
{
    CatalogTable table;
    bool found = false;

    if (!check_name(name, err) || !catalog->ops->load(catalog, arena, name, &table, &found, err))
        return wrap(err, "load", name);
    *out_found = found;
    if (found)
        *out_table = table;
    return true;
}

bool
catalog_create(Catalog *catalog, Arena *arena, const TableName *name, Str metadata,
               CatalogTable *out_table, Error *err)
{
    CatalogTable table;

    if (!check_name(name, err) || !FAULT("catalog.create", err) ||
        !catalog->ops->create(catalog, arena, name, metadata, &table, err) ||
        !FAULT("catalog.create.answer", err))
        return wrap(err, "create", name);
    *out_table = table;
    return true;
}

bool
catalog_commit(/* NOLINT(readability-function-size): as in catalog.h */
               Catalog *catalog, Arena *arena, const TableName *name, const CatalogTable *base,
               Str metadata, CatalogTable *out_table, Error *err)
{
    CatalogTable table;

    if (!check_name(name, err) || !FAULT("catalog.commit", err) ||
        !catalog->ops->commit(catalog, arena, name, base, metadata, &table, err) ||
        !FAULT("catalog.commit.answer", err))
        return wrap(err, "commit", name);
    *out_table = table;
    return true;
}

bool
catalog_drop(Catalog *catalog, Arena *arena, const TableName *name, Error *err)
{
    if (!check_name(name, err) || !catalog->ops->drop(catalog, arena, name, err))
        return wrap(err, "drop", name);
    return true;
}

bool
catalog_list(Catalog *catalog, Arena *arena, TableName **out_names, size_t *out_count, Error *err)
{
    if (!catalog->ops->list(catalog, arena, out_names, out_count, err))
        return WRAP(err, "list tables");
    return true;
}

bool
catalog_current_token(Catalog *catalog, Arena *arena, const TableName *name, const char *token,
                      const char **out_token, Error *err)
{
    if (!check_name(name, err) ||
        !catalog->ops->current_token(catalog, arena, name, token, out_token, err))
        return wrap(err, "look at", name);
    return true;
}
