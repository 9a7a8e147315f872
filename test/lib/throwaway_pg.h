/* throwaway_pg.h - a Postgres for a test: the one that WALBERG_TEST_PG (a superuser's conninfo)
 * names, or a cluster of its own, made and removed by test/lib/pg. */
#ifndef THROWAWAY_PG_H
#define THROWAWAY_PG_H

#include "testing.h"

#include <arpa/inet.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pg/conn.h"

enum { NO_SERVER_INSTALLED = 77 };

typedef struct ThrowawayPg {
    char dir[64]; /* "": not ours */
    char conninfo[512];
} ThrowawayPg;

static int
run_script(const char *verb, const char *dir, const char *port)
{
    static char script[] = TEST_DIR "/lib/pg";
    char args[3][64];
    char *argv[] = {script, args[0], args[1], args[2], NULL};
    pid_t pid;
    int status;

    snprintf(args[0], sizeof args[0], "%s", verb);
    snprintf(args[1], sizeof args[1], "%s", dir);
    snprintf(args[2], sizeof args[2], "%s", port);
    if (port[0] == '\0')
        argv[3] = NULL;
    if (posix_spawn(&pid, script, NULL, NULL, argv, environ) != 0)
        return -1;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* A port that nobody uses at this moment. */
static int
free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* Whether there is no server to test with; says so in TAP's words, for main() to return. */
static bool
throwaway_pg_missing(void)
{
    if (getenv("WALBERG_TEST_PG") != NULL || /* NOLINT(concurrency-mt-unsafe) */
        run_script("installed", "", "") != NO_SERVER_INSTALLED)
        return false;
    puts("1..0 # SKIP no Postgres server is installed");
    return true;
}

/* 0, or NO_SERVER_INSTALLED. `settings` are lines for postgresql.conf; with any, the cluster is
 * always a new one. */
static int
throwaway_pg_start(ThrowawayPg *pg, const char *settings)
{
    const char *given = getenv("WALBERG_TEST_PG"); /* NOLINT(concurrency-mt-unsafe) */
    char port[16];

    *pg = (ThrowawayPg){0};
    if (given != NULL && settings == NULL) {
        snprintf(pg->conninfo, sizeof pg->conninfo, "%s", given);
        return 0;
    }
    snprintf(pg->dir, sizeof pg->dir, "/tmp/walberg-pg-XXXXXX");
    assert_non_null(mkdtemp(pg->dir));
    assert_int_equal(chmod(pg->dir, 0755), 0);
    snprintf(port, sizeof port, "%d", free_port());
    setenv("PG_SETTINGS", settings == NULL ? "" : settings, 1); /* NOLINT(concurrency-mt-unsafe) */

    int rc = run_script("start", pg->dir, port);

    assert_true(rc == 0 || rc == NO_SERVER_INSTALLED);
    if (rc == NO_SERVER_INSTALLED)
        rmdir(pg->dir);
    snprintf(pg->conninfo, sizeof pg->conninfo,
             "host=127.0.0.1 port=%s user=postgres dbname=postgres", port);
    return rc;
}

static void
throwaway_pg_stop(ThrowawayPg *pg)
{
    char command[128];

    if (pg->dir[0] == '\0')
        return;
    run_script("stop", pg->dir, "");
    snprintf(command, sizeof command, "rm -rf '%s'", pg->dir);
    if (system(command) != 0) /* NOLINT(concurrency-mt-unsafe) */
        print_error("cannot remove %s\n", pg->dir);
    pg->dir[0] = '\0';
}

/* --- talking to it --------------------------------------------------------------------------- */

/* The server's conninfo with more words behind it, which win. */
static const char *
conninfo_with(const ThrowawayPg *pg, char out[1024], const char *more)
{
    snprintf(out, 1024, "%s %s", pg->conninfo, more);
    return out;
}

static PgConn *
connect_with(const ThrowawayPg *pg, const char *more, bool replication)
{
    char conninfo[1024];
    Error err = {0};
    PgConn *conn = NULL;

    OK(pg_connect(
        &(PgConnect){.conninfo = conninfo_with(pg, conninfo, more), .replication = replication},
        &conn, &err));
    return conn;
}

static void
run_sql(PgConn *conn, const char *sql)
{
    Error err = {0};

    if (!pg_exec(conn, NULL, sql, NULL, &err)) {
        print_error("%s\n%s\n", sql, err.msg);
        fail();
    }
}

/* One value, as text in the arena; "" for NULL or no row. */
static const char *
ask(PgConn *conn, Arena *arena, const char *sql)
{
    Error err = {0};
    PgResult r;

    if (!pg_exec(conn, arena, sql, &r, &err)) {
        print_error("%s\n%s\n", sql, err.msg);
        fail();
    }
    if (r.rows == 0 || pg_value(&r, 0, 0).ptr == NULL)
        return "";
    return pg_value(&r, 0, 0).ptr;
}

#endif
