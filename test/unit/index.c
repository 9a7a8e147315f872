/* The key index against a naive one: an array that is searched from end to end. */
#include "testing.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "iceberg/index.h"

#define TABLE "6f1c7d52-8d2c-4f0e-9b5e-0f2f3d1f9a11"

static char folder[64];

static int
set_up(void **state)
{
    (void) state;
    snprintf(folder, sizeof folder, "/tmp/walberg-index-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
    char command[128];

    (void) state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command); /* NOLINT */
}

/* --- Keys and names ------------------------------------------------------------------------- */

static uint64_t seed;

static uint64_t
noise(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed >> 16;
}

static Hash128
key_of(uint64_t number)
{
    return hash128(&number, sizeof number, 1);
}

static Str
name_of(unsigned number)
{
    static char name[128];

    return (Str){.ptr = name,
                 .len = (size_t) snprintf(name, sizeof name,
                                          "s3://lake/t/data/\"%u\"-\xC3\xA4.parquet", number)};
}

/* --- The model ------------------------------------------------------------------------------- */

typedef struct Known {
    unsigned name;
    Hash128 key;
    uint32_t row;
} Known;

typedef struct Model {
    Buf known;  /* Known, in the order of adding */
    Buf names;  /* unsigned, in the order of adding: those that count */
    Buf hashes; /* scratch */
} Model;

static void
model_done(Model *model)
{
    buf_done(&model->known);
    buf_done(&model->names);
    buf_done(&model->hashes);
}

static void
model_forget(Model *model, unsigned name)
{
    size_t kept = 0;

    for (size_t i = 0; i < BUF_COUNT(&model->known, Known); i++)
        if (BUF_AT(&model->known, Known, i).name != name)
            BUF_AT(&model->known, Known, kept++) = BUF_AT(&model->known, Known, i);
    model->known.len = kept * sizeof(Known);
    kept = 0;
    for (size_t i = 0; i < BUF_COUNT(&model->names, unsigned); i++)
        if (BUF_AT(&model->names, unsigned, i) != name)
            BUF_AT(&model->names, unsigned, kept++) = BUF_AT(&model->names, unsigned, i);
    model->names.len = kept * sizeof(unsigned);
}

/* A file whose keys are numbers below `range`: the smaller, the more twins. */
static void
add_file(Index *index, Model *model, unsigned name, size_t rows, uint64_t range)
{
    Error err = {0};

    model_forget(model, name);
    BUF_PUSH(&model->names, unsigned, name);
    buf_reset(&model->hashes);
    for (size_t row = 0; row < rows; row++) {
        Hash128 key = key_of(noise() % range);

        BUF_PUSH(&model->hashes, Hash128, key);
        BUF_PUSH(&model->known, Known, ((Known){name, key, (uint32_t) row}));
    }
    OK(index_add_file(index, name_of(name), (const Hash128 *) (const void *) model->hashes.ptr,
                      rows, &err));
    assert_true(index_has_file(index, name_of(name)));
}

static void
expect_hit(const Index *index, IndexHit hit, size_t probe, const Known *known)
{
    assert_int_equal(hit.probe, probe);
    assert_int_equal(hit.row, known->row);
    assert_true(str_eq(index_file_name(index, hit.file), name_of(known->name)));
}

/* Look up numbers that exist, exist often, or do not exist. */
static void
check(Index *index, const Model *model, uint64_t range)
{
    enum { PROBES = 15 };

    Error err = {0};
    Hash128 keys[PROBES];
    Buf hits = {0};
    size_t at = 0;

    for (int i = 0; i < PROBES; i++)
        keys[i] = key_of(noise() % (range + range / 4 + 1));
    OK(index_lookup(index, keys, PROBES, &hits, &err));
    for (size_t probe = 0; probe < PROBES; probe++) {
        /* newest file first, then from the end: the order of adding, reversed */
        for (size_t i = BUF_COUNT(&model->known, Known); i-- > 0;) {
            const Known *known = &BUF_AT(&model->known, Known, i);

            if (!hash128_eq(known->key, keys[probe]))
                continue;
            assert_true(at < BUF_COUNT(&hits, IndexHit));
            expect_hit(index, BUF_AT(&hits, IndexHit, at++), probe, known);
        }
    }
    assert_int_equal(at, BUF_COUNT(&hits, IndexHit));
    buf_done(&hits);
}

static Index *
open_index(void)
{
    Error err = {0};
    Index *index = NULL;

    OK(index_open(folder, TABLE, &index, &err));
    return index;
}

static void
save(Index *index)
{
    Error err = {0};

    OK(index_save(index, &err));
}

