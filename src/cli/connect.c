#include "cli/connect.h"

bool
cli_connect_source(const Config *config, PgConn **out_conn, Error *err)
{
    return pg_connect(
        &(PgConnect){.conninfo = config->source_postgres, .application_name = "walberg"}, out_conn,
        err);
}

bool
cli_resolve(Config *config, Arena *arena, PgConn **conn, Error *err)
{
    const char *database = NULL;

    if (config->pipeline == NULL && config->source_postgres != NULL) {
        if (*conn == NULL && !cli_connect_source(config, conn, err))
            return WRAP(err, "ask the source for its database, after which the pipeline is named");
        database = arena_strdup(arena, pg_database(*conn));
    }
    return config_resolve(config, arena, database, err);
}

bool
cli_open_warehouse(const Config *config, int64_t retry_ms_max, Store **out_store, Error *err)
{
    StoreOptions options = store_options(config, NULL);

    options.retry_ms_max = retry_ms_max;
    return store_open(config->warehouse, &options, out_store, err);
}

const char *
cli_state_key(const Config *config, Arena *arena)
{
    return arena_printf(arena, "_walberg/%s.json", config->pipeline);
}

bool
cli_load_state(const Config *config, Arena *arena, Store *store, PipelineState *out_state,
               StoreVersion *out_version, Error *err)
{
    AUTO_BUF Buf text = {0};
    const char *key = cli_state_key(config, arena);
    PipelineState state = {0};
    bool found;

    TRY(store_get(store, key, &text, &found, out_version, err));
    if (found && !state_parse(arena, buf_view(&text), &state, err))
        return WRAP(err, "%s/%s", store->base_uri, key);
    *out_state = state;
    return true;
}
