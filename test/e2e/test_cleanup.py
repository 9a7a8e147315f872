"""walberg cleanup: what it removes, what it leaves, and what a crash in the middle leaves."""
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess

import pytest

from lib import foreign
from lib.oracle import compare
from lib.postgres import Database, Postgres, lsn
from lib.readers import READERS
from lib.storage import Storage
from lib.walberg import Walberg, environment

TABLES = ("create table t (id int primary key, v text)",
          "insert into t select n, 'v' || n from generate_series(1, 100) n",
          "create table other (id int primary key)", "insert into other values (1)")
KILLED = 137


def cleanup(walberg, *args, code=0, **settings):
    done = walberg.call("cleanup", *walberg.positional(), *args, **settings)
    assert done.returncode == code, done.stderr
    return done


def files(walberg, folder):
    """Without what the file store keeps for itself: the lock of its compare-and-swap."""
    return [path for path in walberg.storage.list()
            if path.startswith(folder) and "/.walberg." not in path]


def state(walberg):
    path = f"{walberg.storage.uri}/_walberg/{walberg.database.name}.json"
    return json.loads(walberg.storage.read(path))


def publications(database):
    return [name for (name,) in database.rows("select pubname from pg_publication")]


@pytest.fixture
def filled(database, walberg):
    database.execute(*TABLES)
    walberg.once()
    database.execute("update t set v = 'new' where id < 10")
    walberg.once()
    return walberg


def test_a_table_goes_and_is_copied_afresh(filled, database, lake):
    old = lake.table("t").metadata["table-uuid"]
    done = cleanup(filled, "public.t", "--yes")
    assert re.fullmatch(r"removed table public\.t \(\d+ files, \d+ kB\)\n", done.stdout)
    assert files(filled, "public/t") == []
    assert [table["source"] for table in state(filled)["tables"]] == ["public.other"]
    assert not list((filled.folder / "state" / "index").glob(f"{old}*"))
    assert lake.has("other")
    database.execute("delete from t where id = 50")
    filled.once()
    assert lake.table("t").metadata["table-uuid"] != old
    assert compare(database, lake, ["t", "other"]) == 100


def test_dry_run_lists_and_leaves(filled):
    before = files(filled, "")
    done = cleanup(filled, "--dry-run", "--all")
    words = [" ".join(line.split()[:4]) for line in done.stdout.splitlines()]
    name = filled.database.name
    assert words == ["would remove table public.other", "would remove table public.t",
                     f"would remove publication walberg_{name}",
                     f"would remove slot walberg_{name}",
                     "would remove state object", "would remove state folder"]
    assert files(filled, "") == before and filled.slot()
    report = json.loads(cleanup(filled, "--dry-run", "--json", "public.t").stdout)
    assert report["removed"] is False
    assert [(i["kind"], i["name"]) for i in report["items"]] == [("table", "public.t")]
    assert report["items"][0]["files"] == len(files(filled, "public/t/"))


def test_all_leaves_nothing_and_run_begins_again(filled, database, lake):
    database.execute("create table r (id int primary key, n numeric(4,2))",
                     "insert into r values (1, 'NaN')")
    filled.once()
    assert lake.has("rejects", "_walberg")
    cleanup(filled, "--all", "--yes")
    assert not filled.storage.list()
    assert not list((filled.folder / "lake").iterdir())
    assert filled.slot() is None
    assert publications(database) == []
    assert not (filled.folder / "state").exists()
    assert cleanup(filled, "--all", "--yes").stdout == ""
    filled.once()
    assert compare(database, lake, ["t", "other"]) == 101


def test_what_is_not_ours_stays(database, walberg, lake, tmp_path):
    """A publication that the settings name, and what other pipelines have in the warehouse."""
    database.execute(*TABLES, "create publication mine for table t",
                     "create table r (id int primary key, n numeric(4,2))",
                     "insert into r values (1, 'NaN')", "alter publication mine add table r")
    settings = {"source__publication": "mine"}
    walberg.once(**settings)
    second = Walberg(database, walberg.storage, tmp_path / "second", pipeline="second",
                     source__tables='["public.other"]', sink__iceberg__namespace='"{pipeline}"')
    second.folder.mkdir()
    second.once()
    foreign.write(walberg.storage)
    for named, whose in (("second.other", "pipeline second"), ("public.things", "somebody else")):
        done = cleanup(walberg, named, "--yes", code=1, **settings)
        assert named in done.stderr and whose in done.stderr
    (tmp_path / "state" / "precious").write_text("x")
    done = cleanup(walberg, "--all", "--yes", **settings)
    assert "publication mine stays" in done.stderr
    assert "_walberg.rejects stays" in done.stderr
    assert "mine" in publications(database)
    assert set(lake.tables()) == {("second", "other"), ("public", "things"),
                                  ("_walberg", "rejects")}
    assert (tmp_path / "state" / "precious").read_text() == "x"
    assert second.slot()[0] == "walberg_second"
    second.once()
    second.call("verify", *second.positional(), check=True)


