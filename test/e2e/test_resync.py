"""walberg resync: a table is copied again, and nobody else notices."""
import json
import os
import shutil
import subprocess
import threading

import pytest
from pyiceberg.table import StaticTable
from test_copy import HeldCopy, create
from test_gaps import roll_back
from test_parked import set_property, warehouse

from lib.env import wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.readers import READERS
from lib.walberg import Walberg

TABLES = ["create table t (id int primary key, v text)",
          "insert into t select n, 'v' || n from generate_series(1, 500) n",
          "create table other (id int primary key)"]


def resync(walberg, *tables):
    return walberg.call("resync", *walberg.positional(), *tables)


def state(walberg, name):
    return next(t for t in walberg.status()["tables"] if t["name"] == name)


def start(walberg):
    walberg.start()
    walberg.wait_streaming()


@pytest.fixture
def load(database):
    """Rows of both tables change all the time."""
    halt = threading.Event()

    def work():
        with database.connect() as conn:
            for n in range(1000, 10**6):
                if halt.is_set():
                    return
                conn.execute("insert into t values (%s, 'x')", [n])
                conn.execute("update t set v = v || '.' where id = %s", [n % 500])
                conn.execute("delete from t where id = %s", [n - 20])
                conn.execute("insert into other values (%s)", [n])

    thread = threading.Thread(target=work, daemon=True)
    database.execute(*TABLES)
    thread.start()
    yield
    halt.set()
    thread.join(30)


def test_while_rows_change(load, database, walberg, lake):
    start(walberg)
    before = lake.table("t").snapshot["snapshot-id"]
    done = resync(walberg, "public.t", "other")
    assert done.returncode == 0, done.stderr
    after = lake.table("t")
    assert int(after.summary.get("total-records", 0)) > 0
    assert any(s["snapshot-id"] == before for s in after.metadata["snapshots"])
    equal_under_load = walberg.call("verify", *walberg.positional())
    assert equal_under_load.returncode in (0, 3), equal_under_load.stdout
    assert walberg.stop() == 0


def test_while_stopped(database, walberg, lake):
    database.execute(*TABLES)
    walberg.once()
    files = lake.table("t").summary
    assert resync(walberg, "t").returncode == 0
    database.execute("insert into t values (501, 'new')")
    walberg.once()
    compare(database, lake, ["t"])
    assert lake.table("t").summary["deleted-data-files"] == files["total-data-files"]


def test_unknown_tables_are_named(database, walberg):
    database.execute(*TABLES)
    assert "did not run here" in resync(walberg, "t").stderr
    walberg.once()
    done = resync(walberg, "t", "nope")
    assert done.returncode == 1 and "nope" in done.stderr and "hint: " in done.stderr
    assert walberg.call("resync").returncode == 2


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_mends_a_gap(running, database, walberg, lake):
    """A table taken out of the publication for a while."""
    database.execute(*TABLES)
    walberg.once()
    database.execute(f"alter publication walberg_{database.name} drop table t",
                     "delete from t where id < 100", "insert into other values (1)",
                     f"alter publication walberg_{database.name} add table t")
    assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
    assert "walberg resync" in state(walberg, "public.t")["error"]
    if running:
        walberg.start()
        wait_for("t to be parked", lambda: state(walberg, "public.t")["state"] == "parked")
    done = resync(walberg, "t")
    assert done.returncode == 0, done.stderr
    if running:
        assert walberg.stop() == 0
    walberg.once()
    compare(database, lake, ["t", "other"])


def test_mends_a_table_that_was_made_again(database, walberg, lake):
    database.execute(*TABLES)
    walberg.once()
    database.execute("drop table t", "create table t (v text, id int primary key)",
                     "insert into t values ('second', 1)")
    assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
    assert resync(walberg, "t").returncode == 0
    walberg.once()
    database.execute("insert into t values ('third', 2)")
    walberg.once()
    compare(database, lake, ["t"])


