/* help.c - the command table for people: `walberg help` and docs/commands.md. */
#include "cli/cli.h"

#include "config/wrap.h"

static const char *
usage_of(Arena *arena, const Command *command)
{
    return arena_printf(arena, "%s%s%s", command->name, command->arguments[0] == '\0' ? "" : " ",
                        command->arguments);
}

/* "-c, --config FILE" */
static const char *
option_usage(Arena *arena, const CliOptionRow *row)
{
    const char *letter = row->letter == 0 ? "" : arena_printf(arena, "-%c, ", row->letter);

    return arena_printf(arena, "%s--%s%s%s", letter, row->name, row->argument == NULL ? "" : " ",
                        row->argument == NULL ? "" : row->argument);
}

static bool
takes(const Command *command, int option)
{
    return command == NULL ? cli_options[option].common : (command->options & (1u << option)) != 0;
}

/* The options of a command; of every command when it is NULL. */
static void
put_options(Buf *out, Arena *arena, const Command *command)
{
    for (int i = 0; i < CLI_OPTION_COUNT; i++)
        if (takes(command, i))
            buf_printf(out, "  %-24s %s\n", option_usage(arena, &cli_options[i]),
                       cli_options[i].doc);
}

void
cli_print_help(Buf *out)
{
    AUTO_ARENA Arena *arena = arena_new();

    buf_cstr(out, "walberg streams every committed change of a Postgres database into Apache\n"
                  "Iceberg tables and serves SQL on them.\n"
                  "\n"
                  "Usage: walberg COMMAND [ARGUMENTS] [OPTIONS]\n"
                  "\n"
                  "Commands:\n");
    for (size_t i = 0; i < cli_command_count; i++)
        buf_printf(out, "  %-30s %s\n", usage_of(arena, &cli_commands[i]), cli_commands[i].summary);
    buf_cstr(out, "\nOptions:\n");
    put_options(out, arena, NULL);
    buf_cstr(out,
             "\n"
             "Exit codes: 0 done; 1 a person has to act; 2 wrong usage or settings; 3 gave up\n"
             "on something that may pass later; 4 a bug.\n");
}

void
cli_print_command_help(Buf *out, const Command *command)
{
    AUTO_ARENA Arena *arena = arena_new();

    buf_printf(out, "Usage: walberg %s [OPTIONS]\n\n", usage_of(arena, command));
    wrap_text(out, "", command->doc);
    buf_cstr(out, "\nOptions:\n");
    put_options(out, arena, command);
    put_options(out, arena, NULL);
}

static void
put_markdown_options(Buf *out, Arena *arena, const Command *command)
{
    buf_cstr(out, "| option | |\n|---|---|\n");
    for (int i = 0; i < CLI_OPTION_COUNT; i++)
        if (takes(command, i))
            buf_printf(out, "| `%s` | %s |\n", option_usage(arena, &cli_options[i]),
                       cli_options[i].doc);
}

void
cli_print_markdown(Buf *out)
{
    AUTO_ARENA Arena *arena = arena_new();

    buf_cstr(out,
             "# Commands\n"
             "\n"
             "<!-- made by tools/gen-docs from src/cli/commands.h; do not edit -->\n"
             "\n"
             "Results go to standard output, messages and progress to standard error; one line "
             "per error,\n"
             "with a hint when a person can act.\n"
             "\n"
             "Exit codes: 0 done; 1 a person has to act (the message says what); 2 wrong usage "
             "or settings;\n"
             "3 gave up on something that may pass later; 4 a bug. Killed by a signal: 128 + "
             "its number.\n"
             "\n"
             "Every command takes:\n"
             "\n");
    put_markdown_options(out, arena, NULL);
    for (size_t i = 0; i < cli_command_count; i++) {
        const Command *command = &cli_commands[i];

        buf_printf(out, "\n## walberg %s\n\n%s\n", usage_of(arena, command), command->doc);
        if (command->options != 0) {
            buf_byte(out, '\n');
            put_markdown_options(out, arena, command);
        }
    }
}

int
cmd_help(const Cli *cli)
{
    AUTO_BUF Buf text = {0};
    const char *topic = cli->arg_count == 0 ? "commands" : cli->args[0];
    bool markdown = cli->format != NULL && strcmp(cli->format, "markdown") == 0;
    const Command *command = cli_find_command(topic);

    if (cli->format != NULL && !markdown && strcmp(cli->format, "text") != 0)
        return cli_usage_error("help has no format \"%.60s\"\nhint: text or markdown", cli->format);
    if (strcmp(topic, "commands") == 0)
        (markdown ? cli_print_markdown : cli_print_help)(&text);
    else if (strcmp(topic, "settings") == 0)
        (markdown ? config_print_markdown : config_print_settings)(&text);
    else if (strcmp(topic, "types") == 0)
        (markdown ? cli_print_types_markdown : cli_print_types)(&text);
    else if (command != NULL)
        cli_print_command_help(&text, command);
    else
        return cli_usage_error("no help on \"%.60s\"\nhint: walberg help lists the commands; there "
                               "are also walberg help settings and walberg help types",
                               topic);
    cli_put(&text);
    return 0;
}
