/* Reading. One query a call, whose columns are named c0, c1 ... and found by field id:
 *
 *     SELECT c0, c2, file_row_number
 *     FROM read_parquet([path], schema = MAP {1: {name: 'c0', type: 'BIGINT', ...}, ...})
 *     WHERE file_row_number IN (...) ORDER BY file_row_number
 *
 * A field of a plain type is asked for in the type that is wanted, DuckDB promotes. A nested one is
 * asked for in the type that the file has, because DuckDB matches the members of structs by name;
 * absorb.c then picks the parts by field id. A field that the file lacks is not asked for, unless
 * it has a default: then that is the column.
 *
 * file_row_number is used as the virtual column it is since DuckDB 1.3: the option of that name
 * refuses files that have a column called so. */
#include "duck/parquet.h"

#include <assert.h>
#include <inttypes.h>

#include "duck/absorb.h"
#include "duck/internal.h"
#include "duck/parquet_footer.h"

/* What is read and how; lives for one call. */
typedef struct Reading {
    const char *path;
    const Field *fields;
    int field_count;
    const char *const *defaults; /* SQL, one a field or NULL */
    Part *parts;                 /* one a field; child: index among the file's columns, or -1 */
    int *vectors;                /* where each field is in the result, or -1 */
    int file_columns;            /* how many fields the file has */
    int row_number_at;           /* where file_row_number is */
    Column *columns;             /* the caller's, one a field */
    Column types;       /* DuckDB's names of the file's types, when something nested is read */
    Column row_numbers; /* of the chunk absorbed last */
    int64_t rows;       /* given to the sink so far */
    bool sink_failed;
} Reading;

static const Type STRING_TYPE = {.kind = TYPE_STRING};
static const Type NUMBER_TYPE = {.kind = TYPE_INT64};

/* --- What is where in the file ------------------------------------------------------------- */

static int
find_child(const ParquetFooter *footer, int node, int field_id)
{
    for (int i = 0; i < footer->nodes[node].child_count; i++)
        if (footer->nodes[parquet_node_child(footer, node, i)].field_id == field_id)
            return i;
    return -1;
}

/* Parts of a type whose value is at this node. A list is a group of a repeated group of the
 * element, a map one of key and value (parquet-format, LogicalTypes.md, "Nested Types"). */
static void
plan_parts(Arena *arena, const ParquetFooter *footer, int node, Part *part)
{
    const Type *type = part->type;
    bool repeated = type->kind == TYPE_LIST || type->kind == TYPE_MAP;
    int parent = repeated ? parquet_node_child(footer, node, 0) : node;

    part->parts = ARENA_ARRAY(arena, Part, (size_t) type->field_count);
    for (int i = 0; i < type->field_count; i++) {
        Part *member = &part->parts[i];
        int child = repeated ? i : find_child(footer, node, type->fields[i].id);
        int at = parent < 0 || child < 0 ? -1 : parquet_node_child(footer, parent, child);

        *member = (Part){.type = type->fields[i].type, .child = at < 0 ? -1 : child};
        if (at >= 0)
            plan_parts(arena, footer, at, member);
    }
}

/* Parts of a value that is made as the type says. */
static void
plan_default(Arena *arena, Part *part)
{
    const Type *type = part->type;

    part->parts = ARENA_ARRAY(arena, Part, (size_t) type->field_count);
    for (int i = 0; i < type->field_count; i++) {
        part->parts[i] = (Part){.type = type->fields[i].type, .child = i};
        plan_default(arena, &part->parts[i]);
    }
}

static bool
has_default(const Reading *reading, int field)
{
    return reading->parts[field].child < 0 && reading->defaults != NULL &&
           reading->defaults[field] != NULL;
}

