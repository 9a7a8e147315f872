"""One bad table does not stop the others, and what it waits for is there when it is mended."""
import contextlib
import json
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import pytest
from pyiceberg.table import StaticTable
from test_copy_resume import LIMITS, create, interrupt

from lib.env import wait_for
from lib.oracle import compare, is_equal

TABLES = ("create table t (id int primary key, v int)",
          "insert into t select n, n from generate_series(1, 100) n",
          "create table other (id int primary key)")


def states(walberg):
    return {t["name"]: t["state"] for t in walberg.status()["tables"]}


def why(walberg, name="public.t"):
    return next(t["error"] for t in walberg.status()["tables"] if t["name"] == name)


def warehouse(walberg):
    return pathlib.Path(walberg.storage.uri.removeprefix("file://"))


def set_property(walberg, lake, key, value, name="t"):
    """The next version of the lake's table, as another writer would make it."""
    table = lake.table(name)
    folder = warehouse(walberg) / table.folder / "metadata"
    number = max(int(p.name.split(".")[0][1:]) for p in folder.glob("v*.metadata.json")) + 1
    metadata = {**table.metadata, "properties": {**table.metadata["properties"], key: value}}
    (folder / f"v{number}.metadata.json").write_text(json.dumps(metadata))
    (folder / "version-hint.text").write_text(str(number))


def test_what_could_not_be_attached_is_waited_for(database, walberg, lake):
    database.execute(*TABLES)
    walberg.once()
    set_property(walberg, lake, "cdc.pipeline", "stranger")
    for number in (1, 2):   # the slot must not move on at a later start either
        database.execute(f"insert into t values (1000 + {number}, 1)",
                         f"insert into other values ({number})")
        assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
        assert states(walberg) == {"public.t": "parked", "public.other": "streaming"}
        assert "belongs to pipeline stranger" in why(walberg)
        assert compare(database, lake, ["other"]) == number
    set_property(walberg, lake, "cdc.pipeline", database.name)
    walberg.once()
    compare(database, lake, ["t", "other"])


def end_session(database):
    """The next one begins by itself."""
    database.server.rows("postgres", "select pg_terminate_backend(active_pid)"
                         " from pg_replication_slots where active and database = %s",
                         [database.name])


def test_a_lake_table_goes_while_a_transaction_is_half_written(database, walberg, lake):
    """And then the stream is interrupted: what was written of it cannot be taken back."""
    database.execute(*TABLES, "create table big (id int primary key, v text)")
    walberg.start(memory="64MB")
    walberg.wait_streaming()
    folder = warehouse(walberg) / "public/big"
    insert = threading.Thread(target=database.execute, args=[
        "insert into big select n, repeat(md5(n::text), 32) from generate_series(1, 80000) n"])
    insert.start()
    wait_for("a piece", lambda: list((folder / "data").rglob("*.parquet")), 60, pause=0.01)
    walberg.process.send_signal(signal.SIGSTOP)
    shutil.rmtree(folder / "metadata")
    insert.join()
    database.execute("insert into other values (1)")
    end_session(database)
    walberg.process.send_signal(signal.SIGCONT)
    wait_for("parked", lambda: states(walberg)["public.big"] == "parked", 30)
    assert "the lake table is gone" in why(walberg, "public.big")
    wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
    assert walberg.stop() == 0
    walberg.once()                      # "walberg copies it again when it is started"
    compare(database, lake, ["t", "other", "big"], readers=["duckdb"])


# --- the table of rejects ------------------------------------------------------------------------


REJECTING = ("create table t (id int primary key, n numeric(6,2))", *TABLES[2:],
             "insert into t values (1, 1)")


def rejects(lake):
    scan = StaticTable.from_metadata(lake.table("rejects", "_walberg").uri).scan()
    return sorted(scan.to_arrow()["key"].to_pylist())


def test_a_table_of_rejects_that_somebody_removed_is_made_again(database, walberg, lake):
    database.execute(*REJECTING)
    walberg.start()
    walberg.wait_streaming()
    database.execute("insert into t values (2, 'NaN')")
    walberg.wait_caught_up()
    shutil.rmtree(warehouse(walberg) / "_walberg/rejects")
    end_session(database)
    walberg.wait_for_log("the stream was interrupted", 30)
    database.execute("insert into t values (3, 'NaN')")
    walberg.wait_caught_up()
    assert states(walberg) == {"public.t": "streaming", "public.other": "streaming"}
    assert rejects(lake) == ['{"id":3}']
    walberg.stop()


