"""The initial copy, disturbed: connections cut, tables changed, a store away."""
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import time

import psycopg
import pytest
from test_damage import newest
from test_parked import warehouse
from test_thread import query_child

from lib.env import wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.postgres import Database, Postgres
from lib.storage import SeaweedFS, Storage
from lib.walberg import Walberg, environment

# Four ranges of 32 MB, the smallest there are.
WIDE = ("create table {0} (id int primary key, body text)",
        "alter table {0} alter body set storage plain",
        "insert into {0} select n, repeat(md5(n::text), 60) from generate_series(1, 60000) n",
        "vacuum analyze {0}")
WORKERS = "select pid from pg_stat_activity where application_name = 'walberg copy'" \
    " and datname = current_database() and query like 'COPY%'"
COPYING = WORKERS + " and state = 'active'"

CUT = "select pg_terminate_backend(pid) from pg_stat_activity" \
    " where application_name like 'walberg%' and datname = current_database()"


def create(database, *tables):
    for table in tables:
        database.execute(*(sql.format(table) for sql in WIDE))


def copying(database, which=COPYING):
    """The server processes of workers in the middle of a task."""
    return wait_for("a worker", lambda: database.rows(which), 30, pause=0.01)


def snapshots_opened(walberg):
    return walberg.log().count("copying tables=")


class HeldCopy:
    """The workers of one table stand still while this lasts."""

    def __init__(self, database, table):
        self.pids = [pid for (pid,) in wait_for("a worker", lambda: database.rows(
            COPYING + f" and query like 'COPY%\"{table}\"%'"), 30, pause=0.01)]

    def __enter__(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)

    def __exit__(self, *_):
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)


def is_refused(conn, table):
    """With its columns to be looked at. False: the query server has not heard of it yet, or not how
    far it is."""
    try:
        rows = conn.execute(f"select count(*) from {table}").fetchall()
    except psycopg.errors.UndefinedTable:
        return False
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        assert "its copy is not complete yet" in str(error)
        if not re.search("its copy is not complete yet: [0-9]+ %", str(error)):
            return False
        return conn.execute("select column_name from information_schema.columns where table_name"
                            " = %s order by ordinal_position", [table]
                            ).fetchall() == [("id",), ("body",)]
    raise AssertionError(f"it answered {rows}")


def test_queries_refuse_a_table_until_its_copy_is_complete(database, walberg):
    """Not a word of zero rows, whoever asks; those that are complete answer."""
    database.execute("create table small as select n as id from generate_series(1, 10) n",
                     "alter table small add primary key (id)",
                     "create table none (id int primary key)")
    create(database, "t")
    walberg.start(copy__workers=4)
    with HeldCopy(database, "t"):
        assert walberg.query("select count(*) from small") == [(10,)]
        assert walberg.query("select count(*) from none") == [(0,)]
        with walberg.try_connect() as conn:
            wait_for("the refusal", lambda: is_refused(conn, "t"), 20)
        done = walberg.call("sql", walberg.storage.uri, "select count(*) from t")
        assert done.returncode != 0 and "its copy is not complete yet: " in done.stderr
    assert walberg.query("select count(*) from t") == [(60000,)]

    walberg.wait_streaming()
    create(database, "late")
    with HeldCopy(database, "late"):
        with walberg.try_connect() as conn:
            wait_for("the refusal", lambda: is_refused(conn, "late"), 20)
            assert conn.execute("select count(*) from t").fetchall() == [(60000,)]
    assert walberg.query("select count(*) from late") == [(60000,)]


def test_a_transaction_from_before_a_copy_was_complete(database, walberg):
    """It sees the tables as they were when it began: this one not at all."""
    create(database, "t")
    walberg.start(copy__workers=4)
    with HeldCopy(database, "t"):
        wait_for("query server", lambda: walberg.try_connect() is not None)
        conn = walberg.try_connect()
        wait_for("the refusal", lambda: is_refused(conn, "t"), 20)
        conn.execute("begin")
        conn.execute("select count(*) from pg_class")
    assert walberg.query("select count(*) from t") == [(60000,)]
    with pytest.raises(psycopg.errors.Error):
        conn.execute("select count(*) from t")
    conn.execute("rollback")
    assert conn.execute("select count(*) from t").fetchall() == [(60000,)]
    conn.close()


