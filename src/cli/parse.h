/* parse.h - argv into a Cli. Options may stand anywhere; the first other argument is the command.
 */
#ifndef CLI_PARSE_H
#define CLI_PARSE_H

#include "cli/cli.h"

typedef struct Parsed {
    Cli cli;
    ConfigLoad load;
    bool help;    /* --help */
    bool version; /* --version */
} Parsed;

/* ERR_INPUT: wrong usage. parsed->cli.arena is set by the caller; cli.command stays NULL when no
 * command was given. */
bool cli_parse(Parsed *parsed, int argc, char **argv, Error *err) WARN_UNUSED;

#endif
