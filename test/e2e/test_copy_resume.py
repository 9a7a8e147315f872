"""An initial copy that was interrupted goes on: ranges of pages that are done are not read again,
and what changed meanwhile is replayed before anything is shown.

WALBERG_LIMITS makes ranges of some pages instead of 32 MB, and a record every few milliseconds
instead of every five seconds. Where the copy is interrupted is said by a fault point:
"crash:9:copy.record" dies before the ninth record, so that eight are certainly there.
"""
import json
import random
import re
import shutil
import time

import pytest

from lib.env import FULL, SEED, wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.walberg import Walberg
from lib.workload import Load, Workload

KILLED = 137
PAGES = 4  # of a range
OFTEN = "copy.record_ms=0,copy.step_ms=3"
LIMITS = f"copy.range_bytes={PAGES * 8192},{OFTEN}"
DIES = "crash:9:copy.record"
DONE = 8  # ranges at least, then

# 17 rows a page, 60 ranges. Updates of a full page go to the end, or where a vacuum made room.
TABLE = ("create table {0} (id int primary key, n int, pad text, body text)",
         "alter table {0} alter pad set storage plain, alter body set storage external",
         "insert into {0} select n, 0, repeat('x', 400), null from generate_series(1, 4000) n",
         "vacuum analyze {0}")


def create(database, *tables):
    for table in tables:
        database.execute(*(sql.format(table) for sql in TABLE))


