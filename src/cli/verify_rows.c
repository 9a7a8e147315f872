/* verify_rows.c - rows into sums and notes, and what these prove (see verify.c). */
#include <assert.h>
#include <stdlib.h>

#include "cli/verify.h"

/* Notes of one side and round: a note takes 56 bytes and the text of its key. */
enum { NOTES_WANTED_MAX = 150000, NOTES_MAX = 600000, BUCKET_BITS_MIN = 8, BUCKET_BITS_MAX = 20 };

static const uint64_t ROW_SEED = 0x766572696679; /* another one than that of keys */

/* --- one row --------------------------------------------------------------------------------- */

static size_t
bucket_of(const VerifyTable *table, Hash128 key)
{
    return (size_t) (key.high >> (64 - table->bucket_bits));
}

static bool
get_bit(const uint8_t *bits, size_t i)
{
    return (bits[i / 8] >> i % 8 & 1) != 0;
}

static void
set_bit(uint8_t *bits, size_t i)
{
    bits[i / 8] = (uint8_t) (bits[i / 8] | 1u << i % 8);
}

static int
compare_hashes(const void *a, const void *b)
{
    return hash128_cmp(*(const Hash128 *) a, *(const Hash128 *) b);
}

static bool
is_wanted(const VerifyTable *table, Hash128 key)
{
    size_t count = BUF_COUNT(&table->pending, Hash128);

    if (!get_bit(table->wanted, bucket_of(table, key)))
        return false;
    return !table->narrowed || (count > 0 && bsearch(&key, table->pending.ptr, count, sizeof key,
                                                     compare_hashes) != NULL);
}

static Hash128
row_hash(RowTaker *taker, const Column *columns, size_t row)
{
    int count = taker->table->source->schema->column_count;

    buf_reset(&taker->scratch);
    for (int i = 0; i < count; i++)
        column_encode(&columns[i], row, &taker->scratch);
    return hash128(taker->scratch.ptr, taker->scratch.len, ROW_SEED);
}

static void
add_to_sum(VerifyTable *table, Side side, Hash128 key, Hash128 row)
{
    Bucket *bucket = &table->buckets[side][bucket_of(table, key)];

    bucket->rows++;
    bucket->low += row.low;
    bucket->high += row.high + (bucket->low < row.low);
}

static bool
add_note(RowTaker *taker, const Column *columns, size_t row, const RowNote *note, Error *err)
{
    Notes *notes = &taker->table->now[taker->side];
    RowNote kept = *note;

    if (BUF_COUNT(&notes->rows, RowNote) >= NOTES_MAX)
        return FAIL(err, ERR_INPUT, "more than %d rows that are alike differ", NOTES_MAX);
    kept.text.offset = notes->texts.len;
    verify_put_key(&notes->texts, taker->table->source->schema, columns, row);
    kept.text.length = notes->texts.len - kept.text.offset;
    BUF_PUSH(&notes->rows, RowNote, kept);
    return true;
}

bool
verify_take_row(RowTaker *taker, const Column *columns, size_t row, const Hash128 *key,
                uint64_t version, Error *err)
{
    VerifyTable *table = taker->table;
    const TableSchema *schema = table->source->schema;
    RowNote note = {.version = version};
    bool keyed = schema->key_mode == KEY_COLUMNS;

    taker->rows++;
    if (keyed)
        note.key = key != NULL ? *key : key_hash(schema, columns, row, &taker->scratch);
    if (keyed && taker->notes && !is_wanted(table, note.key))
        return true;
    note.row = row_hash(taker, columns, row);
    if (!keyed)
        note.key = note.row;
    if (!taker->notes) {
        add_to_sum(table, taker->side, note.key, note.row);
        return true;
    }
    return !is_wanted(table, note.key) || add_note(taker, columns, row, &note, err);
}

void
verify_taker_done(RowTaker *taker)
{
    buf_done(&taker->scratch);
}

/* --- sums ------------------------------------------------------------------------------------ */

static size_t
bucket_count(const VerifyTable *table)
{
    return (size_t) 1 << table->bucket_bits;
}

