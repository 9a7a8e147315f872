"""Ends and beginnings: signals, a second process, slots that vanish, sources that change."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import psycopg
import pytest

from lib.env import free_port, wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.postgres import Database, Postgres, drop_slot, lsn
from lib.storage import Storage
from lib.walberg import Walberg, environment

TABLE = ("create table t (id int primary key, v int)",
         "insert into t select n, n from generate_series(1, 100) n")


def one_line_error(done):
    """What a person gets: one line, and a hint."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert any("hint: " in line for line in lines), done.stderr
    assert not any(word in done.stderr for word in ("assert", "backtrace", "Traceback"))
    return done.stderr


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_signal_commits_what_is_whole_and_acknowledges(sig, database, walberg, lake):
    database.execute(*TABLE)
    walberg.start(commit__interval="1h")
    wait_for("copy", lambda: lake.has("t") and lake.table("t").position, 30)
    walberg.wait_streaming()
    database.execute("update t set v = -1 where id <= 10")
    target = lsn(database.server.position())
    wait_for("it to be sent", lambda: database.rows(
        "select 1 from pg_stat_replication where sent_lsn >= %s::pg_lsn"
        " and pid = (select active_pid from pg_replication_slots where slot_name = %s)",
        [f"{target >> 32:X}/{target & 0xFFFFFFFF:X}", f"walberg_{database.name}"]), 30)
    time.sleep(0.2)                               # and received, which the server does not know
    walberg.process.send_signal(sig)
    assert walberg.process.wait(30) == 0
    compare(database, lake, ["t"])
    assert lsn(walberg.slot()[1]) >= target


def test_idle_database_still_acknowledges(database, walberg):
    """WAL of other databases must not pile up behind a table that does not change."""
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_caught_up()
    database.server.execute("postgres", "create table if not exists noise (x text)",
                            "insert into noise select repeat('x', 100)"
                            " from generate_series(1, 20000)")
    target = lsn(database.server.position())
    wait_for("acknowledged", lambda: lsn(walberg.slot()[1]) >= target, 60)
    database.server.execute("postgres", "drop table noise")


def test_second_process_is_refused(database, walberg, lake, tmp_path):
    database.execute(*TABLE, f"alter database {database.name} set wal_sender_timeout = '3s'")
    walberg.start()
    walberg.wait_caught_up()
    # By the lock of the state folder, and with another one, as on another machine, by the slot.
    for state, word in ((tmp_path / "state", "state"), (tmp_path / "other", "slot")):
        done = walberg.call("run", "--once", *walberg.positional(), state=str(state), timeout=60)
        assert done.returncode in (1, 3), done.stderr
        assert word in one_line_error(done)
    database.execute("insert into t values (101, 1)")
    walberg.wait_caught_up()
    compare(database, lake, ["t"])


