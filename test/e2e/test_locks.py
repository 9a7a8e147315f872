"""Locks that others hold for long: whoever waits for one must not make the others wait."""
import contextlib
import os
import signal
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