def test_lost_worker_connection_repeats_its_task_only(database, walberg, lake):
    create(database, "t")
    walberg.start(copy__workers=2)
    copying(database)
    database.execute(COPYING.replace("select pid", "select pg_terminate_backend(pid)"))
    walberg.wait_for_log("a part of the copy is repeated")
    database.execute("update t set body = 'new' where id % 1000 = 1")
    walberg.wait_caught_up()
    compare(database, lake, ["t"])
    assert snapshots_opened(walberg) == 1


@contextlib.contextmanager
def held_copy(database, which=COPYING):
    """The workers' servers stand still: not while one has a lock that all others need."""
    pids = [pid for pid, in copying(database, which)]

    def send(number):
        for pid in pids:
            os.kill(pid, number)

    def stand_still():
        send(signal.SIGSTOP)
        try:
            database.connect(connect_timeout=2).close()
            return True
        except psycopg.errors.ConnectionTimeout:
            send(signal.SIGCONT)
            return False

    try:
        wait_for("a moment without locks", stand_still, 60, pause=0.05)
        yield
    finally:
        send(signal.SIGCONT)


def test_the_query_server_is_watched_while_tables_are_copied(database, walberg, lake):
    create(database, "t")
    walberg.start(copy__workers=2)
    with held_copy(database):
        os.kill(query_child(walberg), signal.SIGKILL)
        assert walberg.query("select 1", 20) == [(1,)]
    walberg.wait_streaming()
    compare(database, lake, ["t"])


def test_the_query_server_is_watched_while_the_source_is_away(tmp_path):
    server = Postgres()
    database = Database(server, "away")
    walberg = Walberg(database, Storage(tmp_path / "lake"), tmp_path)
    try:
        database.execute("create table t (id int primary key)", "insert into t values (1)")
        walberg.start()
        walberg.wait_streaming()
        server.stop("immediate")
        walberg.wait_for_log("the stream was interrupted")
        os.kill(query_child(walberg), signal.SIGKILL)
        assert walberg.query("select id from t", 20) == [(1,)]
    finally:
        walberg.kill()
        server.remove()


def resync(walberg, table, said):
    """The command at work; its words go to a file."""
    with open(said, "w", encoding="utf-8") as out:
        return subprocess.Popen(walberg.command("resync", *walberg.positional(), table), stderr=out)


def test_resync_is_heard_while_others_are_copied(database, walberg, lake):
    said = walberg.folder / "said"
    database.execute("create table small (id int primary key)", "insert into small values (1)")
    walberg.once()
    create(database, "t")
    walberg.start(copy__workers=2)
    with held_copy(database):
        asked = resync(walberg, "small", said)
        walberg.wait_for_log("to be copied again table=public.small", 20)
    assert asked.wait(60) == 0, said.read_text()
    compare(database, lake, ["t", "small"])


def test_resync_counts_for_a_table_whose_own_copy_is_complete(database, walberg, lake):
    """It does not stream yet, as others are still copied."""
    said = walberg.folder / "said"
    database.execute("create table a (id int primary key)", "insert into a values (1)")
    create(database, "t")
    walberg.start(copy__workers=2)
    walberg.wait_for_log("copied table=public.a")
    with held_copy(database):
        asked = resync(walberg, "a", said)
        walberg.wait_for_log("to be copied again table=public.a", 20)
    assert asked.wait(60) == 0, said.read_text()
    assert walberg.log().count("copied table=public.a ") == 2
    database.execute("insert into a values (2)", "delete from a where id = 1")
    walberg.wait_caught_up()
    compare(database, lake, ["t", "a"])