def test_two_pipelines_never_share_a_table(database, walberg, lake, tmp_path):
    """Other slots and names, one warehouse, both started at once: each table goes to exactly one,
    and the other says to which. That stays so when they are started again, and changes hands only
    when somebody cleans up."""
    shared = [f"t{n}" for n in range(4)]
    for name in [*shared, "mine", "yours"]:
        database.execute(TABLE[0].replace(" t ", f" {name} "), TABLE[1].replace(" t ", f" {name} "))
    both = {name: Walberg(database, walberg.storage, tmp_path, pipeline=name,
                          state=str(tmp_path / name), source__publication=f"walberg_{name}",
                          source__tables=f'["public.t*", "public.{name}"]')
            for name in ("mine", "yours")}

    def owners():
        states = {}
        for name, program in both.items():
            for table in program.status()["tables"]:
                states.setdefault(table["name"].removeprefix("public."), {})[name] = table
        assert set(states) == {*shared, "mine", "yours"}
        for table in shared:
            owner = lake.table(table).metadata["properties"]["cdc.pipeline"]
            other = ({*both} - {owner}).pop()
            assert states[table][owner]["state"] == "streaming", states[table]
            assert states[table][other]["state"] == "parked", states[table]
            assert f"belongs to pipeline {owner}" in states[table][other]["error"], states[table]
        return {table: lake.table(table).metadata["properties"]["cdc.pipeline"]
                for table in [*shared, "mine", "yours"]}

    def settled():
        return all({t["state"] for t in p.status()["tables"]} <= {"streaming", "parked"}
                   and len(p.status()["tables"]) == 5 for p in both.values())

    try:
        found = []
        with database.connect(autocommit=False) as conn:
            conn.execute("select txid_current()")             # both slots wait for its end
            for program in both.values():
                program.start()
            wait_for("both slots", lambda: database.rows(
                "select count(*) from pg_replication_slots where active and confirmed_flush_lsn is"
                " null and database = current_database()") == [(2,)])
        for again in range(2):
            for program in both.values() if again else []:
                program.start()
            wait_for("both", settled, 60)
            found.append(owners())
            database.execute(*(f"update {t} set v = v + 1 where id % 3 = 0" for t in found[0]))
            wait_for("all rows", lambda: is_equal(database, lake, found[0]), 60)
            for program in both.values():
                assert program.stop() == 0
        assert found[0] == found[1]
        compare(database, lake, found[0])
        owner = both[found[0]["t0"]]
        [other] = set(both.values()) - {owner}
        done = other.call("cleanup", "--yes", *other.positional(), "public.t0")
        assert done.returncode == 1 and lake.has("t0"), done.stderr
        owner.call("cleanup", "--yes", *owner.positional(), "public.t0", check=True)
        for program in (other, owner):
            assert program.call("run", "--once", *program.positional()).returncode in (0, 1)
        assert owners() == {**found[0], "t0": other.settings["pipeline"]}
        compare(database, lake, found[0])
    finally:
        for program in both.values():
            program.kill()


def test_missing_slot_is_not_made_again_silently(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    with database.connect() as conn:
        drop_slot(conn, walberg.slot()[0])
    database.execute("insert into t values (101, 1)")
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1
    assert "slot" in one_line_error(done)
    assert walberg.slot() is None


def test_slot_made_by_somebody_else_is_not_trusted(database, walberg, lake):
    """A slot of the right name that starts after the lake's position hides changes."""
    database.execute(*TABLE)
    walberg.once()
    slot = walberg.slot()[0]
    with database.connect() as conn:
        drop_slot(conn, slot)
        conn.execute("insert into t values (101, 1)")
        conn.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1
    assert slot in one_line_error(done)


def test_slot_of_another_pipeline_is_not_dropped(database, walberg, lake, tmp_path):
    """The first one could not make its slot; the second made one of that name and works."""
    database.execute(*TABLE)
    first = Walberg(database, Storage(tmp_path / "first"), tmp_path, state=str(tmp_path / "s1"))
    first.extra_environment = {"WALBERG_FAULT": "crash:1:slot.create"}
    assert first.call("run", "--once", *first.positional()).returncode == 137
    first.extra_environment = {}
    walberg.once()
    database.execute("insert into t values (101, 1)")
    done = first.call("run", "--once", *first.positional())
    assert done.returncode == 1
    assert "another pipeline's" in one_line_error(done)
    done = first.call("cleanup", "--all", "--yes", *first.positional())
    assert done.returncode == 0 and "slot and publication stay" in done.stderr
    walberg.once()
    compare(database, lake, ["t"])
    first.once(source__slot="walberg_first")  # nothing was read under the other name
    compare(database, Lake(first.storage), ["t"])


def test_slot_advanced_by_somebody_else_is_noticed(database, walberg):
    database.execute(*TABLE)
    walberg.once()
    database.execute("insert into t values (101, 1)")
    with database.connect() as conn:
        conn.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())",
                     [walberg.slot()[0]])
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1
    one_line_error(done)


