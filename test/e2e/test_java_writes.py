"""What another engine commits to a table that walberg streams into: walberg goes on right on top of
it, or parks the table with the reason. The engine is the reference Java library, which Spark stands
on (test/java/Foreign.java); the readers say what the lake then has."""
import atexit
import subprocess

import pytest
from test_foreign import between_attempts
from test_gaps import parks_while_running, table, warehouse

from lib.env import CACHE, ROOT, kill, wait_for
from lib.iceberg_check import check_table
from lib.oracle import Truth, compare, differences, is_equal
from lib.readers import READERS

TABLE = (
    "create table t (id int primary key, v int, price numeric(9,2), at timestamptz, uid uuid,"
    " tags text[], pair point, big text)",
    "alter table t alter big set storage external",
    "insert into t select n, n % 5, n / 3.0, to_timestamp(n * 1e6),"
    " ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, array['a', n::text, null],"
    " point(n, 1), repeat(n::text, 2000) from generate_series(1, 100) n",
    "create table other (id int primary key)")
# Several data files, and deletes of rows in them.
MORE = ("insert into t (id, v, big) select n, n % 5, repeat('y', 3000)"
        " from generate_series(101, 140) n",
        "update t set v = v + 10 where id in (3, 60, 105)",
        "delete from t where id in (4, 61, 106)")


class Java:
    """test/java/Foreign.java as one long-lived process."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-cp",
             f"{CACHE}/java/lib/*", str(ROOT / "test/java/Foreign.java")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(kill, self.process)

    def __call__(self, walberg, lake, command):
        """Do it to the table t; the id of the snapshot that is current then."""
        folder = warehouse(walberg) / lake.table("t").folder
        self.process.stdin.write(f"{folder} {command}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split(maxsplit=1)
        assert answer and answer[0] == "done", answer
        return int(answer[1])


@pytest.fixture(scope="module")
def java():
    return Java()


@pytest.fixture(params=[2, 3], ids=["v2", "v3"], autouse=True)
def version(request, walberg):
    walberg.settings["sink.iceberg.format_version"] = request.param
    return request.param


def ancestors(lake):
    """Ids of the snapshots that the current one stands on, itself included."""
    metadata = lake.table("t").metadata
    parents = {s["snapshot-id"]: s.get("parent-snapshot-id") for s in metadata["snapshots"]}
    found, current = [], metadata["current-snapshot-id"]
    while current in parents:
        found.append(current)
        current = parents[current]
    return found


# What Java's own files lack of the letter of the spec.
OF_JAVA = ["no schema-id in the file's metadata"]


def same(database, lake):
    """The table t is the source's by value, and as the spec wants it."""
    rows = compare(database, lake, ["t"], check=False)
    said = [line for line in check_table(lake.table("t"), rows)
            if not any(known in line for known in OF_JAVA)]
    assert said == []


def lacks(database, lake, gone, readers=READERS):
    """The lake is the source without the rows of these ids."""
    with database.connect() as conn:
        truth = Truth(conn, "t")
    truth.rows = [row for row in truth.rows if row[0] not in gone]
    for reader in readers:
        assert differences(truth, *READERS[reader](lake.table("t")), reader=reader) == [], reader


def filled(database, walberg):
    database.execute(*TABLE)
    walberg.once()
    for statement in MORE:
        database.execute(statement)
        walberg.once()


def goes_on(database, walberg, lake, commit):
    """Rows of before and of after, by every kind of change; `commit` brings them to the lake."""
    for statements in (
            ["update t set v = v + 100 where id in (1, 60, 101, 130)",     # big was not sent
             "delete from t where id in (2, 63, 105)", "insert into t (id, v) values (201, 1)"],
            ["update t set id = 300, big = 'z' where id = 7",
             "update t set v = -1 where id % 9 = 0",
             "delete from t where id in (1, 201) or id % 11 = 0", "insert into t values (1, 1)"]):
        with database.connect() as conn, conn.transaction():
            for statement in statements:
                conn.execute(statement)
        commit()
        same(database, lake)


# Rows are where they were, or somewhere else, and the same.
SAME_ROWS = ["compact", "compact dangling", "rewrite-manifests", "expire", "tag yesterday",
             "branch audit"]


@pytest.mark.parametrize("command", SAME_ROWS)
def test_between_two_runs(command, database, walberg, lake, java):
    filled(database, walberg)
    done = java(walberg, lake, command)
    same(database, lake)
    goes_on(database, walberg, lake, walberg.once)
    assert done in ancestors(lake)


