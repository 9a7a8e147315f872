"""soak - the command behind tools/soak: a random workload on many tables, random faults
(lib/faults) while it runs, and every table equal by value now and then and at the end.

Beside the tables of lib/workload there is a bank: two tables between which every transaction moves
money, so that their sum is the same in any epoch. One statement on the query port asks for it all
the time. What must not be is a finding; all that happens is a line of JSON in the log.
"""
import argparse
import copy
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time

import psycopg

from lib import faults
from lib.env import wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.postgres import Database, Postgres
from lib.replay import SETTINGS
from lib.s3_peer import Peer
from lib.storage import SeaweedFS, Storage
from lib.walberg import Walberg
from lib.workload import Statement, Workload

ACCOUNTS = 100
BALANCE = 1000
OWN = [("public", name) for name in ("bank_a", "bank_b", "long", "bulk")]
RESIDENT_MAX = 1 << 30                            # far beyond memory=64MB and the libraries
DESCRIPTORS_MAX = 500
SETTLE_SECONDS = 300                              # a busy machine; the load stands still meanwhile
ENDS = {0, 3, -signal.SIGKILL}                    # exit codes that faults explain


class Log:
    """Lines of JSON: seconds since the beginning, what, and its details."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "a", encoding="utf-8")
        self.lock = threading.Lock()
        self.began = time.monotonic()

    def __call__(self, what, **details):
        at = round(time.monotonic() - self.began, 2)
        with self.lock:
            self.file.write(json.dumps({"at": at, "what": what, **details}) + "\n")
            self.file.flush()


class Soak:
    def __init__(self, seed, folder, log):
        self.seed = seed
        self.dice = random.Random(seed)
        self.folder = folder
        self.log = log
        self.findings = []
        self.halt = threading.Event()             # everything ends
        self.quiet = threading.Event()            # the load pauses: a comparison
        self.lock = threading.Lock()              # of the workload
        self.busy = [threading.Lock() for _ in range(4)]
        self.threads = []
        self.counts = {"transactions": 0, "refused": 0, "questions": 0, "unanswered": 0,
                       "faults": 0, "comparisons": 0}
        self.settings_up()

    def settings_up(self):
        self.server = Postgres()
        self.s3 = SeaweedFS() if self.seed % 3 == 0 else None
        self.database = Database(self.server, f"soak_{self.seed}")
        self.proxy = faults.Proxy(self.server.port)
        self.peer = Peer(self.s3) if self.s3 else None
        storage = Storage("s3://lake/w", self.s3) if self.s3 else Storage(self.folder / "lake")
        with self.connect() as conn:
            self.workload = Workload(conn, self.seed, alters=0.01, count=10)
            self.workload.fill(30)
            self.make_own(conn)
        through = copy.copy(self.database)
        through.uri = f"postgres://postgres@127.0.0.1:{self.proxy.port}/{self.database.name}"
        self.walberg = Walberg(through, storage, self.folder, **SETTINGS, **self.workload.settings,
                               commit__interval=self.dice.choice(("100ms", "300ms", "1s")),
                               cache=("100kB", "1MB", "10GB")[self.seed // 3 % 3])
        self.lake = Lake(storage)
        if self.peer:
            self.walberg.storage = Storage(storage.uri, self.peer)
        self.state = self.folder / "state"
        self.copy = self.folder / "state.copy"

    def make_own(self, conn):
        conn.execute("create table bank_a (id int primary key, balance bigint, memo text)")
        conn.execute("create table bank_b (id int primary key, balance bigint)")
        for table in ("bank_a", "bank_b"):
            conn.execute(f"insert into {table} select n, {BALANCE} from generate_series"
                         f"(1, {ACCOUNTS}) n")
        conn.execute("create table long (id int primary key, v text)")
        conn.execute("create table bulk (id int primary key, filler text)")

    def connect(self):
        return self.database.connect(application_name="load")

    @property
    def names(self):
        return self.workload.names + OWN

    def found(self, what, **details):
        self.findings.append(what)
        self.log("finding", finding=what, **details)
        print(f"finding: {what} {json.dumps(details)[:1500]}", flush=True)

    def tail(self):
        return self.walberg.log()[-2000:]

    def aside(self, work):
        """Something that takes its time, beside everything else; errors of it are the soak's."""
        def run():
            try:
                work()
            except Exception as error:
                if not self.halt.is_set():
                    self.found("the soak itself", error=repr(error))
        thread = threading.Thread(target=run, daemon=True)
        self.threads.append(thread)
        thread.start()

    # --- load ------------------------------------------------------------------------------

    def loop(self, number, step):
        """step(conn) again and again, with a new connection when the old one is gone."""
        while not self.halt.is_set():
            try:
                with self.connect() as conn:
                    conn.prepare_threshold = None
                    conn.execute("set lock_timeout = '2s'; set deadlock_timeout = '100ms'")
                    while not self.halt.is_set():
                        with self.busy[number]:
                            if not self.quiet.is_set():
                                step(conn)
                        time.sleep(0.01 if not self.quiet.is_set() else 0.2)
            except (psycopg.Error, OSError):
                self.counts["refused"] += 1
                time.sleep(0.3)

    def random_transaction(self, conn):
        with self.lock:
            first = self.workload.next()
            after, self.workload.queue = self.workload.queue, []
            if any("alter " in s.sql[:6] or s.sql.startswith("do ") for s in first.statements
                   if isinstance(s, Statement)):
                self.alter(conn, first)           # nobody else makes statements meanwhile
                first = None
        for transaction in [first, *after]:
            if transaction is not None:
                self.count(transaction.run(conn))

    def alter(self, conn, transaction):
        try:
            error = transaction.run(conn)
        except psycopg.Error:
            self.workload.forget(self.workload.before)
            raise
        if error:
            self.workload.forget(self.workload.before)
        self.log("alter", sql=[s.sql for s in transaction.statements if "alter " in s.sql],
                 end=transaction.end, error=str(error) if error else None)
        self.count(error)

    def count(self, error):
        self.counts["transactions"] += 1
        self.counts["refused"] += error is not None

    def bank_transaction(self, conn):
        """Money goes from one table to the other; now and then a whole account does."""
        dice = random.Random()
        one, other = dice.randint(1, ACCOUNTS), dice.randint(1, ACCOUNTS)
        amount = dice.randint(1, 9)
        with conn.transaction():
            if dice.random() < 0.1:               # an account goes and comes with all it has
                conn.execute("with gone as (delete from bank_a where id = %s returning balance)"
                             " update bank_b set balance = balance + coalesce((select balance"
                             " from gone), 0) where id = %s", [one, other])
                conn.execute("insert into bank_a values (%s, 0, repeat('x', 3000))", [one])
            else:
                conn.execute("with paid as (update bank_a set balance = balance - %s where id = %s"
                             " returning 1) update bank_b set balance = balance + %s where id = %s"
                             " and exists (select from paid)", [amount, one, amount, other])
        self.count(None)

    def finish_prepared(self):
        """What a connection prepared that is gone: somebody else ends it."""
        for (gid,) in self.database.rows("select gid from pg_prepared_xacts where database ="
                                         " current_database() and prepared < now() - interval"
                                         " '4 s'"):
            end = self.dice.choice(("commit", "rollback"))
            try:
                self.database.execute(f"{end} prepared '{gid}'")
            except psycopg.Error:
                pass                              # its own connection was quicker

    # --- watching --------------------------------------------------------------------------

    def ask(self):
        """The bank's sum, by one statement."""
        question = ("select (select sum(balance) from bank_a) + (select sum(balance) from bank_b),"
                    " (select count(*) from bank_a), (select count(*) from bank_b)")
        wanted = (2 * ACCOUNTS * BALANCE, ACCOUNTS, ACCOUNTS)
        while not self.halt.is_set():
            time.sleep(0.2)
            try:
                port = self.walberg.query_port
                with psycopg.connect(host="127.0.0.1", port=port, user="soak", dbname="soak",
                                     autocommit=True, connect_timeout=5) as conn:
                    row = conn.execute(question).fetchone()
            except (psycopg.Error, OSError):
                self.counts["unanswered"] += 1
                continue
            self.counts["questions"] += 1
            if row[1] is None or tuple(map(int, row)) != wanted:
                self.found("the bank's sum", got=[str(v) for v in row], wanted=wanted)

    def sample(self):
        while not self.halt.is_set():
            time.sleep(2)
            try:
                used = self.used()
            except (OSError, ValueError):
                continue                          # it has just ended
            self.log("sample", **used, **self.counts)
            if used["resident"] > RESIDENT_MAX or used["descriptors"] > DESCRIPTORS_MAX:
                self.found("too much is used", **used)

    def used(self):
        process = f"/proc/{self.walberg.process.pid}"
        with open(f"{process}/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        # what is held comes and goes while it is looked at
        size = sum(path.stat().st_size for path in self.state.rglob("*")
                   if path.parent.name != "cache.holds" and path.is_file())
        return {"resident": resident, "descriptors": len(os.listdir(f"{process}/fd")),
                "state": size}

    def verified(self, done):
        report = json.loads(done.stdout) if done.stdout.strip() else {}
        tables = [t for t in report.get("tables", []) if t.get("differences")]
        self.log("verify", code=done.returncode, says=done.stderr[-300:], tables=tables)
        if tables or done.returncode not in (0, 1, 3):
            self.found("verify", code=done.returncode, tables=tables, says=done.stderr[-1000:])

    # --- comparing -------------------------------------------------------------------------

    def keep_alive(self):
        """Starts it when it has ended; an end that no fault explains is a finding."""
        process = self.walberg.process
        if process is not None and process.poll() is not None:
            if process.returncode not in ENDS:
                self.found("it ended", code=process.returncode, log=self.tail())
            self.log("ended", code=process.returncode)
        if process is None or process.poll() is not None:
            self.walberg.start()
            self.log("started", pid=self.walberg.process.pid)

    def compare(self, readers=("duckdb",)):
        """The load rests, the lake gets there, and everything is equal."""
        self.quiet.set()
        for lock in self.busy:
            lock.acquire()
        try:
            self.rest()
            self.settle()
            count = compare(self.database, self.lake, self.names, readers)
            self.counts["comparisons"] += 1
            self.log("equal", rows=count, readers=list(readers))
        except AssertionError as error:
            self.found("not equal", says=str(error)[:3000], log=self.tail())
        finally:
            for lock in self.busy:
                lock.release()
            self.quiet.clear()

    def rest(self):
        """No transaction is open that could end in the middle of the comparison: neither a prepared
        one nor one that runs aside (faults.long_transaction, large_transaction)."""
        def none():
            self.finish_prepared()
            return not self.database.rows(
                "select from pg_prepared_xacts where database = current_database() union all"
                " select from pg_stat_activity where datname = current_database()"
                " and application_name = 'load' and xact_start is not null")
        wait_for("no open transactions", none, 90)

    def settle(self):
        """Caught up, no table parked, and what only the catalog tells is there, too."""
        def settled():
            self.keep_alive()
            status = self.walberg.status()
            # without a reason it is about to be copied again
            bad = {t["name"]: t["error"] for t in status["tables"]
                   if t["state"] == "parked" and t["error"]}
            if bad:
                self.found("parked", tables=bad)
                self.walberg.call("resync", *self.walberg.positional(), *bad, timeout=120)
            return status["state"] == "streaming" and not bad
        wait_for("streaming", settled, SETTLE_SECONDS, pause=0.5)
        self.walberg.wait_caught_up(SETTLE_SECONDS)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if is_equal(self.database, self.lake, self.names):
                return
            time.sleep(1)

    # --- the whole -------------------------------------------------------------------------

    def start_load(self):
        steps = [self.random_transaction, self.random_transaction, self.bank_transaction,
                 self.bank_transaction]
        for number, step in enumerate(steps):
            self.aside(lambda number=number, step=step: self.loop(number, step))
        self.aside(self.ask)
        self.aside(self.sample)

    def run(self, seconds):
        end = time.monotonic() + seconds
        pause = min(120, seconds / 4)
        try:
            self.keep_alive()
            wait_for("the copy", lambda: self.walberg.status()["state"] == "streaming", 120)
            self.start_load()
            following = time.monotonic() + pause
            while time.monotonic() < end:
                time.sleep(self.dice.uniform(0.2, 5))
                self.fault(faults.choose(self.dice, self.s3))
                if time.monotonic() > following:
                    self.compare()
                    following = time.monotonic() + pause
            self.compare(("duckdb", "pyiceberg", "java"))
        except Exception as error:
            self.found("the soak itself", error=repr(error)[:3000], log=self.tail())
        finally:
            self.close()
        return self.findings

    def fault(self, kind):
        self.log("fault", fault=kind.__name__)
        self.counts["faults"] += 1
        try:
            kind(self)
        except AssertionError as error:           # not within the time
            self.found(f"fault {kind.__name__}", says=str(error)[:1000], log=self.tail())
        except (psycopg.Error, OSError) as error:  # its server is not there
            self.log("refused", error=str(error))
        try:
            self.finish_prepared()
        except psycopg.Error:
            pass
        self.keep_alive()

    def close(self):
        self.halt.set()
        for thread in self.threads:
            thread.join(10)
        try:
            if self.walberg.alive() and self.walberg.stop() != 0:
                self.found("exit code at the end", log=self.tail())
        except AssertionError as error:
            self.found("it does not end", says=str(error), log=self.tail())
        faults.end(self.walberg.process)
        self.log("end", findings=self.findings, **self.counts)
        self.proxy.end()
        if self.s3:
            self.peer.end()
            self.s3.remove()
        self.server.remove()


def main():
    parser = argparse.ArgumentParser(prog="tools/soak")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--minutes", type=float, default=3)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"walberg-soak-{chosen.seed}-"))
    log = Log(folder / "log.jsonl")
    print(f"seed {chosen.seed}, log {log.path}", flush=True)
    soak = Soak(chosen.seed, folder, log)
    findings = soak.run(60 * chosen.minutes)
    print(json.dumps(soak.counts))
    print(f"findings: {findings or 'none'}; everything of this run is in {folder}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