@pytest.mark.parametrize("damage", ["gone", "junk"])
def test_a_broken_table_of_rejects_parks_who_has_one(damage, database, walberg, lake):
    """Nobody else, also when the next session begins; and it is mended by making it again."""
    database.execute(*REJECTING)
    walberg.once()
    walberg.extra_environment = {
        "WALBERG_FAULT": ",".join(["fail:1:sink.commit", *(f"fail:{n}:sink.look_again"
                                                           for n in (1, 2, 3))])}
    walberg.start()
    walberg.wait_streaming()
    database.execute("insert into t values (2, 'NaN')")
    walberg.wait_for_log("cannot commit", 20)
    walberg.process.send_signal(signal.SIGSTOP)
    folder = warehouse(walberg) / "_walberg/rejects"
    if damage == "gone":
        shutil.rmtree(folder)
    else:
        next((folder / "metadata").glob("v*.metadata.json")).write_text("junk")
    walberg.process.send_signal(signal.SIGCONT)
    wait_for("parked", lambda: states(walberg)["public.t"] == "parked", 30)
    assert "table _walberg.rejects: " in why(walberg)
    end_session(database)
    walberg.wait_for_log("the stream was interrupted", 30)
    database.execute("insert into other values (1)")
    wait_for("the other", lambda: walberg.query("select * from other") == [(1,)], 30)
    assert walberg.stop() == 0
    walberg.extra_environment = {}
    shutil.rmtree(folder, ignore_errors=True)
    walberg.once()
    assert rejects(lake) == ['{"id":2}']


def test_a_table_of_rejects_that_cannot_be_read_holds_up_who_has_one(database, walberg, lake):
    """Its disk is bad when the next sessions begin."""
    database.execute(*REJECTING, "insert into t values (2, 'NaN')")
    walberg.once()
    walberg.extra_environment = {
        "WALBERG_FAULT": "fail:1:sink.commit,fail:1:sink.look_again,fail:2:sink.look_again",
        "WALBERG_LIMITS": "away.min_ms=4000,writer.patience_ms=50"}
    walberg.start()
    walberg.wait_streaming()
    database.execute("insert into t values (3, 'NaN')")
    wait_for("parked", lambda: states(walberg)["public.t"] == "parked", 30)
    with bad_hint(warehouse(walberg) / "_walberg/rejects"):
        for number in (1, 2):
            end_session(database)
            database.execute(f"insert into other values ({number})")
            wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
        walberg.wait_for_log('parked table=public.t reason="cannot write: ', 30)
        database.execute("insert into other values (3)")
        wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
    wait_for("it is back", lambda: states(walberg)["public.t"] == "streaming", 60)
    walberg.wait_caught_up()
    assert rejects(lake) == ['{"id":2}', '{"id":3}']
    assert walberg.stop() == 0


@contextlib.contextmanager
def full_file_system(folder):
    """The folder, with what is in it, on a file system of its own that has no room left."""
    aside = folder.with_name(folder.name + ".aside")
    shutil.copytree(folder, aside)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder], check=False,
                          capture_output=True)
    if done.returncode != 0:
        pytest.skip("cannot mount a small file system here")
    try:
        shutil.copytree(aside, folder, dirs_exist_ok=True)
        filler = folder / "filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as out:
            while True:
                out.write(b"x" * 4096)
        yield filler
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_table_whose_folder_is_full_holds_up_nobody_for_long(database, walberg, lake):
    """Tried for a minute, then it waits alone, and comes back by itself when there is room."""
    database.execute(*TABLES)
    walberg.once()
    with full_file_system(warehouse(walberg) / lake.table("t").folder) as filler:
        walberg.start()
        walberg.wait_caught_up()
        database.execute("insert into t values (101, 1)", "insert into other values (1)")
        wait_for("the error", lambda: "No space left" in (walberg.status()["error"] or ""), 30)
        wait_for("parked", lambda: states(walberg)["public.t"] == "parked", 150)
        assert "No space left" in why(walberg) and "tried again" in why(walberg)
        wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
        assert states(walberg)["public.other"] == "streaming"
        assert walberg.status()["error"] is None
        database.execute("insert into t values (102, 1)", "insert into other values (2)")
        wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
        filler.unlink()
        wait_for("it is back", lambda: states(walberg)["public.t"] == "streaming", 150)
        walberg.wait_caught_up()
        compare(database, lake, ["t", "other"], readers=["duckdb"])
        walberg.stop()


