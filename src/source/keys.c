#include "source/keys.h"

bool
str_list_has(const StrList *list, Str item)
{
    for (size_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i], item))
            return true;
    return false;
}

static bool
includes(const StrList *all, const StrList *some)
{
    for (size_t i = 0; i < some->count; i++)
        if (!str_list_has(all, some->items[i]))
            return false;
    return true;
}

static const IndexFacts *
find_index(const IdentityFacts *facts, bool primary)
{
    for (int i = 0; i < facts->index_count; i++) {
        const IndexFacts *index = &facts->indexes[i];

        if (index->immediate && (primary ? index->primary : index->identity))
            return index;
    }
    return NULL;
}

StrList
key_identity_columns(const IdentityFacts *facts, bool *out_all)
{
    const IndexFacts *index = NULL;

    *out_all = facts->identity == IDENTITY_FULL;
    if (facts->identity == IDENTITY_DEFAULT)
        index = find_index(facts, true);
    else if (facts->identity == IDENTITY_INDEX)
        index = find_index(facts, false);
    return index == NULL ? (StrList){0} : index->columns;
}

TableKey
key_from_identity(const IdentityFacts *facts)
{
    bool all;
    StrList columns = key_identity_columns(facts, &all);

    if (all) {
        /* A deferrable key may be doubled inside a transaction, so only an immediate one counts. */
        const IndexFacts *primary = find_index(facts, true);

        if (primary == NULL)
            return (TableKey){.mode = KEY_FULL_ROW};
        columns = primary->columns;
    }
    if (columns.count > 0)
        return (TableKey){.mode = KEY_COLUMNS, .columns = columns};
    return (TableKey){.mode = KEY_NONE,
                      .warning = "no replica identity: while it is published, Postgres refuses "
                                 "UPDATE and DELETE on it"};
}

TableKey
key_from_rule(Arena *arena, const IdentityFacts *facts, const StrList *columns)
{
    bool all;
    StrList sent = key_identity_columns(facts, &all);
    TableKey key = {.mode = KEY_COLUMNS, .columns = *columns};

    if (sent.count == 0 && !all)
        key.warning = key_from_identity(facts).warning;
    else if (!all && !includes(&sent, columns)) {
        AUTO_BUF Buf text = {0};

        buf_cstr(&text, "the key of the settings has columns outside the replica identity (");
        for (size_t i = 0; i < sent.count; i++)
            buf_printf(&text, "%s%.*s", i > 0 ? ", " : "", STR_ARG(sent.items[i]));
        buf_cstr(&text, "), so updates and deletes would not be matched\nhint: ALTER TABLE ... "
                        "REPLICA IDENTITY FULL, or another key");
        key.problem = arena_strdup(arena, buf_text(&text));
    }
    return key;
}

const char *
key_partition_problem(Arena *arena, const TableKey *root, const IdentityFacts *partition,
                      const char *partition_name)
{
    bool all;
    StrList sent = key_identity_columns(partition, &all);
    bool sends = all || sent.count > 0;

    if (root->mode == KEY_NONE && sends)
        return arena_printf(arena,
                            "partition %s sends updates and deletes, but the table has no key\n"
                            "hint: give the table a primary key or REPLICA IDENTITY FULL, or set "
                            "its key in the settings",
                            partition_name);
    if (root->mode == KEY_NONE || all ||
        (root->mode == KEY_COLUMNS && includes(&sent, &root->columns)))
        return NULL;
    return arena_printf(arena,
                        "the replica identity of partition %s does not send the table's key\n"
                        "hint: ALTER TABLE %s REPLICA IDENTITY FULL, or USING INDEX ... on the key",
                        partition_name, partition_name);
}
