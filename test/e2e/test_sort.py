"""Sorted data files: every type, stream and copy, settings and columns that change. That each file
which says it is sorted really is, lib/iceberg_check.py says of every table of every test; here it
is asserted which files do. The table stays equal by value through every reader."""
import json
import random
import re
import subprocess

import pytest
from pyiceberg.table import StaticTable
from test_partitioning import ALL as TRANSFORMS
from test_partitioning import VALUES

from lib.env import CACHE, ROOT, wait_for
from lib.iceberg_check import check_table
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.readers import reader_properties
from lib.walberg import Walberg


def sort(table, *terms):
    return {f"tables.public.{table}.sort": "[" + ", ".join(f"'{t}'" for t in terms) + "]"}


def static(table):
    return StaticTable.from_metadata(table.uri, reader_properties(table.storage))


def order(lake, table="t"):
    """Fields of the default sort order, as PyIceberg loads it."""
    loaded = static(lake.table(table))
    schema = loaded.schema()
    return [f"{f.transform}({schema.find_column_name(f.source_id)}) {f.direction.value}"
            f" {f.null_order.value}" for f in loaded.sort_order().fields]


def java_orders(tables):
    """What the Java library loads of the same tables: a line each."""
    done = subprocess.run(
        ["java", "-cp", f"{CACHE}/java/lib/*", str(ROOT / "test/java/SortOrder.java"),
         *(table.uri for table in tables)], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def files(lake, table="t"):
    """(rows, sort order id) of each data file, as PyIceberg sees them."""
    return [(task.file.record_count, task.file.sort_order_id)
            for task in static(lake.table(table)).scan().plan_files()]


def sorted_rows(lake, table="t"):
    return sum(rows for rows, number in files(lake, table) if number)


def test_every_type_in_every_direction(database, walberg, lake):
    """Ascending, descending and by each transform; NULLs at either end; rows come in no order."""
    tables = {}
    for number, (transform, kind) in enumerate(TRANSFORMS):
        if transform == "void({})":
            continue
        term = transform.format("v")
        tables[f"a{number}"] = kind, [term, "id desc"]
        tables[f"d{number}"] = kind, [f"{term} desc nulls {'first' if number % 2 else 'last'}"]
    for name, (_, terms) in tables.items():
        walberg.settings.update(sort(name, *terms))
    with database.connect() as conn:
        for name, (kind, _) in tables.items():
            conn.execute(f"create table {name} (id int primary key, v {kind})")
        walberg.once()
        for name, (kind, _) in tables.items():
            values = [*VALUES[kind], None] * 2
            random.Random(name).shuffle(values)
            for number, value in enumerate(values):
                conn.execute(f"insert into {name} values (%s, %s)", [number, value])
    walberg.once()
    compare(database, lake, tables)
    for name, (kind, _) in tables.items():
        assert sorted_rows(lake, name) == 2 * len(VALUES[kind]) + 2, name


@pytest.fixture(params=["", "[region]", "['bucket[3](id)', 'day(at)']"],
                ids=["whole", "region", "buckets"])
def partitioned(request, walberg):
    walberg.settings["tables.public.t.partition"] = request.param or "[]"
    return bool(request.param)


TABLE = """create table t (id int primary key, at timestamptz, region text, note text);
           alter table t alter note set storage external"""
ROWS = ("insert into t select n, timestamptz '2026-01-01' + n * 7919 %% 1000 * interval '1h',"
        " 'r' || n %% 3, case when n %% 5 = 0 then repeat('x', 9000 + n) else 'n' || n end"
        " from generate_series(%s::int, %s::int) n order by n * 7919 %% 5000")


def test_stream_and_copy(partitioned, database, walberg, lake):
    """Updates, deletes, values that are not sent, rows that move; more rows than a piece has."""
    walberg.settings.update(sort("t", "at desc", "id"))
    with database.connect() as conn:
        conn.execute(TABLE)
        conn.execute(ROWS, [1, 2500])
        walberg.start().wait_streaming()
        copied = files(lake)
        assert {number for _, number in copied} == ({1} if partitioned else {None})
        conn.execute(ROWS, [2501, 7000])
        walberg.wait_caught_up()
        assert sorted_rows(lake) == (7000 if partitioned else 4500)
        for round_ in range(4):
            conn.execute("update t set at = at + interval '3h', region = 'r' || (id + %s) %% 3"
                         " where id %% 13 = %s", [round_, round_])
            conn.execute("update t set note = note || %s where id %% 17 = %s",
                         [str(round_), round_])
            conn.execute("delete from t where id %% 19 = %s", [round_])
            walberg.wait_caught_up()
            assert not check_table(lake.table("t"))
        conn.execute("update t set region = 'gone' where id = 6999")
        walberg.wait_caught_up()
        assert walberg.stop() == 0
        conn.execute("update t set region = region || '!' where id % 23 = 1")
        conn.execute("delete from t where id % 29 = 2")
    walberg.once()
    compare(database, lake, ["t"])
    assert {number for _, number in files(lake)} == ({1} if partitioned else {None, 1})
    assert order(lake) == ["identity(at) desc nulls-last", "identity(id) asc nulls-first"]
    assert java_orders([lake.table("t")]) == [
        "1: identity(at) DESC NULLS LAST, identity(id) ASC NULLS FIRST"]
    assert walberg.call("verify", *walberg.positional()).returncode == 0
    walberg.call("resync", *walberg.positional(), "public.t", check=True)
    walberg.once()
    compare(database, lake, ["t"])
    assert {number for _, number in files(lake)} == ({1} if partitioned else {None})


def test_a_column_that_is_sorted_by_is_not_sent(database, walberg, lake):
    """It is read back from the lake while the file is written, which is then not sorted."""
    walberg.settings.update(sort("t", "note", "id desc"))
    with database.connect() as conn:
        conn.execute(TABLE)
        walberg.once()
        conn.execute(ROWS, [1, 100])
        walberg.once()
        assert files(lake) == [(100, 1)]
        conn.execute("update t set region = 'new' where id % 10 = 0")
        conn.execute("update t set note = 'sent' where id = 31")
        walberg.once()
        assert sorted(number or 0 for _, number in files(lake)) == [0, 1]
        conn.execute("delete from t where id in (10, 11, 31)")
    walberg.once()
    compare(database, lake, ["t"])


def test_the_setting_changes_between_runs(database, walberg, lake):
    """Old files keep the order they have; without the setting the table is unsorted again."""
    settings = dict(walberg.settings)
    seen = []
    with database.connect() as conn:
        conn.execute(TABLE)
        walberg.once()
        total = 0
        for terms in (None, ["at desc", "id"], ["region nulls last", "day(at) desc"], [],
                      ["at DESC NULLS LAST", "identity(id) asc"], None, ["id desc"]):
            walberg.settings = dict(settings)
            if terms is not None:
                walberg.settings.update(sort("t", *terms))
            conn.execute(ROWS, [total + 1, total + 60])
            total += 60
            conn.execute("update t set note = 'changed' where id % 7 = 1")
            conn.execute("delete from t where id % 11 = 5")
            walberg.once()
            compare(database, lake, ["t"])
            assert len(order(lake)) == len(terms or [])
            seen.append(lake.table("t").metadata["default-sort-order-id"])
    assert seen == [0, 1, 2, 0, 1, 0, 3]
    assert {number for _, number in files(lake)} == {None, 1, 2, 3}
    assert java_orders([lake.table("t")]) == ["3: identity(id) DESC NULLS LAST"]


AT = "identity(at) desc nulls-last"
REGION = "identity(region) asc nulls-last"


@pytest.mark.parametrize("change, left", [
    ("alter table t rename region to area", [REGION.replace("region", "area"), AT]),
    ("alter table t drop region", [AT]),
    ("alter table t drop region; alter table t drop at", []),
    ("alter table t drop region; alter table t add region text", [REGION, AT]),
    ("alter table t alter region type varchar(40)", [REGION, AT]),
    ("alter table t alter at type text", [REGION, AT]),
    ("alter table t alter region type text[] using array[region]", [AT]),
])
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_a_column_that_is_sorted_by_changes(change, left, running, database, walberg, lake):
    walberg.settings.update(sort("t", "region nulls last", "at desc"))
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, at timestamp, region text)")
        conn.execute("insert into t values (0)")
        insert = ("insert into t (id) select * from generate_series({}, {})")
        walberg.once()
        conn.execute("insert into t select n, timestamp '2026-01-01' + n * 17 % 30 * interval '5h',"
                     " 'r' || n % 3 from generate_series(1, 30) n")
        if running:
            walberg.start().wait_streaming()
        else:
            walberg.once()
        assert order(lake) == [REGION, AT]
        conn.execute(change)
        conn.execute(insert.format(100, 110))
        conn.execute("delete from t where id in (3, 4)")
        if running:
            walberg.wait_caught_up()
            wait_for("the new shape", lambda: is_equal(database, lake, ["t"]), 40, pause=1)
            assert walberg.stop() == 0
        else:
            walberg.once()
        compare(database, lake, ["t"])
        assert order(lake) == left
        conn.execute("delete from t where id in (5, 6, 100)")
        conn.execute(insert.format(200, 210))
        walberg.once()                            # the setting still has the old names
        conn.execute(insert.format(301, 309))
        walberg.once()
    assert order(lake) == left
    compare(database, lake, ["t"])
    assert java_orders([lake.table("t")])[0].count("(") == len(left)
    assert walberg.call("check", *walberg.positional()).returncode == 0
    metadata = lake.table("t").metadata
    assert (9, metadata["default-sort-order-id"] or None) in files(lake)