/* Says whether a nested field is among those that the file has. */
static bool
plan(Arena *arena, const ParquetFooter *footer, Reading *reading)
{
    bool any_nested = false;
    int vector = 0;

    reading->parts = ARENA_ARRAY(arena, Part, (size_t) reading->field_count);
    reading->vectors = ARENA_ARRAY(arena, int, (size_t) reading->field_count);
    for (int i = 0; i < reading->field_count; i++) {
        const Field *field = &reading->fields[i];
        int child = find_child(footer, 0, field->id);

        reading->parts[i] = (Part){.type = field->type, .child = child};
        if (child >= 0)
            reading->file_columns++;
        if (has_default(reading, i))
            plan_default(arena, &reading->parts[i]);
        reading->vectors[i] = child < 0 && !has_default(reading, i) ? -1 : vector++;
        if (child < 0 || !type_is_nested(field->type))
            continue;
        plan_parts(arena, footer, parquet_node_child(footer, 0, child), &reading->parts[i]);
        any_nested = true;
    }
    reading->row_number_at = vector;
    return any_nested;
}

/* All strings of a one-column query. */
static bool
read_strings(duckdb_connection connection, const char *sql, Column *strings, Error *err)
{
    AUTO_RESULT duckdb_result result = {0};

    TRY(duck_stream(connection, sql, &result, err));
    for (;;) {
        AUTO_CHUNK duckdb_data_chunk chunk = NULL;

        TRY(duck_fetch(&result, &chunk, err));
        if (chunk == NULL)
            return true;
        TRY(absorb_vector(strings, duckdb_data_chunk_get_vector(chunk, 0), NULL,
                          (Rows){.count = duckdb_data_chunk_get_size(chunk)}, err));
    }
}

static bool
describe(duckdb_connection connection, Reading *reading, Error *err)
{
    AUTO_BUF Buf sql = {0};

    buf_cstr(&sql, "SELECT column_type FROM (DESCRIBE SELECT * FROM read_parquet(");
    duck_quote_literal(&sql, str_of(reading->path));
    buf_cstr(&sql, "))");
    return read_strings(connection, buf_text(&sql), &reading->types, err);
}

/* --- The query ----------------------------------------------------------------------------- */

static bool
put_type(Buf *out, const Reading *reading, int field, Error *err)
{
    AUTO_BUF Buf name = {0};
    size_t column = (size_t) reading->parts[field].child;

    if (!type_is_nested(reading->fields[field].type)) {
        type_duckdb_name(reading->fields[field].type, &name);
    } else {
        if (column >= reading->types.rows)
            return FAIL(err, ERR_INPUT, "duckdb and we see different columns in it");
        buf_str(&name, column_bytes(&reading->types, column));
    }
    duck_quote_literal(out, buf_view(&name));
    return true;
}

static bool
put_select(Buf *out, const Reading *reading, Error *err)
{
    buf_cstr(out, "SELECT ");
    for (int i = 0; i < reading->field_count; i++)
        if (has_default(reading, i))
            buf_printf(out, "%s, ", reading->defaults[i]);
        else if (reading->vectors[i] >= 0)
            buf_printf(out, "c%d, ", i);
    buf_cstr(out, "file_row_number FROM read_parquet([");
    duck_quote_literal(out, str_of(reading->path));
    buf_byte(out, ']');
    if (reading->file_columns == 0) { /* a schema has to have a column */
        buf_byte(out, ')');
        return true;
    }
    buf_cstr(out, ", schema = MAP {");

    bool first = true;

    for (int i = 0; i < reading->field_count; i++) {
        if (reading->parts[i].child < 0)
            continue;
        buf_printf(out, "%s%d: {name: 'c%d', type: ", first ? "" : ", ", reading->fields[i].id, i);
        TRY(put_type(out, reading, i, err));
        buf_cstr(out, ", default_value: NULL}");
        first = false;
    }
    buf_cstr(out, "})");
    return true;
}

