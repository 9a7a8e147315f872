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
        json_begin(&json, &out);
        json_object(&json);
        json_key(&json, "walberg");
        json_cstr(&json, WALBERG_VERSION);
        json_key(&json, "duckdb");
        json_cstr(&json, duckdb_version());
        json_key(&json, "libpq");
        json_cstr(&json, libpq_version(cli->arena));
        json_end(&json);
        buf_byte(&out, '\n');
    } else {
        buf_printf(&out, "walberg %s\nDuckDB %s\nlibpq %s\n", WALBERG_VERSION, duckdb_version(),
                   libpq_version(cli->arena));
    }
    cli_put(&out);
    return 0;
}