def test_mends_a_lake_table_that_was_rolled_back(database, walberg, lake):
    database.execute(*TABLES)
    walberg.once()
    database.execute("delete from t where id < 400")
    walberg.once()
    roll_back(walberg, lake)
    database.execute("update t set v = 'after' where id = 450")
    assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
    assert resync(walberg, "t").returncode == 0
    walberg.once()
    compare(database, lake, ["t"])
    assert StaticTable.from_metadata(lake.table("t").uri).scan().to_arrow().num_rows == 101


def test_a_kill_in_the_middle_forgets_nothing(database, storage, tmp_path):
    database.execute(*TABLES)
    walberg = Walberg(database, storage, tmp_path)
    walberg.once()
    assert resync(walberg, "t").returncode == 0
    for fault in ("crash:1:copy.batch", "crash:1:copy.commit", "crash:1:sink.committed"):
        walberg.extra_environment = {"WALBERG_FAULT": fault}
        walberg.call("run", "--once", *walberg.positional())
        walberg.extra_environment = {}
    database.execute("delete from t where id < 10")
    walberg.once()
    compare(database, Lake(storage), ["t", "other"])
    assert state(walberg, "public.t")["state"] == "streaming"


def test_queries_go_on_while_a_table_is_copied_in_the_middle_of_a_backlog(database, walberg, lake):
    """It is ahead of what the stream still has to bring for the others, and holds up nothing."""
    database.execute("create table t (id int primary key)", "insert into t values (0)",
                     "create table s (id int primary key)", "insert into s values (1)")
    walberg.once()
    with database.connect() as conn:
        for number in range(1, 601):
            conn.execute("insert into t values (%s)", [number])
    database.execute("alter table s add column c float8 default random()")
    walberg.start(commit__rows="1", commit__interval="100ms")
    seen = []

    def whole():
        seen.append(walberg.query("select count(*), coalesce(max(id), -1) from t")[0])
        return seen[-1][0] == 601

    wait_for("all rows", whole, 120, pause=0.05)
    assert seen == sorted(seen) and all(rows == last + 1 for rows, last in seen), seen
    assert len(set(seen)) > 5, seen
    wait_for("the copy", lambda: is_equal(database, lake, ["t", "s"]), 30)


def test_a_table_that_waits_for_others_is_not_called_different(database, walberg, lake):
    """Its copy is there, and the stream brings it up when those of the others are, too."""
    create(database, "huge")
    database.execute(*TABLES)
    walberg.start(copy__workers=8)                # more than huge has parts
    walberg.wait_streaming()
    before = walberg.log().count("copied table=public.t ")
    asked = threading.Thread(target=resync, args=(walberg, "t", "huge"))
    asked.start()
    with HeldCopy(database, "huge"):
        wait_for("t", lambda: walberg.log().count("copied table=public.t ") > before, 30)
        database.execute("update t set v = 'later'", "insert into other values (1)")
        wait_for("the others", lambda: is_equal(database, lake, ["other"]), 30)
        done = walberg.call("verify", "--json", *walberg.positional())
    asked.join(60)
    results = {t["name"]: t["result"] for t in json.loads(done.stdout)["tables"]}
    assert results == {"public.t": "not compared", "public.huge": "not compared",
                       "public.other": "equal"}
    walberg.wait_caught_up()
    walberg.call("verify", *walberg.positional(), check=True)


