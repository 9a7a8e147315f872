"""replay - a seed as a script: transactions, and walberg run --once between them; and a script that
fails made small, until a person can paste it into an issue.

What a script fails with is a Failure with a kind; a smaller script counts as the same fault when it
fails with the same kind.
"""
import dataclasses
import json
import re
import shutil
import subprocess
import time

import psycopg

from lib.env import FORMAT_VERSION
from lib.lake import Lake
from lib.oracle import compare
from lib.postgres import Database
from lib.storage import Storage
from lib.walberg import Walberg
from lib.workload import Transaction, Workload, server_types

SETTINGS = {"memory": "64MB"}
VERSION = {} if FORMAT_VERSION == 2 else {"sink.iceberg.format_version": FORMAT_VERSION}


class Failure(AssertionError):
    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


@dataclasses.dataclass
class Run:
    """walberg run --once, and all tables compared: by every reader, or by the quickest."""
    full: bool = False


@dataclasses.dataclass
class Script:
    seed: int
    settings: dict
    tables: list                                  # names
    steps: list                                   # of Transaction and Run

    def text(self):
        """As SQL to paste."""
        lines = [f"-- seed {self.seed}; types as of lib/values.PREPARE and lib/shapes.PREPARE"]
        for step in self.steps:
            if isinstance(step, Run):
                sets = " ".join(f"--set {json.dumps(f'{k}={v}', ensure_ascii=False)}"
                                for k, v in {**VERSION, **self.settings}.items())
                lines.append(f"-- walberg run --once {sets} SOURCE WAREHOUSE")
            else:
                lines.append(step.text())
        return "\n".join(lines)


def script_of(server, seed, transactions=80, runs=2, count=6):
    """The script of a seed, for this server's types."""
    database = Database(server, f"script_{seed}")
    try:
        with database.connect() as conn:
            workload = Workload(conn, seed, alters=0.03 if seed % 2 else 0, count=count)
            steps = workload.creates() + workload.fills(20) + [Run()]
            for number in range(runs):
                if workload.alters:
                    steps.append(workload.change_types())
                steps += [workload.next() for _ in range(transactions)]
                while workload.queue:             # a prepared one would hold up the next copy
                    steps.append(workload.next())
                steps.append(Run(full=number == runs - 1))
            return Script(seed, workload.settings, workload.names, steps)
    finally:
        server.drop_database(database.name)


class Replay:
    """Runs scripts, each in a database and a lake of its own."""

    def __init__(self, server, folder, name="replay"):
        self.server = server
        self.folder = folder
        self.name = name
        self.count = 0
        self.failed = self.done = 0               # transactions, of the latest script

    def run(self, script):
        """Raises Failure."""
        self.count += 1
        folder = self.folder / f"{self.name}{self.count}"
        folder.mkdir(parents=True)
        database = Database(self.server, self.name)
        walberg = Walberg(database, Storage(folder / "lake"), folder, **SETTINGS,
                          **script.settings)
        self.failed = self.done = 0
        try:
            with database.connect() as conn:
                conn.execute("set lock_timeout = '2s'")
                conn.prepare_threshold = None
                server_types(conn)
                for step in script.steps:
                    if isinstance(step, Run):
                        self.once(walberg, conn, script.tables, step)
                    else:
                        self.done += 1
                        self.failed += step.run(conn) is not None
        finally:
            self.server.drop_database(self.name)
        shutil.rmtree(folder)                     # kept when it failed

    def once(self, walberg, conn, tables, step):
        for (gid,) in conn.execute("select gid from pg_prepared_xacts"
                                   " where database = current_database()").fetchall():
            conn.execute(f"rollback prepared '{gid}'")
        try:
            done = walberg.call("run", "--once", *walberg.positional(), timeout=120)
        except subprocess.TimeoutExpired:
            raise Failure("run does not end", walberg.log()[-3000:]) from None
        if done.returncode != 0:
            raise Failure(f"exit {done.returncode}: {reason(done.stderr)}", done.stderr[-3000:])
        there = [name for name in tables if exists(conn, name)]
        try:
            if step.full:
                compare(walberg.database, Lake(walberg.storage), there)
            else:
                compare(walberg.database, Lake(walberg.storage), there, ["duckdb"], check=False)
        except AssertionError as error:
            raise Failure(difference(str(error)), str(error)[:3000]) from error


def exists(conn, name):
    return conn.execute("select 1 from pg_class c join pg_namespace n on n.oid = relnamespace"
                        " where nspname = %s and relname = %s", name).fetchone()


def reason(stderr):
    """The last complaint without what is different in each run."""
    lines = [line for line in stderr.splitlines() if "hint: " not in line and line.strip()]
    bad = [line for line in lines if re.search(r" (error|warn) |^walberg:", line)] or lines
    return re.sub(r"[0-9A-Fa-f]*[0-9]+[0-9A-Fa-f/.]*|\"[^\"]*\"|public\.\S+", "#",
                  " ".join(bad[-1:]))[-120:]


