/* json_writer.h - JSON text into a Buf, with commas placed and keys in the order written.
 *
 * Reading is jansson's; writing is ours because documents that are compared, hashed or read by
 * people want a stable key order and no copies. Calls nest; jw_end() closes the innermost. */
#ifndef BASE_JSON_WRITER_H
#define BASE_JSON_WRITER_H

#include "base/buf.h"

enum { JSON_DEPTH_MAX = 64 };

typedef struct JsonWriter {
    Buf *out;
    int depth;
    bool pretty;
    bool after_key;
    bool has_item[JSON_DEPTH_MAX];
    char closer[JSON_DEPTH_MAX];
} JsonWriter;

void jw_begin(JsonWriter *json, Buf *out);
void jw_begin_pretty(JsonWriter *json, Buf *out); /* two blanks a level */
void jw_object(JsonWriter *json);
void jw_array(JsonWriter *json);
void jw_end(JsonWriter *json);
void jw_key(JsonWriter *json, const char *key);
void jw_key_str(JsonWriter *json, Str key);
void jw_str(JsonWriter *json, Str s);  /* STR_NULL writes null */
void jw_text(JsonWriter *json, Str s); /* never null: the view of an empty Buf is "" */
void jw_cstr(JsonWriter *json, const char *s);
void jw_int(JsonWriter *json, int64_t n);
void jw_double(JsonWriter *json, double d); /* shortest text that reads back the same */
void jw_bool(JsonWriter *json, bool b);
void jw_null(JsonWriter *json);
/* Text that is JSON already. */
void jw_raw(JsonWriter *json, Str text);

/* One quoted string, without a writer. Bytes that are not UTF-8 become U+FFFD. */
void jw_put_string(Buf *out, Str s);

#endif
