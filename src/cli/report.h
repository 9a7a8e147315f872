/* report.h - what `check` finds: items with a verdict, as lines or as JSON. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "base/arena.h"
#include "base/buf.h"

typedef enum Verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL } Verdict;

typedef struct ReportItem {
    const char *item; /* "wal_level", "table public.orders" */
    Verdict verdict;
    const char *message;
    const char *hint; /* NULL */
} ReportItem;

typedef struct Report {
    Arena *arena;
    Buf items; /* ReportItem */
    int failed;
} Report;

void report_done(Report *report);
#define AUTO_REPORT __attribute__((cleanup(report_done)))

void report_add(Report *report, const char *item, Verdict verdict, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* To the item added last; NULL is fine. */
void report_hint(Report *report, const char *hint);
/* A message whose "hint:" line, if any, becomes the hint. */
void report_message(Report *report, const char *item, Verdict verdict, const char *message);

/* "ok   item: message" and "     hint: ..." */
void report_print(const Report *report, Buf *out);
/* [{"item", "result": "ok|warn|FAIL", "message", "hint"}] */
void report_print_json(const Report *report, Buf *out);

#endif
