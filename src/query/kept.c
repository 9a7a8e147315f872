#include "query/kept.h"

#include <assert.h>

typedef struct KeptEntry {
    Str name;
    Prepared *prepared; /* one of the two */
    Portal *portal;
} KeptEntry;

/* Where the name is, or would be. */
static size_t
find_place(const Buf *entries, Str name, bool *out_found)
{
    size_t low = 0;
    size_t high = BUF_COUNT(entries, KeptEntry);

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (str_cmp(BUF_AT(entries, KeptEntry, mid).name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *out_found =
        low < BUF_COUNT(entries, KeptEntry) && str_eq(BUF_AT(entries, KeptEntry, low).name, name);
    return low;
}

static const KeptEntry *
find_entry(const Buf *entries, Str name)
{
    bool found = false;
    size_t place = find_place(entries, name, &found);

    return found ? &BUF_AT(entries, KeptEntry, place) : NULL;
}

static bool
add_entry(Buf *entries, KeptEntry entry)
{
    size_t count = BUF_COUNT(entries, KeptEntry);
    bool found = false;
    size_t place = find_place(entries, entry.name, &found);

    assert(!found);
    if (count >= KEPT_MAX)
        return false;
    buf_push(entries, sizeof entry);

    KeptEntry *at = &BUF_AT(entries, KeptEntry, place);

    memmove(at + 1, at, (count - place) * sizeof entry);
    *at = entry;
    return true;
}

static void
remove_entry(Buf *entries, Str name)
{
    bool found = false;
    size_t place = find_place(entries, name, &found);
    size_t count = BUF_COUNT(entries, KeptEntry);

    assert(found);

    KeptEntry *at = &BUF_AT(entries, KeptEntry, place);

    memmove(at, at + 1, (count - place - 1) * sizeof(KeptEntry));
    entries->len -= sizeof(KeptEntry);
}

void
kept_done(Kept *kept)
{
    kept_drop_all(kept);
    buf_done(&kept->statements);
    buf_done(&kept->portals);
}

Prepared *
kept_statement(const Kept *kept, Str name)
{
    const KeptEntry *entry = find_entry(&kept->statements, name);

    return entry == NULL ? NULL : entry->prepared;
}

Portal *
kept_portal(const Kept *kept, Str name)
{
    const KeptEntry *entry = find_entry(&kept->portals, name);

    return entry == NULL ? NULL : entry->portal;
}

bool
kept_add_statement(Kept *kept, Prepared *prepared)
{
    return add_entry(&kept->statements,
                     (KeptEntry){.name = str_of(prepared->name), .prepared = prepared});
}

bool
kept_add_portal(Kept *kept, Portal *portal)
{
    return add_entry(&kept->portals, (KeptEntry){.name = str_of(portal->name), .portal = portal});
}

void
kept_drop_portal(Kept *kept, Portal *portal)
{
    remove_entry(&kept->portals, str_of(portal->name));
    portal_free(portal);
}

void
kept_drop_statement(Kept *kept, Prepared *prepared)
{
    for (size_t i = BUF_COUNT(&kept->portals, KeptEntry); i-- > 0;) {
        Portal *portal = BUF_AT(&kept->portals, KeptEntry, i).portal;

        if (portal->prepared == prepared)
            kept_drop_portal(kept, portal);
    }
    kept_forget_statement(kept, prepared);
}

void
kept_forget_statement(Kept *kept, Prepared *prepared)
{
    remove_entry(&kept->statements, str_of(prepared->name));
    prepared_unref(prepared);
}

void
kept_drop_portals(Kept *kept)
{
    for (size_t i = 0; i < BUF_COUNT(&kept->portals, KeptEntry); i++)
        portal_free(BUF_AT(&kept->portals, KeptEntry, i).portal);
    buf_reset(&kept->portals);
}

void
kept_drop_all(Kept *kept)
{
    kept_drop_portals(kept);
    for (size_t i = 0; i < BUF_COUNT(&kept->statements, KeptEntry); i++)
        prepared_unref(BUF_AT(&kept->statements, KeptEntry, i).prepared);
    buf_reset(&kept->statements);
}