def test_of_a_table_that_was_parked_when_it_was_new(database, walberg, lake):
    """It is known like any other then: what ALTER TABLE writes into its rows is seen."""
    database.execute(*TABLES)
    walberg.once()
    new = warehouse(walberg) / "public/new"
    shutil.copytree(new.with_name("t"), new)
    set_property(walberg, lake, "cdc.pipeline", "stranger", "new")
    database.execute("create table new (id int primary key, v int)",
                     "insert into new values (1, 1)")
    start(walberg)
    wait_for("parked", lambda: state(walberg, "public.new")["state"] == "parked")
    assert "belongs to pipeline stranger" in state(walberg, "public.new")["error"]
    shutil.rmtree(new)
    assert resync(walberg, "new").returncode == 0
    walberg.wait_caught_up()
    compare(database, lake, ["new"])
    database.execute("alter table new add column w int default (random() * 1000)::int")
    wait_for("the new values", lambda: is_equal(database, lake, ["new"]), 60)
    assert walberg.stop() == 0
    walberg.once()
    compare(database, lake, ["t", "other", "new"])


def test_by_the_name_that_it_has_now(database, walberg, lake):
    """Two tables exchanged theirs while walberg was running, and a third moved to another schema:
    status, records of rejects and who asks for a copy mean the table that is called so now."""
    database.execute("create table a (id int primary key, n numeric(6,2))", "create schema s",
                     "create table b (id int primary key, n numeric(6,2))",
                     "create table c (id int primary key)",
                     "insert into a values (1, 1)", "insert into b values (1, 1), (2, 2)")
    start(walberg)
    database.execute("begin; alter table a rename to x; alter table b rename to a;"
                     " alter table x rename to b; commit", "alter table c set schema s")
    wait_for("the names", lambda: {t["name"]: t["lake"] for t in walberg.status()["tables"]} == {
        "public.a": "public.b", "public.b": "public.a", "s.c": "public.c"}, 30)
    database.execute("insert into a values (3, 'NaN')", "insert into s.c values (1)")
    wait_for("the rows", lambda: (state(walberg, "public.a")["rows"],
                                  state(walberg, "public.b")["rows"]) == (3, 1), 20)
    before = {name: lake.table(name).snapshot["snapshot-id"] for name in "abc"}
    assert resync(walberg, "a").returncode == 0
    walberg.wait_caught_up()
    after = {name: lake.table(name).snapshot["snapshot-id"] for name in "abc"}
    assert {name for name in "abc" if before[name] != after[name]} == {"b"}
    database.execute("insert into b values (4, 'NaN')", "delete from a where id = 1")
    walberg.wait_caught_up()
    assert walberg.stop() == 0
    _, rejects = READERS["duckdb"](lake.table("rejects", "_walberg"))
    assert {(row[3], row[4]) for row in rejects} == {("a", '{"id":3}'), ("b", '{"id":4}')}
    walberg.once()
    compare(database, lake, ["a", "b", "s.c"], called={"a": "b", "b": "a", "s.c": "c"})
    walberg.call("verify", *walberg.positional(), check=True)


def test_of_a_table_whose_name_in_the_lake_is_taken(database, walberg, lake):
    """By one that was called so before. It stays parked, and the other keeps its rows."""
    database.execute("create table t (id int primary key)", "insert into t values (1)")
    walberg.once()
    database.execute("alter table t rename to u", "create table t (id int primary key)",
                     "insert into t values (2)")
    start(walberg)
    wait_for("parked", lambda: state(walberg, "public.t")["state"] == "parked")
    assert resync(walberg, "t").returncode == 1
    database.execute("insert into u values (3)", "insert into t values (4)")
    walberg.wait_caught_up()
    assert "its name in the lake is that of public.u" in state(walberg, "public.t")["error"]
    assert walberg.query("select id from t order by id") == [(1,), (3,)]