def test_resync_is_heard_for_a_table_that_is_not_open(database, walberg, lake):
    """Its lake table is damaged; the copy of the others goes on."""
    said = walberg.folder / "said"
    database.execute("create table bad (id int primary key)", "insert into bad values (1)")
    walberg.once()
    newest(warehouse(walberg) / "public/bad/metadata", "v*.metadata.json").write_text("junk")
    create(database, "t")
    walberg.start(copy__workers=2)
    with held_copy(database):
        asked = resync(walberg, "bad", said)
        walberg.wait_for_log("to be copied again table=public.bad", 20)
        time.sleep(1)                             # a few steps of the copy
    assert asked.wait(60) == 1 and "table public.bad is parked" in said.read_text()
    walberg.wait_streaming()
    assert walberg.query("select count(*) from t") == [(60000,)]


def test_resync_says_that_it_waits(database, walberg):
    database.execute("create table t (id int primary key)")
    walberg.start()
    walberg.wait_streaming()
    walberg.process.send_signal(signal.SIGSTOP)
    said = walberg.folder / "said"
    try:
        asked = resync(walberg, "t", said)
        wait_for("words", lambda: said.read_text() == "waiting for walberg run to take it\n", 30)
    finally:
        walberg.process.send_signal(signal.SIGCONT)
    assert asked.wait(60) == 0, said.read_text()


def test_lost_idle_connection_costs_nothing(database, walberg, lake):
    """It does nothing while workers copy, and is asked when they are done."""
    create(database, "t")
    walberg.start(copy__workers=2)
    copying(database)
    database.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname ="
                     " current_database() and application_name = 'walberg'"
                     " and query not like 'CREATE_REPLICATION%'")
    walberg.wait_streaming()
    compare(database, lake, ["t"])
    assert snapshots_opened(walberg) == 1 and walberg.log().count("copied table=") == 1


def test_refused_while_another_worker_is_at_it(database, walberg, lake):
    """The table is parked when the last one has left it: what then loads it anew is alone."""
    role = f"weak_{database.name}"
    database.execute(f"create role {role} login replication", "create publication mine for all"
                     " tables", "create table other (id int primary key)",
                     f"alter default privileges in schema public grant select on tables to {role}",
                     f"grant select on other to {role}")
    walberg.positional = lambda: [database.server.uri(database.name, role), walberg.storage.uri]
    walberg.start(copy__workers=2, source__publication="mine")
    walberg.wait_streaming()
    create(database, "t")
    worker = copying(database)[0][0]
    os.kill(worker, signal.SIGSTOP)
    try:
        database.execute(f"revoke select on t from {role}")
        time.sleep(3)
        database.execute(f"grant select on t to {role}")
        request = walberg.folder / "state" / "resync"
        request.write_text("public.t\n")
        wait_for("the request to be taken", lambda: not request.exists(), 20)
        assert "parked" not in walberg.log()
    finally:
        os.kill(worker, signal.SIGCONT)
    walberg.wait_for_log("parked table=public.t")
    request.write_text("public.t\n")
    database.execute("update t set body = 'new' where id % 1000 = 1")
    wait_for("t", lambda: is_equal(database, lake, ["t", "other"]), 60, pause=1)
    walberg.kill()
    database.execute(f"drop owned by {role}", f"drop role {role}")


def ranges_recorded(walberg):
    state = warehouse(walberg) / f"_walberg/{walberg.database.name}.json"
    tables = json.loads(state.read_text())["tables"]
    return sum(part["tasks"] for table in tables for part in table.get("copy", {}).get("parts", []))


def test_once_has_patience_with_each_interruption(database, walberg, lake):
    """However long the copy lasts in all."""
    create(database, "t")
    limits = "copy.once_ms=3000,copy.range_bytes=500000,copy.record_ms=0,copy.step_ms=3"
    before = 0
    with open(walberg.log_path, "wb") as log:
        walberg.process = subprocess.Popen(
            walberg.command("run", "--once", *walberg.positional(), copy__workers=1), stderr=log,
            env=environment(walberg.storage, WALBERG_LIMITS=limits))
    for number in (1, 2):
        wait_for("a copy", lambda number=number: snapshots_opened(walberg) == number, 30)
        wait_for("progress", lambda before=before: ranges_recorded(walberg) > before, 30,
                 pause=0.01)
        with held_copy(database, WORKERS):
            time.sleep(3.5)
            before = ranges_recorded(walberg)
            database.execute(CUT)
    assert walberg.process.wait(60) == 0
    assert walberg.log().count("the copy was interrupted") == 2
    compare(database, lake, ["t"])


