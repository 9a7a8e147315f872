/* What of the key index survives a restart: index.json lists runs and the files whose entries are
 * in them, the journal has the rest. index.json is replaced by rename, the journal is started anew
 * under another name before index.json names it, and nothing is removed before index.json has
 * stopped naming it: each state on disk is whole.
 *
 *     {"checksum": "<XXH3 of all that follows this line>",
 *     "index": {"version": 1, "table": ..., "runs": [[number, seed], ...],
 *               "files": [[ordinal, rows, run or 0, name], ...]}}
 */
#include "iceberg/index_internal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "avro/json_node.h"
#include "base/fault.h"
#include "base/folder.h"
#include "base/json_writer.h"
#include "store/fs_file.h"

enum { STATE_VERSION = 1, STATE_BYTES_MAX = 1 << 30 };

#define CHECKSUM_LINE "{\"checksum\": \"%016" PRIx64 "\",\n"

enum { CHECKSUM_LINE_SIZE = 33 };

char *
index_path(const Index *index, Arena *arena, const char *kind, uint64_t number)
{
    return arena_printf(arena, "%s/%s-%" PRIu64, index->folder, kind, number);
}

static uint64_t
state_checksum(const Index *index, Str text)
{
    return XXH3_64bits_withSeed(text.ptr, text.len, index->table);
}

/* --- Writing ------------------------------------------------------------------------------- */

static void
put_runs(const Index *index, JsonWriter *json)
{
    char seed[20];

    jw_array(json);
    for (size_t i = 0; i < index_run_count(index); i++) {
        const IndexRun *run = index_run_at(index, i);

        snprintf(seed, sizeof seed, "%016" PRIx64, run->run->seed);
        jw_array(json);
        jw_int(json, (int64_t) run->number);
        jw_cstr(json, seed);
        jw_end(json);
    }
    jw_end(json);
}

/* Those of the recent entries are in the journal. */
static void
put_files(const Index *index, JsonWriter *json)
{
    jw_array(json);
    for (size_t i = 0; i < index_file_count(index); i++) {
        const IndexFile *file = index_file_at(index, i);

        if (file->recent)
            continue;
        jw_array(json);
        jw_int(json, file->ordinal);
        jw_int(json, file->rows);
        jw_int(json, file->run == NULL ? 0 : (int64_t) file->run->number);
        jw_str(json, file->name);
        jw_end(json);
    }
    jw_end(json);
}

static void
put_state(const Index *index, Buf *out)
{
    AUTO_BUF Buf body = {0};
    JsonWriter json;

    jw_begin(&json, &body);
    jw_object(&json);
    jw_key(&json, "version");
    jw_int(&json, STATE_VERSION);
    jw_key(&json, "table");
    jw_cstr(&json, index->table_uuid);
    jw_key(&json, "next_file");
    jw_int(&json, index->next_file);
    jw_key(&json, "next_number");
    jw_int(&json, (int64_t) index->next_number);
    jw_key(&json, "journal");
    jw_int(&json, (int64_t) index->journal.number);
    jw_key(&json, "runs");
    put_runs(index, &json);
    jw_key(&json, "files");
    put_files(index, &json);
    jw_end(&json);

    AUTO_BUF Buf rest = {0};

    buf_cstr(&rest, "\"index\": ");
    buf_str(&rest, buf_view(&body));
    buf_cstr(&rest, "}\n");
    buf_printf(out, CHECKSUM_LINE, state_checksum(index, buf_view(&rest)));
    assert(out->len == CHECKSUM_LINE_SIZE);
    buf_str(out, buf_view(&rest));
}

