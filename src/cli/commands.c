#include "cli/cli.h"

#include "config/distance.h"

#define COMMAND(name, arguments, form, options, settings, summary, doc)                            \
    {#name, arguments, form, options, settings, summary, doc, cmd_##name},

const Command cli_commands[] = {
#include "cli/commands.h"
};

#undef COMMAND

const size_t cli_command_count = sizeof cli_commands / sizeof cli_commands[0];

const Command *
cli_find_command(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    return NULL;
}

const char *
cli_nearest_command(const char *name)
{
    const char *best = NULL;
    size_t best_distance = 3;

    for (size_t i = 0; i < cli_command_count; i++) {
        size_t distance = distance_between(str_of(name), str_of(cli_commands[i].name));

        if (distance < best_distance && distance < strlen(name)) {
            best = cli_commands[i].name;
            best_distance = distance;
        }
    }
    return best;
}
