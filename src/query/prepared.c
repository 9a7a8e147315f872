#include "query/prepared.h"

#include <stdlib.h>

#include "query/settings.h"
#include "query/types.h"

enum { PARAMETERS_MAX = 65535 };

Prepared *
prepared_ref(Prepared *prepared)
{
    prepared->references++;
    return prepared;
}

void
prepared_unref(Prepared *prepared)
{
    if (prepared == NULL || --prepared->references > 0)
        return;
    arena_free(prepared->arena);
    free(prepared->name);
    free(prepared);
}

void
prepared_unrefp(Prepared **prepared)
{
    prepared_unref(*prepared);
}

/* --- text ---------------------------------------------------------------------------------- */

/* The part of the statement that is a query, and what DuckDB wants before it. */
static Str
query_part(const Prepared *prepared)
{
    return prepared->utility.kind == UTILITY_EXPLAIN ? prepared->utility.rest : prepared->sql;
}

static const char *
prefix(const Prepared *prepared)
{
    if (prepared->utility.kind != UTILITY_EXPLAIN)
        return "";
    return prepared->utility.analyze ? "EXPLAIN ANALYZE " : "EXPLAIN ";
}

bool
prepared_text(const Prepared *prepared, const Parameter *parameters, Buf *out, DialectMap *map,
              QueryFailure *failure, Error *err)
{
    AUTO_BUF Buf body = {0};
    int parameter_max;

    TRY(dialect_rewrite(&(DialectRewrite){.sql = query_part(prepared),
                                          .parameters = parameters,
                                          .parameter_count = prepared->parameter_count},
                        &body, map, &parameter_max, failure, err));
    buf_reset(out);
    buf_cstr(out, prefix(prepared));
    buf_str(out, buf_view(&body));
    buf_text(out);
    return true;
}

bool
prepared_open(const Prepared *prepared, Engine *engine, const Buf *text, const DialectMap *map,
              Cursor **out_cursor, Error *err)
{
    size_t skip = strlen(prefix(prepared));
    CursorOpen open = {.sql = text->ptr,
                       .guarded = {.ptr = text->ptr + skip, .len = text->len - skip}};
    QueryFailure *failure = &engine->failure;

    if (cursor_open(engine, &open, out_cursor, err))
        return true;
    if (failure->position >= 0)
        failure->position = dialect_place(map, failure->position - (int64_t) skip) +
                            (query_part(prepared).ptr - prepared->sql.ptr);
    return false;
}

/* --- columns ------------------------------------------------------------------------------- */

bool
cursor_wire_columns(const Prepared *prepared, const Cursor *cursor, Arena *arena,
                    WireColumn **out_columns, int *out_count, Error *err)
{
    int count = duck_statement_column_count(cursor->statement);
    const DuckColumn *from = duck_statement_columns(cursor->statement);
    WireColumn *columns = ARENA_ARRAY(arena, WireColumn, (size_t) count);

    if (prepared->utility.kind == UTILITY_EXPLAIN) {
        columns[0] = (WireColumn){
            .name = STR("QUERY PLAN"), .type_oid = OID_TEXT, .type_size = -1, .typmod = -1};
        *out_columns = columns;
        *out_count = 1;
        return true;
    }
    if (count > INT16_MAX)
        return query_fail(&cursor->engine->failure, err, "54011",
                          "target lists can have at most %d entries", INT16_MAX);
    for (int i = 0; i < count; i++) {
        columns[i].name = arena_str(arena, cursor_column_name(cursor, i));
        if (!wire_column_type(&from[i].type, &columns[i]))
            return query_fail(&cursor->engine->failure, err, SQLSTATE_UNSUPPORTED,
                              "column \"%.*s\" has a type that cannot be sent\n"
                              "hint: cast it to text",
                              STR_ARG(columns[i].name));
    }
    *out_columns = columns;
    *out_count = count;
    return true;
}

/* What a statement says about parameters whose type the client left open; what it does not say is
 * text, as in Postgres. */
static void
guess_types(Prepared *prepared, Engine *engine)
{
    AUTO_BUF Buf text = {0};
    AUTO(dialect_map_done) DialectMap map = {0};
    DuckStatement *statement = NULL;
    Error ignored;
    QueryFailure failure;

    if (prepared_text(prepared, NULL, &text, &map, &failure, &ignored) &&
        duck_prepare(engine->parser, text.ptr, &statement, &ignored)) {
        int count = duck_statement_parameter_count(statement);

        for (int i = 0; i < prepared->parameter_count && i < count; i++) {
            const PgTypeRow *row = pg_type_of_kind(duck_statement_parameter(statement, i));

            if (prepared->types[i] == 0 && row != NULL)
                prepared->types[i] = row->oid;
        }
    }
    duck_statement_free(statement);
    for (int i = 0; i < prepared->parameter_count; i++)
        if (prepared->types[i] == 0)
            prepared->types[i] = OID_TEXT;
}

