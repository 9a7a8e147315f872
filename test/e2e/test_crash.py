"""The failure table of docs/design.md, row by row: the process dies at a named point, once at each,
is started again, and nothing is lost, doubled or bent.

The points are compiled in (WALBERG_FAULT=crash:n:name ends the process at the nth passing of one);
their names come from the program itself, so a new step of a commit is tested without a line here.
"""
import re

import pytest

from lib.lake import Lake
from lib.oracle import compare
from lib.postgres import Database, drop_slot
from lib.storage import Storage
from lib.walberg import Walberg

KILLED = 137  # 128 + SIGKILL: what the fault point exits with
LEFT_BEHIND = "was left behind by an earlier start"
TABLES = ["accounts", "notes"]


class Scene:
    """Two tables, one with a key and large values, through copy, stream and a schema change."""

    def __init__(self, database, folder):
        folder.mkdir(exist_ok=True)
        self.rounds = 0
        self.database = database
        self.storage = Storage(folder / "lake")
        self.lake = Lake(self.storage)
        self.walberg = Walberg(database, self.storage, folder)
        database.execute(
            "create table accounts (id int primary key, balance numeric(12,2), memo text)",
            "alter table accounts alter column memo set storage external",
            "create table notes (id int, body text)",
            "alter table notes replica identity full",
            "insert into accounts select n, n, repeat('m', 3000) from generate_series(1, 50) n",
            "insert into notes select n / 2, 'note' from generate_series(1, 20) n")

    def change(self):
        self.rounds += 1
        with self.database.connect(autocommit=False) as conn:
            conn.execute("update accounts set balance = balance + 1 where id % 3 = 0")
            conn.execute("delete from accounts where id % 10 = 1")
            conn.execute("delete from notes where id = 4")
            conn.execute("insert into accounts select coalesce(max(id), 0) + 1, 0, 'new'"
                         " from accounts")
            conn.execute("update accounts set id = %s where id = (select max(id) from accounts)",
                         [-self.rounds])
            conn.commit()
        self.database.execute("insert into notes values (1, 'twin'), (1, 'twin')")

    def change_schema(self):
        self.database.execute("alter table notes add column extra int",
                              "update notes set extra = 7 where id = 1")

    def drop_slot(self):
        with self.database.connect() as conn:
            drop_slot(conn, self.walberg.slot()[0])

    def run(self, fault=None):
        self.walberg.extra_environment = {"WALBERG_FAULT": fault} if fault else {}
        return self.walberg.call("run", "--once", *self.walberg.positional())

    def equal(self):
        compare(self.database, self.lake, TABLES, readers=["duckdb"])


STEPS = ["copy", "stream", "schema"]


def prepare(scene, step):
    if step != "copy":
        assert scene.run().returncode == 0
        scene.change()
    if step == "schema":
        scene.change_schema()


def points_of(step, postgres, tmp_path):
    """Names of the fault points that this step passes, as the program lists them."""
    scene = Scene(Database(postgres, f"crash_{step}"), tmp_path / "list")
    prepare(scene, step)
    listed = scene.run("list")
    assert listed.returncode == 0
    points = sorted(set(re.findall(r"^fault point (\S+)$", listed.stderr, re.M)))
    assert points, f"no fault points in: {listed.stderr[-1000:]}"
    postgres.drop_database(f"crash_{step}")
    return points


def at_every_point(step, postgres, tmp_path, mode, expected):
    """For each point: that happens there, start again, compare, change, compare."""
    for number, point in enumerate(points_of(step, postgres, tmp_path)):
        scene = Scene(Database(postgres, f"crash_{step}"), tmp_path / str(number))
        prepare(scene, step)
        done = scene.run(f"{mode}:1:{point}")
        assert done.returncode in expected, f"{point}: {done.returncode}: {done.stderr[-2000:]}"
        again = scene.run()
        if step == "copy" and LEFT_BEHIND in again.stderr:
            # between the slot and the word that it is ours
            scene.drop_slot()
            again = scene.run()
        assert again.returncode == 0, f"{point}: {again.stderr[-2000:]}"
        scene.equal()
        scene.change()
        assert scene.run().returncode == 0, point
        scene.equal()
        postgres.drop_database(f"crash_{step}")


@pytest.mark.parametrize("step", STEPS)
def test_dies_at_every_point(step, postgres, tmp_path):
    at_every_point(step, postgres, tmp_path, "crash", (KILLED,))


def test_queries_see_whole_transactions_after_two_crashes(database, walberg):
    """Each amid an epoch, which the next process cuts elsewhere: one table is ahead of another."""
    query = "select (select v from a) as a, (select v from b) as b"
    database.execute("create table a (id int primary key, v int)",
                     "create table b (id int primary key, v int)",
                     "insert into a values (1, 100)", "insert into b values (1, 100)")
    walberg.once()
    for moved in (1, 10):
        with database.connect(autocommit=False) as conn:
            conn.execute("update a set v = v - %s", [moved])
            conn.execute("update b set v = v + %s", [moved])
            conn.commit()
    for fault, settings in (("crash:2:writer.commit_table", {"commit__interval": "5s"}),
                            ("crash:1:writer.committed", {"commit__rows": "1"}),
                            ("crash:1:writer.commit_table", {"commit__interval": "5s"})):
        walberg.extra_environment = {"WALBERG_FAULT": fault}
        done = walberg.call("run", "--once", *walberg.positional(), **settings)
        assert done.returncode == KILLED, done.stderr
        walberg.extra_environment = {}
        done = walberg.call("sql", walberg.storage.uri, query, "--format", "csv", check=True)
        a, b = map(int, done.stdout.splitlines()[-1].split(","))
        assert a + b == 200, (fault, a, b)
    walberg.once()
    done = walberg.call("sql", walberg.storage.uri, query, "--format", "csv", check=True)
    assert done.stdout.splitlines()[-1] == "89,111"


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_is_tried_again(step, postgres, tmp_path):
    """A transient error: the run ends well all the same, or gives up and a later one does."""
    at_every_point(step, postgres, tmp_path, "fail", (0, 3))
