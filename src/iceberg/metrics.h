/* metrics.h - column metrics of a data file, gathered from the Columns that are written to it:
 * value, null and NaN counts, lower and upper bounds (strings and binaries truncated to 16, upper
 * ones rounded up; spec "Appendix D: Single-value serialization"). Leaves inside lists and maps
 * get counts and no bounds, as Java does. At most 100 leaf columns get metrics. Pure. */
#ifndef ICEBERG_METRICS_H
#define ICEBERG_METRICS_H

#include "iceberg/manifest.h"
#include "model/column.h"

typedef struct FileMetrics FileMetrics;

/* `fields` must outlive it. */
FileMetrics *file_metrics_new(const Field *fields, int field_count);
void file_metrics_free(FileMetrics *metrics); /* NULL is fine */
/* Do not truncate the bounds of this string column: file_path of a position delete file, whose
 * equal bounds tell readers that it concerns one data file. */
void file_metrics_keep_full(FileMetrics *metrics, int field_id);
/* Rows without those that are dead (NULL: all live). */
void file_metrics_add(FileMetrics *metrics, const Column *columns, size_t rows,
                      const uint8_t *dead);
/* Fill value_counts, null_counts, nan_counts, lower_bounds, upper_bounds of *file. */
void file_metrics_finish(const FileMetrics *metrics, Arena *arena, DataFile *file);

#endif