@pytest.fixture
def forgetful():
    """A server that keeps little WAL for slots, and a database on it."""
    server = Postgres(settings={"max_slot_wal_keep_size": "16MB", "min_wal_size": "32MB",
                                "max_wal_size": "32MB"})
    yield Database(server, "forgetful")
    server.remove()


@pytest.mark.parametrize("meanwhile", ["down", "stopped for a while"])
def test_slot_whose_wal_was_removed(meanwhile, forgetful, tmp_path):
    """It says what happened, and which command begins again; after that all is equal."""
    walberg = Walberg(forgetful, Storage(tmp_path / "lake"), tmp_path)
    forgetful.execute(*TABLE)
    walberg.once()
    if meanwhile != "down":
        walberg.start()
        walberg.wait_caught_up()
        walberg.process.send_signal(signal.SIGSTOP)
    forgetful.execute("insert into t values (101, 1)",
                      *["select pg_logical_emit_message(false, 'x', repeat('x', 1000000))"
                        " from generate_series(1, 30)", "select pg_switch_wal()",
                        "checkpoint"] * 3)
    wait_for("the slot to be lost", lambda: forgetful.server.rows(
        "postgres", "select wal_status from pg_replication_slots") == [("lost",)])
    if meanwhile == "down":
        done = walberg.call("run", *walberg.positional(), timeout=60)
        code, said = done.returncode, done.stderr
    else:
        walberg.process.send_signal(signal.SIGCONT)
        code, said = walberg.process.wait(120), walberg.log()
    assert code == 1 and "max_slot_wal_keep_size" in said and "walberg cleanup --all" in said
    assert walberg.call("check", *walberg.positional()).returncode == 1
    walberg.call("cleanup", "--all", "--yes", *walberg.positional(), check=True)
    walberg.once()
    compare(forgetful, Lake(walberg.storage), ["t"])


def test_slot_advanced_before_a_reconnect_is_noticed(database, walberg):
    """Between two sessions of one process, Postgres itself would go on without a word."""
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_caught_up()
    slot = walberg.slot()[0]
    with database.connect() as conn:
        for number in range(1000, 1500):
            conn.execute("insert into t values (%s, 1)", [number])
            conn.execute("select pg_terminate_backend(active_pid) from pg_replication_slots"
                         " where slot_name = %s", [slot])
            try:
                conn.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", [slot])
            except psycopg.errors.ObjectInUse:
                continue
            break
    wait_for("walberg to refuse", lambda: not walberg.alive(), 40)
    assert "was advanced" in walberg.log()


def test_table_that_was_not_published_for_a_while_is_not_trusted(database, walberg, lake):
    """walberg puts it back into its publication by itself; the rows of that time are missing."""
    database.execute(*TABLE)
    walberg.once()
    database.execute(f"alter publication walberg_{database.name} drop table t",
                     "insert into t values (101, 1)")
    for _ in range(2):  # nor later, when it is published again
        done = walberg.call("run", "--once", *walberg.positional())
        assert done.returncode == 1
        status = walberg.status()["tables"][0]
        assert status["state"] == "parked"
        assert "missing" in status["error"]
    warehouse = pathlib.Path(walberg.storage.uri.removeprefix("file://"))
    shutil.rmtree(warehouse / lake.table("t").folder)  # as the README says
    walberg.once()
    compare(database, lake, ["t"])


def test_source_that_went_back_in_time_is_refused(database, walberg):
    """Restored from a backup: its WAL ends before what the lake has. Same system identifier."""
    database.execute(*TABLE)
    walberg.once()
    lake = pathlib.Path(walberg.storage.uri.removeprefix("file://"))
    state = lake / "_walberg" / f"{database.name}.json"
    text = json.loads(state.read_text())
    text["committed"] = text["acknowledged"] = "FFFF/0"
    state.write_text(json.dumps(text))
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1
    assert "WAL ends at" in one_line_error(done)


