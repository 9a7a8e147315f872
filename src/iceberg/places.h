/* places.h - which partition each data file of a table belongs to: position deletes go to the spec
 * and partition of the file that they point into. Files are known by the hash of their path. Pure.
 */
#ifndef ICEBERG_PLACES_H
#define ICEBERG_PLACES_H

#include "base/str.h"

#include <stdint.h>

typedef struct Places Places;

/* Partitions are numbered as they come. */
typedef struct Place {
    int spec_id;
    Str partition; /* packed tuple; good until the next places_add() */
} Place;

Places *places_new(void);
void places_free(Places *places); /* NULL is fine */

void places_add(Places *places, Str data_file, int spec_id, Str partition);
/* False: no such file. */
bool places_find(const Places *places, Str data_file, uint32_t *out_number);
Place places_at(const Places *places, uint32_t number);
uint32_t places_count(const Places *places);

#endif
