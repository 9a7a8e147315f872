"""Partitioned lake tables: every transform with every type it takes, rows that move, settings and
columns that change; equal by value through every reader, and true by the letter of the spec
(lib/iceberg_check.py)."""
import pytest

from lib.env import wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.walberg import Walberg

INTEGERS = ["0", "1", "-1", "9", "10", "-10", "-11"]
INSTANTS = ["1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2017-11-16 22:31:08",
            "1970-01-01 00:59:59.999999", "2024-02-29 12:00:00", "2000-03-01 00:00:00",
            "0001-01-01 00:00:00", "4714-11-24 00:00:00 BC", "294246-12-31 23:59:59.999999"]
VALUES = {
    "bool": ["true", "false"],
    "int": INTEGERS + ["2147483647", "-2147483648", "34"],
    "bigint": INTEGERS + ["9223372036854775807", "-9223372036854775808", "34"],
    "real": ["0", "-0", "1.5", "NaN", "Infinity", "-Infinity"],
    "float8": ["0", "-0", "1e300", "NaN", "Infinity", "-Infinity"],
    "numeric(9,2)": ["0", "14.20", "10.65", "-0.01", "9999999.99", "-9999989.99"],
    "numeric(38,4)": ["0", "-0.0001", "1" * 34 + ".9999", "-" + "8" * 34 + ".1234"],
    "date": ["1970-01-01", "1969-12-31", "2017-11-16", "2024-02-29", "4714-11-24 BC",
             "5874897-12-31", "1900-03-01"],
    "time": ["00:00:00", "22:31:08", "23:59:59.999999"],
    "timestamp": INSTANTS,
    "timestamptz": [value + "+00" if "BC" not in value else value.replace(" BC", "+00 BC")
                    for value in INSTANTS],
    "text": ["", "iceberg", "ice", "null", "a/b=c&d ?*%[x]", "\U0001f600\u00e9\u4e16\u754c!",
             " x", "x" * 3000],
    "json": ['{"a": 1}', "[]"],
    "bytea": ["\\x", "\\x00010203", "\\xff", "\\x0001020304"],
    "uuid": ["f79c3e09-677c-4bbd-a479-3f349cb785e7", "00000000-0000-0000-0000-000000000000",
             "ffffffff-ffff-ffff-ffff-ffffffffffff"],
}
TIMES = ["timestamp", "timestamptz"]
TAKES = {
    "identity({})": list(VALUES),
    "bucket[7]({})": [kind for kind in VALUES if kind not in ("bool", "real", "float8")],
    "truncate[10]({})": ["int", "bigint", "numeric(9,2)", "numeric(38,4)", "text", "json", "bytea"],
    "truncate[3]({})": ["text"],
    "year({})": ["date", *TIMES],
    "month({})": ["date", *TIMES],
    "day({})": ["date", *TIMES],
    "hour({})": TIMES,
    "void({})": ["int"],
}
ALL = [(transform, kind) for transform, kinds in TAKES.items() for kind in kinds]


def partition(table, *terms):
    return {f"tables.public.{table}.partition": "[" + ", ".join(f"'{t}'" for t in terms) + "]"}


def insert(conn, table, values, first=1):
    for number, value in enumerate([*values, None], first):
        conn.execute(f"insert into {table} values (%s, %s, 0)", [number, value])


def field(lake, table="t"):
    """(name, transform) of the fields of new files."""
    metadata = lake.table(table).metadata
    spec = next(s for s in metadata["partition-specs"]
                if s["spec-id"] == metadata["default-spec-id"])
    return [(f["name"], f["transform"]) for f in spec["fields"]]


def deletes(lake, table="t"):
    return int(lake.table(table).summary.get("total-position-deletes", 0))


def test_every_transform_of_every_type(database, walberg, lake):
    """The same rows by the copy and by the stream; then each value goes to another row, so that
    rows move between partitions, and some go."""
    names = {f"t{number}": pair for number, pair in enumerate(ALL)}
    for name, (transform, _) in names.items():
        walberg.settings.update(partition(name, transform.format("v")))
    with database.connect() as conn:
        for name, (_, kind) in names.items():
            conn.execute(f"create table {name} (id int primary key, v {kind}, n int)")
            insert(conn, name, VALUES[kind])
        walberg.once()
        assert field(lake, "t0") == [("v", "identity")]
        compare(database, lake, names, readers=["pyiceberg"])
        for name, (_, kind) in names.items():
            insert(conn, name, VALUES[kind], first=100)
            count = len(VALUES[kind])
            conn.execute(f"update {name} t set v = s.v, n = 1 from {name} s"
                         f" where s.id = case t.id when {count + 1} then 1 else t.id + 1 end"
                         f" and t.id < 100")
            conn.execute(f"delete from {name} where id in (1, 101)")
    walberg.once()
    compare(database, lake, names)