def test_another_server_under_the_same_name_is_refused(database, walberg, lake, tmp_path):
    database.execute(*TABLE)
    walberg.once()
    other = Postgres()
    try:
        impostor = Database(other, database.name)
        impostor.execute(*TABLE)
        done = Walberg(impostor, walberg.storage, tmp_path).call(
            "run", "--once", impostor.uri, walberg.storage.uri)
        assert done.returncode == 1
        assert "system identifier" in one_line_error(done)
    finally:
        other.remove()


def test_lost_state_costs_time_never_data(database, walberg, lake, tmp_path):
    database.execute(*TABLE)
    walberg.once()
    shutil.rmtree(tmp_path / "state", ignore_errors=True)
    database.execute("update t set v = 0 where id % 2 = 0", "delete from t where id = 9")
    walberg.once()
    compare(database, lake, ["t"])


def test_source_restart_is_ridden_out(database, walberg, lake):
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_caught_up()
    database.server.restart("immediate")
    database.execute("insert into t values (101, 1)")
    walberg.wait_caught_up()
    assert walberg.alive()
    compare(database, lake, ["t"])


def test_stopped_for_longer_than_the_server_waits(database, walberg, lake):
    """The server ends its walsender meanwhile. Who asks for a comparison waits, and is told so."""
    database.execute(*TABLE, f"alter database {database.name} set wal_sender_timeout = '2s'")
    walberg.start().wait_streaming()
    sender = walberg.sender()
    walberg.process.send_signal(signal.SIGSTOP)
    database.execute("update t set v = 0 where id % 2 = 0", "delete from t where id = 7")
    screen, terminal = os.openpty()
    said = {"terminal": terminal, "file": subprocess.PIPE, "quiet": subprocess.PIPE}
    asked = {how: subprocess.Popen(
        walberg.command("verify", *(["-q"] if how == "quiet" else []), *walberg.positional()),
        stderr=stderr, stdout=subprocess.PIPE, text=True, env=environment(walberg.storage))
        for how, stderr in said.items()}
    os.close(terminal)
    time.sleep(8)
    assert walberg.sender() is None and sender is not None
    database.execute("insert into t values (101, 1)")
    seen = os.read(screen, 100000).decode()       # a line of its own, again and again
    assert seen.count("\r\033[Kwaiting for the lake to reach ") > 10 and "\n" not in seen
    time.sleep(3)                                 # elsewhere a line every 10 s
    walberg.process.send_signal(signal.SIGCONT)
    walberg.wait_caught_up()
    compare(database, lake, ["t"])
    for process in asked.values():
        assert process.wait(60) == 0 and "public.t: equal, " in process.stdout.read()
    lines = asked["file"].stderr.read().splitlines()
    assert len(lines) == 1 and lines[0].startswith("waiting for the lake to reach "), lines
    assert asked["quiet"].stderr.read() == ""
    assert os.read(screen, 100000).decode().endswith("\r\033[K")
    os.close(screen)
    assert walberg.stop() == 0


def test_quiet(database, walberg, lake):
    """-q: errors only, wherever it stands."""
    database.execute(*TABLE)
    for args in (["-q"], ["--quiet", *walberg.positional()]):
        done = walberg.call("run", "--once", *(args if len(args) > 1 else
                                               [*args, *walberg.positional()]))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        database.execute("update t set v = v + 1")
    walberg.once()
    compare(database, lake, ["t"])
    done = walberg.call("resync", "-q", *walberg.positional(), "t")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with database.connect() as conn:
        drop_slot(conn, walberg.slot()[0])
    done = walberg.call("run", "-q", "--once", *walberg.positional())
    assert done.returncode == 1 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[-2].startswith("walberg: ") and lines[-1].startswith("hint: "), lines
    assert all(line.startswith(("walberg: ", "hint: ")) or " error " in line for line in lines)


