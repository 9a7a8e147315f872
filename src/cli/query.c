/* query.c - `walberg query`: only the query server. `walberg run` starts it as its child, with a
 * pipe that tells of commits. */
#include "cli/cli.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "query/server.h"

int cmd_query(const Cli *cli);

typedef struct Signals {
    sigset_t set;
    Cancel *cancel;
} Signals;

/* The first signal is a wish, the second an order. */
static void *
wait_for_signals(void *argument)
{
    Signals *signals = argument;
    int number;

    for (bool asked = false;;) {
        if (sigwait(&signals->set, &number) != 0)
            continue;
        if (number == SIGUSR1) /* it is over */
            return NULL;
        if (asked)
            _exit(128 + number);
        asked = true;
        cancel_set(signals->cancel);
    }
}

static int
serve(const Cli *cli, Signals *signals)
{
    Error err = {0};
    pthread_t thread;
    QueryServe options = {
        .config = cli->config,
        .listen = cli->config->query_listen == NULL ? "127.0.0.1:5433" : cli->config->query_listen,
        .state = cli->config->state,
        .cancel = signals->cancel,
        .notify_fd = cli->notify_fd,
    };

    sigemptyset(&signals->set);
    sigaddset(&signals->set, SIGINT);
    sigaddset(&signals->set, SIGTERM);
    sigaddset(&signals->set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals->set, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, signals) != 0) {
        (void) FAIL(&err, ERR_TRANSIENT, "cannot start a thread");
        return cli_fail(&err);
    }

    bool done = query_serve(&options, &err);

    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    return done || err.kind == ERR_CANCELED ? 0 : cli_fail(&err);
}

int
cmd_query(const Cli *cli)
{
    Signals signals;
    Error err = {0};

    /* without a pipeline's name the state is one for all lakes that are only read */
    if (!cli_need_warehouse(cli, &err) || !config_resolve(cli->config, cli->arena, "query", &err))
        return cli_fail_settings(&err);
    signals.cancel = cancel_new();

    int code = serve(cli, &signals);

    cancel_free(signals.cancel);
    return code;
}