@pytest.fixture
def program(database, storage, tmp_path):
    program = Walberg(database, storage, tmp_path)
    yield program
    program.kill()


def test_rows_move_while_it_runs(database, program, storage):
    lake = Lake(storage)
    program.settings.update(partition("t", "region", "bucket(4, id)"))
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, region text, note text);"
                     "alter table t alter note set storage external")
        conn.execute("insert into t select n, 'r' || n % 5, repeat('x', 9000)"
                     " from generate_series(1, 200) n")
        program.start().wait_caught_up()
        for round_ in range(6):
            conn.execute("update t set region = 'r' || (id + %s) %% 7 where id %% 3 = 0", [round_])
            conn.execute("update t set note = note || %s where id %% 11 = 0", [str(round_)])
            conn.execute("delete from t where id = %s", [round_ * 3 + 1])
            conn.execute("insert into t values (%s, null, 'new')", [1000 + round_])
            program.wait_caught_up()
        assert deletes(lake) > 0
        compare(database, lake, ["t"])
        assert program.query("select count(*) from t where region = 'r1'") == conn.execute(
            "select count(*) from t where region = 'r1'").fetchall()
        conn.execute("truncate t; insert into t values (1, 'r1', 'a'), (2, 'r2', 'b')")
        program.wait_caught_up()
        assert program.stop() == 0
        compare(database, lake, ["t"])
        conn.execute("update t set region = 'r9'")
    program.once()
    compare(database, lake, ["t"])


