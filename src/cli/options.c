#include "cli/cli.h"

const CliOptionRow cli_options[CLI_OPTION_COUNT] = {
    [CLI_CONFIG] = {'c', "config", "FILE", true,
                    "settings; default: ./walberg.yaml if it is there"},
    [CLI_SET] = {'s', "set", "KEY=VALUE", true,
                 "one setting, the value in YAML; may be repeated: -s commit.interval=2s"},
    [CLI_JSON] = {0, "json", NULL, true, "print results as JSON"},
    [CLI_VERBOSE] = {'v', "verbose", NULL, true, "log more (log.level=debug)"},
    [CLI_QUIET] = {'q', "quiet", NULL, true, "log errors only, show no progress"},
    [CLI_HELP] = {'h', "help", NULL, true, "explain the command"},
    [CLI_VERSION] = {'V', "version", NULL, true, "print the version"},
    [CLI_ONCE] = {0, "once", NULL, false,
                  "stop at the position the server has now, with everything committed"},
    [CLI_FORMAT] = {0, "format", "FORMAT", false, "how to print: table, csv or json"},
};
