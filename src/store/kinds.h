/* kinds.h - the stores that exist; for store.c alone. */
#ifndef STORE_KINDS_H
#define STORE_KINDS_H

#include "store/store.h"

extern const StoreOps fs_store_ops;
extern const StoreOps s3_store_ops;

#endif
