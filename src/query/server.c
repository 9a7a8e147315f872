#include "query/server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "query/session.h"

enum {
    CLIENTS_MAX = 100,
    CLIENTS_EXTRA = 20, /* above the limit: to be told so, or to cancel */
    BACKLOG = 128,
    TICK_MS = 100,
    REFRESH_MS = 1000,
    LOOK_AGAIN_MS = 5000, /* without being told: something could not be had the last time */
    RETRY_MS_MAX = 10 * 1000,
};

typedef struct Server Server;

/* A slot of the client table. `done` is set by the thread as its last act. */
typedef struct Client {
    Server *server;
    QuerySession *session; /* NULL: the slot is free */
    pthread_t thread;
    bool done;
} Client;

struct Server {
    SessionHost host; /* first member: sessions call back */
    const QueryServe *serve;
    Store *store;
    Lake *lake;
    int listener;
    uint32_t next_pid;
    int64_t refresh_at_ms;
    bool look_again;      /* before there is news; of the refresh thread */
    pthread_mutex_t lock; /* of clients */
    Client clients[CLIENTS_MAX + CLIENTS_EXTRA];
};

/* --- listening ----------------------------------------------------------------------------- */

static bool
is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *) address;

        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *) (const void *) address)->sin6_addr);
}

/* "host:port" or "[host]:port" into two strings of the same memory. */
static bool
split_listen(char *text, char **out_host, char **out_port, Error *err)
{
    char *colon = strrchr(text, ':');

    if (colon == NULL || colon == text || colon[1] == '\0')
        return FAIL(err, ERR_INPUT,
                    "query.listen: \"%s\" is not address:port\n"
                    "hint: 127.0.0.1:5433",
                    text);
    *colon = '\0';
    *out_port = colon + 1;
    *out_host = text;
    if (text[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        *out_host = text + 1;
    }
    return true;
}

static bool
open_listener(const struct addrinfo *address, const char *listen_text, int *out_fd, Error *err)
{
    int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return FAIL(err, ERR_TRANSIENT, "socket: %s", strerrordesc_np(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int why = errno;

        close(fd);
        return FAIL(err, ERR_INPUT, "query.listen: %s: %s", listen_text, strerrordesc_np(why));
    }
    *out_fd = fd;
    return true;
}

static bool
start_listening(const char *text, int *out_fd, Error *err)
{
    AUTO_FREE char *copy = xstrdup(text);
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char *host = NULL;
    char *port = NULL;

    TRY(split_listen(copy, &host, &port, err));

    int problem = getaddrinfo(host, port, &wanted, &found);

    if (problem != 0)
        return FAIL(err, ERR_INPUT, "query.listen: %s: %s", text, gai_strerror(problem));

    bool ok = is_loopback(found->ai_addr)
                  ? open_listener(found, text, out_fd, err)
                  : FAIL(err, ERR_INPUT,
                         "query.listen: %s is not a loopback address\n"
                         "hint: there is no authentication yet; use 127.0.0.1 and a tunnel",
                         text);

    freeaddrinfo(found);
    return ok;
}

/* --- clients ------------------------------------------------------------------------------- */

static void *
client_thread(void *argument)
{
    Client *client = argument;

    session_run(client->session);
    pthread_mutex_lock(&client->server->lock);
    client->done = true;
    pthread_mutex_unlock(&client->server->lock);
    return NULL;
}

static void
cancel_client(SessionHost *host, uint32_t pid, Str key)
{
    Server *server = (Server *) host; /* its first member */

    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < CLIENTS_MAX + CLIENTS_EXTRA; i++) {
        Client *client = &server->clients[i];

        if (client->session != NULL && session_has_key(client->session, pid, key))
            session_interrupt(client->session);
    }
    pthread_mutex_unlock(&server->lock);
}

/* Take leave of those that are done; with all, wait for the others. */
static void
reap_clients(Server *server, bool all)
{
    for (size_t i = 0; i < CLIENTS_MAX + CLIENTS_EXTRA; i++) {
        Client *client = &server->clients[i];
        QuerySession *session = client->session;

        pthread_mutex_lock(&server->lock);

        bool leaving = session != NULL && (client->done || all);

        pthread_mutex_unlock(&server->lock);
        if (!leaving)
            continue;
        pthread_join(client->thread, NULL);
        pthread_mutex_lock(&server->lock);
        client->session = NULL;
        pthread_mutex_unlock(&server->lock);
        session_free(session);
    }
}

static bool
start_client(Server *server, Client *client, int fd, bool full)
{
    Error err = {0};
    QuerySession *session = NULL;
    SessionOpen open = {.host = &server->host,
                        .lake = server->lake,
                        .cancel = server->serve->cancel,
                        .fd = fd,
                        .pid = server->next_pid++,
                        .full = full};

    if (!session_new(&open, &session, &err)) {
        log_error("client refused", LOG_STR("error", err.msg));
        return false;
    }
    pthread_mutex_lock(&server->lock);
    client->server = server;
    client->done = false;
    client->session = session;
    pthread_mutex_unlock(&server->lock);

    int problem = pthread_create(&client->thread, NULL, client_thread, client);

    if (problem == 0)
        return true;
    log_error("client refused", LOG_STR("error", strerrordesc_np(problem)));
    pthread_mutex_lock(&server->lock);
    client->session = NULL;
    pthread_mutex_unlock(&server->lock);
    session_free(session);
    return false;
}

static void
accept_client(Server *server)
{
    int on = 1;
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    Client *free_slot = NULL;
    size_t count = 0;

    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    for (size_t i = 0; i < CLIENTS_MAX + CLIENTS_EXTRA; i++) {
        Client *client = &server->clients[i];

        count += client->session != NULL;
        if (client->session == NULL && free_slot == NULL)
            free_slot = client;
    }
    if (free_slot == NULL)
        close(fd);
    else
        (void) start_client(server, free_slot, fd, count >= CLIENTS_MAX);
}

static void
tick_clients(Server *server)
{
    int64_t now = clock_ms();

    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < CLIENTS_MAX + CLIENTS_EXTRA; i++)
        if (server->clients[i].session != NULL && !server->clients[i].done)
            session_tick(server->clients[i].session, now);
    pthread_mutex_unlock(&server->lock);
}

