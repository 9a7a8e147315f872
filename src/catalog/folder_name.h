/* folder_name.h - a name of Postgres as the name of a folder, and back.
 *
 * Iceberg readers take paths as they stand; some also run them through URI code. So a folder's name
 * has only characters that mean themselves everywhere: A-Z a-z 0-9 _ - and '.' stay, any other byte
 * becomes ~XX (two upper-case hexadecimal digits), and so does a '.' at the beginning, because such
 * folders are hidden or special. '~' needs no escaping in URIs (RFC 3986, "unreserved") and is
 * itself always escaped, so two names never share a folder:
 *
 *     orders -> orders    Orders -> Orders    a b/c -> a~20b~2Fc    ~ -> ~7E    .x -> ~2Ex
 *
 * Case is kept; on a file system that ignores it, names that differ only in case collide. */
#ifndef CATALOG_FOLDER_NAME_H
#define CATALOG_FOLDER_NAME_H

#include "base/buf.h"

void folder_name_write(Buf *out, Str name);

/* False, with out in any state, when folder_name_write() never writes this. out is replaced. */
bool folder_name_read(Str folder, Buf *out);

#endif
