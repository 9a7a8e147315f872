"""The table of rejects, _walberg.rejects: whose it is, and what queries see of it."""
import collections
import re
import shutil

import pytest

from lib.env import wait_for
from lib.postgres import Database
from lib.readers import READERS
from lib.walberg import Walberg


def recorded(lake):
    """(table, key) of all rejects, by a reader that is not ours."""
    names, rows = READERS["java"](lake.table("rejects", "_walberg"))
    return sorted((row[names.index("table")], row[names.index("key")]) for row in rows)


def told(walberg):
    return [(table, column) for table, column in
            re.findall(r"warn value rejected table=(\S+) column=(\S+) ", walberg.log())]


@pytest.mark.parametrize("copied", [False, True])
def test_the_log_has_one_line_for_each_column(database, walberg, copied):
    """However many values there are, and in whatever order the columns come."""
    database.execute("create table t (id int primary key, n numeric(6, 2), day date, v int)",
                     "create table u (id int primary key, n numeric(6, 2))")
    rows = ("insert into t select g, 'NaN', 'infinity', 1 from generate_series(1, 3) g",
            "insert into u values (1, 'NaN')")
    if copied:
        database.execute(*rows)
    walberg.start().wait_streaming()
    if not copied:
        database.execute("insert into t values (0, 'NaN')", *rows)
        walberg.wait_caught_up()
    expected = [("public.t", "day"), ("public.t", "n"), ("public.u", "n")]
    assert sorted(told(walberg)) == expected
    database.execute("insert into t values (9, 'NaN', '-infinity')")
    walberg.wait_caught_up()
    assert sorted(told(walberg)) == expected
    assert walberg.stop() == 0


def counted(walberg, expected):
    """Status is written once a second."""
    shown = {}

    def is_shown():
        shown.update({table["name"]: table["rejects"] for table in walberg.status()["tables"]})
        return shown == expected
    wait_for(f"{expected} in status", is_shown, 5)


def truth(lake):
    """The same, of the records themselves."""
    return collections.Counter(f"public.{table}" for table, _ in recorded(lake))


def test_status_counts_what_is_recorded(database, walberg, lake):
    """By the copy and by the stream, by this process and those before it, with and without crashes,
    and when a copy records again what was recorded."""
    database.execute("create table t (id int primary key, n numeric(6, 2), day date)",
                     "create table u (id int primary key, n numeric(6, 2))",
                     "create table v (id int primary key)",
                     "insert into t select g, 'NaN', 'infinity' from generate_series(1, 3) g")
    walberg.start().wait_streaming()
    counted(walberg, {"public.t": 6, "public.u": 0, "public.v": 0})
    database.execute("insert into t values (4, 'NaN')", "insert into u values (1, 'NaN'), (2, 2)")
    walberg.wait_caught_up()
    expected = {"public.t": 7, "public.u": 1, "public.v": 0}
    counted(walberg, expected)
    assert truth(lake) == {"public.t": 7, "public.u": 1}
    assert walberg.stop() == 0
    counted(walberg, expected)

    walberg.start().wait_streaming()
    counted(walberg, expected)
    database.execute("insert into t values (5, 'NaN')")
    walberg.wait_caught_up()
    counted(walberg, {**expected, "public.t": 8})

    for point in ("sink.committed", "writer.committed", "sink.look_again", "sink.commit"):
        walberg.kill()
        walberg.extra_environment = {"WALBERG_FAULT": f"crash:1:{point}"}
        database.execute("insert into t select max(id) + 1, 'NaN' from t",
                         "insert into u select max(id) + 1, 'NaN' from u")
        walberg.call("run", "--once", *walberg.positional())
        walberg.extra_environment = {}
        walberg.start().wait_streaming()
        counted(walberg, {"public.v": 0, **truth(lake)})
    before = truth(lake)
    assert walberg.call("resync", *walberg.positional(), "public.t").returncode == 0
    walberg.wait_streaming()
    counted(walberg, {"public.v": 0, **truth(lake)})
    assert truth(lake)["public.t"] > before["public.t"]
    assert walberg.stop() == 0

    assert walberg.call("cleanup", "--yes", *walberg.positional(), "public.t").returncode == 0
    left = lake.table("rejects", "_walberg").metadata["properties"]
    assert len([key for key in left if key.startswith("walberg.reject-count.")]) == 1
    before = truth(lake)  # records of the table that was removed stay
    walberg.start().wait_streaming()
    after = truth(lake)
    assert after["public.t"] > before["public.t"]
    counted(walberg, {"public.t": after["public.t"] - before["public.t"],
                      "public.u": after["public.u"], "public.v": 0})
    assert walberg.stop() == 0


