#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>

#include "base/log.h"
#include "cli/parse.h"

enum { EXIT_PERSON = 1, EXIT_USAGE = 2 };

int
cli_fail(const Error *err)
{
    fprintf(stderr, "walberg: %s\n", err->msg);
    return error_exit_code(err->kind);
}

int
cli_fail_settings(const Error *err)
{
    int code = cli_fail(err);

    return err->kind == ERR_INPUT ? EXIT_USAGE : code;
}

int
cli_usage_error(const char *fmt, ...)
{
    va_list args;

    fputs("walberg: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

void
cli_put(const Buf *text)
{
    if (text->len > 0)
        fwrite(text->ptr, 1, text->len, stdout); /* failure is seen by finish_output() */
}

bool
cli_need_source(const Cli *cli, Error *err)
{
    if (cli->config->source_postgres != NULL)
        return true;
    return FAIL(err, ERR_INPUT,
                "no source is set\n"
                "hint: walberg %s postgres://host/database ./lake, or source.postgres in "
                "walberg.yaml (walberg init writes one)",
                cli->command->name);
}

bool
cli_need_warehouse(const Cli *cli, Error *err)
{
    if (cli->config->warehouse != NULL)
        return true;
    return FAIL(err, ERR_INPUT,
                "no warehouse is set\n"
                "hint: name it on the command line, or set sink.iceberg.warehouse in walberg.yaml");
}

/* A result that did not reach its reader is a failure, whatever the command thinks. */
static int
finish_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "walberg: cannot write to standard output: %s\n",
            errno == 0 ? "write error" : strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
    return code == 0 ? EXIT_PERSON : code;
}

static void
configure_log(const Cli *cli)
{
    static const char *const levels[] = {
        [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};
    LogLevel level = LOG_INFO;

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(cli->config->log_level, levels[i]) == 0)
            level = (LogLevel) i;
    if (cli->verbose)
        level = LOG_DEBUG;
    if (cli->quiet)
        level = LOG_ERROR;
    log_configure(level,
                  strcmp(cli->config->log_format, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
}

static int
run_command(Parsed *parsed)
{
    Cli *cli = &parsed->cli;
    Error err = {0};

    cli->load = &parsed->load;
    if (cli->command->wants_settings) {
        if (!config_load(cli->arena, &parsed->load, &cli->config, &err))
            return cli_fail_settings(&err);
        configure_log(cli);
    }
    return cli->command->run(cli);
}

static int
dispatch(Parsed *parsed, int argc, char **argv)
{
    AUTO_BUF Buf text = {0};
    Error err = {0};

    if (!cli_parse(parsed, argc, argv, &err))
        return cli_fail_settings(&err);
    if (parsed->version) {
        parsed->cli.command = cli_find_command("version");
        return run_command(parsed);
    }
    if (parsed->help) {
        if (parsed->cli.command == NULL)
            cli_print_help(&text);
        else
            cli_print_command_help(&text, parsed->cli.command);
        cli_put(&text);
        return 0;
    }
    if (parsed->cli.command == NULL) {
        cli_print_help(&text);
        fputs(buf_text(&text), stderr);
        return EXIT_USAGE;
    }
    return run_command(parsed);
}

/* Each table costs some descriptors. The soft limit is low only for programs that use select(2),
 * which nothing here does. */
static void
raise_open_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &limit);
}

int
cli_main(int argc, char **argv)
{
    AUTO_ARENA Arena *arena = arena_new();
    Parsed parsed = {.cli = {.arena = arena, .notify_fd = -1}};

    /* a reader that went away is reported by write(2) instead */
    signal(SIGPIPE, SIG_IGN);
    raise_open_files();
    return finish_output(dispatch(&parsed, argc, argv));
}