/* Append a chunk of the result to the columns. */
static bool
absorb_chunk(Reading *reading, duckdb_data_chunk chunk, Error *err)
{
    Column *columns = reading->columns;
    Rows rows = {.count = duckdb_data_chunk_get_size(chunk)};

    for (int i = 0; i < reading->field_count; i++) {
        int at = reading->vectors[i];

        if (at < 0) {
            absorb_nulls(&columns[i], rows.count);
            continue;
        }
        if (!absorb_vector(&columns[i], duckdb_data_chunk_get_vector(chunk, (idx_t) at),
                           &reading->parts[i], rows, err))
            return WRAP(err, "field %d", reading->fields[i].id);
    }
    column_reset(&reading->row_numbers);
    return absorb_vector(&reading->row_numbers,
                         duckdb_data_chunk_get_vector(chunk, (idx_t) reading->row_number_at), NULL,
                         rows, err);
}

static bool
begin_reading(duckdb_connection connection, Arena *arena, const ParquetFooter *footer,
              Reading *reading, Error *err)
{
    column_init(&reading->types, &STRING_TYPE);
    column_init(&reading->row_numbers, &NUMBER_TYPE);
    if (plan(arena, footer, reading))
        TRY(describe(connection, reading, err));
    return true;
}

static void
reading_done(Reading *reading)
{
    if (reading->types.type == NULL)
        return;
    column_done(&reading->types);
    column_done(&reading->row_numbers);
}

/* --- All rows ------------------------------------------------------------------------------ */

/* Row numbers of a chunk are `first`, first + 1, ... */
static bool
check_sequence(const Column *row_numbers, int64_t first, Error *err)
{
    for (size_t i = 0; i < row_numbers->rows; i++)
        if (BUF_AT(&row_numbers->values, int64_t, i) != first + (int64_t) i)
            return FAIL(err, ERR_BUG, "rows came out of order at row %" PRId64, first);
    return true;
}

static bool
scan_chunks(Reading *reading, duckdb_result *result, RowSink *sink, Error *err)
{
    for (;;) {
        AUTO_CHUNK duckdb_data_chunk chunk = NULL;

        TRY(duck_fetch(result, &chunk, err));
        if (chunk == NULL)
            return true;
        for (int i = 0; i < reading->field_count; i++)
            column_reset(&reading->columns[i]);
        TRY(absorb_chunk(reading, chunk, err));
        TRY(check_sequence(&reading->row_numbers, reading->rows, err));

        size_t rows = reading->row_numbers.rows;

        reading->sink_failed = !sink->block(sink, reading->columns, rows, reading->rows, err);
        if (reading->sink_failed)
            return false;
        reading->rows += (int64_t) rows;
    }
}

static bool
scan_rows(Duck *duck, RowSink *sink, Reading *reading, Error *err)
{
    AUTO_CONNECTION duckdb_connection connection = NULL;
    AUTO_RESULT duckdb_result result = {0};
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf sql = {0};
    ParquetFooter footer;

    TRY(parquet_footer_read(arena, reading->path, &footer, err));
    TRY(duck_connect(duck, &connection, err));
    TRY(begin_reading(connection, arena, &footer, reading, err));
    TRY(put_select(&sql, reading, err));
    TRY(duck_stream(connection, buf_text(&sql), &result, err));
    TRY(scan_chunks(reading, &result, sink, err));
    if (reading->rows != footer.file.rows)
        return FAIL(err, ERR_INPUT, "only %" PRId64 " of its %" PRId64 " rows can be read",
                    reading->rows, footer.file.rows);
    return true;
}

bool
duck_scan_parquet(Duck *duck, const ParquetScan *scan, Error *err)
{
    size_t count = (size_t) scan->field_count;
    Column *columns = xcalloc(count, sizeof *columns);
    Reading reading = {.path = scan->path,
                       .fields = scan->fields,
                       .field_count = scan->field_count,
                       .defaults = scan->defaults,
                       .columns = columns};

    for (size_t i = 0; i < count; i++)
        column_init(&columns[i], scan->fields[i].type);

    bool scanned = scan_rows(duck, scan->sink, &reading, err);

    reading_done(&reading);
    for (size_t i = 0; i < count; i++)
        column_done(&columns[i]);
    free(columns);
    if (!scanned && !reading.sink_failed)
        return WRAP(err, "read %s", scan->path);
    return scanned;
}