def ranges(database, table="t"):
    pages = database.rows(f"select pg_relation_size('{table}') / 8192")[0][0]
    return -(-pages // PAGES)


def run(walberg, fault=None, **settings):
    """run --once with small ranges and one worker."""
    walberg.extra_environment = {"WALBERG_LIMITS": LIMITS,
                                 **({"WALBERG_FAULT": fault} if fault else {})}
    return walberg.call("run", "--once", *walberg.positional(), copy__workers=1, **settings)


def interrupt(walberg, fault=DIES, **settings):
    done = run(walberg, fault, **settings)
    assert done.returncode == KILLED, done.stderr[-3000:]


def finish(walberg, fault=None, **settings):
    done = run(walberg, fault, **settings)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def resumed(log, table="t"):
    """Ranges that were done before, as the program says."""
    match = re.search(rf"copy resumed table=public\.{table} ranges_done=(\d+)", log)
    assert match, log[-3000:]
    return int(match.group(1))


def tuples_read(database):
    """By scans, as the server counts them; also in the sessions that have ended just now."""
    database.execute("select pg_stat_force_next_flush()")
    return database.rows("select seq_tup_read from pg_stat_user_tables where relname = 't'")[0][0]


# --- what is done is not done again ----------------------------------------------------------


def test_done_ranges_are_not_read_again(database, walberg, lake):
    create(database, "t")
    total = ranges(database)
    interrupt(walberg)
    read = wait_for("statistics", lambda: tuples_read(database))
    log = finish(walberg, "list:1:source.copy.task")
    before = resumed(log)
    assert DONE <= before < total
    assert log.count("fault point source.copy.task") == total - before
    rest = 4000 - before * 4000 // total
    wait_for("statistics", lambda: tuples_read(database) > read)
    assert tuples_read(database) - read <= rest + 200
    compare(database, lake, ["t"])


def start_slowly(walberg, limits=OFTEN):
    """run in the background, a page at a time: the copy takes about a second."""
    walberg.extra_environment = {"WALBERG_LIMITS": f"copy.range_bytes=8192,{limits}"}
    walberg.start(copy__workers=1)
    walberg.wait_for_log("copying tables=")
    time.sleep(0.2)


def test_sigterm_records_and_leaves(database, walberg, lake):
    create(database, "t")
    start_slowly(walberg, "copy.record_ms=99999")
    assert walberg.stop() == 0
    assert "copied table" not in walberg.log()
    assert resumed(finish(walberg)) > 0
    compare(database, lake, ["t"])


def test_lost_snapshot_goes_on_in_the_same_process(database, walberg, lake):
    create(database, "t")
    start_slowly(walberg)
    database.execute("select pg_terminate_backend(pid) from pg_stat_activity"
                     " where application_name like 'walberg%' and datname = current_database()",
                     "update t set n = 1 where id % 7 = 1", "delete from t where id % 10 = 3")
    walberg.wait_for_log("copy resumed")
    walberg.wait_caught_up()
    compare(database, lake, ["t"])


def test_status_counts_what_was_done_before(database, walberg):
    create(database, "t")
    interrupt(walberg)
    walberg.extra_environment = {"WALBERG_LIMITS": LIMITS}
    walberg.start(copy__workers=1)
    walberg.wait_for_log("copy resumed")
    first = walberg.status()["tables"][0]
    assert first["copied_rows"] > 0 and first["copied_fraction"] > 0
    wait_for("the end of it", lambda: walberg.status()["tables"][0]["state"] == "streaming")
    last = walberg.status()["tables"][0]
    assert (last["copied_rows"], last["copied_fraction"], last["rows"]) == (4000, 1.0, 4000)


# --- what changed meanwhile ------------------------------------------------------------------

MAKE_ROOM = ("delete from t where id % 9 = 0", "vacuum t")
CHANGES = {
    "nothing": (),
    "moves to the end": ("update t set n = n + 1 where id % 3 = 0",),
    "moves to the front": (*MAKE_ROOM, "update t set n = n + 1 where id > 3000"),
    "moves twice": (*MAKE_ROOM, "update t set n = 1 where id > 2000",
                    "update t set n = 2, pad = repeat('y', 300) where id > 2500"),
    "deletes": ("delete from t where id % 2 = 0",),
    "inserts": ("insert into t select n, 1, repeat('z', 400) from generate_series(5001, 6000) n",),
    "again": ("delete from t where id % 4 = 0",
              "insert into t select n * 4, 7, 'again' from generate_series(1, 1000) n",
              "delete from t where id % 8 = 0"),
    "other keys": (*MAKE_ROOM, "update t set id = -id where id % 5 = 1",
                   "update t set id = -id where id % 10 = -1"),
    "swapped keys": (*MAKE_ROOM, "update t set n = id",
                     "update t set id = -id where id in (1, 3991)",
                     "update t set id = 3991 where id = -1",
                     "update t set id = 1 where id = -3991"),
    "emptied": ("delete from t", "vacuum t", "insert into t values (1, 1, 'one')"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_meanwhile(name, database, walberg, lake):
    create(database, "t")
    interrupt(walberg)
    database.execute(*CHANGES[name])
    log = finish(walberg)
    assert resumed(log) >= DONE
    assert "to be copied again" not in log
    compare(database, lake, ["t"])
    database.execute("update t set n = n + 100 where id % 6 = 1", "delete from t where id % 6 = 2")
    finish(walberg)
    compare(database, lake, ["t"])


REWRITES = {
    "truncate": ("truncate t", "insert into t values (5, 5, 'five')"),
    "vacuum full": ("delete from t where id % 2 = 0", "vacuum full t"),
    "cluster": ("cluster t using t_pkey",),
    "add column": ("alter table t add column more int default 3",),
    "renamed and back": ("alter table t rename n to m", "alter table t rename m to n"),
    "other type": ("alter table t alter n type bigint",),
    "drop and add": ("alter table t drop column n, add column n int", "update t set n = id"),
    "made again": ("drop table t", *(sql.format("t") for sql in TABLE)),
    "out of the publication": ("alter publication {p} drop table t",
                               "update t set n = 1 where id % 2 = 0",
                               "alter publication {p} add table t"),
}


@pytest.mark.parametrize("name", REWRITES)
def test_rewritten_meanwhile_begins_from_the_beginning(name, database, walberg, lake):
    create(database, "t")
    interrupt(walberg)
    publication = database.rows("select pubname from pg_publication")[0][0]
    database.execute(*(sql.replace("{p}", publication) for sql in REWRITES[name]))
    log = finish(walberg)
    assert "copy begins from the beginning" in log and "copy resumed" not in log
    compare(database, lake, ["t"])


@pytest.mark.parametrize("change", ["truncate t", "vacuum full t",
                                    "alter table t alter n type bigint"])
def test_rewritten_after_the_look(change, database, walberg, lake):
    """Between the look at the catalog and the new snapshot, or under the snapshot."""
    create(database, "t")
    interrupt(walberg)
    walberg.extra_environment = {"WALBERG_LIMITS": LIMITS}
    walberg.start(copy__workers=1)
    walberg.wait_for_log("copy resumed")
    database.execute(change, "insert into t values (-1, -1, 'later')")
    walberg.wait_caught_up()
    compare(database, lake, ["t"])


def test_key_that_was_another_for_a_while(database, walberg, lake):
    """Nothing of the columns changed, but changes came by the other key."""
    create(database, "t")
    database.execute("update t set n = -id", "alter table t alter n set not null",
                     "vacuum full t", "vacuum analyze t")
    interrupt(walberg)
    database.execute("alter table t drop constraint t_pkey, add constraint other primary key (n)",
                     "update t set id = id + 10000 where id > 3000",
                     "alter table t drop constraint other, add constraint t_pkey primary key (id)",
                     "delete from t where id % 3 = 0")
    assert "its columns or its key changed" in finish(walberg)
    compare(database, lake, ["t"])


# --- values that an update leaves alone ------------------------------------------------------

BIG = "update t set body = repeat(md5(id::text), 100) where id % 5 = 0"


def create_with_bodies(database):
    create(database, "t")
    database.execute(BIG, "vacuum full t", "vacuum analyze t")


@pytest.mark.parametrize("where", ["id % 2 = 0", "id < 100", "id > 3900"])
def test_unsent_values(where, database, walberg, lake):
    """Of rows done before, of rows to come; those that moved away from under the copy make it begin
    again. Never NULL, never another row's."""
    create_with_bodies(database)
    interrupt(walberg)
    database.execute(f"update t set n = 1 where {where}", f"update t set n = 2 where {where}")
    assert resumed(finish(walberg)) >= DONE
    compare(database, lake, ["t"])


def test_unsent_value_of_a_row_that_was_missed(database, walberg, lake):
    """From the end into the room in front: loaded neither there nor here."""
    create_with_bodies(database)
    database.execute("delete from t where id < 100", "vacuum t")
    interrupt(walberg)
    database.execute("update t set n = 1 where id > 3000 and id % 5 = 0")
    assert database.rows(f"select 1 from t where id > 3000 and ctid < '({DONE * PAGES},0)'")
    log = finish(walberg)
    assert resumed(log) >= DONE
    assert "its row moved while the copy was interrupted" in log
    compare(database, lake, ["t"])


def test_unsent_values_of_swapped_keys(database, walberg, lake):
    """The row that now has the key, under the newer snapshot, is not the row that was changed."""
    create_with_bodies(database)
    interrupt(walberg)
    for low, high in ((3990, 3995), (5, 3980), (3985, 10)):
        database.execute(f"update t set id = -1 where id = {low}",
                         f"update t set id = {low} where id = {high}",
                         f"update t set id = {high} where id = -1")
    finish(walberg)
    compare(database, lake, ["t"])


def test_replica_identity_full_with_a_key(database, walberg, lake):
    create_with_bodies(database)
    database.execute("alter table t replica identity full")
    interrupt(walberg)
    database.execute(*MAKE_ROOM, "update t set n = 1 where id % 2 = 0",
                     "update t set id = id + 10000 where id % 7 = 0")
    finish(walberg)
    compare(database, lake, ["t"])


# --- interrupted many times ------------------------------------------------------------------


def churn(database, chance):
    """Some of everything, in transactions that touch many pages."""
    for _ in range(chance.randrange(1, 5)):
        part = chance.randrange(2, 40)
        rest = chance.randrange(part)
        database.execute(chance.choice([
            f"update t set n = n + 1 where id % {part} = {rest}",
            f"update t set pad = repeat('p', {chance.randrange(300, 500)})"
            f" where id % {part} = {rest}",
            f"update t set body = repeat(md5(id::text), 90) where id % {part * 5} = {rest}",
            f"delete from t where id % {part} = {rest}",
            "insert into t select n, 1, repeat('i', 400) from generate_series(1, 5000) n"
            f" where n % {part} = {rest} on conflict do nothing",
            f"update t set id = -id where abs(id) % {part} = {rest}"
            " and not exists (select from t other where other.id = -t.id)",
            "vacuum t"]))


@pytest.mark.parametrize("number", range(6))
def test_interrupted_again_and_again(number, database, walberg, lake):
    """Several snapshots, and deaths in the hidden phase."""
    chance = random.Random(f"{SEED} {number}")
    create(database, "t")
    points = ["copy.record", "source.copy.task", "copy.batch", "sink.bulk_record",
              "sink.file_written", "sink.state", "sink.resume", "reader.hand_over",
              "sink.bulk_commit", "sink.commit",
              "writer.commit_table", "copy.snapshot"]
    interrupt(walberg)
    for _ in range(5):
        churn(database, chance)
        done = run(walberg, f"crash:{chance.randrange(1, 12)}:{chance.choice(points)}")
        assert done.returncode in (0, KILLED), done.stderr[-3000:]
        if chance.random() < 0.3:
            shutil.rmtree(walberg.folder / "state", ignore_errors=True)
    churn(database, chance)
    finish(walberg)
    compare(database, lake, ["t"])


@pytest.mark.parametrize("alters", [False, True], ids=["rows", "rows and shapes"])
def test_workload_while_copies_are_interrupted(alters, database, walberg, lake):
    """Random transactions over tables of every kind, all the time; killed at any moment.

    An altered table begins anew. One that never is goes on: it is copied first, since tables are
    copied in the order of their names, and the first death is in the middle of it."""
    dice = random.Random(SEED)
    walberg.extra_environment = {"WALBERG_LIMITS": f"copy.range_bytes=8192,{OFTEN}"}
    database.execute("create schema \"A\"")
    create(database, "\"A\".same")
    with database.connect() as conn:
        workload = Workload(conn, SEED, alters)
        workload.fill(400)
        conn.execute("vacuum analyze")
        load = Load(workload, rate=40)
        load.start()
        for nth in (9, *(dice.randrange(2, 12) for _ in range(3))):
            seen = len(walberg.log())
            walberg.extra_environment["WALBERG_FAULT"] = f"crash:{nth}:copy.record"
            walberg.start(copy__workers=2)
            wait_for("its end, or that of the copy", lambda at=seen: not walberg.alive()
                     or "streaming slot" in walberg.log()[at:])
            walberg.kill()
            database.execute("update \"A\".same set n = n + 1 where id % 7 = 0",
                             f"delete from \"A\".same where id % 100 = {nth}",
                             "update \"A\".same set id = -id where id % 11 = 0")
        assert re.search(r"copy resumed table=\S*A\S*same ", walberg.log())
        del walberg.extra_environment["WALBERG_FAULT"]
        for _ in range(4):
            walberg.start(copy__workers=2)
            time.sleep(dice.uniform(0.2, 1.2))
            walberg.kill()
        walberg.start(copy__workers=2)
        load.stop()
        walberg.wait_caught_up()
    names = [*workload.names, ("A", "same")]
    wait_for("all tables to be as in the catalog",
             lambda: is_equal(database, lake, names), 60, pause=2)
    compare(database, lake, names)


def resumed_scene(database, walberg):
    create(database, "t")
    interrupt(walberg)
    database.execute(*CHANGES["moves twice"], "update t set id = -id where id % 11 = 0")


def test_dies_at_every_point_of_what_is_resumed(postgres, tmp_path, database, walberg, lake):
    """Each point that a resumed copy passes, at its first passing; and fails there once."""
    resumed_scene(database, walberg)
    points = sorted(set(re.findall(r"^fault point (\S+)$", finish(walberg, "list"), re.M)))
    ours = {"sink.resume", "sink.bulk_record", "copy.record", "sink.bulk_commit"}
    assert ours <= set(points)
    if not FULL:
        points = sorted({*ours, *random.Random(SEED).sample(points, 6)})
    for mode in ("crash", "fail"):
        for number, point in enumerate(points):
            database.execute("drop table t")
            postgres.execute("postgres", *(
                f"select pg_drop_replication_slot('{slot}')" for (slot,) in postgres.rows(
                    "postgres", "select slot_name from pg_replication_slots where database = %s",
                    [database.name])))
            database.execute(*(f'drop publication "{name}"' for (name,) in
                               database.rows("select pubname from pg_publication")))
            folder = tmp_path / f"{mode}{number}"
            folder.mkdir()
            again = Walberg(database, walberg.storage.__class__(folder / "lake"), folder)
            resumed_scene(database, again)
            done = run(again, f"{mode}:1:{point}")
            assert done.returncode in ((KILLED,) if mode == "crash" else (0, 3)), point
            database.execute("update t set n = n + 1 where id % 13 = 0")
            finish(again)
            compare(database, Lake(again.storage), ["t"], readers=["duckdb"])


# --- beside other things ---------------------------------------------------------------------


def test_others_stream_while_it_is_hidden(database, walberg, lake):
    """A small table is complete at once; the slot waits for the one that is not."""
    create(database, "t")
    database.execute("create table small (id int primary key)", "insert into small values (1)")
    interrupt(walberg)
    database.execute("insert into small values (2)", "update t set n = 1 where id % 2 = 0",
                     "insert into small values (3)")
    log = finish(walberg)
    assert resumed(log) >= DONE
    compare(database, lake, ["t", "small"])


def recorded(walberg):
    """Of the only copy in the state object: its oldest position, and what the slot was told."""
    path = walberg.folder / "lake" / "_walberg" / f"{walberg.database.name}.json"
    state = json.loads(path.read_text())
    parts = [table["copy"]["parts"] for table in state["tables"] if "copy" in table]
    return parts[0][0]["position"], state["acknowledged"]


def test_never_shown_before_it_is_whole(database, walberg, lake):
    """It dies while it is replayed, in several epochs, and another table goes on: the slot and the
    state wait, and all of it is replayed again."""
    records = walberg.folder / "lake" / "public" / "t" / "metadata"
    create(database, "t")
    database.execute("create table small (id int primary key)")
    total = ranges(database)
    interrupt(walberg)
    database.execute(*MAKE_ROOM)
    for i in range(10):
        database.execute(f"update t set n = n + 1 where id % 10 > {i}",
                         f"insert into small values ({i})")
    settings = {"commit.rows": 1000}
    assert run(walberg, "crash:5:writer.committed", **settings).returncode == KILLED
    assert lake.table("t").snapshot is None
    assert lake.table("small").snapshot is not None
    oldest, acknowledged = recorded(walberg)
    assert acknowledged == oldest
    assert list(records.glob("copy-*"))
    assert resumed(finish(walberg, **settings)) >= total
    assert len(lake.table("t").metadata["snapshots"]) == 1
    assert len(list(records.glob("copy-*"))) <= 2  # of the process that died
    compare(database, lake, ["t", "small"])


def test_resync_goes_on_too(database, walberg, lake):
    """The old rows are shown until the new ones are all there."""
    create(database, "t")
    finish(walberg)
    database.execute(*MAKE_ROOM)
    (walberg.folder / "state" / "resync").write_text("public.t\n")
    interrupt(walberg)
    assert lake.table("t").summary["total-records"] == "4000"
    database.execute("update t set n = n + 1 where id > 2000", "delete from t where id % 5 = 0")
    assert resumed(finish(walberg)) >= DONE
    compare(database, lake, ["t"])


def test_partitions_in_source_and_lake(database, walberg, lake):
    database.execute("create table t (id int primary key, n int, pad text) partition by range (id)",
                     *(f"create table t{i} partition of t for values from ({i * 1000})"
                       f" to ({i * 1000 + 1000})" for i in range(5)),
                     "insert into t select n, n % 7, repeat('x', 400)"
                     " from generate_series(1, 4000) n",
                     "vacuum analyze t")
    settings = {"tables.public.t.partition": "['n']"}
    interrupt(walberg, **settings)
    database.execute("delete from t where id % 9 = 0", "vacuum t",
                     "update t set n = (n + 1) % 7 where id % 2 = 0",
                     "update t set id = id + 3500 where id between 1000 and 1400")
    assert resumed(finish(walberg, **settings)) >= DONE
    compare(database, lake, ["t"])


def test_on_s3_with_the_state_folder_lost(database, seaweed, tmp_path):
    walberg = Walberg(database, seaweed.warehouse(), tmp_path)
    create(database, "t")
    interrupt(walberg)
    shutil.rmtree(tmp_path / "state")
    database.execute(*CHANGES["moves twice"])
    assert resumed(finish(walberg)) >= DONE
    compare(database, Lake(walberg.storage), ["t"])


def test_files_that_somebody_removed(database, walberg, lake):
    """No snapshot refers to them, so whoever tidies up may take them."""
    create(database, "t")
    interrupt(walberg)
    files = sorted((walberg.folder / "lake" / "public" / "t" / "data").glob("*.parquet"))
    files[0].unlink()
    log = finish(walberg)
    assert "copy begins from the beginning" in log and "is gone" in log
    compare(database, lake, ["t"])


def test_slot_stays_for_it(database, walberg):
    create(database, "t")
    interrupt(walberg)
    oldest, acknowledged = recorded(walberg)
    assert acknowledged == oldest == walberg.slot()[1]


def test_widths_and_rejects_of_what_was_done_before(database, walberg, lake):
    """The widest number and the one rejected value are in the first range."""
    database.execute("create table t (id int primary key, v numeric, at timestamptz, pad text)",
                     "alter table t alter pad set storage plain",
                     "insert into t select n, case when n = 1 then 123456789.12345 else 1 end,"
                     " case when n = 2 then 'infinity' else now() end::timestamptz,"
                     " repeat('x', 400) from generate_series(1, 4000) n", "vacuum analyze t")
    interrupt(walberg)
    assert resumed(finish(walberg)) >= DONE
    compare(database, lake, ["t"])
    assert lake.table("t").metadata["properties"]["walberg.numeric.v"] == "9,5"
    rows = walberg.call("sql", walberg.storage.uri,
                        "select count(*) from _walberg.rejects where \"table\" = 't'",
                        "--format", "csv").stdout.split()
    assert rows[-1] == "1"


@pytest.mark.parametrize("fault", ["fail:2:sink.bulk_commit", "fail:3:store.list"])
def test_store_fails_when_it_is_hidden_again(fault, database, walberg, lake):
    """The table does not go on without the rows that were copied."""
    create(database, "t")
    interrupt(walberg)
    database.execute("insert into t select n, 0, 'p', 'b' from generate_series(5001, 5100) n")
    walberg.extra_environment = {"WALBERG_LIMITS": LIMITS,
                                 "WALBERG_FAULT": f"fail:1:reader.hand_over,{fault}"}
    walberg.start(copy__workers=1)
    wait_for("the lake to be equal", lambda: lake.has("t") and is_equal(database, lake, ["t"]), 60,
             pause=1)
    database.execute("insert into t values (6000, 0, 'p', 'b')")
    walberg.wait_caught_up()
    compare(database, lake, ["t"])
