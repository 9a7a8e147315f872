/* run.c - `walberg run`: the pipeline until a signal, or until --once is done. */
#include "cli/cli.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "pipeline/pipeline.h"

typedef struct Signals {
    sigset_t set;
    atomic_bool stop;
    atomic_bool graceful;
    Cancel *cancel;
    Cancel *leaving;
} Signals;

/* The first signal is a wish, the second an order. */
static void *
wait_for_signals(void *arg)
{
    Signals *signals = arg;
    int number;

    for (;;) {
        if (sigwait(&signals->set, &number) != 0)
            continue;
        if (number == SIGUSR1) /* run is over */
            return NULL;
        if (atomic_exchange(&signals->stop, true)) {
            log_warn("leaving at once");
            _exit(128 + number);
        }
        log_info("stopping", LOG_STR("signal", number == SIGINT ? "SIGINT" : "SIGTERM"));
        cancel_set(signals->leaving);
        if (!atomic_load(&signals->graceful))
            cancel_set(signals->cancel);
    }
}

/* What the query server needs to load the same settings. */
static const char *const *
query_args(const Cli *cli)
{
    const char **args = ARENA_ARRAY(cli->arena, const char *, 2 * cli->load->set_count + 3);
    size_t count = 0;

    if (cli->config->file != NULL) {
        args[count++] = "--config";
        args[count++] = cli->config->file;
    }
    for (size_t i = 0; i < cli->load->set_count; i++) {
        args[count++] = "--set";
        args[count++] = cli->load->sets[i];
    }
    return args;
}

int
cmd_run(const Cli *cli)
{
    Error err = {0};
    Signals signals = {.cancel = cancel_new(), .leaving = cancel_new()};
    pthread_t thread;
    PipelineOptions options = {
        .config = cli->config,
        .arena = cli->arena,
        .once = cli->once,
        .serve = !cli->once,
        .query_args = query_args(cli),
        .cancel = signals.cancel,
        .leaving = signals.leaving,
        .stop = &signals.stop,
        .graceful = &signals.graceful,
    };

    if (!cli_need_source(cli, &err) || !cli_need_warehouse(cli, &err)) {
        cancel_free(signals.cancel);
        cancel_free(signals.leaving);
        return cli_fail_settings(&err);
    }
    if (cli->has_source && cli->config->query_listen == NULL)
        cli->config->query_listen = "127.0.0.1:5433";
    sigemptyset(&signals.set);
    sigaddset(&signals.set, SIGINT);
    sigaddset(&signals.set, SIGTERM);
    sigaddset(&signals.set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals.set, NULL);
    pthread_create(&thread, NULL, wait_for_signals, &signals);

    bool done = pipeline_run(&options, &err);

    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    cancel_free(signals.cancel);
    cancel_free(signals.leaving);
    return done ? 0 : cli_fail(&err);
}
