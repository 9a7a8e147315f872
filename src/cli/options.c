#include "cli/cli.h"

const CliOptionRow cli_options[CLI_OPTION_COUNT] = {
    [CLI_CONFIG] = {"config", "FILE", "settings; default: ./walberg.yaml if it is there", 'c',
                    true},
    [CLI_SET] = {"set", "KEY=VALUE",
                 "one setting, the value in YAML; may be repeated: -s commit.interval=2s", 's',
                 true},
    [CLI_JSON] = {"json", NULL, "print results as JSON", 0, true},
    [CLI_VERBOSE] = {"verbose", NULL, "log more (log.level=debug)", 'v', true},
    [CLI_QUIET] = {"quiet", NULL, "log errors only, show no progress", 'q', true},
    [CLI_HELP] = {"help", NULL, "explain the command", 'h', true},
    [CLI_VERSION] = {"version", NULL, "print the version", 'V', true},
    [CLI_ONCE] = {"once", NULL,
                  "stop at the position the server has now, with everything committed", 0, false},
    [CLI_NOTIFY_FD] = {"notify-fd", "FD",
                       "a pipe: each byte means that something was committed, its end to leave", 0,
                       false},
    [CLI_FORMAT] = {"format", "FORMAT", "how to print: table, csv or json", 0, false},
};