@pytest.mark.parametrize("change, now", [
    ("alter table t rename at to moment; alter table t rename region to \"the region's\"",
     "bucket[4](id), \"the region's\" nulls last, day(moment) desc, moment desc nulls first"),
    ("alter table t drop region", "bucket[4](id), day(at) desc, at desc nulls first"),
    ("alter table t alter at type text[] using array[at]", "bucket[4](id), region nulls last"),
    ("alter table t drop region; alter table t drop at; alter table t drop id", ""),
])
def test_check_says_of_old_names_what_to_write(change, now, database, walberg, lake):
    """Pasted into the settings, it is the order that the lake goes on with."""
    walberg.settings.update(sort("t", "bucket[4](id)", "region nulls last", "day(at) desc",
                                 "at desc nulls first"))
    database.execute("create table t (id int, at timestamp, region text)",
                     "alter table t replica identity full")
    walberg.once()
    database.execute(*change.split("; "), "alter table t add more int",
                     "insert into t default values")

    def check():
        done = walberg.call("check", "--json", *walberg.positional())
        assert done.returncode == 0, done.stdout
        return [item for item in json.loads(done.stdout) if "stays sorted" in item["message"]]

    for _ in range(2):  # before the lake follows the columns, and after
        (item,) = check()
        hint = re.fullmatch(r"set it to (\[.*\]), as the columns are called now", item["hint"])
        assert hint[1].replace("''", "'").replace("', '", ", ").strip("[']") == now
        walberg.once()
    before = order(lake)
    walberg.settings["tables.public.t.sort"] = hint[1]
    database.execute("insert into t default values")
    walberg.once()
    assert check() == []
    assert order(lake) == before
    assert len(before) == (now.count(",") + 1 if now else 0)


