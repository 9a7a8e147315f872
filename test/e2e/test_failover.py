"""A promoted standby, or a backup, behind the old address. It has the same system identifier and
soon more WAL than the lake has seen; only its timeline's history says if it is the same WAL."""
import shutil
import signal
import time

import pytest
from test_copy_resume import create, finish, interrupt

from lib.env import wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.postgres import Database, Postgres, lsn
from lib.storage import Storage
from lib.walberg import Walberg

TABLE = ("create table t (id int primary key, v text)",
         "insert into t select n, 'old' from generate_series(1, 100) n")


class Pair:
    """A primary with a lake, and its standby."""

    def __init__(self, folder):
        self.primary = Postgres()
        self.database = Database(self.primary, "shop")
        self.database.execute(*TABLE)
        self.storage = Storage(folder / "lake")
        self.lake = Lake(self.storage)
        self.folder = folder
        self.walberg = Walberg(self.database, self.storage, folder)
        self.walberg.once()
        self.standby = self.primary.standby()

    def catch_up(self):
        target = lsn(self.primary.position())
        wait_for("standby", lambda: lsn(self.standby.rows(
            "postgres", "select pg_last_wal_replay_lsn()::text")[0][0]) >= target, 30)

    def fail_over(self, behind=False):
        """The primary is lost and the standby takes its address: also what it has not received."""
        if behind:
            self.standby.stop()
            self.write("lost", 1000)
            self.walberg.once()
        else:
            self.catch_up()
        self.primary.stop()
        if behind:
            self.standby.start()
        self.take_address()
        self.standby.promote()

    def take_address(self):
        self.standby.stop()
        with open(self.standby.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            conf.write(f"port = {self.primary.port}\nprimary_conninfo = ''\n")
        self.standby.port = self.primary.port
        self.standby.start()

    def write(self, value, first, bytes_of_wal=0):
        with self.database.connect() as conn:
            conn.execute("insert into t select n, %s from generate_series(%s::int, %s) n",
                         [value, first, first + 99])
            if bytes_of_wal:  # until it is longer than the other past
                conn.execute("select pg_logical_emit_message(false, 'x', repeat('x', %s))",
                             [bytes_of_wal])
                conn.execute("insert into t values (%s, 'later')", [first + 100])

    def again(self):
        """The standby becomes one again, and is promoted again: one timeline more."""
        self.standby.stop()
        self.standby.follow()
        self.standby.promote()

    def refused(self):
        done = self.walberg.call("run", "--once", *self.walberg.positional())
        assert done.returncode == 1, done.stderr
        assert "hint: " in done.stderr and "Beginning again" in done.stderr
        return done.stderr

    def remove(self):
        self.walberg.kill()
        for server in (self.standby, self.primary):
            if server.running():
                server.stop("immediate")
        for server in (self.standby, self.primary):
            shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
def pair(tmp_path):
    made = Pair(tmp_path)
    yield made
    made.remove()


def test_standby_that_had_everything_goes_on(pair):
    pair.write("before", 1000)
    pair.walberg.once()
    pair.fail_over()
    pair.write("after", 2000)
    pair.walberg.once()
    compare(pair.database, pair.lake, ["t"])
    assert "another timeline was=1 is=2" in pair.walberg.log()


def test_standby_that_lagged_is_refused(pair):
    """Its WAL is longer by now: everything it wrote up to the lake's position would be skipped."""
    pair.fail_over(behind=True)
    pair.write("new", 2000, bytes_of_wal=1000000)
    assert "left the timeline 1" in pair.refused()
    assert "left the timeline 1" in pair.refused()  # the new timeline was not taken on


def test_timelines_in_between_are_looked_through(pair):
    """The lake lags two promotions behind; what counts is where its own timeline was left."""
    pair.fail_over()
    pair.write("second", 2000)
    pair.again()
    pair.write("third", 3000)
    pair.walberg.once()
    compare(pair.database, pair.lake, ["t"])
    assert "was=1 is=3" in pair.walberg.log()


def test_lag_before_two_promotions_is_refused(pair):
    pair.fail_over(behind=True)
    pair.write("second", 2000, bytes_of_wal=1000000)
    pair.again()
    pair.write("third", 3000)
    assert "left the timeline 1" in pair.refused()


def test_backup_that_took_the_same_timeline_is_refused(pair):
    """The lake followed the first promotion. An older copy of the server, which did not hear of
    that, gives its new timeline the same number; and then there is one more."""
    pair.fail_over()
    pair.write("new", 2000)
    pair.walberg.once()
    pair.standby.stop()
    pair.primary.start()  # a little further than where the standby left it
    pair.primary.stop()
    pair.primary.follow()
    pair.primary.promote()
    pair.write("restored", 3000, bytes_of_wal=1000000)
    assert "left the timeline 2" in pair.refused()
    pair.standby, pair.primary = pair.primary, pair.standby
    pair.again()
    pair.write("restored", 4000)
    assert "left the timeline 2" in pair.refused()


@pytest.mark.parametrize("behind", [False, True])
def test_failover_while_walberg_runs(pair, behind):
    pair.walberg.start()
    pair.walberg.wait_caught_up()
    if behind:
        pair.standby.stop()
        pair.write("lost", 1000)
        pair.walberg.wait_caught_up()
        pair.walberg.process.send_signal(signal.SIGSTOP)  # not there while the addresses change
        pair.primary.stop("immediate")
        pair.standby.start()
        pair.take_address()
        pair.standby.promote()
        pair.write("new", 2000, bytes_of_wal=1000000)
        pair.walberg.process.send_signal(signal.SIGCONT)
        assert pair.walberg.process.wait(60) == 1
        assert "left the timeline 1" in pair.walberg.log()
        return
    pair.catch_up()
    pair.fail_over()
    pair.write("new", 2000)
    pair.walberg.wait_caught_up()
    compare(pair.database, pair.lake, ["t"])
    pair.again()  # and once more
    pair.write("newer", 3000)
    pair.walberg.wait_caught_up()
    compare(pair.database, pair.lake, ["t"])


def test_failover_in_the_middle_of_a_copy(pair):
    """Ranges that were copied from rows which the source lost are copied anew."""
    create(pair.database, "big")
    pair.walberg.once()
    pair.catch_up()
    pair.standby.stop()
    pair.database.execute("update big set n = 999 where id % 2 = 0")
    (pair.folder / "state" / "resync").write_text("public.big\n")
    interrupt(pair.walberg)
    pair.primary.stop()
    pair.standby.start()
    pair.take_address()
    pair.standby.promote()
    with pair.database.connect() as conn:
        conn.execute("select pg_logical_emit_message(false, 'x', repeat('x', 30000000))")
        conn.execute("insert into t values (9000, 'later')")
    finish(pair.walberg)
    compare(pair.database, pair.lake, ["big"])


@pytest.fixture
def with_a_standby(tmp_path):
    """walberg is to read the standby, which can be decoded since Postgres 16."""
    primary = Postgres(17)
    database = Database(primary, "shop")
    database.execute(*TABLE, "create publication walberg_shop for table t")
    standby = primary.standby()
    walberg = Walberg(Database(standby, "shop", new=False), Storage(tmp_path / "lake"), tmp_path)
    yield database, walberg, standby
    walberg.kill()
    for server in (standby, primary):
        server.remove()


def test_a_slot_that_the_standby_keeps_in_sync(with_a_standby):
    """Postgres' own way since 17; wished for after the slot was made."""
    database, _, standby = with_a_standby
    primary = database.server
    primary.execute("postgres", "select pg_create_physical_replication_slot('standby', true)")
    with open(standby.data / "postgresql.conf", "a", encoding="utf-8") as conf:
        conf.write("primary_slot_name = standby\nhot_standby_feedback = on\n"
                   "sync_replication_slots = on\nprimary_conninfo = 'host=127.0.0.1 "
                   f"port={primary.port} user=postgres dbname=postgres'\n")
    standby.restart()
    storage = with_a_standby[1].storage
    walberg = Walberg(database, storage, with_a_standby[1].folder)
    walberg.once()
    walberg.settings["source.failover"] = "true"
    walberg.start()
    numbers = iter(range(1000, 2000))

    def kept():
        """It is copied there once the slot has moved a little."""
        database.execute(f"insert into t values ({next(numbers)}, 'before')",
                         "select pg_log_standby_snapshot()")
        return standby.rows("postgres", "select from pg_replication_slots"
                            " where slot_name = 'walberg_shop' and synced and not temporary")

    wait_for("the slot on the standby", kept, 60, pause=1)
    assert walberg.stop() == 0
    last = lsn(primary.position())
    wait_for("the standby", lambda: lsn(standby.rows(
        "postgres", "select pg_last_wal_replay_lsn()::text")[0][0]) >= last, 30)
    primary.stop()
    standby.promote()
    after = Walberg(Database(standby, "shop", new=False), storage, walberg.folder)
    after.settings["source.failover"] = "true"
    after.database.execute("insert into t values (5000, 'after')")
    after.once()
    compare(after.database, Lake(storage), ["t"])
    assert after.slot()[0] == "walberg_shop"


def test_a_server_that_cannot_keep_a_slot_says_so(database, walberg):
    walberg.settings["source.failover"] = "true"
    database.execute("create table t (id int primary key)")
    for command in ("check", "run"):
        done = walberg.call(command, *walberg.positional())
        assert done.returncode == 1
        assert "source.failover: this is Postgres 15, and standbys keep slots since 17" in (
            done.stdout + done.stderr)
    assert not database.rows("select from pg_publication")        # before anything was made
    assert not walberg.storage.list()


def begin_to_stream(with_a_standby):
    database, walberg, _ = with_a_standby

    def has_slot():
        database.execute("select pg_log_standby_snapshot()")  # the slot waits for one
        return walberg.slot() and walberg.status()["state"] == "streaming"

    walberg.start()
    wait_for("slot", has_slot, 60, pause=0.5)


@pytest.fixture
def reading_the_standby(with_a_standby):
    begin_to_stream(with_a_standby)
    return with_a_standby


def test_an_idle_primary_that_a_slot_on_its_standby_waits_for_is_named(with_a_standby):
    database, walberg, _ = with_a_standby
    walberg.extra_environment = {"WALBERG_LIMITS": "waits.look_ms=1000"}
    walberg.start()
    wait_for("named", lambda: "the primary to log" in (walberg.status()["error"] or ""), 60)
    assert "pg_log_standby_snapshot()" in walberg.status()["error"]
    assert walberg.log().count("the copy waits for=") == 1

    def is_streaming():
        database.execute("select pg_log_standby_snapshot()")  # once more for the copy's snapshot
        return walberg.status()["state"] == "streaming"

    wait_for("streaming", is_streaming, 60, pause=0.5)
    assert walberg.status()["error"] is None
    assert walberg.stop() == 0


def test_the_standby_is_promoted_while_the_slot_is_made(with_a_standby):
    """Its first position is of the new timeline."""
    database, walberg, standby = with_a_standby
    walberg.start()
    wait_for("slot", walberg.slot, 60)
    database.server.stop()
    standby.promote()
    walberg.database.execute("insert into t values (1000, 'after')", "checkpoint")
    walberg.wait_streaming()
    assert walberg.stop() == 0
    walberg.database.execute("insert into t values (2000, 'later')")
    walberg.once()
    compare(walberg.database, Lake(walberg.storage), ["t"])


def test_the_standby_that_is_read_is_promoted(reading_the_standby):
    """The stream goes on over it: what it brings is of the new timeline then."""
    database, walberg, standby = reading_the_standby
    lake = Lake(walberg.storage)
    database.execute("insert into t values (1000, 'before')")
    wait_for("rows", lambda: is_equal(database, lake, ["t"]), 60)
    database.server.stop()
    standby.promote()
    for n in range(3):
        walberg.database.execute(f"insert into t values ({2000 + n}, 'after')")
        wait_for("rows", lambda: is_equal(walberg.database, lake, ["t"]), 60)
        # sessions begin again, and ask which past the source has
        walberg.database.execute("select pg_terminate_backend(active_pid)"
                                 " from pg_replication_slots where active_pid is not null")
    assert walberg.stop() == 0
    walberg.database.execute("insert into t values (3000, 'later')")
    walberg.once()
    compare(walberg.database, lake, ["t"])
    assert "another timeline was=1 is=2" in walberg.log()


def test_a_signal_commits_what_the_standby_has_sent(with_a_standby):
    """As with a primary, whose timeline need not be asked."""
    database, walberg, _ = with_a_standby
    walberg.settings["commit.interval"] = "1h"
    begin_to_stream(with_a_standby)
    database.execute("insert into t values (1000, 'last')")
    wait_for("it to be sent", lambda: walberg.database.rows(
        "select 1 from pg_stat_replication r join pg_replication_slots s on s.active_pid = r.pid"
        " where r.sent_lsn >= %s::pg_lsn", [database.server.position()]), 30)
    time.sleep(0.5)                               # and received, which the server does not know
    assert walberg.stop() == 0
    compare(database, Lake(walberg.storage), ["t"])


def test_the_standby_that_is_read_follows_another_one(reading_the_standby):
    """To the timeline of the new primary, and is promoted itself then."""
    database, walberg, standby = reading_the_standby
    lake = Lake(walberg.storage)
    server = database.server
    server.stop()
    server.follow()
    server.promote()
    database.execute("checkpoint", "insert into t values (1000, 'second')")
    wait_for("rows", lambda: is_equal(database, lake, ["t"]), 60)
    server.stop()
    standby.promote()
    walberg.database.execute("insert into t values (2000, 'third')")
    wait_for("rows", lambda: is_equal(walberg.database, lake, ["t"]), 60)
    assert walberg.stop() == 0
    walberg.once()
    compare(walberg.database, lake, ["t"])
    assert "is=3" in walberg.log()