def let_in(folder):
    """Other users come to what is below."""
    for above in (folder, *folder.parents):
        if above.owner() == "root" and above.name.startswith(("pytest-", "popen-", "test_")):
            above.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_who_may_ask(database, walberg):
    """Root, as the user that runs it; nobody else."""
    database.execute(*TABLES)
    walberg.once()
    folder = walberg.folder / "state"
    daemon, nobody = 1, 65534
    os.chown(folder, nobody, nobody)
    os.chown(folder / "status.json", nobody, nobody)
    let_in(walberg.folder)
    # a capability reads what only root may, such as the program in root's home
    user = ["setpriv", f"--reuid={daemon}", "--clear-groups", "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override"]
    done = subprocess.run([*user, *walberg.command("resync", *walberg.positional(), "t")],
                          check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"run by another user, with uid {nobody}\nhint: " in done.stderr
    assert not (folder / "resync").exists()
    assert resync(walberg, "t").returncode == 0
    assert (folder / "resync").stat().st_uid == nobody


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_what_root_does_beside_a_service_stops_nothing(database, walberg, lake):
    """Folders, locks and the files of the state, in folders of another user, are that user's."""
    nobody = 65534
    # a capability reads what only root may, such as the program in root's home, and writes nothing
    service = ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups",
               "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    database.execute(*TABLES)
    let_in(walberg.folder)
    folders = [walberg.folder / "state", walberg.folder / "lake"]
    for folder in folders:
        folder.mkdir()
        os.chown(folder, nobody, nobody)
    for number in (1, 2):
        for command in ("run", "--once"), ("check",), ("verify",):
            walberg.call(*command, *walberg.positional(), check=True)
        paths = [path for path in folders[0].rglob("*")] + [
            path for path in folders[1].rglob("*")
            if path.is_dir() or path.name.startswith(".walberg.")]
        assert {"lock", "status.json", "index.json", "public", ".walberg.lock"} <= {
            path.name for path in paths}
        assert {(path.stat().st_uid, path.stat().st_gid) for path in paths} == {(nobody, nobody)}
        database.execute(f"insert into t values ({1000 + number}, 'x')")
        done = subprocess.run([*service, *walberg.command("run", "--once", *walberg.positional())],
                              check=False, capture_output=True, text=True, cwd=walberg.folder)
        assert done.returncode == 0, done.stderr
        compare(database, lake, ["t"])
        database.execute(f"update t set v = 'y' where id = {1000 + number}")
    foreign = walberg.folder / "foreign"
    foreign.touch()
    (folders[0] / "lock").unlink()
    (folders[0] / "lock").symlink_to(foreign)
    walberg.once()
    assert foreign.stat().st_uid == 0                 # it was there: it stays whose it is


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_what_root_keeps_of_a_lake_on_s3_is_the_services(database, s3, tmp_path):
    """What is kept of it, and vouched for, is not fetched again. Data files that the stream writes
    stay root's: whoever may not read them fetches them."""
    nobody = 65534
    walberg = Walberg(database, s3.warehouse(), tmp_path)
    database.execute(*TABLES)
    walberg.once()
    database.execute("update t set v = 'y' where id = 1")
    walberg.once()
    folder = tmp_path / "state"
    for command in ("verify", "run --once"):
        shutil.rmtree(folder)
        folder.mkdir()
        os.chown(folder, nobody, nobody)
        walberg.call(*command.split(), *walberg.positional(), check=True)
        paths = [path for path in folder.rglob("*")
                 if command == "verify" or path.suffix != ".parquet"]
        assert [path for path in paths if path.suffix == ".stamp"]
        assert [path for path in paths
                if (path.stat().st_uid, path.stat().st_gid) != (nobody, nobody)] == []
        database.execute("update t set v = v || 'z' where id = 2")


def test_a_request_that_cannot_be_read_stops_nothing(database, walberg, lake):
    """As one of another user is, or, for any user, a link to itself."""
    database.execute(*TABLES)
    start(walberg)
    (walberg.folder / "state" / "resync").symlink_to("resync.taken")
    walberg.wait_for_log("request to copy tables again cannot be read")
    database.execute("insert into t values (501, 'x')")
    walberg.wait_caught_up()
    compare(database, lake, ["t"])
    done = resync(walberg, "t")
    assert done.returncode == 0, done.stderr
    (walberg.folder / "state" / "resync.taken").symlink_to("resync.taken")
    assert walberg.stop() == 0
    start(walberg)
    assert walberg.stop() == 0
