"""Locks that others hold for long: whoever waits for one must not make the others wait."""
import contextlib
import os
import re
import signal
import threading
import time

import psycopg
import pytest

from lib.env import POSTGRES, wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.postgres import Database, Postgres
from lib.storage import Storage
from lib.walberg import Walberg


@pytest.fixture(scope="module", params=sorted({POSTGRES, 17}))
def server(request):
    """Since 17 the view pg_publication_tables waits for the lock of each table."""
    made = Postgres(request.param)
    yield made
    made.remove()


@pytest.fixture
def scene(server, tmp_path):
    database = Database(server, "locks")
    database.execute("create table free (id int primary key)",
                     "create table held (id int primary key)",
                     "insert into held values (1)")
    program = Walberg(database, Storage(tmp_path / "lake"), tmp_path)
    yield program
    program.kill()
    server.drop_database("locks")


@contextlib.contextmanager
def lock(database, table="held"):
    with database.connect(autocommit=False) as conn:
        conn.execute(f"lock table {table} in access exclusive mode")
        yield
        conn.rollback()


def arrived(scene, table):
    """Without waiting for the slot, which a copy holds meanwhile."""
    lake = Lake(scene.storage)
    wait_for(f"rows of {table}", lambda: is_equal(scene.database, lake, [table]), 20, pause=0.5)


def test_a_locked_table_holds_up_nobody_else(scene):
    """Only the snapshot for the copy of a new one waits, as Postgres has it: for transactions."""
    database = scene.database
    scene.start()
    scene.wait_streaming()
    with lock(database):
        database.execute("create table later (id int primary key)", "insert into later values (1)")
        for n in range(12):  # past a look at the catalogs, which changed
            database.execute(f"insert into free values ({n})")
            time.sleep(1)
        arrived(scene, "free")
    database.execute("insert into held values (2)")
    scene.wait_streaming()
    compare(database, Lake(scene.storage), ["free", "held", "later"], readers=["duckdb"])


@contextlib.contextmanager
def prepared(database):
    """A transaction that outlives its session; yields what walberg calls it, and what ends it."""
    with database.connect(autocommit=False) as conn:
        conn.execute("begin; insert into free values (100); prepare transaction 'it is open'")
    yield ("prepared transaction 'it is open' (role postgres, database locks)",
           "in database locks: COMMIT PREPARED 'it is open', or ROLLBACK PREPARED 'it is open'")
    database.execute("commit prepared 'it is open'")


@contextlib.contextmanager
def opened(database):
    with database.connect(autocommit=False) as conn:
        conn.execute("set application_name to psql; insert into free values (100)")
        pid = conn.info.backend_pid
        yield (f"the transaction of session {pid} (role postgres, database locks, psql)",
               f"end it in its session, or SELECT pg_terminate_backend({pid})")
        conn.commit()


def said(scene):
    return scene.log().count('the copy waits for="the end of')


@pytest.mark.parametrize("open_transaction", [prepared, opened])
def test_a_first_start_says_whose_transaction_it_waits_for(open_transaction, scene):
    """In the log after ten seconds, once; in status as long as it is so."""
    with open_transaction(scene.database) as (who, how):
        began = time.monotonic()
        scene.start()
        scene.wait_for_log("the copy waits", 30)
        assert time.monotonic() - began > 9
        error = wait_for("status", lambda: scene.status()["error"], 10)
        assert error.startswith(f"the copy waits for the end of {who}, 1")
        assert error.endswith(f" s old\nhint: {how}")
        time.sleep(12)
        assert said(scene) == 1
        done = scene.call("verify", *scene.positional(), "--timeout", "3s")
        assert done.stderr.count(who) == 1, done.stderr
        assert int(re.search(r", (\d+) s old", scene.status()["error"])[1]) > 20
    scene.wait_streaming()
    assert scene.status()["error"] is None
    assert said(scene) == 1
    compare(scene.database, Lake(scene.storage), ["free", "held"], readers=["duckdb"])


def test_a_copy_beside_the_stream_says_whose_transaction_it_waits_for(scene):
    database = scene.database
    scene.extra_environment = {"WALBERG_LIMITS": "waits.look_ms=2000"}
    scene.start()
    scene.wait_streaming()
    asked = []
    resync = threading.Thread(target=lambda: asked.append(
        scene.call("resync", *scene.positional(), "free")))
    with prepared(database) as (who, _):
        resync.start()
        database.execute("create table later (id int primary key)")
        scene.wait_for_log("the copy waits", 30)
        assert who in wait_for("status", lambda: scene.status()["error"], 10)
        database.execute("insert into held values (2)")
        arrived(scene, "held")
        done = scene.call("verify", *scene.positional(), "--timeout", "15s")
        assert done.stderr.count(who) == 1, done.stderr
    resync.join(60)
    assert asked[0].returncode == 0 and asked[0].stderr.count(who) == 1, asked[0].stderr
    arrived(scene, "later")                       # which is seen within seconds
    scene.wait_streaming()
    wait_for("no error", lambda: scene.status()["error"] is None, 10)
    compare(database, Lake(scene.storage), ["free", "held", "later"], readers=["duckdb"])


