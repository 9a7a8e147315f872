/* kinds.h - the catalogs that exist; for catalog.c alone. */
#ifndef CATALOG_KINDS_H
#define CATALOG_KINDS_H

#include "catalog/catalog.h"

extern const CatalogOps file_catalog_ops;

#endif
