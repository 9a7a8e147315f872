"""bench - one table of measurements, each beside a baseline run on this machine a moment ago.

    copy      initial copy of a 29-column table, beside psql's COPY ... TO STDOUT to /dev/null
    stream    inserted wide rows, beside pg_recvlogical of the same WAL to /dev/null
    updates   committing 10,000 random updates in a table of 10 M rows, beside 1 M rows
    memory    peak resident memory: streaming, copying, one transaction of 5 M rows
    wide      peak resident memory with values of 100 kB to 100 MB that nothing compresses
    query     SQL through the Postgres port, beside DuckDB's iceberg_scan of the same files
    latency   commit to visible at 1,000 rows a second and commit.interval = 1s
    recovery  from SIGKILL with 1 M changes behind, beside the stream's own time for as many
    restart   of a pipeline with 100 tables, until it streams
    commits   time of the 10,000th commit of a table, beside the 100th
    tiny      a million transactions of one row: within a minute

Absolute numbers belong to the machine; the ratios and bounds are what is held to. ONLY=copy,query
chooses, SCALE=0.1 makes the tables smaller.
"""
import base64
import datetime
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from lib.env import wait_for
from lib.lake import Lake
from lib.postgres import Database, Postgres
from lib.readers import duckdb_connection
from lib.storage import Storage
from lib.walberg import Walberg, environment

SCALE = float(os.environ.get("SCALE") or 1)
MB = 1024 * 1024

WIDE = """create table {name} (
    id bigint primary key, vendor int, pickup timestamptz, dropoff timestamptz, passengers smallint,
    distance double precision, rate int, flag boolean, pu_zone int, do_zone int, payment text,
    fare numeric(10,2), extra numeric(10,2), tax numeric(10,2), tip numeric(10,2),
    tolls numeric(10,2), surcharge numeric(10,2), total numeric(10,2), lat1 double precision,
    lon1 double precision, lat2 double precision, lon2 double precision, speed double precision,
    heading double precision, driver text, plate text, note text, day date, session uuid)"""
WIDE_ROWS = """insert into {name}
select n, n % 3, timestamptz '2026-01-01' + n * interval '7 s',
       timestamptz '2026-01-01' + n * interval '7 s' + n % 3600 * interval '1 s', n % 6,
       sqrt(n), n % 7, n % 50 = 0, n % 265, n * 7 % 265,
       (array['card', 'cash', 'none'])[1 + n % 3],
       n % 10000 / 100.0, n % 300 / 100.0, 0.5, n % 2000 / 100.0, 0, 2.5, n % 20000 / 100.0,
       40 + sin(n), -73 + cos(n), 40 + cos(n), -73 + sin(n), ln(n), sin(n * 2),
       'driver ' || n % 9999,
       md5((n % 5000)::text), case when n % 20 = 0 then 'note of ' || n end,
       date '2026-01-01' + n % 365, md5(n::text)::uuid
  from generate_series({first}, {last}) n"""


def rows_of(count):
    return max(1000, int(count * SCALE))


class Line:
    """One line of the result: measured beside a baseline, held to a target."""

    def __init__(self, name, measured, baseline, ratio, target):
        self.cells = [name, measured, baseline, f"{ratio:.2f}", f"<= {target:g}"]
        self.good = ratio <= target

    def __str__(self):
        mark = "ok" if self.good else "OVER"
        return "{:<44} {:>20} {:>24} {:>7} {:>8}  {}".format(*self.cells, mark)