static void
check_names(const Index *index, const Model *model)
{
    for (size_t i = 0; i < BUF_COUNT(&model->names, unsigned); i++)
        assert_true(index_has_file(index, name_of(BUF_AT(&model->names, unsigned, i))));
}

/* --- Tests ----------------------------------------------------------------------------------- */

static void
it_agrees_with_the_model(void **state)
{
    (void) state;
    for (uint64_t round = 0; round < 4; round++) {
        uint64_t range = round % 2 == 0 ? 1000000 : 300;
        Model model = {0};
        Model saved = {0};
        Index *index = open_index();

        seed = 1000 + round;
        for (unsigned step = 0; step < 120; step++) {
            uint64_t dice = noise() % 20;

            if (dice < 11) {
                add_file(index, &model, (unsigned) (noise() % 100), noise() % 300, range);
            } else if (dice == 11) {
                add_file(index, &model, 1000 + step, 70000, range * 100);
            } else if (dice < 14 && BUF_COUNT(&model.names, unsigned) > 0) {
                unsigned name =
                    BUF_AT(&model.names, unsigned, noise() % BUF_COUNT(&model.names, unsigned));

                index_remove_file(index, name_of(name));
                assert_false(index_has_file(index, name_of(name)));
                model_forget(&model, name);
            } else if (dice < 18) {
                save(index);
                buf_reset(&saved.known);
                buf_reset(&saved.names);
                buf_str(&saved.known, buf_view(&model.known));
                buf_str(&saved.names, buf_view(&model.names));
            } else if (dice == 18) { /* what was not saved is gone */
                index_close(index);
                index = open_index();
                buf_reset(&model.known);
                buf_reset(&model.names);
                buf_str(&model.known, buf_view(&saved.known));
                buf_str(&model.names, buf_view(&saved.names));
                check_names(index, &model);
            }
            check(index, &model, range);
        }
        index_close(index);
        model_done(&model);
        model_done(&saved);
        tear_down(NULL);
        set_up(NULL);
    }
}

static size_t
count_files(const char *kind)
{
    DIR *dir = opendir(folder);
    size_t count = 0;

    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) /* NOLINT */
        count += strncmp(entry->d_name, kind, strlen(kind)) == 0;
    closedir(dir);
    return count;
}

/* Keys in order: file f has the numbers f * rows ... */
static void
add_sequence(Index *index, unsigned name, uint64_t first, size_t rows)
{
    Error err = {0};
    IndexBuild *build = NULL;
    Hash128 keys[1000];

    OK(index_build_begin(index, name_of(name), &build, &err));
    for (size_t row = 0; row < rows; row += 1000) {
        size_t some = rows - row < 1000 ? rows - row : 1000;

        for (size_t i = 0; i < some; i++)
            keys[i] = key_of(first + row + i);
        OK(index_build_add(build, keys, some, &err));
    }
    OK(index_build_end(build, &err));
}

static void
expect_sequence(Index *index, unsigned name, uint64_t first, size_t rows, bool there)
{
    Error err = {0};
    Buf hits = {0};
    Buf keys = {0};

    for (size_t row = 0; row < rows; row += 17)
        BUF_PUSH(&keys, Hash128, key_of(first + row));
    OK(index_lookup(index, (const Hash128 *) (const void *) keys.ptr, BUF_COUNT(&keys, Hash128),
                    &hits, &err));
    assert_int_equal(BUF_COUNT(&hits, IndexHit), there ? BUF_COUNT(&keys, Hash128) : 0);
    for (size_t i = 0; i < BUF_COUNT(&hits, IndexHit); i++) {
        IndexHit hit = BUF_AT(&hits, IndexHit, i);

        assert_int_equal(hit.probe, i);
        assert_int_equal(hit.row, 17 * i);
        assert_true(str_eq(index_file_name(index, hit.file), name_of(name)));
    }
    buf_done(&hits);
    buf_done(&keys);
}

static void
wait_for_merges(Index *index, size_t runs_max)
{
    for (int i = 0; i < 1000 && index_stats(index).runs > runs_max; i++) {
        save(index);
        usleep(10000);
    }
    assert_true(index_stats(index).runs <= runs_max);
}