def test_a_publication_that_another_lake_reads_stays(filled, database, lake, tmp_path):
    """The same pipeline's name, another slot: the first one that ran made it."""
    publication = f"walberg_{database.name}"
    second = Walberg(database, Storage(tmp_path / "lake-2"), tmp_path / "second",
                     source__slot="another")
    second.folder.mkdir()
    second.once()
    assert state(filled)["publication_made"] and not state(second)["publication_made"]
    done = cleanup(filled, "--all", "--yes")
    assert f"publication {publication} stays: slot another may read it" in done.stderr
    assert publications(database) == [publication]
    database.execute("insert into other values (2)")
    second.once()
    second.call("verify", *second.positional(), check=True)
    done = cleanup(second, "--all", "--yes")
    assert f"publication {publication} stays: this pipeline did not make it" in done.stderr
    assert f'hint: when nobody reads it: drop publication "{publication}"' in done.stderr
    assert publications(database) == [publication]


def test_rejects_after_beginning_again_on_another_server(database, walberg, lake, tmp_path):
    """Which is at lower positions; the old records stay, because another pipeline is there."""
    table = "create table t (id int primary key, day date)"
    database.execute(table, "insert into t values (1, null)")
    neighbour = Walberg(database, walberg.storage, tmp_path / "second", pipeline="second",
                        sink__iceberg__namespace='"{pipeline}"')
    neighbour.folder.mkdir()
    neighbour.once()
    for _ in range(3):
        database.rows("select pg_switch_wal()")
    walberg.once()
    database.execute("insert into t values (2, 'infinity')")
    walberg.once()
    neighbour.once()
    notes = [key for key in lake.table("rejects", "_walberg").metadata["properties"]
             if key.startswith("walberg.rejects.")]
    assert len(notes) == 2
    cleanup(walberg, "--all", "--yes")
    kept = lake.table("rejects", "_walberg").metadata["properties"]
    assert [key in kept for key in notes].count(True) == 1
    other = Postgres()
    try:
        moved = Walberg(Database(other, database.name), walberg.storage, walberg.folder)
        moved.database.execute(table, "insert into t values (1, null)")
        assert lsn(other.position()) < lsn(database.server.position())
        moved.once()
        moved.database.execute("insert into t values (3, 'infinity')")
        moved.once()
    finally:
        other.remove()
    names, rows = READERS["java"](lake.table("rejects", "_walberg"))
    assert sorted(row[names.index("key")] for row in rows) == ['{"id":2}'] * 2 + ['{"id":3}']
    neighbour.once()


def test_refused_while_run_is_up(filled, tmp_path):
    filled.start()
    filled.wait_caught_up()
    done = cleanup(filled, "public.t", "--yes", code=1)
    assert "walberg runs pipeline" in done.stderr and "hint: stop it" in done.stderr
    done = cleanup(filled, "--all", "--yes", code=1, state=str(tmp_path / "elsewhere"))
    assert "in use by server process" in done.stderr
    assert cleanup(filled, "--dry-run").stdout.count("would remove table") == 2
    filled.wait_caught_up()
    assert filled.stop() == 0


def test_a_process_between_two_sessions_is_seen(filled, database, tmp_path):
    """Its slot is not read at the moment; it comes back."""
    filled.start()
    filled.wait_caught_up()
    with database.connect() as conn:
        for _ in range(3):
            conn.execute("select pg_terminate_backend(active_pid) from pg_replication_slots"
                         " where active_pid is not null and database = current_database()")
            done = filled.call("cleanup", *filled.positional(), "--all", "--yes",
                               state=str(tmp_path / "elsewhere"))
            assert done.returncode == 1, done.stderr
            assert "walberg runs somewhere" in done.stderr
    filled.wait_caught_up()