@pytest.mark.parametrize("command", SAME_ROWS)
def test_while_running(command, database, walberg, lake, java):
    filled(database, walberg)
    walberg.start()
    walberg.wait_streaming()
    done = java(walberg, lake, command)
    database.execute("insert into t (id, v) values (200, 1)")   # touches no row that may have moved
    walberg.wait_caught_up()
    goes_on(database, walberg, lake, walberg.wait_caught_up)
    assert done in ancestors(lake)
    assert walberg.stop() == 0


# --- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
@pytest.mark.parametrize("command", ["delete 5 50 120", "overwrite-file 5"])
def test_rows_that_it_deleted(command, running, database, walberg, lake, java):
    """They are missing until the source changes one of them: then the table is copied again."""
    gone = {int(word) for word in command.split()[1:]}
    filled(database, walberg)
    commit = walberg.once
    if running:
        walberg.start()
        walberg.wait_streaming()
        commit = walberg.wait_caught_up
    done = java(walberg, lake, command)
    lacks(database, lake, gone)
    database.execute("insert into t (id, v) values (200, 1)")
    commit()
    database.execute("update t set v = v + 100 where id in (6, 51, 121)",
                     "delete from t where id = 7")
    commit()
    lacks(database, lake, gone)
    assert done in ancestors(lake)
    database.execute("update t set v = -1 where id = 5", "delete from t where id = 50")
    commit()
    if running:
        wait_for("copied again", lambda: is_equal(database, lake, ["t"]), 60)
    assert "to be copied again" in walberg.log()
    goes_on(database, walberg, lake, commit)


def test_it_deletes_what_the_source_changes_at_once(database, walberg, lake, java):
    """We do not know yet that the rows are gone: what the source says of them holds."""
    filled(database, walberg)
    walberg.start()
    walberg.wait_streaming()
    done = java(walberg, lake, "delete 5 50 120")
    with database.connect() as conn, conn.transaction():
        conn.execute("update t set v = -1 where id in (5, 6, 122)")
        conn.execute("delete from t where id in (7, 120)")
    walberg.wait_caught_up()
    lacks(database, lake, {50})
    assert done in ancestors(lake)
    database.execute("update t set v = -2 where id in (5, 50)")
    walberg.wait_caught_up()
    wait_for("copied again", lambda: is_equal(database, lake, ["t"]), 60)
    goes_on(database, walberg, lake, walberg.wait_caught_up)


@pytest.mark.parametrize("command", ["compact", "overwrite-file 5"])
def test_it_moves_what_the_source_changes_at_once(command, database, walberg, lake, java):
    filled(database, walberg)
    walberg.start()
    walberg.wait_streaming()
    done = java(walberg, lake, command)
    with database.connect() as conn, conn.transaction():
        conn.execute("update t set v = -1 where id in (5, 6, 122)")
        conn.execute("insert into other values (1)")
    parks_while_running(walberg, "another writer rewrote files")
    walberg.stop()
    assert ancestors(lake)[0] == done
    compare(database, lake, ["other"])
    walberg.call("resync", "public.t", *walberg.positional())
    walberg.once()
    goes_on(database, walberg, lake, walberg.once)


# --- columns and partitions ----------------------------------------------------------------------

COLUMNS = ["add-column note", "rename-column v w", "drop-column v"]


@pytest.mark.parametrize("command", COLUMNS)
def test_columns_between_two_runs(command, database, walberg, lake, java):
    """They are the source's: what was done is undone, by a copy where values were lost."""
    filled(database, walberg)
    done = java(walberg, lake, command)
    database.execute("update t set v = v + 100 where id in (1, 60, 101, 130)")
    walberg.once()
    assert done in ancestors(lake)
    assert ("column v is gone from the lake" in walberg.log()) == (command == "drop-column v")
    goes_on(database, walberg, lake, walberg.once)


@pytest.mark.parametrize("command", ["add-column note", "rename-column v w"])
def test_columns_while_running(command, database, walberg, lake, java):
    """Values go by field id. The names are the source's again after the next start."""
    filled(database, walberg)
    walberg.start()
    walberg.wait_streaming()
    done = java(walberg, lake, command)
    database.execute("update t set v = v + 100 where id in (1, 60, 101, 130)")
    walberg.wait_caught_up()
    assert table(walberg)["state"] == "streaming"
    with database.connect() as conn:
        truth = Truth(conn, "t")
    for reader in READERS:
        names, rows = READERS[reader](lake.table("t"))
        assert names[1] == ("w" if "w" in command.split() else "v")
        assert names[8:] == (["note"] if "note" in command.split() else [])
        assert differences(truth, truth.names, [row[:8] for row in rows], reader=reader) == []
    assert done in ancestors(lake)
    assert walberg.stop() == 0
    goes_on(database, walberg, lake, walberg.once)