def with_order(lake, name, fields):
    """Somebody else sets the default sort order: a metadata file, and no snapshot."""
    table = lake.table(name)
    metadata = table.metadata
    number = lake.hint(table)
    metadata["sort-orders"].append({"order-id": 7, "fields": fields})
    metadata["default-sort-order-id"] = 7
    folder = f"{lake.storage.uri.rstrip('/')}/{table.folder}/metadata"
    lake.storage.write(f"{folder}/v{number + 1}.metadata.json", json.dumps(metadata).encode())
    lake.storage.write(f"{folder}/version-hint.text", str(number + 1).encode())


def test_an_order_that_somebody_else_set_is_kept(database, walberg, lake):
    """Without a setting new files have it, until its column goes; a setting takes its place."""
    with database.connect() as conn:
        conn.execute(TABLE)
        conn.execute(ROWS, [1, 50])
        walberg.once()
        with_order(lake, "t", [{"transform": "identity", "source-id": 3, "direction": "desc",
                                "null-order": "nulls-first"},
                               {"transform": "bucket[5]", "source-id": 1, "direction": "asc",
                                "null-order": "nulls-last"}])
        conn.execute(ROWS, [51, 100])
        walberg.once()
        assert lake.table("t").metadata["default-sort-order-id"] == 7
        assert sorted(files(lake), key=str) == [(50, 7), (50, None)]
        compare(database, lake, ["t"])
        conn.execute("alter table t drop region; insert into t values (200), (199)")
        walberg.once()
        assert order(lake) == ["bucket[5](id) asc nulls-last"]
        compare(database, lake, ["t"])
        conn.execute("insert into t values (202), (201)")
        walberg.settings.update(sort("t", "id desc"))
        walberg.once()
        assert order(lake) == ["identity(id) desc nulls-last"]
    compare(database, lake, ["t"])
    assert sorted(number or 0 for _, number in files(lake)) == [0, 7, 8, 9]