def test_wrong_usage(filled):
    done = cleanup(filled, "public.t", code=2)
    assert "nobody can be asked" in done.stderr and "--yes" in done.stderr
    assert files(filled, "public/t/")
    done = cleanup(filled, "public.nothing", "--yes", code=1)
    assert "no table public.nothing" in done.stderr
    done = cleanup(filled, "--all", "public.t", "--yes", code=2)
    assert "do not go together" in done.stderr


@pytest.mark.parametrize("answer, code", [("y", 0), ("n", 1), ("", 1)])
def test_a_terminal_is_asked(answer, code, filled):
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        filled.command("cleanup", *filled.positional(), "public.t"), stdin=terminal,
        stderr=terminal, stdout=subprocess.PIPE, text=True, cwd=filled.folder,
        env=environment(filled.storage))
    said = b""
    while b"[y/N] " not in said:
        said += os.read(master, 1000)
    os.write(master, f"{answer}\n".encode())
    assert process.wait(30) == code
    assert b"table public.t" in said
    assert bool(files(filled, "public/t/")) == (code != 0)
    os.close(master)
    os.close(terminal)


def lists(walberg, *args):
    """(lake's name, source's) of what would go."""
    lines = cleanup(walberg, "--dry-run", *args).stdout.splitlines()
    form = r"would remove table (.*?)(?:, (.*) in the source)? \(\d+ files, \d+ kB\)"
    found = [re.fullmatch(form, line) for line in lines]
    return [(match[1], match[2] or match[1]) for match in found]


def sources(walberg):
    return sorted((table["lake"], table["source"]) for table in state(walberg)["tables"])


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "since the last start"])
def test_names_that_tables_swapped(seen, database, walberg, lake):
    database.execute("create table a (id int primary key)", "create table b (id int primary key)",
                     "insert into a values (1)", "insert into b values (1), (2)")
    walberg.once()
    database.execute("alter table a rename to x", "alter table b rename to a",
                     "alter table x rename to b")
    if seen:
        walberg.once()
    assert lists(walberg, "public.a") == [("public.b", "public.a")]
    assert lists(walberg, "lake:public.a") == [("public.a", "public.b")]
    assert lists(walberg, "public.*") == [("public.a", "public.b"), ("public.b", "public.a")]
    cleanup(walberg, "public.a", "--yes")
    assert lake.has("a") and not lake.has("b")
    assert sources(walberg) == [("public.a", "public.b")]


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "since the last start"])
def test_the_name_of_a_table_that_was_dropped(seen, database, walberg, lake):
    """Another one has it now. Who says the name is asked which one it is."""
    database.execute("create table a (id int primary key)", "create table b (id int primary key)",
                     "insert into a values (1)", "insert into b values (1), (2)")
    walberg.once()
    database.execute("drop table a", "alter table b rename to a")
    if seen:
        walberg.once()
    refused = cleanup(walberg, "public.a", "--yes", code=1).stderr
    assert """'lake:"public"."a"' or 'lake:"public"."b"'""" in refused
    assert lake.has("a") and lake.has("b")
    cleanup(walberg, 'lake:"public"."a"', "--yes")
    assert sources(walberg) == [("public.b", "public.a")] and not lake.has("a")
    assert lists(walberg, "public.a") == [("public.b", "public.a")]
    database.execute("insert into a values (3)")
    walberg.once()
    assert len(READERS["java"](lake.table("b"))[1]) == 3


def test_names_with_dots(database, walberg, lake):
    database.execute('create schema "x.y"', "create schema x",
                     'create table "x.y".c (id int primary key)',
                     'create table x."y.c" (id int primary key)')
    walberg.once()
    refused = cleanup(walberg, "x.y.c", "--yes", code=1).stderr
    assert """'lake:"x"."y.c"' or 'lake:"x.y"."c"'""" in refused
    cleanup(walberg, 'x."y.c"', "--yes")
    assert set(lake.tables()) == {("x.y", "c")}
    assert sources(walberg) == [("x.y.c", '"x.y".c')]
    walberg.once()
    cleanup(walberg, '"x.y".c', "--yes")
    assert set(lake.tables()) == {("x", "y.c")}
    assert sources(walberg) == [("x.y.c", 'x."y.c"')]


