/* verify_tables.c - which tables are compared, and why one cannot be. */
#include "cli/state_folder.h"
#include "cli/verify.h"
#include "config/pattern.h"

/* --- names ----------------------------------------------------------------------------------- */

/* As it is listed, as a pattern, or by its bare name. */
static bool
is_meant(const char *argument, const char *qualified, const SourceTable *source)
{
    return strcmp(argument, qualified) == 0 ||
           (source != NULL &&
            (str_eqc(source->table_name, argument) ||
             pattern_matches(str_of(argument), source->schema_name, source->table_name)));
}

static bool
is_named(const Verify *verify, const char *qualified, const SourceTable *source)
{
    const Cli *cli = verify->cli;

    for (int i = 0; i < cli->arg_count; i++)
        if (is_meant(cli->args[i], qualified, source))
            return true;
    return cli->arg_count == 0;
}

/* A table that was renamed keeps its name in the lake. */
static TableName
lake_name(const Verify *verify, const SourceTable *source)
{
    const StateTable *known = state_find_oid(&verify->state, source->relid);
    bool named = known != NULL && known->table_name != NULL && known->table_name[0] != '\0';
    Str schema = named ? arena_str(verify->arena, str_of(known->schema_name)) : source->schema_name;
    Str table = named ? arena_str(verify->arena, str_of(known->table_name)) : source->table_name;
    TableRule rule = config_table_rule(verify->config, verify->arena, schema, table);

    return (TableName){
        .space = config_namespace(verify->config, verify->arena, verify->server.database, schema),
        .name = rule.name != NULL ? str_of(rule.name) : table,
    };
}

/* --- reasons --------------------------------------------------------------------------------- */

/* What the pipeline said about it last. */
static const char *
status_reason(const Verify *verify, const json_t *status, const char *name)
{
    size_t i;
    const json_t *table;

    json_array_foreach(json_object_get(status, "tables"), i, table)
    {
        const char *its_name = json_string_value(json_object_get(table, "name"));
        const char *state = json_string_value(json_object_get(table, "state"));
        const char *error = json_string_value(json_object_get(table, "error"));

        if (its_name != NULL && state != NULL && strcmp(its_name, name) == 0 &&
            strcmp(state, "parked") == 0)
            return arena_printf(verify->arena, "parked: %s",
                                error == NULL ? "see walberg status" : error);
    }
    return NULL;
}

static const char *
reason_of(const Verify *verify, const json_t *status, const SourceTable *source)
{
    const StateTable *known = state_find_oid(&verify->state, source->relid);
    const char *reason = status_reason(verify, status, source->qualified);

    if (reason != NULL)
        return reason;
    if (source->excluded != NULL)
        return source->excluded;
    if (known == NULL && state_find_table(&verify->state, source->qualified) != NULL)
        return "it was dropped and made again in the source, and the lake has the old one";
    if (known == NULL)
        return source->problem != NULL ? source->problem : "it is not in the lake";
    if (!source->readable)
        return "the role may not read it in the source";
    return NULL;
}

/* --- all of them ----------------------------------------------------------------------------- */

/* What nobody wants in the lake is not missed there, unless it was asked for by name. */
static bool
is_expected(const Verify *verify, const SourceTable *source)
{
    return state_find_oid(&verify->state, source->relid) != NULL ||
           state_find_table(&verify->state, source->qualified) != NULL ||
           (source->published && source->schema != NULL) || verify->cli->arg_count > 0;
}

static void
add_table(Verify *verify, VerifyTable table)
{
    verify->tables[verify->table_count++] = table;
}

static void
add_source_tables(Verify *verify, const json_t *status)
{
    for (int i = 0; i < verify->source.count; i++) {
        const SourceTable *source = &verify->source.items[i];

        if (is_named(verify, source->qualified, source) && is_expected(verify, source))
            add_table(verify, (VerifyTable){.name = source->qualified,
                                            .source = source,
                                            .lake = lake_name(verify, source),
                                            .reason = reason_of(verify, status, source)});
    }
}

static bool
is_in_source(const Verify *verify, const StateTable *known)
{
    for (int i = 0; i < verify->source.count; i++)
        if (verify->source.items[i].relid == known->oid ||
            strcmp(verify->source.items[i].qualified, known->source) == 0)
            return true;
    return false;
}

static void
add_lake_tables(Verify *verify)
{
    for (size_t i = 0; i < verify->state.table_count; i++) {
        const char *name = verify->state.tables[i].source;

        if (!is_in_source(verify, &verify->state.tables[i]) && is_named(verify, name, NULL))
            add_table(verify, (VerifyTable){.name = arena_strdup(verify->arena, name),
                                            .reason = "it is not in the source, or left out by "
                                                      "source.tables"});
    }
}

static bool
is_chosen(const Verify *verify, const char *argument)
{
    for (size_t i = 0; i < verify->table_count; i++)
        if (is_meant(argument, verify->tables[i].name, verify->tables[i].source))
            return true;
    return false;
}

bool
verify_choose_tables(Verify *verify, Error *err)
{
    AUTO(json_unref) json_t *status = NULL;
    const TablesRead read = {.config = verify->config,
                             .publication = verify->config->source_publication};

    TRY(state_folder_status(verify->config, verify->arena, &status, err));
    TRY(source_tables_load(verify->conn, verify->arena, &read, &verify->source, err));
    verify->tables = ARENA_ARRAY(verify->arena, VerifyTable,
                                 (size_t) verify->source.count + verify->state.table_count);
    add_source_tables(verify, status);
    add_lake_tables(verify);
    for (int i = 0; i < verify->cli->arg_count; i++)
        if (!is_chosen(verify, verify->cli->args[i]))
            return FAIL(err, ERR_INPUT,
                        "there is no table %.200s, neither in the source nor in the lake\n"
                        "hint: tables are named schema.table; walberg status lists them",
                        verify->cli->args[i]);
    return true;
}