static void
runs_are_merged_behind_our_back(void **state)
{
    enum { FILES = 40, ROWS = 70000 };

    Index *index = open_index();

    (void) state;
    for (unsigned file = 0; file < FILES; file++) {
        add_sequence(index, file, (uint64_t) file * ROWS, ROWS);
        save(index);
        expect_sequence(index, file / 2, (uint64_t) (file / 2) * ROWS, ROWS, true);
    }
    wait_for_merges(index, 8);
    for (unsigned file = 0; file < FILES; file++)
        expect_sequence(index, file, (uint64_t) file * ROWS, ROWS, true);

    /* dead entries go */
    for (unsigned file = 0; file < FILES; file++)
        if (file % 4 != 0)
            index_remove_file(index, name_of(file));
    for (int i = 0; i < 1000 && index_stats(index).entries > UINT64_C(2) * FILES / 4 * ROWS; i++) {
        save(index);
        usleep(10000);
    }
    assert_true(index_stats(index).entries <= UINT64_C(2) * FILES / 4 * ROWS);
    for (unsigned file = 0; file < FILES; file++)
        expect_sequence(index, file, (uint64_t) file * ROWS, ROWS, file % 4 == 0);
    save(index);
    index_close(index); /* perhaps while a merge goes on */
    index = open_index();
    for (unsigned file = 0; file < FILES; file++)
        expect_sequence(index, file, (uint64_t) file * ROWS, ROWS, file % 4 == 0);
    assert_int_equal(count_files("run-"), index_stats(index).runs);
    assert_int_equal(count_files("new-"), 0);
    assert_int_equal(count_files("piece-"), 0);
    assert_int_equal(count_files("journal-"), 1);
    index_close(index);
}

static void
large_files_are_built_in_pieces(void **state)
{
    enum { ROWS = 1500000 };

    Error err = {0};
    Index *index = open_index();
    IndexBuild *build = NULL;
    Hash128 key = key_of(1);

    (void) state;
    add_sequence(index, 1, 0, ROWS);
    assert_int_equal(index_stats(index).runs, 1);
    assert_int_equal(index_stats(index).entries, ROWS);
    expect_sequence(index, 1, 0, ROWS, true);
    expect_sequence(index, 1, ROWS, 100000, false);

    OK(index_build_begin(index, name_of(2), &build, &err)); /* begun and left */
    OK(index_build_add(build, &key, 1, &err));
    index_build_abort(build);
    assert_false(index_has_file(index, name_of(2)));
    index_close(index);

    index = open_index(); /* never saved */
    assert_false(index_has_file(index, name_of(1)));
    assert_int_equal(count_files("run-"), 0);
    index_close(index);
}

static void
thousands_of_twins_are_all_found(void **state)
{
    enum { TWINS = 100000 };

    Error err = {0};
    Index *index = open_index();
    Buf keys = {0};
    Buf hits = {0};
    Hash128 probes[] = {key_of(7), key_of(8), key_of(7), key_of(9)};

    (void) state;
    for (int i = 0; i < TWINS; i++)
        BUF_PUSH(&keys, Hash128, key_of(i % 1000 == 999 ? 8 : 7));
    OK(index_add_file(index, name_of(1), (const Hash128 *) (const void *) keys.ptr, TWINS, &err));
    OK(index_add_file(index, name_of(2), (const Hash128 *) (const void *) keys.ptr, 2000, &err));
    OK(index_lookup(index, probes, 4, &hits, &err));
    assert_int_equal(BUF_COUNT(&hits, IndexHit), 2 * (TWINS + 2000) - (TWINS + 2000) / 1000);

    int newest = BUF_AT(&hits, IndexHit, 0).file;

    assert_true(str_eq(index_file_name(index, newest), name_of(2)));
    for (size_t i = 1; i < BUF_COUNT(&hits, IndexHit); i++) {
        IndexHit before = BUF_AT(&hits, IndexHit, i - 1);
        IndexHit hit = BUF_AT(&hits, IndexHit, i);

        assert_true(
            before.probe < hit.probe ||
            (before.probe == hit.probe &&
             (before.file > hit.file || (before.file == hit.file && before.row > hit.row))));
    }
    buf_done(&keys);
    buf_done(&hits);
    index_close(index);
}

/* Keys that are anything but uniform: all arithmetic on them guesses wrong. */
static void
crooked_keys_are_found_too(void **state)
{
    enum { KEYS = 200000 };

    Error err = {0};
    Index *index = open_index();
    Buf keys = {0};
    Buf hits = {0};

    (void) state;
    for (uint64_t i = 0; i < KEYS; i++)
        BUF_PUSH(&keys, Hash128,
                 ((Hash128){i % 3 == 0   ? i
                            : i % 3 == 1 ? UINT64_MAX - i
                                         : UINT64_C(1) << (i % 64),
                            i}));
    OK(index_add_file(index, name_of(1), (const Hash128 *) (const void *) keys.ptr, KEYS, &err));
    for (uint64_t i = 0; i < KEYS; i += 1001) {
        buf_reset(&hits);
        OK(index_lookup(index, &BUF_AT(&keys, Hash128, i), 1, &hits, &err));
        assert_int_equal(BUF_COUNT(&hits, IndexHit), 1);
        assert_int_equal(BUF_AT(&hits, IndexHit, 0).row, i);
    }
    buf_reset(&hits);
    OK(index_lookup(index, (const Hash128 *) (const void *) keys.ptr, KEYS, &hits, &err));
    assert_int_equal(BUF_COUNT(&hits, IndexHit), KEYS);
    buf_done(&keys);
    buf_done(&hits);
    index_close(index);
}