def test_postmaster_killed(tmp_path):
    """As the kernel does when memory runs out: its children see that it is gone, and leave."""
    server = Postgres()
    database = Database(server, "killed")
    walberg = Walberg(database, Storage(tmp_path / "lake"), tmp_path)
    try:
        database.execute(*TABLE)
        walberg.start().wait_streaming()
        with contextlib.suppress(psycopg.OperationalError), database.connect() as conn:
            for number in range(1000, 100000):
                conn.execute("insert into t values (%s, 1)", [number])
                conn.execute("update t set v = v + 1 where id %% 10 = %s", [number % 10])
                if number == 1200:
                    server.kill()
        assert walberg.alive()
        server.start()
        database.execute("insert into t values (101, 1)", "delete from t where id = 1")
        walberg.wait_caught_up()
        assert walberg.alive() and compare(database, Lake(walberg.storage), ["t"]) > 300
        assert walberg.stop() == 0
    finally:
        walberg.kill()
        server.remove()


def test_right_to_replicate_taken_away(database, walberg, lake):
    """Postgres looks at it when a session begins: then a person has to act."""
    server = database.server
    role = f"streams_{database.name}"[:60]
    server.execute("postgres", f"create role {role} login replication")
    try:
        database.execute(*TABLE, f"grant select on t to {role}",
                         f"create publication walberg_{database.name} for table t")
        walberg.positional = lambda: [server.uri(database.name, role), walberg.storage.uri]
        walberg.start().wait_streaming()
        database.execute(f"alter role {role} noreplication", "insert into t values (101, 1)")
        walberg.wait_caught_up()                  # the session goes on
        database.execute(f"select pg_terminate_backend({walberg.sender()})",
                         "update t set v = 0 where id % 2 = 0")
        assert walberg.process.wait(30) == 1
        said = f'role "{role}" lacks the replication right\nhint: ALTER ROLE "{role}" REPLICATION'
        assert said in walberg.log()
        status = walberg.status()
        assert status["state"] == "failed" and said in status["error"]
        assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
        database.execute(f"alter role {role} replication", "delete from t where id = 3")
        walberg.once()
        compare(database, lake, ["t"])
    finally:
        walberg.kill()
        with server.connect(database.name) as conn:
            conn.execute(f"drop owned by {role}")
            conn.execute(f"drop role {role}")


def test_state_folder_of_before_put_back(database, walberg, storage):
    """Copied while it was written, and put back after more commits: it costs time only."""
    walberg.storage = storage
    walberg.settings["commit.interval"] = "100ms"
    database.execute("create table t (id int primary key, v int, big text)",
                     "alter table t alter column big set storage external",
                     "insert into t select n, 0, repeat('b', 3000) from generate_series(1, 300) n")
    walberg.start().wait_streaming()
    folder = walberg.folder / "state"
    backup = walberg.folder / "backup"

    def work(first):
        for number in range(first, first + 30):
            database.execute(f"update t set v = {number} where id % 30 = {number % 30}",
                             f"delete from t where id = {number % 40 + first}",
                             f"insert into t values ({1000 + number}, 0, repeat('n', 3000))")

    worker = threading.Thread(target=work, args=[0])
    worker.start()
    time.sleep(0.3)
    shutil.copytree(folder, backup, ignore=shutil.ignore_patterns("*.sock", "*.holds"))
    worker.join()
    work(100)
    walberg.wait_caught_up()
    assert walberg.stop() == 0
    for _ in range(2):                            # the second time the lake is further on
        shutil.rmtree(folder)
        shutil.copytree(backup, folder)
        database.execute("update t set v = -1 where id % 7 = 0", "delete from t where id = 1005",
                         "insert into t values (1005, 1, 'again')")
        walberg.start().wait_streaming()
        compare(database, Lake(storage), ["t"])
        database.execute("update t set v = v + 1")
        walberg.wait_caught_up()
        assert walberg.stop() == 0
        compare(database, Lake(storage), ["t"])


