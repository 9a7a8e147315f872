"""What another writer commits while something of ours is on its way: a commit whose answer was
lost, files of a new partition spec, new columns. The other writer is PyIceberg."""
import contextlib
import json
import signal

import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType
from test_gaps import TABLE, parks_while_running, publish_version, pyiceberg_table, read, rewrite

from lib.oracle import compare


@contextlib.contextmanager
def between_attempts(walberg, fault, change):
    """Its next commit fails at the fault; the block runs before it looks at the lake again."""
    walberg.extra_environment = {
        "WALBERG_FAULT": ",".join([f"fail:1:{fault}", *(f"fail:{n}:sink.look_again"
                                                       for n in (1, 2, 3))])}
    walberg.start()
    walberg.wait_streaming()
    walberg.database.execute(change)
    walberg.wait_for_log("cannot commit", 20)
    walberg.process.send_signal(signal.SIGSTOP)
    yield
    walberg.process.send_signal(signal.SIGCONT)


# --- partitions and columns ----------------------------------------------------------------------


def two_partition_fields(database, walberg, lake):
    """Ours, of a setting that waits for rows, and another writer's, in the lake already."""
    database.execute(*TABLE, "alter table t add column w text default 'w'")
    walberg.once()
    walberg.start(**{"tables.public.t.partition": "['v']"})
    walberg.wait_streaming()
    foreign = pyiceberg_table(walberg, lake)
    with foreign.update_spec() as update:
        update.add_field("w", IdentityTransform(), "w_part")
    publish_version(walberg, lake, foreign)


def test_a_spec_comes_while_ours_waits_for_its_first_rows(database, walberg, lake):
    """Its change makes no snapshot, and takes the id that our files carry."""
    two_partition_fields(database, walberg, lake)
    database.execute("insert into t values (101, 7, 'x')", "insert into other values (1)")
    parks_while_running(walberg, "another writer changed the partitions")
    walberg.stop()
    assert len(read(lake.table("t"))) == 100
    assert compare(database, lake, ["other"]) == 1
    walberg.once(**{"tables.public.t.partition": "['v']"})      # its files are of the right spec
    assert compare(database, lake, ["t"], check=False) == 101
    scan = StaticTable.from_metadata(lake.table("t").uri).scan(row_filter=EqualTo("v", 7))
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [7, 101]


def test_a_spec_comes_while_ours_has_no_rows(database, walberg, lake):
    """No file carries its id: it may as well be another one."""
    two_partition_fields(database, walberg, lake)
    database.execute("delete from t where id = 5")
    walberg.wait_caught_up()
    database.execute("insert into t values (101, 7, 'x')")
    walberg.wait_caught_up()
    walberg.stop()
    assert compare(database, lake, ["t"], check=False) == 100
    scan = StaticTable.from_metadata(lake.table("t").uri).scan(row_filter=EqualTo("v", 7))
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [7, 101]


def test_a_column_comes_while_ours_waits(database, walberg, lake):
    """It has the field id that our files have for another one."""
    database.execute(*TABLE)
    walberg.once()
    with between_attempts(walberg, "sink.commit",
                          "alter table t add column ours text; insert into t values (101, 1, 'a')"):
        foreign = pyiceberg_table(walberg, lake)
        with foreign.update_schema() as update:
            update.add_column("theirs", IntegerType())
        publish_version(walberg, lake, foreign)
    parks_while_running(walberg, "another writer changed the columns")
    walberg.stop()
    assert len(read(lake.table("t"))) == 100
    walberg.extra_environment = {}
    walberg.once()
    assert compare(database, lake, ["t"], check=False) == 101


# --- a commit whose answer was lost --------------------------------------------------------------


def expire(walberg, lake):
    """Only the current snapshot stays."""
    found = lake.table("t")
    metadata = {**found.metadata, "snapshots": [found.snapshot], "snapshot-log": []}
    path = f"{walberg.storage.uri}/{found.folder}/metadata/v{lake.hint(found)}.metadata.json"
    walberg.storage.write(path, json.dumps(metadata).encode())


@pytest.mark.parametrize("expired", [False, True], ids=["kept", "expired"])
def test_files_are_rewritten_before_we_know_that_we_committed(expired, database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    with between_attempts(walberg, "sink.committed",
                          "insert into t values (101, 1); delete from t where id = 50;"
                          " update t set v = 1 where id = 60"):
        rewrite(walberg, lake)
        if expired:
            expire(walberg, lake)
    walberg.wait_caught_up()
    database.execute("update t set v = -1 where id in (5, 101)",
                     "delete from t where id in (6, 60)")
    walberg.wait_caught_up()
    walberg.stop()
    compare(database, lake, ["t"], check=False)   # PyIceberg's manifests lack what ours have