def unreadable(walberg, lake, name):
    """A data file of the table becomes a folder: reading it fails as on a bad disk. Returns what
    mends it."""
    file = next(pathlib.Path(walberg.storage.uri.removeprefix("file://"), lake.table(name).folder)
                .glob("data/*.parquet"))
    aside = file.rename(file.with_suffix(".aside"))
    file.mkdir()

    def mend():
        file.rmdir()
        aside.rename(file)
    return mend


def test_a_table_that_cannot_be_read_at_the_start_waits_alone(database, walberg, lake):
    database.execute(*TABLES)
    walberg.once()
    mend = unreadable(walberg, lake, "t")
    shutil.rmtree(walberg.folder / "state" / "index")
    walberg.extra_environment = {"WALBERG_LIMITS": "away.min_ms=2000"}
    walberg.start()
    wait_for("parked", lambda: states(walberg).get("public.t") == "parked")
    assert "cannot open its lake table" in why(walberg) and "tried again" in why(walberg)
    database.execute("insert into t values (101, 1)", "update t set v = 0 where id = 5",
                     "insert into other values (1)")
    wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
    walberg.wait_for_log("a parked table is tried again")
    assert states(walberg)["public.other"] == "streaming"
    mend()
    wait_for("it is back", lambda: states(walberg)["public.t"] == "streaming", 60)
    walberg.wait_caught_up()
    compare(database, lake, ["t", "other"])
    assert walberg.stop() == 0


def test_a_table_that_cannot_be_read_at_the_start_is_mended_by_resync(database, walberg, lake):
    database.execute(*TABLES)
    walberg.once()
    unreadable(walberg, lake, "t")
    shutil.rmtree(walberg.folder / "state" / "index")
    walberg.start()
    wait_for("parked", lambda: states(walberg).get("public.t") == "parked")
    database.execute("insert into t values (101, 1)")
    done = walberg.call("resync", *walberg.positional(), "t")
    assert done.returncode == 0, done.stderr
    walberg.wait_caught_up()
    compare(database, lake, ["t", "other"])
    assert walberg.stop() == 0


def test_a_copy_that_cannot_begin_holds_up_nobody(database, walberg, lake):
    database.execute(*TABLES)
    walberg.once()
    unreadable(walberg, lake, "t")
    shutil.rmtree(walberg.folder / "state" / "index")
    # the first two are those of the start
    walberg.extra_environment = {"WALBERG_LIMITS": "away.min_ms=8000",
                                 "WALBERG_FAULT": "fail:3:sink.attach"}
    walberg.start()
    wait_for("parked", lambda: states(walberg).get("public.t") == "parked")
    walberg.call("resync", *walberg.positional(), "t")
    walberg.wait_for_log("cannot begin its copy")
    assert "interrupted" not in walberg.log()
    wait_for("it is back", lambda: states(walberg)["public.t"] == "streaming", 60)
    walberg.wait_caught_up()
    compare(database, lake, ["t", "other"])
    assert walberg.stop() == 0


@pytest.mark.parametrize("then", ["", ",fail:3:tables.publish"], ids=["lake", "and_source"])
def test_new_tables_that_the_lake_did_not_take_are_taken_in_again(database, walberg, lake, then):
    """It was away as a whole. They are known then: what ALTER TABLE writes into them is seen. If
    the source does not take them next, the others go on."""
    database.execute(*TABLES)
    walberg.extra_environment = {"WALBERG_FAULT": f"fail:3:sink.attach,fail:1:writer.alone{then}"}
    walberg.start()
    walberg.wait_streaming()
    with database.connect(autocommit=False) as conn:
        for name in ("new", "newer"):
            conn.execute(f"create table {name} (id int primary key)")
            conn.execute(f"insert into {name} values (1)")
        conn.commit()
    walberg.wait_for_log("the stream was interrupted", 30)
    for name in ("new", "newer"):
        wait_for(name, lambda name=name: lake.has(name) and is_equal(database, lake, [name]), 30)
    database.execute("alter table new add column w int default (random() * 1000)::int")
    wait_for("the new values", lambda: is_equal(database, lake, ["new"]), 60)
    assert walberg.log().count("the stream was interrupted") == 1
    assert walberg.stop() == 0
    walberg.extra_environment = {}
    walberg.once()
    compare(database, lake, ["t", "other", "new", "newer"])