/* The columns do not depend on the values of parameters: NULLs of their types show them. typed
 * false: those whose type was guessed are bare NULLs. */
static bool
describe_with_nulls(Prepared *prepared, Engine *engine, bool typed, Error *err)
{
    AUTO_BUF Buf text = {0};
    AUTO(dialect_map_done) DialectMap map = {0};
    Parameter *nulls =
        ARENA_ARRAY(prepared->arena, Parameter, (size_t) prepared->parameter_count + 1);
    Cursor *cursor = NULL;

    for (int i = 0; i < prepared->parameter_count; i++)
        nulls[i].type_oid = typed || prepared->stated[i] ? prepared->types[i] : 0;
    TRY(prepared_text(prepared, nulls, &text, &map, &engine->failure, err));
    TRY(prepared_open(prepared, engine, &text, &map, &cursor, err));

    bool ok = cursor_wire_columns(prepared, cursor, prepared->arena, &prepared->columns,
                                  &prepared->column_count, err);

    cursor_close(cursor);
    return ok;
}

/* Where a guess was wrong ($1 + 1 says nothing of $1, which is then taken for text, and there is no
 * + for text), a NULL without a type still fits. */
static bool
describe_query(Prepared *prepared, Engine *engine, Error *err)
{
    bool open = false;

    for (int i = 0; i < prepared->parameter_count; i++)
        open = open || !prepared->stated[i];
    if (open)
        guess_types(prepared, engine);
    prepared->typed_nulls = describe_with_nulls(prepared, engine, true, err);
    return prepared->typed_nulls || (open && describe_with_nulls(prepared, engine, false, err));
}

static void
describe_show(Prepared *prepared)
{
    bool all = prepared->utility.name.len == 0;
    int count = all ? 3 : 1;
    WireColumn *columns = ARENA_ARRAY(prepared->arena, WireColumn, (size_t) count);

    for (int i = 0; i < count; i++)
        columns[i] = (WireColumn){.type_oid = OID_TEXT, .type_size = -1, .typmod = -1};
    columns[0].name = all ? STR("name") : prepared->utility.name;
    if (all) {
        columns[1].name = STR("setting");
        columns[2].name = STR("description");
    }
    prepared->columns = columns;
    prepared->column_count = count;
}

/* --- making -------------------------------------------------------------------------------- */

static bool
count_parameters(Prepared *prepared, const PreparedMake *make, Engine *engine, Error *err)
{
    AUTO_BUF Buf ignored = {0};
    AUTO(dialect_map_done) DialectMap map = {0};
    int count = 0;

    TRY(dialect_rewrite(&(DialectRewrite){.sql = query_part(prepared)}, &ignored, &map, &count,
                        &engine->failure, err));
    if (make->type_count > count)
        count = make->type_count;
    prepared->parameter_count = count;
    prepared->types = ARENA_ARRAY(prepared->arena, uint32_t, (size_t) count);
    prepared->stated = ARENA_ARRAY(prepared->arena, bool, (size_t) count);
    for (int i = 0; i < make->type_count; i++) {
        prepared->types[i] = make->types[i] == OID_UNKNOWN ? 0 : make->types[i];
        prepared->stated[i] = prepared->types[i] != 0;
    }
    return true;
}

static bool
fill(Prepared *prepared, const PreparedMake *make, Engine *engine, Error *err)
{
    UtilityKind kind;

    if (!str_is_utf8(make->sql))
        return query_fail(&engine->failure, err, "22021",
                          "invalid byte sequence for encoding \"UTF8\" in the statement");
    TRY(utility_parse(prepared->arena, prepared->sql, &prepared->utility, &engine->failure, err));
    kind = prepared->utility.kind;
    if (kind == UTILITY_SHOW)
        describe_show(prepared);
    if (kind != UTILITY_QUERY && kind != UTILITY_EXPLAIN) {
        prepared->described = true;
        return true;
    }
    TRY(count_parameters(prepared, make, engine, err));
    prepared->described = make->describe;
    return !make->describe || describe_query(prepared, engine, err);
}

bool
prepared_new(Engine *engine, const PreparedMake *make, Prepared **out_prepared, Error *err)
{
    Prepared *prepared = xcalloc(1, sizeof *prepared);
    AUTO_BUF Buf name = {0};

    buf_str(&name, make->name);
    prepared->references = 1;
    prepared->name = xstrdup(buf_text(&name));
    prepared->arena = arena_new();
    prepared->sql = arena_str(prepared->arena, make->sql);
    if (!fill(prepared, make, engine, err)) {
        prepared_unref(prepared);
        return false;
    }
    *out_prepared = prepared;
    return true;
}
