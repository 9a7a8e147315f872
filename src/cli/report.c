#include "cli/report.h"

#include <assert.h>
#include <stdarg.h>

#include "base/json_writer.h"

static const char *const verdict_names[] = {
    [VERDICT_OK] = "ok", [VERDICT_WARN] = "warn", [VERDICT_FAIL] = "FAIL"};

void
report_done(Report *report)
{
    buf_done(&report->items);
}

/* Several lines in one (libpq's messages) would look like several items. */
static const char *
on_one_line(Arena *arena, const char *text, size_t length)
{
    char *line = arena_printf(arena, "%.*s", (int) length, text);
    char *to = line;

    for (const char *from = line; *from != '\0'; from++) {
        bool blank = *from == '\n' || *from == '\t' || *from == '\r' || *from == ' ';

        if (!blank)
            *to++ = *from;
        else if (to > line && to[-1] != ' ')
            *to++ = ' ';
    }
    while (to > line && to[-1] == ' ')
        to--;
    *to = '\0';
    return line;
}

void
report_message(Report *report, const char *item, Verdict verdict, const char *message)
{
    static const char mark[] = "\nhint: ";
    const char *hint = strstr(message, mark);
    size_t length = hint == NULL ? strlen(message) : (size_t) (hint - message);

    report->failed += verdict == VERDICT_FAIL;
    BUF_PUSH(&report->items, ReportItem,
             ((ReportItem){.item = arena_strdup(report->arena, item),
                           .verdict = verdict,
                           .message = on_one_line(report->arena, message, length)}));
    if (hint != NULL)
        report_hint(report, hint + strlen(mark));
}

void
report_add(Report *report, const char *item, Verdict verdict, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);

    const char *message = arena_vprintf(report->arena, fmt, args);

    va_end(args);
    report_message(report, item, verdict, message);
}

void
report_hint(Report *report, const char *hint)
{
    size_t count = BUF_COUNT(&report->items, ReportItem);

    assert(count > 0);
    if (hint != NULL)
        BUF_AT(&report->items, ReportItem, count - 1).hint =
            on_one_line(report->arena, hint, strlen(hint));
}

void
report_print(const Report *report, Buf *out)
{
    for (size_t i = 0; i < BUF_COUNT(&report->items, ReportItem); i++) {
        const ReportItem *item = &BUF_AT(&report->items, ReportItem, i);

        buf_printf(out, "%-4s %s: %s\n", verdict_names[item->verdict], item->item, item->message);
        if (item->hint != NULL)
            buf_printf(out, "     hint: %s\n", item->hint);
    }
}

void
report_print_json(const Report *report, Buf *out)
{
    JsonWriter json;

    jw_begin(&json, out);
    jw_array(&json);
    for (size_t i = 0; i < BUF_COUNT(&report->items, ReportItem); i++) {
        const ReportItem *item = &BUF_AT(&report->items, ReportItem, i);

        jw_object(&json);
        jw_key(&json, "item");
        jw_cstr(&json, item->item);
        jw_key(&json, "result");
        jw_cstr(&json, verdict_names[item->verdict]);
        jw_key(&json, "message");
        jw_cstr(&json, item->message);
        jw_key(&json, "hint");
        jw_str(&json, str_of(item->hint));
        jw_end(&json);
    }
    jw_end(&json);
    buf_byte(out, '\n');
}
