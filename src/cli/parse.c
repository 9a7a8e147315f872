#include "cli/parse.h"

#include <assert.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>

#include "config/distance.h"

enum { LONG_OPTION_BASE = 256 }; /* what getopt_long returns for row i: this + i */

/* "+c:" ...: getopt's two tables, from ours. */
static void
describe_options(struct option *out_long, Buf *out_short)
{
    buf_byte(out_short, ':'); /* tell a missing argument from an unknown option */
    for (int i = 0; i < CLI_OPTION_COUNT; i++) {
        const CliOptionRow *row = &cli_options[i];

        out_long[i] =
            (struct option){.name = row->name,
                            .has_arg = row->argument == NULL ? no_argument : required_argument,
                            .val = LONG_OPTION_BASE + i};
        if (row->letter != 0)
            buf_printf(out_short, "%c%s", row->letter, row->argument == NULL ? "" : ":");
    }
    out_long[CLI_OPTION_COUNT] = (struct option){0};
}

static CliOption
option_of(int code)
{
    if (code >= LONG_OPTION_BASE)
        return (CliOption) (code - LONG_OPTION_BASE);
    for (int i = 0; i < CLI_OPTION_COUNT; i++)
        if (cli_options[i].letter == code)
            return (CliOption) i;
    assert(false);
    return CLI_HELP;
}

static bool
fail_unknown_option(const char *given, Error *err)
{
    Str name = {.ptr = given, .len = strcspn(given, "=")};

    while (name.len > 0 && name.ptr[0] == '-')
        name = (Str){.ptr = name.ptr + 1, .len = name.len - 1};
    for (int i = 0; i < CLI_OPTION_COUNT; i++)
        if (name.len > 1 &&
            distance_between(name, str_of(cli_options[i].name)) <= distance_limit(name))
            return FAIL(err, ERR_INPUT, "unknown option \"%.100s\"\nhint: did you mean --%s?",
                        given, cli_options[i].name);
    return FAIL(err, ERR_INPUT, "unknown option \"%.100s\"\nhint: walberg help lists them", given);
}

static void
add_set(Parsed *parsed, const char *text)
{
    const char **sets = ARENA_ARRAY(parsed->cli.arena, const char *, parsed->load.set_count + 1);

    for (size_t i = 0; i < parsed->load.set_count; i++)
        sets[i] = parsed->load.sets[i];
    sets[parsed->load.set_count++] = text;
    parsed->load.sets = sets;
}

static void
take_option(Parsed *parsed, CliOption option, const char *argument)
{
    Cli *cli = &parsed->cli;

    switch (option) {
    case CLI_CONFIG:
        parsed->load.file = cli->config_file = argument;
        break;
    case CLI_SET:
        add_set(parsed, argument);
        break;
    case CLI_JSON:
        cli->json = true;
        break;
    case CLI_VERBOSE:
        cli->verbose = true;
        break;
    case CLI_QUIET:
        cli->quiet = true;
        break;
    case CLI_HELP:
        parsed->help = true;
        break;
    case CLI_VERSION:
        parsed->version = true;
        break;
    case CLI_ONCE:
        cli->once = true;
        break;
    case CLI_FORMAT:
        cli->format = argument;
        break;
    case CLI_LIMIT:
        cli->limit = argument;
        break;
    case CLI_TIMEOUT:
        cli->timeout = argument;
        break;
    case CLI_ALL:
        cli->all = true;
        break;
    case CLI_DRY_RUN:
        cli->dry_run = true;
        break;
    case CLI_YES:
        cli->yes = true;
        break;
    case CLI_NOTIFY_FD:
        cli->notify_fd = (int) strtol(argument, NULL, 10);
        break;
    }
}