@pytest.mark.parametrize("then", ["", ",fail:3:tables.publish"], ids=["lake", "and_source"])
def test_a_table_that_is_tried_again_while_the_lake_is_away_goes_on(database, walberg, lake, then):
    """The first attempt fails alone, the second one with the lake as a whole; and the third one may
    meet a source that is away."""
    database.execute(*TABLES)
    walberg.once()
    walberg.extra_environment = {
        "WALBERG_FAULT": f"fail:1:sink.attach,fail:3:sink.attach,fail:2:writer.alone{then}",
        "WALBERG_LIMITS": "away.min_ms=3000"}
    started = len(walberg.log())
    walberg.start()
    wait_for("parked", lambda: "parked" in states(walberg).values())
    database.execute("insert into t values (101, 1)", "insert into other values (1)")
    walberg.wait_for_log("the stream was interrupted", 30, after=started)
    wait_for("it is back", lambda: set(states(walberg).values()) == {"streaming"}, 60)
    walberg.wait_caught_up()
    compare(database, lake, ["t", "other"])
    assert "copying" not in walberg.log()[started:]


@contextlib.contextmanager
def bad_hint(folder):
    """Reading where the table's metadata is fails as on a bad disk; committing does not need it."""
    hint = folder / "metadata/version-hint.text"
    aside = hint.rename(hint.with_suffix(".aside"))
    hint.symlink_to("/proc/self/mem")
    yield
    hint.unlink()
    aside.rename(hint)


def begin_big(database, walberg, last):
    """A transaction that comes in pieces, until the first one is in the lake; its thread."""
    insert = threading.Thread(target=database.execute, args=[
        "insert into big select n, repeat(md5(n::text), 32), 0.0 from generate_series(1, 80000) n"
        f" union all select 0, '', '{last}'::numeric"])
    insert.start()
    wait_for("a piece", lambda: list((warehouse(walberg) / "public/big/data").rglob("*.parquet")),
             60, pause=0.01)
    return insert


BIG = "create table big (id int primary key, v text, n numeric(6,2))"


def test_a_table_that_cannot_be_reloaded_waits_alone(database, walberg, lake):
    """When the stream was interrupted amid a transaction that it has a part of."""
    database.execute(*TABLES, BIG)
    walberg.extra_environment = {"WALBERG_LIMITS": "away.min_ms=2000"}
    walberg.start(memory="64MB")
    walberg.wait_streaming()
    insert = begin_big(database, walberg, 1)
    walberg.process.send_signal(signal.SIGSTOP)
    with bad_hint(warehouse(walberg) / "public/big"):
        insert.join()
        end_session(database)
        walberg.process.send_signal(signal.SIGCONT)
        wait_for("parked", lambda: states(walberg)["public.big"] == "parked", 30)
        reason = why(walberg, "public.big")
        assert "Input/output error" in reason and "tried again" in reason
        database.execute("insert into other values (1)")
        wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
        end_session(database)
        database.execute("insert into other values (2)")
        wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
    wait_for("it is back", lambda: states(walberg)["public.big"] == "streaming", 60)
    walberg.wait_caught_up()
    compare(database, lake, ["t", "other", "big"], readers=["duckdb"])
    assert walberg.stop() == 0


def test_a_parked_table_that_cannot_be_reloaded_holds_up_nobody(database, walberg, lake):
    """Nothing comes to it any more, and a copy reloads it."""
    database.execute(*TABLES, BIG)
    walberg.start(memory="64MB", on_reject="park")
    walberg.wait_streaming()
    insert = begin_big(database, walberg, "NaN")
    with bad_hint(warehouse(walberg) / "public/big"):
        insert.join()
        wait_for("parked", lambda: states(walberg)["public.big"] == "parked", 60)
        for number in (1, 2):
            database.execute(f"insert into other values ({number})")
            wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
            end_session(database)
    database.execute("delete from big where n = 'NaN'")
    walberg.call("resync", *walberg.positional(), "big", check=True)
    walberg.wait_caught_up()
    compare(database, lake, ["t", "other", "big"], readers=["duckdb"])
    assert walberg.stop() == 0


