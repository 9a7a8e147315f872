/* connect.h - the two ends of a pipeline, opened as the settings say. */
#ifndef CLI_CONNECT_H
#define CLI_CONNECT_H

#include "config/config.h"
#include "pg/conn.h"
#include "pipeline/state.h"
#include "store/store.h"

/* An ordinary connection to source.postgres. */
bool cli_connect_source(const Config *config, PgConn **out_conn, Error *err) WARN_UNUSED;

/* config_resolve(). The pipeline is called after the source's database unless the settings name it:
 * then *conn, if it is NULL, becomes a connection. */
bool cli_resolve(Config *config, Arena *arena, PgConn **conn, Error *err) WARN_UNUSED;

/* retry_ms_max: how long transient trouble is worth waiting for. */
bool cli_open_warehouse(const Config *config, int64_t retry_ms_max, Store **out_store,
                        Error *err) WARN_UNUSED;

/* Where the state object of config->pipeline is, in the warehouse. */
const char *cli_state_key(const Config *config, Arena *arena);
/* What the lake says of config->pipeline; all zeros, its `pipeline` NULL, when it says nothing.
 * NULL is fine for out_version. An object that cannot be understood is ERR_INPUT, and named. */
bool cli_load_state(const Config *config, Arena *arena, Store *store, PipelineState *out_state,
                    StoreVersion *out_version, Error *err) WARN_UNUSED;

#endif
