/* wrap.h - running text in lines, for help and comments. */
#ifndef CONFIG_WRAP_H
#define CONFIG_WRAP_H

#include "base/buf.h"

/* The words of `text` in lines of at most 79 columns, each line after `indent`. */
void wrap_text(Buf *out, const char *indent, const char *text);

#endif
