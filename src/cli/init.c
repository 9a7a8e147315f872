/* init.c - a first walberg.yaml, from the options table. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* O_EXCL: a file that somebody wrote is never lost, not even in a race. Mode 0600, because secrets
 * will be written into it. */
static bool
write_new_file(const char *path, const Buf *text, Error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST)
        return FAIL(err, ERR_INPUT, "%.300s exists\nhint: walberg init - writes to standard output",
                    path);
    if (fd < 0)
        return FAIL(err, ERR_INPUT, "cannot create %.300s: %m", path);

    ssize_t n = write(fd, text->ptr, text->len);
    int failure = n == (ssize_t) text->len ? 0 : n < 0 ? errno : ENOSPC;

    if (close(fd) != 0 && failure == 0)
        failure = errno;
    if (failure == 0)
        return true;
    unlink(path);
    errno = failure;
    return FAIL(err, ERR_INPUT, "cannot write %.300s: %m", path);
}

int
cmd_init(const Cli *cli)
{
    AUTO_BUF Buf text = {0};
    const char *path = cli->config_file == NULL ? "walberg.yaml" : cli->config_file;
    Error err = {0};

    if (cli->arg_count > 0)
        path = cli->args[0];
    config_print_yaml(&text);
    if (strcmp(path, "-") == 0) {
        cli_put(&text);
        return 0;
    }
    if (!write_new_file(path, &text, &err))
        return cli_fail(&err);
    return 0;
}