def test_a_change_of_columns_that_cannot_be_committed_waits_alone(database, walberg, lake):
    database.execute(*TABLES)
    walberg.once()
    walberg.extra_environment = {"WALBERG_LIMITS": "away.min_ms=2000"}
    with full_file_system(warehouse(walberg) / lake.table("t").folder) as filler:
        walberg.start()
        walberg.wait_caught_up()
        database.execute("alter table t add column c int")
        wait_for("parked", lambda: states(walberg)["public.t"] == "parked", 30)
        assert "No space left" in why(walberg) and "tried again" in why(walberg)
        database.execute("insert into other values (1)", "update t set c = 1 where id = 5")
        wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
        filler.unlink()
        wait_for("it is back", lambda: states(walberg)["public.t"] == "streaming", 60)
        walberg.wait_caught_up()
        compare(database, lake, ["t", "other"], readers=["duckdb"])
        assert walberg.stop() == 0


def test_a_copy_that_cannot_be_committed_waits_alone(database, walberg, lake):
    """Its rows find room, what names them does not."""
    database.execute(*TABLES)
    walberg.extra_environment = {"WALBERG_LIMITS": "away.min_ms=2000,writer.patience_ms=1000"}
    walberg.start()
    walberg.wait_caught_up()
    with full_file_system(warehouse(walberg) / lake.table("t").folder / "metadata") as filler:
        walberg.call("resync", *walberg.positional(), "t")
        wait_for("parked", lambda: states(walberg)["public.t"] == "parked", 30)
        assert "cannot commit its copy" in why(walberg) and "No space left" in why(walberg)
        database.execute("insert into t values (101, 1)", "insert into other values (1)")
        wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
        filler.unlink()
        wait_for("it is back", lambda: states(walberg)["public.t"] == "streaming", 60)
        walberg.wait_caught_up()
        compare(database, lake, ["t", "other"], readers=["duckdb"])
        assert walberg.stop() == 0


def test_rejects_of_a_copy_that_find_no_room_hold_up_nobody_else(database, walberg, lake):
    """Neither another table of the same copy, nor the stream."""
    database.execute(*REJECTING, "insert into t values (2, 'NaN')")
    walberg.once()
    walberg.extra_environment = {"WALBERG_LIMITS": "away.min_ms=3000,writer.patience_ms=1000"}
    walberg.start(copy__workers=1)
    walberg.wait_streaming()
    with full_file_system(warehouse(walberg) / "_walberg/rejects/metadata") as filler:
        database.execute("create table a_bad (id int primary key, n numeric(6,2));"
                         "create table b_good (id int primary key);"
                         "insert into a_bad values (1, 'NaN'), (2, 1);"
                         "insert into b_good values (1)")
        wait_for("parked", lambda: states(walberg).get("public.a_bad") == "parked", 30)
        assert "table _walberg.rejects: " in why(walberg, "public.a_bad")
        wait_for("the good one", lambda: lake.has("b_good")
                 and is_equal(database, lake, ["b_good"]), 30)
        database.execute("insert into other values (1)", "insert into b_good values (2)")
        wait_for("the others", lambda: is_equal(database, lake, ["other", "b_good"]), 30)
        assert "parked table=public.b_good" not in walberg.log()
        filler.unlink()
    wait_for("it is back", lambda: states(walberg)["public.a_bad"] == "streaming", 60)
    walberg.wait_caught_up()
    compare(database, lake, ["other", "b_good"], readers=["duckdb"])
    assert sorted(rejects(lake)) == ['{"id":1}', '{"id":2}']
    assert walberg.stop() == 0