class HalfOpenProxy:
    """Forwards to a server. cut() resets the client's side of all connections and leaves the
    server's open, as a firewall does that forgot them."""

    def __init__(self, port):
        self.target = port
        self.pairs = []
        self.kept = []
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                pair = client, socket.create_connection(("127.0.0.1", self.target))
                self.pairs.append(pair)
                for source, sink in (pair, pair[::-1]):
                    threading.Thread(target=self.pump, args=(source, sink, pair),
                                     daemon=True).start()

    def pump(self, source, sink, pair):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        if pair not in self.kept:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        self.kept += self.pairs
        for client, _ in self.pairs:
            with contextlib.suppress(OSError):  # it ended before
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.shutdown(socket.SHUT_RD)
            client.close()
        self.pairs = []

    def close(self):
        self.listener.close()
        for pair in self.pairs + self.kept:
            for end in pair:
                end.close()


def test_half_open_connection_is_ridden_out(database, walberg, lake):
    """The server goes on for wal_sender_timeout as if its reader were there."""
    database.execute(*TABLE, f"alter database {database.name} set wal_sender_timeout = '32s'")
    proxy = HalfOpenProxy(database.server.port)
    direct = database.uri
    database.uri = direct.replace(str(database.server.port), str(proxy.port))
    try:
        walberg.start()
        walberg.wait_streaming()
        proxy.cut()
        database.execute("insert into t values (101, 1)")
        walberg.wait_for_log("waiting for the slot", 30)
        walberg.wait_caught_up(100)
        compare(database, lake, ["t"])
    finally:
        walberg.kill()
        database.uri = direct
        proxy.close()


def test_connections_lost_during_the_copy(database, walberg, lake):
    """All of them, also the one that is not copying: the copy needs it to begin again."""
    database.execute(*TABLE)
    walberg.once()
    walberg.call("resync", *walberg.positional(), "t", check=True)
    with database.connect(autocommit=False) as conn:
        conn.execute("lock table t in access exclusive mode")
        walberg.start()
        wait_for("the copy to wait for the lock", lambda: database.rows(
            "select 1 from pg_stat_activity where application_name = 'walberg copy'"
            " and wait_event_type = 'Lock' and datname = current_database()"))
        database.execute("select pg_terminate_backend(pid) from pg_stat_activity"
                         " where application_name like 'walberg%' and datname = current_database()")
        conn.commit()
    walberg.wait_streaming(20)
    compare(database, lake, ["t"])


def test_table_dropped_and_made_again_is_not_mixed(database, walberg, lake):
    database.execute(*TABLE, "create table other (id int primary key)")
    walberg.once()
    database.execute("drop table t", "create table t (id int primary key, v text)",
                     "insert into t values (1, 'another table')", "insert into other values (1)")
    done = walberg.call("run", "--once", *walberg.positional())
    compare(database, lake, ["other"])            # one bad table does not stop the others
    status = walberg.call("status", "--json", *walberg.positional())
    assert "public.t" in done.stderr
    assert status.returncode == 1 and '"parked"' in status.stdout


def test_queries_show_one_moment_when_a_table_is_ahead(database, walberg):
    """The process dies between two tables of an epoch, and the next one cuts its epochs elsewhere:
    no snapshot of the table that is ahead belongs to them, until they have come to where it is."""
    database.execute("create table a (id int primary key, v int)", "insert into a values (1, 0)",
                     "create table b (id int primary key, v int)", "insert into b values (1, 0)")
    walberg.once()
    for number in range(1, 5):
        database.execute(f"begin; update a set v = {number}; update b set v = -{number}; commit")

    def seen():
        done = walberg.call("sql", "--format", "csv", walberg.storage.uri,
                            "select (select v from a) + (select v from b)", check=True)
        return done.stdout.split()[-1]

    walberg.extra_environment = {"WALBERG_FAULT": "crash:2:writer.commit_table"}
    assert walberg.call("run", "--once", *walberg.positional()).returncode == 137
    assert seen() == "0"
    walberg.extra_environment = {"WALBERG_FAULT": "crash:3:writer.committed"}
    assert walberg.call("run", "--once", *walberg.positional(),
                        commit__rows="1").returncode == 137
    walberg.extra_environment = {}
    assert seen() == "0"
    walberg.once()
    assert seen() == "0"