def test_a_parked_table_is_mended(filled, database, lake):
    """Somebody removed its files."""
    for path in (filled.folder / "lake/public/t/data").iterdir():
        path.unlink()
    shutil.rmtree(filled.folder / "state/index")
    filled.call("run", "--once", *filled.positional())
    table = next(t for t in filled.status()["tables"] if t["name"] == "public.t")
    assert table["state"] == "parked"
    cleanup(filled, "public.t", "--yes")
    filled.once()
    assert compare(database, lake, ["t"]) == 100
    filled.call("verify", *filled.positional(), check=True)


def test_another_server_under_the_old_name(filled, database):
    """The slot of another server is not ours, whatever it is called."""
    path = f"{filled.storage.uri}/_walberg/{database.name}.json"
    pathlib.Path(path).write_text(pathlib.Path(path).read_text().replace(
        state(filled)["system_identifier"], "12345"))
    done = cleanup(filled, "--all", "--yes")
    assert "another server" in done.stderr
    assert filled.slot() and publications(database)
    assert files(filled, "") == []


def points(filled, *args):
    filled.extra_environment = {"WALBERG_FAULT": "list"}
    listed = cleanup(filled, "--yes", *args)
    filled.extra_environment = {}
    filled.once()
    return sorted(set(re.findall(r"^fault point (\S+)$", listed.stderr, re.M)))


@pytest.mark.parametrize("then", ["run", "cleanup"])
def test_a_crash_in_the_middle(then, filled, database, lake):
    """The process dies after each step of a cleanup; run or a second one takes it from there."""
    found = points(filled, "public.t")
    assert {"catalog.drop", "cleanup.dropped", "cleanup.file", "cleanup.state"} <= set(found)
    for point in found:
        for passing in (1, 2) if point in ("cleanup.state", "cleanup.file") else (1,):
            database.execute("update t set v = v || '.' where id % 2 = 0")
            filled.once()
            filled.extra_environment = {"WALBERG_FAULT": f"crash:{passing}:{point}"}
            done = filled.call("cleanup", *filled.positional(), "public.t", "--yes")
            filled.extra_environment = {}
            assert done.returncode == KILLED, done.stderr
            if then == "cleanup":
                again = filled.call("cleanup", *filled.positional(), "public.t", "--yes")
                # after the last step there is nothing left to do
                assert again.returncode == 0 or "no table public.t" in again.stderr, point
                assert files(filled, "public/t/") == [], point
                assert not lake.has("t")
            filled.once()
            assert compare(database, lake, ["t", "other"]) == 101, point


def test_a_crash_in_the_middle_of_all(filled, database, lake):
    for passing in range(1, 8):
        filled.extra_environment = {"WALBERG_FAULT": f"crash:{passing}:cleanup.item"}
        done = filled.call("cleanup", *filled.positional(), "--all", "--yes")
        filled.extra_environment = {}
        assert done.returncode == (KILLED if passing < 7 else 0), done.stderr
        cleanup(filled, "--all", "--yes")
        assert files(filled, "") == []
        assert filled.slot() is None and publications(database) == []
        filled.once()
        assert compare(database, lake, ["t", "other"]) == 101


def test_on_s3(database, s3, tmp_path):
    walberg = Walberg(database, s3.warehouse(), tmp_path)
    database.execute(*TABLES)
    walberg.once()
    cleanup(walberg, "public.t", "--yes")
    assert files(walberg, "public/t/") == [] and files(walberg, "public/other/")
    walberg.once()
    walberg.call("verify", *walberg.positional(), check=True)
    folder = walberg.folder / "state"
    assert (folder / "cache.lock").exists() and (folder / "cache.holds").exists()
    (folder / "spill-12345").mkdir()               # of a query server that was killed
    (folder / "spill-12345" / "duckdb_temp_block-1.block").write_bytes(b"x")
    cleanup(walberg, "--all", "--yes")
    assert files(walberg, "") == []
    assert not folder.exists()


def test_what_else_is_in_the_folder_stays(filled):
    """And that is said."""
    folder = filled.folder / "state"
    (folder / "precious").mkdir()
    (folder / "spill-over").touch()
    elsewhere = filled.folder / "elsewhere"
    elsewhere.mkdir()
    (folder / "cache").symlink_to(elsewhere)
    done = cleanup(filled, "--all", "--yes")
    assert f"{folder}/cache was a link: what is in {elsewhere} stays" in done.stderr
    assert elsewhere.exists()
    assert f"state folder {folder} stays: Directory not empty" in done.stderr
    assert "removed state object" in done.stdout and "state folder" not in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["precious", "spill-over"]