def test_a_copy_whose_commit_was_done_after_all_misses_nothing(database, walberg, lake):
    """The answer is lost, and the table cannot be read until it is parked: what changed meanwhile
    came by, because the slot waits for no copy."""
    database.execute(*TABLES)
    walberg.once()
    walberg.extra_environment = {
        "WALBERG_LIMITS": "away.min_ms=3000,writer.patience_ms=1000",
        "WALBERG_FAULT": ",".join(["fail:1:catalog.commit.answer", *(f"fail:{n}:sink.look_again"
                                                                  for n in (1, 2, 3))])}
    walberg.start()
    walberg.wait_streaming()
    database.execute("create table late (id int primary key, v int)",
                     "insert into late values (1, 1), (2, 1)")
    walberg.wait_for_log("cannot commit its copy", 30)
    walberg.process.send_signal(signal.SIGSTOP)
    with bad_hint(warehouse(walberg) / "public/late"):
        walberg.process.send_signal(signal.SIGCONT)
        wait_for("parked", lambda: states(walberg).get("public.late") == "parked", 30)
        for number in range(3):
            database.execute(f"insert into late values ({10 + number}, 1)",
                             "update late set v = v + 1 where id = 1",
                             f"insert into other values ({number})")
            wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
        before = walberg.slot()[1]
        database.execute("insert into other values (100)")
        wait_for("the slot", lambda: walberg.slot()[1] != before, 30)
    wait_for("it is back", lambda: states(walberg)["public.late"] == "streaming", 60)
    walberg.wait_caught_up()
    compare(database, lake, ["t", "other", "late"], readers=["duckdb"])
    assert walberg.stop() == 0


def test_a_copy_whose_rows_find_no_room_leaves_its_workers_to_others(database, walberg, lake):
    """It has as many parts as there are workers, and each of them fails."""
    database.execute(TABLES[2])
    create(database, "big")
    interrupt(walberg)
    walberg.extra_environment = {
        "WALBERG_LIMITS": f"{LIMITS},away.min_ms=4000,writer.patience_ms=1000"}
    with full_file_system(warehouse(walberg) / lake.table("big").folder / "data") as filler:
        walberg.start()
        wait_for("parked", lambda: states(walberg).get("public.big") == "parked", 60)
        assert "cannot copy it" in why(walberg, "public.big")
        assert "No space left" in why(walberg, "public.big")
        database.execute("create table later (id int primary key)", "insert into later values (1)",
                         "insert into other values (1)", "update big set n = 1 where id < 100")
        wait_for("the others", lambda: is_equal(database, lake, ["other", "later"]), 30)
        filler.unlink()
        wait_for("it is back", lambda: states(walberg)["public.big"] == "streaming", 60)
        walberg.wait_caught_up()
        compare(database, lake, ["other", "later", "big"], readers=["duckdb"])
        assert walberg.stop() == 0


def test_a_resumed_copy_that_cannot_be_recorded_waits_alone(database, walberg, lake):
    database.execute(TABLES[2])
    create(database, "big")
    interrupt(walberg)
    walberg.extra_environment = {
        "WALBERG_LIMITS": f"{LIMITS},away.min_ms=2000,writer.patience_ms=1000"}
    with full_file_system(warehouse(walberg) / lake.table("big").folder / "metadata") as filler:
        walberg.start()
        wait_for("parked", lambda: states(walberg).get("public.big") == "parked", 30)
        assert "the progress of its copy cannot be recorded" in why(walberg, "public.big")
        database.execute("insert into other values (1)", "update big set n = 1 where id < 100")
        wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
        filler.unlink()
        wait_for("it is back", lambda: states(walberg)["public.big"] == "streaming", 60)
        walberg.wait_caught_up()
        compare(database, lake, ["other", "big"], readers=["duckdb"])
        assert walberg.stop() == 0


def test_a_table_left_out_for_a_while_is_parked(database, walberg):
    database.execute(*TABLES)
    walberg.once()
    database.execute("insert into t values (101, 1)")
    walberg.once(source__tables='["public.*", "!public.t"]')
    database.execute("insert into t values (102, 1)")
    for _ in range(2):
        assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
        assert states(walberg) == {"public.t": "parked", "public.other": "streaming"}
        assert "was away while the slot moved" in why(walberg)


def test_a_gap_is_not_forgotten_while_the_lake_table_cannot_be_opened(database, walberg, lake):
    database.execute(*TABLES)
    walberg.once()
    database.execute("insert into t values (101, 1)")
    walberg.once(source__tables='["public.*", "!public.t"]')
    set_property(walberg, lake, "cdc.pipeline", "stranger")
    for _ in range(2):
        assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
        assert "belongs to pipeline stranger" in why(walberg)
    set_property(walberg, lake, "cdc.pipeline", database.name)
    assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
    assert "was away while the slot moved" in why(walberg)


