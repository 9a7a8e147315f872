/* child.c - the query server's process: walberg query, the same binary.
 *
 * Another process, so that no query can slow, bloat or kill the stream. It is told of each commit
 * by a byte on a pipe, and started again when it dies, later each time when it does so at once.
 * Closing the pipe ends it. When the machine runs out of memory, the kernel shall take it and not
 * the stream. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "pipeline/internal.h"

enum {
    ARGS_MAX = 128,
    RESTART_MS = 1000,
    RESTART_MS_MAX = 60000,
    LEAVE_MS = 3000,
};

static const char oom_score[] = "500"; /* proc(5), /proc/pid/oom_score_adj: -1000 to 1000 */

struct QueryChild {
    pid_t pid;
    int pipe;
    int64_t started_ms;
    int64_t pause_ms; /* before it is started again */
    int failures;     /* in a row: it ended sooner than RESTART_MS_MAX after its start */
};

static void
offer_to_the_oom_killer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;

    ssize_t written = write(fd, oom_score, sizeof oom_score - 1);

    (void) written; /* without /proc it is as likely as others */
    close(fd);
}

/* In the child: only async-signal-safe calls between fork and exec. */
static void
become_query_server(char **args, int notify_fd, pid_t parent)
{
    sigset_t none;

    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_IGN); /* ctrl-C is the parent's business; it ends us */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    offer_to_the_oom_killer();
    if (getppid() != parent)
        _exit(0);
    fcntl(notify_fd, F_SETFD, 0);
    execv("/proc/self/exe", args);
    _exit(127);
}

/* --set KEY="value", quoted as YAML (and JSON) want it. */
static char *
set_argument(Arena *arena, const char *key, const char *value)
{
    AUTO_BUF Buf text = {0};

    buf_printf(&text, "--set=%s=", key);
    jw_put_string(&text, str_of(value));
    return arena_strdup(arena, buf_text(&text));
}

/* The command line: the settings of this process, and what was only known once it had connected. */
static char **
child_args(Pipeline *pl, Arena *arena, int notify_fd)
{
    char **args = ARENA_ARRAY(arena, char *, ARGS_MAX + 16);
    size_t count = 0;

    args[count++] = arena_strdup(arena, "walberg");
    args[count++] = arena_strdup(arena, "query");
    args[count++] = arena_printf(arena, "--notify-fd=%d", notify_fd);
    for (size_t i = 0; pl->options->query_args[i] != NULL && i < ARGS_MAX; i++)
        args[count++] = arena_strdup(arena, pl->options->query_args[i]);
    args[count++] = set_argument(arena, "pipeline", pl->config->pipeline);
    args[count++] = set_argument(arena, "state", pl->config->state);
    args[count++] = set_argument(arena, "query.listen", pl->config->query_listen);
    args[count++] = set_argument(arena, "sink.iceberg.warehouse", pl->config->warehouse);
    return args;
}

static bool
spawn(Pipeline *pl, Error *err)
{
    AUTO_ARENA Arena *arena = arena_new();
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return FAIL(err, ERR_TRANSIENT, "query server: pipe: %s", strerrordesc_np(errno));

    char **args = child_args(pl, arena, fds[0]);
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0)
        become_query_server(args, fds[0], parent);
    close(fds[0]);
    if (pid < 0) {
        close(fds[1]);
        return FAIL(err, ERR_TRANSIENT, "query server: fork: %s", strerrordesc_np(errno));
    }
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    pl->child->pid = pid;
    pl->child->pipe = fds[1];
    return true;
}

bool
child_start(Pipeline *pl, Error *err)
{
    if (!pl->options->serve || pl->config->query_listen == NULL)
        return true;
    pl->child = xcalloc(1, sizeof *pl->child);
    *pl->child =
        (QueryChild){.pid = -1, .pipe = -1, .started_ms = clock_ms(), .pause_ms = RESTART_MS};
    return spawn(pl, err);
}

/* It ended, and waits to be started again. */
static void
note_end(QueryChild *child)
{
    int64_t lived = clock_ms() - child->started_ms;

    child->failures = lived < RESTART_MS_MAX ? child->failures + 1 : 1;
    child->pause_ms = child->failures == 1                   ? RESTART_MS
                      : child->pause_ms < RESTART_MS_MAX / 2 ? child->pause_ms * 2
                                                             : RESTART_MS_MAX;
    log_warn("query server ended, starting it again", LOG_INT("pid", child->pid),
             LOG_INT("in_ms", child->pause_ms));
    if (child->pipe >= 0)
        close(child->pipe);
    child->pid = child->pipe = -1;
    child->started_ms = clock_ms();
}

void
child_watch(Pipeline *pl)
{
    QueryChild *child = pl->child;
    Error err;

    if (child == NULL)
        return;
    if (child->pid > 0 && waitpid(child->pid, NULL, WNOHANG) != 0)
        note_end(child);
    if (child->pid > 0 || clock_ms() - child->started_ms < child->pause_ms)
        return;
    child->started_ms = clock_ms();
    if (!spawn(pl, &err))
        log_error("query server", LOG_STR("error", err.msg));
}

int
child_failures(const Pipeline *pl)
{
    return pl->child == NULL ||
                   (pl->child->pid > 0 && clock_ms() - pl->child->started_ms > RESTART_MS_MAX)
               ? 0
               : pl->child->failures;
}

void
child_tell(Pipeline *pl)
{
    if (pl->child == NULL || pl->child->pipe < 0)
        return;

    ssize_t written = write(pl->child->pipe, "\n", 1);

    (void) written; /* full: it has news to read; broken: child_watch() sees */
}

void
child_stop(Pipeline *pl)
{
    if (pl->child == NULL)
        return;
    if (pl->child->pid > 0) {
        close(pl->child->pipe);
        kill(pl->child->pid, SIGTERM);
    }
    for (int64_t start = clock_ms();
         pl->child->pid > 0 && waitpid(pl->child->pid, NULL, WNOHANG) == 0;) {
        if (clock_ms() - start > LEAVE_MS)
            kill(pl->child->pid, SIGKILL);
        usleep(10000);
    }
    free(pl->child);
    pl->child = NULL;
}
