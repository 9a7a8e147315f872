"""Gaps are never silent: what others do to the publication, the slot's past and the lake's tables.

Each test does to a real server, or to the lake with PyIceberg, what a person could do, and then
looks whether the rows are right or the table says that they are not."""
import json
import pathlib
import re
import shutil

import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import StaticTable

from lib.env import FORMAT_VERSION, since, wait_for
from lib.oracle import compare

TABLE = ("create table t (id int primary key, v int)",
         "insert into t select n, n from generate_series(1, 100) n",
         "create table other (id int primary key)")


def table(walberg, name="public.t"):
    """What status says of it; nothing while it is not taken in."""
    return next((t for t in walberg.status()["tables"] if t["name"] == name), {"state": None})


def warehouse(walberg):
    return pathlib.Path(walberg.storage.uri.removeprefix("file://"))


def state_path(walberg):
    return warehouse(walberg) / "_walberg" / f"{walberg.database.name}.json"


def parked(walberg, *words, name="public.t"):
    """The table, and no other, is parked, with these words as the reason, and keeps being so."""
    for _ in range(2):
        done = walberg.call("run", "--once", *walberg.positional())
        assert done.returncode == 1, done.stderr
        states = {t["name"]: t["state"] for t in walberg.status()["tables"]}
        assert [n for n, state in states.items() if state == "parked"] == [name], states
        for word in words:
            assert word in table(walberg, name)["error"]
        assert "hint: " in table(walberg, name)["error"]


def parks_while_running(walberg, *words, name="public.t"):
    wait_for("parked", lambda: table(walberg, name)["state"] == "parked", 30, pause=0.5)
    for word in words:
        assert word in table(walberg, name)["error"]


def mended_by_a_copy(walberg, lake, names=("t", "other")):
    """As the README says."""
    shutil.rmtree(warehouse(walberg) / lake.table("t").folder)
    walberg.once()
    compare(walberg.database, lake, list(names))
    assert all(t["state"] == "streaming" for t in walberg.status()["tables"])


# --- the publication -----------------------------------------------------------------------------


def publication(walberg):
    return f"walberg_{walberg.database.name}"


