/* leaves.c - partitions that come and go.
 *
 * With publish_via_partition_root the stream has what is done through the root, and rows of a
 * partition under the root's name. It has nothing of a partition that is dropped, detached,
 * attached with its rows, or truncated alone. So the partitions are remembered, each with its file
 * and with what put it there (it may have been away in between), as "oid/relfilenode/joined ..." in
 * the order of the oids, and compared.
 *
 * A new file is a doubt: it may be VACUUM FULL or CLUSTER of a partition, or TRUNCATE, and after an
 * ANALYZE nothing tells them apart. A doubt costs a copy. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pipeline/internal.h"

static int
compare_leaves(const void *a, const void *b)
{
    uint32_t x = (*(const TableLeaf *const *) a)->relid;
    uint32_t y = (*(const TableLeaf *const *) b)->relid;

    return x < y ? -1 : x > y;
}

/* Those that hold rows of ours, by oid. */
static const TableLeaf **
sorted_leaves(Arena *arena, const SourceTable *source, int *out_count)
{
    const TableLeaf **leaves = ARENA_ARRAY(arena, const TableLeaf *, (size_t) source->leaf_count);
    int count = 0;

    for (int i = 0; i < source->leaf_count; i++)
        if (source->leaves[i].kind == 'r')
            leaves[count++] = &source->leaves[i];
    qsort((void *) leaves, (size_t) count, sizeof(void *), compare_leaves);
    *out_count = count;
    return leaves;
}

const char *
leaves_text(Arena *arena, const SourceTable *source)
{
    AUTO_BUF Buf text = {0};
    int count;
    const TableLeaf **leaves = sorted_leaves(arena, source, &count);

    for (int i = 0; i < count; i++)
        buf_printf(&text, "%s%u/%u/%u", i == 0 ? "" : " ", leaves[i]->relid, leaves[i]->filenode,
                   leaves[i]->joined);
    return arena_strdup(arena, buf_text(&text));
}

static bool
next_known(const char **at, uint32_t *out_relid, uint32_t *out_filenode, uint32_t *out_joined)
{
    char *end;

    *out_relid = (uint32_t) strtoul(*at, &end, 10);
    if (end == *at || *end != '/')
        return false;
    *out_filenode = (uint32_t) strtoul(end + 1, &end, 10);
    *out_joined = *end == '/' ? (uint32_t) strtoul(end + 1, &end, 10) : 0; /* 0: not known */
    *at = end;
    return true;
}

/* Whether a partition that was attached brought rows. Somebody who holds it locked is not waited
 * for. */
static bool
has_rows(Pipeline *pl, Arena *arena, const TableLeaf *leaf, bool *out_has, Error *err)
{
    PgResult result;
    const char *sql = arena_printf(arena, "SELECT pg_relation_size(%u) > 0", leaf->relid);

    TRY(pg_ask(pl->conn, arena, sql, 0, NULL, &result, err));
    *out_has = pg_value_bool(&result, 0, 0);
    return true;
}

static const char *
describe(Arena *arena, const TableLeaf *leaf, const char *what)
{
    return arena_printf(arena, "partition %.*s.%.*s %s", STR_ARG(leaf->schema_name),
                        STR_ARG(leaf->table_name), what);
}

/* A partition that was not there. */
static bool
compare_new(Pipeline *pl, Arena *arena, const TableLeaf *leaf, const char **out_reason, Error *err)
{
    bool has = false;

    if (leaf->born)
        return true;
    TRY(has_rows(pl, arena, leaf, &has, err));
    if (has)
        *out_reason = describe(arena, leaf, "was attached with its rows");
    return true;
}

/* Why rows of the lake are not those of the partitions any more; NULL: they are. */
static bool
compare(Pipeline *pl, Arena *arena, const PipeTable *table, const SourceTable *now,
        const char **out_reason, Error *err)
{
    const char *known = tables_state(pl, table)->leaves;
    int count;
    const TableLeaf **leaves = sorted_leaves(arena, now, &count);
    uint32_t relid = 0;
    uint32_t filenode = 0;
    uint32_t joined = 0;
    bool more = next_known(&known, &relid, &filenode, &joined);

    *out_reason = NULL;
    for (int i = 0; (i < count || more) && *out_reason == NULL;) {
        if (i == count || (more && relid < leaves[i]->relid)) {
            *out_reason = "a partition was dropped or detached";
        } else if (!more || leaves[i]->relid < relid) {
            TRY(compare_new(pl, arena, leaves[i++], out_reason, err));
        } else {
            if (joined != 0 && leaves[i]->joined != joined)
                *out_reason = describe(arena, leaves[i], "was detached and attached again");
            else if (leaves[i]->filenode != filenode)
                *out_reason = describe(arena, leaves[i], "was truncated");
            i++;
            more = next_known(&known, &relid, &filenode, &joined);
        }
    }
    return true;
}

void
leaves_follow(Pipeline *pl, PipeTable *table, const SourceTable *now)
{
    AUTO_ARENA Arena *arena = arena_new();
    StateTable *known = tables_state(pl, table);
    const char *text = leaves_text(arena, now);
    const char *reason = NULL;
    Error err;

    if (known->leaves != NULL && strcmp(known->leaves, text) == 0)
        return;
    if (known->leaves != NULL && !compare(pl, arena, table, now, &reason, &err)) {
        log_warn("cannot look at partitions, trying again later",
                 LOG_STR("table", table->schema->qualified), LOG_STR("error", err.msg));
        pl->relations_seen = STR_NULL;
        return;
    }
    known->leaves = arena_strdup(pl->state_arena, text);
    known->mended = false;
    if (reason == NULL)
        return;
    if (strcmp(pl->config->on_partition_change, "rewrite") == 0)
        pipe_table_copy_again(table, reason);
    else
        log_warn("the lake's rows stay as they were", LOG_STR("table", table->schema->qualified),
                 LOG_STR("reason", reason));
}