static void
interrupt_clients(Server *server)
{
    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < CLIENTS_MAX + CLIENTS_EXTRA; i++)
        if (server->clients[i].session != NULL && !server->clients[i].done)
            session_interrupt(server->clients[i].session);
    pthread_mutex_unlock(&server->lock);
}

/* --- refreshing ---------------------------------------------------------------------------- */

static void
refresh(Server *server)
{
    Error err = {0};
    int64_t start = clock_ms();
    bool changed = false;

    server->refresh_at_ms = start + REFRESH_MS;
    server->look_again = true;
    if (!lake_refresh(server->lake, &changed, &err)) {
        if (err.kind != ERR_CANCELED)
            log_warn("tables not refreshed", LOG_STR("error", err.msg));
        return;
    }

    LakeStats stats = lake_stats(server->lake);

    server->look_again = stats.retried > 0;
    if (!changed)
        return;

    log_debug("refreshed", LOG_INT("tables", stats.tables), LOG_INT("left_out", stats.left_out),
              LOG_INT("epoch", stats.epoch), LOG_INT("cached_bytes", stats.cached_bytes),
              LOG_MS("took", clock_ms() - start));
}

/* Everything that came, whatever it says. */
static void
drain_notices(Server *server)
{
    char bytes[512];
    ssize_t got = read(server->serve->notify_fd, bytes, sizeof bytes);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        cancel_set(server->serve->cancel);
}

/* Refreshing has its own thread: a slow store does not keep clients from connecting. */
static void *
refresh_thread(void *argument)
{
    Server *server = argument;
    Cancel *cancel = server->serve->cancel;

    while (!cancel_is_set(cancel)) {
        bool ready = false;
        Error err = {0};
        int64_t wait = server->refresh_at_ms - clock_ms();

        if (server->serve->notify_fd >= 0) {
            if (!cancel_poll(cancel, server->serve->notify_fd, POLLIN,
                             server->look_again ? LOOK_AGAIN_MS : -1, &ready, &err))
                break;
            if (ready)
                drain_notices(server);
        } else if (wait > 0 && !cancel_sleep(cancel, wait, &err)) {
            break;
        }
        refresh(server);
    }
    return NULL;
}

/* --- the whole ----------------------------------------------------------------------------- */

bool
query_open_lake(const Config *config, const char *state, Cancel *cancel, Store **out_store,
                Lake **out_lake, Error *err)
{
    StoreOptions options = store_options(config, cancel);
    Store *store = NULL;
    Lake *lake = NULL;
    bool changed;

    options.retry_ms_max = RETRY_MS_MAX;
    TRY(store_open(config->warehouse, &options, &store, err));
    if (!lake_open(&(LakeOptions){.warehouse = store,
                                  .catalog_type = config->catalog_type,
                                  .state = state,
                                  .cache_bytes_max = config->cache,
                                  .memory_bytes_max = config->query_memory,
                                  .spill_bytes_max = config->query_spill,
                                  .cancel = cancel},
                   &lake, err) ||
        !lake_refresh(lake, &changed, err)) {
        lake_close(lake);
        store_close(store);
        return false;
    }
    *out_store = store;
    *out_lake = lake;
    return true;
}

static bool
accept_clients(Server *server, Error *err)
{
    while (!cancel_is_set(server->serve->cancel)) {
        bool ready = false;

        if (!cancel_poll(server->serve->cancel, server->listener, POLLIN, TICK_MS, &ready, err))
            return err->kind == ERR_CANCELED;
        if (ready)
            accept_client(server);
        reap_clients(server, false);
        tick_clients(server);
    }
    return true;
}

static bool
run(Server *server, Error *err)
{
    pthread_t refresher;
    LakeStats stats = lake_stats(server->lake);

    server->look_again = stats.retried > 0;

    int problem = pthread_create(&refresher, NULL, refresh_thread, server);

    if (problem != 0)
        return FAIL(err, ERR_TRANSIENT, "cannot start a thread: %s", strerrordesc_np(problem));
    log_info("listening", LOG_STR("address", server->serve->listen),
             LOG_INT("tables", stats.tables), LOG_INT("left_out", stats.left_out));

    bool ok = accept_clients(server, err);

    if (!ok) /* the other thread shall go, too */
        cancel_set(server->serve->cancel);
    interrupt_clients(server);
    reap_clients(server, true);
    pthread_join(refresher, NULL);
    log_info("stopped listening", LOG_STR("address", server->serve->listen));
    return ok;
}

bool
query_serve(const QueryServe *serve, Error *err)
{
    Server *server = xcalloc(1, sizeof *server);
    bool ok = false;

    server->host.cancel = cancel_client;
    server->serve = serve;
    server->listener = -1;
    server->next_pid = (uint32_t) getpid();
    pthread_mutex_init(&server->lock, NULL);
    if (start_listening(serve->listen, &server->listener, err) &&
        query_open_lake(serve->config, serve->state, serve->cancel, &server->store, &server->lake,
                        err))
        ok = run(server, err);
    if (server->listener >= 0)
        close(server->listener);
    lake_close(server->lake);
    store_close(server->store);
    pthread_mutex_destroy(&server->lock);
    free(server);
    return ok;
}
