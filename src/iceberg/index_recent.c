#include "iceberg/index_recent.h"

#include <assert.h>

void
recent_done(Recent *recent)
{
    buf_done(&recent->entries);
    buf_done(&recent->segments);
    buf_done(&recent->scratch);
}

void
recent_reset(Recent *recent)
{
    buf_reset(&recent->entries);
    buf_reset(&recent->segments);
}

static size_t
segment_count(const Recent *recent)
{
    return BUF_COUNT(&recent->segments, size_t);
}

static size_t
segment_begin(const Recent *recent, size_t segment)
{
    return segment == segment_count(recent) ? recent_count(recent)
                                            : BUF_AT(&recent->segments, size_t, segment);
}

static size_t
segment_length(const Recent *recent, size_t segment)
{
    return segment_begin(recent, segment + 1) - segment_begin(recent, segment);
}

/* Merge the last two segments, from the back, the last one having been put aside. */
static void
merge_last(Recent *recent)
{
    size_t last = segment_count(recent) - 1;
    size_t begin = segment_begin(recent, last - 1);
    size_t left = segment_length(recent, last - 1);
    size_t right = segment_length(recent, last);
    Entry *to = &BUF_AT(&recent->entries, Entry, begin);

    buf_reset(&recent->scratch);
    buf_append(&recent->scratch, to + left, right * sizeof(Entry));
    while (right > 0) {
        const Entry *aside = &BUF_AT(&recent->scratch, Entry, right - 1);

        if (left > 0 && entry_cmp(aside, &to[left - 1]) < 0) {
            to[left + right - 1] = to[left - 1];
            left--;
        } else {
            to[left + right - 1] = *aside;
            right--;
        }
    }
    recent->segments.len -= sizeof(size_t);
}

void
recent_add(Recent *recent, Entry *entries, size_t count)
{
    if (count == 0)
        return;
    entry_sort(entries, count);
    BUF_PUSH(&recent->segments, size_t, recent_count(recent));
    buf_append(&recent->entries, entries, count * sizeof *entries);
    for (;;) {
        size_t segments = segment_count(recent);

        if (segments < 2 ||
            segment_length(recent, segments - 2) >= 2 * segment_length(recent, segments - 1))
            break;
        merge_last(recent);
    }
}

void
recent_lookup(const Recent *recent, const Probe *probes, size_t count, Buf *matches)
{
    for (size_t i = 0; i < segment_count(recent); i++)
        entry_lookup(&BUF_AT(&recent->entries, Entry, segment_begin(recent, i)),
                     segment_length(recent, i), probes, count, matches);
}

bool
recent_write(Recent *recent, const LiveFiles *files, RunWriter *writer, Error *err)
{
    while (segment_count(recent) > 1)
        merge_last(recent);
    for (size_t i = 0; i < recent_count(recent); i++) {
        const Entry *entry = &BUF_AT(&recent->entries, Entry, i);

        if (live_file(files, entry->file))
            TRY(run_add(writer, entry, err));
    }
    return true;
}