static void
another_table_starts_empty(void **state)
{
    Error err = {0};
    Index *index = open_index();

    (void) state;
    add_sequence(index, 1, 0, 100);
    add_sequence(index, 2, 100, 70000);
    save(index);
    index_close(index);
    OK(index_open(folder, "00000000-0000-0000-0000-000000000000", &index, &err));
    assert_false(index_has_file(index, name_of(1)) || index_has_file(index, name_of(2)));
    assert_int_equal(count_files("run-"), 0);
    index_close(index);
}

static size_t
count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) /* NOLINT */
        count++;
    closedir(dir);
    return count;
}

/* A pipeline of thousands of tables has an index for each. */
static void
a_small_one_keeps_one_descriptor(void **state)
{
    size_t before = count_descriptors();
    Index *index = open_index();

    (void) state;
    add_sequence(index, 1, 0, 100);
    save(index);
    assert_int_equal(count_descriptors(), before + 1);
    index_close(index);
    index = open_index();
    assert_int_equal(count_descriptors(), before + 1);
    index_close(index);
    assert_int_equal(count_descriptors(), before);
}

static void
when_no_file_can_be_opened_the_error_says_what_to_do(void **state)
{
    struct rlimit limit;
    struct rlimit none = {0};
    Error err = {0};
    Index *index = NULL;

    (void) state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none.rlim_max = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    FAILS(index_open(folder, TABLE, &index, &err), ERR_TRANSIENT);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_non_null(strstr(err.msg, "\nhint: "));
    FAILS(index_open("/proc/no/such", TABLE, &index, &err), ERR_INPUT);
}

/* --- Damage ---------------------------------------------------------------------------------- */

static void
path_like(const char *kind, char *out, size_t size)
{
    DIR *dir = opendir(folder);

    assert_non_null(dir);
    out[0] = '\0';
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) /* NOLINT */
        if (strncmp(entry->d_name, kind, strlen(kind)) == 0)
            snprintf(out, size, "%s/%s", folder, entry->d_name);
    closedir(dir);
    assert_true(out[0] != '\0');
}

static void
flip(const char *path, off_t at)
{
    FILE *file = fopen(path, "r+e");
    int byte;

    assert_non_null(file);
    fseeko(file, at, SEEK_SET);
    byte = fgetc(file);
    fseeko(file, at, SEEK_SET);
    fputc(byte ^ 4, file);
    fclose(file);
}

static off_t
size_of(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_size;
}

/* Whatever is wrong: no crash, no wrong hit, and files that are said to be there are all there. */
static void
expect_no_lies(const char *what, off_t at)
{
    enum { ROWS = 70000, SMALL = 50 };

    Error err = {0};
    Index *index = open_index();
    Buf hits = {0};
    Buf keys = {0};
    bool conflict = false;

    (void) what;
    (void) at;
    for (uint64_t number = 0; number < UINT64_C(2) * ROWS + SMALL; number++)
        BUF_PUSH(&keys, Hash128, key_of(number));

    const Hash128 *probes = (const Hash128 *) (const void *) keys.ptr;

    for (int tries = 0; tries < 3; tries++) {
        buf_reset(&hits);
        conflict = !index_lookup(index, probes, BUF_COUNT(&keys, Hash128), &hits, &err);
        if (!conflict)
            break;
        assert_int_equal(err.kind, ERR_CONFLICT);
        assert_int_equal(BUF_COUNT(&hits, IndexHit), 0);
    }
    assert_false(conflict);

    size_t wanted = 0;

    wanted += index_has_file(index, name_of(1)) ? ROWS : 0;
    wanted += index_has_file(index, name_of(2)) ? ROWS : 0;
    wanted += index_has_file(index, name_of(3)) ? SMALL : 0;
    assert_int_equal(BUF_COUNT(&hits, IndexHit), wanted);
    for (size_t i = 0; i < wanted; i++) {
        IndexHit hit = BUF_AT(&hits, IndexHit, i);
        unsigned name = hit.probe < ROWS ? 1 : hit.probe < UINT64_C(2) * ROWS ? 2 : 3;

        assert_int_equal(hit.row, hit.probe % ROWS);
        assert_true(str_eq(index_file_name(index, hit.file), name_of(name)));
    }

    /* and it works on */
    if (!index_has_file(index, name_of(1)))
        add_sequence(index, 1, 0, ROWS);
    if (!index_has_file(index, name_of(2)))
        add_sequence(index, 2, ROWS, ROWS);
    if (!index_has_file(index, name_of(3)))
        add_sequence(index, 3, UINT64_C(2) * ROWS, SMALL);
    save(index);
    index_close(index);
    index = open_index();
    expect_sequence(index, 1, 0, ROWS, true);
    expect_sequence(index, 2, ROWS, ROWS, true);
    expect_sequence(index, 3, UINT64_C(2) * ROWS, SMALL, true);
    index_close(index);
    buf_done(&hits);
    buf_done(&keys);
}