static bool
write_file(const char *path, Str text, Error *err)
{
    int fd = folder_create_file(path, O_WRONLY | O_TRUNC, 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (file == NULL)
        return fs_fail(err, "create", path);

    bool written = fwrite(text.ptr, 1, text.len, file) == text.len;

    if (fclose(file) != 0 || !written)
        return FAIL(err, ERR_TRANSIENT, "write %s: %m", path);
    return true;
}

static bool
write_state(Index *index, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf text = {0};
    const char *temporary = arena_printf(arena, "%s/new-index.json", index->folder);
    const char *final = arena_printf(arena, "%s/index.json", index->folder);

    TRY(FAULT("index.state", err));
    put_state(index, &text);
    TRY(write_file(temporary, buf_view(&text), err));
    if (rename(temporary, final) != 0)
        return FAIL(err, ERR_TRANSIENT, "rename %s: %m", temporary);
    index->runs_changed = false;
    for (size_t i = 0; i < BUF_COUNT(&index->obsolete, uint64_t); i++)
        unlink(index_path(index, arena, "run", BUF_AT(&index->obsolete, uint64_t, i)));
    buf_reset(&index->obsolete);
    return true;
}

/* The old journal goes when index.json names the new one. */
static bool
restart_journal(Index *index, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    uint64_t number = index->next_number++;
    const char *old = index_path(index, arena, "journal", index->journal.number);
    bool had_old = index->journal.fd >= 0;

    TRY(journal_create(&index->journal, index_path(index, arena, "journal", number), number, err));
    TRY(write_state(index, err));
    index->journal_changed = false;
    if (had_old)
        unlink(old);
    return true;
}

bool
index_store(Index *index, Error *err)
{
    if (index->journal.fd < 0 || index->journal_changed)
        return restart_journal(index, err);
    TRY(FAULT("index.journal", err));
    TRY(journal_flush(&index->journal, err));
    return !index->runs_changed || write_state(index, err);
}

/* --- Reading: everything returns whether it can be trusted, nothing why ---------------------- */

static bool
read_run(Index *index, const JsonNode *node)
{
    AUTO_ARENA Arena *arena = arena_new();
    int64_t number;
    Str text;
    char *end;
    Run *run;
    Error err;

    if (!node_to_int64(node_at(node, 0), &number) || !node_to_str(node_at(node, 1), &text) ||
        number <= 0 || (uint64_t) number >= index->next_number)
        return false;

    uint64_t seed = strtoull(arena_str(arena, text).ptr, &end, 16);

    /* one that cannot be opened is missing: its files will not be there either */
    if (*end == '\0' && run_open(index_path(index, arena, "run", (uint64_t) number), index->table,
                                 seed, &run, &err))
        index_enter_run(index, (uint64_t) number, run);
    return true;
}

static IndexRun *
find_run(const Index *index, uint64_t number)
{
    for (size_t i = 0; i < index_run_count(index); i++)
        if (index_run_at(index, i)->number == number)
            return index_run_at(index, i);
    return NULL;
}

static bool
read_file(Index *index, const JsonNode *node)
{
    int64_t ordinal;
    int64_t rows;
    int64_t number;
    Str name;

    if (!node_to_int64(node_at(node, 0), &ordinal) || !node_to_int64(node_at(node, 1), &rows) ||
        !node_to_int64(node_at(node, 2), &number) || !node_to_str(node_at(node, 3), &name) ||
        ordinal < 0 || ordinal >= index->next_file || rows < 0 || rows > UINT32_MAX)
        return false;

    IndexRun *run = number == 0 ? NULL : find_run(index, (uint64_t) number);

    if (number == 0 || run != NULL)
        index_enter_file(index, (uint32_t) ordinal, name, (uint32_t) rows)->run = run;
    return true;
}

static bool
read_numbers(Index *index, const JsonNode *state, Error *err)
{
    int64_t next_file;
    int64_t next_number;
    int64_t journal;

    TRY(node_need_int64(state, "next_file", &next_file, err));
    TRY(node_need_int64(state, "next_number", &next_number, err));
    TRY(node_need_int64(state, "journal", &journal, err));
    if (next_file < 0 || next_file > INT32_MAX || next_number < 0 || journal < 0)
        return false;
    index->next_file = (uint32_t) next_file;
    index->next_number = (uint64_t) next_number;
    index->journal.number = (uint64_t) journal;
    return true;
}

static bool
read_state(Index *index, const JsonNode *state)
{
    const JsonNode *runs = node_get(state, "runs");
    const JsonNode *files = node_get(state, "files");
    int version = 0;
    Str table = STR_NULL;
    Error err;

    if (!node_to_int(node_get(state, "version"), &version) || version != STATE_VERSION ||
        !node_to_str(node_get(state, "table"), &table) || !str_eqc(table, index->table_uuid) ||
        !read_numbers(index, state, &err))
        return false;
    for (size_t i = 0; i < node_count(runs); i++)
        if (!read_run(index, node_at(runs, i)))
            return false;
    for (size_t i = 0; i < node_count(files); i++)
        if (!read_file(index, node_at(files, i)))
            return false;
    return true;
}

/* The journal goes on where index.json ends. */
static void
replay(Index *index)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf entries = {0};
    Journal *journal = &index->journal;
    JournalRecord record;
    Error err;

    if (!journal_open(journal, index_path(index, arena, "journal", journal->number),
                      journal->number, &text, &err)) {
        journal_done(journal);
        return;
    }
    while (journal_next(journal, buf_view(&text), &record)) {
        if (record.kind == JOURNAL_REMOVE) {
            index_drop_ordinal(index, record.file);
            continue;
        }
        index_enter_file(index, record.file, record.name, record.rows)->recent = true;
        for (uint32_t row = 0; row < record.rows; row++)
            BUF_PUSH(&entries, Entry, ((Entry){journal_key(&record, row), record.file, row}));
        if (record.file >= index->next_file)
            index->next_file = record.file + 1;
    }
    recent_add(&index->recent, (Entry *) (void *) entries.ptr, BUF_COUNT(&entries, Entry));
    buf_reset(&journal->pending); /* what dropping files noted is there already */
}

