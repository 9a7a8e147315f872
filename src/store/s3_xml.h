/* s3_xml.h - the two XML documents S3 sends us: a page of a listing, and an error.
 *
 * A parser for that much of XML 1.0: elements, text, the five entities and character references,
 * CDATA; comments, processing instructions and attributes are passed over; a DOCTYPE is refused.
 * Bounded in depth, no recursion. S3 API Reference, "ListObjectsV2" and "Error Responses". */
#ifndef STORE_S3_XML_H
#define STORE_S3_XML_H

#include "store/store.h"

/* One page of ListObjectsV2. Keys are whole and decoded, also from encoding-type=url. */
typedef struct S3Page {
    StoreObject *objects;
    size_t object_count;
    Str *prefixes; /* CommonPrefixes, each with its delimiter */
    size_t prefix_count;
    bool truncated;
    Str next_token; /* STR_NULL: none */
} S3Page;

/* ERR_TRANSIENT when the text is not such a document: a proxy's page, or a cut one. */
bool s3_page_parse(Arena *arena, Str xml, S3Page *out_page, Error *err) WARN_UNUSED;

typedef struct S3Problem {
    const char *code;    /* "NoSuchKey"; "" when the answer says nothing */
    const char *message; /* "" likewise */
    const char *region;  /* where the bucket is, when the service says so; "" */
} S3Problem;

/* Never fails: what cannot be read stays "". */
void s3_problem_parse(Arena *arena, Str xml, S3Problem *out_problem);

#endif