@pytest.mark.parametrize("terms, says", [
    (["nothing desc"],
     "public.t has no column nothing\nhint: its columns are id, name, tags, pair"),
    (["name", "tags"], '"tags": column tags (text[]) is nested, and has no order'),
    (["pair desc"], "column pair (public.pair) is nested, and has no order"),
    (["day(name)"], "column name (text) is of type string in the lake\n"
                    "hint: this transform takes date, timestamp and timestamptz"),
    (["id", "id desc"], '"id desc": id is there twice'),
    (["id", "bucket[4](id)"], "column id is sorted by already, so this adds nothing"),
])
def test_settings_that_do_not_fit_the_table(terms, says, database, walberg):
    walberg.settings.update(sort("t", *terms))
    with database.connect() as conn:
        conn.execute("create type pair as (a int, b int);"
                     "create table t (id int primary key, name text, tags text[], pair pair)")
    done = walberg.call("check", *walberg.positional())
    assert done.returncode == 1
    assert "--set tables.public.t.sort" in done.stdout, done.stdout
    for line in says.split("\n"):
        assert line.removeprefix("hint: ") in done.stdout, done.stdout


def test_check_and_the_file_of_settings(database, walberg, tmp_path):
    """A setting of the file is named with its place; a right one is shown."""
    file = tmp_path / "walberg.yaml"
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, at date)")
    file.write_text("tables:\n  public.t:\n    sort:\n      - at desc\n      - nothing\n")
    done = walberg.call("check", *walberg.positional())
    assert done.returncode == 1
    assert "walberg.yaml:4:7: tables.public.t.sort" in done.stdout, done.stdout
    file.write_text("tables: {public.t: {sort: [at desc, id]}}\n")
    done = walberg.call("check", *walberg.positional())
    assert done.returncode == 0, done.stdout
    assert "sorted by identity(at) desc nulls last, identity(id) asc nulls first" in done.stdout


def test_the_check_would_notice(database, walberg, lake):
    """The oracle of this file: true metadata is made untrue."""
    walberg.settings.update(sort("t", "v", "id desc"))
    with database.connect() as conn:
        conn.execute("create table t (id int primary key, v float8)")
        walberg.once()
        conn.execute("insert into t values (1, 'NaN'), (2, '-0'), (3, '0'), (4, null), (5, '0')")
    walberg.once()
    assert check_table(lake.table("t")) == []
    for place, key, value in ((0, "direction", "desc"), (1, "direction", "asc"),
                              (0, "null-order", "nulls-last"), (0, "source-id", 1)):
        table = lake.table("t")
        table.metadata["sort-orders"][1]["fields"][place][key] = value
        assert "is not in sort order 1" in " ".join(check_table(table)), (place, key)
    table = lake.table("t")
    table.metadata["sort-orders"][1]["fields"][0]["source-id"] = 9
    del table.metadata["snapshots"][-1], table.metadata["current-snapshot-id"]
    assert "the default sort order is of column 9, which is gone" in check_table(table)


def test_a_lake_on_s3(s3, database, tmp_path):
    program = Walberg(database, s3.warehouse(), tmp_path)
    program.settings.update(sort("t", "at", "id desc"))
    lake = Lake(program.storage)
    with database.connect() as conn:
        conn.execute(TABLE)
        program.once()
        conn.execute(ROWS, [1, 300])
        program.once()
        conn.execute("update t set region = 'new' where id % 10 = 0")
        conn.execute("delete from t where id % 7 = 0")
    program.once()
    assert {number for _, number in files(lake)} == {1}
    compare(database, lake, ["t"])