static void
close_file(FILE **file)
{
    if (*file != NULL)
        fclose(*file);
}

static bool
read_text(const char *path, Buf *out)
{
    AUTO(close_file) FILE *file = fopen(path, "re");
    struct stat status;

    if (file == NULL || fstat(fileno(file), &status) != 0 || status.st_size > STATE_BYTES_MAX)
        return false;

    size_t size = (size_t) status.st_size;

    return fread(buf_push(out, size), 1, size, file) == size;
}

static bool
check_text(const Index *index, Str text)
{
    char line[CHECKSUM_LINE_SIZE + 1];

    if (text.len < CHECKSUM_LINE_SIZE)
        return false;

    Str rest = {.ptr = text.ptr + CHECKSUM_LINE_SIZE, .len = text.len - CHECKSUM_LINE_SIZE};

    snprintf(line, sizeof line, CHECKSUM_LINE, state_checksum(index, rest));
    return memcmp(text.ptr, line, CHECKSUM_LINE_SIZE) == 0;
}

static bool
load_state(Index *index)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf text = {0};

    if (!read_text(arena_printf(arena, "%s/index.json", index->folder), &text) ||
        !check_text(index, buf_view(&text)))
        return false;

    AUTO_NODE JsonNode *root = NULL;
    Error err;

    return node_parse(buf_view(&text), &root, &err) && read_state(index, node_get(root, "index"));
}

/* --- Files that nothing refers to ------------------------------------------------------------ */

static bool
is_wanted(const Index *index, const char *name)
{
    size_t length = strcspn(name, "-");
    Str kind = {.ptr = name, .len = length};
    uint64_t number = name[length] == '-' ? strtoull(name + length + 1, NULL, 10) : 0;

    if (str_eqc(kind, "run"))
        return find_run(index, number) != NULL;
    if (str_eqc(kind, "journal"))
        return index->journal.fd >= 0 && index->journal.number == number;
    return !str_eqc(kind, "new") && !str_eqc(kind, "piece");
}

static bool
sweep(const Index *index, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    DIR *folder = opendir(index->folder);

    if (folder == NULL)
        return fs_fail(err, "list", index->folder);
    for (;;) {
        const struct dirent *entry = readdir(folder); /* NOLINT(concurrency-mt-unsafe) */

        if (entry == NULL)
            break;
        if (!is_wanted(index, entry->d_name))
            unlink(arena_printf(arena, "%s/%s", index->folder, entry->d_name));
    }
    closedir(folder);
    return true;
}

static void
forget_everything(Index *index)
{
    while (index_file_count(index) > 0)
        index_drop_file(index, index_file_at(index, index_file_count(index) - 1));
    while (index_run_count(index) > 0)
        index_leave_run(index, index_run_at(index, 0));
    buf_reset(&index->journal.pending);
    buf_reset(&index->obsolete); /* sweep() finds them */
    index->next_file = 0;
}

bool
index_load(Index *index, Error *err)
{
    index->next_number = 1;
    if (load_state(index))
        replay(index);
    else
        forget_everything(index);
    index->runs_changed = false;
    return sweep(index, err);
}