@contextlib.contextmanager
def reader_role(database):
    """A role that may replicate and read, and owns nothing; its publication is made by others."""
    name = f"reader_{abs(hash(database.name)) % 10**8}"
    database.execute(f"create role {name} login replication",
                     f"grant select on all tables in schema public to {name}",
                     "create publication mine for all tables")
    try:
        yield name
    finally:
        database.execute(f"drop owned by {name}", f"drop role {name}")


def test_a_right_that_is_missing_parks_its_table_alone(database, walberg, lake):
    """At the first copy and later: what happens meanwhile is not lost."""
    database.execute(*TABLES)
    with reader_role(database) as role:
        uri = database.server.uri(database.name, role)
        database.execute(f"revoke select on t from {role}")

        def once():
            return walberg.call("run", "--once", uri, walberg.storage.uri,
                                source__publication="mine")

        assert once().returncode == 1
        assert states(walberg) == {"public.t": "parked", "public.other": "streaming"}
        assert "GRANT SELECT" in why(walberg)
        database.execute(f"grant select on t to {role}")
        assert once().returncode == 0
        compare(database, lake, ["t", "other"])
        database.execute(f"revoke select on t from {role}")
        for number in (1, 2):
            database.execute(f"insert into t values (1000 + {number}, 1)",
                             f"insert into other values ({number})")
            assert once().returncode == 1
            assert compare(database, lake, ["other"]) == number
        database.execute(f"grant select on t to {role}")
        assert once().returncode == 0
        compare(database, lake, ["t", "other"])


def test_a_right_that_comes_back_brings_its_table_back(database, walberg, lake):
    """While it runs: before the first copy, and after a restart that found the right missing."""
    database.execute(*TABLES)
    with reader_role(database) as role:
        uri = database.server.uri(database.name, role)
        walberg.positional = lambda: (uri, str(walberg.storage.uri))
        walberg.settings["source.publication"] = "mine"
        database.execute(f"revoke select on t from {role}")
        walberg.start()
        wait_for("t parked", lambda: states(walberg).get("public.t") == "parked")
        database.execute("insert into t values (2000, 1)", f"grant select on t to {role}")
        wait_for("t back", lambda: states(walberg).get("public.t") == "streaming")
        database.execute(f"revoke select on t from {role}")
        assert walberg.stop() == 0
        walberg.start()
        wait_for("t parked", lambda: states(walberg).get("public.t") == "parked")
        database.execute("insert into t values (2001, 1)", "insert into other values (7)",
                         f"grant select on t to {role}")
        wait_for("t back", lambda: states(walberg).get("public.t") == "streaming")
        walberg.wait_caught_up()
        compare(database, lake, ["t", "other"])
        assert walberg.log().count("no longer parked") == 2


def test_a_table_that_our_publication_cannot_have_is_parked(database, walberg, lake):
    """It is in status with its reason, and joins when the reason is gone."""
    database.execute(*TABLES, "create table odd (id int, g int generated always as (1) stored,"
                              " primary key (id, g))", "insert into odd values (1)")
    walberg.start()
    wait_for("odd parked", lambda: states(walberg).get("public.odd") == "parked")
    assert "key column g does not arrive" in why(walberg, "public.odd")
    assert walberg.call("status", *walberg.positional()).returncode == 1
    walberg.wait_streaming()
    time.sleep(2)   # the first look at the catalogs is over
    database.execute("alter table odd drop constraint odd_pkey", "alter table odd add primary key"
                     " (id)")
    wait_for("odd there", lambda: states(walberg).get("public.odd") == "streaming")
    walberg.wait_caught_up()
    database.execute("insert into t values (3000, 1)")
    walberg.wait_caught_up()
    compare(database, lake, ["t", "other"])
    assert lake.has("odd")


def test_a_copy_refused_as_a_whole_parks_what_it_was_for(database, walberg, lake):
    database.execute(*TABLES)
    walberg.start()
    walberg.wait_streaming()
    taken = []
    with database.connect() as conn:
        try:
            for number in range(20):
                with contextlib.suppress(Exception):
                    conn.execute("select pg_create_physical_replication_slot(%s)", [f"t{number}"])
                    taken.append(f"t{number}")
            conn.execute("create table late (id int primary key)")
            wait_for("parked", lambda: states(walberg).get("public.late") == "parked", 30,
                     pause=0.5)
            assert "max_replication_slots" in why(walberg, "public.late")
            conn.execute("insert into t values (101, 1)")
            walberg.wait_caught_up()
            compare(database, lake, ["t"])
        finally:
            for name in taken:
                conn.execute("select pg_drop_replication_slot(%s)", [name])
    walberg.stop()
    database.execute("insert into late values (1)")
    walberg.once()
    compare(database, lake, ["t", "late"])


