#include "cli/cli.h"

#include "base/json_writer.h"

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
        json_end(&json);
        buf_byte(&out, '\n');
    } else {
        buf_printf(&out, "walberg %s\n", WALBERG_VERSION);
    }
    cli_put(&out);
    return 0;
}