static void
damage_is_noticed(void **state)
{
    static const char *const kinds[] = {"run-", "journal-", "index.json"};
    Index *index = open_index();
    char path[400];

    (void) state;
    add_sequence(index, 1, 0, 70000);
    add_sequence(index, 2, 70000, 70000);
    add_sequence(index, 3, 140000, 50);
    save(index);
    index_close(index);
    seed = 77;
    for (int i = 0; i < 36; i++) {
        const char *kind = kinds[i % 3];

        path_like(kind, path, sizeof path);

        off_t at = (off_t) (noise() % (uint64_t) size_of(path));

        if (i % 4 == 3)
            assert_int_equal(truncate(path, at), 0);
        else
            flip(path, i % 4 == 2 ? at % 1024 : at);
        expect_no_lies(kind, at);
    }
    path_like("run-", path, sizeof path);
    unlink(path);
    expect_no_lies("no run", 0);
    path_like("journal-", path, sizeof path);
    unlink(path);
    expect_no_lies("no journal", 0);
    path_like("index.json", path, sizeof path);
    unlink(path);
    expect_no_lies("no index.json", 0);
}

/* A run of the same name, whole and valid, from another folder. */
static void
foreign_runs_are_noticed(void **state)
{
    char mine[400];
    char theirs[400];
    char command[1000];
    char first[64];

    (void) state;
    for (int i = 0; i < 2; i++) {
        Index *index = open_index();

        add_sequence(index, 1, 0, 70000);
        save(index);
        index_close(index);
        path_like("run-", mine, sizeof mine);
        if (i == 1)
            break;
        memcpy(first, folder, sizeof first);
        snprintf(theirs, sizeof theirs, "%s", mine);
        set_up(NULL);
    }
    snprintf(command, sizeof command, "cp '%s' '%s' && rm -r '%s'", theirs, mine, first);
    assert_int_equal(system(command), 0); /* NOLINT */

    Index *index = open_index();

    assert_false(index_has_file(index, name_of(1)));
    index_close(index);
}

/* A kill at any moment of saving leaves a state that was saved. */
static void
saving_can_be_killed(void **state)
{
    (void) state;
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();

        if (child == 0) {
            Error err = {0};
            Index *index = NULL;

            if (!index_open(folder, TABLE, &index, &err))
                _exit(1);
            for (unsigned file = 0;; file++) {
                Hash128 keys[64];

                for (unsigned i = 0; i < 64; i++)
                    keys[i] = key_of(UINT64_C(64) * (file % 500) + i);
                if (!index_add_file(index, name_of(file % 500), keys, 64, &err) ||
                    !index_save(index, &err))
                    _exit(2);
            }
        }
        usleep(1000 + (unsigned) round * 700);
        kill(child, SIGKILL);

        int status;

        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));

        Index *index = open_index();

        for (unsigned file = 0; file < 500; file++)
            if (index_has_file(index, name_of(file)))
                expect_sequence(index, file, UINT64_C(64) * file, 64, true);
        index_close(index);
    }
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(it_agrees_with_the_model),
        TEST(runs_are_merged_behind_our_back),
        TEST(large_files_are_built_in_pieces),
        TEST(thousands_of_twins_are_all_found),
        TEST(crooked_keys_are_found_too),
        TEST(another_table_starts_empty),
        TEST(a_small_one_keeps_one_descriptor),
        TEST(when_no_file_can_be_opened_the_error_says_what_to_do),
        TEST(damage_is_noticed),
        TEST(foreign_runs_are_noticed),
        TEST(saving_can_be_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