def test_a_lock_that_a_copy_waits_for_is_named(scene):
    """Taken after the snapshot was made, which waits for those from before: the plan meets it,
    which asks for sizes, or when that was quicker the copy of the table."""
    database = scene.database
    scene.extra_environment = {"WALBERG_LIMITS": "waits.look_ms=1000"}
    database.execute("create table big (id int primary key, v text)",
                     "insert into big select n, md5(n::text) from generate_series(1, 300000) n")
    scene.start(copy__workers=1)
    scene.wait_for_log("slot made", 30)
    with lock(database):
        scene.wait_for_log("the copy waits.*which has public.held locked", 30)
        wait_for("status", lambda: "public.held" in (scene.status()["error"] or ""), 10)
    scene.wait_streaming()
    assert scene.status()["error"] is None
    compare(database, Lake(scene.storage), ["free", "held", "big"], readers=["duckdb"])


@contextlib.contextmanager
def read(database, prepare="", program="reader"):
    """A transaction that has read table held."""
    with database.connect(autocommit=False) as conn:
        conn.execute(f"set application_name to '{program}'; select from held{prepare}")
        yield conn.info.backend_pid
        if not prepare:
            conn.rollback()
    if prepare:
        database.execute("rollback prepared 'has read'")


@pytest.mark.parametrize("prepare", ["", "; prepare transaction 'has read'"],
                         ids=["session", "prepared"])
def test_who_holds_up_the_one_that_a_copy_waits_for(prepare, scene):
    """ALTER TABLE waits for a reader, and all other readers wait behind it: the first one counts.
    When that has ended, it is the one that alters."""
    look_who_is_named(scene, prepare, "reader")


def test_a_worker_of_the_copy_itself_is_not_the_one(scene):
    """Whoever ends it ends the copy."""
    look_who_is_named(scene, "", "walberg copy")


def look_who_is_named(scene, prepare, program):
    database = scene.database
    scene.extra_environment = {"WALBERG_LIMITS": "waits.look_ms=1000"}
    seen = threading.Event()

    def alter():
        with database.connect(autocommit=False) as conn:
            conn.execute("set application_name to writer")
            conn.execute("lock table held in access exclusive mode")
            seen.wait(30)
            conn.rollback()

    writer = threading.Thread(target=alter)
    database.execute("create table big (id int primary key, v text)",
                     "insert into big select n, md5(n::text) from generate_series(1, 300000) n")
    scene.start(copy__workers=1)
    scene.wait_for_log("slot made", 30)
    with read(database, prepare, program) as reader:
        writer.start()
        who = "prepared transaction 'has read' " if prepare else f"session {reader} .*reader"
        scene.wait_for_log(
            f"the copy waits.*{who}.*, which uses public.held, which another one waits to lock"
            if program == "reader" else
            "the copy waits.*, writer\\), .*, which waits to lock public.held", 12)
    wait_for("the next one", lambda: re.search(
        r"the copy waits .*writer\).*, which has public.held locked",
        scene.status()["error"] or ""), 20)
    seen.set()
    writer.join()
    scene.wait_streaming()
    compare(database, Lake(scene.storage), ["free", "held"], readers=["duckdb"])


def test_temporary_tables_do_not_matter(scene):
    """Nor do they cost a reading of all catalogs every five seconds."""
    database = scene.database
    database.execute(f"alter database {database.name} set log_statement = 'all'")

    def readings():
        log = (database.server.data / "log").read_text(errors="replace")
        return log.count("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    scene.start()
    scene.wait_streaming()
    time.sleep(6)
    before = readings()
    assert before > 0
    with database.connect() as conn:
        for n in range(6):
            conn.execute(f"create temporary table passing{n} (id int primary key, v text)")
            time.sleep(2)
    assert readings() == before
    database.execute("alter table free add column extra int")
    wait_for("a reading", lambda: readings() > before, 30)


def test_told_to_leave_while_a_lock_is_waited_for(scene):
    """A publication with a row filter: Postgres locks the table to print the filter."""
    database = scene.database
    if database.server.major < 15:
        pytest.skip("row filters came with 15")
    database.execute("create publication chosen for table free, held where (id > 0)")
    scene.settings["source.publication"] = "chosen"
    scene.start()
    scene.wait_streaming()
    with lock(database):
        database.execute("create table noise (id int primary key)", "insert into free values (1)")
        scene.wait_for_log("cannot look for new tables.*lock timeout", 30)
        arrived(scene, "free")
        began = time.monotonic()
        assert scene.stop(30) == 0
        assert time.monotonic() - began < 8
    compare(database, Lake(scene.storage), ["free"], readers=["duckdb"])


def test_told_to_leave_while_the_source_does_not_answer(scene):
    """The server's processes stand still: no question about the catalogs comes back."""
    database = scene.database
    scene.start()
    scene.wait_streaming()
    with psycopg.connect(database.server.uri()) as conn:
        pids = [pid for (pid,) in conn.execute(
            "select pid from pg_stat_activity where application_name = 'walberg'"
            " and backend_type = 'client backend'")]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        database.execute("insert into free values (1)")
        time.sleep(7)  # it looks every 5 s
        began = time.monotonic()
        assert scene.stop(30) == 0
        assert time.monotonic() - began < 8
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
