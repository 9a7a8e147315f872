#include "cli/cli.h"

#include "base/json_writer.h"
#include "duck/duck.h"
#include "pg/conn.h"

static const char *
duckdb_version(void)
{
    const char *version = duck_version();

    return version[0] == 'v' ? version + 1 : version;
}

/* 150018 -> "15.18" */
static const char *
libpq_version(Arena *arena)
{
    int version = pg_library_version();

    return arena_printf(arena, "%d.%d", version / 10000, version % 10000);
}

int
cmd_version(const Cli *cli)
{
    AUTO_BUF Buf out = {0};
    JsonWriter json;

    if (cli->json) {
        jw_begin(&json, &out);
        jw_object(&json);
        jw_key(&json, "walberg");
        jw_cstr(&json, WALBERG_VERSION);
        jw_key(&json, "duckdb");
        jw_cstr(&json, duckdb_version());
        jw_key(&json, "libpq");
        jw_cstr(&json, libpq_version(cli->arena));
        jw_end(&json);
        buf_byte(&out, '\n');
    } else {
        buf_printf(&out, "walberg %s\nDuckDB %s\nlibpq %s\n", WALBERG_VERSION, duckdb_version(),
                   libpq_version(cli->arena));
    }
    cli_put(&out);
    return 0;
}