def test_a_column_dropped_while_running(database, walberg, lake, java):
    filled(database, walberg)
    walberg.start()
    walberg.wait_streaming()
    done = java(walberg, lake, "drop-column v")
    with database.connect() as conn, conn.transaction():
        conn.execute("update t set v = v + 100 where id in (1, 60, 101, 130)")
        conn.execute("insert into other values (1)")
    parks_while_running(walberg, "another writer dropped column v")
    wait_for("the other table", lambda: is_equal(database, lake, ["other"]), 60)
    assert ancestors(lake)[0] == done and "v" not in lake.table("t").columns
    assert walberg.stop() in (0, 1)
    walberg.once()
    assert "column v is gone from the lake" in walberg.log()
    goes_on(database, walberg, lake, walberg.once)


@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
def test_a_partition_field(running, database, walberg, lake, java):
    """New files of ours have it, also after a restart."""
    filled(database, walberg)
    commit = walberg.once
    if running:
        walberg.start()
        walberg.wait_streaming()
        commit = walberg.wait_caught_up
    done = java(walberg, lake, "add-spec-field v")
    database.execute("insert into t (id, v) values (200, 1)")
    commit()
    goes_on(database, walberg, lake, commit)
    assert done in ancestors(lake)
    if running:
        assert walberg.stop() == 0
    database.execute("update t set v = 1000 where id = 9")
    walberg.once()
    same(database, lake)
    metadata = lake.table("t").metadata
    spec = next(s for s in metadata["partition-specs"]
                if s["spec-id"] == metadata["default-spec-id"])
    assert [field["name"] for field in spec["fields"]] == ["v"]


@pytest.mark.parametrize("command", ["compact", "delete 5 50 120"])
def test_partitions_of_ours(command, database, walberg, lake, java):
    walberg.settings["tables.public.t.partition"] = "['bucket(3, id)', 'v']"
    filled(database, walberg)
    done = java(walberg, lake, command)
    database.execute("update t set v = -1 where id in (5, 50)", "delete from t where id = 120")
    walberg.once()
    goes_on(database, walberg, lake, walberg.once)
    assert done in ancestors(lake)


@pytest.mark.parametrize("version", [2], indirect=True)
def test_version_3_after_a_compaction(version, database, walberg, lake, java):
    """Position deletes on files that are gone become no vectors."""
    filled(database, walberg)
    java(walberg, lake, "compact dangling")
    walberg.settings["sink.iceberg.format_version"] = version + 1
    goes_on(database, walberg, lake, walberg.once)
    java(walberg, lake, "compact")
    database.execute("update t set v = -5 where id % 7 = 0", "delete from t where id % 13 = 0")
    walberg.once()
    same(database, lake)


# --- between our look and our commit -------------------------------------------------------------

CHANGE = ("insert into t (id, v) values (200, 1); update t set v = -1 where id in (5, 122);"
          " delete from t where id = 120")


@pytest.mark.parametrize("command, missing", [
    ("delete 5 50 120", {50}), ("rewrite-manifests", set()), ("expire", set()), ("tag x", set())])
def test_before_our_commit(command, missing, database, walberg, lake, java):
    filled(database, walberg)
    with between_attempts(walberg, "sink.commit", CHANGE):
        done = java(walberg, lake, command)
    walberg.wait_caught_up()
    lacks(database, lake, missing)
    assert done in ancestors(lake)
    database.execute("update t set v = -2 where id in (5, 50)")
    walberg.wait_caught_up()
    wait_for("equal", lambda: is_equal(database, lake, ["t"]), 60)
    same(database, lake)


def test_rows_move_before_our_commit(database, walberg, lake, java):
    filled(database, walberg)
    with between_attempts(walberg, "sink.commit", CHANGE):
        done = java(walberg, lake, "compact")
    parks_while_running(walberg, "another writer rewrote files")
    assert ancestors(lake)[0] == done


@pytest.mark.parametrize("command", ["compact", "compact dangling", "overwrite-file 6", "expire"])
def test_after_our_commit_whose_answer_was_lost(command, database, walberg, lake, java):
    filled(database, walberg)
    with between_attempts(walberg, "sink.committed", CHANGE):
        done = java(walberg, lake, command)
    walberg.wait_caught_up()
    database.execute("update t set v = -2 where id in (5, 6, 200)", "delete from t where id = 122")
    walberg.wait_caught_up()
    wait_for("equal", lambda: is_equal(database, lake, ["t"]), 60)
    assert done in ancestors(lake)
    same(database, lake)
