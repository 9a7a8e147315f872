"""demo - what walberg does, shown on a throwaway Postgres in under two minutes.

Every line printed is seen, not promised: numbers come from the servers, the queries are psql's, and
the last word has a comparison of every row by PyIceberg and by DuckDB's iceberg extension.
"""
import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from lib.env import PROGRAM, free_port, kill, wait_for
from lib.lake import Lake
from lib.oracle import Truth, differences
from lib.postgres import Postgres, lsn
from lib.readers import READERS
from lib.storage import Storage

HERE = pathlib.Path(__file__).resolve().parent
TABLES = ["customers", "orders", "order_items"]
TERMINAL = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
QUESTIONS = [
    "select count(*) from orders",
    "select status, count(*), sum(total) from orders group by status order by count(*) desc",
    "select product, sum(quantity * price) as revenue from order_items"
    " group by product order by revenue desc limit 3",
]


def bold(text):
    return f"\033[1m{text}\033[0m" if TERMINAL else text


def chapter(text):
    print(f"\n{bold(text)}", flush=True)


def say(text):
    print("  " + text, flush=True)


def shown(command):
    print("  $ " + " ".join(shlex.quote(str(part)) for part in command), flush=True)


class Demo:
    def __init__(self, keep):
        self.keep = keep
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="walberg-demo-"))
        self.lake = self.folder / "lake"
        self.port = free_port()
        self.log = open(self.folder / "walberg.log", "ab")
        self.postgres = None
        self.load = None
        self.walberg = None

    # --- the shop --------------------------------------------------------------------------

    def open_shop(self):
        chapter("A Postgres with a shop, and customers who do not stop")
        self.postgres = Postgres(15)
        self.uri = self.postgres.new_database("shop")
        with self.postgres.connect("shop") as conn:
            conn.execute((HERE / "shop.sql").read_text())
            for table in TABLES:
                rows, size = conn.execute(f"select count(*), pg_size_pretty(pg_total_relation_size("
                                          f"'{table}')) from {table}").fetchone()
                say(f"{table:<12} {rows:>8,} rows  {size}")
        # Not of our terminal: ctrl-C ends the demo, and the demo ends the rest in order.
        self.load = subprocess.Popen([sys.executable, HERE / "load.py", self.uri],
                                     stdout=self.log, stderr=self.log, start_new_session=True)
        say(f"a load of about 150 transactions a second runs on {self.uri}")

    # --- walberg ---------------------------------------------------------------------------

    def environment(self):
        return {k: v for k, v in os.environ.items() if not k.startswith(("WALBERG", "PG", "AWS_"))}

    def command(self, name, *args):
        return [str(PROGRAM), name, "-s", f"state={self.folder / 'state'}", *args]

    def start(self):
        command = self.command("run", "-s", "commit.interval=2s", "-s",
                               f"query.listen=127.0.0.1:{self.port}", self.uri, str(self.lake))
        shown(["walberg", *command[1:]])
        self.walberg = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env=self.environment(),
                                        start_new_session=True)

    def status(self):
        done = subprocess.run(self.command("status", "--json", self.uri, str(self.lake)),
                              capture_output=True, text=True, env=self.environment(), check=False)
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError:
            return {"state": "starting", "tables": []}

    def watch_copy(self):
        """Until every table streams. On a terminal a line that moves, else one line a change."""
        last = None
        while True:
            assert self.walberg.poll() is None, self.last_words()
            status = self.status()
            tables = {t["name"].split(".")[-1]: t for t in status["tables"]}
            line = "   ".join(f"{name} {tables[name].get('copied_fraction') or 0:.0%}"
                              for name in TABLES if name in tables)
            if line and TERMINAL:
                print(f"\r  copying: {line:<70}", end="", flush=True)
            elif line and line != last:
                say(f"copying: {line}")
            last = line
            if status["state"] == "streaming" and len(tables) >= len(TABLES):
                break
            time.sleep(0.3)
        if TERMINAL:
            print()

    def last_words(self):
        log = (self.folder / "walberg.log").read_text(errors="replace")
        return "walberg ended:\n" + log[-3000:]

    # --- comparing -------------------------------------------------------------------------

    def psql(self, target, question):
        done = subprocess.run(["psql", "-X", "-A", "-t", "-F", "  ", target, "-c", question],
                              capture_output=True, text=True, check=False, timeout=60)
        return done.stdout.strip().splitlines() if done.returncode == 0 else [done.stderr.strip()]

    @property
    def lake_uri(self):
        return f"postgres://{os.environ.get('USER', 'me')}@127.0.0.1:{self.port}/shop"

    def ask_both(self, questions):
        for question in questions:
            print(f"\n  {bold(question)}")
            source = self.psql(self.uri, question)
            lake = self.psql(self.lake_uri, question)
            width = max(len(line) for line in source + ["Postgres"]) + 4
            print(f"    {'Postgres':<{width}}walberg")
            for i in range(max(len(source), len(lake))):
                left = source[i] if i < len(source) else ""
                print(f"    {left:<{width}}{lake[i] if i < len(lake) else ''}")
        sys.stdout.flush()

    def wait_caught_up(self):
        target = self.postgres.position()

        def caught_up():
            assert self.walberg.poll() is None, self.last_words()
            rows = self.postgres.rows("postgres", "select confirmed_flush_lsn::text from"
                                      " pg_replication_slots where database = 'shop'")
            self.postgres.execute("shop", "select pg_logical_emit_message(true, 'demo', '')")
            return rows and lsn(rows[0][0]) >= lsn(target)
        wait_for("walberg to catch up", caught_up, 60, pause=0.3)

    def compare(self):
        bad = 0
        found = Lake(Storage(self.lake))
        with self.postgres.connect("shop") as conn:
            truths = {name: Truth(conn, name) for name in TABLES}
        for name, truth in truths.items():
            for reader in ("pyiceberg", "duckdb"):
                began = time.monotonic()
                lines = differences(truth, *READERS[reader](found.table(name)))
                took = time.monotonic() - began
                verdict = "equal" if not lines else "DIFFERENT"
                say(f"{name:<12} {len(truth.rows):>8,} rows   {reader:<10} {verdict}"
                    f"   {took:.1f} s")
                for line in lines:
                    say("    " + line)
                bad += bool(lines)
        return bad

    # --- the story -------------------------------------------------------------------------

    def play(self):
        self.open_shop()
        chapter("walberg beside it: every table into Iceberg, SQL on a port")
        self.start()
        self.watch_copy()
        chapter("The same questions, through psql, while rows change")
        say("walberg commits every two seconds here, and is that much behind")
        time.sleep(4)
        self.ask_both(QUESTIONS)
        chapter("SIGKILL in the middle")
        self.walberg.send_signal(signal.SIGKILL)
        self.walberg.wait()
        say(f"pid {self.walberg.pid} is gone; customers go on for three seconds")
        time.sleep(3)
        self.start()
        wait_for("queries", lambda: self.psql(self.lake_uri, "select 1") == ["1"], 60)
        time.sleep(4)
        self.ask_both(QUESTIONS[:1])
        if self.keep:
            return self.leave_running()
        chapter("The load stops; every row is compared by readers that are not ours")
        kill(self.load, signal.SIGTERM)
        self.wait_caught_up()
        bad = self.compare()
        kill(self.walberg, signal.SIGTERM)
        self.what_next()
        return 1 if bad else 0

    def what_next(self):
        chapter("What to try next")
        say("make demo KEEP=1                        leave it all running, to look around")
        say("walberg check postgres://... ./lake     what would arrive of a database of your own")
        say("walberg run postgres://... ./lake       and off it goes; needs wal_level = logical")
        say("README.md                               the rest, in five minutes")

    def leave_running(self):
        stop = self.folder / "stop"
        pg_ctl = f"{self.postgres.home}/bin/pg_ctl -D {self.postgres.data} -m fast stop"
        user = self.postgres.user
        as_user = (f"setpriv --reuid={user.pw_uid} --regid={user.pw_gid} --clear-groups "
                   if user else "")
        stop.write_text(f"#!/bin/sh\nkill {self.load.pid} {self.walberg.pid}\nsleep 2\ncd /\n"
                        f"{as_user}{pg_ctl}\nrm -rf {self.postgres.folder} {self.folder}\n")
        stop.chmod(0o755)
        chapter("All of it runs on")
        say(f"source   psql {self.uri}")
        say(f"lake     psql {self.lake_uri}")
        say(f"files    {self.lake}")
        say(f"log      {self.folder / 'walberg.log'}")
        say(f"status   {' '.join(self.command('status', self.uri, str(self.lake)))}")
        say(f"the end  {stop}")
        return 0

    def clean_up(self):
        for process in (self.load, self.walberg):
            if process:
                with contextlib.suppress(AssertionError, ProcessLookupError):
                    kill(process)
        if self.postgres:
            with contextlib.suppress(RuntimeError):
                self.postgres.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not PROGRAM.exists():
        sys.exit(f"demo: no {PROGRAM}\nhint: make")
    began = time.monotonic()
    keep = os.environ.get("KEEP") not in (None, "", "0")
    demo = Demo(keep)
    code = 1
    try:
        code = demo.play()
        print(f"\n  {time.monotonic() - began:.0f} seconds")
    except KeyboardInterrupt:
        print()
        code = 130
    except AssertionError as error:
        print(f"\ndemo: {error}", file=sys.stderr)
    finally:
        if not keep or code:
            demo.clean_up()
    return code


if __name__ == "__main__":
    sys.exit(main())