def difference(complaints):
    for word in ("cannot read it", "not in the lake, which has", "not in the lake's schema",
                 ": lake ", "columns [", "twice in the lake", "not in the lake",
                 "not in the source", "too few", "too many", "source "):
        if word in complaints:
            return f"differs: {word}"
    return "differs: metadata"


# --- smaller -----------------------------------------------------------------------------------


class Smaller:
    """Leaves out tables, then transactions, then statements, then columns, while it still fails."""

    def __init__(self, replay, script, failure, seconds):
        self.replay = replay
        self.script = script
        self.kind = failure.kind
        self.says = str(failure)
        self.end = time.monotonic() + seconds

    def fails(self, script):
        try:
            self.replay.run(script)
        except Failure as failure:
            return failure.kind == self.kind
        except psycopg.Error:
            return False
        return False

    def accept(self, script):
        """Whether the smaller script fails, too: then it is the one to go on from."""
        if time.monotonic() > self.end or not self.fails(script):
            return False
        self.script = script
        return True

    def with_steps(self, steps):
        return dataclasses.replace(self.script, steps=steps)

    def run(self):
        self.cut_end()
        self.drop_tables()
        self.drop_steps()
        self.drop_statements()
        self.drop_columns()
        self.drop_steps()
        self.drop_statements()
        return self.script

    def cut_end(self):
        """Nothing after the run that fails; the last one has a say."""
        runs = [i for i, step in enumerate(self.script.steps) if isinstance(step, Run)]
        for i in runs[:-1]:
            if self.accept(self.with_steps(self.script.steps[:i + 1])):
                return

    def drop_tables(self):
        """All but one at best, else one after the other."""
        names = sorted(self.script.tables, key=lambda name: str(name) not in self.says)
        for name in names:                        # those that the complaint names come first
            if self.accept(self.only({name})):
                return
        for name in names:
            self.accept(self.only(set(self.script.tables) - {name}))

    def only(self, names):
        steps = []
        for step in self.script.steps:
            if isinstance(step, Transaction):
                kept = [s for s in step.statements if not s.tables or set(s.tables) <= names]
                if not any(s.tables for s in kept) and any(s.tables for s in step.statements):
                    continue
                step = Transaction(kept, step.end)
            steps.append(step)
        kept = {key: value for key, value in self.script.settings.items()
                if not key.startswith("tables.")
                or any(key.startswith("tables." + ".".join(name) + ".") for name in names)}
        return dataclasses.replace(self.script, steps=steps, settings=kept,
                                   tables=[n for n in self.script.tables if n in names])

    def drop_steps(self):
        self.halve(lambda: self.script.steps, self.with_steps)

    def drop_statements(self):
        for at in range(len(self.script.steps) - 1, -1, -1):
            if at >= len(self.script.steps) or isinstance(self.script.steps[at], Run):
                continue

            def rebuilt(statements, at=at):
                steps = self.script.steps[:]
                steps[at] = Transaction(statements, steps[at].end)
                return self.with_steps(steps)
            self.halve(lambda at=at: self.script.steps[at].statements, rebuilt)

    def halve(self, items, rebuilt):
        """Leave out halves, quarters, ... single ones, from the end on."""
        size = max(1, len(items()) // 2)
        while size >= 1 and time.monotonic() < self.end:
            at = len(items()) - size
            while at > -size:
                kept = items()[:max(at, 0)] + items()[max(at, 0) + size:]
                if len(kept) < len(items()) and kept:
                    self.accept(rebuilt(kept))
                at -= size
            size //= 2

    def drop_columns(self):
        for step in self.script.steps:
            for statement in getattr(step, "statements", []):
                table = getattr(statement, "table", None)
                for column in [c.name for c in table.others()] if table else []:
                    self.accept(self.without(table.name, column))

    def without(self, table, column):
        steps = []
        for step in self.script.steps:
            if isinstance(step, Transaction):
                kept = [s.without(table, column) for s in step.statements]
                step = Transaction([s for s in kept if s is not None], step.end)
            steps.append(step)
        return self.with_steps(steps)


def check_seed(server, folder, seed, seconds=240, **size):
    """Runs a seed; an AssertionError has the smallest script found within these seconds that fails
    as it does. Returns (transactions, those of them that Postgres refused)."""
    replay = Replay(server, folder, f"seed_{seed}")
    script = script_of(server, seed, **size)
    try:
        replay.run(script)
        return replay.done, replay.failed
    except Failure as failure:
        first = failure
    small = Smaller(replay, script, first, seconds).run()
    try:
        replay.run(small)
        last = first
    except Failure as failure:
        last = failure
    raise AssertionError(f"WALBERG_SEED={seed}: {first.kind}\n{last}\n\n{small.text()}")