/* About two rows a bucket, while 48 MB last for both sides. */
void
verify_begin_sums(VerifyTable *table)
{
    table->bucket_bits = BUCKET_BITS_MIN;
    while (table->bucket_bits < BUCKET_BITS_MAX &&
           (int64_t) bucket_count(table) < table->plan.rows / 2)
        table->bucket_bits++;
    for (int side = 0; side < SIDE_COUNT; side++)
        table->buckets[side] = xcalloc(bucket_count(table), sizeof(Bucket));
    table->unequal = xcalloc(bucket_count(table) / 8, 1);
}

static bool
sums_are_equal(const Bucket *a, const Bucket *b)
{
    return a->rows == b->rows && a->low == b->low && a->high == b->high;
}

void
verify_end_sums(VerifyTable *table)
{
    for (size_t i = 0; i < bucket_count(table); i++)
        if (!sums_are_equal(&table->buckets[SIDE_SOURCE][i], &table->buckets[SIDE_LAKE][i]))
            set_bit(table->unequal, i);
    for (int side = 0; side < SIDE_COUNT; side++) {
        free(table->buckets[side]);
        table->buckets[side] = NULL;
    }
}

bool
verify_next_buckets(VerifyTable *table)
{
    /* rows are spread evenly, but for twins of a table without key */
    int64_t rows = table->rows[0] > table->rows[1] ? table->rows[0] : table->rows[1];
    size_t rows_each = (size_t) rows / bucket_count(table) + 1;
    size_t room = NOTES_WANTED_MAX / rows_each + 1;
    bool any = false;

    free(table->wanted);
    table->wanted = xcalloc(bucket_count(table) / 8, 1);
    for (; table->unequal_from < bucket_count(table) && room > 0; table->unequal_from++)
        if (get_bit(table->unequal, table->unequal_from)) {
            set_bit(table->wanted, table->unequal_from);
            room--;
            any = true;
        }
    table->narrowed = false;
    table->have_before = false;
    buf_reset(&table->pending);
    for (int side = 0; side < SIDE_COUNT; side++) {
        buf_reset(&table->now[side].rows);
        buf_reset(&table->now[side].texts);
    }
    table->open = any;
    return any;
}

/* --- notes ----------------------------------------------------------------------------------- */

void
verify_begin_notes(VerifyTable *table)
{
    for (int side = 0; side < SIDE_COUNT; side++) {
        Notes old = table->before[side];

        table->before[side] = table->now[side];
        buf_reset(&old.rows);
        buf_reset(&old.texts);
        table->now[side] = old;
    }
}

static int
compare_notes(const void *a, const void *b)
{
    const RowNote *x = a;
    const RowNote *y = b;
    int order = hash128_cmp(x->key, y->key);

    if (order == 0)
        order = hash128_cmp(x->row, y->row);
    if (order == 0)
        order = x->version < y->version ? -1 : x->version > y->version;
    return order;
}

static void
sort_notes(Notes *notes)
{
    if (notes->rows.len > 0)
        qsort(notes->rows.ptr, BUF_COUNT(&notes->rows, RowNote), sizeof(RowNote), compare_notes);
}

/* The notes of one key. */
typedef struct Group {
    const RowNote *notes;
    size_t count;
} Group;

/* The group of `key`, *at being where it or what follows it begins; moves *at behind it. */
static Group
take_group(const Notes *notes, size_t *at, Hash128 key)
{
    size_t count = BUF_COUNT(&notes->rows, RowNote);
    const RowNote *rows = &BUF_AT(&notes->rows, RowNote, 0);

    while (*at < count && hash128_cmp(rows[*at].key, key) < 0)
        (*at)++;

    Group group = {.notes = rows + *at};

    while (*at < count && hash128_eq(rows[*at].key, key)) {
        group.count++;
        (*at)++;
    }
    return group;
}

static bool
same_rows(Group a, Group b)
{
    if (a.count != b.count)
        return false;
    for (size_t i = 0; i < a.count; i++)
        if (!hash128_eq(a.notes[i].row, b.notes[i].row))
            return false;
    return true;
}

static size_t
count_row(Group group, Hash128 row)
{
    size_t count = 0;

    for (size_t i = 0; i < group.count; i++)
        count += hash128_eq(group.notes[i].row, row);
    return count;
}

/* Whether rows that stood on one side at both ends of a time exceed those that the other side had
 * within: then the sides differed at that moment. Groups are sorted by row and version. */