def test_an_old_relation_message_does_not_park(database, walberg, lake):
    """The slot is older than the copy of a table, whose shape changed in between."""
    database.execute(*TABLES, "create publication mine for all tables")
    walberg.settings["source.publication"] = "mine"
    walberg.once()
    database.execute("create table late (id int primary key, gone text, v int)",
                     "insert into late values (1, 'x', 1)", "alter table late drop column gone",
                     "insert into late values (2, 2)", "alter table late add column more text",
                     "insert into late values (3, 3, 'm')", "insert into t values (101, 1)")
    walberg.once()
    database.execute("update late set v = v + 1 where id > 1")
    walberg.once()
    compare(database, lake, ["t", "late"])


@pytest.mark.parametrize("looked", [False, True])
def test_a_key_of_the_settings_whose_column_was_renamed(looked, database, walberg, lake):
    """run, while it streams and at its start, and check say the same, and mend by the new name."""
    old = {"tables__public.t.key": "[code]"}
    database.execute("create table t (code int not null, v text)",
                     "create unique index i on t (code)",
                     "alter table t replica identity using index i",
                     "create table other (id int primary key)",
                     "insert into t select n, 'a' from generate_series(1, 20) n")
    walberg.start(**old)
    walberg.wait_streaming()
    database.execute("alter table t rename code to kode", "insert into other values (1)")
    if looked:
        time.sleep(6)
    database.execute("update t set v = 'b' where kode < 5", "insert into other values (2)")
    wait_for("parked", lambda: states(walberg)["public.t"] == "parked", 30)
    assert "key column code does not arrive" in why(walberg)
    wait_for("the other", lambda: is_equal(database, lake, ["other"]), 30)
    assert walberg.stop() == 0
    assert "key column code does not arrive" in walberg.call("check", *walberg.positional(),
                                                             **old).stdout
    walberg.call("run", "--once", *walberg.positional(), **old)
    assert "key column code does not arrive" in why(walberg)
    walberg.once(**{"tables__public.t.key": "[kode]"})
    compare(database, lake, ["t", "other"])


@pytest.mark.parametrize("start", [False, True], ids=["running", "at the start"])
def test_a_locked_new_table_does_not_stop_the_others(start, database, walberg, lake):
    database.execute(*TABLES)
    walberg.start()
    walberg.wait_streaming()
    if start:
        walberg.stop()
    with database.connect(autocommit=False) as conn:
        database.execute("create table late (id int primary key)")
        conn.execute("lock table late in access exclusive mode")
        if start:
            walberg.start()
        walberg.wait_for_log("new tables are locked", 30)
        database.execute("insert into t values (101, 1)")
        walberg.wait_caught_up()
        compare(database, lake, ["t"])
        conn.execute("insert into late values (1)")
        conn.commit()
    wait_for("copied", lambda: lake.has("late") and lake.table("late").position, 60)
    database.execute("insert into late values (2)")
    walberg.wait_caught_up()
    compare(database, lake, ["t", "late"])


def test_the_copy_measures_bare_numerics(database, walberg, lake):
    """A numeric without precision is text in the lake; how wide it is stands in a property, which a
    table that is only copied must have, too."""
    database.execute("create table t (id int primary key, n numeric, x numeric, e numeric)",
                     "insert into t values (1, 12345.6, 1, null), (2, -0.125, 'NaN', null)")
    walberg.once()
    properties = lake.table("t").metadata["properties"]
    assert properties["walberg.numeric.n"] == "5,3"
    assert properties["walberg.numeric.x"] == "text"
    assert "walberg.numeric.e" not in properties
    database.execute("insert into t values (3, 1234567, 1, 0.5)")
    walberg.once()
    properties = lake.table("t").metadata["properties"]
    assert (properties["walberg.numeric.n"], properties["walberg.numeric.e"]) == ("7,3", "0,1")
