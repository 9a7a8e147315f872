/* words.c - labels of enums and attributes of composite types that are called otherwise.
 *
 * ALTER TYPE ... RENAME VALUE sends nothing and rewrites nothing, but every row that has the label
 * reads otherwise from then on; keys with it, too. So the types of a table are remembered, each
 * with the number of its words and a hash of them, as "oid/count/hash oid/count/hash ..." in the
 * order of the oids. ADD VALUE and ADD ATTRIBUTE leave the first ones as they were. A composite
 * whose attributes were dropped and added again has others, even under the old names, and so has an
 * enum whose label was renamed and renamed back: what was sent in between had the other. Of a type
 * that is new to the table it is known only whether a word is younger than the column. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/internal.h"

const char *
words_text(Arena *arena, const SourceTable *source)
{
    AUTO_BUF Buf text = {0};

    for (int i = 0; i < source->worded_count; i++) {
        const PgType *type = source->worded[i].type;

        buf_printf(&text, "%s%u/%d/%016" PRIx64, i == 0 ? "" : " ", type->oid, type->word_count,
                   type->words[type->word_count - 1]);
    }
    return arena_strdup(arena, buf_text(&text));
}

typedef struct Words {
    uint32_t oid;
    int count;
    uint64_t hash;
} Words;

static bool
next_known(const char **at, Words *out_words)
{
    char *end;

    out_words->oid = (uint32_t) strtoul(*at, &end, 10);
    if (end == *at || *end != '/')
        return false;
    out_words->count = (int) strtol(end + 1, &end, 10);
    if (*end != '/')
        return false;
    out_words->hash = strtoull(end + 1, &end, 16);
    *at = end;
    return true;
}

static bool
find_known(const char *known, uint32_t oid, Words *out_words)
{
    while (next_known(&known, out_words))
        if (out_words->oid == oid)
            return true;
    return false;
}

const PgType *
words_changed(const char *known, const SourceTable *now)
{
    for (int i = 0; known != NULL && i < now->worded_count; i++) {
        const PgType *type = now->worded[i].type;
        Words was;

        if (!find_known(known, type->oid, &was)) {
            if (now->worded[i].late)
                return type;
        } else if (was.count < 1 || was.count > type->word_count ||
                   type->words[was.count - 1] != was.hash) {
            return type;
        }
    }
    return NULL;
}