def test_lost_snapshot_begins_again(database, walberg, lake):
    create(database, "t")
    walberg.start(copy__workers=2)
    copying(database)
    database.execute(CUT)
    walberg.wait_for_log("the copy was interrupted")
    database.execute("update t set body = 'new' where id % 1000 = 1")
    walberg.wait_caught_up()
    compare(database, lake, ["t"])


@pytest.mark.parametrize("change", ["truncate b", "vacuum full b",
                                    "alter table b alter id type bigint"])
def test_table_that_is_rewritten_is_copied_again_alone(change, database, walberg, lake):
    """The snapshot would see it empty. Its first task begins when that of the other is done."""
    create(database, "a", "b")
    walberg.start(copy__workers=1)
    copying(database)
    database.execute(change, "insert into b values (-1, 'later')")
    walberg.wait_for_log("a table is copied again.*table=public.b")
    database.execute("delete from a where id % 2 = 0")
    walberg.wait_caught_up()
    compare(database, lake, ["a", "b"])
    assert walberg.log().count("copied table=public.a") == 1


def test_table_that_is_renamed_before_its_turn(database, walberg, lake):
    create(database, "a", "b")
    walberg.start(copy__workers=1)
    copying(database)
    database.execute("alter table b rename to c", "alter table c rename body to text",
                     "create view b as select * from c", "insert into c values (-1, 'later')")
    walberg.wait_for_log("a table is copied again.*table=public.b")
    walberg.wait_caught_up()
    wait_for("b to stream", lambda: all(t["state"] == "streaming"
                                        for t in walberg.status()["tables"]))
    compare(database, lake, ["a", "b"])
    assert walberg.log().count("copied table=public.a") == 1


def test_store_that_is_away_in_the_middle(database, tmp_path):
    server = SeaweedFS()
    walberg = Walberg(database, Storage("s3://away/w", server), tmp_path)
    try:
        create(database, "t")
        walberg.start(copy__workers=2)
        copying(database)
        server.stop()
        walberg.wait_for_log("a part of the copy is repeated", 120)
        time.sleep(5)
        server.start()
        walberg.wait_caught_up()
        compare(database, Lake(walberg.storage), ["t"])
        assert snapshots_opened(walberg) == 1
    finally:
        walberg.kill()
        server.remove()


@pytest.mark.parametrize("rows", [8192, 16384])
def test_last_batch_is_full(rows, database, walberg, lake):
    """The number of rows is a multiple of a batch's, so that an empty one follows."""
    database.execute("create table t (id int primary key)",
                     f"insert into t select n from generate_series(1, {rows}) n")
    walberg.once()
    compare(database, lake, ["t"])


def test_values_of_many_megabytes(database, walberg, lake):
    """Copied, streamed, and left alone by an update; each much wider than the one before."""
    database.execute("create table t (id int primary key, n int, body text)",
                     "alter table t alter body set storage external",
                     "insert into t select n, 0, repeat(md5(n::text), (4 ^ n)::int)"
                     " from generate_series(1, 9) n")
    walberg.once(memory="64MB")
    database.execute("update t set n = 1", "insert into t select n + 10, 0, body || body"
                     " from t n(id2, n, body) where id2 > 5".replace("n + 10", "id2 + 10"))
    walberg.once(memory="64MB")
    database.execute("update t set n = n + 1 where id <> 3")
    walberg.once(memory="64MB")
    compare(database, lake, ["t"])


def test_tables_may_be_more_than_the_soft_limit_of_open_files(database, walberg, lake):
    """walberg raises it to the hard one; tables do not have lock files of their own."""
    tables = [f"t{n}" for n in range(60)]
    for table in tables:
        database.execute(f"create table {table} (id int primary key)",
                         f"insert into {table} values (1)")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        walberg.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    walberg.wait_streaming(120)
    opened = [os.readlink(f"/proc/{walberg.process.pid}/fd/{fd}")
              for fd in os.listdir(f"/proc/{walberg.process.pid}/fd")]
    assert sum("/state/index/" in path for path in opened) <= len(tables), opened
    compare(database, lake, tables[:2])