class Bench:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="walberg-bench-"))
        self.postgres = Postgres(15, {"shared_buffers": "512MB", "max_wal_size": "8GB",
                                      "checkpoint_timeout": "1h", "autovacuum": "off",
                                      "wal_sender_timeout": "10min"})
        self.lines = []
        self.count = 0

    def close(self):
        self.postgres.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def pipeline(self, **settings):
        """A fresh database, lake and program."""
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        database = Database(self.postgres, f"bench{self.count}")
        program = Walberg(database, Storage(folder / "lake"), folder,
                          **{"commit__interval": "10s", **settings})
        return database, program

    def add(self, *cells):
        line = Line(*cells)
        self.lines.append(line)
        print(line, flush=True)

    # --- measuring -------------------------------------------------------------------------

    def run_once(self, program):
        """run --once: (seconds, peak resident bytes)."""
        with open(program.log_path, "ab") as log:
            began = time.monotonic()
            process = subprocess.Popen(
                program.command("run", "--once", *program.positional()), stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, env=environment(), cwd=program.folder)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - began
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"bench: walberg ended with {process.returncode}\n{program.log()[-2000:]}")
        return seconds, usage.ru_maxrss * 1024

    def trips(self, database, count, name="trips"):
        database.execute(WIDE.format(name=name),
                         WIDE_ROWS.format(name=name, first=1, last=count),
                         f"vacuum analyze {name}")

    # --- the measurements ------------------------------------------------------------------

    def copy(self):
        rows = rows_of(2_000_000)
        database, program = self.pipeline()
        self.trips(database, rows)
        baseline = min(self.copy_to_nothing(database) for _ in range(3))
        seconds, peak = self.run_once(program)
        self.add(f"copy: {rows:,} rows of 29 columns", f"{seconds:.1f} s, {rows / seconds:,.0f}/s",
                 f"COPY {baseline:.1f} s", seconds / baseline, 1.5)
        self.add("memory: copying", f"{peak / MB:.0f} MB", "512 MB", peak / MB / 512, 1)
        self.drop(database)

    def copy_to_nothing(self, database):
        began = time.monotonic()
        subprocess.run(["psql", "-X", "-q", database.uri, "-c", "copy trips to stdout"],
                       stdout=subprocess.DEVNULL, check=True)
        return time.monotonic() - began

    def stream(self):
        rows = rows_of(1_000_000)
        database, program = self.pipeline()
        self.trips(database, 1000)
        self.run_once(program)
        slot = program.slot()[0]
        database.execute("select pg_create_logical_replication_slot('baseline', 'pgoutput')")
        for first in range(1001, rows + 1001, 10_000):
            database.execute(WIDE_ROWS.format(name="trips", first=first,
                                              last=min(first + 9_999, rows + 1000)))
        end = self.postgres.position()
        database.execute("select pg_logical_emit_message(true, 'bench', '')")
        publication = database.rows("select pubname from pg_publication")[0][0]
        began = time.monotonic()
        subprocess.run([self.postgres.home / "bin" / "pg_recvlogical", "-d", database.uri, "-S",
                        "baseline", "--start", "-f", "/dev/null", "--endpos", end, "-o",
                        "proto_version=1", "-o", f"publication_names={publication}"], check=True)
        baseline = time.monotonic() - began
        seconds, peak = self.run_once(program)
        assert slot == program.slot()[0]
        self.add(f"stream: {rows:,} inserted rows of 29 columns",
                 f"{seconds:.1f} s, {rows / seconds:,.0f}/s", f"pg_recvlogical {baseline:.1f} s",
                 seconds / baseline, 1.25)
        self.add("memory: streaming", f"{peak / MB:.0f} MB", "256 MB", peak / MB / 256, 1)
        self.drop(database)

    def updates(self):
        took = {}
        for rows in (rows_of(1_000_000), rows_of(10_000_000)):
            database, program = self.pipeline()
            database.execute("create table t (id bigint primary key, v int, name text)",
                             f"insert into t select n, 0, 'name ' || n"
                             f" from generate_series(1, {rows}) n")
            self.run_once(program)
            program.settings["commit.interval"] = "100ms"
            program.start()
            program.wait_streaming()
            took[rows] = min(self.one_commit(database, program, rows) for _ in range(5))
            program.stop()
            self.drop(database)
        small, large = took.values()
        self.add(f"updates: 10,000 random in {max(took):,} rows", f"{large:.0f} ms",
                 f"{min(took):,} rows {small:.0f} ms", large / small, 1.5)

    def one_commit(self, database, program, rows):
        """Milliseconds from the source's commit until the lake has it: sent, decoded, found in the
        index, written and committed; 100 ms of them are the interval."""
        dice = random.Random(rows)
        with database.connect() as conn, conn.cursor() as cursor:
            cursor.execute("create temp table chosen (id bigint)")
            with cursor.copy("copy chosen from stdin") as copy:
                for number in dice.sample(range(1, rows + 1), min(10_000, rows)):
                    copy.write_row([number])
            before = len(program.log())
            cursor.execute("update t set v = v + 1 from chosen where chosen.id = t.id")
        began = datetime.datetime.now(datetime.timezone.utc)
        for _ in range(600):
            found = re.findall(r"(\S+) info committed table=public\.t ", program.log()[before:])
            if found:
                ended = datetime.datetime.fromisoformat(found[-1].replace("Z", "+00:00"))
                return (ended - began).total_seconds() * 1000
            time.sleep(0.1)
        sys.exit("bench: no line 'committed table=public.t' in the log within a minute")

    def memory(self):
        rows = rows_of(5_000_000)
        database, program = self.pipeline()
        database.execute("create table t (id bigint primary key, v int, name text)")
        self.run_once(program)
        database.execute("insert into t select n, 0, md5(n::text)"
                         f" from generate_series(1, {rows}) n")
        seconds, peak = self.run_once(program)
        self.add(f"memory: one transaction of {rows:,} rows",
                 f"{peak / MB:.0f} MB, {seconds:.0f} s", "512 MB", peak / MB / 512, 1)
        self.drop(database)

    def wide(self):
        for count, size in ((4000, 100_000), (400, 1_000_000), (40, 10_000_000), (1, 100_000_000)):
            count = max(1, int(count * SCALE))
            name = f"{count:,} values of {size // 1000:,} kB"
            # One value takes a few copies of itself, whatever the budget.
            extra = max(0, 4 * size / MB + 150 - 512) if size > 50 * MB else 0
            database, program = self.pipeline()
            self.big_values(database, "t", 0, size)
            self.run_once(program)
            self.big_values(database, "t", count, size)
            self.hold(f"memory: streaming {name}", program, 256 if not extra else 512 + extra)
            database.execute("update t set v = v + 1")
            self.hold("memory: updates that leave them alone", program,
                      256 if not extra else 512 + extra)
            self.drop(database)
            if count > 1:
                database, program = self.pipeline()
                for number in range(4):
                    self.big_values(database, f"t{number}", count, size)
                self.hold(f"memory: copying four times {name}", program, 512)
                self.drop(database)

    def hold(self, name, program, limit):
        seconds, peak = self.run_once(program)
        self.add(name, f"{peak / MB:.0f} MB, {seconds:.0f} s", f"{limit:.0f} MB", peak / MB / limit,
                 1)

    @staticmethod
    def big_values(database, table, count, size):
        """One transaction, of random text: base64, which nobody makes much smaller."""
        with database.connect() as conn, conn.transaction(), conn.cursor() as cursor:
            cursor.execute(f"create table if not exists {table}"
                           " (id bigint primary key, v int, body text)")
            cursor.execute(f"alter table {table} alter body set storage external")
            with cursor.copy(f"copy {table} from stdin") as copy:
                for number in range(count):
                    body = base64.b64encode(os.urandom(size * 3 // 4)).decode()
                    copy.write_row([number, 0, body])

    def query(self):
        rows = rows_of(2_000_000)
        database, program = self.pipeline()
        self.trips(database, rows)
        self.run_once(program)
        database.execute("delete from trips where id % 100 = 7")
        self.run_once(program)
        program.start()
        program.wait_caught_up()
        location = Lake(program.storage).table("trips").uri
        questions = {
            "query: full scan, 1 % of rows deleted":
                "select payment, count(*), sum(total), avg(distance) from {t} group by payment",
            "query: one row by its key": f"select * from {{t}} where id = {rows // 2}",
        }
        with duckdb_connection(None) as duck:
            for name, sql in questions.items():
                theirs = self.best(lambda: duck.execute(
                    sql.format(t=f"iceberg_scan('{location}')")).fetchall())
                with program.try_connect() as conn:
                    ours = self.best(lambda: conn.execute(sql.format(t="trips")).fetchall())
                # Five milliseconds more are the protocol's and the planner's, whatever the table.
                self.add(name, f"{ours * 1000:.1f} ms", f"DuckDB {theirs * 1000:.1f} ms + 5 ms",
                         ours / (theirs + 0.005), 1.5)
        program.stop()
        self.drop(database)

    @staticmethod
    def best(ask, times=7):
        seconds = []
        for _ in range(times):
            began = time.monotonic()
            ask()
            seconds.append(time.monotonic() - began)
        return min(seconds)

    def latency(self):
        database, program = self.pipeline(commit__interval="1s")
        database.execute("create table t (id bigint primary key, at timestamptz)")
        program.start()
        program.query("select count(*) from t")  # when its copy is complete
        committed, delays = {}, []
        stop = threading.Event()
        writer = threading.Thread(target=self.write_steadily, args=(database, committed, stop))
        writer.start()
        with program.try_connect() as conn:
            seen, end = 0, time.monotonic() + max(10, 40 * SCALE)
            while time.monotonic() < end:
                top = conn.execute("select coalesce(max(id), 0) from t").fetchone()[0]
                now = time.monotonic()
                delays += [now - committed[n] for n in range(seen + 1, top + 1) if n in committed]
                seen = top
                time.sleep(0.02)
        stop.set()
        writer.join()
        program.stop()
        cuts = statistics.quantiles(delays, n=100)
        self.add("latency: commit to visible, p50", f"{cuts[49]:.2f} s", "1.5 s", cuts[49] / 1.5, 1)
        self.add("latency: commit to visible, p99", f"{cuts[98]:.2f} s", "3 s", cuts[98] / 3, 1)
        self.drop(database)

    @staticmethod
    def write_steadily(database, committed, stop):
        """1,000 rows a second, ten in a transaction."""
        number, due = 0, time.monotonic()
        with database.connect() as conn:
            while not stop.is_set():
                conn.execute("insert into t select n, now() from generate_series(%s::bigint, %s) n",
                             [number + 1, number + 10])
                now = time.monotonic()
                committed.update((n, now) for n in range(number + 1, number + 11))
                number += 10
                due += 0.01
                time.sleep(max(0, due - now))

    def recovery(self):
        """A program that was stopped goes on (SIGCONT), and one that was killed begins again."""
        rows = rows_of(1_000_000)
        database, program = self.pipeline(commit__interval="1s")
        self.trips(database, 1000)
        program.start()
        program.wait_caught_up()
        program.process.send_signal(signal.SIGSTOP)
        self.inserts(database, 1001, rows)
        began = time.monotonic()
        program.process.send_signal(signal.SIGCONT)
        program.wait_caught_up(600)
        baseline = time.monotonic() - began
        self.inserts(database, 1001 + rows, rows // 10)
        program.kill()                            # in the middle of these
        self.inserts(database, 1001 + rows + rows // 10, rows - rows // 10)
        began = time.monotonic()
        program.start()
        program.wait_caught_up(600)
        seconds = time.monotonic() - began
        self.add(f"recovery: SIGKILL, {rows:,} changes behind", f"{seconds:.1f} s",
                 f"stream {baseline:.1f} s x 1.2 + 2 s", seconds / (1.2 * baseline + 2), 1)
        program.stop()
        self.drop(database)

    @staticmethod
    def inserts(database, first, count):
        for n in range(first, first + count, 10_000):
            database.execute(WIDE_ROWS.format(name="trips", first=n,
                                              last=min(n + 9_999, first + count - 1)))

    def restart(self):
        database, program = self.pipeline(commit__interval="1s")
        database.execute(*(f"create table t{n} (id bigint primary key, v text)"
                           for n in range(100)),
                         *(f"insert into t{n} select n, md5(n::text) from generate_series(1, 100) n"
                           for n in range(100)))
        program.start()
        program.wait_caught_up(600)
        program.kill()
        before = len(program.log())
        began = time.monotonic()
        program.start()
        wait_for("streaming", lambda: self.streams(program, before), 60, pause=0.02)
        seconds = time.monotonic() - began
        self.add("restart: 100 tables, to streaming", f"{seconds:.2f} s", "3 s", seconds / 3, 1)
        program.stop()
        self.drop(database)

    @staticmethod
    def streams(program, before):
        """By the log: the status command would take its own time."""
        return program.log()[before:].count(" info streaming ") > 0

    def commits(self):
        """As the log tells it; a commit for each transaction. The metadata's size is shown too."""
        count = max(400, int(10_000 * SCALE))
        database, program = self.pipeline(commit__rows="1")
        database.execute("create table t (id bigint primary key, v int)",
                         "insert into t select n, 0 from generate_series(0, 999) n")
        self.run_once(program)
        with database.connect() as conn:
            for n in range(count + 100):
                conn.execute("update t set v = v + 1 where id = %s", [n % 1000])
        self.run_once(program)
        took = [int(ms) for ms in re.findall(r"committed table=public\.t .*took=(\d+)ms",
                                             program.log())]
        assert len(took) >= count, f"{len(took)} commits"
        early, late = (statistics.fmean(took[at - 50:at + 50]) for at in (100, count))
        size = len(json.dumps(Lake(program.storage).table("t").metadata))
        self.add(f"commits: the {count:,}th ({size / 1024:.0f} kB of metadata)",
                 f"{late:.1f} ms", f"the 100th {early:.1f} ms", late / early, 1.3)
        self.drop(database)

    def tiny(self):
        count = rows_of(1_000_000)
        database, program = self.pipeline()
        database.execute("create table t (id bigint primary key, v int)")
        self.run_once(program)
        with database.connect() as conn:
            conn.execute("set synchronous_commit = off")
            conn.execute(f"do $$ begin for n in 1..{count} loop insert into t values (n, n);"
                         " commit; end loop; end $$")
        seconds, peak = self.run_once(program)
        limit = 60 * count / 1_000_000
        self.add(f"tiny: {count:,} transactions of one row", f"{seconds:.1f} s, {peak / MB:.0f} MB",
                 f"{limit:.0f} s", seconds / limit, 1)
        self.drop(database)

    def drop(self, database):
        self.postgres.drop_database(database.name)
        shutil.rmtree(self.folder / str(self.count), ignore_errors=True)


MEASUREMENTS = ["copy", "stream", "updates", "memory", "wide", "query", "latency", "recovery",
                "restart", "commits", "tiny"]


def main():
    chosen = [name for name in (os.environ.get("ONLY") or "").split(",") if name] or MEASUREMENTS
    unknown = set(chosen) - set(MEASUREMENTS)
    if unknown:
        sys.exit(f"bench: no measurement {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}")
    print("{:<44} {:>20} {:>24} {:>7} {:>8}".format("", "walberg", "baseline", "ratio", "target"))
    bench = Bench()
    try:
        for name in chosen:
            getattr(bench, name)()
    finally:
        bench.close()
    over = [line for line in bench.lines if not line.good]
    print(f"\n{len(bench.lines) - len(over)} of {len(bench.lines)} within their target"
          f" (SCALE={SCALE:g}, {os.cpu_count()} cores)")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