/* --- Some rows ----------------------------------------------------------------------------- */

/* Row numbers of one query: enough that a large pick does not visit a row group often, few enough
 * that the text stays cheap to parse. */
enum { PICK_ROWS = 2048 };

static void
put_numbers(Buf *out, const int64_t *row_numbers, size_t count)
{
    buf_cstr(out, " WHERE file_row_number IN (");
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%" PRId64, i == 0 ? "" : ", ", row_numbers[i]);
    /* Without it they come as they are found: small chunks wait and large ones overtake them. */
    buf_cstr(out, ") ORDER BY file_row_number");
}

/* Fetch the rows with these numbers, in their order. */
static bool
pick_some(duckdb_connection connection, Reading *reading, const char *sql, const ParquetPick *pick,
          Error *err)
{
    AUTO_RESULT duckdb_result result = {0};
    size_t done = 0;

    TRY(duck_stream(connection, sql, &result, err));
    for (;;) {
        AUTO_CHUNK duckdb_data_chunk chunk = NULL;

        TRY(duck_fetch(&result, &chunk, err));
        if (chunk == NULL)
            break;
        TRY(absorb_chunk(reading, chunk, err));
        for (size_t i = 0; i < reading->row_numbers.rows; i++, done++)
            if (done == pick->row_count ||
                BUF_AT(&reading->row_numbers.values, int64_t, i) != pick->row_numbers[done])
                return FAIL(err, ERR_BUG, "a row came that was not asked for");
    }
    if (done != pick->row_count)
        return FAIL(err, ERR_INPUT, "row %" PRId64 " cannot be read", pick->row_numbers[done]);
    return true;
}

static bool
pick_rows(Duck *duck, const ParquetPick *pick, Reading *reading, Error *err)
{
    AUTO_CONNECTION duckdb_connection connection = NULL;
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf sql = {0};
    ParquetFooter footer;

    TRY(parquet_footer_read(arena, pick->path, &footer, err));
    if (pick->row_numbers[pick->row_count - 1] >= footer.file.rows)
        return FAIL(err, ERR_INPUT, "it has no row %" PRId64 ", only %" PRId64 " rows",
                    pick->row_numbers[pick->row_count - 1], footer.file.rows);
    TRY(duck_connect(duck, &connection, err));
    TRY(begin_reading(connection, arena, &footer, reading, err));
    TRY(put_select(&sql, reading, err));

    size_t select_length = sql.len;

    for (size_t at = 0; at < pick->row_count; at += PICK_ROWS) {
        ParquetPick some = *pick;

        some.row_numbers += at;
        some.row_count = pick->row_count - at < PICK_ROWS ? pick->row_count - at : PICK_ROWS;
        sql.len = select_length;
        put_numbers(&sql, some.row_numbers, some.row_count);
        TRY(pick_some(connection, reading, buf_text(&sql), &some, err));
    }
    return true;
}

bool
duck_pick_parquet(Duck *duck, const ParquetPick *pick, Column *columns, Error *err)
{
    Reading reading = {.path = pick->path,
                       .fields = pick->fields,
                       .field_count = pick->field_count,
                       .defaults = pick->defaults,
                       .columns = columns};

    for (size_t i = 1; i < pick->row_count; i++)
        assert(pick->row_numbers[i - 1] < pick->row_numbers[i]);
    if (pick->row_count == 0)
        return true;

    size_t rows = pick->field_count > 0 ? columns[0].rows : 0;
    bool picked = pick_rows(duck, pick, &reading, err);

    reading_done(&reading);
    if (picked)
        return true;
    for (int i = 0; i < pick->field_count; i++)
        column_truncate(&columns[i], rows);
    return WRAP(err, "read %s", pick->path);
}