def test_taken_out_and_put_back_while_stopped(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    database.execute(f"alter publication {publication(walberg)} drop table t",
                     "update t set v = -1 where id = 5", "insert into other values (1)",
                     f"alter publication {publication(walberg)} add table t",
                     "insert into t values (101, 101)")
    parked(walberg, "taken out of the publication")
    assert compare(database, lake, ["other"]) == 1
    mended_by_a_copy(walberg, lake)


def test_taken_out_and_put_back_while_running(database, walberg, lake):
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_streaming()
    with database.connect() as conn:
        conn.execute(f"alter publication {publication(walberg)} drop table t")
        conn.execute("delete from t where id = 7")
        conn.execute(f"alter publication {publication(walberg)} add table t")
    parks_while_running(walberg, "taken out of the publication")
    database.execute("insert into other values (1)")
    walberg.wait_caught_up()                  # the slot is not held for what only a copy mends
    assert compare(database, lake, ["other"]) == 1
    assert walberg.stop() == 0
    mended_by_a_copy(walberg, lake)


def test_taken_out_while_running_and_left_so(database, walberg):
    database.execute(*TABLE, "create publication mine for table t, other")
    walberg.start(source__publication="mine")
    walberg.wait_streaming()
    database.execute("alter publication mine drop table t")
    parks_while_running(walberg, "does not publish it any more")
    walberg.stop()
    walberg.settings["source.publication"] = "mine"
    parked(walberg, "does not publish it any more", "source.tables")
    walberg.once(source__tables='["public.*", "!public.t"]')


@since(15)
def test_a_schema_taken_out_and_put_back(database, walberg):
    database.execute(*TABLE, "create publication mine for tables in schema public")
    walberg.settings["source.publication"] = "mine"
    walberg.once()
    walberg.once()
    database.execute("create table later (id int primary key)")
    walberg.once()                            # a new table of the schema is no gap
    database.execute("alter publication mine drop tables in schema public",
                     "delete from t", "alter publication mine add tables in schema public")
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1
    assert {t["state"] for t in walberg.status()["tables"]} == {"parked"}
    assert "taken out of the publication" in table(walberg)["error"]


def test_for_all_tables_has_no_entries(database, walberg, lake):
    database.execute(*TABLE, "create publication everything for all tables")
    walberg.settings["source.publication"] = "everything"
    walberg.once()
    database.execute("create table later (id int primary key)", "insert into later values (1)")
    walberg.once()
    database.execute("insert into later values (2)")
    walberg.once()
    compare(database, lake, ["t", "other", "later"])


CHANGES = {
    "row filter": ("alter publication mine set table t where (id < 50), other", "row filter"),
    "column list": ("alter publication mine set table t (id), other", ""),
    "fewer operations": ("alter publication mine set (publish = 'insert')", "leaves out"),
}


@pytest.mark.parametrize("change", [
    pytest.param(change, marks=() if change == "fewer operations" else since(15))
    for change in CHANGES])
@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
def test_published_less_later(change, running, database, walberg):
    statement, word = CHANGES[change]
    database.execute(*TABLE, "create publication mine for table t, other")
    walberg.settings["source.publication"] = "mine"
    if running:
        walberg.start()
        walberg.wait_streaming()
        database.execute(statement)
        parks_while_running(walberg, word)
        walberg.stop()
    else:
        walberg.once()
        database.execute(statement)
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1
    assert table(walberg)["state"] == "parked" and word in table(walberg)["error"]
    # "other" is published as before, unless the whole publication changed.
    whole = change == "fewer operations"
    assert table(walberg, "public.other")["state"] == ("parked" if whole else "streaming")


def test_published_less_and_everything_again(database, walberg):
    """Nothing of it can be seen afterwards but that something was altered: said, not parked."""
    database.execute(*TABLE, "create publication mine for table t, other")
    walberg.settings["source.publication"] = "mine"
    walberg.once()
    assert "was altered" not in walberg.once().stderr
    database.execute("alter publication mine set (publish = 'insert')", "delete from t",
                     "alter publication mine set (publish = 'insert, update, delete, truncate')")
    assert "the publication was altered" in walberg.once().stderr


@since(15)
def test_published_less_from_the_beginning_is_the_users_wish(database, walberg, lake):
    """The copy takes the same rows and columns as the stream, and status says what is missing."""
    database.execute(
        *TABLE, "alter table t add column hidden int default 5",
        "alter table other add column kept int, add column secret int",
        "insert into other select n, n, n from generate_series(1, 9) n",
        "create publication mine for table t where (id <= 50), other (id, kept)"
        " with (publish = 'insert, update')")
    walberg.settings["source.publication"] = "mine"
    walberg.once()
    database.execute("insert into t values (-1, 1, 1), (1000, 1, 1)",
                     "insert into other values (10, 10, 10)", "delete from t where id = 3",
                     "update t set v = 77 where id = 4")
    walberg.once()
    rows = read(lake.table("t"))
    assert sorted(r["id"] for r in rows) == [-1, *range(1, 51)]
    assert next(r["v"] for r in rows if r["id"] == 4) == 77
    others = read(lake.table("other"))
    assert {tuple(r) for r in others} == {("id", "kept")} and len(others) == 10
    said = table(walberg)
    assert said["state"] == "streaming"
    assert "only rows with (id <= 50), and no delete, truncate" in said["error"]
    assert "no delete, truncate" in table(walberg, "public.other")["error"]
    walberg.call("status", *walberg.positional(), check=True)   # not parked: exit 0


def test_publication_made_again_while_stopped(database, walberg):
    database.execute(*TABLE)
    walberg.once()
    name = publication(walberg)
    database.execute(f"drop publication {name}", "insert into t values (101, 1)")
    for _ in range(2):
        done = walberg.call("run", "--once", *walberg.positional())
        assert done.returncode == 1
        assert f"publication {name} was dropped" in done.stderr
        assert "Beginning again" in done.stderr
        database.execute(f"drop publication if exists {name}",
                         f"create publication {name} for all tables"
                         " with (publish_via_partition_root)")
    assert database.rows("select count(*) from pg_publication")[0][0] == 1


def test_publication_made_again_while_running(database, walberg):
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_streaming()
    name = publication(walberg)
    database.execute(f"drop publication {name}", f"create publication {name} for all tables")
    wait_for("walberg to refuse", lambda: not walberg.alive(), 40)
    assert "dropped and made again" in walberg.log() and "Beginning again" in walberg.log()


def test_the_stream_says_that_the_publication_is_gone(database, walberg):
    """The server itself is the first to notice when a row changes meanwhile."""
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_streaming()
    database.execute(f"drop publication {publication(walberg)}", "insert into t values (101, 1)")
    wait_for("walberg to refuse", lambda: not walberg.alive(), 40)
    assert "publication" in walberg.log() and "Beginning again" in walberg.log()


def test_another_publication_by_the_settings_is_refused(database, walberg):
    database.execute(*TABLE, "create publication mine for all tables")
    walberg.once()
    done = walberg.call("run", "--once", *walberg.positional(), source__publication="mine")
    assert done.returncode == 1
    assert "hint: set source.publication to " in done.stderr


def test_a_publication_may_be_renamed(database, walberg, lake):
    database.execute(*TABLE, "create publication mine for all tables")
    walberg.once(source__publication="mine")
    database.execute("alter publication mine rename to ours", "insert into t values (101, 1)")
    walberg.once(source__publication="ours")
    compare(database, lake, ["t"])


def test_a_role_that_only_reads_by_default(database, walberg, lake):
    database.execute(*TABLE,
                     f'alter database "{database.name}" set default_transaction_read_only = on')
    walberg.once()
    with database.connect() as conn:
        conn.execute("set default_transaction_read_only = off")
        conn.execute("create table later (id int primary key)")
        conn.execute("insert into t values (101, 1)")
    walberg.once()
    compare(database, lake, ["t", "later"])


# --- tables that go ------------------------------------------------------------------------------


def test_a_dropped_table_is_said_once_and_its_rows_stay(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    rows = read(lake.table("t"))
    database.execute("drop table t", "insert into other values (1)")
    assert "dropped in the source" in walberg.once().stderr
    assert "dropped in the source" not in walberg.once().stderr
    said = table(walberg)
    assert (said["state"], said["rows"]) == ("dropped", None)
    assert said["position"] == lake.table("t").position
    assert "public.t" in walberg.call("status", *walberg.positional(), check=True).stdout
    assert read(lake.table("t")) == rows
    database.execute("create table t (id int primary key, v int)", "insert into t values (1, 1)")
    parked(walberg, "dropped and made again")
    mended_by_a_copy(walberg, lake)


def test_a_table_dropped_while_running(database, walberg, lake):
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_streaming()
    database.execute("insert into t values (101, 1)", "drop table t")
    wait_for("noticed", lambda: table(walberg)["state"] == "dropped", 30, pause=0.5)
    assert walberg.log().count("dropped in the source") == 1
    database.execute("insert into other values (1)")
    walberg.wait_caught_up()
    assert len(read(lake.table("t"))) == 101   # what came before it went
    database.execute("create table t (id int primary key, v int)")
    wait_for("noticed", lambda: [t["state"] for t in walberg.status()["tables"]
                                 if t["name"] == "public.t"] == ["parked"], 30, pause=0.5)
    walberg.stop()
    parked(walberg, "dropped and made again")
    mended_by_a_copy(walberg, lake)


# --- the lake ------------------------------------------------------------------------------------


def pyiceberg_table(walberg, lake, name="t"):
    """A catalog of PyIceberg that holds the table as it is now."""
    if FORMAT_VERSION > 2:
        pytest.skip("PyIceberg writes no version 3")
    catalog = InMemoryCatalog("foreign", warehouse=f"file://{warehouse(walberg)}")
    catalog.create_namespace("public")
    return catalog.register_table(f"public.{name}", lake.table(name).uri)


def publish_version(walberg, lake, foreign, name="t"):
    """What PyIceberg committed becomes the next version of the table in the file catalog."""
    folder = warehouse(walberg) / lake.table(name).folder / "metadata"
    number = max(int(p.name.split(".")[0][1:]) for p in folder.glob("v*.metadata.json")) + 1
    shutil.copy(foreign.metadata_location.removeprefix("file://"),
                folder / f"v{number}.metadata.json")
    (folder / "version-hint.text").write_text(str(number))


def read(lake_table):
    rows = StaticTable.from_metadata(lake_table.uri).scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def roll_back(walberg, lake):
    foreign = pyiceberg_table(walberg, lake)
    foreign.manage_snapshots().set_current_snapshot(foreign.snapshots()[0].snapshot_id).commit()
    publish_version(walberg, lake, foreign)


def lose_row(walberg, lake, number):
    foreign = pyiceberg_table(walberg, lake)
    foreign.delete(f"id = {number}")
    publish_version(walberg, lake, foreign)


@pytest.mark.parametrize("change", ["update t set v = -1 where id = 5",
                                    "delete from t where id = 5"])
def test_a_row_that_the_lake_lost(change, database, walberg, lake):
    """Seen when the source changes it. One copy mends it; what comes again needs a person."""
    database.execute(*TABLE)
    walberg.once()
    lose_row(walberg, lake, 5)
    database.execute(change, "insert into t values (101, 1)")
    walberg.once()
    assert "to be copied again" in walberg.log()
    compare(database, lake, ["t"])
    lose_row(walberg, lake, 6)
    database.execute(change.replace("5", "6"), "insert into other values (1)")
    parked(walberg, "1 rows that the source changed were not in the lake", "copied again for that")
    assert compare(database, lake, ["other"]) == 1
    mended_by_a_copy(walberg, lake)


def test_a_row_that_the_lake_lost_with_its_unchanged_value(database, walberg, lake):
    database.execute("create table t (id int primary key, v int, big text)",
                     "alter table t alter big set storage external", TABLE[2],
                     "insert into t select n, n, repeat('x', 5000) from generate_series(1, 9) n")
    walberg.once()
    lose_row(walberg, lake, 5)
    database.execute("update t set v = -1 where id = 5")
    walberg.once()
    compare(database, lake, ["t"])


def test_an_altered_table_may_be_mended_again(database, walberg, lake):
    """The reason may have been what was altered."""
    database.execute(*TABLE)
    walberg.once()
    for number in (5, 6):
        lose_row(walberg, lake, number)
        database.execute(f"alter table t add column c{number} int",
                         f"update t set v = -1 where id = {number}")
        walberg.once()
        compare(database, lake, ["t"])


def test_rows_that_are_not_published_are_not_missed(database, walberg, lake):
    """Nor is the table copied again and again for them."""
    database.execute(*TABLE, "create publication fewer for table t, other"
                             " with (publish = 'update, delete, truncate')")
    walberg.once(source__publication="fewer")
    database.execute("insert into t values (101, 1)", "delete from t where id = 101")
    walberg.once(source__publication="fewer")
    compare(database, lake, ["t"])
    assert "copied again" not in walberg.log()


def test_a_lake_table_rolled_back_while_stopped(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    database.execute("insert into t values (101, 1)")
    walberg.once()
    newest = lake.table("t").metadata["current-snapshot-id"]
    roll_back(walberg, lake)
    assert len(read(lake.table("t"))) == 100
    database.execute("insert into t values (102, 1)")
    parked(walberg, "rolled it back")
    # Rolled forward again, it goes on: the slot has waited.
    foreign = pyiceberg_table(walberg, lake)
    foreign.manage_snapshots().set_current_snapshot(newest).commit()
    publish_version(walberg, lake, foreign)
    walberg.once()
    compare(database, lake, ["t"])


def test_a_lake_table_rolled_back_while_running(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    database.execute("insert into t values (101, 1)")
    walberg.start()
    walberg.wait_streaming()
    roll_back(walberg, lake)
    database.execute("insert into t values (102, 1)", "insert into other values (1)")
    parks_while_running(walberg, "rolled it back")
    walberg.stop()
    mended_by_a_copy(walberg, lake)


def test_a_version_that_somebody_removed(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    database.execute("insert into t values (101, 1)")
    walberg.once()
    folder = warehouse(walberg) / lake.table("t").folder / "metadata"
    newest = max(folder.glob("v*.metadata.json"), key=lambda p: int(p.name.split(".")[0][1:]))
    newest.unlink()
    (folder / "version-hint.text").write_text(str(int(newest.name.split(".")[0][1:]) - 1))
    database.execute("insert into t values (102, 1)")
    parked(walberg, "somebody put an older version back")
    mended_by_a_copy(walberg, lake)


def rewrite(walberg, lake):
    """As a compaction by another writer: the same rows in another file."""
    foreign = pyiceberg_table(walberg, lake)
    foreign.overwrite(foreign.scan().to_arrow().sort_by([("v", "descending"), ("id", "ascending")]))
    publish_version(walberg, lake, foreign)


def test_rows_moved_by_another_writer_are_found(database, walberg, lake):
    """Its snapshot has no position of ours, which is no rollback; the key index follows."""
    database.execute(*TABLE)
    walberg.once()
    database.execute("update t set v = -1 where id <= 3")
    walberg.once()
    rewrite(walberg, lake)
    database.execute("delete from t where id in (2, 50)", "update t set v = 0 where id in (3, 99)",
                     "insert into t values (101, 1)")
    walberg.once()
    compare(database, lake, ["t"], check=False)   # PyIceberg's manifests lack what ours have
    database.execute("update t set v = 7", "delete from t where id % 2 = 0")
    walberg.once()
    compare(database, lake, ["t"], check=False)


def test_rows_moved_by_another_writer_between_two_commits(database, walberg, lake):
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_streaming()
    database.execute("update t set v = -1 where id <= 3")
    walberg.wait_caught_up()
    rewrite(walberg, lake)
    database.execute("insert into t values (101, 1)")   # goes on top: it touches no moved row
    walberg.wait_caught_up()
    assert "another writer committed to the table" in walberg.log()
    database.execute("update t set v = 7 where id < 50", "delete from t where id % 2 = 0")
    walberg.wait_caught_up()
    compare(database, lake, ["t"], check=False)


def test_rows_moved_under_changes_of_them_park_the_table(database, walberg, lake):
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_streaming()
    rewrite(walberg, lake)
    database.execute("update t set v = 7 where id < 50", "insert into other values (1)")
    parks_while_running(walberg, "another writer rewrote files")
    walberg.stop()
    assert len(read(lake.table("t"))) == 100      # as the other writer left it
    assert compare(database, lake, ["other"]) == 1


@pytest.mark.parametrize("text", ["", "{", '{"version": 1, "pipe', "[]", '{"version": 2}'])
def test_a_torn_state_object_is_refused_with_a_hint(text, database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    good = state_path(walberg).read_text()
    state_path(walberg).write_text(text)
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1
    assert str(state_path(walberg)) in done.stderr.replace("file://", "")
    assert done.stderr.count("hint: ") == 1
    state_path(walberg).write_text(good)      # "put it back from a backup"
    database.execute("insert into t values (101, 1)")
    walberg.once()
    compare(database, lake, ["t"])


def test_beginning_again_without_a_state_object(database, walberg, lake):
    """What each command says leads to the next one, and the last one streams."""
    database.execute(*TABLE)
    walberg.once()
    state_path(walberg).write_text("{")
    for command in ("run", "--once"), ("cleanup", "--all", "--yes"), ("verify",):
        done = walberg.call(*command, *walberg.positional())
        assert done.returncode != 0
        assert "if there is none, remove it, then begin again: walberg cleanup" in done.stderr
    state_path(walberg).unlink()
    done = walberg.call("cleanup", "--all", "--yes", *walberg.positional(), check=True)
    assert "removed table public.t " in done.stdout
    assert "slot and publication stay" in done.stderr
    done = walberg.call("run", "--once", *walberg.positional())
    drop = re.search(r"pg_drop_replication_slot\('\w+'\)", done.stderr)
    database.execute(f"select {drop[0]}")
    walberg.once()
    database.execute("insert into t values (101, 1)")
    walberg.once()
    compare(database, lake, ["t"])


def test_a_state_of_an_earlier_version_is_taken_over(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    state = json.loads(state_path(walberg).read_text())
    del state["publication_oid"], state["publication_version"]
    for entry in state["tables"]:
        del entry["committed"], entry["published"]
    state_path(walberg).write_text(json.dumps(state))
    database.execute("insert into t values (101, 1)")
    walberg.once()
    compare(database, lake, ["t"])
    assert json.loads(state_path(walberg).read_text())["tables"][0]["published"]["entry"] > 0