static bool
lasting_rows_exceed(Group first, Group last, Group within)
{
    size_t at = 0;

    for (size_t i = 0; i < first.count;) {
        Hash128 row = first.notes[i].row;
        size_t lasting = 0;

        for (; i < first.count && hash128_eq(first.notes[i].row, row); i++) {
            while (at < last.count && compare_notes(&last.notes[at], &first.notes[i]) < 0)
                at++;
            lasting += at < last.count && hash128_eq(last.notes[at].row, row) &&
                       last.notes[at].version == first.notes[i].version;
        }
        if (lasting > 0 && lasting > count_row(within, row))
            return true;
    }
    return false;
}

typedef struct Settling {
    Verify *verify;
    VerifyTable *table;
    Buf pending;
    size_t at_before[SIDE_COUNT];
} Settling;

static void
add_difference(Settling *settling, Group source, Group lake)
{
    VerifyTable *table = settling->table;
    const RowNote *note = source.count > 0 ? source.notes : lake.notes;
    const Notes *notes = &table->now[source.count > 0 ? SIDE_SOURCE : SIDE_LAKE];

    table->different++;
    if ((int64_t) BUF_COUNT(&table->shown, Difference) >= settling->verify->limit)
        return;

    Str key = {.ptr = notes->texts.ptr + note->text.offset, .len = note->text.length};
    Difference difference = {.in_source = source.count > 0,
                             .in_lake = lake.count > 0,
                             .key = arena_str(settling->verify->arena, key).ptr};

    BUF_PUSH(&table->shown, Difference, difference);
}

static void
settle_key(Settling *settling, Hash128 key, Group source, Group lake)
{
    VerifyTable *table = settling->table;
    Group before[SIDE_COUNT];

    for (int side = 0; side < SIDE_COUNT; side++)
        before[side] = take_group(&table->before[side], &settling->at_before[side], key);
    if (same_rows(source, lake))
        return;
    if (table->have_before && settling->verify->clear &&
        (lasting_rows_exceed(before[SIDE_SOURCE], source, before[SIDE_LAKE]) ||
         lasting_rows_exceed(before[SIDE_LAKE], lake, source)))
        add_difference(settling, source, lake);
    else
        BUF_PUSH(&settling->pending, Hash128, key);
}

void
verify_settle(Verify *verify, VerifyTable *table)
{
    Settling settling = {.verify = verify, .table = table};
    const Notes *source = &table->now[SIDE_SOURCE];
    const Notes *lake = &table->now[SIDE_LAKE];
    size_t s = 0;
    size_t l = 0;

    sort_notes(&table->now[SIDE_SOURCE]);
    sort_notes(&table->now[SIDE_LAKE]);
    while (s < BUF_COUNT(&source->rows, RowNote) || l < BUF_COUNT(&lake->rows, RowNote)) {
        bool from_source = l >= BUF_COUNT(&lake->rows, RowNote) ||
                           (s < BUF_COUNT(&source->rows, RowNote) &&
                            hash128_cmp(BUF_AT(&source->rows, RowNote, s).key,
                                        BUF_AT(&lake->rows, RowNote, l).key) <= 0);
        Hash128 key = from_source ? BUF_AT(&source->rows, RowNote, s).key
                                  : BUF_AT(&lake->rows, RowNote, l).key;
        Group in_source = take_group(source, &s, key);
        Group in_lake = take_group(lake, &l, key);

        settle_key(&settling, key, in_source, in_lake);
    }
    buf_done(&table->pending);
    table->pending = settling.pending;
    table->narrowed = true;
    table->have_before = true;
    table->open = table->pending.len > 0;
}

void
verify_table_done(VerifyTable *table)
{
    for (int side = 0; side < SIDE_COUNT; side++) {
        free(table->buckets[side]);
        buf_done(&table->before[side].rows);
        buf_done(&table->before[side].texts);
        buf_done(&table->now[side].rows);
        buf_done(&table->now[side].texts);
    }
    free(table->unequal);
    free(table->unrecorded);
    free(table->wanted);
    buf_done(&table->pending);
    buf_done(&table->shown);
    verify_drop_plan(table);
    plan_cache_done(&table->cache);
}