/* Returns the options that were given as bits in *out_given. */
static bool
parse_options(Parsed *parsed, int argc, char **argv, unsigned *out_given, Error *err)
{
    struct option long_options[CLI_OPTION_COUNT + 1];
    AUTO_BUF Buf letters = {0};
    unsigned given = 0;

    describe_options(long_options, &letters);
    opterr = 0;
    optind = 0; /* glibc: start over, also for a second argv */
    for (;;) {
        int before = optind == 0 ? 1 : optind;
        /* main thread, before any other exists */
        int code = getopt_long(argc, argv, buf_text(&letters), long_options, /* NOLINT */
                               NULL);

        if (code == -1)
            break;
        if (code == ':' || code == '?') {
            const char *at = argv[optind > before ? optind - 1 : before];

            if (code == ':')
                return FAIL(err, ERR_INPUT, "the option \"%.100s\" wants an argument", at);
            return fail_unknown_option(at, err);
        }

        CliOption option = option_of(code);

        given |= 1u << option;
        take_option(parsed, option, optarg);
    }
    *out_given = given;
    return true;
}

static bool
find_command(Parsed *parsed, const char *name, Error *err)
{
    parsed->cli.command = cli_find_command(name);
    if (parsed->cli.command != NULL)
        return true;

    const char *near = cli_nearest_command(name);

    if (near != NULL)
        return FAIL(err, ERR_INPUT, "unknown command \"%.60s\"\nhint: did you mean \"%s\"?", name,
                    near);
    return FAIL(err, ERR_INPUT, "unknown command \"%.60s\"\nhint: walberg help lists them", name);
}

static bool
check_options(const Command *command, unsigned given, Error *err)
{
    for (int i = 0; i < CLI_OPTION_COUNT; i++)
        if ((given & (1u << i)) != 0 && !cli_options[i].common &&
            (command->options & (1u << i)) == 0)
            return FAIL(err, ERR_INPUT, "walberg %s takes no option --%s", command->name,
                        cli_options[i].name);
    return true;
}

static bool
fail_arguments(const Command *command, Error *err)
{
    return FAIL(err, ERR_INPUT, "wrong number of arguments\nhint: walberg %s%s%s", command->name,
                command->arguments[0] == '\0' ? "" : " ", command->arguments);
}

/* A source is a URI, or begins with keyword= (libpq, "Connection Strings"); a table is neither. */
static bool
is_source(const char *argument)
{
    return strncmp(argument, "postgres://", 11) == 0 ||
           strncmp(argument, "postgresql://", 13) == 0 ||
           (argument[0] != '=' &&
            argument[strspn(argument, "abcdefghijklmnopqrstuvwxyz_ ")] == '=');
}

/* Give the positional arguments their meaning. */
static bool
take_arguments(Parsed *parsed, int count, const char *const *args, Error *err)
{
    static const int count_max[] = {[CLI_FORM_NONE] = 0,
                                    [CLI_FORM_OPTIONAL] = 1,
                                    [CLI_FORM_SOURCE_WAREHOUSE_TABLES] = INT_MAX,
                                    [CLI_FORM_SOURCE_WAREHOUSE] = 2,
                                    [CLI_FORM_WAREHOUSE] = 1,
                                    [CLI_FORM_WAREHOUSE_SQL] = 2};
    Cli *cli = &parsed->cli;
    CliForm form = cli->command->form;
    bool tables = form == CLI_FORM_SOURCE_WAREHOUSE_TABLES;
    bool source =
        tables ? count > 0 && is_source(args[0]) : form == CLI_FORM_SOURCE_WAREHOUSE && count > 0;

    if (count > count_max[form] || (source && count == 1) ||
        (form == CLI_FORM_WAREHOUSE_SQL && count == 0))
        return fail_arguments(cli->command, err);
    if (source) {
        parsed->load.source = args[0];
        parsed->load.warehouse = args[1];
        cli->has_source = true;
        args += 2;
        count -= 2;
    } else if ((form == CLI_FORM_WAREHOUSE && count == 1) ||
               (form == CLI_FORM_WAREHOUSE_SQL && count == 2)) {
        parsed->load.warehouse = args[0];
        args++;
        count--;
    }
    cli->args = args;
    cli->arg_count = count;
    return true;
}

bool
cli_parse(Parsed *parsed, int argc, char **argv, Error *err)
{
    unsigned given = 0;

    TRY(parse_options(parsed, argc, argv, &given, err));
    if (optind >= argc)
        return true;
    TRY(find_command(parsed, argv[optind], err));
    if (parsed->help || parsed->version)
        return true;
    TRY(check_options(parsed->cli.command, given, err));
    return take_arguments(parsed, argc - optind - 1, (const char *const *) argv + optind + 1, err);
}
