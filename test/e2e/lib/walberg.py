"""walberg - the program under test, as a user would run it: a command line, a log, signals.

Settings come by --set, so every test shows what it needs. Each start appends to walberg.log in the
test's folder, which is shown when the test fails.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import psycopg

from lib.env import FORMAT_VERSION, PROGRAM, free_port, kill, wait_for
from lib.postgres import lsn

# Quick for tests: commits twice a second, whatever the default is.
SETTINGS = {"commit.interval": "300ms"}
if FORMAT_VERSION != 2:  # everything that holds under version 2
    SETTINGS["sink.iceberg.format_version"] = FORMAT_VERSION


def environment(storage=None, **extra):
    """The caller's variables without those that would change what the program does."""
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith(("WALBERG", "PG", "AWS_", "S3_"))}
    return {**kept, **(storage.environment() if storage else {}), **extra}


class Walberg:
    def __init__(self, database, storage, folder, **settings):
        self.database = database
        self.storage = storage
        self.folder = folder
        self.settings = {**SETTINGS, "state": str(folder / "state"),
                         "query.listen": f"127.0.0.1:{free_port()}",
                         **{key.replace("__", "."): value for key, value in settings.items()}}
        self.extra_environment = {}
        self.query_port = None
        self.process = None
        self.log_path = folder / "walberg.log"

    # --- commands --------------------------------------------------------------------------

    def command(self, name, *args, **settings):
        chosen = {**self.settings, **{k.replace("__", "."): v for k, v in settings.items()}}
        sets = [part for key, value in chosen.items() for part in ("--set", f"{key}={value}")]
        return [str(PROGRAM), name, *sets, *args]

    def positional(self):
        return [self.database.uri, self.storage.uri]

    def call(self, name, *args, timeout=120, check=False, **settings):
        """Run a command to its end: its subprocess.CompletedProcess."""
        done = subprocess.run(self.command(name, *args, **settings), capture_output=True, text=True,
                              timeout=timeout, cwd=self.folder, stdin=subprocess.DEVNULL,
                              env=environment(self.storage, **self.extra_environment), check=False)
        with open(self.log_path, "a", encoding="utf-8") as log:
            log.write(f"--- {name} {' '.join(args)} -> {done.returncode}\n{done.stderr}")
        if check:
            said = done.stdout[-3000:] + done.stderr[-3000:]
            assert done.returncode == 0, f"{name}: exit {done.returncode}: {said}"
        return done

    def once(self, timeout=300, **settings):
        """run --once: everything up to now is in the lake when this returns."""
        return self.call("run", "--once", *self.positional(), timeout=timeout, check=True,
                         **settings)

    def start(self, port=None, **settings):
        """run, in the background, serving queries on self.query_port. It has its state folder, and
        hears signals, when this returns: what an earlier process left there says nothing of it."""
        assert self.process is None or self.process.poll() is not None, "runs already"
        self.query_port = port or free_port()
        command = self.command("run", *self.positional(),
                               query__listen=f"127.0.0.1:{self.query_port}", **settings)
        with open(self.log_path, "ab") as log:
            log.write(b"--- run\n")
            log.flush()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=self.folder,
                                            env=environment(self.storage,
                                                            **self.extra_environment))
        lock = pathlib.Path({**self.settings, **settings}["state"]) / "lock"
        wait_for("its lock", lambda: not self.alive() or (
            lock.exists() and lock.read_text().strip() == str(self.process.pid)))
        return self

    def stop(self, seconds=60):
        """SIGTERM, as a service manager would; returns the exit code."""
        return kill(self.process, signal.SIGTERM, seconds)

    def kill(self):
        """SIGKILL: nothing is said and nothing is tidied."""
        if self.process:
            kill(self.process)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    # --- what it says ----------------------------------------------------------------------

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def wait_for_log(self, pattern, seconds=60, after=0):
        """The first match of a regular expression in the log, from an offset on."""
        def seen():
            match = re.search(pattern, self.log()[after:])
            assert match or self.alive(), f"ended: {self.log()[-3000:]}"
            return match
        return wait_for(f"log line {pattern!r}", seen, seconds)

    def status(self):
        done = self.call("status", "--json", *self.positional())
        assert done.stdout, f"status: exit {done.returncode}: {done.stderr}"
        return json.loads(done.stdout)

    def slot(self):
        """(name, confirmed position, read by somebody) of this database's one slot, or None."""
        rows = self.database.server.rows(
            "postgres", "select slot_name, confirmed_flush_lsn::text, active"
            " from pg_replication_slots"
            " where database = %s and slot_type = 'logical' and not temporary",
            [self.database.name])
        return rows[0] if rows else None

    def sender(self):
        """Process id of the walsender that serves the slot, or None."""
        rows = self.database.rows("select active_pid from pg_replication_slots where active"
                                  " and database = current_database() and not temporary")
        return rows[0][0] if rows else None

    def wait_caught_up(self, seconds=120):
        """Until all that is committed in the source now is committed in the lake.

        The witness is the slot: what walberg acknowledged, it promised to have committed. And it
        reads the slot: an earlier process may have acknowledged as much."""
        target = lsn(self.database.server.position())

        def caught_up():
            assert self.alive(), f"ended: {self.log()[-3000:]}"
            slot = self.slot()
            if slot and slot[1] and lsn(slot[1]) >= target and slot[2]:
                return True
            # Something beyond the target must pass by before an idle slot is told of it.
            with self.database.connect() as conn:
                conn.execute("select pg_logical_emit_message(true, 'walberg-test', '')")
            return False
        wait_for(f"acknowledged {target:X}", caught_up, seconds, pause=0.2)
        return self

    def wait_streaming(self, seconds=60):
        """Until the initial copy is over, too: a slot that was only just made looks caught up."""
        wait_for("streaming", lambda: self.status()["state"] == "streaming", seconds, pause=0.1)
        return self.wait_caught_up()

    # --- SQL -------------------------------------------------------------------------------

    def query(self, sql, seconds=30):
        """Rows through the Postgres protocol, by a client library that knows nothing of us. A table
        whose copy is not complete is waited for."""
        wait_for("query server", lambda: self.try_connect() is not None, seconds)
        with self.try_connect() as conn:
            return wait_for("complete tables", lambda: self.ask(conn, sql), seconds)[0]

    @staticmethod
    def ask(conn, sql):
        try:
            return (conn.execute(sql).fetchall(),)
        except psycopg.errors.ObjectNotInPrerequisiteState:
            return None

    def try_connect(self):
        try:
            return psycopg.connect(host="127.0.0.1", port=self.query_port, user="test",
                                   dbname=self.database.name, autocommit=True, connect_timeout=5)
        except psycopg.OperationalError:
            return None

    def resident_bytes(self):
        """Peak memory of the process itself (not of its query child)."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        raise RuntimeError("no VmHWM")


def pause(random, low, high):
    time.sleep(low + (high - low) * random.random())