def test_the_setting_changes_between_runs(database, walberg, lake):
    """Old files keep their partitions, and rows in them can still go."""
    settings = dict(walberg.settings)
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, at timestamptz, region text)")
        total = 0
        for terms in (None, ["day(at)"], ["month(at)", "region"], [], ["region", "month(at)"],
                      ["day(at)"], None):
            conn.execute("insert into t select %s + n,"
                         " timestamptz '2026-01-01' + n * interval '9h', 'r' || n %% 3"
                         " from generate_series(1, 60) n", [total])
            total += 60
            conn.execute("delete from t where id %% 10 = %s", [total // 60])
            conn.execute("update t set region = region || 'x' where id %% 7 = %s", [total // 60])
            walberg.settings = dict(settings)
            if terms is not None:
                walberg.settings.update(partition("t", *terms))
            walberg.once()
            compare(database, lake, ["t"])
            transforms = [transform for _, transform in field(lake)]
            assert len(transforms) == len(terms or []), transforms
    specs = lake.table("t").metadata["partition-specs"]
    assert len(specs) == 4                       # day(at) and none were used again
    assert lake.table("t").metadata["last-partition-id"] == 1002


@pytest.mark.parametrize("change, left", [
    ("alter table t rename region to area", [("at_day", "day"), ("region", "identity")]),
    ("alter table t rename at to moment", [("at_day", "day"), ("region", "identity")]),
    ("alter table t drop region", [("at_day", "day")]),
    ("alter table t drop region; alter table t add region text",
     [("at_day", "day"), ("region_3", "identity")]),
    ("alter table t rename region to area; alter table t add region text",
     [("at_day", "day"), ("region_2", "identity")]),
    ("alter table t add at_day date default now()", [("at_day_2", "day"), ("region", "identity")]),
    ("alter table t drop region; alter table t add x int; alter table t rename x to region",
     [("at_day", "day"), ("region_3", "identity")]),
    ("alter table t alter region type int using 7", [("at_day", "day"), ("region_3", "identity")]),
    ("alter table t alter at type timestamptz", [("region", "identity"), ("at_day_2", "day")]),
    ("alter table t alter at type text", [("region", "identity")]),
])
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_a_column_that_is_partitioned_by_changes(change, left, running, database, walberg, lake):
    walberg.settings.update(partition("t", "day(at)", "region"))
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, at timestamp, region text)")
        conn.execute("insert into t select n, timestamp '2026-01-01' + n * interval '5h', 'r' || n"
                     " % 3 from generate_series(1, 30) n")
        if running:
            walberg.start().wait_caught_up()
        else:
            walberg.once()
        conn.execute(change)
        conn.execute("insert into t (id) values (100)")
        conn.execute("delete from t where id < 4")
        if running:
            walberg.wait_caught_up()
            wait_for("the new shape", lambda: is_equal(database, lake, ["t"]), 40, pause=1)
            assert walberg.stop() == 0
        else:
            walberg.once()
        compare(database, lake, ["t"])
        assert field(lake) == left
        conn.execute("delete from t where id in (5, 6, 100)")
        walberg.once()                            # the setting still has the old names
    assert field(lake) == left
    compare(database, lake, ["t"])


@pytest.mark.parametrize("change, now", [
    ("rename region to area", ["day(at)", "area"]),
    ("drop region", ["day(at)"]),
])
def test_check_says_of_old_names_what_run_does(change, now, database, walberg, lake):
    """The setting that the lake took on is followed by field id; the new names say the same."""
    old = partition("t", "day(at)", "region")
    walberg.settings.update(old)
    database.execute("create table t (id int primary key, at timestamp, region text)")
    walberg.once()
    database.execute(f"alter table t {change}", "insert into t (id) values (1)")

    def check():
        return walberg.call("check", *walberg.positional())

    for _ in range(2):  # before the lake follows the column, and after
        done = check()
        assert done.returncode == 0, done.stdout
        assert "public.t has no column region" in done.stdout
        assert "goes on by day(at)" in done.stdout
        assert f"set it to {now}, as the columns are called now" in done.stdout
        walberg.once()
    assert walberg.log().count("the setting of partitions is of before columns changed") == 2
    before = field(lake)
    walberg.settings.update(partition("t", *now))
    walberg.once()
    assert field(lake) == before
    assert "has no column" not in check().stdout
    walberg.settings.update(partition("t", "day(at)", "bucket(4, region)"))  # not followed by any
    done = check()
    assert done.returncode == 1 and "public.t has no column region" in done.stdout
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1
    assert "has no column region" in walberg.status()["tables"][0]["error"]


def test_widened_columns(database, walberg, lake):
    walberg.settings.update(partition("t", "v", "truncate[10](w)", "bucket[5](v)"))
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, v int, w numeric(6,2))")
        conn.execute("insert into t select n, n % 3, n % 4 from generate_series(1, 20) n")
        walberg.once()
        conn.execute("alter table t alter v type bigint, alter w type numeric(12,2)")
        conn.execute("insert into t values (100, 1, 1), (101, 9000000000, 1234567890.12)")
        conn.execute("delete from t where id in (1, 2)")
        walberg.once()
        compare(database, lake, ["t"])
        conn.execute("delete from t where id in (3, 100)")
    walberg.once()
    compare(database, lake, ["t"])


@pytest.mark.parametrize("terms, says", [
    (["day(nothing)"], "public.t has no column nothing\nhint: its columns are id, name, tags"),
    (["day(name)"], "column name (text) is of type string in the lake\n"
                    "hint: this transform takes date, timestamp and timestamptz"),
    (["bucket[4](tags)"], "column tags (text[]) is nested"),
    (["id", "identity(id)"], '"identity(id)" is there twice'),
])
def test_settings_that_do_not_fit_the_table(terms, says, database, walberg, lake):
    walberg.settings.update(partition("t", *terms))
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, name text, tags text[]);"
                     "create table other (id int primary key)")
    done = walberg.call("check", *walberg.positional())
    assert done.returncode == 1
    assert "--set tables.public.t.partition" in done.stdout, done.stdout
    for line in says.split("\n"):
        assert line.removeprefix("hint: ") in done.stdout, done.stdout


def test_copy_into_many_partitions(database, walberg, lake):
    """More than the buffers hold: the copy has to write before it has seen all rows."""
    walberg.settings.update({**partition("t", "part"), "memory": "64MB", "copy.workers": "2"})
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, part int, text text)")
        conn.execute("insert into t select n, n % 100, repeat(md5(n::text), 30)"
                     " from generate_series(1, 50000) n")
    walberg.once()
    files = int(lake.table("t").summary["total-data-files"])
    assert files > 200, files
    compare(database, lake, ["t"], readers=["duckdb"])


def test_other_commands_know_partitions(database, walberg, lake):
    walberg.settings.update(partition("t", "day(at)", "region"))
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, at timestamp, region text)")
        conn.execute("insert into t select n, timestamp '2026-01-01' + n * interval '5h', 'r' || n"
                     " % 3 from generate_series(1, 30) n")
        walberg.once()
        conn.execute("update t set region = 'moved' where id < 5")
        walberg.once()
    assert walberg.call("verify", *walberg.positional()).returncode == 0
    walberg.call("resync", *walberg.positional(), "public.t", check=True)
    walberg.once()
    assert field(lake) == [("at_day", "day"), ("region", "identity")]
    assert deletes(lake) == 0
    compare(database, lake, ["t"])