def test_status_of_records_that_somebody_removed(database, walberg, lake, tmp_path):
    database.execute("create table t (id int primary key, n numeric(6, 2))",
                     "create table u (id int primary key, n numeric(6, 2))",
                     "insert into t values (1, 'NaN')", "insert into u values (1, 'NaN')")
    walberg.start().wait_streaming()
    shutil.rmtree(tmp_path / "lake" / "_walberg" / "rejects")
    database.execute("insert into t values (2, 'NaN')")
    walberg.wait_caught_up()
    counted(walberg, {"public.t": 1, "public.u": 0})
    assert truth(lake) == {"public.t": 1}
    assert walberg.stop() == 0
    for hint in (tmp_path / "lake" / "_walberg" / "rejects" / "metadata").glob("v*.json"):
        hint.write_text("{")
    walberg.start().wait_streaming()
    counted(walberg, {"public.t": None, "public.u": None})
    assert walberg.stop() == 0


def test_a_source_table_cannot_take_its_place(database, walberg, lake):
    """Neither one that comes later nor one that is there first; the others go on."""
    database.execute("create table t (id int primary key, n numeric(6, 2))",
                     "insert into t values (1, 'NaN')")
    walberg.once()
    assert recorded(lake) == [("t", '{"id":1}')]
    database.execute('create schema "_walberg"',
                     'create table "_walberg".rejects (id int primary key)',
                     'create table "_walberg"."db.json" (id int primary key)',
                     'insert into "_walberg".rejects values (1)',
                     "insert into t values (2, 'NaN'), (3, 3)")
    checked = walberg.call("check", *walberg.positional())
    assert checked.returncode == 1
    assert "FAIL table _walberg.rejects: the lake's namespace _walberg is walberg's own" \
        in checked.stdout

    assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
    assert recorded(lake) == [("t", '{"id":1}'), ("t", '{"id":2}')]
    errors = {t["name"]: t["error"] for t in walberg.status()["tables"]}
    assert errors.pop("public.t") is None
    assert len(errors) == 2 and all("walberg's own" in e for e in errors.values()), errors

    elsewhere = {"sink__iceberg__namespace": "pg_{schema}"}
    walberg.once(source__tables="['*.*', '!_walberg.*']")
    assert walberg.call("check", *walberg.positional(), **elsewhere).returncode == 0


def test_those_of_all_pipelines_are_shown(database, walberg, lake, tmp_path):
    """While the pipeline that had the first one stands still."""
    database.execute("create table t (id int primary key, n numeric(6, 2))",
                     "insert into t values (1, 1)")
    other = Database(database.server, f"{database.name}_2")
    other.execute("create table u (id int primary key, n numeric(6, 2))",
                  "insert into u values (1, 1)")
    second = Walberg(other, walberg.storage, tmp_path, state=str(tmp_path / "state2"),
                     sink__iceberg__namespace="other_{schema}")
    walberg.once()
    second.once()
    database.execute("insert into t values (2, 'NaN')")
    walberg.once()
    other.execute("insert into u values (3, 'NaN')")
    second.once()
    assert recorded(lake) == [("t", '{"id":2}'), ("u", '{"id":3}')]
    asked = walberg.call("sql", "--format", "csv", walberg.storage.uri,
                         'select "table", key from _walberg.rejects order by 1', check=True)
    assert asked.stdout.splitlines() == ["table,key", 't,"{""id"":2}"', 'u,"{""id"":3}"']
    database.server.drop_database(other.name)


def test_one_that_another_pipeline_made_again(database, walberg, lake, tmp_path):
    """Removed, as one empties it, and as many commits later: its versions have the numbers of the
    one that this pipeline knows."""
    create = "create table t (id int primary key, n numeric(6, 2))"
    other = Database(database.server, f"{database.name}_2")
    second = Walberg(other, walberg.storage, tmp_path, state=str(tmp_path / "state2"),
                     sink__iceberg__namespace="other_{schema}")
    try:
        for program in (walberg, second):
            program.database.execute(create)
            program.start().wait_for_log("streaming slot")

        def reject(program, number):
            program.database.execute(f"insert into t values ({number}, 'NaN')")
            program.wait_caught_up()

        reject(walberg, 1)
        reject(second, 2)
        version = lake.hint(lake.table("rejects", "_walberg"))
        shutil.rmtree(tmp_path / "lake" / "_walberg" / "rejects")
        reject(walberg, 3)
        while lake.hint(lake.table("rejects", "_walberg")) < version:
            reject(walberg, 3 + len(recorded(lake)))
        assert lake.hint(lake.table("rejects", "_walberg")) == version
        reject(second, 8)
        reject(walberg, 9)
        keys = [key for _, key in recorded(lake)]
        assert '{"id":3}' in keys and '{"id":8}' in keys and '{"id":9}' in keys, keys
        assert len(keys) == len(set(keys)) and '{"id":1}' not in keys, keys
        for program in (walberg, second):
            assert [t["state"] for t in program.status()["tables"]] == ["streaming"]
    finally:
        second.kill()
        walberg.kill()
        database.server.drop_database(other.name)
