/* cli.h - one invocation: what was typed, as a command gets it.
 *
 * A command is a line in commands.h and a file with `int cmd_<name>(const Cli *cli)`, which
 * returns the exit code: 0 done; 1 a person has to act; 2 wrong usage or settings; 3 may pass
 * later; 4 a bug. Results go to stdout through cli_put(), messages to stderr through cli_fail();
 * whether stdout took everything is checked once, after the command. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/arena.h"
#include "base/buf.h"
#include "config/config.h"

/* Options; the bit of a command says that it takes them. Rows are in options.c. */
typedef enum CliOption {
    CLI_CONFIG,
    CLI_SET,
    CLI_JSON,
    CLI_VERBOSE,
    CLI_QUIET,
    CLI_HELP,
    CLI_VERSION,
    CLI_ONCE,
    CLI_FORMAT,
    CLI_NOTIFY_FD,
    CLI_LIMIT,
    CLI_TIMEOUT,
    CLI_ALL,
    CLI_DRY_RUN,
    CLI_YES,
} CliOption;

enum { CLI_OPTION_COUNT = CLI_YES + 1 };

/* What the positional arguments mean. */
typedef enum CliForm {
    CLI_FORM_NONE,
    CLI_FORM_OPTIONAL,         /* at most one: Cli.args[0] */
    CLI_FORM_SOURCE_WAREHOUSE, /* both or none; they become settings */
    /* the same, and tables behind them: Cli.args. A first argument is a source when it is written
     * as one: a URI, or keyword=value */
    CLI_FORM_SOURCE_WAREHOUSE_TABLES,
    CLI_FORM_WAREHOUSE,     /* at most one; it becomes a setting */
    CLI_FORM_WAREHOUSE_SQL, /* [WAREHOUSE] SQL: the statement is Cli.args[0] */
} CliForm;

typedef struct Cli Cli;

typedef struct Command {
    const char *name;
    const char *arguments; /* for the usage line, "" when there are none */
    CliForm form;
    unsigned options;    /* 1u << CliOption, without those every command has */
    bool wants_settings; /* Cli.config is loaded */
    const char *summary; /* half a line */
    const char *doc;     /* sentences, for `help COMMAND` */
    int (*run)(const Cli *cli);
} Command;

struct Cli {
    Arena *arena; /* of the process */
    const Command *command;
    Config *config;          /* loaded, not resolved; NULL when the command wants no settings */
    const char *config_file; /* --config */
    int arg_count;
    const char *const *args; /* those that did not become settings */
    const ConfigLoad *load;  /* what it was loaded from */
    bool has_source;         /* SOURCE and WAREHOUSE were given as arguments */
    bool json;
    bool verbose;
    bool quiet;
    bool once;
    const char *format;  /* --format, NULL */
    int notify_fd;       /* --notify-fd, -1: none */
    const char *limit;   /* --limit, NULL */
    const char *timeout; /* --timeout, NULL */
    bool all;
    bool dry_run;
    bool yes;
};

/* The whole program; returns the exit code. */
int cli_main(int argc, char **argv);

/* Print "walberg: message" with its hint line on stderr; returns the exit code of the kind. */
int cli_fail(const Error *err);
/* The same for settings that are wrong or missing: 2, unless it is another kind of trouble. */
int cli_fail_settings(const Error *err);
/* Wrong usage: 2. */
int cli_usage_error(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* To stdout. */
void cli_put(const Buf *text);

/* What a command cannot do without; ERR_INPUT with a hint. */
bool cli_need_source(const Cli *cli, Error *err) WARN_UNUSED;
bool cli_need_warehouse(const Cli *cli, Error *err) WARN_UNUSED;

/* int cmd_<name>(const Cli *cli) of every command */
#define COMMAND(name, ...) int cmd_##name(const Cli *cli);
#include "cli/commands.h"
#undef COMMAND

/* --- the tables ------------------------------------------------------------------------------ */

extern const Command cli_commands[];
extern const size_t cli_command_count;

const Command *cli_find_command(const char *name);
/* The one that was probably meant, NULL. */
const char *cli_nearest_command(const char *name);

typedef struct CliOptionRow {
    const char *name;
    const char *argument; /* NULL: a switch */
    const char *doc;
    char letter; /* 0: only the long form */
    bool common; /* every command takes it */
} CliOptionRow;

extern const CliOptionRow cli_options[CLI_OPTION_COUNT];

/* `walberg`, `walberg help`, `walberg help COMMAND`, docs/commands.md. */
void cli_print_help(Buf *out);
void cli_print_command_help(Buf *out, const Command *command);
void cli_print_markdown(Buf *out);
/* help_types.c */
void cli_print_types(Buf *out);
void cli_print_types_markdown(Buf *out);

#endif
