/* check.c - the doctor: says beforehand what will and will not arrive, and changes nothing but one
 * probe object in the warehouse, which it takes away again. */
#include "cli/check.h"

#include "cli/cli.h"

enum { EXIT_SICK = 1 };

int
cmd_check(const Cli *cli)
{
    AUTO_REPORT Report report = {.arena = cli->arena};
    AUTO_BUF Buf out = {0};
    Error err = {0};

    if (!cli_need_source(cli, &err) || !cli_need_warehouse(cli, &err))
        return cli_fail_settings(&err);
    report_add(&report, "settings", VERDICT_OK, "%s",
               cli->config->file == NULL ? "no file" : cli->config->file);
    check_source(&report, cli->config);
    check_lake(&report, cli->config);
    if (cli->json)
        report_print_json(&report, &out);
    else
        report_print(&report, &out);
    cli_put(&out);
    return report.failed > 0 ? EXIT_SICK : 0;
}
